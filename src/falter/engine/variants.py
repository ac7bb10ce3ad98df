"""The variants of an experiment without a run: to inspect, to check, or to publish."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from falter import __version__
from falter.analysis.cache import CachedEncoder, Cosine
from falter.analysis.meaning_checks import Rewording, meaning
from falter.analysis.results import Meaning
from falter.engine.conditions import conditions, hold_out
from falter.engine.config import Experiment
from falter.engine.recipes import recipes_of
from falter.engine.resolving import distinct
from falter.engine.scoring import task_scorers, template_for
from falter.engine.setting_types import StepSpec
from falter.engine.task_loading import load_tasks
from falter.perturbations.recipes import ADVICE, NOISE_FLOOR, Advice, traits_of
from falter.records.codec import from_json, to_json
from falter.records.errors import UsageError, refusal
from falter.records.ids import digest
from falter.records.interfaces import RewriteBank, Scorer
from falter.records.planning import Condition
from falter.records.types import Item, Prompt, Recipe, Variant
from falter.rewrites.bank import ledger_for, needs_from
from falter.tasks.task import Task
from falter.weights.downloads import MINILM, find_weights
from falter.weights.embedding import Encoder, minilm


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantSet:
    """A task's items under every recipe, with the template of one scorer."""

    task: Task
    scorer: Scorer
    items: tuple[Item, ...]
    conditions: tuple[Condition, ...]
    draws: int

    def variants(self) -> Iterator[Variant]:
        """Yield every variant, item by item."""
        for item in self.items:
            for condition in self.conditions:
                for draw in range(self.draws if condition.random else 1):
                    yield condition.make(item, draw)

    def rewordings(self) -> Iterator[tuple[Recipe, list[Rewording]]]:
        """Yield each recipe except the baseline, with every item's prompt before and after it.

        A recipe that only sets another template or number of examples is left out: its prompts are
        not changed versions of the baseline's.
        """
        base = self.conditions[0]
        for condition in self.conditions[1:]:
            if not condition.recipe.steps:
                continue
            yield (
                condition.recipe,
                [
                    Rewording(
                        item=item.key,
                        before=base.make(item, 0).prompt,
                        after=variant.prompt,
                        status=variant.status,
                    )
                    for item in self.items
                    for variant in (condition.make(item, 0),)
                ],
            )


def variant_sets(experiment: Experiment, bank: RewriteBank | None = None) -> list[VariantSet]:
    """Return one set for each task, or several if its scorers use different templates.

    The scorers are the experiment's, otherwise the task's. Raises if a rewrite is missing.
    """
    ledger = ledger_for(recipes_of(experiment), bank)
    sets = open_sets(experiment, ledger)
    if ledger is not None:
        asks = experiment.rewriter is not None
        needs_from(ledger, [(s.items, s.conditions, s.draws) for s in sets], asks=asks).require()
    return sets


def open_sets(experiment: Experiment, bank: RewriteBank | None) -> list[VariantSet]:
    """Return the sets of `variant_sets`, even if the rewrite store lacks rewrites."""
    recipes = recipes_of(experiment)
    distinct([r.id for r in recipes], [r.label for r in recipes], what="recipe")
    loaded = load_tasks(experiment)
    sets = []
    for n, task in enumerate(loaded):
        templates = []
        for scorer in task_scorers(experiment, loaded, n):
            template = template_for(task, scorer)
            if template not in templates:
                templates.append(template)
                held_out, items = hold_out(task, experiment, recipes)
                made = conditions(experiment, task, scorer, recipes, held_out, bank)
                sets.append(VariantSet(task=task, scorer=scorer, items=items, conditions=made,
                                       draws=experiment.draws))  # fmt: skip
    return sets


# The meaning check, with the encoder if it is installed


def encoder_if_there() -> Cosine | None:
    """Return the sentence encoder if its extra and its weights are installed; download nothing."""
    installed = all(importlib.util.find_spec(name) for name in ("onnxruntime", "tokenizers"))
    if not installed or find_weights(MINILM) is None:
        return None
    versions = [importlib.metadata.version(name) for name in ("onnxruntime", "tokenizers")]
    return CachedEncoder(Encoder.name, " ".join([MINILM.sha256, *versions]), minilm)


