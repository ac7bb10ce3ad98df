"""The same numbers by format, language, pair of languages, task and perturbation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from falter.core.errors import FalterError
from falter.core.records import Estimate
from falter.figures import Column, Figure, Grid, HeatMap, Value
from falter.measures import accuracy, table_summary
from falter.protocols.enterprise._agreement import judges_figures
from falter.protocols.enterprise._figures import split_grid, title_of
from falter.protocols.enterprise._judging import verdicts_of
from falter.protocols.enterprise._pairs import Pair, Reply, replies_to
from falter.protocols.enterprise._parts import (
    BASELINE,
    COMPARING,
    CROSSLINGUAL,
    FORMAT,
    MULTILINGUAL,
    RATING,
    REFERENCE_FORM,
)
from falter.protocols.enterprise._scores import Scores
from falter.protocols.enterprise._statistics import aligned_likeness, likeness
from falter.scorers import semantic_similarities

__all__ = ["split_figures", "supplementary_figures"]

Key = Callable[[Pair], str]


def split_figures(scores: Scores) -> list[Figure]:
    """Formats, languages, the cross-lingual heat maps, tasks and perturbations."""
    figures: list[Figure] = [*_formats(scores), *_languages(scores), *_crosslingual(scores)]
    figures.append(
        split_grid(
            scores,
            "tasks",
            "Task by task",
            ("Model", "Task"),
            _lines(scores, lambda pair: pair.task),
            ("All categories but the baseline.",),
        )
    )
    figures.append(
        split_grid(
            scores,
            "perturbations",
            "Perturbation by perturbation",
            ("Model", "Perturbation"),
            _lines(scores, lambda pair: pair.recipe.label, baseline=True),
        )
    )
    return figures


def _lines(
    scores: Scores, key: Key, *, baseline: bool = False, category: str | None = None
) -> dict[tuple[str, ...], list[Pair]]:
    """Pairs by model and something else."""
    lines: dict[tuple[str, ...], list[Pair]] = {}
    for model in scores.models:
        for pair in scores.of_model(model):
            if pair.category == BASELINE and not baseline:
                continue
            if category is None or pair.category == category:
                lines.setdefault((model, key(pair)), []).append(pair)
    return lines


def _formats(scores: Scores) -> Iterator[Figure]:
    """Robustness by format with how many replies were in it; none at all is N/A."""
    lines = _lines(scores, lambda pair: _form(pair), category=FORMAT)
    rows: list[tuple[Value, ...]] = []
    free = [reply for result in scores.main for reply in replies_to(result, REFERENCE_FORM)]
    for model in scores.models:
        replies = [reply for name, _, reply in free if name == model and reply is not None]
        if replies:
            rows.append((model, "plain text", *_parsed(scores, replies, model), None, None, None))
    for (model, form), pairs in lines.items():
        replies = [p.candidate for p in pairs if p.candidate is not None]
        found = scores.score(pairs, by=BASELINE)
        if found is None:
            continue
        overall = found.categories[BASELINE].overall
        about = {"model": model, "format": form}
        none = not any(reply.parts is not None for reply in replies)
        valid: Value = "N/A" if none else scores.signed(overall.valid, **about)
        rows.append(
            (
                model,
                form,
                *_parsed(scores, replies, model),
                valid,
                scores.signed(overall.strict, **about),
                found.categories[BASELINE].quality.valid,
            )
        )
    if not rows:
        return
    rows.sort(key=lambda row: scores.models.index(str(row[0])))
    yield Grid(
        name="formats",
        title="Formats against plain text",
        columns=(
            Column(name="Model"),
            Column(name="Format"),
            Column(name="Replies", unit="count"),
            Column(name="Parsed", unit="count"),
            Column(name="Parsed, %", unit="percent"),
            Column(name="Valid", unit="percent", over="Robustness, %"),
            Column(name="Strict", unit="percent", over="Robustness, %"),
            Column(name="Quality delta, %", unit="percent"),
        ),
        rows=tuple(rows),
        labels=2,
        text=(
            "Replies are read with real parsers and need every part that was asked for. Valid is "
            "over the replies that could be read, N/A where none could; strict counts the others "
            "as changed. Plain text is what the formats are compared with.",
        ),
    )


def _form(pair: Pair) -> str:
    return (pair.recipe.output_format or pair.recipe.label).upper()


def _parsed(scores: Scores, replies: Sequence[Reply], model: str) -> tuple[Value, ...]:
    read = [reply.parts is not None for reply in replies]
    share = accuracy([float(x) for x in read], level=scores.level)
    return len(read), sum(read), scores.signed(share, model=model)


def _languages(scores: Scores) -> Iterator[Figure]:
    """Quality delta by language, with the mean, the worst and the range, as in the paper."""
    lines = _lines(scores, lambda pair: pair.languages[1], category=MULTILINGUAL)
    if not lines:
        return
    languages = list(dict.fromkeys(language for _, language in lines))
    deltas: dict[str, dict[str, Estimate]] = {}
    for (model, language), pairs in lines.items():
        found = scores.score(pairs, by=BASELINE)
        if found is not None:
            delta = found.categories[BASELINE].quality.strict
            deltas.setdefault(model, {})[language] = scores.signed(
                delta, model=model, language=language
            )
    plain = {m: {name: e.value for name, e in row.items()} for m, row in deltas.items()}
    summary = table_summary(plain)
    rows: list[tuple[Value, ...]] = [
        (
            model,
            *(row.get(language) for language in languages),
            ", ".join(summary.worst[model]) or "–",
            _bare(summary.ranges[model]),
        )
        for model, row in deltas.items()
    ]
    if len(rows) > 1:
        means = (_bare(summary.means.get(language)) for language in languages)
        rows.append(("Mean", *means, "", None))
    yield Grid(
        name="languages",
        title="Quality delta by language",
        columns=(
            Column(name="Model"),
            *(Column(name=name, unit="percent", over="Quality delta, %") for name in languages),
            Column(name="Worst"),
            Column(name="Range", unit="percent"),
        ),
        rows=tuple(rows),
        text=(
            "Prompt, input and answer in another language, compared with the English reply. Of "
            "the pairs whose content changed, the share whose quality did, strict. Lower is "
            "better.",
        ),
    )
    yield split_grid(
        scores,
        "languages-deltas",
        "Language by language",
        ("Model", "Language"),
        lines,
    )


def _crosslingual(scores: Scores) -> Iterator[Figure]:
    """For each model a heat map of robustness: language of the input × language of the answer."""
    for number, model in enumerate(scores.models, 1):
        pairs = [p for p in scores.of_model(model) if p.category == CROSSLINGUAL]
        if not pairs:
            continue
        shown = list(dict.fromkeys(pair.languages[0] for pair in pairs))
        wanted = list(dict.fromkeys(pair.languages[1] for pair in pairs))
        cells = [
            [_cell(scores, model, [p for p in pairs if p.languages == (a, b)]) for b in wanted]
            for a in shown
        ]
        tail = "" if len(scores.models) == 1 else f"-{number}"
        yield HeatMap(
            name=f"cross-lingual{tail}",
            title=f"From language to language: {model}",
            down="input",
            across="answer",
            rows=tuple(shown),
            columns=tuple(wanted),
            cells=tuple(map(tuple, cells)),
            unit="percent",
            text=(
                "Robustness in percent, strict. The instructions stay in English; the input is in "
                "the language of the row, and the answer is asked for in that of the column.",
            ),
        )


def _cell(scores: Scores, model: str, pairs: Sequence[Pair]) -> Estimate | None:
    found = scores.score(pairs, by=BASELINE)
    if found is None:
        return None
    return scores.signed(found.categories[BASELINE].overall.strict, model=model)


def _bare(value: float | None) -> Estimate:
    if value is None:
        return Estimate(measure="table_summary", value=None, status="insufficient_data")
    return Estimate(measure="table_summary", value=value)


# Beside the ratings


def supplementary_figures(scores: Scores) -> list[Figure]:
    """ROUGE-L, its JSON-aware form and MiniLM beside the ratings, and what the judge's were."""
    return [*_likenesses(scores), *_judge(scores), *judges_figures(scores)]


