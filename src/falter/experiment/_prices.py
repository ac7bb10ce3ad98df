"""Price lists: the price of a million tokens, by the model's name. No price is guessed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

import yaml

from falter.clients.settings import is_free
from falter.core.errors import UsageError
from falter.experiment._config import Experiment
from falter.experiment._settings import Block, Setting
from falter.experiment._shapes import Options, Place, Value
from falter.planning import Price

__all__ = ["PriceList", "price_lists", "read_prices", "with_prices"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """Prices by model name; `name` is what messages call the list."""

    name: str
    currency: str
    models: Mapping[str, Price]

    def price(self, model: str) -> Price | None:
        """The price of a model as an experiment names it; None if the list has none.

        `gpt-4o` in the list is the price of `openai:gpt-4o`, and of `inspect:openai/gpt-4o`: the
        name after the client's, whole, else what follows its last slash. Models that run in this
        process cost nothing.
        """
        client, _, name = model.partition(":")
        if is_free(client):
            return Price(input=0.0, output=0.0, currency=self.currency)
        return self.models.get(name) or self.models.get(name.rpartition("/")[2])


def price_lists() -> list[str]:
    """The names of the lists that come with falter."""
    return sorted(_bundled())


def read_prices(source: str) -> PriceList:
    """A bundled list by its name, or a file of the same form."""
    bundled = _bundled()
    if source in bundled:
        return _parsed(source, bundled[source])
    path = Path(source)
    if not source or not path.exists():
        names = ", ".join(sorted(bundled))
        raise UsageError(f"Unknown price list '{source}'", hint=f"known: {names}; or give a file")
    try:
        return _parsed(path.name, path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"The price list {path} cannot be read: {error}", hint="give a YAML file in UTF-8"
        ) from error


def with_prices(experiment: Experiment, prices: PriceList) -> Experiment:
    """The experiment with a price for each model that has none and is in the list."""
    models = (
        spec if spec.price is not None else replace(spec, price=prices.price(spec.name))
        for spec in experiment.models
    )
    return replace(experiment, models=tuple(models))


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
    here = Place(name)
    settings = _LIST.read(data, here)
    currency = settings["currency"]
    entries = {
        model: _ENTRY.read(entry, here.at("models").at(model))
        for model, entry in settings["models"].items()
    }
    prices = {m: Price(**entry, currency=currency) for m, entry in entries.items()}
    return PriceList(name=name, currency=currency, models=prices)


_LIST = Block(
    dict,
    currency=Setting("", shape=Value(str), required="for example 'currency: USD'"),
    models=Setting(
        "", shape=Options(),
        required="for example 'models: {gpt-4o: {input: 2.50, output: 10}}'",
    ),
)  # fmt: skip
_SIDE = Setting("", shape=Value(float, low=0), required="a price per million tokens")
_ENTRY = Block(
    dict, input=_SIDE, output=_SIDE,
    cached=Setting("", shape=Value(float, low=0), default=None),
)  # fmt: skip
