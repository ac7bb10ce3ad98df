"""Reasoning parts made by hand: tables of both arms, answers and a judge's replies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from falter.analysis.analyses import analyse_tables
from falter.analysis.results import Analysis, Settings
from falter.analysis.table import STATUSES, Table, run_tables, score_cell
from falter.engine.results import open_result
from falter.engine.study import carry_out_study, read_study, study_in
from falter.protocols.protocol import Part, PartResult, ScoredCell
from falter.records.interfaces import Case
from falter.records.types import (
    BASELINE,
    Item,
    Model,
    Panel,
    Prompt,
    Recipe,
    Response,
    Run,
    Section,
    Step,
    Variant,
    VariantStatus,
)
from falter.scorers import scorers
from falter.scorers.judging import DIMENSIONS
from falter.store.store import Store, StoredCell

THOUGHT = Step(name="chain_of_thought", version=1, reasons=True)
WORDS = ("typos", "word_split", "word_merge", "drop_stop_words")


def recipe(*names: str, **settings: Any) -> Recipe:
    steps = tuple(THOUGHT if n == THOUGHT.name else Step(name=n, version=1) for n in names)
    more = {"sampling": {"max_tokens": 512}} if THOUGHT in steps else {}
    return Recipe(label="+".join(names), group="test", steps=steps, **{**more, **settings})


IDENTITY = Recipe(label="identity", repeat=1)


def recipes(perturbations: int) -> tuple[Recipe, ...]:
    """The baseline, so many perturbations, and all of that with a chain of thought."""
    names = WORDS[:perturbations]
    plain = [recipe(name) for name in names]
    return (BASELINE, *plain, recipe("chain_of_thought"),
            *(recipe("chain_of_thought", name) for name in names))  # fmt: skip


def table(
    plain: ArrayLike,
    thought: ArrayLike,
    *,
    model: str = "m",
    task: str = "t",
    outcome: ArrayLike | None = None,
    status: ArrayLike | None = None,
    clusters: tuple[str, ...] | None = None,
) -> Table:
    """Items × conditions (× realisations) of both arms; the clean prompt is condition 0.

    `outcome` and `status` have the columns of both arms beside each other.
    """
    arms = [np.asarray(arm, dtype=np.float64) for arm in (plain, thought)]
    arms = [arm[:, :, None] if arm.ndim == 2 else arm for arm in arms]
    value = np.concatenate(arms, axis=1)
    items, columns, depth = value.shape
    if outcome is None:
        outcome = np.where(np.isnan(value), 4, 0)
    outcome = np.asarray(outcome, dtype=np.uint8).reshape(value.shape)
    if status is None:
        status = np.full(value.shape, STATUSES.index("changed"))
        status[:, 0] = STATUSES.index("baseline")
    return Table(
        panel=panel(model, task),
        recipes=recipes(columns // 2 - 1),
        items=tuple(f"item {n:04d}" for n in range(items)),
        value=np.where(outcome == 0, value, np.nan),
        outcome=outcome,
        status=np.asarray(status, dtype=np.uint8).reshape(value.shape),
        edits=None,
        margin=np.full(value.shape, np.nan),
        in_plan=np.ones(value.shape, np.bool_),
        draws=1,
        repeats=depth,
        chance=None,
        item_ids=tuple(f"sha256:{n:064d}" for n in range(items)),
        clusters=clusters,
    )


def panel(model: str = "m", task: str = "t", scorer: str = "choice_letter") -> Panel:
    name, _, rest = model.partition(":")
    return Panel(
        task=task,
        revision="sha256:" + "1" * 64,
        model=Model(client=name, name=rest or name, simulated=name == "simulated"),
        scorer=scorer,
    )


def found_of(*made: Table, unparsed: str = "wrong") -> PartResult:
    """A part that consists of tables."""
    run = Run(
        experiment={"level": 0.95, "unparsed": unparsed},
        version="0.0",
        seed=0,
        recipes=made[0].recipes if made else recipes(1),
        panels=tuple(one.panel for one in made),
    )
    settings = Settings(run=run.id, version="0.0", created_at=1.0, unparsed=unparsed)

    def analysed() -> Analysis:
        return analyse_tables(made, settings)

    return PartResult(
        part=Part(name="reasoning", title="Reasoning", experiment={}),
        run=run,
        tables=made,
        analyse=analysed,
        cells=lambda: iter(()),
    )


# Answers


def item(n: int, task: str = "t") -> Item:
    return Item(
        task=task, key=f"i{n}", fields={"question": f"Which is {n}?"},
        choices=(f"red {n}", f"blue {n}"), target=1,
    )  # fmt: skip


def prompt(of: Item, question: str, *, choices: tuple[str, ...] | None = None) -> Prompt:
    shown = of.choices if choices is None else choices
    listed = "\n".join(f"{a}. {b}" for a, b in zip("AB", shown, strict=True))
    return Prompt(
        sections=(
            Section(name="instruction", kind="instruction", text="Choose one.\n\n"),
            Section(name="question", kind="input", text=question + "\n"),
            Section(name="choices", kind="choices", text=listed),
            Section(name="cue", kind="cue", text="\nAnswer:"),
        ),
        choices=shown,
        labels=("A", "B"),
        answer_as="label",
        target=shown.index(of.choices[1]),
    )


def answered(
    n: int,
    of: Recipe,
    text: str | None,
    *,
    key: str | None = None,
    question: str | None = None,
    status: VariantStatus | None = None,
    model: str = "m",
    choices: tuple[str, ...] | None = None,
    failure: str | None = None,
) -> ScoredCell:
    """One answer to item n under a recipe, scored as a letter."""
    own, asked = panel(model), item(n)
    words = asked.fields["question"] if question is None else question
    variant = Variant(
        item=asked,
        recipe=of,
        draw=0,
        prompt=prompt(asked, words, choices=choices),
        status=status or ("changed" if of.steps else "baseline"),
    )
    key = f"{model}/{n}/{of.label}" if key is None else key
    response = None if text is None else Response(key=key, text=text, finish_reason="stop")
    cell = StoredCell(
        panel=0, variant=variant, edits=0, repeat=0, key=key, response=response, failure=failure
    )
    return ScoredCell(panel=own, cell=cell, score=score_cell(cell, scorers.get("choice_letter")))


def answers_of(
    cells: Sequence[ScoredCell], perturbations: int = 1, unparsed: str = "wrong"
) -> PartResult:
    """A part that consists of answers; its tables are as large as is needed for names."""
    models = dict.fromkeys(f"{one.panel.model.label}" for one in cells)
    whole = found_of(
        *(table(*np.ones((2, 2, 1 + perturbations)), model=m) for m in models), unparsed=unparsed
    )
    return replace(whole, cells=lambda: iter(cells))


def rating(n: int | None = None, **dimensions: int) -> str:
    """A judge's reply: n for everything, unless told otherwise."""
    return json.dumps({name: dimensions.get(name, 50 if n is None else n) for name in DIMENSIONS})


