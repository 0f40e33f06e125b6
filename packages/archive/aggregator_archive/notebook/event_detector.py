"""Breaking events of a table of dated headlines, by the detector of the service under virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from aggregator.errors import InvalidInput
from aggregator.events.detection.model import BurstRule
from aggregator_archive import replay
from aggregator_archive.notebook.tables import Columns, Row, read_rows, rename_fields

EVENT_COLUMNS = (
    "id", "title", "detected_at", "first_seen", "last_seen", "size", "peak", "sources", "items", "terms",
    "status", "story_id", "merged_into", "reason",
)  # fmt: skip


class EventDetector:
    """Finds subjects that many outlets report at once.

    items       an event has more than this number of similar items within ``window``
    window      length of the time window
    min_sources distinct sources that an event needs
    sensitivity an event must have 4 / sensitivity times the items that are usual for its terms
    columns     field -> column, for columns with other names than the fields of an article
    """

    def __init__(
        self,
        *,
        items: int = 15,
        window: timedelta = timedelta(hours=4),
        min_sources: int = 1,
        sensitivity: float = 1.0,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        self._rule = BurstRule(
            items=items,
            window_ms=round(window.total_seconds() * 1000),
            min_sources=min_sources,
            sensitivity=sensitivity,
        )
        self._columns = dict(columns or {})

    def run(self, table: Any) -> Columns:
        """Return the events as columns, one value per event in order of detection (``EVENT_COLUMNS``).

        ``table``: as in ``tables.read_rows``, in any order; rows need a ``title`` and a ``published_at`` (a
        datetime, or text by RFC 3339; without a zone: UTC). Rows without a title are left out. ``items`` are
        ids of rows, times are RFC 3339 texts in UTC. The detector starts without history: the first days of a
        table teach it what is usual. Raises InvalidInput if no row is dated, and as ``read_rows``.
        """
        rows = [_dated(row) for row in rename_fields(read_rows(table), self._columns)]
        if not any(at_ms is not None for at_ms, _ in rows):
            raise InvalidInput("No row has a valid `published_at` (RFC 3339), so there is nothing to replay.")
        rows.sort(key=lambda dated: -1 if dated[0] is None else dated[0])
        events = list(replay.replay((row for _, row in rows), self._rule))
        return {name: [event[name] for event in events] for name in EVENT_COLUMNS}


def _dated(row: Row) -> tuple[int | None, Row]:
    """Time in ms and the row with its time as text."""
    value = row.get("published_at")
    if isinstance(value, datetime):
        value = (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
    elif isinstance(value, date):
        value = value.isoformat()
    return replay.parse_time_ms(value), {**row, "published_at": value}
