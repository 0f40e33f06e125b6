"""Replay of dated articles through the live burst detector under virtual time, that of publication.

Equal input gives equal output, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models, load_term_rates
from aggregator.analysis.source import site_of
from aggregator.analysis.term_profile import story_terms
from aggregator.analysis.text import language
from aggregator.analysis.text.markup import plain_title
from aggregator.analysis.text.normalization import normalize
from aggregator.domain import Article, StreamItem, WeightedTerms, article_number_at
from aggregator.errors import AggregatorError
from aggregator.events.detection.detector import BurstDetector
from aggregator.events.detection.model import BurstRule, DetectedEvent
from aggregator.events.event import Event
from aggregator.events.storylines import Storylines
from aggregator.time_units import MINUTE_MS, format_rfc3339
from aggregator_archive import rows

Row = Mapping[str, Any]
# Returns the language of a row and the terms of its story.
AnalyzeRow = Callable[[Row], tuple[str, WeightedTerms]]


def replay(rows: Iterable[Row], rule: BurstRule) -> Iterator[dict[str, Any]]:
    """Yield the last version of each event that fired as a dict, in order of ``detected_at``.

    ``rows``: ``id, title, text, url, source, published_at, lang`` (only ``title`` is needed),
    in order of time. A row without a valid time gets the time of the previous row; a row dated over one
    window after its successor is treated as undated.
    """
    latest: dict[str, Event] = {}  # in order of detection
    for event, is_closed in changed_events(rows, rule):
        latest[event.id] = event
        if not is_closed:
            continue
        while latest and next(iter(latest.values())).status == "closed":
            yield event_row(latest.pop(next(iter(latest))))
    for event in latest.values():
        yield event_row(event)


def make_detector(rule: BurstRule) -> BurstDetector:
    """Return an empty detector that knows news in general, as the service does."""
    return BurstDetector(rule, load_term_rates())


def changed_events(
    rows: Iterable[Row], rule: BurstRule, analyze: AnalyzeRow | None = None
) -> Iterator[tuple[Event, bool]]:
    """Yield (event, whether it is closed) for every event that changed, once per minute of virtual time."""
    detector, storylines = make_detector(rule), Storylines()
    minute = 0
    for item in read_items(rows, rule, analyze):
        detector.observe(item, item.arrived_ms)
        if item.arrived_ms // MINUTE_MS != minute:
            minute = item.arrived_ms // MINUTE_MS
            for change in detector.drain_changes():
                yield storylines.place(Event.of(change.event)), change.event.status == "closed"
    for change in detector.drain_changes():
        yield storylines.place(Event.of(change.event)), change.event.status == "closed"


@dataclass(frozen=True, slots=True)
class Preview:
    """Alerts in the last part of a stream at one sensitivity, each as the last version of its event."""

    sensitivity: float
    since_ms: int
    until_ms: int
    alerts: tuple[DetectedEvent, ...]


def preview(rows: Iterable[Row], rule: BurstRule, span_ms: int) -> list[Preview]:
    """The alerts of the last ``span_ms`` of ``rows`` at half, once and twice the rule's sensitivity."""
    rules = [replace(rule, sensitivity=rule.sensitivity * factor) for factor in (0.5, 1.0, 2.0)]
    detectors = [make_detector(variant) for variant in rules]
    fired: list[dict[str, DetectedEvent]] = [{} for _ in rules]
    until_ms = 0
    for item in read_items(rows, rule):
        until_ms = max(until_ms, item.arrived_ms)
        for detector, events in zip(detectors, fired, strict=True):
            detector.observe(item, item.arrived_ms)
            events.update((c.event.id, Event.of(c.event)) for c in detector.drain_changes())
    since_ms = until_ms - span_ms
    previews = []
    for r, events in zip(rules, fired, strict=True):
        recent = [event for event in events.values() if event.detected_at_ms >= since_ms]
        recent.sort(key=lambda event: (event.detected_at_ms, event.id))
        previews.append(Preview(r.sensitivity, since_ms, until_ms, tuple(recent)))
    return previews


def read_items(
    rows: Iterable[Row], rule: BurstRule, analyze: AnalyzeRow | None = None
) -> Iterator[StreamItem]:
    """One stream item per row with a title. ``analyze``: by default as the service does (``RowAnalyzer``)."""
    return _RowReader(rule, analyze or RowAnalyzer()).items(rows)


