"""The list of refused articles."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from aggregator.errors import Forbidden, InvalidInput, Overloaded, StoreUnavailable
from aggregator.ingest.refused import MAX_CHARS, MAX_NAMED, MAX_ROWS, Refused, RefusedArticles, merged
from aggregator.store.base import Store
from aggregator.store.memory import MemoryStore
from tests.support.factories import Clock, core


def listed(store: Store, clock: Clock) -> RefusedArticles:
    """The list of a service with this store."""
    return RefusedArticles(core(store, clock=clock).index, clock)


async def test_refused_articles_are_named_as_far_as_they_can_be_read(store: Store) -> None:
    """By outlet and headline, else URL; another process, or one started later, reads them."""
    clock = Clock()
    error = InvalidInput("category: unknown field.")
    await listed(store, clock).add([
        (b'{"title": "Bridge closed", "source": "Quay News", "category": 1}', error),
        (b'{"title": ["?"], "source": null, "url": "https://a.example"}', error),
        (b'{"title": "Bridge open", "source": "Quay News", "category": 2}', error),
        (b"\xff{", InvalidInput("body: no JSON.")),
        (b"[1]", InvalidInput("body: an array." + "x" * 500)),
        (b'{"title": "Later", "source": "Quay News"}', Overloaded("Try again.", 1)),  # the sender repeats it
    ])  # fmt: skip
    rows = await listed(store, clock).read()

    assert [(row.source, row.newest[0][1], row.count) for row in rows] == [
        ("", "", 1), ("", "", 1), ("Quay News", "Bridge open", 2), ("", "['?']", 1),
    ]  # fmt: skip
    assert rows[0].reason.startswith("body: an array.") and len(rows[0].reason) == MAX_CHARS


def test_the_newest_rows_are_kept() -> None:
    """What occurs again is newest again."""
    rows = merged((), [Refused(f"s{n}", "wrong", n) for n in range(MAX_ROWS + 5)])
    again = merged(rows, [Refused("s10", "wrong", 99, (("i", "t"),))])

    assert len(rows) == len(again) == MAX_ROWS and rows[0].source == f"s{MAX_ROWS + 4}"
    assert again[0] == Refused("s10", "wrong", 99, (("i", "t"), ("", "")), 2) and again[1:3] == rows[:2]


async def test_the_sender_is_answered_without_the_store() -> None:
    """The list is a help; the error is the answer."""

    class Unavailable(MemoryStore):
        async def read(self, keys: object) -> list[bytes | None]:
            raise StoreUnavailable("gone")

    index: Any = SimpleNamespace(store=Unavailable(), articles=None)
    await RefusedArticles(index, Clock()).add([(b"{}", InvalidInput("id: missing."))])


async def test_an_article_that_is_accepted_leaves_the_list(store: Store) -> None:
    """By its id or URL, also one of more than are named; not because another outlet's article has its id."""
    newsroom = core(store)
    refused = RefusedArticles(newsroom.index, newsroom.clock)

    async def refuse(error: Exception, *ids: str, source: str = "Quay News", **fields: str) -> None:
        bodies = [{"id": id_, "title": f"Title {id_}", "source": source} | fields for id_ in ids]
        await refused.add([(json.dumps(body).encode(), error) for body in bodies])

    async def left() -> list[tuple[str, str, int]]:
        return [(row.source, row.newest[0][1], row.count) for row in await refused.read()]

    many = [f"m{n}" for n in range(MAX_NAMED + 10)]
    await newsroom.post("foreign", "The pier of Estmark is repaired.", source="Pier Post")
    newsroom.clock.now_ms += 1000
    await refuse(InvalidInput("category: unknown field."), *many)
    await refuse(InvalidInput("lang: unknown."), "a", "b")
    await refuse(Forbidden("The id is taken."), "foreign")
    await refuse(Forbidden("Not with this key."), "c", source="Quay")
    assert await left() == [
        ("Quay", "Title c", 1),
        ("Quay News", "Title foreign", 1),
        ("Quay News", "Title b", 2),
        ("Quay News", f"Title {many[-1]}", len(many)),
    ]

    newsroom.clock.now_ms += 1000
    for n, id_ in enumerate([*many, "b", "c"]):
        await newsroom.post(id_, f"Ferry {n} leaves the quay at dawn.", source="Quay News")
    assert await left() == [("Quay News", "Title foreign", 1), ("Quay News", "Title a", 1)]
