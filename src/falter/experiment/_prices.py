"""Price lists: what a million tokens of a model cost, by its name. Nothing is guessed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from falter.core.errors import InvalidValue, UsageError
from falter.experiment._config import Experiment, ModelSpec
from falter.experiment._reader import Reader
from falter.plan import Price

__all__ = ["PriceList", "price_lists", "price_settings", "read_prices", "with_prices"]

LOCAL = frozenset({"hf", "simulated", "smollm2", "vllm"})
"""Clients whose models run in this process, and cost nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """Prices by model name, and what the list is called in messages."""

    name: str
    currency: str
    models: Mapping[str, Price]

    def price(self, model: str) -> Price | None:
        """The price of a model as an experiment names it, None where the list has none.

        `gpt-4o` in the list is the price of `openai:gpt-4o`, and of `inspect:openai/gpt-4o`: the
        name after the client's, whole, else what follows its last slash. Models that run in this
        process cost nothing.
        """
        client, _, name = model.partition(":")
        if client in LOCAL:
            return Price(input=0.0, output=0.0, currency=self.currency)
        return self.models.get(name) or self.models.get(name.rpartition("/")[2])


def price_lists() -> list[str]:
    """The names of the lists that come with falter."""
    return sorted(_bundled())


def read_prices(source: str) -> PriceList:
    """A bundled list by its name, or the user's own file of the same shape."""
    bundled = _bundled()
    if source in bundled:
        return _parsed(source, bundled[source])
    path = Path(source)
    if not source or not path.exists():
        known = ", ".join(sorted(bundled))
        raise UsageError(f"Unknown price list '{source}'", hint=f"known: {known}; or give a file")
    try:
        return _parsed(path.name, path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"The price list {path} cannot be read: {error}", hint="give a YAML file in UTF-8"
        ) from error


def with_prices(experiment: Experiment, prices: PriceList) -> Experiment:
    """The experiment with a price for each model that has none and is in the list."""
    return replace(experiment, models=tuple(_priced(m, prices) for m in experiment.models))


def price_settings(settings: Mapping[str, Any], prices: PriceList) -> dict[str, Any]:
    """The same for an experiment or a protocol that is not read yet."""
    named = settings.get("models")
    if named is None:
        return dict(settings)
    entries = named if isinstance(named, (list, tuple)) else [named]
    return {**settings, "models": [_priced_entry(entry, prices) for entry in entries]}


def _priced(spec: ModelSpec, prices: PriceList) -> ModelSpec:
    return spec if spec.price is not None else replace(spec, price=prices.price(spec.name))


def _priced_entry(entry: Any, prices: PriceList) -> Any:
    """An entry of `models` with its price; what is not well formed is left for its reader."""
    made = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(made, Mapping) or not isinstance(made.get("name"), str) or made.get("price"):
        return entry
    price = prices.price(made["name"])
    if price is None:
        return entry
    told = {"input": price.input, "output": price.output, "currency": price.currency}
    return {**made, "price": told}


def _bundled() -> dict[str, str]:
    """The text of each bundled list, by the list's name."""
    folder = resources.files("falter.experiment").joinpath("data")
    return {
        file.name.removeprefix("prices-").removesuffix(".yaml"): file.read_text("utf-8")
        for file in folder.iterdir()
        if file.name.startswith("prices-")
    }


def _parsed(name: str, text: str) -> PriceList:
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(f"{name} is not YAML: {error}", hint="check the indentation") from error
    reader = Reader(data, name)
    reader.need("currency", "for example 'currency: USD'")
    reader.need("models", "for example 'models: {gpt-4o: {input: 2.50, output: 10}}'")
    currency = reader.text("currency") or ""
    models = reader.child("models")
    assert models is not None
    found = {str(model): models.child(str(model)) for model in data["models"]}
    reader.finish()
    return PriceList(
        name=name,
        currency=currency,
        models={
            model: _price(entry, f"{name}.models.{model}", currency)
            for model, entry in found.items()
        },
    )


def _price(reader: Reader | None, where: str, currency: str) -> Price:
    expected = "a mapping with input and output, per million tokens"
    if reader is None:
        raise InvalidValue(where, None, expected)
    values = {}
    for side in ("input", "output"):
        reader.need(side, "a price per million tokens")
        value = reader.number(side, 0)
        if value is None or not math.isfinite(value):
            raise InvalidValue(reader.name(side), value, "a finite number")
        values[side] = value
    reader.finish()
    return Price(input=values["input"], output=values["output"], currency=currency)
