"""Domain types that are passed between packages: articles, analyses, records, verdicts, stream items.

A **fingerprint** is an unsigned 64-bit ``int``, in JSON 16 hex digits. An **article number** identifies one
stored version of an article: ``arrival time in ms << 22`` plus 22 bits that make it unique. Times are ``int``
milliseconds since 1970 UTC, suffix ``_ms``; distances are in bits, 0..64; similarities in 0..1.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import IntFlag, auto
from math import inf
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from aggregator.errors import AggregatorError
from aggregator.time_units import DAY_MS, HOUR_MS
from aggregator_client.wire import KeepReason, RelatedKindName

# published: the time that the source states; day: it states a day only; arrived: when the crawler sent it;
# claimed: as arrived, since the source is not known for dates that long before.
TimeBasis = Literal["published", "day", "claimed", "arrived"]
VerdictName = Literal["new", "related", "duplicate"]
MatchRule = Literal["exact", "hamming", "overlap"]

# Index terms and their weights, heaviest first; weights are multiples of 1/TERM_WEIGHT_STEPS, 0..1.
WeightedTerms = Sequence[tuple[str, float]]
TERM_WEIGHT_STEPS = 255

NUMBER_RANDOM_BITS = 22
MAX_TEXT_WORDS = 0xFFFF
LATE_MS, DAY_AND_OFFSET_MS = 4 * HOUR_MS, 36 * HOUR_MS


def article_number_at(now_ms: int, low_bits: int = 0) -> int:
    """The article number for an arrival at ``now_ms`` with these ``low_bits`` (0 .. 2**22 - 1)."""
    return (now_ms << NUMBER_RANDOM_BITS) | low_bits


def arrival_ms_of(number: int) -> int:
    """Arrival time of the article with this number, in ms since 1970 UTC."""
    return number >> NUMBER_RANDOM_BITS


def publication_time(published_ms: int | None, arrived_ms: int, max_ms: float = inf) -> tuple[int, TimeBasis]:
    """The time by which an article is ordered, and how well it is known.

    A date after the arrival is ignored. Midnight UTC is a day without a time: the arrival counts until that
    day is over everywhere. A date over ``max_ms`` before it is a claim, and the arrival counts: ``LATE_MS``,
    or what is believed of the source (``ExtractionHealth``); without limit if it was declared as past.
    """
    is_day = published_ms is not None and published_ms % DAY_MS == 0
    if published_ms is None or arrived_ms < published_ms + is_day * DAY_AND_OFFSET_MS:
        return arrived_ms, "arrived"
    if arrived_ms - published_ms > max_ms:
        return arrived_ms, "claimed"
    return published_ms, "day" if is_day else "published"


class Problem(IntFlag):
    """What is wrong with an article as its extractor delivered it; stored by bit, named in the API."""

    not_article = auto()  # the text is not the article
    empty = auto()  # a headline without a text
    cut = auto()  # the text ends within a sentence, or refers to its continuation
    markup = auto()  # tags or entities in the text
    other_language = auto()  # than declared
    late = auto()  # arrived more than LATE_MS after its publication, and is no backfill of a desk
    no_time = auto()  # dated by day
    undated = auto()
    reused_id = auto()  # the id stood for another article before
    future = auto()  # dated over an hour after its arrival


NO_PROBLEM = Problem(0)


def date_problem(article: Article, arrived_ms: int) -> Problem:
    """The problem of an article's date, by its arrival."""
    if article.published_at_ms is None:
        return Problem.undated
    _, basis = publication_time(article.published_at_ms, arrived_ms, LATE_MS)
    is_late = basis == "claimed" and (article.is_bound or not article.backfill)
    is_day = article.published_at_ms % DAY_MS == 0
    is_future = article.published_at_ms - arrived_ms > (DAY_MS if is_day else HOUR_MS)
    return Problem(Problem.late * is_late | Problem.no_time * is_day | Problem.future * is_future)


@dataclass(frozen=True, slots=True)
class Article:
    """A crawled article after validation; at least one of ``title``, ``text`` and ``html`` is not empty."""

    id: str
    title: str = ""
    text: str = ""
    html: str = ""
    url: str = ""
    source: str = ""
    published_at_ms: int | None = None
    lang: str | None = None  # as declared by the crawler, e.g. "en", "en-US", "zh-Hant"
    policy: str = ""  # name of the policy profile that the request chose
    backfill: bool = False  # declared as part of an archive or backlog: counts for no event
    is_bound: bool = False  # sent with a key bound to its source
    first_sent_ms: int | None = None  # of a request that is repeated, since its answer was lost
    known_lang: str = ""  # of an equal text that is stored: nothing is detected (``ingest/equal_texts.py``)


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """Bottom-k sample of the shingle hashes of an article (``analysis/shingles.py``).

    size     number of distinct shingles of the whole text
    sample   (n,) uint32, ascending: the upper halves of its n smallest 64-bit shingle hashes
    marks    (n,) uint8: where each first occurs, in 64ths of the text; plus ``OPENING_MARK`` for one in the
             text's first words, and ``HEADLINE_MARK`` for one of the text with a term of the headline
    """

    size: int
    sample: npt.NDArray[np.uint32]
    marks: npt.NDArray[np.uint8]

    def __reduce__(self) -> tuple[Callable[[int, bytes, bytes], Sketch], tuple[int, bytes, bytes]]:
        # Pickled arrays would take half as long again as all the rest of an analysis.
        return _unpickled_sketch, (self.size, self.sample.tobytes(), self.marks.tobytes())

    @property
    def opening(self) -> npt.NDArray[np.bool_]:
        """Which sampled shingles are of the opening, (n,)."""
        opening: npt.NDArray[np.bool_] = self.marks & OPENING_MARK != 0
        return opening


