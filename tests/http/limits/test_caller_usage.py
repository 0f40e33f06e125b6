"""Units in use per caller."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from aggregator.http.limits.caller_usage import CallerUsage

CALLERS = st.sampled_from(["", "k1", "k2"])


@given(st.lists(st.tuples(CALLERS, st.integers(min_value=1, max_value=9))))
def test_the_total_is_the_sum_of_all_callers(added: list[tuple[str, int]]) -> None:
    """Additions of one caller do not change another's usage; removing everything leaves no state."""
    usage, expected = CallerUsage(), Counter[str]()
    for caller, amount in added:
        usage.add(caller, amount)
        expected[caller] += amount

    assert usage.total == expected.total()
    assert {caller: usage.of(caller) for caller in ("", "k1", "k2")} == {
        caller: expected[caller] for caller in ("", "k1", "k2")
    }

    for caller, amount in added:
        usage.remove(caller, amount)
    assert usage.total == 0
    assert not usage._by_caller


def test_callers_without_usage_take_no_memory() -> None:
    """Keys are many and short-lived: asking for one, or its last removal, leaves no entry."""
    usage = CallerUsage()
    assert usage.of("k1") == 0
    usage.add("k2")
    usage.remove("k2")

    assert len(usage._by_caller) == 0


def test_a_partial_removal_keeps_the_rest() -> None:
    """A body that shrinks gives back part of its bytes."""
    usage = CallerUsage()
    usage.add("k1", 5)
    usage.add("", 2)
    usage.remove("k1", 3)

    assert (usage.of("k1"), usage.of(""), usage.total) == (2, 2, 4)
