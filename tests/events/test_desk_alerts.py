"""Which events a desk reports: once, held in pauses and quiet hours, together, not when muted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec
import pytest

from aggregator.events.desks import MAX_HELD, Alert, Desk, DeskState, plan_alerts
from aggregator.events.event import Event
from aggregator.time_units import HOUR_MS, MINUTE_MS
from tests.support.factories import EVENT_MS, event

# EVENT_MS is 14:13:20 in UTC.
DESK = Desk("d1", "Harbour", EVENT_MS, terms=("bridge",), alert_size=3, pause_minutes=5)
NIGHT = msgspec.structs.replace(DESK, quiet_from="14:00", quiet_until="20:00", quiet_size=10)


def story(id_: str, size: int, **fields: object) -> Event:
    """An event about the bridge with this number of items."""
    return event(id_, "Harbour bridge closed", [f"{id_}{n}" for n in range(size)], **fields)


class Simulation:
    """Feeds changes of events to one desk; ``sent``: ids of the events of each notification."""

    def __init__(self, desk: Desk = DESK) -> None:
        self.desk, self.states, self.now_ms = desk, dict[str, DeskState](), EVENT_MS
        self.events: dict[str, Event] = {}

    def run(self, *changed: Event, minutes: float = 0, active: bool = True) -> list[Alert]:
        """Change events after a time; returns the notifications."""
        self.now_ms += int(minutes * MINUTE_MS)
        self.events |= {e.id: e for e in changed}
        active_ids = [self.desk.id] if active else []
        ids = [e.id for e in changed]
        self.states, alerts = plan_alerts([self.desk], active_ids, self.states, ids, self.events, self.now_ms)
        return alerts

    def sent(self, *changed: Event, minutes: float = 0) -> list[list[str]]:
        """Ids of the events of each notification."""
        return [[e.id for e in alert.events] for alert in self.run(*changed, minutes=minutes)]


def test_an_event_is_reported_once_when_it_reaches_the_threshold() -> None:
    """At whichever change of it, and not again while it grows."""
    desk = Simulation()

    assert desk.sent(story("e1", 2)) == []
    assert desk.sent(story("e1", 3), minutes=10) == [["e1"]]
    assert desk.sent(story("e1", 30), minutes=10) == []
    assert desk.states["d1"] == DeskState(notified=("e1",), sent_ms=EVENT_MS + 10 * MINUTE_MS)


def test_events_of_other_views_are_not_reported() -> None:
    """Nor those that editors muted, and translations."""
    desk = Simulation()

    assert desk.sent(
        event("e1", "Bakery opens", "abcd", terms=()),
        story("e2", 9, muted="story"),
        story("e3", 9, false_alarm=True),
        story("e4", 9, translation_of="e9"),
    ) == []  # fmt: skip
    assert desk.sent(story("e2", 9)) == [["e2"]]  # unmuted


@pytest.mark.parametrize("status", ["published", "dropped"])
def test_events_that_editors_are_done_with_are_not_reported(status: str) -> None:
    """Neither when they change, nor when the hours that held them end."""
    desk, night = Simulation(), Simulation(NIGHT)
    night.run(story("e1", 5))

    assert desk.sent(story("e1", 5, work_status=status), story("e2", 5)) == [["e2"]]
    assert night.sent(story("e1", 6, work_status=status), minutes=60) == []
    assert night.sent(minutes=6 * 60) == []


def test_events_within_the_pause_share_the_next_notification() -> None:
    """The largest first; the pause starts with each notification."""
    desk = Simulation()

    assert desk.sent(story("e1", 5)) == [["e1"]]
    assert desk.sent(story("e2", 5), minutes=1) == []
    assert desk.sent(story("e3", 8), minutes=1) == []
    assert desk.sent(minutes=2.9) == []
    assert desk.sent(minutes=0.1) == [["e3", "e2"]]
    assert desk.sent(minutes=60) == []


def test_a_flood_is_one_notification_with_a_count_of_the_rest() -> None:
    """At most MAX_HELD events are remembered."""
    desk = Simulation()
    desk.run(story("first", 5))
    desk.run(*(story(f"e{n}", 5) for n in range(MAX_HELD + 7)), minutes=1)
    (alert,) = desk.run(minutes=5)

    assert (len(alert.events), alert.dropped) == (MAX_HELD, 7)
    assert desk.states["d1"].dropped == 0


def test_quiet_hours_hold_events_until_their_end() -> None:
    """An event that ended meanwhile is still reported; one of the exceptional size is not held."""
    desk = Simulation(NIGHT)

    assert desk.sent(story("e1", 5), story("e2", 5)) == []
    assert desk.sent(story("e2", 10), minutes=30) == [["e2"]]
    assert desk.sent(story("e1", 6, status="closed"), minutes=30) == []
    assert desk.sent(minutes=6 * 60) == [["e1"]]


def test_held_events_that_lose_their_reason_are_forgotten() -> None:
    """Muted or merged before they were sent, or no longer stored."""
    desk = Simulation(NIGHT)
    desk.run(story("e1", 5), story("e2", 5), story("e3", 5))
    desk.run(story("e1", 5, muted="routine"), story("e2", 5, status="closed", merged_into="e9"), minutes=1)
    del desk.events["e3"]

    assert desk.sent(minutes=6 * 60) == []
    assert desk.states["d1"].held == ()


def test_a_merged_event_is_not_reported_again_under_its_new_id() -> None:
    """Whether the merge is seen at the absorbed event or at the surviving one."""
    desk = Simulation()
    desk.run(story("e1", 5), story("e2", 5))
    desk.run(story("e1", 5, status="closed", merged_into="e7"), minutes=10)

    assert desk.sent(story("e7", 9), minutes=10) == []
    assert desk.sent(story("e8", 9, absorbed=("e2",)), minutes=10) == []
    assert desk.states["d1"].notified == ("e1", "e2", "e7", "e8")


def test_an_event_is_not_reported_again_when_its_merge_is_undone() -> None:
    """It was reported before the merge; both are forgotten when the event that has it ends."""
    desk = Simulation()
    desk.run(story("e1", 5), story("e2", 5))
    desk.run(story("e1", 5, status="closed", merged_into="e2"), story("e2", 10, absorbed=("e1",)), minutes=10)

    assert desk.sent(story("e1", 6), story("e2", 5), minutes=10) == []
    desk.run(story("e1", 6, status="closed", merged_into="e2"), story("e2", 11, absorbed=("e1",)), minutes=10)
    desk.run(story("e2", 11, absorbed=("e1",), status="closed"), minutes=300)
    assert desk.states["d1"].notified == ()


def test_an_ended_event_is_forgotten() -> None:
    """Its id never returns."""
    desk = Simulation()
    desk.run(story("e1", 5))

    assert desk.sent(story("e1", 5, status="closed"), minutes=10) == []
    assert desk.states["d1"].notified == ()


def test_a_desk_that_does_not_notify_remembers_what_was_reported() -> None:
    """It holds nothing: after a pause it does not report what is old."""
    desk = Simulation(NIGHT)
    desk.run(story("e1", 12), story("e2", 5))
    assert desk.run(story("e3", 5), minutes=1, active=False) == []

    assert desk.states["d1"] == DeskState(notified=("e1",), sent_ms=EVENT_MS)
    assert desk.sent(story("e1", 20), minutes=6 * 60) == []


def test_growth_within_an_hour_is_a_threshold() -> None:
    """The items of the last hour at the time of the change."""
    desk = Simulation(msgspec.structs.replace(DESK, alert_hourly=10))
    slow = story("e1", 5, timeline=((EVENT_MS - 5 * HOUR_MS, 30), (EVENT_MS, 4)))

    assert desk.sent(slow) == []
    assert desk.sent(replace(slow, times=(*slow.times, *(EVENT_MS + 10 * MINUTE_MS,) * 6)), minutes=12) == [
        ["e1"]
    ]


@pytest.mark.parametrize("sent_ms", [EVENT_MS + HOUR_MS, EVENT_MS + 400 * HOUR_MS])
def test_a_notification_in_the_future_delays_nothing(sent_ms: int) -> None:
    """The clock was wrong when it was sent."""
    states: Mapping[str, DeskState] = {"d1": DeskState(sent_ms=sent_ms)}
    _, alerts = plan_alerts([DESK], ["d1"], states, ["e1"], {"e1": story("e1", 5)}, EVENT_MS)

    assert len(alerts) == 1


@pytest.mark.parametrize(
    ("desk", "later", "reported"),
    [
        (DESK, story("e1", 6), True),
        (DESK, story("e1", 6, status="closed"), True),
        (DESK, story("e1", 6, muted="story"), False),
        (DESK, story("e1", 6, status="closed", merged_into="e2"), False),
        (DESK, story("e2", 2), False),
        (NIGHT, story("e1", 60), False),
    ],
)
def test_a_later_change_follows_an_alert(desk: Desk, later: Event, reported: bool) -> None:
    """Of an event that was reported and may be, in no quiet hours."""
    states = {"d1": DeskState(notified=("e1",), sent_ms=EVENT_MS)}
    changes = [("development", later.id)]
    _, alerts = plan_alerts([desk], ["d1"], states, [later.id], {later.id: later}, EVENT_MS, changes)

    assert [(alert.kind, alert.events) for alert in alerts] == (
        [("development", (later,))] if reported else []
    )
