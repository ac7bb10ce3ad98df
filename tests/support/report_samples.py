"""Analyses made by hand, for looking at reports: ordinary ones, empty ones and hostile ones."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

from falter.analysis.results import (
    Analysis,
    Counts,
    GroupResult,
    PanelResult,
    RecipeParts,
    RecipeResult,
)
from falter.measures.drop_decomposition import STATES, DropParts
from falter.measures.flips import Churn, FlipRate
from falter.measures.variance import PromptShare
from falter.records.figures import Example, Segment, Side, Verdict
from falter.records.types import Estimate, EstimateStatus, Model, Panel

__all__ = [
    "HOSTILE",
    "empty",
    "hostile",
    "many_recipes",
    "one_panel",
    "poisoned",
    "two_by_two",
    "undefined",
]

SIGNATURE = (
    "falter 0.1.0 | basics@3f1c09ab | smollm2@77d0e1c4 | likelihood | 100 items | 13 recipes | "
    "1 draws | 1 repeats | unparsed wrong | level 0.95 | seed 0"
)

# label, group, changed, lost, gained, Holm's p
TWELVE: tuple[tuple[str, str, int, int, int, float], ...] = (
    ("typos", "words", 100, 11, 2, 0.044),
    ("misspellings", "words", 97, 8, 3, 0.541),
    ("capitals", "words", 100, 22, 3, 0.0004),
    ("spacing", "words", 100, 4, 4, 1.0),
    ("word-drop", "words", 92, 9, 1, 0.061),
    ("padding-front", "padding", 100, 6, 5, 1.0),
    ("padding-back", "padding", 100, 14, 3, 0.0301),
    ("irrelevant-document", "padding", 100, 19, 2, 0.0009),
    ("choices-shuffled", "options", 100, 9, 8, 1.0),
    ("labels-roman", "options", 100, 2, 10, 0.031),
    ("persona", "augmentation", 100, 5, 4, 1.0),
    ("emotion", "augmentation", 61, 1, 2, 1.0),
)


def estimate(
    measure: str,
    value: float | None,
    error: float = 0.02,
    *,
    status: EstimateStatus = "ok",
    items: int = 100,
    p: float | None = None,
    method: str = "t over items",
    bounds: tuple[float, float] = (-1.0, 1.0),
) -> Estimate:
    """A value with an interval of two errors to each side."""
    return Estimate(
        measure=measure,
        value=value,
        status=status,
        group={"task": "basics", "model": "smollm2"},
        estimand="these conditions, items like these",
        low=None if value is None else max(bounds[0], value - 1.96 * error),
        high=None if value is None else min(bounds[1], value + 1.96 * error),
        p_value=p,
        method=method,
        items=items,
        conditions=2,
        seed=0,
        signature=SIGNATURE,
    )


def counts(items: int, changed: int, *, unparsed: int = 0, failed: int = 0) -> Counts:
    idle = items - changed
    return Counts(
        cells=items,
        scored=items - unparsed - failed,
        unparsed=unparsed,
        refused=0,
        failed=failed,
        missing=0,
        changed=changed,
        unchanged=idle // 2,
        not_applicable=idle - idle // 2,
    )


def recipe(
    label: str,
    group: str,
    changed: int,
    lost: int,
    gained: int,
    p: float | None,
    *,
    base: float = 0.62,
    unparsed: int = 0,
) -> RecipeResult:
    drop = (lost - gained) / changed
    error = math.sqrt((lost + gained) / changed - drop * drop) / math.sqrt(changed)
    method = "Bonett-Price; p: McNemar mid-p"

    def drops(value: float, items: int) -> Estimate:
        return estimate("accuracy_drop", value, error, items=items, p=p, method=method)

    return RecipeResult(
        label=label,
        group=group,
        accuracy=estimate(
            "accuracy", min(1.0, base - drop), 0.048, items=changed, method="Agresti-Coull"
        ),
        drop=drops(drop, changed),
        drop_valid=drops(drop * 0.97, changed - unparsed),
        drop_all=drops(drop * changed / 100, 100),
        together=replace(
            drops(drop, changed),
            measure="recipe_verdicts",
            low=drop - 3 * error,
            high=drop + 3 * error,
        ),
        verdict=_verdict(p, drop),
        p_equivalent=0.4,
        flips=estimate("flip_rate", (lost + gained) / changed, 0.03, items=changed),
        changed=changed,
        lost=lost,
        gained=gained,
        edits_mean=2.4 + lost / 7,
        counts=counts(100, changed, unparsed=unparsed, failed=1 if label == "persona" else 0),
    )


def _verdict(p: float | None, drop: float) -> Verdict:
    if p is None or p >= 0.05:
        return "equivalent" if abs(drop) < 0.004 else "undecided"
    return "degraded" if drop > 0 else "improved"


def components(scale: float = 1.0) -> dict[str, dict[str, Estimate]]:
    def part(measure: str, value: float, error: float) -> Estimate:
        return estimate(measure, value * scale, error * scale, method="jackknife t, log")

    def share(measure: str, value: float, error: float) -> Estimate:
        return estimate(measure, value, error, method="jackknife t, log odds")

    none = estimate("plugin.run", None, status="not_identified", method="none: one run")
    return {
        "plugin": {
            "data": part("plugin.data", 0.1694, 0.0112),
            "pert": part("plugin.pert", 0.0731, 0.0067),
            "run": none,
            "total": part("plugin.total", 0.2425, 0.0041),
            "brittleness": share("plugin.brittleness", 0.3014, 0.0331),
        },
        "crossed": {
            "item": part("crossed.item", 0.1668, 0.0115),
            "condition": part("crossed.condition", 0.0031, 0.0013),
            "interaction": part("crossed.interaction", 0.0752, 0.0071),
            "run": replace(none, measure="crossed.run"),
            "brittleness_main": share("crossed.brittleness_main", 0.0126, 0.0054),
            "brittleness_interaction": share("crossed.brittleness_interaction", 0.3068, 0.034),
        },
    }


def examples() -> tuple[Example, ...]:
    options = ("Evaporation", "Condensation", "Precipitation", "Sublimation")
    before = (-8.13, -11.42, -10.07, -13.88)
    after = (-12.31, -12.02, -11.64, -14.9)
    question = "Question: Which process turns liquid water into water vapour?\nAnswer:"
    typo = (
        Segment(kind="same", before="Question: Which ", after="Question: Which "),
        Segment(kind="edit", before="process", after="proccess"),
        Segment(kind="same", before=" turns liquid ", after=" turns liquid "),
        Segment(kind="edit", before="water", after="watre"),
        Segment(kind="same", before=" into water vapour?\n", after=" into water vapour?\n"),
        Segment(kind="edit", before="Answer:", after="Answer  :\t"),
    )
    padded = (
        Segment(
            kind="edit",
            before="",
            after="A short note first: the library closes at five on Fridays.\n\n",
        ),
        Segment(kind="same", before=question, after=question),
    )
    dropped = (
        Segment(kind="same", before="Question: Which process ", after="Question: Which process "),
        Segment(kind="edit", before="turns ", after=""),
        Segment(
            kind="same",
            before="liquid water into water vapour?",
            after="liquid water into water vapour?",
        ),
    )  # fmt: skip
    rewritten = (
        Segment(
            kind="edit",
            before="Natalia sold clips to 48 of her friends in April, and then she sold half as "
            "many clips in May. How many clips did Natalia sell altogether in April and May?",
            after="In April, Natalia sold clips to 48 friends; in May she sold half that number. "
            "What is the total number of clips she sold over both months?",
        ),
    )
    right = Side(
        answer="A. Evaporation", right=True, detail=tuple(zip(options, before, strict=True))
    )
    wrong = Side(
        answer="C. Precipitation", right=False, detail=tuple(zip(options, after, strict=True))
    )

    def example(name: str, segments: tuple[Segment, ...], item: str = "basics-017") -> Example:
        return Example(
            item=item,
            recipe=name,
            expected="A. Evaporation",
            segments=segments,
            baseline=right,
            perturbed=wrong,
        )

    return (
        example("typos", typo),
        example("padding-front", padded),
        Example(
            item="gsm8k-0001",
            recipe="paraphrase",
            expected="72",
            segments=rewritten,
            baseline=Side(answer="48 + 24 = 72. The answer is 72.", right=True),
            perturbed=Side(answer="48 / 2 = 24. The answer is 24.", right=False),
        ),
        example("word-drop", dropped, "basics-044"),
        example("typos", typo, "basics-081"),
    )


def recipe_parts(label: str, drop: Estimate) -> RecipeParts:
    """Half of a drop comes from the reading; serving had nothing to correct."""
    whole = drop.value or 0.0
    zero = replace(
        estimate("drop_parts.serving", 0.0, method="none: nothing to correct"), low=None, high=None
    )
    states = {
        name: estimate(f"drop_parts.state.{name}", share * whole, 0.02)
        for name, share in zip(STATES, (0.7, 0.1, 0.1, 0.1), strict=True)
    }
    return RecipeParts(
        label=label,
        reader="named_answer",
        split=DropParts(
            drop=drop,
            reading=estimate("drop_parts.reading", 0.5 * whole, 0.03),
            meaning=estimate("drop_parts.meaning", 0.3 * whole, 0.02),
            serving=zero,
            wording=estimate("drop_parts.wording", 0.2 * whole, 0.04),
            corrected=(9, 4, 0),
            states=states,
            unrecovered=states,
        ),
        churn=Churn(
            lost=11.0,
            gained=2.0,
            items=100,
            again=estimate("churn.again", 1.5, 0.4, bounds=(0.0, 50.0)),
            ratio=replace(estimate("churn.ratio", 4.33, 0.8, bounds=(0.0, 99.0)), high=None),
        ),
    )


def panel(
    model: str = "smollm2",
    task: str = "basics",
    base: float = 0.62,
    factor: float = 1.0,
) -> PanelResult:
    recipes = tuple(
        recipe(
            label,
            group,
            changed,
            round(lost * factor),
            round(gained * factor),
            p,
            base=base,
            unparsed=3 if label == "capitals" else 0,
        )
        for label, group, changed, lost, gained, p in TWELVE
    )
    groups = {r.group: [s for s in recipes if s.group == r.group] for r in recipes}
    means = {g: sum(r.drop.value or 0.0 for r in rs) / len(rs) for g, rs in groups.items()}
    micro = sum(r.drop.value or 0.0 for r in recipes) / len(recipes)
    macro = sum(means.values()) / len(means)
    shares = components(0.8 + 0.2 * factor)
    return PanelResult(
        panel=Panel(
            task=task,
            revision="sha256:3f1c09ab" + "0" * 56,
            model=Model(client=model, name=model),
            scorer="likelihood",
        ),
        model=model,
        signature=SIGNATURE.replace("smollm2", model).replace("basics", task),
        items=100,
        counts=Counts(
            cells=1_400,
            scored=1_396,
            unparsed=3,
            refused=0,
            failed=1,
            missing=0,
            changed=1_150,
            unchanged=24,
            not_applicable=26,
        ),
        baseline=estimate("accuracy", base, 0.0485, method="Agresti-Coull"),
        baseline_valid=estimate("accuracy", base, 0.0485, method="Agresti-Coull"),
        recipes=recipes,
        groups=tuple(
            GroupResult(
                group=g,
                recipes=tuple(r.label for r in groups[g]),
                drop=estimate("group_average", mean, 0.016, p=0.01),
            )
            for g, mean in means.items()
        ),
        micro=estimate("micro_average", micro, 0.0105, p=0.0001),
        macro=estimate("macro_average", macro, 0.0113, p=0.0002),
        noise_floor=estimate("noise_floor", 0.01, 0.009, method="Wilson", bounds=(0.002, 1.0)),
        brittleness=shares["plugin"]["brittleness"],
        like_these=estimate("random_conditions_average", micro, 0.02),
        prompt_share=PromptShare(
            share=estimate("prompt_share", 0.3126, 0.031),
            item=estimate("prompt_share.item", 0.1668, 0.0115),
            condition=estimate("prompt_share.condition", 0.0031, 0.0013),
            interaction=estimate("prompt_share.interaction", 0.0752, 0.0071),
            run=estimate("prompt_share.run", None, status="not_identified", method="none: one run"),
            label="prompt and run",
        ),
        flips=FlipRate(
            rate=estimate("flip_rate", 0.137, 0.011),
            conditions=tuple(r.flips for r in recipes if r.flips is not None),
            again=estimate("flip_rate.again", 0.01, 0.005, bounds=(0.0, 1.0)),
            excess=estimate("flip_rate.excess", 0.127, 0.012),
        ),
        worst=estimate("recipe_verdicts.worst", 0.165, 0.04, p=0.0004),
        margin=0.02,
        components=shares,
        examples=examples(),
        failures={"timeout after 60 s": 1},
        parts=tuple(recipe_parts(r.label, r.drop) for r in recipes[:3]),
        notes=(
            "Every request was asked once, so variance between runs is not identified; it is part "
            "of the perturbation (plug-in) and interaction (crossed) components.",
        ),
    )


def analysis(*panels: PanelResult) -> Analysis:
    return Analysis(
        run="sha256:9b1d4c7e20f3" + "a5" * 26,
        version="0.1.0",
        created_at=1_772_373_900.0,
        seed=0,
        level=0.95,
        unparsed="wrong",
        panels=panels,
    )


@cache
def one_panel() -> Analysis:
    """One model, one task, twelve recipes in four groups."""
    return analysis(panel())


@cache
def two_by_two() -> Analysis:
    """Two models on two tasks."""
    return analysis(
        panel(),
        panel(task="arc_easy", base=0.71, factor=1.3),
        panel("openai:gpt-4.1-mini", base=0.94, factor=0.4),
        panel("openai:gpt-4.1-mini", "arc_easy", 0.97, 0.3),
    )


@cache
def many_recipes() -> Analysis:
    """Thirty recipes, some with long names, one with hardly any item and so a huge interval."""
    whole = panel()
    extra = tuple(
        recipe(
            f"typos:{n} → capitals → irrelevant-document(position=front, sentences={n})",
            "words" if n % 2 else "chains of several steps",
            100,
            4 + n,
            n % 4,
            0.2,
        )
        for n in range(1, 18)
    )
    tiny = recipe("translation:sw", "language", 4, 2, 1, 1.0)
    return analysis(replace(whole, recipes=(*whole.recipes, *extra, tiny)))


def _undefined(status: EstimateStatus = "insufficient_data") -> Estimate:
    return estimate("accuracy", None, status=status, items=0, method="none: too few items")


@cache
def undefined() -> Analysis:
    """No number at all: every estimate is None, for every reason there is."""
    whole = panel()
    none = _undefined()
    recipes = tuple(
        replace(
            r,
            accuracy=none,
            drop=_undefined("undefined_zero_denominator"),
            drop_valid=none,
            drop_all=none,
            together=_undefined("undefined_zero_denominator"),
            verdict="undecided",
            p_equivalent=None,
            why_undecided="too few items",
            flips=none,
            lost=0,
            gained=0,
            edits_mean=None,
        )
        for r in whole.recipes
    )
    components = {
        method: {
            name: replace(e, value=None, low=None, high=None, status="undefined_zero_variance")
            for name, e in found.items()
        }
        for method, found in whole.components.items()
    }
    return analysis(
        replace(
            whole,
            baseline=none,
            baseline_valid=none,
            recipes=recipes,
            groups=tuple(replace(g, drop=none) for g in whole.groups),
            micro=none,
            macro=none,
            noise_floor=None,
            brittleness=components["plugin"]["brittleness"],
            like_these=none,
            prompt_share=PromptShare(
                share=_undefined("not_informative"),
                item=none,
                condition=none,
                interaction=none,
                run=none,
                label="prompt",
            ),
            flips=None,
            worst=None,
            components=components,
            examples=(),
            failures={},
            notes=(),
        )
    )  # fmt: skip


@cache
def empty() -> tuple[Analysis, ...]:
    """No panel; a panel without recipes, without examples, without counts."""
    zero = Counts(
        cells=0,
        scored=0,
        unparsed=0,
        refused=0,
        failed=0,
        missing=0,
        changed=0,
        unchanged=0,
        not_applicable=0,
    )
    bare = replace(
        panel(),
        items=0,
        counts=zero,
        recipes=(),
        groups=(),
        micro=_undefined(),
        macro=_undefined(),
        noise_floor=None,
        components={},
        examples=(),
        failures={},
        notes=(),
    )
    return analysis(), analysis(bare), analysis(replace(panel(), examples=(), failures={}))


HOSTILE: tuple[str, ...] = (
    "<script>document.title='pwned'</script>",
    "<img src=x id=pwned onerror=\"document.title='pwned'\">",
    "</style></title></textarea><b id=pwned>out</b>",
    "]]><svg id=pwned onload=alert(1)><script>alert(1)</script></svg>",
    "\"'><a id=pwned href=\"javascript:document.title='pwned'\" autofocus onfocus=alert(1)>x</a>",
    "javascript:alert(1)",
    "=HYPERLINK(\"http://evil.example/\",\"x\")",
    "+1+cmd|' /C calc'!A0",
    "[bold red]not markup[/bold red] [/] \\[x] :smile: [link=http://evil.example]x[/link]",
    "| a | b |\n|---|---|\n`code` **bold** <!-- --> ![x](http://evil.example/x.png)",
    "\x1b[31mred\x1b[0m\x1b]8;;http://evil.example\x07link\x1b]8;;\x07 \x9b2J \x00 \x08\x08 \x7f",
    "user \u202egnp.exe\u202c \u2066x\u2069 zero\u200bwidth\ufeff soft\u00adhyphen \u2028 sep",
    "👩\u200d👩\u200d👧 🏳️\u200d🌈 ﷽ العربية עברית 中文字符很长很长很长 e\u0301\u0301\u0301",
    "lone \ud800 surrogate \udfff",
    "&lt;script&gt;&amp;#x3C; %3Cscript%3E {{7*7}} ${7*7}",
    "W" * 100_000,
    "wide 字" * 2_000,
)  # fmt: skip


@cache
def hostile() -> Analysis:
    """Every text is an attack of another kind."""
    return poisoned(HOSTILE)


def poisoned(texts: tuple[str, ...]) -> Analysis:
    """An analysis whose every text comes from `texts`, in turn."""
    whole = panel()
    place = 0

    def text() -> str:
        nonlocal place
        place += 1
        return texts[(place - 1) % len(texts)]

    def dirty(found: Estimate) -> Estimate:
        return replace(
            found,
            measure=text(),
            estimand=text(),
            method=text(),
            signature=text(),
            group={text(): text()},
        )

    groups = {name: text() for name in ("words", "padding", "options", "augmentation")}
    recipes = tuple(
        replace(
            r,
            label=texts[number % len(texts)],
            group=groups[r.group],
            drop=dirty(r.drop),
            accuracy=dirty(r.accuracy),
        )
        for number, r in enumerate((*whole.recipes, *whole.recipes[:5]))
    )
    sides = [
        Side(answer=t, right=n % 2 == 0, detail=((t, -1.5), (text(), float("-inf"))))
        for n, t in enumerate(texts)
    ]
    attacked = tuple(
        Example(
            item=t,
            recipe=text(),
            expected=text(),
            segments=(
                Segment(kind="same", before=t, after=t),
                Segment(kind="edit", before=t, after=text()),
                Segment(kind="edit", before="", after=t),
                Segment(kind="edit", before=t, after=""),
            ),
            baseline=sides[n],
            perturbed=sides[-1 - n],
        )
        for n, t in enumerate(texts)
    )
    return replace(
        analysis(
            replace(
                whole,
                panel=Panel(
                    task=text(),
                    revision=text(),
                    model=Model(client=text(), name=text(), options={text(): text()}),
                    scorer=text(),
                ),
                model=text(),
                signature=text(),
                recipes=recipes,
                groups=tuple(replace(g, group=groups[g.group]) for g in whole.groups),
                examples=attacked,
                served_by=texts,
                failures=dict.fromkeys(texts, 3),
                notes=texts,
            ),
            replace(whole, model=text()),
        ),
        run=text(),
        version=text(),
    )
