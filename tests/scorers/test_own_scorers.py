"""Scorers of the user's own, scorers that look at the baseline's reply, and several on one task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

import falter
from falter.clients import clients
from falter.engine.config import Experiment, read_experiment
from falter.engine.execution import planned_cost
from falter.engine.resolving import resolve
from falter.engine.results import Result, open_result
from falter.engine.study import carry_out_study, study_in, study_of
from falter.engine.variants import variant_sets
from falter.records.errors import DuplicateName, InvalidValue, PreflightError, UnknownName
from falter.records.interfaces import Case
from falter.records.types import BASELINE, Request, Response, Score
from falter.scorers import TextScorer, scorers
from falter.scorers.choosing import named_scorers, usual_scorer
from falter.store.store import Store
from falter.testing import Scripted

RECIPES = ["typos", "pad_newlines", "identity"]


class FirstWord(TextScorer):
    """As in the docstring of `TextScorer`."""

    name = "first_word"
    summary = "the reply begins with the target"

    def read(self, text: str, case: Case) -> Score:
        words = text.split()
        if not words:
            return self.unparsed("the reply is empty")
        return self.scored(words[0] == case.variant.prompt.target, words[0])


class Kept(TextScorer):
    """Compare a reply with the baseline's; remember what was given."""

    name = "kept"
    summary = "the reply is the one to the clean prompt"
    needs_baseline = True

    def __init__(self) -> None:
        self.given: dict[tuple[str, str, int], Case] = {}

    def read(self, text: str, case: Case) -> Score:
        assert case.baseline is not None
        variant = case.variant
        self.given[variant.item.key, variant.recipe.label, len(self.given)] = case
        return self.scored(text == case.baseline.text, text)


@pytest.fixture(autouse=True)
def _own() -> Iterator[None]:
    """Scorers that other tests must not see."""
    for scorer in (FirstWord(), Kept()):
        scorers.register(scorer.name, scorer)
    yield
    for name in ("first_word", "kept", "looks"):
        scorers._objects.pop(name, None)


def experiment(**settings: Any) -> Experiment:
    """An experiment; `scorer` may be what the reader does not know yet."""
    scorer = settings.pop("scorer", None)
    given = {"models": ["simulated"], "recipes": RECIPES, "limit": 6, **settings}
    return replace(read_experiment(given), scorer=scorer)


Answers = Callable[[Request], str | Response]


def scripted(monkeypatch: pytest.MonkeyPatch, answers: Answers, name: str = "own") -> Scripted:
    """A model that answers from a function, and what it was asked."""
    client = Scripted(answers, name=name)
    monkeypatch.setitem(clients._objects, name, lambda _: client)
    return client


def right(request: Request) -> str:
    prompt = request.variant.prompt
    target = prompt.target
    return prompt.labels[target] if isinstance(target, int) else f"{target} it is"


def run(path: Path, given: Experiment) -> Result:
    return falter.run(given, store=path)


# A scorer of the user's own


def test_three_names_and_one_method_make_a_scorer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the docstring shows works from request to report."""
    scripted(monkeypatch, right)
    result = run(tmp_path / "s.db", experiment(task="sums", models=["own"], scorer="first_word"))
    assert {(r["outcome"], r["value"]) for r in result.scores()} == {("scored", 1.0)}
    assert "first_word" in result.summary()


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        (Response(key="k", failure="HTTP 500"), "failed"),
        (Response(key="k", text="No.", finish_reason="refusal"), "refused"),
        (Response(key="k"), "failed"),
        (Response(key="k", text=" "), "unparsed"),
    ],
)
def test_what_cannot_be_read_is_settled_before(response: Response, outcome: str) -> None:
    """A subclass does not see failures and refusals, and none of them is a zero."""
    (variants,) = variant_sets(experiment(task="sums", scorer="first_word"))
    case = Case(variant=next(variants.variants()), response=response)
    score = scorers.get("first_word").score(case)
    assert (score.outcome, score.value) == (outcome, None)


def test_a_scorer_that_raises_costs_its_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run and its report survive any reply; the cell is failed, and says why."""

    def deep(self: FirstWord, text: str, case: Case) -> Score:
        return self.read(text, case) if int(text.split()[0]) % 2 else self.unparsed("even")

    monkeypatch.setattr(FirstWord, "read", deep)
    scripted(monkeypatch, right)
    result = run(tmp_path / "s.db", experiment(task="sums", models=["own"], scorer="first_word"))
    scores = result.scores()
    assert {row["outcome"] for row in scores} == {"failed", "unparsed"}
    reasons = {row["reason"] for row in scores if row["outcome"] == "failed"}
    assert {reason.partition(":")[0] for reason in reasons} == {"the scorer raised RecursionError"}


