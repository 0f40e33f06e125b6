"""Conversion of domain values to the response types of the contract. Pure."""

from __future__ import annotations

import functools
from dataclasses import fields
from datetime import datetime
from itertools import starmap
from typing import Any, TypeVar

import msgspec

from aggregator.domain import Answer, ArticleRecord, Outcome, RelatedItem, VerdictName, arrival_ms_of
from aggregator.queries.search import FoundArticle
from aggregator.settings import Settings
from aggregator.time_units import to_datetime
from aggregator_client import wire

T = TypeVar("T", bound=msgspec.Struct)
_OUTCOME_FIELDS = [each.name for each in fields(Outcome) if each.name in wire.OutcomeOut.__struct_fields__]


def hamming_class(distance: int | None, settings: Settings) -> VerdictName:
    """The verdict by fingerprint only; ``distance`` in bits, None: no article is near."""
    if distance is None or distance > settings.related_bits:
        return "new"
    return "duplicate" if distance <= settings.duplicate_bits else "related"


def to_datetime_or_none(ms: int | None) -> datetime | None:
    """As ``to_datetime``; None stays None."""
    return None if ms is None else to_datetime(ms)


def verdict_out(answer: Answer, settings: Settings) -> wire.VerdictOut:
    """The verdict on one article."""
    return wire.VerdictOut(
        **_outcome_fields(answer.outcome, answer.fingerprint, settings),
        id=answer.id,
        related=list(map(related_out, answer.related)),
        event_id=answer.event_id,
        space=answer.space,
        short=answer.short,
        problems=[str(problem.name) for problem in answer.problems] + ["untrusted"] * answer.untrusted,
        stored_as=answer.stored_as,
        reused_id=answer.replaces is not None,
        replaces=fields_of(answer.replaces, wire.ReplacedArticle) if answer.replaces else None,
        withdrawn=list(answer.withdrawn),
        unchecked=answer.unchecked,
        stored=not answer.withheld,
        created=answer.created and answer.outcome.keep,
    )


def _outcome_fields(outcome: Outcome, fingerprint: int, settings: Settings) -> dict[str, Any]:
    """The fields of ``wire.OutcomeOut`` that are computed of the outcome and the fingerprint."""
    return {
        **{name: getattr(outcome, name) for name in _OUTCOME_FIELDS},
        "hamming_class": hamming_class(outcome.distance, settings),
        "duplicate_of": fields_of(outcome.match, wire.DuplicateOf) if outcome.match else None,
        "fingerprint": f"{fingerprint:016x}",
    }


def fields_of(source: Any, type_: type[T], /, **computed: Any) -> T:
    """A ``type_`` with the computed fields; the others are those of ``source`` with these names.

    Where it has ``x_ms`` instead of ``x``, the time as a datetime.
    """
    for name, of_time in _sources(source.__class__, type_):
        if name not in computed:
            computed[name] = (
                to_datetime_or_none(getattr(source, of_time)) if of_time else getattr(source, name)
            )
    return type_(**computed)


@functools.cache
def _sources(source: type, type_: type[msgspec.Struct]) -> list[tuple[str, str]]:
    """The fields of a type, each with the attribute of the source that is its time in ms, "" for none."""
    times = ((name, name + "_ms") for name in type_.__struct_fields__)
    return [(name, time if hasattr(source, time) else "") for name, time in times]


def related_out(item: RelatedItem) -> wire.RelatedOut:
    """One related article."""
    return wire.RelatedOut(  # several in each verdict: ``fields_of`` takes twice as long
        id=item.id,
        title=item.title,
        url=item.url,
        source=item.source,
        published_at=to_datetime_or_none(item.published_at_ms),
        distance=item.distance,
        similarity=item.similarity,
        score=item.score,
        kind=item.kind,
        copies=item.copies,
        shared=list(starmap(wire.SharedWord, item.shared)),
        hours_apart=item.hours_apart,
        because_of=item.because_of,
    )


def article_out(
    record: ArticleRecord, outcome: Outcome, event_id: str | None, settings: Settings
) -> wire.ArticleOut:
    """A stored article."""
    return fields_of(
        record,
        wire.ArticleOut,
        arrived_at=to_datetime(arrival_ms_of(record.first_version)),
        updated_at=to_datetime(record.arrived_ms),  # arrival of the current version
        event_id=event_id,
        **_outcome_fields(outcome, record.fingerprint, settings),
    )


def article_ref(record: ArticleRecord) -> wire.ArticleRef:
    """An article in a list."""
    return fields_of(record, wire.ArticleRef, arrived_at=to_datetime(arrival_ms_of(record.first_version)))


def found_article(found: FoundArticle, event_id: str | None) -> wire.FoundArticle:
    """A result of a search."""
    record = found.article.record
    return wire.FoundArticle(
        **msgspec.structs.asdict(article_ref(record)),
        lang=record.lang,
        verdict=found.article.outcome.verdict,
        keep=found.article.outcome.keep,
        missing=found.missing,
        event_id=event_id,
    )
