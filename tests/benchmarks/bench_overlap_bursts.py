"""Bursts of near-copies beyond the fingerprint radius: exactly one of each burst must be new.

    python -m tests.benchmarks.bench_overlap_bursts [--bursts 2000] [--copies 4] [--store redis://...]

The copies of a burst share 300 words and have 100 others each. Only bursts whose copies are pairwise more
than 7 bits apart are posted, so neither the look-up nor the commit can find them by fingerprint; both have to
use the sketch. Since the generated words have no rare ones among them, about one pair in thousands looks like
one template with other names; such bursts are not posted either. The copies of a burst go alternately to two
ingest services that share only the store (default: an embedded server).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.analysis.shingles import estimate_overlap
from aggregator.analysis.simhash import hamming_distance
from aggregator.app import build_core
from aggregator.dedup.pair_comparison import template_difference
from aggregator.dedup.policy import Policy
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError
from aggregator.index import RADIUS_BITS, Index
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import open_redis_store
from aggregator.time_units import wall_clock_ms
from tests.support.factories import story

COMMON, OWN = 30, 10  # sentences of ten words
CONCURRENT_BURSTS = 16


def copies_of(burst: int, copies: int) -> list[str]:
    """Texts of 400 generated words; 300 of them are the same in all copies."""
    common = story(3 * burst, sentences=COMMON)
    return [f"{story(10**6 + burst * 64 + c, sentences=OWN)} {common}" for c in range(copies)]


def distant_bursts(analyzer: Analyzer, copies: int) -> Iterator[list[tuple[str, Analysis]]]:
    """Endless analyzed bursts whose copies are pairwise outside of the radius."""
    for burst in itertools.count():
        articles = [
            Article(id=f"{burst}-{c}", text=t, lang="eo") for c, t in enumerate(copies_of(burst, copies))
        ]
        analyses = [a for a in analyzer.analyze_many(articles) if isinstance(a, Analysis)]
        pairs = itertools.combinations(analyses, 2)
        if all(
            hamming_distance(a.fingerprint, b.fingerprint) > RADIUS_BITS
            and not template_difference(estimate_overlap(a.sketch, b.sketch), a, b)
            for a, b in pairs
        ):
            yield [(article.id, analysis) for article, analysis in zip(articles, analyses, strict=True)]


async def run(url: str, bursts: int, copies: int) -> Counter[int]:
    """Number of bursts by their number of "new" verdicts (1 is correct)."""
    analyzer = Analyzer({"xx": HashedModel()})
    analyses: dict[str, Analysis] = {}

    async def prepared(articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        return [analyses[a.id] for a in articles]

    stores = [open_redis_store(url) for _ in range(2)]
    services = [
        build_core(Index(s, analyzer.spaces), prepared, Policy(), clock=wall_clock_ms).ingest for s in stores
    ]
    slots = asyncio.Semaphore(CONCURRENT_BURSTS)

    async def post(burst: Sequence[tuple[str, Analysis]]) -> int:
        async with slots:
            sent = (services[at % 2].submit(Article(id=id_)) for at, (id_, _) in enumerate(burst))
            return sum(answer.outcome.verdict != "duplicate" for answer in await asyncio.gather(*sent))

    counts: Counter[int] = Counter()
    posted = list(itertools.islice(distant_bursts(analyzer, copies), bursts))
    analyses.update(pair for burst in posted for pair in burst)
    counts.update(await asyncio.gather(*map(post, posted)))
    for store in stores:
        await store.close()
    retries = sum(service.commit_retries for service in services)
    print(f"{retries} decisions were retried after a commit conflict")
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bursts", type=int, default=2000)
    parser.add_argument("--copies", type=int, default=4)
    parser.add_argument("--store", help="a redis:// URL (default: an embedded server)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        url = options.store or stack.enter_context(EmbeddedServer(Path(directory))).url
        counts = asyncio.run(run(url, options.bursts, options.copies))
    print(f"{options.bursts} bursts of {options.copies} copies beyond {RADIUS_BITS} bits: ", end="")
    print(", ".join(f"{n} with {new} new" for new, n in sorted(counts.items())))


if __name__ == "__main__":
    main()