def test_a_scorer_may_refuse_to_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`check` is asked before anything is sent; by default it has nothing to say."""

    def absent(self: FirstWord) -> None:
        raise PreflightError("The dictionary is not there")

    monkeypatch.setattr(FirstWord, "check", absent)
    client = scripted(monkeypatch, right)
    with pytest.raises(PreflightError, match="dictionary"):
        run(tmp_path / "s.db", experiment(task="sums", models=["own"], scorer="first_word"))
    assert client.requests == []
    assert all(scorer.check() is None for scorer in scorers if scorer.name in ("exact", "kept"))


def test_a_scorer_sees_the_whole_prompt(tmp_path: Path) -> None:
    """One of the user's own reads the question; the built-in ones leave it out, which is faster."""
    seen: list[str] = []

    class Looks(FirstWord):
        name = "looks"

        def read(self, text: str, case: Case) -> Score:
            seen.append("".join(section.text for section in case.variant.prompt.sections))
            return super().read(text, case)

    scorers.register("looks", Looks())
    run(tmp_path / "s.db", experiment(task="sums", scorer="looks"))
    assert seen and all(len(text) > 20 for text in seen)
    assert not any(scorer.needs_prompt for scorer in scorers if scorer.name in ("exact", "rougeL"))


# The baseline's reply


def test_cells_come_item_by_item_the_clean_prompt_first(tmp_path: Path) -> None:
    """In every panel, whatever landed when: what compares with the baseline needs one pass."""
    given = experiment(
        tasks=["basics", "sums"], models=["simulated", "simulated:other"], repeats=2, draws=2
    )
    result = run(tmp_path / "s.db", given)
    with Store(tmp_path / "s.db") as store:
        cells = list(store.cells(result.run))
    places = [key for key, _ in groupby((cell.panel, cell.variant.item.id) for cell in cells)]
    assert len(places) == len(set(places)) == 4 * 6
    for _, own in groupby(cells, key=lambda cell: (cell.panel, cell.variant.item.id)):
        first, second, *others = own
        assert [first.variant.recipe, second.variant.recipe] == [BASELINE, BASELINE]
        assert [first.repeat, second.repeat] == [0, 1]
        assert BASELINE not in [cell.variant.recipe for cell in others]


def test_a_reply_is_compared_with_that_of_the_same_repeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reply names its repeat; those of `identity` are the baseline's, asked later."""

    def answers(request: Request) -> str:
        return f"{request.variant.item.key} in repeat {request.repeat % 3}"

    scripted(monkeypatch, answers)
    given = experiment(task="sums", models=["own"], scorer="kept", repeats=3)
    rows = run(tmp_path / "s.db", given).scores()
    assert len(rows) == 6 * 4 * 3
    assert {(row["outcome"], row["value"]) for row in rows} == {("scored", 1.0)}


