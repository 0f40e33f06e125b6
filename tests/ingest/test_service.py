"""Check, insert and delete through the ingest service, over the in-memory store and a real Valkey."""

import asyncio
import dataclasses
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.analysis.simhash import hamming_distance
from aggregator.concurrency import current_caller, yield_control
from aggregator.dedup.policy import Policy
from aggregator.domain import Answer, Article, Problem
from aggregator.errors import AggregatorError, Forbidden, NoText, NotFound, StoreUnavailable, TakenDown
from aggregator.index.takedowns import refused_text, text_of_id
from aggregator.ingest.commit import PendingArticle
from aggregator.ingest.load_control import BulkThrottle
from aggregator.ingest.service import MicroBatcher, split_batches
from aggregator.store.base import Store
from aggregator.store.memory import MemoryStore
from aggregator.time_units import HOUR_MS
from tests.support.factories import Core, core, edited, story
from tests.support.store_steps import scan

pytestmark = pytest.mark.integration


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


async def test_a_flash_and_its_article_are_one_group(newsroom: Core) -> None:
    """The article behind a flash is the fuller version, which is kept; copies of either add nothing."""
    flash = " ".join(story(1).split()[:12])
    await newsroom.post("flash", flash)
    article = (await newsroom.post("article", story(1, 8))).outcome
    copy = (await newsroom.post("copy", edited(story(1, 8), seed=5, changes=2))).outcome
    late = (await newsroom.post("late", flash)).outcome

    assert (article.verdict, article.fuller, article.keep) == ("duplicate", True, True)
    assert article.adds is not None and article.adds > 0.7
    for outcome in (copy, late):
        assert outcome.match is not None and outcome.match.canonical_id == "flash"
    assert copy.adds is not None and copy.adds < 0.2  # readers have the article
    assert (late.adds, late.keep) == (0, False)


async def test_unrelated_texts_are_new(newsroom: Core) -> None:
    """Forty unrelated articles are new, but for chance neighbors."""
    answers = [await newsroom.post(f"a{i}", story(i)) for i in range(40)]

    assert {a.outcome.verdict for a in answers} <= {"new", "related"}
    assert sum(a.outcome.verdict == "new" for a in answers) >= 38


async def test_retry_answers_the_same(newsroom: Core) -> None:
    """Posting an id again returns its stored verdict, never a duplicate of itself."""
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
    assert [r.id for r in await newsroom.index.articles.group_members("b")] == ["a", "b", "c"]
    assert [r.id for r in await newsroom.index.articles.group_members("a")] == ["a", "b", "c"]


async def test_a_part_of_a_large_duplicate_group(newsroom: Core) -> None:
    """A limit bounds what is read; the canonical article and the one with the id are always in it."""
    for number in range(30):
        await newsroom.post(f"copy-{number}", story(1))

    group = await newsroom.index.articles.group_members("copy-29", 10)

    assert [r.id for r in group] == [*(f"copy-{number}" for number in range(11)), "copy-29"]
    assert len(await newsroom.index.articles.group_members("copy-29")) == 30


async def test_truncated_copy_is_found_by_its_sketch_keys(newsroom: Core) -> None:
    """A copy cut to 40 % is a duplicate although its fingerprint is far away."""
    text = story(1, sentences=60)
    await newsroom.post("a", text)

    cut = await newsroom.post("b", text[: int(len(text) * 0.4)])

    assert cut.outcome.verdict == "duplicate"


async def test_dry_run_stores_nothing(newsroom: Core) -> None:
    """A checked article is still new when it is posted."""
    article = Article(id="a", text=story(1))

    assert (await newsroom.ingest.submit(article, dry_run=True)).outcome.verdict == "new"
    with pytest.raises(NotFound):
        await newsroom.index.articles.get("a")
    assert (await newsroom.ingest.submit(article)).outcome.verdict == "new"


async def test_dry_run_answers_stored_false(newsroom: Core) -> None:
    """For a new article and for an update: a status 201 would mislead the crawler."""
    assert not (await newsroom.ingest.submit(Article(id="a", text=story(1)), dry_run=True)).stored
    await newsroom.post("a", story(1))
    assert not (await newsroom.ingest.submit(Article(id="a", text=story(2)), dry_run=True)).stored


