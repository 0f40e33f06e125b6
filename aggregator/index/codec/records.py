"""How records and id bindings are written down: a format byte, then MessagePack.

A reader that meets another format byte refuses with a clear error instead of guessing. A record leaves out what
its key says, number and space; its texts are compressed together, since a headline stands in its address too.
How a sample is packed is told in ``store/samples.py``.
"""

from __future__ import annotations

import struct
import zlib
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
import numpy as np

from aggregator.domain import (
    Match,
    Outcome,
    Record,
    Rule,
    Sketch,
    VerdictName,
)
from aggregator.errors import StoreUnavailable
from aggregator.index.codec.sketches import packed, unpacked
from aggregator.store.decoding import damaged, value_of

FORMAT = b"\x01"
RECORD_FORMAT = b"\x03"
BINDING_FORMAT = b"\x02"
_SHORT = 100  # bytes of texts that nothing is won by compressing
_LONGEST = 1 << 24
_RAW_DEFLATE = -zlib.MAX_WBITS  # no head, no checksum
T = TypeVar("T")


class Binding(msgspec.Struct, frozen=True, array_like=True):
    """What an id is bound to: its current version, its first version, and the stored decision."""

    number: int
    first: int
    text_hash: bytes
    id: str
    outcome: Outcome

    @property
    def group(self) -> int:
        """The first number of the group it is in."""
        return self.outcome.group(self.first)


class _MatchRow(msgspec.Struct, frozen=True, array_like=True):
    """A Match; None where the canonical article is the matched one itself."""

    id: str
    number: int
    canonical_id: str | None
    canonical_first: int | None
    distance: int
    overlap: float | None
    rule: Rule


class _BindingRow(msgspec.Struct, frozen=True, array_like=True):
    """A Binding; ``first`` is None in a first version."""

    number: int
    first: int | None
    text_hash: bytes
    id: str
    verdict: VerdictName
    distance: int | None
    updated_figures: bool
    match: _MatchRow | None


class _Texts(msgspec.Struct, frozen=True, array_like=True):
    """What strangers wrote; ``terms`` one a line."""

    id: str
    title: str
    url: str
    source: str
    terms: str


class _Row(msgspec.Struct, frozen=True, array_like=True):
    """A Record; ``first`` is None in a first version, ``texts`` are compressed where that saves anything."""

    first: int | None
    lang: str
    fingerprint: int
    text_hash: bytes
    short: bool
    published_at_ms: int | None
    size: int
    sample: bytes
    weights: bytes
    figures: bytes
    texts: _Texts | bytes


class Pointer(msgspec.Struct, frozen=True, array_like=True):
    """State of a number that is a copy: the canonical article of its group."""

    id: str
    first: int


_row = msgspec.msgpack.Decoder(_Row)
_texts = msgspec.msgpack.Decoder(_Texts)
_binding = msgspec.msgpack.Decoder(_BindingRow)
_pointer = msgspec.msgpack.Decoder(Pointer)
_encode = msgspec.msgpack.Encoder().encode


def encode_record(record: Record) -> bytes:
    """Term weights keep 8 bits each: they rank neighbours, nothing is summed over them."""
    row = _Row(
        first=None if record.first == record.number else record.first,
        lang=record.lang,
        fingerprint=record.fingerprint,
        text_hash=record.text_hash,
        short=record.short,
        published_at_ms=record.published_at_ms,
        size=record.sketch.size,
        sample=packed(record.sketch.sample),
        weights=bytes([round(weight * 255) for _, weight in record.terms]),
        figures=struct.pack(f"<{len(record.figures)}I", *record.figures),
        texts=_deflated(record),
    )
    return RECORD_FORMAT + _encode(row)


def _deflated(record: Record) -> _Texts | bytes:
    terms = "\n".join([term for term, _ in record.terms])
    texts = _Texts(record.id, record.title, record.url, record.source, terms)
    plain = _encode(texts)
    if len(plain) < _SHORT:
        return texts
    return zlib.compress(plain, wbits=_RAW_DEFLATE)


def _inflated(data: bytes) -> _Texts:
    """Raises ValueError when it is damaged."""
    inflating = zlib.decompressobj(_RAW_DEFLATE)
    try:
        plain = inflating.decompress(data, _LONGEST)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not inflating.eof:
        raise ValueError("its texts are cut off")
    return value_of(_texts, plain, "A record")