def test_a_change_of_the_reply_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Typos turn every reply into another: a drop of a whole point, though both may be right."""

    def answers(request: Request) -> str:
        return "B" if "typos" in request.variant.recipe.label else "A"

    scripted(monkeypatch, answers)
    given = experiment(task="sums", models=["own"], scorer="kept", limit=12)
    rows = run(tmp_path / "s.db", given).table("drops")
    drops = {row["recipe"]: row["drop"] for row in rows if row["kind"] == "member"}
    assert drops == {"typos": 1.0, "pad_newlines": 0.0}


def test_a_missing_reply_is_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first repeat that was answered stands in; without any, the case fails, with the reason.

    A refusal is a reply, but none that anything could be compared with.
    """
    client = scripted(monkeypatch, lambda request: "")
    keys: list[str] = []

    def answers(request: Request) -> str | Response:
        item, clean = request.variant.item.key, request.variant.recipe == BASELINE
        if item not in keys:
            keys.append(item)
        place = keys.index(item)
        if clean and (place == 0 or (place == 1 and request.repeat == 0)):
            return Response(key="", failure="HTTP 500")
        if clean and place == 2:
            return Response(key="", text="I cannot.", finish_reason="refusal")
        return "same"

    client._script = answers
    given = experiment(task="sums", models=["own"], scorer="kept", recipes=["typos"], repeats=2)
    result = run(tmp_path / "s.db", given)
    rows = [row for row in result.scores() if row["recipe"] == "typos"]
    by_item = {
        keys.index(item): {(r["outcome"], r["value"], r["reason"]) for r in own}
        for item, own in groupby(rows, key=lambda row: row["item"])
    }
    reason = "the clean prompt has no reply to compare with"
    assert by_item.pop(0) == {("failed", None, reason)}
    assert by_item.pop(1) == {("scored", 1.0, None)}
    assert by_item.pop(2) == {("failed", None, f"{reason}: refusal")}
    assert set(map(frozenset, by_item.values())) == {frozenset({("scored", 1.0, None)})}


def test_only_who_asks_for_it_gets_the_baseline(tmp_path: Path) -> None:
    given: list[Response | None] = []

    class Looks(FirstWord):
        name = "looks"

        def read(self, text: str, case: Case) -> Score:
            given.append(case.baseline)
            return super().read(text, case)

    scorers.register("looks", Looks())
    run(tmp_path / "s.db", experiment(task="sums", scorer="looks"))
    assert set(given) == {None}


def test_examples_are_scored_like_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An item that was lost by comparison with the baseline is shown as lost."""

    def answers(request: Request) -> str:
        return "B" if request.variant.recipe.label == "typos" else "A"

    scripted(monkeypatch, answers)
    result = run(tmp_path / "s.db", experiment(task="sums", models=["own"], scorer="kept"))
    (panel,) = result.analysis.panels
    assert {example.recipe for example in panel.examples} == {"typos"}
    assert {(e.baseline.right, e.perturbed.right) for e in panel.examples} == {(True, False)}


# Several scorers


def test_two_scorers_read_the_same_replies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a panel; a reply is asked for once, at the length that the longer one needs."""
    client = scripted(monkeypatch, right)
    data = tmp_path / "add.jsonl"
    data.write_text("".join(f'{{"q": "What is {n} and {n}?", "a": "{2 * n}"}}\n' for n in range(6)))
    given = experiment(
        data={"path": str(data), "target": "a"}, template="Add.\n\n{q}\nAnswer:",
        models=["own"], scorer=("exact", "numeric", "first_word"),
    )  # fmt: skip
    assert resolve(replace(given, scorer="exact")).panels[0].target.sampling.max_tokens == 256
    resolved = resolve(given)
    assert [p.panel.scorer for p in resolved.panels] == ["exact", "numeric", "first_word"]
    assert {p.target.sampling.max_tokens for p in resolved.panels} == {512}
    costs = [planned.cost for planned in planned_cost(resolved, None)]
    assert [(cost.cells, cost.calls) for cost in costs] == [(24, 24), (24, 0), (24, 0)]
    with study_in(study_of(given), tmp_path / "s.db") as study, Store(tmp_path / "s.db") as store:
        carry_out_study(study, store)
        assert len(client.requests) == len({r.key for r in client.requests}) == 24
        assert store.counts(resolved.run) == (72, 72)
    analysis = open_result(tmp_path / "s.db").analysis
    values = {p.panel.scorer: p.baseline.value for p in analysis.panels}
    assert values == {"exact": 0.0, "numeric": 1.0, "first_word": 1.0}


