"""Counter of wrong duplicates: judges a pair of articles by headlines, openings and shared wording. Pure.

The counter needs no labels, and does not use the rules of ``dedup``. A pair is counted as **wrong** when all
of these hold:

* the headlines differ: ``headline_similarity`` below 0.6 (a missing headline counts as different);
* in languages with spaces: neither opening (the first 80 words of a text) is in the other text, i.e. the
  other text has under 20 % of the opening's 3-word shingles;
* in languages with spaces: the containment of the whole texts, ``|A and B| / min(|A|, |B|)`` over exact
  3-word shingles, is below 0.8;
* in languages without spaces, instead of the two tests above: the containment over exact 4-character
  shingles is below 0.5.

It is lenient: a follow-up that repeats the opening or the headline of an earlier report passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from aggregator.analysis.analyzer import uses_spaces
from aggregator.analysis.text.tokenizer import words
from aggregator.domain import Article

MIN_HEADLINE_SIMILARITY = 0.6
OPENING_WORDS = 80
MIN_OPENING_SHARE = 0.2
MIN_CONTAINMENT = 0.8
MIN_CONTAINMENT_UNSPACED = 0.5
SHINGLE_WORDS = 3
SHINGLE_CHARACTERS = 4

Shingles = frozenset[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """What the counter measures on a pair, each 0..1, and whether the pair is counted as wrong.

    headline_similarity  ``headline_similarity`` of the two headlines
    opening_share        larger share of one text's opening that is in the other text; None without spaces
    containment          share of the shingles of the text with fewer shingles that are in the other text
    """

    headline_similarity: float
    opening_share: float | None
    containment: float
    wrong: bool

    def as_json(self) -> dict[str, float | bool | None]:
        """Rounded measures and the result."""
        opening = self.opening_share
        return {
            "headline_similarity": round(self.headline_similarity, 4),
            "opening_share": None if opening is None else round(opening, 4),
            "containment": round(self.containment, 4),
            "wrong": self.wrong,
        }


def judge_pair(a: Article, b: Article, lang: str) -> PairEvidence:
    """Evidence on the pair, symmetric in ``a`` and ``b``. ``lang``: language of both, ISO 639-1.

    A text that is empty is replaced by its headline.
    """
    headlines = headline_similarity(a.title, b.title)
    words_a, words_b = words(a.text or a.title, lang), words(b.text or b.title, lang)
    if not uses_spaces(lang):
        shared = containment(_character_shingles(words_a), _character_shingles(words_b))
        wrong = headlines < MIN_HEADLINE_SIMILARITY and shared < MIN_CONTAINMENT_UNSPACED
        return PairEvidence(headlines, None, shared, wrong)
    shingles_a, shingles_b = _shingles(words_a, SHINGLE_WORDS), _shingles(words_b, SHINGLE_WORDS)
    opening = max(_opening_share(words_a, shingles_b), _opening_share(words_b, shingles_a))
    shared = containment(shingles_a, shingles_b)
    wrong = headlines < MIN_HEADLINE_SIMILARITY and opening < MIN_OPENING_SHARE and shared < MIN_CONTAINMENT
    return PairEvidence(headlines, opening, shared, wrong)


def headline_similarity(a: str, b: str) -> float:
    """``SequenceMatcher.ratio`` of the headlines in lower case with single spaces, 0..1.

    The larger of both directions, since the ratio depends on the order. 0 if either is empty.
    """
    a, b = " ".join(a.lower().split()), " ".join(b.lower().split())
    if not a or not b:
        return 0.0
    return max(
        SequenceMatcher(None, a, b, autojunk=False).ratio(),
        SequenceMatcher(None, b, a, autojunk=False).ratio(),
    )


def containment(a: Shingles, b: Shingles) -> float:
    """``|a and b| / min(|a|, |b|)``; 0 if either is empty."""
    smaller = min(len(a), len(b))
    return len(a & b) / smaller if smaller else 0.0


def _opening_share(tokens: Sequence[str], other: Shingles) -> float:
    opening = _shingles(tokens[:OPENING_WORDS], SHINGLE_WORDS)
    return len(opening & other) / len(opening) if opening else 0.0


def _character_shingles(tokens: Sequence[str]) -> Shingles:
    return _shingles("".join(tokens), SHINGLE_CHARACTERS)


def _shingles(items: Sequence[str], width: int) -> Shingles:
    return frozenset(zip(*(items[i:] for i in range(width)), strict=False))
