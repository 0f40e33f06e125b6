"""Read marks of users."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from aggregator.events.read_marks import MAX_SEEN, ReadMark, ReadMarks
from aggregator.store.base import Store

CHANGES = st.lists(
    st.tuples(st.integers(0, 9), st.lists(st.text("abc", min_size=1, max_size=1), max_size=3)), max_size=5
)


@given(CHANGES, st.randoms(use_true_random=False))
def test_the_order_of_changes_does_not_matter(changes: list[tuple[int, list[str]]], rng: object) -> None:
    """Two browsers of one user agree, also when a request is repeated."""
    mark, other = ReadMark(), ReadMark()
    for looked_ms, seen in changes:
        mark = mark.advanced(looked_ms, seen)
    for looked_ms, seen in [*changes[::-1], *changes]:
        other = other.advanced(looked_ms, seen)

    assert (mark.looked_ms, set(mark.seen)) == (other.looked_ms, set(other.seen))


def test_the_oldest_ids_are_dropped() -> None:
    """A mark stays small."""
    mark = ReadMark().advanced(5, [f"e{n}" for n in range(MAX_SEEN + 3)])

    assert len(mark.seen) == MAX_SEEN
    assert (mark.seen[0], mark.seen[-1]) == ("e3", f"e{MAX_SEEN + 2}")


async def test_simultaneous_changes_are_all_kept(store: Store) -> None:
    """Each user has an own mark."""
    marks = ReadMarks(store)
    await asyncio.gather(*(marks.advance("ada", n, [f"e{n}"]) for n in range(9)))
    await marks.advance("bea", 1, [])
    ada = await marks.get("ada")

    assert ada.looked_ms == 8
    assert set(ada.seen) == {f"e{n}" for n in range(9)}
    assert await marks.get("bea") == ReadMark(1)
    assert await marks.get("cleo") == ReadMark()
