"""Is the first number that falter prints the true one? Six local servers whose truth is known.

    python bench/first_contact.py [--items 200] [--recipe typos --recipe persona ...]

Short free answers, JSON in fences and in prose, labels with refusals and cut replies, multiple
choice by letter, and conversations: labels after a system turn, and calls of tools, native and in
text. Each is run with the README's command line, which names no scorer. Every reply is right or
wrong by plan: of 100 items about 88 are right as asked, 33 fewer with typing mistakes, and no more
or fewer under any other recipe. Controls, which change the right answer, are left out. Prints for
each server the true and the printed score, and for each recipe the true drop beside the printed one
with its interval, and both verdicts. The true verdict is the one that falter's statistics give the
true scores.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import csv
import io
import json
import random
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]

import falter.tasks  # noqa: E402
from falter.analysis.analyses import analyse  # noqa: E402
from falter.analysis.results import PanelResult  # noqa: E402
from falter.cli.app import invoke  # noqa: E402
from falter.engine.results import open_result  # noqa: E402
from falter.records.interfaces import Case  # noqa: E402
from falter.records.types import Score  # noqa: E402
from falter.scorers.answers import Exact  # noqa: E402
from falter.store.store import Store  # noqa: E402
from local_server import Asked, LocalServer, Reply  # noqa: E402

BASICS = Path(falter.tasks.__file__).parent / "data" / "basics.jsonl"
RIGHT, WITH_TYPOS = 0.883, 0.55
REFUSED, CUT = 0.03, 0.04
Row = dict[str, Any]
Written = tuple[str, str]
"""A reply and the reason for its end."""


@dataclass(frozen=True)
class Job:
    """A user's task in files: rows, a template, and a model's way to write an answer.

    Conversations have no template. Rows with `tools` are answered by calls.
    """

    name: str
    rows: Sequence[Row]
    template: str | None
    write: Callable[[Row, bool, random.Random], str]
    options: Sequence[str] = ()
    refuses: bool = False


@dataclass
class Truth:
    """The right replies, by item and recipe, and the reply to each prompt."""

    right: dict[tuple[str, str], bool] = field(default_factory=dict)
    replies: dict[str, Written] = field(default_factory=dict)

    def answer(self, asked: Asked) -> Reply:
        tools = [tool["function"] for tool in asked.body.get("tools", ())]
        text, reason = self.replies[_prompt(asked.body["messages"], tools)]
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if text.startswith(NATIVE):
            call = {"id": "c1", "type": "function", "function": json.loads(text[len(NATIVE) :])}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return 200, {"model": "known", "choices": [choice]}


class Oracle(Exact):
    """The truth as a scorer, so that the same statistics say what the true verdict is."""

    def __init__(self, truth: Truth) -> None:
        self.truth = truth

    def score(self, case: Case) -> Score:
        variant = case.variant
        return self.scored(self.truth.right[variant.item.key, variant.recipe.label], "")


@dataclass(frozen=True)
class Line:
    """One recipe of one job, in points; the recipe `` is the clean prompt, whose score it is."""

    job: str
    scorer: str
    recipe: str
    true: float
    printed: float
    interval: tuple[float | None, float | None]
    verdicts: tuple[str, str]


def _share(*parts: object) -> float:
    """A number from 0 to 1 that depends on the parts alone."""
    digest = blake2b(repr(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def _prompt(messages: Sequence[Mapping[str, str]], tools: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps([[(turn["role"], turn["content"]) for turn in messages], tools])


# What is asked


def _basics() -> list[Row]:
    rows = [json.loads(line) for line in BASICS.read_text("utf-8").splitlines()]
    return sorted(rows, key=lambda row: _share("order", row["key"]))


def _free(row: Row, right: bool, rng: random.Random) -> str:
    """The answer alone, or in one of the sentences that models write around it."""
    answer: str = row["answer"] if right else rng.choice(row["others"])
    low = answer[:1].lower() + answer[1:]
    bare = low.removeprefix("a ").removeprefix("an ").removeprefix("the ")
    return rng.choice(
        [answer, answer, low, f"{answer}.", f"**{answer}**", f"The answer is {low}.",
         f"Answer: {answer}", f"It is called {bare}.", f"That would be **{low}**.",
         f"The correct answer is {answer}.", f"It's {low}.", f"A {bare}.",
         f"The answer to this question is:\n\n**{answer}**", f"I think it is {low}.",
         f"{answer}\n\nLet me know if you need anything else!",
         f"The answer is **{answer}**, since that is what most people say."]
    )  # fmt: skip


def _letter(row: Row, right: bool, rng: random.Random) -> str:
    place = row["answer"] if right else rng.choice([n for n in range(4) if n != row["answer"]])
    letter, text = "ABCD"[place], row["choices"][place]
    return rng.choice(
        [letter, f"{letter}.", f"({letter})", f"{letter}. {text}", f"The answer is {letter}.",
         f"**{letter}**", f"The correct answer is **{letter}. {text}**.", f"Answer: {letter}"]
    )  # fmt: skip


QUEUES = ("billing", "login", "shipping", "returns", "technical", "other")


def _label(row: Row, right: bool, rng: random.Random) -> str:
    queue = row["queue"] if right else rng.choice([q for q in QUEUES if q != row["queue"]])
    return rng.choice(
        [queue, queue, f"{queue.title()}.", f"**{queue}**", f"Queue: {queue}",
         f"This ticket belongs in the {queue} queue.", f"The right queue is {queue}."]
    )  # fmt: skip


def _tickets(items: int) -> list[Row]:
    about = {
        "billing": "I was charged twice for order {n}, please pay one of them back.",
        "login": "The link for a new password of account {n} has expired again.",
        "shipping": "The parcel with number {n} has been on its way for a week.",
        "returns": "How do I send the lamp of order {n} back, it does not fit our room?",
        "technical": "The app closes when I open map {n} on my telephone.",
        "other": "Do you have a shop near the station, my customer number is {n}?",
    }
    return [
        {"key": f"t{n}", "ticket": about[queue].format(n=1000 + 7 * n), "queue": queue}
        for n in range(items)
        for queue in [QUEUES[n % len(QUEUES)]]
    ]


CITIES = ("Graz", "Porto", "Lyon", "Turin", "Malmö", "Kraków", "Ghent", "Bergen")


def _orders(items: int) -> list[Row]:
    rows = []
    for n in range(items):
        city, pieces, express = CITIES[n % 8], 2 + n % 17, n % 3 == 0
        words = "by express" if express else "by normal post"
        order = {"city": city, "pieces": pieces, "express": express}
        text = f"Customer {n} from {city} would like to order {pieces} lamps, sent {words}."
        rows.append({"key": f"o{n}", "order": text, "fields": order})
    return rows


def _object(row: Row, right: bool, rng: random.Random) -> str:
    """The object alone, in a fence, or with words before or behind it."""
    found = dict(row["fields"])
    if not right:  # every field is wrong, so that the item's score is 0
        other = CITIES[(CITIES.index(found["city"]) + 3) % 8]
        found = {"city": other, "pieces": found["pieces"] + 3, "express": not found["express"]}
    text = json.dumps(found, indent=rng.choice((None, 2)), ensure_ascii=False)
    fenced = f"```json\n{text}\n```"
    return rng.choice(
        [text, fenced, fenced, f"Here is the JSON:\n\n{fenced}", f"Here is the object: {text}",
         f"{fenced}\n\nThe customer wants {found['pieces']} lamps.",
         f"Sure! The extracted fields are:\n{text}\nLet me know if you need anything else."]
    )  # fmt: skip


ROUTER = f"You sort the mails of a shop. Answer with one queue of these: {', '.join(QUEUES)}."
CLERK = "You serve the customers of a shop, and call a tool where one fits."
TOOLS: tuple[dict[str, Any], ...] = (
    {"name": "cancel_order", "description": "Cancel an order that has not been sent yet.",
     "parameters": {"type": "object", "required": ["order_id"], "properties": {
         "order_id": {"type": "string"}, "reason": {"type": "string"}}}},
    {"name": "find_invoice", "description": "Look up the invoice of an order.",
     "parameters": {"type": "object", "required": ["order_id"], "properties": {
         "order_id": {"type": "string"}}}},
)  # fmt: skip
NATIVE = "native call: "
"""Marks a reply that arrives in the API's field for calls."""