def event_row(event: Event) -> dict[str, Any]:
    """Return the output record of ``aggregator replay`` (public contract)."""
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
        "first_source": event.first[2] if event.first else "",
        "headline_id": event.headline_id,
        "status": event.status,
        "terms": list(event.terms),
        "timeline": [[rfc3339(at_ms), count] for at_ms, count in event.timeline],
        "rate": event.rate,
        "sightings": event.sightings,
        "merged_into": event.merged_into,
        "story_id": event.story_id or event.id,
        "reason": event.reason,
    }


def rfc3339(at_ms: int) -> str:
    """RFC 3339 time in UTC, with milliseconds only if they are not 0."""
    return format_rfc3339(at_ms).replace(".000Z", "Z")


def parse_time_ms(value: object) -> int | None:
    """The time of a row as for ``dedupe``; None also before 1970, where no virtual time begins."""
    at_ms = rows.parse_time_ms(value)
    return None if at_ms is None or at_ms < 0 else at_ms


class RowAnalyzer:
    """Language and story terms of rows with a title, as the service computes them."""

    def __init__(self) -> None:
        self._analyzer: Analyzer | None = None  # loaded for the first row that has a text

    def __call__(self, row: Row) -> tuple[str, WeightedTerms]:
        """Return the language and the terms of the story, heaviest first."""
        title = _text_of(row, "title")
        lang, terms, mask = self._opening_of(row, title)
        return lang, story_terms(title, lang, terms, mask)

    def _opening_of(self, row: Row, title: str) -> tuple[str, WeightedTerms, int]:
        """Return language, heaviest terms and opening mask; a row without a text has a language only."""
        lang, text = _text_of(row, "lang") or None, _text_of(row, "text")
        if text.strip():
            if self._analyzer is None:
                self._analyzer = Analyzer(load_models())
            try:
                analysis = self._analyzer.analyze(Article(id="", title=title, text=text, lang=lang))
            except AggregatorError:
                pass  # too long: the service would refuse it
            else:
                return analysis.lang, analysis.terms, analysis.opening_mask
        return language.detect_language(title, lang), (), 0


@dataclass(slots=True)
class _RowReader:
    """Converts rows to stream items: times, terms, exact repeats within the window.

    ``seen_titles``: normalized title -> (article number, time in ms), oldest first.
    """

    rule: BurstRule
    analyze: AnalyzeRow
    row_count: int = 0
    seen_titles: dict[str, tuple[int, int]] = field(default_factory=dict)

    def items(self, rows: Iterable[Row]) -> Iterator[StreamItem]:
        """Yield one item per row that has a title."""
        now_ms = 0
        for row, published_ms in _with_times(rows, self.rule.window_ms):
            now_ms = max(now_ms, published_ms or 0)
            title = row.get("title")
            if isinstance(title, str) and title.strip():
                title = plain_title(title)
                yield self._to_stream_item({**row, "title": title}, title, now_ms, published_ms)

    def _to_stream_item(self, row: Row, title: str, now_ms: int, published_ms: int | None) -> StreamItem:
        self.row_count += 1
        number = article_number_at(now_ms, self.row_count)
        original = self._first_number_of(normalize(title), number, now_ms)
        lang, terms = self.analyze(row)
        return StreamItem(
            number=number,
            first_version=number,
            id=rows.id_text(row.get("id")) or str(row.get("url") or self.row_count),
            verdict="new" if original is None else "duplicate",
            arrived_ms=now_ms,
            canonical_first=original,
            exact=original is not None,
            title=title,
            url=str(row.get("url") or ""),
            source=_source(row),
            lang=lang,
            published_at_ms=published_ms,
            terms=tuple(terms),
        )

    def _first_number_of(self, title: str, number: int, now_ms: int) -> int | None:
        """Return the number of the first article with this title within the window, or None and record it."""
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
    """Yield each row and its time in ms; a time over one window after that of the next row is dropped."""
    previous: tuple[Row, int | None] | None = None
    for row in rows:
        at_ms = parse_time_ms(row.get("published_at"))
        if previous is not None:
            previous_row, previous_ms = previous
            is_wrong = at_ms is not None and previous_ms is not None and previous_ms - at_ms > window_ms
            yield previous_row, None if is_wrong else previous_ms
        previous = row, at_ms
    if previous is not None:
        yield previous


def _source(row: Row) -> str:
    source = row.get("source")
    return source if source and isinstance(source, str) else site_of(str(row.get("url") or ""))


def _text_of(row: Mapping[str, Any], field: str) -> str:
    value = row.get(field)
    return value if isinstance(value, str) else ""
