"""Compare the verdicts of the service with an exhaustive comparison of all pairs of articles.

    python -m tests.benchmarks.bench_brute_force FILE VERDICTS

FILE holds articles (.jsonl.gz), VERDICTS the output of ``aggregator ingest`` for it. Every article is
compared with all earlier ones, without fingerprint, sketch or index:

* duplicate   the overlap rule of ``dedup/copy_rule.py`` on exact shingle sets;
* related     not a duplicate, and TF-IDF cosine to an earlier article >= cos(7/64 pi) = 0.94, the angle that
              corresponds to 7 differing bits.

Prints both counts and a table of agreement between the two.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import sys
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from tqdm import tqdm

from aggregator.analysis.analyzer import dedup_words
from aggregator.analysis.shingles import OverlapEstimate, shingle_hashes
from aggregator.analysis.text import tokenizer
from aggregator.dedup.evidence import Evidence
from aggregator.dedup.policy import Policy

CHUNK = 256
RELATED_COSINE = math.cos(7 / 64 * math.pi)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("verdicts", metavar="VERDICTS")
    options = parser.parse_args()
    with gzip.open(options.file, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    with open(options.verdicts, encoding="utf-8") as lines:
        verdicts = {v["id"]: v for v in map(json.loads, lines) if "verdict" in v}
    tfidf = _tfidf(rows)
    exact, nearest = brute_force(rows, tfidf)
    print(f"{'':12}{'new':>8}{'related':>9}{'duplicate':>11}")
    for name, found in (
        ("service", [v["verdict"] for v in verdicts.values()]),
        ("brute force", exact.values()),
    ):
        count = Counter(found)
        print(f"{name:12}{count['new']:8}{count['related']:9}{count['duplicate']:11}")
    agree = Counter((exact[i], verdicts[i]["verdict"]) for i in exact if i in verdicts)
    for (expected, actual), n in sorted(agree.items()):
        print(f"brute force {expected:9} -> service {actual:9} {n:7}")
    position = {row["id"]: i for i, row in enumerate(rows)}
    first_related = [
        (position[i], position[v["related"][0]["id"]])
        for i, v in verdicts.items()
        if v["verdict"] == "related" and v["related"]
    ]
    related_cosines = [float((tfidf[a] @ tfidf[b].T).sum()) for a, b in first_related]
    for name, values in (
        ("of related articles to the first related article of the answer", related_cosines),
        (
            "of new articles to the nearest earlier one",
            [nearest[i] for i, v in verdicts.items() if v["verdict"] == "new"],
        ),
    ):
        spread = " ".join(f"{q}%: {np.percentile(values, q):.2f}" for q in (5, 25, 50, 75, 95))
        print(f"exact cosine {name}: {spread}")


def _tfidf(rows: list[dict[str, Any]]) -> sparse.csr_matrix:
    terms = [tokenizer.tokenize(f"{r['title'] or ''}\n{r['text'] or ''}", "en") for r in rows]
    return TfidfVectorizer(analyzer=lambda t: t, sublinear_tf=True, dtype=np.float32).fit_transform(terms)


def brute_force(
    rows: list[dict[str, Any]], tfidf: sparse.csr_matrix
) -> tuple[dict[str, str], dict[str, float]]:
    """Verdict and largest cosine per id, by exhaustive comparison with all earlier rows."""
    shingles = _shingle_matrix(
        [shingle_hashes(dedup_words(r["title"] or "", r["text"] or "", "en")) for r in rows]
    )
    sizes = np.asarray(shingles.sum(axis=1)).ravel()
    found: dict[str, str] = {}
    nearest: dict[str, float] = {}
    for start in tqdm(range(0, len(rows), CHUNK), disable=not sys.stderr.isatty()):
        end = min(start + CHUNK, len(rows))
        shared = (shingles[start:end] @ shingles[:end].T).tocsr()
        cosine = (tfidf[start:end] @ tfidf[:end].T).toarray()
        for i in range(start, end):
            id_ = rows[i]["id"]
            nearest[id_] = float(cosine[i - start, :i].max(initial=0.0))
            found[id_] = _verdict(i, shared[i - start], sizes, cosine[i - start])
    return found, nearest


def _verdict(
    i: int, shared: sparse.csr_matrix, sizes: npt.NDArray[np.float32], cosines: npt.NDArray[np.float32]
) -> str:
    policy = Policy()
    for j, common in zip(shared.indices, shared.data, strict=True):
        if j < i:
            small, large = sorted((sizes[i], sizes[j]))
            overlap = OverlapEstimate(
                common / small, common / (small + large - common), common, small / large
            )
            if policy.copy_rule.is_copy(Evidence(overlap, cosines[j]), lambda: 0.0):
                return "duplicate"
    return "related" if cosines[:i].max(initial=0.0) >= RELATED_COSINE else "new"


def _shingle_matrix(hashes: list[np.ndarray]) -> sparse.csr_matrix:
    lengths = [len(h) for h in hashes]
    _, columns = np.unique(np.concatenate(hashes), return_inverse=True)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return sparse.csr_matrix((np.ones(len(columns), np.float32), columns, starts))


if __name__ == "__main__":
    main()
