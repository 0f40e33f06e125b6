"""The detector's state as bytes: a format byte, then MessagePack. Equal states give equal bytes.

Only what cannot be worked out again is written: the window's recent counts, inverted index and totals
are rebuilt. Hours of the background make up most of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from aggregator.events.detection.clustering import Story, WindowItem
from aggregator.events.detection.open_event import OpenEvent
from aggregator.time_units import HOUR_MS, MINUTE_MS

if TYPE_CHECKING:
    from aggregator.events.detection.detector import BurstDetector

FORMAT_BYTE = b"\x02"
# Entries of a list that are written at a time.
ENTRIES_PER_CHUNK = 64


class DetectorState(msgspec.Struct, array_like=True):
    """Everything of a detector except its rule."""

    clock_ms: int
    next_story_key: int
    window: list[tuple[int, int]]  # (story, first), in order of time
    stories: list[Story]
    changed_stories: list[int]
    needs_headline: list[str]
    pending: list[WindowItem]
    seeds: list[WindowItem]
    events: list[OpenEvent]
    first_hour: int | None
    idf_documents: int
    hours: list[tuple[int, int, dict[str, int]]]


_state_decoder = msgspec.msgpack.Decoder(DetectorState)
_encoder = msgspec.msgpack.Encoder()


def dump_chunks(detector: BurstDetector) -> Iterator[bytes]:
    """Bytes of the state, in pieces that take a millisecond or so."""
    near, background = detector._hamming_mode, detector.baseline
    saved = DetectorState(
        clock_ms=detector.clock_ms,
        next_story_key=detector.stories.next_key,
        window=[(m.story_key, m.first_version) for m in detector.window],
        stories=list(detector.stories.by_key.values()),
        changed_stories=list(detector.stories.changed_keys),
        needs_headline=list(detector.open_events.needs_headline),
        pending=[m for m in near.pending.values() if m.story_key < 0] if near else [],
        seeds=near.seeds if near else [],
        events=list(detector.open_events.by_id.values()),
        first_hour=background.first_hour,
        idf_documents=background.idf_documents,
        hours=[
            (h, background.documents_by_hour[h], counts) for h, counts in background.counts_by_hour.items()
        ],
    )
    yield FORMAT_BYTE + _array_header(len(DetectorState.__struct_fields__))
    for name in DetectorState.__struct_fields__:
        value = getattr(saved, name)
        if not isinstance(value, list):
            yield _encoder.encode(value)
            continue
        yield _array_header(len(value))
        for start in range(0, len(value), ENTRIES_PER_CHUNK):
            yield b"".join(map(_encoder.encode, value[start : start + ENTRIES_PER_CHUNK]))


def _array_header(size: int) -> bytes:
    """How MessagePack begins an array.

    >>> _array_head(3), _array_head(300)
    (b'\\x93', b'\\xdc\\x01,')
    """
    if size < 16:
        return bytes([0x90 | size])
    return b"\xdc" + size.to_bytes(2) if size < 1 << 16 else b"\xdd" + size.to_bytes(4)


def restore(detector: BurstDetector, data: bytes) -> None:
    """Fill a fresh detector. Raises ValueError when the bytes are damaged or of another format."""
    if data[:1] != FORMAT_BYTE:
        raise ValueError("The saved state of the burst detector has another format; it must be built anew.")
    try:
        saved = _state_decoder.decode(data[1:])
    except msgspec.MsgspecError as error:
        raise ValueError(f"The saved state of the burst detector is damaged: {error}.") from None
    detector.clock_ms = saved.clock_ms
    detector.stories.begin_minute(saved.clock_ms // MINUTE_MS)
    detector.stories.restore(saved.stories, saved.next_story_key)
    detector.stories.changed_keys = dict.fromkeys(saved.changed_stories)
    detector.open_events.needs_headline = dict.fromkeys(saved.needs_headline)
    detector.open_events.by_id = {event.id: event for event in saved.events}
    waiting = {m.first_version: m for m in saved.pending}
    stories = detector.stories.by_key
    detector.window = deque(
        stories[story].members[first] if story >= 0 else waiting[first] for story, first in saved.window
    )
    if detector._hamming_mode is not None:
        detector._hamming_mode.pending, detector._hamming_mode.seeds = waiting, saved.seeds
    for member in detector.window:
        if member.is_counted:
            detector.term_weights.add(member.terms)
    detector.baseline.first_hour = saved.first_hour
    detector.baseline.idf_documents = saved.idf_documents
    detector.baseline.idf_hour = detector.term_weights.hour = saved.clock_ms // HOUR_MS
    for hour, documents, counts in saved.hours:
        detector.baseline.restore_hour(hour, counts, documents)
