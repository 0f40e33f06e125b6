"""Containment of unrelated articles by chance, with character n-grams and with word shingles.

    python -m tests.benchmarks.bench_chance FILE... [--source NAME]

Prints quantiles of the containment of all pairs among the first 300 articles of at least 300 words of each
file (with ``--source`` of that source only). ``archive/char_ngrams.CHANCE_CONTAINMENT`` is taken from the
column 0.9; copies among the articles affect the last column only.
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
        articles = long_articles(file, args.source)
        for shingles in ("letters", "words"):
            figures = "".join(f"{figure:8.3f}" for figure in containments(articles, shingles))
            print(f"{file[-40:]:40} {shingles:8}{figures}")


def long_articles(file: str, source: str | None) -> list[Article]:
    """The first ``ARTICLES`` articles of at least ``WORDS`` words."""
    found: list[Article] = []
    for row in jsonl.read_rows([file]):
        text = str(row.get("text") or "")
        if len(text.split()) >= WORDS and source in (None, row.get("source")):
            found.append(Article(id=str(len(found)), text=text))
        if len(found) == ARTICLES:
            break
    return found


def containments(articles: list[Article], shingles: str) -> list[float]:
    """Quantiles ``SHARES`` of the containment over all pairs."""
    encoder = Encoder(Encoding(shingles=shingles))
    columns = columns_from_signatures([encoder.encode(article) for article in articles])
    a, b = np.triu_indices(len(articles), 1)
    found = estimate_overlaps(columns, pack_pairs(a, b))
    return [float(share) for share in np.quantile(found.containment, SHARES)]


if __name__ == "__main__":
    main()
