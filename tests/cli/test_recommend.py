"""What is proposed for a task, and the note where answers stand in their own items."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner

from falter.analysis.meaning_checks import MEANING_CHECKS, Rewording, meaning
from falter.cli.app import cli
from falter.engine.config import read_experiment
from falter.engine.variants import proposals
from falter.perturbations import perturbations
from falter.perturbations.recipes import ADVICE, traits_of
from falter.records.rng import Rng
from falter.records.types import Prompt, Section
from falter.testing.samples import SAMPLES

TRAITS = {sample.name: traits_of(sample.prompt) for sample in SAMPLES}


def test_traits_of_prompts() -> None:
    """Options, labels, documents, examples, code and sums are seen where they are."""
    assert {"prose", "options", "instruction", "sentences"} <= TRAITS["prose"]
    assert "labels" in TRAITS["many options"] and "labels" not in TRAITS["prose"]
    assert "rules" in TRAITS["many options"] and "examples" in TRAITS["listed few-shot"]
    assert {"documents", "rules"} <= TRAITS["documents"] and "expressions" in TRAITS["maths"]
    assert not TRAITS["no section"] and "prose" not in TRAITS["empty"]
    tool = '{"name": "weather", "parameters": {"type": "object"}}'
    with_tool = Prompt(sections=(Section(name="s", kind="system", text=tool),))
    assert traits_of(with_tool) == {"tools"}


def test_advice_names_what_is_there() -> None:
    """Every recipe of the advice is registered, and every trait has one."""
    named = {name for advice in ADVICE for name in advice.recipes}
    assert named <= set(perturbations.names())
    assert all(advice.recipes and advice.why.endswith(".") for advice in ADVICE)
    assert len({advice.trait for advice in ADVICE}) == len(ADVICE)


def test_proposals() -> None:
    """What changes hardly a prompt is tried and not proposed; the noise floor always is."""
    settings = {"task": "basics", "scorer": "choice_letter", "limit": 10}
    (one,) = proposals(read_experiment(settings, needs_models=False))
    assert one.traits[:3] == ("prose", "options", "labels") and one.chosen[-1] == "identity"
    assert {"casing", "shuffle_choice_order", "role_placement"} <= set(one.chosen)
    tried = {p.recipe: p for p in one.proposals}
    assert tried["casing"].changed == tried["casing"].prompts == 10
    assert not tried["relabel_choices"].lost and "camel_case" not in tried


def test_answers_that_stand_in_their_items(tmp_path: Path) -> None:
    """The plan says how many, and which recipe would change one; the command proposes recipes."""
    rows = [
        {
            "text": "The town was founded by fishermen, and they did not leave.",
            "answer": "fishermen",
        },
        {"text": "We met at the station, where Anna Berg sold tickets.", "answer": "Anna Berg"},
        {"text": "Nothing of the kind happened here.", "answer": "unknown"},
    ]
    data, template = tmp_path / "d.jsonl", tmp_path / "t.txt"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    template.write_text("Who is named?\n{text}\nName:")
    task = ["--data", str(data), "--template", str(template), "--target", "answer"]
    recipes = ["-r", "typos", "-r", "replace_spaces", "--store", str(tmp_path / "s.db")]
    plan = CliRunner().invoke(cli, ["plan", *task, "--model", "simulated", *recipes])
    assert "2 of the 3 items of d that were checked" in plan.output
    assert "but replace_spaces (1 of 2) would change it" in plan.output
    done = CliRunner().invoke(cli, ["recommend", *task])
    assert done.exit_code == 0 and "add to 'falter run': -r " in done.output
    kinds = ("bill", "code") * 2
    data.write_text(
        "".join(
            json.dumps({"text": f"{n}: a bill", "answer": kind}) + "\n"
            for n, kind in enumerate(kinds)
        )
    )
    template.write_text("A bill or a code?\n{text}\nKind:")
    plan = CliRunner().invoke(cli, ["plan", *task, "--model", "simulated", *recipes])
    assert plan.exit_code == 0 and "looked at" not in plan.output


def test_the_check_finds_a_lost_and_an_added_answer() -> None:
    """An answer that is gone from the text, or comes into it, is named; options do not count."""
    before = Prompt(
        sections=(
            Section(name="q", kind="input", text="Is Bern or Basel the capital?"),
            Section(name="c", kind="choices", text="\nA. Bern\nB. Basel"),
        ),
        choices=("Bern", "Basel"),
        labels=("A", "B"),
        target=0,
    )

    def lost(text: str) -> tuple[tuple[str, str], ...]:
        after = before.with_sections(
            (Section(name="q", kind="input", text=text), before.sections[1])
        )
        row = Rewording(item="1", before=before, after=after, status="changed")
        found = meaning([row], task="t", recipe="r", group="g")
        return tuple((check, text) for _, check, text in found.failing if check == "target")

    assert MEANING_CHECKS[-1] == "target" and lost("Is Bern or Basel the capital, say?") == ()
    assert lost("Is Born or Basel the capital?") == (("target", "Bern"),)
    assert lost("Bern it is. Is Bern or Basel the capital?") == (("target", "+Bern"),)


def test_other_labels_of_the_same_options_are_no_loss() -> None:
    """`A` becomes `1` by declaration; a number that the question loses is found all the same."""
    before = Prompt(
        sections=(
            Section(name="q", kind="input", text="Which is 12 less 3?\n"),
            Section(name="c", kind="choices", text="A. 9\nB. 15\n"),
        ),
        choices=("9", "15"),
        labels=("A", "B"),
        target=0,
    )
    after = perturbations.get("relabel_choices")(before, Rng(0), labels="digits")

    def lost(changed: Prompt) -> dict[str, int]:
        one = Rewording(item="sum", before=before, after=changed, status="changed")
        counts = meaning([one], task="sums", recipe="relabel_choices", group="g").lost
        return {check: count for check, count in counts.items() if count}

    assert after.labels == ("1", "2") and lost(after) == {}
    without = replace(after.sections[0], text="Which is less 3?\n")
    assert lost(after.with_sections((without, *after.sections[1:])))["number"] == 1
