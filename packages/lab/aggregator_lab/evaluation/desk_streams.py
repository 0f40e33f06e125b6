"""Recorded streams as one desk would receive them: analyzed once, shifted in time, with more headlines.

The first file keeps its times and sets the span; rows of the others outside of it are left out. These are
shifted by a constant each: so that given moments coincide, or by the whole weeks that bring their middle
nearest to that of the first, so that hours of the week stay what they are.
"""

from __future__ import annotations

import heapq
import random
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import xxhash

import aggregator.analysis
from aggregator.domain import WeightedTerms
from aggregator.errors import InvalidInput
from aggregator.time_units import DAY_MS, HOUR_MS
from aggregator_archive.replay import RowAnalyzer, parse_time_ms, rfc3339
from aggregator_archive.rows import read_rows

WEEK_MS = 7 * DAY_MS
Row = dict[str, Any]
_Analyses = list[tuple[str, WeightedTerms]]
_analyze = RowAnalyzer()


@dataclass(frozen=True, slots=True)
class Stream:
    """Rows with a title, in order of time, with the time of each in ms (of an undated one: the last known).

    shift_ms  was added to the times
    """

    name: str
    rows: tuple[Row, ...]
    times_ms: tuple[int, ...]
    shift_ms: int = 0


def read_stream(path: Path, cache: Path | None = None) -> Stream:
    """Read and analyze a file of articles; rows have their language and terms as ``analyzed``.

    ``cache``: directory that keeps them, by the bytes of the file and the code of the analysis. Raises
    InvalidInput if the file cannot be read or has no dated row with a title.
    """
    rows = [
        row for row in read_rows([str(path)]) if isinstance(row.get("title"), str) and row["title"].strip()
    ]
    times: list[int] = []
    for row in rows:
        at_ms = parse_time_ms(row.get("published_at"))
        times.append(at_ms if at_ms is not None else times[-1] if times else 0)
    if not any(times):
        raise InvalidInput(f"{path} has no title with a valid `published_at` (RFC 3339).")
    for number, (row, analyzed) in enumerate(zip(rows, _analyses(path, rows, cache), strict=True)):
        row["id"], row["analyzed"] = str(row.get("id") or row.get("url") or number), analyzed
        row.pop("text", None)
    order = sorted(range(len(rows)), key=times.__getitem__)
    return Stream(path.name, tuple(rows[i] for i in order), tuple(times[i] for i in order))


def align(streams: Sequence[Stream], moments_ms: Sequence[int] = ()) -> list[Stream]:
    """Shift all streams but the first. ``moments_ms``: one per stream, which then coincide.

    Rows outside of the span of the first are left out. Raises InvalidInput for another number of moments.
    """
    if moments_ms and len(moments_ms) != len(streams):
        raise InvalidInput(f"{len(streams)} files need {len(streams)} moments, not {len(moments_ms)}.")
    middles = [(stream.times_ms[0] + stream.times_ms[-1]) / 2 for stream in streams]
    shifted = []
    for n, stream in enumerate(streams):
        shift_ms = round((middles[0] - middles[n]) / WEEK_MS) * WEEK_MS
        if moments_ms:
            shift_ms = moments_ms[0] - moments_ms[n]
        begin = bisect_left(stream.times_ms, streams[0].times_ms[0] - shift_ms)
        end = bisect_right(stream.times_ms, streams[0].times_ms[-1] - shift_ms)
        times_ms = tuple(at_ms + shift_ms for at_ms in stream.times_ms[begin:end])
        shifted.append(replace(stream, rows=stream.rows[begin:end], times_ms=times_ms, shift_ms=shift_ms))
    return shifted


def more_headlines(stream: Stream, per_hour: int, from_ms: int, until_ms: int) -> Stream:
    """``per_hour`` headlines an hour of ``stream``, evenly spread between two times.

    Drawn from all of it (seed 0), so none of its stories bursts. Raises InvalidInput if it has fewer.
    """
    count = per_hour * (until_ms - from_ms) // HOUR_MS
    if count > len(stream.rows):
        raise InvalidInput(
            f"{stream.name} has {len(stream.rows):,} headlines, and {count:,} are to be added."
        )
    drawn = random.Random(0).sample(stream.rows, count)
    times = tuple(from_ms + number * HOUR_MS // per_hour for number in range(count))
    return Stream(f"{per_hour} an hour of {stream.name}", tuple(drawn), times)


def mix(streams: Sequence[Stream]) -> Iterator[Row]:
    """The rows of all streams in order of time; their ids begin with the number of the stream and a colon."""
    numbered = [
        [(at_ms, n, row) for at_ms, row in zip(stream.times_ms, stream.rows, strict=True)]
        for n, stream in enumerate(streams)
    ]
    for at_ms, n, row in heapq.merge(*numbered, key=lambda entry: entry[:2]):
        dated = parse_time_ms(row.get("published_at")) is not None
        yield {**row, "id": f"{n}:{row['id']}", "published_at": rfc3339(at_ms) if dated else None}


def _analyses(path: Path, rows: Sequence[Row], cache: Path | None) -> _Analyses:
    if cache is None:
        return [_analyze(row) for row in rows]
    digest = xxhash.xxh3_128(path.read_bytes())
    for module in sorted(Path(aggregator.analysis.__path__[0]).rglob("*.py")):
        digest.update(module.read_bytes())
    entry = cache / f"{path.name}.{digest.hexdigest()}"
    if entry.exists():
        return msgspec.msgpack.decode(entry.read_bytes(), type=_Analyses)
    analyses = [_analyze(row) for row in rows]
    cache.mkdir(parents=True, exist_ok=True)
    entry.with_suffix(".tmp").write_bytes(msgspec.msgpack.encode(analyses))
    entry.with_suffix(".tmp").replace(entry)
    return analyses
