"""How does what was decided get into the store, and what has to be tidied up afterwards?

Records first, each under its own number, where nothing points to them yet; then one commit for each article, in
order. An article whose commit found the store changed has **lost**: it is looked up and decided again. For the
others the replaced versions' records go, versions in other languages' spaces leave, a full segment is sealed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from aggregator.index import Index
from aggregator.index.segment_sampling import mark_of
from aggregator.ingest.dual_write import Beside, Posted
from aggregator.ingest.pending import Arrival, Step, compress

EventOf = Callable[[Sequence[int]], Awaitable[dict[int, str]]]


class Recording:
    """Writes down steps. ``event_of`` names the events that groups of copies belong to."""

    def __init__(
        self, index: Index, beside: Beside | None, event_of: EventOf | None, *, keep_texts: bool
    ) -> None:
        self._index = index
        self._beside = beside
        self._event_of = event_of
        self._keep_texts = keep_texts

    async def write(self, steps: Sequence[Step]) -> None:
        """Write the records, where nothing points to them yet."""
        fresh = [s for s in _changed(steps) if not s.pending.written]
        if not fresh:
            return
        texts = {s.pending.number: compress(s.pending.analysis.text) for s in fresh if self._keep_texts}
        taken = await self._index.put_records([s.record for s in fresh if s.record], texts)
        for step in fresh:
            step.pending.written = step.pending.number not in taken
            if not step.pending.written:
                step.pending.number = 0  # somebody has this number: take another one next time

    async def commit(self, steps: Sequence[Step], now_ms: int) -> list[Arrival]:
        """Commit what is written, in order; returns the articles that lost a race, by position."""
        changed = _changed(steps)
        ready = [s for s in changed if s.pending.written and s.transaction is not None]
        failed = await self._index.store.commit_many([s.transaction for s in ready if s.transaction])
        lost = [s.pending for s, checks in zip(ready, failed, strict=True) if checks]
        lost += [s.pending for s in changed if not s.pending.written]
        rate = self._index.segments.rate
        marked = {s.answer.space for s in ready if s.record and mark_of(s.record.number, rate)}
        for space in sorted(marked):
            await self._index.segments.seal_if_full(space, now_ms)
        settled = [s for s in steps if s.pending not in lost] if lost else steps
        await self._meet([s for s in settled if s.transaction is not None])
        for step in settled:
            await self._take_out(step)
        if self._beside is not None:
            await self._beside.follow([Posted(s.pending.article, s.standing) for s in settled if s.standing])
        return sorted(lost, key=lambda p: p.position)

    async def _meet(self, changed: Sequence[Step]) -> None:
        """The same id may have come in another language at the same moment: of the two the later number stays.

        Each looks after its own commit, so whoever looks last sees both.
        """
        if not changed or len(self._index.spaces) < 2:
            return
        found = await self._index.elsewhere({s.pending.article.id: s.answer.space for s in changed})
        for step in changed:
            others = found[step.pending.article.id]
            step.elsewhere = tuple(known for known in others if known.binding.number < step.version)
            for later in others[:1]:
                if later.binding.number > step.version:
                    await self._index.leave(step.answer.space, later.binding.id, below=later.binding.number)

    async def _take_out(self, step: Step) -> None:
        """The replaced version's record goes, and versions in other languages' spaces do."""
        if step.superseded is not None:
            await self._index.forget_records({step.superseded: step.answer.space})
            if self._beside is not None:
                await self._beside.forget(step.superseded)
        for known in step.elsewhere:
            left = await self._index.leave(known.space, known.binding.id, below=step.version)
            if left and self._beside is not None:
                await self._beside.left([known])

    async def answer(self, steps: Sequence[Step]) -> None:
        """Give the arrivals their answers, with the events that they are part of."""
        wanted = list(dict.fromkeys(g for s in steps for g in s.groups))
        events = await self._event_of(wanted) if self._event_of and wanted else {}
        for step in steps:
            event = next((events[g] for g in step.groups if g in events), None) if events else None
            step.pending.answer = replace(step.answer, event_id=event) if event else step.answer


def _changed(steps: Sequence[Step]) -> list[Step]:
    return [s for s in steps if s.transaction is not None and s.record is not None]
