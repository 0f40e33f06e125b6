"""Decisive differences: what separates two headlines or nearly equal texts, however few words it is. Pure.

Another figure, a negation, a word exchanged for its opposite, another name, other signs of a letter (C++,
C#). Spelling, number words and house style make no difference.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import lru_cache

from aggregator.analysis.text import tokenizer
from aggregator.analysis.text.figures import figures, letter_marks
from aggregator.analysis.text.lexicon import table
from aggregator.analysis.text.names import same_name
from aggregator.analysis.text.normalization import core_headline, fold, numerals_in_digits
from aggregator.analysis.text.spelling import normalize_spelling, without_umlauts

MIN_COMMON_WORDS = 0.5  # of the shorter headline: below, no single word is decisive
# Parts of words count as words, since nothing or not every word is separated.
_UNSEPARATED_LANGUAGES = frozenset(["zh", "ja", "ko", "th"])
_CAPITALIZED_NOUNS = frozenset(["de", "lb"])
MAX_ALIGNED_WORDS = 60
MAX_CAPITALIZED = 0.7  # of the words of a headline: above, capitals do not tell names
_FIGURE = re.compile(r"([<>≤≥]?)(-?)([^\d<>≤≥-]*)([\d.]+)(%?)")
_WORD = re.compile(r"[^\W_]+")


def decisive_difference(a_title: str, b_title: str, lang: str) -> str:
    """What separates two headlines: "figures", "signs", "negation", "opposite", "names"; "" if nothing does.

    A figure or name that only one of them has separates nothing: a headline may say less.
    """
    a, b = sorted((core_headline(a_title), core_headline(b_title)))
    if lang in ("zh", "ja"):
        a, b = numerals_in_digits(a), numerals_in_digits(b)
    if _differ(letter_marks(a), letter_marks(b)):
        return "signs"
    first, second = (normalize_spelling(tokenizer.words(title, lang), lang) for title in (a, b))
    if _figures_differ(first, second) or _marks_differ(figures(a, lang), figures(b, lang)):
        return "figures"
    common = (Counter(first) & Counter(second)).total()
    if common < MIN_COMMON_WORDS * min(len(first), len(second)):
        return ""
    if lang in _UNSEPARATED_LANGUAGES:
        first, second = ["".join(first)], ["".join(second)]
    found = reversal(first, second, lang)
    return found or ("names" if _names_differ(a, b, lang) else "")


def reversal(a: Sequence[str], b: Sequence[str], lang: str) -> str:
    """Return "opposite" if a word was exchanged for its opposite, "negation" if one was added; else "".

    ``a`` and ``b``: words in compared spelling, or in languages that do not separate them one joined text.
    Both at once are no reversal: "not guilty" and "innocent".
    """
    first, second = Counter(a) - Counter(b), Counter(b) - Counter(a)
    negations = {without_umlauts(word) for word in table("negation", lang)}
    if lang in _UNSEPARATED_LANGUAGES:
        counts = [sum(text.count(word) for text in own for word in negations) for own in (first, second)]
    else:
        counts = [sum(n for word, n in own.items() if word in negations) for own in (first, second)]
    negated = counts[0] != counts[1]
    opposed = any(
        (left(first) and right(second) and not (left(second) or right(first)))
        or (left(second) and right(first) and not (left(first) or right(second)))
        for left, right in _opposites(lang)
    )
    if opposed and (not negated or lang in _UNSEPARATED_LANGUAGES):
        return "opposite"
    return "negation" if negated and not opposed else ""


class _Side:
    """One side of a pair of opposites; a call returns whether any of some words is on it."""

    def __init__(self, words: str, lang: str) -> None:
        listed = [without_umlauts(word) for word in words.split(",")]
        self._parts = listed if lang in _UNSEPARATED_LANGUAGES else []
        self._words = frozenset(listed)
        self._prefixes = tuple(word[:-1] for word in listed if word.endswith("*"))

    def __call__(self, words: Iterable[str]) -> bool:
        return any(
            word in self._words
            or word.startswith(self._prefixes)
            or any(part in word for part in self._parts)
            for word in words
        )


@lru_cache(maxsize=128)
def _opposites(lang: str) -> list[tuple[_Side, _Side]]:
    pairs = (pair.partition("|") for pair in table("opposite", lang))
    return [(_Side(left, lang), _Side(right, lang)) for left, _, right in pairs]


def _differ(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether each list has an item that the other lacks."""
    return bool(Counter(a) - Counter(b)) and bool(Counter(b) - Counter(a))


def _figures_differ(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether numbers of words in compared spelling differ, or their order between equal words (3-1, 1-3)."""
    first, second = [w for w in a if w[0].isdigit()], [w for w in b if w[0].isdigit()]
    reordered = first != second and len(a) == len(b) and Counter(a) == Counter(b)
    return _differ(first, second) or (
        reordered and [w for w in a if w not in first] == [w for w in b if w not in second]
    )


def _marks_differ(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether a number of both lists has another sign, or another comparison, currency or percent sign."""
    first, second = _marks_by_number(a), _marks_by_number(b)
    return any(
        not any(
            mine[1] == other[1] and all(x == y or not x or not y for x, y in zip(mine, other, strict=True))
            for mine in first[number]
            for other in second[number]
        )
        for number in first.keys() & second.keys()
    )


def _marks_by_number(found: Sequence[str]) -> dict[str, list[tuple[str, ...]]]:
    by_number: dict[str, list[tuple[str, ...]]] = {}
    for match in map(_FIGURE.fullmatch, found):
        if match:
            by_number.setdefault(match[4], []).append((match[1], match[2], match[3], match[5]))
    return by_number


def _names_differ(a: str, b: str, lang: str) -> bool:
    """Whether a capitalized word in the middle of ``a`` stands where ``b`` has another name."""
    first, second = _WORD.findall(a)[:MAX_ALIGNED_WORDS], _WORD.findall(b)[:MAX_ALIGNED_WORDS]
    if lang in _CAPITALIZED_NOUNS or any(
        sum(word[0].isupper() for word in words) > MAX_CAPITALIZED * len(words) for words in (first, second)
    ):
        return False
    lower = [fold(word) for word in first], [fold(word) for word in second]
    return any(
        first[i][0].isupper() and second[j][0].isupper() and i and j and not same_name(first[i], second[j])
        for tag, i1, i2, j1, j2 in SequenceMatcher(None, *lower, autojunk=False).get_opcodes()
        if tag == "replace" and i2 - i1 == j2 - j1
        for i, j in zip(range(i1, i2), range(j1, j2), strict=True)
    )
