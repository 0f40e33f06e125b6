"""Duplicate groups: who becomes canonical, who points where, and who is indexed when an article leaves."""

from dataclasses import replace

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from aggregator.domain import Outcome
from aggregator.index.duplicate_groups import bindings_to_index, next_canonical, repoint
from tests.index.helpers import binding_snapshot, group, match


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
