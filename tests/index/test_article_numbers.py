"""Article numbers."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from aggregator.domain import NUMBER_RANDOM_BITS, arrival_ms_of
from aggregator.index.article_numbers import ArticleNumberGenerator

NOW_MS = 1_780_000_000_000


@given(st.lists(st.integers(-5_000, 5_000), min_size=1, max_size=50))
def test_they_grow_whatever_the_clock_does(steps: list[int]) -> None:
    """A clock that jumps back does not reorder what arrived."""
    numbers, now_ms, given_out = ArticleNumberGenerator(), NOW_MS, []
    for step in steps:
        now_ms += step
        given_out.append(numbers.next(now_ms))

    assert all(a < b for a, b in pairwise(given_out))
    assert given_out[-1] < 1 << 64


def test_arrival_can_be_read_back() -> None:
    """To the millisecond, and nearly so when thousands arrive in one."""
    numbers = ArticleNumberGenerator()

    assert arrival_ms_of(numbers.next(NOW_MS)) == NOW_MS
    many = [numbers.next(NOW_MS) for _ in range(5_000)]
    assert arrival_ms_of(many[-1]) - NOW_MS <= 2


def test_processes_do_not_meet() -> None:
    """Two processes in one millisecond draw from two million places."""
    drawn = {ArticleNumberGenerator().next(NOW_MS) for _ in range(50)}

    assert len(drawn) == 50
    assert max(drawn) - min(drawn) < 1 << NUMBER_RANDOM_BITS
