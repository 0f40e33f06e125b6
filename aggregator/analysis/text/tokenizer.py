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

from aggregator.analysis.text.chinese import DICTIONARY_RANGE, segmenter, to_simplified
from aggregator.analysis.text.normalization import (
    COMBINING_MARKS,
    INVISIBLE,
    TYPOGRAPHIC_PUNCTUATION,
    UNSPACED_SCRIPTS,
    ascii_if_equivalent,
    blanking_table,
    fold,
    normalize,
)
from aggregator.analysis.text.orthography import (
    MODEL_LANGUAGES,
    ORTHOGRAPHY_VERSION,
    normalize_letters,
    normalize_spelling,
)
from aggregator.analysis.text.stemming import stemmer

__all__ = [
    "MAX_WORD_CHARS",
    "TOKENIZER_RECIPE",
    "figures",
    "normalize",
    "split_words_and_terms",
    "stop_words",
    "terms_of_words",
    "tokenize",
    "tokenizer_recipe",
    "words",
]

TOKENIZER_RECIPE = "tokens/1 nfkc-casefold jieba-hmm bigrams snowball stopwordsiso"
MAX_WORD_CHARS = 40

# stopwordsiso gathered its lists from the web at large; these of its English entries carry news.
_ENGLISH_NEWS_WORDS = "bill billion computer fire microsoft million netscape novel research shell trillion uk"
_STOP_WORD_EXCEPTIONS = {"en": frozenset(_ENGLISH_NEWS_WORDS.split())}
_SINGLE_CHARACTERS = frozenset("0123456789abcdefghijklmnopqrstuvwxyz")

_WORD = f"[^\\W_{UNSPACED_SCRIPTS}]"
_ASCII_PIECE = "[0-9a-z]+"
_LETTER_PIECE = "[^\\W_]+"
_ANY_PIECE = f"{_WORD}+(?:[{COMBINING_MARKS}]+{_WORD}*)*|(?:[{UNSPACED_SCRIPTS}][{COMBINING_MARKS}]*)+"
# These are what nltk's RegexpTokenizer would be given; it runs them on another engine, four times slower
# and under a wall-clock limit, so the same text could one day give other words.
_PIECE_PATTERNS = {pattern: re.compile(pattern) for pattern in (_ASCII_PIECE, _LETTER_PIECE, _ANY_PIECE)}

# Outside these blocks (Latin, Greek, Cyrillic, Armenian, punctuation, Hangul) there may be marks or runs
# without spaces. Few ranges, since this looks at every character.
_MARK_OR_UNSPACED = re.compile(
    "[^\x00-\u02ff\u0370-\u0482\u048a-\u058f\u1e00-\u20cf\u2100-\u2bff\uac00-\ud7a3]"
)
_UNSPACED = re.compile(f"[{UNSPACED_SCRIPTS}]")
_CHARACTER_WITH_MARKS = re.compile(f"[{UNSPACED_SCRIPTS}][{COMBINING_MARKS}]*")
_CHINESE_OR_OTHER = re.compile(f"[{DICTIONARY_RANGE}]+|[^{DICTIONARY_RANGE}]+")
_CHINESE = re.compile(f"[{DICTIONARY_RANGE}]")
_ALL_CHINESE = re.compile(f"[{DICTIONARY_RANGE}]+").fullmatch
# Not after four digits: "in 2020, 300 people" may lose its space, and a full-width comma has none.
_THOUSANDS_COMMA = re.compile(r",(?<=\d,)(?<!\d{4},)(?=\d{3}(?!\d))")
_ENGLISH_CLITIC = re.compile(r"'(?:s|ll|ve|re|d|m)\b")
_NON_PIECE_BLANKING_TABLE = blanking_table(_ASCII_PIECE)

