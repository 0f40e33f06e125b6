"""Inverted index: sums by term and slot, compared with plain dictionaries."""

from __future__ import annotations

from itertools import islice
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.events.detection.postings import Postings, columns
from tests.events.detection.window_items import sums_by_term

TERMS = ["storm", "bridge", "ferry", "pier"]
Document: TypeAlias = dict[str, int]

documents: st.SearchStrategy[Document] = st.dictionaries(st.sampled_from(TERMS), st.integers(1, 255))
# (slot, document); every second of those that are present is removed again.
additions = st.lists(st.tuples(st.integers(0, 3), documents), max_size=30)


def filled(given_additions: list[tuple[int, Document]]) -> tuple[Postings, list[dict[str, int]]]:
    """An index of four slots after all additions and every second removal, and the sums by slot."""
    postings = Postings()
    sums: list[dict[str, int]] = [{} for _ in range(4)]
    assert [postings.allocate_slot() for _ in sums] == [0, 1, 2, 3]
    for slot, document in given_additions:
        postings.add(slot, sums[slot], document)
    for slot, document in given_additions[::2]:
        postings.subtract(slot, sums[slot], document)
    return postings, sums


@pytest.mark.integration
@given(additions)
def test_sums_are_those_of_the_remaining_documents(given_additions: list[tuple[int, Document]]) -> None:
    """No term with the sum 0 is kept, in the slot's sums or in the index."""
    postings, sums = filled(given_additions)

    expected: dict[str, dict[int, int]] = {}
    for slot, document in given_additions[1::2]:
        for term, weight in document.items():
            of_term = expected.setdefault(term, {})
            of_term[slot] = of_term.get(slot, 0) + weight
    assert sums_by_term(postings) == expected
    assert {(term, slot): value for slot, s in enumerate(sums) for term, value in s.items()} == {
        (term, slot): value for term, of_term in expected.items() for slot, value in of_term.items()
    }


@given(additions)
def test_columns_hold_the_terms_one_after_another(given_additions: list[tuple[int, Document]]) -> None:
    """Slots and sums of the first term, then those of the second; an unknown term has none."""
    postings, sums = filled(given_additions)

    posted = postings.lookup([*TERMS, "unknown"])
    lengths, (slots, weights) = [*map(len, posted)], columns(posted)

    assert lengths == [sum(term in of_slot for of_slot in sums) for term in TERMS] + [0]
    entries = iter(zip(slots.tolist(), weights.tolist(), strict=True))
    for term, length in zip(TERMS, lengths, strict=False):
        assert dict(islice(entries, length)) == {s: of[term] for s, of in enumerate(sums) if term in of}
    assert next(entries, None) is None


@pytest.mark.parametrize("weight", [1, 2**32 - 1])
def test_the_largest_sum_does_not_reach_the_slot(weight: int) -> None:
    """A sum has 32 bits; the next slot is not changed by it."""
    postings = Postings()
    slots = [postings.allocate_slot() for _ in range(3)]
    postings.add(slots[2], {}, {"storm": weight})

    assert sums_by_term(postings) == {"storm": {2: weight}}


def test_a_freed_slot_is_used_again_and_empty() -> None:
    """A new cluster in it has none of the terms of the former one."""
    postings = Postings()
    slot, other = postings.allocate_slot(), postings.allocate_slot()
    sums: dict[str, int] = {}
    postings.add(slot, sums, {"storm": 3})
    postings.subtract(slot, sums, {"storm": 3})
    postings.free_slot(slot)

    assert postings.allocate_slot() == slot != other
    postings.add(slot, sums, {"storm": 5})
    assert sums_by_term(postings) == {"storm": {slot: 5}}
