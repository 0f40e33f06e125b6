"""Quality and cost of feature models by fit settings; prints the tables of docs/benchmarks/models.md.

    python -m tests.benchmarks.bench_models [--data DIR] [--terms 10000 20000 30000] [--counts log power raw]
        [--centring direction mean none] [--components 64 128 ...] [--hyperplanes hashed orthogonal learned]
        [--whiten -1.25 0 0.5] [--draws 3]

Fits on 3/5 of the English corpus and measures

* copies: SpotSigs in the online protocol (pages in random order, each against all earlier ones; the nearest
  within the radius counts; label groups that share texts merged): precision P and recall R at 3 and 7 bits;
* pairs:  recall of all SpotSigs pairs of one (merged) cluster at 3 and 7 bits;
* edits:  share of the articles of ``home`` within 7 bits of an edited version: cut, begun later, sentences
  dropped, a passage of another article added before or after;
* home:   the other 2/5 of the corpus; away: as many items of Reuters-21578, of another time and subject.
  Collisions per article: others within 3 or 7 bits whose TF-IDF cosine is below 0.3, so unrelated;
* titles: collisions among 4,000 headlines of 2025 without a text;
* bucket: the fullest 16-bit bucket of the 4x16 plan in home, away and titles;
* reads:  stored entries that a look-up within 7 bits reads, with all three in one index of about 15,000.

Every figure is the mean over ``--draws`` sets of hyperplanes, since a single set changes recall by about
0.01. One thread; about four minutes per vocabulary size.
"""

from __future__ import annotations

import argparse
import itertools
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from aggregator.analysis.simhash import hash_signs
from aggregator.analysis.text.tokenizer import tokenize
from aggregator.index.blocks import DEFAULT_PLAN
from aggregator.offline import fitting
from aggregator.offline.fitting import FitSettings
from aggregator.offline.jsonl import read_rows
from tests.support.development_data import DATA

MERGED_LABELS = (
    ("Legal_Summons", "Subpoena", "Lindsay"),
    ("Headlines", "Pelosi", "Snuff"),
    ("Caffeine", "Drink"),
    ("Florida", "Planned"),
    ("Paparazzi", "Plea"),
)
CENTRING: tuple[Literal["direction", "mean", "none"], ...] = ("direction", "mean", "none")
BACKGROUNDS = ("home", "away", "titles")
COMPONENTS = (64, 128, 160, 192, 256)
HYPERPLANES = ("hashed", "orthogonal", "learned")
WHITEN = (0.0, 0.5)
UNRELATED_BELOW = 0.3
HEAD = (
    "| terms | counts | centring | components | hyperplanes | whiten | P <= 3 | R <= 3 | P <= 7 | R <= 7 "
    "| pairs <= 3 | pairs <= 7 | edits <= 7 | home <= 3 | home <= 7 | away <= 3 | away <= 7 "
    "| titles <= 3 | titles <= 7 | bucket home | away | titles | reads |"
)


def main() -> None:
    options = _options()
    corpus = Corpus(options.data)
    print(HEAD)
    print("| --- " * HEAD.count(" | ") + "| --- |")
    for terms, counts, centring in itertools.product(options.terms, options.counts, options.centring):
        settings = FitSettings(
            terms=terms, counts=counts, centring=centring, components=max(options.components)
        )
        fitted = fitting.fit(corpus.fit, "en", settings)
        groups = {**corpus.groups, "fit": corpus.fit}
        projected = {name: _components(fitted, tokens) for name, tokens in groups.items()}
        for row in _rows(corpus, fitted.variance, projected, options):
            print(f"| {len(fitted.model.vocabulary)} | {counts} | {centring} | {row}", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default=DATA, type=Path)
    parser.add_argument("--terms", type=int, nargs="+", default=[10_000, 20_000, 30_000])
    parser.add_argument("--counts", nargs="+", default=["log"], choices=("log", "power", "raw"))
    parser.add_argument("--centring", nargs="+", default=CENTRING, choices=CENTRING)
    parser.add_argument("--components", type=int, nargs="+", default=COMPONENTS)
    parser.add_argument("--hyperplanes", nargs="+", default=HYPERPLANES[:2], choices=HYPERPLANES)
    parser.add_argument("--whiten", type=float, nargs="+", default=WHITEN)
    parser.add_argument("--draws", type=int, default=3)
    return parser.parse_args()


