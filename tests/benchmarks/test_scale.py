"""The generated index of ``scripts/bench scale`` is the one that inserts would have left."""

from __future__ import annotations

import numpy as np
import pytest
import redis

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.shingles import MAX_QUERY_KEYS, sketch_keys
from aggregator.domain import Analysis, Article, ArticleRecord, Outcome, Sketch
from aggregator.index import keys
from aggregator.index.bindings import decode_binding
from aggregator.index.blocks import PLAN
from aggregator.index.codec.postings import SKETCH_POSTING_BYTES
from aggregator.index.codec.record_codec import decode_record_uncached
from aggregator.index.snapshot import SegmentStack
from aggregator.index.transactions import SegmentTransactions
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.memory import MemoryStore
from tests.benchmarks import bench_scale
from tests.benchmarks.indexing.commit import unrelated_analyses
from tests.benchmarks.scale import fitting, loading, reading, replicas
from tests.benchmarks.scale.renaming import renamer
from tests.support.factories import story

SPACE, TAG = "en.3f2a", keys.tag("en.3f2a", 0)
PHRASES = np.array([5, 9, 1 << 20], np.uint32)  # set phrases of all articles: their keys get full


def analyses(count: int) -> list[Analysis]:
    """Articles with three set phrases each and one frequent term, every tenth a copy of the one before."""
    made: list[Analysis] = []
    for i, plain in enumerate(unrelated_analyses(count, 3)):
        if i % 10 == 9:
            made.append(made[-1])
            continue
        sample = np.unique(np.concatenate([PHRASES, plain.sketch.sample]))
        sketch = Sketch(320, sample, np.zeros(len(sample), np.uint8))
        terms = (("budget", 0.5), *plain.terms[1:])
        made.append(
            Analysis(
                "en", SPACE, plain.fingerprint, plain.text_hash, False, sketch, terms, title="A headline"
            )
        )
    return made


async def test_the_buckets_are_those_that_inserts_leave() -> None:
    """Full sketch keys are trimmed at the same article, term buckets cut to the same entries."""
    base = replicas.Replicas(analyses(30), np.arange(30) == 4)
    rounds = base.rounds(100)
    numbers = replicas.article_numbers(100, 1_780_000_000_000, 1_000_000)
    stack = SegmentStack(SPACE)
    store, segment = MemoryStore(), SegmentTransactions(stack)
    for round_ in rounds:
        members, prints = base.members(round_), base.fingerprints_of(round_)
        sketch_keys, terms = base.sketch_keys_of(round_), base.term_keys_of(round_)
        for i, member in enumerate(members.tolist()):
            if base.is_copy[member]:
                continue
            own = sketch_keys[i][sketch_keys[i] != replicas.NO_KEY].astype(np.uint32)
            record = _record(int(numbers[round_.first + i]), int(prints[i]), own)
            names = keys.sketch_buckets(TAG, own.tolist())
            read = dict(zip(names, await store.read(names), strict=True))
            made = segment.insert(record, Outcome("new"), [], buckets=read)
            assert not await store.commit(made)
        del terms
    loaded = dict(loading.buckets(base, rounds, numbers, TAG, PLAN))
    wanted = {name: value for name, value in loaded.items() if keys.kind_of(name) in (b"b", b"s")}
    assert len(wanted) > 100
    found = dict(zip(wanted, await store.read(list(wanted)), strict=True))
    assert found == wanted
    assert any(len(value) > 16 * 10 for name, value in wanted.items() if keys.kind_of(name) == b"s")


