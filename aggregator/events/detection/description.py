"""Description of a cluster: its key terms, what they prove, how they are shown, and its headline.

The score of a headline is its centrality (its product with what all have in common, by the square root of its
norm, since the norm would prefer the shortest), its freshness and its news value.
"""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from operator import mul

from aggregator.events.detection.clustering import MAX_EXAMINED_ITEMS, Cluster, TermWeigher, WindowItem
from aggregator.events.detection.expectation import TermWeights
from aggregator.events.detection.items import LATEST_ITEMS, terms_of_word
from aggregator.events.detection.model import NEGLIGIBLE_SHARE, FirstReport, Profile
from aggregator.events.figures import Toll, figures_in, newer_figures

MIN_COMMON_TERMS = 2
KEY_TERMS_PER_CLUSTER = 8
_TOKEN = re.compile(r"[^\W_]+")
PROFILE_TERMS = 20


def terms_support_merge(common: Collection[str], expected: Callable[[str], float]) -> bool:
    """Whether these common key terms support a merge; ``expected``: usual documents with a term."""
    return len(common) >= MIN_COMMON_TERMS or any(expected(term) < NEGLIGIBLE_SHARE for term in common)


def heaviest_terms(sums: Mapping[str, int], weigh: TermWeigher) -> list[str]:
    """The ``KEY_TERMS_PER_CLUSTER`` terms with the largest sum times weight; of equal ones the first."""
    weights = list(map(mul, sums.values(), map(weigh, sums)))
    # Tuples for the heaviest terms only: a third of the time for a cluster of 500 terms.
    least = heapq.nlargest(KEY_TERMS_PER_CLUSTER, weights)[-1] if weights else 0.0
    heaviest = [(-weight, term) for weight, term in zip(weights, sums, strict=True) if weight >= least]
    return [term for _, term in sorted(heaviest)[:KEY_TERMS_PER_CLUSTER]]


