"""`simulated`: a model with a known difficulty of items, brittleness and noise.

Its answer to item i under condition j in repeat r is correct if

    mean + item_sd·d_i − effect_j + interaction_sd·g_ij + noise_sd·n_ijr > 0

Here d, g and n are standard normal, drawn from hashes of the item, the recipe, the draw and the
repeat. So its accuracies, drops and variance components have known values.

Special cases:

- `mended_by` is a text. In a prompt that contains it, no perturbation has an effect. So a remedy
  that adds this text has a known benefit.
- If the recipe asks for reasoning, two fixed lines precede the answer.
- If the answer has several fields, the response has all of them in the format that the prompt asks
  for. They are the target's fields if the answer is correct, otherwise fixed words.
- As a judge, for items with a field `ratings_wanted`, it returns ratings of 100·Φ of the formula
  without effect. There d depends on the whole prompt, and g on the rating's name. If the item has
  options, the rating is the option at that share. These ratings say nothing about quality.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

from falter.clients.base import BaseClient
from falter.clients.settings import (
    ClientSettings,
    client_tables,
    clients,
    costs_nothing,
    option_table,
)
from falter.records.answers import AnswerSchema, written
from falter.records.ids import digest
from falter.records.interfaces import Capabilities, Client
from falter.records.render import plain
from falter.records.types import ContinuationScore, Model, Recipe, Request, Response, Variant

OPTIONS = option_table("simulated")
RATINGS = "ratings_wanted"
"""The field of an item that asks for ratings: their names, separated by commas."""
_REASONING = "I read the question and look at what could fit.\nOne answer fits best.\nAnswer: "
_STANDARD = NormalDist()


class Simulated(BaseClient):
    """A client that answers by the formula of this module; nothing is sent anywhere."""

    def __init__(self, settings: ClientSettings) -> None:
        options = OPTIONS.read(settings)
        usual = client_tables()["simulated"]["effects"]
        self.effects: dict[str, float] = {**usual, **options.pop("effects")}
        self.mended_by: str = options.pop("mended_by")
        self.parameters: dict[str, float] = options
        mended = {"mended_by": self.mended_by} if self.mended_by else {}
        self.capabilities = Capabilities(generates=True, scores=True, lanes=8, constrains=True)
        self.model = Model(
            client="simulated",
            name=settings.name or "simulated",
            options={**self.parameters, "effects": self.effects, **mended},
            simulated=True,
        )

    async def generate(self, request: Request) -> Response:
        await asyncio.sleep(0)
        prompt = request.variant.prompt
        wanted = request.variant.item.fields.get(RATINGS)
        if wanted is not None:
            return self._response(request, text=self._ratings(request, wanted.split(",")))
        if self._uniform_draw("unparsed", request) < self.parameters["unparsed"]:
            return self._response(request, text="It depends on how one looks at it.")
        index = self._answer_index(request)
        if prompt.choices:
            answer = prompt.labels[index]
        elif prompt.schema is not None:
            answer = _as_parts(request.variant, prompt.schema, right=index == 0)
        else:
            answer = str(prompt.target) if index == 0 else "something else"
        if request.answers is not None:
            answer = _in_answer_form(request.answers, answer, str(prompt.target), right=index == 0)
        elif request.variant.recipe.reasons:
            answer = _REASONING + answer
        return self._response(request, text=answer)

    async def score_many(self, requests: Sequence[Request]) -> Sequence[Response]:
        await asyncio.sleep(0)
        return [self._scores(request) for request in requests]

    def is_right(self, request: Request) -> bool:
        """Return True if the formula is above zero for this request."""
        p, variant = self.parameters, request.variant
        latent = p["mean"] + p["item_sd"] * self._normal_draw("item", request)
        if variant.status == "changed" and not self._is_mended(request):
            latent -= self.effect(variant.recipe)
        if p["interaction_sd"]:
            latent += p["interaction_sd"] * self._normal_draw("interaction", request)
        if p["noise_sd"]:
            latent += p["noise_sd"] * self._normal_draw("noise", request)
        return latent > 0

    def effect(self, recipe: Recipe) -> float:
        """Return a recipe's shift of the latent value: its label's effect, or its steps' sum."""
        if recipe.label in self.effects:
            return self.effects[recipe.label]
        return sum(self.effects.get(step.name, 0.0) for step in recipe.steps)

    def _is_mended(self, request: Request) -> bool:
        return bool(self.mended_by) and self.mended_by in plain(request.variant.prompt)

    def _answer_index(self, request: Request) -> int:
        prompt = request.variant.prompt
        if not prompt.choices:
            return 0 if self.is_right(request) else 1
        target = int(prompt.target or 0)
        if self.is_right(request):
            return target
        others = [i for i in range(len(prompt.choices)) if i != target]
        return others[int(self._uniform_draw("wrong", request) * len(others))]

    def _ratings(self, request: Request, names: Sequence[str]) -> str:
        """Return made-up ratings as JSON, which depend only on the prompt and the repeat."""
        p, shown = self.parameters, request.messages or request.context

        def normal(part: str, *more: Any) -> float:
            return _STANDARD.inv_cdf(self._hash_fraction(part, shown, *more))

        if self._hash_fraction("rating unparsed", shown, request.repeat) < p["unparsed"]:
            return "It depends on how one looks at it."
        latent = p["mean"] + p["item_sd"] * normal("rating")
        latent += p["noise_sd"] * normal("rating noise", request.repeat)
        ratings = {}
        for name in map(str.strip, names):
            own = latent + p["interaction_sd"] * normal("rating of", name)
            share, options = _STANDARD.cdf(own), request.variant.prompt.choices
            place = min(int(share * len(options)), len(options) - 1)
            ratings[name] = int(options[place]) if options else round(100 * share)
        return json.dumps(ratings)

    def _scores(self, request: Request) -> Response:
        """Return −1 nat per character for the chosen option, and far lower scores for the others.

        So the chosen option has the maximum of the raw scores and of the scores per character.
        """
        chosen = self._answer_index(request)
        far = 10.0 * max(map(len, request.continuations))
        scores = tuple(
            ContinuationScore(
                logprob=-len(text) * (1.0 if i == chosen else far), tokens=1, greedy=i == chosen
            )
            for i, text in enumerate(request.continuations)
        )
        return self._response(request, scores=scores)

    def _response(self, request: Request, **content: Any) -> Response:
        return Response(key=request.key, served_by="simulated", received_at=time.time(), **content)

    def _uniform_draw(self, part: str, request: Request) -> float:
        """Return a uniform draw from a hash of the values on which the part depends."""
        variant = request.variant
        parts: list[Any] = [variant.item.key]
        if part != "item":
            parts += [self._condition_id(variant), variant.draw]
        if part in ("noise", "unparsed"):
            parts.append(request.repeat)
        return self._hash_fraction(part, *parts)

    def _hash_fraction(self, part: str, *parts: Any) -> float:
        """Return a number between 0 and 1 from a hash of the seed and all arguments."""
        name = digest("simulated", part, self.parameters["seed"], *parts)
        return (int(name[7:20], 16) + 0.5) / 16**13

    def _condition_id(self, variant: Variant) -> str:
        """Return the recipe's id if the recipe changed the prompt, otherwise "baseline"."""
        return variant.recipe.id if variant.status == "changed" else "baseline"

    def _normal_draw(self, part: str, request: Request) -> float:
        return _STANDARD.inv_cdf(self._uniform_draw(part, request))


def _in_answer_form(answers: Sequence[str], answer: str, target: str, *, right: bool) -> str:
    """Return the answer as a constrained response: JSON with an option, a label or a number."""
    if not answers:
        return f'{{"answer": {target.replace(",", "") if right else "-0.5"}}}'
    if answer not in answers:
        answer = next(a for a in answers if (a.casefold() == target.casefold()) == right)
    return json.dumps({"answer": answer})


def _as_parts(variant: Variant, schema: AnswerSchema, *, right: bool) -> str:
    target = str(variant.prompt.target or "")
    if schema.lines:
        gold = dict(line.split(": ", 1) for line in target.splitlines() if ": " in line)
        parts = {key.name: gold[key.name] for key in schema.keys if key.name in gold}
    else:
        parts = {key.name: f"{key.name} of {variant.item.key}. {target}" for key in schema.keys}
    if not right:
        parts = {key.name: "something else" for key in schema.keys}
    return written(parts, variant.recipe.output_format or schema.form, schema)


@clients.registers("simulated")
@costs_nothing
def connect(settings: ClientSettings) -> Client:
    """A simulated model."""
    return Simulated(settings)
