"""Near-copies that only their wording betrays, posted at the same moment: is exactly one of each burst new?

    python tests/benchmarks/bench_overlap_bursts.py [--bursts 2000] [--copies 4] [--store redis://...]

Every copy of a burst has 300 words in common with the others and 100 of its own, and only bursts whose copies are
all further than 7 bits apart are posted: fingerprints cannot find them, the sketch must, and so must the commit. Made-up words have no
rare ones among them, so that one in some thousand pairs looks like one frame with other names; such a burst is not posted.
Copies go alternately through two ingests that share nothing but the store (default: an embedded server).
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
from aggregator.dedup.verdict import Policy, template_difference
from aggregator.domain import Analysis, Article
from aggregator.errors import AggregatorError
from aggregator.index import RADIUS_BITS, Index
from aggregator.store.embedded import EmbeddedServer
from aggregator.store.redis import open_redis_store
from aggregator.time_units import wall_clock_ms
from tests.support.factories import story

COMMON, OWN = 30, 10  # sentences of ten words
AT_ONCE = 16


def copies_of(burst: int, copies: int) -> list[str]:
    """Texts of 400 made-up words, 300 of which are the same in all."""
    common = story(3 * burst, sentences=COMMON)
    return [f"{story(10**6 + burst * 64 + c, sentences=OWN)} {common}" for c in range(copies)]


def far_bursts(analyser: Analyzer, copies: int) -> Iterator[list[tuple[str, Analysis]]]:
    """Analysed bursts all of whose copies are out of one another's radius, without end."""
    for burst in itertools.count():
        articles = [
            Article(id=f"{burst}-{c}", text=t, lang="eo") for c, t in enumerate(copies_of(burst, copies))
        ]
        found = [one for one in analyser.analyze_many(articles) if isinstance(one, Analysis)]
        pairs = itertools.combinations(found, 2)
        if all(
            hamming_distance(a.fingerprint, b.fingerprint) > RADIUS_BITS
            and not template_difference(estimate_overlap(a.sketch, b.sketch), a, b)
            for a, b in pairs
        ):
            yield [(article.id, one) for article, one in zip(articles, found, strict=True)]


async def run(url: str, bursts: int, copies: int) -> Counter[int]:
    """How many bursts had how many "new" (1 is right)."""
    analyser = Analyzer({"xx": HashedModel()})
    ready: dict[str, Analysis] = {}

    async def look_up(articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        return [ready[a.id] for a in articles]

    stores = [open_redis_store(url) for _ in range(2)]
    desks = [
        build_core(Index(s, analyser.spaces), look_up, Policy(), clock=wall_clock_ms).ingest
        for s in stores
    ]
    free = asyncio.Semaphore(AT_ONCE)

    async def post(burst: Sequence[tuple[str, Analysis]]) -> int:
        async with free:
            sent = (desks[at % 2].submit(Article(id=id_)) for at, (id_, _) in enumerate(burst))
            return sum(answer.outcome.verdict != "duplicate" for answer in await asyncio.gather(*sent))

    counts: Counter[int] = Counter()
    chosen = list(itertools.islice(far_bursts(analyser, copies), bursts))
    ready.update(pair for burst in chosen for pair in burst)
    counts.update(await asyncio.gather(*map(post, chosen)))
    for store in stores:
        await store.close()
    print(f"{desks[0].commit_retries + desks[1].commit_retries} decisions were made again after a lost race")
    return counts


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bursts", type=int, default=2000)
    parser.add_argument("--copies", type=int, default=4)
    parser.add_argument("--store", help="a redis:// URL (default: an embedded server of its own)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        url = options.store or stack.enter_context(EmbeddedServer(Path(directory))).url
        counts = asyncio.run(run(url, options.bursts, options.copies))
    print(f"{options.bursts} bursts of {options.copies} copies beyond {RADIUS_BITS} bits: ", end="")
    print(", ".join(f"{n} with {new} new" for new, n in sorted(counts.items())))


if __name__ == "__main__":
    main()
