"""Dated articles through the burst detector under their own clock: what would have fired, and when?

The virtual time is the time of publication. The detector is the one that runs live; what differs is
where its terms come from: here the words of the title, all of weight one, since the stream itself tells
which of them say something (``bursts/background.py``). Equal input gives equal output, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from aggregator.analysis.simhash import simhash
from aggregator.analysis.text import language, tokenizer
from aggregator.analysis.text.normalization import normalize
from aggregator.domain import StreamItem, article_number_at
from aggregator.events.detection import BurstDetector, BurstRule, Event
from aggregator.events.detection.headline import strip_desk_prefix
from aggregator.time_units import MINUTE_MS, format_rfc3339

Row = Mapping[str, Any]


def replay(rows: Iterable[Row], rule: BurstRule) -> Iterator[dict[str, Any]]:
    """One dict per event that fired, as it stood at its end, in order of ``detected_at``.

    ``rows``: ``id, title, url, source, published_at, lang`` (RFC 3339 time; all optional but ``title``),
    in order of time. A row without a usable time is taken at the time of the one before it; a row that is
    dated over one window after its successor is a mistake and is taken as undated.
    """
    held: dict[str, Event] = {}
    for event, final in changed_events(rows, rule):
        held[event.id] = event
        if not final:
            continue
        # ``held`` is in order of detection: those at its head that are closed can go.
        while held and next(iter(held.values())).status == "closed":
            yield event_row(held.pop(next(iter(held))))
    for event in held.values():
        yield event_row(event)


def changed_events(rows: Iterable[Row], rule: BurstRule) -> Iterator[tuple[Event, bool]]:
    """(event, whether it is closed) for every event that changed, minute by minute of virtual time."""
    detector = BurstDetector(rule)
    minute = 0
    for item in read_items(rows, detector):
        detector.observe(item, item.arrived_ms)
        if item.arrived_ms // MINUTE_MS != minute:
            minute = item.arrived_ms // MINUTE_MS
            for change in detector.drain_changes():
                yield change.event, change.event.status == "closed"
    for change in detector.drain_changes():
        yield change.event, change.event.status == "closed"


@dataclass(frozen=True, slots=True)
class Preview:
    """What one sensitivity would have done: alerts (as they stood at their end) in the last part of a stream."""

    sensitivity: float
    since_ms: int
    until_ms: int
    alerts: tuple[Event, ...]


def preview(rows: Iterable[Row], rule: BurstRule, span_ms: int) -> list[Preview]:
    """The alerts of the last ``span_ms`` of ``rows`` under half, all and twice the rule's sensitivity.

    Everything before is history, from which the detectors learn what is usual. One pass over the rows.
    """
    rules = [replace(rule, sensitivity=rule.sensitivity * factor) for factor in (0.5, 1.0, 2.0)]
    detectors = [BurstDetector(wanted) for wanted in rules]
    fired: list[dict[str, Event]] = [{} for _ in rules]
    until_ms = 0
    for item in read_items(rows, detectors[1]):
        until_ms = max(until_ms, item.arrived_ms)
        for detector, events in zip(detectors, fired, strict=True):
            detector.observe(item, item.arrived_ms)
            events.update((change.event.id, change.event) for change in detector.drain_changes())
    since_ms = until_ms - span_ms
    return [
        Preview(r.sensitivity, since_ms, until_ms, _alerts_since(events.values(), since_ms))
        for r, events in zip(rules, fired, strict=True)
    ]


def _alerts_since(events: Iterable[Event], since_ms: int) -> tuple[Event, ...]:
    recent = [event for event in events if event.detected_at_ms >= since_ms]
    return tuple(sorted(recent, key=lambda event: (event.detected_at_ms, event.id)))


def read_items(rows: Iterable[Row], detector: BurstDetector) -> Iterator[StreamItem]:
    """Rows as the detector sees them; its rule says what a repeat is, its statistics weigh fingerprints."""
    return _RowReader(detector.rule).items(rows, detector)


def event_row(event: Event) -> dict[str, Any]:
    """The line of ``aggregator replay`` (DESIGN, public contract), and why it fired."""
    return {
        "id": event.id,
        "title": event.title,
        "detected_at": rfc3339(event.detected_at_ms),
        "first_seen": rfc3339(event.first_seen_ms),
        "last_seen": rfc3339(event.last_seen_ms),
        "size": event.size,
        "peak": event.peak,
        "sources": list(event.sources),
        "expected": event.expected,
        "items": list(event.items),
        "cosines": list(event.cosines),
        "first_source": event.sources[0] if event.sources else "",
        "headline_id": event.headline_id,
        "status": event.status,
        "terms": list(event.terms),
        "timeline": [[rfc3339(at_ms), count] for at_ms, count in event.timeline],
        "rate": event.rate,
        "sightings": event.sightings,
        "merged_into": event.merged_into,
        "reason": event.reason,
    }


def rfc3339(at_ms: int) -> str:
    """UTC, to the ms only where there are any.

    >>> rfc3339(1_300_000_000_000)
    '2011-03-13T07:06:40Z'
    """
    return format_rfc3339(at_ms).replace(".000Z", "Z")


def parse_time_ms(text: object) -> int | None:
    """An RFC 3339 time (or a date) in ms; None when it is none, or before 1970."""
    if not isinstance(text, str):
        return None
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    at_ms = round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    return at_ms if at_ms >= 0 else None


@dataclass(slots=True)
class _RowReader:
    """Rows into stream items: times, terms, and exact repeats within the window."""

    rule: BurstRule
    row_count: int = 0
    seen_titles: dict[str, tuple[int, int]] = field(
        default_factory=dict
    )  # title -> (number, ms), oldest first

    def items(self, rows: Iterable[Row], detector: BurstDetector) -> Iterator[StreamItem]:
        """One item per row that has a title."""
        now_ms = 0
        for row, published_ms in _with_times(rows, self.rule.window_ms):
            now_ms = max(now_ms, published_ms or 0)
            title = row.get("title")
            if isinstance(title, str) and title.strip():
                yield self._to_stream_item(row, title, now_ms, published_ms, detector)

    def _to_stream_item(
        self, row: Row, title: str, now_ms: int, published_ms: int | None, detector: BurstDetector
    ) -> StreamItem:
        self.row_count += 1
        number = article_number_at(now_ms, self.row_count)
        original = self._first_number_of(normalize(title), number, now_ms)
        declared = row.get("lang")
        lang = language.detect_language(title, declared if isinstance(declared, str) else None)
        terms = tuple(dict.fromkeys(tokenizer.tokenize(strip_desk_prefix(title), lang)))
        literal = self.rule.mode == "neighbours"
        return StreamItem(
            number=number,
            first_version=number,
            id=str(row.get("id") or row.get("url") or self.row_count),
            verdict="new" if original is None else "duplicate",
            arrived_ms=now_ms,
            canonical_first=original,
            exact=original is not None,
            title=title,
            url=str(row.get("url") or ""),
            source=_source(row),
            lang=lang,
            published_at_ms=published_ms,
            fingerprint=simhash({t: detector.baseline.idf(t) for t in terms}) if literal else 0,
            terms=tuple((term, 1.0) for term in terms if not term.isdecimal()),
        )

    def _first_number_of(self, title: str, number: int, now_ms: int) -> int | None:
        """The number under which this very title was seen within the window."""
        while self.seen_titles:
            oldest = next(iter(self.seen_titles))
            if self.seen_titles[oldest][1] >= now_ms - self.rule.window_ms:
                break
            del self.seen_titles[oldest]
        if title in self.seen_titles:
            return self.seen_titles[title][0]
        self.seen_titles[title] = (number, now_ms)
        return None


def _with_times(rows: Iterable[Row], window_ms: int) -> Iterator[tuple[Row, int | None]]:
    """Each row and its time; one row of look-ahead finds a date that lies in the rest's future."""
    held: tuple[Row, int | None] | None = None
    for row in rows:
        at_ms = parse_time_ms(row.get("published_at"))
        if held is not None:
            row_before, before_ms = held
            early = at_ms is not None and before_ms is not None and before_ms - at_ms > window_ms
            yield row_before, None if early else before_ms
        held = row, at_ms
    if held is not None:
        yield held


def _source(row: Row) -> str:
    source = row.get("source")
    if isinstance(source, str) and source:
        return source
    try:
        return urlsplit(str(row.get("url") or "")).hostname or ""
    except ValueError:
        return ""
