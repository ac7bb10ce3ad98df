"""A llama.cpp model in this process: option scores and text, without a server."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from falter.clients.answers import stop_at
from falter.records.types import ContinuationScore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ScoreRow: TypeAlias = "NDArray[np.float64]"
TokenEntry: TypeAlias = tuple[int, int, int, bool]
"""Token, position, sequence, and True if the scores of the next token are wanted."""

# One decode is one micro-batch of at most this many tokens. From 64 on, llama.cpp's flash attention
# takes another path, and scores with and without a cached prefix differ by up to 0.3 nats. Below
# that the size is a matter of speed: 16 reads a prompt 3 % slower than 32, and has fewer cached
# tokens to decode again when a prefix ends inside a block (5-shot questions: a fifth less time).
BLOCK = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A generated text and why it ended: "stop" or "length".

    `completion_tokens` counts the tokens drawn, without the one that ended the turn.
    """

    text: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int


class LlamaEngine:
    """A GGUF model on one thread, with a key-value cache of its own.

    An engine serves one thread at a time. Decoding releases the GIL, so several engines run in
    parallel; `fork` makes another engine on the same weights.

    The last decoded tokens stay in the cache. The next call starts from the longest prefix that it
    shares with them, rounded down to whole blocks. So every block holds the same tokens as without
    the cache, and the scores are identical to the last bit on every processor.
    """

    _llama: Any
    _model: Any
    _vocabulary: Vocabulary | None
    _context: Any
    _batch: Any
    _cached_tokens: list[int]

    def __init__(self, path: Path, *, n_ctx: int = 8192, n_seq_max: int = 32) -> None:
        from cyllama.llama import llama_cpp

        llama_cpp.disable_logging()
        llama_cpp.llama_backend_init()
        params = llama_cpp.LlamaModelParams()
        params.n_gpu_layers = 0
        self._open_context(llama_cpp, _load(llama_cpp, path, params), n_ctx, n_seq_max)

    def fork(self) -> LlamaEngine:
        """Return another engine with the same weights and a separate cache, for another thread."""
        self._require_open()
        twin = object.__new__(LlamaEngine)
        twin._open_context(self._llama, self._model, self._n_ctx, self._n_seq_max)
        return twin

    def close(self) -> None:
        """Free the cache now; the weights are freed with the last engine that uses them."""
        for part in (self._batch, self._context):
            if part is not None:
                part.close()
        self._batch = self._context = self._vocabulary = self._model = None
        self._cached_tokens = []

    def score(self, context: str, continuations: Sequence[str]) -> tuple[ContinuationScore, ...]:
        """Return the likelihood of each continuation, as lm-evaluation-harness defines it.

        White space at the end of the context moves to the front of the continuation. Both are
        tokenised together, and the tokens after the context's own are the continuation's. An empty
        context is the model's start token, or its end token if it has no start token. Text such as
        `<|im_end|>` is plain text.

        Raise `ValueError` if there are no continuations, or if a continuation has no token. Also
        raise it if context and continuation exceed the context window: the harness truncates such
        a context from the left, but this method does not.
        """
        vocab = self._require_open()
        start, sequences = vocab.encode(context, continuations, self._n_ctx)
        inputs = [sequence[:-1] for sequence in sequences]
        sums = [_LogLikelihood() for _ in sequences]

        # The prefix common to all is the prefix common to the first and last in sorted order.
        shared = common_prefix_length(min(inputs), max(inputs))
        for at, row in self._decode_trunk(inputs[0][:shared], rows_from=start - 1):
            scores = self._log_softmax(row)
            for sequence, total in zip(sequences, sums, strict=True):
                total.add(scores, sequence[at + 1])

        for group in self._fitting_groups([len(tokens) - shared for tokens in inputs], shared):
            places = [(i, at) for i in group for at in range(shared, len(inputs[i]))]
            for (i, at), row in self._decode_branches(inputs, places):
                sums[i].add(self._log_softmax(row), sequences[i][at + 1])
        return tuple(total.result() for total in sums)

    def context_tokens(self, context: str) -> int:
        """Return the number of tokens that `score` reads before a continuation."""
        return len(self._require_open().raw(context.rstrip()))

    def generate(
        self,
        messages: Sequence[tuple[str, str]] | str,
        *,
        max_tokens: int,
        temperature: float,
        seed: int,
        stop: Sequence[str] = (),
        grammar: str | None = None,
    ) -> Generation:
        """Continue a chat, or a raw prompt, until the model, a stop string or a limit ends it.

        Messages are (role, content) pairs for the model's chat template; special tokens in a
        content stay plain text. Temperature 0 takes the most likely token. Above it, one number of
        `random.Random(seed)` draws each token, in order of token ids. The text ends before the
        first stop string. A character that the token limit truncates is left out. A response that
        reaches the context window ends with "length", too. A `grammar` of llama.cpp limits the
        possible tokens; tokens are then drawn by llama.cpp.

        Raise `ValueError` for settings that are out of range, for a prompt that exceeds the context
        window, and for scores that are not finite.
        """
        vocab = self._require_open()
        check_decoding(max_tokens, temperature, stop)
        prompt = vocab.raw(messages) if isinstance(messages, str) else vocab.chat(messages)
        if len(prompt) > self._n_ctx:
            raise ValueError(too_long("the prompt", len(prompt), self._n_ctx))
        random_number = random.Random(seed).random
        tokens: list[int] = []
        sampler = None if grammar is None else self._sampler(grammar, temperature, seed)
        reason = "length"
        for place in self._places_after(prompt, tokens):
            if not tokens and not math.isfinite(self._row(place).max()):
                raise ValueError(
                    "the model's logits are not finite numbers: its weights are damaged"
                )
            token = self._token_at(place, sampler, temperature, random_number)
            if vocab.is_end(token):
                reason = "stop"
                break
            tokens.append(token)
            if stop and stop_at(vocab.text(tokens), stop) is not None:
                reason = "stop"
                break
            if len(tokens) == max_tokens:
                break
        text = vocab.text(tokens)
        cut = stop_at(text, stop)
        return Generation(
            text=text.rstrip("\ufffd") if cut is None and reason == "length" else text[:cut],
            finish_reason=reason,
            prompt_tokens=len(prompt),
            completion_tokens=len(tokens),
        )

    # -- the model ---------------------------------------------------------------------------

    def _open_context(self, llama: Any, model: Any, n_ctx: int, n_seq_max: int) -> None:
        import numpy

        self._numpy = numpy
        self._llama = llama
        self._model = model
        self._vocabulary = Vocabulary(llama, model)
        self._n_ctx = min(n_ctx, model.n_ctx_train)
        self._n_seq_max = n_seq_max
        self._context = llama.LlamaContext(model, _context_params(llama, self._n_ctx, n_seq_max))
        self._batch = llama.LlamaBatch(n_tokens=BLOCK, embd=0, n_seq_max=1)
        self._greedy_sampler = llama.LlamaSampler()
        self._greedy_sampler.add_greedy()
        self._cached_tokens = []

    def _require_open(self) -> Vocabulary:
        if self._vocabulary is None:
            raise ValueError("this engine is closed; make a new LlamaEngine")
        return self._vocabulary

    # -- decoding ----------------------------------------------------------------------------

    def _decode(self, entries: Sequence[TokenEntry]) -> Iterator[tuple[int, ScoreRow]]:
        """Decode block by block; yield index and scores of each entry that wants them."""
        for i, place in self._decode_places(entries):
            yield i, self._row(place)

    def _decode_places(self, entries: Sequence[TokenEntry]) -> Iterator[tuple[int, int]]:
        """Decode block by block; yield index and row in its block of each entry with scores."""
        for first in range(0, len(entries), BLOCK):
            block = entries[first : first + BLOCK]
            self._batch.clear()
            for token, at, sequence, wanted in block:
                self._batch.add(token, at, [sequence], wanted)
            self._context.decode(self._batch)
            for i, entry in enumerate(block):
                if entry[3]:
                    yield first + i, i

    def _decode_trunk(self, tokens: list[int], *, rows_from: int) -> Iterator[tuple[int, ScoreRow]]:
        """Decode the tokens that sequence 0 has not cached.

        Yield the positions from `rows_from` on, with the scores of their next tokens.
        """
        for at, place in self._trunk_places(tokens, rows_from):
            yield at, self._row(place)

    def _trunk_places(self, tokens: list[int], rows_from: int) -> Iterator[tuple[int, int]]:
        """Decode as `_decode_trunk` does; yield positions with their row in the block."""
        kept = self._trim_cache(tokens, rows_from)
        entries = [(tokens[at], at, 0, at >= rows_from) for at in range(kept, len(tokens))]
        for i, place in self._decode_places(entries):
            yield kept + i, place
        self._cached_tokens = tokens

    def _trim_cache(self, tokens: list[int], below: int) -> int:
        """Drop all of sequence 0 except the whole blocks that it shares with these tokens.

        Return the number of tokens that are kept, at most `below`.
        """
        kept = min(common_prefix_length(self._cached_tokens, tokens), below) // BLOCK * BLOCK
        self._cached_tokens = []  # stays so if the decode that follows fails
        if kept and self._context.memory_seq_rm(0, kept, -1):
            return kept
        self._context.kv_cache_clear(False)
        return 0

    def _decode_branches(
        self, inputs: list[list[int]], places: list[tuple[int, int]]
    ) -> Iterator[tuple[tuple[int, int], ScoreRow]]:
        """Decode places (sequence, position) after the trunk, each sequence on a copy of it."""
        lanes = {i: lane for lane, i in enumerate(dict(places), 1)}
        entries = [(inputs[i][at], at, lanes[i], True) for i, at in places]
        with self._copies_of_trunk(len(lanes)):
            for n, row in self._decode(entries):
                yield places[n], row

    @contextmanager
    def _copies_of_trunk(self, number: int) -> Iterator[None]:
        """Keep sequences 1 to `number` as copies of sequence 0 until the `with` block ends."""
        held, self._cached_tokens = self._cached_tokens, []
        for lane in range(1, number + 1):
            self._context.memory_seq_cp(0, lane, -1, -1)
        yield
        for lane in range(1, number + 1):
            self._context.memory_seq_rm(lane, -1, -1)
        self._cached_tokens = held  # not reached when a decode failed: the next call starts afresh

    def _fitting_groups(self, extras: list[int], trunk: int) -> Iterator[list[int]]:
        """Yield groups of sequences that fit into the engine's sequences and cache cells.

        `extras` are the sequences' numbers of tokens after the trunk of `trunk` tokens. Sequences
        without such tokens are left out.
        """
        group: list[int] = []
        free_cells = self._n_ctx - trunk
        for i, extra in enumerate(extras):
            if not extra:
                continue
            if len(group) == self._n_seq_max - 1 or extra > free_cells:
                yield group
                group, free_cells = [], self._n_ctx - trunk
            group.append(i)
            free_cells -= extra
        if group:
            yield group

    def _places_after(self, prompt: list[int], tokens: list[int]) -> Iterator[int]:
        """Yield the row in its block of the scores after the prompt, then after each new token.

        The caller appends each new token to `tokens`.
        """
        yield from [place for _, place in self._trunk_places(prompt, len(prompt) - 1)]
        while len(prompt) + len(tokens) <= self._n_ctx:
            entry = (tokens[-1], len(prompt) + len(tokens) - 1, 0, True)
            yield from [place for _, place in self._decode_places([entry])]

    # -- scores ------------------------------------------------------------------------------

    def _row(self, i: int) -> ScoreRow:
        logits = self._context.get_logits_ith(i)
        return self._numpy.fromiter(logits, dtype=self._numpy.float64, count=len(logits))

    def _log_softmax(self, row: ScoreRow) -> ScoreRow:
        shifted: ScoreRow = row - row.max()
        shifted -= math.log(float(self._numpy.exp(shifted).sum()))
        return shifted

    def _sampler(self, grammar: str, temperature: float, seed: int) -> Any:
        """Return a sampler of llama.cpp that takes only tokens that a grammar permits."""
        sampler = self._llama.LlamaSampler()
        sampler.add_grammar(self._model.get_vocab(), grammar, "root")
        if temperature == 0:
            sampler.add_greedy()
        else:
            sampler.add_temp(temperature)
            sampler.add_dist(seed % 2**32)
        return sampler

    def _token_at(self, place: int, sampler: Any, temperature: float, draw: Any) -> int:
        """Return the next token; at temperature 0 without a copy of all scores."""
        if sampler is not None or temperature == 0:
            return int((sampler or self._greedy_sampler).sample(self._context, place))
        return self._pick(self._row(place), temperature, draw)

    def _pick(self, row: ScoreRow, temperature: float, draw: Any) -> int:
        """Return the likeliest token at temperature 0, or else a token drawn by its probability."""
        if temperature == 0:
            return int(row.argmax())
        cumulated = self._numpy.exp((row - row.max()) / temperature).cumsum()
        chosen = self._numpy.searchsorted(cumulated, draw() * cumulated[-1], side="right")
        return min(int(chosen), len(row) - 1)


