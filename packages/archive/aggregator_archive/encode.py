"""Encoding of articles: fingerprint, sample, top terms, headline and date; texts are not stored.

A block of rows becomes a chunk: one file with a numpy array per column. All values are those of the service,
except that with ``Encoding.shingles`` "letters" the sample is of character n-grams.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import xxhash

from aggregator.analysis.analyzer import Analyzer, uses_spaces
from aggregator.analysis.models import load_models
from aggregator.analysis.shingles import decode_marks
from aggregator.analysis.text.spelling import normalize_spelling
from aggregator.domain import Article, Sketch, WeightedTerms
from aggregator.errors import InvalidInput
from aggregator_archive import rows
from aggregator_archive.arrays import Array, save_once
from aggregator_archive.bitmap_filter import BITMAP_BITS, sample_bitmaps
from aggregator_archive.char_ngrams import char_ngram_sketch
from aggregator_archive.dates import DateCounts
from aggregator_archive.parquet_table import as_text

UNDATED = np.iinfo(np.int64).min
TITLE_COUNTS_BELOW_CHARS = 200  # what a dividend or an author's name is about, only the title says

# (name, dtype, width) of the columns of fixed width, except the sketch keys, which depend on all articles.
FIXED_WIDTH_COLUMNS: tuple[tuple[str, str, int], ...] = (
    ("fingerprint", "<u8", 1),
    ("text_hash", "<u8", 2),
    ("text_key", "<u8", 1),
    ("space", "<u2", 1),  # index into the list of spaces, likewise source
    ("source", "<u4", 1),
    ("date_ms", "<i8", 1),
    ("has_text", "|u1", 1),  # 1: has words besides the headline
    ("words", "<u4", 1),
    ("size", "<u4", 1),  # distinct shingles
    ("sample_size", "<u2", 1),  # hashes in the sample
    ("figure_count", "|u1", 1),  # distinct figures
    ("uses_char_ngrams", "|u1", 1),  # 1: character n-grams, 0: the service's shingles
    ("bitmap", "<u8", BITMAP_BITS // 64),  # of the sample (``bitmap_filter.py``)
)


@dataclass(frozen=True, slots=True)
class Encoding:
    """Parameters of the encoding; part of the identity of a run (``Job.identity``).

    models_dir  directory of feature models; empty: the shipped ones
    columns     (field, column) pairs for input columns that are not named like their field
    lang        language of articles that declare none; empty: detect
    shingles    "words" (as in the service) or "letters" (character n-grams, for languages that separate
                words)
    """

    models_dir: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    lang: str = ""
    shingles: str = "words"


@dataclass(frozen=True, slots=True)
class Signature:
    """What is stored of one article; fields as in ``Analysis``, except for the sketch of n-grams."""

    id: str
    source: str
    space: str
    fingerprint: int
    text_hash: int  # 128 bits
    text_key: int  # 64 bits (``text_key``)
    date_ms: int
    words: int
    sketch: Sketch
    uses_char_ngrams: bool = False
    figures: tuple[int, ...] = ()
    lang: str = "en"
    title: str = ""
    short: bool = False
    terms: WeightedTerms = ()
    text_words: int = 0
    own_headline: float = 1.0


class Encoder:
    """Encoder of articles: the analysis of the service; holds the models."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding, self.column_names = encoding, dict(encoding.columns)
        self._analyzer = Analyzer(load_models(Path(encoding.models_dir) if encoding.models_dir else None))

    def encode(self, article: Article) -> Signature:
        """The signature of an article. Raises NoText if it has no words, InputTooLarge if it is too long."""
        if not article.lang and self.encoding.lang:
            article = replace(article, lang=self.encoding.lang)
        analysis, words = self._analyzer.analyze_with_words(article)
        uses_char_ngrams = self.encoding.shingles == "letters" and uses_spaces(analysis.lang)
        sketch = analysis.sketch
        if uses_char_ngrams:
            sketch = char_ngram_sketch(normalize_spelling(words, analysis.lang))
        return Signature(
            id=article.id,
            source=article.source,
            space=analysis.space,
            fingerprint=analysis.fingerprint,
            text_hash=int.from_bytes(analysis.text_hash, "big"),
            text_key=text_key(analysis.title, analysis.text),
            date_ms=UNDATED if article.published_at_ms is None else article.published_at_ms,
            words=len(words),
            sketch=sketch,
            uses_char_ngrams=uses_char_ngrams,
            figures=analysis.figures,
            lang=analysis.lang,
            title=analysis.title,
            short=analysis.short,
            terms=analysis.terms,
            text_words=analysis.text_words,
            own_headline=analysis.own_headline,
        )


def text_key(title: str, text: str) -> int:
    """64-bit hash of a text, if short with its title, but for case and white space: whatever its language."""
    whole = text if len(text) >= TITLE_COUNTS_BELOW_CHARS else f"{title} {text}"
    return xxhash.xxh3_64_intdigest(" ".join(whole.casefold().split()).encode("utf-8", "surrogatepass"))


cached_encoder = cache(Encoder)  # of this process; the models are loaded for the first block


def encode_block(block: rows.Block, encoding: Encoding, out: str) -> None:
    """Encode a block into the chunk file ``out``, unless the file exists."""
    save_once(Path(out), lambda: _chunk_arrays(block, cached_encoder(encoding)))


