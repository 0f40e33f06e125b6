"""The detector's state as bytes: a format byte, then MessagePack. Equal states give equal bytes.

Only what cannot be worked out again is written: the window's recent counts, inverted index and totals
are rebuilt. Hours of the background make up most of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from aggregator.events.detection.clustering import Member, Story
from aggregator.events.detection.model import HOUR_MS
from aggregator.events.detection.open_event import OpenEvent

if TYPE_CHECKING:
    from aggregator.events.detection.detector import BurstDetector

FORMAT = b"\x02"
# Entries of a list that are written at a time.
PIECE = 64
MINUTE_MS = 60_000


class Saved(msgspec.Struct, array_like=True):
    """Everything of a detector except its rule."""

    clock_ms: int
    next_key: int
    window: list[tuple[int, int]]  # (story, first), in order of time
    stories: list[Story]
    changed: list[int]
    grown: list[str]
    waiting: list[Member]
    seeds: list[Member]
    events: list[OpenEvent]
    first_hour: int | None
    frozen: int
    hours: list[tuple[int, int, dict[str, int]]]


_decoder = msgspec.msgpack.Decoder(Saved)
_encoder = msgspec.msgpack.Encoder()


def dump(detector: BurstDetector) -> Iterator[bytes]:
    """Bytes of the state, in pieces that take a millisecond or so."""
    near, background = detector._neighbours, detector.background
    saved = Saved(
        clock_ms=detector.clock_ms,
        next_key=detector.stories.next_key,
        window=[(m.story, m.first) for m in detector.window],
        stories=list(detector.stories.open.values()),
        changed=list(detector.stories.changed),
        grown=list(detector.book.grown),
        waiting=[m for m in near.waiting.values() if m.story < 0] if near else [],
        seeds=near.seeds if near else [],
        events=list(detector.book.open.values()),
        first_hour=background.first_hour,
        frozen=background.frozen,
        hours=[(h, background.documents[h], counts) for h, counts in background.hours.items()],
    )
    yield FORMAT + _array_head(len(Saved.__struct_fields__))
    for name in Saved.__struct_fields__:
        value = getattr(saved, name)
        if not isinstance(value, list):
            yield _encoder.encode(value)
            continue
        yield _array_head(len(value))
        for start in range(0, len(value), PIECE):
            yield b"".join(map(_encoder.encode, value[start : start + PIECE]))


def _array_head(size: int) -> bytes:
    """How MessagePack begins an array.

    >>> _array_head(3), _array_head(300)
    (b'\\x93', b'\\xdc\\x01,')
    """
    if size < 16:
        return bytes([0x90 | size])
    return b"\xdc" + size.to_bytes(2) if size < 1 << 16 else b"\xdd" + size.to_bytes(4)


def load(detector: BurstDetector, data: bytes) -> None:
    """Fill a fresh detector. Raises ValueError when the bytes are damaged or of another format."""
    if data[:1] != FORMAT:
        raise ValueError("The saved state of the burst detector has another format; it must be built anew.")
    try:
        saved = _decoder.decode(data[1:])
    except msgspec.MsgspecError as error:
        raise ValueError(f"The saved state of the burst detector is damaged: {error}.") from None
    detector.clock_ms = saved.clock_ms
    detector.stories.begin_minute(saved.clock_ms // MINUTE_MS)
    detector.stories.restore(saved.stories, saved.next_key)
    detector.stories.changed = dict.fromkeys(saved.changed)
    detector.book.grown = dict.fromkeys(saved.grown)
    detector.book.open = {event.id: event for event in saved.events}
    waiting = {m.first: m for m in saved.waiting}
    stories = detector.stories.open
    detector.window = deque(
        stories[story].members[first] if story >= 0 else waiting[first] for story, first in saved.window
    )
    if detector._neighbours is not None:
        detector._neighbours.waiting, detector._neighbours.seeds = waiting, saved.seeds
    for member in detector.window:
        if member.fires:
            detector.terms.come(member.terms)
    detector.background.first_hour = saved.first_hour
    detector.background.frozen = saved.frozen
    detector.background.frozen_hour = detector.terms.hour = saved.clock_ms // HOUR_MS
    for hour, documents, counts in saved.hours:
        detector.background.restore(hour, counts, documents)
