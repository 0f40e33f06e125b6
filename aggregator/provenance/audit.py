"""Audit of a source: what its articles caused, and its removal once it turns out to be dishonest.

The articles of an untrusted source (``index/untrusted.py``) are deleted one by one, as by ``DELETE``; copies
of them, which crawlers dropped, are to be sent again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches

from aggregator.analysis.text.normalization import source_key
from aggregator.domain import ArticleRecord
from aggregator.errors import InvalidInput, NotFound
from aggregator.index import Index
from aggregator.index.untrusted import is_of

ITEMS_PER_READ = 500
EventIdsOf = Callable[[list[int]], Awaitable[dict[int, str]]]
Delete = Callable[[str], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class SourceAudit:
    """Ids of the articles of a source, their copies by others, the number of its articles by event id.

    ``similar``: for a source without articles the known one whose name is nearest; "" if there is none.
    """

    articles: tuple[str, ...]
    copies: tuple[ArticleRecord, ...]
    events: dict[str, int]
    similar: str = ""


async def audit(
    index: Index, source: str, event_ids_of: EventIdsOf, delete: Delete, *, untrusted: bool | None = None
) -> SourceAudit:
    """What a source, by its name or site, has caused. Raises InvalidInput for an empty name.

    ``untrusted``: store nothing of it from now on and delete what is stored; ``copies`` are then those that
    are new now. Idempotent: after an interruption, repeat it. False: store its articles again.
    """
    names = frozenset((source_key(source),))
    if "" in names:
        raise InvalidInput("source: name one.", field="source")
    if untrusted is not None:
        await index.untrusted.edit(lambda listed: listed | names if untrusted else listed - names)
    posted, known = dict[str, None](), dict[str, str]()
    positions: Mapping[bytes, bytes] = {}
    items = None
    while items != []:  # not by the index, in which exact copies share the entries of their original
        items, positions = await index.stream.read(positions, ITEMS_PER_READ, with_story_terms=False)
        posted |= dict.fromkeys(item.id for item in items if is_of(item, names))
        known |= {source_key(item.source): item.source for item in items if item.source}
    stored = await index.articles.get_many(list(posted))
    own = {id_: article for id_, article in stored.items() if is_of(article.record, names)}
    originals = [id_ for id_, article in own.items() if article.outcome.match is None]
    members = [record for id_ in originals for record in await index.articles.group_members(id_)]
    found = await event_ids_of([article.record.first_version for article in own.values()])
    copies = [record for record in members if record.id not in own]
    if untrusted:
        for id_ in own:
            with suppress(NotFound):
                await delete(id_)
        now = await index.articles.get_many([copy.id for copy in copies])
        copies = [copy for copy in copies if copy.id in now and now[copy.id].outcome.match is None]
    near = [] if own else get_close_matches(source_key(source), known, n=1)
    similar = known[near[0]] if near else ""
    return SourceAudit(tuple(own), tuple(copies), dict(Counter(found.values())), similar)
