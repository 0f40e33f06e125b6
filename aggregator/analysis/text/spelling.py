"""The spelling in which texts are compared: one for what house styles and keyboards write in two ways. Pure.

Accents, number words, powers of ten, abbreviations with points, look-alike letters of another alphabet. Index
terms keep the spelling that their models were fitted on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby

from aggregator.analysis.text.figures import CURRENCY_CODES, shift
from aggregator.analysis.text.lexicon import table
from aggregator.analysis.text.normalization import unaccented

# Languages in which a run of single letters is an abbreviation: "U.S.", "p.m.".
_ABBREVIATING_LANGUAGES = frozenset(["en", "de", "nl", "sv", "fi", "id", "tr"])
_LINKING_LANGUAGES = ("es", "pt")
_UNMERGED_LANGUAGES = frozenset(["zh", "ja", "ko", "th", "lo", "km", "my"])
_UMLAUT_DIGRAPH = re.compile("(?<=[aou])e")
_OPTIONAL_POINTS = re.compile("[\u0591-\u05c7\u0653-\u0655]")  # Hebrew points, hamza and madda as marks
_NASAL = re.compile("[ङञणनम]\u094d(?=[क-ह])|\u0901")  # written as anusvara, too
_LATIN_LOOK_ALIKES, _CYRILLIC_LOOK_ALIKES = "acehikmoptxyj", "асеһікмортхуј"
_TO_LATIN = str.maketrans(_CYRILLIC_LOOK_ALIKES, _LATIN_LOOK_ALIKES)
_TO_CYRILLIC = str.maketrans(_LATIN_LOOK_ALIKES, _CYRILLIC_LOOK_ALIKES)
_LATIN, _CYRILLIC = re.compile("[a-z]"), re.compile("[\u0400-\u04ff]")
_PLAIN = re.compile("[\u0430-\u044f]+|[\u4e00-\u9fff]+")  # nothing to be replaced
_JOINED_SCALE = re.compile(r"(?<!\d)(\d+)([a-z]{1,2})")
_MIN_TENS = 20
_MAX_NUMBER, _MAX_DIGITS = 10**9, 15  # numbers that are read further


def without_umlauts(word: str) -> str:
    """A word without accents, and with ä, ae and a alike, whatever its language: it may be unknown."""
    plain = unaccented(word)
    return _UMLAUT_DIGRAPH.sub("", plain) if "ae" in plain or "oe" in plain or "ue" in plain else plain


@lru_cache(maxsize=1 << 14)
def compared_form(word: str, lang: str) -> str:
    """The spelling of one word: not empty, without spaces."""
    form = word if (is_plain := _PLAIN.fullmatch(word)) else without_umlauts(word)
    if not is_plain and not word.isascii():
        form = _NASAL.sub("\u0902", _OPTIONAL_POINTS.sub("", form))
        form = f"{form[:-1]}ه" if form.endswith("ة") else form
        if _CYRILLIC.search(form) and _LATIN.search(form):
            form = _in_one_alphabet(form)
        if form.isdecimal():
            form = str(int(form)) if len(form) < 20 else form
    elif word[0] == "0" and word.isdigit():
        form = word.lstrip("0") or "0"
    elif "0" < word[0] <= "9" and (found := _JOINED_SCALE.fullmatch(word)):
        scale = table("scale", lang).get(found[2])
        form = shift(found[1], int(scale)) if scale else word
    number = numbers(lang).get(form, "")
    return number if number.isdigit() else form or word


def _in_one_alphabet(word: str) -> str:
    """A word of two alphabets in the one to which all its letters can belong; else unchanged."""
    cyrillic, latin = word.translate(_TO_CYRILLIC), word.translate(_TO_LATIN)
    if not _LATIN.search(cyrillic):
        return cyrillic
    return word if _CYRILLIC.search(latin) else latin


@lru_cache(maxsize=128)
def numbers(lang: str) -> dict[str, str]:
    """The number words of a language and their compounds of tens and units; ``x10`` and ``+10`` combine."""
    words = dict(table("number", lang))
    units = {w: int(n) for w, n in words.items() if n.isdigit() and 1 < int(n) < 10}
    tens = {w: int(n) for w, n in words.items() if n.isdigit() and _MIN_TENS <= int(n) < 100 and n[-1] == "0"}
    for order, link in table("compound", lang).items():
        for ten, value in tens.items():
            compounds = {
                f"{u}{link}{ten}" if order == "u" else f"{ten}{u}": value + n for u, n in units.items()
            }
            if lang == "it":  # ventotto
                compounds |= {f"{ten[:-1]}otto": value + 8}
            words |= {w: str(n) for w, n in compounds.items()}
    return {without_umlauts(word): value for word, value in words.items()}


@lru_cache(maxsize=1 << 14)
def is_part_of_figure(word: str, lang: str, form: str) -> bool:
    """Whether a word of this ``compared_form`` may join its neighbors: a number, unit, sign or initial."""
    return lang not in _UNMERGED_LANGUAGES and (
        form.isdigit()
        or unaccented(word) in _joining_words(lang)
        or (len(word) == 1 and lang in _ABBREVIATING_LANGUAGES and word.isalpha())
        or (word[0].isdigit() and _JOINED_SCALE.fullmatch(word) is not None)
    )


@lru_cache(maxsize=128)
def _joining_words(lang: str) -> frozenset[str]:
    units = {part for unit in table("unit", lang) for part in unit.split()}
    links = set(table("and", lang)) if lang in _LINKING_LANGUAGES else set()
    links |= {word for word, value in numbers(lang).items() if not value.isdigit()}
    return frozenset(units | links | set(table("scale", lang)) | set(table("minus", lang)))


def normalize_spelling(words: Sequence[str], lang: str) -> list[str]:
    """The words, and Korean syllables, in the spelling in which texts are compared."""
    if lang == "ko":
        return [compared_form(syllable, lang) for syllable in "".join(words)]
    forms = {word: compared_form(word, lang) for word in set(words)}
    joins = {word: is_part_of_figure(word, lang, form) for word, form in forms.items()}
    compared: list[str] = []
    for is_figure, run in groupby(words, key=joins.__getitem__):
        compared += join_figures([*run], lang) if is_figure else map(forms.__getitem__, run)  # noqa: B031
    return compared


def join_figures(words: Sequence[str], lang: str) -> list[str]:
    """A run of words for which ``is_part_of_figure``: numbers in digits, abbreviations joined.

    Unit and sign next to digits are left out, since ``figures`` has them: ["5", "percent"] -> ["5"].
    """
    joined: list[str] = []
    units, minus, position = table("unit", lang), table("minus", lang), 0
    forms = [compared_form(word, lang) for word in words]
    words = [unaccented(word) for word in words]
    while position < len(words):
        if words[position][0].isdigit():
            number, position = _read_digits(words, forms, position, lang)
            while joined and (joined[-1] in minus or joined[-1] in CURRENCY_CODES):
                joined.pop()
            joined.append(number)
            unit = " ".join(words[position : position + 2])
            position += 1 if unit.partition(" ")[0] in units else 2 * (unit in units)
        elif forms[position].isdigit():
            number, position = _read_number_words(words, forms, position, lang)
            joined.append(number)
        else:
            start = position
            while position < len(words) and len(words[position]) == 1 and words[position].isalpha():
                position += 1
            letters = "".join(forms[start:position])
            if letters[:1] in ("a", "i") and letters not in ("ai", "am"):  # "a U.S. envoy"
                joined.append(letters[0])
                letters = letters[1:]
            joined += [letters] if letters else []
            if position == start:
                joined.append(forms[position])
                position += 1
    return joined


def _read_digits(words: Sequence[str], forms: Sequence[str], start: int, lang: str) -> tuple[str, int]:
    """The number that begins at ``start`` in digits, and the position after it."""
    number, end, scale = forms[start], start + 1, table("scale", lang)
    following = words[end] if end < len(words) else ""
    if (found := _JOINED_SCALE.fullmatch(following)) and found[2] in scale:  # 1.2m
        return shift(f"{number}.{found[1]}", int(scale[found[2]])), end + 1
    if following.isdecimal() and end + 1 < len(words) and words[end + 1] in scale:  # 1.2 million
        number, end = f"{number}.{forms[end]}", end + 1
    elif len(words[start]) <= 3 and number != "0":  # 1 200 000
        while (
            end < len(words) and len(words[end]) == 3 and words[end].isdecimal() and len(number) < _MAX_DIGITS
        ):
            number, end = f"{number}{int(words[end]):03}", end + 1
    return _multiply(number, words, end, lang)


def _read_number_words(words: Sequence[str], forms: Sequence[str], start: int, lang: str) -> tuple[str, int]:
    """The number that begins at ``start`` in words, and the position after it."""
    number, end = int(forms[start]), start + 1
    links = table("and", lang) if lang in _LINKING_LANGUAGES else {}
    while end < len(words) and number < _MAX_NUMBER:
        at = end + 1 if words[end] in links and end + 1 < len(words) else end  # treinta y cinco
        operation = numbers(lang).get(without_umlauts(words[at]), "")
        if operation in ("x10", "+10"):
            number = number * 10 if operation == "x10" else number + 10
        elif not forms[at].isdigit() or words[at][0].isdigit():
            break
        elif (value := int(forms[at])) in (100, 1000) and number < value:
            number *= value
        elif (number, value) == (4, 20):  # quatre-vingt
            number = 80
        elif _can_add(number, value, lang):
            number += value
        else:
            break
        end = at + 1
    return _multiply(str(number), words, end, lang)


def _can_add(number: int, value: int, lang: str) -> bool:
    """Whether a number word continues another one: twenty five, soixante-douze, on iki."""
    tens = _MIN_TENS if lang not in ("fr", "tr") else 10
    return (
        (number % 10 == 0 and tens <= number and value < 10)
        or (number % 100 == 0 and value < 100)
        or (number in (60, 80) and lang == "fr" and value < _MIN_TENS)
    )


def _multiply(number: str, words: Sequence[str], end: int, lang: str) -> tuple[str, int]:
    scale = table("scale", lang)
    while end < len(words) and len(words[end]) > 1 and words[end] in scale and len(number) < _MAX_DIGITS:
        number, end = shift(number, int(scale[words[end]])), end + 1
    return number, end
