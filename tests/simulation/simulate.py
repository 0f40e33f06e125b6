"""One run: a program under a schedule, over the production ingest, index and in-memory store."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import oracle
from newsroom import Clock
from oracle import Call
from programs import ANALYSER, Batch, Post, Program, Remove, Request, analyse_many, analysis
from scheduler import Choices, Scheduler, Tally, Task
from transport import Transport, finish

from aggregator.domain import Answer, Article, Outcome
from aggregator.errors import AggregatorError, NotFound, StoreUnavailable
from aggregator.index import Index
from aggregator.ingest import Ingest
from aggregator.store import keys
from aggregator.store.base import Append, Delete, Put, Transaction
from aggregator.store.memory import MemoryStore
from aggregator.store.records import decode_binding
from aggregator.verdict import Policy

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
    history: dict[bytes, list[tuple[int, Outcome]]] = field(default_factory=dict)
    unanswered: list[Request] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.clock)
        self.late: list[Callable[[], object]] = []
        self.tags = [keys.tag(space, 0) for space in ANALYSER.spaces]
        self.spaces = {lang: analysis("s0", lang).space for lang in ("en", "fr")}
        self.judged = _steady(self.program)
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
        ingest = self._ingest(Transport(self.store, self.late, self._committed))
        for request in requests:
            self.unanswered.append(request)
            for _ in range(ATTEMPTS):
                if await self._send(ingest, request):
                    self.unanswered.remove(request)
                    break

    async def _send(self, ingest: Ingest, request: Request) -> bool:
        """One attempt; whether an answer came."""
        self.scheduler.now += 1
        begun = len(self.calls)
        self.calls += [Call(id_, text, self.scheduler.now) for id_, text in _contents(request)]
        try:
            if isinstance(request, Remove):
                effects: list[tuple[bool, Outcome | None]] = [(await _removed(ingest, request.id), None)]
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

    def _effect(self, answer: Answer | AggregatorError) -> tuple[bool, Outcome | None]:
        if isinstance(answer, AggregatorError):
            raise AssertionError(f"answered with {answer}")
        return answer.stored, answer.outcome

    def _ingest(self, store: object) -> Ingest:
        index = Index(store, ANALYSER.spaces)  # type: ignore[arg-type]
        return Ingest(index, analyse_many, Policy(), clock=self.clock)  # type: ignore[arg-type]

    # -- after every commit --------------------------------------------------------------------

    def _committed(self, transaction: Transaction) -> None:
        said = []
        for write in transaction.writes:
            if isinstance(write, Put | Delete) and write.key[write.key.index(b"}") + 1 :][:1] == b"i":
                if isinstance(write, Delete):
                    said.append("an article leaves")
                    continue
                binding = decode_binding(write.value)
                said.append(f"{binding.id} is {_shown(binding.outcome)}")
                self.history.setdefault(write.key, []).append((self.scheduler.now, binding.outcome))
        entries = sum(isinstance(write, Append) for write in transaction.writes)
        self.scheduler.story.append(f"    committed: {', '.join(said)}; {entries} appends")
        for tag in self.tags:
            for problem in oracle.sound(self.store, tag):
                self._wrong(problem)
        self._count_new()

    def _count_new(self) -> None:
        """Of the live near-copies of one story exactly one is not a duplicate."""
        for place in self.judged:
            hashes = {
                analysis(p.text, p.lang).text_hash: p.story for p in _posts(self.program) if p.story == place
            }
            tag = keys.tag(self.spaces[place[0]], 0)
            live = [b for b in oracle.view(self.store, tag).bindings.values() if b.text_hash in hashes]
            new = [b.id for b in live if b.outcome.match is None]
            if live and len(new) != 1:
                self._wrong(f"story {place}: {len(new)} of {len(live)} near-copies are new")

    def _check_answer(self, call: Call, space: str) -> None:
        """An answer is the decision that was stored at some time while the request was under way."""
        told = self.history.get(keys.binding(keys.tag(space, 0), keys.id_hash(call.id)), [])
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
        index = Index(self.store, ANALYSER.spaces)
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
        bound = [b for tag in self.tags for b in oracle.view(self.store, tag).bindings.values()]
        for id_ in {b.id for b in bound if sum(b.id == other.id for other in bound) > 1}:
            self._wrong(f"{id_} is bound in two spaces, although it was posted again")
        records = {int(key[2:], 16) for key in finish(self.store.scan(b"r:"))}
        if not self.scheduler.tally.faults and records - {b.number for b in bound}:
            self._wrong("a record of an article that is gone stays, although nothing failed")

    def _find(self, index: Index, ingest: Ingest, id_: str, content: bytes | None, outcome: Outcome) -> None:
        """A post of its text finds it, a repeat answers what is stored, its group lists it."""
        post = next(p for p in _posts(self.program) if _content(p) == content)
        probe = replace(post.article(), id="probe")
        match = finish(ingest.submit(probe, dry_run=True)).outcome.match
        if match is None:
            self._wrong(f"{id_} is not found by its text")
        else:
            finish(index.get(match.canonical_id))
        again = finish(ingest.submit(Article(id=id_, text=probe.text, lang=post.lang)))
        if again.outcome != outcome or again.stored:
            self._wrong(f"a repeat of {id_} was told {_shown(again.outcome)}, stored is {_shown(outcome)}")
        if id_ not in {r.id for r in finish(index.copies(id_))}:
            self._wrong(f"{id_} is not among the copies of its group")

    def _wrong(self, what: str) -> None:
        if what not in self.violations:
            self.violations.append(what)
            self.scheduler.story.append(f"  !! {what}")


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


async def _removed(ingest: Ingest, id_: str) -> bool:
    try:
        await ingest.delete(id_)
    except NotFound:
        return False
    return True


def _contents(request: Request) -> list[tuple[str, bytes | None]]:
    if isinstance(request, Remove):
        return [(request.id, None)]
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
