"""`falter gate` and `falter baseline` on the example's router: each verdict with what it leaves."""

from __future__ import annotations

import json
import random
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from falter.cli.app import invoke
from falter.gate.baseline import read_baseline, save_baseline, write_baseline
from falter.gate.build_servers import junit
from falter.gate.figures import gate_study
from falter.gate.preparation import Infeasible, keyword_gate, read_gate
from falter.gate.run import _GateRun, run_gate
from falter.records.errors import UsageError
from falter.report.forms.data import as_csv
from falter.report.forms.latex import as_latex
from falter.report.forms.markdown import as_markdown
from falter.report.page import html

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "router"
LENIENT = "People type in a hurry: read a misspelled word as the word it looks like.\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the example to work in, whose router is imported anew."""
    place = tmp_path / "router"
    shutil.copytree(EXAMPLE, place, ignore=shutil.ignore_patterns("*.db*", "__pycache__"))
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(place)
    monkeypatch.delenv("FALTER_STORE", raising=False)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    _forget()
    yield place
    _forget()


def _forget() -> None:
    for name in ("router", "model"):
        sys.modules.pop(name, None)


def break_prompt(folder: Path) -> None:
    """Somebody tidies the prompt up and drops the sentence about slips."""
    prompt = folder / "prompt.txt"
    assert LENIENT in prompt.read_text("utf-8")
    prompt.write_text(prompt.read_text("utf-8").replace(LENIENT, ""), "utf-8")
    _forget()


def changed(folder: Path, name: str, gate: dict[str, Any], **settings: Any) -> str:
    """Another gate file beside the example's."""
    whole = yaml.safe_load((folder / "robustness.yaml").read_text("utf-8"))
    (folder / name).write_text(yaml.safe_dump({**whole, **settings, "gate": gate}), "utf-8")
    return name


def gate(*arguments: str) -> int:
    return invoke(["gate", *arguments, "--allow-code"])


def cases(path: Path) -> dict[str, str]:
    """Return the outcome of every case of a JUnit file: passed, failure, skipped or error."""
    root = ElementTree.parse(path).getroot()
    assert root.tag == "testsuites"
    found = {}
    for suite in root:
        kinds = []
        for case in suite.findall("testcase"):
            assert {"name", "classname", "time"} <= set(case.attrib)
            inner = [child.tag for child in case if child.tag != "system-out"]
            found[case.attrib["name"]] = inner[0] if inner else "passed"
            kinds += inner
        assert int(suite.attrib["tests"]) == len(suite.findall("testcase"))
        assert int(suite.attrib["failures"]) == kinds.count("failure")
        assert int(suite.attrib["skipped"]) == kinds.count("skipped")
        assert int(suite.attrib["errors"]) == kinds.count("error")
    return found


# The four outcomes


def test_green_on_a_good_prompt(folder: Path, tmp_path: Path, capsys: Any) -> None:
    """Exit code 0, every case passes, and a second run makes no call."""
    arguments = ("robustness.yaml", "--against", "main.baseline", "--junit", "g.xml")
    assert gate(*arguments) == 0
    assert set(cases(folder / "g.xml").values()) == {"passed"}
    assert len(cases(folder / "g.xml")) == 11
    summary = (tmp_path / "summary.md").read_text("utf-8")
    assert "Gate passed. Of 11 criteria: 11 pass." in summary
    assert "Outcomes that flip when the same prompt is sent again" in summary
    capsys.readouterr()
    assert gate("robustness.yaml", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["verdict"], said["calls_sent"], len(said["lines"])) == ("pass", 0, 7)
    # Saved by hand, it is the baseline that lies there, and nothing writes over one by itself.
    assert invoke(["baseline", "save", "-o", "now.baseline"]) == 0
    kept = (folder / "main.baseline").read_text("utf-8")
    assert (folder / "now.baseline").read_text("utf-8") == kept
    assert invoke(["baseline", "save", "-o", "now.baseline"]) == 2