def judged_of(replies: dict[str, str | None], judge: str = "judge") -> PartResult:
    """The part in which a judge was asked about requests by their keys."""
    own = panel(judge, "reasoning_quality", "reasoning_quality")
    run = Run(experiment={}, version="0.0", seed=0, recipes=(BASELINE,), panels=(own,))
    scorer = scorers.get("reasoning_quality")

    def cells() -> Iterator[ScoredCell]:
        for key, reply in replies.items():
            about = Item(task="reasoning_quality", key=key, fields={})
            variant = Variant(
                item=about, recipe=BASELINE, draw=0, prompt=Prompt(sections=()), status="baseline"
            )
            response = Response(key="j" + key, text=reply)
            cell = StoredCell(
                panel=0, variant=variant, edits=0, repeat=0, key="j" + key,
                response=None if reply is None else response, failure=None,
            )  # fmt: skip
            score = None
            if reply is not None:
                score = scorer.score(Case(variant=variant, response=response))
            yield ScoredCell(panel=own, cell=cell, score=score)

    whole = found_of(table([[1.0]], [[1.0]]))
    part = Part(name="quality", title="Quality", experiment={}, judges="reasoning")
    return replace(whole, part=part, run=run, cells=cells)


# Runs


def ran(
    path: Path, name: str = "reasoning", judges: str | None = None, **settings: Any
) -> PartResult:
    """A part that was run to its end."""
    with study_in(read_study(settings), path) as study, Store(path) as opened:
        (part,) = carry_out_study(study, opened).parts
        run = opened.find_run(part.run).run
    own = {p.scorer: scorers.get(p.scorer) for p in run.panels}
    with Store(path) as store:
        made = tuple(run_tables(store, run, own))

    def analysed() -> Analysis:
        return open_result(path, run.id).analysis

    def cells() -> Iterator[ScoredCell]:
        with Store(path) as store:
            for cell in store.cells(run):
                of = run.panels[cell.panel]
                yield ScoredCell(panel=of, cell=cell, score=score_cell(cell, own[of.scorer]))

    return PartResult(
        part=Part(name=name, title=name, experiment=settings, judges=judges),
        run=run,
        tables=made,
        analyse=analysed,
        cells=cells,
    )
