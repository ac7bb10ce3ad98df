"""The question of an item, as it was before any change: readers tell from it what is asked for."""

from __future__ import annotations

from falter.records.types import Item

__all__ = ["clean_question"]

_NAMES = (
    "question", "query", "problem", "q", "prompt", "frage", "pregunta", "domanda", "vraag",
    "pergunta", "質問", "問題",
)  # fmt: skip


def clean_question(item: Item) -> str:
    """The field that is named like a question, else the only one if it ends by asking.

    Empty where neither is so: numbers of a text that is not the question may well be the answer.
    """
    for name in _NAMES:
        for field, text in item.fields.items():
            if field.casefold() == name:
                return text
    texts = list(item.fields.values())
    asks = len(texts) == 1 and texts[0].rstrip(" \n\"'*_)").endswith(("?", "？"))
    return texts[0] if asks else ""
