"""Demonstrations: clean unless asked, and what happens to them when they are perturbed too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import falter
from falter.engine.config import Experiment, read_experiment
from falter.engine.recipes import recipe_from
from falter.engine.remarks import demonstration_changes
from falter.engine.resolving import Resolved, resolve
from falter.engine.rewriting import bank_for
from falter.engine.variants import variant_sets
from falter.perturbations import apply_recipe, perturbations
from falter.perturbations.recipes import perturb_demonstration, reaches_demonstrations
from falter.records.errors import InvalidValue, PreflightError, UsageError
from falter.records.render import messages, plain
from falter.records.types import Demonstration, Program, Prompt, Recipe, Section, Variant
from falter.report.page import html
from falter.rewrites.bank import MemoryBank, bundled_rewrites, hand_written
from falter.store.store import Store
from falter.tasks import tasks
from falter.testing.samples import SAMPLES
from rewrite_samples import resolved_in

SHOWN = 5
SECTIONS = (
    "typos", "synonyms", "casing", "punctuation_spaces", "word_split", "whitespace",
    "typos:count=2", "typos+casing", "typos+persona", "persona+typos", "pad_quotes+typos",
    "typos+relabel_choices", "typos:scope=input|choices",
)  # fmt: skip
WHOLE = (
    "persona", "emotion", "pad_newlines", "pad_quotes", "pad_random", "replace_spaces",
    "shuffle_choice_order", "shuffle_choice_texts", "relabel_choices", "move_context",
    "reorder_bullets", "format_json", "chain_of_thought", "casing:scope=choices", "identity",
    "casing:scope=instruction",
)  # fmt: skip


def of_basics(*recipes: str, perturb: bool = True, **settings: Any) -> Experiment:
    return read_experiment({
        "task": "basics", "models": ["simulated"], "recipes": list(recipes), "limit": 12,
        "demonstrations": SHOWN, "scorer": "choice_letter",
        **({"perturb_demonstrations": True} if perturb else {}), **settings,
    })  # fmt: skip


def variants(experiment: Experiment, draw: int = 0) -> list[list[Variant]]:
    """Conditions × items."""
    (one,) = variant_sets(experiment, bank_for(experiment, None))
    return [[c.make(item, draw) for item in one.items] for c in one.conditions]


def own(prompt: Prompt) -> list[str]:
    return [section.text for section in prompt.sections]


def inputs(shown: tuple[Demonstration, ...]) -> list[list[str]]:
    return [[s.text for s in d.sections if s.kind in ("input", "document")] for d in shown]


def others(shown: tuple[Demonstration, ...]) -> list[list[str]]:
    return [[s.text for s in d.sections if s.kind not in ("input", "document")] for d in shown]


# Off, nothing is different


@pytest.mark.parametrize("recipe", [*SECTIONS, *WHOLE])
def test_demonstrations_stay_clean_unless_asked(recipe: str) -> None:
    """What a recipe does to the sections of an item, it does not do to the examples."""
    baseline, made = variants(of_basics(recipe, perturb=False))
    for before, after in zip(baseline, made, strict=True):
        if recipe != "replace_spaces":
            assert inputs(after.prompt.demonstrations) == inputs(before.prompt.demonstrations)


def test_the_setting_is_part_of_a_runs_identity_only_when_it_is_on() -> None:
    """Runs from before have the ids they had; the same experiment with it is another run."""
    off, on = of_basics("typos", perturb=False), of_basics("typos")
    said = of_basics("typos", perturb=False, perturb_demonstrations=False)
    assert "perturb_demonstrations" not in resolve(off).run.experiment
    assert resolve(off).run.id == resolve(said).run.id != resolve(on).run.id
    assert resolve(on).run.experiment["perturb_demonstrations"] is True


# On, the examples change as items would


@pytest.mark.parametrize("recipe", SECTIONS)
def test_the_items_own_part_is_the_same_with_and_without(recipe: str) -> None:
    """Byte for byte, and so are status, options and answer."""
    for draw in (0, 1):
        for with_, without in zip(
            variants(of_basics(recipe), draw), variants(of_basics(recipe, perturb=False), draw),
            strict=True,
        ):  # fmt: skip
            for a, b in zip(with_, without, strict=True):
                assert own(a.prompt) == own(b.prompt)
                assert [s.edits for s in a.prompt.sections] == [s.edits for s in b.prompt.sections]
                assert (a.status, a.prompt.choices, a.prompt.labels, a.prompt.target) == (
                    b.status, b.prompt.choices, b.prompt.labels, b.prompt.target,
                )  # fmt: skip


@pytest.mark.parametrize("recipe", SECTIONS)
def test_only_the_text_of_the_examples_changes(recipe: str) -> None:
    """At least one example differs from the clean ones in its input; everything else, and every
    answer, is what the recipe makes of it without the setting."""
    (_, made), (_, clean) = variants(of_basics(recipe)), variants(of_basics(recipe, perturb=False))
    for a, b in zip(made, clean, strict=True):
        if a.status != "changed":
            assert a.id == b.id
            continue
        shown, usual = a.prompt.demonstrations, b.prompt.demonstrations
        assert len(shown) == SHOWN
        assert inputs(shown) != inputs(usual)
        assert others(shown) == others(usual)
        assert [d.answer for d in shown] == [d.answer for d in usual]


@pytest.mark.parametrize("recipe", WHOLE)
def test_what_is_about_the_whole_prompt_is_not_done_twice(recipe: str) -> None:
    """Padding, personas, options, positions, formats and settings give the same variants."""
    assert not reaches_demonstrations(recipe_of(recipe))
    for with_, without in zip(
        variants(of_basics(recipe)), variants(of_basics(recipe, perturb=False)), strict=True
    ):
        assert [v.id for v in with_] == [v.id for v in without]


def recipe_of(text: str) -> Recipe:
    return recipe_from([(part, {}) for part in text.split("+")])


@pytest.mark.parametrize("recipe", ["typos", "whitespace+casing", "typos:count=1+typos:count=1"])
@pytest.mark.parametrize("draw", [0, 3])
def test_an_example_looks_as_it_would_as_an_item(recipe: str, draw: int) -> None:
    """The second witness: its own prompt, under its own key, through the recipe by itself."""
    experiment = of_basics(recipe, seed=7)
    resolved = resolve(experiment)
    (panel,) = resolved.panels
    _, made = variants(experiment, draw)
    shown = next(v for v in made if v.status == "changed").prompt.demonstrations
    by_question = {item.fields["question"]: item for item in panel.task.items}
    clean = next(iter(panel.conditions)).make(panel.items[0], 0).prompt.demonstrations
    for before, after in zip(clean, shown, strict=True):
        item = by_question[next(s.text for s in before.sections if s.kind == "input")]
        prompt = panel.task.templates["letter"].build(item)
        alone = apply_recipe(item.key, prompt, recipe_of(recipe), 7, draw).prompt
        assert [s.text for s in after.sections] == own(alone)
        assert [s.edits for s in after.sections] == [s.edits for s in alone.sections]


def test_a_step_that_is_passed_over_still_counts_for_the_seeds() -> None:
    """The second `typos` of a recipe is its second, though the first is about the options."""
    task = tasks.get("basics")(None)
    prompt = task.templates["letter"].build(task.items[0])
    recipe = recipe_of("typos:scope=choices,count=2+typos:count=2")
    whole = apply_recipe("key", prompt, recipe, 0, 0).prompt
    shown = perturb_demonstration("key", prompt, recipe, 0, 0)
    for old, new, both in zip(prompt.sections, shown, whole.sections, strict=True):
        assert new == (both if new.kind == "input" else old)
    alone = perturb_demonstration("key", prompt, recipe_of("typos:count=2"), 0, 0)
    assert alone != shown


def test_all_items_see_the_same_examples() -> None:
    """So the beginning of the prompts is shared; another draw shows others."""

    def ahead(draw: int) -> set[str]:
        _, made = variants(of_basics("typos"), draw)
        return {
            plain(v.prompt).removesuffix("".join(own(v.prompt)))
            for v in made if v.status == "changed"
        }  # fmt: skip

    first, second = ahead(0), ahead(1)
    assert len(first) == len(second) == 1
    assert first != second


def test_a_weaker_dose_is_part_of_a_stronger_one_in_the_examples_too() -> None:
    """Seeds do not depend on parameters, here as in items."""
    _, weak, strong = variants(of_basics("typos:count=1", "typos:count=3"))
    for a, b in zip(weak, strong, strict=True):
        for few, many in zip(a.prompt.demonstrations, b.prompt.demonstrations, strict=True):
            for x, y in zip(few.sections, many.sections, strict=True):
                assert {(e.start, e.end) for e in x.edits} <= {(e.start, e.end) for e in y.edits}


def test_the_order_of_the_data_and_the_other_recipes_mean_nothing() -> None:
    alone = variants(of_basics("typos"))[1]
    among = variants(of_basics("casing", "typos", "persona"))[2]
    assert [v.id for v in alone] == [v.id for v in among]


@pytest.mark.parametrize("recipe", ["typos:rate=0", "casing:rate=0", "typos:count=0"])
def test_no_strength_is_the_identity(recipe: str) -> None:
    """The prompt is the baseline's, examples and all, so nothing new is asked."""
    baseline, made = variants(of_basics(recipe))
    assert [v.status for v in made] == ["unchanged"] * len(made)
    assert [plain(v.prompt) for v in made] == [plain(v.prompt) for v in baseline]


