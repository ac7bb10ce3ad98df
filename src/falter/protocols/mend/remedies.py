"""Comparison of remedies: the parts, votes over several prompts, paired gains, and the report."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from falter.analysis.cells import model_names
from falter.analysis.table import OUTCOMES, UNREADABLE, Table
from falter.measures.remedies import ConfirmedRemedy, RemedyEffect, RemedyScores, confirmed_remedy
from falter.protocols.protocol import Part, PartResult, UserSettings
from falter.protocols.tables import figures_of
from falter.records.errors import DuplicateName, InvalidValue
from falter.records.figures import Figure, Grid, Statement, Value
from falter.records.numbers import points, whole
from falter.records.render import plain
from falter.records.types import Estimate, Score
from falter.remedies import remedies, remedy_from

# Votes: several prompts for one item


VOTE = "vote"
DEFAULT_VOTERS = ("delimiters", "restate")
"""Voters of a plain `vote` besides the unchanged prompt: two other wordings, so three responses."""

Place = tuple[str, str, int, int]
Ballot = Mapping[Place, Score]
"""The scores of one panel by item, recipe, draw and repeat."""


def voters_of(name: str) -> tuple[str, ...] | None:
    """Return the remedies that vote together with the unchanged prompt.

    `vote` has the voters in DEFAULT_VOTERS, and `vote:a+b` has the voters `a` and `b`. Return None
    if `name` is no vote. Raises InvalidValue for an empty voter or a vote in a vote, DuplicateName
    for a voter named twice.
    """
    kind, colon, named = name.partition(":")
    if kind != VOTE or "{" in name:
        return None
    voters = tuple(named.split("+")) if colon else DEFAULT_VOTERS
    if not all(voters) or VOTE in voters:
        raise InvalidValue("remedy", name, "a vote of remedies, as in vote:restate+delimiters")
    if len(set(voters)) < len(voters):
        raise DuplicateName(f"A voter of '{name}' is named twice", hint="each has one vote")
    return voters


def _ballots_of(result: PartResult) -> Mapping[tuple[str, ...], Ballot]:
    """Return the scores of a part by panel: task, model id and scorer."""
    ballots: dict[tuple[str, ...], dict[Place, Score]] = {}
    for scored in result.cells():
        if scored.score is not None:
            panel, cell = scored.panel, scored.cell
            variant = cell.variant
            place = (variant.item.id, variant.recipe.id, variant.draw, cell.repeat)
            of_panel = ballots.setdefault((panel.task, panel.model.id, panel.scorer), {})
            of_panel[place] = scored.score
    return ballots


def vote_score(scores: Sequence[Score]) -> Score:
    """Return the score of the answer that most voters give; only scored responses vote.

    In a tie the earliest voter decides. If no response was scored, the first score is returned.
    """
    scored = [score for score in scores if score.outcome == "scored"]
    if not scored:
        return scores[0]
    votes = Counter(map(_voted_answer, scored))
    most = max(votes.values())
    return next(score for score in scored if votes[_voted_answer(score)] == most)


def _voted_answer(score: Score) -> str:
    return " ".join((score.extracted or "").casefold().split())


def _voted_matrix(table: Table, ballots: Sequence[Ballot], *, strict: bool) -> NDArray[np.float64]:
    """Return the mean score of the votes over draws and repeats, shape (items, recipes).

    Only places with a score of the first voter, the unchanged prompt, are counted. An unparsed
    result counts as 0 if `strict`. A cell without any value is NaN.
    """
    rows = {item: n for n, item in enumerate(table.item_ids)}
    columns = {recipe.id: n for n, recipe in enumerate(table.recipes)}
    total = np.zeros((len(rows), len(columns)))
    count = np.zeros_like(total)
    for place in ballots[0]:
        score = vote_score([ballot[place] for ballot in ballots if place in ballot])
        value = score.value
        if value is None and strict and OUTCOMES.index(score.outcome) in UNREADABLE:
            value = 0.0
        at = rows.get(place[0]), columns.get(place[1])
        if value is not None and None not in at:
            total[at] += value
            count[at] += 1
    matrix: NDArray[np.float64] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return matrix


Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of a response with a remedy: additional tokens and characters, and all calls.

    `tokens` is None if the server did not count them, or if options were scored.
    """

    tokens: float | None
    characters: float
    calls: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelRemedies:
    """One model on one task: its mean drop without a remedy (`loss`), and the remedies' effects.

    `left_out` names the votes that lack the part of one of their voters.
    """

    model: str
    task: str
    items: int
    recipes: tuple[str, ...]
    loss: Estimate | None
    result: ConfirmedRemedy
    costs: Mapping[str, Cost]
    remedies: Mapping[str, str]
    left_out: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Model and task, such as `smollm2 on basics`."""
        return f"{self.model} on {self.task}"


def panels_of_remedies(results: Sequence[PartResult]) -> tuple[PanelRemedies, ...]:
    """Return a result for each panel of the first part, which has no remedy.

    The confirming intervals are simultaneous over all panels that picked a remedy. The result is
    empty if there is no part with a remedy.
    """
    first, *others = results
    if not others:
        return ()
    names = model_names(first.tables)
    arms = _remedy_arms(results)
    scores = [_by_remedy(arms, n, first) for n in range(len(first.tables))]
    alone = [_confirmed_remedy(first, n, of_panel) for n, of_panel in enumerate(scores)]
    picked = sum(result.picked is not None for result in alone)
    together = [_confirmed_remedy(first, n, of_panel, picked) for n, of_panel in enumerate(scores)]
    known = {arm.name for arm in arms}
    left_out = tuple(other.part.name for other in others if other.part.name not in known)
    return tuple(
        replace(_panel_of(first, n, arms, names[table.panel.model.id], of_panel), left_out=left_out)
        for n, (table, of_panel) in enumerate(zip(first.tables, together, strict=True))
    )


Sizes = Mapping[tuple[str, ...], tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class _RemedyArm:
    """A remedy with the parts that supply its responses: one part, or one part for each voter."""

    name: str
    remedy: str
    parts: tuple[PartResult, ...]
    sizes: tuple[Sizes, ...]
    base: Sizes
    ballots: tuple[Mapping[tuple[str, ...], Ballot], ...] = ()

    def scores(self, n: int, *, strict: bool) -> tuple[Table, Floats]:
        """Return the table of the n-th panel, and its scores with shape (items, recipes)."""
        table = self.parts[0].tables[n]
        if not self.ballots:
            return table, table.matrix(strict=strict)
        cast = [ballots.get(_panel_key(table), {}) for ballots in self.ballots]
        return table, _voted_matrix(table, cast, strict=strict)

    def cost(self, key: tuple[str, ...]) -> Cost:
        """Return the cost of a response with the remedy in the panel with this key."""
        tokens, sizes = zip(*(size[key] for size in self.sizes), strict=True)
        base_tokens, base_size = self.base[key]
        counted = base_tokens > 0 and all(tokens)
        return Cost(
            tokens=sum(tokens) - base_tokens if counted else None,
            characters=sum(sizes) - base_size,
            calls=len(self.parts),
        )


def _remedy_arms(results: Sequence[PartResult]) -> list[_RemedyArm]:
    """Return the remedies in the order of the parts; a vote is left out if a voter's part is."""
    first = results[0]
    sizes = {result.part.name: _mean_sizes(result) for result in results}
    base = sizes[first.part.name]
    by_name = {result.part.name: result for result in results}
    arms = []
    for result in results[1:]:
        name = result.part.name
        voters = voters_of(name)
        remedy = str(result.part.experiment.get("remedy", name))
        parts: tuple[PartResult, ...] = (result,)
        if voters is not None:
            if not all(voter in by_name for voter in voters):
                continue
            parts = (first, *(by_name[voter] for voter in voters))
        arms.append(
            _RemedyArm(
                name=name,
                remedy=remedy,
                parts=parts,
                sizes=tuple(sizes[part.part.name] for part in parts),
                base=base,
                ballots=() if voters is None else tuple(map(_ballots_of, parts)),
            )
        )
    return arms


