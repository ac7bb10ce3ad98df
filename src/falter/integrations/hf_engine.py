"""Score and generate with a transformers model in this process, sharing common prefixes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from falter.clients.llama_engine import common_prefix_length

T = TypeVar("T")

# A prefix costs a separate forward pass, which a few tokens do not repay.
MIN_CACHED_PREFIX = 32
"""Number of shared tokens from which a prefix is computed separately and kept."""
# `float().log_softmax()` copies the logits twice: 256 rows of 50,000 tokens are 51 MB a copy.
LOGIT_ROWS_AT_ONCE = 256
"""Rows of logits that are converted to log-probabilities at once."""
# A wrong mask shifts scores by nats. Single precision differs by some 1e-5; bfloat16 has eight
# significant bits, so that a logit between 16 and 32 is rounded by up to 0.06.
EXACT_TOLERANCE, CLOSE_TOLERANCE = 1e-3, 0.3
"""Maximum error of a token's log-probability in a tree: single precision, lower precision."""

Scores = list[tuple[float, bool]]
"""For each scored token, its log-probability, and True if it was the likeliest token."""
LayerState = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a context (`head`) and of each continuation after it (`tails`)."""

    head: tuple[int, ...]
    tails: tuple[tuple[int, ...], ...]


class Engine(ABC):
    """Base of engines: a model with its tokenizer, for one thread at a time.

    It handles text, tokens and length limits for causal and encoder-decoder models. `shares` is
    True if tokens that sequences have in common are computed once. `room` is the maximum tokens of
    a batch.
    """

    shares: bool
    prompt_before_text = True
    """True if an answer continues its prompt's tokens; False for a separate decoder."""

    def __init__(self, model: Any, tokenizer: Any, *, room: int) -> None:
        import torch

        self.model, self.tokenizer = model.eval(), tokenizer
        self.room = room
        self.torch = torch
        self._config = model.config.get_text_config()
        self.limit = _token_limit(self._config, tokenizer)
        self.start = self._start_token()

    @abstractmethod
    def forget(self) -> None:
        """Free the memory of cached prefixes."""

    @abstractmethod
    def split(self, context: str, continuations: Sequence[str]) -> Tokens:
        """Return the tokens of context and continuations as lm-evaluation-harness splits them."""

    @abstractmethod
    def score(self, asked: Sequence[Tokens]) -> list[list[Scores]]:
        """Return the scores of each continuation's tokens, by context and continuation."""

    # -- text and tokens ---------------------------------------------------------------------

    def encode(self, texts: Sequence[str], *, special: bool = True) -> list[list[int]]:
        """Return the token ids of each text, without a second start token if a text spells one.

        As everywhere in transformers, text that spells a special token becomes that token.
        """
        begin = self.tokenizer.decode([self.start])
        encoded: list[list[int]] = []
        for text in texts:
            add = special and not (begin and text.startswith(begin))
            kwargs = {} if add else {"add_special_tokens": False}
            encoded.append(list(self.tokenizer.encode(text, **kwargs)))
        return encoded

    def require_room(self, what: str, tokens: int) -> None:
        """Raise `ValueError` if the model's window is smaller than `tokens`."""
        if self.limit is not None and tokens > self.limit:
            raise ValueError(f"{what} are {tokens} tokens; the model reads at most {self.limit}")

    def _start_token(self) -> int:
        """Return the start token, or the end token if the model has none."""
        tokens = (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id)
        return int(next((token for token in tokens if token is not None), 0))

    def read_off(self, logits: Any, wanted: Sequence[tuple[int, int]]) -> Scores:
        """Return the scores for pairs of (row of logits, token), in single precision at least.

        `logits` has the shape (rows, vocabulary). `log_softmax` errs by some 4e-6 a token, always
        to the same side. It is used instead of the more accurate `logsumexp` because the harness
        uses it.
        """
        torch, device = self.torch, logits.device
        rows, tokens = (torch.tensor(column, device=device) for column in zip(*wanted, strict=True))
        scores = torch.empty(len(wanted), device=device)
        likeliest = torch.empty(len(wanted), device=device, dtype=torch.bool)
        for first in range(0, len(logits), LOGIT_ROWS_AT_ONCE):
            part = logits[first : first + LOGIT_ROWS_AT_ONCE].float().log_softmax(-1)
            here = (rows >= first) & (rows < first + LOGIT_ROWS_AT_ONCE)
            scores[here] = part[rows[here] - first, tokens[here]]
            likeliest[here] = part.argmax(-1)[rows[here] - first] == tokens[here]
        return list(zip(scores.tolist(), likeliest.tolist(), strict=True))


