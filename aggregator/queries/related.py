"""Related articles of a stored id or of any text, for recommendations.

An answer takes two round trips. The first request for an id needs two more, to load the article; it is cached
as long as the id's binding, which every request reads, is the same. Event members are cached for
``EVENT_MEMBERS_TTL_MS``, about the interval of the detector.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from aggregator.analysis.simhash import hamming_distance
from aggregator.analysis.term_profile import cosines, unit_vectors
from aggregator.domain import NO_SKETCH, Analysis, AnalyzeMany, Article, ArticleRecord, Outcome, RelatedItem
from aggregator.errors import AggregatorError
from aggregator.index import Index, StoredArticle
from aggregator.index.candidates import RelatedCandidates
from aggregator.queries import ranking
from aggregator.queries.ranking import DEFAULT_OPTIONS, Ranked, RelatedOptions, distinct, shown_once
from aggregator.queries.reasons import NAME_TERMS, kind_of, shared_words
from aggregator.queries.relatedness import MIN_PROBABILITY, ScoredArticle, probability, related_evidence
from aggregator.time_units import HOUR_MS

MAX_EVENT_MEMBERS = 64
# Of the candidates those of largest cosine are compared in full, so many or twice the limit.
MIN_COMPARED = 48
CACHE_ENTRIES = 4096  # per cache; a cached article takes about 3 kB
EVENT_MEMBERS_TTL_MS = 5_000
# Likelier than not: such an answer has a kind, and may represent an interest of several without answers.
EVEN_ODDS = 0.5


@dataclass(frozen=True, slots=True)
class Subject:
    """An article without its sketch; if it is stored, with its group and what its id is bound to.

    ``published_ms``: its date, None if unknown; ``part_of``: id of the collection that contains it.
    """

    id: str
    article: Analysis | ArticleRecord
    group: int | None = None
    binding: tuple[int, Outcome] | None = None
    published_ms: int | None = None
    part_of: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """One article of each group that is related to a subject, in any order.

    ``weak``: the likeliest if it is as likely as not; ``interest``: position of the one of a reader.
    """

    subject: Subject
    event_numbers: Sequence[int]
    candidates: RelatedCandidates
    interest: int = 0
    ranked: Ranked = field(default_factory=list)
    weak: Ranked = field(default_factory=list)

    @property
    def is_current(self) -> bool:
        """Whether the id is still bound to the subject."""
        own = self.candidates.own_binding
        return own is not None and self.subject.binding == (own.number, own.outcome)

    def score(self, record: ArticleRecord, group: int, similarity: float, distance: int) -> ScoredArticle:
        """An article with its probability; no time counts within an event, nor an unknown one."""
        in_event, asked_ms = record.number in self.event_numbers, self.subject.published_ms
        at_ms = record.publication_ms if record.number else record.published_at_ms
        hours = None if asked_ms is None or at_ms is None else (asked_ms - at_ms) / HOUR_MS
        known = similarity, distance, self.candidates.rarity
        evidence = related_evidence(self.subject.article, record, *known, None if in_event else hours)
        return ScoredArticle(record, group, evidence, probability(evidence), in_event, hours, self.subject.id)

    def item(self, scored: ScoredArticle, copies: int = 0) -> RelatedItem:
        """An answer, with the reasons for it."""
        record, evidence, hours = scored.record, scored.evidence, scored.hours_older
        least = EVEN_ODDS if evidence.shared > NAME_TERMS else MIN_PROBABILITY  # a word has many subjects
        kind = kind_of(evidence, (hours or 0.0) / 24) if scored.probability >= least else ""
        kind = "same_event" if scored.in_event else kind
        return RelatedItem.of(
            record,
            evidence.distance,
            evidence.cosine,
            score=round(scored.probability, 3),
            copies=copies,
            kind="part_of" if self.subject.part_of == record.id else kind,
            shared=shared_words(self.subject.article, record, self.candidates.rarity),
            hours_apart=None if hours is None else round(abs(hours), 1),
            because_of=scored.because_of,
        )


class RelatedArticles:
    """Finds articles of the same subject (``relatedness.py``) or of the same event."""

    def __init__(
        self,
        index: Index,
        analyze_many: AnalyzeMany,
        *,
        clock: Callable[[], int],
        min_score: float = MIN_PROBABILITY,
        members_of_event: Callable[[int], Awaitable[Sequence[str]]] | None = None,
    ) -> None:
        self._index, self._analyze_many, self._clock = index, analyze_many, clock
        self._min_score, self._members_of_event = min_score, members_of_event
        self._subject_cache: dict[str, Subject] = {}
        self._event_members_cache: dict[int, tuple[int, Sequence[int]]] = {}  # by group; time read in ms

    async def of_id(self, id_: str, options: RelatedOptions = DEFAULT_OPTIONS) -> list[RelatedItem]:
        """Related articles of a stored one, without its duplicates, best first. Raises NotFound."""
        subject = self._subject_cache.get(id_)
        found = await self._look_up(subject) if subject is not None else None
        if found is None or not found.is_current:
            subject = subject_of(await self._index.articles.get(id_))
            _cache_put(self._subject_cache, id_, subject)
            found = await self._look_up(subject)
        return await self._answer([await self._rank(found, options)], [1.0], options)

    async def of_ids(
        self, read_ms: Mapping[str, int], options: RelatedOptions = DEFAULT_OPTIONS
    ) -> tuple[list[RelatedItem], list[str]]:
        """Related articles for a reader, and the ids that are not stored; neither these nor their copies.

        ``read_ms``: when each was read, in ms. What was read is divided into interests, and each is
        answered according to its weight: by its typical article, then by the next ones up to the limit.
        """
        stored = await self._index.articles.get_many(list(read_ms))
        subjects = [subject_of(stored[id_]) for id_ in read_ms if id_ in stored]
        not_found = [id_ for id_ in read_ms if id_ not in stored]
        vectors = unit_vectors([subject.article for subject in subjects])
        interests = ranking.interests_of(vectors, [read_ms[s.id] for s in subjects])
        read = frozenset[object]().union(*(shown_once(s.group, s.article) for s in subjects))
        waiting = sorted((rank, k, i) for k, (own, _) in enumerate(interests) for rank, i in enumerate(own))
        finds = list[Found]()
        while waiting and len(distinct([r for f in finds for r in f.ranked])) < options.limit:
            turn, waiting = waiting[: options.limit], waiting[options.limit :]
            looked_up = await asyncio.gather(*(self._look_up(subjects[i], k) for _, k, i in turn))
            finds += await asyncio.gather(*(self._rank(found, options, read) for found in looked_up))
        weights = [weight for _, weight in interests]
        return await self._answer(finds, weights, options, ranking.HISTORY_DIVERSITY), not_found

    async def of_article(
        self, article: Article, options: RelatedOptions = DEFAULT_OPTIONS
    ) -> list[RelatedItem]:
        """Related articles of a text that is not stored, best first. Raises NoText."""
        analysis = (await self._analyze_many([article]))[0]
        if isinstance(analysis, AggregatorError):
            raise analysis
        found = await self._look_up(Subject("", analysis, published_ms=article.published_at_ms))
        return await self._answer([await self._rank(found, options)], [1.0], options)

    async def judge(self, a: Subject, b: ArticleRecord, group: int | None) -> tuple[RelatedItem, str]:
        """``b`` (``group`` None: it is not stored) as the list of ``a`` may have it, and why it does not."""
        found, article, why_not = await self._look_up(a), a.article, ""
        similarity = float(cosines(article, [b])[0])
        scored = found.score(b, group or 0, similarity, hamming_distance(article.fingerprint, b.fingerprint))
        needed = DEFAULT_OPTIONS.needed(scored, self._min_score)
        if group is not None and group == a.group:
            why_not = "but they are copies of one article"
        elif shown_once(None, article) & shown_once(None, b):
            why_not = "but they have one headline"
        elif group not in (None, b.first_version):
            why_not = "but it is a copy, and lists have originals"
        elif scored.probability < min(needed, self._min_score):
            why_not = f"less than {self._min_score}"
        elif scored.probability < needed:
            why_not = f"less than {needed:.3f}, needed so far apart (with half_life=0 {self._min_score})"
        elif group is not None and b.number not in (*found.candidates.numbers, *found.event_numbers):
            why_not = "but no common word is rare enough to find it"
        return found.item(scored), why_not

    async def _look_up(self, subject: Subject, interest: int = 0) -> Found:
        candidates, event_numbers = await asyncio.gather(
            self._index.related.find(subject.article, subject.id), self._event_members(subject)
        )
        return Found(subject, event_numbers, candidates, interest)

    async def _rank(
        self, found: Found, options: RelatedOptions, excluded: frozenset[object] = frozenset()
    ) -> Found:
        """What may be answered, without what is ``excluded`` (``shown_once``)."""
        subject, event_numbers, now_ms = found.subject, found.event_numbers, self._clock()
        minimum = self._min_score if options.min_score is None else options.min_score
        loaded = await self._index.related.load_candidates(found.candidates, event_numbers)
        ids = {*options.exclude_ids}
        hidden = (shown_once(c.canonical[1], c.record) for c in loaded if ids & {c.record.id, c.canonical[0]})
        excluded = excluded.union(shown_once(subject.group, subject.article), *hidden)
        shown = [c for c in loaded if c.canonical[1] not in excluded and options.matches(c.record)]
        shown.sort(key=lambda c: (c.record.number not in event_numbers, -c.evidence.similarity))
        scored = [
            found.score(c.record, c.canonical[1], c.evidence.similarity, c.evidence.distance)
            for c in shown[: len(event_numbers) + max(MIN_COMPARED, 2 * options.limit)]
        ]
        best, weak = (
            [
                (options.log_weight(each, subject.published_ms or 0, now_ms), each)
                for each in options.listed(scored, least)
                if excluded.isdisjoint(shown_once(each.group, each.record))
            ]
            for least in (minimum, min(minimum, EVEN_ODDS))
        )
        return replace(found, ranked=best, weak=weak[:1])

    async def _answer(
        self, finds: Sequence[Found], weights: Sequence[float], options: RelatedOptions, usual: float = 0.0
    ) -> list[RelatedItem]:
        diversity = usual if options.diversity is None else options.diversity
        ranked: list[Ranked] = [[] for _ in weights]
        for each in finds:
            ranked[each.interest] += each.ranked
        for each in finds if len(weights) > 1 else ():
            ranked[each.interest] = ranked[each.interest] or each.weak
        chosen = ranking.choose(ranked, weights, options.limit, diversity)
        by_id, copies = {each.subject.id: each for each in finds}, dict[int, int]()
        for id_, each in by_id.items():
            groups = [article.group for article in chosen if article.because_of == id_]
            copies |= await self._index.related.copies_of(each.candidates, groups)
        return [by_id[article.because_of].item(article, copies[article.group]) for article in chosen]

    async def _event_members(self, subject: Subject) -> Sequence[int]:
        """Numbers of the newest articles of the event that the subject belongs to; () without one."""
        group, now_ms = subject.group, self._clock()
        if self._members_of_event is None or group is None:
            return ()
        read_ms, numbers = self._event_members_cache.get(group, (now_ms - EVENT_MEMBERS_TTL_MS, ()))
        if not 0 <= now_ms - read_ms < EVENT_MEMBERS_TTL_MS:
            ids = (await self._members_of_event(group))[-MAX_EVENT_MEMBERS:]
            numbers = await self._index.related.article_numbers_of(subject.article.space, ids) if ids else ()
            _cache_put(self._event_members_cache, group, (now_ms, numbers))
        return numbers


def subject_of(stored: StoredArticle) -> Subject:
    """A stored article, to look for related ones."""
    record = replace(stored.record, sketch=NO_SKETCH)
    binding = record.number, stored.outcome
    return Subject(record.id, record, stored.group, binding, record.publication_ms, stored.outcome.part_of)


def _cache_put(cache: dict[Any, Any], key: object, value: object) -> None:
    """Set ``cache[key]``; evicts the entry that was written longest ago."""
    cache.pop(key, None)
    cache[key] = value
    if len(cache) > CACHE_ENTRIES:
        del cache[next(iter(cache))]
