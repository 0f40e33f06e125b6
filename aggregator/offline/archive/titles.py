"""Which candidates are alike enough, given their titles? The rule of ``titled.py`` for many pairs at once.

The cosine is of term weights of this corpus (``vectors.tfidf``). Texts are read again for it, and those of all
candidates are in memory at once: a comparison for corpora of up to some hundred thousand articles.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from aggregator.dedup.title_rule import required_similarity, title_similarity
from aggregator.offline.archive.checkpoint import save_arrays
from aggregator.offline.archive.job import Job
from aggregator.offline.archive.pairs import Pairs, unpack_pairs
from aggregator.offline.archive.vector_candidates import comparable_text, read_articles
from aggregator.offline.archive.vectors import Vectors, tfidf

Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_PAIRS_PER_SLICE = 1 << 16


def filter_by_title_rule(job: Job, chunks: Sequence[Path], pairs: Pairs) -> Pairs:
    """Those candidates whose cosine is what their titles ask for; kept in a file for a run that is taken up again."""
    file = job.work_dir / "confirmed" / "titled" / "pairs.npz"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        save_arrays(file, pairs=pairs[_title_rule_mask(job, chunks, *unpack_pairs(pairs))])
    with np.load(file) as arrays:
        found: Pairs = arrays["pairs"]
    return found


def _title_rule_mask(job: Job, chunks: Sequence[Path], a: Rows, b: Rows) -> npt.NDArray[np.bool_]:
    if not len(a):
        return np.zeros(0, bool)
    chosen, place = np.unique(np.concatenate([a, b]), return_inverse=True)
    a, b = place[: len(a)], place[len(a) :]
    found = read_articles(job, chunks, chosen)
    titles = [(one.title, one.lang or job.encoding.lang or "en") for one in found]
    cosines = pair_products(tfidf([comparable_text(one) for one in found]), a, b)
    # A title alone is its own text: were it to lower what is asked for, it would speak twice.
    required = required_similarities(
        [title if one.text else ("", "en") for one, title in zip(found, titles, strict=True)], a, b
    )
    return cosines >= required


def pair_products(vectors: Vectors, a: Rows, b: Rows) -> Floats:
    """(n,) the product of each pair of sparse rows."""
    parts = [np.empty(0)]
    for start in range(0, len(a), _PAIRS_PER_SLICE):
        some = slice(start, start + _PAIRS_PER_SLICE)
        parts.append(np.asarray(vectors[a[some]].multiply(vectors[b[some]]).sum(axis=1)).ravel())
    return np.concatenate(parts)


def required_similarities(titles: Sequence[tuple[str, str]], a: Rows, b: Rows) -> Floats:
    """(n,) the least cosine of each pair of rows; ``titles``: title and language of each row."""
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    found = (required_similarity(title_similarity(*titles[one], *titles[other])) for one, other in pairs)
    return np.fromiter(found, np.float64, len(a))
