"""Encoding of articles as numbers: fingerprint, sample, hashes and dates; texts are not stored.

A block of rows becomes a chunk: one numpy array per column, in one file that is written whole or not at
all. The fingerprint is that of the service (``analysis/analyzer.py``). The sample is of character n-grams
for languages that separate words (unless ``Encoding.shingles`` is "words"), and that of the service
otherwise. Term weights are left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from aggregator.analysis.analyzer import (
    HEADLINE_COUNTS_BELOW_WORDS,
    figure_hashes,
    sketch_in_language,
    space_name,
    uses_spaces,
)
from aggregator.analysis.models import load_models
from aggregator.analysis.simhash import fingerprint_from_sums
from aggregator.analysis.text import tokenizer
from aggregator.analysis.text.html import extract_article
from aggregator.analysis.text.language import (
    FALLBACK_GROUP,
    detect_language,
    language_from_tag,
    language_group,
)
from aggregator.analysis.text.orthography import normalize_spelling
from aggregator.domain import Article, Sketch
from aggregator.errors import InvalidInput, NoText
from aggregator.offline.archive import rows
from aggregator.offline.archive.arrays import Array, Hashes
from aggregator.offline.archive.bitmap_filter import BITMAP_BITS, sample_bitmaps
from aggregator.offline.archive.char_ngrams import char_ngram_sketch
from aggregator.offline.archive.checkpoint import save_once
from aggregator.offline.archive.english import is_plain_english
from aggregator.offline.archive.vocabulary import build_vocabulary

UNDATED = np.iinfo(np.int64).min
_LANGUAGE_SAMPLE_CHARS = 600

# (name, dtype, width) of the columns of fixed width, except the sketch keys, which depend on all articles.
FIXED_WIDTH_COLUMNS: tuple[tuple[str, str, int], ...] = (
    ("fingerprint", "<u8", 1),
    ("text_hash", "<u8", 2),
    ("space", "<u2", 1),  # index into the list of spaces, likewise source
    ("source", "<u4", 1),
    ("date_ms", "<i8", 1),
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

    models_dir  directory of feature models; empty: the shipped ones columns     (field, column) pairs for
    input columns that are not named like their field lang        language of articles that declare none;
    empty: detect shingles    "letters" (character n-grams, for languages that separate words) or "words"
    (as in the service)
    """

    models_dir: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    lang: str = ""
    shingles: str = "letters"


@dataclass(frozen=True, slots=True)
class Signature:
    """The numbers that represent one article."""

    id: str
    source: str
    space: str
    fingerprint: int
    text_hash: int  # 128 bits
    date_ms: int
    words: int
    size: int
    sample: Hashes
    uses_char_ngrams: bool = False
    figures: tuple[int, ...] = ()


