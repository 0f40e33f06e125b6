"""Fills an index with given fingerprints, by the transactions of the service but without text analysis."""

from collections.abc import Sequence

from aggregator.domain import NO_SKETCH, ArticleRecord, Outcome, article_number_at
from aggregator.index import Index

SPACE = "xx.0000"
FIRST_MS = 1_780_000_000_000


def record(fingerprint: int, position: int, space: str = SPACE) -> ArticleRecord:
    """Article ``a<position>``, which arrived ``position`` ms after FIRST_MS."""
    number = article_number_at(FIRST_MS + position)
    return ArticleRecord(
        number=number, first_version=number, id=f"a{position}", space=space, lang="en",
        fingerprint=fingerprint, text_hash=position.to_bytes(16, "big"), short=False, title="", url="",
        source="", published_at_ms=None, sketch=NO_SKETCH,
    )  # fmt: skip


async def fill(index: Index, fingerprints: Sequence[int], start: int = 0) -> list[int]:
    """Insert the fingerprints as new articles, one commit each; returns their article numbers."""
    records = [record(fingerprint, position) for position, fingerprint in enumerate(fingerprints, start)]
    await index.records.insert(records, {})
    snapshot = await index.segments.read({SPACE: ()})
    segment = index.transactions(snapshot.stacks[SPACE])
    failed = await index.store.commit_many([segment.insert(r, Outcome("new"), []) for r in records])
    assert not any(failed)
    return [r.number for r in records]
