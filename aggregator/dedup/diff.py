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
from aggregator.analysis.text.normalization import COMBINING_MARKS, UNSPACED_SCRIPTS

# So much of each text is compared and shown: some ten pages.
MAX_COMPARED_CHARS = 30_000
_TOKEN = re.compile(rf"[{UNSPACED_SCRIPTS}][{COMBINING_MARKS}]*|[^\s{UNSPACED_SCRIPTS}]+")
_UNSPACED_CHARACTER = re.compile(f"[{UNSPACED_SCRIPTS}]")


@dataclass(frozen=True, slots=True)
class DiffSpan:
    """A run of a text. ``passage``: number of the shared passage it belongs to (equal in both texts).

    ``figure``: a number that the other text does not have.
    """

    text: str
    passage: int | None = None
    figure: bool = False


@dataclass(slots=True)
class _Token:
    """A word as printed, with what it is compared by."""

    start: int
    end: int
    words: list[str]
    passage: int | None = None
    figure: bool = False


def align(a: str, b: str, lang_a: str, lang_b: str) -> tuple[list[DiffSpan], list[DiffSpan]]:
    """Both texts in pieces; joined they are the texts again (cut at ``MAX_CHARS``)."""
    a, b = a[:MAX_COMPARED_CHARS], b[:MAX_COMPARED_CHARS]
    first, second = list(_split_tokens(a, lang_a)), list(_split_tokens(b, lang_b))
    width = SHINGLE_CHARACTERS if _is_mostly_unspaced(a) else SHINGLE_WORDS
    known = _mark_passages(first, {s: -1 for s, _ in _shingles(second, width)}, width)
    _mark_passages(second, known, width)
    _mark_figures(a, first, b)
    _mark_figures(b, second, a)
    return list(_spans(a, first)), list(_spans(b, second))


def _split_tokens(text: str, lang: str) -> Iterator[_Token]:
    for found in _TOKEN.finditer(text):
        yield _Token(found.start(), found.end(), tokenizer.words(found[0], lang))


def _shingles(tokens_: Sequence[_Token], width: int) -> list[tuple[tuple[str, ...], set[int]]]:
    """Every shingle with the places of the chunks it lies in."""
    words = [(word, place) for place, chunk in enumerate(tokens_) for word in chunk.words]
    windows = (words[i : i + width] for i in range(len(words) - width + 1))
    return [(tuple(w for w, _ in window), {p for _, p in window}) for window in windows]


def _mark_passages(
    tokens_: list[_Token], known_passages: dict[tuple[str, ...], int], width: int
) -> dict[tuple[str, ...], int]:
    """Number the shared runs; a shingle ``known`` under a number gives it on, -1 takes the next one free.

    Returns the shared shingles with the numbers of their runs.
    """
    numbers: dict[tuple[str, ...], int] = {}
    covered_to, number, next_number = -1, 0, 0
    for shingle, places in _shingles(tokens_, width):
        if shingle not in known_passages:
            continue
        given = known_passages[shingle]
        if min(places) > covered_to:  # a run begins
            number = given if given >= 0 else next_number
            next_number += 1
        covered_to = max(places)
        for place in range(min(places), covered_to + 1):
            tokens_[place].passage = number
        numbers.setdefault(shingle, number)
    return numbers


def _mark_figures(text: str, tokens_: list[_Token], other_text: str) -> None:
    there = set(tokenizer.figures(other_text))
    if not set(tokenizer.figures(text)) - there:
        return
    for chunk in tokens_:
        chunk.figure = any(f not in there for f in tokenizer.figures(text[chunk.start : chunk.end]))


def _spans(text: str, tokens_: list[_Token]) -> Iterator[DiffSpan]:
    """Chunks of one kind together, with the space between them."""
    at = 0
    for (passage, figure), run in groupby(tokens_, key=lambda c: (c.passage, c.figure)):
        members = list(run)
        if members[0].start > at:
            yield DiffSpan(text[at : members[0].start])
        yield DiffSpan(text[members[0].start : members[-1].end], passage, figure)
        at = members[-1].end
    if at < len(text):
        yield DiffSpan(text[at:])


def _is_mostly_unspaced(text: str) -> bool:
    return 2 * len(_UNSPACED_CHARACTER.findall(text)) > len(text)