def test_a_scorer_beside_another_changes_none_of_its_numbers(tmp_path: Path) -> None:
    """The first is as if it were alone, in rankings and over tasks too; the second has its own."""
    shared: dict[str, Any] = {
        "tasks": ["basics", "basics:core"], "limit": 12,
        "models": ["simulated", {"name": "simulated:b", "options": {"mean": 0.2}}],
    }  # fmt: skip
    alone = run(tmp_path / "a.db", experiment(**shared, scorer="choice_likelihood"))
    beside = ("choice_likelihood", "choice_likelihood_norm")
    both = run(tmp_path / "b.db", experiment(**shared, scorer=beside))
    first = [p for p in both.analysis.panels if p.panel.scorer == "choice_likelihood"]
    assert [p.recipes for p in first] == [
        tuple(_resigned(r, p.signature) for r in other.recipes)
        for p, other in zip(first, alone.analysis.panels, strict=True)
    ]
    ours, theirs = both.analysis.across, alone.analysis.across
    assert [r.mean.value for r in ours.ranks] == [r.mean.value for r in theirs.ranks]
    assert {m: p.brittleness.value for m, p in ours.by_model.items()} == {
        m: p.brittleness.value for m, p in theirs.by_model.items()
    }
    tasks = dict.fromkeys(p.panel.task for p in both.analysis.panels)
    assert list(tasks) == [
        "basics", "basics (choice_likelihood_norm)",
        "basics:core", "basics:core (choice_likelihood_norm)",
    ]  # fmt: skip
    assert {row["scorer"] for row in both.scores()} == set(beside)
    assert {row["task"] for row in both.scores()} == {"basics", "basics:core"}


def _resigned(recipe: Any, signature: str) -> Any:
    """A recipe's results, signed as another panel's."""
    fields = ("accuracy", "drop", "drop_valid", "drop_all")
    signed = {f: replace(getattr(recipe, f), signature=signature) for f in fields}
    return replace(recipe, **signed)


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A run that two scorers have read."""
    given = experiment(task="basics", scorer=("choice_letter", "includes"))
    return run(tmp_path_factory.mktemp("several") / "s.db", given)


@pytest.mark.parametrize("ending", ["html", "md", "csv", "json", "tex", "parquet"])
def test_every_report_takes_several_scorers(ending: str, several: Result, tmp_path: Path) -> None:
    path = several.report(tmp_path / f"report.{ending}")
    if ending != "parquet":
        assert "includes" in path.read_text("utf-8")
    assert "includes" in several.summary()


def test_scorers_that_ask_otherwise_ask_for_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A letter and a likelihood share nothing; two letters share everything."""
    client = scripted(monkeypatch, right)
    names = ("choice_letter", "choice_letter_likelihood", "choice_likelihood")
    given = experiment(task="basics", models=["own"], scorer=names)
    costs = [planned.cost for planned in planned_cost(resolve(given), None)]
    assert [cost.calls for cost in costs] == [24, 24, 24]
    run(tmp_path / "s.db", given)
    assert sum(not request.scores for request in client.requests) == 24
    sets = variant_sets(
        replace(given, scorer=("choice_letter", "choice_letter_likelihood", *names[2:]))
    )
    assert [s.scorer.name for s in sets] == ["choice_letter", "choice_likelihood"]


