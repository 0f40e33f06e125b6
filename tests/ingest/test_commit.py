"""Committer: records are written once and under free numbers, and answers name the event of a group."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.dedup.policy import Policy
from aggregator.domain import Answer, Article, Outcome, article_number_at, build_record
from aggregator.index import Index, Probe, Snapshot
from aggregator.index.codec.record_codec import compress_text
from aggregator.ingest.commit import CommitPlan, Committer, PendingArticle
from aggregator.store.base import Put, Store, Transaction, ValueEquals
from aggregator.store.memory import MemoryStore
from tests.support.factories import START_MS, Clock, in_process, story
from tests.support.wiring import build_core

ANALYZER = Analyzer({"xx": HashedModel()})


def plan(id_: str, low_bits: int, expected: bytes | None = None, groups: tuple[int, ...] = ()) -> CommitPlan:
    """Stores a marker under the id, if it has the expected value."""
    article = Article(id=id_, text=story(low_bits), lang="en")
    number = article_number_at(START_MS, low_bits)
    pending = PendingArticle(low_bits, article, ANALYZER.analyze(article), number, number)
    record, key = build_record(article, pending.analysis, number, number), b"{%s}" % id_.encode()
    return CommitPlan(
        pending=pending,
        answer=Answer(id_, Outcome("new"), record.space, record.fingerprint, record.short, stored=True),
        transaction=Transaction((ValueEquals(key, expected),), (Put(key, b"committed"),)),
        record=record,
        latest_number=number,
        superseded_number=None,
        older_versions=(),
        duplicate_groups=groups,
    )


def committer(store: Store) -> Committer:
    """Commits to an index of all spaces; texts are kept."""
    return Committer(Index(store, ANALYZER.spaces), None, None, store_texts=True)


async def test_records_are_written_before_the_commit_and_once(store: Store) -> None:
    """A retry writes no second record: its number is that of the first attempt."""
    index, first = Index(store, ANALYZER.spaces), plan("a", 1)
    await committer(store).write_records([first])
    number, space = first.pending.number, first.answer.space
    assert first.pending.record_written
    assert (await index.records.read({number: space}))[number].id == "a"
    assert await index.records.read_text(number) == compress_text(story(1))

    await index.records.delete({number: space})
    await committer(store).write_records([first])

    assert await index.records.read({number: space}) == {}


async def test_an_article_whose_number_is_taken_is_conflicted(store: Store) -> None:
    """It gets another number next time; nothing is committed for it, and the other article is stored."""
    await committer(store).write_records([plan("other", 1)])
    plans = [plan("taken", 1), plan("free", 2)]

    await committer(store).write_records(plans)
    conflicted = await committer(store).commit(plans, START_MS)

    assert conflicted == [plans[0].pending]
    assert (plans[0].pending.number, plans[0].pending.record_written) == (0, False)
    assert await store.read([b"{taken}", b"{free}"]) == [None, b"committed"]


async def test_conflicted_articles_are_returned_in_the_order_of_the_request(store: Store) -> None:
    """Whatever the order and reason; the numbers and records of failed commits are kept."""
    plans = [plan("late", 3, b"changed"), plan("stored", 2), plan("early", 1, b"changed")]

    await committer(store).write_records(plans)
    conflicted = await committer(store).commit(plans, START_MS)

    assert [(p.article.id, p.record_written) for p in conflicted] == [("early", True), ("late", True)]
    assert await store.read([b"{early}", b"{stored}", b"{late}"]) == [None, b"committed", None]


async def test_an_id_posted_in_two_languages_at_once_is_repaired_by_its_next_post() -> None:
    """Both first posts are acknowledged; the higher number is read, and the next post removes the other."""
    store, clock = MemoryStore(), Clock()
    analyzer = Analyzer({"en": HashedModel(group="en"), "xx": HashedModel()})
    first, second = (
        build_core(Index(store, analyzer.spaces), in_process(analyzer), Policy(), clock=clock)
        for _ in range(2)
    )
    english = Article(id="a", text=f"This is what they have been with. {story(7)}", lang="en")
    french = Article(id="a", text=story(7), lang="fr")
    looked_up, read_snapshot = asyncio.Event(), second.index.lookup.read_snapshot

    async def post_in_between(probes: Sequence[Probe]) -> Snapshot:
        snapshot = await read_snapshot(probes)
        if not looked_up.is_set():
            looked_up.set()
            await first.ingest.submit(english)
        return snapshot

    second.index.lookup.read_snapshot = post_in_between  # type: ignore[method-assign]
    assert (await second.ingest.submit(french)).outcome.verdict == "new"
    _, both = await second.index.bindings.find_all("a")
    assert len({known.space for known in both}) == 2
    newest = (await first.index.articles.get("a")).record
    assert newest.number == max(known.binding.number for known in both)

    await first.ingest.submit(english if newest.lang == "en" else french)

    _, left = await first.index.bindings.find_all("a")
    assert [known.binding.number for known in left] == [newest.number]


async def test_copies_leave_with_an_id_that_changes_its_language(store: Store) -> None:
    """Nobody has what they repeat: the answer names them, and the next one is kept."""
    analyzer = Analyzer({"en": HashedModel(group="en"), "xx": HashedModel()})
    service = build_core(Index(store, analyzer.spaces), in_process(analyzer), Policy(), clock=Clock())
    english = f"This is what they have been with. {story(7)}"
    posts = ("latest", english, "en"), ("b", english, "en"), ("latest", story(8), "fr"), ("c", english, "en")
    answers = [
        await service.ingest.submit(Article(id_, text=text, lang=lang, source=f"Outlet {id_}"))
        for id_, text, lang in posts
    ]

    assert [(answer.outcome.keep, answer.withdrawn) for answer in answers] == [
        (True, ()),
        (False, ()),
        (True, ("b",)),
        (True, ()),
    ]
    assert (await service.index.articles.get("c")).outcome.verdict == "new"


async def test_an_answer_names_the_event_of_its_first_group_that_has_one(store: Store) -> None:
    """All groups of a batch are looked up together, each once."""
    asked: list[list[int]] = []

    async def event_ids_of(groups: Sequence[int]) -> dict[int, str]:
        asked.append(list(groups))
        return {20: "harbour", 30: "bridge"}

    plans = [plan("a", 1, groups=(10, 30, 20)), plan("b", 2, groups=(10,)), plan("c", 3)]
    await Committer(Index(store, ANALYZER.spaces), None, event_ids_of, store_texts=False).set_answers(plans)

    answers = [p.pending.answer for p in plans]
    assert [answer.event_id for answer in answers if isinstance(answer, Answer)] == ["bridge", None, None]
    assert asked == [[10, 30, 20]]
