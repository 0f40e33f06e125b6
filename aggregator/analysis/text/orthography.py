"""Which letters are written in two ways? One of them, so that copies in either spelling meet.

Texts without umlauts (``Muenchen``), capitals without accents or dots (``ΑΘΗΝΑ``, ``DIYARBAKIR``), marks that writers leave
out (``ё``, ``أ``), letters typed from a neighbour's keyboard (Persian ``ی`` as ``ي``, Romanian ``ș`` as ``ş``), Korean spacing.
The same for whatever a text is tagged as, lest a wrong tag hide a copy; English and Chinese are left alone. ``FORM`` names
this version in the spaces of all other languages (``tokens.recipe_of``): bump it when a word becomes another one.
"""

from __future__ import annotations

import re

FORM = "spelling/1"
# The languages with models of their own, which are left alone.
OWN = ("en", "zh")

# A letter, and those that are written as it; marks that are written or not (tatweel, harakat).
_SAME = "i=ı е=ё ş=ș ţ=ț α=ά ε=έ η=ή ι=ίϊΐ ο=ό υ=ύϋΰ ω=ώ ا=أإآٱ ي=ىی ك=ک"
_UNWRITTEN = (0x640, *range(0x64B, 0x653), 0x670)
_LETTERS = [(old, pair[0]) for pair in _SAME.split() for old in pair[2:]] + [(chr(c), "") for c in _UNWRITTEN]
_UMLAUTS = (("ä", "ae"), ("ö", "oe"), ("ü", "ue"))
_DOT = "\u0307"
_DOTS = re.compile(f"(?<=i){_DOT}+")
_DIGRAPH = re.compile("(?<!q)ue")


def plain_letters(folded: str) -> str:
    """A text, folded (``characters.fold``), in one spelling but for umlauts, which stemmers ask for; idempotent."""
    if folded.isascii():
        return folded
    for old, new in _LETTERS:
        folded = folded.replace(old, new)
    return _DOTS.sub("", folded) if _DOT in folded else folded


def compared(words: list[str], lang: str) -> list[str]:
    """What two texts are compared by: their words (``tokens.words``) without umlauts, or the syllables of Korean.

    Koreans write many a phrase as one word or two; spaces say nothing there.
    """
    if lang in OWN:
        return words
    if lang == "ko":
        return list("".join(words))
    found = " ".join(words)
    if not any(umlaut in found for umlaut, _ in _UMLAUTS):
        return words
    for umlaut, plain in _UMLAUTS:
        found = found.replace(umlaut, plain)
    return found.split(" ")


def umlauts(word: str) -> str:
    """ae, oe and ue as the umlauts that they mostly are in German (Snowball's stemmer "German2")."""
    return _DIGRAPH.sub("ü", word).replace("ae", "ä").replace("oe", "ö")
