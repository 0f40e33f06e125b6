"""Which characters make words, and one normal form for all text.

Python's ``re`` knows letters but neither scripts nor combining marks, so the classes are
computed here once from ``unicodedata``. Everything runs in linear time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

# Ideographs of the two lower blocks and the supplementary planes, with the marks that repeat them.
HAN = "\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"

# Blocks of the other scripts that write words without spaces: Thai, Lao, Myanmar, Khmer.
_UNSPACED_BLOCKS = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF))

# Marks beyond the basic plane belong to scripts hardly any news is written in, and their many ranges
# would make every class with marks twenty times slower, since ``re`` has no table for them.
_BASIC_PLANE_END = 0x10000

# Controls that are not white space, zero-width and bidirectional marks, soft hyphens, fillers,
# variation selectors, tags, lone surrogates: invisible, so two texts that differ in them look alike.
INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    "\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff"
)
_INVISIBLE_RUN = re.compile(f"[{INVISIBLE}]+")
_ASCII_FOLD_TABLE = bytes(range(256)).lower().replace(b"`", b"'")
_ASCII_INVISIBLE = bytes((*range(0x09), *range(0x0E, 0x1C), 0x7F))
# Punctuation that is common in print and separates words.
TYPOGRAPHIC_PUNCTUATION = "\u201c\u201d\u201e\u2013\u2014\u2022\u00ab\u00bb\u20ac\u00a3"
_ALSO_BLANKED = "\u2026\u00a0"  # points and a space in folded text
_APOSTROPHES = "\u2018\u2019\u201a\u201b\u02b9\u02bb\u02bc\u02bd\u2032\u00b4\uff07`"


def _character_class(codes: Iterable[int]) -> str:
    """The inside of a character class for ascending code points: 1,2,3,7 -> ``\\x01-\\x03\\x07``."""
    found: list[list[int]] = []
    for code in codes:
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return "".join(chr(low) if low == high else f"{chr(low)}-{chr(high)}" for low, high in found)


COMBINING_MARKS = _character_class(
    c for c in range(0x300, _BASIC_PLANE_END) if unicodedata.category(chr(c))[0] == "M"
)
UNSPACED_SCRIPTS = (
    HAN
    + KANA
    + _character_class(
        code
        for low, high in _UNSPACED_BLOCKS
        for code in range(low, high + 1)
        if unicodedata.category(chr(code))[0] == "L"
    )
)


def fold(text: str) -> str:
    """``normalise`` without its pass over white space: what the word patterns are run on."""
    if text.isascii():
        return text.encode("ascii").translate(_ASCII_FOLD_TABLE, _ASCII_INVISIBLE).decode("ascii")
    composed = unicodedata.normalize("NFKC", _straighten_apostrophes(_INVISIBLE_RUN.sub("", text)))
    # Composed last: folding decomposes some Greek letters, which then fold no further.
    return unicodedata.normalize("NFKC", _straighten_apostrophes(composed).casefold())


def blanking_table(kept_pattern: str) -> bytes:
    """A table for ``bytes.translate``, which takes a third of the time of ``str.translate``: ASCII beyond a pattern is space."""
    return bytes(code if re.match(kept_pattern, chr(code)) else ord(" ") for code in range(256))


def ascii_if_equivalent(text: str) -> str:
    """A text in ASCII of the same words, if typographic punctuation is all that is not ASCII in it; else the text.

    That is most of English, and what follows takes a tenth of the time with ASCII.
    """
    if text.isascii():
        return text
    found = _straighten_apostrophes(text)
    for mark in TYPOGRAPHIC_PUNCTUATION + _ALSO_BLANKED:
        found = found.replace(mark, " ")
    return found if found.isascii() else text


def _straighten_apostrophes(text: str) -> str:
    # A dozen memory scans: str.translate would look up every single character.
    for mark in _APOSTROPHES:
        text = text.replace(mark, "'")
    return text


def normalize(text: str) -> str:
    """The form in which two texts that look alike are equal; idempotent, linear time, never raises.

    NFKC (full-width letters, ligatures), case folded, typographic apostrophes straight, invisible
    characters (controls, zero-width, bidirectional, soft hyphens, lone surrogates) removed, runs of
    white space one space, none at the ends. ``"\\ufeffThe  ＢＢＣ’s"`` -> ``"the bbc's"``.
    """
    return " ".join(fold(text).split())