def _by_remedy(arms: Sequence[_RemedyArm], n: int, first: PartResult) -> dict[str, RemedyScores]:
    strict = first.analysis.unparsed == "wrong"
    table = first.tables[n]
    return {arm.name: _gains(table, *arm.scores(n, strict=strict), strict=strict) for arm in arms}


def _confirmed_remedy(
    first: PartResult, n: int, scores: Mapping[str, RemedyScores], together: int = 1
) -> ConfirmedRemedy:
    table, analysis = first.tables[n], first.analysis
    return confirmed_remedy(
        scores,
        table.items,
        seed=analysis.seed,
        clusters=table.clusters,
        level=analysis.level,
        together=max(1, together),
    )


def _panel_of(
    first: PartResult, n: int, arms: Sequence[_RemedyArm], model: str, result: ConfirmedRemedy
) -> PanelRemedies:
    table, analysis = first.tables[n], first.analysis
    panel = analysis.panels[n]

    def sign(name: str, effect: RemedyEffect, half: str) -> RemedyEffect:
        group = {"task": table.panel.task, "model": model, "remedy": name, "items": half}

        def with_half(estimate: Estimate) -> Estimate:
            return replace(estimate, group=group, seed=analysis.seed, signature=panel.signature)

        return RemedyEffect(gain=with_half(effect.gain), clean=with_half(effect.clean))

    second = result.on_second
    signed = replace(
        result,
        effects={name: sign(name, e, "all") for name, e in result.effects.items()},
        on_first={name: sign(name, e, "first half") for name, e in result.on_first.items()},
        on_second=None if second is None else sign(result.picked or "", second, "second half"),
    )
    return PanelRemedies(
        model=model,
        task=table.panel.task,
        items=len(table.items),
        recipes=tuple(table.recipes[column].label for column in table.columns),
        loss=panel.micro,
        result=signed,
        costs={arm.name: arm.cost(_panel_key(table)) for arm in arms},
        remedies={arm.name: arm.remedy for arm in arms},
    )


