"""Runs over conversations: what is kept, what is noticed, and the word for both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import falter
from falter.measures.keeps_and_reads import KeepsAndReads, keeps_and_reads
from falter.records.errors import UsageError
from routers import ROUTERS, TOOLS, constant, deaf_to_not, exact, rows


def keeping(panel: Any) -> KeepsAndReads:
    found = panel.keeping
    assert isinstance(found, KeepsAndReads)
    return found


def noticed(panel: Any, label: str) -> float | None:
    (found,) = (c for c in keeping(panel).conditions if c.label == label)
    return found.share.value


def test_six_functions_get_the_words_that_they_deserve(tmp_path: Path) -> None:
    """60 items are about the fewest whose interval is clear of 90 %: hence its 3,000 answers."""
    result = falter.run(
        data={"rows": rows(60), "target": "target"},
        models=list(ROUTERS.values()),
        recipes=["tools", "controls"],
        store=str(tmp_path / "falter.db"),
    )
    panels = dict(zip(ROUTERS, result.analysis.panels, strict=True))
    words = {name: keeping(panel).word for name, panel in panels.items()}
    assert words == {
        "exact": "robust", "constant": "deaf", "brittle": "brittle", "die": "erratic",
        "bound": "erratic", "deaf_to_not": "robust",
    }  # fmt: skip
    assert noticed(panels["bound"], "tool_names") == 0.0
    assert [c.label for c in keeping(panels["deaf_to_not"]).deaf_to] == ["negated"]
    assert all(recipe.label not in CONTROLS for p in panels.values() for recipe in p.recipes)
    told = " ".join(result.summary().split())
    assert "It does not notice: negated, noticed in 0 of" in told
    assert "Deaf, not robust: under 3 harmless changes" in told


CONTROLS = ("contrast", "negated", "other_number", "without_tool")


def test_answers_are_compared_with_the_clean_ones_where_none_is_known_to_be_right(
    tmp_path: Path,
) -> None:
    """`falter run --same call`: the first sentence, and the controls that need no target."""
    data = [{k: v for k, v in row.items() if k != "target"} for row in rows(60)]
    for row in data:
        row["contrast"] = [{"say": version["say"]} for version in row["contrast"]]
    result = falter.run(
        data={"rows": data}, same="call", models=[exact, deaf_to_not],
        recipes=["tool_names", "controls"],
        store=str(tmp_path / "falter.db"),
    )  # fmt: skip
    panels = result.analysis.panels
    assert [keeping(panel).word for panel in panels] == ["robust", "deaf"]
    assert {c.label for c in keeping(panels[0]).conditions} == {"tool_names", *CONTROLS[:2]}
    assert all(panel.panel.scorer == "same_call" for panel in panels)
    alone = falter.run(
        data={"rows": data[:12]}, same="call", models=exact, recipes=["tool_names"],
        store=str(tmp_path / "falter.db"),
    )  # fmt: skip
    assert "whether it reads its input was not tested (-r controls)" in " ".join(
        alone.summary().split()
    )


def test_a_target_and_the_clean_answer_are_read_out_of_the_same_replies(tmp_path: Path) -> None:
    count = 0

    def counted(messages: Any, tools: Any) -> Any:
        nonlocal count
        count += 1
        return exact(messages, tools)

    result = falter.run(
        data={"rows": rows(6), "target": "target"}, same="auto", models=counted,
        recipes=["tool_names"], store=str(tmp_path / "falter.db"),
    )  # fmt: skip
    scorers = [panel.panel.scorer for panel in result.analysis.panels]
    assert scorers == ["tool_call", "same_call"]
    assert count == 6 * 3  # clean, renamed, and the floor


def test_the_report_says_how_calls_came_and_which_argument_or_answer_stands_out(
    tmp_path: Path,
) -> None:
    """By recipe; the argument that alone differs may be left out, and replies are read again."""

    def chatty(messages: Any, tools: Any) -> Any:
        """Gives a reason in its own words, and falls into prose where tools are renamed."""
        call = exact(messages, tools)
        if not isinstance(call, dict):
            return call
        reason = {"reason": f"{len(messages[-1]['content'])} characters"}
        call = {**call, "arguments": {**call["arguments"], **reason}}
        known = "cancel_order" in {entry["function"]["name"] for entry in tools}
        return call if known else f"<tool_call>{json.dumps(call)}</tool_call>"

    data = [dict(row) for row in rows(24)]
    for row in data:
        row["tools"] = [with_reason(entry) for entry in TOOLS]
        del row["target"]
    settings: dict[str, Any] = {
        "data": {"rows": data}, "models": chatty, "same": "call",
        "recipes": ["tool_names", "pad_newlines"], "store": str(tmp_path / "falter.db"),
    }  # fmt: skip
    told = noted(falter.run(**settings))
    assert "baseline 100.0 and 0.0; tool_names 0.0 and 100.0; pad_newlines 100.0 and 0.0" in told
    assert "Of 24 answers that differ, 24 differ in the argument 'reason' alone" in told
    assert "--ignore-arguments reason" in told
    result = falter.run(**settings, ignore_arguments=["reason"])
    assert "argument 'reason'" not in noted(result)
    assert keeping(result.analysis.panels[0]).keeps.value == 1.0
    (native,) = falter.run(**settings, ignore_arguments=["reason"], calls="native").analysis.panels
    assert (noticed(native, "tool_names"), noticed(native, "pad_newlines")) == (0.0, 1.0)
    with pytest.raises(UsageError, match="argument of the tools of"):
        falter.run(**settings, ignore_arguments=["reasons"])
    always = {"data": {"rows": rows(24), "target": "target"}, "models": constant}
    said = noted(falter.run(**{**settings, **always, "same": None}))
    assert "100.0 % of the answers to clean prompts are the same" in said


def with_reason(entry: Any) -> Any:
    schema = entry["parameters"]
    properties = {**schema["properties"], "reason": {"type": "string"}}
    return {**entry, "parameters": {**schema, "properties": properties}}


def noted(result: Any) -> str:
    return " ".join(note for panel in result.analysis.panels for note in panel.notes)


def test_turns_of_one_conversation_are_one_cluster(tmp_path: Path) -> None:
    said = [("user", "One?"), ("assistant", "1"), ("user", "Two?"), ("assistant", "2")]
    data = [
        {"messages": [{"role": role, "content": f"{text} {n}"} for role, text in said]}
        for n in range(8)
    ]
    result = falter.run(
        data={"rows": data, "turns": "all"}, models=lambda messages: "1", scorer="includes",
        recipes=["typos"], store=str(tmp_path / "falter.db"),
    )  # fmt: skip
    (panel,) = result.analysis.panels
    assert (panel.baseline.items, panel.baseline.clusters) == (16, 8)
    assert "turns of one conversation are one" in noted(result)


def test_controls_of_right_answers_take_the_clean_ones_in_a_second_run(tmp_path: Path) -> None:
    """Without right answers they change nothing, which is said; the page has the few lines."""
    data = [{k: v for k, v in row.items() if k != "target"} for row in rows(12)]
    planned = falter.plan(data={"rows": data}, models=exact, same="call", recipes=["controls"])
    said = "other_entity, other_number, shifted_labels, without_tool change nothing in rows"
    assert any(said in note for note in planned.notes)
    page = (Path(__file__).parents[2] / "docs" / "conversations.md").read_text("utf-8")
    code = page.partition("<!-- second run -->\n```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {"falter": falter, "rows": data, "model": exact}
    names["store"] = str(tmp_path / "falter.db")
    exec(code, names)
    (panel,) = names["second"].analysis.panels
    assert panel.baseline.value == 1.0
    assert (noticed(panel, "other_number"), noticed(panel, "without_tool")) == (1.0, 1.0)


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from falter.cli.app import main

    data = tmp_path / "chats.jsonl"
    data.write_text("\n".join(map(json.dumps, rows(3))))
    with pytest.raises(SystemExit) as left:
        main(["plan", "--data", str(data), "-m", "openai:m", "--show", "1", "-r", "tool_names"])
    shown = capsys.readouterr().out
    assert left.value.code == 0
    assert "[offers]" in shown and '"cancelOrder"' in shown and "[system]" in shown
    assert "scored by tool_call" in shown


def test_a_response_without_an_answer_keeps_nothing(tmp_path: Path) -> None:
    """Neither with the clean prompt nor with the changed one; a repeat of silence is no change."""

    def terse(messages: Any) -> str:
        asked = messages[-1]["content"]
        return "42" if "even" in asked else "Thank you, we look at it."

    data = [
        {"messages": [{"role": "user", "content": f"{word} case {n}, how many?"}]}
        for n in range(10)
        for word in ("even", "odd")
    ]
    result = falter.run(
        data={"rows": data}, same="number", models=terse, recipes=["pad_newlines"],
        store=str(tmp_path / "falter.db"),
    )  # fmt: skip
    found = keeping(result.analysis.panels[0])
    assert found.keeps.value == 0.5
    assert found.again is not None and found.again.value == 1.0


def test_few_clusters_and_failed_repeats_decide_nothing() -> None:
    ones, passages = np.ones(60), np.repeat(["a", "b", "c"], 20)
    few = keeps_and_reads({"a": ones}, {"b": ones}, np.zeros(60), None, clusters=passages)
    assert (few.word, few.keeps.low, few.keeps.value) == ("undecided", None, 1.0)
    halves = np.full(60, 0.5)
    alike = keeps_and_reads({"a": halves}, {}, np.zeros(60), None, clusters=np.arange(60) // 10)
    alone = keeps_and_reads({"a": halves}, {}, np.zeros(60), None)
    assert alike.keeps.low is not None and alone.keeps.low is not None
    assert alike.keeps.low < alone.keeps.low - 0.1
    # Whether a different answer is more than a die's is unknown where no repeat was answered.
    silent = keeps_and_reads({"a": ones}, {"b": ones}, ones, np.full(60, np.nan))
    assert silent.reads is not None and (silent.reads.value, silent.word) == (None, "not asked")


def words(kept: float, noticed: float, items: int = 200, again: float = 1.0) -> str:
    def share(value: float) -> np.ndarray[Any, np.dtype[np.float64]]:
        return (np.arange(items) < round(value * items)).astype(float)

    return keeps_and_reads(
        {"a": share(kept)}, {"b": share(noticed)}, np.ones(items), share(again)
    ).word


def test_a_word_needs_intervals_that_are_clear_of_the_lines() -> None:
    assert words(1.0, 1.0) == "robust"
    assert words(1.0, 0.3) == "deaf"
    assert words(0.5, 1.0) == "brittle"
    assert words(0.5, 0.3) == "erratic"
    assert words(0.9, 1.0) == words(1.0, 0.8) == "undecided"
    assert words(1.0, 1.0, items=20) == "undecided"
    assert words(0.2, 0.8, again=0.2) == "erratic"  # dice change whatever is asked
    unasked = keeps_and_reads({"a": np.ones(60)}, {}, np.zeros(60), None)
    assert (unasked.word, unasked.reads) == ("not asked", None)
    undecided = keeps_and_reads(
        {"a": 1.0 * (np.arange(60) > 1)}, {"b": 1.0 * (np.arange(60) > 1)}, np.zeros(60), None
    )
    assert undecided.word == "undecided" and undecided.needed is not None
    assert 60 < undecided.needed < 400
