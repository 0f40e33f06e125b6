"""Routes of provenance: who published a text or an event first."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
from aiohttp import web

from aggregator.app import Service
from aggregator.contract import responses as out
from aggregator.contract.encoding import article_ref, fields_of, to_datetime_or_none
from aggregator.contract.requests import SourcesQuery, SourceTrustIn
from aggregator.events.detection.numbers import independent, times_of
from aggregator.events.event import Event
from aggregator.http.app_keys import SERVICE
from aggregator.provenance.audit import audit
from aggregator.provenance.directory import families_among, select
from aggregator.provenance.lineage import Changes, Lineage, Step, TextChanges, describe
from aggregator.provenance.queries import EventProvenance, OutletEntry
from aggregator.provenance.statistics import SourcesReport, SourceStatistics
from aggregator.time_units import MINUTE_MS, to_datetime

TEXT_FIELDS = tuple(field.name for field in dataclasses.fields(TextChanges))


async def of_article(request: web.Request, id_: str) -> out.ProvenanceOut:
    """Get who published an article's text first, who repeated it, and what each changed."""
    found = await request.app[SERVICE].articles.provenance.of_article(id_)
    first = article_ref(found.first.record)
    return fields_of(_text_out(found), out.ProvenanceOut, id=id_, first=first, truncated=found.truncated)


async def of_event(service: Service, id_: str) -> out.EventProvenanceOut:
    """Get which outlet had an event first, who followed, and which outlets share texts."""
    event, found, families = await load_event(service, id_)
    return fields_of(
        found,
        out.EventProvenanceOut,
        id=event.id,
        first=article_ref(found.first.record) if found.first else None,
        outlets=[_outlet_out(entry) for entry in found.outlets],
        families=families,
        independent=independent(event.sources, families),
        texts=[_text_out(text) for text in found.texts],
    )


async def load_event(service: Service, id_: str) -> tuple[Event, EventProvenance, list[tuple[str, ...]]]:
    """An event, who had it first, and the families of its outlets. Raises NotFound, StoreUnavailable."""
    event = await service.events.repository.get(id_)
    first_id, removed = event.first[1] if event.first else "", event.removed if event.sightings else None
    found = await service.articles.provenance.of_event(times_of(event), first_id, event.doubtful, removed)
    return event, found, families_among(await service.articles.sources.report(), event.sources)


async def list_sources(request: web.Request, query: SourcesQuery) -> out.SourcesOut:
    """List outlets with their originals, copies and lags, and the syndication families."""
    report = await request.app[SERVICE].articles.sources.report()
    selection = select(report, query.q, query.sort, query.offset, query.limit)
    return fields_of(
        report,
        out.SourcesOut,
        computed_at=to_datetime_or_none(report.computed_ms or None),
        total=selection.total,
        sources=[out.SourceOut(**_source_fields(source, report)) for source in selection.sources],
        families=_partners_out(report.families, list[out.FamilyOut]),
    )


async def get_source(request: web.Request, name: str) -> out.SourceDetailOut:
    """Get the statistics of one outlet: what it copies, who copies it, its family."""
    sources = request.app[SERVICE].articles.sources
    source, family = await sources.get(name)
    report = await sources.report()
    return out.SourceDetailOut(
        **_source_fields(source, report),
        checked=source.extraction.checked,
        problems=source.extraction.shares,
        late_by_hours=source.extraction.late_by_hours,
        copied_from=_partners_out(source.copied_from, list[out.PartnerOut]),
        copied_by=_partners_out(source.copied_by, list[out.PartnerOut]),
        shared_by_family=_partners_out(family, out.FamilyOut | None),
        computed_at=to_datetime(report.computed_ms),
        since=to_datetime_or_none(report.since_ms),
    )


async def put_source(service: Service, name: str, body: SourceTrustIn) -> out.SourceAuditOut:
    """Declare a source untrusted, or trusted again. It is then stored, or not, by all processes.

    An untrusted source gets verdicts; what it had caused is computed anew without it.
    """
    event_ids_of, delete = service.events.repository.event_ids_of, service.articles.ingest.delete
    found = await audit(service.articles.index, name, event_ids_of, delete, untrusted=body.untrusted)
    return out.SourceAuditOut(len(found.articles), list(map(article_ref, found.copies)), found.events)


def _source_fields(source: SourceStatistics, report: SourcesReport) -> dict[str, Any]:
    members = report.families[source.family].members if source.family is not None else ()
    found = fields_of(
        source,
        out.SourceOut,
        original_share=round(source.originals / source.articles, 4),
        copy_share=round(source.copies / source.articles, 4),
        median_lag_minutes=None if source.median_lag_ms is None else _minutes(source.median_lag_ms),
        family=[name for name in members if name != source.name],
        failing=source.extraction.failing,
    )
    return msgspec.structs.asdict(found)


def _partners_out(found: object, type_: Any) -> Any:
    """Families and partners, which are stored as arrays, as objects."""
    return msgspec.convert(found, type_, from_attributes=True)


def _outlet_out(entry: OutletEntry) -> out.OutletOut:
    return fields_of(
        entry,
        out.OutletOut,
        source=entry.publication.source,
        article=article_ref(entry.publication.record),
        at=to_datetime(entry.publication.at_ms),
        basis=entry.publication.basis,
        lag_minutes=_minutes(entry.lag_ms),
        original=article_ref(entry.original.record) if entry.original else None,
    )


def _text_out(text: Lineage) -> out.TextOut:
    ids = [step.record.id for step in text.steps]
    return out.TextOut(text.is_first_certain, text.outlets, [_step_out(step, ids) for step in text.steps])


def _step_out(step: Step, ids: list[str]) -> out.StepOut:
    return out.StepOut(
        article=article_ref(step.record),
        at=to_datetime(step.publication.at_ms),
        basis=step.publication.basis,
        lag_minutes=_minutes(step.lag_ms),
        copied_from=ids[step.parent] if step.parent is not None else None,
        resemblance=round(step.resemblance, 3) if step.resemblance is not None else None,
        changes=_changes_out(step.changes) if step.changes else None,
    )


def _changes_out(changes: Changes) -> out.ChangesOut:
    of_texts = {name: getattr(changes.texts, name, None) for name in TEXT_FIELDS}
    return fields_of(
        changes,
        out.ChangesOut,
        summary=describe(changes),
        kept=round(changes.kept, 3),
        own=round(changes.own, 3),
        **of_texts,
    )


def _minutes(ms: int) -> float:
    return round(ms / MINUTE_MS, 2)
