"""Figures: numbers with sign, comparison, currency and percent sign, each in one spelling. Pure, linear time.

``US$1.2 million``, ``$1,200,000`` and ``1.2 million dollars`` are ``$1200000``, ``minus 12 °C`` is ``-12``.
``3-1`` and ``COVID-19`` have no sign. Words for numbers are not read here.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import xxhash

from aggregator.analysis.text.lexicon import table
from aggregator.analysis.text.normalization import (
    COMBINING_MARKS,
    INVISIBLE,
    UNSPACED_SCRIPTS,
    fold,
    numerals_in_digits,
    unaccented,
)

_RUN = re.compile(
    rf"\d(?:[\d.,\uff0c\uff0e\u066b\u066c{INVISIBLE}]*\d)?(?:[' \u00a0\u2009\u202f\u2019]\d{{3}}(?!\d))*"
)
_DIGITS, _ASCII_DIGITS = re.compile(r"\d\d*"), re.compile("[0-9][0-9]*")  # in 2/3 of the time of "+"
_SEPARATORS = str.maketrans("\u00a0\u2009\u202f\u2019\u066b\u066c", "''''.,")
_WINDOW_BEFORE, _WINDOW_AFTER = 12, 40  # characters that are read around a number
# Languages with a decimal point, and texts of unknown language; in all others it is a comma.
_DECIMAL_POINT = frozenset(["", "en", "zh", "ja", "ko", "th", "he", "hi", "bn", "ta", "te", "ms", "und"])
_GROUPS = r"\d{1,3}(?:'\d{3})+|\d{1,3}(?:,\d{3})+(?!\d)"
_NUMBER = re.compile(
    rf"({_GROUPS}|\d{{1,3}}(?: \d{{3}}){{2,}}|\d{{1,3}}(?:\.\d{{3}}){{2,}}(?!\d)|\d+)(?:\.(\d+))?"
)
_COMMA_NUMBER = re.compile(
    rf"({_GROUPS}|\d{{1,3}}(?: \d{{3}})+|\d{{1,3}}(?:\.\d{{3}})+(?!\d)|\d+)"
    r"(?:(?:,(?=\d\d?(?!,?\d))|\.)(\d+))?"
)
_FIRST_UNSPACED = "\u2e80"  # Han, kana, Hangul
_DASHES = str.maketrans("\u2010\u2011\u2012\u2013\u2212", "-----")

_SYMBOLS = "$€£¥₩₽₹₺₴₪₫฿₦₱₸"
# First characters that may be a mark; full-width forms among them.
_MARKS = frozenset(f"{_SYMBOLS}<>≤≥%٪+-\u2010\u2011\u2012\u2013\u2212\ufe63＋－＄％＜＞﹪￡￥ ")
_COMPARISON = re.compile("([<>≤≥])=? ?$")
_SIGN = re.compile(rf"(?:(?:^|[\s(\[\"'“‘«:/,;|<>≤≥~≈=]|[{_SYMBOLS}{UNSPACED_SCRIPTS}])-|\+)$")
_CURRENCY = re.compile(rf"(?:(?<![^\W\d_])(us|au|ca|nz|hk|nt|[acsr]))?([{_SYMBOLS}]) ?$")
_WORD = re.compile(r"(?:^|[^\w]|\d)([^\W\d_]+)\.? ?$")
_LETTERS = rf"[^\W\d_]+(?:[{COMBINING_MARKS}]+[^\W\d_]*)*"
_UNIT = re.compile(rf"[ -]?([%٪]|[{_SYMBOLS}](?!\d)|{_LETTERS})(?: ({_LETTERS}))?")
_FIRST_WORD = re.compile(r"[ -]?([^\W\d_]+)")
_LINK = re.compile(r"\.? (?:d'|(?:de|di|of) )|\.(?= )")
_TRAILING_MINUS = re.compile(r"-(?=[%٪\s]|$)")
_RIGHT_TO_LEFT = frozenset(["ar", "fa", "he", "ur", "ps"])
# Codes that are no words, so that they count in small letters too.
CURRENCY_CODES = frozenset(["usd", "eur", "gbp", "jpy", "cny", "rmb", "inr", "krw", "pln", "uah", "chf"])
_MARKED_LETTER = re.compile(r"[+#](?<=[^\W\d_].)[+#]*(?!\w)")  # C++, C#, Disney+
MAX_FIGURES = 48  # of an article, those of the headline first
figure_hash = xxhash.xxh32_intdigest
_MAX_HEADLINE_CHARS = 1_000  # in longer texts only a hyphen makes a grade, in 1/7 of the time
_ASCII_GRADE = re.compile(r"-(?<=\b[A-Za-z].)(?!\w)")  # A-
_GRADE = re.compile(r"[-\u2010-\u2013\u2212](?<=\b[A-Za-z].)(?!\w)")


def figures(text: str, lang: str = "") -> list[str]:
    """The numbers of a text in order: comparison, "-", currency, decimal number, "%"; all but it optional.

    ``1,200`` -> ``1200``; ``3.50`` -> ``3.5``; ``007`` -> ``7``; digits of any script and Chinese
    numerals become ASCII. A comma before one or two digits is a decimal point where ``lang`` writes it so.
    """
    if lang in ("zh", "ja"):
        text = numerals_in_digits(text)
    return [figure for figure, _, _ in located_figures(text, lang)]


def located_figures(text: str, lang: str = "") -> list[tuple[str, int, int]]:
    """``figures`` with the start and end of the run of digits in which each is written."""
    found: list[tuple[str, int, int]] = []
    end, cues = 0, _cues(lang)
    for digits in (_ASCII_DIGITS if text.isascii() else _DIGITS).finditer(text):
        start, stop = digits.span()
        if start < end:
            continue
        has_more = not text[stop : stop + 1].isascii() or text[stop + 1 : stop + 2].isdigit()
        run = (has_more and _RUN.match(text, start)) or digits
        end, (*others, number) = run.end(), _numbers(run[0], lang)
        found += [(figure, start, end) for figure in others]
        window = text[max(0, start - _WINDOW_BEFORE) : start]
        before, currency = _marks_before(window, lang) if _may_be_mark(window, cues) else ("", "")
        if currency or _may_be_unit(text, end, cues[1]):
            sign, exponent, unit = _marks_after(text[end : end + _WINDOW_AFTER], lang, currency)
            number, before = shift(number, exponent) if exponent else number, before or sign
            currency = "%" if unit == "%" else currency or unit
        number = f"{before}{number}%" if currency == "%" else f"{before}{currency}{number}"
        found.append((number, start, end))
    return found


def is_marked(figure: str) -> bool:
    """Whether a figure has more than its digits."""
    return not (figure[0].isdigit() and figure[-1].isdigit())


def letter_marks(text: str) -> list[str]:
    """Letters with the sign that belongs to them, in order: ``c++``, ``c#``, ``a-``."""
    patterns = [_GRADE if len(text) < _MAX_HEADLINE_CHARS and not text.isascii() else _ASCII_GRADE]
    patterns += [_MARKED_LETTER] * ("+" in text or "#" in text)
    found = sorted((m.start(), m[0]) for pattern in patterns for m in pattern.finditer(text))
    return [f"{text[start - 1].lower()}{mark.translate(_DASHES)}" for start, mark in found]