@lru_cache(maxsize=4096)  # the originals of many copies, the frames of many templates come again and again
def decode_record(data: bytes, space: str, number: int) -> Record:
    """The record written by ``encode_record``. Raises StoreUnavailable when it is damaged or foreign."""
    row = decoded(_row, data, RECORD_FORMAT)
    try:
        return _record(row, space, number)
    except ValueError as error:
        raise damaged("A record", error) from error


def told(data: bytes, space: str) -> dict[str, Any]:
    """The fields of a record that the article stream tells. Raises StoreUnavailable when it is damaged or foreign.

    Sample and figures stay packed, and nothing is kept: who follows the stream sees each article once.
    """
    row = decoded(_row, data, RECORD_FORMAT)
    try:
        texts = _texts_of(row)
        terms = _terms_of(row, texts)
    except ValueError as error:
        raise damaged("A record", error) from error
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


def _record(row: _Row, space: str, number: int) -> Record:
    """Raises ValueError when the sample, the weights, the figures or the texts were cut."""
    texts = _texts_of(row)
    return Record(
        number=number,
        first=number if row.first is None else row.first,
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
        sketch=Sketch(row.size, unpacked(row.sample)),
        terms=_terms_of(row, texts),
        figures=tuple(np.frombuffer(row.figures, "<u4").tolist()),
    )


def _texts_of(row: _Row) -> _Texts:
    return _inflated(row.texts) if isinstance(row.texts, bytes) else row.texts


def _terms_of(row: _Row, texts: _Texts) -> tuple[tuple[str, float], ...]:
    weights = (np.frombuffer(row.weights, np.uint8) / 255.0).tolist()
    return tuple(zip(texts.terms.split("\n"), weights, strict=True)) if texts.terms else ()


def encode_binding(binding: Binding) -> bytes:
    """What an id is bound to, as it is stored."""
    outcome = binding.outcome
    row = _BindingRow(
        number=binding.number,
        first=None if binding.first == binding.number else binding.first,
        text_hash=binding.text_hash,
        id=binding.id,
        verdict=outcome.verdict,
        distance=outcome.distance,
        updated_figures=outcome.updated_figures,
        match=_match_row(outcome.match) if outcome.match else None,
    )
    return BINDING_FORMAT + _encode(row)


def _match_row(match: Match) -> _MatchRow:
    return _MatchRow(
        id=match.id,
        number=match.number,
        canonical_id=None if match.canonical_id == match.id else match.canonical_id,
        canonical_first=None if match.canonical_first == match.number else match.canonical_first,
        distance=match.distance,
        overlap=match.overlap,
        rule=match.rule,
    )


def decode_binding(data: bytes) -> Binding:
    """The opposite. Raises StoreUnavailable when it is damaged or foreign."""
    row = decoded(_binding, data, BINDING_FORMAT)
    return Binding(
        row.number,
        row.number if row.first is None else row.first,
        row.text_hash,
        row.id,
        Outcome(row.verdict, row.distance, _match(row.match) if row.match else None, row.updated_figures),
    )


def _match(row: _MatchRow) -> Match:
    return Match(
        id=row.id,
        number=row.number,
        canonical_id=row.id if row.canonical_id is None else row.canonical_id,
        canonical_first=row.number if row.canonical_first is None else row.canonical_first,
        distance=row.distance,
        overlap=row.overlap,
        rule=row.rule,
    )


def encode_pointer(id_: str, first: int) -> bytes:
    """What a copy points at, as it is stored."""
    return FORMAT + _encode(Pointer(id_, first))


def decode_pointer(data: bytes) -> Pointer:
    """The opposite. Raises StoreUnavailable when it is damaged or foreign."""
    return decoded(_pointer, data)


def decoded(decoder: msgspec.msgpack.Decoder[T], data: bytes, format_: bytes = FORMAT) -> T:
    """What stands behind the byte of its format. Raises StoreUnavailable when it is damaged or foreign."""
    if data[:1] != format_:
        raise StoreUnavailable(
            f"The store holds a record of format {data[:1].hex() or 'none'}, this version reads "
            f"{format_.hex()}: run the version that wrote it, or reindex."
        )
    return value_of(decoder, data[1:], "A record")
