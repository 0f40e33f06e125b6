"""Expectation of a cluster: the items usual for it at this time of the week; burst weights of terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from math import exp, inf

from aggregator.analysis.term_frequencies import TermRates
from aggregator.events.detection.baseline import KNOWN_VOLUME_SHARE, Baseline, TermCache, documents_in
from aggregator.events.detection.clustering import MAX_TERM_WEIGHT, Cluster, WindowItem
from aggregator.events.detection.model import CHANCE_ITEMS, HOURS_PER_DAY, NEARLY_ALL, BurstRule
from aggregator.events.detection.newsworthiness import CORE_SHARE, core_terms, count_terms, dependent_share
from aggregator.time_units import HOUR_MS, MINUTE_MS

# Multiple of its expectation that a cluster needs to fire (divided by the rule's sensitivity).
EXCESS_RATIO = 4.0
# The expectation of a cluster is the mean of those of its terms, weighted by the cube of a term's share of
# the items: the template that all items have in common decides, not the names that fill it.
SHARE_POWER = 3


def expected_items(cluster: Cluster, baseline: Baseline, hour: int) -> float:
    """Return the items per window that are usual for the common terms of the cluster, at usual volume."""
    weighted = total = 0.0
    rarest = inf
    largest_sum = MAX_TERM_WEIGHT * len(cluster.members)
    expectations = baseline.expectations(hour)
    for term, weight in cluster.term_sums.items():
        share = weight / largest_sum
        expected = expectations[term]
        power = share**SHARE_POWER
        weighted += power * expected
        total += power
        if share >= NEARLY_ALL and expected < rarest:
            rarest = expected
    return min(rarest, weighted / total) if total else 0.0


def volume_ratio(
    cluster: Cluster, baseline: Baseline, window_count: Callable[[str], int], hour: int
) -> float:
    """Return the volume of its languages beside its story, in multiples of the usual, from 1.0."""
    largest = max(cluster.term_sums.values())
    common_term = max([term for term, total in cluster.term_sums.items() if total == largest])
    # Fragments of the story hold its most common term too.
    observed = -max(cluster.counted_items, window_count(common_term))
    expected = -baseline.expected(common_term, hour)
    for lang in {member.lang for member in cluster.members.values() if member.is_counted}:
        observed += window_count(documents_in(lang))
        expected += baseline.expected(documents_in(lang), hour)
    return max(1.0, (observed + CHANCE_ITEMS) / (max(0.0, expected) + CHANCE_ITEMS))


def exceeds_expectation(observed: int, expected: float, rule: BurstRule) -> bool:
    """Whether ``observed`` is clearly more than ``expected``: 16 of 4.0 are, at sensitivity 1."""
    return observed * rule.sensitivity >= EXCESS_RATIO * expected


class ColdStart:
    """Documents and index terms by language; ``remaining``: missing part of the first day, 1 to 0."""

    def __init__(self, rates: TermRates | None, baseline: Baseline) -> None:
        self.rates = rates
        self._baseline = baseline
        self._documents: Counter[str] = Counter()
        self._index_terms: Counter[str] = Counter()
        # By term of the first day: language of the latest item that holds it, and its rate.
        self._rate_of_term: dict[str, tuple[str, float]] = {}
        self.remaining = 0.0

    def refresh(self, hour: int) -> None:
        """Set the time."""
        self.remaining = self._baseline.missing_share(hour) if self.rates is not None else 0.0
        if not self.remaining:
            self._rate_of_term.clear()

    def add(self, member: WindowItem) -> None:
        """Count a document that entered the window."""
        self._documents[member.lang] += 1
        self._index_terms[member.lang] += len(member.terms)
        if self.remaining and self.rates is not None:
            known, lang = self._rate_of_term, member.lang
            for term in member.terms:
                if term not in known or known[term][0] != lang:
                    known[term] = lang, self.rates.rate(lang, term)

    def remove(self, member: WindowItem) -> None:
        """Undo ``add`` for a document that left the window."""
        self._documents[member.lang] -= 1
        self._index_terms[member.lang] -= len(member.terms)

    def expected(self, term: str) -> float:
        """Return how many documents of the window hold a term in general news, times ``remaining``."""
        if not self.remaining:
            return 0.0
        lang, rate = self._rate_of_term.get(term, ("", 0.0))
        documents = self._documents[lang] if rate else 0
        if not documents:
            return 0.0
        return self.remaining * documents * (1.0 - exp(-rate * self._index_terms[lang] / documents))

    def expected_items(self, cluster: Cluster, expected: float) -> float:
        """Return the items expected of a cluster where history gives ``expected``; inf: may be routine."""
        in_window, windows = self._documents.total(), HOURS_PER_DAY / self._baseline.window_hours
        is_thin = self._baseline.document_count - in_window < KNOWN_VOLUME_SHARE * windows * in_window
        if self.rates is None or not (self.remaining or is_thin):
            return expected
        members = [member for member in cluster.members.values() if member.is_counted]
        distinct_times = len({(member.source, member.at_ms // MINUTE_MS) for member in members})
        if distinct_times < CORE_SHARE * dependent_share(members) * len(members):
            return inf
        # Headlines that share no term may be about what the openings of their texts share.
        common = core_terms(members, count_terms(members)) or core_terms(
            members, Counter(term for member in members for term in member.terms)
        )
        if not common:
            return inf
        return max(expected, EXCESS_RATIO * min(map(self.expected, common)))


class TermWeights:
    """Counts and weights of the terms in the window, as of ``refresh``; ``weigh``: weight of a term now.

    ``min_burst_documents``: minimum number of documents of a bursting term, over half of an event's.
    """

    def __init__(self, rule: BurstRule, baseline: Baseline, cold_start: ColdStart) -> None:
        self._rule, self._baseline, self._cold_start = rule, baseline, cold_start
        self._window_counts: dict[str, int] = {}
        self._weight_cache = TermCache(self._compute_weight)
        self.hour = 0
        self.weigh = self._weight_cache.__getitem__
        self.idf = baseline.idf
        self.min_burst_documents = rule.items // 2 + 1

    def add(self, member: WindowItem) -> None:
        """Count a document that entered the window."""
        self._cold_start.add(member)
        counts, invalidate = self._window_counts, self._weight_cache.pop
        for term in _counted_terms(member):
            counts[term] = counts.get(term, 0) + 1
            invalidate(term, None)

    def remove(self, member: WindowItem) -> None:
        """Undo ``add`` for a document that left the window."""
        self._cold_start.remove(member)
        counts, invalidate = self._window_counts, self._weight_cache.pop
        for term in _counted_terms(member):
            counts[term] -= 1
            if not counts[term]:
                del counts[term]
            invalidate(term, None)

    def _compute_weight(self, term: str) -> float:
        in_general = self._cold_start.expected(term) if self._cold_start.remaining else 0.0
        return self._baseline.weight(term, self._window_counts.get(term, 0), self.hour, in_general)

    def invalidate(self, terms: Iterable[str]) -> None:
        """Drop what is cached of terms whose history changed."""
        for term in terms:
            self._weight_cache.pop(term, None)

    def refresh(self, now_ms: int) -> None:
        """Set the time of the weights; cached ones are dropped if the baseline totals changed."""
        self.hour = now_ms // HOUR_MS
        self._cold_start.refresh(self.hour)
        if self._baseline.refresh_totals(self.hour):
            self._weight_cache.clear()

    def window_count(self, term: str) -> int:
        """Return how many documents in the window hold the term."""
        return self._window_counts.get(term, 0)

    def expected(self, term: str) -> float:
        """Return how many documents usually hold the term in a window at this hour."""
        return max(self._baseline.expected(term, self.hour), self._cold_start.expected(term))

    def is_bursting(self, term: str) -> bool:
        """Whether at least ``min_burst_documents`` hold the term, clearly more than expected."""
        count = self.window_count(term)
        is_enough = count >= self.min_burst_documents
        return is_enough and exceeds_expectation(count, self.expected(term), self._rule)


def _counted_terms(member: WindowItem) -> Iterable[str]:
    """The terms of a document; that of its volume only if its source is usual here."""
    return (*member.terms, documents_in(member.lang)) if member.is_usual else member.terms
