"""Letters by likelihood: the labels of listed options are compared, whatever became of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import falter
from falter.clients.llama_engine import LlamaEngine
from falter.engine.config import Experiment, read_experiment
from falter.engine.resolving import resolve
from falter.records import render
from falter.records.errors import UsageError
from falter.records.interfaces import Case
from falter.records.planning import plan
from falter.records.types import ContinuationScore, Request, Response, Score
from falter.scorers import scorers
from falter.store.store import Store
from falter.weights.downloads import find_weights

LETTERS = scorers.get("choice_letter_likelihood")
RECIPES = (
    "relabel_choices", "relabel_choices:labels=lower", "relabel_choices:labels=roman",
    "relabel_choices:labels=none", "shuffle_choice_texts", "shuffle_choice_order", "elimination",
    "elimination_control", "ignore_above", "pad_newlines",
)  # fmt: skip
# One long wrong option and one short one: raw and per character disagree on them.
ROW = (
    '{"q": "Which city lies on the Seine?", "a": 0,'
    ' "o": ["Paris", "Rome", "New York City on the Hudson", "Bern"]}\n'
    '{"q": "Which one barks?", "a": 1, "o": ["a cat", "a dog", "a cow", "a duck"]}\n'
)
LISTED = "{q}\n{choices}\n\nReply with the letter.\nAnswer:"


def experiment(folder: Path, template: str = LISTED, **settings: object) -> Experiment:
    path = folder / "d.jsonl"
    path.write_text(ROW, "utf-8")
    return read_experiment(
        {
            "data": {"path": str(path), "target": "a", "choices": "o"},
            "template": template, "models": ["simulated"],
            "scorer": "choice_letter_likelihood", "recipes": list(RECIPES),
        }
        | settings
    )  # fmt: skip


def requests(folder: Path, **settings: object) -> dict[str, Request]:
    """Return the requests for the question about the Seine, by recipe."""
    (panel,) = resolve(experiment(folder, **settings)).panels
    sent = plan(panel.items, panel.conditions, panel.target)
    return {
        r.variant.recipe.label: r for r in sent if "Seine" in r.variant.item.fields.get("q", "")
    }


def judged(request: Request, *logprobs: float) -> Score:
    scores = tuple(ContinuationScore(logprob=x, tokens=1) for x in logprobs)
    response = Response(key=request.key, scores=scores)
    return LETTERS.score(Case(variant=request.variant, response=response))


def test_what_it_needs() -> None:
    assert LETTERS.style == "letter" and LETTERS.needs_scores and LETTERS.needs_choices


def test_a_letter_follows_the_cue_after_one_space(tmp_path: Path) -> None:
    """As lm-evaluation-harness asks MMLU: the prompt ends in "Answer:", then " A", " B" …"""
    sent = requests(tmp_path)["baseline"]
    assert sent.continuations == (" A", " B", " C", " D")
    assert sent.context.endswith("\nA. Paris\nB. Rome\nC. New York City on the Hudson\nD. Bern\n\n"
                                 "Reply with the letter.\nAnswer:")  # fmt: skip


def test_a_demonstration_is_answered_as_the_item_is_to_be(tmp_path: Path) -> None:
    """A letter after the same one space."""
    (panel,) = resolve(experiment(tmp_path, demonstrations=1)).panels
    (first, *_) = plan(panel.items, panel.conditions, panel.target)
    shown, answer = ("A", "Paris") if "barks" in str(first.variant.item.fields) else ("B", "a dog")
    assert f"{shown}. {answer}\n" in first.context
    assert f"Answer: {shown}\n\n" in first.context


@pytest.mark.parametrize(
    ("recipe", "continuations"),
    [
        ("relabel_choices", (" 1", " 2", " 3", " 4")),
        ("relabel_choices(labels=lower)", (" a", " b", " c", " d")),
        ("relabel_choices(labels=roman)", (" i", " ii", " iii", " iv")),
        (
            "relabel_choices(labels=none)",
            (" Paris", " Rome", " New York City on the Hudson", " Bern"),
        ),
        ("shuffle_choice_texts", (" A", " B", " C", " D")),
        ("ignore_above", (" A", " B", " C", " D")),
        ("pad_newlines", (" A", " B", " C", " D")),
    ],
)
def test_what_is_compared(recipe: str, continuations: tuple[str, ...], tmp_path: Path) -> None:
    """The labels that are shown; where none are, an answer can only be an option's text."""
    sent = requests(tmp_path)[recipe]
    assert sent.variant.status == "changed"
    assert sent.continuations == continuations


