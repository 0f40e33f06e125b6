"""The story of one article, over the in-memory store and a real Valkey."""

import asyncio
import dataclasses
from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aggregator.analysis.simhash import hamming_distance
from aggregator.concurrency.yielding import yield_control
from aggregator.dedup.verdict import Policy
from aggregator.domain import Answer, Article
from aggregator.errors import AggregatorError, NoText, NotFound, StoreUnavailable
from aggregator.index.codec.records import encode_record
from aggregator.ingest.throttle import BulkThrottle
from aggregator.store.base import Store
from aggregator.store.memory import MemoryStore
from tests.support.factories import Core, core, edited, story


@pytest.fixture
def newsroom(store: Store) -> Core:
    """A core over an empty store."""
    return core(store)


async def test_new_then_edited_copy(newsroom: Core) -> None:
    """The second of two near-copies is a duplicate that names the first."""
    first = await newsroom.post("a", story(1))
    second = await newsroom.post("b", edited(story(1), seed=5))

    assert first.outcome.verdict == "new"
    assert second.outcome.verdict == "duplicate"
    assert second.outcome.match is not None
    assert (second.outcome.match.id, second.outcome.match.canonical_id) == ("a", "a")


async def test_a_flash_its_article_and_an_edited_copy(newsroom: Core) -> None:
    """The article is news to who has only the flash, and named as related to it; its copies are copies of it."""
    flash = " ".join(story(1).split()[:12])
    await newsroom.post("flash", flash)
    article = await newsroom.post("article", story(1, 8))
    copy = await newsroom.post("copy", edited(story(1, 8), seed=5, changes=2))
    late = await newsroom.post("late", flash)

    assert article.outcome.verdict == "related" and article.outcome.distance is None
    assert [item.id for item in article.related] == ["flash"]
    assert copy.outcome.match is not None and copy.outcome.match.canonical_id == "article"
    assert late.outcome.match is not None and late.outcome.match.id == "flash"


async def test_unrelated_texts_are_new(newsroom: Core) -> None:
    """Forty different stories are forty times new."""
    answers = [await newsroom.post(f"a{i}", story(i)) for i in range(40)]

    assert {a.outcome.verdict for a in answers} <= {"new", "related"}
    assert sum(a.outcome.verdict == "new" for a in answers) >= 38


async def test_retry_answers_the_same(newsroom: Core) -> None:
    """Posting an id again gives its stored verdict, never a duplicate of itself."""
    for id_, text in (("a", story(1)), ("b", edited(story(1), 2)), ("c", story(3))):
        first = await newsroom.post(id_, text)
        again = await newsroom.post(id_, text)

        assert (again.outcome, again.fingerprint) == (first.outcome, first.fingerprint)
        assert (first.stored, again.stored) == (True, False)


async def test_exact_copy_and_copy_of_a_copy(newsroom: Core) -> None:
    """Punctuation and case do not matter; a copy of a copy names the original."""
    await newsroom.post("a", story(1))
    b = (await newsroom.post("b", edited(story(1), 2, changes=12))).outcome.match
    c = (await newsroom.post("c", edited(story(1), 2, changes=12).upper())).outcome.match

    assert b is not None and c is not None
    assert (b.rule, c.rule, c.id, c.canonical_id) == (b.rule, "exact", "b", "a")
    assert [r.id for r in await newsroom.index.group_members("b")] == ["a", "b", "c"]
    assert [r.id for r in await newsroom.index.group_members("a")] == ["a", "b", "c"]


async def test_truncated_copy_is_found_by_its_bands(newsroom: Core) -> None:
    """A copy cut to 40 % is recognised although its fingerprint moved."""
    text = story(1, sentences=60)
    await newsroom.post("a", text)

    cut = await newsroom.post("b", text[: int(len(text) * 0.4)])

    assert cut.outcome.verdict == "duplicate"


async def test_dry_run_stores_nothing(newsroom: Core) -> None:
    """Asking is not inserting."""
    article = Article(id="a", text=story(1))

    assert (await newsroom.ingest.submit(article, dry_run=True)).outcome.verdict == "new"
    with pytest.raises(NotFound):
        await newsroom.index.get("a")
    assert (await newsroom.ingest.submit(article)).outcome.verdict == "new"


async def test_dry_run_says_that_nothing_was_stored(newsroom: Core) -> None:
    """A new article and an update alike: 201 would tell the crawler that it was taken in."""
    assert not (await newsroom.ingest.submit(Article(id="a", text=story(1)), dry_run=True)).stored
    await newsroom.post("a", story(1))
    assert not (await newsroom.ingest.submit(Article(id="a", text=story(2)), dry_run=True)).stored


