"""Migration to another model: dual writes and backfill keep both spaces equal."""

import asyncio
import random
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.analysis.pool.pool import AnalysisPool
from aggregator.analysis.simhash import FloatArray
from aggregator.app import AnalysisPools, build_dual_writer
from aggregator.cli.ingest_targets import RETRYABLE
from aggregator.dedup.policy import Policy
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError, NotFound, Overloaded, StoreUnavailable, TakenDown
from aggregator.index import Index, keys
from aggregator.index.bindings import Binding
from aggregator.ingest.backfill import (
    Backfill,
    BackfillStats,
)
from aggregator.store.base import Put, Store
from aggregator_client import retry_forever
from tests.index.radius import find_within_radius
from tests.support.factories import Clock, edited, in_process, story
from tests.support.wiring import build_core

TEXTS = {f"a{n}": story(n, 12) for n in range(24)} | {f"c{n}": edited(story(n, 12), n, 2) for n in range(8)}


class NextModel(HashedModel):
    """Another model: other feature sums, so other fingerprints."""

    @property
    def id(self) -> str:
        return "next"

    def project_rows(self, rows: npt.NDArray[np.uint64], tf_idf: FloatArray) -> FloatArray:
        return -super().project_rows(rows, tf_idf)[::-1]


class Process:
    """Ingest of one process: ``serving`` decides, ``shadow`` is dual-written."""

    def __init__(
        self, store: Store, serving: Analyzer, shadow: Analyzer | None, *, store_texts: bool = True
    ) -> None:
        self.index = Index(store, serving.spaces, shadow_spaces=shadow.spaces if shadow else ())
        pools = AnalysisPools(AnalysisPool(serving), AnalysisPool(shadow) if shadow else None)
        self.dual_writer = build_dual_writer(self.index, pools)
        self.ingest = build_core(
            self.index,
            in_process(serving),
            Policy(),
            clock=Clock(),
            store_texts=store_texts,
            dual_writer=self.dual_writer,
        ).ingest

    async def post(self, id_: str, text: str) -> str:
        """Submit an article; its verdict."""
        return (await self.ingest.submit(Article(id=id_, text=text, lang="eo"))).outcome.verdict

    async def backfill(self) -> BackfillStats:
        """Backfill from kept texts."""
        assert self.dual_writer is not None
        return await Backfill(self.index, self.dual_writer, lambda stats: None).from_store()

    async def state(self) -> dict[str, tuple[Binding, list[str], bool] | None]:
        """What can be read of every article: binding, group members, whether its fingerprint finds it."""
        found: dict[str, tuple[Binding, list[str], bool] | None] = {}
        for id_ in [*TEXTS, *(f"n{n}" for n in range(40))]:
            try:
                known = await self.index.bindings.find(id_)
            except NotFound:
                found[id_] = None
                continue
            record = (await self.index.articles.get(id_)).record
            near, _ = await find_within_radius(self.index, known.space, record.fingerprint, 0)
            members = [member.id for member in await self.index.articles.group_members(id_)]
            found[id_] = (known.binding, members, record.number in near.tolist())
        return found


CURRENT = Analyzer({"xx": HashedModel()})
NEXT_MODEL = Analyzer({"xx": NextModel()})


async def assert_equal_spaces(store: Store, serving: Analyzer, shadow: Analyzer) -> None:
    """Both spaces have the same bindings and groups, and every article is found in the shadow space."""
    expected = await Process(store, serving, None).state()
    copied = await Process(store, shadow, None).state()
    assert {id_: found and found[:2] for id_, found in expected.items()} == {
        id_: found and found[:2] for id_, found in copied.items()
    }
    assert all(found is None or found[2] for found in copied.values())


async def test_a_backfilled_space_equals_the_serving_one(store: Store) -> None:
    """Verdicts, groups, updates and deletes from before the migration and during it."""
    earlier = Process(store, CURRENT, None)
    for id_, text in TEXTS.items():
        await earlier.post(id_, text)
    await earlier.post("a3", story(900, 12))
    await earlier.ingest.delete("a5")

    process = Process(store, CURRENT, NEXT_MODEL)
    assert await process.post("n1", edited(story(2, 12), 77, 2)) == "duplicate"
    await process.ingest.delete("a1")
    await process.post("a2", story(901, 12))
    stats = await process.backfill()

    assert stats.not_copied == 0
    assert await process.post("n2", story(902, 12)) == "new"
    await process.ingest.delete("a6")
    await assert_equal_spaces(store, CURRENT, NEXT_MODEL)


async def test_after_the_switch_verdicts_stay(store: Store) -> None:
    """After the switch a repeat gets its stored verdict, a copy finds its original; the old space follows."""
    process = Process(store, CURRENT, NEXT_MODEL)
    verdicts = {id_: await process.post(id_, text) for id_, text in TEXTS.items()}
    before = [item.number for item in (await process.index.stream.read({}, 1000))[0]]

    switched = Process(store, NEXT_MODEL, CURRENT)
    assert {id_: await switched.post(id_, text) for id_, text in TEXTS.items()} == verdicts
    assert await switched.post("n1", edited(TEXTS["a20"], 5, 2)) == "duplicate"
    after = [item.number for item in (await switched.index.stream.read({}, 1000))[0]]

    assert after[: len(before)] == before
    assert len(after) == len(before) + 1
    await assert_equal_spaces(store, NEXT_MODEL, CURRENT)


