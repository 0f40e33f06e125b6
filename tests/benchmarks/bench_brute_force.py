"""What would an exhaustive comparison have said? ``python tests/benchmarks/bench_brute_force.py FILE VERDICTS``

FILE holds articles (.jsonl.gz), VERDICTS the lines ``aggregator ingest`` wrote for it. Every article is
compared with all earlier ones, without fingerprint, sketch or index:

* duplicate   the overlap rule of ``verdict.py`` on exact shingle sets;
* related     not a duplicate, and TF-IDF cosine to an earlier article >= cos(7/64 pi) = .94, the
              angle that seven differing bits stand for.

Prints both counts side by side and how the verdicts agree, article by article.
"""

import gzip
import json
import math
import sys
from collections import Counter

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from tqdm import tqdm

from aggregator.analyse import worded
from aggregator.overlap import Overlap, shingle_hashes
from aggregator.text import tokens
from aggregator.verdict import Policy, is_copy

CHUNK = 256
RELATED_COSINE = math.cos(7 / 64 * math.pi)


def main(file: str, verdicts: str) -> None:
    """Compare and print."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        exact = brute_force([json.loads(line) for line in lines])
    with open(verdicts, encoding="utf-8") as lines:
        ours = {v["id"]: v["verdict"] for v in map(json.loads, lines) if "verdict" in v}
    print(f"{'':12}{'new':>8}{'related':>9}{'duplicate':>11}")
    for name, found in (("service", ours.values()), ("brute force", exact.values())):
        count = Counter(found)
        print(f"{name:12}{count['new']:8}{count['related']:9}{count['duplicate']:11}")
    agree = Counter((exact[i], ours[i]) for i in exact if i in ours)
    for (truth, mine), n in sorted(agree.items()):
        print(f"brute force {truth:9} -> service {mine:9} {n:7}")


def brute_force(rows: list[dict]) -> dict[str, str]:
    """Verdict per id by exhaustive comparison with all earlier rows."""
    titles, texts = [r["title"] or "" for r in rows], [r["text"] or "" for r in rows]
    shingles = _shingle_matrix(
        [shingle_hashes(worded(a, b, "en")) for a, b in zip(titles, texts, strict=True)]
    )
    terms = [tokens.tokenize(f"{a}\n{b}", "en") for a, b in zip(titles, texts, strict=True)]
    tfidf = TfidfVectorizer(analyzer=lambda t: t, sublinear_tf=True, dtype=np.float32).fit_transform(terms)
    sizes = np.asarray(shingles.sum(axis=1)).ravel()
    found: dict[str, str] = {}
    for start in tqdm(range(0, len(rows), CHUNK), disable=not sys.stderr.isatty()):
        end = min(start + CHUNK, len(rows))
        shared = (shingles[start:end] @ shingles[:end].T).tocsr()
        cosine = (tfidf[start:end] @ tfidf[:end].T).toarray()
        for i in range(start, end):
            found[rows[i]["id"]] = _verdict(i, shared[i - start], sizes, cosine[i - start, :i])
    return found


def _verdict(i: int, shared: sparse.csr_matrix, sizes: np.ndarray, cosine: np.ndarray) -> str:
    policy = Policy()
    for j, common in zip(shared.indices, shared.data, strict=True):
        if j < i:
            small, large = sorted((sizes[i], sizes[j]))
            if is_copy(
                Overlap(common / small, common / (small + large - common), common, small / large), policy
            ):
                return "duplicate"
    return "related" if len(cosine) and cosine.max() >= RELATED_COSINE else "new"


def _shingle_matrix(hashes: list[np.ndarray]) -> sparse.csr_matrix:
    lengths = [len(h) for h in hashes]
    _, columns = np.unique(np.concatenate(hashes), return_inverse=True)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return sparse.csr_matrix((np.ones(len(columns), np.float32), columns, starts))


if __name__ == "__main__":
    main(*sys.argv[1:])