def _chats(items: int) -> list[Row]:
    return [
        {"key": row["key"], "queue": row["queue"], "messages": [
            {"role": "system", "content": ROUTER}, {"role": "user", "content": row["ticket"]}]}
        for row in _tickets(items)
    ]  # fmt: skip


def _calls(items: int) -> list[Row]:
    wishes = (
        ("cancel_order", "Please cancel order A-{n}, my sister ordered the same lamp."),
        ("find_invoice", "I need the invoice of order A-{n} for my tax office."),
    )
    return [
        {"key": f"c{n}", "tools": TOOLS, "messages": [
            {"role": "system", "content": CLERK},
            {"role": "user", "content": wish.format(n=1000 + 7 * n)}],
         "target": [{"name": name, "arguments": {"order_id": f"A-{1000 + 7 * n}"},
                     "free": ["reason"]}]}
        for n in range(items)
        for name, wish in [wishes[n % 2]]
    ]  # fmt: skip


def _call(row: Row, right: bool, rng: random.Random) -> str:
    """The call as a native one, in a fence, in tags or bare; a wrong one errs in one place."""
    target = row["target"][0]
    call = {"name": target["name"], "arguments": dict(target["arguments"])}
    if not right and rng.random() < 0.3:
        return "I am sorry, our shop cannot do this for you today."
    if not right and rng.random() < 0.5:
        (call["name"],) = {tool["name"] for tool in TOOLS} - {call["name"]}
    elif not right:
        call["arguments"]["order_id"] += "0"
    text = json.dumps(call)
    native = json.dumps({**call, "arguments": json.dumps(call["arguments"])})
    return rng.choice(
        [NATIVE + native, NATIVE + native, text, f"```json\n{text}\n```",
         f"<tool_call>\n{text}\n</tool_call>", f"I will do that for you.\n\n{text}"]
    )  # fmt: skip