class Corpus:
    """The development data as index terms, by group, with labels and TF-IDF vectors."""

    def __init__(self, data: Path) -> None:
        allsides = [tokens for tokens, _ in _articles(data / "allsides_dev.jsonl.gz")]
        self.fit = [tokens for i, tokens in enumerate(allsides) if i % 5 < 3]
        home = [tokens for i, tokens in enumerate(allsides) if i % 5 >= 3]
        away = (tokens for tokens, _ in _articles(data / "reuters21578_dev.jsonl.gz") if len(tokens) >= 30)
        rng = random.Random(0)
        pages = list(_articles(data / "spotsigs_dev.jsonl.gz"))
        self.groups = {
            "copies": [tokens for tokens, _ in pages],
            "home": home,
            "edited": [_edited(tokens, rng.choice(self.fit), rng) for tokens in home],
            "away": list(itertools.islice(away, len(home))),
            "titles": _titles(data / "headlines_en_dev.jsonl.gz", 4000),
        }
        clusters = [_merged(row["cluster"]) for _, row in pages]
        numbers = {name: number for number, name in enumerate(sorted(set(clusters)))}
        self.labels = np.array([numbers[name] for name in clusters])
        self.tfidf = self._tfidf()

    def _tfidf(self) -> dict[str, sparse.csr_matrix]:
        counter = CountVectorizer(analyzer=list, min_df=2)
        weigher = TfidfTransformer(sublinear_tf=True).fit(counter.fit_transform(self.fit))
        return {name: weigher.transform(counter.transform(self.groups[name])) for name in BACKGROUNDS}


def _articles(path: Path) -> Iterator[tuple[list[str], dict[str, Any]]]:
    for row in read_rows([str(path)]):
        yield tokenize(f"{row['title'] or ''}\n{row['text'] or ''}", "en"), row


def _edited(tokens: list[str], other: list[str], rng: random.Random) -> list[str]:
    """Simulated edit of an article; works on pieces of ten terms, since sentences are not known."""
    pieces = [tokens[at : at + 10] for at in range(0, len(tokens), 10)]
    begin = int(len(pieces) * rng.uniform(0, 0.3)) if rng.random() < 0.2 else 0
    kept = pieces[begin : begin + max(1, int(len(pieces) * rng.uniform(0.3, 1)))]
    if rng.random() < 0.5:
        kept = [piece for piece in kept if rng.random() > 0.25] or kept
    added = other[: int(10 * len(kept) * rng.uniform(0, 0.5))] if rng.random() < 0.5 else []
    text = list(itertools.chain.from_iterable(kept))
    return added + text if rng.random() < 0.4 else text + added