def test_options_in_another_order_keep_their_labels(tmp_path: Path) -> None:
    sent = requests(tmp_path)["shuffle_choice_order"]
    assert sorted(sent.continuations) == [" A", " B", " C", " D"]
    assert sent.continuations != (" A", " B", " C", " D")
    prompt = sent.variant.prompt
    assert sent.continuations[int(prompt.target or 0)] == " A"
    assert "A. Paris" in sent.context


@pytest.mark.parametrize("recipe", ["elimination", "elimination_control"])
def test_only_the_labels_that_are_left_are_compared(recipe: str, tmp_path: Path) -> None:
    sent = requests(tmp_path)[recipe]
    assert len(sent.continuations) == 2 and sent.continuations[0] == " A"
    wrong, right = judged(sent, -2.0, -1.0), judged(sent, -1.0, -2.0)
    if recipe == "elimination":  # asks for the wrong one
        wrong, right = right, wrong
    assert (wrong.value, right.value) == (0.0, 1.0)


@pytest.mark.parametrize("n", range(len(RECIPES) + 1))
def test_the_target_is_right_wherever_it_stands(n: int, tmp_path: Path) -> None:
    """Each place in turn gets the highest likelihood: the target's alone is right."""
    sent = list(requests(tmp_path).values())[n]
    prompt = sent.variant.prompt
    assert sent.continuations == render.continuations(prompt)
    for place in range(len(prompt.choices)):
        values = [-5.0] * len(prompt.choices)
        values[place] = -1.0
        score = judged(sent, *values)
        assert score.value == float(place == prompt.target)
        assert score.extracted == prompt.labels[place]


def test_likelihoods_are_not_divided_by_length(tmp_path: Path) -> None:
    """Also not of texts: Paris −6 on 5 characters beats New York City … −9 on 27."""
    sent = requests(tmp_path)["relabel_choices(labels=none)"]
    assert judged(sent, -6.0, -30.0, -9.0, -30.0).value == 1.0


def test_a_score_that_is_missing_fails_and_is_not_wrong(tmp_path: Path) -> None:
    score = judged(requests(tmp_path)["baseline"], -1.0, -2.0)
    assert (score.outcome, score.value) == ("failed", None)


def test_a_template_without_a_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs a template that lists the options"):
        resolve(experiment(tmp_path, template="{q}\nAnswer:"))


@pytest.mark.parametrize("recipe", ["chain_of_thought", "temperature", "format_json"])
def test_recipes_about_a_written_answer_are_refused(recipe: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="compares the likelihood of options"):
        resolve(experiment(tmp_path, recipes=[recipe]))


def test_the_embedded_model_has_a_favourite_letter(tmp_path: Path) -> None:
    """SmolLM2 is at chance level here, and the report says so; the choice is its engine's own."""
    path = tmp_path / "falter.db"
    result = falter.run(
        task="basics", models=["smollm2"], recipes=["shuffle_choice_texts"], limit=3,
        scorer="choice_letter_likelihood", store=path,
    )  # fmt: skip
    (panel,) = result.analysis.panels
    assert panel.counts.scored == 6
    assert any("cannot be told from chance (25 %)" in note for note in panel.notes)
    with Store(path) as store:
        (run,) = store.runs()
        cells = list(store.cells(run.run))
    weights = find_weights()
    assert weights is not None
    engine = LlamaEngine(weights, n_ctx=512)
    said = []
    for cell in cells:
        assert cell.response is not None
        score = LETTERS.score(Case(variant=cell.variant, response=cell.response))
        said.append(score.extracted)
        alone = engine.score(render.plain(cell.variant.prompt), [" A", " B", " C", " D"])
        best = max(range(4), key=lambda i, found=alone: found[i].logprob)  # type: ignore[misc]
        assert "ABCD"[best] == score.extracted
    engine.close()
    assert Counter(said).most_common(1)[0][1] >= 5