async def test_dry_run_leaves_the_metadata_alone(newsroom: Core) -> None:
    """Checking a known id with another title does not change the stored title."""
    await newsroom.ingest.submit(Article(id="a", title="As stored", text=story(1)))

    await newsroom.ingest.submit(Article(id="a", title="As asked", text=story(1)), dry_run=True)

    assert (await newsroom.index.articles.get("a")).record.title == "As stored"


@pytest.mark.parametrize("throttled", [False, True])
async def test_batch_equals_one_by_one(throttled: bool) -> None:
    """A batch gives the verdicts of posting its articles in order, repeats and errors included.

    ``throttled``: interactive articles arrive, so the batch is processed in slices.
    """
    throttle = BulkThrottle(ConstantActivity().seconds_since_last, yield_control, sleep=skip_pause)
    articles = [
        Article(id=f"a{i}", text=story(i // 3) if i % 3 == 0 else edited(story(i // 3), i)) for i in range(90)
    ]
    articles[10] = Article(id="nothing")
    articles[20] = articles[3]
    articles[30] = dataclasses.replace(articles[6], text=story(777))
    one_by_one, batch = core(MemoryStore()), core(MemoryStore(), throttle=throttle if throttled else None)

    expected: list[Answer | AggregatorError] = []
    for article in articles:
        try:
            expected.append(await one_by_one.ingest.submit(article))
        except NoText as error:
            expected.append(error)
    results = await batch.ingest.submit_many(articles)

    for actual, wanted in zip(results, expected, strict=True):
        if isinstance(wanted, AggregatorError):
            assert type(actual) is type(wanted)
            continue
        assert isinstance(actual, Answer)
        assert _comparable(actual) == _comparable(wanted)
    assert (throttle.throttled_s > 0) == throttled


class ConstantActivity:
    """Interactive articles arrive all the time."""

    async def seconds_since_last(self) -> float:
        """Always 0."""
        return 0.0


async def skip_pause(seconds: float) -> None:
    """A sleep that ends immediately."""


def _comparable(answer: Answer) -> tuple[object, ...]:
    """An answer without article numbers, which depend on the clock."""
    match = answer.outcome.match
    matched = (match.id, match.canonical_id, match.rule, match.distance, match.overlap) if match else None
    return answer.id, answer.outcome.verdict, answer.outcome.distance, matched, answer.stored, answer.related


async def test_only_what_was_not_stored_before_is_created(newsroom: Core) -> None:
    """No update, repetition, dry run or move to another language; another article under the id is."""
    text = story(1, 60)
    posts = [("a", text), ("a", text), ("a", edited(text, 1)), ("b", edited(text, 2)), ("a", story(9, 60))]
    answers = [(await newsroom.post(id_, text)) for id_, text in posts]
    in_batch = await newsroom.ingest.submit_many(
        [Article(id="c", text=text, lang="en") for text in (story(3), edited(story(3), 1))]
    )
    dry = await newsroom.ingest.submit(Article(id="d", text=story(4)), dry_run=True)
    moved = await newsroom.ingest.submit(Article(id="c", text=story(3), lang="fr"))

    assert [answer.created for answer in answers] == [True, False, False, True, True]
    assert answers[-1].replaces is not None
    assert [isinstance(a, Answer) and a.created for a in (*in_batch, dry, moved)] == [
        True,
        False,
        False,
        False,
    ]


async def test_a_repeated_request_created_what_its_first_attempt_stored(newsroom: Core) -> None:
    """So that it can be undone although the first answer was lost; nothing older, and no dry run."""
    await newsroom.post("old", story(1))
    first_sent_ms = newsroom.clock()
    await newsroom.post("a", story(2))
    repeated = [
        Article(id=id_, text=story(n), first_sent_ms=first_sent_ms) for n, id_ in ((1, "old"), (2, "a"))
    ]
    single = [await newsroom.ingest.submit(article) for article in repeated]
    in_batch = await newsroom.ingest.submit_many([*repeated, Article(id="b", text=story(3), first_sent_ms=1)])
    dry = await newsroom.ingest.submit(repeated[1], dry_run=True)

    answers = [answer for answer in (*single, *in_batch, dry) if isinstance(answer, Answer)]
    assert [answer.created for answer in answers] == [False, True, False, True, True, False]
    assert [answer.stored for answer in answers] == [False, False, False, False, True, False]


async def test_update_keeps_its_verdict(newsroom: Core) -> None:
    """New content under a known id: same verdict; found by the new text, no longer by the old one."""
    await newsroom.post("a", story(1))
    update = await newsroom.post("a", story(2))

    assert (update.outcome.verdict, update.stored) == ("new", True)
    assert (await newsroom.post("b", edited(story(2), 3))).outcome.match is not None
    assert (await newsroom.post("c", edited(story(1), 3))).outcome.verdict in {"new", "related"}


async def test_update_of_a_canonical_article_keeps_its_copies(newsroom: Core) -> None:
    """Duplicates refer to the id, in whichever version."""
    await newsroom.post("a", story(1))
    await newsroom.post("b", edited(story(1), 2))
    await newsroom.post("a", edited(story(1), 9, changes=10))

    c = (await newsroom.post("c", edited(story(1), 3))).outcome.match

    assert c is not None
    assert c.canonical_id == "a"
    assert {r.id for r in await newsroom.index.articles.group_members("a")} == {"a", "b", "c"}


async def test_the_old_text_is_still_found_through_its_exact_copy(newsroom: Core) -> None:
    """When the original is updated, an exact copy of its old text matches copies of that text."""
    await newsroom.post("a", story(1))
    await newsroom.post("b", story(1))
    await newsroom.post("a", f"{story(1)[len(story(1)) // 2 :]} {story(2)}")

    match = (await newsroom.post("c", edited(story(1), 4))).outcome.match

    assert match is not None
    assert match.id == "b"


async def test_a_repeat_has_the_problems_of_the_first_answer(newsroom: Core) -> None:
    """By the date that is stored, whichever request stated it, and the first arrival; also in a dry run."""
    late = newsroom.clock() - 9 * HOUR_MS
    for id_, first, then, found in (
        ("a", None, None, Problem.undated),
        ("b", late, None, Problem.late),
        ("c", None, newsroom.clock(), Problem(0)),
        ("d", newsroom.clock(), None, Problem(0)),
    ):
        article = Article(id=id_, text=story(ord(id_)), published_at_ms=first)
        answer = await newsroom.ingest.submit(article)
        again = replace(article, published_at_ms=then)
        dry = await newsroom.ingest.submit(again, dry_run=True)
        repeated = [await newsroom.ingest.submit(sent) for sent in (again, replace(again, source="Radio"))]
        problems = [each.problems & (Problem.late | Problem.undated) for each in (dry, *repeated)]

        assert problems == [found] * 3, id_
        assert id_ == "c" or answer.problems & (Problem.late | Problem.undated) == found


async def test_metadata_of_a_repeat_is_refreshed(newsroom: Core) -> None:
    """Metadata left out stays; another headline is a later version, of the same article."""
    await newsroom.post("a", story(1), title="Old headline", source="one")
    for title, is_stored in (("Old headline", False), ("", False), ("New headline", True)):
        again = await newsroom.post("a", story(1), title=title)

        record = (await newsroom.index.articles.get("a")).record
        assert (again.stored, again.created, again.outcome.verdict) == (is_stored, False, "new")
        assert (record.title, record.source) == (title or "Old headline", "one")
        assert (record.number > record.first_version) is is_stored


async def test_delete_promotes_the_earliest_copy(newsroom: Core) -> None:
    """Deleting the original makes the earliest copy canonical and repoints the others to it."""
    await newsroom.post("a", story(1))
    for i, id_ in enumerate("bcd"):
        await newsroom.post(id_, edited(story(1), i + 2))

    await newsroom.ingest.delete("a")

    with pytest.raises(NotFound):
        await newsroom.index.articles.get("a")
    assert (await newsroom.post("b", edited(story(1), 2))).outcome.verdict == "new"
    for i, id_ in enumerate("cd"):
        match = (await newsroom.post(id_, edited(story(1), i + 3))).outcome.match
        assert match is not None
        assert (match.id, match.canonical_id) == (match.id if match.id in "bc" else "b", "b")
    assert [r.id for r in await newsroom.index.articles.group_members("c")] == ["b", "c", "d"]


@pytest.mark.parametrize("edits", [(2, 3, 4), (0, 0, 0), (2, 2, 0)])
async def test_what_is_undone_takes_the_copies_that_were_dropped(
    newsroom: Core, edits: tuple[int, ...]
) -> None:
    """Copies with other or the same words: the next one is new, and so is the article itself."""
    texts = [edited(story(1), seed) if seed else story(1) for seed in edits]
    deleted: list[str] = []

    async def on_delete(first_version: int, id_: str, now_ms: int) -> None:
        deleted.append(id_)

    newsroom.ingest._on_delete = on_delete
    await newsroom.post("a", story(1))
    assert not any([(await newsroom.post(id_, texts[i])).outcome.keep for i, id_ in enumerate("bc")])

    await newsroom.ingest.delete("a", undo=True)

    assert sorted(deleted) == ["a", "b", "c"]
    for id_ in "abc":
        with pytest.raises(NotFound):
            await newsroom.index.articles.get(id_)
    items, _ = await newsroom.index.stream.read({}, 100)
    assert [i.id for i in items if i.kind == "deleted"] == ["a", "b", "c"]
    assert (await newsroom.post("d", texts[2])).outcome.verdict == "new"
    again = (await newsroom.post("a", story(1))).outcome
    assert again.match is not None and again.match.canonical_id == "d"
    assert (await newsroom.post("b", texts[0])).outcome.match is not None


async def test_what_was_kept_becomes_the_original_of_what_is_undone(newsroom: Core) -> None:
    """A fuller copy, also of one that leaves, and only copies of it are dropped from then on."""
    beginning = " ".join(story(1).split()[:120])
    await newsroom.post("a", beginning, title="Ferry sold", source="Gazette")
    await newsroom.post("b", edited(beginning, 1, changes=1), title="Ferry sold", source="Radio")
    fuller = (await newsroom.post("c", story(1), title="Ferry sold", source="Coastline")).outcome
    await newsroom.post("d", edited(story(1), 2), title="Ferry sold", source="Courier")
    assert fuller.match is not None and fuller.keep

    await newsroom.ingest.delete("a", undo=True)

    assert [r.id for r in await newsroom.index.articles.group_members("c")] == ["c"]
    assert (await newsroom.index.articles.get("c")).outcome.verdict == "new"
    late = (await newsroom.post("e", edited(story(1), 3), title="Ferry sold", source="Herald")).outcome
    assert late.match is not None and (late.keep, late.match.canonical_id) == (False, "c")


async def test_undoing_a_copy_takes_the_copies_of_its_news(newsroom: Core) -> None:
    """They were dropped for it; what was dropped before stays, with the original."""
    beginning = " ".join(story(1).split()[:120])
    await newsroom.post("a", beginning, title="Ferry sold", source="Gazette")
    await newsroom.post("b", edited(beginning, 1, changes=1), title="Ferry sold", source="Radio")
    assert (await newsroom.post("c", story(1), title="Ferry sold", source="Coastline")).outcome.keep
    for id_, text in (("d", story(1)), ("e", story(1))):
        assert not (await newsroom.post(id_, text, title="Ferry sold", source="Courier")).outcome.keep

    await newsroom.ingest.delete("c", undo=True)

    assert [r.id for r in await newsroom.index.articles.group_members("a")] == ["a", "b"]
    assert (await newsroom.post("e", story(1), title="Ferry sold", source="Courier")).outcome.keep


async def test_after_concurrent_undoing_the_crawler_has_the_story(store: Store) -> None:
    """Two processes post copies and undo the original: what is left is a copy of an article to keep."""
    newsrooms = [core(store), core(store)]
    for burst in range(8):
        base, (one, other) = story(2000 + burst), newsrooms
        ids = [f"{burst}-{n}" for n in range(7)]
        await one.post(ids[0], base)
        posts = [
            newsrooms[n % 2].post(id_, edited(base, n) if n % 3 else base)
            for n, id_ in enumerate(ids[1:], start=1)
        ]
        undone = other.ingest.delete(ids[0], undo=True)
        answers = await asyncio.gather(*posts[:3], undone, *posts[3:])
        kept = {a.id for a in answers if isinstance(a, Answer) and a.outcome.keep}
        left = await one.index.articles.get_many(ids)
        for stored in left.values():
            assert (stored.outcome.match.canonical_id if stored.outcome.match else stored.record.id) in kept
        late = (await one.post(f"{burst}-late", edited(base, 9))).outcome
        assert late.keep != bool(kept)


async def test_after_a_delete_the_exact_copy_is_found(newsroom: Core) -> None:
    """An exact copy shares the original's index entries; it gets its own when the original is deleted."""
    await newsroom.post("a", story(1))
    await newsroom.post("b", story(1))
    await newsroom.ingest.delete("a")

    match = (await newsroom.post("c", edited(story(1), 4))).outcome.match

    assert match is not None
    assert (match.id, match.canonical_id) == ("b", "b")


async def test_delete_makes_the_text_new_again(newsroom: Core) -> None:
    """Insert, delete, insert again: new both times; a second delete raises NotFound."""
    for _ in range(2):
        assert (await newsroom.post("a", story(1))).outcome.verdict == "new"
        await newsroom.ingest.delete("a")
    with pytest.raises(NotFound):
        await newsroom.ingest.delete("a")


class CrashingStore(MemoryStore):
    """The process dies when it is about to delete records, the first time."""

    crashes = True

    async def delete(self, keys: Sequence[bytes]) -> None:
        """Fails the first time, deleting nothing."""
        if self.crashes:
            self.crashes = False
            raise StoreUnavailable("The process died here.")
        await super().delete(keys)


async def test_a_repeated_delete_finishes_an_interrupted_one() -> None:
    """Record and text are deleted and events are notified again; a third delete raises NotFound."""
    store = CrashingStore()
    newsroom = core(store)
    notified: list[str] = []

    async def on_delete(first_version: int, id_: str, now_ms: int) -> None:
        notified.append(id_)

    newsroom.ingest._on_delete = on_delete
    await newsroom.post("other", story(1))
    await newsroom.post("a", story(2), title="A headline")
    with pytest.raises(StoreUnavailable):
        await newsroom.ingest.delete("a")
    assert len(await scan(store, b"r:")) == len(await scan(store, b"x:")) == 2

    await newsroom.ingest.delete("a")

    assert len(await scan(store, b"r:")) == len(await scan(store, b"x:")) == 1
    assert notified == ["a", "a"]
    with pytest.raises(NotFound):
        await newsroom.ingest.delete("a")
    assert (await newsroom.post("a", story(2))).outcome.verdict == "new"


async def test_delete_of_a_copy_leaves_the_group(newsroom: Core) -> None:
    """The original keeps its other copies; one that matched the deleted copy now matches the original."""
    await newsroom.post("a", story(1))
    await newsroom.post("b", edited(story(1), 2, changes=30))
    await newsroom.post("c", edited(edited(story(1), 2, changes=30), 3, changes=2))
    await newsroom.ingest.delete("b")

    assert [r.id for r in await newsroom.index.articles.group_members("a")] == ["a", "c"]
    match = (await newsroom.index.articles.get("c")).outcome.match
    assert match is not None
    assert (match.id, match.canonical_id) == ("a", "a")


async def test_changed_language_moves_the_id() -> None:
    """An id whose declared language changes moves to the other language's space."""
    newsroom = core(MemoryStore())
    await newsroom.ingest.submit(Article(id="a", text=story(1), lang="en"))

    await newsroom.ingest.submit(Article(id="a", text=story(2), lang="fr"))

    assert (await newsroom.index.articles.get("a")).record.lang == "fr"


async def test_an_expired_article_is_no_candidate() -> None:
    """A copy of an article below the saved floor is new."""
    newsroom = core(MemoryStore(), retention_ms=86_400_000)
    await newsroom.post("a", story(1))
    newsroom.clock.now_ms += 86_400_000 + newsroom.index.retention.shared_entries_grace_ms + 1
    floor = newsroom.index.retention.floor_at(newsroom.clock.now_ms)
    for space in newsroom.index.spaces:
        await newsroom.index.segments.advance_head(space, floor=floor)

    assert (await newsroom.post("b", edited(story(1), 2))).outcome.verdict == "new"


async def test_stream_has_every_article_once(newsroom: Core) -> None:
    """The article stream has each committed article exactly once, deletions included."""
    for i in range(5):
        await newsroom.post(f"a{i}", story(i), title=f"title {i}")
    await newsroom.ingest.delete("a2")
    items, positions = await newsroom.index.stream.read({}, 100)
    rest, _ = await newsroom.index.stream.read(positions, 100)

    assert sorted((i.id, i.kind) for i in items) == sorted(
        [(f"a{i}", "article") for i in range(5)] + [("a2", "deleted")]
    )
    assert rest == []
    assert [i.title for i in items if i.id == "a1"] == ["title 1"]
    assert [i.title for i in items if i.id == "a2"] == ["", ""]
    assert "a4" in [item.id for item in await newsroom.index.stream.recent(2)]


@pytest.mark.parametrize("policy", [Policy(), Policy(name="hamming")])
async def test_burst_has_exactly_one_new(store: Store, policy: Policy) -> None:
    """Eight near-copies at the same time through two processes on one store: one is new."""
    newsrooms = [core(store, policy=policy), core(store, policy=policy)]
    for burst in range(20):
        base = story(1000 + burst)
        texts = [edited(base, seed, changes=1 if policy.name == "hamming" else 6) for seed in range(8)]
        answers = await asyncio.gather(
            *(newsrooms[i % 2].post(f"{burst}-{i}", text) for i, text in enumerate(texts))
        )
        if policy.name == "verified":
            assert [a.outcome.verdict for a in answers].count("new") == 1
            assert [a.outcome.verdict for a in answers].count("duplicate") == 7
        distinct = [a for a in answers if a.outcome.verdict != "duplicate"]
        distances = [hamming_distance(a.fingerprint, b.fingerprint) for a, b in combinations(distinct, 2)]
        assert min(distances, default=64) > policy.duplicate_bits


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.sampled_from("pppppdu")), max_size=25))
async def test_any_history_keeps_groups_consistent(history: list[tuple[int, int, str]]) -> None:
    """Posts, updates, deletes, undoing in any order: stored matches refer to live canonical articles only."""
    newsroom = core(MemoryStore())
    live: dict[str, str] = {}
    for writer, text, action in history:
        id_ = f"id{writer}"
        if action in "du":
            if id_ in live:
                await newsroom.ingest.delete(id_, undo=action == "u")
                stored_ids = await newsroom.index.articles.get_many(list(live))
                live = {id_: text for id_, text in live.items() if id_ in stored_ids}
            continue
        live[id_] = edited(story(text), writer, changes=3)
        answer = await newsroom.post(id_, live[id_])
        live = {known: text for known, text in live.items() if known not in answer.withdrawn}
    for id_, live_text in live.items():
        stored = await newsroom.index.articles.get(id_)
        match = stored.outcome.match
        if match is not None:
            canonical = await newsroom.index.articles.get(match.canonical_id)
            assert canonical.outcome.match is None
            assert match.id in live
        assert id_ in {r.id for r in await newsroom.index.articles.group_members(id_)}
        again = await newsroom.ingest.submit(Article(id="probe", text=live_text, lang="en"), dry_run=True)
        assert again.outcome.verdict == "duplicate"