def first_report(members: Iterable[WindowItem], key_terms: Collection[str]) -> FirstReport | None:
    """The earliest item about the event: with two key terms that several others hold too; None: uncertain."""
    keys = set(key_terms)
    in_order = sorted(members, key=lambda m: (m.published_ms or m.at_ms, m.number))
    held = [(m, keys & m.terms.keys()) for m in in_order]
    for member, terms in held:
        alike = sum(len(terms & other) >= MIN_COMMON_TERMS for _, other in held)
        if alike >= max(2 * MIN_COMMON_TERMS, len(held) // 4):
            return member.published_ms or member.at_ms, member.id, member.source
    return None


def typical_headline(
    cluster: Cluster, weigh: TermWeigher, kept: str = "", tolls: Sequence[Toll] = (),
    doubtful: Collection[str] = (),
) -> WindowItem:  # fmt: skip
    """Return the item whose headline describes the cluster best: in its main language, whole if one is.

    The item with the id ``kept`` is returned unless another one is better by more than ``SIDE``. A headline
    with another figure than the last of ``tolls`` is outdated: one that says the last is returned, or else
    one without any. An outdated one is returned only if all are, as is a ``doubtful`` one. Of items with the
    same headline it is the first.
    """
    titled = [member for member in cluster.members.values() if member.title] or [*cluster.members.values()]
    members = [member for member in titled if member.id not in doubtful] or titled
    langs = Counter(member.lang for member in members)
    lang = max(langs, key=lambda lang: (langs[lang], lang))
    members = [member for member in members if member.lang == lang]
    members = [member for member in members if not _CUT.search(member.title)] or members
    current = [m for m in members if not newer_figures(m.title, m.lang, tolls)]
    stating = [m for m in current if len(current) < len(members) and figures_in(m.title, m.lang)]
    members = stating or current or members
    weights = dict(zip(cluster.term_sums, map(weigh, cluster.term_sums), strict=True))
    candidates = [
        Candidate(m.desk_prefix + m.title, m.at_ms, {t: w * weights[t] for t, w in m.terms.items()})
        for m in members
    ]
    scores = _scores(candidates)
    best = max(range(len(members)), key=lambda i: (scores[i], -members[i].at_ms, -i))
    by_id = {member.id: i for i, member in enumerate(members)}
    best = by_id[kept] if kept in by_id and SIDE * scores[best] < scores[by_id[kept]] else best
    same = [member for member in members if member.title == members[best].title]
    return min(same, key=lambda m: (m.published_ms or m.at_ms, m.number))


class KeyTermCache:
    """Cache of key terms for one round of merging, in which no weight changes; ``invalidate`` what grew."""

    def __init__(self, term_weights: TermWeights) -> None:
        self._term_weights = term_weights
        self._top_terms: dict[int, list[str]] = {}

    def top_terms(self, cluster: Cluster) -> list[str]:
        """See ``heaviest_terms``."""
        found = self._top_terms.get(cluster.key)
        if found is None:
            found = self._top_terms[cluster.key] = heaviest_terms(cluster.term_sums, self._term_weights.weigh)
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


def surface_forms(terms: Sequence[str], members: Iterable[WindowItem]) -> dict[str, str]:
    """Return term -> its most frequent word in the headlines, preferably not the first of one; "" if none."""
    counts: dict[str, Counter[str]] = {term: Counter() for term in terms}
    for member in islice(members, MAX_EXAMINED_ITEMS):
        for position, word in enumerate(_TOKEN.findall(member.title)):
            word_terms = terms_of_word(word, member.lang)
            for term in counts.keys() & word_terms:
                form = word if len(word_terms) == 1 else term
                counts[term][form] += 1 if position == 0 else 1 + MAX_EXAMINED_ITEMS
    return {t: max(c, key=lambda w: (c[w], w), default="") for t, c in counts.items()}


def build_profile(cluster: Cluster, idf: TermWeigher) -> list[tuple[str, float]]:
    """Return the profile of a cluster, the heaviest term first; empty if all weights are 0."""
    weights = {term: count * idf(term) for term, count in cluster.term_sums.items()}
    heaviest = sorted(weights, key=lambda term: (-weights[term], term))[:PROFILE_TERMS]
    length = math.sqrt(sum(weights[term] ** 2 for term in heaviest))
    return [(term, round(weights[term] / length, 4)) for term in heaviest] if length else []


def similarity(profile: Profile, terms: Mapping[str, int], idf: TermWeigher) -> float:
    """Return the cosine of one item's ``terms`` (term -> weight) to a profile, 0..1."""
    product = sum([weight * terms[term] * idf(term) for term, weight in profile if term in terms])
    return product / math.sqrt(sum((w * idf(term)) ** 2 for term, w in terms.items())) if product else 0.0


# Of headlines; the word lists are English.

FRESHNESS = 0.1
SIDE, TOLL = 0.6, 1.3  # value of background, a question, a reaction, a statement, a market report; a toll


def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})", re.IGNORECASE)


