"""The front door under the type checker: what users write must type-check in strict mode."""

from __future__ import annotations

from collections.abc import Sequence

import falter
from falter.engine.config import Experiment, read_experiment
from falter.engine.keywords import ExperimentSettings
from falter.engine.results import Result
from falter.measures.drops import accuracy_drop
from falter.measures.variance import variance_components
from falter.perturbations import prompt_perturbation, site_perturbation
from falter.records.errors import FalterError
from falter.records.interfaces import Case
from falter.records.rng import Rng
from falter.records.types import Prompt, Score, Span
from falter.scorers import TextScorer, scorers
from falter.testing import Scripted
from falter.text.words import natural_words


def one_text() -> str:
    return falter.perturb("What is the capital of France?", "typos", "persona", seed=1)


def a_run() -> float | None:
    result: Result = falter.run(task="basics", models=["simulated"], limit=20, store="x.db")
    rows = result.table("drops")
    result.report("report.html")
    best = result.analysis.panels[0].micro
    return best.value if rows else None


def a_plan() -> int:
    plan: falter.Plan = falter.plan(task="basics", models=["simulated"], limit=20, store="x.db")
    costs = plan.cost_at_most
    return plan.calls if costs is None or costs["USD"] < 1 else 0


def rows_in_memory() -> Result:
    def answer(prompt: str) -> str:
        return "billing"

    rows = [{"ticket": "I was charged twice.", "queue": "billing"}]
    result = falter.run(
        data={"rows": rows, "target": "queue"}, template="{ticket}", models=[answer], draws=2
    )
    return result.rescored("exact").show("readings")


def a_protocol() -> int:
    result = falter.run(protocol="brittlebench", models=["simulated"], store="x.db")
    result.report("report.html")
    return len(result.figures) + len(result.table("drops"))


def an_experiment() -> Experiment:
    settings: ExperimentSettings = {
        "task": "basics",
        "models": [{"name": "openai:m", "api": "chat", "price": {"input": 1}}, "simulated"],
        "recipes": ["typos", {"typos": {"count": 2}}, ["casing", "pad_quotes"]],
        "scorer": {"basics": ["choice_letter", "exact"]},
    }
    try:
        return read_experiment(settings)
    except FalterError as error:
        print(error.message, error.hint)
        raise


def words(text: str, blocked: Sequence[Span]) -> list[Span]:
    return natural_words(text, blocked)


@site_perturbation("shout", sites=words, default_rate=0.2)
def shout(text: str, site: Span, rng: Rng) -> tuple[int, int, str]:
    """Puts words in capitals."""
    start, end = site
    return start, end, text[start:end].upper()


@prompt_perturbation("as_it_is")
def as_it_is(prompt: Prompt, rng: Rng) -> Prompt:
    """Changes nothing."""
    return prompt


class FirstWord(TextScorer):
    """A scorer, with what it needs to know of the item."""

    name = "first_word"
    summary = "the reply begins with the target"

    def read(self, text: str, case: Case) -> Score:
        words = text.split()
        if not words:
            return self.unparsed("the reply is empty")
        return self.scored(words[0] == case.variant.prompt.target, words[0])


scorers.register("first_word", FirstWord())


def numbers() -> tuple[float | None, float | None]:
    drop = accuracy_drop([1, 1, 0, 1], [1, 0, 0, 1])
    parts = variance_components([[1, 0], [1, 1], [0, 0]], "crossed")
    return drop.value, parts.interaction.value


def a_double() -> Scripted:
    return Scripted({"capital of France": "Paris"})
