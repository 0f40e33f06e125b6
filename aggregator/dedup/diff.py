"""Where in two texts does the shared wording stand? For people who want to see it, side by side.

The texts are cut into pieces that keep every character; a piece is shared when it lies in a shingle that
both texts have (``overlap.py``: 3 words, or 5 characters of a script without spaces). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from aggregator.analysis.shingles import SHINGLE_CHARACTERS, SHINGLE_WORDS
from aggregator.analysis.text import tokenizer
from aggregator.analysis.text.normalization import MARKS, UNSPACED

# So much of each text is compared and shown: some ten pages.
MAX_CHARS = 30_000
_CHUNK = re.compile(rf"[{UNSPACED}][{MARKS}]*|[^\s{UNSPACED}]+")
_UNSPACED = re.compile(f"[{UNSPACED}]")


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of a text. ``passage``: number of the shared passage it belongs to (equal in both texts).

    ``figure``: a number that the other text does not have.
    """

    text: str
    passage: int | None = None
    figure: bool = False


@dataclass(slots=True)
class _Chunk:
    """A word as printed, with what it is compared by."""

    start: int
    end: int
    words: list[str]
    passage: int | None = None
    figure: bool = False


def side_by_side(a: str, b: str, lang_a: str, lang_b: str) -> tuple[list[Piece], list[Piece]]:
    """Both texts in pieces; joined they are the texts again (cut at ``MAX_CHARS``)."""
    a, b = a[:MAX_CHARS], b[:MAX_CHARS]
    first, second = list(_chunks(a, lang_a)), list(_chunks(b, lang_b))
    width = SHINGLE_CHARACTERS if _mostly_unspaced(a) else SHINGLE_WORDS
    known = _mark(first, {s: -1 for s, _ in _shingles(second, width)}, width)
    _mark(second, known, width)
    _mark_figures(a, first, b)
    _mark_figures(b, second, a)
    return list(_pieces(a, first)), list(_pieces(b, second))


def _chunks(text: str, lang: str) -> Iterator[_Chunk]:
    for found in _CHUNK.finditer(text):
        yield _Chunk(found.start(), found.end(), tokenizer.words(found[0], lang))


def _shingles(chunks: Sequence[_Chunk], width: int) -> list[tuple[tuple[str, ...], set[int]]]:
    """Every shingle with the places of the chunks it lies in."""
    words = [(word, place) for place, chunk in enumerate(chunks) for word in chunk.words]
    windows = (words[i : i + width] for i in range(len(words) - width + 1))
    return [(tuple(w for w, _ in window), {p for _, p in window}) for window in windows]


def _mark(chunks: list[_Chunk], known: dict[tuple[str, ...], int], width: int) -> dict[tuple[str, ...], int]:
    """Number the shared runs; a shingle ``known`` under a number gives it on, -1 takes the next one free.

    Returns the shared shingles with the numbers of their runs.
    """
    numbers: dict[tuple[str, ...], int] = {}
    covered_to, number, next_number = -1, 0, 0
    for shingle, places in _shingles(chunks, width):
        if shingle not in known:
            continue
        given = known[shingle]
        if min(places) > covered_to:  # a run begins
            number = given if given >= 0 else next_number
            next_number += 1
        covered_to = max(places)
        for place in range(min(places), covered_to + 1):
            chunks[place].passage = number
        numbers.setdefault(shingle, number)
    return numbers


def _mark_figures(text: str, chunks: list[_Chunk], other: str) -> None:
    there = set(tokenizer.figures(other))
    if not set(tokenizer.figures(text)) - there:
        return
    for chunk in chunks:
        chunk.figure = any(f not in there for f in tokenizer.figures(text[chunk.start : chunk.end]))


def _pieces(text: str, chunks: list[_Chunk]) -> Iterator[Piece]:
    """Chunks of one kind together, with the space between them."""
    at = 0
    for (passage, figure), run in groupby(chunks, key=lambda c: (c.passage, c.figure)):
        members = list(run)
        if members[0].start > at:
            yield Piece(text[at : members[0].start])
        yield Piece(text[members[0].start : members[-1].end], passage, figure)
        at = members[-1].end
    if at < len(text):
        yield Piece(text[at:])


def _mostly_unspaced(text: str) -> bool:
    return 2 * len(_UNSPACED.findall(text)) > len(text)