async def test_a_take_down_outlasts_the_switch(store: Store) -> None:
    """The article leaves both spaces, and the other recipe refuses its text."""
    process = Process(store, CURRENT, NEXT_MODEL)
    await process.post("a1", TEXTS["a1"])
    await process.ingest.delete("a1", take_down=True)

    switched = Process(store, NEXT_MODEL, CURRENT)

    with pytest.raises(TakenDown):
        await switched.post("a2", TEXTS["a1"])
    assert await switched.post("a1", TEXTS["a2"]) == "new"
    await assert_equal_spaces(store, NEXT_MODEL, CURRENT)


async def test_an_interrupted_backfill_has_the_same_result(store: Store) -> None:
    """Cancelled after a few commands and restarted, twelve times, with posts in between."""
    earlier = Process(store, CURRENT, None)
    for id_, text in TEXTS.items():
        await earlier.post(id_, text)
    rng = random.Random(3)
    for attempt in range(12):
        process = Process(store, CURRENT, NEXT_MODEL)
        task = asyncio.create_task(process.backfill())
        for _ in range(rng.randrange(1, 30)):
            await asyncio.sleep(0)
        if attempt % 3 == 0:
            await process.post(f"n{attempt}", edited(story(attempt, 12), attempt, 2))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert (await Process(store, CURRENT, NEXT_MODEL).backfill()).not_copied == 0

    await assert_equal_spaces(store, CURRENT, NEXT_MODEL)


async def test_concurrent_writes_and_backfills_have_the_same_result(store: Store) -> None:
    """Posts, updates, deletes and repeats from three processes while two others backfill."""
    earlier = Process(store, CURRENT, None)
    for id_, text in TEXTS.items():
        await earlier.post(id_, text)

    async def traffic(seed: int) -> None:
        process, rng = Process(store, CURRENT, NEXT_MODEL), random.Random(seed)
        for n in range(25):
            id_ = rng.choice([*TEXTS, f"n{n}"])
            kind = rng.random()
            try:
                if kind < 0.3:
                    await process.ingest.delete(id_)
                else:
                    await process.post(id_, edited(story(rng.randrange(12), 12), rng.randrange(4), 2))
            except NotFound:
                pass

    processes = [Process(store, CURRENT, NEXT_MODEL) for _ in range(2)]
    await asyncio.gather(
        *(traffic(seed) for seed in range(3)), *(process.backfill() for process in processes)
    )

    assert (await processes[0].backfill()).not_copied == 0
    await assert_equal_spaces(store, CURRENT, NEXT_MODEL)


async def test_articles_that_the_stream_no_longer_has_are_copied(store: Store) -> None:
    """Article streams are trimmed after 8 days; the articles are kept for months."""
    earlier = Process(store, CURRENT, None)
    for id_, text in TEXTS.items():
        await earlier.post(id_, text)
    for space in CURRENT.spaces:
        await store.stream_trim(keys.tag(space, 0) + keys.STREAM, b"%d-0" % (1 << 60))

    stats = await Process(store, CURRENT, NEXT_MODEL).backfill()

    assert (stats.examined, stats.not_copied) == (len(TEXTS), 0)
    await assert_equal_spaces(store, CURRENT, NEXT_MODEL)


async def test_without_kept_texts_a_file_provides_them(store: Store) -> None:
    """Articles of the file that are stored with the same text are copied; others are counted."""
    earlier = Process(store, CURRENT, None, store_texts=False)
    for id_, text in TEXTS.items():
        await earlier.post(id_, text)
    process = Process(store, CURRENT, NEXT_MODEL, store_texts=False)
    assert process.dual_writer is not None
    assert (await process.backfill()).not_copied == len(TEXTS)

    articles = [Article(id=id_, text=text, lang="eo") for id_, text in TEXTS.items()]
    wrong = [Article(id="a0", text=story(7, 12), lang="eo"), Article(id="unknown", text="Who?", lang="eo")]
    backfill = Backfill(process.index, process.dual_writer, lambda stats: None)
    stats = await backfill.from_articles(iter([*wrong, *articles]))

    assert (stats.not_copied, stats.not_stored) == (1, 1)
    await assert_equal_spaces(store, CURRENT, NEXT_MODEL)


async def test_a_headline_alone_needs_no_kept_text(store: Store) -> None:
    """The record has it; after the switch it is the original of its copy as before."""
    title = "Harbor council of Brackwater votes on the new breakwater"
    earlier = Process(store, CURRENT, None, store_texts=False)
    await earlier.ingest.submit(Article(id="a0", title=title, lang="eo", source="Gazette"))
    stats = await Process(store, CURRENT, NEXT_MODEL, store_texts=False).backfill()
    assert (stats.examined, stats.not_copied) == (1, 0)

    switched = Process(store, NEXT_MODEL, CURRENT, store_texts=False)
    copy = await switched.ingest.submit(Article(id="n1", title=title, lang="eo", source="Radio"))
    assert copy.outcome.verdict == "duplicate"


