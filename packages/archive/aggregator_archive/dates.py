"""Dates that rows state (``rows.parse_time_ms``): how many could not be read, with an example."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aggregator.errors import InvalidInput
from aggregator_archive import rows

MAX_EXAMPLE_CHARS = 40


@dataclass(slots=True)
class DateCounts:
    """Dates that rows state, those among them that could not be read, and the first of these."""

    stated: int = 0
    unread: int = 0
    example: str = ""

    def add(self, row: rows.RowOrError, column_names: Mapping[str, str], *, is_read: bool) -> None:
        """Count the date of a row that ``rows.parse_article`` has accepted, if it states one."""
        given = rows.row_as_dict(row)
        value = given.get(rows.column_of("published_at", given, column_names))
        if value is not None and value != "":
            self.stated += 1
            self.unread += not is_read
            self.example = self.example or ("" if is_read else str(value)[:MAX_EXAMPLE_CHARS])

    def problem(self) -> str:
        """What could not be read and how to write it, without a period; empty if all dates were read."""
        if not self.unread:
            return ""
        return (
            f"{self.unread:,} of {self.stated:,} dates could not be read, e.g. {self.example!r}; "
            "write them as 2026-01-05T03:02:00Z or 2026-01-05"
        )

    def report(self) -> None:
        """Print the problem, if any, on stderr: the rows are used without a date."""
        if problem := self.problem():
            print(f"{problem}; these rows are undated", file=sys.stderr)


def total(counts: Iterable[Mapping[str, Any]]) -> DateCounts:
    """The sum of counts given by their fields, with the first example."""
    parts = [DateCounts(**part) for part in counts]
    example = next((part.example for part in parts if part.example), "")
    return DateCounts(sum(part.stated for part in parts), sum(part.unread for part in parts), example)


def require_dates(files: Sequence[str], column_names: Mapping[str, str]) -> None:
    """Raise InvalidInput if the files have articles, none with a date that can be read.

    ``column_names``: as for ``rows.parse_article``. Reads until the first date.
    """
    counts, has_article = DateCounts(), False
    for _, _, row in rows.numbered_rows(files):
        with suppress(InvalidInput):  # reported by the run
            if rows.parse_article(row, column_names).published_at_ms is not None:
                return
            has_article = True
            counts.add(row, column_names, is_read=False)
    if has_article:
        column = column_names.get("published_at", "published_at")
        none = f"no row has a date in the column {column!r}; name another with --column published_at=NAME"
        raise InvalidInput(f"within: {counts.problem() or none}, or leave out --within.")


def require_dated(articles: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same rows; reports at their end the dates that could not be read.

    Raises InvalidInput there if no row was dated, since then nothing was replayed.
    """
    counts, row = DateCounts(), None
    for row in articles:
        counts.add(row, {}, is_read=rows.parse_time_ms(row.get("published_at")) is not None)
        yield row
    counts.report()
    if row is not None and counts.stated == counts.unread:
        raise InvalidInput("No article has a `published_at` that can be read, so nothing can be replayed.")
