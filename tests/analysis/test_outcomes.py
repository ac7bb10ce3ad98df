"""What an answer can be besides scored: cut off, refused, out of a prompt that was cut."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import falter
from falter.analysis.table import cut_prompts
from falter.clients.answers import split_reasoning
from falter.engine.execution import run_async
from falter.records.errors import RunStopped
from falter.records.interfaces import Case
from falter.records.types import BASELINE, Item, Prompt, Response, Variant
from falter.scorers import scorers
from falter.store.store import PromptSize, Store
from local_server import Asked, LocalServer, Reply

ROWS = [{"question": f"How much is {n} and 1?", "answer": str(n + 1)} for n in range(30)]


def said(content: Any, finish: str = "stop", *, usage: Any = None, **message: Any) -> Reply:
    """A chat answer."""
    choice = {"message": {"content": content, **message}, "finish_reason": finish}
    return 200, {"model": "m", "choices": [choice], "usage": usage or {}}


def run_at(
    answer: Callable[[Asked], Reply], tmp_path: Path, times: int = 1, **settings: Any
) -> tuple[Any, list[Asked]]:
    """A run on 30 questions against a server, also twice; the result, and what was posted."""
    data = tmp_path / "rows.jsonl"
    if not data.exists():
        import json

        data.write_text("".join(json.dumps(row) + "\n" for row in ROWS))

    def serve(asked: Asked) -> Reply:
        return answer(asked) if asked.method == "POST" else (404, {})

    async def main() -> tuple[Any, list[Asked]]:
        async with LocalServer(serve) as server:
            spec = {"name": "openai:m", "base_url": server.base_url, "concurrency": 2}
            given = {"recipes": ["identity"], "scorer": "numeric", **settings}
            for _ in range(times):
                result = await asyncio.to_thread(
                    falter.run,
                    data={"path": str(data), "target": "answer"},
                    template="{question}\nAnswer:",
                    models=[spec],
                    store=tmp_path / "falter.db",
                    **given,
                )
            return result, server.posted

    return run_async(main)


def scored(scorer: str, text: str, finish: str, target: str = "7") -> str:
    """The outcome of one reply."""
    prompt = Prompt(sections=(), target=target)
    item = Item(task="t", key="k", fields={}, target=target)
    variant = Variant(item=item, recipe=BASELINE, draw=0, prompt=prompt, status="baseline")
    response = Response(key="k", text=text, finish_reason=finish)
    return scorers.get(scorer).score(Case(variant=variant, response=response)).outcome


@pytest.mark.parametrize(
    ("scorer", "text", "finish", "outcome"),
    [
        ("numeric", "", "length", "truncated"),
        ("numeric", "   ", "unclosed_reasoning", "truncated"),
        ("numeric", "Let me think about it", "length", "truncated"),
        ("numeric", "Let me think about it", "stop", "unparsed"),
        ("numeric", "", "stop", "unparsed"),
        ("numeric", "The answer is 7.", "length", "truncated"),  # it may have been 7.5
        ("numeric", "The answer is 7. Because", "length", "scored"),
        ("exact", "7", "length", "scored"),
        ("exact", "Well, seven is", "length", "truncated"),
        ("exact", "Well, seven is", "stop", "scored"),
        ("includes", "it is 7 and", "length", "scored"),
        ("includes", "it is", "length", "truncated"),
        ("numeric", "", "SAFETY", "refused"),
        ("numeric", "", "content_filter", "refused"),
    ],
)
def test_a_reply_that_was_cut_off_is_neither_wrong_nor_unparsed(
    scorer: str, text: str, finish: str, outcome: str
) -> None:
    """Unless it holds a whole answer all the same."""
    assert scored(scorer, text, finish) == outcome


@pytest.mark.parametrize(
    ("text", "apart"),
    [
        ("<think>two and two</think>\n\n4", ("4", "two and two", True)),
        ("two and two\n</think>4", ("4", "two and two", True)),
        ("<think>a</think><think>b</think>c", ("c", "a\nb", True)),
        ("<think>two and", ("", "two and", False)),
        ("\n<think></think>4", ("4", "", True)),
        ("4 <think>was it?</think>", ("4 <think>was it?</think>", "", True)),
        ("4", ("4", "", True)),
        ("", ("", "", True)),
    ],
)
def test_reasoning_inside_a_text_is_split_off_once(text: str, apart: tuple[str, str, bool]) -> None:
    """With the block open in the prompt, closed, not closed; further on it is part of the text."""
    assert split_reasoning(text) == apart


def test_outcomes_are_stored_counted_and_not_asked_again(tmp_path: Path) -> None:
    """Reasoning apart, cut off, refused by the filter of a gateway: each has its own count."""

    def answer(asked: Asked) -> Reply:
        question = asked.body["messages"][-1]["content"]
        if " 3 and" in question:
            return 400, {"error": {"message": "filtered", "code": "content_filter"}}
        if " 4 and" in question:
            return said("", "content_filter")
        if " 5 and" in question:
            return said(None, "length", reasoning_content="Hm, 5 and 1 is")
        if " 6 and" in question:
            return said("<think>6 and 1 is 7, so")
        used = {
            "prompt_tokens": 9, "completion_tokens": 30,
            "completion_tokens_details": {"reasoning_tokens": 20},
            "prompt_tokens_details": {"cached_tokens": 8},
        }  # fmt: skip
        return said("<think>easy: 99</think>It is 8.", usage=used)

    result, posted = run_at(answer, tmp_path, times=2)
    (panel,) = result.analysis.panels
    counts = panel.counts
    assert (counts.cells, counts.scored, counts.failed) == (60, 60 - 8, 0)
    assert (counts.refused, counts.truncated, counts.unparsed) == (4, 4, 0)
    (note,) = [f for f in result.study.figures if f.name == "read"]
    assert note.text[0].startswith("Of 60 cells: 4 cut off at the limit of tokens, 4 refused")
    with Store(tmp_path / "falter.db") as store:
        (stored,) = store.runs()
        responses = {c.variant.item.fields["question"]: c.response for c in store.cells(stored.run)}
    cut, unclosed = responses["How much is 5 and 1?"], responses["How much is 6 and 1?"]
    assert (cut.text, cut.reasoning, cut.finish_reason) == ("", "Hm, 5 and 1 is", "length")
    assert (unclosed.text, unclosed.reasoning) == ("", "6 and 1 is 7, so")
    assert unclosed.finish_reason == "unclosed_reasoning"
    whole = responses["How much is 7 and 1?"]
    assert (whole.text, whole.reasoning) == ("It is 8.", "easy: 99")
    assert (whole.usage.reasoning_tokens, whole.usage.cached_tokens) == (20, 8)
    assert len(posted) == 60


def test_a_server_that_always_stops_at_the_limit_ends_the_run(tmp_path: Path) -> None:
    """After 25 answers, with what to do; nothing is reported."""
    with pytest.raises(RunStopped, match=r"2\d responses were all truncated at 64") as caught:
        run_at(
            lambda _: said(None, "length", reasoning="Hm"), tmp_path, sampling={"max_tokens": 64}
        )
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("raise max_tokens (--max-tokens 4096)")


def test_a_server_that_cuts_whole_answers_does_not_end_the_run(tmp_path: Path) -> None:
    """A base model writes on until the limit, with the answer in front."""

    def answer(asked: Asked) -> Reply:
        number = re.search(r"is (\d+) and 1", asked.body["messages"][-1]["content"])
        return said(f"{int(number[1]) + 1 if number else 0} and so on and", "length")

    result, _ = run_at(answer, tmp_path, scorer="includes")
    assert result.analysis.panels[0].counts.scored == 60


def test_a_single_whole_answer_lets_the_run_go_on(tmp_path: Path) -> None:
    first: list[str] = []

    def answer(asked: Asked) -> Reply:
        first.append("x")
        return said("7") if len(first) == 20 else said("", "length")

    result, _ = run_at(answer, tmp_path)
    assert result.analysis.panels[0].counts.truncated == 59


def test_a_provider_that_changes_under_one_name_is_said_beside_the_drops(tmp_path: Path) -> None:
    """One condition served elsewhere: the report names both hosts in a note of the panel."""

    def answer(asked: Asked) -> Reply:
        perturbed = "\n\n\n" in asked.body["messages"][-1]["content"]
        status, reply = said("8" if perturbed else "7")
        return status, {**reply, "provider": "Far" if perturbed else "Near"}

    result, _ = run_at(answer, tmp_path, recipes=["pad_newlines"])
    (panel,) = result.analysis.panels
    assert set(panel.served_by) == {"Near: m", "Far: m"}
    (_note,) = [n for n in panel.notes if "2 different servers or model versions" in n]
    for form in ("md", "html", "json"):  # wherever the drop stands, what it may be stands, too
        written = result.report(tmp_path / f"report.{form}").read_text("utf-8")
        assert "different servers or model versions" in written, form


# Prompts that a server cuts


def sizes(*pairs: tuple[int, int]) -> list[PromptSize]:
    return [PromptSize(key=f"k{n}", characters=c, tokens=t) for n, (c, t) in enumerate(pairs)]


def test_tokens_that_stop_growing_show_a_cut() -> None:
    """By hand: four letters a token, and a limit of 1,000 tokens, which 4,200 letters may reach."""
    below = [(4 * t, t) for t in (300, 500, 700)]
    prompts = sizes(*below, (4_200, 1000), (4_800, 1000), (6_000, 1000), (9_000, 1000))
    assert cut_prompts(prompts) == {"k4": 1000, "k5": 1000, "k6": 1000}
    assert cut_prompts(sizes(*below, (4_000, 1000), (4_100, 1000), (4_200, 1000))) == {}
    assert cut_prompts(sizes(*below, (4_000, 1000), (9_000, 1000))) == {}
    assert cut_prompts(sizes((4_000, 1000), (6_000, 1000), (9_000, 1000))) == {
        "k1": 1000, "k2": 1000,
    }  # fmt: skip
    assert cut_prompts(sizes((400, 100), (600, 100), (900, 100))) == {}
    assert cut_prompts([]) == {}


def test_answers_to_a_cut_prompt_are_failed_and_not_wrong(tmp_path: Path) -> None:
    """A server that reads 256 tokens: long prompts are flagged by name, short ones are scored."""
    import json

    rows = [
        {"question": "word " * (30 + 25 * n) + f"How much is {n} and 1?", "answer": str(n + 1)}
        for n in range(30)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def answer(asked: Asked) -> Reply:
        letters = len(asked.body["messages"][-1]["content"])
        return said("7", usage={"prompt_tokens": min(256, letters // 4)})

    result, _ = run_at(answer, tmp_path)
    (panel,) = result.analysis.panels
    (reason,) = panel.failures
    assert reason == "truncated_prompt: the server read no more than 256 tokens of the prompt"
    # 5 letters a word: those beyond 1.1 × 1,024 letters were cut, on either side.
    cut = sum(len(row["question"]) + 8 > 1.1 * 1024 for row in rows)
    assert 15 < cut < 25
    assert (panel.counts.failed, panel.counts.scored) == (2 * cut, 2 * (30 - cut))