class CausalEngine(Engine):
    """Engine of a causal language model.

    Scoring packs a batch of sequences as a token tree into one row. Each token attends only to
    earlier tokens of its own sequence. A long prefix that all sequences share is computed once and
    cached.

    A trial on creation checks that the architecture computes trees correctly. If it does not,
    `shares` is False and each sequence is computed separately.
    """

    def __init__(self, model: Any, tokenizer: Any, *, room: int, cache_bytes: int) -> None:
        super().__init__(model, tokenizer, room=room)
        self.tokens_read = 0
        self._prefixes: PrefixCache[tuple[LayerState, ...]] = PrefixCache(cache_bytes)
        self._is_single_precision = model.dtype == self.torch.float32
        self._takes_logits_to_keep = _accepts_argument(model, "logits_to_keep")
        self.caches = _accepts_argument(model, "past_key_values")
        self._window = _window(self._config)
        with self.torch.inference_mode():
            self.shares = self.caches and self._tree_is_right()
        self._prefixes.clear()
        self.tokens_read = 0

    def forget(self) -> None:
        """Free the memory of cached prefixes."""
        self._prefixes.clear()
        if self.model.device.type == "cuda":
            self.torch.cuda.empty_cache()

    def split(self, context: str, continuations: Sequence[str]) -> Tokens:
        """Return the tokens of context and continuations as lm-evaluation-harness splits them.

        White space at the end of the context moves to the front of the continuation. Both are
        tokenised together, and the tokens beyond the context's own tokens belong to the
        continuation. An empty context becomes the start token.

        Raise `ValueError` if a continuation has no separate token, or exceeds the model's window.
        Nothing is truncated.
        """
        body = context.rstrip()
        space = context[len(body) :]
        if body:
            head, *wholes = self.encode([body, *(body + space + c for c in continuations)])
            tails = [whole[len(head) :] for whole in wholes]
        else:
            head = [self.start]
            tails = self.encode([space + c for c in continuations], special=False)
            # Some tokenizers add the start token although special tokens are disabled.
            tails = [tail[1:] if tail[:1] == head else tail for tail in tails]
        for number, tail in enumerate(tails):
            if not tail:
                raise ValueError(
                    f"continuation {number} is {continuations[number]!r}; after this context it "
                    "has no token of its own to score"
                )
            self.require_room(f"the context and continuation {number}", len(head) + len(tail) - 1)
        return Tokens(tuple(head), tuple(map(tuple, tails)))

    # -- scores ------------------------------------------------------------------------------

    def score(self, asked: Sequence[Tokens]) -> list[list[Scores]]:
        """Return the scores of each continuation's tokens, by context and continuation."""
        pairs = [(ask.head, tail) for ask in asked for tail in ask.tails]
        sequences = [Scored(h + t, len(h), n) for n, (h, t) in enumerate(pairs)]
        with self.torch.inference_mode():
            scores = iter(self._score(sequences))
        return [[next(scores) for _ in ask.tails] for ask in asked]

    def _score(self, sequences: Sequence[Scored]) -> list[Scores]:
        by_number: list[Scores] = [[] for _ in sequences]
        alone: list[Scored] = []
        for shared, group in groups(sequences, self.room):
            row = pack(group, shared)
            if self.shares and self._fits_window(row):
                for (_, _, number), score in zip(row.wanted, self._score_tree(row), strict=True):
                    by_number[number].append(score)
            else:
                alone += group
        for batch in _length_batches(alone, self.room):
            for sequence, scores in zip(batch, self._score_separately(batch), strict=True):
                by_number[sequence.number] = scores
        return by_number

    def _fits_window(self, row: TokenTree) -> bool:
        """Return True if every layer's attention window covers the whole row."""
        return self._window is None or len(row.prefix) + len(row.tokens) <= self._window

    def _score_tree(self, row: TokenTree) -> Scores:
        """Compute a row after its prefix; return the scores in the order of `wanted`."""
        torch, device = self.torch, self.model.device
        known, parts = self._cached_prefix(row.prefix)
        row = _with_prefix(row, known)
        mask = self._tree_mask(row.parents, known)
        # Several sequences may need the logits of the same place.
        rows = sorted({place for place, _, _ in row.wanted})
        logits = self.forward(
            torch.tensor([row.tokens], device=device),
            keep=torch.tensor(rows, device=device),
            attention_mask=mask,
            position_ids=torch.tensor([row.positions], device=device),
            **self._past_arguments(parts, known),
        )[0]
        order = {place: n for n, place in enumerate(rows)}
        return self.read_off(logits, [(order[place], token) for place, token, _ in row.wanted])

    def _tree_mask(self, parents: Sequence[int], known: int) -> Any:
        """Return the attention mask of a row: each token sees the prefix, its ancestors and itself.

        The shape is (1, 1, tokens, known + tokens) for a cached prefix of `known` tokens.
        """
        torch = self.torch
        size = len(parents)
        seen = torch.zeros(size, known + size, dtype=torch.bool)
        seen[:, :known] = True
        # Parents stand before their children, so that a parent's row is complete by then.
        for place, parent in enumerate(parents):
            if parent >= 0:
                seen[place] |= seen[parent]
            seen[place, known + place] = True
        dtype = self.model.dtype
        mask = torch.zeros(size, known + size, dtype=dtype)
        mask.masked_fill_(~seen, torch.finfo(dtype).min)
        return mask[None, None].to(self.model.device)

    def _cached_prefix(self, tokens: tuple[int, ...]) -> tuple[int, tuple[LayerState, ...] | None]:
        """Return the length and state of the cached part of a prefix.

        If `MIN_CACHED_PREFIX` or more tokens are missing, they are computed and cached first.
        """
        known, parts = self._prefixes.find(tokens)
        if len(tokens) - known < MIN_CACHED_PREFIX:
            return known, parts
        while known < len(tokens):
            # In pieces, since a prefix may be longer than a row.
            upto = min(len(tokens), known + self.room)
            past = self._past_arguments(parts, known, empty=True)
            self.forward(
                self.torch.tensor([tokens[known:upto]], device=self.model.device), keep=1, **past
            )
            parts = tuple((k, v) for k, v, *_ in past["past_key_values"])
            known = upto
        assert parts is not None
        size = sum(k.numel() * k.element_size() * 2 for k, _ in parts)
        self._prefixes.keep(tokens, parts, size)
        return known, parts

    def _past_arguments(
        self, parts: tuple[LayerState, ...] | None, length: int, *, empty: bool = False
    ) -> dict[str, Any]:
        """Return model arguments for the first `length` tokens of a prefix, left unchanged."""
        from transformers import DynamicCache

        if not length and not empty:
            return {"use_cache": False}
        # Without a configuration every layer keeps all it has read, however narrow its window.
        cache = DynamicCache()
        for layer, (keys, values) in enumerate(parts or () if length else ()):
            cache.update(keys[:, :, :length], values[:, :, :length], layer)
        return {"past_key_values": cache, "use_cache": True}

    def _score_separately(self, batch: Sequence[Scored]) -> list[Scores]:
        """Score each sequence separately, padded at the end, without shared tokens."""
        torch, device = self.torch, self.model.device
        longest = max(sequence.size for sequence in batch)
        first = min(sequence.start for sequence in batch) - 1
        ids = torch.zeros(len(batch), longest, dtype=torch.long)
        mask = torch.zeros(len(batch), longest, dtype=torch.long)
        for n, sequence in enumerate(batch):
            ids[n, : sequence.size] = torch.tensor(sequence.tokens[:-1])
            mask[n, : sequence.size] = 1
        logits = self.forward(
            ids.to(device), keep=longest - first, attention_mask=mask.to(device), use_cache=False
        )
        return [
            self.read_off(
                logits[n],
                [
                    (at - 1 - first, sequence.tokens[at])
                    for at in range(sequence.start, len(sequence.tokens))
                ],
            )
            for n, sequence in enumerate(batch)
        ]

    def forward(self, ids: Any, *, keep: Any, **arguments: Any) -> Any:
        """Return logits: of the last `keep` places in each row, or of the places in a tensor."""
        self.tokens_read += ids.numel()
        if self._takes_logits_to_keep:
            return self.model(input_ids=ids, logits_to_keep=keep, **arguments).logits
        logits = self.model(input_ids=ids, **arguments).logits
        return logits[:, -keep:] if isinstance(keep, int) else logits[:, keep]

    # -- check of trees ----------------------------------------------------------------------

    def _tree_is_right(self) -> bool:
        """Return True if a full row on a cached prefix scores like its separate sequences."""
        length = self.room if self._window is None else min(self.room, self._window)
        sequences = _trial_sequences(self._config.vocab_size, length)
        if len(sequences) < 2 or (self.limit is not None and self.limit < sequences[0].size):
            return False
        shared, group = next(groups(sequences, self.room))
        picked = [group[0], group[len(group) // 2], group[-1]]
        row = pack(group, shared)
        in_tree: list[list[float]] = [[] for _ in sequences]
        try:
            for (_, _, number), (score, _) in zip(row.wanted, self._score_tree(row), strict=True):
                in_tree[number].append(score)
        # An architecture may refuse such a mask or cache: then nothing is shared.
        except (RuntimeError, ValueError, TypeError, IndexError, AttributeError, KeyError):
            return False
        plain = [score for scores in self._score_separately(picked) for score, _ in scores]
        tree = [score for sequence in picked for score in in_tree[sequence.number]]
        worst = max(abs(a - b) for a, b in zip(tree, plain, strict=True))
        return worst <= (EXACT_TOLERANCE if self._is_single_precision else CLOSE_TOLERANCE)


def _with_prefix(row: TokenTree, known: int) -> TokenTree:
    """Return the row with the part of its prefix beyond `known` tokens placed before it."""
    rest = row.prefix[known:]
    if not rest:
        return row
    by = len(rest)
    return TokenTree(
        prefix=row.prefix[:known],
        tokens=[*rest, *row.tokens],
        positions=[*range(known, known + by), *row.positions],
        parents=[*range(-1, by - 1), *(parent + by for parent in row.parents)],
        wanted=[(place + by, token, number) for place, token, number in row.wanted],
    )


def _length_batches(sequences: Iterable[Scored], room: int) -> Iterable[list[Scored]]:
    """Yield batches of similar length with at most `room` tokens, padding included."""
    batch: list[Scored] = []
    # The longest first: it sets the width to which its batch is padded.
    for sequence in sorted(sequences, key=lambda sequence: -sequence.size):
        if batch and (len(batch) + 1) * batch[0].size > room:
            yield batch
            batch = []
        batch.append(sequence)
    if batch:
        yield batch


def _trial_sequences(vocabulary: int, length: int) -> list[Scored]:
    """Return sequences with a prefix of 40 tokens and branches of 8 that fill a row."""
    # Multiples of a prime are spread over the vocabulary, and the trial needs no text.
    ids = [(7 + 7919 * n) % vocabulary for n in range(length + 1)]
    trunk = tuple(ids[:40])
    return [
        Scored((*trunk, *ids[at : at + 9]), 41, n) for n, at in enumerate(range(40, length - 7, 8))
    ]


def _accepts_argument(model: Any, argument: str) -> bool:
    import inspect

    return argument in inspect.signature(model.forward).parameters


def _window(config: Any) -> int | None:
    """Return the narrowest attention window or chunk in the configuration, or None."""
    fields: Mapping[str, object] = config.to_dict()
    windows = [
        value
        for name, value in fields.items()
        if isinstance(value, int) and not isinstance(value, bool) and value > 0
        if ("window" in name or "chunk" in name) and not name.endswith("layers")
    ]
    return min(windows, default=None)


def _token_limit(config: Any, tokenizer: Any) -> int | None:
    """Return the token limit in the configuration, or else the tokenizer's, or None."""
    for name in ("n_positions", "max_position_embeddings", "n_ctx"):
        limit = getattr(config, name, None)
        if isinstance(limit, int) and limit > 0:
            return limit
    longest = getattr(tokenizer, "model_max_length", None)
    # transformers writes 1e30 where a tokenizer states no limit.
    return longest if isinstance(longest, int) and longest < 1_000_000_000 else None


# Token trees: sequences with common prefixes, packed into rows that hold them once


@dataclass(frozen=True, slots=True, order=True)
class Scored:
    """A token sequence whose tokens from `start` (above 0) on are to be scored.

    `number` identifies the sequence.
    """

    tokens: tuple[int, ...]
    start: int
    number: int

    @property
    def size(self) -> int:
        """Number of tokens that a model must read: all but the last."""
        return len(self.tokens) - 1


@dataclass(slots=True)
class TokenTree:
    """A tree of tokens in one row, parents before children.

    `parents` are places in the row, −1 for tokens directly after the prefix. `positions` count from
    the beginning of the sequence, prefix included. `wanted` lists the token likelihoods to read.
    """

    prefix: tuple[int, ...]
    tokens: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    wanted: list[tuple[int, int, int]] = field(default_factory=list)
    """(place in the row, target token, number of the sequence)"""


def groups(sequences: Sequence[Scored], room: int) -> Iterator[tuple[int, list[Scored]]]:
    """Yield (shared prefix length, sequences) for groups whose token tree fits into one row.

    The sequences of a group are neighbours in sorted order. `room` bounds the tree without the
    prefix; a single sequence may exceed it. A sequence is not added if that shortens the shared
    prefix by more than half a row: a long prefix is cheaper to compute once and cache. The prefix
    ends before the first place whose logits are read.
    """
    group: list[Scored] = []
    shared = size = 0
    for sequence in sorted(sequences):
        if group:
            agreed = common_prefix_length(group[-1].tokens, sequence.tokens)
            left = min(shared, agreed, sequence.start - 1)
            new = sequence.size - min(agreed, sequence.size, group[-1].size)
            grown = size + (shared - left) + new
            if grown <= room and shared - left <= room // 2:
                group.append(sequence)
                shared, size = left, grown
                continue
            yield shared, group
        group, shared = [sequence], sequence.start - 1
        size = sequence.size - shared
    if group:
        yield shared, group


def pack(group: Sequence[Scored], prefix: int) -> TokenTree:
    """Return the token tree of sorted sequences that share `prefix` tokens, as a row."""
    row = TokenTree(prefix=group[0].tokens[:prefix])
    path: list[int] = []
    last: tuple[int, ...] = row.prefix
    for sequence in group:
        del path[max(0, min(common_prefix_length(last, sequence.tokens), sequence.size) - prefix) :]
        for at in range(prefix + len(path), sequence.size):
            row.parents.append(path[-1] if path else -1)
            path.append(len(row.tokens))
            row.tokens.append(sequence.tokens[at])
            row.positions.append(at)
        for at in range(sequence.start, len(sequence.tokens)):
            row.wanted.append((path[at - 1 - prefix], sequence.tokens[at], sequence.number))
        last = sequence.tokens[: sequence.size]
    return row


@dataclass(frozen=True, slots=True)
class CachedPrefix(Generic[T]):
    """A prefix with the model's keys and values for it (`state`), and their size in bytes."""

    tokens: tuple[int, ...]
    state: T
    size: int


class PrefixCache(Generic[T]):
    """LRU cache of prefixes, limited to a number of bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._cached: OrderedDict[tuple[int, ...], CachedPrefix[T]] = OrderedDict()

    def find(self, tokens: tuple[int, ...]) -> tuple[int, T | None]:
        """Return the length and state of the longest cached prefix of `tokens`, or 0 and None.

        The state may cover more tokens than that length.
        """
        longest, best = 0, None
        # All of them, since the cache holds few: each is megabytes of keys and values.
        for held in self._cached.values():
            length = common_prefix_length(held.tokens, tokens)
            if length > longest:
                longest, best = length, held
        if best is None:
            return 0, None
        self._cached.move_to_end(best.tokens)
        return longest, best.state

    def keep(self, tokens: tuple[int, ...], state: T, size: int) -> None:
        """Cache a prefix, evicting the least recently used; one that is too large is not kept."""
        if size > self._max_bytes:
            return
        self._cached[tokens] = CachedPrefix(tokens, state, size)
        self._cached.move_to_end(tokens)
        while sum(held.size for held in self._cached.values()) > self._max_bytes:
            self._cached.popitem(last=False)

    def clear(self) -> None:
        """Remove all prefixes."""
        self._cached.clear()
