"""Archives confirm a copy that begins otherwise by copies of two outlets, as the service does."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aggregator.analysis import shingles
from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.cli import main
from aggregator.dedup.policy import Policy
from aggregator.domain import Article, Sketch
from aggregator.index import Index
from aggregator.store.memory import MemoryStore
from aggregator.time_units import DAY_MS
from aggregator_archive.arrays import pack_pairs
from aggregator_archive.columns import Columns, columns_from_signatures
from aggregator_archive.confirm import confirmed_by_groups, estimate_overlaps
from aggregator_archive.encode import Encoder, Encoding, Signature
from tests.support.archive_data import read_lines, write_lines
from tests.support.factories import Clock, in_process, story
from tests.support.wiring import build_core

REPORT = story(5, 40).split(". ")
WIRE = ". ".join(REPORT)
# It opens with the end of the report, which stands further down in the copies, below a lead of its own.
FRAMED = f"{story(900, 14)} {'. '.join(REPORT[18:30])}."
START_MS = 20_000 * DAY_MS


def archive(*rows: tuple[str, str]) -> list[Article]:
    """Articles of one day, a minute apart, with the ids "0", "1" ...; each row is (outlet, text)."""
    return [
        Article(id=str(n), text=text, source=outlet, published_at_ms=START_MS + n * 60_000, lang="en")
        for n, (outlet, text) in enumerate(rows)
    ]


async def duplicates_online(articles: list[Article]) -> tuple[list[str], list[str]]:
    """The ids that the service calls duplicates, and those that it does not keep."""
    analyzer, clock = Analyzer(load_models()), Clock()
    index = Index(MemoryStore(), analyzer.spaces)
    ingest = build_core(index, in_process(analyzer), Policy(), clock=clock).ingest
    outcomes = {article.id: (await ingest.submit(article)).outcome for article in articles}
    return (
        [id_ for id_, outcome in outcomes.items() if outcome.verdict == "duplicate"],
        [id_ for id_, outcome in outcomes.items() if not outcome.keep],
    )


def duplicates_offline(articles: list[Article], directory: Path) -> tuple[list[str], list[str]]:
    """The ids that ``dedupe`` puts into the group of the first one, and those that it removes."""
    rows = [
        {"id": a.id, "text": a.text, "source": a.source, "lang": "en", "published_at": a.published_at_ms}
        for a in articles
    ]
    source, out = write_lines(directory / "a.jsonl", rows), directory / "out"
    assert main(["dedupe", str(source), "--out", str(out), "--processes", "1", "--no-progress"]) == 0
    assert json.loads((out / "summary.json").read_text(encoding="utf-8"))["articles"] == len(rows)
    kept = {row["id"] for row in read_lines(out / "deduplicated.jsonl")}
    grouped = {row["id"] for row in read_lines(out / "clusters.jsonl")}
    return [a.id for a in articles[1:] if a.id in grouped], [a.id for a in articles if a.id not in kept]


@pytest.mark.integration
@pytest.mark.parametrize(
    ("outlets", "copies"),
    [
        (["Wire", "Gazette", "Radio"], ["1", "2"]),
        (["Wire", "wire", "Radio"], ["1"]),
        (["Wire", "Radio", "Radio"], ["1"]),
        (["", "", "Radio"], ["1", "2"]),
    ],
    ids=["two outlets", "one outlet", "its own outlet", "unknown outlets"],
)
async def test_archive_and_service_confirm_alike(
    outlets: list[str], copies: list[str], tmp_path: Path
) -> None:
    """Two prints of one text, then an article that quotes it below a lead of its own, which is news."""
    articles = archive(*zip(outlets, (WIRE, f"{WIRE}. Nobody was hurt.", FRAMED), strict=True))

    assert await duplicates_online(articles) == (copies, ["1"])
    assert duplicates_offline(articles, tmp_path) == (copies, ["1"])


def test_confirmed_articles_confirm_others_of_their_group() -> None:
    """Rows 0 and 1 are a group, 2 joins it, and 3 shares enough with 2 and 0 only."""
    encode = Encoder(Encoding()).encode
    articles = archive(("Wire", WIRE), ("Gazette", WIRE), ("Radio", FRAMED), ("Post", FRAMED))
    columns = columns_from_signatures([encode(article) for article in articles])

    def confirmed(sharing: list[tuple[int, int]], first_row: list[int]) -> list[tuple[int, int]]:
        earlier, later = np.array(sharing).T
        copies = pack_pairs(np.array([0]), np.array([1]))
        found = confirmed_by_groups(columns, np.array(first_row), copies, pack_pairs(earlier, later))
        return [(int(pair) >> 32, int(pair) & 0xFFFFFFFF) for pair in found]

    each = [0, 1, 2, 3]
    assert confirmed([(0, 2), (1, 2), (0, 3), (2, 3)], each) == [(0, 2), (0, 3), (1, 2), (2, 3)]
    assert confirmed([(0, 2), (0, 3), (2, 3)], each) == []
    assert confirmed([(0, 2), (0, 3)], [0, 0, 2, 3]) == [(0, 2), (0, 3)]  # row 1 is an equal text


WORDS = story(1, 60).split()


def signature(words: list[str]) -> Signature:
    """A signature with the sample of these words; other values do not matter."""
    return Signature("", "", "en.0000", 0, 0, 0, 0, len(words), shingles.build_sketch(words))


def sketch_of(columns: Columns, row: int) -> Sketch:
    """The sketch of the article in a row."""
    end = int(columns.sample_end[row])
    sample = columns.sample[end - int(columns.sample_size[row]) : end]
    return Sketch(int(columns.size[row]), sample, np.zeros(len(sample), np.uint8))


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(1, 599)), min_size=2, max_size=6))
@example([(207, 187), (387, 2)])  # two shingles differ in bits that are ignored only
@settings(max_examples=50, deadline=None)
def test_batch_estimates_equal_those_of_one_pair(cuts: list[tuple[int, int]]) -> None:
    """Windows of one long text, so that all degrees of overlap occur."""
    texts = [WORDS[start : start + size] for start, size in cuts]
    columns = columns_from_signatures([signature(words) for words in texts])
    a, b = np.triu_indices(len(texts), 1)
    found = estimate_overlaps(columns, pack_pairs(a, b))

    for at, (i, j) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        expected = shingles.estimate_overlap(sketch_of(columns, i), sketch_of(columns, j))
        assert (found.containment[at], found.resemblance[at], found.shared[at], found.size_ratio[at]) == (
            expected.containment, expected.resemblance, expected.shared, expected.size_ratio,
        )  # fmt: skip
        assert abs(found.error[at] - expected.error) < 1e-12