def _in_names_of(tools: Sequence[Mapping[str, Any]], reply: str) -> str:
    """Return the reply with the tools' and arguments' names of this prompt."""
    for tool in TOOLS:
        offered = [t for t in tools if t["name"] == tool["name"]] or [
            t for t in tools if t["description"] == tool["description"]
        ]
        if not offered:  # the control `without_tool`
            continue
        names = [(tool["name"], offered[0]["name"])]
        own, theirs = (list(t["parameters"]["properties"]) for t in (tool, offered[0]))
        names += zip(own, theirs, strict=True) if set(own) != set(theirs) else ()
        for before, after in names:
            reply = reply.replace(before, after)
    return reply


def jobs(items: int) -> list[Job]:
    """The six first uses, with so many items each."""
    basics = _basics()[:items]
    free = [
        {"key": r["key"], "question": r["question"], "answer": r["choices"][r["answer"]],
         "others": [c for n, c in enumerate(r["choices"]) if n != r["answer"]]}
        for r in basics
    ]  # fmt: skip
    return [
        Job("free answers", free, "Answer in one word.\n\n{question}", _free,
            ("--target", "answer")),
        Job("JSON", _orders(items), "Return JSON with the keys city, pieces and express.\n\n"
            "{order}", _object, ("--target", "fields")),
        Job("labels", _tickets(items), "Which queue is it: billing, login, shipping, returns, "
            "technical or other?\n\n{ticket}", _label, ("--target", "queue"), refuses=True),
        Job("letters", basics, "Answer with a letter.\n\n{question}\n{choices}\n\nAnswer:", _letter,
            ("--target", "answer", "--choices", "choices")),
        Job("chats, labels", _chats(items), None, _label, ("--target", "queue"), refuses=True),
        Job("chats, calls", _calls(items), None, _call),
    ]  # fmt: skip


# What is answered


def _replied(job: Job, row: Row, recipe: str) -> tuple[bool, Written]:
    """Return True if the reply to an item under a recipe is right, and the reply."""
    key = row["key"]
    lost = _share("lost", job.name, key, recipe)
    rng = random.Random(f"{job.name} {key} {recipe}")
    if job.refuses and lost < REFUSED:
        return False, ("I'm sorry, but I can't help with that request.", "stop")
    if job.refuses and lost < REFUSED + CUT:
        return False, ("Let me look at this step by step. The customer writes that", "length")
    right = _share("right", job.name, key) < (WITH_TYPOS if recipe.startswith("typo") else RIGHT)
    return right, (job.write(row, right, rng), "stop")


def _known(job: Job, prompts: Sequence[Mapping[str, Any]]) -> Truth:
    """The truth of all planned prompts; a prompt that two recipes share has one reply."""
    truth, rows = Truth(), {row["key"]: row for row in job.rows}
    first: dict[str, tuple[bool, Written]] = {}
    for prompt in prompts:
        tools = [json.loads(tool) for tool in prompt["tools"]]
        text, key, recipe = _prompt(prompt["messages"], tools), prompt["item"], prompt["recipe"]
        if text not in first:
            right, (reply, reason) = _replied(job, rows[key], recipe)
            first[text] = right, (_in_names_of(tools, reply) if tools else reply, reason)
        truth.right[key, recipe], truth.replies[text] = first[text]
    return truth


# The command line, and what it prints


