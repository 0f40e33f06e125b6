"""Conversion of stream items to items of the detector's window: terms, time, and whether they count.

On a timeline (window 4 h)::

    published 08:00, arrives 12:00:00.000    exactly 4 h old: counts at its arrival
    published 08:00, arrives 12:00:00.001    over 4 h old: joins its story, does not count
    published 13:00, arrives 12:00           date in the future: counts at its arrival
    not dated,       arrives 12:00           counts at its arrival
"""

from __future__ import annotations

from aggregator.domain import StreamItem
from aggregator.events.detection.clustering import MAX_TERM_WEIGHT, WindowItem
from aggregator.events.detection.headline import strip_desk_prefix


def to_window_item(item: StreamItem, now_ms: int, clock_ms: int, window_ms: int) -> WindowItem:
    """Convert ``item``, which arrived at ``now_ms``, for a detector whose clock is at ``clock_ms``.

    Term weights become integers 1..255 (255 the item's largest), so that sums of them are exact. An item that
    was published over one window before it arrived, or arrives over one window behind the clock, gets the
    time ``clock_ms`` and does not count.
    """
    largest = max([weight for _, weight in item.terms], default=0.0) or 1.0
    published_ms = item.arrived_ms if item.published_at_ms is None else item.published_at_ms
    late = item.arrived_ms - published_ms > window_ms or now_ms < clock_ms - window_ms
    return WindowItem(
        number=item.number,
        first_version=item.first_version,
        id=item.id,
        at_ms=clock_ms if late else now_ms,
        source=item.source,
        title=strip_desk_prefix(item.title),
        terms={t: round(MAX_TERM_WEIGHT * w / largest) or 1 for t, w in item.terms if w > 0},
        is_counted=not late,
        cosine=1.0,
        story_key=-1,
        fingerprint=item.fingerprint,
        lang=item.lang,
    )
