"""Encoding of provenance as response bodies of the contract. Pure."""

from __future__ import annotations

from aggregator.contract import provenance as out
from aggregator.contract.encoding import article_ref, to_datetime
from aggregator.provenance.changes import Changes, describe
from aggregator.provenance.queries import EventProvenance, OutletEntry, TextProvenance, TracedStep
from aggregator.time_units import MINUTE_MS


def provenance_out(id_: str, found: TextProvenance) -> out.ProvenanceOut:
    """The lineage of an article's text."""
    lineage = found.lineage
    return out.ProvenanceOut(
        id=id_,
        first=article_ref(lineage.first.record),
        certain=lineage.is_first_certain,
        outlets=found.outlets,
        steps=_steps_out(found),
        truncated=found.truncated,
    )


def event_provenance_out(id_: str, found: EventProvenance) -> out.EventProvenanceOut:
    """Who had an event first."""
    return out.EventProvenanceOut(
        id=id_,
        first=article_ref(found.first.record) if found.first else None,
        outlets=[_outlet_out(entry) for entry in found.outlets],
        texts=[
            out.TextOut(text.lineage.is_first_certain, text.outlets, _steps_out(text)) for text in found.texts
        ],
        articles=found.articles,
        truncated=found.truncated,
    )


def _outlet_out(entry: OutletEntry) -> out.OutletOut:
    return out.OutletOut(
        source=entry.publication.source,
        article=article_ref(entry.publication.record),
        at=to_datetime(entry.publication.at_ms),
        basis=entry.publication.basis,
        lag_minutes=_minutes(entry.lag_ms),
        kind=entry.kind,
        original=article_ref(entry.original.record) if entry.original else None,
        articles=entry.articles,
    )


def _steps_out(text: TextProvenance) -> list[out.StepOut]:
    ids = [step.record.id for step in text.lineage.steps]
    return [_step_out(traced, ids) for traced in text.steps]


def _step_out(traced: TracedStep, ids: list[str]) -> out.StepOut:
    step = traced.step
    return out.StepOut(
        article=article_ref(step.record),
        at=to_datetime(step.publication.at_ms),
        basis=step.publication.basis,
        lag_minutes=_minutes(step.lag_ms),
        copied_from=ids[step.parent] if step.parent is not None else None,
        resemblance=round(step.resemblance, 3) if step.resemblance is not None else None,
        changes=_changes_out(traced.changes) if traced.changes else None,
    )


def _changes_out(changes: Changes) -> out.ChangesOut:
    texts = changes.texts
    return out.ChangesOut(
        summary=describe(changes),
        same_text=changes.same_text,
        headline_changed=changes.headline_changed,
        kept=round(changes.kept, 3),
        own=round(changes.own, 3),
        figures_cut=changes.figures_cut,
        figures_added=changes.figures_added,
        cut_words=texts.cut_words if texts else None,
        added_words=texts.added_words if texts else None,
        cut=list(texts.cut) if texts else None,
        added=list(texts.added) if texts else None,
        cut_figures=list(texts.cut_figures) if texts else None,
        added_figures=list(texts.added_figures) if texts else None,
    )


def _minutes(ms: int) -> float:
    return round(ms / MINUTE_MS, 2)
