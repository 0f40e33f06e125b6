"""State of a detector: the parts it is made of, and their saved form, a format byte and MessagePack.

Equal states give equal bytes. Saved is only what cannot be computed again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import msgspec

from aggregator.analysis.term_frequencies import TermRates
from aggregator.events.detection.assignment import HammingMode
from aggregator.events.detection.baseline import Baseline
from aggregator.events.detection.clustering import Cluster, ClusterIndex, WindowItem
from aggregator.events.detection.expectation import ColdStart, TermWeights
from aggregator.events.detection.items import UndatedArticles
from aggregator.events.detection.known_history import LearnedHistory
from aggregator.events.detection.lifecycle import OpenEvent, OpenEvents
from aggregator.events.detection.model import BurstRule, SourceFamilies
from aggregator.events.detection.routine import Burst, SeriesMemory
from aggregator.time_units import HOUR_MS, MINUTE_MS

FORMAT_BYTE = b"\x03"
# List entries per chunk: at most 10 ms of a state of 9.5 MB, which takes up to 79 ms in one call.
ENTRIES_PER_CHUNK = 64
_encoder = msgspec.msgpack.Encoder()


class DetectorState(msgspec.Struct, array_like=True):
    """Everything a detector remembers, without rule and overrides. The order is the saved format.

    window    (cluster key or -1, first version) of each item, in order of time
    pending   items of no cluster (literal rule only); seeds: items that fired
    hours     (hour since 1970, documents, documents by term)
    """

    clock_ms: int
    next_cluster_key: int
    window: list[tuple[int, int]]
    clusters: list[Cluster]
    changed_clusters: list[int]
    needs_headline: list[str]
    pending: list[WindowItem]
    seeds: list[WindowItem]
    events: list[OpenEvent]
    first_hour: int | None
    idf_documents: int
    hours: list[tuple[int, int, dict[str, int]]]
    known_hour: int | None = None
    undated: UndatedArticles = msgspec.field(default_factory=UndatedArticles)
    bursts: list[Burst] = []
    families: SourceFamilies = SourceFamilies()


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
    r"""MessagePack header of an array with ``size`` entries.

    >>> _array_header(3), _array_header(300)
    (b'\x93', b'\xdc\x01,')
    """
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


class DetectorParts:
    """Everything that a detector remembers; ``hamming_mode``: None except under the literal rule."""

    def __init__(self, rule: BurstRule, rates: TermRates | None = None) -> None:
        self.rule = rule
        self.clock_ms = 0
        self.baseline = Baseline(rule.window_ms)
        self.clusters = ClusterIndex()
        self.window: deque[WindowItem] = deque()
        self.cold_start = ColdStart(rates, self.baseline)
        self.term_weights = TermWeights(rule, self.baseline, self.cold_start)
        self.open_events = OpenEvents(rule, self.clusters, self.term_weights.weigh, self.baseline.idf)
        self.hamming_mode = HammingMode() if rule.mode == "literal" else None
        self.undated = UndatedArticles()
        self.series = SeriesMemory()
        self.families = SourceFamilies()

    @property
    def learned_history(self) -> LearnedHistory:
        """What the baseline knows, for the learning status."""
        return LearnedHistory(self.baseline.known_hour, dict(self.baseline.documents_by_hour))

    def capture(self) -> DetectorState:
        """The state; it shares objects with the parts, so it must be encoded before they change."""
        hamming, baseline = self.hamming_mode, self.baseline
        return DetectorState(
            clock_ms=self.clock_ms,
            next_cluster_key=self.clusters.next_key,
            window=[(m.cluster_key, m.first_version) for m in self.window],
            clusters=list(self.clusters.by_key.values()),
            changed_clusters=list(self.clusters.changed_keys),
            needs_headline=list(self.open_events.needs_headline),
            pending=[m for m in hamming.pending.values() if m.cluster_key < 0] if hamming else [],
            seeds=hamming.seeds if hamming else [],
            events=list(self.open_events.by_id.values()),
            first_hour=baseline.first_hour,
            idf_documents=baseline.idf_documents,
            hours=[
                (h, baseline.documents_by_hour[h], counts) for h, counts in baseline.counts_by_hour.items()
            ],
            known_hour=baseline.known_hour,
            undated=self.undated,
            bursts=self.series.bursts,
            families=self.families,
        )

    def restore(self, state: DetectorState) -> None:
        """Fill new parts; window counts, totals and the inverted index are computed again."""
        self.clock_ms = state.clock_ms
        self.undated = state.undated
        self.series.bursts = state.bursts
        self.families = state.families
        self.clusters.begin_minute(state.clock_ms // MINUTE_MS)
        self.clusters.restore(state.clusters, state.next_cluster_key)
        self.clusters.changed_keys = dict.fromkeys(state.changed_clusters)
        self.open_events.needs_headline = dict.fromkeys(state.needs_headline)
        self.open_events.by_id = {event.id: event for event in state.events}
        pending = {m.first_version: m for m in state.pending}
        self.window = deque(
            self.clusters.by_key[key].members[first] if key >= 0 else pending[first]
            for key, first in state.window
        )
        if self.hamming_mode is not None:
            for member in state.pending:
                self.hamming_mode.insert(member)
            self.hamming_mode.seeds = state.seeds
        baseline, hour = self.baseline, state.clock_ms // HOUR_MS
        baseline.first_hour, baseline.known_hour = state.first_hour, state.known_hour
        baseline.idf_documents = state.idf_documents
        baseline.idf_hour = self.term_weights.hour = hour
        self.cold_start.refresh(hour)
        for member in self.window:
            if member.is_counted:
                self.term_weights.add(member)
        for saved_hour, documents, counts in state.hours:
            baseline.restore_hour(saved_hour, counts, documents)