def _numbers(run: str, lang: str) -> list[str]:
    """The numbers of a run of digits and separators; at least one."""
    if run.isascii() and run.isdigit():
        return [run.lstrip("0") or "0"]
    if not run.isascii():
        run = fold(run.translate(_SEPARATORS))
        run = "".join(c if c in ".,' " else str(unicodedata.decimal(c)) for c in run)
    numbers = []
    for whole, fraction in (_NUMBER if lang in _DECIMAL_POINT else _COMMA_NUMBER).findall(run):
        digits = "".join(c for c in whole if c.isdigit()) if not whole.isdigit() else whole
        numbers.append(f"{digits.lstrip('0') or '0'}.{fraction.rstrip('0')}".removesuffix("."))
    return numbers


def shift(number: str, exponent: int) -> str:
    """``number`` times a power of ten."""
    whole, _, fraction = number.partition(".")
    digits = whole + fraction.ljust(exponent, "0")
    end = len(whole) + exponent
    return f"{digits[:end].lstrip('0') or '0'}.{digits[end:].rstrip('0')}".removesuffix(".")


def _plain(window: str) -> str:
    return window.lower() if window.isascii() else unaccented(fold(window)).translate(_DASHES)


@lru_cache(maxsize=256)
def _cues(lang: str) -> tuple[frozenset[str], frozenset[str], tuple[str, ...]]:
    """Words that may count in front of a number, and behind one; negative signs of unspaced scripts."""
    minus, unit, scale = table("minus", lang), table("unit", lang), table("scale", lang)
    first_words = {word.partition(" ")[0] for word in unit}
    return (
        frozenset(minus) | {word for word in unit if len(word) <= 3},
        frozenset(first_words | set(scale) | {"us"}),
        tuple(word for word in minus if word[0] >= _FIRST_UNSPACED),
    )


def _may_be_mark(window: str, cues: tuple[frozenset[str], frozenset[str], tuple[str, ...]]) -> bool:
    """Whether the end of ``window`` may be more than a word: nearly never, in 1/10 of the time."""
    last = window[-1:]
    if last == " ":
        return not window[-2:-1].isalnum() or _plain(window[:-1].rpartition(" ")[2]) in cues[0]
    if last >= _FIRST_UNSPACED and last.isalpha():
        return window.endswith(cues[2])
    return last != "" and last in _MARKS


def _may_be_unit(text: str, start: int, known: frozenset[str]) -> bool:
    """Whether a unit may be at ``start``, as ``_may_be_mark``."""
    found = _FIRST_WORD.match(text, start)
    if not found:
        return text[start : start + 1] in _MARKS
    word = found[1]
    if word[0] >= _FIRST_UNSPACED:
        return not known.isdisjoint((word[:1], word[:2], word[:3], word[:4]))
    return _plain(word) in known or not text[found.end() : found.end() + 1].isascii()


@lru_cache(maxsize=4096)
def _marks_before(window: str, lang: str) -> tuple[str, str]:
    """Comparison and sign in front of a number, and its currency ("%" where it is written in front)."""
    rest, sign, currency = _plain(window), "", ""
    while True:
        if not sign and _SIGN.search(rest):
            sign, rest = rest[-1], rest[:-1]
        elif not currency and (found := _CURRENCY.search(rest)):
            currency = found[2] if found[1] in (None, "us") else f"{found[1]}{found[2]}"
            rest = rest[: found.start()]
        elif rest[-1:] in ("%", "٪") and not currency and not rest[-2:-1].isdigit():
            currency, rest = "%", rest[:-1]
        elif not (found := _WORD.search(rest)):
            break
        elif not sign and (found[1] in table("minus", lang) or found[1].endswith(_cues(lang)[2])):
            sign, rest = "-", rest[: found.start(1)]
        elif (
            not currency
            and found[1] in table("unit", lang)
            and (found[1] in CURRENCY_CODES or window[found.start(1) :][:1].isupper())
        ):
            currency, rest = table("unit", lang)[found[1]], rest[: found.start(1)]
        else:
            break
    comparison = _COMPARISON.search(rest)
    return (comparison[1] if comparison else "") + sign.removeprefix("+"), currency


def _marks_after(window: str, lang: str, currency: str) -> tuple[str, int, str]:
    """Sign, power of ten and unit behind a number."""
    rest, sign, exponent = _plain(window), "", 0
    if lang in _RIGHT_TO_LEFT and _TRAILING_MINUS.match(rest):
        rest, sign = rest[1:], "-"
    while (found := _UNIT.match(rest)) and exponent < 12:
        scale = _scale(
            found[1], "en" if currency and len(found[1]) <= 2 else lang, found[0][0] != " " or currency
        )
        if not scale:
            break
        exponent += scale
        rest = rest[found.start(1) + 1 if found[1][0] >= _FIRST_UNSPACED else found.end(1) :]
        link = _LINK.match(rest)
        rest = rest[link.end() if link else 0 :]
    if not found:
        return sign, exponent, ""
    units, (word, following) = table("unit", lang), found.groups()
    if not word[0].isalpha():
        return sign, exponent, "%" if word in "%٪" else word
    if word[0] >= _FIRST_UNSPACED:
        return sign, exponent, next((units[word[:n]] for n in (4, 3, 2, 1) if word[:n] in units), "")
    if word == "us" and following:
        word = following
    return sign, exponent, units.get(word) or units.get(f"{word} {following}", "")


def _scale(word: str, lang: str, may_be_letter: object) -> int:
    """The power of ten of a word, or 0; "m" is one only if ``may_be_letter``: 5 m are five metres."""
    if word[0] >= _FIRST_UNSPACED:
        word = word[0]
    return 0 if word == "m" and not may_be_letter else int(table("scale", lang).get(word, 0))