def test_red_on_a_broken_prompt(
    folder: Path, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 3; case, annotation and comment say how much and how sure, with three answers."""
    break_prompt(folder)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    arguments = ("--against", "main.baseline", "--junit", "g.xml", "--comment", "c.md")
    assert gate("robustness.yaml", *arguments) == 3
    output = capsys.readouterr()
    found = cases(folder / "g.xml")
    assert found["typos(count=2)"] == "failure"
    assert found["typos(count=2), regression"] == "skipped"  # 10 points cannot be excluded
    assert found["punctuation_spaces"] == "passed"
    failure = ElementTree.parse(folder / "g.xml").getroot().find(".//failure")
    assert failure is not None and failure.text is not None
    assert re.fullmatch(
        r"typos\(count=2\): the score falls by \d+\.\d points, between \d+\.\d and \d+\.\d; "
        r"the limit is 10\.0 points\. \d+ of 200 items got worse, \d better\.",
        failure.attrib["message"],
    )
    assert failure.text.count("\n  expected: ") == 3
    assert "::error title=falter gate%3A typos(count=2)::fail: typos" in output.err
    assert "Gate failed." in (folder / "c.md").read_text("utf-8")
    assert "Gate failed." in (tmp_path / "summary.md").read_text("utf-8")


def test_undecided_with_too_few_items(folder: Path, tmp_path: Path) -> None:
    """Exit code 4 and a skipped case that says how many more; 0 where that is allowed."""
    few = {"max_drop": 9, "looks": 1}
    recipes = ["space_sequences"]
    name = changed(folder, "few.yaml", few, limit=90, recipes=recipes)
    assert gate(name, "--junit", "g.xml") == 4
    assert cases(folder / "g.xml") == {"space_sequences": "skipped"}
    text = (folder / "g.xml").read_text("utf-8")
    assert "more items" in text and "calls" in text
    assert "is undecided" in (tmp_path / "summary.md").read_text("utf-8")
    for policy, kind in (("neutral", "skipped"), ("pass", "passed")):
        name = changed(folder, f"{policy}.yaml", {**few, "undecided": policy}, limit=90,
                       recipes=recipes)  # fmt: skip
        assert gate(name, "--junit", "g.xml") == 0
        assert cases(folder / "g.xml") == {"space_sequences": kind}


def test_refused_as_infeasible_before_anything_is_sent(folder: Path, capsys: Any) -> None:
    """Exit code 2 with the numbers; no store, no file. The plan says the same."""
    name = changed(folder, "narrow.yaml", {"max_drop": 2, "looks": 1}, recipes=["typos"])
    assert gate(name, "--junit", "g.xml") == 2
    said = capsys.readouterr().err
    sentence = (
        "200 items are too few for a 2-point margin; about 1,546 are needed. The smallest margin "
        "that they can show is 5.6 points"
    )
    assert sentence in said
    assert not (folder / "falter.db").exists() and not (folder / "g.xml").exists()
    assert gate("--plan", name) == 2
    assert sentence in " ".join(capsys.readouterr().out.split())
    assert gate("--plan", "robustness.yaml") == 0
    assert not (folder / "falter.db").exists()


# The baseline


def test_a_baseline_is_text_that_reads_in_a_review(capsys: Any) -> None:
    """A line for each item, its outcomes in a row, and the scores above for whoever reads it."""
    path = EXAMPLE / "main.baseline"
    assert "\nticket-001 1111\n" in path.read_text("utf-8")
    read = read_baseline(path)
    assert len(read.rows) == 200 and read.rows["ticket-001"] == ("1", "1", "1", "1")
    assert read.flips == (0, 10)
    assert invoke(["baseline", "show", str(path)]) == 0
    assert "83.0" in capsys.readouterr().out


def test_ten_thousand_cells_are_some_kilobytes(tmp_path: Path) -> None:
    """And any key, score and outcome comes back as it was written."""
    rng = random.Random(0)
    kinds = "01AYutr-."
    keys = ["with space", '"quoted"', "#hash", "-dash", "zwölf\u2028", "", "---"]
    keys += [f"item-{n}" for n in range(1_243)]
    conditions = tuple((f"r{n}", f"sha256:{n:064d}") for n in range(8))
    made = replace(
        read_baseline(EXAMPLE / "main.baseline"),
        conditions=conditions,
        rows={key: tuple(rng.choice(kinds) for _ in conditions) for key in keys},
        path="",
    )
    path = tmp_path / "big.baseline"
    write_baseline(made, path)
    assert read_baseline(path) == made
    assert path.stat().st_size < 30_000
    twice = replace(made, draws=2, rows={"a": ("10",) * 8, "b": ("u.",) * 8})
    write_baseline(twice, path)
    assert read_baseline(path) == twice
    assert read_baseline(path).scores(["a", "b", "c"], 0, strict=True)[:2].tolist() == [0.5, 0.0]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("ticket-001 1", "ticket-001 ", "has not one outcome for each condition"),
        ("ticket-002 ", "ticket-001 ", "names an item twice"),
        ("items: 200", "items: 199", "has 200 items and says 199"),
        ("format: 1", "format: 2", "its format is 2"),
        ("---", "", "is not a baseline file"),
        ("seed: 0", "seed: 1", "has the seed 1, this gate 0"),
        ("ticket-001 ", "ticket-x01 ", "has 1 items that the data lack"),
        ("manifest: sha256:", "manifest: sha256:0", "is of other items"),
    ],
)
def test_a_baseline_that_does_not_fit_is_refused(
    folder: Path, before: str, after: str, said: str
) -> None:
    """With what is wrong, and nothing sent."""
    path = folder / "main.baseline"
    text = path.read_text("utf-8")
    assert before in text
    path.write_text(text.replace(before, after, 1), "utf-8")
    settings = yaml.safe_load((folder / "robustness.yaml").read_text("utf-8"))

    def run() -> None:
        run_gate(read_gate(settings, against=path), folder / "falter.db")

    with pytest.raises(UsageError) as caught:
        run()
    assert said in str(caught.value)
    assert not (folder / "falter.db").exists()


# Simulated models: budgets, another version, what is missing


def simulated(tmp_path: Path, **gate: Any) -> dict[str, Any]:
    options = {"interaction_sd": 0.0, "effects": {"persona": 0.0}}
    return {
        "task": "basics",
        "models": {"name": "simulated", "options": options},
        "recipes": ["persona"],
        "gate": {"max_drop": 10, "looks": 1, **gate},
    }


def test_a_budget_bounds_the_items_whether_or_not_they_are_stored(tmp_path: Path) -> None:
    """So that a rerun decides alike; a budget that is too small is infeasible."""
    settings = simulated(tmp_path, budget={"calls": 250})
    first = run_gate(read_gate(settings), tmp_path / "s.db")
    again = run_gate(read_gate(settings), tmp_path / "s.db")
    assert first.items <= 250 / 2.05 and first.calls <= 250
    assert (again.items, again.calls, again.verdict) == (first.items, 0, first.verdict)
    with pytest.raises(Infeasible, match="the budget allows 48 of 264 items"):
        run_gate(read_gate(simulated(tmp_path, budget={"calls": 100})), tmp_path / "s.db")
    with pytest.raises(UsageError, match=r"budget\.usd needs"):
        run_gate(read_gate(simulated(tmp_path, budget={"usd": 1})), tmp_path / "s.db")


def test_a_spent_budget_is_noted_only_if_it_left_a_criterion_undecided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_GateRun, "_is_spent", True)
    notes = {}
    for margin in (60, 8):
        settings = simulated(tmp_path, max_drop=margin, looks=4)
        result = run_gate(read_gate(settings), tmp_path / "s.db")
        assert result.look == 1
        notes[result.verdict] = " ".join(result.notes)
    assert notes.keys() == {"pass", "undecided"}
    assert "the budget is spent" in notes["undecided"]
    assert "budget" not in notes["pass"]


def test_another_file_is_asked_beside_this_one(tmp_path: Path) -> None:
    """Both versions' answers come from now; the worse one fails."""
    old = simulated(tmp_path)
    (tmp_path / "old.yaml").write_text(yaml.safe_dump(old), "utf-8")
    new = simulated(tmp_path, max_regression=10)
    new["models"]["options"] = {**new["models"]["options"], "mean": -0.6}
    result = run_gate(read_gate(new, against=tmp_path / "old.yaml"), tmp_path / "s.db")
    verdicts = {line.name: line.verdict for line in result.lines}
    assert verdicts == {
        "persona": "pass", "clean prompt, regression": "fail", "persona, regression": "fail",
    }  # fmt: skip
    keyed = {
        "models": {
            "name": "openai:m",
            "base_url": "http://localhost/v1",
            "api_key_env": "A_API_KEY",
        }
    }
    (tmp_path / "keyed.yaml").write_text(yaml.safe_dump({**old, **keyed}), "utf-8")
    with pytest.raises(UsageError, match="the key in A_API_KEY"):
        read_gate(new, against=tmp_path / "keyed.yaml")
    read_gate(new, against=tmp_path / "keyed.yaml", env=["A_API_KEY"])
    same = read_gate({**old, "gate": new["gate"]}, against=tmp_path / "old.yaml")
    with pytest.raises(UsageError, match="are the same"):
        run_gate(same, tmp_path / "s.db")


def test_another_provider_makes_a_regression_undecided(tmp_path: Path) -> None:
    """Not a failure: nobody knows whether it is the version or the host."""
    run_gate(read_gate(simulated(tmp_path)), tmp_path / "s.db")
    path = tmp_path / "main.baseline"
    save_baseline(tmp_path / "s.db", None, path)
    new = simulated(tmp_path, max_regression=10)
    new["models"]["options"] = {**new["models"]["options"], "mean": -0.6}

    def verdict() -> str:
        result = run_gate(read_gate(new, against=path), tmp_path / "s.db")
        return {line.name: line.verdict for line in result.lines}["clean prompt, regression"]

    assert verdict() == "fail"
    text = path.read_text("utf-8")
    path.write_text(text.replace('served by: ["simulated"]', 'served by: ["elsewhere"]'), "utf-8")
    assert verdict() == "undecided"


def test_every_form_has_the_gate(tmp_path: Path) -> None:
    """Its table is a figure like any other, and its numbers carry their signature."""
    result = run_gate(read_gate(simulated(tmp_path, min_score=30)), tmp_path / "s.db")
    study = gate_study(result)
    for text in (as_markdown(study), as_latex(study), html(study)):
        assert "Criteria of the gate" in text and "persona" in text
    assert "gate.drop" in as_csv(study) and result.signature in as_csv(study)
    assert "looks 1, O'Brien-Fleming, at most 264 items" in result.signature


def test_results_of_other_tools_are_decided(tmp_path: Path, capsys: Any) -> None:
    """An Inspect log against an earlier one; promptfoo's prompts; a failed answer; a failed log."""
    logs = Path(__file__).parents[1] / "data" / "logs" / "doubling"
    file = tmp_path / "gate.yaml"
    file.write_text("gate: {min_score: 60, max_regression: 30}")

    def decided(results: str, *more: str) -> int:
        return gate(str(file), "--results", str(logs / results), *more)

    before = str(logs / "inspect" / "before.eval")
    junit_file = str(tmp_path / "g.xml")
    assert decided("inspect/after.eval", "--against", before, "--junit", junit_file) == 0
    assert set(cases(Path(junit_file)).values()) == {"passed"}
    assert "Held against" in capsys.readouterr().out
    assert decided("inspect/before.eval", "--against", str(logs / "inspect" / "after.eval")) == 4
    assert "the score is 50.0 points below the baseline's, between " in " ".join(
        capsys.readouterr().out.split()
    )
    file.write_text("gate: {max_drop: 5}")
    assert decided("promptfoo/both.json") == 2
    assert "name the clean prompt: --baseline 'before'" in capsys.readouterr().err
    assert decided("promptfoo/both.json", "--baseline", "before") == 1
    assert "2 of 24 answers failed or have no score" in " ".join(capsys.readouterr().out.split())
    assert decided("inspect/failed.eval") == 2
    assert "failed: RuntimeError('the server answered 503')" in capsys.readouterr().err
    assert decided("inspect/after.eval") == 2
    assert "max_drop needs a condition besides the clean prompt" in capsys.readouterr().err
    file.write_text("gate: {max_regression: 5}")
    assert decided("inspect/after.eval") == 2
    strange = tmp_path / "other.csv"
    strange.write_text("model,task,item,score\nm,doubling,x,1\nm,doubling,y,0\n")
    assert decided("inspect/after.eval", "--against", str(strange)) == 2
    assert "have no item in common" in capsys.readouterr().err


def flaky(prompt: str) -> str:
    if "a" in prompt[-12:]:
        raise RuntimeError("no <answer> \x00 today")
    return "yes"


@pytest.mark.parametrize(("kinds", "code"), [("abbbbbbbbbbb", 1), ("ab", 4)])
def test_missing_answers_leave_a_gate_incomplete(tmp_path: Path, kinds: str, code: int) -> None:
    """Exit code 1, and the reason; above a tenth 4, and no criterion has a verdict or a number."""
    rows = [{"q": f"Is it {n} {kinds[n % len(kinds)]}?", "a": "yes"} for n in range(60)]
    data = tmp_path / "d.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    wanted = keyword_gate(
        {"data": "d.jsonl", "target": "a", "template": "{q}", "model": flaky, "scorer": "exact",
         "recipes": ["punctuation_spaces"], "max_drop": 30, "looks": 1},
        folders=[tmp_path],
    )  # fmt: skip
    result = run_gate(wanted, tmp_path / "s.db")
    assert result.failed > 0 and result.exit_code == code and not result.passed
    counts_alone = [(line.verdict, line.value, line.high) for line in result.lines]
    assert (counts_alone == [("undecided", None, None)]) == (code == 4)
    assert ("Undecided: too many requests failed." in str(result)) == (code == 4)
    (tmp_path / "g.xml").write_bytes(junit(result))
    assert cases(tmp_path / "g.xml")["all answers"] == "error"
    assert "no <answer>" in result.failed_text


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"gate": None}, "says nothing of what must hold"),
        ({"gate": {}}, "has no criterion"),
        ({"gate": {"max_drop": {"typo": 5}}}, "Unknown recipe of max_drop 'typo'"),
        ({"gate": {"max_drop": 5, "cluster": "customer"}}, "but the items have no such tag"),
        ({"gate": {"max_regression": 5}}, "needs a version to compare with"),
        ({"models": ["simulated", "simulated:b"]}, "needs one model on one task"),
        ({"recipes": ["identity"]}, "has no recipe that changes a prompt"),
        ({"protocol": "brittlebench", "recipes": None}, "not a protocol"),
        ({"gate": {"max_drop": 0}}, "gate.max_drop is 0"),
        ({"gate": {"max_drop": 5, "looks": 7}}, "gate.looks is 7; expected a whole number from 1"),
        ({"gate": {"max_drop": 5, "looks": "anytime"}}, "plan 1 to 6 looks, as in 'gate: {looks"),
    ],
)
def test_bad_usage_is_said_before_anything_is_sent(
    tmp_path: Path, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        run_gate(read_gate({**simulated(tmp_path), **settings}), tmp_path / "s.db")
    assert said in str(caught.value)
    assert not (tmp_path / "s.db").exists()
