"""Days of a time zone, and what happened to events within a period."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from aggregator.errors import InvalidInput
from aggregator.events.days import Day, edited, handover
from aggregator.events.event import EditorAction, Event, Note
from aggregator.events.newsroom import split_off
from aggregator.time_units import HOUR_MS
from aggregator_client.wire import ActionName, WorkStatus
from tests.support.factories import EVENT_MS, event

ZONES = ("", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "Australia/Lord_Howe")


@pytest.mark.parametrize("zone", ZONES)
def test_days_follow_each_other_without_gap_or_overlap(zone: str) -> None:
    """Whole years with their changes of clocks: each moment is in the day that the zone's clocks show."""
    day = Day.parse("2025-12-31", zone)
    lengths = set()
    for _ in range(400):
        following = day.shifted(1)
        assert following.start_ms == day.end_ms
        assert Day.at(day.start_ms, zone) == day == Day.at(day.end_ms - 1, zone)
        lengths.add((day.end_ms - day.start_ms) / HOUR_MS)
        day = following

    assert day.date == date(2025, 12, 31) + timedelta(400)
    assert lengths <= {24, 23, 25, 23.5, 24.5} and (len(lengths) == 3) == (zone not in ("", "Asia/Kathmandu"))


def test_the_ends_of_the_calendar_have_no_neighbors() -> None:
    """No error: a link to the day before is missing."""
    last = Day.parse("9999-12-31", "")

    assert last.shifted(1) == last != last.shifted(-1) and last.end_ms == last.start_ms
    for zone in ZONES:
        first = Day.parse("0001-01-01", zone)
        assert first.shifted(-1) == first and first.start_ms < first.end_ms


@pytest.mark.parametrize(
    ("text", "zone", "problem"),
    [
        ("tomorrow", "", "date: expected a date such as"),
        ("2026-02-30", "", "date: expected a date such as"),
        ("2026-11-28", "Europe/Atlantis", "time_zone: unknown time zone 'Europe/Atlantis'"),
        ("2026-11-28", "../etc", "time_zone: unknown time zone"),
    ],
)
def test_what_is_no_day_is_refused(text: str, zone: str, problem: str) -> None:
    """In one sentence that names the parameter."""
    with pytest.raises(InvalidInput, match=problem):
        Day.parse(text, zone)


def of(id_: str, **fields: Any) -> Event:
    """An event that was detected an hour before the period."""
    return event(id_, fields.pop("title", id_), [id_], **{"detected_at_ms": EVENT_MS - HOUR_MS, **fields})


def test_each_event_is_in_the_first_list_that_applies() -> None:
    """Published before new, new before developed; muted and merged ones are not handed over."""
    published = EditorAction("set_work_status", "Ada", EVENT_MS + 5, "p", work_status="published")
    events = [
        of("published", detected_at_ms=EVENT_MS, work_status="published", actions=(published,)),
        of("published before", work_status="published", actions=(EditorAction(
            "set_work_status", "Ada", EVENT_MS - 5, "p", work_status="published"),)),
        of("new", detected_at_ms=EVENT_MS, developments=((EVENT_MS + 1, ("toll",)),)),
        of("too new", detected_at_ms=EVENT_MS + HOUR_MS, work_status="dropped"),
        of("developed", developments=((EVENT_MS + 1, ("toll",)),), acknowledged_by="Ada"),
        of("open"),
        of("open later", detected_at_ms=EVENT_MS + HOUR_MS),
        of("ended", status="closed"),
        of("seen", acknowledged_by="Ada"),
        of("taken", assignee="Ada"),
        of("muted", detected_at_ms=EVENT_MS, muted="story"),
        of("merged", detected_at_ms=EVENT_MS, merged_into="new"),
    ]  # fmt: skip
    found = handover(events, EVENT_MS, EVENT_MS + HOUR_MS)

    assert {name: [each.id for each in listed] for name, listed in found.items()} == {
        "back": ["developed"],
        "new": ["new"],
        "developed": [],
        "unhandled": ["open"],
        "taken": ["seen", "taken"],
        "published": ["published"],
        "dropped": [],
    }


def test_new_items_count_whoever_is_on_an_event() -> None:
    """An open event without new items is left to do."""
    times = {"size": 2, "times": (EVENT_MS - HOUR_MS, EVENT_MS + 1)}
    toll = (EVENT_MS + 1, "dead", 29)
    events = [
        of("taken", assignee="Ada", **times),
        of("dropped", work_status="dropped", tolls=((EVENT_MS - 5, "dead", 11), toll), **times),
        of("seen", acknowledged_by="Ada", **times),
        of("open", **times),
        of("quiet"),
    ]
    found = handover(events, EVENT_MS, EVENT_MS + HOUR_MS)

    assert [each.id for each in found["back"]] == ["dropped"]
    assert [each.id for each in found["developed"]] == ["open", "taken", "seen"]
    assert [each.id for each in found["unhandled"]] == ["quiet"]


