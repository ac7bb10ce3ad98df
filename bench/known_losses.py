"""Losses in known shares, from a local server through `falter run`: does every part cover?

    python bench/known_losses.py [--studies 40] [--items 200] [--losses WORDS ...]

The server answers tickets with the number of a queue. When a ticket has typos it refuses some,
leaves two numbers open in some, of which only the second reader takes the last, answers some as
another model version (which is wrong more often), and gives a wrong queue for some, each with a
known chance. A study is one `falter run` of a new sample
of tickets. A row says how often each part's interval holds the truth, and how often the report's
words name the cause. Passes: at least 93.5 %, less 2.5 Monte Carlo errors; words in nine of ten.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import random
import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import falter
from falter.cli.app import invoke

QUEUES = tuple(map(str, range(11, 17)))
WORDS = ("parcel", "invoice", "refund", "password", "charger", "discount", "keyboard", "courier")
RIGHT = 0.85
LEAST, NAMED = 0.935, 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """The chances of what typos provoke, and the words that should name it."""

    refused: float = 0.0
    wordy: float = 0.0
    elsewhere: float = 0.0
    wrong_elsewhere: float = 0.0
    wrong: float = 0.0
    says: str = ""

    @property
    def truth(self) -> dict[str, float]:
        """Every part in the long run (docs/measures.md, "Of this drop, how much is real?")."""
        wording = RIGHT * (self.refused + self.wrong) / (1.0 - self.elsewhere)
        serving = self.elsewhere * (RIGHT * self.wrong_elsewhere - wording)
        reading = RIGHT * self.wordy
        drop = reading + serving + wording
        return {"drop": drop, "reading": reading, "serving": serving, "wording": wording,
                "meaning": 0.0, "refused": RIGHT * self.refused}  # fmt: skip


WORLDS = {
    "refusals": Losses(refused=0.25, says="because the model refuses"),
    "two numbers left open": Losses(wordy=0.25, says="come from misread answers"),
    "another model version": Losses(
        elsewhere=0.3, wrong_elsewhere=0.9, says="come from answers of another server"
    ),
    "wrong answers": Losses(wrong=0.25, says="come from the changed prompt itself"),
    "all four": Losses(refused=0.08, wordy=0.06, elsewhere=0.1, wrong_elsewhere=0.5, wrong=0.08,
                       says="come from the changed prompt itself"),
    "nothing": Losses(says="The score holds"),
}  # fmt: skip


class Tickets:
    """The tickets of one study, and the server's answers to them."""

    def __init__(self, losses: Losses, items: int, seed: int) -> None:
        self.losses, self.seed = losses, seed
        draw = random.Random(seed)
        self.rows = [
            {
                "key": f"t{n}",
                "text": f"The {' and the '.join(draw.sample(WORDS, 3))} arrived damaged, "
                f"please look into this today. {n}",
                "queue": draw.choice(QUEUES),
            }
            for n in range(items)
        ]

    def reply(self, prompt: str) -> tuple[str, str]:
        """The text, and the version that wrote it."""
        row = self.rows[int(re.findall(r"\d+", prompt)[-1])]
        draw = random.Random(f"{self.seed} {row['key']}")
        right, wrong = row["queue"], QUEUES[QUEUES.index(row["queue"]) - 1]
        answer = right if draw.random() < RIGHT else wrong
        if row["text"] in prompt:
            return answer, "version-1"
        at, losses = draw.random(), self.losses
        if at < losses.refused:
            return "I'm sorry, but I can't help with that.", "version-1"
        at -= losses.refused
        if at < losses.wordy:
            return f"It could be {wrong if answer == right else right} or {answer}.", "version-1"
        at -= losses.wordy
        if at < losses.elsewhere:
            worse = draw.random() < losses.wrong_elsewhere
            return wrong if worse else answer, "version-2"
        at -= losses.elsewhere
        return wrong if at < losses.wrong else answer, "version-1"


@contextlib.contextmanager
def served(tickets: Tickets) -> Iterator[str]:
    """The address of a server of the loopback that answers them."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            text, version = tickets.reply(body["messages"][-1]["content"])
            choice = {"index": 0, "message": {"role": "assistant", "content": text},
                      "finish_reason": "stop"}  # fmt: skip
            data = json.dumps({"id": "1", "object": "chat.completion", "model": version,
                               "choices": [choice]}).encode()  # fmt: skip
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Nothing is logged."""

    # Python's queue of five connections turns most of 64 away, and their requests wait for minutes.
    queue = type("Server", (ThreadingHTTPServer,), {"request_queue_size": 256})
    server = queue(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def study(losses: Losses, items: int, seed: int) -> tuple[dict[str, bool], tuple[str, ...]]:
    """Return the parts that cover after one `falter run`, and the first lines of its report."""
    tickets = Tickets(losses, items, seed)
    with tempfile.TemporaryDirectory() as name, served(tickets) as url:
        folder = Path(name)
        data, template, store = folder / "tickets.jsonl", folder / "prompt.txt", folder / "s.db"
        data.write_text("\n".join(map(json.dumps, tickets.rows)), "utf-8")
        template.write_text("Ticket: {text}\nNumber of the queue:", "utf-8")
        command = [
            "run", "--data", data, "--template", template, "--target", "queue", "--key", "key",
            "--scorer", "numeric", "-r", "typos", "-r", "identity",
            "--model", "openai:own", "--base-url", url, "--store", store, "--seed", seed,
        ]  # fmt: skip
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            code = invoke([str(word) for word in command])
        if code:
            raise RuntimeError(f"falter run ended with {code}")
        result = falter.open(store).newest
        (panel,) = result.analysis.panels
        (parts,) = panel.parts
        found = {"drop": panel.recipes[0].drop, "refused": parts.split.states["refused"]}
        found |= {part: getattr(parts.split, part)
                  for part in ("reading", "meaning", "serving", "wording")}  # fmt: skip
        lines = tuple(result.study.figures[0].text)
    truth = losses.truth
    covers = {}
    for part, estimate in found.items():
        low, high = estimate.low, estimate.high
        if low is None or high is None:  # nothing to correct
            low = high = estimate.value or 0.0
        covers[part] = low - 1e-9 <= truth[part] <= high + 1e-9
    return covers, lines


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--studies", type=int, default=40, help="of every kind of loss")
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--losses", nargs="+", default=[""], help="words of the kinds to draw")
    given = parser.parse_args(arguments)
    least = LEAST - 2.5 * math.sqrt(LEAST * (1.0 - LEAST) / given.studies)
    failed = 0
    for place, (name, losses) in enumerate(WORLDS.items()):
        if not any(word in name for word in given.losses):
            continue
        found = [study(losses, given.items, 1000 * place + n) for n in range(given.studies)]
        shares = {part: sum(covers[part] for covers, _ in found) / given.studies
                  for part in found[0][0]}  # fmt: skip
        said = sum(losses.says in " ".join(lines) for _, lines in found) / given.studies
        passed = min(shares.values()) >= least and said >= NAMED
        failed += not passed
        parts = ", ".join(f"{part} {100 * share:.0f}" for part, share in shares.items())
        print(f"{name}: covers {parts} %; says '{losses.says}' in {100 * said:.0f} %"
              f"{'' if passed else '  FAIL'}")  # fmt: skip
        print("   " + "\n   ".join(found[0][1]), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