async def test_index_entries_move_to_the_next_exact_copy(newsroom: Core) -> None:
    """The original is updated, then the copy that took over its entries is deleted: the next one has them."""
    for id_ in "abc":
        await newsroom.post(id_, story(1))
    await newsroom.post("a", story(1, 10) + story(2))
    await newsroom.ingest.delete("b")

    match = (await newsroom.post("d", edited(story(1), 4))).outcome.match

    assert match is not None
    assert (match.id, match.canonical_id) == ("c", "a")


async def test_an_id_twice_in_a_batch(newsroom: Core) -> None:
    """A later post repeats or updates what the earlier one stored, or is of another source."""
    corrected = story(1) + " Corrected."
    posts = ((story(1), "x"), (story(1), ""), (story(1), "y"), (corrected, "x"), (story(2), "z"))
    articles = [Article(id="a", text=text, lang="en", source=source) for text, source in posts]
    answers = [a for a in await newsroom.ingest.submit_many(articles) if isinstance(a, Answer)]

    assert [a.stored for a in answers] == [True, False, True, True, True]
    assert [a.stored_as for a in answers] == [None, None, "y:a", None, "z:a"]
    assert [a.outcome.verdict for a in answers] == ["new", "new", "duplicate", "new", "new"]
    record = (await newsroom.index.articles.get("a")).record
    assert (record.source, record.first_version < record.number) == ("x", True)


