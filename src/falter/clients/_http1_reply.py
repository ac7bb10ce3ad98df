"""Replies of HTTP/1.1 read out of bytes, in whatever pieces they come; no I/O, nothing trusted."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from falter.clients._replies import BadReply, TooLargeError

__all__ = ["Fields", "RawReply", "ReplyParser"]

LONGEST_HEAD = 64 * 1024
LONGEST_CHUNK_LINE = 4 * 1024
MOST_INTERIM = 8

_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: [^\r\n]*)?")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LENGTH = re.compile(r"[0-9]{1,15}")
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,12}")
_BARE_END = re.compile(rb"\r?\n\r?\n")
_LINE_END = re.compile(rb"\r?\n")

Where = Literal["head", "body", "until close", "size", "chunk", "chunk end", "trailers"]


class Fields(Mapping[str, str]):
    """The headers of a reply; names count in any case, repeated ones are one list."""

    __slots__ = ("_by_name",)

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._by_name: dict[str, str] = {}
        for line in lines:
            name, text = _field(line)
            known = self._by_name.get(name)
            self._by_name[name] = text if known is None else f"{known}, {text}"

    def get(self, name: str, default: Any = None) -> Any:
        return self._by_name.get(name.lower(), default)

    def __getitem__(self, name: str) -> str:
        return self._by_name[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)


@lru_cache(maxsize=1024)
def _field(line: bytes) -> tuple[str, str]:
    """The name of a header in small letters, and its value; most are the same in every reply."""
    name, colon, value = line.partition(b":")
    if not colon or _NAME.fullmatch(name) is None:
        raise BadReply("a header that is none")
    return name.decode("ascii").lower(), value.strip(b" \t").decode("utf-8", "replace")


class RawReply(NamedTuple):
    """A whole reply, and whether the connection can take another request."""

    status: int
    headers: Fields
    body: bytes
    keeps: bool


class ReplyParser:
    """One reply, fed piece by piece."""

    __slots__ = ("_buffer", "_headers", "_interim", "_keeps", "_left", "_most", "_parts", "_size",
                 "_status", "_where", "began")  # fmt: skip

    def __init__(self, most: int) -> None:
        self._most = most
        self._where: Where = "head"
        self._buffer = b""
        self._parts: list[bytes] = []
        self._left = self._size = self._interim = 0
        self._status, self._keeps = 0, True
        self._headers = Fields(())
        self.began = False

    def feed(self, data: bytes) -> RawReply | None:
        """The reply, when these bytes complete it. Raises `BadReply` or `TooLargeError`."""
        self.began = True
        if self._where in ("body", "until close"):
            return self._more_body(data)
        self._buffer = self._buffer + data if self._buffer else data
        while True:
            before = self._where, len(self._buffer)
            if self._where == "head":
                done = self._read_head()
            elif self._where in ("body", "until close"):
                data, self._buffer = self._buffer, b""
                return self._more_body(data)
            else:
                done = self._read_chunks()
            if done is not None:
                return done
            if before == (self._where, len(self._buffer)):
                return None

    def end(self) -> RawReply | None:
        """The reply that ends with its connection, if this one does."""
        if self._where != "until close":
            return None
        self._keeps = False
        return self._whole(b"")

    # -- the head ----------------------------------------------------------------------------

    def _read_head(self) -> RawReply | None:
        buffer = self._buffer
        end, behind = buffer.find(b"\r\n\r\n"), 4
        if end < 0 and (bare := _BARE_END.search(buffer)) is not None:
            end, behind = bare.start(), bare.end() - bare.start()
        if max(end, len(buffer) if end < 0 else 0) > LONGEST_HEAD:
            raise BadReply(f"headers of more than {LONGEST_HEAD // 1024} KiB")
        if end < 0:
            if not b"HTTP/1.".startswith(buffer[:7]):
                raise BadReply("no reply of HTTP/1.1")
            return None
        head, self._buffer = buffer[:end], buffer[end + behind :]
        if b"\0" in head:
            raise BadReply("a header that is none")
        lines = head.split(b"\r\n") if behind == 4 else _LINE_END.split(head)
        status = _STATUS.fullmatch(lines[0])
        if status is None:
            raise BadReply("no reply of HTTP/1.1")
        self._headers = Fields(lines[1:])
        self._status = int(status[2])
        if 100 <= self._status < 200:
            self._interim += 1
            if self._status == 101 or self._interim > MOST_INTERIM:
                raise BadReply(f"HTTP {self._status} in place of an answer")
            return None
        return self._begin_body(version=status[1])

    def _begin_body(self, version: bytes) -> RawReply | None:
        headers = self._headers
        options = headers.get("connection", "").lower()
        self._keeps = "close" not in options and (version == b"1" or "keep-alive" in options)
        coding = headers.get("transfer-encoding", "identity").lower()
        if self._status in (204, 304):
            return self._whole(b"")
        if coding == "chunked":
            self._where = "size"
            return None
        if coding != "identity":
            raise BadReply("a transfer encoding other than chunked")
        said = headers.get("content-length")
        if said is None:
            self._where, self._left = "until close", self._most
            return None
        first, *others = said.split(",")
        if _LENGTH.fullmatch(first) is None or any(more.strip() != first for more in others):
            raise BadReply("a length that is none")
        self._where, self._left = "body", int(first)
        if self._left > self._most:
            raise TooLargeError
        if len(self._buffer) >= self._left:
            body, rest = self._buffer[: self._left], self._buffer[self._left :]
            return self._whole(body, rest)
        return None

    # -- the body ----------------------------------------------------------------------------

    def _more_body(self, data: bytes) -> RawReply | None:
        if self._where == "until close":
            if len(data) > self._left:
                raise TooLargeError
            self._take(data)
            return None
        if len(data) < self._left:
            self._take(data)
            return None
        return self._whole(data[: self._left], data[self._left :])

    def _take(self, data: bytes) -> None:
        self._parts.append(data)
        self._left -= len(data)

    def _read_chunks(self) -> RawReply | None:
        """One step further in a chunked body."""
        if self._where == "chunk":
            data, self._buffer = self._buffer[: self._left], self._buffer[self._left :]
            self._take(data)
            if not self._left:
                self._where = "chunk end"
            return None
        line, newline, rest = self._buffer.partition(b"\n")
        if len(line) > LONGEST_CHUNK_LINE:
            raise BadReply("a chunk without a size")
        if not newline:
            return None
        self._buffer, line = rest, line.removesuffix(b"\r")
        if self._where == "trailers":
            if not line:
                return self._whole(b"", self._buffer)
            self._interim += 1
            if self._interim > LONGEST_HEAD // 1024:
                raise BadReply("too many trailers")
        elif self._where == "chunk end":
            if line:
                raise BadReply("a chunk longer than its size")
            self._where = "size"
        else:
            self._begin_chunk(line)
        return None

    def _begin_chunk(self, line: bytes) -> None:
        digits = line.partition(b";")[0].strip(b" \t")
        if _SIZE.fullmatch(digits) is None:
            raise BadReply("a chunk without a size")
        self._left = int(digits, 16)
        self._size += self._left
        if self._size > self._most:
            raise TooLargeError
        self._where = "chunk" if self._left else "trailers"

    def _whole(self, last: bytes, rest: bytes = b"") -> RawReply:
        body = b"".join([*self._parts, last]) if self._parts else last
        coding = self._headers.get("content-encoding", "identity").lower()
        if coding != "identity" and body:
            body = _unpacked(body, coding, self._most)
        # What follows a reply unasked would be taken for the answer to the next request.
        return RawReply(self._status, self._headers, body, self._keeps and not rest)


def _unpacked(body: bytes, coding: str, most: int) -> bytes:
    """The body of a server that compresses although it was asked not to."""
    if coding in ("gzip", "x-gzip"):
        window = 16 + zlib.MAX_WBITS
    elif coding == "deflate":
        window = zlib.MAX_WBITS if body[0] & 0x0F == 8 else -zlib.MAX_WBITS
    else:
        raise BadReply("a compression that was not asked for")
    unpacker = zlib.decompressobj(window)
    try:
        text = unpacker.decompress(body, most + 1)
    except zlib.error:
        raise BadReply("a compressed body that is broken") from None
    if len(text) > most:
        raise TooLargeError
    if not unpacker.eof:
        raise BadReply("a compressed body that is cut")
    return text
