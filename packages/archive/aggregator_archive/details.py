"""What the duplicate rules read of an article besides its sample: language, headline, top terms, opening.

One MessagePack value per article, about 330 bytes, in the column ``detail``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from aggregator.domain import WeightedTerms
from aggregator.index.codec.sketches import decode_opening, encode_opening
from aggregator_archive.arrays import Flags


@dataclass(frozen=True, slots=True, eq=False)
class Details:
    """Fields as in ``Analysis``; ``opening``: (n,) flags of the n sampled hashes, as in ``Sketch``."""

    lang: str
    short: bool
    title: str
    terms: WeightedTerms
    opening: Flags


class _DetailRow(msgspec.Struct, frozen=True, array_like=True):
    """Terms one per line, their weights as float32, eight flags of the opening per byte."""

    lang: str
    short: bool
    title: bytes
    terms: bytes
    term_weights: bytes
    opening: bytes


_decode = msgspec.msgpack.Decoder(_DetailRow).decode
_encode = msgspec.msgpack.Encoder().encode


def encode_details(details: Details) -> bytes:
    """The stored form. Texts may hold lone surrogates, as those of the input do."""
    return _encode(
        _DetailRow(
            details.lang,
            details.short,
            _to_bytes(details.title),
            _to_bytes("\n".join([term for term, _ in details.terms])),
            np.array([weight for _, weight in details.terms], "<f4").tobytes(),
            encode_opening(details.opening),
        )
    )


def decode_details(data: bytes, sample_size: int) -> Details:
    """The details that ``encode_details`` stored of an article with this number of sampled hashes."""
    row = _decode(data)
    weights: Sequence[float] = np.frombuffer(row.term_weights, "<f4").tolist()
    names = row.terms.decode("utf-8", "surrogatepass").split("\n") if row.terms else []
    return Details(
        row.lang,
        row.short,
        row.title.decode("utf-8", "surrogatepass"),
        tuple(zip(names, weights, strict=True)),
        decode_opening(row.opening, sample_size),
    )


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
