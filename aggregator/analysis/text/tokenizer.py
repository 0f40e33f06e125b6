"""Tokenizer: text to words, shingle units and index terms (for TF-IDF).

A **piece** of a text is either a word (a run of letters, marks and digits; hyphens, underscores and all
punctuation separate) or a run of characters of a script without spaces (Han, Kana, Thai, Lao, Myanmar,
Khmer). Each piece is segmented alone, so sentences have the same words, units and terms in any text.
``TOKENIZER_RECIPE`` is part of every model's hash: change it whenever any text gives other words, terms or
normal forms than before (a golden test fails then).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from aggregator.analysis.text.lexicon import table
from aggregator.analysis.text.morphology import DICTIONARY_RANGE, segmenter, simplifier, stemmer
from aggregator.analysis.text.normalization import (
    COMBINING_MARKS,
    ORTHOGRAPHY_VERSION,
    SERBO_CROATIAN,
    UNCHANGED_SPELLING,
    UNSPACED_SCRIPTS,
    ascii_if_equivalent,
    blanking_table,
    fold,
    invisible_or_not_ascii,
    normalize,
    normalize_letters,
    numerals_in_digits,
    serbian_in_latin,
    unaccented,
    write_out_umlauts,
)

TOKENIZER_RECIPE = "tokens/1 nfkc-casefold jieba-hmm bigrams snowball stopwordsiso"
MAX_WORD_CHARS = 40

_SINGLE_CHARACTERS = frozenset("0123456789abcdefghijklmnopqrstuvwxyz")

_WORD = f"[^\\W_{UNSPACED_SCRIPTS}]"
# Not run through nltk's RegexpTokenizer: its regular expression engine is 4 times slower and has a wall-clock
# limit, so the result could depend on the load.
_ANY_PIECE = re.compile(
    f"{_WORD}+(?:[{COMBINING_MARKS}]+{_WORD}*)*|(?:[{UNSPACED_SCRIPTS}][{COMBINING_MARKS}]*)+"
)
# Outside these blocks (Latin, Greek, Cyrillic, Armenian, punctuation, Hangul) there may be marks or unspaced
# scripts. Few ranges, since the pattern tests every character.
_MARK_OR_UNSPACED = re.compile(
    "[^\x00-\u02ff\u0370-\u0482\u048a-\u058f\u1e00-\u20cf\u2100-\u2bff\uac00-\ud7a3]"
)
_SEPARATOR, _MAX_SEPARATORS = re.compile(r"\W"), 50  # that are replaced one by one
_UNSPACED = re.compile(f"[{UNSPACED_SCRIPTS}]")
_CHARACTER_WITH_MARKS = re.compile(f"[{UNSPACED_SCRIPTS}][{COMBINING_MARKS}]{{0,{MAX_WORD_CHARS - 1}}}")
_CHINESE_OR_OTHER = re.compile(f"[{DICTIONARY_RANGE}]+|[^{DICTIONARY_RANGE}]+")
_CHINESE = re.compile(f"[{DICTIONARY_RANGE}]+")
# Not after four digits: "in 2020, 300 people" may be written without the space or with a full-width comma.
_THOUSANDS_COMMA = re.compile(r",(?<=\d,)(?<!\d{4},)(?=\d{3}(?!\d))")
_ENGLISH_CLITIC = re.compile(r"'(?:s|ll|ve|re|d|m)\b")
_NON_PIECE_BLANKING_TABLE = blanking_table("[0-9a-z\x80-\xff]")
_PIECE_MASK = bytes(b" x"[code != ord(" ")] for code in range(256))
_LONG_PIECE = b"x" * (MAX_WORD_CHARS + 1)  # in bytes, which are as many as the characters or more
PHRASE = re.compile('["“”„«»]([^"“”„«»]+)["“”„«»]')


class SplitText(NamedTuple):
    """``words``, ``shingle_units`` and index terms of a text; None for terms that follow from the units."""

    words: list[str]
    units: list[str]
    terms: list[str] | None


def tokenizer_recipe(group: str) -> str:
    """Return the recipe for texts of a language group (``language.language_group``)."""
    extension = {"en": "", "zh": " numerals/1"}.get(group, f" {ORTHOGRAPHY_VERSION}")
    return f"{TOKENIZER_RECIPE}{extension}"


def words(text: str, lang: str) -> list[str]:
    """Return all normalized words in order: with stop words, not stemmed.

    Scripts without spaces give one item per character (with its combining marks), in a text of any language.
    English clitics and apostrophes are removed (``Trump's`` -> ``trump``); elsewhere an apostrophe separates
    (``l'eau`` -> ``l``, ``eau``). Words are cut at ``MAX_WORD_CHARS``.
    """
    pieces, mixed = _split_pieces(text, lang)
    return _words_of_pieces(pieces) if mixed else pieces


def shingle_units(text: str, lang: str) -> list[str]:
    """What shingles are runs of, in order: ``words``, but jieba's words in Chinese (``lang`` zh)."""
    return split_text(text, lang).units


def tokenize(text: str, lang: str) -> list[str]:
    """Return the index terms in order: words without stop words, stemmed where Snowball has the language.

    Chinese gives jieba's words; any other run without spaces gives its overlapping character bigrams. Numbers
    are terms (``1,200`` as 1200), single ASCII letters and digits are not.
    """
    pieces, mixed = _split_pieces(text, lang)
    if mixed and lang != "zh":
        return _terms_of_pieces(pieces, lang)
    return terms_of_words(_units_of_pieces(pieces) if mixed else pieces, lang)


def search_terms(text: str, lang: str) -> tuple[str, ...]:
    """The terms of a headline or a query in order, without accents; English stems are made without them."""
    return tuple(map(unaccented, tokenize(unaccented(fold(text)) if lang == "en" else text, lang)))


def has_phrase(terms: Sequence[str], phrase: tuple[str, ...]) -> bool:
    """Whether the terms of a phrase are next to each other in ``terms``, in its order."""
    size = len(phrase)
    return any(tuple(terms[at : at + size]) == phrase for at in range(len(terms) - size + 1))


def has_quoted(query: str, lang: str, *texts: str) -> bool:
    """Whether one of the texts has what is in quotes in a query, in this form but for accents."""
    quoted = [tuple(map(unaccented, words(each, lang))) for each in PHRASE.findall(query)]
    said = [[*map(unaccented, words(text, lang))] for text in texts] if quoted else [[]]
    return any(all(has_phrase(text, phrase) for phrase in quoted) for text in said)


def split_text(text: str, lang: str) -> SplitText:
    """Words, shingle units and index terms of a text in one pass; those of lines can be concatenated."""
    pieces, mixed = _split_pieces(text, lang)
    if not mixed:
        return SplitText(pieces, pieces, None)
    words = _words_of_pieces(pieces)
    if lang == "zh":
        return SplitText(words, _units_of_pieces(pieces), None)
    return SplitText(words, words, _terms_of_pieces(pieces, lang))


def terms_of_words(words: Sequence[str], lang: str) -> list[str]:
    """Index terms, in order, of words of a script with spaces, or of Chinese ``shingle_units``."""
    stop, stem = stop_words(lang), stemmer(lang)
    kept = [word for word in words if word not in stop]
    return kept if stem is None else list(map(stem, kept))


@lru_cache(maxsize=256)
def stop_words(lang: str) -> frozenset[str]:
    """Return the stop words of a language as ``words`` spells them, and single ASCII letters and digits."""
    import stopwordsiso  # reads 0.5 MB of JSON, so only when first needed

    entries = stopwordsiso.stopwords(lang)
    listed = {normalize(entry) for entry in entries}
    # Joined: one call instead of up to 1,300 for a language.
    listed.update(words("\n".join(entry for entry in entries if not _UNSPACED.search(entry)), lang))
    if lang == "de":
        listed |= set(map(write_out_umlauts, listed))
    return frozenset(listed - table("content", lang).keys()) | _SINGLE_CHARACTERS


def _split_pieces(text: str, lang: str) -> tuple[list[str], bool]:
    """The pieces of a text, and whether they may include runs of unspaced scripts; else they are truncated.

    The pattern that finds marks and unspaced scripts takes 6 times as long.
    """
    folded = _THOUSANDS_COMMA.sub("", fold(ascii_if_equivalent(text)))
    if lang == "zh":
        folded = simplifier()(folded)
    if lang == "en" and "'" in folded:
        folded = _ENGLISH_CLITIC.sub("", folded).replace("'", "")
    if "$" in folded:
        folded = folded.replace("us$", "$")
    if " & " in folded:
        folded = folded.replace(" & ", f" {next(iter(table('and', lang)), '')} ")
    if lang not in UNCHANGED_SPELLING:
        folded = normalize_letters(serbian_in_latin(folded) if lang in SERBO_CROATIAN else folded)
    elif lang == "zh":
        folded = numerals_in_digits(folded)
    others = invisible_or_not_ascii(folded)
    if _MARK_OR_UNSPACED.search(others):
        return _ANY_PIECE.findall(folded), True
    if len(separators := set(_SEPARATOR.findall(others))) > _MAX_SEPARATORS:
        folded = _SEPARATOR.sub(" ", folded)
    for separator in separators:
        folded = folded.replace(separator, " ")
    blanked = folded.encode("utf-8").translate(_NON_PIECE_BLANKING_TABLE)
    pieces = blanked.decode("utf-8").split()
    if _LONG_PIECE in blanked.translate(_PIECE_MASK):  # in 1/3 of the time of the lengths
        pieces = [piece[:MAX_WORD_CHARS] for piece in pieces]
    return pieces, False


def _words_of_pieces(pieces: list[str]) -> list[str]:
    words: list[str] = []
    for piece in pieces:
        if not _UNSPACED.match(piece):
            words.append(piece[:MAX_WORD_CHARS])
        else:  # without combining marks iterating over the string gives the same, much faster
            words += piece if piece.isalpha() else _CHARACTER_WITH_MARKS.findall(piece)
    return words


def _units_of_pieces(pieces: list[str]) -> list[str]:
    """Words; of unspaced runs jieba's words within its dictionary range, else character bigrams (kana)."""
    units: list[str] = []
    # Segmented in one call, in 2/3 of the time: a line end separates, and is a word of its own.
    segmented, start = segmenter()("\n".join([*_CHINESE.findall("\n".join(pieces)), ""])), 0
    for piece in pieces:
        if not _UNSPACED.match(piece):
            units.append(piece[:MAX_WORD_CHARS])
            continue
        for part in [piece] if _CHINESE.fullmatch(piece) else _CHINESE_OR_OTHER.findall(piece):
            if _CHINESE.match(part):
                end = segmented.index("\n", start)
                units += segmented[start:end]
                start = end + 1
            else:
                units += _character_bigrams(part)
    return units


def _terms_of_pieces(pieces: list[str], lang: str) -> list[str]:
    stop, stem = stop_words(lang), stemmer(lang)
    terms: list[str] = []
    for piece in pieces:
        if _UNSPACED.match(piece):
            terms += [term for term in _character_bigrams(piece) if term not in stop]
        elif (word := piece[:MAX_WORD_CHARS]) not in stop:
            terms.append(stem(word) if stem else word)
    return terms


def _character_bigrams(run: str) -> list[str]:
    """ABCD -> AB, BC, CD; a single character is unchanged."""
    characters = _CHARACTER_WITH_MARKS.findall(run)
    return [first + second for first, second in pairwise(characters)] or characters
