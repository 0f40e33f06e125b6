"""Stored form of records: a format byte, MessagePack, and a checksum.

A record leaves out what its key says, number and space. Its texts are compressed together, since a headline
is often repeated in the URL. ``sketches.py`` packs the sketch. Candidates are read in numbers, and mostly
rejected by their sketches alone, so the rest of them is decoded only when it is needed.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import msgspec
import numpy as np

from aggregator.analysis.shingles import decode_marks
from aggregator.domain import NO_SKETCH, TERM_WEIGHT_STEPS, ArticleRecord, Sketch
from aggregator.index.codec.sketches import decode_sketch_samples, encode_sketch_sample
from aggregator.store.decoding import append_checksum, corrupt_error, decode_checked, decode_value

_LEVEL = 6


def compress_text(text: str) -> bytes:
    """The stored form of a text; lone surrogates are allowed."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"), _LEVEL)


def decompress_text(data: bytes) -> str:
    """The text of its stored form."""
    return zlib.decompress(data).decode("utf-8", "surrogatepass")


_MIN_COMPRESS_BYTES = 100  # compressing shorter texts saves nothing
_MAX_TEXT_BYTES = 1 << 24
_WEIGHTS = tuple((np.arange(256) / TERM_WEIGHT_STEPS).tolist())
_RAW_DEFLATE = -zlib.MAX_WBITS  # no header, no checksum


class TextFields(msgspec.Struct, frozen=True, array_like=True):
    """The untrusted texts; ``terms`` one per line."""

    id: str
    title: str
    url: str
    source: str
    terms: str


class RecordRow(msgspec.Struct, frozen=True, array_like=True):
    """An ArticleRecord; ``first_version`` is None in a first version, ``texts`` are compressed if long."""

    first_version: int | None
    lang: str
    fingerprint: int
    text_hash: bytes
    text_key: int
    short: bool
    published_at_ms: int | None
    sketch_size: int
    sketch_sample: bytes
    term_weights: bytes
    figures: bytes
    texts: TextFields | bytes
    sketch_marks: bytes  # one byte per sampled hash
    minor_terms: bytes
    text_words: int
    own_headline: int  # in 255ths
    opening_mask: int
    backfill: bool


_record_decoder = msgspec.msgpack.Decoder(RecordRow)
_texts_decoder = msgspec.msgpack.Decoder(TextFields)
_encode = msgspec.msgpack.Encoder().encode


def encode_record(record: ArticleRecord) -> bytes:
    """The stored form of a record. Term weights keep 8 bits each, enough to rank related articles."""
    terms = "\n".join([term for term, _ in record.terms])
    texts = TextFields(record.id, record.title, record.url, record.source, terms)
    plain = _encode(texts)
    row = RecordRow(
        first_version=None if record.first_version == record.number else record.first_version,
        lang=record.lang,
        fingerprint=record.fingerprint,
        text_hash=record.text_hash,
        short=record.short,
        published_at_ms=record.published_at_ms,
        sketch_size=record.sketch.size,
        sketch_sample=encode_sketch_sample(record.sketch.sample),
        term_weights=bytes([round(weight * TERM_WEIGHT_STEPS) for _, weight in record.terms]),
        figures=struct.pack(f"<{len(record.figures)}I", *record.figures),
        texts=zlib.compress(plain, wbits=_RAW_DEFLATE) if len(plain) >= _MIN_COMPRESS_BYTES else texts,
        sketch_marks=record.sketch.marks.tobytes(),
        minor_terms=record.minor_terms,
        text_key=record.text_key,
        text_words=record.text_words,
        own_headline=round(record.own_headline * TERM_WEIGHT_STEPS),
        opening_mask=record.opening_mask,
        backfill=record.backfill,
    )
    return append_checksum(_encode(row), record.number)


def decode_row(data: bytes, space: str, number: int) -> RecordRow:
    """The stored fields, those that are packed still packed. Raises StoreUnavailable if damaged."""
    return decode_checked(_record_decoder, data, _kind_name(space, number), number)


def decode_texts(row: RecordRow, space: str, number: int) -> TextFields:
    """The texts of a row. Raises StoreUnavailable if they are damaged."""
    if not isinstance(row.texts, bytes):
        return row.texts
    inflating = zlib.decompressobj(_RAW_DEFLATE)
    try:
        plain = inflating.decompress(row.texts, _MAX_TEXT_BYTES)
    except zlib.error as error:
        raise corrupt_error(_kind_name(space, number), error) from error
    if not inflating.eof:
        raise corrupt_error(_kind_name(space, number), "its texts are truncated")
    return decode_value(_texts_decoder, plain, _kind_name(space, number))


