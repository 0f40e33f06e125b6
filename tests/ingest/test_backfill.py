"""Another model takes over: both spaces are in step, whatever happens meanwhile, and the fill ends the same."""

import asyncio
import random
from collections.abc import Sequence

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.dedup.verdict import Policy
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError, NotFound
from aggregator.index import Index
from aggregator.index.blocks import PLANS
from aggregator.index.codec.records import Binding
from aggregator.ingest.backfill import BackfillStats, backfill_from_articles, backfill_from_store
from aggregator.ingest.dual_write import DualWriter
from aggregator.ingest.service import IngestService
from aggregator.store.base import Store
from tests.support.factories import Clock, edited, story

TEXTS = {f"a{n}": story(n, 12) for n in range(24)} | {f"c{n}": edited(story(n, 12), n, 2) for n in range(8)}


class NextModel(HashedModel):
    """Another model: other sums, so other bits."""

    @property
    def id(self) -> str:
        return "next"

    def project(self, tokens: Sequence[str]):  # type: ignore[no-untyped-def]
        return -super().project(tokens)[::-1]


class Site:
    """Ingest over two spaces: ``now`` decides, ``after`` is written along."""

    def __init__(
        self, store: Store, now: Analyzer, after: Analyzer | None, *, store_texts: bool = True
    ) -> None:
        plans = dict.fromkeys(after.spaces, PLANS[after.plan_name]) if after else {}
        self.index = Index(store, now.spaces, plan=PLANS[now.plan_name], shadow_plans=plans)
        self.beside = None
        if after is not None:

            async def analyse_after(articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
                return after.analyze_many(articles)

            self.beside = DualWriter(
                self.index, analyse_after, lambda record: after.convert_record(record, now)
            )

        async def analyse_now(articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
            return now.analyze_many(articles)

        self.ingest = IngestService(
            self.index, analyse_now, Policy(), clock=Clock(), store_texts=store_texts, dual_writer=self.beside
        )

    async def post(self, id_: str, text: str) -> str:
        """The verdict."""
        return (await self.ingest.submit(Article(id=id_, text=text, lang="eo"))).outcome.verdict

    async def fill(self) -> BackfillStats:
        """From kept texts."""
        assert self.beside is not None
        return await backfill_from_store(self.index, self.beside, lambda filled: None)

    async def state(self) -> dict[str, tuple[Binding, list[str], bool] | None]:
        """All that can be read of every article: binding, copies, whether its own text finds it."""
        seen: dict[str, tuple[Binding, list[str], bool] | None] = {}
        for id_ in [*TEXTS, *(f"n{n}" for n in range(40))]:
            try:
                known = await self.index.find_binding(id_)
            except NotFound:
                seen[id_] = None
                continue
            record = (await self.index.get(id_)).record
            near, _ = await self.index.find_within_radius(known.space, record.fingerprint, 0, 0)
            copies = [copy.id for copy in await self.index.group_members(id_)]
            seen[id_] = (known.binding, copies, record.number in near.tolist())
        return seen


NOW = Analyzer({"xx": HashedModel()})
AFTER = Analyzer({"xx": NextModel()})
CUT = Analyzer({"xx": HashedModel()}, "5x13")


async def assert_in_step(store: Store, now: Analyzer, after: Analyzer) -> None:
    """What the space beside says is what the serving one says."""
    here, there = await Site(store, now, None).state(), await Site(store, after, None).state()
    assert {id_: found and found[:2] for id_, found in here.items()} == {
        id_: found and found[:2] for id_, found in there.items()
    }
    assert all(found is None or found[2] for found in there.values())


@pytest.mark.parametrize("after", [AFTER, CUT], ids=["model", "plan"])
async def test_a_filled_space_says_the_same(store: Store, after: Analyzer) -> None:
    """Verdicts, groups, updates and deletes of before, and those made while the fill runs."""
    before = Site(store, NOW, None)
    for id_, text in TEXTS.items():
        await before.post(id_, text)
    await before.post("a3", story(900, 12))
    await before.ingest.delete("a5")

    site = Site(store, NOW, after)
    assert await site.post("n1", edited(story(2, 12), 77, 2)) == "duplicate"
    await site.ingest.delete("a1")
    await site.post("a2", story(901, 12))
    filled = await site.fill()

    assert filled.not_copied == 0
    assert await site.post("n2", story(902, 12)) == "new"
    await site.ingest.delete("a6")
    await assert_in_step(store, NOW, after)


async def test_the_new_space_takes_over_with_the_old_verdicts(store: Store) -> None:
    """After the switch a repeat answers what was stored, a copy finds its original, and so in the old space."""
    site = Site(store, NOW, AFTER)
    verdicts = {id_: await site.post(id_, text) for id_, text in TEXTS.items()}
    events = [item.number for item in (await site.index.read_stream({}, 1000))[0]]

    switched = Site(store, AFTER, NOW)
    assert {id_: await switched.post(id_, text) for id_, text in TEXTS.items()} == verdicts
    assert await switched.post("n1", edited(TEXTS["a20"], 5, 2)) == "duplicate"
    told = [item.number for item in (await switched.index.read_stream({}, 1000))[0]]

    assert told[: len(events)] == events
    assert len(told) == len(events) + 1
    await assert_in_step(store, AFTER, NOW)


async def test_a_fill_that_is_broken_off_anywhere_ends_the_same(store: Store) -> None:
    """Cancelled after every few commands and started again; what comes in meanwhile is in step, too."""
    before = Site(store, NOW, None)
    for id_, text in TEXTS.items():
        await before.post(id_, text)
    rng = random.Random(3)
    for attempt in range(12):
        site = Site(store, NOW, AFTER)
        filling = asyncio.create_task(site.fill())
        for _ in range(rng.randrange(1, 30)):
            await asyncio.sleep(0)
        if attempt % 3 == 0:
            await site.post(f"n{attempt}", edited(story(attempt, 12), attempt, 2))
        filling.cancel()
        await asyncio.gather(filling, return_exceptions=True)
    assert (await Site(store, NOW, AFTER).fill()).not_copied == 0

    await assert_in_step(store, NOW, AFTER)


async def test_writes_and_two_fills_at_once_stay_in_step(store: Store) -> None:
    """Posts, updates, deletes and repeats from three processes while two of them fill."""
    before = Site(store, NOW, None)
    for id_, text in TEXTS.items():
        await before.post(id_, text)

    async def traffic(seed: int) -> None:
        site, rng = Site(store, NOW, AFTER), random.Random(seed)
        for n in range(25):
            id_ = rng.choice([*TEXTS, f"n{n}"])
            kind = rng.random()
            try:
                if kind < 0.3:
                    await site.ingest.delete(id_)
                else:
                    await site.post(id_, edited(story(rng.randrange(12), 12), rng.randrange(4), 2))
            except NotFound:
                pass

    sites = [Site(store, NOW, AFTER) for _ in range(2)]
    await asyncio.gather(*(traffic(seed) for seed in range(3)), *(site.fill() for site in sites))

    assert (await sites[0].fill()).not_copied == 0
    await assert_in_step(store, NOW, AFTER)


async def test_without_kept_texts_a_file_fills_it(store: Store) -> None:
    """Articles of the file that are stored with this text come in; others are counted."""
    before = Site(store, NOW, None, store_texts=False)
    for id_, text in TEXTS.items():
        await before.post(id_, text)
    site = Site(store, NOW, AFTER, store_texts=False)
    assert site.beside is not None
    assert (await site.fill()).not_copied == len(TEXTS)

    articles = [Article(id=id_, text=text, lang="eo") for id_, text in TEXTS.items()]
    wrong = [Article(id="a0", text=story(7, 12), lang="eo"), Article(id="stranger", text="Who?", lang="eo")]
    filled = await backfill_from_articles(
        site.index, site.beside, iter([*wrong, *articles]), lambda filled: None
    )

    assert (filled.not_copied, filled.not_stored) == (1, 1)
    await assert_in_step(store, NOW, AFTER)


async def test_a_new_plan_needs_no_texts(store: Store) -> None:
    """Only the cut differs: the stored fingerprints are enough."""
    before = Site(store, NOW, None, store_texts=False)
    for id_, text in TEXTS.items():
        await before.post(id_, text)

    assert (await Site(store, NOW, CUT).fill()).not_copied == 0
    await assert_in_step(store, NOW, CUT)
