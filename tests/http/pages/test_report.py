"""The articles of an event: folding of copies, order, outlets."""

from __future__ import annotations

import msgspec

from aggregator.http.handlers.event_views import EventItem
from aggregator.http.pages.report import by_outlet, fold_copies


def item(id_: str, at_ms: int, source: str = "", copy_of: str = "") -> EventItem:
    """An article with an id as its headline."""
    return EventItem(id_, id_, "", source, "en", None, at_ms, at_ms, copy_of=copy_of)


def test_copies_are_folded_under_their_original() -> None:
    """Also under the earliest copy, if the original is not in the event."""
    items = [
        item("c1", 1, "Quay News", copy_of="gone"),
        item("a", 2, "Pier Nine"),
        item("c2", 3, "Valley FM", copy_of="gone"),
        item("b", 4, "Estmark Radio", copy_of="a"),
    ]
    first, second = fold_copies(items)

    assert (first.item.id, [c.id for c in first.copies]) == ("c1", ["c2"])
    assert (second.item.id, [c.id for c in second.copies]) == ("a", ["b"])


def test_what_a_copy_adds_stays_apart() -> None:
    """It was kept for readers, so editors see it, too; its row names the original."""
    items = [
        item("a", 1),
        msgspec.structs.replace(item("b", 2, copy_of="a"), adds=True),
        item("c", 3, copy_of="a"),
    ]
    first, second = fold_copies(items)

    assert (first.item.id, [c.id for c in first.copies]) == ("a", ["c"])
    assert (second.item.id, second.original) == ("b", items[0])


def test_outlets_are_in_order_of_their_first_article() -> None:
    """An article names the one that it copies."""
    items = [item("a", 1, "Quay"), item("b", 2, "Pier"), item("c", 3, "Quay", copy_of="b"), item("d", 4)]
    entries = by_outlet(items)

    assert [entry.item.id for entry in entries] == ["a", "c", "b", "d"]
    assert [entry.original for entry in entries] == [None, items[1], None, None]
