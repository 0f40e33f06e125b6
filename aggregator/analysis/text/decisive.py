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
from itertools import product

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
MAX_REPLACED_WORDS = 3
MIN_CUT_CHARACTERS = 80  # of a headline that a feed cuts, in the middle of a word
MAX_CAPITALIZED = 0.7  # of the words of a headline: above, capitals do not tell names
_FIGURE = re.compile(r"([<>≤≥]?)(?P<sign>-?)([^\d<>≤≥-]{0,20})(?P<number>\d[\d.]*)(%?)")
_WORD = re.compile(r"[^\W_]+")


def decisive_difference(a_title: str, b_title: str, lang: str) -> str:
    """What separates two headlines: "figures", "signs", "negation", "opposite", "names"; "" if nothing does.

    A figure or name that only one of them has separates nothing: a headline may say less.
    """
    a, b = sorted((core_headline(a_title), core_headline(b_title)))
    if len(a) >= MIN_CUT_CHARACTERS and b.startswith(a) and (a[-1] + b[len(a) :][:1]).isalpha():
        return ""  # cut within a word
    if lang in ("zh", "ja"):
        a, b = numerals_in_digits(a), numerals_in_digits(b)
    if _differ(letter_marks(a), letter_marks(b)):
        return "signs"
    first, second = (normalize_spelling(tokenizer.words(title, lang), lang) for title in (a, b))
    if _numbers_differ(first, second) or _marks_differ(figures(a, lang), figures(b, lang)):
        return "figures"
    common = (Counter(first) & Counter(second)).total()
    if not common or common < MIN_COMMON_WORDS * min(len(first), len(second)):
        return ""
    if lang in _UNSEPARATED_LANGUAGES:
        first, second = ["".join(first)], ["".join(second)]
    return reversal(first, second, lang) or ("names" if _names_differ(a, b, lang) else "")


def stated_figures(text: str, lang: str) -> set[str]:
    """The figures of a text, and what its number words say, in digits, without 1, often an article."""
    found, words = figures(text, lang), normalize_spelling(tokenizer.words(text, lang), lang)
    written = {match["number"] for match in map(_FIGURE.fullmatch, found) if match}
    return {*found, *(word for word in words if word.isdecimal() and word not in written)} - {"0", "1"}


def replaced_words(title: str, other: str, lang: str) -> list[str]:
    """The words of a headline for which the other one has others, if they are few and all that differs."""
    a, b = (normalize_spelling(tokenizer.words(core_headline(t), lang), lang) for t in (title, other))
    matcher = SequenceMatcher(None, a[:MAX_ALIGNED_WORDS], b[:MAX_ALIGNED_WORDS], autojunk=False)
    edits = [edit for edit in matcher.get_opcodes() if edit[0] != "equal"]
    if len(edits) != 1 or edits[0][0] != "replace":
        return []
    _, i, i_end, j, j_end = edits[0]
    most = min(MAX_REPLACED_WORDS, len(a) - (i_end - i))
    return a[i:i_end] if max(i_end - i, j_end - j, 2) <= most else []


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
    opposed = bool(first and second) and any(
        (one := _is_any(first, a_side, lang)) != _is_any(first, b_side, lang)
        and _is_any(second, a_side, lang) != one == _is_any(second, b_side, lang)
        for a_side, b_side in _opposites(lang)
    )
    if opposed and (not negated or lang in _UNSEPARATED_LANGUAGES):
        return "opposite"
    return "negation" if negated and not opposed else ""


def _is_any(words: Counter[str], side: tuple[frozenset[str], tuple[str, ...]], lang: str) -> bool:
    """Whether any word is on one side of a pair of opposites: equal, or with a prefix "up*"."""
    listed, prefixes = side
    if lang in _UNSEPARATED_LANGUAGES:
        return any(part in word for word in words for part in listed)
    return not listed.isdisjoint(words) or any(prefixes and word.startswith(prefixes) for word in words)


@lru_cache(maxsize=128)
def _opposites(lang: str) -> list[list[tuple[frozenset[str], tuple[str, ...]]]]:
    pairs = ([without_umlauts(s).split(",") for s in pair.split("|")] for pair in table("opposite", lang))
    return [[(frozenset(s), tuple(w[:-1] for w in s if w[-1] == "*")) for s in sides] for sides in pairs]


def _differ(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether each list has an item that the other lacks."""
    return bool(Counter(a) - Counter(b)) and bool(Counter(b) - Counter(a))


def _numbers_differ(a: Sequence[str], b: Sequence[str]) -> bool:
    """Whether numbers of words in compared spelling differ, or their order between equal words (3-1, 1-3)."""
    first, second = ([word for word in words if word[0].isdigit()] for words in (a, b))
    others = ([word for word in words if not word[0].isdigit()] for words in (a, b))
    return _differ(first, second) or (
        first != second and Counter(a) == Counter(b) and next(others) == next(others)
    )


def _marks_differ(a: Iterable[str], b: Iterable[str]) -> bool:
    """Whether a number of both lists has another sign, or another comparison, currency or percent sign."""
    first, second = ([m for m in map(_FIGURE.fullmatch, own) if m] for own in (a, b))
    fits: dict[str, bool] = {}
    for mine, other in product(first, second):
        if (number := mine["number"]) == other["number"]:
            pairs = zip(mine.groups(), other.groups(), strict=True)
            fits[number] = fits.get(number, False) or (
                mine["sign"] == other["sign"] and all(not x or not y or x == y for x, y in pairs)
            )
    return not all(fits.values())


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