class Encoder:
    """Encoder of articles: the analysis stages of the service that an archive needs; holds the models."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding
        self._column_names = dict(encoding.columns)
        self._models = load_models(Path(encoding.models_dir) if encoding.models_dir else None)
        self._english_vocabulary = build_vocabulary(self._models.get("en", self._models[FALLBACK_GROUP]))
        self._space_names = {group: space_name(group, model, "4x16") for group, model in self._models.items()}

    def parse_article(self, row: rows.Row) -> Article:
        """The article of a row. Raises InvalidInput."""
        return rows.parse_article(row, self._column_names)

    def encode(self, article: Article) -> Signature:
        """The signature of an article. Raises NoText if it has no words."""
        title, text = article.title, article.text
        if not text and article.html:
            extracted = extract_article(article.html)
            title, text = title or extracted.title, extracted.text
        lang = self._detect_language(title, text, article.lang)
        title_words, text_words = tokenizer.words(title, lang), tokenizer.words(text, lang)
        words = text_words if len(text_words) >= HEADLINE_COUNTS_BELOW_WORDS else title_words + text_words
        if not words:
            raise NoText("The article has no words.")
        count, words = len(words), normalize_spelling(words, lang)
        group = language_group(lang)
        group = group if group in self._models else FALLBACK_GROUP
        uses_char_ngrams = self.encoding.shingles == "letters" and uses_spaces(lang)
        fingerprint, sketch = self._encode_plain_english(
            title_words, text_words, lang, uses_char_ngrams
        ) or self._encode_any_language(title, text, words, lang, group, uses_char_ngrams)
        if sketch is None:
            sketch = char_ngram_sketch(words)
        return Signature(
            id=article.id,
            source=article.source,
            space=self._space_names[group],
            fingerprint=fingerprint,
            text_hash=xxhash.xxh3_128_intdigest(" ".join(words).encode("utf-8", "surrogatepass")),
            date_ms=UNDATED if article.published_at_ms is None else article.published_at_ms,
            words=count,
            size=sketch.size,
            sample=sketch.sample,
            uses_char_ngrams=uses_char_ngrams,
            figures=figure_hashes(f"{title}\n{text}"),
        )

    def _encode_plain_english(
        self, title_words: list[str], text_words: list[str], lang: str, uses_char_ngrams: bool
    ) -> tuple[int, Sketch | None] | None:
        """Fingerprint and sketch of ASCII English by table lookup; None if the text needs the general stages.

        The sketch is None if ``uses_char_ngrams``.
        """
        if (
            lang != "en"
            or self._english_vocabulary is None
            or not "".join(text_words).isascii()
            or not "".join(title_words).isascii()
        ):
            return None
        numbers = self._english_vocabulary.intern(title_words + text_words)
        fingerprint = self._english_vocabulary.fingerprint(numbers)
        if fingerprint is None:
            return None
        if uses_char_ngrams:
            return fingerprint, None
        compared = numbers[len(title_words) :] if len(text_words) >= HEADLINE_COUNTS_BELOW_WORDS else numbers
        return fingerprint, self._english_vocabulary.sketch(compared)

    def _encode_any_language(
        self, title: str, text: str, words: list[str], lang: str, group: str, uses_char_ngrams: bool
    ) -> tuple[int, Sketch | None]:
        """Fingerprint and sketch by the general stages; the sketch is None if ``uses_char_ngrams``."""
        full_text = f"{title}\n{text}"
        terms = tokenizer.tokenize(full_text, lang) or tokenizer.words(full_text, lang)
        fingerprint = fingerprint_from_sums(self._models[group].project(terms))
        return fingerprint, None if uses_char_ngrams else sketch_in_language(words, lang)

    def _detect_language(self, title: str, text: str, declared: str | None) -> str:
        known = language_from_tag(declared or self.encoding.lang) if declared or self.encoding.lang else None
        if known:
            return known
        opening = f"{title}\n{text[:_LANGUAGE_SAMPLE_CHARS]}"
        return "en" if is_plain_english(opening) else detect_language(opening)


@cache
def cached_encoder(encoding: Encoding) -> Encoder:
    """The encoder of this process; the models are loaded for the first block."""
    return Encoder(encoding)


def encode_block(block: rows.Block, encoding: Encoding, out: str) -> None:
    """Encode a block into the chunk file ``out``, unless the file exists."""
    save_once(Path(out), lambda: _chunk_arrays(block, cached_encoder(encoding)))


def _chunk_arrays(block: rows.Block, encoder: Encoder) -> dict[str, Array]:
    """Arrays of a chunk: the columns of the usable rows, which rows those are, and metadata as JSON."""
    signatures, kept, bad = [], [], []
    for number, row in block.rows:
        try:
            if isinstance(row, InvalidInput):
                raise row
            signatures.append(encoder.encode(encoder.parse_article(row)))
            kept.append(True)
        except InvalidInput as error:
            data = row.decode("utf-8", "replace") if isinstance(row, bytes) else None
            bad.append({"file": block.file, "row": number, "reason": str(error), "data": data})
            kept.append(False)
    columns, spaces, sources = arrays_from_signatures(signatures)
    metadata = json.dumps({"spaces": spaces, "sources": sources, "bad": bad}).encode()
    return {"about": np.frombuffer(metadata, np.uint8), "kept": np.array(kept, bool), **columns}


def arrays_from_signatures(
    signatures: Sequence[Signature],
) -> tuple[dict[str, Array], list[str], list[str]]:
    """Columns of signatures, and the lists of spaces and sources that the columns of these names index."""
    spaces = _positions_by_name(s.space for s in signatures)
    sources = _positions_by_name(s.source for s in signatures)
    sample_sizes = [len(s.sample) for s in signatures]
    sample = np.concatenate([np.empty(0, np.uint32), *(s.sample for s in signatures)])
    values: Mapping[str, Any] = {
        "fingerprint": [s.fingerprint for s in signatures],
        "text_hash": [(s.text_hash >> 64, s.text_hash & (2**64 - 1)) for s in signatures],
        "space": [spaces[s.space] for s in signatures],
        "source": [sources[s.source] for s in signatures],
        "date_ms": [s.date_ms for s in signatures],
        "words": [s.words for s in signatures],
        "size": [s.size for s in signatures],
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
    ids = [s.id.encode("utf-8", "surrogatepass") for s in signatures]
    arrays["id"] = np.frombuffer(b"".join(ids), np.uint8)
    arrays["id_size"] = np.array([len(id_) for id_ in ids], "<u4")
    return arrays, list(spaces), list(sources)


def _positions_by_name(names: Iterable[str]) -> dict[str, int]:
    """Each distinct name and its position, in order of first occurrence."""
    return {name: position for position, name in enumerate(dict.fromkeys(names))}


def chunk_metadata(file: Path) -> dict[str, Any]:
    """The ``spaces``, ``sources`` and ``bad`` rows of a chunk."""
    with np.load(file) as chunk:
        metadata: dict[str, Any] = json.loads(chunk["about"].tobytes())
    return metadata


def usable_rows(
    inputs: Sequence[str], chunks: Sequence[Path], progress: Callable[[int], None] | None = None
) -> Iterator[rows.Row]:
    """The rows that were encoded, in the order of the columns, by reading the input again."""
    for block, chunk in zip(rows.read_blocks(inputs, progress), chunks, strict=True):
        with np.load(chunk) as arrays:
            kept = arrays["kept"].tolist()
        for usable, (_, row) in zip(kept, block.rows, strict=True):
            if usable and not isinstance(row, InvalidInput):
                yield row
