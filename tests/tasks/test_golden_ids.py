"""Ids that may not move: variants and requests of tasks that come with falter.

Those of the enterprise tasks are left out, since their items still change.
"""

from __future__ import annotations

import pytest

from falter.engine.config import identity_settings, read_experiment
from falter.engine.task_loading import load_task
from falter.perturbations import apply_recipe, perturbations
from falter.perturbations.configuration import SettingPerturbation
from falter.perturbations.recipes import resolve_step
from falter.records.ids import digest, short
from falter.records.render import request
from falter.records.types import BASELINE, Asking, Model, Prompt, Recipe, Sampling, Variant, Way
from falter.tasks.task import pick
from falter.testing.samples import CHATS, SAMPLES

LATER = {
    "chat_speak", "code_switch", "contrast", "document_noise", "drop_diacritics", "earlier_turns",
    "email_noise", "emoji", "formats", "html_paste", "negated", "other_entity", "other_number",
    "shifted_labels", "swap_names", "tool_extra", "tool_names", "without_tool",
}  # fmt: skip
"""Perturbations that came after these ids were taken."""
MODEL = Model(client="openai", name="some-model", base_url="http://localhost:1/v1")
ASKINGS: tuple[Asking, ...] = ("chat", "plain", "score")
SETTINGS = {
    "data": {"path": "memory:none", "target": "answer"},
    "template": "{question}",
    "models": ["simulated"],
    "recipes": ["typos"],
}
GOLDEN = {
    "basics": "a976cf500a8d73a4",
    "sums": "cec526540e6fa4ab",
    "functions": "13b46694e68057ea",
    "imdb_pairs": "b6ee375bddf3d074",
    "llmbar": "516ad186032a1ab9",
    "samples": "45f84a50d779f624",
}


def recipes() -> list[Recipe]:
    known = [perturbations.get(name) for name in perturbations.names() if name not in LATER]
    of_text = [p for p in known if not isinstance(p, SettingPerturbation) and not p.needs_model]
    steps = [resolve_step(p.name) for p in of_text]
    return [BASELINE, *(Recipe(label=step.name, steps=(step,)) for step in steps)]


def ids(task: str) -> str:
    loaded = load_task(task)
    found = [loaded.revision]
    for item in pick(loaded.items, 3, 0):
        for template in loaded.templates.values():
            clean = template.build(item)
            for recipe in recipes():
                applied = apply_recipe(item.key, clean, recipe, 0, 0)
                variant = Variant(
                    item=item, recipe=recipe, draw=0, prompt=applied.prompt, status=applied.status
                )
                found.append(variant.id)
                for asking in ASKINGS:
                    way = Way(asking=asking, sampling=Sampling())
                    found.append(request(variant, MODEL, way, 0).key)
    return short(digest("golden", found), 16)


def of_samples() -> str:
    prompts: list[Prompt] = [s.prompt for s in SAMPLES if s not in CHATS]
    return short(digest("golden", [prompt.identity() for prompt in prompts]), 16)


@pytest.mark.parametrize("task", GOLDEN)
def test_variants_and_requests_have_the_ids_that_they_had(task: str) -> None:
    assert (of_samples() if task == "samples" else ids(task)) == GOLDEN[task]


def test_the_settings_of_a_run_have_the_identity_that_they_had() -> None:
    settings = identity_settings(read_experiment(SETTINGS))
    assert short(digest("golden", settings), 16) == "110e5ea8f751dc17"