class _LogLikelihood:
    """The log-likelihood of a continuation, summed token by token."""

    __slots__ = ("greedy", "logprob", "tokens")

    def __init__(self) -> None:
        self.logprob, self.tokens, self.greedy = 0.0, 0, True

    def add(self, scores: ScoreRow, token: int) -> None:
        self.logprob += float(scores[token])
        self.tokens += 1
        self.greedy = self.greedy and int(scores.argmax()) == token

    def result(self) -> ContinuationScore:
        return ContinuationScore(logprob=self.logprob, tokens=self.tokens, greedy=self.greedy)


def _load(llama: Any, path: Path, params: Any) -> Any:
    """Load the weights as a model with the attribute `n_vocab`.

    cyllama 0.2 reads `n_vocab` from the model when it returns logits, but does not define it.
    """

    class Model(llama.LlamaModel):  # type: ignore[misc]
        n_vocab = property(lambda self: self.get_vocab().n_vocab)

    return Model(str(path), params)


def _context_params(llama: Any, n_ctx: int, n_seq_max: int) -> Any:
    params = llama.LlamaContextParams()
    params.n_ctx = n_ctx
    # cyllama 0.7 aborts the process when a batch has no room for one output a sequence.
    params.n_batch = max(BLOCK, n_seq_max)
    params.n_ubatch = BLOCK
    params.n_seq_max = n_seq_max
    params.n_threads = params.n_threads_batch = 1
    # One pool of cells for all sequences: a copy of a prefix then shares its cells, not a part of
    # the window for each of 32 sequences.
    params.kv_unified = True
    params.offload_kqv = params.op_offload = False
    return params


