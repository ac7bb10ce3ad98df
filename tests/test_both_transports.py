"""Requests take one of two ways, `Http1` or aiohttp. One hostile server is asked both ways."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import ssl
import subprocess
import zlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from falter.clients._connection import WITH_AIOHTTP, Connection, Reply
from falter.clients._http1_reply import ReplyParser
from falter.clients._replies import BadReply, TooLargeError
from falter.clients._retry import Outcome

Exchange = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
BODY = b'{"said": "na\xc3\xafve"}'
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
LENGTH = b"Content-Length: %d\r\n\r\n" % len(BODY)


@dataclass(frozen=True)
class Said:
    """What a server answers: pieces of bytes, and whether it closes afterwards."""

    name: str
    pieces: Sequence[bytes]
    closes: bool = False
    pause: float = 0.0


def chunked(*parts: bytes, extension: bytes = b"", trailers: bytes = b"") -> bytes:
    out = b"".join(b"%x%b\r\n%b\r\n" % (len(p), extension, p) for p in parts)
    return out + b"0\r\n" + trailers + b"\r\n"


def split(data: bytes, size: int = 1) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


TE = b"Transfer-Encoding: chunked\r\n\r\n"
WELL = [
    Said("plain", [OK + LENGTH + BODY]),
    Said("byte by byte", split(OK + LENGTH + BODY)),
    Said("head, then body", [OK + LENGTH, BODY], pause=0.02),
    Said("nothing in it", [OK + b"Content-Length: 0\r\n\r\n"]),
    Said("chunked", [OK + TE + chunked(BODY[:5], BODY[5:])]),
    Said("chunked, byte by byte", split(OK + TE + chunked(BODY[:3], BODY[3:4], BODY[4:]))),
    Said("chunks with extensions", [OK + TE + chunked(BODY, extension=b";a=1")]),
    Said("chunks with trailers", [OK + TE + chunked(BODY, trailers=b"X-Sum: 1\r\n")]),
    Said("chunks in capitals", [OK + b"TRANSFER-ENCODING: Chunked\r\n\r\n" + chunked(BODY * 9)]),
    Said("until it closes", [OK + b"\r\n" + BODY], closes=True),
    Said("closes afterwards", [OK + b"Connection: close\r\n" + LENGTH + BODY], closes=True),
    Said("of 1.0", [b"HTTP/1.0 200 OK\r\n" + LENGTH + BODY], closes=True),
    Said("of 1.0, kept", [b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n" + LENGTH + BODY]),
    Said("continue first", [b"HTTP/1.1 100 Continue\r\n\r\n" + OK + LENGTH + BODY]),
    Said("a hint first", [b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK + LENGTH + BODY]),
    Said("no reason", [b"HTTP/1.1 200\r\n" + LENGTH + BODY]),
    Said("an odd reason", [b"HTTP/1.1 200 \xe9\r\n" + LENGTH + BODY]),
    Said("names in any case", [b"HTTP/1.1 429 Slow\r\nretry-AFTER: 7\r\n" + LENGTH + BODY]),
    Said("a header twice", [OK + b"X-Twice: a\r\nX-Twice: b\r\n" + LENGTH + BODY]),
    Said("many headers", [OK + b"".join(b"X-%d: 1\r\n" % n for n in range(80)) + LENGTH + BODY]),
    Said("an error", [b"HTTP/1.1 500 Oh\r\n" + LENGTH + BODY]),
    Said("moved", [b"HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:9/\r\n" + LENGTH + BODY]),
    Said("no content", [b"HTTP/1.1 204 None\r\n\r\n"]),
    Said("a cookie", [OK + b"Set-Cookie: a=b\r\n" + LENGTH + BODY]),
    Said("compressed unasked", [
        OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(gzip.compress(BODY))
        + gzip.compress(BODY),
    ]),
    Said("deflated unasked", [
        OK + b"Content-Encoding: deflate\r\nContent-Length: %d\r\n\r\n" % len(zlib.compress(BODY))
        + zlib.compress(BODY),
    ]),
    Said("compressed in chunks", [
        OK + b"Content-Encoding: gzip\r\n" + TE + chunked(*split(gzip.compress(BODY), 4)),
    ]),
]  # fmt: skip
BADLY = [
    Said("closes at once", [], closes=True),
    Said("half a status", [b"HTTP/1."], closes=True),
    Said("half a head", [OK], closes=True),
    Said("half a body", [OK + LENGTH + BODY[:4]], closes=True),
    Said("half a chunk", [OK + TE + b"10\r\nabc"], closes=True),
    Said("no last chunk", [OK + TE + b"3\r\nabc\r\n"], closes=True),
    Said("no HTTP", [b"SSH-2.0-OpenSSH_9.2\r\n"], closes=True),
    Said("HTTP/2", [b"HTTP/2 200 OK\r\n" + LENGTH + BODY], closes=True),
    Said("no status", [b"HTTP/1.1 abc OK\r\n" + LENGTH + BODY], closes=True),
    Said("two lengths", [OK + b"Content-Length: 3\r\n" + LENGTH + BODY], closes=True),
    Said("a length below nothing", [OK + b"Content-Length: -1\r\n\r\n" + BODY], closes=True),
    Said("a length with a sign", [OK + b"Content-Length: +15\r\n\r\n" + BODY], closes=True),
    Said("a length in words", [OK + b"Content-Length: ten\r\n\r\n" + BODY], closes=True),
    Said("a chunk of no size", [OK + TE + b"zz\r\nabc\r\n0\r\n\r\n"], closes=True),
    Said("a chunk below nothing", [OK + TE + b"-3\r\nabc\r\n0\r\n\r\n"], closes=True),
    Said("a chunk too long", [OK + TE + b"3\r\nabcdef\r\n0\r\n\r\n"], closes=True),
    Said("a header without a colon", [OK + b"nonsense\r\n" + LENGTH + BODY], closes=True),
    Said("a header without a name", [OK + b": x\r\n" + LENGTH + BODY], closes=True),
    Said("zeros in a header", [OK + b"X: a\0b\r\n" + LENGTH + BODY], closes=True),
    Said("too large", [OK + b"Content-Length: 99999999999\r\n\r\n"], closes=True),
    Said("too large, in chunks", [OK + TE + b"ffffffffff\r\n"], closes=True),
    Said("broken compression", [
        OK + b"Content-Encoding: gzip\r\nContent-Length: 9\r\n\r\n123456789",
    ], closes=True),
    Said("unknown compression", [OK + b"Content-Encoding: br\r\n" + LENGTH + BODY], closes=True),
    Said("endless headers", [OK, *[b"X-%d: %b\r\n" % (n, b"y" * 900) for n in range(100)]],
         closes=True),
    Said("silence", [], pause=1.0),
    Said("silence in the body", [OK + LENGTH + BODY[:3]], pause=1.0),
]  # fmt: skip


def serving(said: Said, asked: list[bytes]) -> Exchange:
    """A server that answers every request on a connection in the same way."""

    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                asked.append(head + await reader.readexactly(length))
                for n, piece in enumerate(said.pieces):
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(said.pause if n == 0 else 0)
                if not said.pieces:
                    await asyncio.sleep(said.pause)
                if said.closes:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    return exchange


Got = tuple[list[Reply | Outcome], list[bytes]]


async def ask(
    exchange: Exchange,
    asked: list[bytes],
    times: int,
    tls: ssl.SSLContext | None = None,
    host: str = "127.0.0.1",
    pause: float = 0.0,
) -> Got:
    server = await asyncio.start_server(exchange, "127.0.0.1", 0, ssl=tls)
    scheme, port = "https" if tls else "http", server.sockets[0].getsockname()[1]
    connection = Connection(
        f"{scheme}://{host}:{port}/v1", connections=4, timeout=0.4,
        headers={"Authorization": "Bearer pk-very-secret-0123456789"},
        secrets=["pk-very-secret-0123456789"],
    )  # fmt: skip
    got: list[Reply | Outcome] = []
    try:
        for _ in range(times):
            url = URL(f"{scheme}://{host}:{port}/v1/say")
            got.append(await connection.post(url, b'{"say": "hello"}'))
            await asyncio.sleep(pause)
    finally:
        await connection.close()
        server.close()
    return got, asked


def both(said: Said, monkeypatch: pytest.MonkeyPatch, times: int = 2) -> tuple[Got, Got]:
    """The same server asked by `Http1` and by aiohttp, some times each on one connection."""
    outcomes = []
    for variable in ("", "1"):
        monkeypatch.setenv(WITH_AIOHTTP, variable)
        asked: list[bytes] = []
        outcomes.append(asyncio.run(ask(serving(said, asked), asked, times)))
    return outcomes[0], outcomes[1]


def test_what_is_well_said_is_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    for said in WELL:
        ours, theirs = both(said, monkeypatch)
        for mine, other in zip(ours[0], theirs[0], strict=True):
            assert isinstance(mine, tuple), (said.name, mine)
            assert isinstance(other, tuple), (said.name, other)
            assert (mine[0], mine[2]) == (other[0], other[2]), said.name
            assert mine[1].get("Retry-After") == other[1].get("Retry-After"), said.name


def test_what_is_badly_said_is_an_outcome_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    for said in BADLY:
        ours, theirs = both(said, monkeypatch, 1)
        mine, other = ours[0][0], theirs[0][0]
        assert isinstance(mine, Outcome), (said.name, mine)
        assert isinstance(other, Outcome), (said.name, other)
        # A chunk that announces too much is refused at once; aiohttp waits for it.
        assert mine.final == other.final or said.name == "too large, in chunks", said.name
        assert (mine.what == "timed out") == (other.what == "timed out"), said.name


def test_both_ask_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same method, path, body and headers."""
    ours, theirs = both(WELL[0], monkeypatch, 1)

    def fields(request: bytes) -> set[bytes]:
        head, _, body = request.partition(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")
        assert b"User-Agent: falter" in lines
        return {first, body, *(line for line in lines if not line.startswith(b"Host: 127.0.0.1:"))}

    assert fields(ours[1][0]) == fields(theirs[1][0])


def test_an_answer_that_nobody_asked_for_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second reply behind the first is not taken for that to the next request."""
    twice = Said("twice", [(OK + LENGTH + BODY) + (OK + b"Content-Length: 4\r\n\r\nevil")])
    for got, _ in both(twice, monkeypatch, 3):
        assert all(isinstance(reply, tuple) and reply[2] == BODY for reply in got)


def test_a_connection_that_was_closed_meanwhile_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server that lets go of idle connections without saying so fails no request."""
    monkeypatch.setenv(WITH_AIOHTTP, "")
    for pause in (0.0, 0.05):
        asked: list[bytes] = []
        said = Said("closes unsaid", [OK + LENGTH + BODY], closes=True)
        got, _ = asyncio.run(ask(serving(said, asked), asked, 4, pause=pause))
        assert all(isinstance(reply, tuple) for reply in got)
        assert len(asked) == 4


def test_one_connection_carries_many_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WITH_AIOHTTP, "")
    opened = []

    async def main() -> None:
        asked: list[bytes] = []
        serve = serving(WELL[0], asked)

        async def counted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            opened.append(1)
            await serve(reader, writer)

        await ask(counted, asked, 20)

    asyncio.run(main())
    assert len(opened) == 1


