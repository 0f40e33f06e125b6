"""Side-by-side diff of two texts: marks the shared passages and the figures that differ. Pure.

The texts are split into spans that keep every character. A token is shared when it is part of a shingle that
both texts have (``shingles.py``: 3 words, or 5 characters of a script without spaces).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from aggregator.analysis.shingles import SHINGLE_CHARACTERS, SHINGLE_WORDS
from aggregator.analysis.text import tokenizer
from aggregator.analysis.text.figures import figures
from aggregator.analysis.text.normalization import COMBINING_MARKS, UNSPACED_SCRIPTS

# Only this much of each text is compared and shown: about ten pages.
MAX_COMPARED_CHARS = 30_000
UNNUMBERED = -1  # passage number of a shingle of the other text that is in no passage yet
_TOKEN = re.compile(rf"[{UNSPACED_SCRIPTS}][{COMBINING_MARKS}]*|[^\s{UNSPACED_SCRIPTS}]+")
_UNSPACED_CHARACTER = re.compile(f"[{UNSPACED_SCRIPTS}]")


@dataclass(frozen=True, slots=True)
class DiffSpan:
    """A span of a text.

    ``passage``: number of the shared passage that it belongs to, equal in both texts, or None.
    ``figure``: whether it has a figure (a number) that the other text lacks.
    """

    text: str
    passage: int | None = None
    figure: bool = False


@dataclass(slots=True)
class _Token:
    """A printed word (positions ``start`` to ``end``) and its normalized ``words``, which are compared."""

    start: int
    end: int
    words: list[str]
    passage: int | None = None
    figure: bool = False


def diff_texts(a: str, b: str, lang_a: str, lang_b: str) -> tuple[list[DiffSpan], list[DiffSpan]]:
    """Return both texts as spans that join to the texts, each truncated to ``MAX_COMPARED_CHARS``."""
    a, b = a[:MAX_COMPARED_CHARS], b[:MAX_COMPARED_CHARS]
    first, second = list(_split_tokens(a, lang_a)), list(_split_tokens(b, lang_b))
    # Both texts must use the same shingle width; articles of different scripts share none anyway.
    width = SHINGLE_CHARACTERS if _is_mostly_unspaced(a) else SHINGLE_WORDS
    passage_of = _mark_passages(first, {s: UNNUMBERED for s, _ in _shingles(second, width)}, width)
    _mark_passages(second, passage_of, width)
    _mark_figures(a, first, b)
    _mark_figures(b, second, a)
    return list(_spans(a, first)), list(_spans(b, second))


def _split_tokens(text: str, lang: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        yield _Token(match.start(), match.end(), tokenizer.words(match[0], lang))


def _shingles(tokens: Sequence[_Token], width: int) -> list[tuple[tuple[str, ...], set[int]]]:
    """Return every shingle with the positions of the tokens that it covers."""
    words = [(word, position) for position, token in enumerate(tokens) for word in token.words]
    windows = (words[i : i + width] for i in range(len(words) - width + 1))
    return [(tuple(w for w, _ in window), {p for _, p in window}) for window in windows]


def _mark_passages(
    tokens: list[_Token], known_passages: dict[tuple[str, ...], int], width: int
) -> dict[tuple[str, ...], int]:
    """Number the shared passages of ``tokens``; return the shared shingles with their passage numbers.

    ``known_passages`` maps the shingles of the other text to their passage numbers; UNNUMBERED ones get
    the next free number.
    """
    passage_of: dict[tuple[str, ...], int] = {}
    covered_to, passage, next_passage = -1, 0, 0
    for shingle, positions in _shingles(tokens, width):
        if shingle not in known_passages:
            continue
        known = known_passages[shingle]
        if min(positions) > covered_to:  # a new passage starts
            passage = next_passage if known == UNNUMBERED else known
            next_passage += 1
        covered_to = max(positions)
        for position in range(min(positions), covered_to + 1):
            tokens[position].passage = passage
        passage_of.setdefault(shingle, passage)
    return passage_of


def _mark_figures(text: str, tokens: list[_Token], other_text: str) -> None:
    other_figures = set(figures(other_text))
    if not set(figures(text)) - other_figures:
        return
    for token in tokens:
        token.figure = any(f not in other_figures for f in figures(text[token.start : token.end]))


def _spans(text: str, tokens: list[_Token]) -> Iterator[DiffSpan]:
    """Yield runs of tokens with equal marks as one span each, and the text between such runs."""
    end = 0
    for (passage, figure), run in groupby(tokens, key=lambda token: (token.passage, token.figure)):
        members = list(run)
        if members[0].start > end:
            yield DiffSpan(text[end : members[0].start])
        yield DiffSpan(text[members[0].start : members[-1].end], passage, figure)
        end = members[-1].end
    if end < len(text):
        yield DiffSpan(text[end:])


def _is_mostly_unspaced(text: str) -> bool:
    return 2 * len(_UNSPACED_CHARACTER.findall(text)) > len(text)
