"""Agreement of ``aggregator dedupe`` with the service, pair by pair and article by article.

    scripts/bench agreement [FILE ...] [--articles N] [--shingles words] [--list N]

The first N articles of each file, ordered by time, are posted to a service in memory and deduplicated as an
archive. A pair counts if either side compared it: the service, or ``dedupe`` after its first estimate of the
wording. Its decision is whether the later article repeats the earlier one; what a side did not compare, it
does not call a copy. An article is a duplicate if the service says so, or if ``dedupe`` confirms a pair with
an earlier article.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.app import build_core
from aggregator.dedup.evidence import Arrival
from aggregator.dedup.pair_comparison import compare_pair, novelty
from aggregator.dedup.policy import Policy
from aggregator.dedup.verdict import Candidate, confirmed_by_group
from aggregator.domain import Analysis, Answer, Article
from aggregator.index import Index
from aggregator.index.candidates import build_candidates
from aggregator.index.lookup import Probe
from aggregator.index.snapshot import Snapshot
from aggregator.ingest import decide
from aggregator.offline import jsonl
from aggregator.offline.archive.encode import Encoder, Encoding
from aggregator.offline.archive.executors import Pool
from aggregator.offline.archive.job import Job, prepare_work_dir
from aggregator.offline.archive.pair_rule import ESTIMATE_TOLERANCE, containment_floor, is_teaser_row
from aggregator.offline.archive.pairs import merge_pairs, unpack_pairs
from aggregator.offline.archive.pipeline import ProgressListener, run_pipeline
from aggregator.offline.archive.verify import estimate_overlaps
from aggregator.store.memory import MemoryStore
from tests.support.development_data import DATA

FILES = ("reuters21578_dev", "allsides_dev", "xinwenlianbo_dev")
START_MS = 1_700_000_000_000
ARTICLES_PER_POST = 500

Decisions = dict[tuple[int, int], bool]  # (earlier row, later row) -> whether the later repeats the earlier


def main() -> None:
    args = _options()
    policy = Policy()
    rows = _rows(args.files, args.articles)
    by_service, posted = asyncio.run(_decide_online(rows, policy))
    by_archive = _decide_offline(rows, policy, args.shingles)
    pairs = by_service.keys() | by_archive.keys()
    yes_service = {pair for pair, is_copy in by_service.items() if is_copy}
    yes_archive = {pair for pair, is_copy in by_archive.items() if is_copy}
    found = {later for _, later in yes_archive}
    print(f"{len(rows):,} articles, {len(pairs):,} pairs")
    print(_line("pairs", len(pairs), yes_service, yes_archive))
    both = by_service.keys() & by_archive.keys()
    print(_line("pairs that both compared", len(both), yes_service & both, yes_archive & both))
    print(_line("articles", len(rows), posted, found))
    for name, one_sided in (("service", yes_service - yes_archive), ("dedupe", yes_archive - yes_service)):
        for earlier, later in sorted(one_sided)[: args.list]:
            compared = (earlier, later) in both
            print(f"only {name}: {rows[earlier]['id']} {rows[later]['id']} both compared: {compared}")


def _line(name: str, count: int, service: set[Any], archive: set[Any]) -> str:
    different = len(service ^ archive)
    return (
        f"{name}: agreement {1 - different / max(1, count):.4%}; copies for both {len(service & archive):,}, "
        f"only for the service {len(service - archive):,}, only for dedupe {len(archive - service):,}"
    )


async def _decide_online(rows: Sequence[dict[str, Any]], policy: Policy) -> tuple[Decisions, set[int]]:
    """The service's decision on each candidate that its rule saw, and the rows it calls duplicates."""
    encoder, analyzer = Encoder(Encoding()), Analyzer(load_models())
    articles = [encoder.parse_article(row) for row in rows]
    row_of = {article.id: row for row, article in enumerate(articles)}
    decisions: Decisions = {}
    index = Index(MemoryStore(), analyzer.spaces)

    def record_decisions(
        snapshot: Snapshot,
        probe: Probe,
        numbers: Sequence[int],
        policy: Policy,
        arrival: Arrival,
    ) -> list[Candidate]:
        candidates = build_candidates(snapshot, probe, numbers, policy, arrival)
        confirmed = confirmed_by_group(probe.analysis, candidates, policy)
        repeats = any(_is_repeated(probe.analysis, candidate, policy) for candidate in candidates)
        for candidate in candidates:
            decisions[row_of[candidate.record.id], row_of[probe.id]] = _is_repeated(
                probe.analysis, candidate, policy
            ) or (not repeats and candidate in confirmed)
        return candidates

    decide.build_candidates = record_decisions  # type: ignore[attr-defined]  # imported name
    clock = itertools.count(START_MS)

    async def analyze(batch: Sequence[Article]) -> list[Any]:
        return list(analyzer.analyze_many(batch))

    ingest = build_core(index, analyze, policy, clock=lambda: next(clock)).ingest
    duplicates = set()
    for batch in _batches(articles):
        for article, answer in zip(batch, await ingest.submit_many(batch), strict=True):
            if isinstance(answer, Answer) and answer.outcome.verdict == "duplicate":
                duplicates.add(row_of[article.id])
    return decisions, duplicates


