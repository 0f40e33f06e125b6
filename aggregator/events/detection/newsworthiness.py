"""Newsworthiness: the probability that an editor wants to know of a burst, by a logistic model.

Every evidence is a number that may only raise the probability, with one weight; what chose it and what it
brings says ``docs/design/event-detection.md``. Lists of names, templates, Title Case and round times are
habits of one publisher: they count by the share of the items beyond the first of each source, and the last
two only beyond what the stream does itself. An evidence that nothing shows (no case, no rates) is best.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from itertools import islice
from math import ceil, exp, log
from typing import NamedTuple

from aggregator.analysis.term_frequencies import TermRates
from aggregator.events.detection.clustering import MAX_EXAMINED_ITEMS, WindowItem
from aggregator.events.detection.items import LATEST_ITEMS, SENTENCE_SHARE, case_shares, is_name
from aggregator.events.detection.model import CHANCE_ITEMS
from aggregator.time_units import MINUTE_MS

MIN_PROBABILITY = 0.6  # a burst is news from this probability on
CORE_SHARE = 0.5  # a term, or a word, of the core is in at least this share of the headlines
MAX_EXCESS = 17.0  # multiple of what is usual beyond which more says nothing
SMOOTHING_ITEMS = 0.3  # added to numbers of expected items, of which many are 0
# A term of general news has at least this rate: 1 % of the articles of the English model hold it.
KNOWN_RATE = 5e-5
RECURRING_ITEMS_SHARE = 0.2  # a term recurs if this share of the items holds it, and at least CHANCE_ITEMS
ROUND_MINUTES = 15
_WORD = re.compile(r"[^\W\d_]{3,}")
_FUNCTION_WORDS = frozenset(("the", "and", "for", "with", "from", "its", "says"))


class Evidence(NamedTuple):
    """What speaks for news, each the more the larger.

    excess       log of the items in multiples of what is usual
    novelty      minus the log of the usual number of items that hold the rarest common term
    known_words  share of the terms outside the core that recur or are known from news in general, 0..1
    name         minus the share of items without one name, unless nothing shows what is a name
    no_frame     minus words per headline in one frame, times the share of the headlines that have it
    sentences    minus the share of headlines In Title Case beyond that of the stream
    odd_times    minus the share of items at multiples of 15 minutes beyond that of the stream
    any          of any burst
    """

    excess: float
    novelty: float
    known_words: float
    name: float
    no_frame: float
    sentences: float
    odd_times: float
    any: float = 1.0


WEIGHTS = Evidence(
    excess=0.93, novelty=0.47, known_words=2.2, name=2.1, no_frame=0.67, sentences=5.3, odd_times=4.0,
    any=-1.77,
)  # fmt: skip


def probability(evidence: Evidence) -> float:
    """Return the probability of news, 0..1."""
    score = sum(weight * value for weight, value in zip(WEIGHTS, evidence, strict=True))
    return 1.0 / (1.0 + exp(-score))


def measure(
    counted: Sequence[WindowItem],
    window: deque[WindowItem],
    rates: TermRates | None,
    expected: float = 0.0,
    expected_of: Callable[[str], float] = lambda _: 0.0,
) -> Evidence:
    """The evidence of these items; ``expected``: usual ones; ``expected_of``: usual documents of a term."""
    members = counted[-MAX_EXAMINED_ITEMS:]
    counts = count_terms(members)
    core = core_terms(members, counts)
    dependent = dependent_share(members)
    latest = list(islice(reversed(window), LATEST_ITEMS))
    return Evidence(
        excess=log(min(MAX_EXCESS, (len(counted) + 1.0) / (expected + 1.0))),
        novelty=-log(SMOOTHING_ITEMS + min(map(expected_of, core), default=expected)),
        known_words=known_share(members, counts, core, rates),
        name=-dependent * (1.0 - named_share(members, counts)),
        no_frame=-dependent * frame_words([member.title for member in members]),
        sentences=-dependent * _beyond(title_case_share, members, latest),
        odd_times=-dependent * _beyond(round_time_share, members, latest),
    )


def count_terms(members: Sequence[WindowItem]) -> Counter[str]:
    """Number of the items whose headlines hold each term."""
    return Counter(term for member in members for term in member.headline_terms)


def core_terms(members: Sequence[WindowItem], counts: Counter[str]) -> set[str]:
    """Return the terms that at least ``CORE_SHARE`` of the items hold."""
    return {term for term, count in counts.items() if count >= CORE_SHARE * len(members)}


def dependent_share(members: Sequence[WindowItem]) -> float:
    """Return the share of the items beyond the first of their source, 0..1."""
    return 1.0 - len({member.source for member in members}) / len(members)


def known_share(
    members: Sequence[WindowItem], counts: Counter[str], core: set[str], rates: TermRates | None
) -> float:
    """The share of the terms outside the ``core`` that recur or are known, 0..1; 1.0 without any."""
    needed = max(CHANCE_ITEMS, ceil(RECURRING_ITEMS_SHARE * len(members)))
    others = counts.total() - sum(counts[term] for term in core)
    if rates is None or not others:
        return 1.0
    known = sum([count for term, count in counts.items() if count >= needed and term not in core])
    # A rate is looked up once per term and language, not per occurrence.
    for lang in dict.fromkeys([member.lang for member in members]):
        for term, count in count_terms([member for member in members if member.lang == lang]).items():
            if counts[term] < needed and term not in core:
                rate = rates.rate(lang, term)
                known += count * (rate >= KNOWN_RATE or not rate)
    return known / others


def named_share(members: Sequence[WindowItem], counts: Counter[str]) -> float:
    """The largest share of items that hold one name, by its capital letters, 0..1."""
    for term, count in counts.most_common():
        if is_name(term, members):
            return count / len(members)
    return 0.0


def frame_words(titles: Sequence[str]) -> float:
    """Words that the headlines have in the same order, per headline, times the share that has them."""
    headlines = [_words(title) for title in titles]
    counts = Counter(word for words in headlines for word in words)
    common = {word for word, count in counts.items() if count >= CORE_SHARE * len(headlines)}
    frames = Counter(tuple(word for word in words if word in common) for words in headlines)
    words_per_headline = sum(len(frame) * count for frame, count in frames.items()) / len(headlines)
    return words_per_headline * max(frames.values()) / len(headlines)


def title_case_share(members: Collection[WindowItem]) -> float:
    """Return the share of the headlines that are In Title Case or in capitals, 0..1."""
    return sum([case_shares(m.title)[0] > 1.0 - SENTENCE_SHARE for m in members]) / len(members)


def round_time_share(members: Collection[WindowItem]) -> float:
    """Return the share of items at a multiple of 15 min, 0..1."""
    return sum([member.at_ms // MINUTE_MS % ROUND_MINUTES == 0 for member in members]) / len(members)


def _beyond(
    share: Callable[[Collection[WindowItem]], float], members: Sequence[WindowItem], latest: list[WindowItem]
) -> float:
    """How much larger a share is among the members than among the latest items, from 0.0."""
    own = share(members)
    return max(0.0, own - share(latest)) if own and latest else own


# A cluster is examined each time it grows, so the same headlines return.
@lru_cache(maxsize=2 * LATEST_ITEMS)
def _words(title: str) -> tuple[str, ...]:
    return tuple(w for w in dict.fromkeys(_WORD.findall(title.casefold())) if w not in _FUNCTION_WORDS)
