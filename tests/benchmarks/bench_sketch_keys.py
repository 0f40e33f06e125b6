"""Entries that a look-up reads through sketch keys, by the number of stored articles.

    scripts/bench keys [--articles 40000] [--sizes 1e5,1e6,1e7] [--cache FILE]

Real articles of all sources (development data), interleaved, each file in its order. Their sketch buckets are
filled as inserts fill them, without a store: an article is looked up (16 keys), then stored (8 keys; exact
copies add none). Prints, for the look-ups up to each size, with unbounded keys and with those that the index
keeps (``index/sketch_buckets.py``):

    own          entries of the article's own keys: mean, p99, maximum; largest key
    collisions   entries of other keys that have the same bucket (18 bits): mean
    full         share of the 16 keys that are full, and of the entries that these hold

then, per source, how many of the keys of an article (8) are full, and the articles all of whose keys are.

``--sizes``: synthetic key counts of an index of that many articles: keys that several real articles have are
drawn as often as among these, all others are keys of single articles. So ``own`` is a lower estimate where
the real articles are few; the bound that is printed with it holds whatever is stored.
"""

from __future__ import annotations

import argparse
import pickle
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.shingles import MAX_QUERY_KEYS, MAX_SKETCH_KEYS, query_keys, sketch_keys
from aggregator.domain import Analysis, Article
from aggregator.index.keys import SKETCH_BUCKET_BITS
from aggregator.index.sketch_buckets import FULL_KEY_ENTRIES, KEPT_KEY_ENTRIES
from aggregator.offline.jsonl import read_rows
from tests.support.development_data import DATA

SOURCES = (
    "allsides_dev",
    "reuters21578_dev",
    "spotsigs_dev",
    "yahoo_finance_dev",
    "ecbplus_dev",
    "lee_background300_dev",
    "ru_telegram_dev",
    "xinwenlianbo_dev",
)
MAX_CHARACTERS = 20_000
WINDOW = 1000  # look-ups that a line describes
_BUCKET_MASK = (1 << SKETCH_BUCKET_BITS) - 1


class Row(NamedTuple):
    """What the benchmark needs of an article: its source file, space, keys and text hash."""

    source: str
    space: str
    stored: tuple[int, ...]
    queried: tuple[int, ...]
    text_hash: bytes


class Keys:
    """Sketch keys of one index: the number of entries of each key and bucket."""

    def __init__(self, *, bounded: bool) -> None:
        self.entries: Counter[int] = Counter()
        self.by_bucket: Counter[int] = Counter()
        self._bounded = bounded

    def add(self, stored: Sequence[int]) -> None:
        """Append an article's entries, after trimming its full keys."""
        for key in stored:
            if self._bounded and self.entries[key] >= FULL_KEY_ENTRIES:
                self.by_bucket[key & _BUCKET_MASK] -= self.entries[key] - KEPT_KEY_ENTRIES
                self.entries[key] = KEPT_KEY_ENTRIES
            self.entries[key] += 1
            self.by_bucket[key & _BUCKET_MASK] += 1

    def read(self, queried: Sequence[int]) -> tuple[int, int]:
        """Entries that a look-up reads: those of the keys it looks for, and others in the same buckets."""
        own = sum(self.entries[key] for key in queried)
        return own, sum(self.by_bucket[key & _BUCKET_MASK] for key in queried) - own


def load(articles: int, cache: Path | None) -> list[Row]:
    """Analyzed articles of all sources, interleaved."""
    if cache is not None and cache.exists():
        loaded: list[Row] = pickle.loads(cache.read_bytes())
        return loaded[:articles]
    found: list[tuple[float, str, Article]] = []
    for source in SOURCES:
        rows = [row for row in read_rows([str(DATA / f"{source}.jsonl.gz")]) if row.get("text")]
        for i, row in enumerate(rows):
            lang = row.get("lang") if row.get("lang") in ("ru", "zh") else None
            text = row["text"][:MAX_CHARACTERS]
            article = Article(id=f"{source}:{row['id']}", title=row.get("title") or "", text=text, lang=lang)
            found.append((i / len(rows), source, article))
    found.sort(key=lambda item: item[0])
    analyzed = Analyzer(load_models()).analyze_many([article for *_, article in found[:articles]])
    result = [
        Row(source, a.space, sketch_keys(a.sketch), query_keys(a.sketch), a.text_hash)
        for (_, source, _), a in zip(found, analyzed, strict=False)
        if isinstance(a, Analysis)
    ]
    if cache is not None:
        cache.write_bytes(pickle.dumps(result))
    return result


