"""Conversion of domain values to the response types of the contract. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from aggregator.analysis.simhash import to_hex
from aggregator.domain import Answer, ArticleRecord, Match, Outcome, RelatedItem, VerdictName, arrival_ms_of
from aggregator.queries.explain import Explanation
from aggregator.queries.search import FoundArticle, SearchResult
from aggregator_client import wire

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class DistanceThresholds:
    """Hamming distances in bits up to which an article is a duplicate or related by fingerprint alone."""

    duplicate_bits: int = 3
    related_bits: int = 7

    def hamming_class(self, distance: int | None) -> VerdictName:
        """The verdict by fingerprint only; ``distance`` None: no article is near."""
        if distance is None or distance > self.related_bits:
            return "new"
        return "duplicate" if distance <= self.duplicate_bits else "related"


def to_datetime(ms: int) -> datetime:
    """A time in milliseconds since 1970 as a UTC datetime."""
    return _EPOCH + timedelta(milliseconds=ms)


def to_datetime_or_none(ms: int | None) -> datetime | None:
    """As ``to_datetime``; None stays None."""
    return None if ms is None else to_datetime(ms)


def verdict_out(answer: Answer, thresholds: DistanceThresholds) -> wire.VerdictOut:
    """The verdict on one article."""
    outcome = answer.outcome
    return wire.VerdictOut(
        id=answer.id,
        verdict=outcome.verdict,
        distance=outcome.distance,
        hamming_class=thresholds.hamming_class(outcome.distance),
        duplicate_of=duplicate_of_out(outcome.match),
        related=[related_out(item) for item in answer.related],
        updated_figures=outcome.updated_figures,
        event_id=answer.event_id,
        space=answer.space,
        fingerprint=to_hex(answer.fingerprint),
        short=answer.short,
    )


def duplicate_of_out(match: Match | None) -> wire.DuplicateOf | None:
    """The earlier article that this one duplicates, if any."""
    if match is None:
        return None
    return wire.DuplicateOf(
        id=match.id,
        canonical_id=match.canonical_id,
        distance=match.distance,
        overlap=match.overlap,
        rule=match.rule,
    )


def related_out(item: RelatedItem) -> wire.RelatedOut:
    """One related article."""
    return wire.RelatedOut(
        id=item.id,
        title=item.title,
        url=item.url,
        source=item.source,
        published_at=to_datetime_or_none(item.published_at_ms),
        distance=item.distance,
        similarity=item.similarity,
    )


def article_out(
    record: ArticleRecord, outcome: Outcome, event_id: str | None, thresholds: DistanceThresholds
) -> wire.ArticleOut:
    """A stored article."""
    return wire.ArticleOut(
        id=record.id,
        title=record.title,
        url=record.url,
        source=record.source,
        lang=record.lang,
        published_at=to_datetime_or_none(record.published_at_ms),
        arrived_at=to_datetime(arrival_ms_of(record.first_version)),
        updated_at=to_datetime(record.arrived_ms),  # arrival of the current version
        verdict=outcome.verdict,
        distance=outcome.distance,
        hamming_class=thresholds.hamming_class(outcome.distance),
        duplicate_of=duplicate_of_out(outcome.match),
        updated_figures=outcome.updated_figures,
        event_id=event_id,
        space=record.space,
        fingerprint=to_hex(record.fingerprint),
        short=record.short,
    )


def article_ref(record: ArticleRecord) -> wire.ArticleRef:
    """An article in a list."""
    return wire.ArticleRef(
        id=record.id,
        title=record.title,
        url=record.url,
        source=record.source,
        published_at=to_datetime_or_none(record.published_at_ms),
        arrived_at=to_datetime(arrival_ms_of(record.first_version)),
    )


def found_article(found: FoundArticle, event_id: str | None) -> wire.FoundArticle:
    """A result of a search."""
    record = found.article.record
    return wire.FoundArticle(
        **msgspec.structs.asdict(article_ref(record)),
        lang=record.lang,
        verdict=found.article.outcome.verdict,
        missing=found.missing,
        event_id=event_id,
    )


def searched_out(result: SearchResult) -> wire.SearchedOut:
    """What a search has read."""
    return wire.SearchedOut(result.searched, to_datetime_or_none(result.since_ms), result.is_loading)


def explain_out(explanation: Explanation) -> wire.ExplainOut:
    """The comparison of two articles."""
    sides = [
        wire.ExplainSideOut(
            label=explanation.labels[side],
            space=explanation.spaces[side],
            fingerprint=to_hex(explanation.fingerprints[side]),
            figures=list(explanation.figures[side]) if explanation.figures is not None else None,
            own_passages=list(explanation.own_passages[side])
            if explanation.own_passages is not None
            else None,
        )
        for side in (0, 1)
    ]
    return wire.ExplainOut(
        summary=explanation.summary,
        a=sides[0],
        b=sides[1],
        distance=explanation.distance,
        differing_bits=list(explanation.differing_bits) if explanation.differing_bits is not None else None,
        overlap=wire.OverlapOut(
            containment=round(explanation.overlap.containment, 3),
            resemblance=round(explanation.overlap.resemblance, 3),
            shared=round(explanation.overlap.shared, 1),
            opening=round(explanation.overlap.opening, 3),
            common_opening=round(explanation.overlap.common_opening, 3),
            length_ratio=round(explanation.overlap.size_ratio, 3),
        ),
        similarity=explanation.similarity,
        related_similarity=explanation.related_similarity,
        headline_similarity=explanation.headline_similarity,
        same_outlet=explanation.evidence.same_outlet,
        hours_apart=explanation.hours_apart,
        boilerplate=round(explanation.evidence.boilerplate, 3),
        common_figures=explanation.common_figures,
        is_copy=explanation.is_copy,
        updated_figures=explanation.updated_figures,
        shared_passages=list(explanation.shared_passages)
        if explanation.shared_passages is not None
        else None,
        policy=explanation.profile,
    )
