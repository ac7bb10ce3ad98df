"""A transformers model with an encoder and a decoder: T5, BART and their like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from falter.clients._hf_engine import Engine, Scores, Tokens
from falter.clients._hf_writing import Ask, Written, advance, batches, ends_of, finished, pick

__all__ = ["Seq2SeqEngine", "write"]


class Seq2SeqEngine(Engine):
    """The encoder reads the prompt, the decoder writes the answer or scores an option.

    Prompts are read once for all their options. The tokenizer adds its end token to a prompt and
    none to an option, as lm-evaluation-harness has it.
    """

    shares = False
    prompt_before_text = False

    @property
    def first(self) -> int:
        """The token that a decoder begins with."""
        token = getattr(self._config, "decoder_start_token_id", None)
        return self.start if token is None else int(token)

    def forget(self) -> None:
        """Nothing is kept from one call to the next."""
        if self.model.device.type == "cuda":
            self.torch.cuda.empty_cache()

    def split(self, context: str, continuations: Sequence[str]) -> Tokens:
        """The context's tokens for the encoder, each continuation's for the decoder.

        White space at the end of the context moves to the front of the continuation. An empty
        context is the start token. ValueError: a continuation without a token, or one that the
        model does not hold (nothing is cut).
        """
        body = context.rstrip()
        space = context[len(body) :]
        head = self.encode([body])[0] if body else [self.start]
        self.require_room("the context", len(head))
        tails = self.encode([space + text for text in continuations], special=False)
        for number, tail in enumerate(tails):
            if not tail:
                raise ValueError(
                    f"continuation {number} is {continuations[number]!r}; it has no token to score"
                )
            self.require_room(f"continuation {number}", len(tail))
        return Tokens(tuple(head), tuple(map(tuple, tails)))

    def score(self, asked: Sequence[Tokens]) -> list[list[Scores]]:
        """The tokens of every continuation: for each context, for each continuation."""
        with self.torch.inference_mode():
            return [self._score(one) for one in asked]

    def _score(self, asked: Tokens) -> list[Scores]:
        """One context, read once; its continuations padded at the end."""
        read, seen = self.read([asked.head])
        size = len(asked.tails)
        longest = max(map(len, asked.tails))
        ids = self.torch.zeros(size, longest, dtype=self.torch.long)
        ids[:, 0] = self.first
        for n, tail in enumerate(asked.tails):
            ids[n, 1 : len(tail)] = self.torch.tensor(tail[:-1], dtype=self.torch.long)
        read.last_hidden_state = read.last_hidden_state.expand(size, -1, -1)
        logits = self.model(
            encoder_outputs=read,
            attention_mask=seen.expand(size, -1),
            decoder_input_ids=ids.to(self.model.device),
            use_cache=False,
        ).logits
        return [self.read_off(logits[n], [*enumerate(t)]) for n, t in enumerate(asked.tails)]

    def read(self, prompts: Sequence[Sequence[int]]) -> tuple[Any, Any]:
        """What the encoder makes of prompts, padded at the end, and which places are theirs."""
        torch, device = self.torch, self.model.device
        longest = max(map(len, prompts))
        ids = torch.zeros(len(prompts), longest, dtype=torch.long)
        seen = torch.zeros(len(prompts), longest, dtype=torch.long)
        for n, prompt in enumerate(prompts):
            ids[n, : len(prompt)] = torch.tensor(prompt)
            seen[n, : len(prompt)] = 1
        ids, seen = ids.to(device), seen.to(device)
        read = self.model.get_encoder()(input_ids=ids, attention_mask=seen, return_dict=True)
        return read, seen


def write(engine: Seq2SeqEngine, asks: Sequence[Ask], cells: int) -> list[Written]:
    """Answer all, each by its own rules, in batches of at most `cells` places."""
    ends = ends_of(engine)
    with engine.torch.inference_mode():
        for batch in batches(asks, cells):
            _write(engine, batch, ends)
    return [finished(engine, ask) for ask in asks]


def _write(engine: Seq2SeqEngine, batch: list[Ask], ends: frozenset[int]) -> None:
    """Read the prompts together, then write a token at a time until the last one ends.

    Of how a model's own configuration would write, only its forced first token is kept: BART's
    start, mBART's language.
    """
    torch, device = engine.torch, engine.model.device
    read, seen = engine.read([ask.prompt for ask in batch])
    forced = getattr(engine.model.generation_config, "forced_bos_token_id", None)
    begin = [engine.first, *([] if forced is None else [forced])]
    ids, past = torch.tensor([begin] * len(batch), device=device), None
    while any(ask.reason is None for ask in batch):
        out = engine.model(
            encoder_outputs=read,
            attention_mask=seen,
            decoder_input_ids=ids,
            past_key_values=past,
            use_cache=True,
        )
        past = out.past_key_values
        for ask, row in zip(batch, out.logits[:, -1], strict=True):
            if ask.reason is None:
                advance(engine, ask, pick(torch, row, ask), ends)
        ids = torch.tensor([(ask.tokens or begin)[-1:] for ask in batch], device=device)