def _gains(without: Table, with_remedy: Table, scores: Floats, *, strict: bool) -> RemedyScores:
    """Return scores with a remedy minus scores without a remedy, for the items of `without`.

    An item that lacks a score in either table is NaN, and so is a recipe that changed nothing.
    """
    before = without.matrix(strict=strict)
    rows = {item: n for n, item in enumerate(with_remedy.item_ids)}
    places = [rows.get(item, -1) for item in without.item_ids]
    after = scores[places]
    after[[place < 0 for place in places]] = np.nan
    more = after - before
    gain = np.where(without.changed(), more, np.nan)[:, without.columns]
    return RemedyScores(gain=gain, clean=more[:, 0])


def _panel_key(table: Table) -> tuple[str, ...]:
    return table.panel.task, table.panel.model.id, table.panel.scorer


def _mean_sizes(result: PartResult) -> Sizes:
    """Return the mean tokens per call and the mean characters per prompt, by panel."""
    totals: dict[tuple[str, ...], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for scored in result.cells():
        response = scored.cell.response
        if response is None:
            continue
        panel = scored.panel
        total = totals[panel.task, panel.model.id, panel.scorer]
        total[0] += 1
        if not response.scores:  # some engines count no prompt tokens if options are scored
            total[1] += response.usage.prompt_tokens + response.usage.completion_tokens
        total[2] += len(plain(scored.cell.variant.prompt))
    return {key: (tokens / n, size / n) for key, (n, tokens, size) in totals.items()}


# Parts


NO_REMEDY = "as_is"
DEFAULT_TASK, DEFAULT_LIMIT = "basics", 60
RECIPES = ("pad_newlines", "typos")


def parts_of(settings: UserSettings) -> tuple[Part, ...]:
    """Return a part without a remedy and one for each remedy, with the same recipes and items.

    A voter gets a part even if the user did not name it as a remedy. Raises DuplicateName for a
    remedy named twice.
    """
    settings_of_part: dict[str, Any] = {"recipes": list(settings.recipes or RECIPES)}
    if not settings.tasks:
        settings_of_part |= {"tasks": [DEFAULT_TASK], "limit": DEFAULT_LIMIT}
    if settings.scorer is not None:
        settings_of_part["scorer"] = settings.scorer
    if settings.demonstrations is not None:
        settings_of_part["demonstrations"] = settings.demonstrations
    names = settings.remedies or (*remedies.names(), VOTE)
    for name in names:
        if names.count(name) > 1:
            raise DuplicateName(
                f"The remedy '{name}' is named twice", hint="name every remedy once"
            )
    votes = {name: voters for name in names if (voters := voters_of(name)) is not None}
    single = [name for name in names if name not in votes]
    asked = dict.fromkeys((*single, *(voter for voters in votes.values() for voter in voters)))
    return (
        Part(name=NO_REMEDY, title="As it is", experiment=settings_of_part),
        *(_remedy_part(name, settings_of_part) for name in asked),
        # A vote's part has the unchanged prompts of its first voter; the others have parts above.
        *(Part(name=name, title=f"With {name}", experiment=settings_of_part) for name in votes),
    )


def _remedy_part(remedy: str, own: dict[str, Any]) -> Part:
    remedy_from(remedy)  # a wrong name raises here
    name = _remedy_name(remedy)
    return Part(name=name, title=f"With {name}", experiment=own | {"remedy": remedy})


def _remedy_name(remedy: str) -> str:
    """Return the name of a registered remedy, or `own:` and the beginning of the user's text."""
    return remedy if remedy in remedies else f"own: {' '.join(remedy.split())[:40]}"


# Report: the claim, every remedy, the two halves


declaration = figures_of("mend")


def mend_figures(panels: Sequence[PanelRemedies]) -> tuple[Figure, ...]:
    """Return the finding, the table of all remedies, and the table of the two halves."""
    if not panels:
        return ()
    return (_answer_statement(panels), _remedies_table(panels), _halves_table(panels))


def _answer_statement(panels: Sequence[PanelRemedies]) -> Statement:
    several = len(panels) > 1
    text: list[str] = []
    for panel in panels:
        first, *rest = _finding_sentences(panel)
        text += [f"{panel.title}: {first}" if several else first, *rest]
    return Statement(text=tuple(text), **declaration("remedies-answer"))


def _finding_sentences(panel: PanelRemedies) -> tuple[str, ...]:
    result, effect = panel.result, panel.result.on_second
    outcome = "not-confirmed"
    if result.picked is None:
        outcome = "none-picked"
    elif result.helps and effect is not None:
        outcome = "confirmed"
    text: tuple[str, ...] = declaration(
        outcome,
        picked=result.picked,
        of=" and ".join(panel.recipes),
        count=len(result.effects),
        gain="" if effect is None else _points_text(effect.gain),
        clean="" if effect is None else _points_text(effect.clean),
        tried=effect is not None,
        untried=effect is None,
        first=whole(result.halves[0]),
        second=whole(result.halves[1]),
        margin=100 * result.margin,
    )["text"]
    return text


def _points_text(estimate: Estimate) -> str:
    value = points(estimate.value)
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} [{points(estimate.low)}, {points(estimate.high)}]"


