"""Generation with a transformers model for several requests at once, each with its own sampling."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from falter.clients.answers import Answer, stop_at
from falter.clients.chat_forms import chat_text
from falter.clients.llama_engine import check_decoding
from falter.integrations.hf_engine import CausalEngine, Engine, Scores, Tokens
from falter.records.types import Message, Sampling, Usage

ANCHOR_TOKENS = 4
"""Prompt tokens decoded with an answer, for tokenizers that drop a space at the very start."""


@dataclass(slots=True, kw_only=True)
class Ask:
    """A prompt with its sampling settings, and the state of its answer during generation."""

    prompt: tuple[int, ...]
    sampling: Sampling
    seed: int
    tokens: list[int] = field(default_factory=list)
    reason: str | None = None
    random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        of = self.sampling
        check_decoding(of.max_tokens, of.temperature, of.stop, of.top_p)


def prompt_tokens(
    engine: Engine,
    messages: Sequence[Message],
    context: str,
    system: str | None,
    offered: Sequence[str] = (),
) -> list[int]:
    """Return the tokens of a chat in the tokenizer's template, or of a plain text.

    Raise `ValueError` if they exceed the model's window. `system` is the system turn for chats that
    have none. If it is None, the template decides; some templates write a default system turn.
    """
    if messages:
        text = chat_text(engine.tokenizer, messages, offered, system)
        # The template writes the start token itself where the model wants one.
        tokens = engine.encode([text], special=False)[0]
    else:
        tokens = engine.encode([context])[0] if context else [engine.start]
    engine.require_room("the prompt", len(tokens))
    return tokens


def write(engine: Engine, asks: Sequence[Ask], cells: int) -> list[Answer]:
    """Return the answers, generated in batches of at most `cells` places of the cache.

    A batch counts prompts and answers. At temperature 0, each token is the likeliest. Above 0, a
    number of `random.Random(seed)` draws each token, in order of token ids, or of likelihood if
    `top_p` is below 1. An answer therefore depends only on its own request. It ends before the
    first stop string, at the token limit, or at the end of the model's window.
    """
    ends = _end_tokens(engine)
    with engine.torch.inference_mode():
        for batch in _batches(asks, cells):
            if isinstance(engine, Seq2SeqEngine):
                _write_seq2seq(engine, batch, ends)
            elif isinstance(engine, CausalEngine) and engine.caches:
                _write(engine, batch, ends)
            elif isinstance(engine, CausalEngine):
                _write_plainly(engine, batch, ends)
    return [_finished(engine, ask) for ask in asks]


def _batches(asks: Sequence[Ask], cells: int) -> Iterator[list[Ask]]:
    """Yield batches of prompts of similar length, each within `cells` places of the cache."""
    batch: list[Ask] = []
    widest = 0
    for ask in sorted(asks, key=lambda ask: len(ask.prompt)):
        wide = max(widest, len(ask.prompt) + ask.sampling.max_tokens)
        if batch and wide * (len(batch) + 1) > cells:
            yield batch
            batch, wide = [], len(ask.prompt) + ask.sampling.max_tokens
        batch.append(ask)
        widest = wide
    if batch:
        yield batch


def _write(engine: CausalEngine, batch: list[Ask], ends: frozenset[int]) -> None:
    """Generate the answers of a batch with the model's cache.

    The prompts are read first, padded at the front. Each later step adds one token to the
    unfinished answers.
    """
    torch, device = engine.torch, engine.model.device
    longest = max(len(ask.prompt) for ask in batch)
    ids = torch.zeros(len(batch), longest, dtype=torch.long)
    mask = torch.zeros(len(batch), longest, dtype=torch.long)
    for n, ask in enumerate(batch):
        ids[n, longest - len(ask.prompt) :] = torch.tensor(ask.prompt)
        mask[n, longest - len(ask.prompt) :] = 1
    ids, mask = ids.to(device), mask.to(device)
    state: Mapping[str, Any] = {"past_key_values": _cache(engine), "use_cache": True}
    going = list(batch)
    while True:
        places = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        logits = engine.forward(ids, keep=1, attention_mask=mask, position_ids=places, **state)
        for ask, row in zip(going, logits[:, -1], strict=True):
            _advance(engine, ask, pick(torch, row, ask), ends)
        left = [n for n, ask in enumerate(going) if ask.reason is None]
        if not left:
            return
        if len(left) < len(going):
            kept = torch.tensor(left, device=device)
            state["past_key_values"].batch_select_indices(kept)
            mask, going = mask[kept], [going[n] for n in left]
        ids = torch.tensor([[ask.tokens[-1]] for ask in going], device=device)
        mask = torch.cat([mask, torch.ones_like(mask[:, :1])], dim=1)


def _write_plainly(engine: CausalEngine, batch: list[Ask], ends: frozenset[int]) -> None:
    """Generate each answer by reading the whole sequence again for each token.

    For models whose cache is not in transformers' standard form.
    """
    for ask in batch:
        while ask.reason is None:
            ids = engine.torch.tensor([[*ask.prompt, *ask.tokens]], device=engine.model.device)
            row = engine.forward(ids, keep=1, use_cache=False)[0, -1]
            _advance(engine, ask, pick(engine.torch, row, ask), ends)


def _cache(engine: CausalEngine) -> Any:
    from transformers import DynamicCache

    return DynamicCache(config=engine.model.config)


def _advance(engine: Engine, ask: Ask, token: int, ends: frozenset[int]) -> None:
    """Append a token to an answer; set `reason` if the answer is complete."""
    if token in ends:
        ask.reason = "stop"
        return
    ask.tokens.append(token)
    sampling = ask.sampling
    before = len(ask.prompt) if engine.prompt_before_text else 1
    full = engine.limit is not None and before + len(ask.tokens) > engine.limit
    if sampling.stop and stop_at(_decoded_answer(engine, ask), sampling.stop) is not None:
        ask.reason = "stop"
    elif full or len(ask.tokens) >= sampling.max_tokens:
        ask.reason = "length"


def pick(torch: Any, row: Any, ask: Ask) -> int:
    """Return the likeliest token at temperature 0, else a token drawn by its probability.

    `row` has the shape (vocabulary,). Raise `ValueError` if its logits are not finite.
    """
    temperature, top_p = ask.sampling.temperature, ask.sampling.top_p
    if not bool(torch.isfinite(row.max())):
        raise ValueError("the model's logits are not numbers; set options: {dtype: float32}")
    if temperature == 0:
        return int(row.argmax())
    chances = ((row.double() - row.max()) / temperature).softmax(-1)
    order = None
    if top_p < 1:
        chances, order = chances.sort(descending=True, stable=True)
        chances = chances[: int((chances.cumsum(-1) - chances < top_p).sum())]
    totals = chances.cumsum(-1)
    drawn = int(torch.searchsorted(totals, ask.random.random() * totals[-1], right=True))
    place = min(drawn, len(chances) - 1)
    return place if order is None else int(order[place])


def _finished(engine: Engine, ask: Ask) -> Answer:
    """Return the answer with its text before any stop string."""
    text = _decoded_answer(engine, ask)
    cut = stop_at(text, ask.sampling.stop)
    if cut is None and ask.reason == "length":
        text = text.rstrip("\ufffd")  # a character that the limit cut in half
    usage = Usage(prompt_tokens=len(ask.prompt), completion_tokens=len(ask.tokens))
    return Answer(text=text[:cut], finish_reason=ask.reason or "length", usage=usage)


def _decoded_answer(engine: Engine, ask: Ask) -> str:
    """Return the text of an answer.

    It is decoded after the last `ANCHOR_TOKENS` of the prompt, whose text is then removed.
    """
    anchor = list(ask.prompt[-ANCHOR_TOKENS:]) if engine.prompt_before_text else []
    before = _decode(engine, anchor)
    whole = _decode(engine, anchor + ask.tokens)
    return whole[len(before) :] if whole.startswith(before) else _decode(engine, ask.tokens)


def _decode(engine: Engine, tokens: Sequence[int]) -> str:
    text: str = engine.tokenizer.decode(
        tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
    return text


def _end_tokens(engine: Engine) -> frozenset[int]:
    """Return the tokens that end an answer, from the model and the tokenizer."""
    named = getattr(engine.model.generation_config, "eos_token_id", None)
    listed = named if isinstance(named, list) else [named]
    return frozenset(t for t in (*listed, engine.tokenizer.eos_token_id) if t is not None)


# Models with an encoder and a decoder, such as T5 and BART


class Seq2SeqEngine(Engine):
    """Engine of an encoder-decoder model, whose decoder generates the answer or scores an option.

    A prompt is encoded once for all its options. The tokenizer adds its end token to a prompt but
    not to an option, as in lm-evaluation-harness.
    """

    shares = False
    prompt_before_text = False

    @property
    def first(self) -> int:
        """Token with which the decoder begins."""
        token = getattr(self._config, "decoder_start_token_id", None)
        return self.start if token is None else int(token)

    def forget(self) -> None:
        """Free unused GPU memory; no prefixes are cached."""
        if self.model.device.type == "cuda":
            self.torch.cuda.empty_cache()

    def split(self, context: str, continuations: Sequence[str]) -> Tokens:
        """Return the context's tokens for the encoder and each continuation's for the decoder.

        White space at the end of the context moves to the front of the continuation. An empty
        context becomes the start token. Raise `ValueError` if a continuation has no token, or if a
        text exceeds the model's window. Nothing is truncated.
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
        """Return the scores of each continuation's tokens, by context and continuation."""
        with self.torch.inference_mode():
            return [self._score(one) for one in asked]

    def _score(self, asked: Tokens) -> list[Scores]:
        """Return the scores for one context, encoded once, with padded continuations."""
        read, seen = self.encoder_states([asked.head])
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

    def encoder_states(self, prompts: Sequence[Sequence[int]]) -> tuple[Any, Any]:
        """Return the encoder's output for padded prompts, and the mask (prompts, tokens)."""
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


def _write_seq2seq(engine: Seq2SeqEngine, batch: list[Ask], ends: frozenset[int]) -> None:
    """Generate the answers of a batch: encode the prompts together, then add one token at a time.

    Of the model's generation settings, only the forced first token is used: BART's start, mBART's
    language.
    """
    torch, device = engine.torch, engine.model.device
    read, seen = engine.encoder_states([ask.prompt for ask in batch])
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
                _advance(engine, ask, pick(torch, row, ask), ends)
        ids = torch.tensor([(ask.tokens or begin)[-1:] for ask in batch], device=device)