def test_a_scorer_a_task() -> None:
    """Named by the task's name or by the words that name it; others have what fits."""
    given = experiment(
        tasks=["basics:core", "sums", "basics"],
        scorer={"basics:core": "choice_letter", "sums": ("exact", "numeric")},
    )
    panels = [(p.panel.task, p.panel.scorer) for p in resolve(given).panels]
    assert panels == [
        ("basics:core", "choice_letter"), ("sums", "exact"), ("sums", "numeric"),
        ("basics", "choice_likelihood"),
    ]  # fmt: skip


def test_a_models_own_scorer_goes_before() -> None:
    given = experiment(
        task="basics",
        models=["simulated", {"name": "simulated:b", "scorer": "choice_letter"}],
        scorer={"basics": ("choice_likelihood", "choice_likelihood_norm")},
    )
    panels = [(p.panel.model.name, p.panel.scorer) for p in resolve(given).panels]
    assert panels == [
        ("simulated", "choice_likelihood"), ("simulated", "choice_likelihood_norm"),
        ("b", "choice_letter"),
    ]  # fmt: skip


def test_one_scorer_is_one_scorer_however_it_is_written() -> None:
    """A run's id does not depend on whether its scorer stood in a list or a mapping."""
    ways = ("numeric", ("numeric",), {"sums": "numeric"}, {"sums": ("numeric",)}, None)
    assert len({resolve(experiment(task="sums", scorer=way)).run.id for way in ways}) == 1


@pytest.mark.parametrize(
    ("scorer", "error", "message"),
    [
        ({"sum": "exact"}, UnknownName, "Unknown task of 'scorer' 'sum'\n\nhint: did you mean 's"),
        (("exact", "exact"), DuplicateName, "The scorer 'exact' is named twice"),
        ((), InvalidValue, "scorer is"),
        ({"sums": ()}, InvalidValue, "scorer is"),
        ("exakt", UnknownName, "Unknown scorer 'exakt'\n\nhint: did you mean 'exact'"),
        ({"sums": "exakt"}, UnknownName, "Unknown scorer 'exakt'"),
    ],
)
def test_a_setting_that_names_nothing_is_an_error(
    scorer: Any, error: type[Exception], message: str
) -> None:
    """Before anything is sent, with the nearest name."""
    with pytest.raises(error) as caught:
        resolve(experiment(task="sums", scorer=scorer))
    assert message in str(caught.value)


def test_a_task_has_one_entry() -> None:
    """Its name and the words that name it are the same task."""
    with pytest.raises(DuplicateName, match="names the task"):
        named_scorers({"a": "exact", "a:b": "numeric"}, ["a", "a:b"])


@pytest.mark.parametrize(
    ("choices", "likelihoods", "name"),
    [
        (False, False, "answer"),
        (False, True, "answer"),
        (True, True, "choice_likelihood"),
        (True, False, "choice_letter"),
    ],
)
def test_the_usual_scorer_is_registered_and_fits(
    choices: bool, likelihoods: bool, name: str
) -> None:
    scorer = scorers.get(usual_scorer(choices=choices, likelihoods=likelihoods))
    assert scorer.name == name
    assert (scorer.needs_choices, scorer.needs_scores) == (choices, choices and likelihoods)


def test_scorers_say_what_they_read() -> None:
    """So that a task's kind is known without knowing its scorer by name."""
    kinds = {scorer.name: scorer.answer_kind for scorer in scorers}
    assert {name for name, kind in kinds.items() if kind == "option"} == {
        "choice_constrained", "choice_letter", "choice_letter_likelihood", "choice_likelihood",
        "choice_likelihood_norm",
        "entailment_likelihood", "exact_letter", "rating_likelihood", "summary_rating_likelihood",
    }  # fmt: skip
    assert (kinds["numeric"], kinds["unit_tests"]) == ("number", "code")
    assert kinds["exact"] == kinds["rougeL"] == kinds["first_word"] == "text"
