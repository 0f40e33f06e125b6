"""The articles of an event as a list in pages: in order of time with copies folded, or by outlet. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from aggregator.http.event_items import EventItem

PAGE_SIZE = 50
# The print view has one page.
MAX_PRINTED = 1000
UNNAMED_OUTLET = "No outlet named"
MAX_NAMED_OUTLETS = 4


@dataclass(frozen=True, slots=True)
class Entry:
    """One article with the copies of it. ``original``: the article of the event that it copies itself."""

    item: EventItem
    copies: tuple[EventItem, ...] = ()
    original: EventItem | None = None

    @property
    def copy_outlets(self) -> str:
        """The outlets of the copies, the first ones by name: "A, B and 4 more"."""
        names = list(dict.fromkeys(copy.source or UNNAMED_OUTLET for copy in self.copies))
        shown = ", ".join(names[:MAX_NAMED_OUTLETS])
        more = len(names) - MAX_NAMED_OUTLETS
        return f"{shown} and {more} more" if more > 0 else shown


@dataclass(frozen=True, slots=True)
class Outlet:
    """Articles of one outlet on this page, oldest first. ``total``: on all pages."""

    name: str
    total: int
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list. ``number`` counts from 1."""

    number: int
    count: int
    entries: tuple[Entry, ...]
    outlets: tuple[Outlet, ...] = ()


def fold_copies(items: Sequence[EventItem]) -> list[Entry]:
    """One entry per group of copies in order of time: the original if it is there, else the earliest."""
    groups: dict[str, list[EventItem]] = {}
    for item in items:
        groups.setdefault(item.copy_of or item.id, []).append(item)
    entries = []
    for canonical_id, members in groups.items():
        head = next((item for item in members if item.id == canonical_id), members[0])
        entries.append(Entry(head, tuple(item for item in members if item is not head)))
    return sorted(entries, key=lambda entry: entry.item.at_ms)


def add_copies(entry: Entry, others: Sequence[EventItem]) -> Entry:
    """The entry with further copies, which the event does not count."""
    known = {entry.item.id, *(copy.id for copy in entry.copies)}
    more = [other for other in others if other.id not in known]
    return replace(entry, copies=tuple(sorted((*entry.copies, *more), key=lambda item: item.at_ms)))


def page_of(entries: Sequence[Entry], number: int, size: int = PAGE_SIZE) -> Page:
    """The page with this number, or the last one."""
    count = max(1, -(-len(entries) // size))
    number = min(number, count)
    return Page(number, count, tuple(entries[(number - 1) * size : number * size]))


def outlet_page(items: Sequence[EventItem], number: int, size: int = PAGE_SIZE) -> Page:
    """The page of a list by outlet: the outlets in order of their first article, nothing folded."""
    by_id: Mapping[str, EventItem] = {item.id: item for item in items}
    by_outlet: dict[str, list[Entry]] = {}
    for item in items:
        entry = Entry(item, original=by_id.get(item.copy_of))
        by_outlet.setdefault(item.source or UNNAMED_OUTLET, []).append(entry)
    page = page_of([entry for entries in by_outlet.values() for entry in entries], number, size)
    outlets = tuple(
        Outlet(name, len(by_outlet[name]), tuple(group))
        for name, group in groupby(page.entries, key=lambda e: e.item.source or UNNAMED_OUTLET)
    )
    return replace(page, outlets=outlets)
