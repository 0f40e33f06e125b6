"""What is owed, when it is tried again, and when it is given up."""

from hypothesis import given
from hypothesis import strategies as st

from aggregator.events.webhooks.outbox import (
    MAX_PENDING,
    RETRY_DELAYS_S,
    Delivery,
    Outbox,
    apply_results,
    enqueue,
)


def call(id_: str, hook: str = "h", due_ms: int = 0, attempts: int = 0) -> Delivery:
    """A call owed."""
    return Delivery(id_, hook, "e", "fired", b"{}", 0, due_ms, attempts)


def test_one_call_at_a_time_to_each_receiver_in_order():
    """A receiver hears of a merge after it heard of the event."""
    outbox = Outbox(calls=(call("a"), call("b"), call("c", "other"), call("d", "late", due_ms=9)))

    assert [c.id for c in outbox.due(0)] == ["a", "c"]
    assert [c.id for c in outbox.due(9)] == ["a", "c", "d"]


def test_a_failure_waits_longer_each_time_and_about_a_day_in_all():
    """Then it is a dead letter with its reason."""
    outbox, now_ms, waited = Outbox(calls=(call("a"),)), 0, []
    dead: list[Delivery] = []
    while not dead:
        outbox, dead = apply_results(outbox, {"a": "away"}, set(), now_ms, 0.0, {})
        if outbox.calls:
            waited.append((outbox.calls[0].due_ms - now_ms) // 1000)
            now_ms = outbox.calls[0].due_ms

    assert tuple(waited) == RETRY_DELAYS_S
    assert 24 * 3600 < sum(waited) < 36 * 3600
    assert (dead[0].result, dead[0].attempts, outbox.calls) == ("away", len(RETRY_DELAYS_S) + 1, ())


def test_a_success_is_forgotten_and_a_receiver_may_ask_for_time():
    """Retry-After counts when it is longer than our own pause."""
    outbox = Outbox(calls=(call("a"), call("b", "other")))
    left, dead = apply_results(outbox, {"a": None, "b": "busy"}, set(), 1000, 0.0, {"b": 60})

    assert [(c.id, c.due_ms) for c in left.calls] == [("b", 61_000)]
    assert dead == []


def test_a_receiver_that_is_gone_gets_nothing_more():
    """What it was still owed can be looked up."""
    outbox = Outbox(calls=(call("a"), call("b"), call("c", "other")))
    left, dead = apply_results(outbox, {"a": "answered with status 410"}, {"h"}, 0, 0.0, {})

    assert [c.id for c in left.calls] == ["c"]
    assert [(c.id, c.result) for c in dead] == [
        ("a", "answered with status 410"),
        ("b", "the webhook was disabled"),
    ]


def test_too_many_owed_calls_spill():
    """A receiver that is away for days does not fill the store."""
    full = Outbox(calls=tuple(call(str(i)) for i in range(MAX_PENDING)))
    left, spilled = enqueue(full, b"5-0", (call("new"),))

    assert (len(left.calls), left.calls[-1].id, left.position) == (MAX_PENDING, "new", b"5-0")
    assert [c.id for c in spilled] == ["0"]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(0, 7)), max_size=12),
    st.floats(0, 1),
)
def test_no_call_disappears(rows, jitter):
    """It was delivered, is owed still, or was given up."""
    calls = tuple(call(str(i), hook, attempts=tries) for i, (hook, _, tries) in enumerate(rows))
    results = {str(i): None if ok else "no" for i, (_, ok, _) in enumerate(rows)}
    left, dead = apply_results(Outbox(calls=calls), results, set(), 0, jitter, {})

    delivered = {id_ for id_, problem in results.items() if problem is None}
    assert {c.id for c in left.calls} | {c.id for c in dead} | delivered == set(results)
    assert len(left.calls) + len(dead) + len(delivered) == len(results)
