"""The story of one article. Read this first.

    analyse    its words become a fingerprint and a sketch           analyse.py, pure
    look up    one read: its id, 68 buckets, its bands               rounds.py, index.snapshot
    examine    one read: records of what was found                   index.fetch
    decide     new, related or duplicate                             deciding.py, verdict.decide, pure
    record     its record, then one atomic commit                    recording.py, changes.py, store.commit

The commit holds only if nothing that was looked at has changed; else the article is looked up and
decided again. So of several near-copies that arrive at the same moment exactly one is new, whoever
sent them and through whichever process, and a crash leaves all of an article or nothing of it.

Many articles travel together: a batch costs the same few round trips as one article, and each of
its articles is decided as if those before it were stored already. Articles that come one by one while
others are under way make such a batch too (``gathering.py``).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from aggregator.concurrency.priority_gate import Turns
from aggregator.concurrency.yielding import Begin, GiveWay
from aggregator.dedup.verdict import Policy
from aggregator.domain import Analysis, Answer, Article
from aggregator.errors import AggregatorError, NotFound
from aggregator.index import Index
from aggregator.ingest.activity import Presence
from aggregator.ingest.batcher import Gathering
from aggregator.ingest.commit import EventOf, Recording
from aggregator.ingest.decide import Deciding
from aggregator.ingest.dual_write import Beside
from aggregator.ingest.pending import Arrival, bare, chunks
from aggregator.ingest.pipeline import Rounds
from aggregator.ingest.throttle import Pace, piece_of

CHUNK = 32  # more would keep the server from single posts for longer, and saves little
# As many are analysed at once while single articles arrive: one process of the pool takes them.
ANALYSED = 16
# As many at most are settled without asking whether single articles arrive: a third of a second's worth.
UNASKED = 1024
E = TypeVar("E", bound=Exception)
AnalyseMany = Callable[[Sequence[Article]], Awaitable[list[Analysis | AggregatorError]]]
TakenDown = Callable[[int, str, int], Awaitable[None]]


async def _at_once() -> None:
    """Goes on without a pause."""


class Ingest:
    """Check and insert articles. ``clock`` gives ms since 1970 UTC; ``analyse_many`` may use other processes.

    ``begin`` starts work that goes on beside its caller (``rounds.py``); ``give_way`` lets it, and others, go on;
    with ``turns`` the articles that come one by one go before the others, and with ``presence`` and ``pace`` the others are
    slow while such articles arrive, here or elsewhere.
    """

    def __init__(
        self,
        index: Index,
        analyse_many: AnalyseMany,
        policy: Policy,
        *,
        clock: Callable[[], int],
        keep_texts: bool = False,
        fingerprints_only: bool = False,
        event_of: EventOf | None = None,
        taken_down: TakenDown | None = None,
        give_way: GiveWay = _at_once,
        begin: Begin | None = None,
        turns: Turns | None = None,
        presence: Presence | None = None,
        pace: Pace | None = None,
        beside: Beside | None = None,
        chunk: int = CHUNK,
    ) -> None:
        self._index = index
        self._analyse_many = analyse_many
        self._clock = clock
        self._fingerprints_only = fingerprints_only
        self._taken_down = taken_down
        self._beside = beside
        self._chunk = chunk
        self._turns = turns or Turns()
        self._presence = presence
        self._pace = pace
        deciding = Deciding(index, policy, beside)
        recording = Recording(index, beside, event_of, keep_texts=keep_texts)
        self._rounds = Rounds(
            index,
            deciding,
            recording,
            clock=clock,
            give_way=turns.give_way if turns is not None else give_way,
            begin=begin,
        )
        self._singles = Rounds(index, deciding, recording, clock=clock, give_way=give_way, begin=begin)
        self._gathering = Gathering(self._singles.settle, chunk)

    @property
    def decided_again(self) -> int:
        """Commits that lost a race, for metrics."""
        return self._rounds.decided_again + self._singles.decided_again

    async def submit(self, article: Article, *, dry_run: bool = False) -> Answer:
        """One article. Raises NoText, StoreUnavailable."""
        if dry_run:
            result = (await self.submit_many([article], dry_run=True))[0]
        else:
            if self._presence is not None:
                self._presence.arrived()
            result = await self._submit(article)
        if isinstance(result, AggregatorError):
            raise result
        return result

    async def _submit(self, article: Article) -> Answer | AggregatorError:
        started = time.perf_counter()
        analysis = (await self._analyse_many([article]))[0]
        if isinstance(analysis, AggregatorError):
            return analysis
        analyse_ms = (time.perf_counter() - started) * 1000
        arrival = self._arrived(Arrival(0, article, analysis))
        with (
            self._turns.first()
        ):  # not while it is analysed elsewhere, which may take long and asks nothing of others
            await self._gathering.add(arrival)
        return _answered(arrival, analyse_ms)

    def _arrived(self, arrival: Arrival) -> Arrival:
        return bare(arrival) if self._fingerprints_only else arrival

    async def submit_many(
        self, articles: Sequence[Article], *, dry_run: bool = False
    ) -> list[Answer | AggregatorError]:
        """Articles in order; the answers are those of submitting them one by one.

        An article that cannot be used answers with its error and costs the others nothing.
        """
        started = time.perf_counter()
        analysed = await self.analyse_many(articles)
        analyse_ms = (time.perf_counter() - started) * 1000 / max(1, len(articles))
        return await self.settle_many(articles, analysed, analyse_ms, dry_run=dry_run)

    async def analyse_many(self, articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        """The first half of ``submit_many``, for who has the next articles analysed while these are settled."""
        analysed: list[Analysis | AggregatorError] = []
        while len(analysed) < len(articles):
            rest = articles[len(analysed) :]
            async with piece_of(self._pace, len(rest), ANALYSED) as count:
                analysed += await self._analyse_many(rest[:count])
        return analysed

    async def settle_many(
        self,
        articles: Sequence[Article],
        analysed: Sequence[Analysis | E],
        analyse_ms: float = 0.0,
        *,
        dry_run: bool = False,
        together: int = 0,
    ) -> list[Answer | AggregatorError | E]:
        """The second half; ``analyse_ms``: what the first took, per article. What is no analysis is its own answer.

        ``together``: so many at most share a round (0: as many as ever).
        """
        pending = [
            self._arrived(Arrival(position, article, analysis))
            for position, (article, analysis) in enumerate(zip(articles, analysed, strict=True))
            if isinstance(analysis, Analysis)
        ]
        done = 0
        while done < len(pending):
            async with piece_of(self._pace, min(UNASKED, len(pending) - done)) as count:
                groups = list(chunks(pending[done : done + count], together or self._chunk))
                await self._settle(groups, dry_run)
                done += count
        results: list[Answer | AggregatorError | E] = list(analysed)  # type: ignore[arg-type]
        for one in pending:
            results[one.position] = _answered(one, analyse_ms)
        return results

    async def _settle(self, groups: Sequence[list[Arrival]], dry_run: bool) -> None:
        if not dry_run:
            await self._rounds.settle_all(groups)
            return
        for group in groups:
            await self._rounds.settle(group, dry_run)

    async def delete(self, id_: str) -> None:
        """Undo a reservation or take an article down, out of its event too. Raises NotFound.

        What a process that died left undone is done by whoever repeats the delete: its records go last.
        """
        try:
            gone = await self._index.delete(id_)
            firsts = {k.binding.number: (k.binding.first, k.space) for k in gone}
            if self._beside is not None:
                await self._beside.left(gone)
        except NotFound:
            if self._beside is not None:
                await self._beside.absent(id_)
            firsts = {r.number: (r.first, r.space) for r in await self._index.unfinished(id_)}
            if not firsts:
                raise
        for first in dict.fromkeys(first for first, _ in firsts.values()):
            if self._taken_down is not None:
                await self._taken_down(first, id_, self._clock())
        await self._index.forget_records({number: space for number, (_, space) in firsts.items()})


def _answered(one: Arrival, analyse_ms: float) -> Answer | AggregatorError:
    assert one.answer is not None
    if isinstance(one.answer, Answer):
        one.answer.timings_ms["analyse"] = analyse_ms
    return one.answer
