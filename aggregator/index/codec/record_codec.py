"""Stored form of records: a format byte, MessagePack, and a checksum.

A record leaves out what its key says, number and space. Its texts are compressed together, since a headline
is often repeated in the URL. ``sketches.py`` packs the sketch.
"""

from __future__ import annotations

import struct
import zlib
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np

from aggregator.domain import NO_SKETCH, TERM_WEIGHT_STEPS, ArticleRecord, Sketch
from aggregator.index.codec.format_byte import append_checksum, decode_checked
from aggregator.index.codec.sketches import (
    decode_opening,
    decode_sketch_sample,
    encode_opening,
    encode_sketch_sample,
)
from aggregator.store.decoding import corrupt_error, decode_value

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
    short: bool
    published_at_ms: int | None
    sketch_size: int
    sketch_sample: bytes
    term_weights: bytes
    figures: bytes
    texts: TextFields | bytes
    sketch_opening: bytes  # one bit per sampled hash
    minor_terms: bytes


_record_decoder = msgspec.msgpack.Decoder(RecordRow)
_texts_decoder = msgspec.msgpack.Decoder(TextFields)
_encode = msgspec.msgpack.Encoder().encode


def encode_record(record: ArticleRecord) -> bytes:
    """The stored form of a record. Term weights keep 8 bits each, enough to rank related articles."""
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
        texts=_compress_texts(record),
        sketch_opening=encode_opening(record.sketch.opening),
        minor_terms=record.minor_terms,
    )
    return append_checksum(_encode(row), record.number)


def _compress_texts(record: ArticleRecord) -> TextFields | bytes:
    terms = "\n".join([term for term, _ in record.terms])
    texts = TextFields(record.id, record.title, record.url, record.source, terms)
    plain = _encode(texts)
    if len(plain) < _MIN_COMPRESS_BYTES:
        return texts
    return zlib.compress(plain, wbits=_RAW_DEFLATE)


def _decompress_texts(data: bytes) -> TextFields:
    inflating = zlib.decompressobj(_RAW_DEFLATE)
    try:
        plain = inflating.decompress(data, _MAX_TEXT_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not inflating.eof:
        raise ValueError("its texts are truncated")
    return decode_value(_texts_decoder, plain, "A record")


@lru_cache(maxsize=4096)  # originals of many duplicates and articles from one template are read repeatedly
def decode_record(data: bytes, space: str, number: int) -> ArticleRecord:
    """Decode a record. Raises StoreUnavailable if it is damaged or has another format."""
    return decode_record_uncached(data, space, number)


def decode_record_uncached(data: bytes, space: str, number: int) -> ArticleRecord:
    """As ``decode_record``, for callers that see each record once."""
    kind_name = _kind_name(space, number)
    row = decode_row(data, space, number)
    try:
        sketch = _row_sketch(row)
    except ValueError as error:
        raise corrupt_error(kind_name, error) from error
    return complete_record(row, space, number, sketch)


@lru_cache(maxsize=4096)
def decode_record_summary(data: bytes, space: str, number: int) -> ArticleRecord:
    """As ``decode_record`` without sketch and figures, in 1/3 of the time: for what is ranked by terms."""
    return decode_record_summary_uncached(data, space, number)


def decode_record_summary_uncached(data: bytes, space: str, number: int) -> ArticleRecord:
    """As ``decode_record_summary``, for callers that see each record once."""
    kind_name = _kind_name(space, number)
    row = decode_row(data, space, number)
    try:
        return _record_from_row(row, space, number, NO_SKETCH, ())
    except ValueError as error:
        raise corrupt_error(kind_name, error) from error


def decode_stream_fields(data: bytes, space: str, number: int) -> dict[str, Any]:
    """The fields of a record that a ``StreamItem`` has, by name. Raises StoreUnavailable."""
    kind_name = _kind_name(space, number)
    row = decode_row(data, space, number)
    try:
        texts = _row_texts(row)
        terms = _row_terms(row, texts)
    except ValueError as error:
        raise corrupt_error(kind_name, error) from error
    return {
        "title": texts.title,
        "url": texts.url,
        "source": texts.source,
        "lang": row.lang,
        "space": space,
        "published_at_ms": row.published_at_ms,
        "fingerprint": row.fingerprint,
        "terms": terms,
    }


def decode_row(data: bytes, space: str, number: int) -> RecordRow:
    """The stored fields, those that are packed still packed. Raises StoreUnavailable if damaged."""
    return decode_checked(_record_decoder, data, _kind_name(space, number), number)


def _kind_name(space: str, number: int) -> str:
    return f"The record {number:016x} of {space}"


def decompress_texts(row: RecordRow, space: str, number: int) -> RecordRow:
    """``row`` with its texts decompressed. Raises StoreUnavailable if they are damaged."""
    if not isinstance(row.texts, bytes):
        return row
    try:
        return msgspec.structs.replace(row, texts=_decompress_texts(row.texts))
    except ValueError as error:
        raise corrupt_error(_kind_name(space, number), error) from error


def complete_record(row: RecordRow, space: str, number: int, sketch: Sketch) -> ArticleRecord:
    """The record of stored fields, with its sketch. Raises StoreUnavailable if any other field is damaged."""
    try:
        figures = tuple(np.frombuffer(row.figures, "<u4").tolist())
        return _record_from_row(row, space, number, sketch, figures)
    except ValueError as error:
        raise corrupt_error(_kind_name(space, number), error) from error


def _record_from_row(
    row: RecordRow, space: str, number: int, sketch: Sketch, figures: tuple[int, ...]
) -> ArticleRecord:
    texts = _row_texts(row)
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
        sketch=sketch,
        terms=_row_terms(row, texts),
        figures=figures,
        minor_terms=row.minor_terms,
    )


def _row_sketch(row: RecordRow) -> Sketch:
    sample = decode_sketch_sample(row.sketch_sample)
    return Sketch(row.sketch_size, sample, decode_opening(row.sketch_opening, len(sample)))


def _row_texts(row: RecordRow) -> TextFields:
    return _decompress_texts(row.texts) if isinstance(row.texts, bytes) else row.texts


def _row_terms(row: RecordRow, texts: TextFields) -> tuple[tuple[str, float], ...]:
    weights = map(_WEIGHTS.__getitem__, row.term_weights)
    return tuple(zip(texts.terms.split("\n"), weights, strict=True)) if texts.terms else ()
