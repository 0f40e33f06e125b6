"""The webhook outbox: order, retry schedule, dead letters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aggregator.events.webhooks.outbox import (
    MAX_PENDING,
    RETRY_DELAYS_S,
    Delivery,
    DeliveryResult,
    Outbox,
)


def delivery(id_: str, hook: str = "h", due_ms: int = 0, attempts: int = 0) -> Delivery:
    """A pending delivery."""
    return Delivery(id_, hook, "e", "fired", b"{}", 0, due_ms, attempts)


def test_deliveries_to_a_receiver_are_sent_in_order_one_at_a_time() -> None:
    """A receiver gets a merge after the event itself."""
    outbox = Outbox(
        calls=(delivery("a"), delivery("b"), delivery("c", "other"), delivery("d", "late", due_ms=9))
    )

    assert [d.id for d in outbox.due(0)] == ["a", "c"]
    assert [d.id for d in outbox.due(9)] == ["a", "c", "d"]


def test_retry_delays_grow_to_about_a_day_in_total() -> None:
    """Then the delivery is a dead letter with its last error."""
    outbox, now_ms = Outbox(calls=(delivery("a"),)), 0
    delays: list[int] = []
    dead: list[Delivery] = []
    while not dead:
        outbox, dead = outbox.apply({"a": DeliveryResult("unavailable")}, now_ms, 0.0)
        if outbox.calls:
            delays.append((outbox.calls[0].due_ms - now_ms) // 1000)
            now_ms = outbox.calls[0].due_ms

    assert tuple(delays) == RETRY_DELAYS_S
    assert 24 * 3600 < sum(delays) < 36 * 3600
    assert (dead[0].result, dead[0].attempts, outbox.calls) == ("unavailable", len(RETRY_DELAYS_S) + 1, ())


def test_a_success_is_removed_and_retry_after_is_respected() -> None:
    """Retry-After counts when it is longer than the scheduled delay."""
    outbox = Outbox(calls=(delivery("a"), delivery("b", "other")))
    results = {"a": DeliveryResult(None), "b": DeliveryResult("busy", retry_after_s=60)}
    after, dead = outbox.apply(results, 1000, 0.0)

    assert [(d.id, d.due_ms) for d in after.calls] == [("b", 61_000)]
    assert dead == []


def test_pending_deliveries_of_an_unsubscribed_receiver_are_dead_letters() -> None:
    """They remain available for inspection."""
    outbox = Outbox(calls=(delivery("a"), delivery("b"), delivery("c", "other")))
    result = DeliveryResult("answered with status 410", unsubscribed=True)
    after, dead = outbox.apply({"a": result}, 0, 0.0)

    assert [d.id for d in after.calls] == ["c"]
    assert [(d.id, d.result) for d in dead] == [
        ("a", "answered with status 410"),
        ("b", "the webhook was disabled"),
    ]


def test_the_outbox_is_bounded() -> None:
    """A receiver that is unavailable for days does not fill the store: the oldest deliveries are dropped."""
    full = Outbox(calls=tuple(delivery(str(i)) for i in range(MAX_PENDING)))
    after, dead = full.add(b"5-0", (delivery("new"),))

    assert (len(after.calls), after.calls[-1].id, after.position) == (MAX_PENDING, "new", b"5-0")
    assert [d.id for d in dead] == ["0"]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.integers(0, 7)), max_size=12),
    st.floats(0, 1),
)
def test_no_delivery_disappears(rows: list[tuple[str, bool, int]], jitter: float) -> None:
    """Each was delivered, is pending, or is a dead letter."""
    pending = tuple(delivery(str(i), hook, attempts=tries) for i, (hook, _, tries) in enumerate(rows))
    results = {str(i): DeliveryResult(None if ok else "no") for i, (_, ok, _) in enumerate(rows)}
    after, dead = Outbox(calls=pending).apply(results, 0, jitter)

    delivered = {id_ for id_, result in results.items() if result.error is None}
    assert {d.id for d in after.calls} | {d.id for d in dead} | delivered == set(results)
    assert len(after.calls) + len(dead) + len(delivered) == len(results)