def test_the_key_is_masked_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    echo = b'{"said": "pk-very-secret-0123456789"}'
    said = Said("echo", [OK + b"Content-Length: %d\r\n\r\n" % len(echo) + echo])
    for got, _ in both(said, monkeypatch, 1):
        assert isinstance(got[0], tuple)
        assert got[0][2] == '{"said": "…"}'.encode()


def test_certificates_are_checked_both_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that nobody vouches for ends the request for good; one that is trusted is taken."""
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    for variable in ("", "1"):
        monkeypatch.setenv(WITH_AIOHTTP, variable)
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        asked: list[bytes] = []
        serve = serving(WELL[0], asked)
        (refused,), _ = asyncio.run(ask(serve, asked, 1, context, "localhost"))
        assert isinstance(refused, Outcome)
        assert refused.final
        assert "certificate" in refused.message
        assert not asked
        if not variable:  # aiohttp makes its context when it is imported
            monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
            for run in (asyncio.run, pytest.importorskip("uvloop").run):
                taken, _ = run(ask(serve, asked, 2, context, "localhost"))
                assert all(isinstance(reply, tuple) and reply[2] == BODY for reply in taken)


def test_headers_of_the_user_replace_those_of_falter(monkeypatch: pytest.MonkeyPatch) -> None:
    """In whatever case they are written; one with a line break is refused."""
    asked: list[bytes] = []

    async def main(headers: dict[str, str]) -> None:
        server = await asyncio.start_server(serving(WELL[0], asked), "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        connection = Connection(url, connections=1, timeout=5, headers=headers, secrets=[])
        try:
            await connection.post(URL(url + "/say"), b"{}")
        finally:
            await connection.close()
            server.close()

    for variable in ("", "1"):
        monkeypatch.setenv(WITH_AIOHTTP, variable)
        asyncio.run(main({"host": "far.example", "X-Team": "a b"}))
        lines = asked.pop().split(b"\r\n")
        assert [line for line in lines if line.lower().startswith(b"host")] == [
            b"host: far.example"
        ]
        assert b"X-Team: a b" in lines
        with pytest.raises(ValueError, match=r"[Hh]eader"):
            asyncio.run(main({"X-Team": "a\r\nX-Other: b"}))
        assert not asked


def test_both_ways_work_on_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    uvloop = pytest.importorskip("uvloop")
    for variable in ("", "1"):
        monkeypatch.setenv(WITH_AIOHTTP, variable)
        for said in WELL:
            got, _ = uvloop.run(ask(serving(said, []), [], 2))
            assert all(isinstance(reply, tuple) for reply in got), said.name


def test_the_way_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy takes aiohttp, and never stands before this machine."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    for url, variable, way in (
        ("http://127.0.0.1:1", "", "HTTP/1.1, kept connections"),
        ("http://127.0.0.1:1", "1", "aiohttp"),
        ("http://far.example", "", "aiohttp, since there is a proxy"),
    ):
        monkeypatch.setenv(WITH_AIOHTTP, variable)
        connection = Connection(url, connections=1, timeout=1, headers={}, secrets=[])
        assert connection.way == way


@given(st.sampled_from(WELL), st.lists(st.integers(1, 400), max_size=6))
def test_pieces_make_no_difference(said: Said, cuts: list[int]) -> None:
    """A reply is the same however the network cuts it."""
    data = b"".join(said.pieces)
    whole, cut = ReplyParser(2**20), ReplyParser(2**20)
    expected = whole.feed(data) or whole.end()
    got = None
    edges = [0, *sorted(min(c, len(data)) for c in cuts), len(data)]
    for start, end in pairwise(edges):
        got = got or (cut.feed(data[start:end]) if start < end else None)
    got = got or cut.end()
    assert expected is not None
    assert got is not None
    assert (got.status, got.body, dict(got.headers)) == (
        expected.status, expected.body, dict(expected.headers),
    )  # fmt: skip


@given(st.sampled_from(WELL + BADLY), st.binary(max_size=40), st.integers(0, 300))
def test_no_bytes_raise_anything_else(said: Said, noise: bytes, at: int) -> None:
    """Bytes from anywhere are a reply, the wait for more, or an error that is foreseen."""
    data = b"".join(said.pieces)
    parser = ReplyParser(2**16)
    with contextlib.suppress(BadReply, TooLargeError):
        reply = parser.feed(data[:at] + noise + data[at:]) or parser.end()
        assert reply is None or len(reply.body) <= 2**16


def test_an_unknown_host_is_named_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> Reply | Outcome:
        url = "http://no-such-host.invalid:9"
        connection = Connection(url, connections=1, timeout=5, headers={}, secrets=[])
        try:
            return await connection.post(URL(url + "/say"), b"{}")
        finally:
            await connection.close()

    for variable in ("", "1"):
        monkeypatch.setenv(WITH_AIOHTTP, variable)
        outcome = asyncio.run(main())
        assert isinstance(outcome, Outcome)
        assert outcome.message == "unknown host 'no-such-host.invalid'"