def _titles(path: Path, count: int) -> list[list[str]]:
    """Headlines of at least five terms, evenly spaced over the file."""
    token_lists = [tokens for tokens, _ in _articles(path) if len(tokens) >= 5]
    return token_lists[:: len(token_lists) // count][:count]


def _merged(cluster: str) -> str:
    return next((group[0] for group in MERGED_LABELS if cluster in group), cluster)


def _components(fitted: fitting.FitResult, token_lists: list[list[str]]) -> np.ndarray:
    counter = CountVectorizer(analyzer=list, vocabulary=fitted.model.vocabulary)
    x = fitted.tfidf.transform(fitting._apply_power(counter.transform(token_lists), fitted.settings))
    return fitting._project(x, fitted.axes, fitted.mean, fitted.variance, fitted.settings)


def _rows(
    corpus: Corpus, variance: np.ndarray, projected: dict[str, np.ndarray], options: argparse.Namespace
) -> Iterator[str]:
    for count, kind, whiten in itertools.product(options.components, options.hyperplanes, options.whiten):
        scale = variance[:count] ** (-whiten / 2)
        figures = []
        for draw in range(options.draws):
            normals = hash_signs(f"pca:{j + 1000 * draw}" for j in range(count))
            if kind != "hashed":
                normals = np.linalg.qr(normals)[0]
            if kind == "learned":
                normals = fitting._rotate_hyperplanes(normals, projected["fit"][:, :count] * scale)
            bits = {name: _pack((c[:, :count] * scale) @ normals) for name, c in projected.items()}
            figures.append(_figures(corpus, bits))
        cells = " | ".join(_cell(value) for value in np.mean(figures, axis=0))
        yield f"{count} | {kind} | {whiten:g} | {cells} |"


def _pack(sums: np.ndarray) -> np.ndarray:
    return np.packbits(sums > 0, axis=1, bitorder="little").view("<u8")[:, 0]


def _cell(value: float) -> str:
    return f"{value:.0f}" if value >= 5 else f"{value:.4f}" if value < 0.1 else f"{value:.3f}"


def _figures(corpus: Corpus, bits: dict[str, np.ndarray]) -> list[float]:
    distances = np.bitwise_count(bits["copies"][:, None] ^ bits["copies"][None])
    figures = [value for radius in (3, 7) for value in _online(distances, corpus.labels, radius)]
    figures += [_pair_recall(distances, corpus.labels, radius) for radius in (3, 7)]
    figures.append(float((np.bitwise_count(bits["home"] ^ bits["edited"]) <= 7).mean()))
    figures += [_collisions(bits[n], corpus.tfidf[n], r) for n in BACKGROUNDS for r in (3, 7)]
    figures += [_fullest_bucket(bits[name]) for name in BACKGROUNDS]
    return [*figures, _entries_read(np.concatenate([bits[name] for name in BACKGROUNDS]))]


def _online(distances: np.ndarray, labels: np.ndarray, radius: int, orders: int = 2) -> tuple[float, float]:
    precision = recall = 0.0
    for seed in range(orders):
        order = np.random.default_rng(seed).permutation(len(labels))
        earlier, arrived = distances[np.ix_(order, order)].astype(np.int16), labels[order]
        earlier[np.triu_indices(len(order))] = 99
        nearest = earlier.argmin(axis=1)
        found = earlier[np.arange(len(order)), nearest] <= radius
        correct = (found & (arrived[nearest] == arrived)).sum()
        precision += correct / max(found.sum(), 1) / orders
        recall += correct / (len(labels) - len(set(labels.tolist()))) / orders
    return precision, recall


def _pair_recall(distances: np.ndarray, labels: np.ndarray, radius: int) -> float:
    same = np.triu(labels[:, None] == labels[None], 1)
    return float((distances[same] <= radius).mean())


def _collisions(bits: np.ndarray, tfidf: sparse.csr_matrix, radius: int, step: int = 250) -> float:
    unrelated = 0
    for start in range(0, len(bits), step):
        near = np.bitwise_count(bits[start : start + step, None] ^ bits[None]) <= radius
        a, b = np.nonzero(near)
        later = a + start < b
        a, b = a[later] + start, b[later]
        cosine = np.asarray(tfidf[a].multiply(tfidf[b]).sum(axis=1)).ravel()
        unrelated += int((cosine < UNRELATED_BELOW).sum())
    return 2 * unrelated / len(bits)


def _fullest_bucket(bits: np.ndarray) -> int:
    values = np.array([DEFAULT_PLAN.block_values(fingerprint) for fingerprint in bits.tolist()])
    return max(int(np.bincount(column).max()) for column in values.T)


def _entries_read(bits: np.ndarray, every: int = 10) -> float:
    stored: Counter[tuple[int, int]] = Counter()
    for fingerprint in bits.tolist():
        stored.update(enumerate(DEFAULT_PLAN.block_values(fingerprint)))
    queries = bits[::every].tolist()
    return sum(stored[key] for query in queries for key in DEFAULT_PLAN.probes(query, 7)) / len(queries)


if __name__ == "__main__":
    main()
