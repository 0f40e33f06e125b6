"""What is kept of an article while its corpus is compared? Numbers only, never its text.

A block of rows becomes a ``Chunk``: one numpy array per column, written to one file, whole or not at all. The
fingerprint is that of the live service (``analyse.py``); the sample is of shingles of letters where a language
separates words, and as the service has it otherwise. Term weights, which only it needs, are left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
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
from aggregator.offline.archive import checkpoint, rows
from aggregator.offline.archive.bitmap_filter import BITMAP_BITS, sample_bitmaps
from aggregator.offline.archive.char_ngrams import char_ngram_sketch
from aggregator.offline.archive.english import is_plain_english
from aggregator.offline.archive.vocabulary import build_vocabulary

UNDATED = np.iinfo(np.int64).min
_LANGUAGE_SAMPLE_CHARS = 600

# (name, dtype, width): every column but those of variable length, ids, samples and figures, and the bands.
FIXED_WIDTH_COLUMNS: tuple[tuple[str, str, int], ...] = (
    ("fingerprint", "<u8", 1),
    ("text_hash", "<u8", 2),
    ("space", "<u2", 1),  # position in the list of spaces, likewise source
    ("source", "<u4", 1),
    ("date_ms", "<i8", 1),
    ("words", "<u4", 1),
    ("size", "<u4", 1),  # distinct shingles
    ("sampled", "<u2", 1),  # of them in the sample
    ("figured", "|u1", 1),  # distinct figures that are kept
    ("lettered", "|u1", 1),  # 1: shingles of letters, 0: of words or characters
    ("marks", "<u8", BITMAP_BITS // 64),  # map of the sample (``marks.py``)
)


@dataclass(frozen=True, slots=True)
class Encoding:
    """How rows become numbers; part of what identifies a run."""

    models_dir: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    lang: str = ""
    shingles: str = "letters"  # of languages that separate words (``letters.py``); or "words", as the service


@dataclass(frozen=True, slots=True)
class Signature:
    """One article's numbers."""

    id: str
    source: str
    space: str
    fingerprint: int
    text_hash: int  # 128 bits
    date_ms: int
    words: int
    size: int
    sample: npt.NDArray[np.uint32]
    lettered: bool = False
    figures: tuple[int, ...] = ()