def test_the_counted_entries_are_those_in_the_buckets() -> None:
    found = analyses(30)
    base = replicas.Replicas(found, np.arange(30) == 4)
    numbers = replicas.article_numbers(100, 1_780_000_000_000, 1_000_000)
    loaded = dict(loading.buckets(base, base.rounds(100), numbers, TAG, PLAN))
    probe = found[4]
    bits, own, read = reading.sketch_entries(base, 100, [probe])
    names = keys.sketch_buckets(TAG, sketch_keys(probe.sketch, MAX_QUERY_KEYS))
    assert read.tolist() == [sum(len(loaded.get(name, b"")) for name in names) // SKETCH_POSTING_BYTES]
    assert bits == 18
    assert 3 * 17 <= own[0] <= read[0]
    names = keys.block_buckets(TAG, [PLAN.probe_plan(probe.fingerprint, 7)])
    entries = sum(len(loaded.get(name, b"")) for name in names) // (PLAN.remainder_bytes + 8)
    assert reading.block_entries(base, 100, [probe], PLAN).tolist() == [entries]


def test_term_buckets_keep_the_newest() -> None:
    base = replicas.Replicas(analyses(30), np.zeros(30, bool))
    rounds = base.rounds(900)
    numbers = replicas.article_numbers(900, 1_780_000_000_000, 1_000_000)
    terms = [v for k, v in loading.buckets(base, rounds, numbers, TAG, PLAN) if keys.kind_of(k) == b"t"]
    fullest = max(terms, key=len)
    assert len(fullest) == 512 * 10
    assert int.from_bytes(fullest[-8:], "little") == numbers[898]  # the last one is a copy
    assert min(len(term) for term in terms) == 10


@pytest.mark.integration
@pytest.mark.parametrize("count", [25, 100])
def test_records_and_bindings_can_be_read(count: int, tmp_path) -> None:  # type: ignore[no-untyped-def]
    found = analyses(30)
    base = replicas.Replicas(found, np.arange(30) == 4)
    rounds = base.rounds(count)
    numbers = replicas.article_numbers(count, 1_780_000_000_000, 1_000_000)
    articles = [Article(id=str(i), title=f"Headline {i}", source="gazette.example") for i in range(30)]
    with EmbeddedServer(tmp_path) as server:
        connection = loading.Connection(server.url.removeprefix("unix://"))
        loading.ArticleWriter(base, articles, SPACE, TAG).write(connection, rounds, numbers, chunk=7)
        connection.close()
        with redis.Redis.from_url(server.url) as client:
            assert client.dbsize() == 2 * count
            for position, number in enumerate(numbers.tolist()):
                id_ = loading.ID % position
                binding = decode_binding(client.get(TAG + keys.binding(id_)))
                record = decode_record_uncached(client.get(keys.record(SPACE, number)), SPACE, number)
                assert binding.id == record.id == id_
                assert binding.number == record.number == number
                assert binding.text_hash == record.text_hash
                assert record.title.startswith("Headline ")
            newest = found[rounds[-1].stop - 1 if count < 29 else 29]
            assert record.fingerprint == newest.fingerprint
            assert record.text_hash == newest.text_hash


@pytest.mark.integration
async def test_a_size_is_measured_through_the_service(capsys: pytest.CaptureFixture[str]) -> None:
    """The short form of ``scripts/bench scale``: made-up articles, records of those that are read only."""
    articles = [Article(str(i), f"Report {i}", story(i, sentences=12), lang="en") for i in range(40)]
    analyzed = [a for a in Analyzer(load_models()).analyze_many(articles) if isinstance(a, Analysis)]
    found = list(zip(articles, analyzed, strict=True))
    flags = bench_scale.held_out(40, 8)
    probes = [found[i] for i in np.flatnonzero(flags).tolist()]
    base = replicas.Replicas(analyzed, flags)
    figures = await bench_scale.measure(
        found, base, probes, 100, "made up", upkeep=False, all_records=False, reads=5
    )
    assert figures["block entries"] > 0
    assert 5 <= figures["records"] < 100
    assert figures["CPU ms"] > 0
    assert figures["sketches B"] > 100
    assert '"stored": 100' in capsys.readouterr().out


def _record(number: int, fingerprint: int, sample: np.ndarray) -> ArticleRecord:
    return ArticleRecord(
        number=number, first_version=number, id=str(number), space=SPACE, lang="en", fingerprint=fingerprint,
        text_hash=b"", short=False, title="", url="", source="", published_at_ms=None,
        sketch=Sketch(len(sample), sample, np.zeros(len(sample), np.uint8)),
    )  # fmt: skip


def test_set_phrases_stay_and_rare_shingles_are_renamed_alike_within_a_round() -> None:
    hashes = np.array([7] * 10 + list(range(1000, 2000)), np.uint64)
    rename = renamer(hashes, 24, longest=1e9)
    first, second = rename(hashes, 1), rename(hashes, 2)
    assert (first[:10] == 7).all()
    assert np.array_equal(rename(hashes[::-1], 1), first[::-1])
    assert (first[10:] != hashes[10:]).mean() > 0.9
    assert (first[10:] != second[10:]).mean() > 0.9
    assert np.array_equal(rename(hashes, 0), hashes)


def test_near_copies_stay_near_in_each_round() -> None:
    found = analyses(30)
    base = replicas.Replicas(found, np.zeros(30, bool))
    (oldest, *_) = base.rounds(90)
    prints = base.fingerprints_of(oldest)
    assert oldest.number == 2
    assert prints[8] == prints[9]  # copies
    assert len(set(prints.tolist())) == 27
    assert set(prints.tolist()).isdisjoint(base.fingerprints.tolist())


def test_a_large_index_has_wider_sketch_buckets() -> None:
    assert loading.grown_width(4 << 18).bits == 18
    assert loading.grown_width((4 << 18) + 1).bits == 19
    assert loading.grown_width(10**9).bits == 24
    entries = [7] * 40 + [8] * 24
    kept = loading.newest_of_full_keys(np.array(entries, np.uint32))
    assert kept[:40].sum() == 16 + 1 + 7  # trimmed to 16 by the 25th and the 33rd insert
    assert kept[40:].all()


def test_a_fit_predicts_what_it_was_made_from() -> None:
    sizes = [1e5, 1e6, 1e7, 1e8]
    values = [2 + 0.5 * np.log10(n) + 0.25 * n / 1e6 for n in sizes]
    assert fitting.predict(fitting.fit(sizes[:3], values[:3]), 1e8) == pytest.approx(values[3])
    assert max(map(abs, fitting.left_out_errors(sizes, values))) < 1e-6
    assert fitting.predict(fitting.fit([1e5, 1e6], [5.0, 4.9]), 1e8) == pytest.approx(4.95, rel=0.01)
