"""Choice of the headline that describes an event: central, specific, recent, and a statement of fact.

The score of a candidate is the product of three factors:

* **centrality**: the product of its terms with what all candidates have in common, divided by the square root
  of its norm (the norm itself would prefer the shortest headline);
* **freshness**: up to 10 % for the latest candidate;
* **news value**: less for questions, reactions, statements, market reports and background, more for a toll.

The word lists are English. In other languages question marks, desk prefixes and the length count.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

LENGTH_EXPONENT = 0.5
FRESHNESS = 0.1
BACKGROUND = DESK_COLUMN = QUESTION = 0.5
REACTION = MARKET_REPORT = 0.6
STATEMENT = 0.8
TOLL = 1.3
MIN_WORDS = 4
_CACHED_HEADLINES = 1 << 13


def _words(pattern: str) -> re.Pattern[str]:
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
_REACTION = _words(
    r"condemn|mourn|condolence|concern|sympath|shock|react|brief(?:ed|s|ing)?\b|hopes?\b|pledge|urge|appeal|offer"
    r"|call(?:s|ed)? (?:for|on)\b|disappoint|thoughts with|hail|bash|lash(?:es|ed) out|statement|restraint"
    r"|solidarity|regret|to (?:speak|hold|brief|make)\b|fears?\b|worr(?:y|ies)|monitor|support|vows?\b"
    r"|everything|tells? (?:citizens|people)|too early|no (?:grounds|evidence)|not increasing|praises?\b"
    r"|welcomes?\b|outrage|tribute|prayer|safe\b"
)
_MARKET_REPORT = _words(
    r"(?:stocks?|shares|futures|forex|euro|dollar|yen|sterling|lira|peso|rouble|ruble|bonds?|bunds?|yields?"
    r"|oil|crude|brent|gold|nikkei|ftse|dow|tsx|wall st(?:reet)?|s&p|nasdaq|traders|investors|markets?|cds"
    r"|treasuries)\b"
)
_NUMBER = (
    r"\d[\d,]{0,11}|dozens|scores|hundreds|thousands|many|multiple|several|two|three|four|five|six|seven|eight"
    r"|nine|ten|twelve|eighty"
)
# A headline with both states a toll: one expression for "number ... dead" would take quadratic time.
_COUNT = _words(rf"(?:{_NUMBER})\b")
_CASUALTIES = _words(
    r"(?:dead|dies?|died|deaths?|kill(?:s|ed)?|injure[sd]|wounded|hurt|missing|casualties|hostages|arrested"
    r"|detain(?:s|ed)|victims)\b"
)
# "X says ..." and "...: Smith", but not "X says has taken power" nor "...: police source".
_SAYS = _words(
    r"(?:says?|said|sees|shows?|thinks?|believes?|aware|expects?|considers?|denies|wants?)\b"
    r"(?! (?:has|have|had|its?)\b)(?!$)"
)
_ATTRIBUTED = re.compile(
    r"(?:: | ?- ?)(?!.{0,50}\b(?i:police|officials?|sources?|witness(?:es)?|media|tv|radio|news|agency"
    r"|reports?|ministry|army|military|government|interfax|tass|ria|kyodo|yonhap|xinhua|anadolu|reuters|afp|bbc|cnn)\b)"
    r"[A-Z][\w.' ]{2,40}$"
)
_QUESTION = re.compile(
    r"[?？]|^(?:how|why|what|who|where|when|is|are|will|can|could|should|does)\b", re.IGNORECASE
)
_FACTORS = (
    (_QUESTION, QUESTION),
    (_REACTION, REACTION),
    (_MARKET_REPORT, MARKET_REPORT),
    (_SAYS, STATEMENT),
    (_ATTRIBUTED, STATEMENT),
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One headline, as it was sent. ``terms``: weights of its index terms."""

    title: str
    at_ms: int
    terms: Mapping[str, float]


def choose_headline(candidates: Sequence[Candidate]) -> int:
    """Return the position of the best headline, the older on a tie. At least one candidate is required."""
    return rank_headlines(candidates)[0]


def rank_headlines(candidates: Sequence[Candidate]) -> list[int]:
    """Return the positions of all headlines, the best first, the older first on a tie."""
    scores = _scores(candidates) if candidates else []
    return sorted(range(len(candidates)), key=lambda i: (-scores[i], candidates[i].at_ms, i))


def _scores(candidates: Sequence[Candidate]) -> list[float]:
    centroid: dict[str, float] = {}
    for candidate in candidates:
        for term, weight in candidate.terms.items():
            if term in centroid:
                centroid[term] += weight
            else:
                centroid[term] = weight
    first_ms = min(candidate.at_ms for candidate in candidates)
    span_ms = max(candidate.at_ms for candidate in candidates) - first_ms or 1

    def score(candidate: Candidate) -> float:
        dot = squares = 0.0
        for term, weight in candidate.terms.items():
            dot += weight * centroid[term]
            squares += weight * weight
        freshness = 1 + FRESHNESS * (candidate.at_ms - first_ms) / span_ms
        length = math.pow(squares or 1.0, LENGTH_EXPONENT / 2)
        return dot / length * freshness * news_value(candidate.title)

    return [score(candidate) for candidate in candidates]


@lru_cache(maxsize=_CACHED_HEADLINES)
def news_value(title: str) -> float:
    """Return how far a headline, as it was sent, states what happened: 1 for a plain one.

    >>> news_value("Bridge closed after storm"), news_value("FACTBOX-Bridges closed by storms")
    (1.0, 0.5)
    """
    report = _REPORT_PREFIX.sub("", title.strip())
    value = min(1.0, len(report.split()) / MIN_WORDS) if " " in report else 1.0
    if _BACKGROUND.match(report):
        value *= BACKGROUND
    elif _DESK_COLUMN.match(report) and not report.isupper():
        value *= DESK_COLUMN
    for pattern, factor in _FACTORS:
        if pattern.search(report):
            value *= factor
    if _COUNT.search(report) and _CASUALTIES.search(report):
        value *= TOLL
    return value