async def test_dry_run_leaves_the_metadata_alone(newsroom: Core) -> None:
    """Asking about a known id under another title does not rename what is stored."""
    await newsroom.ingest.submit(Article(id="a", title="As stored", text=story(1)))

    await newsroom.ingest.submit(Article(id="a", title="As asked", text=story(1)), dry_run=True)

    assert (await newsroom.index.get("a")).record.title == "As stored"


@pytest.mark.parametrize("beside", [False, True])
async def test_batch_equals_one_by_one(beside: bool) -> None:
    """A batch gives the verdicts of posting its lines in order, repeats and errors included.

    ``beside``: single articles arrive meanwhile, for which it is done in pieces.
    """
    pace = BulkThrottle(Arriving(), yield_control, sleep=no_time)
    articles = [
        Article(id=f"a{i}", text=story(i // 3) if i % 3 == 0 else edited(story(i // 3), i)) for i in range(90)
    ]
    articles[10] = Article(id="nothing")
    articles[20] = articles[3]
    articles[30] = dataclasses.replace(articles[6], text=story(777))
    one_by_one, batch = core(MemoryStore()), core(MemoryStore(), pace=pace if beside else None)

    expected: list[Answer | AggregatorError] = []
    for article in articles:
        try:
            expected.append(await one_by_one.ingest.submit(article))
        except NoText as error:
            expected.append(error)
    got = await batch.ingest.submit_many(articles)

    for mine, theirs in zip(got, expected, strict=True):
        if isinstance(theirs, AggregatorError):
            assert type(mine) is type(theirs)
            continue
        assert isinstance(mine, Answer)
        assert _told(mine) == _told(theirs)
    assert (pace.throttled_s > 0) == beside


class Arriving:
    """Single articles always do."""

    async def since_s(self) -> float:
        """Just now."""
        return 0.0


async def no_time(seconds: float) -> None:
    """Pauses are over at once."""


def _told(answer: Answer) -> tuple[object, ...]:
    """An answer without numbers, which depend on the clock."""
    match = answer.outcome.match
    matched = (match.id, match.canonical_id, match.rule, match.distance, match.overlap) if match else None
    return answer.id, answer.outcome.verdict, answer.outcome.distance, matched, answer.stored, answer.related


async def test_update_keeps_its_verdict(newsroom: Core) -> None:
    """New content under a known id: same verdict, findable by the new text, no longer by the old."""
    await newsroom.post("a", story(1))
    update = await newsroom.post("a", story(2))

    assert (update.outcome.verdict, update.stored) == ("new", True)
    assert (await newsroom.post("b", edited(story(2), 3))).outcome.match is not None
    assert (await newsroom.post("c", edited(story(1), 3))).outcome.verdict in {"new", "related"}


async def test_update_of_a_canonical_article_keeps_its_copies(newsroom: Core) -> None:
    """Copies point at the id, whatever its versions."""
    await newsroom.post("a", story(1))
    await newsroom.post("b", edited(story(1), 2))
    await newsroom.post("a", edited(story(1), 9, changes=10))

    c = (await newsroom.post("c", edited(story(1), 3))).outcome.match

    assert c is not None
    assert c.canonical_id == "a"
    assert {r.id for r in await newsroom.index.group_members("a")} == {"a", "b", "c"}


async def test_old_text_stays_known_through_its_exact_copy(newsroom: Core) -> None:
    """When the original is rewritten, an exact copy of its old text still answers for that text."""
    await newsroom.post("a", story(1))
    await newsroom.post("b", story(1))
    await newsroom.post("a", story(2))

    match = (await newsroom.post("c", edited(story(1), 4))).outcome.match

    assert match is not None
    assert match.id == "b"


async def test_metadata_of_a_repeat_is_refreshed(newsroom: Core) -> None:
    """A publisher who changes a headline does not make a second article."""
    await newsroom.post("a", story(1), title="Old headline", source="one")
    again = await newsroom.post("a", story(1), title="New headline")

    record = (await newsroom.index.get("a")).record
    assert again.stored is False
    assert (record.title, record.source) == ("New headline", "one")


async def test_delete_promotes_the_earliest_copy(newsroom: Core) -> None:
    """Taking the original down makes the earliest copy new and re-points the others."""
    await newsroom.post("a", story(1))
    for i, id_ in enumerate("bcd"):
        await newsroom.post(id_, edited(story(1), i + 2))

    await newsroom.ingest.delete("a")

    with pytest.raises(NotFound):
        await newsroom.index.get("a")
    assert (await newsroom.post("b", edited(story(1), 2))).outcome.verdict == "new"
    for i, id_ in enumerate("cd"):
        match = (await newsroom.post(id_, edited(story(1), i + 3))).outcome.match
        assert match is not None
        assert (match.id, match.canonical_id) == (match.id if match.id in "bc" else "b", "b")
    assert [r.id for r in await newsroom.index.group_members("c")] == ["b", "c", "d"]


async def test_delete_of_the_original_leaves_its_exact_copy_findable(newsroom: Core) -> None:
    """An exact copy has no index entries of its own until it must answer for the text."""
    await newsroom.post("a", story(1))
    await newsroom.post("b", story(1))
    await newsroom.ingest.delete("a")

    match = (await newsroom.post("c", edited(story(1), 4))).outcome.match

    assert match is not None
    assert (match.id, match.canonical_id) == ("b", "b")


async def test_delete_undoes_a_reservation(newsroom: Core) -> None:
    """Insert, delete, insert again: new both times; deleting twice is not found."""
    for _ in range(2):
        assert (await newsroom.post("a", story(1))).outcome.verdict == "new"
        await newsroom.ingest.delete("a")
    with pytest.raises(NotFound):
        await newsroom.ingest.delete("a")


class Interrupted(MemoryStore):
    """Its process dies when it is about to remove records."""

    dies = True

    async def delete(self, keys: Sequence[bytes]) -> None:
        """Nothing is removed the first time."""
        if self.dies:
            self.dies = False
            raise StoreUnavailable("The process died here.")
        await super().delete(keys)


async def test_a_repeated_delete_finishes_what_another_began() -> None:
    """Title and text go, and events are told; after that there is nothing to delete any more."""
    store = Interrupted()
    newsroom = core(store)
    told: list[str] = []

    async def taken_down(first: int, id_: str, now_ms: int) -> None:
        told.append(id_)

    newsroom.ingest._on_delete = taken_down
    await newsroom.post("other", story(1))
    await newsroom.post("a", story(2), title="A headline")
    with pytest.raises(StoreUnavailable):
        await newsroom.ingest.delete("a")
    assert len(await store.scan(b"r:")) == len(await store.scan(b"x:")) == 2

    await newsroom.ingest.delete("a")

    assert len(await store.scan(b"r:")) == len(await store.scan(b"x:")) == 1
    assert told == ["a", "a"]
    with pytest.raises(NotFound):
        await newsroom.ingest.delete("a")
    assert (await newsroom.post("a", story(2))).outcome.verdict == "new"


async def test_delete_of_a_copy_leaves_the_group(newsroom: Core) -> None:
    """The original keeps its other copies; one that matched the deleted copy matches the original."""
    await newsroom.post("a", story(1))
    await newsroom.post("b", edited(story(1), 2, changes=30))
    await newsroom.post("c", edited(edited(story(1), 2, changes=30), 3, changes=2))
    await newsroom.ingest.delete("b")

    assert [r.id for r in await newsroom.index.group_members("a")] == ["a", "c"]
    match = (await newsroom.index.get("c")).outcome.match
    assert match is not None
    assert (match.id, match.canonical_id) == ("a", "a")


async def test_changed_language_moves_the_id() -> None:
    """An id whose declared language changes leaves its old space and keeps its verdict."""
    newsroom = core(MemoryStore())
    await newsroom.ingest.submit(Article(id="a", text=story(1), lang="en"))

    await newsroom.ingest.submit(Article(id="a", text=story(2), lang="fr"))

    assert (await newsroom.index.get("a")).record.lang == "fr"


async def test_retention_forgets() -> None:
    """What arrived before the retention period is no candidate any more."""
    newsroom = core(MemoryStore(), retention_ms=86_400_000)
    await newsroom.post("a", story(1))
    newsroom.clock.now_ms += 86_400_000 + newsroom.index.shared_entries_grace_ms + 1

    assert (await newsroom.post("b", edited(story(1), 2))).outcome.verdict == "new"


async def test_stream_has_every_article_once(newsroom: Core) -> None:
    """The detector reads each committed article exactly once, deletions included."""
    for i in range(5):
        await newsroom.post(f"a{i}", story(i), title=f"title {i}")
    await newsroom.ingest.delete("a2")
    items, positions = await newsroom.index.read_stream({}, 100)
    rest, _ = await newsroom.index.read_stream(positions, 100)

    assert sorted((i.id, i.kind) for i in items) == sorted(
        [(f"a{i}", "article") for i in range(5)] + [("a2", "deleted")]
    )
    assert rest == []
    assert [i.title for i in items if i.id == "a1"] == ["title 1"]
    assert [i.title for i in items if i.id == "a2"] == ["", ""]
    assert (await newsroom.index.recent(2))[1].id == "a4" or (await newsroom.index.recent(2))[0].id == "a4"


@pytest.mark.parametrize("policy", [Policy(), Policy(name="hamming")])
async def test_burst_has_exactly_one_new(store: Store, policy: Policy) -> None:
    """Eight near-copies at the same moment through two cores on one store: one is new."""
    rooms = [core(store, policy=policy), core(store, policy=policy)]
    for burst in range(20):
        base = story(1000 + burst)
        texts = [edited(base, seed, changes=1 if policy.name == "hamming" else 6) for seed in range(8)]
        answers = await asyncio.gather(
            *(rooms[i % 2].post(f"{burst}-{i}", text) for i, text in enumerate(texts))
        )
        if policy.name == "verified":
            assert [a.outcome.verdict for a in answers].count("new") == 1
            assert [a.outcome.verdict for a in answers].count("duplicate") == 7
        distinct = [a for a in answers if a.outcome.verdict != "duplicate"]
        apart = [hamming_distance(a.fingerprint, b.fingerprint) for a, b in combinations(distinct, 2)]
        assert min(apart, default=64) > policy.duplicate_bits


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.sampled_from("pppppd")), max_size=25))
async def test_any_history_keeps_groups_sound(history: list[tuple[int, int, str]]) -> None:
    """Posts, updates and deletes in any order: what is stored points at live canonical articles only."""
    newsroom = core(MemoryStore())
    live: dict[str, str] = {}
    for who, text, action in history:
        id_ = f"id{who}"
        if action == "d":
            if id_ in live:
                await newsroom.ingest.delete(id_)
                del live[id_]
            continue
        live[id_] = edited(story(text), who, changes=3)
        await newsroom.post(id_, live[id_])
    for id_, text in live.items():
        stored = await newsroom.index.get(id_)
        match = stored.outcome.match
        if match is not None:
            canonical = await newsroom.index.get(match.canonical_id)
            assert canonical.outcome.match is None
            assert match.id in live
        assert id_ in {r.id for r in await newsroom.index.group_members(id_)}
        again = await newsroom.ingest.submit(Article(id="probe", text=text, lang="en"), dry_run=True)
        assert again.outcome.verdict == "duplicate"


