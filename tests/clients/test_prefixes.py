"""Sequences that share beginnings, packed into rows: every token once, every parent right."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from falter.clients.llama_engine import common_prefix_length
from falter.integrations.hf_engine import PrefixCache, Scored, TokenTree, groups, pack

tokens = st.integers(0, 2)
sequences = st.lists(
    st.tuples(st.lists(tokens, min_size=2, max_size=24).map(tuple), st.integers(1, 23)),
    min_size=1,
    max_size=20,
).map(lambda found: [Scored(t, min(at, len(t) - 1), n) for n, (t, at) in enumerate(found)])


def path(row: TokenTree, place: int) -> tuple[int, ...]:
    """The tokens from the beginning to a place of the row."""
    found: list[int] = []
    while place >= 0:
        assert row.parents[place] < place
        found.append(row.tokens[place])
        place = row.parents[place]
    return row.prefix + tuple(reversed(found))


@given(st.lists(tokens), st.lists(tokens))
def test_the_common_prefix_is_the_longest(one: list[int], other: list[int]) -> None:
    """Up to there both are equal, and there they differ or end."""
    length = common_prefix_length(one, other)
    assert one[:length] == other[:length]
    assert length in (len(one), len(other)) or one[length] != other[length]


@given(sequences, st.integers(4, 40))
def test_rows_hold_every_wanted_token_behind_its_own_sequence(
    asked: list[Scored], room: int
) -> None:
    """What stands before a scored token in the row is what stands before it in its sequence."""
    found: dict[int, list[int]] = {one.number: [] for one in asked}
    for shared, group in groups(asked, room):
        row = pack(group, shared)
        for place, target, number in row.wanted:
            before = path(row, place)
            one = asked[number]
            assert before == one.tokens[: len(before)]
            assert row.positions[place] == len(before) - 1
            assert one.tokens[len(before)] == target
            found[number].append(len(before))
    assert found == {one.number: list(range(one.start, len(one.tokens))) for one in asked}


@given(sequences, st.integers(4, 40))
def test_no_token_stands_twice_under_the_same_parent(asked: list[Scored], room: int) -> None:
    """A row is a tree: what sequences share stands in it once."""
    for shared, group in groups(asked, room):
        row = pack(group, shared)
        branches = list(zip(row.parents, row.tokens, strict=True))
        assert len(set(branches)) == len(branches)


@given(sequences, st.integers(4, 40))
def test_rows_keep_to_the_room(asked: list[Scored], room: int) -> None:
    """Only a single sequence may be longer; a sequence's last token is not read."""
    for shared, group in groups(asked, room):
        row = pack(group, shared)
        assert len(row.tokens) <= room or len(group) == 1


def test_options_share_their_context_and_variants_their_examples() -> None:
    """Two variants of three options: the examples are the prefix, each context stands once."""
    examples, contexts = tuple(range(100, 150)), [(1, 2, 3), (4, 5)]
    asked = [
        Scored((*examples, *context, 10 + n, 20), 50 + len(context), 3 * i + n)
        for i, context in enumerate(contexts)
        for n in range(3)
    ]
    [(shared, group)] = groups(asked, 64)
    row = pack(group, shared)
    assert shared == 50
    assert len(row.tokens) == 3 + 2 + 2 * 3


def test_other_examples_are_another_row() -> None:
    """Long prefixes that differ are not put side by side, though there is room."""
    asked = [Scored((n, *range(100, 150), 7), 51, n) for n in range(2)]
    assert [shared for shared, _ in groups(asked, 64)] == [50, 50]
    assert [shared for shared, _ in groups(asked, 256)] == [0]


def test_the_longest_kept_prefix_is_found() -> None:
    """As many tokens as some kept prefix has in common with what is looked for."""
    kept: PrefixCache[str] = PrefixCache(100)
    assert kept.find((1, 2)) == (0, None)
    kept.keep((1, 2, 3), "a", 10)
    kept.keep((1, 5), "b", 10)
    assert kept.find((1, 2, 4)) == (2, "a")
    assert kept.find((1, 5, 6)) == (2, "b")
    assert kept.find((9,)) == (0, None)


def test_what_was_used_longest_ago_makes_room() -> None:
    """The bytes stay within the limit; what is larger than all of it is not kept."""
    kept: PrefixCache[str] = PrefixCache(25)
    kept.keep((1,), "a", 10)
    kept.keep((2,), "b", 10)
    assert kept.find((1,)) == (1, "a")
    kept.keep((3,), "c", 10)
    assert kept.find((2,)) == (0, None)
    assert kept.find((1,)) == (1, "a")
    kept.keep((4,), "d", 26)
    assert kept.find((4,)) == (0, None)
    kept.clear()
    assert kept.find((1,)) == (0, None)
