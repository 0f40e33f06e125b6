"""Stream items for tests of the source statistics."""

from __future__ import annotations

from aggregator.domain import StreamItem, article_number_at
from aggregator.provenance.statistics import SourceCounter, SourcesReport
from aggregator.provenance.window import PublicationWindow
from tests.support.factories import START_MS

MINUTE_MS = 60_000


def number(n: int) -> int:
    """The article number of the n-th article: it arrived n minutes after START_MS."""
    return article_number_at(START_MS + n * MINUTE_MS)


def item(
    n: int, source: str, *, of: int | None = None, minute: float | None = None, version_of: int | None = None
) -> StreamItem:
    """The n-th article, a duplicate of article ``of``, published at ``minute`` (None: not stated)."""
    return StreamItem(
        number=number(n),
        first_version=number(n if version_of is None else version_of),
        id=f"a{n}",
        verdict="new" if of is None else "duplicate",
        arrived_ms=START_MS + n * MINUTE_MS,
        canonical_first=None if of is None else number(of),
        source=source,
        space="xx.0000",
        published_at_ms=None if minute is None else START_MS + round(minute * MINUTE_MS),
    )


def deletion(n: int, of: int) -> StreamItem:
    """The deletion of article ``of``, as the n-th entry."""
    return StreamItem(number(n), number(of), f"a{of}", "new", START_MS + n * MINUTE_MS, kind="deleted")


def report_on(*items: StreamItem) -> SourcesReport:
    """The report on these entries."""
    window = PublicationWindow()
    for entry in items:
        window.add(entry)
    counter = SourceCounter(window.publications())
    for _ in counter.steps():
        pass
    return counter.report(START_MS, window.since_ms)