async def test_an_exact_copy_stays_findable_when_the_text_before_it_leaves_twice(newsroom: Core) -> None:
    """The original is rewritten, the first copy that then carried the old text is deleted: the next one carries it."""
    for id_ in "abc":
        await newsroom.post(id_, story(1))
    await newsroom.post("a", story(2))
    await newsroom.ingest.delete("b")

    match = (await newsroom.post("d", edited(story(1), 4))).outcome.match

    assert match is not None
    assert (match.id, match.canonical_id) == ("c", "a")


async def test_an_id_twice_in_a_batch(newsroom: Core) -> None:
    """Its second line repeats or updates what its first one stored."""
    lines = [Article(id="a", text=story(i), lang="en", source=s) for i, s in ((1, "x"), (1, "y"), (2, "z"))]
    answers = await newsroom.ingest.submit_many(lines)

    assert [a.stored for a in answers if isinstance(a, Answer)] == [True, False, True]
    record = (await newsroom.index.get("a")).record
    assert (record.source, record.first_version < record.number) == ("z", True)


async def test_fingerprints_only_stores_nothing_else() -> None:
    """Copies are found by bits and by equal text; the record holds no title, address, sample or terms."""
    newsroom = core(MemoryStore(), policy=Policy(name="hamming"), store_texts=False, fingerprints_only=True)
    await newsroom.post("a", story(1), title="Headline", url="https://example.org/a", source="one")
    again = await newsroom.post("b", story(1))
    record = (await newsroom.index.get("a")).record

    assert again.outcome.match is not None and again.outcome.match.rule == "exact"
    assert (record.title, record.url, record.source, record.terms, record.sketch.size) == ("", "", "", (), 0)
    assert len(encode_record(record)) < 80