def test_an_item_that_does_not_change_keeps_clean_examples() -> None:
    """Its status is that of its own prompt, and it is asked exactly what the baseline asks."""
    baseline, made = variants(of_basics("symmetric_addition"))
    assert {v.status for v in made} == {"not_applicable"}
    assert [messages(v.prompt) for v in made] == [messages(v.prompt) for v in baseline]


@pytest.mark.parametrize("perturbation", sorted(
    p.name for p in perturbations if not p.needs_model and "scope" in {q.name for q in p.parameters}
))  # fmt: skip
def test_a_prompt_is_never_changed_in_place_and_never_more_than_its_item(
    perturbation: str,
) -> None:
    """Over the whole registry: what changes is in input and documents, and nothing is mutated."""
    recipe = recipe_of(perturbation)
    for sample in SAMPLES:
        prompt = sample.prompt
        before = prompt.identity()
        sections = perturb_demonstration("key", prompt, recipe, 0, 0)
        assert prompt.identity() == before, sample.name
        assert perturb_demonstration("key", prompt, recipe, 0, 0) == sections, sample.name
        for old, new in zip(prompt.sections, sections, strict=True):
            assert (new.name, new.kind) == (old.name, old.kind), sample.name
            assert new.text == old.text or new.kind in ("input", "document"), sample.name


