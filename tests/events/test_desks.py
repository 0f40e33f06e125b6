"""Desks: filter of the view, thresholds, quiet hours, and their storage."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from aggregator.errors import Conflict, InvalidInput
from aggregator.events.desks import (
    MAX_DESKS,
    Desk,
    Desks,
    is_quiet,
    meets_thresholds,
    time_zone,
    view_filter,
)
from aggregator.store.base import Store
from aggregator.store.memory import MemoryStore
from tests.support.factories import EVENT_MS, event

BRIDGE = event("e1", "Harbour bridge closed", ("a", "b"), languages=("en",))
# 2026-11-21 22:30 in UTC.
LATE_MS = 1_795_300_200_000


def desk(**fields: object) -> Desk:
    """A desk without conditions; ``fields`` overrides any field."""
    return msgspec.structs.replace(Desk("d1", "Harbour", EVENT_MS), **fields)


@pytest.mark.parametrize(
    ("fields", "matches"),
    [
        ({}, True),
        ({"terms": ("ferry", "bridge")}, True),
        ({"terms": ("ferry", "tunnel")}, False),
        ({"terms": ("bridge",), "without": ("harbour",)}, False),
        ({"sources": ("ONE.example", "none.example")}, True),
        ({"sources": ("none.example",)}, False),
        ({"languages": ("de", "en")}, True),
        ({"languages": ("de",)}, False),
        ({"terms": ("bridge",), "sources": ("none.example",)}, False),
        ({"min_size": 2}, True),
        ({"min_size": 3}, False),
    ],
)
def test_a_view_needs_one_of_each_kind_of_condition(fields: dict[str, object], matches: bool) -> None:
    """One term, one source and one language of those given, none of the excluded terms."""
    assert view_filter(desk(**fields)).matches(BRIDGE) is matches


@pytest.mark.parametrize(
    ("fields", "meets"),
    [
        ({}, True),
        ({"alert_size": 2, "alert_sources": 2, "alert_hourly": 4}, True),
        ({"alert_size": 3}, False),
        ({"alert_sources": 3}, False),
        ({"alert_hourly": 5}, False),
    ],
)
def test_an_event_reaches_all_thresholds(fields: dict[str, object], meets: bool) -> None:
    """Items, sources and growth; 0 disables a condition."""
    assert meets_thresholds(desk(**fields), BRIDGE, hourly=4) is meets


@pytest.mark.parametrize(
    ("quiet_from", "quiet_until", "zone", "quiet"),
    [
        ("22:00", "06:00", "UTC", True),
        ("22:31", "06:00", "UTC", False),
        ("06:00", "22:30", "UTC", False),
        ("06:00", "22:31", "UTC", True),
        ("23:00", "23:45", "Europe/Berlin", True),
        ("22:00", "23:00", "Europe/Berlin", False),
        ("", "", "UTC", False),
        ("22:00", "22:00", "UTC", False),
    ],
)
def test_quiet_hours_may_include_midnight(quiet_from: str, quiet_until: str, zone: str, quiet: bool) -> None:
    """The end is not part of them; the time is that of the desk's zone (23:30 in Berlin)."""
    quiet_desk = desk(quiet_from=quiet_from, quiet_until=quiet_until, time_zone=zone)

    assert is_quiet(quiet_desk, LATE_MS) is quiet


@pytest.mark.parametrize("name", ["Europe/Nowhere", "Europe", "../../etc/passwd", "/etc/passwd", ""])
def test_unknown_time_zones_are_refused(name: str) -> None:
    """Also names that are no time zones but files."""
    with pytest.raises(InvalidInput):
        time_zone(name)


async def test_a_desk_is_found_under_its_name_once(store: Store) -> None:
    """A repeated creation returns the first; a change keeps id, creation and owner."""
    desks = Desks(store)
    first, is_new = await desks.create(desk(owner="k1"))
    again, is_new_again = await desks.create(desk(terms=("ferry",)))
    changed = await desks.change(first.id, lambda stored: desk(id="x", name="Ferries", created_ms=1))

    assert (is_new, is_new_again) == (True, False) and again == first
    assert (changed.id, changed.name, changed.created_ms, changed.owner) == (
        first.id, "Ferries", EVENT_MS, "k1",
    )  # fmt: skip
    assert await desks.values() == [changed]


async def test_the_number_of_desks_is_limited() -> None:
    """The last one fits; after a refusal all stored ones remain."""
    desks = Desks(MemoryStore())
    existing = {f"d{n}": desk(id=f"d{n}", name=f"Desk {n}") for n in range(MAX_DESKS - 1)}
    await desks.mutate(lambda known: known.update(existing))

    last, _ = await desks.create(desk(name="The last"))
    with pytest.raises(Conflict, match="1000 of the kind desk"):
        await desks.create(desk(name="One more"))

    assert await desks.all() == {**existing, last.id: last}


async def test_the_id_of_a_desk_selects_its_events() -> None:
    """Those of its view."""
    desks = Desks(MemoryStore())
    stored, _ = await desks.create(desk(terms=("bridge",)))
    wanted = view_filter(await desks.get(stored.id))

    assert wanted.matches(BRIDGE) and not wanted.matches(replace(BRIDGE, title="Bakery", terms=()))
