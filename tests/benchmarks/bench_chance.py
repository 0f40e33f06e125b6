"""What do unrelated articles share by chance, in runs of letters and in word shingles?

    python tests/benchmarks/bench_chance.py FILE... [--source NAME]

The containment of all pairs among the first 300 articles of at least 300 words of each file, of one source if named.
``letters.CHANCE_CONTAINMENT`` rests on the column of nine in ten. Copies among them only show in the last column.
"""

from __future__ import annotations

import argparse

import numpy as np

from aggregator.domain import Article
from aggregator.offline import jsonl
from aggregator.offline.archive.columns import columns_from_signatures
from aggregator.offline.archive.encode import Encoder, Encoding
from aggregator.offline.archive.pairs import pack_pairs
from aggregator.offline.archive.verify import estimate_overlaps

ARTICLES, WORDS = 300, 300
SHARES = (0.5, 0.9, 0.99, 0.999)


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("files", nargs="+")
    options.add_argument("--source", help="articles of this source only")
    args = options.parse_args()
    print(f"{'file':40} {'shingles':8}" + "".join(f"{share:>8}" for share in SHARES))
    for file in args.files:
        articles = chosen(file, args.source)
        for shingles in ("letters", "words"):
            figures = "".join(f"{figure:8.3f}" for figure in containments(articles, shingles))
            print(f"{file[-40:]:40} {shingles:8}{figures}")


def chosen(file: str, source: str | None) -> list[Article]:
    """The first long articles."""
    found: list[Article] = []
    for row in jsonl.read_rows([file]):
        text = str(row.get("text") or "")
        if len(text.split()) >= WORDS and source in (None, row.get("source")):
            found.append(Article(id=str(len(found)), text=text))
        if len(found) == ARTICLES:
            break
    return found


def containments(articles: list[Article], shingles: str) -> list[float]:
    """The containment that so many of all pairs do not exceed."""
    encoder = Encoder(Encoding(shingles=shingles))
    columns = columns_from_signatures([encoder.encode(article) for article in articles])
    a, b = np.triu_indices(len(articles), 1)
    found = estimate_overlaps(columns, pack_pairs(a, b))
    return [float(share) for share in np.quantile(found.containment, SHARES)]


if __name__ == "__main__":
    main()