def _unpickled_sketch(size: int, sample: bytes, marks: bytes) -> Sketch:
    return Sketch(size, np.frombuffer(sample, np.uint32), np.frombuffer(marks, np.uint8))


OPENING_MARK, HEADLINE_MARK, POSITIONS = 64, 128, 64
NO_SKETCH = Sketch(0, np.empty(0, np.uint32), np.empty(0, np.uint8))


@dataclass(frozen=True, slots=True)
class Analysis:
    """Result of the analysis of an article: the input of look-up and verdict.

    space        fingerprint space, e.g. "en.3f2a": only fingerprints of one space are comparable
    text_hash    16 bytes, xxh3_128 of the normalized text: equal means an exact copy
    short        too few words for 64 stable bits (titles only)
    text_words   words of the text without the headline, in Chinese the segmenter's; at most 65,535
    own_headline share, 0..1, of the headline's index terms that occur in the text; 1 without a headline
    terms        heaviest terms and their weights, descending, with an L2 norm of 1
    figures      hashes (uint32) of the numbers in the text, in order, limited in number
    problems     those of the text
    title, text  as given, or extracted from HTML
    minor_terms  encoded terms that follow ``terms``, for related articles (``analysis/term_profile.py``)
    opening_mask bit i: ``terms[i]`` occurs in the opening of the text (``analysis/term_profile.py``)
    text_key     uint32 of the letters that the text begins with, whatever its language; 0: none
    """

    lang: str
    space: str
    fingerprint: int
    text_hash: bytes
    short: bool
    sketch: Sketch
    terms: tuple[tuple[str, float], ...] = ()
    figures: tuple[int, ...] = ()
    problems: Problem = NO_PROBLEM
    title: str = ""
    text: str = ""
    minor_terms: bytes = b""
    opening_mask: int = 0
    text_key: int = 0
    text_words: int = 0
    own_headline: float = 1.0


# Analyzes articles, in order; an unusable article yields its error. May use other processes.
AnalyzeMany = Callable[[Sequence[Article]], Awaitable[list[Analysis | AggregatorError]]]


@dataclass(frozen=True, slots=True, eq=False)
class ArticleRecord:
    """The stored record of one version of an article, keyed by its number.

    ``first_version`` is the number of the first version of the id, which duplicates refer to.
    ``problems`` are stored in the article stream only: a record that was read has none.
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
    problems: Problem = NO_PROBLEM
    minor_terms: bytes = b""
    opening_mask: int = 0
    backfill: bool = False
    text_key: int = 0
    text_words: int = 0
    own_headline: float = 1.0

    @property
    def arrived_ms(self) -> int:
        """Arrival time of this version, in ms since 1970 UTC."""
        return arrival_ms_of(self.number)

    @property
    def publication_ms(self) -> int:
        """The time by which this version is ordered (``publication_time``)."""
        return publication_time(self.published_at_ms, self.arrived_ms)[0]

    def updated_ms(self, first_ms: int) -> int:
        """When this version of an article of ``first_ms`` was published or arrived; 0: it is the first."""
        at_ms = self.publication_ms if self.publication_ms > first_ms else max(first_ms, self.arrived_ms)
        return 0 if self.number == self.first_version else at_ms


_ANALYZED = {each.name for each in fields(Analysis)} & {each.name for each in fields(ArticleRecord)}
_ANALYZED -= {"title", "problems"}


def build_record(
    article: Article, analysis: Analysis, number: int = 0, first_version: int = 0
) -> ArticleRecord:
    """The record of an analyzed article under this number; 0: it is not stored."""
    return ArticleRecord(
        number=number,
        first_version=first_version,
        id=article.id,
        title=article.title or analysis.title,
        url=article.url,
        source=article.source,
        published_at_ms=article.published_at_ms,
        problems=analysis.problems | date_problem(article, arrival_ms_of(first_version or number)),
        backfill=article.backfill,
        **{name: getattr(analysis, name) for name in _ANALYZED},
    )


def copy_metadata(source: ArticleRecord, target: ArticleRecord) -> ArticleRecord:
    """``target`` with the metadata of ``source``."""
    metadata = {name: getattr(source, name) for name in ("title", "url", "source", "published_at_ms")}
    return replace(target, **metadata)


@dataclass(frozen=True, slots=True)
class Match:
    """The stored article that a duplicate repeats, and the rule that matched.

    ``canonical_id``: first one of its group. ``overlap``: None if not computed. ``words``: 0 if not known.
    """

    id: str
    number: int
    canonical_id: str
    canonical_first: int
    distance: int
    overlap: float | None
    rule: MatchRule
    words: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The decision on an article; a retry of its id returns the same.

    distance         in bits, to the nearest stored article within 7 bits
    match            set if verdict is "duplicate", or if the group of its own joined an older one
    updated_figures, reversed  the texts agree, but a figure was replaced, or a word by its opposite
    keep             whether the article has news that readers do not have: False for most duplicates
    keep_reason      why a duplicate is kept; None for others
    adds             share of a duplicate's words, 0..1, that neither canonical article nor kept members have
    fuller           a duplicate contains the canonical article and has 60 words or 30 % more
    text_is_article  False: its text is a notice or list that stands under many headlines
    part_of          id of the collection that contains it
    follows          id of the canonical article whose later versions it repeats, if nothing of that is left
    """

    verdict: VerdictName
    distance: int | None = None
    match: Match | None = None
    updated_figures: bool = False
    reused_id: bool = field(default=False, compare=False)  # not stored: it is so for one version only
    reversed: bool = False
    keep: bool = True
    keep_reason: KeepReason | None = None
    adds: float | None = None
    fuller: bool = False
    text_is_article: bool = True
    part_of: str | None = None
    follows: str | None = None

    @property
    def problems(self) -> Problem:
        """Problems that only a comparison with stored articles shows."""
        found = NO_PROBLEM if self.text_is_article else Problem.not_article
        return found | Problem.reused_id if self.reused_id else found

    def group(self, first_version: int) -> int:
        """The group of an article with this first version: that of its match, else its own."""
        return self.match.canonical_first if self.match is not None else first_version


