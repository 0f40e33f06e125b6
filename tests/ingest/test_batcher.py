"""Arrivals that come while a round is under way share the next one."""

import asyncio

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.domain import Article
from aggregator.errors import StoreUnavailable
from aggregator.ingest.batcher import MicroBatcher
from aggregator.ingest.pending import PendingArticle
from tests.support.factories import story

CHUNK = 64
ANALYSIS = Analyzer({"xx": HashedModel()}).analyze(Article(id="", text=story(1), lang="eo"))


def arrival(id_: str) -> PendingArticle:
    """An article of that id."""
    return PendingArticle(0, Article(id=id_, text=""), ANALYSIS)


class Rounds:
    """What was settled together; a round lasts until it is let go."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.go = asyncio.Event()
        self.fails = False

    async def settle(self, group: list[PendingArticle]) -> None:
        """Note the ids, and wait."""
        self.groups.append([one.article.id for one in group])
        await self.go.wait()
        if self.fails:
            self.fails = False
            raise StoreUnavailable("The store is away.")


async def until_started(rounds: Rounds) -> None:
    """Let the first round begin."""
    while not rounds.groups:  # noqa: ASYNC110
        await asyncio.sleep(0)


async def test_the_first_goes_at_once_and_the_rest_together() -> None:
    """In the order they came, no more than a chunk at a time, no id twice in one."""
    rounds = Rounds()
    gathering = MicroBatcher(rounds.settle, CHUNK)
    tasks = [asyncio.create_task(gathering.submit(arrival("first")))]
    await until_started(rounds)
    ids = ["a", "b", "a", *map(str, range(CHUNK))]
    tasks += [asyncio.create_task(gathering.submit(arrival(i))) for i in ids]
    await asyncio.sleep(0)
    rounds.go.set()
    await asyncio.gather(*tasks)

    assert rounds.groups == [["first"], ["a", "b"], ["a", *ids[3 : CHUNK + 2]], [ids[-1]]]


async def test_a_failed_round_is_told_to_all_who_were_in_it_and_to_no_other() -> None:
    """The next round goes on."""
    rounds = Rounds()
    rounds.fails = True
    gathering = MicroBatcher(rounds.settle, CHUNK)
    one = asyncio.create_task(gathering.submit(arrival("one")))
    await until_started(rounds)
    two = asyncio.create_task(gathering.submit(arrival("two")))
    rounds.go.set()

    with pytest.raises(StoreUnavailable):
        await one
    await two


async def test_who_is_cancelled_takes_nobody_along() -> None:
    """Its article stays in the round; the others get their answers."""
    rounds = Rounds()
    gathering = MicroBatcher(rounds.settle, CHUNK)
    tasks = [asyncio.create_task(gathering.submit(arrival(i))) for i in "abcd"]
    await until_started(rounds)
    await asyncio.sleep(0)
    tasks[0].cancel()  # settles its own article
    tasks[2].cancel()  # waits for the next round
    rounds.go.set()
    await asyncio.gather(tasks[1], tasks[3])

    assert tasks[0].cancelled() and tasks[2].cancelled()
    assert rounds.groups == [["a"], ["b", "c", "d"]]
