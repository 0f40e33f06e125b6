"""Language detection: declared by the crawler, else by script, else by n-grams.

A wrong language puts an article into a fingerprint space without its duplicates. On 2,000 English headlines
of 2 to 12 words py3langid errs in 12 %, so the n-grams are restricted to the languages of news, with a bonus
for English that whole sentences of any other language outweigh (errors 0.4 %; German openings: 0.8 %).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from aggregator.analysis import model_file
from aggregator.analysis.text.lexicon import table
from aggregator.analysis.text.normalization import HAN, KANA, ascii_if_equivalent, blanking_table, nfkc

UNDETERMINED = "und"
SAMPLE_CHARS = 500
SCRIPT_SAMPLE_CHARS = 200

_ENGLISH_WORDS = table("frequent_word", "en")
_WORD, _BLANKING = re.compile(r"\w+"), blanking_table(r"\w")  # of ASCII, in half the time
_ENGLISH_MARKER_WORDS = frozenset(_ENGLISH_WORDS | table("marker", "en"))

ENGLISH_SCORE_BONUS = 8.0  # in log likelihood; measured on headlines, see above
# In log likelihood per character: on English text no other language leads English, on other texts their
# language leads English by at least 0.5.
CONTRADICTION_LEAD_PER_CHAR = 0.3
CONTRADICTION_MIN_CHARS = 100

_GROUPS = {"en": "en", "ru": "ru", "zh": "zh"}
FALLBACK_GROUP = "xx"

_ISO_639_1 = frozenset(table("code", ""))
_CODE_ALIASES = table("code_alias", "")
CANDIDATE_LANGUAGES = list(table("detected", ""))

# Scripts of only one common language; the others are left to the statistics.
_SCRIPTS = {
    "zh": HAN, "ja": KANA + "\uff66-\uff9f", "ko": "\uac00-\ud7a3\u1100-\u11ff\u3131-\u318e",
    "el": "\u0370-\u03ff\u1f00-\u1fff", "hy": "\u0531-\u058a", "he": "\u05d0-\u05ea", "pa": "\u0a01-\u0a76",
    "gu": "\u0a81-\u0af1", "or": "\u0b01-\u0b77", "ta": "\u0b82-\u0bfa", "te": "\u0c00-\u0c7f",
    "kn": "\u0c80-\u0cf2", "ml": "\u0d00-\u0d7f", "si": "\u0d82-\u0df4", "th": "\u0e01-\u0e4e",
    "lo": "\u0e81-\u0edf", "bo": "\u0f40-\u0fbc", "my": "\u1000-\u109f", "ka": "\u10a0-\u10ff\u1c90-\u1cbf",
    "am": "\u1200-\u139f", "km": "\u1780-\u17ff",
}  # fmt: skip
_SCRIPT_RUNS = re.compile("|".join(f"(?P<{lang}>[{chars}]+)" for lang, chars in _SCRIPTS.items()))
_ANY_SCRIPT = re.compile(f"[{''.join(_SCRIPTS.values())}]")
_SHARED_SCRIPT_LETTERS = re.compile("[A-Za-z\u00c0-\u024f\u0400-\u052f\u0600-\u06ff\u0900-\u09ff]+")
_LETTERS = re.compile(r"[^\W\d_]+")

_CYRILLIC_OR_LATIN = frozenset({"az", "bs", "kk", "ro", "sh", "sr", "tk", "tt", "uz"})
_CYRILLIC_LANGUAGES = _CYRILLIC_OR_LATIN | {
    "ab", "av", "ba", "be", "bg", "ce", "cu", "cv", "kv", "ky", "mk", "mn", "os", "ru", "tg", "uk",
}  # fmt: skip
_CYRILLIC_LETTERS = re.compile("[\u0400-\u052f]+")

# (language that the script is taken for, rarer language of the same script).
_RARER_LANGUAGES_OF_SCRIPT = frozenset({("he", "yi"), ("am", "ti"), ("bo", "dz")})

# An ideograph or Hangul syllable carries about as much information as two or three letters of an alphabet.
_LETTERS_PER_CHARACTER = {"zh": 3, "ja": 2, "ko": 2}
_JAPANESE_MIN_KANA_RATIO = 0.1

NGRAMS_PATH = Path(__file__).parents[1] / "models" / "languages.ngrams"  # of the identifier
MAX_NGRAM_BYTES = 6
SCORE_STEPS_PER_UNIT = 512  # log probabilities in this unit, those of py3langid (float16), are whole numbers
_TRUE = np.ones(1, bool)


def detect_language(text: str, declared: str | None = None) -> str:
    """Return the ISO 639-1 code of a text's language, or ``UNDETERMINED`` without evidence. Never raises.

    A valid ``declared`` tag (``en-US``, ``zh_Hant``) is returned unless the text plainly contradicts it.
    """
    tagged = language_from_tag(declared) if declared else None
    start = _LETTERS.search(text)
    if start is None:
        return tagged or UNDETERMINED
    sample = text[start.start() : start.start() + SAMPLE_CHARS]
    script = language_from_script(sample[:SCRIPT_SAMPLE_CHARS])
    if tagged and not _contradicts_tag(tagged, script, sample):
        return tagged
    return script or ("en" if _is_plainly_english(sample) else _language_from_statistics(sample))


def _contradicts_tag(declared: str, script: str | None, sample: str) -> bool:
    """Whether a text is so clearly not in its declared language that the tag must be a mistake.

    Its script is not that of the language; or it has ``CONTRADICTION_MIN_CHARS`` characters and is English
    declared as another language or the reverse (4,886 of 4,887 articles right). Other languages of one script
    share a fingerprint space, so the tag is trusted.
    """
    too_short = len(sample) < CONTRADICTION_MIN_CHARS
    if script == "zh" and declared == "ja":
        return not too_short  # a Japanese headline may be all ideographs, an article is not
    if script:
        return script != declared and (script, declared) not in _RARER_LANGUAGES_OF_SCRIPT
    if too_short or declared in _SCRIPTS:
        return not too_short
    cyrillic = "".join(_CYRILLIC_LETTERS.findall(sample))
    is_cyrillic = cyrillic != "" and 2 * len(cyrillic) > len("".join(_LETTERS.findall(sample)))
    if declared not in _CYRILLIC_OR_LATIN and is_cyrillic != (declared in _CYRILLIC_LANGUAGES):
        return True
    english_words = len(_ENGLISH_WORDS.keys() & _WORD.findall(sample.lower()))
    if english_words >= 3 if declared == "en" else english_words < 3:
        return False  # the words agree with the tag; only the few other texts need the statistics
    scores = _identifier().scores(nfkc(sample))
    lead = max(score for lang, score in scores.items() if lang != "en") - scores["en"]
    return (lead if declared == "en" else -lead) > CONTRADICTION_LEAD_PER_CHAR * len(sample)


def language_group(lang: str) -> str:
    """The group whose feature model serves a language: ``en``, ``ru``, ``zh``, or ``FALLBACK_GROUP``."""
    return _GROUPS.get(lang, FALLBACK_GROUP)


@lru_cache(maxsize=1024)
def language_from_tag(tag: str) -> str | None:
    """ISO 639-1 code of a language tag or locale name (``EN_us.UTF-8``, ``cmn``), None if it names none."""
    first = re.match(r"([A-Za-z]{2,3})(?![^\W_])", tag.lstrip())
    if first is None:
        return None
    code = first[1].lower()
    code = _CODE_ALIASES.get(code, code)
    return code if code in _ISO_639_1 else None


def language_from_script(sample: str) -> str | None:
    """Language of the predominant script, None if several share it. Han with 10 % kana is Japanese."""
    if sample.isascii() or not _ANY_SCRIPT.search(sample):
        return None
    counts = dict.fromkeys(_SCRIPTS, 0)
    for run in _SCRIPT_RUNS.finditer(sample):
        counts[run.lastgroup or ""] += run.end() - run.start()
    han, kana = counts["zh"], counts["ja"]
    if kana and kana >= _JAPANESE_MIN_KANA_RATIO * (han + kana):
        counts["ja"], counts["zh"] = han + kana, 0
    weights = {lang: count * _LETTERS_PER_CHARACTER.get(lang, 1) for lang, count in counts.items() if count}
    if not weights:
        return None
    lang = max(weights, key=weights.__getitem__)
    return lang if weights[lang] >= sum(map(len, _SHARED_SCRIPT_LETTERS.findall(sample))) else None


def _is_plainly_english(sample: str) -> bool:
    """Whether four frequent English words that make up 1/10 of all show that a text is English.

    Few other languages are pure ASCII, where more words count.
    """
    in_ascii = ascii_if_equivalent(sample)
    listed = _ENGLISH_MARKER_WORDS if in_ascii.isascii() else _ENGLISH_WORDS
    lower = in_ascii.lower()
    words = lower.encode().translate(_BLANKING).decode().split() if lower.isascii() else _WORD.findall(lower)
    found = [word for word in words if word in listed]
    return len(found) * 10 > sample.count(" ") and len(set(found)) >= 4


def _language_from_statistics(sample: str) -> str:
    scores = _identifier().scores(nfkc(sample))
    best = max(scores, key=scores.__getitem__)
    if scores[best] == min(scores.values()):
        return UNDETERMINED  # no known sequence of letters
    return "en" if scores["en"] + ENGLISH_SCORE_BONUS >= scores[best] else best


@dataclass(frozen=True, slots=True, eq=False)
class LanguageIdentifier:
    """Naive Bayes over the byte n-grams of a text (Lui & Baldwin, ACL 2012); immutable, picklable.

    N-grams, of 1 to 6 bytes, log probabilities and scores are those of py3langid for the languages of news
    (``models/languages.md``), as a double-array trie (Aoe, 1989) with sparse probabilities: 6 MB and 0.02 s
    per start instead of 60 MB and 0.65 s. A node is named by its slot in the first three arrays.

    base       (s,) uint32: the child of node n for byte b, if it exists, is in slot ``base[n] + b``; the
               last slots are unused, so that every node can be tried with every byte
    parent     (s,) uint32: the parent of the node in a slot; 2**32 - 1 for the root and unused slots
    row        (s,) uint32: row of the node's n-gram, the number of rows if the n-gram has no probabilities
    starts     (r + 2,) uint32: entries of row r are ``starts[r]:starts[r + 1]``; the last row has none
    columns    (e,) uint8: column of an entry
    excess     (e,) uint16: log probability of an entry above the floor of its column, in steps
    floors     (c,) float64: log probability of the n-grams that a column does not have, in steps
    priors     (c,) float64: log
    first_columns  (l,) uint32: the first column of each language; one written in two scripts has two
    languages  l ISO 639-1 codes
    """

    base: npt.NDArray[np.uint32] = field(repr=False)
    parent: npt.NDArray[np.uint32] = field(repr=False)
    row: npt.NDArray[np.uint32] = field(repr=False)
    starts: npt.NDArray[np.uint32] = field(repr=False)
    columns: npt.NDArray[np.uint8] = field(repr=False)
    excess: npt.NDArray[np.uint16] = field(repr=False)
    floors: npt.NDArray[np.float64] = field(repr=False)
    priors: npt.NDArray[np.float64] = field(repr=False)
    first_columns: npt.NDArray[np.uint32] = field(repr=False)
    languages: tuple[str, ...]

    def scores(self, text: str) -> dict[str, float]:
        """Log likelihood of each language, up to a constant; ``text`` is in NFC."""
        rows = self._rows(text)
        if not len(rows):
            return dict.fromkeys(self.languages, 0.0)
        rows.sort()
        (firsts,) = np.concatenate([_TRUE, rows[1:] != rows[:-1]]).nonzero()
        distinct = rows.take(firsts)
        counts = np.empty_like(firsts)  # np.diff takes 8 us for a headline, this 1.4
        np.subtract(firsts[1:], firsts[:-1], out=counts[:-1])
        counts[-1] = len(rows) - firsts[-1]
        weights = np.log1p(counts)
        starts = self.starts.take(distinct).astype(np.int64)
        lengths = self.starts.take(distinct + 1) - starts
        entries = np.arange(lengths.sum()) + (starts - (lengths.cumsum() - lengths)).repeat(lengths)
        steps = np.bincount(
            self.columns.take(entries), weights.repeat(lengths) * self.excess.take(entries), len(self.priors)
        )
        totals = self.priors + (steps + weights.sum() * self.floors) / SCORE_STEPS_PER_UNIT
        best = np.maximum.reduceat(totals, self.first_columns)
        return dict(zip(self.languages, best.tolist(), strict=True))

    def _rows(self, text: str) -> npt.NDArray[np.uint32]:
        """Row of the longest n-gram that ends with each byte, (m,); bytes without are left out."""
        encoded = (text.lower() if text.isupper() else text).encode("utf-8", "surrogatepass")
        # No n-gram has a zero byte, so the zeros at the end stop the walks.
        symbols = np.frombuffer(encoded + bytes(MAX_NGRAM_BYTES), np.uint8).astype(np.intp)
        longest = np.zeros(len(symbols), np.intp)  # the root: no n-gram
        ends = np.arange(len(encoded))
        nodes = longest[: len(encoded)]
        for _ in range(MAX_NGRAM_BYTES):
            children = self.base.take(nodes) + symbols.take(ends)
            (found,) = (self.parent.take(children) == nodes).nonzero()
            nodes, ends = children.take(found), ends.take(found)
            longest[ends] = nodes  # replaces a shorter n-gram, which starts later
            ends += 1
        rows = self.row.take(longest)
        return rows[rows < len(self.starts) - 2]


@cache
def _identifier() -> LanguageIdentifier:
    fields, arrays = model_file.read(NGRAMS_PATH)
    # Copied, since arrays that are not aligned in memory are copied by each access.
    copied = {name: array.copy() for name, array in arrays.items()}
    return LanguageIdentifier(**copied, languages=tuple(fields["languages"]))