@dataclass(frozen=True, slots=True)
class RelatedItem:
    """A related article in an answer; ``distance`` in bits, ``similarity`` in 0..1.

    score   probability, 0..1, of the same subject to a reader (``queries/relatedness.py``); None: not known
    copies  number of its copies that are stored and not shown
    kind    "": not known, or no common subject is likely
    shared  words of both, and the share, 0..1, of each in all that they share
    because_of  id of the article of the question that it belongs to
    """

    id: str
    title: str
    url: str
    source: str
    published_at_ms: int | None
    distance: int
    similarity: float
    score: float | None = None
    copies: int = 0
    kind: RelatedKindName = ""
    shared: tuple[tuple[str, float], ...] = ()
    hours_apart: float | None = None
    because_of: str = ""

    @classmethod
    def of(cls, record: ArticleRecord, distance: int, similarity: float, **others: Any) -> RelatedItem:
        """An article in an answer."""
        metadata = record.id, record.title, record.url, record.source, record.published_at_ms
        return cls(*metadata, distance, round(similarity, 3), **others)


@dataclass(frozen=True, slots=True)
class ReplacedArticle:
    """What was stored under an id that is used again for another article."""

    title: str
    source: str
    published_at_ms: int | None
    verdict: VerdictName


@dataclass(frozen=True, slots=True)
class Answer:
    """The result for one article; ``stored``: by this call, ``created``: as no new version of a stored one.

    ``profile``: the policy profile that applies. ``stored_as``: ``id``, if the posted one belongs to another
    source; ``replaces``: if it was used again. ``withdrawn``: ids of earlier articles whose text is not
    the article, or repeats one that lost its id. ``unchecked``: by a store that is not the one remembered;
    ``withheld``: not stored for that, or since its source is untrusted, or by a dry run.
    """

    id: str
    outcome: Outcome
    space: str
    fingerprint: int
    short: bool
    related: tuple[RelatedItem, ...] = ()
    event_id: str | None = None
    stored: bool = False
    created: bool = False
    problems: Problem = NO_PROBLEM
    profile: str = "default"
    stored_as: str | None = None
    replaces: ReplacedArticle | None = None
    withdrawn: tuple[str, ...] = ()
    unchecked: bool = False
    withheld: bool = False
    untrusted: bool = False
    timings_ms: dict[str, float] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class StreamItem:
    """One entry of the article stream, which the detector reads in commit order.

    ``canonical_first``: group of a duplicate; ``keep``: see ``Outcome``; ``terms``: story terms. Of a deleted
    article only ``number``, ``first_version``, ``id`` and hashes of its story terms and language are set.
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
    keep: bool = False
    title: str = ""
    url: str = ""
    source: str = ""
    lang: str = ""
    space: str = ""
    published_at_ms: int | None = None
    terms: tuple[tuple[str, float], ...] = ()
    backfill: bool = False
    problems: int = 0
    deleted_terms: tuple[int, ...] = ()

    @property
    def has_text(self) -> bool:
        """Whether more than its headline is known."""
        return not self.problems & Problem.empty


@dataclass(frozen=True, slots=True)
class IndexLayout:
    """The spaces of an index: ``spaces`` are served; shadow spaces are only written."""

    spaces: tuple[str, ...]
    shadow_spaces: tuple[str, ...] = ()