class Encoder:
    """The production stages without what only the service needs; holds the models."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding
        self._column_names = dict(encoding.columns)
        self._models = load_models(Path(encoding.models_dir) if encoding.models_dir else None)
        self._english_vocabulary = build_vocabulary(self._models.get("en", self._models[FALLBACK_GROUP]))
        self._space_names = {group: space_name(group, model, "4x16") for group, model in self._models.items()}

    def parse_article(self, row: rows.Row) -> Article:
        return rows.parse_article(row, self._column_names)

    def encode(self, article: Article) -> Signature:
        """Raises NoText when the article has no words."""
        title, text = article.title, article.text
        if not text and article.html:
            extracted = extract_article(article.html)
            title, text = title or extracted.title, extracted.text
        lang = self._detect_language(title, text, article.lang)
        titled, worded = tokenizer.words(title, lang), tokenizer.words(text, lang)
        words = worded if len(worded) >= HEADLINE_COUNTS_BELOW_WORDS else titled + worded
        if not words:
            raise NoText("The article has no words.")
        count, words = len(words), normalize_spelling(words, lang)
        group = language_group(lang)
        group = group if group in self._models else FALLBACK_GROUP
        lettered = self.encoding.shingles == "letters" and uses_spaces(lang)
        fingerprint, sketch = self._encode_plain_english(
            titled, worded, lang, lettered
        ) or self._encode_any_language(title, text, words, lang, group, lettered)
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
            lettered=lettered,
            figures=figure_hashes(f"{title}\n{text}"),
        )

    def _encode_plain_english(
        self, title_words: list[str], text_words: list[str], lang: str, lettered: bool
    ) -> tuple[int, Sketch | None] | None:
        """Fingerprint and sample of plain English, without the sample if ``lettered``; None for anything else."""
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
        if lettered:
            return fingerprint, None
        compared = numbers[len(title_words) :] if len(text_words) >= HEADLINE_COUNTS_BELOW_WORDS else numbers
        return fingerprint, self._english_vocabulary.sketch(compared)

    def _encode_any_language(
        self, title: str, text: str, words: list[str], lang: str, group: str, lettered: bool
    ) -> tuple[int, Sketch | None]:
        """The same by the general stages."""
        terms = tokenizer.tokenize(f"{title}\n{text}", lang) or tokenizer.words(f"{title}\n{text}", lang)
        return fingerprint_from_sums(
            self._models[group].project(terms)
        ), None if lettered else sketch_in_language(words, lang)

    def _detect_language(self, title: str, text: str, declared: str | None) -> str:
        known = language_from_tag(declared or self.encoding.lang) if declared or self.encoding.lang else None
        if known:
            return known
        opening = f"{title}\n{text[:_LANGUAGE_SAMPLE_CHARS]}"
        return "en" if is_plain_english(opening) else detect_language(opening)


@cache
def cached_encoder(encoding: Encoding) -> Encoder:
    """One per process: the models are loaded when the first block comes."""
    return Encoder(encoding)


def encode_block(block: rows.Block, encoding: Encoding, out: str) -> int:
    """Encode a block into the file ``out`` and say how many rows it had. A file that is there is not made again."""
    if not Path(out).exists():
        _save_chunk(out, *_encode_rows(block, cached_encoder(encoding)))
    return len(block.rows)


def _encode_rows(
    block: rows.Block, encoder: Encoder
) -> tuple[list[Signature], list[bool], list[dict[str, Any]]]:
    """Signatures of the usable rows, which rows those are, and what is wrong with the others."""
    found, kept, bad = [], [], []
    for number, row in block.rows:
        try:
            if isinstance(row, InvalidInput):
                raise row
            found.append(encoder.encode(encoder.parse_article(row)))
            kept.append(True)
        except InvalidInput as error:
            shown = row.decode("utf-8", "replace") if isinstance(row, bytes) else None
            bad.append({"file": block.file, "row": number, "reason": str(error), "data": shown})
            kept.append(False)
    return found, kept, bad


def arrays_from_signatures(
    signatures: Sequence[Signature],
) -> tuple[dict[str, npt.NDArray[Any]], list[str], list[str]]:
    """Columns of signatures, and the lists of spaces and sources that two of them point into."""
    spaces, sources = (
        _positions_by_name(s.space for s in signatures),
        _positions_by_name(s.source for s in signatures),
    )
    sample = np.concatenate([np.empty(0, np.uint32), *(s.sample for s in signatures)])
    values: Mapping[str, Any] = {
        "fingerprint": [s.fingerprint for s in signatures],
        "text_hash": [(s.text_hash >> 64, s.text_hash & (2**64 - 1)) for s in signatures],
        "space": [spaces[s.space] for s in signatures],
        "source": [sources[s.source] for s in signatures],
        "date_ms": [s.date_ms for s in signatures],
        "words": [s.words for s in signatures],
        "size": [s.size for s in signatures],
        "sampled": [len(s.sample) for s in signatures],
        "figured": [len(s.figures) for s in signatures],
        "lettered": [s.lettered for s in signatures],
        "marks": sample_bitmaps(sample, np.array([len(s.sample) for s in signatures], np.int64)),
    }
    arrays = {
        name: np.array(values[name], dtype).reshape((-1, width) if width > 1 else -1)
        for name, dtype, width in FIXED_WIDTH_COLUMNS
    }
    arrays["sample"] = sample
    arrays["figure"] = np.array([one for s in signatures for one in sorted(s.figures)], np.uint32)
    ids = [s.id.encode("utf-8", "surrogatepass") for s in signatures]
    arrays["id"] = np.frombuffer(b"".join(ids), np.uint8)
    arrays["id_size"] = np.array([len(one) for one in ids], "<u4")
    return arrays, list(spaces), list(sources)


def _positions_by_name(names: Any) -> dict[str, int]:
    """Each distinct name and its position, in order of first occurrence."""
    found: dict[str, int] = {}
    for name in names:
        found.setdefault(name, len(found))
    return found


def _save_chunk(
    out: str, signatures: Sequence[Signature], kept: Sequence[bool], bad_rows: Sequence[dict[str, Any]]
) -> None:
    arrays, spaces, sources = arrays_from_signatures(signatures)
    about = json.dumps({"spaces": spaces, "sources": sources, "bad": bad_rows}).encode()
    checkpoint.save_arrays(
        Path(out), about=np.frombuffer(about, np.uint8), kept=np.array(kept, bool), **arrays
    )


def chunk_metadata(file: Path) -> dict[str, Any]:
    """The spaces, sources and bad rows of a chunk."""
    with np.load(file) as chunk:
        found: dict[str, Any] = json.loads(chunk["about"].tobytes())
    return found


def usable_rows(
    inputs: Sequence[str], chunks: Sequence[Path], progress: Callable[[int], None] | None = None
) -> Iterator[rows.Row]:
    """The rows that were encoded, in the order of the columns, by reading the input again."""
    for block, chunk in zip(rows.read_blocks(inputs, progress), chunks, strict=True):
        with np.load(chunk) as arrays:
            kept = arrays["kept"].tolist()
        for ok, (_, row) in zip(kept, block.rows, strict=True):
            if ok and not isinstance(row, InvalidInput):
                yield row
