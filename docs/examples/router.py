"""A ticket router without a language model: what an application of your own looks like to falter.

It looks for words and answers the way a helpful assistant does, in a sentence. A typo in the right
place loses it the word, so it falters like a model, and it answers at once.

    falter run --data tickets.jsonl --template route.txt --target queue --key key \\
               --model function:router:route --scorer label
"""

from __future__ import annotations

import re

WORDS = {
    "billing": ("charged", "charge", "invoice", "payment", "credit", "receipt", "costs"),
    "delivery": ("parcel", "package", "tracking", "order", "box", "warehouse"),
    "returns": ("back", "return", "exchange", "refund"),
    "account": ("password", "log", "profile", "signed", "sign"),
    "technical": ("app", "crashes", "error", "screen", "printer", "page"),
    "sales": ("discount", "offer", "buy", "sell", "quote"),
}


def route(prompt: str) -> str:
    """The queue whose words the ticket has most of, in a sentence."""
    ticket = prompt.partition("Ticket:")[2].casefold()
    words = set(re.findall(r"\w+", ticket))
    best = max(WORDS, key=lambda queue: len(words.intersection(WORDS[queue])))
    if not words.intersection(WORDS[best]):
        return "I would send this to sales, they know who can help."
    return f"This should go to **{best}**." if len(ticket) % 3 else best.capitalize()
