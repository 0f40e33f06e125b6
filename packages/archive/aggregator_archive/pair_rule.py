"""The service's decision on the candidates of an archive, pair by pair, from the columns.

The rules are those of ``dedup/``, called as by the service when the later article of a pair arrives. Undated
articles arrive in the order of their rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from aggregator.analysis.shingles import OverlapEstimate, estimate_overlaps
from aggregator.analysis.simhash import hamming_distance
from aggregator.dedup.copy_rule import Evidence, hours_between, is_same_outlet
from aggregator.dedup.policy import Policy
from aggregator.dedup.verdict import (
    compare_pair,
    compare_with_readers_versions,
    cosine,
    figures_are_news,
    shares_enough,
)
from aggregator.domain import Match, Outcome, Sketch, WeightedTerms
from aggregator_archive.arrays import Floats, Pairs, Rows, batches, pack_pairs, unpack_pairs
from aggregator_archive.char_ngrams import compare_char_ngrams, policy_for_char_ngrams
from aggregator_archive.columns import Columns
from aggregator_archive.encode import UNDATED, decode_details

CACHED_ARTICLES = 4_096
# Decisions on a pair. ``SHARES_ENOUGH``: a copy if a second outlet confirms it (``confirmed_by_groups``).
# ``UNDECIDED``: the later article has enough copies; all pairs of 1,600 copies would take minutes.
DIFFERENT, COPY, SHARES_ENOUGH, UNDECIDED = range(4)
ENOUGH_COPIES = 32
# An estimate is smaller or larger from the other article, if shortened hashes collide.
ESTIMATE_TOLERANCE = 0.02
_ANY_MATCH = Match("", 0, "", 0, 0, None, "overlap")


@dataclass(frozen=True, slots=True, eq=False)
class ArchivedArticle:
    """One row as the rules read it (``copy_rule.Comparable``)."""

    lang: str
    space: int
    title: str
    short: bool
    sketch: Sketch
    terms: WeightedTerms
    figures: tuple[int, ...]
    fingerprint: int
    source: str
    published_at_ms: int | None
    uses_char_ngrams: bool
    text_words: int
    own_headline: float


class PairRule:
    """Decides pairs of the articles in ``columns`` by ``policy``."""

    def __init__(self, columns: Columns, policy: Policy) -> None:
        self._columns = columns
        self._policies = (policy, policy_for_char_ngrams(policy))
        self._read_row = lru_cache(CACHED_ARTICLES)(self._read)

    def decide(self, pairs: Pairs, containment: Floats) -> npt.NDArray[np.uint8]:
        """(n,) ``COPY``, ``SHARES_ENOUGH``, ``DIFFERENT`` or ``UNDECIDED``.

        Copies are of one text without replaced figures; which of the two has more, ``keeps`` says.

        ``containment``: (n,) as estimated by ``confirm.estimate_overlaps``.
        """
        decisions = np.full(len(pairs), DIFFERENT, np.uint8)
        earlier, later = order_by_arrival(self._columns, pairs)
        near = np.flatnonzero(containment >= containment_floor(self._policies[0]) - ESTIMATE_TOLERANCE)
        order = near[np.lexsort((-containment[near], later[near]))]
        for at in np.split(order, np.flatnonzero(np.diff(later[order])) + 1):
            if len(at):
                decisions[at] = self._decide_one(int(later[at[0]]), earlier[at])
        return decisions

    def is_copy(self, a: int, b: int) -> bool:
        """Whether the pair of two rows is decided ``COPY``."""
        pair = pack_pairs(np.array([min(a, b)]), np.array([max(a, b)]))
        return bool(self.decide(pair, np.ones(1))[0] == COPY)

    def keeps(self, row: int, copied_row: int) -> bool:
        """Whether a row has news that its copy lacks: the service's ``keep`` if readers had that one only."""
        article, copied = self._read_row(row), self._read_row(copied_row)
        pair = pack_pairs(np.array([copied_row]), np.array([row]))
        is_later = bool(order_by_arrival(self._columns, pair)[1][0] == row)
        outcome = Outcome("duplicate", match=_ANY_MATCH, keep=False)
        policy = self._policies[article.uses_char_ngrams]
        if article.uses_char_ngrams:  # of which the words of the headline cannot be told by number
            article = replace(article, title="")
        same_outlet = is_same_outlet(article.source, copied.source)
        is_revision = same_outlet and is_later
        return compare_with_readers_versions(
            outcome, article, copied, [], policy, same_outlet, is_revision
        ).keep

    def _decide_one(self, row: int, candidate_rows: Rows) -> npt.NDArray[np.uint8]:
        subject = self._read_row(row)
        policy = self._policies[subject.uses_char_ngrams]
        decisions = np.full(len(candidate_rows), UNDECIDED, np.uint8)
        for batch in batches(len(candidate_rows), ENOUGH_COPIES):
            candidates = [self._read_row(candidate) for candidate in candidate_rows[batch].tolist()]
            sketches = [candidate.sketch for candidate in candidates]
            overlaps = estimate_overlaps(subject.sketch, sketches, containment_floor(policy))
            decisions[batch] = [
                self._decide_pair(candidate, subject, overlap, policy)
                for candidate, overlap in zip(candidates, overlaps, strict=True)
            ]
            if np.count_nonzero(decisions == COPY) >= ENOUGH_COPIES:
                break
        return decisions

    @staticmethod
    def _decide_pair(
        earlier: ArchivedArticle, later: ArchivedArticle, overlap: OverlapEstimate, policy: Policy
    ) -> int:
        is_char_ngrams = later.uses_char_ngrams
        if earlier.space != later.space and not is_char_ngrams:
            return DIFFERENT  # the service compares within one space
        evidence = Evidence(
            overlap,
            cosine(later.terms, earlier.terms),
            hamming_distance(later.fingerprint, earlier.fingerprint),
            is_same_outlet(earlier.source, later.source),
            hours_between(earlier.published_at_ms, later.published_at_ms),
        )
        compare = compare_char_ngrams if is_char_ngrams else compare_pair
        if compare(later, earlier, evidence, policy)[0]:
            return DIFFERENT if figures_are_news(earlier, later, policy) else COPY
        if is_char_ngrams or not shares_enough(later, earlier, evidence, policy):
            return DIFFERENT
        return SHARES_ENOUGH

    def _read(self, row: int) -> ArchivedArticle:
        columns = self._columns
        sample_size = int(columns.sample_size[row])
        details = decode_details(columns.variable("detail", row).tobytes(), sample_size)
        sample = columns.variable("sample", row)
        date = int(columns.date_ms[row])
        return ArchivedArticle(
            lang=details.lang,
            space=int(columns.space[row]),
            title=details.title,
            short=details.short,
            sketch=Sketch(int(columns.size[row]), sample, details.marks),
            terms=details.terms,
            figures=tuple(columns.variable("figure", row).tolist()),
            fingerprint=int(columns.fingerprint[row]),
            source=columns.sources[int(columns.source[row])],
            published_at_ms=None if date == UNDATED else date,
            uses_char_ngrams=bool(columns.uses_char_ngrams[row]),
            text_words=details.text_words,
            own_headline=details.own_headline,
        )


def containment_floor(policy: Policy) -> float:
    """Containment, 0..1, below which no pair is a copy by this policy."""
    return policy.containment_floor if policy.name == "verified" else 0.0


def order_by_arrival(columns: Columns, pairs: Pairs) -> tuple[Rows, Rows]:
    """(n,) the earlier and the later row of each pair: by date, and by row if a date is unknown or equal."""
    a, b = unpack_pairs(pairs)
    date_a, date_b = columns.date_ms[a], columns.date_ms[b]
    dated = (date_a != UNDATED) & (date_b != UNDATED)
    swapped = dated & (date_a > date_b)
    return np.where(swapped, b, a), np.where(swapped, a, b)
