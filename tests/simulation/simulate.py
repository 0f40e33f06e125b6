"""One run: a program under a schedule, over the production ingest, index and in-memory store."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache

from aggregator.analysis.shingles import sketch_keys
from aggregator.concurrency.yielding import Spawn
from aggregator.dedup.verdict import Policy
from aggregator.domain import Answer, Article, ArticleRecord, Outcome, article_number_at
from aggregator.errors import AggregatorError, NotFound, StoreUnavailable
from aggregator.index import Index, keys
from aggregator.index.codec.records import decode_binding
from aggregator.index.compaction import Compactor
from aggregator.ingest.service import IngestService
from aggregator.store.base import AppendMany, Delete, Put, Transaction
from aggregator.store.memory import MemoryStore
from tests.simulation import oracle
from tests.simulation.oracle import Call
from tests.simulation.programs import (
    ANALYSER,
    TEXTS,
    Batch,
    Check,
    Follow,
    Post,
    Program,
    Remove,
    Request,
    Seal,
    Tidy,
    Wait,
    analyse_many,
    analysis,
)
from tests.simulation.scheduler import Choices, Scheduler, Tally, Task
from tests.simulation.transport import Transport, finish
from tests.support.factories import Clock

RETENTION_MS = 8_000
WAIT_MS = 3_100
ATTEMPTS = 2  # of a writer whose request found the store unavailable


@dataclass
class Result:
    """A finished run: what it violated, and how to see it again."""

    violations: list[str]
    trace: dict[int, int]
    story: list[str]
    tally: Tally


@dataclass
class World:
    """One store, its writers and everything that was observed."""

    program: Program
    choices: Choices
    store: MemoryStore = field(init=False)
    clock: Clock = field(default_factory=Clock)
    calls: list[Call] = field(default_factory=list)
    history: dict[tuple[str, bytes], list[tuple[int, Outcome]]] = field(default_factory=dict)
    unanswered: list[Request] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.clock)
        self.positions: dict[bytes, bytes] = {}
        self.followed: list[tuple[str, int, str]] = []
        self.late: list[Callable[[], object]] = []
        self.alive: list[tuple[int, dict[tuple[str, str], set[tuple[int, bool]]]]] = [(0, {})]
        self.spaces = {lang: analysis("s0", lang).space for lang in ("en", "fr")}
        waits = any(isinstance(r, Wait) for requests in self.program for r in requests)
        self.retention_ms = RETENTION_MS if waits else None
        self.judged = _steady(self.program)
        self.chunk = _chunk(self.program)
        tasks = [Task(f"writer {i}", self._writer(requests)) for i, requests in enumerate(self.program)]
        self.scheduler = Scheduler(self.choices, tasks, self.late)

    def run(self) -> Result:
        """Interference first, then every unanswered request once more, then the questions."""
        random.seed(0)  # article numbers
        try:
            self.scheduler.run()
            self._retry()
            self._question()
        except AggregatorError as error:
            self._wrong(f"{type(error).__name__}: {error}")
        except AssertionError as error:
            self._wrong(f"AssertionError: {error}")
        s = self.scheduler
        return Result(self.violations, s.trace, s.story, s.tally)

    # -- the writers ---------------------------------------------------------------------------

    async def _writer(self, requests: tuple[Request, ...]) -> None:
        ingest = self._ingest(Transport(self.store, self.late, self._committed), self.scheduler.begin)
        for request in requests:
            self.unanswered.append(request)
            for _ in range(ATTEMPTS):
                if await self._send(ingest, request):
                    self.unanswered.remove(request)
                    break

    async def _send(self, ingest: IngestService, request: Request) -> bool:
        """One attempt; whether an answer came."""
        self.scheduler.now += 1
        begun = len(self.calls)
        self.calls += [Call(id_, text, self.scheduler.now) for id_, text in _contents(request)]
        try:
            if isinstance(request, Seal):
                await self._seal(ingest)
                return True
            if isinstance(request, Wait):
                self.clock.now_ms += WAIT_MS
                ids = {p.id for p in _posts(self.program)}
                # From now on it may go, as if somebody deleted it.
                self.calls += [Call(id_, None, self.scheduler.now) for id_ in ids]
                return True
            if isinstance(request, Tidy):
                await Few(ingest._index, keys_per_chunk=64).run(self.clock.now_ms)
                return True
            if isinstance(request, Follow):
                await self._follow(ingest)
                return True
            if isinstance(request, Check):
                await self._look(ingest, request, self.scheduler.now)
                return True
            if isinstance(request, Remove):
                effects: list[tuple[bool | None, Outcome | None]] = [
                    (await _removed(ingest, request.id), None)
                ]
            else:
                wanted = request.posts if isinstance(request, Batch) else (request,)
                # Another attempt names another source: newer metadata of the same text.
                articles = [replace(p.article(), source=f"{self.scheduler.now}") for p in wanted]
                answers = await ingest.submit_many(articles)
                effects = [self._effect(answer) for answer in answers]
        except StoreUnavailable:
            return False
        self.scheduler.now += 1
        for i, (effect, outcome) in enumerate(effects, start=begun):
            call = replace(self.calls[i], end=self.scheduler.now, effect=effect, outcome=outcome)
            self.calls[i] = call
            if outcome is not None:
                self._check_answer(call, answers[i - begun].space)
        return True

    async def _seal(self, ingest: IngestService) -> None:
        segments = ingest._index.segments
        for space in ANALYSER.spaces:
            await segments.seal(space, (await segments.stack(space)).last, self.clock.now_ms)

    async def _follow(self, ingest: IngestService) -> None:
        """As the detector does: the place is remembered with what was read."""
        while True:
            before = self.positions
            items, positions = await ingest._index.read_stream(before, 2)
            if not items:
                return
            if self.positions is not before:  # another one was faster
                continue
            self.followed += [(item.kind, item.number, item.id) for item in items]
            self.positions = positions

    async def _look(self, ingest: IngestService, request: Check, start: int) -> None:
        """What was there all the time is found; what is found was there at some time."""
        article = Article(id="probe", text=TEXTS[request.text], lang=request.lang)
        match = (await ingest.submit(article, dry_run=True)).outcome.match
        place = request.lang, request.text[0]
        during = [stories.get(place, set()) for at, stories in self.alive if at >= start]
        during += [stories.get(place, set()) for at, stories in self.alive if at < start][-1:]
        promised = self._promised()
        if match is None and any(stands and n >= promised for n, stands in set.intersection(*during)):
            self._wrong(f"a look-up of {request.text} did not find what was there")
        if match is not None and match.number not in {number for stories in during for number, _ in stories}:
            self._wrong(f"a look-up of {request.text} found {match.id}, which was gone")

    def _effect(self, answer: Answer | AggregatorError) -> tuple[bool, Outcome | None]:
        if isinstance(answer, AggregatorError):
            raise AssertionError(f"answered with {answer}")
        return answer.stored, answer.outcome

    def _ingest(self, store: object, begin: Spawn | None = None) -> IngestService:
        index = Telling(store, ANALYSER.spaces, retention_ms=self.retention_ms)  # type: ignore[arg-type]
        return IngestService(
            index, analyse_many, Policy(), clock=self.clock, spawn=begin, batch_articles=self.chunk
        )  # type: ignore[arg-type]

    def _floor(self, space: str) -> int:
        """Numbers below it have expired, whoever asks."""
        index = Index(self.store, [space], retention_ms=self.retention_ms)
        return index.floor(finish(index.segments.refresh(space)), self.clock.now_ms)

    def _promised(self) -> int:
        """Numbers from here on must be found."""
        return article_number_at(self.clock.now_ms - RETENTION_MS) if self.retention_ms else 0

    # -- after every commit --------------------------------------------------------------------

    def _committed(self, transaction: Transaction) -> None:
        said = []
        for write in transaction.writes:
            if isinstance(write, Put | Delete) and write.key[write.key.index(b"}") + 1 :][:1] == b"i":
                if isinstance(write, Delete) or write.value == keys.ABSENT:
                    said.append("an article leaves")
                    continue
                binding = decode_binding(write.value)
                said.append(f"{binding.id} is {_shown(binding.outcome)}")
                place = keys.space_of(write.key), keys.id_hash(binding.id)
                self.history.setdefault(place, []).append((self.scheduler.now, binding.outcome))
            elif isinstance(write, Put) and write.key == keys.sealed(keys.tag_of(write.key)):
                said.append("sealed")
        entries = sum(len(write.keys) for write in transaction.writes if isinstance(write, AppendMany))
        self.scheduler.story.append(f"    committed: {', '.join(said)}; {entries} appends")
        for space in ANALYSER.spaces:
            for problem in oracle.sound(self.store, space, self._floor(space), self._promised()):
                self._wrong(problem)
        self._count_new()
        self._remember()

    def _remember(self) -> None:
        """Which versions there are now, and whether they stand in the index themselves; for look-ups meanwhile."""
        stories: dict[tuple[str, str], set[tuple[int, bool]]] = {}
        names = {analysis(p.text, p.lang).text_hash: p.story for p in _posts(self.program)}
        for lang, space in self.spaces.items():
            for b in oracle.view(self.store, space, self._floor(space)).bindings.values():
                stands = b.outcome.match is None or b.outcome.match.rule != "exact"
                stories.setdefault((lang, names[b.text_hash][1]), set()).add((b.number, stands))
        self.alive.append((self.scheduler.now, stories))

    def _count_new(self) -> None:
        """Of the live near-copies of one story exactly one is not a duplicate."""
        for place in self.judged:
            hashes = {
                analysis(p.text, p.lang).text_hash: p.story for p in _posts(self.program) if p.story == place
            }
            space = self.spaces[place[0]]
            seen = oracle.view(self.store, space, self._floor(space))
            live = [b for b in seen.bindings.values() if b.text_hash in hashes]
            new = [b.id for b in live if b.outcome.match is None]
            led = [b for b in live if b.outcome.match and b.outcome.match.canonical_first < seen.floor]
            if live and len(new) != 1 and not (led and not new):
                self._wrong(f"story {place}: {len(new)} of {len(live)} near-copies are new")

    def _check_answer(self, call: Call, space: str) -> None:
        """An answer is the decision that was stored at some time while the request was under way."""
        told = self.history.get((space, keys.id_hash(call.id)), [])
        before = [outcome for at, outcome in told if at < call.start][-1:]
        during = [outcome for at, outcome in told if call.start <= at <= call.end]
        if call.outcome not in before + during:
            self._wrong(f"{call.id} was told {_shown(call.outcome)}, which was not stored then")

    # -- afterwards ----------------------------------------------------------------------------

    def _retry(self) -> None:
        """Whoever got no answer asks again, undisturbed."""
        ingest = self._ingest(_Quiet(self.store, self._committed))
        for request in list(self.unanswered):
            assert finish(self._send(ingest, request)), "an undisturbed retry had no answer"

    def _question(self) -> None:
        if not self.scheduler.tally.faults:
            self._one_binding_each("although nothing failed")
        index = Index(self.store, ANALYSER.spaces, retention_ms=self.retention_ms)
        ingest = self._ingest(self.store)
        for id_ in dict.fromkeys(call.id for call in self.calls):
            try:
                stored = finish(index.get(id_))
            except NotFound:
                stored = None
            final = stored.record.space.encode() + stored.record.text_hash if stored else None
            if not oracle.explains(self._calls_of(id_), final):
                self._wrong(f"no order of the requests explains what {id_} is now")
            if stored is not None:
                self._find(index, ingest, id_, final, stored.outcome)
        self._count_what_stays()
        finish(self._follow(ingest))
        rows = [row for space in ANALYSER.spaces for row in oracle.view(self.store, space).rows]
        doubled = len(self.followed) - len(set(self.followed))
        if doubled or not set(rows) <= set(self.followed):  # those of dropped segments may be missing
            self._wrong(f"of {len(rows)} entries of the stream, {len(self.followed)} were followed")

    def _calls_of(self, id_: str) -> list[Call]:
        """What was asked of one id.

        An id that was posted in two languages is looked for in two spaces, at two instants: a delete that
        chases it may miss it, and whether a post changed anything may be told of either.
        """
        calls = [c for c in self.calls if c.id == id_]
        if len({p.lang for p in _posts(self.program) if p.id == id_}) < 2:
            return calls
        return [replace(c, effect=None) for c in calls if c.text is not None or c.effect is not False]

    def _count_what_stays(self) -> None:
        """One binding per id; and where nothing failed, a record for each of them and no others."""
        floors = {space: self._floor(space) for space in ANALYSER.spaces}
        views = [oracle.view(self.store, space, floor) for space, floor in floors.items()]
        bound = [b for seen in views for b in seen.bindings.values()]
        self._one_binding_each("although it was posted again")
        records = {int(key.rsplit(b":", 1)[1], 16) for key in finish(self.store.scan(b"r:"))}
        records = {number for number in records if number >= max(floors.values())}
        if not self.scheduler.tally.faults and records - {b.number for b in bound}:
            self._wrong("a record of an article that is gone stays, although nothing failed")

    def _one_binding_each(self, although: str) -> None:
        views = [oracle.view(self.store, space, self._floor(space)) for space in ANALYSER.spaces]
        ids = [b.id for seen in views for b in seen.bindings.values()]
        for id_ in {id_ for id_ in ids if ids.count(id_) > 1}:
            self._wrong(f"{id_} is bound in two spaces, {although}")

    def _find(
        self, index: Index, ingest: IngestService, id_: str, content: bytes | None, outcome: Outcome
    ) -> None:
        """A post of its text finds it, a repeat answers what is stored, its group lists it."""
        post = next(p for p in _posts(self.program) if _content(p) == content)
        probe = replace(post.article(), id="probe")
        match = finish(ingest.submit(probe, dry_run=True)).outcome.match
        number = finish(index.find_binding(id_)).binding.number
        if number < self._promised():
            return
        if match is None:
            self._wrong(f"{id_} is not found by its text")
        elif match.canonical_first >= self._floor(finish(index.find_binding(id_)).space):
            finish(index.get(match.canonical_id))
        again = finish(ingest.submit(Article(id=id_, text=probe.text, lang=post.lang)))
        if again.outcome != outcome or again.stored:
            self._wrong(f"a repeat of {id_} was told {_shown(again.outcome)}, stored is {_shown(outcome)}")
        if id_ not in {r.id for r in finish(index.group_members(id_))}:
            self._wrong(f"{id_} is not among the copies of its group")

    def _wrong(self, what: str) -> None:
        if what not in self.violations:
            self.violations.append(what)
            self.scheduler.story.append(f"  !! {what}")


class Few(Compactor):
    """Goes over the few buckets that there can be."""

    def _cells(self, space: str) -> Iterator[bytes]:
        return iter(_all_cells())


@cache
def _all_cells() -> tuple[bytes, ...]:
    found: dict[bytes, None] = {}
    for text in TEXTS:
        for lang in ("en", "fr"):
            one = analysis(text, lang)
            cells = enumerate(oracle.PLAN.block_values(one.fingerprint))
            found.update((keys.block_bucket(b"", block, value), None) for block, value in cells)
            found.update((keys.sketch_bucket(b"", band), None) for band in sketch_keys(one.sketch))
    return tuple(found)


class _Quiet:
    """The store itself, telling of commits."""

    def __init__(self, store: MemoryStore, applied: Callable[[Transaction], None]) -> None:
        self._store = store
        self._applied = applied

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def commit(self, transaction: Transaction) -> tuple[int, ...]:
        return (await self.commit_many([transaction]))[0]

    async def commit_many(self, transactions: list[Transaction]) -> list[tuple[int, ...]]:
        results = []
        for transaction in transactions:
            results.append(await self._store.commit(transaction))
            if not results[-1]:
                self._applied(transaction)
        return results


class Telling(Index):
    """Says whether a delete finished what another one had begun."""

    finished = False

    async def unfinished(self, id_: str) -> list[ArticleRecord]:
        """As in production."""
        found = await super().orphaned_records(id_)
        self.finished = bool(found)
        return found


async def _removed(ingest: IngestService, id_: str) -> bool | None:
    """Whether it took something out; None when another one had, whose end it did."""
    index = ingest._index
    assert isinstance(index, Telling)
    index.finished = False
    try:
        await ingest.delete(id_)
    except NotFound:
        return False
    return None if index.finished else True


def _contents(request: Request) -> list[tuple[str, bytes | None]]:
    if isinstance(request, Remove):
        return [(request.id, None)]
    if isinstance(request, Check | Seal | Follow | Tidy | Wait):
        return []
    wanted = request.posts if isinstance(request, Batch) else (request,)
    return [(p.id, _content(p)) for p in wanted]


def _content(post: Post) -> bytes:
    found = analysis(post.text, post.lang)
    return found.space.encode() + found.text_hash


def _posts(program: Program) -> list[Post]:
    found: list[Post] = []
    for requests in program:
        for request in requests:
            found += request.posts if isinstance(request, Batch) else []
            found += [request] if isinstance(request, Post) else []
    return found


def _chunk(program: Program) -> int:
    """Articles of a batch that are decided together: pairs are, threes overlap one by one, fours by pairs."""
    longest = max((len(r.posts) for each in program for r in each if isinstance(r, Batch)), default=0)
    return {3: 1, 4: 2}.get(longest, 64)


def _steady(program: Program) -> set[tuple[str, str]]:
    """Stories whose ids never carry another one: an update keeps its verdict, so others cannot be counted."""
    homes: dict[str, set[tuple[str, str]]] = {}
    for post in _posts(program):
        homes.setdefault(post.id, set()).add(post.story)
    moving = {place for places in homes.values() if len(places) > 1 for place in places}
    return {post.story for post in _posts(program)} - moving


def _shown(outcome: Outcome | None) -> str:
    if outcome is None:
        return "nothing"
    match = outcome.match
    return outcome.verdict + (f" of {match.id} ({match.canonical_id}, {match.rule})" if match else "")


def run(program: Program, choices: Choices) -> Result:
    """One run."""
    return World(program, choices).run()
