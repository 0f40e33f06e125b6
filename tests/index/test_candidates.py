"""Candidates: those of a verdict that need not be compared; those related articles that are still live."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.analysis.shingles import NO_OVERLAP, estimate_overlap, sample_size
from aggregator.dedup.copy_rule import Evidence
from aggregator.dedup.policy import Policy
from aggregator.dedup.verdict import Candidate, cosine
from aggregator.domain import NO_SKETCH, Analysis, Article, ArticleRecord, Sketch, build_record
from aggregator.index import Index, Snapshot, keys
from aggregator.index.bindings import encode_pointer
from aggregator.index.candidates import mark_unlike, rank
from aggregator.index.codec.record_codec import CandidateRecord
from aggregator.index.snapshot import SegmentStack
from aggregator.store.base import Store
from aggregator.store.memory import MemoryStore
from tests.index.helpers import seal
from tests.support.factories import core, edited, story

ANALYZER = Analyzer({"xx": HashedModel()})


def analysis(text: str) -> Analysis:
    """As the service analyzes a posted article."""
    return ANALYZER.analyze(Article(id="", text=text, lang="en"))


async def test_near_articles_of_all_segments_are_candidates(store: Store) -> None:
    """Those near by bits are first, by distance; articles that only share terms follow."""
    newsroom = core(store)
    await newsroom.post("same", story(1))
    await seal(newsroom)
    await newsroom.post("near", edited(story(1), 5))
    await newsroom.post("other", story(2))
    related = newsroom.index.related

    found = await related.find(analysis(story(1)), "subject")
    candidates = await related.load_candidates(found)

    assert [candidate.record.id for candidate in candidates][:2] == ["same", "near"]
    assert candidates[0].evidence.distance == 0 < candidates[1].evidence.distance
    assert found.own_binding is None


async def test_the_binding_of_a_stored_subject_is_returned(store: Store) -> None:
    """Its newest version."""
    newsroom = core(store)
    await newsroom.post("subject", story(1))
    await newsroom.post("subject", story(3))

    found = await newsroom.index.related.find(analysis(story(3)), "subject")

    assert found.own_binding == (await newsroom.index.bindings.find("subject")).binding


async def test_articles_deleted_since_they_were_found_are_not_loaded(store: Store) -> None:
    """Numbers given in addition are loaded like those that were found."""
    newsroom = core(store)
    for i, id_ in enumerate(("near", "extra", "deleted")):
        await newsroom.post(id_, story(i))
    (space,) = newsroom.index.spaces
    related = newsroom.index.related
    extra = await related.article_numbers_of(space, ["extra", "unknown", "deleted"])
    found = await related.find(analysis(story(0)), "subject")
    await newsroom.ingest.delete("deleted")

    both = await related.load_candidates(found, extra)
    only_extra = await related.load_candidates(replace(found, numbers=()), extra)

    assert len(extra) == 2
    assert {candidate.record.id for candidate in both} == {"near", "extra"}
    assert [candidate.record.id for candidate in only_extra] == ["extra"]


def unlike(
    subjects: Sequence[Analysis],
    stored: Sequence[Analysis],
    states: Mapping[int, bytes] = MappingProxyType({}),
) -> list[set[int]]:
    """The numbers, from 1, of the stored ones that are unlike each subject, whose ids are "own-0", ..."""
    stack, lookup = SegmentStack("xx.0000"), Index(MemoryStore(), ["xx.0000"]).lookup
    values: dict[bytes, bytes | None] = {
        stack.writable_tag + keys.state(n): state for n, state in states.items()
    }
    records = [build_record(Article(id=f"{n}"), found, n, n) for n, found in enumerate(stored, 1)]
    snapshot = Snapshot(
        {stack.space: stack}, values, records={r.number: CandidateRecord.of(r) for r in records}
    )
    probes = [
        lookup.probe(replace(subject, space=stack.space), f"own-{i}") for i, subject in enumerate(subjects)
    ]
    numbers = [record.number for record in records]
    mark_unlike(snapshot, [(probe, numbers) for probe in probes], [Policy()] * len(probes))
    return [snapshot.unlike.get(probe.id, set()) for probe in probes]


@st.composite
def sketches(draw: st.DrawFn) -> Sketch:
    """Of texts of any length, many of which share hashes or their upper bits."""
    size, kept = draw(st.sampled_from([0, 1, 5, 40, 128, 129, 400, 6000])), draw(st.integers(0, 10))
    shared, own = np.random.default_rng(draw(st.integers(0, 3))).integers(0, 1 << 32, (2, size), np.uint32)
    hashes = np.unique(
        np.where(np.arange(size) % 10 < kept, shared, own ^ np.uint32(draw(st.integers(0, 9))))
    )
    sample = hashes[: sample_size(len(hashes))]
    return Sketch(len(hashes), sample, np.zeros(len(sample), np.uint8))


@given(st.lists(sketches(), min_size=1, max_size=4), st.lists(sketches(), min_size=1, max_size=6))
def test_unlike_articles_share_less_wording_than_any_rule_asks_for(
    own: list[Sketch], others: list[Sketch]
) -> None:
    """By the plain estimate for each pair."""
    subjects = [replace(analysis(story(0)), sketch=sketch) for sketch in own]
    stored = [replace(analysis(story(1)), sketch=sketch) for sketch in others]

    for sketch, numbers in zip(own, unlike(subjects, stored), strict=True):
        for number in numbers:
            assert estimate_overlap(sketch, others[number - 1]).containment < Policy().containment_floor


def test_an_article_is_unlike_another_only_by_wording_bits_text_and_group() -> None:
    """One is compared if any of these is like that of the subject, or if its state is its own group's."""
    first, second, other = (analysis(story(seed)) for seed in range(3))
    near = replace(other, fingerprint=first.fingerprint ^ 0b1111111)
    far = replace(other, fingerprint=first.fingerprint ^ 0b11111111)
    same_text = replace(far, text_hash=second.text_hash)
    stored = [other, analysis(edited(story(0), 1)), near, far, same_text, other, other, other]
    states = {6: encode_pointer("own-0", 9), 7: encode_pointer("another", 9), 8: keys.DEAD}

    assert unlike([first, second], stored, states) == [{1, 4, 5, 7, 8}, {1, 2, 3, 4, 6, 7, 8}]
    assert unlike([], stored) == []