ARTICLE = Article("ferry", text=story(1), lang="eo")
ANALYSIS = Analyzer({"xx": HashedModel()}).analyze(ARTICLE)
MAX_ARTICLES = 64


def pending(id_: str = "ferry", position: int = 0) -> PendingArticle:
    """A pending article with an assigned number."""
    return PendingArticle(position, replace(ARTICLE, id=id_), ANALYSIS, number=9, first_version=7)


@given(st.lists(st.sampled_from("abcdef"), max_size=20), st.integers(1, 5))
def test_batches_have_every_article_in_order_and_no_id_twice(ids: list[str], size: int) -> None:
    """No batch is empty, and one ends early only before a repeated id."""
    posted = [pending(id_, i) for i, id_ in enumerate(ids)]

    batches = list(split_batches(posted, size))

    assert [item for batch in batches for item in batch] == posted
    for i, batch in enumerate(batches):
        in_batch = [item.article.id for item in batch]
        assert 0 < len(batch) == len(set(in_batch)) <= size
        following = [item.article.id for rest in batches[i + 1 :] for item in rest]
        assert not following or len(batch) == size or following[0] in in_batch


class BatchRecorder:
    """Records the ids of each batch; a batch takes until ``finish`` is set."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.finish = asyncio.Event()
        self.fails = False
        self.finished = 0
        self.batcher = MicroBatcher(self.process, MAX_ARTICLES)

    async def process(self, batch: list[PendingArticle]) -> None:
        """Record the ids and wait."""
        self.batches.append([item.article.id for item in batch])
        await self.finish.wait()
        self.finished += 1
        if self.fails:
            self.fails = False
            raise StoreUnavailable("The store is unavailable.")

    def submit(self, id_: str, caller: str = "") -> asyncio.Task[None]:
        """Submit an article in a separate task."""

        async def run() -> None:
            current_caller.set(caller)
            await self.batcher.submit(pending(id_))

        return asyncio.create_task(run())

    async def started(self) -> None:
        """Wait until the first batch is being processed."""
        while not self.batches:  # noqa: ASYNC110 (one event loop step per iteration)
            await asyncio.sleep(0)


async def test_the_first_article_starts_immediately_and_the_rest_form_batches() -> None:
    """In order of arrival, at most MAX_ARTICLES and no id twice per batch."""
    recorder = BatchRecorder()
    tasks = [recorder.submit("first")]
    await recorder.started()
    ids = ["a", "b", "a", *map(str, range(MAX_ARTICLES))]
    tasks += [recorder.submit(id_) for id_ in ids]
    await asyncio.sleep(0)
    recorder.finish.set()
    await asyncio.gather(*tasks)

    assert recorder.batches == [["first"], ["a", "b"], ["a", *ids[3 : MAX_ARTICLES + 2]], [ids[-1]]]


async def test_a_failure_is_raised_to_the_callers_of_that_batch_only() -> None:
    """The next batch is processed."""
    recorder = BatchRecorder()
    recorder.fails = True
    first = recorder.submit("first")
    await recorder.started()
    second = recorder.submit("second")
    recorder.finish.set()

    with pytest.raises(StoreUnavailable):
        await first
    await second


async def test_a_cancelled_caller_interrupts_no_batch() -> None:
    """Its article is dropped from a batch that has not started; the others get their answers."""
    recorder = BatchRecorder()
    tasks = [recorder.submit("a")]
    await recorder.started()
    tasks += [recorder.submit(id_) for id_ in "bcd"]
    await asyncio.sleep(0)
    tasks[0].cancel()  # its batch runs
    tasks[2].cancel()  # waits for the next batch
    await asyncio.wait([tasks[0], tasks[2]])
    recorder.finish.set()
    await asyncio.gather(tasks[1], tasks[3])

    assert tasks[0].cancelled() and tasks[2].cancelled()
    assert (recorder.batches, recorder.finished) == ([["a"], ["b", "d"]], 2)


async def test_waiting_callers_take_turns() -> None:
    """A caller with many articles delays another one by one batch; each keeps its order."""
    recorder = BatchRecorder()
    tasks = [recorder.submit("first")]
    await recorder.started()
    tasks += [recorder.submit(f"flood-{i}", caller="flood") for i in range(3 * MAX_ARTICLES)]
    tasks += [recorder.submit(f"other-{i}", caller="other") for i in range(2)]
    await asyncio.sleep(0)
    recorder.finish.set()
    await asyncio.gather(*tasks)

    assert recorder.batches[1][:5] == ["flood-0", "other-0", "flood-1", "other-1", "flood-2"]
    assert [id_ for batch in recorder.batches for id_ in batch if id_.startswith("flood")] == [
        f"flood-{i}" for i in range(3 * MAX_ARTICLES)
    ]


async def test_what_was_taken_down_is_refused_under_any_id(newsroom: Core) -> None:
    """In a post, batch and dry run; another text of the id is accepted, and a plain delete forgets."""
    await newsroom.post("plain", story(7))
    await newsroom.ingest.delete("plain")
    assert (await newsroom.post("plain", story(7))).outcome.verdict == "new"
    await newsroom.post("gone", story(1))
    await newsroom.post("copy", story(1))

    await newsroom.ingest.delete("gone", take_down=True)

    for id_, text in (("gone", story(1)), ("other", story(1).upper()), ("copy", story(1))):
        with pytest.raises(TakenDown, match=f"'{id_}' was taken down"):
            await newsroom.post(id_, text)
    articles = [Article(id=f"b{i}", text=story(i), lang="en") for i in range(3)]
    for dry_run in (True, False):
        answers = await newsroom.ingest.submit_many(articles, dry_run=dry_run)
        assert [type(answer) for answer in answers] == [Answer, TakenDown, Answer]
    assert (await newsroom.post("gone", story(2, 9))).stored

    await newsroom.index.takedowns.lift("gone")

    assert (await newsroom.post("later", story(1))).outcome.verdict == "duplicate"


async def test_a_notice_that_is_taken_down_is_refused_under_its_id_only(newsroom: Core) -> None:
    """Other articles of the outlet may come with the same notice instead of their texts."""
    await newsroom.post("a", story(1))
    known = (await newsroom.index.bindings.find("a")).binding
    await newsroom.index.takedowns.add("a", [text_of_id(known.text_hash, "a")])

    with pytest.raises(TakenDown):
        await newsroom.post("a", story(1))
    assert (await newsroom.post("b", story(1))).outcome.verdict == "duplicate"
    assert refused_text(known) == known.text_hash


async def test_a_text_of_another_source_is_not_refused(newsroom: Core) -> None:
    """A key of one source can neither remove an article of another one nor keep its text away."""
    await newsroom.ingest.submit(Article(id="a", text=story(1), source="gazette"))

    with pytest.raises(Forbidden):
        await newsroom.ingest.delete("a", sources=("radio",), take_down=True)
    assert await scan(newsroom.index.store, b"{takedowns}") == []


async def test_a_take_down_of_nothing_marks_nothing(newsroom: Core) -> None:
    """404 as a plain delete; an interrupted one is completed by repeating it."""
    with pytest.raises(NotFound):
        await newsroom.ingest.delete("never", take_down=True)
    assert await scan(newsroom.index.store, b"{takedowns}") == []


async def test_the_check_for_take_downs_costs_no_round_trip(newsroom: Core) -> None:
    """Reads per post before the first take-down and after it."""
    store, reads = newsroom.index.store, 0
    read = store.read

    async def counted(keys: Sequence[bytes]) -> list[bytes | None]:
        nonlocal reads
        reads += 1
        return await read(keys)

    async def reads_of(id_: str, text: str) -> int:
        nonlocal reads
        reads = 0
        await newsroom.post(id_, text)
        return reads

    await newsroom.post("first", story(1))
    store.read = counted  # type: ignore[method-assign]
    before = await reads_of("a", story(2))
    await newsroom.ingest.delete("first", take_down=True)
    after_first = await reads_of("b", story(3))
    after = await reads_of("c", story(4))
    store.read = read  # type: ignore[method-assign]

    assert after == after_first == before