def measure(rows: Sequence[Row]) -> None:
    """Print how the entries that are read grow, with unbounded and bounded keys."""
    marks = [n for n in (5_000, 10_000, 20_000, 40_000) if n < len(rows)] + [len(rows)]
    for bounded in (False, True):
        indexes: dict[str, Keys] = {}
        known: set[tuple[str, bytes]] = set()
        reads: list[tuple[int, int]] = []
        print("bounded" if bounded else "unbounded")
        for i, row in enumerate(rows, 1):
            index = indexes.setdefault(row.space, Keys(bounded=bounded))
            reads.append(index.read(row.queried))
            if (row.space, row.text_hash) not in known:
                known.add((row.space, row.text_hash))
                index.add(row.stored)
            if i in marks:
                own, others = np.array(reads[-WINDOW:]).T
                largest = max(max(index.entries.values()) for index in indexes.values())
                print(
                    f"  {i:7,} stored: own {_spread(own)}, largest key {largest:,}; "
                    f"collisions {others.mean():.1f}; {_full(rows[i - WINDOW : i], indexes)}",
                    flush=True,
                )
        _print_sources(rows, indexes)


def _spread(values: npt.NDArray[np.int64]) -> str:
    return f"{values.mean():.0f} (p99 {np.percentile(values, 99):.0f}, max {values.max()})"


def _full(rows: Sequence[Row], indexes: dict[str, Keys]) -> str:
    counts = np.array(
        [indexes[row.space].entries[key] for row in rows for key in row.queried], dtype=np.int64
    )
    full = counts >= KEPT_KEY_ENTRIES
    return f"full {full.mean():.1%} of keys, {counts[full].sum() / max(1, counts.sum()):.0%} of entries"


def _print_sources(rows: Sequence[Row], indexes: dict[str, Keys]) -> None:
    """Per source: mean number of stored keys that are full, and articles all of whose keys are."""
    for source in dict.fromkeys(row.source for row in rows):
        own = [row for row in rows if row.source == source and row.stored]
        full = [sum(indexes[row.space].entries[key] >= KEPT_KEY_ENTRIES for key in row.stored) for row in own]
        all_full = sum(f == len(row.stored) for f, row in zip(full, own, strict=True))
        print(
            f"    {source}: {np.mean(full):.2f} of {MAX_SKETCH_KEYS} keys full; "
            f"all full in {all_full} of {len(own)}"
        )


def synthetic(rows: Sequence[Row], sizes: Sequence[int], seed: int = 1) -> None:
    """Print the same for indexes of other sizes, of the largest space."""
    space = Counter(row.space for row in rows).most_common(1)[0][0]
    real = [row for row in rows if row.space == space]
    counts = Counter(key for row in real for key in row.stored)
    padded = np.zeros((len(real), MAX_SKETCH_KEYS), np.uint32)
    repeated = np.zeros(padded.shape, bool)
    for i, row in enumerate(real):
        padded[i, : len(row.stored)] = row.stored
        repeated[i, : len(row.stored)] = [counts[key] > 1 for key in row.stored]
    rng = np.random.default_rng(seed)
    lookups = real[-WINDOW:]
    for size in sizes:
        per_key: Counter[int] = Counter()
        by_bucket = np.zeros(1 << SKETCH_BUCKET_BITS, np.int64)
        shares = Counter({key: count for key, count in counts.items() if count > 1})
        for key, count in shares.items():  # as often as among the real ones
            expected = int(rng.poisson(count * size / len(real)))
            per_key[key] = min(expected, FULL_KEY_ENTRIES)
            by_bucket[key & _BUCKET_MASK] += per_key[key]
        singles = int((~repeated & (padded > 0)).sum() * size / len(real))
        by_bucket += rng.poisson(singles / len(by_bucket), len(by_bucket))
        own = np.array([sum(per_key[key] for key in row.queried) for row in lookups])
        others = (
            np.array([sum(int(by_bucket[key & _BUCKET_MASK]) for key in row.queried) for row in lookups])
            - own
        )
        print(
            f"{size:>12,} stored (synthetic, {space}): own {_spread(own)}; collisions {_spread(others)}; "
            f"bound of own entries: {MAX_QUERY_KEYS * FULL_KEY_ENTRIES} per segment",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--articles", type=int, default=40_000)
    parser.add_argument("--sizes", default="1e5,1e6,1e7")
    parser.add_argument("--cache", type=Path, help="file that keeps the analyzed articles")
    options = parser.parse_args()
    rows = load(options.articles, options.cache)
    measure(rows)
    synthetic(rows, [int(float(size)) for size in options.sizes.split(",")])


if __name__ == "__main__":
    main()
