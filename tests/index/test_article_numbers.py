"""Article numbers increase, give the arrival time, and do not collide."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from aggregator.domain import NUMBER_RANDOM_BITS, arrival_ms_of
from aggregator.index.article_numbers import ArticleNumberGenerator

NOW_MS = 1_780_000_000_000


@given(st.lists(st.integers(-5_000, 5_000), min_size=1, max_size=50))
def test_numbers_increase_when_the_clock_steps_back(steps: list[int]) -> None:
    """Later arrivals have larger numbers, whatever the clock says."""
    generator, now_ms, numbers = ArticleNumberGenerator(), NOW_MS, []
    for step in steps:
        now_ms += step
        numbers.append(generator.next(now_ms))

    assert all(a < b for a, b in pairwise(numbers))
    assert numbers[-1] < 1 << 64


def test_the_arrival_time_can_be_decoded() -> None:
    """To the millisecond, or within 2 ms if thousands arrive in one."""
    generator = ArticleNumberGenerator()

    assert arrival_ms_of(generator.next(NOW_MS)) == NOW_MS
    many = [generator.next(NOW_MS) for _ in range(5_000)]
    assert arrival_ms_of(many[-1]) - NOW_MS <= 2


def test_processes_draw_different_numbers() -> None:
    """In one millisecond processes draw from two million numbers."""
    drawn = {ArticleNumberGenerator().next(NOW_MS) for _ in range(50)}

    assert len(drawn) == 50
    assert max(drawn) - min(drawn) < 1 << NUMBER_RANDOM_BITS