def test_an_answer_never_changes_so_some_code_stays_clean() -> None:
    """Renaming would have to go on in the solution that is shown, so that example is left alone;
    one whose solution has no such name is changed."""
    prefix = "def add_one(first_number):\n    "
    program = Program(prefix=prefix, tests="def check(f):\n    pass", entry_point="add_one")
    input_ = Section(name="input", kind="input", text=prefix)
    for target, becomes in (
        ("return first_number + 1", "return firstNumber + 1"),
        ("return 1 + 1", "return 1 + 1"),
    ):
        item = Prompt(sections=(input_,), target=target, program=program)
        assert apply_recipe("k", item, recipe_of("camel_case"), 0, 0).prompt.target == becomes
        (shown,) = perturb_demonstration("k", item, recipe_of("camel_case"), 0, 0)
        assert (shown == input_) is (target != becomes)
        assert ("firstNumber" in shown.text) is (target == becomes)


# Rewrites


def test_an_example_without_a_rewrite_stays_clean_and_is_counted(tmp_path: Path) -> None:
    """The bundled rewrites hold some of the examples: those are reworded, the others stay."""
    texts = {r.source: r.text for r in bundled_rewrites() if r.perturbation == "paraphrase_free"}
    experiment = of_basics("paraphrase_free", limit=264 - 20, demonstrations=20)
    with resolved_in(experiment, tmp_path / "none.db") as resolved:
        (row,) = demonstration_changes(resolved)
        _, made = variants(experiment)
        clean = variants(of_basics(limit=1, demonstrations=20, perturb=False))[0][0].prompt
    shown = next(v for v in made if v.status == "changed").prompt.demonstrations
    expected = [[texts.get(text, text) for text in one] for one in inputs(clean.demonstrations)]
    assert inputs(shown) == expected
    reworded = sum(a != b for a, b in zip(inputs(clean.demonstrations), expected, strict=True))
    assert 0 < reworded < 20
    assert (row.recipe, row.changed, row.shown) == ("paraphrase_free", reworded, 20)


