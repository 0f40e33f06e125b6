"""Records of candidates: read in numbers, and mostly rejected by their sketches alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from aggregator.domain import ArticleRecord, Sketch
from aggregator.index.codec.record_codec import (
    RecordRow,
    TextFields,
    complete_record,
    decode_record_summary,
    decode_record_uncached,
    decode_row,
    decompress_texts,
)
from aggregator.index.codec.sketches import decode_openings, decode_sketch_samples

# Originals of many duplicates and articles from one template are candidates repeatedly.
CANDIDATE_CACHE_ENTRIES = 4096
_candidate_cache: dict[tuple[bytes, str, int], CandidateRecord] = {}


@dataclass(slots=True, eq=False)
class CandidateRecord:
    """A stored record of which only what rejects most candidates is decoded at once."""

    number: int
    fingerprint: int
    text_hash: bytes
    sketch: Sketch
    _space: str
    _row: RecordRow | None
    _record: ArticleRecord | None = None

    @classmethod
    def of(cls, record: ArticleRecord) -> CandidateRecord:
        """A record that is decoded already."""
        return cls(
            record.number, record.fingerprint, record.text_hash, record.sketch, record.space, None, record
        )

    @property
    def id(self) -> str:
        """The article's id. Raises StoreUnavailable if its texts are damaged."""
        return self._texts.id

    @property
    def source(self) -> str:
        """Its outlet, "" if unknown. Raises StoreUnavailable if its texts are damaged."""
        return self._texts.source

    @property
    def _texts(self) -> ArticleRecord | TextFields:
        """Decompressed at the first access: 5 us, where the whole ``record`` takes 15."""
        if self._record is not None:
            return self._record
        assert self._row is not None
        self._row = decompress_texts(self._row, self._space, self.number)
        assert not isinstance(self._row.texts, bytes)
        return self._row.texts

    @property
    def record(self) -> ArticleRecord:
        """The whole record, decoded at the first access. Raises StoreUnavailable if its texts are damaged."""
        if self._record is None:
            assert self._row is not None
            self._record = complete_record(self._row, self._space, self.number, self.sketch)
            self._row = None
        return self._record


def decode_candidates(stored: Sequence[tuple[bytes, str, int]]) -> list[CandidateRecord]:
    """Decode records, each given with its space and number, in one pass. Raises StoreUnavailable."""
    found = [_candidate_cache.get(item) for item in stored]
    missing = [item for item, candidate in zip(stored, found, strict=True) if candidate is None]
    decoded = iter(_decode_candidates(missing) if missing else ())
    candidates = [candidate or next(decoded) for candidate in found]
    for item, candidate in zip(stored, candidates, strict=True):
        _candidate_cache.pop(item, None)  # becomes the newest
        _candidate_cache[item] = candidate
    for item in list(islice(_candidate_cache, max(0, len(_candidate_cache) - CANDIDATE_CACHE_ENTRIES))):
        del _candidate_cache[item]
    return candidates


def _decode_candidates(stored: Sequence[tuple[bytes, str, int]]) -> list[CandidateRecord]:
    rows = [decode_row(*item) for item in stored]
    try:
        samples = decode_sketch_samples([row.sketch_sample for row in rows])
        openings = decode_openings([row.sketch_opening for row in rows], list(map(len, samples)))
    except ValueError:  # one by one, so that the error names the damaged record
        return [CandidateRecord.of(decode_record_uncached(*item)) for item in stored]
    return [
        CandidateRecord(
            number, row.fingerprint, row.text_hash, Sketch(row.sketch_size, sample, opening), space, row
        )
        for (_, space, number), row, sample, opening in zip(stored, rows, samples, openings, strict=True)
    ]


def decode_summaries(stored: Sequence[tuple[bytes, str, int]]) -> list[CandidateRecord]:
    """As ``decode_candidates`` without sketches and figures, for what is ranked by terms."""
    return [CandidateRecord.of(decode_record_summary(*item)) for item in stored]