def meaning_of(rewordings: Sequence[Rewording], **about: Any) -> Meaning:
    """Return the result of `meaning`, with cosines if the encoder is installed."""
    return meaning(rewordings, encoder=encoder_if_there(), **about)


# Recommended recipes: each recipe is tried on some prompts of a task


SAMPLE_ITEMS = 25
"""Maximum number of items whose prompts are inspected."""
MIN_CHANGED_SHARE = 0.2  # of the prompts that a recipe has to change to be proposed


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A recipe tried on some prompts, with the number of prompts that it changed.

    `lost` counts the prompts that fail a meaning check, by the name of the check.
    """

    recipe: str
    trait: str
    why: str
    prompts: int
    changed: int
    lost: dict[str, int]

    @property
    def worth_it(self) -> bool:
        """True if the recipe changes enough prompts to measure its effect."""
        return self.changed >= MIN_CHANGED_SHARE * self.prompts


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProposals:
    """The proposed recipes for one task with one template."""

    task: str
    scorer: str
    traits: tuple[str, ...]
    proposals: tuple[Proposal, ...]

    @property
    def chosen(self) -> tuple[str, ...]:
        """The recipes worth running, each once, with the noise floor."""
        names = [proposal.recipe for proposal in self.proposals if proposal.worth_it]
        return (*dict.fromkeys(names), NOISE_FLOOR)


def proposals(experiment: Experiment) -> list[TaskProposals]:
    """Return the proposed recipes for each task of an experiment; its own recipes are ignored."""
    looked_at = min(experiment.limit or SAMPLE_ITEMS, SAMPLE_ITEMS)
    names = tuple(dict.fromkeys(name for advice in ADVICE for name in advice.recipes))
    recipes: tuple[tuple[StepSpec, ...], ...] = tuple(((name, {}),) for name in names)
    trial = replace(experiment, recipes=recipes, grid=None, limit=looked_at, draws=1)
    return [_set_proposals(one) for one in variant_sets(trial)]


def _set_proposals(one: VariantSet) -> TaskProposals:
    """Return the proposals for a set: the recipes that fit the traits common among its prompts."""
    base = one.conditions[0]
    traits = Counter(trait for item in one.items for trait in traits_of(base.make(item, 0).prompt))
    common = [
        advice for advice in ADVICE if traits[advice.trait] >= MIN_CHANGED_SHARE * len(one.items)
    ]
    tried = {recipe.label: rewordings for recipe, rewordings in one.rewordings()}
    advised: dict[str, Advice] = {}
    for advice in common:
        for name in advice.recipes:
            advised.setdefault(name, advice)
    return TaskProposals(
        task=one.task.name,
        scorer=one.scorer.name,
        traits=tuple(advice.trait for advice in common),
        proposals=tuple(_proposal(a, name, tried[name]) for name, a in advised.items()),
    )


def _proposal(advice: Advice, name: str, tried: Sequence[Rewording]) -> Proposal:
    """Return a recipe with its effect on the prompts that it was tried on."""
    found = meaning(tried, task="", recipe=name, group="")
    return Proposal(
        recipe=name,
        trait=advice.trait,
        why=advice.why,
        prompts=found.texts,
        changed=found.changed,
        lost={check: count for check, count in found.lost.items() if count},
    )


# The manifest: one line for each variant of a set, so that others can verify their variants


FORMAT = 1


def manifest_lines(
    sets: Iterable[VariantSet], experiment: Experiment, *, prompts: bool = False
) -> Iterator[str]:
    """Yield the manifest: a header, a line for each variant, and a footer with the hash of all.

    With `prompts`, every line has its prompt, so that the set can be used without falter.
    """
    header = {
        "falter_manifest": FORMAT,
        "version": __version__,
        "seed": experiment.seed,
        "draws": experiment.draws,
    }
    lines = [_dump(header)]
    yield lines[0]
    identities = [digest("line", lines[0])]
    for variant_set in sets:
        for variant in variant_set.variants():
            line = _dump(_manifest_row(variant_set, variant, prompts))
            identities.append(digest("line", line))
            yield line
    yield _dump({"variants": len(identities) - 1, "digest": digest("manifest", identities)})


def _manifest_row(variant_set: VariantSet, variant: Variant, prompts: bool) -> dict[str, Any]:
    """Return a variant's line as plain data."""
    row: dict[str, Any] = {
        "task": variant_set.task.name,
        "scorer": variant_set.scorer.name,
        "item": variant.item.key,
        "item_id": variant.item.id,
        "recipe": variant.recipe.label,
        "recipe_id": variant.recipe.id,
        "draw": variant.draw,
        "status": variant.status,
        "id": variant.id,
    }
    return {**row, "prompt": to_json(variant.prompt)} if prompts else row


