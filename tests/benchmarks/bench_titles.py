"""What does each policy call a copy among very many headlines? Eight words are the hardest case for 64 bits.

    python tests/benchmarks/bench_titles.py [--titles 1000000] [--policies verified] [--models-dir DIR]

Background: the headlines of reuters_titles_2007, each once, then made ones: the first half of one and the second
half of another. All go through the real ingest over an in-memory store, in order. A verdict "duplicate" is false
when the two headlines have under half of the shorter one's words in common (sets of lower-cased ``\\w+``).
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
from aggregator.dedup.verdict import Policy
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
        one, other = rng.choice(real).split(), rng.choice(real).split()
        yield " ".join(one[: (len(one) + 1) // 2] + other[len(other) // 2 :])


async def run(texts: Sequence[str], policy: Policy, models_dir: Path | None = None) -> tuple[int, int]:
    """How many were called duplicate, and how many of them falsely."""
    analyser = Analyzer(load_models(models_dir))

    clock = itertools.count(START_MS)
    index = Index(MemoryStore(), analyser.spaces)
    ingest = build_core(index, in_process(analyser), policy, clock=lambda: next(clock)).ingest
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
                false += not alike(texts[int(answer.id)], texts[int(match.id)])
        gc.freeze()  # what is stored by now need not be gone through for garbage again
    return called, false


def alike(a: str, b: str) -> bool:
    """At least half of the shorter one's words in common."""
    first, second = (set(re.findall(r"\w+", text.lower())) for text in (a, b))
    return 2 * len(first & second) >= min(len(first), len(second))


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--titles", type=int, default=1_000_000)
    parser.add_argument("--policies", nargs="*", default=["hamming", "verified"], metavar="NAME")
    parser.add_argument("--data", default=DATA, type=Path)
    parser.add_argument("--models-dir", type=Path, help="models of your own (default: those that ship)")
    options = parser.parse_args()
    texts = list(titles(options.data / "reuters_titles_2007.jsonl.gz", options.titles))
    for name in options.policies:
        policy = Policy(name=name)
        called, false = asyncio.run(run(texts, policy, options.models_dir))
        print(f"{policy.name:9} {len(texts)} headlines, {called} called duplicate, {false} of them falsely")


if __name__ == "__main__":
    main()