def _chunk_arrays(block: rows.Block, encoder: Encoder) -> dict[str, Array]:
    """Arrays of a chunk: the columns of the usable rows, their numbers in the file, and metadata as JSON."""
    signatures, kept, bad = [], [], []
    dates = DateCounts()
    for number, row in block.rows:
        try:
            article = rows.parse_article(row, encoder.column_names)
            signatures.append(encoder.encode(article))
            kept.append(number)
            dates.add(row, encoder.column_names, is_read=article.published_at_ms is not None)
        except InvalidInput as error:
            data = None if isinstance(row, InvalidInput) else as_text(row)
            bad.append({"file": block.file, "row": number, "reason": str(error), "data": data})
    columns, spaces, sources = arrays_from_signatures(signatures)
    metadata = {
        "spaces": spaces, "sources": sources, "bad": bad, "dates": asdict(dates), "file": block.file,
    }  # fmt: skip
    about = np.frombuffer(json.dumps(metadata).encode(), np.uint8)
    return {"about": about, "kept": np.array(kept, np.int64), **columns}


def arrays_from_signatures(signatures: Sequence[Signature]) -> tuple[dict[str, Array], list[str], list[str]]:
    """Columns of signatures, and the lists of spaces and sources that the columns of these names index."""
    spaces = _positions_by_name(s.space for s in signatures)
    sources = _positions_by_name(s.source for s in signatures)
    sample_sizes = [len(s.sketch.sample) for s in signatures]
    sample = np.concatenate([np.empty(0, np.uint32), *(s.sketch.sample for s in signatures)])
    values: Mapping[str, Any] = {
        "fingerprint": [s.fingerprint for s in signatures],
        "text_hash": [(s.text_hash >> 64, s.text_hash & (2**64 - 1)) for s in signatures],
        "text_key": [s.text_key for s in signatures],
        "space": [spaces[s.space] for s in signatures],
        "source": [sources[s.source] for s in signatures],
        "date_ms": [s.date_ms for s in signatures],
        "has_text": [s.text_words > 0 for s in signatures],
        "words": [s.words for s in signatures],
        "size": [s.sketch.size for s in signatures],
        "sample_size": sample_sizes,
        "figure_count": [len(s.figures) for s in signatures],
        "uses_char_ngrams": [s.uses_char_ngrams for s in signatures],
        "bitmap": sample_bitmaps(sample, np.array(sample_sizes, np.int64)),
    }
    arrays = {
        name: np.array(values[name], dtype).reshape((-1, width) if width > 1 else -1)
        for name, dtype, width in FIXED_WIDTH_COLUMNS
    }
    arrays["sample"] = sample
    arrays["figure"] = np.array([figure for s in signatures for figure in sorted(s.figures)], np.uint32)
    details = [
        encode_details(
            Details(s.lang, s.short, s.title, s.terms, s.sketch.marks, s.text_words, s.own_headline)
        )
        for s in signatures
    ]
    ids = [s.id.encode("utf-8", "surrogatepass") for s in signatures]
    for name, texts in (("id", ids), ("detail", details)):
        arrays[name] = np.frombuffer(b"".join(texts), np.uint8)
        arrays[f"{name}_size"] = np.array([len(text) for text in texts], "<u4")
    return arrays, list(spaces), list(sources)


def _positions_by_name(names: Iterable[str]) -> dict[str, int]:
    """Each distinct name and its position, in order of first occurrence."""
    return {name: position for position, name in enumerate(dict.fromkeys(names))}


def chunk_metadata(file: Path) -> dict[str, Any]:
    """Of a chunk: ``file``, ``spaces``, ``sources``, ``bad`` rows, ``DateCounts``."""
    with np.load(file) as chunk:
        metadata: dict[str, Any] = json.loads(chunk["about"].tobytes())
    return metadata


def usable_rows(
    inputs: Sequence[str], chunks: Sequence[Path], progress: Callable[[int], None] | None = None
) -> Iterator[rows.Row]:
    """The rows that were encoded, in the order of the columns, by reading the input again."""
    for block, chunk in zip(rows.read_blocks(inputs, progress), chunks, strict=True):
        kept = set(np.load(chunk)["kept"].tolist())
        for number, row in block.rows:
            if number in kept and not isinstance(row, InvalidInput):
                yield row


@dataclass(frozen=True, slots=True, eq=False)
class Details:
    """Fields as in ``Analysis``; ``marks``: (n,) of the n sampled hashes, as in ``Sketch``."""

    lang: str
    short: bool
    title: str
    terms: WeightedTerms
    marks: npt.NDArray[np.uint8]
    text_words: int
    own_headline: float


class _DetailRow(msgspec.Struct, frozen=True, array_like=True):
    """Terms one per line, their weights as float32, the marks."""

    lang: str
    short: bool
    title: bytes
    terms: bytes
    term_weights: bytes
    marks: bytes
    text_words: int
    own_headline: float


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
            details.marks.tobytes(),
            details.text_words,
            details.own_headline,
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
        decode_marks(row.marks, sample_size),
        row.text_words,
        row.own_headline,
    )


def _to_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
