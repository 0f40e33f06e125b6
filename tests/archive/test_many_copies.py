"""A text with many copies costs few decisions; the results are those of a decision on each pair."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aggregator.cli import main
from aggregator.dedup.policy import Policy
from aggregator.domain import Article
from aggregator_archive import pair_rule
from aggregator_archive.arrays import pack_pairs
from aggregator_archive.columns import columns_from_signatures
from aggregator_archive.encode import Encoder, Encoding
from aggregator_archive.pair_rule import COPY, ENOUGH_COPIES, UNDECIDED, PairRule
from tests.support.archive_data import archive_rows, write_lines
from tests.support.factories import story

TEMPLATE = (
    "The Aldern is frozen from bank to bank and the ferries lie still; the harbour master has closed both "
    "locks until the thaw. Children skate where the coal barges turn on other winter days, and their "
    "parents watch from the quay with hot tea, while the bakers of the old town sell bread on the ice "
)


def test_an_article_with_enough_copies_is_compared_with_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 texts that differ in one word: 32 decisions each instead of one for each pair."""
    encoder = Encoder(Encoding(lang="en"))
    columns = columns_from_signatures(
        [encoder.encode(Article(id=str(n), text=f"{TEMPLATE}{n}")) for n in range(100)]
    )
    decided = []
    decide_pair = PairRule._decide_pair

    def count(*args: object) -> int:
        decided.append(args)
        return decide_pair(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(PairRule, "_decide_pair", staticmethod(count))
    pairs = pack_pairs(*np.triu_indices(100, 1))
    found = PairRule(columns, Policy()).decide(pairs, np.ones(len(pairs)))

    assert len(decided) <= 100 * ENOUGH_COPIES
    assert np.count_nonzero(found == COPY) == len(decided)
    assert set(found.tolist()) == {COPY, UNDECIDED}


@pytest.mark.integration
@pytest.mark.parametrize("representative", ["earliest", "longest"])
def test_the_results_are_those_of_a_decision_on_each_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, representative: str
) -> None:
    """Groups, kept rows and what they replace, also where one text joins two groups."""
    words = story(3, 60).split()
    texts = [f"{TEMPLATE}{n}" for n in range(30)]
    texts += [" ".join(words[n * 40 : n * 40 + 200]) for n in range(8)]
    rows = [{"id": str(n), "text": text, "lang": "en"} for n, text in enumerate(texts)]
    source = write_lines(tmp_path / "a.jsonl", archive_rows() + rows)
    results = []
    for enough in (1, 3, 10**6):
        monkeypatch.setattr(pair_rule, "ENOUGH_COPIES", enough)
        out = tmp_path / str(enough)
        options = ["--representative", representative, "--cap", "20", "--processes", "1", "--no-progress"]
        assert main(["dedupe", str(source), "--out", str(out), *options]) == 0
        tables = ("clusters", "representatives", "deduplicated")
        results.append([(out / f"{name}.jsonl").read_text(encoding="utf-8") for name in tables])
        pairs = (out / "pairs.jsonl").read_text(encoding="utf-8").count("\n")

    assert results[0] == results[1] == results[2]
    assert pairs > 30 * 29 / 2
