"""The articles of an event in pages: folding of copies, order, outlets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from aggregator.http.handlers.event_views import EventItem
from aggregator.http.pages.report import UNNAMED_OUTLET, fold_copies, outlet_page, page_of


def item(id_: str, at_ms: int, source: str = "", copy_of: str = "") -> EventItem:
    """An article with an id as its headline."""
    return EventItem(id_, id_, "", source, "en", None, at_ms, at_ms, 1.0, copy_of)


def test_copies_are_folded_under_their_original() -> None:
    """Also under the earliest copy, if the original is not in the event."""
    items = [
        item("c1", 1, "Quay News", copy_of="gone"),
        item("a", 2, "Pier Nine"),
        item("c2", 3, "Valley FM", copy_of="gone"),
        item("b", 4, "Estmark Radio", copy_of="a"),
    ]
    first, second = fold_copies(items)

    assert (first.item.id, [c.id for c in first.copies], first.copy_outlets) == ("c1", ["c2"], "Valley FM")
    assert (second.item.id, [c.id for c in second.copies]) == ("a", ["b"])


def test_an_original_that_arrived_after_its_copy_leads() -> None:
    """The group keeps the time of the original."""
    early, original = item("b", 1, copy_of="a"), item("a", 5)
    (entry,) = fold_copies([early, original])

    assert (entry.item, entry.copies) == (original, (early,))


def test_outlets_of_copies_are_named_once_and_counted() -> None:
    """The first four by name; one without a name is said to be so."""
    copies = [item(f"c{n}", n, source, "a") for n, source in enumerate("AABCDEF")] + [item("u", 9, "", "a")]
    (entry,) = fold_copies([item("a", 0), *copies])

    assert entry.copy_outlets == "A, B, C, D and 3 more"
    assert fold_copies([item("a", 0), item("u", 9, "", "a")])[0].copy_outlets == UNNAMED_OUTLET


@given(st.integers(0, 200), st.integers(1, 60))
def test_every_entry_is_on_exactly_one_page(count: int, size: int) -> None:
    """A number beyond the last page shows the last one."""
    entries = fold_copies([item(str(n), n) for n in range(count)])
    pages = page_of(entries, 1, size).count
    shown = [entry for number in range(1, pages + 1) for entry in page_of(entries, number, size).entries]

    assert shown == entries
    assert page_of(entries, pages + 5, size) == page_of(entries, pages, size)


def test_outlets_are_in_order_of_their_first_article() -> None:
    """An outlet may continue on the next page, with the number of all its articles."""
    items = [item("a", 1, "Quay"), item("b", 2, "Pier"), item("c", 3, "Quay", copy_of="b"), item("d", 4)]
    first, second = outlet_page(items, 1, 3), outlet_page(items, 2, 3)

    assert [(o.name, o.total, [e.item.id for e in o.entries]) for o in first.outlets] == [
        ("Quay", 2, ["a", "c"]),
        ("Pier", 1, ["b"]),
    ]
    assert [o.name for o in second.outlets] == [UNNAMED_OUTLET]
    assert first.outlets[0].entries[1].original == replace(items[1])