def _batches(articles: Sequence[Article]) -> list[Sequence[Article]]:
    return [articles[at : at + ARTICLES_PER_POST] for at in range(0, len(articles), ARTICLES_PER_POST)]


def _is_repeated(subject: Analysis, candidate: Candidate, policy: Policy) -> bool:
    if candidate.record.text_hash == subject.text_hash:
        return True
    matches = compare_pair(subject, candidate.record, candidate.evidence, policy)[0]
    return matches and not novelty(candidate.record, subject, policy)


def _decide_offline(rows: Sequence[dict[str, Any]], policy: Policy, shingles: str) -> Decisions:
    """The decision of ``dedupe`` on each pair of rows that shares enough wording, and on equal texts."""
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory, "articles.jsonl")
        source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        job = Job((str(source),), Path(directory), Encoding(shingles=shingles), policy=policy)
        prepare_work_dir(job, fresh=True)
        result = run_pipeline(job, Pool(None, 1), ProgressListener())
        columns = result.columns
        assert len(columns) == len(rows), "every row must be usable"
        candidates = merge_pairs([np.load(file)["pairs"] for file in job.work_dir.glob("candidates/*.npz")])
        containment = estimate_overlaps(columns, candidates).containment
        near = candidates[containment >= containment_floor(policy) - ESTIMATE_TOLERANCE]
        confirmed = set(result.confirmed.pairs.tolist())
        members: dict[int, list[int]] = {}
        for row, first in enumerate(result.distinct_texts.first_row.tolist()):
            members.setdefault(first, []).append(row)
        decisions: Decisions = {
            pair: True for rows_ in members.values() for pair in itertools.combinations(rows_, 2)
        }
        for packed, a, b in zip(near.tolist(), *(side.tolist() for side in unpack_pairs(near)), strict=True):
            for pair in itertools.product(members[a], members[b]):
                earlier, later = sorted(pair)
                decisions[earlier, later] = packed in confirmed and not is_teaser_row(columns, earlier, later)
        return decisions


def _rows(files: Sequence[Path], count: int) -> list[dict[str, Any]]:
    """The first ``count`` usable rows of each file, each with a unique id, ordered by time."""
    encoder = Encoder(Encoding())
    rows: list[dict[str, Any]] = []
    for file in files:
        for row in itertools.islice(jsonl.read_rows([str(file)]), count):
            if f"{row.get('title') or ''}{row.get('text') or ''}".strip():
                rows.append(row | {"id": f"{file.name[:4]}-{row['id']}"})
    unique = {row["id"]: row for row in rows}
    dates = {id_: encoder.parse_article(row).published_at_ms or 0 for id_, row in unique.items()}
    return sorted(unique.values(), key=lambda row: dates[row["id"]])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = [DATA / f"{name}.jsonl.gz" for name in FILES]
    parser.add_argument("files", nargs="*", default=default, type=Path, metavar="FILE")
    parser.add_argument("--articles", type=int, default=10_000, help="of each file (default 10,000)")
    parser.add_argument("--shingles", choices=("words", "letters"), default="words")
    parser.add_argument("--list", type=int, default=0, metavar="N", help="list N disagreements of each kind")
    return parser.parse_args()


if __name__ == "__main__":
    main()