def test_rewrites_of_examples_are_wanted_too(tmp_path: Path) -> None:
    """With a rewriter named they are missing like any other, and with them there a run starts
    with the real texts, not with the stand-ins that a plan is counted with."""
    experiment = of_basics("paraphrase_free", limit=4, rewriter="ann")
    with Store(tmp_path / "a.db") as store:
        with pytest.raises(PreflightError, match="9 of 9 rewrites"):
            falter.run(experiment, store=tmp_path / "a.db")
        planned = resolve(experiment, bank_for(experiment, store))
        needs = planned.rewrites
        assert needs is not None
        assert demonstration_changes(planned) == []  # nobody knows yet
        made = [hand_written(w, f"Put otherwise: {w.text}", "ann") for w in needs.wanted]
    resolved = resolve(experiment, MemoryBank(made))
    assert resolved.rewrites is not None
    resolved.rewrites.require()
    (panel,) = resolved.panels
    variant = panel.conditions[1].make(panel.items[0], 0)
    assert all(text.startswith("Put otherwise: ") for (text,) in inputs(_shown(variant)))
    assert "…" not in plain(variant.prompt)


def _shown(variant: Variant) -> tuple[Demonstration, ...]:
    return variant.prompt.demonstrations


def test_translations_do_their_own() -> None:
    """They put the examples, with their answers, into the language already."""
    assert not reaches_demonstrations(recipe_of("translate"))
    assert not reaches_demonstrations(recipe_of("typos+translate"))
    assert not reaches_demonstrations(recipe_of("crosslingual+casing"))
    assert not reaches_demonstrations(recipe_of("template_paraphrase"))
    assert reaches_demonstrations(recipe_of("template_paraphrase+casing"))


# From the file and the command line to the report


def test_there_have_to_be_demonstrations() -> None:
    """The setting without any is a mistake; a recipe that shows some is enough."""
    with pytest.raises(UsageError, match="no demonstrations to perturb"):
        resolve(of_basics("typos", demonstrations=0))
    experiment = of_basics("typos", "demonstrations+typos", demonstrations=0)
    baseline, plain_typos, few_shot = variants(experiment)
    assert not baseline[0].prompt.demonstrations and not plain_typos[0].prompt.demonstrations
    changed = next(v for v in few_shot if v.prompt.sections != baseline[0].prompt.sections)
    assert any(s.edits for d in changed.prompt.demonstrations for s in d.sections)


def test_what_has_no_answer_is_shown_as_no_example() -> None:
    """*None* would be read as the answer; nothing is planned, and the hint says what to do."""
    settings = {"task": "enterprise_chat", "demonstrations": 1, "recipes": ["casing"], "limit": 2}
    with pytest.raises(UsageError, match="cannot be shown as a solved example") as raised:
        variant_sets(read_experiment(settings, needs_models=False))
    assert "without examples" in (raised.value.hint or "")


def test_the_setting_is_true_or_false() -> None:
    with pytest.raises(InvalidValue, match="perturb_demonstrations is 'yes'; expected true or"):
        of_basics("typos", perturb=False, perturb_demonstrations="yes")


def test_a_run_keeps_and_shows_the_edits(tmp_path: Path) -> None:
    """Stored with the prompts, marked in the report's examples, and the drop is computed."""
    experiment = of_basics("casing", limit=120)
    result = falter.run(experiment, store=tmp_path / "a.db")
    with Store(tmp_path / "a.db") as store:
        cells = [c for c in store.cells(result.run) if c.variant.recipe.steps]
    assert all(any(s.edits for d in _shown(c.variant) for s in d.sections) for c in cells)
    (panel,) = result.analysis.panels
    assert panel.recipes[0].drop.value is not None
    example = panel.examples[0]
    edits = [part for part in example.segments if part.kind == "edit"]
    own_edits = sum(len(s.edits) for c in cells if c.variant.item.key == example.item
                    for s in c.variant.prompt.sections)  # fmt: skip
    assert len(edits) > own_edits
    assert "<mark" in html(result.study)


def test_plan_says_how_many_change(tmp_path: Path) -> None:
    """One row a recipe that reaches them, none where they stay clean."""

    def rows(resolved: Resolved) -> list[tuple[str, int, int]]:
        return [(row.recipe, row.changed, row.shown) for row in demonstration_changes(resolved)]

    recipes = ("typos", "persona", "symmetric_addition")
    assert rows(resolve(of_basics(*recipes))) == [("typos", 5, 5), ("symmetric_addition", 0, 5)]
    assert rows(resolve(of_basics(*recipes, perturb=False))) == []


def test_a_manifest_knows_it(tmp_path: Path) -> None:
    """The variants differ from those with clean examples, and are the same every time."""

    def ids(experiment: Experiment) -> list[str]:
        return [v.id for one in variant_sets(experiment) for v in one.variants()]

    on, off = of_basics("typos"), of_basics("typos", perturb=False)
    assert ids(on) == ids(on)
    assert len(set(ids(on)) & set(ids(off))) == 12  # the baseline's
