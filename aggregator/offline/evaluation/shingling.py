"""The published system beside ours: online shingling after Rodier & Carter (LREC 2020), itself after Broder (1997).

It has no fingerprint. An article is the set of its word shingles; a sample of them is kept, and the smallest of the
sample are its sketch. Earlier articles that collide with enough of the sketch are candidates; the one with the
highest overlap coefficient is the original, if that is high enough. The settings, by the letters of the paper:

    n  words per shingle
    k  the sample keeps one shingle in k (those whose hash is divisible by k; 1: all)
    p  sketch size, in shingles of the sample
    t  collisions of sketches that make a candidate
    f  leading share of the text that is looked at, 0..1
    r  overlap coefficient |A and B| / min(|A|, |B|) of the samples that makes a near-duplicate, 0..1

This is our reading of the method, made to compare settings in the shape of the paper's tables 2 and 3: one line per
setting with precision, recall and F1 in the online protocol. Figures need not equal the published ones, since
tokeniser and hash are ours.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import mean
from typing import Any

from aggregator.analysis.shingles import shingle_hashes
from aggregator.analysis.text.tokenizer import words
from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator.offline.evaluation.metrics import precision_recall_f1
from aggregator.offline.evaluation.near_duplicates import SPOTSIGS_LABEL_MERGES, LabeledArticle

MAX_SHINGLE_WORDS = 5  # what ``overlap`` can hash
TOKENIZER_LANGUAGE = "en"  # words are cut alike in every language that separates them


@dataclass(frozen=True, slots=True)
class ShinglingSettings:
    """One setting; see above."""

    n: int = 3
    k: int = 1
    p: int = 32
    t: int = 1
    f: float = 1.0
    r: float = 0.2


@dataclass(frozen=True, slots=True)
class Decision:
    """What one article was taken for. ``original``: id of the earlier article it copies, else None."""

    id: str
    original: str | None
    overlap: float
    candidates: int


@dataclass(frozen=True, slots=True)
class SettingResult:
    """One setting under one labelling; each figure 0..1, the mean of all orders, and the lowest F1."""

    setting: ShinglingSettings
    labels: str
    precision: float
    recall: float
    f1: float
    f1_lowest: float
    candidates: float

    def as_json(self) -> dict[str, Any]:
        """Setting and figures in one flat object."""
        figures = ("precision", "recall", "f1", "f1_lowest", "candidates")
        rounded = {name: round(getattr(self, name), 4) for name in figures}
        return asdict(self.setting) | {"labels": self.labels} | rounded


@dataclass(slots=True)
class ShingleSamples:
    """The shingle samples of a set of articles under one (n, k, f); overlaps of pairs are computed once."""

    by_id: Mapping[str, frozenset[int]]
    _overlap_cache: dict[tuple[str, str], float] = field(default_factory=dict)

    def overlap(self, a: str, b: str) -> float:
        """Overlap coefficient of two articles, 0 when either is empty."""
        pair = (a, b) if a < b else (b, a)
        known = self._overlap_cache.get(pair)
        if known is None:
            first, second = self.by_id[a], self.by_id[b]
            smaller = min(len(first), len(second))
            known = self._overlap_cache[pair] = len(first & second) / smaller if smaller else 0.0
        return known


def sample_texts(texts: Mapping[str, str], n: int, k: int, f: float) -> ShingleSamples:
    """Samples of all texts, by id."""
    found = {}
    for id_, text in texts.items():
        spoken = words(text, TOKENIZER_LANGUAGE)
        hashes = shingle_hashes(spoken[: max(1, round(len(spoken) * f))] if spoken else spoken, n)
        found[id_] = frozenset(hash_ for hash_ in hashes.tolist() if hash_ % k == 0)
    return ShingleSamples(found)


def decide_in_order(
    order: Sequence[str], samples: ShingleSamples, setting: ShinglingSettings
) -> list[Decision]:
    """Every article in its order against those before it: the online rule.

    Among candidates the highest overlap wins, the earliest such; each stands in the index, copy or not.
    """
    index: dict[int, list[int]] = defaultdict(list)
    decisions = []
    for at, id_ in enumerate(order):
        sketch = sorted(samples.by_id[id_])[: setting.p]
        hits = Counter(itertools.chain.from_iterable(index[value] for value in sketch))
        candidates = sorted(place for place, collisions in hits.items() if collisions >= setting.t)
        best, overlap = None, 0.0
        for place in candidates:
            value = samples.overlap(id_, order[place])
            if value >= setting.r and value > overlap:
                best, overlap = order[place], value
        decisions.append(Decision(id_, best, overlap, len(candidates)))
        for value in sketch:
            index[value].append(at)
    return decisions


def settings_grid(
    n: Iterable[int],
    k: Iterable[int],
    p: Iterable[int],
    t: Iterable[int],
    f: Iterable[float],
    r: Iterable[float],
) -> list[ShinglingSettings]:
    """Every combination of values, those that share samples together; needless ones (t > p) left out.

    Raises BadInput when a value cannot be.
    """
    n, f, r = list(n), list(f), list(r)
    if max(n) > MAX_SHINGLE_WORDS:
        raise InvalidInput(f"A shingle has at most {MAX_SHINGLE_WORDS} words here, not {max(n)}.")
    if not all(0 < share <= 1 for share in (*f, *r)):
        raise InvalidInput("The leading share and the overlap must be above 0 and at most 1.")
    combined = itertools.product(n, k, f, p, t, r)
    return [ShinglingSettings(n_, k_, p_, t_, f_, r_) for n_, k_, f_, p_, t_, r_ in combined if t_ <= p_]


def evaluate(
    gold: Sequence[LabeledArticle],
    settings: Sequence[ShinglingSettings],
    *,
    orders: int = 1,
    label_merges: Mapping[str, str] = SPOTSIGS_LABEL_MERGES,
    background: Sequence[Article] = (),
) -> list[SettingResult]:
    """A line per setting and labelling, over seeded random orders (those of ``near_duplicates.evaluate``).

    ``background`` articles come before the labelled ones; whoever is taken for a copy of one is wrong.
    """
    before = [a.id for a in background]
    texts = {a.id: a.text or a.title for a in (*background, *(g.article for g in gold))}
    label_of = {g.article.id: g.label for g in gold}
    labellings: dict[str, Mapping[str, str]] = {"as labelled": label_of}
    if set(label_merges) & set(label_of.values()):
        labellings["groups merged"] = {i: label_merges.get(label, label) for i, label in label_of.items()}
    shuffled = [_shuffled_ids(gold, seed) for seed in range(orders)]
    lines: list[SettingResult] = []
    for (n, k, f), same in itertools.groupby(settings, key=lambda s: (s.n, s.k, s.f)):
        samples = sample_texts(texts, n, k, f)
        for setting in same:
            decided = [decide_in_order(before + order, samples, setting)[len(before) :] for order in shuffled]
            lines += [
                _summarize_orders(setting, name, labels, decided) for name, labels in labellings.items()
            ]
    return lines


def format_table(lines: Sequence[SettingResult]) -> str:
    """For a terminal: one line per setting, the labellings side by side; ``cand.`` per article."""
    names = list(dict.fromkeys(line.labels for line in lines))
    head = f"{'n':>2} {'k':>3} {'p':>4} {'t':>3} {'f':>5} {'r':>5} {'cand.':>6}"
    shown = [f"{'':33}" + "".join(f" | {name:27}" for name in names)]
    shown.append(head + "".join(f" | {'P':>6} {'R':>6} {'F1':>6} {'lowest':>6}" for _ in names))
    for at in range(0, len(lines), len(names)):
        s = lines[at].setting
        row = f"{s.n:2} {s.k:3} {s.p:4} {s.t:3} {s.f:5.2f} {s.r:5.2f} {lines[at].candidates:6.1f}"
        for x in lines[at : at + len(names)]:
            row += f" | {x.precision:6.3f} {x.recall:6.3f} {x.f1:6.3f} {x.f1_lowest:6.3f}"
        shown.append(row)
    return "\n".join(shown)


def _shuffled_ids(gold: Sequence[LabeledArticle], seed: int) -> list[str]:
    shuffled = list(gold)
    random.Random(seed).shuffle(shuffled)
    return [one.article.id for one in shuffled]


def _summarize_orders(
    setting: ShinglingSettings, name: str, labels: Mapping[str, str], orders: Sequence[Sequence[Decision]]
) -> SettingResult:
    scores = [_score_order(labels, decisions) for decisions in orders]
    candidates = mean(decision.candidates for decisions in orders for decision in decisions)
    precision, recall, f1 = (mean(score[at] for score in scores) for at in range(3))
    return SettingResult(setting, name, precision, recall, f1, min(score[2] for score in scores), candidates)


def _score_order(labels: Mapping[str, str], decisions: Sequence[Decision]) -> tuple[float, float, float]:
    seen: set[str] = set()
    right = wrong = missed = 0
    for one in decisions:
        label = labels[one.id]
        if one.original is not None:
            right += labels.get(one.original) == label
            wrong += labels.get(one.original) != label
        else:
            missed += label in seen
        seen.add(label)
    return precision_recall_f1(right, right + wrong, right + missed)