# A desk prefix other than these marks a column of the desk, not a report on what happened.
_REPORT_PREFIX = re.compile(
    r"^(?:(?:UPDATE|WRAPUP|RPT|REFILE|CORRECT(?:ED|ION)|BRIEF|EXCLUSIVE|URGENT|BREAKING|ALERT|FLASH)\b[ \d]*"
    r"(?:[-–—:] *)?)+"
)
_DESK_COLUMN = re.compile(r"^[A-Z][A-Z&/.]+(?: [A-Z&/.]+){0,3}(?: \d+)? ?[-–—](?=\S)")
_BACKGROUND = re.compile(
    r"^(?:factbox|analysis|analyst view|instant view|q&a|timeline|chronology|highlights|preview|column"
    r"|comment|opinion|text|transcript|insight|special report|explainer|snapshot|interview|graphic|photos?"
    r"|pictures|video|amateur video|first images|live|watch|scenarios|quotes|buzz|statement)\b",
    re.IGNORECASE,
)
_REACTION = _pattern(
    r"condemn|mourn|condolence|concern|sympath|shock|react|brief(?:ed|s|ing)?\b|hopes?\b|pledge|urge|appeal|offer"
    r"|call(?:s|ed)? (?:for|on)\b|disappoint|thoughts with|hail|bash|lash(?:es|ed) out|statement|restraint"
    r"|solidarity|regret|to (?:speak|hold|brief|make)\b|fears?\b|worr(?:y|ies)|monitor|support|vows?\b"
    r"|everything|tells? (?:citizens|people)|too early|no (?:grounds|evidence)|not increasing|praises?\b"
    r"|welcomes?\b|outrage|tribute|prayer|safe\b"
)
_MARKET_REPORT = _pattern(
    r"(?:stocks?|shares|futures|forex|euro|dollar|yen|sterling|lira|peso|rouble|ruble|bonds?|bunds?|yields?"
    r"|oil|crude|brent|gold|nikkei|ftse|dow|tsx|wall st(?:reet)?|s&p|nasdaq|traders|investors|markets?|cds"
    r"|treasuries)\b"
)
# A headline with both states a toll: one expression for "number ... dead" would take quadratic time.
_COUNT = _pattern(
    r"(?:\d[\d,]{0,11}|dozens|scores|hundreds|thousands|many|multiple|several|two|three|four|five|six|seven"
    r"|eight|nine|ten|twelve|eighty)\b"
)
_CASUALTIES = _pattern(
    r"(?:dead|dies?|died|deaths?|kill(?:s|ed)?|injure[sd]|wounded|hurt|missing|casualties|hostages|arrested"
    r"|detain(?:s|ed)|victims)\b"
)
# "X says ..." and "...: Smith", but not "X says has taken power" nor "...: police source".
_SAYS = _pattern(
    r"(?:says?|said|sees|shows?|thinks?|believes?|aware|expects?|considers?|denies|wants?)\b"
    r"(?! (?:has|have|had|its?)\b)(?!$)"
)
_ATTRIBUTED = re.compile(
    r"(?:: | ?- ?)(?!.{0,50}\b(?i:police|officials?|sources?|witness(?:es)?|media|tv|radio|news|agency"
    r"|reports?|ministry|army|military|government|interfax|tass|ria|kyodo|yonhap|xinhua|anadolu|reuters|afp|bbc|cnn)\b)"
    r"[A-Z][\w.' ]{2,40}$"
)
# Explainers too, at the start or behind a colon: "Terremoto: por qué no hubo tsunami".
_QUESTION = re.compile(
    r"[?？¿]|^(?:is|are|will|can|could|should|does)\b|(?:^|[:：] ?)(?:(?:how|why|what|who|where|when"
    r"|por qué|qué|cómo|quiénes|quién|cuándo|dónde|lo que|claves|pourquoi|comment|qui|quand|où|ce que|ce qu"
    r"|warum|wieso|weshalb|wie|was|wer|wo|wann|почему|зачем|как|что|кто|где|когда|чем)\b"
    r"|为什么|为何|如何|怎么|谁|什么|解读|组图)",
    re.IGNORECASE,
)
_CUT = re.compile(r"(?:\.\.\.|…)\W*$")
_SIDES = (_BACKGROUND.match, *(p.search for p in (_QUESTION, _REACTION, _MARKET_REPORT, _SAYS, _ATTRIBUTED)))


@dataclass(frozen=True, slots=True)
class Candidate:
    """One headline, as it was sent. ``terms``: weights of its index terms."""

    title: str
    at_ms: int
    terms: Mapping[str, float]


def rank_headlines(candidates: Sequence[Candidate]) -> list[int]:
    """Return the positions of all headlines, the best first, the older first on a tie."""
    scores = _scores(candidates) if candidates else []
    return sorted(range(len(candidates)), key=lambda i: (-scores[i], candidates[i].at_ms, i))


def _scores(candidates: Sequence[Candidate]) -> list[float]:
    centroid: dict[str, float] = {}
    for candidate in candidates:
        for term, weight in candidate.terms.items():
            centroid[term] = centroid.get(term, 0.0) + weight
    first_ms = min(candidate.at_ms for candidate in candidates)
    span_ms = max(candidate.at_ms for candidate in candidates) - first_ms or 1

    def score(candidate: Candidate) -> float:
        dot = squares = 0.0
        for term, weight in candidate.terms.items():
            dot += weight * centroid[term]
            squares += weight * weight
        freshness = 1 + FRESHNESS * (candidate.at_ms - first_ms) / span_ms
        return dot / math.sqrt(math.sqrt(squares or 1.0)) * freshness * news_value(candidate.title)

    return [score(candidate) for candidate in candidates]


@lru_cache(maxsize=2 * LATEST_ITEMS)
def news_value(title: str) -> float:
    """Return how far a headline, as it was sent, states what happened: 1 for a plain one."""
    report = _REPORT_PREFIX.sub("", title.strip())
    sides = sum(found(report) is not None for found in _SIDES)
    if not report.isupper():
        sides += _DESK_COLUMN.match(report) is not None
    has_toll = _COUNT.search(report) and _CASUALTIES.search(report)
    return pow(SIDE, sides) * (TOLL if has_toll else 1.0)
