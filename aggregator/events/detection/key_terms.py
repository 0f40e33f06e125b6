"""Key terms of a cluster: its most distinctive terms, how they are shown, and what they prove.

**Evidence for a merge.** A word bursts when two topics of one morning use it: two planes, one that crashed
and one that landed safely. One common term is therefore no evidence, unless it does not occur by chance: a
term with an expectation of 0.05 documents per window occurs in an unrelated topic once in 20 windows.

**Profile.** The common terms as a unit vector, which recognizes the cluster days later: a list of (term,
weight), the sum of the term over the items times its idf, the heaviest twenty. Unlike the weights used for
clustering (``baseline.py``) it does not depend on the time.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from operator import mul

from aggregator.events.detection.baseline import NEGLIGIBLE_DOCUMENTS
from aggregator.events.detection.clustering import Cluster, TermWeigher, WindowItem
from aggregator.events.detection.headline_choice import Candidate, choose_headline
from aggregator.events.detection.items import terms_of_word
from aggregator.events.detection.model import Profile
from aggregator.events.detection.term_weights import TermWeights

MIN_COMMON_TERMS = 2
KEY_TERMS_PER_CLUSTER = 8
# Headlines examined per event, in order of joining.
MAX_HEADLINES = 30
_TOKEN = re.compile(r"[^\W_]+")
PROFILE_TERMS = 20


def terms_support_merge(common: Collection[str], expected: Callable[[str], float]) -> bool:
    """Whether these common key terms support a merge; ``expected``: usual documents with a term."""
    return len(common) >= MIN_COMMON_TERMS or any(expected(term) < NEGLIGIBLE_DOCUMENTS for term in common)


def top_terms(cluster: Cluster, weigh: TermWeigher) -> list[str]:
    """Return the ``KEY_TERMS_PER_CLUSTER`` terms with the largest sum times weight: frequent and bursting."""
    return heaviest_terms(cluster.term_sums, weigh)


def heaviest_terms(sums: Mapping[str, int], weigh: TermWeigher) -> list[str]:
    """The ``KEY_TERMS_PER_CLUSTER`` terms with the largest sum times weight; of equal ones the first."""
    weights = list(map(mul, sums.values(), map(weigh, sums)))
    # Tuples for the heaviest terms only: a third of the time for a cluster of 500 terms.
    least = heapq.nlargest(KEY_TERMS_PER_CLUSTER, weights)[-1] if weights else 0.0
    heaviest = [(-weight, term) for weight, term in zip(weights, sums, strict=True) if weight >= least]
    return [term for _, term in sorted(heaviest)[:KEY_TERMS_PER_CLUSTER]]


def top_term(cluster: Cluster, weigh: TermWeigher) -> str:
    """Return the first of ``top_terms``, faster; "" for a cluster without terms."""
    weights = list(map(mul, cluster.term_sums.values(), map(weigh, cluster.term_sums)))
    largest = max(weights, default=0.0)
    equal = (term for weight, term in zip(weights, cluster.term_sums, strict=True) if weight == largest)
    return min(equal, default="")


def typical_headline(cluster: Cluster, weigh: TermWeigher) -> WindowItem:
    """Return the item whose headline describes the cluster best (``headline_choice.py``)."""
    members = list(cluster.members.values())
    weights = dict(zip(cluster.term_sums, map(weigh, cluster.term_sums), strict=True))
    candidates = [
        Candidate(m.desk_prefix + m.title, m.at_ms, {t: w * weights[t] for t, w in m.terms.items()})
        for m in members
    ]
    return members[choose_headline(candidates)]


class KeyTermCache:
    """Cache of key terms for one round of merging, in which no weight changes.

    A cluster that absorbs another must be invalidated.
    """

    def __init__(self, term_weights: TermWeights) -> None:
        self._term_weights = term_weights
        self._top_terms: dict[int, list[str]] = {}
        self._top_term: dict[int, str] = {}
        self._top_bursting_term: dict[int, str] = {}

    def top_terms(self, cluster: Cluster) -> list[str]:
        """See the function ``top_terms``."""
        found = self._top_terms.get(cluster.key)
        if found is None:
            found = self._top_terms[cluster.key] = top_terms(cluster, self._term_weights.weigh)
        return found

    def top_term(self, cluster: Cluster) -> str:
        """See the function ``top_term``, which is faster than ``top_terms``."""
        if terms := self._top_terms.get(cluster.key):
            return terms[0]
        found = self._top_term.get(cluster.key)
        if found is None:
            found = self._top_term[cluster.key] = top_term(cluster, self._term_weights.weigh)
        return found

    def top_bursting_term(self, cluster: Cluster) -> str:
        """Return the first of ``top_terms`` among those that burst; "" if none does.

        Costs a third of ``top_term``: few of thousands of terms are weighed.
        """
        found = self._top_bursting_term.get(cluster.key)
        if found is None:
            weigh = self._term_weights.weigh
            bursting = self._term_weights.bursting_terms(cluster.term_sums)
            weights = [(-cluster.term_sums[term] * weigh(term), term) for term in bursting]
            found = self._top_bursting_term[cluster.key] = min(weights)[1] if weights else ""
        return found

    def support_merge(self, a: Cluster, b: Cluster) -> bool:
        """Whether the key terms of both clusters support a merge."""
        common = set(self.top_terms(a)).intersection(self.top_terms(b))
        return terms_support_merge(common, self._term_weights.expected)

    def agree(self, a: Cluster, b: Cluster) -> bool:
        """Whether half of the key terms of both clusters are the same."""
        return 2 * len(set(self.top_terms(a)) & set(self.top_terms(b))) >= KEY_TERMS_PER_CLUSTER

    def invalidate(self, cluster: Cluster) -> None:
        """Forget the terms of a cluster whose items changed."""
        self._top_terms.pop(cluster.key, None)
        self._top_term.pop(cluster.key, None)
        self._top_bursting_term.pop(cluster.key, None)


def surface_forms(terms: Sequence[str], members: Iterable[WindowItem]) -> dict[str, str]:
    """Return term -> its most frequent word in the headlines of ``members``; "" if none contains it.

    The first word of a headline is always capitalized, so any other position outweighs all first ones.
    """
    counts: dict[str, Counter[str]] = {term: Counter() for term in terms}
    for member in islice(members, MAX_HEADLINES):
        for position, word in enumerate(_TOKEN.findall(member.title)):
            word_terms = terms_of_word(word, member.lang)
            for term in counts.keys() & word_terms:
                form = word if len(word_terms) == 1 else term
                counts[term][form] += 1 if position == 0 else 1 + MAX_HEADLINES
    return {term: _most_common(counts[term]) for term in terms}


def _most_common(counts: Counter[str]) -> str:
    return max(counts, key=lambda word: (counts[word], word), default="")


def build_profile(cluster: Cluster, idf: TermWeigher) -> list[tuple[str, float]]:
    """Return the profile of a cluster, the heaviest term first; empty if all weights are 0."""
    weights = {term: count * idf(term) for term, count in cluster.term_sums.items()}
    heaviest = sorted(weights, key=lambda term: (-weights[term], term))[:PROFILE_TERMS]
    length = math.sqrt(sum(weights[term] ** 2 for term in heaviest))
    return [(term, round(weights[term] / length, 4)) for term in heaviest] if length else []


def similarity(profile: Profile, terms: Mapping[str, int], idf: TermWeigher) -> float:
    """Return the cosine of one item's ``terms`` (term -> weight) to a profile, 0..1."""
    weights = {term: weight * idf(term) for term, weight in terms.items()}
    length = math.sqrt(sum(weight**2 for weight in weights.values()))
    return sum(weights.get(term, 0.0) * weight for term, weight in profile) / length if length else 0.0
