"""Text normalization, orthographic variants, figures, newswire prefixes, and the character classes of words.

Orthographic variants get one spelling, so that duplicates match: texts without umlauts (``Muenchen``),
capitals without accents or dots (``ΑΘΗΝΑ``), optional marks (``ё``, ``أ``), letters typed on the keyboard of
another language (Persian ``ی`` as ``ي``), spacing in Korean. Only English and Chinese are left unchanged.
``ORTHOGRAPHY_VERSION`` is part of the spaces of all other languages: change it when any word gets another
form. Everything runs in linear time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache

from aggregator.analysis.text.lexicon import table

# Ideographs of the basic plane and the supplementary planes, with the iteration marks.
HAN = "\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"

# Blocks of the other scripts that write words without spaces: Thai, Lao, Myanmar, Khmer.
_UNSPACED_BLOCKS = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF))

# Marks beyond the basic plane, of scripts that hardly any news is written in, would make every class with
# marks 20 times slower, since ``re`` has no lookup table for them.
_BASIC_PLANE_END = 0x10000
_REORDERED_END = 0x20000  # planes beyond have no characters that normalization reorders

# Controls that are not white space, zero-width and bidirectional marks, soft hyphens, fillers, variation
# selectors, tags, lone surrogates. Texts that differ only in them look alike.
INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    "\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff"
)
_INVISIBLE_RUN = re.compile(f"[{INVISIBLE}]+")
# Marks after one letter, at most: no script needs more than 30 (UAX #15, Stream-Safe Text Format).
MAX_MARK_RUN = 64
_ASCII_FOLD_TABLE = bytes(range(256)).lower().replace(b"`", b"'")
_ASCII_INVISIBLE = bytes((*range(0x09), *range(0x0E, 0x1C), 0x7F))
_VISIBLE = bytes(code for code in range(0x7F) if code not in _ASCII_INVISIBLE)
# Common in news texts and separates words; of the last two folding makes periods and a space.
_TYPOGRAPHIC_PUNCTUATION = "\u201c\u201d\u201e\u2013\u2014\u2022\u00ab\u00bb\u20ac\u00a3\u2026\u00a0"
_FULL_WIDTH_PUNCTUATION, _FULL_WIDTH_OFFSET = "\uff0c\uff1a\uff1b\uff01\uff1f\uff08\uff09", 0xFEE0
_APOSTROPHES = "\u2018\u2019\u201a\u201b\u02b9\u02bb\u02bc\u02bd\u2032\u00b4\uff07`"


def _character_class(codes: Iterable[int]) -> str:
    r"""Return the inside of a character class of ascending code points: 1, 2, 3, 7 -> ``\x01-\x03\x07``."""
    ranges: list[list[int]] = []
    for code in codes:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(chr(low) if low == high else f"{chr(low)}-{chr(high)}" for low, high in ranges)


_CATEGORIES = map(unicodedata.category, map(chr, range(_REORDERED_END)))
_MARK_CODES = [code for code, category in enumerate(_CATEGORIES) if category[0] == "M"]
COMBINING_MARKS = _character_class(code for code in _MARK_CODES if code < _BASIC_PLANE_END)
UNSPACED_SCRIPTS = f"{HAN}{KANA}" + _character_class(
    code
    for low, high in _UNSPACED_BLOCKS
    for code in range(low, high + 1)
    if unicodedata.category(chr(code))[0] == "L"
)


# Those that normalization may reorder; ``_MAYBE_MARK`` also matches all characters of the supplementary
# planes, since a class with only their marks is slow.
_REORDERED = [code for code in _MARK_CODES if unicodedata.combining(chr(code))]
_BASIC_REORDERED = _character_class(code for code in _REORDERED if code < _BASIC_PLANE_END)
_MAYBE_MARK = re.compile(f"[{_BASIC_REORDERED}\U00010000-\U0010ffff]")
_MARK = f"[{_character_class(_REORDERED)}]"
_LONG_MARK_RUN = re.compile(f"({_MARK}{{{MAX_MARK_RUN}}}){_MARK}+")


def nfkc(text: str) -> str:
    """``text`` in NFKC, with runs of combining marks cut at ``MAX_MARK_RUN``: sorting them is quadratic."""
    if _MAYBE_MARK.search(sample := text[::MAX_MARK_RUN]) and re.search(_MARK, sample):  # a long run has one
        text = _LONG_MARK_RUN.sub(r"\1", text)
    return unicodedata.normalize("NFKC", text)


@cache  # 20 ms
def _expanding() -> re.Pattern[str]:
    """Ligatures and squared words: NFKC replaces each by 4 to 18 characters."""
    codes = (c for c in range(_BASIC_PLANE_END) if len(unicodedata.normalize("NFKC", chr(c))) >= 4)
    return re.compile(f"[{_character_class(codes)}]")


def expanding_characters(text: str) -> int:
    """The number of characters that normalization replaces by 4 or more (U+FDFA by 18)."""
    return 0 if text.isascii() else len(_expanding().findall(text))


def fold(text: str) -> str:
    """Return ``normalize(text)`` with white space unchanged; the word patterns run on this form."""
    if text.isascii():
        return text.encode("ascii").translate(_ASCII_FOLD_TABLE, _ASCII_INVISIBLE).decode("ascii")
    if _INVISIBLE_RUN.search(invisible_or_not_ascii(text)):
        text = _INVISIBLE_RUN.sub("", text)
    for mark in _FULL_WIDTH_PUNCTUATION:  # as NFKC, which takes 10 times as long for a text that has any
        text = text.replace(mark, chr(ord(mark) - _FULL_WIDTH_OFFSET))
    composed = nfkc(_straighten_apostrophes(text))
    # Composed again: case folding decomposes some Greek letters.
    return nfkc(_straighten_apostrophes(composed).casefold())


def invisible_or_not_ascii(text: str) -> str:
    """The characters of a text that are not visible ASCII, in order: few, where patterns are slow."""
    return text.encode("utf-8", "surrogatepass").translate(None, _VISIBLE).decode("utf-8", "surrogatepass")


@lru_cache(maxsize=4096)
def source_key(name: str) -> str:
    """Key of a source: equal for spellings that differ in case, width, apostrophes or white space only.

    >>> source_key("The  HARBOUR Times") == source_key("The Harbour Times")
    True
    """
    return " ".join(normalize(name).split())


def blanking_table(kept_pattern: str) -> bytes:
    """Table for ``bytes.translate`` that blanks bytes that do not match a pattern."""
    return bytes(code if re.match(kept_pattern, chr(code)) else ord(" ") for code in range(256))


def ascii_if_equivalent(text: str) -> str:
    """An ASCII text of the same words if only typographic punctuation is not ASCII; else ``text``."""
    if text.isascii():
        return text
    replaced = _straighten_apostrophes(text)
    for mark in _TYPOGRAPHIC_PUNCTUATION:
        replaced = replaced.replace(mark, " ")
    return replaced if replaced.isascii() else text


def _straighten_apostrophes(text: str) -> str:
    for mark in _APOSTROPHES:  # faster than str.translate, which looks up every character
        text = text.replace(mark, "'")
    return text


def normalize(text: str) -> str:
    r"""The normal form of a text, equal for texts that look alike; idempotent.

    NFKC, case folded, apostrophes straightened, invisible characters removed, white space collapsed.
    ``"\ufeffThe  ＢＢＣ’s"`` -> ``"the bbc's"``.
    """
    return " ".join(fold(text).split())


ORTHOGRAPHY_VERSION = "spelling/1"
# The spelling of these languages is kept as it was when their first models were fitted.
UNCHANGED_SPELLING = ("en", "zh")

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
    """A folded text in one spelling, except umlauts, which stemmers need. Idempotent."""
    if folded.isascii():
        return folded
    for old, new in _LETTER_REPLACEMENTS:
        folded = folded.replace(old, new)
    return _DOTS_AFTER_I.sub("", folded) if _COMBINING_DOT in folded else folded


# Written in two alphabets; and Macedonian, which short Serbian texts are taken for.
SERBO_CROATIAN = frozenset(["sr", "hr", "bs", "sh", "mk"])
_SERBIAN_TO_LATIN = str.maketrans(table("latin", "sr"))


def serbian_in_latin(folded: str) -> str:
    """Serbian Cyrillic letters of a folded text in the Latin alphabet."""
    return folded if folded.isascii() else folded.translate(_SERBIAN_TO_LATIN)


_ACCENTED = re.compile("[\xc0-\u024f\u0370-\u03ff\u093c\u1e00-\u1fff]")
_DIGITS = "一二两三四五六七八九"
_NUMERAL = re.compile(f"(?:[{_DIGITS}]千零?)?(?:[{_DIGITS}]百零?)?(?:[{_DIGITS}]?十)?[{_DIGITS}]?")
_YEAR = re.compile(f"[{_DIGITS}〇零]{{4}}年")
# Numerals, and digits before a word of measure (四川 is a place).
_COUNTS = re.compile(
    f"[{_DIGITS}〇零十百千](?:[{_DIGITS}〇零十百千]+|(?<=[{_DIGITS[1:]}十])(?=[人名岁个位年月日号天次起家辆艘架项吨票倍万亿]))"
)


def numerals_in_digits(text: str) -> str:
    """A text with Chinese numerals under 10,000 in digits: 一百二十万 -> 120万, 五人 -> 5人."""
    return _COUNTS.sub(_numeral_in_digits, text)


def _numeral_in_digits(found: re.Match[str]) -> str:
    values = [int(unicodedata.numeric(c, 2)) for c in found[0]]  # 两 is 2
    if _YEAR.match(found.string, found.start()) and len(values) == 4:
        return "".join(map(str, values))
    if not _NUMERAL.fullmatch(found[0]):
        return found[0]
    total = pending = 0
    for value in values:
        total, pending = (total + (pending or 1) * value, 0) if value >= 10 else (total, value)
    return str(total + pending)


def write_out_umlauts(text: str) -> str:
    """German ä, ö and ü as ae, oe and ue."""
    for umlaut, digraph in _UMLAUTS:
        text = text.replace(umlaut, digraph)
    return text


@cache
def _base_letters() -> dict[int, str]:
    """Latin and Greek letters with accents or strokes -> the letters without; nukta -> nothing."""
    letters = {ord(p[0]): p[2:] for p in "đ=d ħ=h ı=i ł=l ø=o þ=th ð=d œ=oe æ=ae ŧ=t \u093c=".split()}  # noqa: SIM905
    for code in (*range(0xC0, 0x250), *range(0x370, 0x400), *range(0x1E00, 0x2000)):
        base = "".join(c for c in unicodedata.normalize("NFD", chr(code)) if not unicodedata.combining(c))
        if base != chr(code):
            letters[code] = base
    return letters


def unaccented(folded: str) -> str:
    """A folded text with Latin and Greek letters without accents: ``erdogan`` for ``erdoğan``."""
    return folded if folded.isascii() or not _ACCENTED.search(folded) else folded.translate(_base_letters())


def restore_umlauts(word: str) -> str:
    """Return a German word with ae, oe and ue as umlauts, which they mostly are (Snowball's "German2")."""
    return _UE_DIGRAPH.sub("ü", word).replace("ae", "ä").replace("oe", "ö")


# "UPDATE 2-", "WRAPUP 1-", "US STOCKS SNAPSHOT-": at most four words in capitals.
_DESK_PREFIX = re.compile(
    r"^\s*(?:[A-Z][A-Z&/]{1,15}\.?(?: [A-Z][A-Z&/]{1,15}\.?){0,3}(?: {0,2}\d{1,3})?\s?[-–—]\s?)+(?=\S)"
)


def split_headline(title: str) -> tuple[str, str]:
    """(newswire prefixes, headline without them).

    >>> split_headline("FACTBOX-Bridges closed by storms")
    ('FACTBOX-', 'Bridges closed by storms')
    """
    stripped, sent = strip_desk_prefix(title), title.strip()
    return sent[: len(sent) - len(stripped)], stripped


def strip_desk_prefix(title: str) -> str:
    """The headline without its newswire prefixes: capitals, optionally a number, a dash.

    >>> strip_desk_prefix("RPT-UPDATE 2-Bridge closed after storm")
    'Bridge closed after storm'
    >>> strip_desk_prefix("NATO-led force leaves")
    'NATO-led force leaves'
    """
    if title.isupper():
        return title.strip()
    stripped = _DESK_PREFIX.sub("", title)
    # A headline starts with a capital, a digit or a quotation mark; a small letter continues a compound word.
    return title.strip() if stripped[:1].islower() else stripped.strip()


# " | Gazette", " - Site.com": the last segment of a headline, within its last characters.
_MAX_OUTLET_CHARS, _MAX_OUTLET_WORDS = 40, 4
_LAST_SEGMENT = re.compile(
    "(?:([|\uff5c]|_(?=[\u2e80-\U0003ffff])| [\u00b7\u2022\u00bb] | :: )| [-\u2013\u2014] )([^|\uff5c]+)$"
)
_DOMAIN = re.compile(r"\w\.[a-z]{2,5}$", re.IGNORECASE)


def without_headline(text: str, title: str) -> str:
    """The text without the headline as its first line, as pages have it, if anything follows."""
    first, _, rest = text.lstrip().partition("\n")
    return rest if rest.strip() and fold(first).split() == fold(title).split() else text


def core_headline(title: str) -> str:
    """The headline without newswire prefixes and without the name of the outlet at its end.

    Behind a dash only what looks like an outlet is one: "Bridge closed - police" keeps the police.

    >>> core_headline("UPDATE 2-Bridge closed after storm | The Harbour Gazette")
    'Bridge closed after storm'
    """
    headline = strip_desk_prefix(title)
    while segment := _LAST_SEGMENT.search(headline, max(0, len(headline) - _MAX_OUTLET_CHARS)):
        outlet = unaccented(segment[2].strip().casefold())
        words, core = outlet.split(), headline[: segment.start()].rstrip()
        is_outlet = segment[1] or _DOMAIN.search(outlet)
        is_outlet = is_outlet or not table("outlet", "").keys().isdisjoint([*words, outlet[-2:], outlet[-3:]])
        if not is_outlet or len(core) <= len(outlet) or len(words) > _MAX_OUTLET_WORDS:
            break
        headline = core
    return headline
