"""Names in other spellings: house style, accents and transliteration. Pure.

``Kyiv`` and ``Kiev``, ``Gaddafi`` and ``Qaddafi`` are one name: they agree in their consonants, as far as
transliterations tell them apart, and differ in few vowels that sound alike.
"""

from __future__ import annotations

import re
from functools import lru_cache

from anyascii import anyascii

from aggregator.analysis.text.lexicon import table
from aggregator.analysis.text.normalization import HAN, KANA, fold, unaccented

MIN_LETTERS = 4  # of names that may differ in more than accents
# Letters, at least, of names in which o may stand for u, e for i (and g for k), a for e or o.
_LIKE_VOWELS = {"ou": 5, "ei": 6, "ae": 7, "ao": 7}
_MIN_LETTERS_G_K = 6
_SOUNDS = table("sound", "").items()
_REPEATED, _INNER_H = re.compile(r"(.)\1+"), re.compile("(?<=.)h")
_VOWELS = "aeiou"
_IDEOGRAPHS = re.compile(f"[{HAN}{KANA}\uac00-\ud7a3]")
_WORDS = re.compile(r"[^\W_]+")


@lru_cache(maxsize=4096)
def same_name(a: str, b: str) -> bool:
    """Whether two names, of one or more words, are one name in two spellings; symmetric.

    Accents never count; digits, ideographs and words of under ``MIN_LETTERS`` letters must be equal.

    >>> same_name("Zelenskyy", "Selenskyj"), same_name("Iran", "Iraq")
    (True, False)
    """
    first, second = _WORDS.findall(_latin(a)), _WORDS.findall(_latin(b))
    if "".join(first) == "".join(second):
        return bool(first)
    return len(first) == len(second) and all(map(_same_word, first, second))


@lru_cache(maxsize=4096)
def _latin(name: str) -> str:
    folded = fold(name).replace("ä", "ae").replace("ö", "oe").replace("ü", "ue")
    return folded if _IDEOGRAPHS.search(folded) else anyascii(unaccented(folded)).lower().replace("'", "")


def _same_word(a: str, b: str) -> bool:
    a, b = (word.replace("ae", "a").replace("oe", "o").replace("ue", "u") for word in (a, b))
    if a == b:
        return True
    if min(len(a), len(b)) < MIN_LETTERS or not (a.isalpha() and b.isalpha() and a.isascii() and b.isascii()):
        return False
    letters, first, second = min(len(a), len(b)), _sound(a), _sound(b)
    return first == second or (
        _consonants(first) == _consonants(second)
        and (letters >= _MIN_LETTERS_G_K or ("g" in first) == ("g" in second))
        and _differ_in_few_vowels(first, second, letters)
    )


@lru_cache(maxsize=4096)
def _sound(word: str) -> str:
    for spelling, sound in _SOUNDS:
        word = word.replace(spelling, sound)
    return _REPEATED.sub(r"\1", _INNER_H.sub("", _REPEATED.sub(r"\1", word)))


def _consonants(sound: str) -> str:
    return "".join(c for c in sound if c not in _VOWELS).replace("g", "k")


def _differ_in_few_vowels(a: str, b: str, letters: int) -> bool:
    """Whether the groups of vowels between equal consonants differ in at most a third of the letters.

    A vowel may be added to another one or, in longer names, between consonants; the last vowels are decisive.
    """
    first, second = re.split(f"[^{_VOWELS}]", a), re.split(f"[^{_VOWELS}]", b)
    last = first[-1], second[-1]
    if last[0] != last[1] and set(last) not in ({"i", "e"}, {"ie", "ei"}):
        return False
    edits = 0
    for own, other in zip(first, second, strict=True):
        short, long = sorted((own, other), key=len)
        if len(short) == len(long):
            pairs = ["".join(sorted(pair)) for pair in zip(own, other, strict=True) if pair[0] != pair[1]]
            if any(letters < _LIKE_VOWELS.get(pair, letters + 1) for pair in pairs):
                return False
            edits += len(pairs)
        elif len(long) > len(short) + 1 or short not in (long[1:], long[:-1]) or (not short and letters <= 5):
            return False
        else:
            edits += 1
    return edits <= max(1, letters // 3)
