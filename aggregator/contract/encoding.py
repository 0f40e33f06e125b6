"""From the values of ``domain`` to the JSON of the contract. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from aggregator.contract import responses
from aggregator.domain import Answer, Match, Outcome, Record, RelatedItem, VerdictName, arrival_ms_of
from aggregator.queries.explain import Explanation

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Bands:
    """The distances that name a Hamming class, in bits."""

    duplicate_bits: int = 3
    related_bits: int = 7

    def class_of(self, distance: int | None) -> VerdictName:
        """What the fingerprint alone would say."""
        if distance is None or distance > self.related_bits:
            return "new"
        return "duplicate" if distance <= self.duplicate_bits else "related"


def when(ms: int) -> datetime:
    """A time as answers show it: UTC."""
    return _EPOCH + timedelta(milliseconds=ms)


def when_or_none(ms: int | None) -> datetime | None:
    """As ``when``; None stays None."""
    return None if ms is None else when(ms)


def answer(given: Answer, bands: Bands) -> responses.AnswerOut:
    """The verdict on one article."""
    outcome = given.outcome
    return responses.AnswerOut(
        id=given.id,
        verdict=outcome.verdict,
        distance=outcome.distance,
        hamming_class=bands.class_of(outcome.distance),
        duplicate_of=duplicate_of(outcome.match),
        related=[related(item) for item in given.related],
        updated_figures=outcome.updated_figures,
        event_id=given.event_id,
        space=given.space,
        fingerprint=f"{given.fingerprint:016x}",
        short=given.short,
    )


def duplicate_of(match: Match | None) -> responses.DuplicateOf | None:
    """Whom it repeats."""
    if match is None:
        return None
    return responses.DuplicateOf(match.id, match.canonical_id, match.distance, match.overlap, match.rule)


def related(item: RelatedItem) -> responses.RelatedOut:
    """One neighbour."""
    return responses.RelatedOut(
        id=item.id,
        title=item.title,
        url=item.url,
        source=item.source,
        published_at=when_or_none(item.published_at_ms),
        distance=item.distance,
        similarity=item.similarity,
    )


def article(record: Record, outcome: Outcome, event_id: str | None, bands: Bands) -> responses.ArticleOut:
    """A stored article."""
    return responses.ArticleOut(
        id=record.id,
        title=record.title,
        url=record.url,
        source=record.source,
        lang=record.lang,
        published_at=when_or_none(record.published_at_ms),
        arrived_at=when(arrival_ms_of(record.first)),
        updated_at=when(record.arrived_ms),
        verdict=outcome.verdict,
        distance=outcome.distance,
        hamming_class=bands.class_of(outcome.distance),
        duplicate_of=duplicate_of(outcome.match),
        updated_figures=outcome.updated_figures,
        event_id=event_id,
        space=record.space,
        fingerprint=f"{record.fingerprint:016x}",
        short=record.short,
    )


def reference(record: Record) -> responses.ArticleRef:
    """An article in a list."""
    return responses.ArticleRef(
        id=record.id,
        title=record.title,
        url=record.url,
        source=record.source,
        published_at=when_or_none(record.published_at_ms),
        arrived_at=when(arrival_ms_of(record.first)),
    )


def explanation(found: Explanation) -> responses.ExplainOut:
    """Two articles compared."""
    sides = [
        responses.ExplainSideOut(
            label=found.labels[side],
            space=found.spaces[side],
            fingerprint=f"{found.fingerprints[side]:016x}",
            figures=list(found.figures[side]) if found.figures is not None else None,
            own_passages=list(found.own_passages[side]) if found.own_passages is not None else None,
        )
        for side in (0, 1)
    ]
    return responses.ExplainOut(
        summary=found.summary,
        a=sides[0],
        b=sides[1],
        distance=found.distance,
        differing_bits=list(found.differing_bits) if found.differing_bits is not None else None,
        overlap=responses.OverlapOut(
            containment=round(found.overlap.containment, 3),
            resemblance=round(found.overlap.resemblance, 3),
            shared=round(found.overlap.shared, 1),
        ),
        similarity=found.similarity,
        is_copy=found.is_copy,
        updated_figures=found.updated_figures,
        shared_passages=list(found.shared_passages) if found.shared_passages is not None else None,
    )
