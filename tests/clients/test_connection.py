"""The connection to a server: one hostile server says things well and badly, and is read."""

from __future__ import annotations

import asyncio
import gzip
import re
import ssl
import subprocess
import zlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from yarl import URL

from falter.clients import Answer, ClientSettings, Transport
from falter.clients.connection import Connection, Reply
from falter.clients.retry import Outcome

Exchange = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
BODY = b'{"said": "na\xc3\xafve"}'
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
LENGTH = b"Content-Length: %d\r\n\r\n" % len(BODY)


@dataclass(frozen=True)
class Said:
    """A server's answer: pieces of bytes, and whether it closes afterwards."""

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


def got_from(said: Said, times: int = 2) -> Got:
    """Return the results of some requests on one connection, and the requests received."""
    asked: list[bytes] = []
    return asyncio.run(ask(serving(said, asked), asked, times))


@pytest.mark.parametrize("said", WELL, ids=lambda said: said.name)
def test_what_is_well_said_is_read(said: Said) -> None:
    """Status, headers and body, twice on one connection."""
    got, _ = got_from(said)
    data = b"".join(said.pieces)
    status = int(re.findall(rb"HTTP/1\.[01] ([2-5]\d\d)", data)[0])
    body = BODY * data.replace(b"\r\n", b"").count(BODY) or BODY
    if said.name in ("nothing in it", "no content"):
        body = b""
    for reply in got:
        assert isinstance(reply, tuple), reply
        assert (reply[0], reply[2]) == (status, body)
        assert reply[1].get("Retry-After") == ("7" if status == 429 else None)


@pytest.mark.parametrize("said", BADLY, ids=lambda said: said.name)
def test_what_is_badly_said_is_an_outcome(said: Said) -> None:
    """A reply that is too large is final, silence is a time-out, and all else is asked again."""
    (outcome,), _ = got_from(said, 1)
    assert isinstance(outcome, Outcome), outcome
    assert outcome.final == (said.name == "too large")
    waits = ("silence", "silence in the body")
    if said.name != "too large, in chunks":  # a chunk that announces too much is waited for
        assert (outcome.what == "timed out") == (said.name in waits)


def test_a_request_is_what_was_asked_for() -> None:
    """The method, path, body and headers; nothing compressed is asked for."""
    _, (request,) = got_from(WELL[0], 1)
    head, _, body = request.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    assert (first, body) == (b"POST /v1/say HTTP/1.1", b'{"say": "hello"}')
    assert {line for line in lines if not line.startswith(b"Host: 127.0.0.1:")} == {
        b"User-Agent: falter", b"Content-Type: application/json", b"Accept-Encoding: identity",
        b"Accept: */*", b"Content-Length: 16", b"Authorization: Bearer pk-very-secret-0123456789",
    }  # fmt: skip


def test_an_answer_that_nobody_asked_for_is_no_answer() -> None:
    """A second reply behind the first is not taken for that to the next request."""
    twice = Said("twice", [(OK + LENGTH + BODY) + (OK + b"Content-Length: 4\r\n\r\nevil")])
    got, _ = got_from(twice, 3)
    assert all(isinstance(reply, tuple) and reply[2] == BODY for reply in got)


def test_a_connection_that_was_closed_meanwhile_is_replaced() -> None:
    """A server that lets go of idle connections without saying so fails no request."""
    asked: list[bytes] = []
    said = Said("closes unsaid", [OK + LENGTH + BODY], closes=True)
    got, _ = asyncio.run(ask(serving(said, asked), asked, 4, pause=0.05))
    assert all(isinstance(reply, tuple) for reply in got)
    assert len(asked) == 4


def test_a_connection_that_closes_under_a_request_is_an_attempt_that_failed() -> None:
    """It is asked again, as any other."""
    asked: list[bytes] = []
    said = Said("closes unsaid", [OK + LENGTH + BODY], closes=True)

    async def main() -> None:
        server = await asyncio.start_server(serving(said, asked), "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        transport = Transport(ClientSettings(name="m", base_url=url, max_wait=0.01))
        try:
            for _ in range(4):
                answer, _ = await transport.ask(
                    transport.url("say"), b"{}", 0, lambda data: Answer(text=data["said"])
                )
                assert answer.text == "naïve"
        finally:
            await transport.close()
            server.close()

    asyncio.run(main())
    assert len(asked) == 4


def test_one_connection_carries_many_requests() -> None:
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


def test_the_key_is_masked() -> None:
    echo = b'{"said": "pk-very-secret-0123456789"}'
    said = Said("echo", [OK + b"Content-Length: %d\r\n\r\n" % len(echo) + echo])
    (reply,), _ = got_from(said, 1)
    assert isinstance(reply, tuple)
    assert reply[2] == '{"said": "…"}'.encode()


def test_the_password_of_a_proxy_is_in_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async def main(scheme: str) -> Reply | Outcome:
        proxy = await asyncio.start_server(refuse, "127.0.0.1", 0)
        port = proxy.sockets[0].getsockname()[1]
        monkeypatch.setenv("https_proxy", f"{scheme}me:pk-very-secret@127.0.0.1:{port}")
        url = "https://models.invalid/v1"
        connection = Connection(url, connections=1, timeout=5, headers={}, secrets=[])
        try:
            return await connection.post(URL(url + "/say"), b"{}")
        finally:
            await connection.close()
            proxy.close()

    for scheme, why in (("http://", "403"), ("", "it is no URL")):
        outcome = asyncio.run(main(scheme))
        assert isinstance(outcome, Outcome)
        assert outcome.message == f"the environment's proxy failed: {why}"


def test_certificates_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    asked: list[bytes] = []
    serve = serving(WELL[0], asked)
    (refused,), _ = asyncio.run(ask(serve, asked, 1, context, "localhost"))
    assert isinstance(refused, Outcome)
    assert refused.final
    assert "certificate" in refused.message
    assert not asked
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    for run in (asyncio.run, pytest.importorskip("uvloop").run):
        taken, _ = run(ask(serve, asked, 2, context, "localhost"))
        assert all(isinstance(reply, tuple) and reply[2] == BODY for reply in taken)


def test_headers_of_the_user_replace_those_of_falter() -> None:
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

    asyncio.run(main({"host": "far.example", "X-Team": "a b"}))
    lines = asked.pop().split(b"\r\n")
    assert [line for line in lines if line.lower().startswith(b"host")] == [b"host: far.example"]
    assert b"X-Team: a b" in lines
    with pytest.raises(ValueError, match=r"[Hh]eader"):
        asyncio.run(main({"X-Team": "a\r\nX-Other: b"}))
    assert not asked


def test_it_works_on_uvloop() -> None:
    uvloop = pytest.importorskip("uvloop")
    for said in WELL:
        got, _ = uvloop.run(ask(serving(said, []), [], 2))
        assert all(isinstance(reply, tuple) for reply in got), said.name


def test_an_unknown_host_is_named() -> None:
    async def main() -> Reply | Outcome:
        url = "http://no-such-host.invalid:9"
        connection = Connection(url, connections=1, timeout=5, headers={}, secrets=[])
        try:
            return await connection.post(URL(url + "/say"), b"{}")
        finally:
            await connection.close()

    outcome = asyncio.run(main())
    assert isinstance(outcome, Outcome)
    assert outcome.message == "unknown host 'no-such-host.invalid'"
