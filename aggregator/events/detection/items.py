"""Conversion of stream items to items of the detector's window: terms, time, and whether they count.

On a timeline (window 4 h)::

    published 09:30, arrives 12:00           counts at 09:30
    published 08:00, arrives 12:00:00.000    exactly 4 h old: counts at 08:00, until the next millisecond
    published 08:00, arrives 12:00:00.001    over 4 h old: late; only teaches what is usual at 08:00
    published 13:00, arrives 12:00           date in the future: counts at its arrival
    published 00:00:00.000 of today, 12:00   a date without a time: counts at its arrival
    not dated,       arrives 12:00           counts at its arrival
    backfill, published at any time          late, also within the window
    backfill, not dated                      ignored
"""

from __future__ import annotations

from collections.abc import Iterable

from aggregator.analysis.text.headline import split_headline
from aggregator.domain import ArticleRecord, StreamItem, publication_time
from aggregator.events.detection.clustering import MAX_TERM_WEIGHT, WindowItem
from aggregator.events.detection.name_variants import VARIANTS


def to_window_item(item: StreamItem, now_ms: int, clock_ms: int, window_ms: int) -> WindowItem:
    """Convert ``item``, which arrived at ``now_ms``, for a detector whose clock is at ``clock_ms``.

    Term weights become integers 1..255 (255 the item's largest), so that sums of them are exact. A late item,
    whose ``placed_ms`` is over one window before the clock, and one that is declared as backfill get the
    time ``clock_ms`` and do not count.
    """
    largest = max([weight for _, weight in item.terms], default=0.0) or 1.0
    desk_prefix, title = split_headline(item.title)
    at_ms = placed_ms(item, now_ms)
    late = item.backfill or at_ms < clock_ms - window_ms
    return WindowItem(
        number=item.number,
        first_version=item.first_version,
        id=item.id,
        at_ms=clock_ms if late else at_ms,
        source=item.source,
        title=title,
        terms=_to_integer_weights(item.terms, largest),
        is_counted=not late,
        cosine=1.0,
        story_key=-1,
        fingerprint=item.fingerprint,
        lang=item.lang,
        space=item.space,
        desk_prefix=desk_prefix,
    )


def placed_ms(item: StreamItem, now_ms: int) -> int:
    """Return the time of an item in the stream: its publication if that is plausible, else its arrival."""
    published_ms = plausible_date_ms(item)
    return now_ms if published_ms is None else min(published_ms, now_ms)


def plausible_date_ms(item: StreamItem | ArticleRecord) -> int | None:
    """Return the time of publication; None if ``publication_time`` takes the arrival instead."""
    at_ms, basis = publication_time(item.published_at_ms, item.arrived_ms)
    return None if basis == "arrived" else at_ms


def _to_integer_weights(terms: Iterable[tuple[str, float]], largest: float) -> dict[str, int]:
    """Weights 1..255 by term; two forms of one name are one term, with the larger weight."""
    weights: dict[str, int] = {}
    for variant, weight in terms:
        if weight > 0:
            term = VARIANTS.get(variant, variant)
            weights[term] = max(weights.get(term, 0), round(MAX_TERM_WEIGHT * weight / largest) or 1)
    return weights
