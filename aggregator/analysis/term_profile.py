"""Terms of an article: the profile by which related articles are ranked, and the terms of its story.

**Term profile**: the 40 heaviest index terms; articles are compared by the cosine of their profiles. Terms
are equal by their first ``PREFIX_CHARS`` characters (Can et al. 2008), the stored ones by their first
``SHORT_PREFIX_CHARS`` too, for inflections that change the stem (docs/decisions/0035-term-profile.md). The 24
heaviest are stored as strings with weights, the minor terms by ``encode_minor_terms``. ``calendar_terms``
weigh nothing: a horoscope and a TV guide of one day have no other term in common.

**Story terms**, from which events are detected: the headline's terms with weight 1, and those of the first
``OPENING_UNITS`` words of the text that are among the heaviest, with weight ``OPENING_WEIGHT``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter

import numpy as np
import numpy.typing as npt
import xxhash

from aggregator.analysis.text import tokenizer
from aggregator.analysis.text.lexicon import table
from aggregator.analysis.text.markup import addresses
from aggregator.analysis.text.normalization import core_headline
from aggregator.domain import Analysis, ArticleRecord, WeightedTerms

MINOR_TERMS = 16
LEAD_TERMS = 10
LEAD_FACTOR = 1.75
WEIGHT_EXPONENT = 0.35
PREFIX_CHARS = 5
SHORT_PREFIX_CHARS = 3
SHORT_PREFIX_FACTOR = 0.6
OPENING_UNITS = 40  # two sentences, the lead of a news article
OPENING_WEIGHT = 0.5
_LEAD_BYTES = 5  # a bit for each of 40 terms
_HEAD_BYTES = _LEAD_BYTES + 1
_HASH_SEED = 0x71
_HASH_BITS = 16
_SHORT_PREFIX = 1 << _HASH_BITS  # added to the hash of a short prefix, to keep it apart from the others
_MAX_SHARE = 255

TermProfile = Analysis | ArticleRecord  # by its ``terms`` and ``minor_terms``
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def encode_minor_terms(stored: WeightedTerms, minor: WeightedTerms, lead: Collection[str]) -> bytes:
    """The ``minor`` terms, which follow the ``stored`` ones, descending, and ``lead`` as bytes.

    A bit per term that is in ``lead``, the first one lowest; one byte for the last weight, 1/255 of that of
    the last stored term each; then two per hash. No terms give no bytes.
    """
    if not stored:
        return b""
    flags = sum(1 << at for at, (term, _) in enumerate((*stored, *minor)) if term in lead)
    share = round(_MAX_SHARE * minor[-1][1] / stored[-1][1]) if minor else _MAX_SHARE
    head = flags.to_bytes(_LEAD_BYTES, "little") + bytes([max(1, min(_MAX_SHARE, share))])
    return head + np.array([_hashes(term) & (_SHORT_PREFIX - 1) for term, _ in minor], "<u2").tobytes()


def profile_weights(profile: TermProfile) -> list[tuple[str, float]]:
    """The stored terms and their weights in the profile, > 0; heaviest first, so that leading terms are."""
    lead, counted = int.from_bytes(profile.minor_terms[:_LEAD_BYTES], "little"), subject_terms(profile)
    by = [LEAD_FACTOR if lead >> at & 1 else 1.0 for at in range(len(profile.terms))]
    each = zip(profile.terms, by, strict=True)
    weighted = [(t, w**WEIGHT_EXPONENT * factor) for (t, w), factor in each if t in counted]
    return sorted(weighted, key=itemgetter(1), reverse=True)


def subject_terms(profile: TermProfile) -> dict[str, float]:
    """The stored terms that weigh something, and their weights."""
    calendar = calendar_terms(profile.lang)
    return {term: weight for term, weight in profile.terms if term not in calendar}


def cosines(subject: TermProfile, others: Sequence[TermProfile]) -> FloatArray:
    """Cosine of one profile with each of several, (n,) in 0..1; 0 where either is empty."""
    hashes, weights, owners = _flatten([subject, *others])
    bits, own = _HASH_BITS + 1, np.zeros(2 * _SHORT_PREFIX)
    keys, at = np.unique(owners << bits | hashes, return_inverse=True)  # equal prefixes of a profile are one
    hashes, owners, sums = keys & ((1 << bits) - 1), keys >> bits, np.bincount(at, weights)
    own[hashes[owners == 0]] = sums[owners == 0]
    products, squares = (np.bincount(owners, w * sums, len(others) + 1) for w in (own[hashes], sums))
    scales = np.sqrt(squares[1:] * squares[0])
    found: FloatArray = np.divide(products[1:], scales, out=np.zeros(len(others)), where=scales > 0)
    return np.minimum(found, 1.0)


def unit_vectors(profiles: Sequence[TermProfile]) -> FloatArray:
    """The profiles as rows of norm 1 over their prefixes, (n, m); 0 for one that is empty."""
    hashes, weights, owners = _flatten(profiles)
    columns, at = np.unique(hashes, return_inverse=True)
    rows = np.zeros((len(profiles), len(columns)))
    np.add.at(rows, (owners, at), weights)
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    found: FloatArray = np.divide(rows, norms, out=rows, where=norms > 0)
    return found


def _flatten(profiles: Sequence[TermProfile]) -> tuple[IntArray, FloatArray, IntArray]:
    """Return hash and weight of every prefix, and the position of its profile; all (n,)."""
    encoded = [profile.minor_terms for profile in profiles]
    stored_counts = np.array([len(profile.terms) for profile in profiles], np.int64)
    minor_counts = np.array([max(0, len(data) - _HEAD_BYTES) // 2 for data in encoded], np.int64)
    stored = list(chain.from_iterable(profile.terms for profile in profiles))
    calendar = frozenset().union(*(calendar_terms(lang) for lang in {profile.lang for profile in profiles}))
    hashes = np.fromiter(map(_hashes, map(itemgetter(0), stored)), np.int64, len(stored))
    weights = np.fromiter(map(itemgetter(1), stored), np.float64, len(stored))
    weights[[at for at, (term, _) in enumerate(stored) if term in calendar]] = 0.0
    minor_hashes = np.frombuffer(b"".join([data[_HEAD_BYTES:] for data in encoded]), "<u2")
    heads = b"".join([data[:_HEAD_BYTES] or bytes(_HEAD_BYTES) for data in encoded])
    head_rows = np.frombuffer(heads, np.uint8).reshape(-1, _HEAD_BYTES)
    shares = head_rows[:, _LEAD_BYTES] / _MAX_SHARE
    lasts = np.array([profile.terms[-1][1] if profile.terms else 0.0 for profile in profiles])
    stored_owners, stored_ranks = _ranks(stored_counts)
    owners, ranks = _ranks(minor_counts)
    minor_weights = lasts[owners] * shares[owners] ** ((ranks + 1) / minor_counts[owners])
    all_owners = np.concatenate([stored_owners, owners])
    positions = np.concatenate([stored_ranks, stored_counts[owners] + ranks])
    is_lead = np.unpackbits(head_rows[:, :_LEAD_BYTES], axis=1, bitorder="little")[all_owners, positions]
    values = np.concatenate([weights, minor_weights]) ** WEIGHT_EXPONENT * np.where(is_lead, LEAD_FACTOR, 1.0)
    return (
        np.concatenate([hashes & (_SHORT_PREFIX - 1), minor_hashes, hashes >> _HASH_BITS]),
        np.concatenate([values, SHORT_PREFIX_FACTOR * values[: len(weights)]]),
        np.concatenate([all_owners, stored_owners]),
    )


def _ranks(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Return the owner of each item, ``counts`` per owner, and its rank there from 0 on; both (n,)."""
    owners = np.arange(len(counts)).repeat(counts)
    return owners, np.arange(len(owners)) - (counts.cumsum() - counts)[owners]


