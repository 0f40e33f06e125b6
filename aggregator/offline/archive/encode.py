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

from aggregator.analysis.analyzer import TITLED_WORDS, figures_of, separates_words, sketch_of, space_name
from aggregator.analysis.models import load_models
from aggregator.analysis.simhash import bits_of
from aggregator.analysis.text import tokenizer
from aggregator.analysis.text.html import extract
from aggregator.analysis.text.language import detect, from_tag, group_of
from aggregator.analysis.text.orthography import compared
from aggregator.domain import Article, Sketch
from aggregator.errors import BadInput, NoText
from aggregator.offline.archive import checkpoint, rows
from aggregator.offline.archive.bitmap_filter import MARKS, marks
from aggregator.offline.archive.char_ngrams import letter_sketch
from aggregator.offline.archive.english import plainly_english
from aggregator.offline.archive.vocabulary import vocabulary_of

UNDATED = np.iinfo(np.int64).min
_LANGUAGE_SAMPLE = 600

# (name, dtype, width): every column but those of variable length, ids, samples and figures, and the bands.
COLUMNS: tuple[tuple[str, str, int], ...] = (
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
    ("marks", "<u8", MARKS // 64),  # map of the sample (``marks.py``)
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
        self._columns = dict(encoding.columns)
        self._models = load_models(Path(encoding.models_dir) if encoding.models_dir else None)
        self._english = vocabulary_of(self._models.get("en", self._models["xx"]))
        self._spaces = {group: space_name(group, model, "4x16") for group, model in self._models.items()}

    def article(self, row: rows.Row) -> Article:
        return rows.article(row, self._columns)

    def signature(self, article: Article) -> Signature:
        """Raises NoText when the article has no words."""
        title, text = article.title, article.text
        if not text and article.html:
            extracted = extract(article.html)
            title, text = title or extracted.title, extracted.text
        lang = self._lang(title, text, article.lang)
        titled, worded = tokenizer.words(title, lang), tokenizer.words(text, lang)
        words = worded if len(worded) >= TITLED_WORDS else titled + worded
        if not words:
            raise NoText("The article has no words.")
        count, words = len(words), compared(words, lang)
        group = group_of(lang)
        group = group if group in self._models else "xx"
        lettered = self.encoding.shingles == "letters" and separates_words(lang)
        fingerprint, sketch = self._plain(titled, worded, lang, lettered) or self._any(
            title, text, words, lang, group, lettered
        )
        if sketch is None:
            sketch = letter_sketch(words)
        return Signature(
            id=article.id,
            source=article.source,
            space=self._spaces[group],
            fingerprint=fingerprint,
            text_hash=xxhash.xxh3_128_intdigest(" ".join(words).encode("utf-8", "surrogatepass")),
            date_ms=UNDATED if article.published_at_ms is None else article.published_at_ms,
            words=count,
            size=sketch.size,
            sample=sketch.sample,
            lettered=lettered,
            figures=figures_of(f"{title}\n{text}"),
        )

    def _plain(
        self, titled: list[str], worded: list[str], lang: str, lettered: bool
    ) -> tuple[int, Sketch | None] | None:
        """Fingerprint and sample of plain English, without the sample if ``lettered``; None for anything else."""
        if (
            lang != "en"
            or self._english is None
            or not "".join(worded).isascii()
            or not "".join(titled).isascii()
        ):
            return None
        numbers = self._english.numbers(titled + worded)
        fingerprint = self._english.fingerprint(numbers)
        if fingerprint is None:
            return None
        if lettered:
            return fingerprint, None
        compared = numbers[len(titled) :] if len(worded) >= TITLED_WORDS else numbers
        return fingerprint, self._english.sketch(compared)

    def _any(
        self, title: str, text: str, words: list[str], lang: str, group: str, lettered: bool
    ) -> tuple[int, Sketch | None]:
        """The same by the general stages."""
        terms = tokenizer.tokenize(f"{title}\n{text}", lang) or tokenizer.words(f"{title}\n{text}", lang)
        return bits_of(self._models[group].project(terms)), None if lettered else sketch_of(words, lang)

    def _lang(self, title: str, text: str, declared: str | None) -> str:
        known = from_tag(declared or self.encoding.lang) if declared or self.encoding.lang else None
        if known:
            return known
        opening = f"{title}\n{text[:_LANGUAGE_SAMPLE]}"
        return "en" if plainly_english(opening) else detect(opening)


@cache
def encoder_of(encoding: Encoding) -> Encoder:
    """One per process: the models are loaded when the first block comes."""
    return Encoder(encoding)


def encode_block(block: rows.Block, encoding: Encoding, out: str) -> int:
    """Encode a block into the file ``out`` and say how many rows it had. A file that is there is not made again."""
    if not Path(out).exists():
        _save(out, *_encoded(block, encoder_of(encoding)))
    return len(block.rows)


def _encoded(block: rows.Block, encoder: Encoder) -> tuple[list[Signature], list[bool], list[dict[str, Any]]]:
    """Signatures of the usable rows, which rows those are, and what is wrong with the others."""
    found, kept, bad = [], [], []
    for number, row in block.rows:
        try:
            if isinstance(row, BadInput):
                raise row
            found.append(encoder.signature(encoder.article(row)))
            kept.append(True)
        except BadInput as error:
            shown = row.decode("utf-8", "replace") if isinstance(row, bytes) else None
            bad.append({"file": block.file, "row": number, "reason": str(error), "data": shown})
            kept.append(False)
    return found, kept, bad


def arrays_of(found: Sequence[Signature]) -> tuple[dict[str, npt.NDArray[Any]], list[str], list[str]]:
    """Columns of signatures, and the lists of spaces and sources that two of them point into."""
    spaces, sources = _numbered(s.space for s in found), _numbered(s.source for s in found)
    sample = np.concatenate([np.empty(0, np.uint32), *(s.sample for s in found)])
    values: Mapping[str, Any] = {
        "fingerprint": [s.fingerprint for s in found],
        "text_hash": [(s.text_hash >> 64, s.text_hash & (2**64 - 1)) for s in found],
        "space": [spaces[s.space] for s in found],
        "source": [sources[s.source] for s in found],
        "date_ms": [s.date_ms for s in found],
        "words": [s.words for s in found],
        "size": [s.size for s in found],
        "sampled": [len(s.sample) for s in found],
        "figured": [len(s.figures) for s in found],
        "lettered": [s.lettered for s in found],
        "marks": marks(sample, np.array([len(s.sample) for s in found], np.int64)),
    }
    arrays = {
        name: np.array(values[name], dtype).reshape((-1, width) if width > 1 else -1)
        for name, dtype, width in COLUMNS
    }
    arrays["sample"] = sample
    arrays["figure"] = np.array([one for s in found for one in sorted(s.figures)], np.uint32)
    ids = [s.id.encode("utf-8", "surrogatepass") for s in found]
    arrays["id"] = np.frombuffer(b"".join(ids), np.uint8)
    arrays["id_size"] = np.array([len(one) for one in ids], "<u4")
    return arrays, list(spaces), list(sources)


def _numbered(names: Any) -> dict[str, int]:
    """Each distinct name and its position, in order of first occurrence."""
    found: dict[str, int] = {}
    for name in names:
        found.setdefault(name, len(found))
    return found


def _save(out: str, found: Sequence[Signature], kept: Sequence[bool], bad: Sequence[dict[str, Any]]) -> None:
    arrays, spaces, sources = arrays_of(found)
    about = json.dumps({"spaces": spaces, "sources": sources, "bad": bad}).encode()
    checkpoint.save(Path(out), about=np.frombuffer(about, np.uint8), kept=np.array(kept, bool), **arrays)


def about_chunk(file: Path) -> dict[str, Any]:
    """The spaces, sources and bad rows of a chunk."""
    with np.load(file) as chunk:
        found: dict[str, Any] = json.loads(chunk["about"].tobytes())
    return found


def usable(
    inputs: Sequence[str], chunks: Sequence[Path], progress: Callable[[int], None] | None = None
) -> Iterator[rows.Row]:
    """The rows that were encoded, in the order of the columns, by reading the input again."""
    for block, chunk in zip(rows.blocks(inputs, progress), chunks, strict=True):
        with np.load(chunk) as arrays:
            kept = arrays["kept"].tolist()
        for ok, (_, row) in zip(kept, block.rows, strict=True):
            if ok and not isinstance(row, BadInput):
                yield row
