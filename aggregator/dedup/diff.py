"""Side-by-side diff of two texts: marks the shared passages and the figures that differ. Pure.

The texts are split into spans that keep every character. A token is shared when it is part of a shingle that
both texts have, of the units and the width that the verdict uses (``analyzer.shingle_width``). A token is a
printed word, a word of the segmenter in Chinese, or a character of another script without spaces. In two
headlines of words a token is shared if both have one of its index terms (``headlines.title_similarity``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise

from aggregator.analysis.analyzer import shingle_width, uses_spaces
from aggregator.analysis.text import tokenizer
from aggregator.analysis.text.decisive import stated_figures
from aggregator.analysis.text.figures import figures, located_figures
from aggregator.analysis.text.normalization import COMBINING_MARKS, UNSPACED_SCRIPTS
from aggregator.analysis.text.spelling import normalize_spelling

MAX_COMPARED_CHARS = 30_000  # only this much of each text is compared and shown: about ten pages
_CHARACTER = rf"[{UNSPACED_SCRIPTS}][{COMBINING_MARKS}]*"
_TOKEN = re.compile(rf"{_CHARACTER}|[^\s{UNSPACED_SCRIPTS}]+")
_RUN = re.compile(rf"(?:{_CHARACTER})+|[^\s{UNSPACED_SCRIPTS}]+")


@dataclass(frozen=True, slots=True)
class DiffSpan:
    """A span, the number of its shared passage (or None), and whether its figure is only in this text."""

    text: str
    passage: int | None = None
    figure: bool = False


@dataclass(slots=True)
class _Token:
    start: int
    end: int
    units: list[str]
    passage: int | None = None
    figure: bool = False


def diff_texts(
    a: str, b: str, lang_a: str, lang_b: str, *, headlines: bool = False
) -> tuple[list[DiffSpan], list[DiffSpan]]:
    """Return both texts as spans that join to the texts, each truncated to ``MAX_COMPARED_CHARS``."""
    a, b = a[:MAX_COMPARED_CHARS], b[:MAX_COMPARED_CHARS]
    first, second = list(_split_tokens(a, lang_a)), list(_split_tokens(b, lang_b))
    known_a, known_b = _known_figures(a, lang_a), _known_figures(b, lang_b)
    words_a, words_b = ({unit for token in tokens for unit in token.units} for tokens in (first, second))
    _mark_figures(first, located_figures(a, lang_a), known_b, words_b if known_a - known_b else words_a)
    _mark_figures(second, located_figures(b, lang_b), known_a, words_a if known_b - known_a else words_b)
    # Both texts must use the same shingle width; articles of different scripts share none anyway.
    by_term = headlines and (lang_a == "zh" or uses_spaces(lang_a))
    sizes = (sum(len(token.units) for token in tokens) for tokens in (first, second))
    width = 1 if by_term else max(1, min(shingle_width(lang_a), *sizes))
    for text, tokens, lang in ((a, first, lang_a), (b, second, lang_b)) if by_term else ():
        for token in tokens:
            token.units = tokenizer.tokenize(text[token.start : token.end], lang)
    passage_of = _mark_passages(first, dict.fromkeys(s for s, _ in _shingles(second, width)), width)
    _mark_passages(second, passage_of, width)
    return list(_spans(a, first)), list(_spans(b, second))


def missing_figures(a: str, b: str, lang_a: str, lang_b: str) -> tuple[list[str], list[str]]:
    """The figures of each of two texts that the other one lacks, also in words, in order."""
    first, second = dict.fromkeys(figures(a, lang_a)), dict.fromkeys(figures(b, lang_b))
    known_a, known_b = _known_figures(a, lang_a), _known_figures(b, lang_b)
    return [f for f in first if f not in known_b], [f for f in second if f not in known_a]


def _known_figures(text: str, lang: str) -> set[str]:
    return {*figures(text, lang), *stated_figures(text, lang)}


def _split_tokens(text: str, lang: str) -> Iterator[_Token]:
    for match in (_RUN if lang == "zh" else _TOKEN).finditer(text):
        units = normalize_spelling(tokenizer.shingle_units(match[0], lang), lang)
        # Normalization may join or replace characters; then the run is one token.
        if lang == "zh" and len("".join(units)) == len(match[0]):
            ends = list(accumulate(map(len, units), initial=match.start()))
            yield from (_Token(*span, [unit]) for span, unit in zip(pairwise(ends), units, strict=True))
        else:
            yield _Token(match.start(), match.end(), units)


def _shingles(tokens: Sequence[_Token], width: int) -> list[tuple[tuple[str, ...], set[int]]]:
    units = [(unit, position) for position, token in enumerate(tokens) for unit in token.units]
    windows = (units[i : i + width] for i in range(len(units) - width + 1))
    return [(tuple(u for u, _ in window), {p for _, p in window}) for window in windows]


def _mark_passages(
    tokens: list[_Token], known_passages: Mapping[tuple[str, ...], int | None], width: int
) -> dict[tuple[str, ...], int]:
    """Number the shared passages of ``tokens``; those without a number get the next one."""
    passage_of: dict[tuple[str, ...], int] = {}
    covered_to, passage, next_passage = -1, 0, 0
    for shingle, positions in _shingles(tokens, width):
        if shingle not in known_passages:
            continue
        known = known_passages[shingle]
        if min(positions) > covered_to:  # a new passage starts
            passage = next_passage if known is None else known
            next_passage += 1
        covered_to = max(positions)
        for position in range(min(positions), covered_to + 1):
            tokens[position].passage = passage
        passage_of.setdefault(shingle, passage)
    return passage_of


def _mark_figures(
    tokens: list[_Token], own: Sequence[tuple[str, int, int]], known: Set[str], words: Set[str]
) -> None:
    """Mark what states a figure that is not ``known``; a number word has no place, but is among ``words``."""
    for token in tokens:
        stated = {figure for figure, start, end in own if start < token.end and token.start < end}
        numbers = {unit for unit in token.units if unit.isdecimal() and unit != "1"} - words
        token.figure = bool(stated - known if stated else numbers - known)


def _spans(text: str, tokens: list[_Token]) -> Iterator[DiffSpan]:
    end = 0
    for (passage, figure), run in groupby(tokens, key=lambda token: (token.passage, token.figure)):
        members = list(run)
        if members[0].start > end:
            yield DiffSpan(text[end : members[0].start])
        yield DiffSpan(text[members[0].start : members[-1].end], passage, figure)
        end = members[-1].end
    if end < len(text):
        yield DiffSpan(text[end:])