async def test_articles_posted_during_a_migration_need_no_kept_texts(store: Store) -> None:
    """Their copies are found after the switch; only the earlier ones are counted as not copyable."""
    earlier = Process(store, CURRENT, None, store_texts=False)
    for id_ in ("a0", "a1"):
        await earlier.post(id_, TEXTS[id_])
    process = Process(store, CURRENT, NEXT_MODEL, store_texts=False)
    assert process.dual_writer is not None
    for id_ in ("a2", "a3", "a4"):
        await process.post(id_, TEXTS[id_])
    left = await process.backfill()
    assert (left.not_copied, sorted(left.left_ids)) == (2, ["a0", "a1"])

    switched = Process(store, NEXT_MODEL, CURRENT, store_texts=False)
    for n in (2, 3, 4):
        assert await switched.post(f"n{n}", edited(TEXTS[f"a{n}"], 5, 2)) == "duplicate"


async def test_languages_whose_model_stays_are_not_copied(store: Store) -> None:
    """Their space is the same, so nothing is missing there, also without texts."""
    analyzers = [
        Analyzer({"en": model, "xx": HashedModel()}) for model in (HashedModel("en"), NextModel("en"))
    ]
    process = Process(store, analyzers[0], None, store_texts=False)
    for id_, text in TEXTS.items():
        await process.post(id_, text)
    layout = AnalysisPools(*map(AnalysisPool, analyzers)).layout
    index = Index(store, layout.spaces, shadow_spaces=layout.shadow_spaces)
    writer = build_dual_writer(index, AnalysisPools(*map(AnalysisPool, analyzers)))

    assert writer is not None and layout.shadow_spaces == analyzers[1].spaces[:1]
    stats = await Backfill(index, writer, lambda _: None).from_store()
    assert (stats.examined, stats.not_copied) == (len(TEXTS), 0)


@pytest.mark.integration
@pytest.mark.parametrize("from_file", [False, True], ids=["store", "file"])
async def test_steps_are_repeated_until_they_succeed(
    store: Store, monkeypatch: pytest.MonkeyPatch, from_file: bool
) -> None:
    """Analysis and store fail at first; no article is left out or counted twice."""
    monkeypatch.setattr(retry_forever, "INITIAL_BACKOFF_S", 0.0)
    earlier = Process(store, CURRENT, None)
    for id_, text in TEXTS.items():
        await earlier.post(id_, text)
    process = Process(store, CURRENT, NEXT_MODEL)
    assert process.dual_writer is not None
    analyze_many, put = process.dual_writer._analyze_many, process.index.store.put
    not_analyzed, not_stored = set(TEXTS), 3

    async def analyze_later(articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        results = await analyze_many(articles)
        for i, article in enumerate(articles):
            if article.id in not_analyzed:
                not_analyzed.discard(article.id)
                results[i] = Overloaded("no processor")
                break
        return results

    async def put_later(puts: Sequence[Put], **options: bool) -> list[bool]:
        nonlocal not_stored
        not_stored -= 1
        if not_stored >= 0:
            raise StoreUnavailable("away")
        return await put(puts, **options)

    monkeypatch.setattr(process.dual_writer, "_analyze_many", analyze_later)
    monkeypatch.setattr(process.index.store, "put", put_later)
    backfill = Backfill(process.index, process.dual_writer, lambda _: None, retryable=RETRYABLE)
    if from_file:
        articles = [Article(id=id_, text=text, lang="eo") for id_, text in TEXTS.items()]
        stats = await backfill.from_articles(iter(articles))
    else:
        stats = await backfill.from_store()
    monkeypatch.undo()

    assert (stats.examined, stats.not_copied, stats.not_stored) == (len(TEXTS), 0, 0)
    assert not not_analyzed
    await assert_equal_spaces(store, CURRENT, NEXT_MODEL)


async def test_groups_that_are_united_and_split_are_so_in_the_shadow_space(store: Store) -> None:
    """An article unites two groups; when the canonical article goes, its members are examined."""
    both = Process(store, CURRENT, NEXT_MODEL)
    whole = story(30, 40)
    parts = {"a0": whole[: int(len(whole) * 0.45)], "a1": whole[int(len(whole) * 0.55) :]}
    parts |= {"c1": edited(parts["a1"], 1), "a2": whole}
    for id_, text in parts.items():
        await both.post(id_, text)
    assert len(await both.index.articles.group_members("a1")) == 4
    await assert_equal_spaces(store, CURRENT, NEXT_MODEL)

    for id_ in ("a0", "a2"):
        await both.ingest.delete(id_)
        await assert_equal_spaces(store, CURRENT, NEXT_MODEL)
    await both.post("a3", whole)
    await both.ingest.delete("a3")

    await assert_equal_spaces(store, CURRENT, NEXT_MODEL)
