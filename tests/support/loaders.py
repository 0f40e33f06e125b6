"""An index filled with given fingerprints: by the transactions of the service, without analysing texts."""

from collections.abc import Sequence

import numpy as np

from aggregator.domain import ArticleRecord, Outcome, Sketch, article_number_at
from aggregator.index import Index

SPACE = "xx.0000"
FIRST_MS = 1_780_000_000_000


def record(fingerprint: int, place: int, space: str = SPACE) -> ArticleRecord:
    """Article ``a<place>``, which arrived so many milliseconds after the first."""
    number = article_number_at(FIRST_MS + place)
    return ArticleRecord(
        number=number, first_version=number, id=f"a{place}", space=space, lang="en", fingerprint=fingerprint,
        text_hash=place.to_bytes(16, "big"), short=False, title="", url="", source="", published_at_ms=None,
        sketch=Sketch(0, np.empty(0, np.uint32)),
    )  # fmt: skip


async def fill(index: Index, fingerprints: Sequence[int], start: int = 0) -> list[int]:
    """Insert them as new articles, in one commit each; returns their numbers."""
    records = [record(fingerprint, place) for place, fingerprint in enumerate(fingerprints, start)]
    await index.records.insert(records, {})
    snapshot = await index.segments.read({SPACE: ()})
    segment = index.transactions(snapshot, SPACE)
    failed = await index.store.commit_many([segment.insert(r, Outcome("new"), []) for r in records])
    assert not any(failed)
    return [r.number for r in records]
