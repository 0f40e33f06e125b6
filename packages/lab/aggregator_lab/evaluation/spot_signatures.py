"""SpotSigs (Theobald, Siddharth & Paepcke, SIGIR 2008).

A **spot signature** is the chain of the next content words behind an antecedent, a frequent word such as
"the" or "is": running text has many, navigation hardly any. Two texts are compared by the multiset Jaccard
coefficient of their signatures. Antecedents, spot distance 1, chains of one word and the least number of
signatures are those of the configuration that the authors released with their program; its filter by inverse
document frequency is left out, and the stop words are ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from aggregator.analysis.text import tokenizer
from aggregator.domain import Article
from aggregator_archive.arrays import Floats, Rows
from aggregator_lab.evaluation.vectors import ScoredPairs

_ENGLISH = "the be is are was will would shall should can could has have had do did does done"
ANTECEDENTS = frozenset([*_ENGLISH.split(), "un", "une", "le", "la", "el", "al"])
CHAIN_WORDS = 1
MIN_SIGNATURES = 4
_LANG = "en"


def spot_signatures(text: str) -> list[str]:
    """Signatures of a text in order, with repetitions; none for a text with fewer than ``MIN_SIGNATURES``."""
    words = tokenizer.words(text, _LANG)
    stops = tokenizer.stop_words(_LANG) | ANTECEDENTS
    content = [at for at, word in enumerate(words) if word not in stops]
    signatures = []
    following = 0
    for at, word in enumerate(words):
        if word in ANTECEDENTS:
            while following < len(content) and content[following] <= at:
                following += 1
            chain = content[following : following + CHAIN_WORDS]
            if chain:
                signatures.append(":".join(words[position] for position in chain))
    return signatures if len(signatures) >= MIN_SIGNATURES else []


def spotsigs(articles: Sequence[Article]) -> ScoredPairs:
    """Multiset Jaccard coefficient of the spot signatures, for pairs above 0."""
    return ScoredPairs(*_jaccard([spot_signatures(a.text or a.title) for a in articles]))


def _jaccard(signatures: Sequence[Sequence[str]]) -> tuple[Rows, Rows, Floats]:
    """Pairs a < b that share a signature, and sum of minimum counts / sum of maximum counts."""
    from scipy.sparse import csr_matrix

    columns: dict[tuple[str, int], int] = {}
    indices: list[int] = []
    ends = [0]
    for items in signatures:
        # The i-th occurrence of a signature is an element: multisets become sets.
        for signature, count in Counter(items).items():
            indices += [columns.setdefault((signature, i), len(columns)) for i in range(count)]
        ends.append(len(indices))
    shape = (len(signatures), max(1, len(columns)))
    matrix = csr_matrix((np.ones(len(indices), np.float32), indices, ends), shape=shape)
    common = (matrix @ matrix.T).tocoo()
    upper = common.row < common.col
    a, b = common.row[upper].astype(np.int64), common.col[upper].astype(np.int64)
    shared = common.data[upper].astype(np.float64)
    sizes = np.diff(ends)
    return a, b, shared / (sizes[a] + sizes[b] - shared)
