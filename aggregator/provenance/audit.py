"""Audit of a source: what its articles caused, and its removal once it turns out to be dishonest.

The articles of an untrusted source (``index/untrusted.py``) are deleted one by one, as by ``DELETE``: the
members of their duplicate groups are examined against each other, events lose them and may end, and the
detector forgets what they taught. Copies of them, which crawlers dropped, are listed to be sent again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from aggregator.analysis.text.normalization import source_key
from aggregator.errors import InvalidInput, NotFound
from aggregator.index import Index
from aggregator.index.untrusted import is_of

ITEMS_PER_READ = 500
EventIdsOf = Callable[[list[int]], Awaitable[dict[int, str]]]
Delete = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class CausedVerdict:
    """An article of another source, a duplicate of ``original``; ``now``: its verdict after that went."""

    id: str
    url: str
    source: str
    title: str
    original: str
    now: str = "duplicate"


@dataclass(frozen=True, slots=True)
class SourceAudit:
    """What a source caused: the ids of its ``articles``, the verdicts on others, its articles by event id."""

    source: str
    articles: tuple[str, ...]
    copies: tuple[CausedVerdict, ...]
    events: dict[str, int]


async def audit(index: Index, source: str, event_ids_of: EventIdsOf) -> SourceAudit:
    """Read all stored articles, and those of ``source`` with their groups. Raises InvalidInput."""
    own_names = frozenset((source_key(source),))
    if "" in own_names:
        raise InvalidInput("source: name one.", field="source")
    posted: dict[str, None] = {}
    positions: Mapping[bytes, bytes] = {}
    while True:  # not by the index, in which exact copies share the entries of their original
        items, positions = await index.stream.read(positions, ITEMS_PER_READ, with_story_terms=False)
        posted |= dict.fromkeys(item.id for item in items if is_of(item, own_names))
        if not items:
            break
    stored = await index.articles.get_many(list(posted))
    own = [article for article in stored.values() if is_of(article.record, own_names)]
    ids, copies = tuple(article.record.id for article in own), list[CausedVerdict]()
    for article in own:
        if article.outcome.match is None:
            for r in await index.articles.group_members(article.record.id):
                if r.id not in stored:
                    copies.append(CausedVerdict(r.id, r.url, r.source, r.title, article.record.id))
    found = await event_ids_of([article.record.first_version for article in own])
    return SourceAudit(source, ids, tuple(copies), dict(Counter(found.values())))


async def distrust(index: Index, source: str, event_ids_of: EventIdsOf, delete: Delete) -> SourceAudit:
    """Store nothing of ``source`` from now on and delete what is stored; the verdicts after that.

    Idempotent: after an interruption, repeat it.
    """
    found = await audit(index, source, event_ids_of)
    await index.untrusted.change(source, untrusted=True)
    for id_ in found.articles:
        with suppress(NotFound):
            await delete(id_)
    stored = await index.articles.get_many([copy.id for copy in found.copies])
    copies = [replace(c, now=stored[c.id].outcome.verdict) for c in found.copies if c.id in stored]
    return replace(found, copies=tuple(copies))
