"""Online shingling by the published rule: Rodier & Carter (LREC 2020). No overlap is computed.

    n  words per shingle, as in ``shingling.py``
    f  leading fraction of the text that is used, 0..1
    p  permutations of the shingle hashes
    k  hashes sampled from each permutation: the smallest ones
    t  an article is a near-duplicate of an earlier one if they have more than t collisions (equal samples of
       one permutation); the one with most collisions, of equal ones the earliest, is its original

Articles marked ``original`` are decided before the others, both in seeded random order. The values in the
paper's Table 2, its tokenizer, hash and sampling are not on record here: ``GRID_VALUES`` and
``COMPARED_SETTING`` are ours, and a setting is chosen by cross-validation over clusters.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from aggregator.analysis.text.tokenizer import shingle_units
from aggregator.domain import Article
from aggregator_lab.evaluation.online_protocol import DecisionCounts, count_decisions, mean_scores
from aggregator_lab.evaluation.shingling import Decision, check_values, shingle_hashes
from aggregator_lab.labeled import DEFAULT_LANG, LabeledArticle, labelings, originals_first

# Not those of the paper's Table 2.
GRID_VALUES: Mapping[str, list[Any]] = {
    "n": [3, 5],
    "k": [1, 4],
    "p": [8, 32],
    "t": [0, 1, 3, 7, 15],
    "f": [0.5, 1.0],
}
# Table 4 of the paper: F1 on the SpotSigs gold set, with the names printed there.
TABLE_4 = (
    ("ANDD-Raw", 0.956),
    ("NRC-GPHIN", 0.955),
    ("ANDD-LSH-Cos", 0.943),
    ("SpotSigs", 0.94),
    ("SigNCD", 0.92),
)
_SEED = 2020

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class PublishedSettings:
    """One setting; the fields are described in the module docstring."""

    n: int = 3
    k: int = 1
    p: int = 32
    t: int = 3
    f: float = 1.0


COMPARED_SETTING = PublishedSettings()  # of ``evaluate duplicates --compare published``; ours


@dataclass(frozen=True, slots=True)
class PublishedResult:
    """One setting under one labeling: means over all orders, 0..1.

    held_out  whether the measures are those of the clusters that did not choose the setting
    """

    setting: PublishedSettings | None
    labels: str
    precision: float
    recall: float
    f1: float
    f1_lowest: float
    held_out: bool = False

    def as_json(self) -> dict[str, Any]:
        """Setting (None for the cross-validated row, which has two) and measures in one flat object."""
        measures = {
            name: round(getattr(self, name), 4) for name in ("precision", "recall", "f1", "f1_lowest")
        }
        setting = asdict(self.setting) if self.setting else {}
        return {**setting, "labels": self.labels, **measures, "held_out": self.held_out}


def sketch(text: str, n: int, k: int, p: int, f: float, lang: str = DEFAULT_LANG) -> Hashes:
    """(up to k * p,) samples of the leading fraction ``f``: the k smallest hashes under each permutation."""
    tokens = shingle_units(text, lang)
    hashes = shingle_hashes(tokens[: max(1, round(len(tokens) * f))], n)
    if not len(hashes):
        return hashes
    permuted = _permute(hashes, np.random.default_rng(_SEED).integers(0, 2**63, p, np.uint64))
    kept = min(k, len(hashes))
    return np.sort(np.partition(permuted, kept - 1, axis=1)[:, :kept].ravel())


def _permute(hashes: Hashes, seeds: Hashes) -> Hashes:
    """(p, h) bijections of 64-bit values. Samples of two permutations are equal by chance only (2**-64)."""
    mixed = hashes[None, :] ^ seeds[:, None]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


class Nearest(NamedTuple):
    """Article with the earlier one of the highest collision count; of equal ones the earliest."""

    id: str
    original: str
    collisions: int
    samples: int

    def decide(self, t: int) -> Decision:
        """Decision at more than ``t`` collisions; ``overlap``: share of the samples that collide."""
        if self.collisions <= t:
            return Decision(self.id, None, 0.0, 0)
        return Decision(self.id, self.original, self.collisions / self.samples, 1)


def nearest_earlier(order: Sequence[str], sketches: Mapping[str, Hashes]) -> list[Nearest]:
    """The most likely original of every article of ``order`` (ids) among those before it, copies included."""
    index: dict[int, list[int]] = defaultdict(list)
    nearest = []
    for position, id_ in enumerate(order):
        samples = sketches[id_].tolist()
        collisions = Counter(itertools.chain.from_iterable(index[value] for value in samples))
        best = min(collisions, key=lambda earlier: (-collisions[earlier], earlier), default=None)
        count = 0 if best is None else collisions[best]
        nearest.append(Nearest(id_, "" if best is None else order[best], count, len(samples)))
        for value in samples:
            index[value].append(position)
    return nearest


def settings_grid(
    n: Iterable[int], k: Iterable[int], p: Iterable[int], t: Iterable[int], f: Iterable[float]
) -> list[PublishedSettings]:
    """Every combination except impossible ones (t >= k * p). Raises InvalidInput for values out of range."""
    n, f = list(n), list(f)
    check_values(n, f)
    combined = itertools.product(n, k, p, f, t)
    return [PublishedSettings(n_, k_, p_, t_, f_) for n_, k_, p_, f_, t_ in combined if t_ < k_ * p_]


def evaluate(
    gold: Sequence[LabeledArticle],
    settings: Sequence[PublishedSettings],
    *,
    orders: int = 1,
    background: Sequence[Article] = (),
) -> list[PublishedResult]:
    """One row per setting and labeling, then one cross-validated row per labeling.

    ``background`` articles come first; a match with one of them counts as false.
    """
    before = [article.id for article in background]
    texts = {
        article.id: (article.text or article.title, article.lang or DEFAULT_LANG)
        for article in (*background, *(item.article for item in gold))
    }
    labels_by_labeling = labelings(gold)
    shuffled = [[item.article.id for item in originals_first(gold, seed)] for seed in range(orders)]
    rows: list[PublishedResult] = []
    halves: dict[str, list[tuple[list[DecisionCounts], list[DecisionCounts]]]] = defaultdict(list)
    for (n, k, p, f), group in itertools.groupby(settings, key=lambda s: (s.n, s.k, s.p, s.f)):
        sketches = {id_: sketch(text, n, k, p, f, lang) for id_, (text, lang) in texts.items()}
        nearest = [nearest_earlier(before + order, sketches)[len(before) :] for order in shuffled]
        for setting in group:
            decided = [[item.decide(setting.t) for item in order] for order in nearest]
            for labeling, label_by_id in labels_by_labeling.items():
                even, odd = _count_halves(decided, label_by_id)
                rows.append(PublishedResult(setting, labeling, *mean_scores(map(_add, even, odd))))
                halves[labeling].append((even, odd))
    return rows + [_cross_validated(labeling, counts) for labeling, counts in halves.items()]


def _count_halves(
    orders: Sequence[Sequence[Decision]], label_by_id: Mapping[str, str]
) -> tuple[list[DecisionCounts], list[DecisionCounts]]:
    """Counts of each order over the articles of even and of odd clusters (in order of names)."""
    even = set(sorted(set(label_by_id.values()))[::2])
    totals = [count_decisions(((d.id, d.original) for d in decisions), label_by_id) for decisions in orders]
    evens = [
        # An article of an odd cluster is no longer counted, but may still be the false match of another.
        count_decisions(((d.id, d.original) for d in decisions if label_by_id[d.id] in even), label_by_id)
        for decisions in orders
    ]
    odds = [
        DecisionCounts(*(a - b for a, b in zip(total, part, strict=True)))
        for total, part in zip(totals, evens, strict=True)
    ]
    return evens, odds


def _cross_validated(
    labeling: str, halves: Sequence[tuple[list[DecisionCounts], list[DecisionCounts]]]
) -> PublishedResult:
    """The setting with the best mean F1 on one half, scored on the other, both ways; counts added."""
    best_for_even = max(halves, key=lambda counts: mean(map(_f1, counts[0])))
    best_for_odd = max(halves, key=lambda counts: mean(map(_f1, counts[1])))
    scores = mean_scores(map(_add, best_for_odd[0], best_for_even[1]))
    return PublishedResult(None, labeling, *scores, held_out=True)


def _add(a: DecisionCounts, b: DecisionCounts) -> DecisionCounts:
    return DecisionCounts(*(x + y for x, y in zip(a, b, strict=True)))


def _f1(counts: DecisionCounts) -> float:
    return counts.precision_recall_f1[2]


def format_table(rows: Sequence[PublishedResult]) -> str:
    """Table for a terminal: a line per setting, the cross-validated one, then Table 4 of the paper."""
    names = list(dict.fromkeys(row.labels for row in rows))
    lines = [
        f"{'':24}" + "".join(f" | {name:27}" for name in names),
        f"{'n':>2} {'k':>3} {'p':>4} {'t':>3} {'f':>5}   "
        + "".join(f" | {'P':>6} {'R':>6} {'F1':>6} {'lowest':>6}" for _ in names),
    ]
    grouped: dict[PublishedSettings | None, list[PublishedResult]] = defaultdict(list)
    for row in rows:
        grouped[row.setting].append(row)
    for setting, group in grouped.items():
        s = setting
        head = f"{s.n:2} {s.k:3} {s.p:4} {s.t:3} {s.f:5.2f}   " if s else f"{'chosen, left-out half':24}"
        lines.append(
            head
            + "".join(f" | {r.precision:6.3f} {r.recall:6.3f} {r.f1:6.3f} {r.f1_lowest:6.3f}" for r in group)
        )
    lines.append("\nThe rule is published, the values of the settings are ours.")
    lines.append("\nTable 4 of the paper (its system: NRC-GPHIN), F1 on SpotSigs, not measured here:")
    lines += [f"  {f1:.3f}  {name}" for name, f1 in TABLE_4]
    return "\n".join(lines)
