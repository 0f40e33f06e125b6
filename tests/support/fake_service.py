"""Fake service in memory with the signatures of the real one; duplicates are articles with equal text."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import xxhash
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from aggregator.app import Service
from aggregator.auth.api_keys import ApiKeys
from aggregator.auth.rate_limiter import RateLimiter
from aggregator.dedup.policy import Policy, PolicyProfiles
from aggregator.domain import (
    NO_SKETCH,
    Answer,
    Article,
    ArticleRecord,
    Match,
    Outcome,
    RelatedItem,
    StreamItem,
    article_number_at,
)
from aggregator.errors import AggregatorError, NoText, NotFound
from aggregator.events.broadcast import ChangeBroadcaster
from aggregator.events.desks import Desks
from aggregator.events.detection.model import LearnedHistory, LearningStatus
from aggregator.events.detection.top_stories import TopStory
from aggregator.events.event import EditorAction, Event
from aggregator.events.newsroom import action_id, apply_action
from aggregator.events.read_marks import ReadMarks
from aggregator.events.repository import EventRepository
from aggregator.events.selection import (
    PAGED_ORDERS,
    EventFilter,
    EventOrder,
    PageKey,
    RankedStory,
    largest_stories,
    page_key,
    sort_events,
)
from aggregator.events.webhooks.dispatcher import WebhookDispatcher
from aggregator.events.webhooks.subscriptions import Subscriptions
from aggregator.http.server import make_app, make_runner
from aggregator.index import Index, StoredArticle
from aggregator.index.article_stream import Arrivals
from aggregator.index.bindings import foreign_article_error
from aggregator.ingest.refused import RefusedArticles
from aggregator.provenance.directory import SourceDirectory
from aggregator.provenance.queries import ProvenanceQueries
from aggregator.queries.headline_table import SearchFilter
from aggregator.queries.ranking import DEFAULT_OPTIONS, RelatedOptions
from aggregator.queries.search import FoundArticle, ResultKey, SearchResult
from aggregator.readiness import Readiness
from aggregator.settings import Settings
from aggregator.store.base import StoreInfo
from aggregator.store.identity import StoreMemory
from aggregator.store.memory import MemoryStore
from aggregator_client.wire import ExplainOut, ExplainSideOut, OverlapOut
from tests.support.hang_limit import HANG_LIMIT_S

START_MS = 1_790_000_000_000
Client = TestClient[Any, Any]


@dataclass
class FakeStore:
    """A store that only has a state."""

    state: StoreInfo = field(
        default_factory=lambda: StoreInfo("memory", "1", 4096, "nothing is kept", ready=True)
    )

    async def info(self) -> StoreInfo:
        return self.state


class FakeService:
    """Index, ingest, related and explain in one object; all raise ``failure`` when it is set.

    ``submitted``: all articles received; ``related_options``: of the last related query.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings(store_url="memory")
        self.store = FakeStore()
        index: Any = SimpleNamespace(
            articles=self, stream=self, spaces=("en.0000",), arrival_counts=self, store=MemoryStore()
        )
        index.shadow_spaces, index.all_spaces = (), index.spaces
        index.lookup = SimpleNamespace(lookups=0, entries_read=0, largest_bucket_entries=0)
        index.memory = StoreMemory()
        self.analysis = SimpleNamespace(serving=SimpleNamespace(restarts=0))
        self.articles = SimpleNamespace(
            foreign_index=SimpleNamespace(articles=0),
            load_control=SimpleNamespace(throttle=SimpleNamespace(throttled_s=0.0)),
            index=index,
            policies=PolicyProfiles(Policy()),
            ingest=self,
            related=self,
            explain=self,
            search=FakeSearch(self),
            provenance=ProvenanceQueries(cast("Index", index)),
            sources=SourceDirectory(MemoryStore()),
            refused=RefusedArticles(index, self.clock),
        )
        self.fake_events, hooks = FakeEvents(self), MemoryStore()
        self.events = SimpleNamespace(
            repository=self.fake_events,
            editor_actions=self.fake_events,
            search=FakeEventSearch(self),
            broadcaster=ChangeBroadcaster(EventRepository(MemoryStore()), poll_interval_s=0.01),
            desks=Desks(hooks),
            subscriptions=Subscriptions(hooks),
            read_marks=ReadMarks(MemoryStore()),
        )
        self.edge = SimpleNamespace(
            api_keys=ApiKeys(MemoryStore(), self.clock),
            rate_limiter=RateLimiter(MemoryStore(), self.clock, self.settings.rate_limit_per_second),
            related_limiter=RateLimiter(
                MemoryStore(), self.clock, self.settings.related_rate_limit_per_second
            ),
            readiness=Readiness({}),
        )
        dispatcher = WebhookDispatcher(EventRepository(hooks), self.events.subscriptions, self.clock)
        self.background = SimpleNamespace(
            webhook_dispatcher=dispatcher,
            scheduler=SimpleNamespace(is_running=False),
            detector=SimpleNamespace(lag=self.no_lag),
        )
        self.commit_retries = 0
        self.failure: Exception | None = None
        self.stored: dict[str, StoredArticle] = {}
        self.related_options = DEFAULT_OPTIONS
        self.read_ms: Mapping[str, int] = {}
        self.submitted: list[Article] = []

    async def no_lag(self, *_: object) -> int:
        return 0

    def clock(self) -> int:
        return START_MS

    async def submit(
        self, article: Article, *, dry_run: bool = False, sources: tuple[str, ...] = ()
    ) -> Answer:
        result = (await self.submit_many([article], dry_run=dry_run))[0]
        if isinstance(result, AggregatorError):
            raise result
        return result

    async def submit_many(
        self, articles: Sequence[Article], *, dry_run: bool = False
    ) -> list[Answer | AggregatorError]:
        self.check()
        return [self._submit(article, dry_run) for article in articles]

    async def analyze_many(self, articles: Sequence[Article]) -> Sequence[Article]:
        return articles

    async def process_analyzed(
        self,
        articles: Sequence[Article],
        analyzed: object,
        analyze_ms: float,
        *,
        dry_run: bool = False,
        group_size: int = 0,
        sources: tuple[str, ...] = (),
    ) -> list[Answer | AggregatorError]:
        return await self.submit_many(articles, dry_run=dry_run)

    def _submit(self, article: Article, dry_run: bool) -> Answer | AggregatorError:
        self.submitted.append(article)
        if article.html and "<p" not in article.html:
            return NoText("html: no main text was found in it.", field="html")
        text = article.text or article.html or article.title
        if known := self.stored.get(article.id):
            return self._answer(known, stored=False)
        stored = StoredArticle(self._record(article, text), self._decide(text))
        if not dry_run:
            self.stored[article.id] = stored
        return self._answer(stored, stored=not dry_run)

    def _record(self, article: Article, text: str) -> ArticleRecord:
        number = article_number_at(START_MS + len(self.stored), 0)
        return ArticleRecord(
            number=number,
            first_version=number,
            id=article.id,
            space="en.0000",
            lang=article.lang or "en",
            fingerprint=xxhash.xxh3_64_intdigest(text.encode()),
            text_hash=xxhash.xxh3_128_digest(text.encode()),
            short=len(text.split()) < 8,
            title=article.title,
            url=article.url,
            source=article.source,
            published_at_ms=article.published_at_ms,
            text_words=len(article.text.split()),
            own_headline=0.0 if article.text else 1.0,
            sketch=NO_SKETCH,
        )

    def _decide(self, text: str) -> Outcome:
        same = xxhash.xxh3_128_digest(text.encode())
        for id_, stored in self.stored.items():
            if stored.record.text_hash == same:
                first = stored.record.first_version
                return Outcome("duplicate", 0, Match(id_, first, id_, first, 0, 1.0, "exact"), keep=False)
        return Outcome("new")

    def _answer(self, article: StoredArticle, *, stored: bool) -> Answer:
        record = article.record
        return Answer(
            id=record.id,
            outcome=article.outcome,
            space=record.space,
            fingerprint=record.fingerprint,
            short=record.short,
            stored=stored,
            created=stored,
            timings_ms={"analyse": 1.25, "lookup": 0.5},
        )

    async def delete(
        self, id_: str, *, sources: tuple[str, ...] = (), take_down: bool = False, undo: bool = False
    ) -> None:
        stored = await self.get(id_)
        if sources and stored.record.source not in sources:
            raise foreign_article_error(id_, sources)
        del self.stored[id_]

    # -- index

    async def get(self, id_: str) -> StoredArticle:
        self.check()
        if id_ not in self.stored:
            raise NotFound(f"No article is stored under the id {id_[:200]!r}.")
        return self.stored[id_]

    async def group_members(self, id_: str, limit: int | None = None) -> list[ArticleRecord]:
        text_hash = (await self.get(id_)).record.text_hash
        return [s.record for s in self.stored.values() if s.record.text_hash == text_hash][:limit]

    async def get_many(self, ids: Sequence[str]) -> dict[str, StoredArticle]:
        self.check()
        return {id_: self.stored[id_] for id_ in ids if id_ in self.stored}

    async def update(self, now_ms: int) -> Arrivals:
        self.check()
        verdicts = Counter(stored.outcome.verdict for stored in self.stored.values())
        return Arrivals(((START_MS // 60_000 * 60_000, len(self.stored)),), dict(verdicts), is_complete=True)

    async def recent_entries(self, limit: int) -> list[StreamItem]:
        return await self.recent(limit)

    async def recent(self, limit: int) -> list[StreamItem]:
        self.check()
        newest = list(self.stored.values())[::-1][:limit]
        return [
            StreamItem(
                number=s.record.number,
                first_version=s.record.first_version,
                id=s.record.id,
                verdict=s.outcome.verdict,
                arrived_ms=s.record.arrived_ms,
                title=s.record.title,
                url=s.record.url,
                source=s.record.source,
                lang=s.record.lang,
                exact=s.outcome.match is not None,
                canonical_first=s.group,
                space=s.record.space,
            )
            for s in newest
        ]

    # -- related and explain

    async def of_id(self, id_: str, options: RelatedOptions = DEFAULT_OPTIONS) -> list[RelatedItem]:
        await self.get(id_)
        self.related_options = options
        return self._others({id_}, options)

    async def of_ids(
        self, read_ms: Mapping[str, int], options: RelatedOptions
    ) -> tuple[list[RelatedItem], list[str]]:
        self.check()
        self.related_options, self.read_ms = options, read_ms
        unknown = [id_ for id_ in read_ms if id_ not in self.stored]
        return self._others(set(read_ms), options) if len(unknown) < len(read_ms) else [], unknown

    async def of_article(self, article: Article, options: RelatedOptions) -> list[RelatedItem]:
        self.check()
        self.related_options = options
        return self._others(set(), options)

    def _others(self, read: set[str], options: RelatedOptions) -> list[RelatedItem]:
        return [
            RelatedItem(r.id, r.title, r.url, r.source, r.published_at_ms, 5, 0.5)
            for r in (s.record for s in self.stored.values())
            if r.id not in read
        ][: options.limit]

    async def explain_pair(self, a: str | Article, b: str | Article, *, profile: str = "") -> ExplainOut:
        for side in (a, b):
            if isinstance(side, str):
                await self.get(side)
        labels = (a if isinstance(a, str) else a.title, b if isinstance(b, str) else b.title)
        fingerprints = (zlib.crc32(labels[0].encode()), zlib.crc32(labels[1].encode()))
        differing = fingerprints[0] ^ fingerprints[1]
        sides = [
            ExplainSideOut(label, "en.0000", f"{fingerprint:016x}", None, None)
            for label, fingerprint in zip(labels, fingerprints, strict=True)
        ]
        return ExplainOut(
            summary="They differ.",
            a=sides[0],
            b=sides[1],
            distance=differing.bit_count(),
            differing_bits=[k for k in range(64) if differing >> k & 1],
            overlap=OverlapOut(0.5, 0.25, 12.0, 0.0, 0.0, 0.0),
            similarity=0.4,
            hours_apart=None,
            headline_similarity=0.2,
            same_outlet=False,
            common_figures=0,
            is_copy=False,
            keep=True,
            keep_reason=None,
            updated_figures=False,
            reversed=False,
            shared_passages=None,
        )

    def check(self) -> None:
        if self.failure is not None:
            raise self.failure


class FakeEvents:
    """Event repository and editor actions over a list; ``last_query``: arguments of the last listing."""

    def __init__(self, service: FakeService) -> None:
        self._service = service
        self.stored: list[Event] = []
        self.last_query: dict[str, object] = {}
        self.event_ids: dict[int, str] = {}
        self.learning_status: LearningStatus | None = None
        self.stories: list[TopStory] = []

    async def top_stories(self, event_filter: EventFilter, since_ms: int) -> list[RankedStory]:
        return largest_stories(self.stories, event_filter, since_ms)

    async def summaries(self) -> dict[str, Event]:
        return {event.id: event for event in self.stored}

    async def learned_history(self) -> LearnedHistory | None:
        return None

    async def learning(self, now_ms: int) -> LearningStatus | None:
        return self.learning_status

    async def list_events(
        self,
        status: str | None = None,
        since_ms: int | None = None,
        limit: int = 50,
        event_filter: EventFilter | None = None,
        after: PageKey | None = None,
        order: EventOrder = "time",
        now_ms: int = 0,
        until_ms: int | None = None,
    ) -> list[Event]:
        self._service.check()
        self.last_query = {"status": status, "since_ms": since_ms, "limit": limit}
        event_filter = event_filter or EventFilter()
        found = [e for e in self.stored if status in (None, e.status) and event_filter.matches(e)]
        if order not in PAGED_ORDERS:
            return sort_events((e for e in found if e.status != "closed"), order, now_ms)[:limit]
        if order != "time" or len({e.last_seen_ms for e in found}) > 1:
            found.sort(key=lambda e: page_key(e, e.id, order), reverse=True)
        return [e for e in found if after is None or page_key(e, e.id, order) < after][:limit]

    async def get(self, event_id: str) -> Event:
        self._service.check()
        if event := (await self.summaries()).get(event_id):
            return event
        raise NotFound(f"There is no event {event_id[:200]!r}.")

    async def get_many(self, event_ids: Sequence[str]) -> dict[str, Event]:
        return {event.id: event for event in self.stored if event.id in event_ids}

    async def event_ids_of(self, numbers: Sequence[int]) -> dict[int, str]:
        return {number: self.event_ids[number] for number in numbers if number in self.event_ids}

    async def story_events(self, story_id: str) -> list[Event]:
        self._service.check()
        events = [e for e in self.stored if (e.story_id or e.id) == story_id and e.merged_into is None]
        if not events:
            raise NotFound(f"There is no storyline {story_id[:200]!r}.")
        return events

    async def story_neighbors(self, event: Event) -> tuple[Event | None, Event | None]:
        if event.merged_into is not None:
            return None, None
        events: list[Event | None] = [None, *await self.story_events(event.story_id or event.id), None]
        at = events.index(event)
        return events[at - 1], events[at + 1]

    async def apply(self, action: EditorAction) -> tuple[Event, int | None]:
        chosen = action.item if action.action == "choose_headline" else None
        headline = (await self._service.get(chosen)).record.title if chosen else ""
        before = await self.get(action.event)
        action = replace(action, id=action_id(action, before))
        event = replace(apply_action(before, action, headline), revision=before.revision + 1)
        self.stored = [event if other.id == event.id else other for other in self.stored]
        return event, action.id if event.actions != before.actions else None


class FakeSearch:
    """Search of articles by a part of the headline, newest first; filters are ignored."""

    def __init__(self, service: FakeService) -> None:
        self._service = service

    async def find(
        self, query: str, search_filter: SearchFilter, *, limit: int, after: ResultKey | None = None, **_: Any
    ) -> SearchResult:
        self._service.check()
        found = [
            FoundArticle(stored, 0, (1, stored.record.number))
            for stored in reversed(self._service.stored.values())
            if query.lower() in stored.record.title.lower()
        ]
        behind = [result for result in found if after is None or result.key < after]
        next_key = behind[limit - 1].key if len(behind) > limit else None
        return SearchResult(
            tuple(behind[:limit]), len(found), next_key, len(query.split()), len(found), START_MS, False
        )

    async def exact(self, query: str) -> list[FoundArticle]:
        stored = self._service.stored.get(query)
        return [FoundArticle(stored, 0, (1 << 62, stored.record.number))] if stored else []


class FakeEventSearch:
    """Search of events by a part of the headline or by terms."""

    def __init__(self, service: FakeService) -> None:
        self._service = service

    async def find(self, query: str, limit: int, **conditions: object) -> tuple[list[tuple[Event, int]], int]:
        self._service.check()
        stored = self._service.fake_events.stored if query else ()
        found = [(event, 0) for event in stored if EventFilter(term=query).matches(event)]
        return found[:limit], len(found)


class _Server(TestServer):
    """A test server with the connection options of the real one."""

    async def _make_runner(self, **kwargs: object) -> web.AppRunner:
        return make_runner(self.app)


@asynccontextmanager
async def serving(service: Service | FakeService) -> AsyncIterator[Client]:
    """A client of the application over ``service``; requests have time unless the test limits it."""
    async with TestClient(_Server(make_app(cast("Service", _unhurried(service))))) as client:
        yield client


def _unhurried(service: Service | FakeService) -> Service | FakeService:
    """``service`` without the default deadline of requests, which a busy machine can exceed."""
    if service.settings.request_timeout_seconds != Settings().request_timeout_seconds:
        return service
    settings = replace(service.settings, request_timeout_seconds=HANG_LIMIT_S)
    if isinstance(service, Service):
        return replace(service, settings=settings)
    service.settings = settings
    return service
