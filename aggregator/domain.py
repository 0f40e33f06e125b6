"""The values that travel between the stages. No behaviour beyond small derivations.

Conventions that hold everywhere:

* a **fingerprint** is an unsigned 64-bit ``int``; on the wire 16 lower-case hex digits,
  most significant bit first;
* an **article number** is an unsigned 64-bit ``int`` that grows with time:
  ``arrival time in ms << 22``, then 22 bits that keep numbers apart (``numbers.py``). It names
  one stored version of one article;
* times are ``int`` milliseconds since 1970-01-01 UTC, suffix ``_ms``;
* distances are Hamming distances in bits, 0..64; overlaps and similarities are in 0..1.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from aggregator.errors import AggregatorError

VerdictName = Literal["new", "related", "duplicate"]
MatchRule = Literal["exact", "hamming", "overlap", "title"]

# Index terms and their weights, heaviest first.
WeightedTerms = Sequence[tuple[str, float]]

NUMBER_RANDOM_BITS = 22


def article_number_at(now_ms: int, low_bits: int = 0) -> int:
    """The article number for an arrival at ``now_ms`` with these ``low_bits`` (0 .. 2**22 - 1)."""
    return (now_ms << NUMBER_RANDOM_BITS) | low_bits


def arrival_ms_of(number: int) -> int:
    """When the article with this number arrived, in ms since 1970 UTC."""
    return number >> NUMBER_RANDOM_BITS


@dataclass(frozen=True, slots=True)
class Article:
    """One crawled article after validation. ``text`` or ``html`` may be empty, not both unless a title is given."""

    id: str
    title: str = ""
    text: str = ""
    html: str = ""
    url: str = ""
    source: str = ""
    published_at_ms: int | None = None
    lang: str | None = None  # as declared by the crawler, e.g. "en", "en-US", "zh-Hant"


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """A sample of an article's shingle hashes (``overlap.py``).

    size    number of distinct shingles in the whole text
    sample  (n,) uint32, ascending: the upper halves of its n smallest 64-bit shingle hashes
    """

    size: int
    sample: npt.NDArray[np.uint32]


NO_SKETCH = Sketch(0, np.empty(0, np.uint32))


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the pure stages make of an article: all that look-up and decision need.

    lang         language of the text, ISO 639-1
    space        fingerprint space, e.g. "en.3f2a": only fingerprints of one space are comparable
    fingerprint  64-bit simhash
    text_hash    16 bytes, xxh3_128 of the normalised text: equal means an exact copy
    short        too few words for 64 stable bits (titles only)
    terms        the heaviest terms and their weights, descending, L2 norm of the kept ones is 1
    figures      hashes (uint32) of the numbers in the text, in order, capped
    title, text  as given, or extracted when the article came as HTML
    """

    lang: str
    space: str
    fingerprint: int
    text_hash: bytes
    short: bool
    sketch: Sketch
    terms: tuple[tuple[str, float], ...] = ()
    figures: tuple[int, ...] = ()
    title: str = ""
    text: str = ""


# Analyzes articles, in order; an unusable article yields its error. May use other processes.
AnalyzeMany = Callable[[Sequence[Article]], Awaitable[list[Analysis | AggregatorError]]]


@dataclass(frozen=True, slots=True, eq=False)
class ArticleRecord:
    """What is stored of one version of an article, read by its number.

    ``first`` is the number of the id's first version: updates get a new number, and copies
    point at ``first``, so they need not be told of updates.
    """

    number: int
    first_version: int
    id: str
    space: str
    lang: str
    fingerprint: int
    text_hash: bytes
    short: bool
    title: str
    url: str
    source: str
    published_at_ms: int | None
    sketch: Sketch
    terms: tuple[tuple[str, float], ...] = ()
    figures: tuple[int, ...] = ()

    @property
    def arrived_ms(self) -> int:
        return arrival_ms_of(self.number)


@dataclass(frozen=True, slots=True)
class Match:
    """The stored article that a duplicate repeats, and why we say so.

    ``canonical_id`` is the first of its group: a copy of a copy names the original.
    ``overlap`` is None when it was not looked at (policy ``hamming``).
    """

    id: str
    number: int
    canonical_id: str
    canonical_first: int
    distance: int
    overlap: float | None
    rule: MatchRule


@dataclass(frozen=True, slots=True)
class Outcome:
    """The decision on one article: what a retry of its id will answer again."""

    verdict: VerdictName
    distance: int | None = None  # to the nearest stored article within 7 bits, if any
    match: Match | None = None  # set when verdict is "duplicate"
    updated_figures: bool = False

    def group(self, first_version: int) -> int:
        """The group the article is in, whose own first number is ``first``: that of its match, else its own."""
        return self.match.canonical_first if self.match is not None else first_version


@dataclass(frozen=True, slots=True)
class RelatedItem:
    """One neighbour in an answer."""

    id: str
    title: str
    url: str
    source: str
    published_at_ms: int | None
    distance: int
    similarity: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What the service says about one article (DESIGN: public contract v1).

    ``stored`` is True when this call put it (or a new version of it) into the index.
    """

    id: str
    outcome: Outcome
    space: str
    fingerprint: int
    short: bool
    related: tuple[RelatedItem, ...] = ()
    event_id: str | None = None
    stored: bool = False
    timings_ms: dict[str, float] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class StreamItem:
    """One article as the burst detector sees it, in commit order.

    ``canonical_first`` is the number of the group it was found to be a copy of, else None.
    ``kind``: "article" for a new, related or duplicate article or an update; "deleted" when an
    article was taken down (then only ``number``, ``first`` and ``id`` are meaningful).
    """

    number: int
    first_version: int
    id: str
    verdict: VerdictName
    arrived_ms: int
    kind: Literal["article", "deleted"] = "article"
    matched_number: int | None = None
    canonical_first: int | None = None
    exact: bool = False
    title: str = ""
    url: str = ""
    source: str = ""
    lang: str = ""
    space: str = ""
    published_at_ms: int | None = None
    fingerprint: int = 0
    terms: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class IndexLayout:
    """Which fingerprint spaces there are: those that are served, cut by ``plan``, and those written along, each with its plan."""

    spaces: tuple[str, ...]
    plan_name: str
    shadow_plans: Mapping[str, str]
