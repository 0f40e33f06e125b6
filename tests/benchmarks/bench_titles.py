r"""False duplicates among very many headlines, per policy; eight words are the hardest case for 64 bits.

    python -m tests.benchmarks.bench_titles [--titles 1000000] [--policies verified] [--models-dir DIR]

Data: the distinct headlines of reuters_titles_2007, then generated ones: the first half of one and the second
half of another. All go through the real ingest over a store in memory, in order. A verdict "duplicate" is
false when the two headlines have less than half of the shorter one's words in common (sets of lower-cased
``\w+``).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tqdm import tqdm

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.app import build_core
from aggregator.dedup.policy import Policy
from aggregator.domain import Answer, Article
from aggregator.index import Index
from aggregator.offline.jsonl import read_rows
from aggregator.store.memory import MemoryStore
from tests.support.development_data import DATA
from tests.support.factories import in_process

BATCH = 2000
START_MS = 1_600_000_000_000


def titles(file: Path, count: int) -> Iterator[str]:
    """Distinct headlines, real ones first."""
    real = list(itertools.islice(dict.fromkeys(row["title"] for row in read_rows([str(file)])), count))
    yield from real
    rng = random.Random(0)
    for _ in range(count - len(real)):
        first, other = rng.choice(real).split(), rng.choice(real).split()
        yield " ".join(first[: (len(first) + 1) // 2] + other[len(other) // 2 :])


async def run(texts: Sequence[str], policy: Policy, models_dir: Path | None = None) -> tuple[int, int]:
    """Number of verdicts "duplicate", and how many of them are false."""
    analyzer = Analyzer(load_models(models_dir))
    clock = itertools.count(START_MS)
    index = Index(MemoryStore(), analyzer.spaces)
    ingest = build_core(index, in_process(analyzer), policy, clock=lambda: next(clock)).ingest
    called = false = 0
    for start in tqdm(range(0, len(texts), BATCH), desc=policy.name, disable=None):
        batch = [
            Article(id=str(start + at), title=t, lang="en")
            for at, t in enumerate(texts[start : start + BATCH])
        ]
        for answer in await ingest.submit_many(batch):
            match = answer.outcome.match if isinstance(answer, Answer) else None
            if match is not None and isinstance(answer, Answer):
                called += 1
                false += not have_common_words(texts[int(answer.id)], texts[int(match.id)])
        gc.freeze()  # stored articles are never garbage: keep the collector from traversing them
    return called, false


def have_common_words(a: str, b: str) -> bool:
    """Whether at least half of the shorter headline's words are in the other."""
    first, second = (set(re.findall(r"\w+", text.lower())) for text in (a, b))
    return 2 * len(first & second) >= min(len(first), len(second))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--titles", type=int, default=1_000_000)
    parser.add_argument("--policies", nargs="*", default=["hamming", "verified"], metavar="NAME")
    parser.add_argument("--data", default=DATA, type=Path)
    parser.add_argument("--models-dir", type=Path, help="feature models (default: the shipped ones)")
    options = parser.parse_args()
    texts = list(titles(options.data / "reuters_titles_2007.jsonl.gz", options.titles))
    for name in options.policies:
        policy = Policy(name=name)
        called, false = asyncio.run(run(texts, policy, options.models_dir))
        print(f"{policy.name:9} {len(texts)} headlines, {called} called duplicate, {false} of them falsely")


if __name__ == "__main__":
    main()
