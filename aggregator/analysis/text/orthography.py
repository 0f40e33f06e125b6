"""Orthographic variants: one spelling for letters that are written in two ways, so that duplicates match.

Covered: texts without umlauts (``Muenchen``), capitals without accents or dots (``ΑΘΗΝΑ``, ``DIYARBAKIR``),
optional marks (``ё``, ``أ``), letters typed on the keyboard of another language (Persian ``ی`` as ``ي``,
Romanian ``ș`` as ``ş``), spacing in Korean. The rules do not depend on the language tag, so a wrong tag does
not hide a duplicate; only English and Chinese are left unchanged. ``ORTHOGRAPHY_VERSION`` is part of the
spaces of all other languages (``tokenizer_recipe``): change it when any word gets another form.
"""

from __future__ import annotations

import re

ORTHOGRAPHY_VERSION = "spelling/1"
# The languages with a bundled model; their texts are not changed.
MODEL_LANGUAGES = ("en", "zh")

# "letter=variants that are replaced by it"; then optional marks, which are removed (tatweel, harakat).
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
    """Return a folded text (``normalization.fold``) in one spelling, except umlauts, which stemmers need.

    Idempotent.
    """
    if folded.isascii():
        return folded
    for old, new in _LETTER_REPLACEMENTS:
        folded = folded.replace(old, new)
    return _DOTS_AFTER_I.sub("", folded) if _COMBINING_DOT in folded else folded


def normalize_spelling(words: list[str], lang: str) -> list[str]:
    """Return the form in which texts are compared: words (``tokenizer.words``) with umlauts written out.

    Korean words are split into syllables, because many phrases are written as one word or as two. Unchanged
    input is returned as the same list object.
    """
    if lang in MODEL_LANGUAGES:
        return words
    if lang == "ko":
        return list("".join(words))
    joined = " ".join(words)
    if not any(umlaut in joined for umlaut, _ in _UMLAUTS):
        return words
    for umlaut, digraph in _UMLAUTS:
        joined = joined.replace(umlaut, digraph)
    return joined.split(" ")


def restore_umlauts(word: str) -> str:
    """Return a German word with ae, oe and ue as umlauts, which they mostly are (Snowball's "German2")."""
    return _UE_DIGRAPH.sub("ü", word).replace("ae", "ä").replace("oe", "ö")
