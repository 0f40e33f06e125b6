"""One simulation run: a program under a schedule, over the production ingest, index and in-memory store."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache

from typing_extensions import override

from aggregator.concurrency import Spawn
from aggregator.dedup.policy import Policy
from aggregator.domain import Analysis, Answer, Article, ArticleRecord, Outcome, article_number_at
from aggregator.errors import AggregatorError, NotFound, StoreUnavailable, TakenDown
from aggregator.index import Index, keys
from aggregator.index import snapshot as snapshot_module
from aggregator.index.bindings import decode_binding
from aggregator.index.blocks import PLAN
from aggregator.index.upkeep.compaction import Compactor
from aggregator.index.upkeep.maintenance import SegmentMaintenance
from aggregator.index.upkeep.sketch_rehash import SketchRehash
from aggregator.ingest.backfill import Backfill
from aggregator.ingest.dual_write import DualWriter
from aggregator.ingest.pipeline import Execution
from aggregator.ingest.service import IngestService
from aggregator.store.base import AppendMany, Delete, Put, Transaction
from aggregator.store.memory import MemoryStore
from tests.simulation import oracle
from tests.simulation.oracle import Call
from tests.simulation.programs import (
    ANALYZER,
    NEXT_ANALYZER,
    TEXTS,
    Batch,
    FullKeys,
    Lookup,
    Maintain,
    Migrate,
    Post,
    Program,
    ReadStream,
    Rehash,
    Remove,
    Request,
    Seal,
    Wait,
    analysis,
    analyze_many,
    analyze_many_for_migration,
)
from tests.simulation.scheduler import Choices, Scheduler, Tally, Task
from tests.simulation.transport import Transport, finish
from tests.support.factories import Clock
from tests.support.index_layout import block_values
from tests.support.store_steps import scan
from tests.support.wiring import build_core

RETENTION_MS = 8_000
WAIT_MS = 3_100
ATTEMPTS = 2  # of a writer whose request found the store unavailable

# Language and first letter of a text: near-copies of each other.
Story = tuple[str, str]


@dataclass
class Result:
    """A finished run: the violations, and the trace and log to reproduce and read it."""

    violations: list[str]
    trace: dict[int, int]
    log: list[str]
    tally: Tally


@dataclass(frozen=True)
class Effect:
    """What an answer says: whether the request changed something, the outcome and the space of a post.

    ``is_refused``: the id is that of another source, so the article is stored under an id within its own;
    ``is_taken_down``: it is not stored, since its text was taken down.
    """

    changed: bool | None
    outcome: Outcome | None = None
    space: str = ""
    is_refused: bool = False
    is_taken_down: bool = False


@contextmanager
def _small_sketch_keys() -> Iterator[None]:
    """A sketch key is full with two entries and then keeps one."""
    limits = snapshot_module.FULL_KEY_ENTRIES, snapshot_module.KEPT_KEY_ENTRIES
    snapshot_module.FULL_KEY_ENTRIES, snapshot_module.KEPT_KEY_ENTRIES = 2, 1
    try:
        yield
    finally:
        snapshot_module.FULL_KEY_ENTRIES, snapshot_module.KEPT_KEY_ENTRIES = limits


@dataclass
class World:
    """One store, its writers, and everything that was observed."""

    program: Program
    choices: Choices
    store: MemoryStore = field(init=False)
    clock: Clock = field(default_factory=Clock)
    calls: list[Call] = field(default_factory=list)
    # (space, id hash) -> (time, outcome) of every commit.
    history: dict[tuple[str, bytes], list[tuple[int, Outcome]]] = field(default_factory=dict)
    unanswered: list[Request] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.clock)
        self.stream_positions: dict[bytes, bytes] = {}
        self.streamed: list[tuple[str, int, str]] = []
        self.delayed: list[Callable[[], object]] = []
        # (time, story -> (number, whether it has index entries)) after every commit.
        self.versions: list[tuple[int, dict[Story, set[tuple[int, bool]]]]] = [(0, {})]
        self.spaces = {lang: analysis("s0", lang).space for lang in ("en", "fr")}
        self.has_full_keys = any(isinstance(r, FullKeys) for requests in self.program for r in requests)
        self.migrates = any(isinstance(r, Migrate) for requests in self.program for r in requests)
        self.has_take_downs = any(
            isinstance(r, Remove) and r.take_down for requests in self.program for r in requests
        )
        removals = [r for requests in self.program for r in requests if isinstance(r, Remove)]
        self.undoes = any(r.undo for r in removals)
        texts = {(post.id, post.text) for post in _posts(self.program)}  # an update leaves copies, too
        self.only_undoes = all(r.undo for r in removals) and len(texts) == len({id_ for id_, _ in texts})
        waits = any(isinstance(r, Wait) for requests in self.program for r in requests)
        self.retention_ms = RETENTION_MS if waits else None
        self.fixed_stories = _fixed_stories(self.program)
        self.reused_ids = {p.id for p in _posts(self.program) if p.story not in self.fixed_stories}
        self.batch_articles = _batch_articles(self.program)
        tasks = [Task(f"writer {i}", self._writer(requests)) for i, requests in enumerate(self.program)]
        self.scheduler = Scheduler(self.choices, tasks, self.delayed)

    def run(self) -> Result:
        """Run the schedule, then repeat every unanswered request undisturbed, then check the final state."""
        random.seed(0)  # for article numbers
        try:
            with _small_sketch_keys() if self.has_full_keys else nullcontext():
                self.scheduler.run()
                self._retry_unanswered()
                self._check_final_state()
        except (AggregatorError, AssertionError) as error:
            self._violation(f"{type(error).__name__}: {error}")
        s = self.scheduler
        return Result(self.violations, s.trace, s.log, s.tally)

    # -- the writers ---------------------------------------------------------------------------

    async def _writer(self, requests: tuple[Request, ...]) -> None:
        store = Transport(self.store, self.delayed, self._committed)
        ingest = self._ingest(store, self.scheduler.spawn)
        for request in requests:
            self.unanswered.append(request)
            for _ in range(ATTEMPTS):
                if await self._send(ingest, request):
                    self.unanswered.remove(request)
                    break

    async def _send(self, ingest: IngestService, request: Request) -> bool:
        """One attempt; whether an answer arrived."""
        self.scheduler.now += 1
        begun = len(self.calls)
        source = next((post.source for post in _posts_of(request)), "")
        take_down = isinstance(request, Remove) and request.take_down
        self.calls += [
            Call(id_, text, self.scheduler.now, source=source, take_down=take_down, story=story)
            for id_, text, story in _contents(request)
        ]
        try:
            effects = await self._execute(ingest, request)
        except StoreUnavailable:
            return False
        self.scheduler.now += 1
        for i, effect in enumerate(effects, start=begun):
            call = replace(
                self.calls[i],
                end=self.scheduler.now,
                effect=effect.changed,
                outcome=effect.outcome,
                is_refused=effect.is_refused,
                is_taken_down=effect.is_taken_down,
            )
            self.calls[i] = call
            if effect.outcome is not None:
                self._check_answer(call, effect.space)
        return True

    async def _execute(self, ingest: IngestService, request: Request) -> list[Effect]:
        """Send the request; the effects of posts and removals, in order."""
        match request:
            case Post() | Batch():
                return await self._post(ingest, request)
            case Remove():
                return [Effect(await _remove(ingest, request))]
            case Seal():
                await self._seal(ingest)
            case Wait():
                self._wait()
            case Maintain():
                compactor = SmallCompactor(ingest._index, keys_per_chunk=64)
                rehash = SmallRehash(ingest._index, split_entries=math.inf)
                maintenance = SegmentMaintenance(ingest._index)
                maintenance.compactor, maintenance.rehash = compactor, rehash
                async for _ in maintenance.steps(self.clock.now_ms):
                    pass
            case Rehash():
                await self._rehash(ingest, request)
            case ReadStream():
                await self._read_stream(ingest)
            case Migrate():
                await self._migrate(ingest)
            case Lookup():
                await self._look_up(ingest, request, self.scheduler.now)
        return []

    async def _post(self, ingest: IngestService, request: Post | Batch) -> list[Effect]:
        # A second attempt names another address: newer metadata of the same text.
        articles = [
            replace(post.article(), url=f"https://example.org/{self.scheduler.now}")
            for post in _posts_of(request)
        ]
        sources = tuple({article.source for article in articles if article.source})
        effects = []
        for answer in await ingest.submit_many(articles, sources=sources):
            if isinstance(answer, Answer) and answer.stored_as:
                effects.append(Effect(None, is_refused=True))
                continue
            if isinstance(answer, TakenDown) and self.has_take_downs:
                effects.append(Effect(False, is_taken_down=True))
                continue
            assert isinstance(answer, Answer), f"answered with {answer}"
            effects.append(Effect(answer.stored, answer.outcome, answer.space))
        return effects

    def _wait(self) -> None:
        self.clock.now_ms += WAIT_MS
        # From now on any article may expire, which looks like a delete.
        self.calls += [Call(id_, None, self.scheduler.now) for id_ in {p.id for p in _posts(self.program)}]

    async def _seal(self, ingest: IngestService) -> None:
        segments = ingest._index.segments
        for space in ANALYZER.spaces:
            await segments.seal(space, (await segments.stack(space)).last, self.clock.now_ms)

    async def _rehash(self, ingest: IngestService, request: Rehash) -> None:
        rehash = SmallRehash(ingest._index, split_entries=-1)
        for space in ANALYZER.spaces:
            async for _ in rehash.steps(space):
                if request.begin_only:
                    break

    async def _read_stream(self, ingest: IngestService) -> None:
        """As the detector does: the position is stored together with what was read."""
        while True:
            before = self.stream_positions
            items, positions = await ingest._index.stream.read(before, 2)
            if not items:
                return
            if self.stream_positions is not before:  # another reader was faster
                continue
            self.streamed += [(item.kind, item.number, item.id) for item in items]
            self.stream_positions = positions

    async def _look_up(self, ingest: IngestService, request: Lookup, start: int) -> None:
        """What was stored all the time must be found; what is found must have been stored at some time."""
        article = Article(id="probe", text=TEXTS[request.text], lang=request.lang)
        match = (await ingest.submit(article, dry_run=True)).outcome.match
        story = request.lang, request.text[0]
        during = [versions.get(story, set()) for at, versions in self.versions if at >= start]
        during += [versions.get(story, set()) for at, versions in self.versions if at < start][-1:]
        oldest = self._oldest_findable()
        if match is None and any(indexed and n >= oldest for n, indexed in set.intersection(*during)):
            self._violation(f"a look-up of {request.text} did not find what was stored")
        if match is not None and match.number not in {number for stored in during for number, _ in stored}:
            self._violation(f"a look-up of {request.text} found {match.id}, which was gone")

    async def _migrate(self, ingest: IngestService) -> int:
        """How many stored articles could not be copied."""
        assert ingest._dual_writer is not None
        stats = await Backfill(ingest._index, ingest._dual_writer, lambda stats: None).from_store()
        return stats.not_copied

    def _ingest(self, store: object, spawn: Spawn | None = None) -> IngestService:
        shadow = NEXT_ANALYZER.spaces if self.migrates else ()
        index = Index(store, ANALYZER.spaces, retention_ms=self.retention_ms, shadow_spaces=shadow)  # type: ignore[arg-type]
        writer = DualWriter(index, analyze_many_for_migration, NEXT_ANALYZER.space_of)
        return build_core(
            index,
            analyze_many,
            Policy(),
            clock=self.clock,
            store_texts=self.migrates,
            dual_writer=writer if self.migrates else None,
            execution=Execution(spawn=spawn),
            batch_articles=self.batch_articles,
        ).ingest

    def _check_migrated(self, ingest: IngestService) -> None:
        """Once everything is copied, the next spaces hold the same versions and verdicts, and are sound."""
        if not_copied := finish(self._migrate(ingest)):
            self._violation(f"{not_copied} stored texts were not copied")
        for space, following in zip(ANALYZER.spaces, NEXT_ANALYZER.spaces, strict=True):
            for problem in oracle.inconsistencies(self.store, following, is_copied=True):
                self._violation(f"after the migration {problem}")
            serving, copied = (oracle.view(self.store, each).bindings for each in (space, following))
            if serving != copied:
                self._violation(f"after the migration {len(copied)} of {len(serving)} bindings, or others")

    def _floor(self, space: str) -> int:
        """Article numbers below it have expired."""
        index = Index(self.store, [space], retention_ms=self.retention_ms)
        return finish(index.segments.refresh(space)).floor

    def _oldest_findable(self) -> int:
        """Article numbers from here on must be found."""
        return article_number_at(self.clock.now_ms - RETENTION_MS) if self.retention_ms else 0

    # -- after every commit --------------------------------------------------------------------

    def _committed(self, transaction: Transaction) -> None:
        """Record the commit and check the store."""
        if any(isinstance(w, Put) and w.key.startswith(b"{takedowns}") for w in transaction.writes):
            self.scheduler.log.append("    committed: a text is refused")
            return
        changes = []
        for write in transaction.writes:
            if isinstance(write, Put | Delete) and write.key[write.key.index(b"}") + 1 :][:1] == b"i":
                if isinstance(write, Delete) or write.value == keys.ABSENT:
                    changes.append("an article leaves")
                    continue
                binding = decode_binding(write.value)
                changes.append(f"{binding.id} is {_describe(binding.outcome)}")
                place = keys.space_of(write.key), keys.id_hash(binding.id)
                self.history.setdefault(place, []).append((self.scheduler.now, binding.outcome))
            elif isinstance(write, Put) and write.key == keys.tag_of(write.key) + keys.SEALED:
                changes.append("sealed")
            elif isinstance(write, Put) and write.key == keys.tag_of(write.key) + keys.WIDTH:
                changes.append(f"sketch width {write.value.decode()}")
        entries = sum(len(write.keys) for write in transaction.writes if isinstance(write, AppendMany))
        self.scheduler.log.append(f"    committed: {', '.join(changes)}; {entries} appends")
        for space in ANALYZER.spaces:
            for problem in oracle.inconsistencies(
                self.store, space, self._floor(space), self._oldest_findable(), trims=self.has_full_keys
            ):
                self._violation(problem)
        self._check_one_new_per_story()
        self._record_versions()

    def _record_versions(self) -> None:
        """Record the stored versions, and whether they have index entries, for concurrent look-ups."""
        versions: dict[Story, set[tuple[int, bool]]] = {}
        stories = {analysis(p.text, p.lang).text_hash: p.story for p in _posts(self.program)}
        for lang, space in self.spaces.items():
            for b in oracle.view(self.store, space, self._floor(space)).bindings.values():
                indexed = b.outcome.match is None or b.outcome.match.rule != "exact"
                versions.setdefault((lang, stories[b.text_hash][1]), set()).add((b.number, indexed))
        self.versions.append((self.scheduler.now, versions))

    def _check_one_new_per_story(self) -> None:
        """Of the live near-copies of one story exactly one is not a duplicate."""
        for story in self.fixed_stories:
            hashes = {analysis(p.text, p.lang).text_hash for p in _posts(self.program) if p.story == story}
            space = self.spaces[story[0]]
            view = oracle.view(self.store, space, self._floor(space))
            live = [b for b in view.bindings.values() if b.text_hash in hashes]
            new = [b.id for b in live if b.outcome.match is None]
            orphans = [b for b in live if b.outcome.match and b.outcome.match.canonical_first < view.floor]
            if live and len(new) != 1 and not (orphans and not new):
                self._violation(f"story {story}: {len(new)} of {len(live)} near-copies are new")

    def _check_answer(self, call: Call, space: str) -> None:
        """An answer is the outcome that was stored at some time during the request."""
        stored = self.history.get((space, keys.id_hash(call.id)), [])
        before = [outcome for at, outcome in stored if at < call.start][-1:]
        during = [outcome for at, outcome in stored if call.start <= at <= call.end]
        if call.outcome not in before + during:
            self._violation(
                f"the answer for {call.id} was {_describe(call.outcome)}, not stored at that time"
            )

    # -- afterwards ----------------------------------------------------------------------------

    def _retry_unanswered(self) -> None:
        """Repeat the unanswered requests, undisturbed."""
        ingest = self._ingest(_ObservedStore(self.store, self._committed))
        for request in list(self.unanswered):
            assert finish(self._send(ingest, request)), "an undisturbed retry had no answer"

    def _check_final_state(self) -> None:
        if not self.scheduler.tally.faults:
            self._check_one_binding_per_id("although nothing failed", self._raced_in_two_languages())
        index = Index(self.store, ANALYZER.spaces, retention_ms=self.retention_ms)
        ingest = self._ingest(self.store)
        contents = {}
        for id_ in dict.fromkeys(call.id for call in self.calls):
            try:
                stored = finish(index.articles.get(id_))
            except NotFound:
                stored = None
            final = _content_of(stored.record) if stored else None
            is_judged = not (self.has_take_downs or self.undoes)  # which remove other ids, too
            if is_judged and not oracle.is_linearizable([*self._calls_of(id_), *self._losses(id_)], final):
                self._violation(f"no order of the requests explains the final state of {id_}")
            if stored is not None:
                contents[id_] = _content_of(stored.record)
                calls = [call for call in self.calls if call.id == id_ and call.text is not None]
                dropped = all(call.outcome is not None and not call.outcome.keep for call in calls)
                if dropped and self.only_undoes and stored.outcome.match is None:
                    self._violation(f"{id_} is an original, and the answer was to drop it")
                self._check_readable(index, ingest, id_, final, stored.outcome)
        if self.has_take_downs and not self.reused_ids and not oracle.take_downs_hold(self.calls, contents):
            self._violation("no order of the requests and take-downs explains the final state")
        for story in self.fixed_stories if self._keeps_copies() else ():
            ids = {post.id for post in _posts(self.program) if post.story == story}
            # Equal texts of two languages are copies, near-copies are not: one story has both.
            in_one_language = all(p.story[1] != story[1] for p in _posts(self.program) if p.story != story)
            calls = [call for call in self.calls if call.id in ids and not call.is_taken_down]
            if in_one_language and not oracle.has_one_new(calls):
                self._violation(f"story {story}: no order of the requests explains which copy was new")
        if self.migrates:
            self._check_migrated(ingest)
        self._check_records()
        finish(self._read_stream(ingest))
        entries = [entry for space in ANALYZER.spaces for entry in oracle.view(self.store, space).stream]
        repeated = len(self.streamed) - len(set(self.streamed))
        if repeated or not set(entries) <= set(self.streamed):  # those of dropped segments may be missing
            self._violation(f"of {len(entries)} entries of the stream, {len(self.streamed)} were read")

    def _keeps_copies(self) -> bool:
        """Whether nothing expires or leaves a full key, and no id is that of another source."""
        is_bound = any(post.source for post in _posts(self.program))
        return not (is_bound or self.has_full_keys or self.retention_ms or self.undoes)

    def _losses(self, id_: str) -> list[Call]:
        """Removals that may have happened: a copy to drop leaves with an article whose id is used again."""
        return [Call(id_, None, c.start) for c in self.calls if c.id in self.reused_ids - {id_} and c.text]

    def _calls_of(self, id_: str) -> list[Call]:
        """The calls about one id.

        An id that was posted in two languages is looked up in two spaces at two instants: a delete may miss
        it between them, and whether a post changed anything may be answered either way.
        """
        calls = [c for c in self.calls if c.id == id_]
        if len({p.lang for p in _posts(self.program) if p.id == id_}) < 2:
            return calls
        return [replace(c, effect=None) for c in calls if c.text is not None or c.effect is not False]

    def _check_records(self) -> None:
        """One binding per id; without faults, a record for each binding and no others."""
        floors = {space: self._floor(space) for space in ANALYZER.spaces}
        views = [oracle.view(self.store, space, floor) for space, floor in floors.items()]
        bound = [b for view in views for b in view.bindings.values()]
        self._check_one_binding_per_id("although it was posted again")
        records = {int(key.rsplit(b":", 1)[1], 16) for key in finish(scan(self.store, b"r:"))}
        records = {number for number in records if number >= max(floors.values())}
        if not self.scheduler.tally.faults and records - {b.number for b in bound}:
            self._violation("the record of a removed article remains, although nothing failed")

    def _check_one_binding_per_id(self, although: str, exempt: Collection[str] = ()) -> None:
        views = [oracle.view(self.store, space, self._floor(space)) for space in ANALYZER.spaces]
        ids = [b.id for view in views for b in view.bindings.values()]
        for id_ in {id_ for id_ in ids if ids.count(id_) > 1 and id_ not in exempt}:
            self._violation(f"{id_} is bound in two spaces, {although}")

    def _raced_in_two_languages(self) -> set[str]:
        """Ids with two posts in different languages at the same time: the next post removes the older one."""
        posted = [(c, c.text[:7]) for c in self.calls if c.text is not None]
        return {
            a.id
            for a, a_start in posted
            for b, b_start in posted
            if a.id == b.id and a_start != b_start and a.start <= b.end and b.start <= a.end
        }

    def _check_readable(
        self, index: Index, ingest: IngestService, id_: str, content: bytes | None, outcome: Outcome
    ) -> None:
        """A post of its text finds it, a repeat answers what is stored, and its group lists it."""
        post = next(p for p in _posts(self.program) if _content(p) == content)
        probe = replace(post.article(), id="probe")
        try:
            match = finish(ingest.submit(probe, dry_run=True)).outcome.match
        except TakenDown:  # of another id with this text; ``oracle.take_downs_hold`` judges it
            return
        number = finish(index.bindings.find(id_)).binding.number
        if number < self._oldest_findable():
            return
        if match is None:
            self._violation(f"{id_} is not found by its text")
        elif match.canonical_first >= self._floor(finish(index.bindings.find(id_)).space):
            finish(index.articles.get(match.canonical_id))
        # As a batch: a single article is queued on an event loop, which the simulation does not have.
        (again,) = finish(ingest.submit_many([Article(id=id_, text=probe.text, lang=post.lang)]))
        if isinstance(again, AggregatorError):
            raise again
        if again.outcome != outcome or again.stored:
            self._violation(
                f"the answer for a repeat of {id_} was {_describe(again.outcome)}, "
                f"stored is {_describe(outcome)}"
            )
        if id_ not in {r.id for r in finish(index.articles.group_members(id_))}:
            self._violation(f"{id_} is not a member of its group")

    def _violation(self, what: str) -> None:
        if what not in self.violations:
            self.violations.append(what)
            self.scheduler.log.append(f"  !! {what}")


class SmallCompactor(Compactor):
    """Compacts only the buckets that the texts of the simulation can use."""

    @override  # mypy reports it if the product no longer asks it
    def _bucket_keys(self, sketch_bits: int) -> Iterator[bytes]:
        return iter(_all_bucket_keys(sketch_bits))


class SmallRehash(SketchRehash):
    """Moves only the buckets that the texts of the simulation can use, in a few chunks."""

    def __init__(self, index: Index, *, split_entries: float) -> None:
        super().__init__(index.store, index.segments, split_entries=split_entries, buckets_per_chunk=24)

    @override
    def _bucket_values(self, bits: int) -> Sequence[int]:
        return _sketch_bucket_values(bits)


@cache
def _sketch_bucket_values(bits: int) -> tuple[int, ...]:
    all_keys = [
        key for text in TEXTS for lang in ("en", "fr") for key in keys.wording_keys(analysis(text, lang))
    ]
    return tuple(sorted({key & (1 << bits) - 1 for key in all_keys}))


@cache
def _all_bucket_keys(sketch_bits: int) -> tuple[bytes, ...]:
    found: dict[bytes, None] = {}
    for text in TEXTS:
        for lang in ("en", "fr"):
            analyzed = analysis(text, lang)
            blocks = enumerate(block_values(PLAN, analyzed.fingerprint))
            found.update((keys.block_bucket(b"", block, value), None) for block, value in blocks)
            found.update(dict.fromkeys(keys.sketch_buckets(b"", keys.wording_keys(analyzed), sketch_bits)))
            found.update(dict.fromkeys(keys.term_buckets(b"", keys.index_keys(analyzed))))
    return tuple(found)


class _ObservedStore:
    """The store itself; ``on_commit`` is called with every transaction that was applied."""

    def __init__(self, store: MemoryStore, on_commit: Callable[[Transaction], None]) -> None:
        self._store = store
        self._on_commit = on_commit

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def commit(self, transaction: Transaction) -> tuple[int, ...]:
        return (await self.commit_many([transaction]))[0]

    async def commit_many(self, transactions: Sequence[Transaction]) -> list[tuple[int, ...]]:
        results = []
        for transaction in transactions:
            results.append(await self._store.commit(transaction))
            if not results[-1]:
                self._on_commit(transaction)
        return results


async def _remove(ingest: IngestService, request: Remove) -> bool | None:
    """Whether the delete removed the article; None if it finished a delete that another process had begun."""
    articles = ingest._index.articles
    original = articles.orphaned_records
    finished = False

    async def recorded(id_: str) -> list[ArticleRecord]:
        nonlocal finished
        records = await original(id_)
        finished = bool(records)
        return records

    articles.orphaned_records = recorded  # type: ignore[method-assign]
    try:
        await ingest.delete(request.id, take_down=request.take_down, undo=request.undo)
    except NotFound:
        return False
    finally:
        articles.orphaned_records = original  # type: ignore[method-assign]
    return None if finished else True


def _contents(request: Request) -> list[tuple[str, bytes | None, Story | None]]:
    """(id, content, story) that the request writes; None: the id is removed."""
    if isinstance(request, Remove):
        return [(request.id, None, None)]
    # A part of a text (v) may be a version of the article with the other part, or another article.
    return [(p.id, _content(p), None if p.text[0] == "v" else p.story) for p in _posts_of(request)]


def _content(post: Post) -> bytes:
    return _content_of(analysis(post.text, post.lang))


def _content_of(found: Analysis | ArticleRecord) -> bytes:
    in_all_languages = found.text_hash == analysis("q0", "en").text_hash
    return found.text_hash if in_all_languages else found.space.encode() + found.text_hash


def _posts_of(request: Request) -> tuple[Post, ...]:
    if isinstance(request, Batch):
        return request.posts
    return (request,) if isinstance(request, Post) else ()


def _posts(program: Program) -> list[Post]:
    return [post for requests in program for request in requests for post in _posts_of(request)]


def _batch_articles(program: Program) -> int:
    """Articles per batch: pairs are decided together, three articles overlap one by one, four by pairs."""
    longest = max((len(r.posts) for each in program for r in each if isinstance(r, Batch)), default=0)
    return {3: 1, 4: 2}.get(longest, 64)


def _fixed_stories(program: Program) -> set[Story]:
    """Stories whose ids never change to another story; the verdicts of others are kept by updates."""
    stories_of_id: dict[str, set[Story]] = {}
    for post in _posts(program):
        stories_of_id.setdefault(post.id, set()).add(post.story)
    changing = {story for stories in stories_of_id.values() if len(stories) > 1 for story in stories}
    changing |= {story for stories in stories_of_id.values() for story in stories if story[1] == "v"}
    return {post.story for post in _posts(program)} - changing


def _describe(outcome: Outcome | None) -> str:
    if outcome is None:
        return "nothing"
    match = outcome.match
    return outcome.verdict + (f" of {match.id} ({match.canonical_id}, {match.rule})" if match else "")


def run(program: Program, choices: Choices) -> Result:
    """Run the program under the schedule that ``choices`` makes."""
    return World(program, choices).run()
