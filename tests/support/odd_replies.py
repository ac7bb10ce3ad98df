"""Bodies of replies that no server should send: `odd_replies()` gives about 200, by name."""

from __future__ import annotations

import json
from collections.abc import Iterator

WHOLE = '{"id":"x","model":"m","choices":[%s],"usage":{"prompt_tokens":4,"completion_tokens":3}}'
VALUES = {
    "null": "null", "true": "true", "zero": "0", "minus": "-1", "huge": "9" * 400,
    "infinite": "1e999", "NaN": "NaN", "text": '"x"', "empty text": '""', "list": "[]",
    "mapping": "{}", "surrogate": '"\\ud800 x"', "halves": '"\\ude00\\ud83d"', "zeros": '"\\u0000"',
    "escape": '"\\u001b[2J\\u202e"', "deep list": "[" * 600 + "]" * 600, "deep": "[" * 5000,
    "deep mapping": '{"a":' * 600 + "1" + "}" * 600, "many": f"[{'[],' * 50_000}[]]",
    "nested text": json.dumps("[" * 100_000), "long": json.dumps("é" * 1_100_000),
    "number in quotes": '"12"', "mixed": '[null,1,"x",{"type":"text","text":7}]',
}  # fmt: skip
CHOICE = '{"index":0,"finish_reason":"stop","message":{"content":"Answer: A"}}'
PLACES = {
    "body": "%s",
    "choices": '{"choices":%s}',
    "choice": WHOLE,
    "message": WHOLE % '{"index":0,"finish_reason":"stop","message":%s}',
    "content": WHOLE % '{"index":0,"finish_reason":"stop","message":{"content":%s}}',
    "finish": WHOLE % '{"index":0,"finish_reason":%s,"message":{"content":"Answer: A"}}',
    "reasoning": WHOLE % '{"message":{"content":"A","reasoning":%s,"reasoning_details":%s}}',
    "usage": '{"choices":[' + CHOICE + '],"usage":%s,"model":%s,"id":%s}',
    "error": '{"error":%s}',
    "code": '{"error":{"message":%s,"code":%s}}',
}


def odd_replies() -> Iterator[tuple[str, bytes]]:
    """Every value at every place of a chat completion, and bodies that are no JSON at all."""
    for place, form in PLACES.items():
        for name, value in VALUES.items():
            yield f"{place}: {name}", form.replace("%s", value).encode()
    yield "no body", b""
    yield "no UTF-8", (WHOLE % CHOICE).encode().replace(b"Answer", b"\xff\xfe\xff")
    yield "zeros", b"\0" * 1000
    yield "brackets", b"[" * 10_000_000
    yield "pairs of brackets", b"[" + b"[]," * 3_300_000 + b"[]]"
    yield "text of brackets", (WHOLE % CHOICE.replace("Answer: A", "[" * 2_500_000)).encode()
    yield "HTML", b"<html><title>502 Bad Gateway</title>" * 100
    yield "twice", (WHOLE % CHOICE).encode() * 2
    yield "cut", (WHOLE % CHOICE).encode()[:-9]
    yield "a stream", b'data: {"choices":[]}\n\ndata: [DONE]\n\n'