def _likenesses(scores: Scores) -> Iterator[Figure]:
    rows: list[tuple[Value, ...]] = []
    cosines = True
    for model in scores.models:
        for name in scores.categories:
            pairs = [p for p in scores.of_model(model) if p.category == name and not p.missing]
            pairs = [p for p in pairs if not p.crosses]
            if not pairs:
                continue
            about = {"model": model, "category": name}
            cells: list[Value] = [
                _mean(scores, [measure(pair) for pair in pairs], **about)
                for measure in (likeness, aligned_likeness)
            ]
            similar = _cosines(pairs) if cosines else None
            cosines = similar is not None
            cells.append(None if similar is None else _mean(scores, similar, **about))
            rows.append((model, title_of(name), len(pairs), *cells))
    if rows:
        text = "Means over pairs in one language. JSON-aware: part by part, where both were read."
        yield Grid(
            name="likeness",
            title="Likeness of replies, in numbers",
            columns=(
                Column(name="Model"),
                Column(name="Category"),
                Column(name="Pairs", unit="count"),
                Column(name="ROUGE-L", unit="coefficient"),
                Column(name="ROUGE-L, JSON-aware", unit="coefficient"),
                Column(name="MiniLM cosine", unit="coefficient"),
            ),
            rows=tuple(rows),
            labels=2,
            text=(text,) if cosines else (text, "No encoder is installed, so there is no cosine."),
            folded=True,
        )


