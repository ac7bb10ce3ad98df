"""Text as a GGUF model's tokens and back: plain prompts, continuations, chats."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

__all__ = ["Vocabulary", "too_long"]

ROLES = ("system", "user", "assistant")


class Vocabulary:
    """A model's tokens and chat template. Special tokens in a text are plain text."""

    def __init__(self, llama: Any, model: Any) -> None:
        self._model = model
        self._vocab = model.get_vocab()
        self._message = llama.LlamaChatMessage
        self._specials: dict[str, int] | None = None

    def is_end(self, token: int) -> bool:
        """Whether a token ends a turn."""
        return bool(self._vocab.is_eog(token))

    def tokens(self, text: str) -> list[int]:
        """The tokens of plain text; special tokens in it are not read as such."""
        try:
            tokens: list[int] = self._vocab.tokenize(text, False, False)
        except UnicodeEncodeError as error:
            bad = text[error.start]
            raise ValueError(
                f"the text holds {bad!r} at {error.start}, half of a surrogate pair; "
                "a model reads only whole characters"
            ) from error
        return tokens

    def text(self, tokens: list[int]) -> str:
        """The text of whole token lists; bytes that make no character become U+FFFD."""
        # cyllama drops a space at the very start, so something else has to stand there.
        anchor = self.tokens("x")
        text: str = self._vocab.detokenize(anchor + tokens)
        return text[1:]

    def raw(self, text: str) -> list[int]:
        """A prompt's tokens, with a start token where the model wants one or there is no other."""
        if self._vocab.get_add_bos() or not text:
            return [self._start_token(), *self.tokens(text)]
        return self.tokens(text)

    def _start_token(self) -> int:
        bos: int = self._vocab.token_bos()
        return bos if bos >= 0 else int(self._vocab.token_eos())

    def encode(
        self, context: str, continuations: Sequence[str], limit: int
    ) -> tuple[int, list[list[int]]]:
        """The number of context tokens, and the tokens of context and continuation for each."""
        if isinstance(continuations, str) or not continuations:
            raise ValueError(f"continuations is {continuations!r}; expected at least one text")
        body = context.rstrip()
        space = context[len(body) :]
        head = self.raw(body)
        sequences = []
        for number, continuation in enumerate(continuations):
            tail = (
                self.raw(body + space + continuation)[len(head) :]
                if body
                else (self.tokens(space + continuation))
            )
            if not tail:
                raise ValueError(
                    f"continuation {number} is {continuation!r}; after this context it has no "
                    "token of its own to score"
                )
            if len(head) + len(tail) - 1 > limit:
                what = f"the context and continuation {number}"
                raise ValueError(too_long(what, len(head) + len(tail) - 1, limit))
            sequences.append(head + tail)
        return len(head), sequences

    def chat(self, messages: Sequence[tuple[str, str]]) -> list[int]:
        """The chat template's tokens: its own markers are special, the contents are plain text."""
        _check_messages(messages)
        marks = [f"\u2983{number}\u2984" for number in range(len(messages))]
        turns = [
            self._message(role=role, content=mark)
            for (role, _), mark in zip(messages, marks, strict=True)
        ]
        template = self._model.get_default_chat_template()
        if not template:
            raise ValueError("the model has no chat template; give the prompt as one text")
        rendered: str = self._model.chat_apply_template(template, turns, True)
        contents = {mark: text for mark, (_, text) in zip(marks, messages, strict=True)}
        if any(rendered.count(mark) != 1 for mark in marks):
            raise ValueError("the model's chat template does not keep every message as it is")
        special = self._special_tokens()
        pieces = re.split("(" + "|".join(map(re.escape, [*special, *marks])) + ")", rendered)

        tokens = [self._start_token()] if self._vocab.get_add_bos() else []
        plain = ""
        for piece in pieces:
            if piece in special:
                tokens += [*self.tokens(plain), special[piece]]
                plain = ""
            else:
                # Contents and the template's own words are one text, as they would be rendered.
                plain += contents.get(piece, piece)
        return tokens + self.tokens(plain)

    def _special_tokens(self) -> dict[str, int]:
        """The model's control tokens, longest first."""
        if self._specials is None:
            vocab = self._vocab
            specials = {
                vocab.get_text(token): token
                for token in range(vocab.n_vocab)
                if vocab.is_control(token)
            }
            self._specials = dict(sorted(specials.items(), key=lambda item: -len(item[0])))
        return self._specials


def too_long(what: str, tokens: int, limit: int) -> str:
    """A message about a prompt beyond the window."""
    return f"{what} are {tokens} tokens; the model reads at most {limit}"


def _check_messages(messages: Sequence[tuple[str, str]]) -> None:
    if not messages:
        raise ValueError("messages is empty; expected at least one (role, content) pair")
    for role, _ in messages:
        if role not in ROLES:
            raise ValueError(f"role is {role!r}; expected one of {', '.join(ROLES)}")