SEA, LAND = (("ferry", 0.8), ("harbour", 0.6)), (("orchard", 1.0),)


def ranked_candidate(
    number: int, distance: int, terms: tuple[tuple[str, float], ...], group: int | None = None
) -> Candidate:
    """Return a stored article named after its number."""
    record = ArticleRecord(
        number, number, f"a{number}", "en.0", "en", 0, b"", False, "", "", "", None, NO_SKETCH, terms
    )
    return Candidate(
        record,
        (f"a{group or number}", group or number),
        Evidence(NO_OVERLAP, cosine(SEA, terms), distance),
    )


def test_most_similar_first_then_recent() -> None:
    """Similarity orders, the later arrival breaks ties, the distance does not matter."""
    stored = [ranked_candidate(1, 4, LAND), ranked_candidate(2, 7, SEA), ranked_candidate(3, 9, SEA)]
    ranked = rank(stored, exclude_group=None, limit=10)

    assert [(i.id, i.similarity) for i in ranked] == [("a3", 1.0), ("a2", 1.0), ("a1", 0.0)]


def test_each_group_appears_at_most_once() -> None:
    """The group of the article itself is excluded."""
    stored = [
        ranked_candidate(1, 2, SEA, group=9),
        ranked_candidate(2, 5, SEA, group=7),
        ranked_candidate(3, 5, LAND, group=7),
    ]
    ranked = rank(stored, exclude_group=9, limit=10)

    assert [i.id for i in ranked] == ["a2"]


def test_limit() -> None:
    """At most ``limit`` articles are returned."""
    stored = [ranked_candidate(n, 5, SEA) for n in range(1, 9)]

    assert len(rank(stored, exclude_group=None, limit=3)) == 3
