"""A local model server that misbehaves on purpose, and answers deterministically when it does not.

In a test:

    async with FaultyServer(faults={"500": 0.2, "hang": 0.01}, seed=3) as server:
        ...  # server.base_url, server.seen, server.answered, server.faulted

From a shell, until the time limit; the first line printed is the port:

    python tests/support/faulty_server.py --port 0 --fault 500=0.1 --fault 429=0.05 --limit 60

`GET /stats` gives the counts as JSON. Whether a request meets a fault depends on the seed, its body
and how often that body has come: not on time or order. So a retry draws anew, and runs repeat.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

FAULTS = (
    "401",
    "429",
    "500",
    "truncated",
    "hang",
    "closed",
    "utf8",
    "huge",
    "nochoices",
)
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found",
           429: "Too Many Requests", 500: "Internal Server Error"}  # fmt: skip
PATHS = ("/v1/chat/completions", "/v1/completions")
HUGE = 40 * 2**20


def draw(*parts: object) -> float:
    """A number in 0..1 that depends on the parts alone."""
    data = "\0".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(data).digest()[:7], "big") / 2**56


def tokens_of(text: str) -> list[str]:
    """Words, each with the white space before it; what is left is a token of its own."""
    return re.findall(r"\s*\S+|\s+\Z", text)


def logprob(before: str, token: str) -> float:
    """The made-up log-probability of a token after what stands before it."""
    return -round(0.01 + 5 * draw("logprob", before, token), 6)


@dataclass
class FaultyServer:
    """See the module. `script` names the faults of the first requests, None meaning none.

    `replies` are bodies (or status and body) that the first unscripted requests get instead of
    an answer. `echo` says how log-probabilities come back: `chars`, `bytes`, `no-offsets`, `bos`,
    `numbered` (a number first, shifted), `shifted` (null first, shifted all the same), `none`.
    """

    faults: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    script: Sequence[str | None] = ()
    replies: Sequence[Any] = ()
    retry_after: str | None = "0.01"
    latency: float = 0.0
    models: Sequence[str] = ("mock",)
    key: str | None = None
    echo: str = "chars"
    rejects_zero: bool = False
    port: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    faulted: Counter[str] = field(default_factory=Counter)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    keep: int = 1000
    connections: int = 0
    in_flight: int = 0
    most_in_flight: int = 0

    def __post_init__(self) -> None:
        unknown = {f for f in (*self.faults, *self.script) if f is not None} - set(FAULTS)
        if unknown:
            raise ValueError(f"unknown faults {sorted(unknown)}; known: {', '.join(FAULTS)}")
        self._tasks: set[asyncio.Task[None]] = set()
        self._posts = self._replied = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def requests(self) -> int:
        return sum(self.seen.values())

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._connection, "127.0.0.1", self.port, limit=2**26, backlog=4096
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def left_alone(self) -> None:
        """Wait until every connection has ended, and with it all that was sent has been seen."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def stats(self) -> dict[str, Any]:
        """Counts; `answered_most` above 1 means that an answer was paid for twice."""
        return {
            "requests": self.requests,
            "distinct": len(self.seen),
            "answered": sum(self.answered.values()),
            "answered_most": max(self.answered.values(), default=0),
            "faults": dict(self.faulted),
            "connections": self.connections,
            "most_in_flight": self.most_in_flight,
        }

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; False when the connection is to be closed."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ", 2)
        path = re.sub(r"^https?://[^/]*", "", target)
        headers = dict(line.split(": ", 1) for line in head[1:] if ": " in line)
        folded = {name.lower(): value for name, value in headers.items()}
        if folded.get("transfer-encoding") == "chunked":
            body = await _chunks(reader)
        else:
            body = await reader.readexactly(int(folded.get("content-length", 0)))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if self.latency:
                await asyncio.sleep(self.latency)
            return await self._respond(method, path, folded, body, writer)
        finally:
            self.in_flight -= 1

    async def _respond(
        self,
        method: str,
        path: str,
        headers: dict[str, str],
        body: bytes,
        writer: asyncio.StreamWriter,
    ) -> bool:
        if path == "/stats":
            return await _send(writer, 200, self.stats())
        if self.key is not None and headers.get("authorization") != f"Bearer {self.key}":
            told = f"Incorrect API key provided: {headers.get('authorization', 'none')}"
            return await _send(writer, 401, {"error": {"message": told}})
        if path == "/v1/models":
            data = [{"id": name, "object": "model"} for name in self.models]
            return await _send(writer, 200, {"object": "list", "data": data})
        if method != "POST" or path not in PATHS:
            return await _send(writer, 404, {"error": {"message": f"no such path: {path}"}})
        mark = hashlib.sha256(body).hexdigest()[:16]
        fault = self._fault(mark)
        self.seen[mark] += 1
        asked = json.loads(body)
        if len(self.bodies) < self.keep:
            self.bodies.append(asked)
            self.headers.append(headers)
            self.times.append(asyncio.get_running_loop().time())
        if fault is not None:
            self.faulted[fault] += 1
            return await self._misbehave(fault, writer)
        status, content = self._reply() or self._answer(path, asked)
        self.answered[mark] += status == 200
        return await _send(writer, status, content)

    def _reply(self) -> tuple[int, Any] | None:
        if self._replied >= len(self.replies):
            return None
        reply = self.replies[self._replied]
        self._replied += 1
        return reply if isinstance(reply, tuple) else (200, reply)

    def _fault(self, mark: str) -> str | None:
        number, self._posts = self._posts, self._posts + 1
        if number < len(self.script):
            return self.script[number]
        u = draw(self.seed, mark, self.seen[mark])
        for name, share in self.faults.items():
            if u < share:
                return name
            u -= share
        return None

    async def _misbehave(self, fault: str, writer: asyncio.StreamWriter) -> bool:
        whole = json.dumps(_completion(text="Answer: A")).encode()
        if fault == "hang":
            await asyncio.sleep(3600)
        elif fault == "closed":
            writer.write(_head(200, len(whole)) + whole[: len(whole) // 2])
            await writer.drain()
            return False
        elif fault == "truncated":
            return await _send(writer, 200, whole[: len(whole) // 2])
        elif fault == "utf8":
            return await _send(writer, 200, whole.replace(b"Answer", b"\xff\xfe\xff"))
        elif fault == "huge":
            writer.write(_head(200, None))
            for _ in range(HUGE // 2**20):
                writer.write(b"100000\r\n" + b" " * 2**20 + b"\r\n")
                await writer.drain()
            writer.write(b"0\r\n\r\n")
        elif fault == "nochoices":
            return await _send(writer, 200, {"id": "x", "choices": []})
        elif fault == "429":
            extra = {} if self.retry_after is None else {"Retry-After": self.retry_after}
            return await _send(writer, 429, {"error": {"message": "Rate limit reached"}}, extra)
        else:
            return await _send(writer, int(fault), {"error": {"message": f"mock {fault}"}})
        return True

    def _answer(self, path: str, asked: dict[str, Any]) -> tuple[int, Any]:
        if asked.get("model") not in self.models:
            told = f"The model `{asked.get('model')}` does not exist"
            return 404, {"error": {"message": told}}
        if path.endswith("/chat/completions"):
            letter = "ABCD"[int(4 * draw("chat", json.dumps(asked["messages"])))]
            return 200, _completion(message={"role": "assistant", "content": f"Answer: {letter}"})
        prompts = asked["prompt"] if isinstance(asked["prompt"], list) else [asked["prompt"]]
        if asked.get("echo") and asked["max_tokens"] == 0 and self.rejects_zero:
            return 400, {"error": {"message": "max_tokens must be at least 1"}}
        data = _completion(text="")
        data["choices"] = [self._choice(n, prompt, asked) for n, prompt in enumerate(prompts)]
        data["usage"]["prompt_tokens"] = sum(len(tokens_of(prompt)) for prompt in prompts)
        return 200, data

    def _choice(self, index: int, prompt: str, asked: dict[str, Any]) -> dict[str, Any]:
        """A completion, with the prompt's log-probabilities when they are asked for."""
        made = " yes" if asked["max_tokens"] else ""
        choice: dict[str, Any] = {"index": index, "finish_reason": "length", "logprobs": None}
        if not asked.get("echo"):
            return {**choice, "text": f" Answer: {'ABCD'[int(4 * draw('text', prompt))]}"}
        choice["text"] = prompt + made
        if self.echo != "none":
            choice["logprobs"] = self._logprobs(prompt, made)
        return choice

    def _logprobs(self, prompt: str, made: str) -> dict[str, Any]:
        tokens = tokens_of(prompt) + ([made] if made else [])
        if self.echo == "bos":
            tokens = ["<s>", *tokens]
        starts = [len("".join(tokens[:n])) for n in range(len(tokens))]
        values: list[float | None] = [
            logprob("".join(tokens[:n]), token) for n, token in enumerate(tokens)
        ]
        tops: list[dict[str, float] | None] = [
            {token: value} for token, value in zip(tokens, values, strict=True) if value is not None
        ]
        if self.echo in ("shifted", "numbered"):
            following = [*tokens[1:], " end"]
            tops = [{a: -9.0, b: -0.1} for a, b in zip(tokens, following, strict=True)]
        if self.echo != "numbered":
            values[0] = tops[0] = None
        if self.echo == "bytes":
            starts = [len("".join(tokens[:n]).encode()) for n in range(len(tokens))]
            tokens = [token.encode().decode("latin-1") for token in tokens]
        return {
            "tokens": tokens,
            "token_logprobs": values,
            "top_logprobs": tops,
            "text_offset": [] if self.echo == "no-offsets" else starts,
        }


def _completion(**choice: Any) -> dict[str, Any]:
    return {
        "id": "cmpl-1",
        "object": "completion",
        "model": "mock",
        "system_fingerprint": "fp_mock",
        "choices": [{"index": 0, "finish_reason": "stop", **choice}],
        "usage": {"prompt_tokens": 40, "completion_tokens": 3, "total_tokens": 43},
    }


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    parts = []
    while size := int(await reader.readuntil(b"\r\n"), 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readexactly(2)
    return b"".join(parts)


def _head(status: int, length: int | None, extra: Mapping[str, str] | None = None) -> bytes:
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    more = "".join(f"{name}: {value}\r\n" for name, value in (extra or {}).items())
    reason = REASONS.get(status, "Status")
    return (
        f"HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\n{size}\r\n{more}\r\n"
    ).encode()


async def _send(
    writer: asyncio.StreamWriter,
    status: int,
    content: Any,
    extra: Mapping[str, str] | None = None,
) -> bool:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    writer.write(_head(status, len(body), extra) + body)
    await writer.drain()
    return True


async def _serve(options: argparse.Namespace) -> None:
    faults = dict(_share(text) for text in options.fault)
    server = FaultyServer(
        faults=faults,
        seed=options.seed,
        port=options.port,
        retry_after=options.retry_after,
        latency=options.latency,
        models=options.model or ["mock"],
        echo=options.echo,
        keep=0,
    )
    async with server:
        print(server.port, flush=True)
        await asyncio.sleep(options.limit)


def _share(text: str) -> tuple[str, float]:
    name, _, share = text.partition("=")
    return name, float(share or 1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until the time limit."""
    parser = argparse.ArgumentParser(description="A model server that misbehaves on purpose.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--fault", action="append", default=[], metavar="NAME=SHARE", help=", ".join(FAULTS)
    )
    parser.add_argument("--retry-after", default="0.01", help="seconds or a date, sent with 429")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before any answer")
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--echo", default="chars")
    parser.add_argument("--limit", type=float, default=300, help="seconds until it ends by itself")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(parser.parse_args(arguments)))


if __name__ == "__main__":
    main()