async def _falter(*arguments: str) -> str:
    """Return a command's output; its messages are dropped unless it fails."""

    def call() -> tuple[int, str, str]:
        out, messages = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(messages):
            code = invoke(arguments)
        return code, out.getvalue(), messages.getvalue()

    code, printed, messages = await asyncio.to_thread(call)
    if code:
        raise RuntimeError(f"falter {' '.join(arguments)} ended with {code}: {messages}")
    return printed


def _write(job: Job, folder: Path) -> Path:
    """The rows as a file: CSV where they hold texts alone, else JSONL; and the template."""
    named = job.name.replace(" ", "-").replace(",", "")
    if job.template is not None:
        (folder / "prompt.txt").write_text(job.template, "utf-8")
    if all(isinstance(value, str) for row in job.rows for value in row.values()):
        path = folder / f"{named}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(job.rows[0]))
            writer.writeheader()
            writer.writerows(job.rows)
        return path
    path = folder / f"{named}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in job.rows), "utf-8")
    return path


async def contact(job: Job, folder: Path, recipes: Sequence[str]) -> list[Line]:
    """Run one job by the README's command in a folder, and hold its numbers beside the truth."""
    data, store = _write(job, folder), folder / "falter.db"
    template = () if job.template is None else ("--template", str(folder / "prompt.txt"))
    async with LocalServer(lambda asked: truth.answer(asked)) as server:
        command = (
            "--data", str(data), *template, *job.options,
            "--key", "key", "--model", "openai:known", "--base-url", server.base_url,
            "--store", str(store), *(part for recipe in recipes for part in ("-r", recipe)),
        )  # fmt: skip
        planned = json.loads(await _falter("plan", *command, "--json", "--show", "999999"))
        truth = _known(job, planned["prompts"])
        await _falter("run", *command)
    with Store(store, writes=False) as opened:
        (stored,) = opened.runs()
        scorer = stored.run.panels[0].scorer
        true = analyse(opened, stored, {scorer: Oracle(truth)}).panels[0]
        controls = {recipe.label for recipe in stored.run.recipes if recipe.controls}
    return _beside(job.name, true, open_result(store).analysis.panels[0], controls)


def _beside(
    job: str, true: PanelResult, printed: PanelResult, controls: Collection[str]
) -> list[Line]:
    scores = [100 * float(panel.baseline.value or 0) for panel in (true, printed)]
    scorer = printed.panel.scorer
    lines = [Line(job, scorer, "", scores[0], scores[1], (None, None), ("", ""))]
    for one, other in zip(true.recipes, printed.recipes, strict=True):
        if one.drop.value is None or one.label in controls:
            continue
        drops = [100 * (recipe.drop.value or 0.0) for recipe in (one, other)]
        ends = (other.drop.low, other.drop.high)
        verdicts = one.verdict, other.verdict
        lines.append(Line(job, scorer, one.label, drops[0], drops[1], ends, verdicts))
    return lines


def misses(lines: Sequence[Line]) -> list[Line]:
    """The scores beyond 1 point of the truth, the drops beyond 2, and the wrong verdicts."""
    return [
        line
        for line in lines
        if abs(line.true - line.printed) > (2.0 if line.recipe else 1.0)
        or line.verdicts[0] != line.verdicts[1]
    ]


def table(lines: Sequence[Line]) -> str:
    """The lines as a table in Markdown."""
    rows = [
        "| replies | scorer | | true | printed | 95 % | true verdict | printed |",
        "|---|---|---|--:|--:|---|---|---|",
    ]
    for line in lines:
        low, high = line.interval
        ends = "" if low is None or high is None else f"{100 * low:.1f} to {100 * high:.1f}"
        what = f"drop, {line.recipe}" if line.recipe else "**score**"
        rows.append(
            f"| {line.job} | `{line.scorer}` | {what} | {line.true:.1f} | {line.printed:.1f} "
            f"| {ends} | {line.verdicts[0]} | {line.verdicts[1]} |"
        )
    return "\n".join(rows)


async def main(items: int, recipes: Sequence[str], folder: Path) -> None:
    """Run all six, print the table and what is off."""
    lines: list[Line] = []
    for n, job in enumerate(jobs(items)):
        (folder / str(n)).mkdir()
        lines += await contact(job, folder / str(n), recipes)
    print(table(lines))
    off = misses(lines)
    drops = sum(bool(line.recipe) for line in lines)
    print(
        f"\n{len(lines) - drops} scores and {drops} drops; beyond 1 and 2 points of the truth, or "
        f"with another verdict: {len(off)}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--recipe", action="append", default=[])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        asyncio.run(main(given.items, given.recipe, Path(scratch)))
