"""Bindings of ids: found over segments and spaces, newest first, without expired ones."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.domain import Match, Outcome
from aggregator.errors import DamagedValue, NotFound, StoreUnavailable
from aggregator.index import keys
from aggregator.index.bindings import (
    Binding,
    binding_in_space,
    bindings_to_index,
    bindings_under,
    decode_binding,
    decode_pointer,
    encode_binding,
    encode_pointer,
    next_canonical,
    repoint,
    source_hash,
    split_undone,
)
from aggregator.index.snapshot import SegmentStack, Snapshot
from aggregator.store.base import Store
from aggregator_client.wire import KeepReason
from tests.index.helpers import binding_snapshot, group, match, seal
from tests.support.factories import core, story

KEY = keys.binding("ferry")
BOUND = Binding(9, 7, b"h" * 16, "ferry", Outcome("new"))


def snapshot(**numbers_by_space: int) -> Snapshot:
    """Spaces of two segments each with a binding of this number in the frozen one; their floor is 5."""
    stacks = {space: SegmentStack(space, 0, 1, floor=5) for space in numbers_by_space}
    read = Snapshot(stacks)
    for space, number in numbers_by_space.items():
        binding = msgspec.structs.replace(BOUND, number=number)
        read.values[keys.tag(space, 0) + KEY] = encode_binding(binding)
        read.values[keys.tag(space, 1) + KEY] = None
    return read


def test_bindings_of_several_spaces_are_newest_first() -> None:
    """An id has several while its article changes the language."""
    read = snapshot(de=8, en=9, sv=7)

    assert [(b.space, b.binding.number) for b in bindings_under(read, KEY)] == [
        ("en", 9),
        ("de", 8),
        ("sv", 7),
    ]


def test_a_binding_below_the_floor_has_expired() -> None:
    """One at the floor has not."""
    assert [b.space for b in bindings_under(snapshot(de=4, en=5), KEY)] == ["en"]


def test_a_frozen_binding_is_checked_in_the_writable_segment() -> None:
    """Writes go there: its key must still be absent when the article is committed."""
    read = snapshot(en=9)
    known = binding_in_space(read, "en", KEY)
    assert known is not None
    assert (known.key, known.raw, known.binding) == (keys.tag("en", 1) + KEY, None, BOUND)

    read.values[known.key] = keys.ABSENT
    assert binding_in_space(read, "en", KEY) is None


async def test_stored_ids_are_found_over_segments(store: Store) -> None:
    """Singly or many at once; unknown and deleted ids are left out."""
    newsroom = core(store)
    for i, id_ in enumerate(("frozen", "deleted")):
        await newsroom.post(id_, story(i))
    await seal(newsroom)
    await newsroom.post("new", story(7))
    await newsroom.ingest.delete("deleted")
    bindings = newsroom.index.bindings

    found = await bindings.find_many(["new", "unknown", "deleted", "frozen"])

    assert {id_: known.binding.id for id_, known in found.items()} == {"new": "new", "frozen": "frozen"}
    assert (await bindings.find("frozen")).binding == found["frozen"].binding
    with pytest.raises(NotFound, match="No article is stored under the id 'deleted'"):
        await bindings.find("deleted")


async def test_a_long_unknown_id_is_shortened_in_the_error(store: Store) -> None:
    """Ids are untrusted; the message does not repeat them at any length."""
    with pytest.raises(NotFound) as raised:
        await core(store).index.bindings.find("x" * 10_000)

    assert len(str(raised.value)) < 300


def test_bindings_to_index() -> None:
    """The earliest exact copy, unless a member with entries has the text; a promoted article always."""
    removed = binding_snapshot(1).binding
    first, second = (
        binding_snapshot(2, match(1, 1, "exact")).binding,
        binding_snapshot(3, match(2, 1, "exact")).binding,
    )
    edited = binding_snapshot(4, match(1, 1)).binding

    assert bindings_to_index(removed, []) == []
    assert bindings_to_index(removed, [second, first]) == [first]
    assert bindings_to_index(removed, [first, second, edited]) == []
    assert bindings_to_index(removed, [first, second], new_canonical=first) == [first]
    assert bindings_to_index(first, [removed, second]) == []
    other = msgspec.structs.replace(first, text_hash=b"o" * 16)
    assert bindings_to_index(removed, [second, other], new_canonical=other) == [other, second]


def test_the_space_of_a_binding_is_that_of_its_key() -> None:
    """A binding does not store its space."""
    assert binding_snapshot(1).space == "en.0000"


@given(st.lists(st.integers(2, 9), unique=True))
def test_the_earliest_duplicate_becomes_canonical(numbers: list[int]) -> None:
    """In any order of the duplicate list; the removed article itself is never chosen."""
    members = [binding_snapshot(number, match(1, 1)) for number in numbers]

    promoted = next_canonical(binding_snapshot(2).binding, group(1, *members))

    left = set(numbers) - {2}
    assert (promoted.binding.number if promoted else None) == min(left, default=None)


def test_a_duplicate_that_was_kept_becomes_canonical_before_others() -> None:
    """Later answers name it, so the crawler must have it."""
    members = [binding_snapshot(n, match(1, 1), keep=n == 4) for n in (2, 3, 4)]
    promoted = next_canonical(binding_snapshot(1).binding, group(1, *members))

    assert promoted is not None and promoted.binding.number == 4


def test_later_copies_that_were_not_kept_leave_with_what_is_undone() -> None:
    """With a kept copy those that came after it, with the canonical article all; a kept one stays."""
    dropped = [binding_snapshot(n, match(1, 1), keep=False) for n in (2, 5)]
    kept = [binding_snapshot(n, match(1, 1)) for n in (3, 4)]
    members = group(1, dropped[0], *kept, dropped[1])

    for undone, leaving in ((binding_snapshot(1), dropped), (kept[0], dropped[1:]), (dropped[0], [])):
        staying, left = split_undone(undone.binding, members)
        assert left == leaving
        assert staying.members == tuple(m for m in members.members if m not in leaving)
        assert staying.unchanged_checks == members.unchanged_checks


def test_the_new_canonical_article_is_new() -> None:
    """It no longer has a match, and its number and text stay."""
    member = binding_snapshot(2, match(1, 1)).binding

    promoted = repoint(member, binding_snapshot(1).binding, member)

    assert promoted == msgspec.structs.replace(member, outcome=Outcome("new"))


def test_a_member_matched_to_another_duplicate_keeps_its_match() -> None:
    """Only the canonical article of its match changes; distance, overlap and rule stay."""
    removed, promoted = binding_snapshot(1).binding, binding_snapshot(2, match(1, 1)).binding
    member = binding_snapshot(5, match(4, 1)).binding

    moved = repoint(member, removed, promoted).outcome.match

    assert moved == replace(match(4, 1), canonical_id="a2", canonical_first=2)


def test_a_member_matched_to_the_removed_article_gets_its_successor() -> None:
    """As its match and as its canonical article."""
    removed, promoted = binding_snapshot(1).binding, binding_snapshot(2, match(1, 1)).binding

    moved = repoint(binding_snapshot(5, match(1, 1)).binding, removed, promoted).outcome.match

    assert moved == match(2, 2)


def test_an_article_without_a_match_is_not_repointed() -> None:
    """Even if it is in the list of the group."""
    alone = binding_snapshot(3).binding

    assert repoint(alone, binding_snapshot(1).binding, binding_snapshot(2).binding) is alone


def test_the_group_of_an_expired_article_keeps_its_id() -> None:
    """Without a successor only matches to the removed article change: to the canonical one."""
    removed = binding_snapshot(2, match(1, 1)).binding
    other, own = binding_snapshot(4, match(3, 1)).binding, binding_snapshot(5, match(2, 1)).binding

    assert repoint(other, removed, None) is other
    assert repoint(own, removed, None).outcome.match == match(1, 1)


PINNED = (
    "049c07c0c41068686868686868686868686868686868a471756179a96475706c69636174650215c0c0c098a4"
    "7069657204a4706f72740302cb3fedc28f5c28f5c3a76f7665726c61700000658ecaa3"
)
MATCHED = Outcome("duplicate", 2, Match("pier", 4, "port", 3, 2, 0.93, "overlap"), True)


@pytest.mark.parametrize("first", [5, 7])
@pytest.mark.parametrize(
    "outcome",
    [
        Outcome("new"),
        Outcome("related", 6, None, True),
        MATCHED,
        Outcome("duplicate", 0, Match("port", 3, "port", 3, 0, None, "exact"), keep=False, adds=0.0),
        replace(MATCHED, adds=0.37, fuller=True, keep_reason="adds"),
        replace(MATCHED, keep=False, adds=1.0, reversed=True, updated_figures=False),
        Outcome("related", part_of="briefing"),
        Outcome("related", 3, follows="pier", text_is_article=False),
    ],
)
def test_bindings_round_trip(first: int, outcome: Outcome) -> None:
    """Every kind of verdict, in a first version and in a later one."""
    binding = Binding(7, first, b"h" * 16, "quay", outcome, source_hash("Gazette"))
    assert decode_binding(encode_binding(binding)) == binding


@given(
    st.builds(
        Outcome,
        st.sampled_from(["new", "related", "duplicate"]),
        st.none() | st.integers(0, 7),
        st.none() | st.just(MATCHED.match),
        *[st.booleans()] * 3,
        keep_reason=st.sampled_from([None, *get_args(KeepReason)]),
        adds=st.none() | st.integers(0, 100).map(lambda percent: percent / 100),
        fuller=st.booleans(),
        text_is_article=st.booleans(),
        part_of=st.none() | st.text(),
        follows=st.none() | st.text(),
    )
)
def test_every_field_of_an_outcome_round_trips(outcome: Outcome) -> None:
    """A retry answers the same; ``adds`` in whole percents."""
    assert decode_binding(encode_binding(Binding(7, 5, b"h" * 16, "quay", outcome))).outcome == outcome


@pytest.mark.parametrize("kept", [False, True])
def test_the_state_of_a_duplicate_round_trips(kept: bool) -> None:
    """The canonical article of its group, and whether readers have the duplicate."""
    pointer = decode_pointer(encode_pointer("quay", 7, kept=kept))
    assert (pointer.id, pointer.first_version, pointer.kept) == ("quay", 7, kept)


def test_the_usual_reasons_to_keep_cost_no_byte() -> None:
    """New words, and a fuller text; a rare one costs 1."""
    reasons: list[KeepReason | None] = [None, "adds", "fuller", "updated_figures", "news"]
    sizes = [
        len(encode_binding(Binding(7, 7, b"h" * 16, "quay", replace(MATCHED, keep_reason=reason))))
        for reason in reasons
    ]
    assert [size - sizes[0] for size in sizes] == [0, 0, 0, 0, 1]


def test_the_stored_binding_is_pinned() -> None:
    """Golden value. A first version stores its number once."""
    data = encode_binding(Binding(7, 7, b"h" * 16, "quay", MATCHED))
    assert data.hex() == PINNED


def test_a_binding_without_the_words_of_its_match_is_read() -> None:
    """As stored before matches had them."""
    former = (
        "049c07c0c41068686868686868686868686868686868a471756179a96475706c69636174650215c0c0c097a4"
        "7069657204a4706f72740302cb3fedc28f5c28f5c3a76f7665726c6170006ce5fd7e"
    )
    assert decode_binding(bytes.fromhex(former)).outcome == MATCHED


def test_bindings_of_the_first_format_are_rejected() -> None:
    """The start-up check rejects such a store; a single value is rejected as well."""
    with pytest.raises(StoreUnavailable, match="format 01, this version reads 04"):
        decode_binding(b"\x01" + encode_binding(Binding(7, 5, b"h" * 16, "quay", MATCHED))[1:])


@given(st.integers(8, 8 * len(bytes.fromhex(PINNED)) - 1))
def test_every_flipped_bit_of_a_binding_is_noticed(bit: int) -> None:
    """Behind the format byte."""
    data = bytearray(bytes.fromhex(PINNED))
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(DamagedValue):
        decode_binding(bytes(data))
