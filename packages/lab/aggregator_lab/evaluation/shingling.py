"""Online shingling with an overlap test: our reading of Rodier & Carter (LREC 2020), after Broder (1997).

An article is the set of its word shingles; a sample of them is kept, whose smallest hashes are the sketch.
Earlier articles that share enough of the sketch are candidates; the one with the highest overlap coefficient
is the original if that is high enough. The settings, with the letters of the paper:

    n  words per shingle
    k  one shingle in k is sampled (those whose hash is divisible by k; 1: all)
    p  sketch size, in sampled shingles
    t  shared sketch shingles (collisions) of a candidate
    f  leading share of the text that is used, 0..1
    r  minimum overlap coefficient |A and B| / min(|A|, |B|) of the samples of a near-duplicate, 0..1

A word is a shingle unit of the service. The results are not those of the paper.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from statistics import mean
from typing import Any

import numpy as np
import numpy.typing as npt

from aggregator.analysis.shingles import SHINGLE_WORDS, distinct, hashes_in_order, word_hash
from aggregator.analysis.text.tokenizer import shingle_units
from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator_lab.evaluation.online_protocol import count_decisions, mean_scores
from aggregator_lab.labeled import DEFAULT_LANG, LabeledArticle, labelings, shuffle

MAX_SHINGLE_WORDS = 5  # limit of ``shingle_hashes``
CACHED_OVERLAPS = 2_000_000


def shingle_hashes(words: Sequence[str], width: int = SHINGLE_WORDS) -> npt.NDArray[np.uint64]:
    """Sorted distinct hashes, (n,) uint64, of all runs of ``width`` words; fewer words are one shingle."""
    return distinct(hashes_in_order(np.fromiter(map(word_hash, words), np.uint64, len(words)), width))


@dataclass(frozen=True, slots=True)
class ShinglingSettings:
    """One setting; the fields are described in the module docstring."""

    n: int = 3
    k: int = 1
    p: int = 32
    t: int = 1
    f: float = 1.0
    r: float = 0.2


OUR_VALUES: Mapping[str, list[Any]] = {
    "n": [2, 3, 5],
    "k": [1, 8],
    "p": [8, 64],
    "t": [1, 2],
    "f": [1.0],
    "r": [0.1, 0.2, 0.4],
}
COMPARED_SETTING = ShinglingSettings(p=64)  # shown in addition to the published rule


@dataclass(frozen=True, slots=True)
class Decision:
    """Decision about one article. ``original``: id of the earlier article that it duplicates, else None."""

    id: str
    original: str | None
    overlap: float
    candidates: int


@dataclass(frozen=True, slots=True)
class SettingResult:
    """One setting under one labeling: means over all orders and the lowest F1, each 0..1.

    candidates  mean number of candidates per article
    """

    setting: ShinglingSettings
    labels: str
    precision: float
    recall: float
    f1: float
    f1_lowest: float
    candidates: float

    def as_json(self) -> dict[str, Any]:
        """Setting and measures in one flat object."""
        measures = ("precision", "recall", "f1", "f1_lowest", "candidates")
        rounded = {name: round(getattr(self, name), 4) for name in measures}
        return asdict(self.setting) | {"labels": self.labels} | rounded


class ShingleSamples:
    """Shingle samples of articles under one (n, k, f), by id."""

    def __init__(self, by_id: Mapping[str, frozenset[int]]) -> None:
        self.by_id = by_id
        self._overlap = lru_cache(CACHED_OVERLAPS)(lambda a, b: containment(by_id[a], by_id[b]))

    def overlap(self, a: str, b: str) -> float:
        """Overlap coefficient of two articles, computed once for several orders or settings."""
        return self._overlap(min(a, b), max(a, b))


def containment(a: frozenset[Any], b: frozenset[Any]) -> float:
    """``|a and b| / min(|a|, |b|)``; 0 if either is empty."""
    smaller = min(len(a), len(b))
    return len(a & b) / smaller if smaller else 0.0


def sample_texts(
    texts: Mapping[str, str], n: int, k: int, f: float, languages: Mapping[str, str] | None = None
) -> ShingleSamples:
    """Samples of ``texts`` (id -> text); settings as in the module docstring.

    ``languages``: id -> ISO 639-1, ``DEFAULT_LANG`` if missing.
    """
    samples, known = {}, languages or {}
    for id_, text in texts.items():
        tokens = shingle_units(text, known.get(id_, DEFAULT_LANG))
        hashes = shingle_hashes(tokens[: max(1, round(len(tokens) * f))], n)
        samples[id_] = frozenset(hash_ for hash_ in hashes.tolist() if hash_ % k == 0)
    return ShingleSamples(samples)


def decide_in_order(
    order: Sequence[str], samples: ShingleSamples, setting: ShinglingSettings
) -> list[Decision]:
    """Decide every article of ``order`` (ids) against those before it.

    The candidate with the highest overlap is chosen, of several the earliest. Duplicates are indexed too.
    """
    index: dict[int, list[int]] = defaultdict(list)
    decisions = []
    for position, id_ in enumerate(order):
        sketch = sorted(samples.by_id[id_])[: setting.p]
        hits = Counter(itertools.chain.from_iterable(index[value] for value in sketch))
        candidates = sorted(earlier for earlier, collisions in hits.items() if collisions >= setting.t)
        best, overlap = None, 0.0
        for earlier in candidates:
            value = samples.overlap(id_, order[earlier])
            if value >= setting.r and value > overlap:
                best, overlap = order[earlier], value
        decisions.append(Decision(id_, best, overlap, len(candidates)))
        for value in sketch:
            index[value].append(position)
    return decisions


def settings_grid(
    n: Iterable[int],
    k: Iterable[int],
    p: Iterable[int],
    t: Iterable[int],
    f: Iterable[float],
    r: Iterable[float],
) -> list[ShinglingSettings]:
    """Every combination of the values except impossible ones (t > p), grouped by (n, k, f).

    Raises InvalidInput for values out of range.
    """
    n, f, r, t = list(n), list(f), list(r), list(t)
    if min(t) < 1:
        raise InvalidInput("A candidate must share at least 1 sketch shingle (t).")
    check_values(n, [*f, *r])
    combined = itertools.product(n, k, f, p, t, r)
    return [ShinglingSettings(n_, k_, p_, t_, f_, r_) for n_, k_, f_, p_, t_, r_ in combined if t_ <= p_]


def check_values(n: Sequence[int], shares: Iterable[float]) -> None:
    """Raise InvalidInput for words per shingle, leading shares or overlaps out of range."""
    if max(n) > MAX_SHINGLE_WORDS:
        raise InvalidInput(f"A shingle must have at most {MAX_SHINGLE_WORDS} words, not {max(n)}.")
    if not all(0 < share <= 1 for share in shares):
        raise InvalidInput("The leading share (f) and the overlap (r) must be above 0 and at most 1.")


def evaluate(
    gold: Sequence[LabeledArticle],
    settings: Sequence[ShinglingSettings],
    *,
    orders: int = 1,
    background: Sequence[Article] = (),
    order: Callable[[Sequence[LabeledArticle], int], list[LabeledArticle]] = shuffle,
) -> list[SettingResult]:
    """One line per setting and labeling, over the seeded random orders, or those of ``order``.

    ``background`` articles come before the labeled ones; a match with one of them counts as false.
    """
    before = [article.id for article in background]
    articles = [*background, *(item.article for item in gold)]
    texts = {article.id: article.text or article.title for article in articles}
    languages = {article.id: article.lang or DEFAULT_LANG for article in articles}
    labels_by_labeling = labelings(gold)
    shuffled = [[item.article.id for item in order(gold, seed)] for seed in range(orders)]
    lines: list[SettingResult] = []
    for (n, k, f), group in itertools.groupby(settings, key=lambda s: (s.n, s.k, s.f)):
        samples = sample_texts(texts, n, k, f, languages)
        for setting in group:
            decided = [decide_in_order(before + ids, samples, setting)[len(before) :] for ids in shuffled]
            lines += [
                _summarize_orders(setting, labeling, label_by_id, decided)
                for labeling, label_by_id in labels_by_labeling.items()
            ]
    return lines


def format_table(lines: Sequence[SettingResult]) -> str:
    """Table for a terminal: one line per setting, a group of columns per labeling."""
    names = list(dict.fromkeys(line.labels for line in lines))
    head = f"{'n':>2} {'k':>3} {'p':>4} {'t':>3} {'f':>5} {'r':>5} {'cand.':>6}"
    table = [f"{'':33}" + "".join(f" | {name:27}" for name in names)]
    table.append(head + "".join(f" | {'P':>6} {'R':>6} {'F1':>6} {'lowest':>6}" for _ in names))
    for at in range(0, len(lines), len(names)):
        s = lines[at].setting
        row = f"{s.n:2} {s.k:3} {s.p:4} {s.t:3} {s.f:5.2f} {s.r:5.2f} {lines[at].candidates:6.1f}"
        for line in lines[at : at + len(names)]:
            row += f" | {line.precision:6.3f} {line.recall:6.3f} {line.f1:6.3f} {line.f1_lowest:6.3f}"
        table.append(row)
    return "\n".join(table)


def _summarize_orders(
    setting: ShinglingSettings,
    labeling: str,
    label_by_id: Mapping[str, str],
    orders: Sequence[Sequence[Decision]],
) -> SettingResult:
    counts = (count_decisions(((d.id, d.original) for d in order), label_by_id) for order in orders)
    candidates = mean(decision.candidates for decisions in orders for decision in decisions)
    return SettingResult(setting, labeling, *mean_scores(counts), candidates)
