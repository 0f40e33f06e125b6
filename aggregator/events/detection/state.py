"""State of a detector: the parts it is made of, and their saved form, a format byte and MessagePack.

Equal states give equal bytes. Saved is only what cannot be computed again.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from aggregator.events.detection.clustering import Cluster, WindowItem
from aggregator.events.detection.items import UndatedArticles
from aggregator.events.detection.late import LateArticles
from aggregator.events.detection.lifecycle import OpenEvent
from aggregator.events.detection.voices import Bursts, Voices

FORMAT_BYTE = b"\x0c"
ENTRIES_PER_CHUNK = 64  # of lists: at most 10 ms of a state of 9.5 MB, which takes up to 79 ms at once
_encoder = msgspec.msgpack.Encoder()


class Memory(msgspec.Struct, array_like=True):
    """What a detector remembers beside terms, clusters and events; part of the saved format as it is."""

    undated: UndatedArticles = msgspec.field(default_factory=UndatedArticles)
    bursts: Bursts = msgspec.field(default_factory=Bursts)
    voices: Voices = msgspec.field(default_factory=Voices)
    late: LateArticles = msgspec.field(default_factory=LateArticles)
    earlier: list[WindowItem] = []  # counted items of the last 24 hours that left the window
    removed: dict[int, WindowItem] = {}  # of the window, by first version: what editors removed from events


class DetectorState(msgspec.Struct, array_like=True):
    """Everything a detector remembers, without rule and overrides. The order is the saved format.

    window    (cluster key, first version) of each item, in order of time
    hours     (hour since 1970, first versions of its documents, 8 bytes each, documents by term)
    """

    clock_ms: int
    next_cluster_key: int
    window: list[tuple[int, int]]
    clusters: list[Cluster]
    changed_clusters: list[int]
    needs_headline: list[str]
    events: list[OpenEvent]
    first_hour: int | None
    idf_documents: int
    hours: list[tuple[int, bytes, dict[str, int]]]
    known_hour: int | None = None
    min_burst_documents: int = 0
    memory: Memory = msgspec.field(default_factory=Memory)
    closed: dict[str, OpenEvent] = {}
    merged: dict[str, tuple[OpenEvent, OpenEvent]] = {}


_state_decoder = msgspec.msgpack.Decoder(DetectorState)


def encode_chunks(state: DetectorState) -> Iterator[bytes]:
    """Yield the encoded state in chunks. The objects in ``state`` must not change before the last one."""
    yield FORMAT_BYTE + _array_header(len(DetectorState.__struct_fields__))
    for name in DetectorState.__struct_fields__:
        value = getattr(state, name)
        if not isinstance(value, list):
            yield _encoder.encode(value)
            continue
        yield _array_header(len(value))
        for start in range(0, len(value), ENTRIES_PER_CHUNK):
            yield b"".join(map(_encoder.encode, value[start : start + ENTRIES_PER_CHUNK]))


def _array_header(size: int) -> bytes:
    """MessagePack header of an array with ``size`` entries."""
    if size < 16:
        return bytes([0x90 | size])
    return b"\xdc" + size.to_bytes(2) if size < 1 << 16 else b"\xdd" + size.to_bytes(4)


def decode(data: bytes) -> DetectorState:
    """Decode a saved state. Raises ValueError when the bytes are damaged or of another format."""
    if data[:1] != FORMAT_BYTE:
        raise ValueError("The saved state of the burst detector has another format; it must be rebuilt.")
    try:
        return _state_decoder.decode(data[1:])
    except msgspec.MsgspecError as error:
        raise ValueError(f"The saved state of the burst detector is damaged: {error}.") from None
