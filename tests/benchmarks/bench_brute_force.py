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

from aggregator.analysis.analyzer import dedup_words
from aggregator.analysis.shingles import OverlapEstimate, shingle_hashes
from aggregator.analysis.text import tokenizer
from aggregator.dedup.verdict import Policy, is_copy

CHUNK = 256
RELATED_COSINE = math.cos(7 / 64 * math.pi)


def main(file: str, verdicts: str) -> None:
    """Compare and print."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    with open(verdicts, encoding="utf-8") as lines:
        ours = {v["id"]: v for v in map(json.loads, lines) if "verdict" in v}
    tfidf = _tfidf(rows)
    exact, nearest = brute_force(rows, tfidf)
    print(f"{'':12}{'new':>8}{'related':>9}{'duplicate':>11}")
    for name, found in (("service", [v["verdict"] for v in ours.values()]), ("brute force", exact.values())):
        count = Counter(found)
        print(f"{name:12}{count['new']:8}{count['related']:9}{count['duplicate']:11}")
    agree = Counter((exact[i], ours[i]["verdict"]) for i in exact if i in ours)
    for (truth, mine), n in sorted(agree.items()):
        print(f"brute force {truth:9} -> service {mine:9} {n:7}")
    place = {row["id"]: i for i, row in enumerate(rows)}
    shown = [
        (place[i], place[v["related"][0]["id"]])
        for i, v in ours.items()
        if v["verdict"] == "related" and v["related"]
    ]
    of_shown = [float((tfidf[a] @ tfidf[b].T).sum()) for a, b in shown]
    for name, values in (
        ("of related articles to the first one shown", of_shown),
        (
            "of new articles to the nearest earlier one",
            [nearest[i] for i, v in ours.items() if v["verdict"] == "new"],
        ),
    ):
        spread = " ".join(f"{q}%: {np.percentile(values, q):.2f}" for q in (5, 25, 50, 75, 95))
        print(f"exact cosine {name}: {spread}")


def _tfidf(rows: list[dict]) -> sparse.csr_matrix:
    terms = [tokenizer.tokenize(f"{r['title'] or ''}\n{r['text'] or ''}", "en") for r in rows]
    return TfidfVectorizer(analyzer=lambda t: t, sublinear_tf=True, dtype=np.float32).fit_transform(terms)


def brute_force(rows: list[dict], tfidf: sparse.csr_matrix) -> tuple[dict[str, str], dict[str, float]]:
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


def _verdict(i: int, shared: sparse.csr_matrix, sizes: np.ndarray, cosines: np.ndarray) -> str:
    policy = Policy()
    for j, common in zip(shared.indices, shared.data, strict=True):
        if j < i:
            small, large = sorted((sizes[i], sizes[j]))
            overlap = OverlapEstimate(
                common / small, common / (small + large - common), common, small / large
            )
            if is_copy(overlap, cosines[j], policy):
                return "duplicate"
    return "related" if cosines[:i].max(initial=0.0) >= RELATED_COSINE else "new"


def _shingle_matrix(hashes: list[np.ndarray]) -> sparse.csr_matrix:
    lengths = [len(h) for h in hashes]
    _, columns = np.unique(np.concatenate(hashes), return_inverse=True)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return sparse.csr_matrix((np.ones(len(columns), np.float32), columns, starts))


if __name__ == "__main__":
    main(*sys.argv[1:])