def decode_record_uncached(data: bytes, space: str, number: int) -> ArticleRecord:
    """The record. Raises StoreUnavailable if it is damaged or has another format."""
    return _decode_candidates([(data, space, number)])[0].record


def decode_record_summary_uncached(data: bytes, space: str, number: int) -> ArticleRecord:
    """The record without sketch and figures, in 1/3 of the time: for what is ranked by terms."""
    row = decode_row(data, space, number)
    return _complete_record(row, decode_texts(row, space, number), space, number, None)


# Originals of many duplicates and articles from one template are read repeatedly.
decode_record = lru_cache(maxsize=4096)(decode_record_uncached)
decode_record_summary = lru_cache(maxsize=4096)(decode_record_summary_uncached)


def _kind_name(space: str, number: int) -> str:
    return f"The record {number:016x} of {space}"


def _complete_record(
    row: RecordRow, texts: TextFields, space: str, number: int, sketch: Sketch | None
) -> ArticleRecord:
    """The record of decoded parts; a summary if ``sketch`` is None."""
    try:
        weights = map(_WEIGHTS.__getitem__, row.term_weights)
        terms = tuple(zip(texts.terms.split("\n"), weights, strict=True)) if texts.terms else ()
        figures = () if sketch is None else tuple(np.frombuffer(row.figures, "<u4").tolist())
    except ValueError as error:
        raise corrupt_error(_kind_name(space, number), error) from error
    return ArticleRecord(
        number=number,
        first_version=number if row.first_version is None else row.first_version,
        id=texts.id,
        space=space,
        lang=row.lang,
        fingerprint=row.fingerprint,
        text_hash=row.text_hash,
        short=row.short,
        title=texts.title,
        url=texts.url,
        source=texts.source,
        published_at_ms=row.published_at_ms,
        sketch=sketch or NO_SKETCH,
        terms=terms,
        figures=figures,
        minor_terms=row.minor_terms,
        text_key=row.text_key,
        text_words=row.text_words,
        own_headline=row.own_headline / TERM_WEIGHT_STEPS,
        opening_mask=row.opening_mask,
        backfill=row.backfill,
    )


@dataclass(slots=True, eq=False)
class CandidateRecord:
    """A stored record of which only what rejects most candidates is decoded at once."""

    number: int
    fingerprint: int
    text_hash: bytes
    sketch: Sketch
    _space: str
    _row: RecordRow | None = None
    _texts: TextFields | None = None
    _record: ArticleRecord | None = None

    @classmethod
    def of(cls, record: ArticleRecord) -> CandidateRecord:
        """A record that is decoded already."""
        fields = record.number, record.fingerprint, record.text_hash, record.sketch, record.space
        return cls(*fields, _record=record)

    @property
    def texts(self) -> ArticleRecord | TextFields:
        """Decoded at the first access: 5 us, where the whole ``record`` takes 15. Raises StoreUnavailable."""
        if self._record is not None:
            return self._record
        if self._texts is None:
            assert self._row is not None
            self._texts = decode_texts(self._row, self._space, self.number)
        return self._texts

    @property
    def record(self) -> ArticleRecord:
        """The whole record, decoded at the first access. Raises StoreUnavailable if it is damaged."""
        texts = self.texts
        if self._record is None:
            assert self._row is not None and isinstance(texts, TextFields)
            self._record = _complete_record(self._row, texts, self._space, self.number, self.sketch)
            self._row = self._texts = None
        return self._record


CANDIDATE_CACHE_ENTRIES = 4096
_candidate_cache: dict[tuple[bytes, str, int], CandidateRecord] = {}


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
        marks = [decode_marks(row.sketch_marks, len(own)) for row, own in zip(rows, samples, strict=True)]
    except ValueError as error:
        if len(stored) == 1:
            raise corrupt_error(_kind_name(*stored[0][1:]), error) from error
        # One by one, so that the error names the damaged record.
        return [candidate for item in stored for candidate in _decode_candidates([item])]
    return [
        CandidateRecord(
            number, row.fingerprint, row.text_hash, Sketch(row.sketch_size, sample, own_marks), space, row
        )
        for (_, space, number), row, sample, own_marks in zip(stored, rows, samples, marks, strict=True)
    ]