_SEPARATORS = f".,\uff0c\uff0e{INVISIBLE}"
_DIGITS_AND_SEPARATORS = re.compile(rf"\d[\d{_SEPARATORS}]*")
_NON_NUMBER_BLANKING_TABLE = blanking_table(rf"[\d{_SEPARATORS}]")
_ASCII_SEPARATORS = bytes(code for code in range(128) if re.match(f"[{_SEPARATORS}]", chr(code)))
_FIGURE = re.compile(r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d{1,3}(?:\.\d{3}){2,}(?!\d)|\d+(?:\.\d+)?")


def tokenizer_recipe(group: str) -> str:
    """The recipe of the texts of a language group (``language.group_of``)."""
    return TOKENIZER_RECIPE if group in MODEL_LANGUAGES else f"{TOKENIZER_RECIPE} {ORTHOGRAPHY_VERSION}"


def words(text: str, lang: str) -> list[str]:
    """Every normalised word in order, for shingles: no stop words removed, nothing stemmed.

    Scripts without spaces give one item per character (with its combining marks), inside a text of any
    language. English clitics and apostrophes go (``Trump's`` -> ``trump``, ``can't`` -> ``cant``); in
    other languages an apostrophe separates (``l'eau`` -> ``l``, ``eau``). Words end at 40 characters.
    """
    return _words_of_pieces(*_split_pieces(text, lang))


def tokenize(text: str, lang: str) -> list[str]:
    """Index terms in order: normalised words without stop words, stemmed where Snowball has the language.

    Chinese (``lang`` zh) gives jieba's words; any other run without spaces gives its overlapping pairs
    of characters, since there is no segmenter for it. Numbers are terms (737, 2016; ``1,200`` as 1200,
    other separators separate), single ASCII letters and digits are not.
    """
    return _terms_of_pieces(*_split_pieces(text, lang), lang)


def split_words_and_terms(text: str, lang: str) -> tuple[list[str], list[str] | None]:
    """``words`` and ``tokenize`` of one text, folded and cut once; None for terms that are ``terms_of`` the words.

    Line by line they are the same: a headline's, then its text's, are those of both together.
    """
    found, mixed = _split_pieces(text, lang)
    return _words_of_pieces(found, mixed), _terms_of_pieces(found, mixed, lang) if mixed else None


def terms_of_words(words: Sequence[str], lang: str) -> list[str]:
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
    return [
        _normalize_figure(found)
        for run in _digit_runs(ascii_if_equivalent(text))
        for found in _FIGURE.findall(run)
    ]


@lru_cache(maxsize=256)
def stop_words(lang: str) -> frozenset[str]:
    """Stop words of a language as ``words`` spells them (stopwordsiso), and single ASCII letters and digits."""
    import stopwordsiso  # reads 0.5 MB of JSON, so only when the first text comes

    entries = stopwordsiso.stopwords(lang)
    listed = {normalize(entry) for entry in entries}
    listed.update(word for entry in entries if not _UNSPACED.search(entry) for word in words(entry, lang))
    if lang == "de":
        listed |= set(normalize_spelling(sorted(listed), lang))
    return frozenset(listed - _STOP_WORD_EXCEPTIONS.get(lang, frozenset())) | _SINGLE_CHARACTERS


def _prepare(text: str, lang: str) -> tuple[str, str]:
    """The folded text and the cheapest pattern that finds its pieces (of three, 1 : 2 : 6 in time)."""
    folded = _THOUSANDS_COMMA.sub("", fold(ascii_if_equivalent(text)))
    if lang == "zh":
        folded = to_simplified(folded)
    if lang == "en" and "'" in folded:
        folded = _ENGLISH_CLITIC.sub("", folded).replace("'", "")
    if lang not in MODEL_LANGUAGES:
        folded = normalize_letters(folded)
    if not folded.isascii():
        for mark in TYPOGRAPHIC_PUNCTUATION:
            folded = folded.replace(mark, " ")
    if folded.isascii():
        return folded, _ASCII_PIECE
    return folded, _ANY_PIECE if _MARK_OR_UNSPACED.search(folded) else _LETTER_PIECE


def _split_pieces(text: str, lang: str) -> tuple[list[str], bool]:
    """The pieces of a text, none longer than a word may be if all are words; whether there are others."""
    prepared, pattern = _prepare(text, lang)
    if pattern is _ASCII_PIECE:  # what ``findall`` gives, in half the time
        return _truncate_words(
            prepared.encode("ascii").translate(_NON_PIECE_BLANKING_TABLE).decode("ascii").split()
        ), False
    found = _PIECE_PATTERNS[pattern].findall(prepared)
    return (found, True) if pattern is _ANY_PIECE else (_truncate_words(found), False)


def _words_of_pieces(pieces: list[str], mixed: bool) -> list[str]:
    return [word for piece in pieces for word in _words_of_piece(piece)] if mixed else pieces


def _terms_of_pieces(pieces: list[str], mixed: bool, lang: str) -> list[str]:
    """Terms of pieces, stop words removed."""
    if not mixed:
        return terms_of_words(pieces, lang)
    stop, stem = stop_words(lang), stemmer(lang)
    terms: list[str] = []
    for piece in pieces:
        if _UNSPACED.match(piece):
            run = _chinese_terms(piece) if lang == "zh" else _character_bigrams(piece)
            terms += [term for term in run if term not in stop]
        elif (word := piece[:MAX_WORD_CHARS]) not in stop:
            terms.append(stem(word) if stem else word)
    return terms


def _truncate_words(words: list[str]) -> list[str]:
    if max(map(len, words), default=0) <= MAX_WORD_CHARS:
        return words
    return [word[:MAX_WORD_CHARS] for word in words]


def _words_of_piece(piece: str) -> Iterable[str]:
    if not _UNSPACED.match(piece):
        return (piece[:MAX_WORD_CHARS],)
    # Without marks each character stands alone, and iterating the string is far faster.
    return piece if piece.isalpha() else _CHARACTER_WITH_MARKS.findall(piece)


def _chinese_terms(run: str) -> list[str]:
    """jieba's words where its dictionary reaches, pairs of characters elsewhere (kana, rare ideographs)."""
    cut = segmenter()
    if _ALL_CHINESE(run):
        return cut(run)
    parts = _CHINESE_OR_OTHER.findall(run)
    return [
        term for part in parts for term in (cut(part) if _CHINESE.match(part) else _character_bigrams(part))
    ]


def _character_bigrams(run: str) -> list[str]:
    """Overlapping pairs of characters: ABCD -> AB, BC, CD; a single one stays itself."""
    characters = _CHARACTER_WITH_MARKS.findall(run)
    if len(characters) < 2:
        return characters
    return [first + second for first, second in pairwise(characters)]


def _digit_runs(text: str) -> list[str]:
    """Digits, and what may separate them, in one piece each; a digit is first."""
    if not text.isascii():
        return [run if run.isascii() else fold(run) for run in _DIGITS_AND_SEPARATORS.findall(text)]
    parts = (
        text.encode("ascii").translate(_NON_NUMBER_BLANKING_TABLE).split()
    )  # as above, in a third of the time
    return [run.decode("ascii") for part in parts if (run := part.lstrip(_ASCII_SEPARATORS))]


def _normalize_figure(figure: str) -> str:
    if not figure.isascii():
        figure = "".join(c if c in ".," else str(unicodedata.decimal(c)) for c in figure)
    figure = figure.replace(",", "")
    if figure.count(".") > 1:
        figure = figure.replace(".", "")
    whole, _, fraction = figure.partition(".")
    whole = whole.lstrip("0") or "0"
    fraction = fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole
