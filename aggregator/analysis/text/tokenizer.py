"""What are the words of a text? Index terms for TF-IDF, plain words for shingles, figures for updates.

A **piece** is either a word (a run of letters, marks and digits; hyphens, underscores and all
punctuation separate) or a run of a script that writes without spaces (Han, Kana, Thai, Lao, Myanmar,
Khmer). Pieces of both kinds mix freely in one text.

``RECIPE`` names this version and is part of every model's hash. Bump its number whenever any input gives
other tokens, words or normal forms than before (a golden test fails then): stored fingerprints and
shingles are comparable only within one recipe. What the languages without a model of their own write in two ways
is named beside it (``recipe_of``, ``spelling.FORM``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from aggregator.analysis.text.chinese import DICTIONARY_RANGE, cutter, simplified
from aggregator.analysis.text.normalization import (
    INVISIBLE,
    MARKS,
    TYPOGRAPHIC,
    UNSPACED,
    fold,
    gaps_but_for,
    normalise,
    plain,
)
from aggregator.analysis.text.orthography import FORM, OWN, compared, plain_letters
from aggregator.analysis.text.stemming import stemmer

__all__ = [
    "MAX_WORD_CHARS",
    "RECIPE",
    "cut",
    "figures",
    "normalise",
    "recipe_of",
    "stop_words",
    "terms_of",
    "tokenize",
    "words",
]

RECIPE = "tokens/1 nfkc-casefold jieba-hmm bigrams snowball stopwordsiso"
MAX_WORD_CHARS = 40

# stopwordsiso gathered its lists from the web at large; these of its English entries carry news.
_ENGLISH_NEWS = "bill billion computer fire microsoft million netscape novel research shell trillion uk"
_KEPT = {"en": frozenset(_ENGLISH_NEWS.split())}
_SINGLES = frozenset("0123456789abcdefghijklmnopqrstuvwxyz")

_WORD = f"[^\\W_{UNSPACED}]"
_ASCII_PIECE = "[0-9a-z]+"
_LETTER_PIECE = "[^\\W_]+"
_ANY_PIECE = f"{_WORD}+(?:[{MARKS}]+{_WORD}*)*|(?:[{UNSPACED}][{MARKS}]*)+"
# These are what nltk's RegexpTokenizer would be given; it runs them on another engine, four times slower
# and under a wall-clock limit, so the same text could one day give other words.
_PIECES = {pattern: re.compile(pattern) for pattern in (_ASCII_PIECE, _LETTER_PIECE, _ANY_PIECE)}

# Outside these blocks (Latin, Greek, Cyrillic, Armenian, punctuation, Hangul) there may be marks or runs
# without spaces. Few ranges, since this looks at every character.
_BEYOND_LETTERS = re.compile(
    "[^\x00-\u02ff\u0370-\u0482\u048a-\u058f\u1e00-\u20cf\u2100-\u2bff\uac00-\ud7a3]"
)
_UNSPACED = re.compile(f"[{UNSPACED}]")
_CHARACTER = re.compile(f"[{UNSPACED}][{MARKS}]*")
_CHINESE_OR_OTHER = re.compile(f"[{DICTIONARY_RANGE}]+|[^{DICTIONARY_RANGE}]+")
_CHINESE = re.compile(f"[{DICTIONARY_RANGE}]")
_ALL_CHINESE = re.compile(f"[{DICTIONARY_RANGE}]+").fullmatch
# Not after four digits: "in 2020, 300 people" may lose its space, and a full-width comma has none.
_THOUSANDS_COMMA = re.compile(r",(?<=\d,)(?<!\d{4},)(?=\d{3}(?!\d))")
_ENGLISH_CLITIC = re.compile(r"'(?:s|ll|ve|re|d|m)\b")
_PIECES_ALONE = gaps_but_for(_ASCII_PIECE)

_SEPARATORS = f".,\uff0c\uff0e{INVISIBLE}"
_DIGITS_AND_SEPARATORS = re.compile(rf"\d[\d{_SEPARATORS}]*")
_NUMBERS_ALONE = gaps_but_for(rf"[\d{_SEPARATORS}]")
_NOT_FIRST = bytes(code for code in range(128) if re.match(f"[{_SEPARATORS}]", chr(code)))
_FIGURE = re.compile(r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d{1,3}(?:\.\d{3}){2,}(?!\d)|\d+(?:\.\d+)?")


def recipe_of(group: str) -> str:
    """The recipe of the texts of a language group (``language.group_of``)."""
    return RECIPE if group in OWN else f"{RECIPE} {FORM}"


def words(text: str, lang: str) -> list[str]:
    """Every normalised word in order, for shingles: no stop words removed, nothing stemmed.

    Scripts without spaces give one item per character (with its combining marks), inside a text of any
    language. English clitics and apostrophes go (``Trump's`` -> ``trump``, ``can't`` -> ``cant``); in
    other languages an apostrophe separates (``l'eau`` -> ``l``, ``eau``). Words end at 40 characters.
    """
    return _words_in(*_pieces(text, lang))


def tokenize(text: str, lang: str) -> list[str]:
    """Index terms in order: normalised words without stop words, stemmed where Snowball has the language.

    Chinese (``lang`` zh) gives jieba's words; any other run without spaces gives its overlapping pairs
    of characters, since there is no segmenter for it. Numbers are terms (737, 2016; ``1,200`` as 1200,
    other separators separate), single ASCII letters and digits are not.
    """
    return _terms_in(*_pieces(text, lang), lang)


def cut(text: str, lang: str) -> tuple[list[str], list[str] | None]:
    """``words`` and ``tokenize`` of one text, folded and cut once; None for terms that are ``terms_of`` the words.

    Line by line they are the same: a headline's, then its text's, are those of both together.
    """
    found, mixed = _pieces(text, lang)
    return _words_in(found, mixed), _terms_in(found, mixed, lang) if mixed else None


def terms_of(words: Sequence[str], lang: str) -> list[str]:
    """The index terms of words that stand between spaces, in order; a stop word has none."""
    stop, stem = stop_words(lang), stemmer(lang)
    kept = [word for word in words if word not in stop]
    return kept if stem is None else list(map(stem, kept))


def figures(text: str) -> list[str]:
    """The numbers of a text in order, each in one spelling, to see which figures an update changed.

    ``1,200`` -> ``1200``; ``3.50`` -> ``3.5``; ``007`` -> ``7``; decimal digits of any script become
    ASCII, full-width separators plain, and what cannot be seen inside a number leaves it. A space separates
    numbers. Signs, units, spelt-out and Chinese numerals are out of scope.
    """
    return [_plain_figure(found) for run in _runs_of_digits(plain(text)) for found in _FIGURE.findall(run)]


@lru_cache(maxsize=256)
def stop_words(lang: str) -> frozenset[str]:
    """Stop words of a language as ``words`` spells them (stopwordsiso), and single ASCII letters and digits."""
    import stopwordsiso  # reads 0.5 MB of JSON, so only when the first text comes

    entries = stopwordsiso.stopwords(lang)
    listed = {normalise(entry) for entry in entries}
    listed.update(word for entry in entries if not _UNSPACED.search(entry) for word in words(entry, lang))
    if lang == "de":
        listed |= set(compared(sorted(listed), lang))
    return frozenset(listed - _KEPT.get(lang, frozenset())) | _SINGLES


def _prepare(text: str, lang: str) -> tuple[str, str]:
    """The folded text and the cheapest pattern that finds its pieces (of three, 1 : 2 : 6 in time)."""
    folded = _THOUSANDS_COMMA.sub("", fold(plain(text)))
    if lang == "zh":
        folded = simplified(folded)
    if lang == "en" and "'" in folded:
        folded = _ENGLISH_CLITIC.sub("", folded).replace("'", "")
    if lang not in OWN:
        folded = plain_letters(folded)
    if not folded.isascii():
        for mark in TYPOGRAPHIC:
            folded = folded.replace(mark, " ")
    if folded.isascii():
        return folded, _ASCII_PIECE
    return folded, _ANY_PIECE if _BEYOND_LETTERS.search(folded) else _LETTER_PIECE


def _pieces(text: str, lang: str) -> tuple[list[str], bool]:
    """The pieces of a text, none longer than a word may be if all are words; whether there are others."""
    prepared, pattern = _prepare(text, lang)
    if pattern is _ASCII_PIECE:  # what ``findall`` gives, in half the time
        return _shortened(prepared.encode("ascii").translate(_PIECES_ALONE).decode("ascii").split()), False
    found = _PIECES[pattern].findall(prepared)
    return (found, True) if pattern is _ANY_PIECE else (_shortened(found), False)


def _words_in(pieces: list[str], mixed: bool) -> list[str]:
    return [word for piece in pieces for word in _words_of(piece)] if mixed else pieces


def _terms_in(pieces: list[str], mixed: bool, lang: str) -> list[str]:
    """Terms of pieces, stop words removed."""
    if not mixed:
        return terms_of(pieces, lang)
    stop, stem = stop_words(lang), stemmer(lang)
    terms: list[str] = []
    for piece in pieces:
        if _UNSPACED.match(piece):
            run = _chinese_terms(piece) if lang == "zh" else _pairs(piece)
            terms += [term for term in run if term not in stop]
        elif (word := piece[:MAX_WORD_CHARS]) not in stop:
            terms.append(stem(word) if stem else word)
    return terms


def _shortened(found: list[str]) -> list[str]:
    if max(map(len, found), default=0) <= MAX_WORD_CHARS:
        return found
    return [word[:MAX_WORD_CHARS] for word in found]


def _words_of(piece: str) -> Iterable[str]:
    if not _UNSPACED.match(piece):
        return (piece[:MAX_WORD_CHARS],)
    # Without marks each character stands alone, and iterating the string is far faster.
    return piece if piece.isalpha() else _CHARACTER.findall(piece)


def _chinese_terms(run: str) -> list[str]:
    """jieba's words where its dictionary reaches, pairs of characters elsewhere (kana, rare ideographs)."""
    cut = cutter()
    if _ALL_CHINESE(run):
        return cut(run)
    parts = _CHINESE_OR_OTHER.findall(run)
    return [term for part in parts for term in (cut(part) if _CHINESE.match(part) else _pairs(part))]


def _pairs(run: str) -> list[str]:
    """Overlapping pairs of characters: ABCD -> AB, BC, CD; a single one stays itself."""
    characters = _CHARACTER.findall(run)
    if len(characters) < 2:
        return characters
    return [first + second for first, second in pairwise(characters)]


def _runs_of_digits(text: str) -> list[str]:
    """Digits, and what may separate them, in one piece each; a digit is first."""
    if not text.isascii():
        return [run if run.isascii() else fold(run) for run in _DIGITS_AND_SEPARATORS.findall(text)]
    parts = text.encode("ascii").translate(_NUMBERS_ALONE).split()  # as above, in a third of the time
    return [run.decode("ascii") for part in parts if (run := part.lstrip(_NOT_FIRST))]


def _plain_figure(found: str) -> str:
    if not found.isascii():
        found = "".join(c if c in ".," else str(unicodedata.decimal(c)) for c in found)
    found = found.replace(",", "")
    if found.count(".") > 1:
        found = found.replace(".", "")
    whole, _, fraction = found.partition(".")
    whole = whole.lstrip("0") or "0"
    fraction = fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole
