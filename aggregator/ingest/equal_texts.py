"""Equal texts under different language tags: the later article follows the one that is stored.

An article whose ``text_key`` one of another language has is analyzed in that language; if their texts are
equal then, it is looked up and stored there (docs/decisions/0050-equal-texts.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from aggregator.domain import Analysis, AnalyzeMany, ArticleRecord
from aggregator.index import Index, Probe, Snapshot, keys
from aggregator.index.bindings import bindings_under
from aggregator.index.codec.postings import appended_sharing
from aggregator.ingest.commit import PendingArticle

MAX_EQUAL = 4  # articles under one ``text_key`` that are read, the latest


def equal_in_any_space(snapshot: Snapshot, probe: Probe) -> dict[int, str]:
    """Numbers of articles under the same ``text_key``, each with its space; earliest first."""
    key, found = probe.analysis.text_key, dict[int, str]()
    remainder = (key >> keys.SKETCH_BUCKET_BITS).to_bytes(2, "little")
    for space, stack in snapshot.stacks.items():
        for tag, width in zip(stack.tags, stack.sketch_widths, strict=True):
            for bits in width.bits_to_read:
                entries = snapshot.values.get(keys.sketch_buckets(tag, [key], bits)[0])
                if entries and remainder in entries:
                    found |= dict.fromkeys(appended_sharing({0: entries}, [key], 0, stack.floor), space)
    return dict(sorted(found.items())[-MAX_EQUAL:]) if found else found


class EqualTexts:
    """Gives pending articles the language of an equal text. ``analyze_many``: as for the articles."""

    def __init__(self, index: Index, analyze_many: AnalyzeMany) -> None:
        self._index, self._analyze_many = index, analyze_many

    async def unite(self, batch: Sequence[PendingArticle]) -> None:
        """Give equal texts of one batch the language of the first."""
        first: dict[int, Analysis] = {}
        for item in batch:
            await self._adopt(item, [first.setdefault(item.analysis.text_key, item.analysis)])

    async def follow(
        self,
        snapshot: Snapshot,
        batch: Sequence[PendingArticle],
        probes: Sequence[Probe],
        equal: Sequence[Mapping[int, str]],
    ) -> bool:
        """Give articles the language of an ``equal`` stored text; whether any must be looked up again.

        That of its own id first. Not if its own space has the text, or the newest version of its id.
        """
        followed = False
        for item, probe, found in zip(batch, probes, equal, strict=True):
            newest = bindings_under(snapshot, probe.binding_key)[:1] if found else []
            if found and probe.space not in [version.space for version in newest]:
                versions = [version.binding.number for version in newest]
                live = [n for n, s in found.items() if snapshot.newest_value(s, keys.state(n)) != keys.DEAD]
                own, others = ([*filter(None, map(snapshot.record, numbers))] for numbers in (versions, live))
                followed |= await self._adopt(item, own) or await self._adopt(item, others)
        return followed

    async def _adopt(self, item: PendingArticle, others: Sequence[Analysis | ArticleRecord]) -> bool:
        """Analyze an article in the language of the first of the others whose text equals its own then."""
        own, texts = item.analysis, {(other.space, other.text_hash) for other in others}
        if (own.space, own.text_hash) in texts:
            return False
        # Not in its own language: many texts of a newswire begin alike, and none of them would be equal then.
        for lang in dict.fromkeys(other.lang for other in others if other.lang != own.lang):
            article = replace(item.article, known_lang=lang)
            (found,) = await self._analyze_many([article])
            if isinstance(found, Analysis) and (found.space, found.text_hash) in texts:
                if item.record_written:  # by an earlier attempt
                    await self._index.records.delete({item.number: own.space})
                    item.number, item.record_written = 0, False
                item.article, item.analysis = article, found
                return True
        return False
