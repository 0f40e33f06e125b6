"""Which letters are written in two ways? One of them, so that copies in either spelling meet.

Texts without umlauts (``Muenchen``), capitals without accents or dots (``ΑΘΗΝΑ``, ``DIYARBAKIR``), marks that writers leave
out (``ё``, ``أ``), letters typed from a neighbour's keyboard (Persian ``ی`` as ``ي``, Romanian ``ș`` as ``ş``), Korean spacing.
The same for whatever a text is tagged as, lest a wrong tag hide a copy; English and Chinese are left alone. ``FORM`` names
this version in the spaces of all other languages (``tokens.recipe_of``): bump it when a word becomes another one.
"""

from __future__ import annotations

import re

ORTHOGRAPHY_VERSION = "spelling/1"
# The languages with models of their own, which are left alone.
MODEL_LANGUAGES = ("en", "zh")

# A letter, and those that are written as it; marks that are written or not (tatweel, harakat).
_EQUIVALENT_LETTERS = "i=ı е=ё ş=ș ţ=ț α=ά ε=έ η=ή ι=ίϊΐ ο=ό υ=ύϋΰ ω=ώ ا=أإآٱ ي=ىی ك=ک"
_OPTIONAL_MARKS = (0x640, *range(0x64B, 0x653), 0x670)
_LETTER_REPLACEMENTS = [(old, pair[0]) for pair in _EQUIVALENT_LETTERS.split() for old in pair[2:]] + [
    (chr(c), "") for c in _OPTIONAL_MARKS
]
_UMLAUTS = (("ä", "ae"), ("ö", "oe"), ("ü", "ue"))
_COMBINING_DOT = "\u0307"
_DOTS_AFTER_I = re.compile(f"(?<=i){_COMBINING_DOT}+")
_UE_DIGRAPH = re.compile("(?<!q)ue")


def normalize_letters(folded: str) -> str:
    """A text, folded (``characters.fold``), in one spelling but for umlauts, which stemmers ask for; idempotent."""
    if folded.isascii():
        return folded
    for old, new in _LETTER_REPLACEMENTS:
        folded = folded.replace(old, new)
    return _DOTS_AFTER_I.sub("", folded) if _COMBINING_DOT in folded else folded


def normalize_spelling(words: list[str], lang: str) -> list[str]:
    """What two texts are compared by: their words (``tokens.words``) without umlauts, or the syllables of Korean.

    Koreans write many a phrase as one word or two; spaces say nothing there.
    """
    if lang in MODEL_LANGUAGES:
        return words
    if lang == "ko":
        return list("".join(words))
    found = " ".join(words)
    if not any(umlaut in found for umlaut, _ in _UMLAUTS):
        return words
    for umlaut, plain in _UMLAUTS:
        found = found.replace(umlaut, plain)
    return found.split(" ")


def restore_umlauts(word: str) -> str:
    """ae, oe and ue as the umlauts that they mostly are in German (Snowball's stemmer "German2")."""
    return _UE_DIGRAPH.sub("ü", word).replace("ae", "ä").replace("oe", "ö")