def test_what_updates_in_place_bring_is_new() -> None:
    """A toll, an update of any item, and another headline of a published event, though no item came."""
    renamed = EditorAction("choose_headline", "", EVENT_MS + 1, "renamed", item="a")
    events = [
        of("renamed", work_status="published", actions=(renamed,), headline_id="a"),
        of("toll", assignee="Ada", tolls=((EVENT_MS + 1, "dead", 29),)),
        of("text", acknowledged_by="Ada", updates={"text": EVENT_MS + 1}),
        of("before", acknowledged_by="Ada", updates={"before": EVENT_MS - 1}),
    ]

    found = handover(events, EVENT_MS, EVENT_MS + 9)["developed"]
    assert [each.id for each in found] == ["toll", "renamed", "text"]


def test_each_list_begins_with_what_nobody_has_handled() -> None:
    """Then comes what has a toll of the period, whatever was listed first."""
    toll = {"tolls": ((EVENT_MS + 1, "dead", 9),)}
    for detected_ms, name in ((EVENT_MS, "new"), (EVENT_MS - HOUR_MS, "developed")):
        fields: dict[str, Any] = {"detected_at_ms": detected_ms, "updates": {"a": EVENT_MS + 1}}
        events = [
            of("taken", assignee="Ada", **fields),
            of("taken toll", assignee="Ada", **fields, **toll),
            of("free", **fields),
            of("free toll", **fields, **toll),
            of("free early toll", **fields, tolls=((EVENT_MS - 1, "dead", 9),)),
        ]
        found = handover(events, EVENT_MS, EVENT_MS + 9)[name]

        assert [e.id for e in found] == ["free toll", "free", "free early toll", "taken toll", "taken"]


DONE = EditorAction("set_work_status", "Ada", EVENT_MS - 9, "a", work_status="published")


def test_what_is_back_stays_until_it_is_handled_again() -> None:
    """Whenever the news came; what ended since is only in the period that had it."""
    fields = {"work_status": "published", "actions": (DONE,), "tolls": ((EVENT_MS - 5, "dead", 9),)}
    events = [of("runs", **fields), of("ended", status="closed", **fields)]

    assert [each.id for each in handover(events, EVENT_MS, EVENT_MS + 9)["back"]] == ["runs"]
    assert [each.id for each in handover(events, EVENT_MS - 6, EVENT_MS + 9)["back"]] == ["runs", "ended"]


def test_a_published_event_with_items_since_is_in_each_handover() -> None:
    """While it runs, also if they came before the period; one that was dropped is not."""
    since: dict[str, Any] = {"times": (EVENT_MS - 5,)}
    cases: list[tuple[str, WorkStatus, dict[str, Any]]] = [
        ("items", "published", since),
        ("update", "published", {"times": (EVENT_MS - 99,), "updates": {"update": EVENT_MS - 5}}),
        ("nothing", "published", {"times": (EVENT_MS - 99,)}),
        ("ended", "published", {"status": "closed", **since}),
        ("dropped", "dropped", since),
    ]
    events = [of(name, work_status=status, actions=(DONE,), **more) for name, status, more in cases]
    found = handover(events, EVENT_MS, EVENT_MS + 9)
    assert {name: [each.id for each in listed] for name, listed in found.items() if listed} == {
        "published": ["items", "update"]
    }


def test_a_merge_and_a_split_are_handed_over() -> None:
    """Of a published event too, until they are undone."""
    merge = EditorAction("merge", "Ada", EVENT_MS + 1, "b", into="merged", id=4)
    undo = EditorAction("undo", "Ada", EVENT_MS + 2, "merged", of=4, id=5)
    split = EditorAction("move_items", "Ada", EVENT_MS + 1, "split", items=("a1",))
    split = replace(split, into=split_off(of("split"), split).id)
    events = [
        of("merged", work_status="published", actions=(merge,)),
        of("undone", work_status="published", actions=(merge, undo)),
        of("split", work_status="published", actions=(split,)),
    ]

    found = handover(events, EVENT_MS, EVENT_MS + 9)
    assert [each.id for each in found["developed"]] == ["merged", "split"]