def _remedies_table(panels: Sequence[PanelRemedies]) -> Grid:
    rows: list[tuple[Value, ...]] = []
    for panel in panels:
        result = panel.result
        for name, effect in result.effects.items():
            cost = panel.costs[name]
            rows.append(
                (panel.model, panel.task, name, effect.gain, effect.clean, cost.calls, cost.tokens,
                 cost.characters, _outcome_text(result, name))
            )  # fmt: skip
    notes = [
        f"{panel.title} loses {_points_text(panel.loss)} points without a remedy."
        for panel in panels
        if panel.loss is not None and panel.loss.value is not None
    ]
    notes += [
        f"{name}: left out, because the part of one of its voters was not run."
        for name in panels[0].left_out
    ]
    return Grid(rows=tuple(rows), **declaration("remedies", text=notes))  # fmt: skip


def _together_sentences(panels: Sequence[PanelRemedies]) -> list[str]:
    picked = sum(panel.result.picked is not None for panel in panels)
    if picked < 2:
        return []
    return [
        f"The intervals on the second half hold for the {whole(picked)} remedies that were picked "
        "at once (Bonferroni), so that the bound is on any false claim among them."
    ]


def _outcome_text(result: ConfirmedRemedy, name: str) -> str:
    if name != result.picked:
        return "not picked"
    return "helps, confirmed" if result.helps else "picked, not confirmed"


def _halves_table(panels: Sequence[PanelRemedies]) -> Grid:
    rows: list[tuple[Value, ...]] = []
    for panel in panels:
        result = panel.result
        for name, effect in result.on_first.items():
            use = "picked" if name == result.picked else ""
            rows.append((panel.model, panel.task, name, "first", effect.gain, effect.clean, use))
        if result.on_second is not None:
            gain, clean = result.on_second.gain, result.on_second.clean
            use = "confirmed" if result.helps else "not confirmed"
            rows.append((panel.model, panel.task, result.picked, "second", gain, clean, use))
    margin = 100 * panels[0].result.margin
    return Grid(
        rows=tuple(rows),
        **declaration("remedies-halves", text=_together_sentences(panels), margin=margin),
    )
