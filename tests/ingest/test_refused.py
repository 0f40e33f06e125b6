"""The list of refused articles."""

from __future__ import annotations

from aggregator.errors import InvalidInput, Overloaded, StoreUnavailable
from aggregator.ingest.refused import MAX_CHARS, MAX_ROWS, Refused, RefusedArticles, merged
from aggregator.store.base import Store
from aggregator.store.memory import MemoryStore
from tests.support.factories import Clock


async def test_refused_articles_are_named_as_far_as_they_can_be_read(store: Store) -> None:
    """By outlet and headline, else URL; another process, or one started later, reads them."""
    clock = Clock()
    error = InvalidInput("category: unknown field.")
    await RefusedArticles(store, clock).add([
        (b'{"title": "Bridge closed", "source": "Quay News", "category": 1}', error),
        (b'{"title": ["?"], "source": null, "url": "https://a.example"}', error),
        (b'{"title": "Bridge open", "source": "Quay News", "category": 2}', error),
        (b"\xff{", InvalidInput("body: no JSON.")),
        (b"[1]", InvalidInput("body: an array." + "x" * 500)),
        (b'{"title": "Later", "source": "Quay News"}', Overloaded("Try again.", 1)),  # the sender repeats it
    ])  # fmt: skip
    rows = await RefusedArticles(store, clock).read()

    assert [(row.source, row.title, row.count) for row in rows] == [
        ("", "", 1), ("", "", 1), ("Quay News", "Bridge open", 2), ("", "['?']", 1),
    ]  # fmt: skip
    assert rows[0].reason.startswith("body: an array.") and len(rows[0].reason) == MAX_CHARS


def test_the_newest_rows_are_kept() -> None:
    """What occurs again is newest again."""
    rows = merged((), [Refused(f"s{n}", "", "wrong", n) for n in range(MAX_ROWS + 5)])
    again = merged(rows, [Refused("s10", "t", "wrong", 99)])

    assert len(rows) == len(again) == MAX_ROWS and rows[0].source == f"s{MAX_ROWS + 4}"
    assert again[0] == Refused("s10", "t", "wrong", 99, 2) and again[1:3] == rows[:2]


async def test_the_sender_is_answered_without_the_store() -> None:
    """The list is a help; the error is the answer."""

    class Unavailable(MemoryStore):
        async def read(self, keys: object) -> list[bytes | None]:
            raise StoreUnavailable("gone")

    await RefusedArticles(Unavailable(), Clock()).add([(b"{}", InvalidInput("id: missing."))])