def test_what_was_dropped_again_is_not_reopened() -> None:
    """The last decision counts; a headline that nobody chose is named if it came after that."""
    drop = EditorAction(
        "set_work_status", "Ada", EVENT_MS, "e", work_status="dropped", before={"work_status": "open"}, id=1
    )
    undo = EditorAction("undo", "Ada", EVENT_MS + 1, "e", of=1, id=2, before={"work_status": "dropped"})
    again = replace(drop, at_ms=EVENT_MS + 2, id=3)
    renamed = EditorAction("choose_headline", "", EVENT_MS + 1, "e", item="a1")
    dropped: dict[str, Any] = {"headline_id": "a1", "work_status": "dropped"}

    assert edited(of("e", actions=(drop, undo))) == [undo]
    assert edited(of("e", actions=(drop, undo, again), **dropped)) == []
    assert edited(of("e", actions=(drop, renamed), **dropped)) == [renamed]
    assert edited(of("e", actions=(drop, renamed, undo, again), **dropped)) == []
    merge = EditorAction("merge", "Ada", EVENT_MS + 2, "b", into="e", id=4, before=dict(again.before))
    assert edited(of("e", actions=(drop, renamed, merge), **dropped)) == [renamed, merge]
    found = handover([of("e", actions=(drop, renamed), **dropped)], EVENT_MS + 1, EVENT_MS + 9)
    assert [each.id for each in found["back"]] == ["e"]


def test_edits_of_the_period_are_handed_over_while_in_force() -> None:
    """What was done to the event itself: not its status, nor what was undone, deleted or replaced."""

    def done(name: ActionName, id_: int = 4, **fields: Any) -> EditorAction:
        return EditorAction(name, "Ada", EVENT_MS + id_, fields.pop("event", "e"), id=id_, **fields)

    chosen, undo = done("choose_headline", item="a1"), done("undo", 5, of=4)
    notes = (Note(1, "Ada", EVENT_MS + 4, "Call the port"),)
    kept: dict[str, dict[str, Any]] = {
        "headline": {"actions": (chosen,), "headline_id": "a1"},
        "restored": {"actions": (chosen, undo, done("undo", 6, of=5)), "headline_id": "a1"},
        "automatic again": {"actions": (done("choose_headline"),)},
        "note": {"notes": notes, "actions": (done("note", note=1),)},
        "removed": {"actions": (done("remove_item", items=("a2",)),)},
        "moved": {"actions": (done("move_items", items=("a2",), event="other", into="e"),)},
        "news after all": {"actions": (done("mute", 3), done("unmute"))},
        "reopened": {
            "actions": (done("set_work_status", work_status="new", before={"work_status": "dropped"}),)
        },
    }
    none: dict[str, dict[str, Any]] = {
        "undone": {"actions": (chosen, undo)},
        "its article was removed": {"actions": (chosen,), "headline_id": "a3"},
        "note deleted": {"actions": (done("note", note=1), done("delete_note", 5, note=1))},
        "seen": {"actions": (done("acknowledge"),)},
        "on it": {"actions": (done("set_work_status", work_status="on_it", before={"work_status": "open"}),)},
        "of what was merged into it": {"actions": (done("remove_item", items=("a2",), event="other"),)},
        "before": {"actions": (done("remove_item", -1, items=("a2",)),)},
        "new headline before it was handled again": {
            "actions": (replace(chosen, actor=""), done("set_work_status", 5, before={"work_status": "new"}))
        },
    }
    events = [of("e", assignee="Ada", title=title, **fields) for title, fields in (kept | none).items()]
    found = handover(events, EVENT_MS, EVENT_MS + 9)

    assert [each.title for each in found["developed"]] == list(kept)
    assert [each.title for each in found["taken"]] == list(none)


def test_what_editors_did_in_the_period_is_handed_over() -> None:
    """Dropped without an item; taken on hours ago; published, and overtaken by a toll."""
    status = EditorAction("set_work_status", "Ada", EVENT_MS + 5, "a", work_status="dropped")
    published = EditorAction("set_work_status", "Ada", EVENT_MS + 5, "b", work_status="published")
    events = [
        of("dropped", work_status="dropped", actions=(status,)),
        of("taken", assignee="Ada"),
        of("overtaken", work_status="published", actions=(published,), size=2,
           times=(EVENT_MS, EVENT_MS + 9), tolls=((EVENT_MS + 9, "dead", 31),)),
    ]  # fmt: skip
    found = handover(events, EVENT_MS, EVENT_MS + HOUR_MS)

    assert {name: listed[0].id for name, listed in found.items() if listed} == {
        "back": "overtaken",
        "taken": "taken",
        "dropped": "dropped",
    }