@lru_cache(maxsize=1 << 16)
def _hashes(term: str) -> int:
    """The hash of the prefix, as ``encode_minor_terms`` stores it, and above it that of the short prefix."""
    prefixes = (term[:chars].encode("utf-8", "surrogatepass") for chars in (PREFIX_CHARS, SHORT_PREFIX_CHARS))
    long, short = (xxhash.xxh3_64_intdigest(prefix, _HASH_SEED) & (_SHORT_PREFIX - 1) for prefix in prefixes)
    return long | (short + _SHORT_PREFIX) << _HASH_BITS


@lru_cache(maxsize=64)
def calendar_terms(lang: str) -> frozenset[str]:
    """The terms of weekdays, months and the like in a language, and the numbers of days."""
    days = (form for day in range(1, 32) for form in (str(day), f"{day:02}"))
    words = [term for word in table("calendar", lang) for term in tokenizer.tokenize(word, lang)]
    return frozenset((*words, *days))


def story_terms(title: str, lang: str, terms: WeightedTerms, mask: int) -> tuple[tuple[str, float], ...]:
    """Story terms of an article and their weights, the headline's first; without numbers and the calendar.

    An article with neither a headline nor an opening has its heaviest terms.
    """
    title, calendar = core_headline(title), calendar_terms(lang)
    headline: Iterable[str] = tokenizer.tokenize(title, lang)
    if found := addresses(title):
        headline = Counter(headline) - Counter(tokenizer.tokenize(found, lang))
    weights = dict.fromkeys((term for term in headline if not term.isdecimal() and term not in calendar), 1.0)
    for i, (term, _) in enumerate(terms):
        if mask >> i & 1 and not term.isdecimal() and term not in calendar:
            weights.setdefault(term, OPENING_WEIGHT)
    return tuple(weights.items()) or tuple(terms)
