"""Wording: which share of a text's words others have, and whether a headline is about what is shared. Pure.

A shingle is common only if all its words are, so a share of common shingles says little on words: exchanging
each tenth word leaves 0.9 ** 3 of the shingles, and a new second half leaves one half. The marks of a sketch
(``domain.Sketch``) tell where in its text each sampled shingle stands, so shares are taken for parts of the
text: within one, ``s`` common shingles of ``w`` words mean about ``s ** (1 / w)`` common words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aggregator.analysis import shingles
from aggregator.analysis.analyzer import HEADLINE_COUNTS_BELOW_WORDS, shingle_width
from aggregator.analysis.shingles import IGNORED_LOW_BITS, MAX_UINT32
from aggregator.analysis.text import tokenizer
from aggregator.analysis.text.normalization import core_headline
from aggregator.analysis.text.spelling import normalize_spelling
from aggregator.dedup.copy_rule import Comparable
from aggregator.domain import HEADLINE_MARK, POSITIONS, Sketch

# Parts of a text, if each has enough sampled shingles.
MAX_PARTS, MIN_SHINGLES_PER_PART = 16, 6
BEGINNING_SHINGLES, MOST_OF_BEGINNING, MAX_KICKER_WORDS = 24, 0.8, 8


@dataclass(frozen=True, slots=True)
class SharedWording:
    """How much of a text others have.

    words      share of its words, 0..1
    headline   share of its shingles with a term of its own headline, 0..1; None if there are none
    beginning  share of the shingles of its first words, 0..1
    """

    words: float = 0.0
    headline: float | None = None
    beginning: float = 0.0


def shared_wording(subject: Sketch, others: Sequence[Sketch], width: int, skip: float = 0.0) -> SharedWording:
    """How much of ``subject`` at least one of ``others`` has; ``width``: words of a shingle.

    ``skip``: the share of its beginning, up to 1, that does not count.
    """
    sketches = [sketch for sketch in others if len(sketch.sample)]
    if not sketches or not len(subject.sample):
        return SharedWording()
    # Up to the smallest of the largest hashes all samples are complete.
    limits = [int(s.sample[-1]) if len(s.sample) < s.size else MAX_UINT32 for s in (subject, *sketches)]
    count = int(subject.sample.searchsorted(np.uint32(min(limits)), side="right"))
    counted = subject.marks[:count] % POSITIONS >= POSITIONS * skip
    own, marks = subject.sample[:count][counted] >> IGNORED_LOW_BITS, subject.marks[:count][counted]
    if not len(own):
        return SharedWording()
    found = np.sort(np.concatenate([s.sample for s in sketches])) >> IGNORED_LOW_BITS
    is_common = found[np.minimum(found.searchsorted(own), len(found) - 1)] == own
    return SharedWording(
        _share_of_words(is_common, marks, width),
        _share(is_common, marks & HEADLINE_MARK != 0),
        _share(is_common, marks % POSITIONS < POSITIONS * BEGINNING_SHINGLES / subject.size) or 0.0,
    )


def tells_news(subject: Comparable, others: Sequence[Comparable], text: str) -> bool:
    """Whether ``text``, that of ``subject``, says what its headline says and no other article does.

    A term that only its headline has, behind a headline and a kicker at its beginning, or two anywhere: in a
    sampled shingle, in no wording of others. A term of its headline must be of theirs, or of their texts.
    """
    lang, width = subject.lang, shingle_width(subject.lang)
    titled, *others_titled = (normalize_spelling(headline_units(a), lang) for a in (subject, *others))
    words = normalize_spelling(tokenizer.shingle_units(text, lang), lang)
    start = len(titled) if words[: len(titled)] == titled else 0
    lead = range(start, start + BEGINNING_SHINGLES)
    of_headline = {*tokenizer.terms_of_words(titled, lang)}
    known = {term for other in others_titled for term in tokenizer.terms_of_words(other, lang)}
    new = of_headline.intersection(tokenizer.terms_of_words(words[start:], lang)) - known
    if not new or of_headline.isdisjoint(known.union(term for other in others for term, _ in other.terms)):
        return False
    hashes = shingles.hashes_in_order(np.fromiter(map(shingles.word_hash, words), np.uint64), width)
    hashes >>= np.uint64(32)
    sketches = [other.sketch for other in others]
    least = min(int(s.sample[-1]) if len(s.sample) < s.size else MAX_UINT32 for s in sketches)
    sampled = np.concatenate([sketch.sample for sketch in sketches]) >> IGNORED_LOW_BITS
    is_known = np.isin(hashes >> np.uint64(IGNORED_LOW_BITS), sampled)
    front = int(is_known[start:].argmax()) if is_known.any() else 0  # words of a kicker
    beginnings = (shared_wording(sketch, [subject.sketch], width).beginning for sketch in sketches)
    if front < MAX_KICKER_WORDS and any(share >= MOST_OF_BEGINNING for share in beginnings):
        lead = range(start + front, lead.stop)
    terms_at = [new.intersection(tokenizer.terms_of_words([word], lang)) for word in words]
    for place, terms in enumerate(terms_at):
        new -= terms if is_known[max(0, place - width + 1) : place + 1].any() else set()
    sampled_at = {j + i for j in np.flatnonzero(hashes <= least).tolist() if j >= start for i in range(width)}
    said_at = {at: terms & new for at, terms in enumerate(terms_at) if at in sampled_at and at >= lead.start}
    return any(at in lead for at in said_at if said_at[at]) or len(set().union(*said_at.values())) > 1


def headline_shingles(article: Comparable) -> set[int]:
    """The shingles of the headline that are in the sketch: those of a short text (``select_compared``)."""
    if article.sketch.size >= HEADLINE_COUNTS_BELOW_WORDS:
        return set()
    units = normalize_spelling(headline_units(article), article.lang)
    return set(shingles.build_sketch(units, shingle_width(article.lang)).sample.tolist())


def count_of_headline(article: Comparable) -> int:
    """How many shingles of the sketch only the headline has: none if the text begins with it."""
    return min(len(headline_shingles(article)), max(0, article.sketch.size - article.text_words))


def has_text(article: Comparable) -> bool:
    """Whether more than its headline is known: a text with all of it and no more words only repeats it."""
    return article.text_words > (len(headline_units(article)) if article.own_headline == 1 else 0)


def headline_units(article: Comparable) -> list[str]:
    """What shingles of the headline are runs of, without the name of the outlet."""
    return tokenizer.shingle_units(core_headline(article.title), article.lang)


def _share_of_words(is_common: npt.NDArray[np.bool_], marks: npt.NDArray[np.uint8], width: int) -> float:
    parts = max(1, min(MAX_PARTS, len(marks) // MIN_SHINGLES_PER_PART))
    part_of = (marks % POSITIONS).astype(np.int64) * parts // POSITIONS
    counts = np.bincount(part_of, minlength=parts)
    common = np.bincount(part_of[is_common], minlength=parts)
    shares = common[counts > 0] / counts[counts > 0]
    return float((shares ** (1 / width)).mean())


def _share(is_common: npt.NDArray[np.bool_], chosen: npt.NDArray[np.bool_]) -> float | None:
    return float(is_common[chosen].mean()) if chosen.any() else None
