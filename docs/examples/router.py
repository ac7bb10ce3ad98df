"""A ticket router without a language model: what an application of your own looks like to falter.

It looks for words and answers the way a helpful assistant does, in a sentence. A typo in the right
place loses it the word, so it falters like a model, and it answers at once.

    falter run --data tickets.jsonl --template route.txt --target queue --key key \\
               --model function:router:route --scorer label
"""

from __future__ import annotations

import re

WORDS = {
    "billing": ("charged", "invoice", "refund", "payment", "card", "price", "subscription"),
    "delivery": ("parcel", "package", "delivered", "courier", "shipped", "arrive", "tracking"),
    "returns": ("send", "return", "exchange", "small", "large", "wrong", "broken"),
    "account": ("password", "login", "email", "account", "sign", "profile"),
    "technical": ("app", "crashes", "error", "screen", "update", "loads", "button"),
    "sales": ("discount", "order", "offer", "buy", "stock", "upgrade", "quote"),
}


def route(prompt: str) -> str:
    """The queue whose words the ticket has most of, in a sentence."""
    ticket = prompt.partition("Ticket:")[2].casefold()
    words = set(re.findall(r"\w+", ticket))
    best = max(WORDS, key=lambda queue: len(words.intersection(WORDS[queue])))
    if not words.intersection(WORDS[best]):
        return "I am not sure where this belongs."
    if len(ticket) % 3:
        return f"This should go to **{best}**."
    return best.capitalize()