def _dump(row: Mapping[str, Any]) -> str:
    """Return a row as compact JSON."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def verify_manifest(
    path: Path, experiment: Experiment | None, bank: RewriteBank | None
) -> list[str]:
    """Return the faults of a manifest in words; an empty list if there are none.

    The manifest's own hash is recomputed, and the id of each variant whose line has a prompt. With
    an experiment, its variants are generated again and compared one by one.
    """
    lines = _manifest_lines(path)
    problems = list(_line_faults(lines))
    rows = [json.loads(line) for line in lines[1:-1]]
    problems += [
        f"{_row_name(row)}: the prompt does not match the id"
        for row in rows
        if "prompt" in row and not _has_its_id(row)
    ]
    if experiment is not None:
        problems += _differences(rows, experiment, bank)
    return problems


def _manifest_lines(path: Path) -> list[str]:
    """Return the lines of a manifest; raise `UsageError` if the file is not one."""
    try:
        lines = path.read_text("utf-8").splitlines()
        header = json.loads(lines[0])
    except (OSError, UnicodeDecodeError, ValueError, IndexError) as error:
        raise refusal(UsageError, "engine.unreadable_manifest", path=path, error=error) from error
    if not isinstance(header, dict) or header.get("falter_manifest") != FORMAT or len(lines) < 2:
        raise refusal(UsageError, "engine.no_manifest", path=path)
    return lines


def _line_faults(lines: list[str]) -> Iterator[str]:
    """Yield the faults of the lines; raise `UsageError` if lines are missing or unreadable."""
    try:
        footer = json.loads(lines[-1])
        rows = [json.loads(line) for line in lines[1:-1]]
        complete = footer["variants"] == len(rows) and all("id" in row for row in rows)
    except (ValueError, KeyError, TypeError):
        complete = False
    if not complete:
        raise refusal(UsageError, "engine.damaged_manifest")
    if digest("manifest", [digest("line", line) for line in lines[:-1]]) != footer["digest"]:
        yield "the manifest does not match its own hash: a line was changed"


def _has_its_id(row: Mapping[str, Any]) -> bool:
    """Return True if a line's prompt and ids give the variant's id."""
    prompt = from_json(Prompt, row["prompt"])
    parts = (row["item_id"], row["recipe_id"], row["draw"], row["status"], prompt.identity())
    return bool(digest("variant", *parts) == row["id"])


def _differences(
    rows: list[dict[str, Any]], experiment: Experiment, bank: RewriteBank | None
) -> Iterator[str]:
    """Yield the variants that differ between the manifest and an experiment."""
    theirs = {_row_key(row): row for row in rows}
    for variant_set in variant_sets(experiment, bank):
        for variant in variant_set.variants():
            row = _manifest_row(variant_set, variant, prompts=False)
            other = theirs.pop(_row_key(row), None)
            if other is None:
                yield f"{_row_name(row)}: not in the manifest"
            elif other["id"] != row["id"]:
                yield f"{_row_name(row)}: a different variant ({_reason(row, other)})"
    yield from (f"{_row_name(row)}: only in the manifest" for row in theirs.values())


def _reason(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    """Return the first part in which two variants differ: item, recipe, status or prompt."""
    for name, what in (("item_id", "item"), ("recipe_id", "recipe"), ("status", "status")):
        if ours[name] != theirs.get(name):
            return f"a different {what}"
    return "the prompt differs"


def _row_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the values that identify a line: task, scorer, item, recipe and draw."""
    return tuple(row.get(name) for name in ("task", "scorer", "item", "recipe", "draw"))


def _row_name(row: Mapping[str, Any]) -> str:
    """Return the name of a line for messages."""
    return f"{row.get('task')} {row.get('item')} {row.get('recipe')} draw {row.get('draw')}"