def common_prefix_length(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the length of the prefix that both sequences share."""
    shorter = min(len(first), len(second))
    if first[:shorter] == second[:shorter]:
        return shorter
    # By bisection: slices are compared in C, a loop over thousands of tokens is not.
    low, high = 0, shorter
    while high - low > 1:
        middle = (low + high) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle
    return low


def check_decoding(
    max_tokens: int, temperature: float, stop: Sequence[str], top_p: float = 1.0
) -> None:
    """Raise `ValueError` for settings with which no model can decode."""
    if max_tokens < 1:
        raise ValueError(f"max_tokens is {max_tokens}; expected at least 1")
    if not 0 <= temperature < math.inf:
        raise ValueError(f"temperature is {temperature}; expected 0 or more")
    if not 0 < top_p <= 1:
        raise ValueError(f"top_p is {top_p}; expected above 0, at most 1")
    if isinstance(stop, str) or "" in stop:
        raise ValueError(f"stop is {stop!r}; expected a list of non-empty texts")


# Text as tokens and back


class Vocabulary:
    """A model's tokenizer and chat template. Special tokens in a text are plain text."""

    def __init__(self, llama: Any, model: Any) -> None:
        self._model = model
        self._vocab = model.get_vocab()
        self._message_type = llama.LlamaChatMessage
        self._special_by_text: dict[str, int] | None = None

    def is_end(self, token: int) -> bool:
        """Return True if a token ends a turn."""
        return bool(self._vocab.is_eog(token))

    def tokens(self, text: str) -> list[int]:
        """Return the tokens of a text; special tokens in it are plain text.

        Raise `ValueError` for a lone surrogate.
        """
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
        """Return the text of a whole list of tokens; bytes that form no character become U+FFFD."""
        # cyllama drops a space at the very start, so an "x" is put before it.
        anchor = self.tokens("x")
        text: str = self._vocab.detokenize(anchor + tokens)
        return text[1:]

    def raw(self, text: str) -> list[int]:
        """Return a prompt's tokens; they start with a start token if the model uses one.

        An empty text has the start token in any case.
        """
        if self._vocab.get_add_bos() or not text:
            return [self._start_token(), *self.tokens(text)]
        return self.tokens(text)

    def _start_token(self) -> int:
        bos: int = self._vocab.token_bos()
        return bos if bos >= 0 else int(self._vocab.token_eos())

    def encode(
        self, context: str, continuations: Sequence[str], limit: int
    ) -> tuple[int, list[list[int]]]:
        """Return the number of context tokens, and for each continuation all of its tokens.

        The tokens of a continuation include the context's. Raise `ValueError` for a continuation
        without a token, and for more tokens than `limit`.
        """
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
        """Return a chat's tokens: the template's markers are special, the contents plain text."""
        # The template is rendered with placeholders, so that a content which spells "<|im_end|>"
        # cannot end its turn. These brackets are rare, and each placeholder must appear once.
        marks = [f"\u2983{number}\u2984" for number in range(len(messages))]
        turns = [
            self._message_type(role=role, content=mark)
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
                # Contents and the template's plain text are tokenised together, as rendered.
                plain += contents.get(piece, piece)
        return tokens + self.tokens(plain)

    def _special_tokens(self) -> dict[str, int]:
        """Return the model's control tokens by their text, longest first."""
        if self._special_by_text is None:
            vocab = self._vocab
            specials = {
                vocab.get_text(token): token
                for token in range(vocab.n_vocab)
                if vocab.is_control(token)
            }
            self._special_by_text = dict(sorted(specials.items(), key=lambda item: -len(item[0])))
        return self._special_by_text


def too_long(what: str, tokens: int, limit: int) -> str:
    """Return the message about a prompt that exceeds the context window."""
    return f"{what} are {tokens} tokens; the model reads at most {limit}"