def _mean(scores: Scores, values: Sequence[float | None], **group: str) -> Estimate:
    numbers = [value for value in values if value is not None]
    mean = sum(numbers) / len(numbers) if numbers else None
    estimate = Estimate(
        measure="likeness",
        value=mean,
        status="ok" if numbers else "insufficient_data",
        items=len(numbers),
        excluded=len(values) - len(numbers),
    )
    return scores.signed(estimate, **group)


def _cosines(pairs: Sequence[Pair]) -> list[float | None] | None:
    """MiniLM's cosines; None without the encoder."""
    first = [pair.candidate.shown for pair in pairs if pair.candidate is not None]
    second = [pair.reference.shown for pair in pairs if pair.reference is not None]
    try:
        return semantic_similarities(first, second)
    except FalterError:
        return None


def _judge(scores: Scores) -> Iterator[Figure]:
    """How many verdicts were asked for and read, at once and at the second try."""
    rows: list[tuple[Value, ...]] = []
    for stage, title in ((COMPARING, "Do two replies say the same?"), (RATING, "How good is it?")):
        for judge, counts in verdicts_of(scores.by_name, stage).items():
            asked, at_once, again = counts
            rows.append((judge, title, asked, at_once, again, asked - at_once - again))
    if rows:
        same = sum(1 for p in scores.pairs if not p.missing and not p.unread and p.same)
        yield Grid(
            name="verdicts",
            title="What the judge said",
            columns=(
                Column(name="Judge"),
                Column(name="Question"),
                Column(name="Asked", unit="count"),
                Column(name="Read at once", unit="count"),
                Column(name="Read at the second try", unit="count"),
                Column(name="Not read", unit="count"),
            ),
            rows=tuple(rows),
            labels=2,
            text=(
                f"{same:,} pairs are the same to the letter, or part by part, and were not shown "
                "to the judge. What is shown alike is asked once. 'falter judge calibrate' says "
                "how far a judge agrees with people.",
            ),
        )
