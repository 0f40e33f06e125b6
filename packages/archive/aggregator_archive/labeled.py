"""Labeled articles of a gold set: seeded orders, and labels as given and with overlapping ones merged."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aggregator.domain import Article

AS_LABELED, MERGED = "as labelled", "groups merged"  # names of the labelings in results
# Labels of the SpotSigs gold set that share page texts (some pages are identical): a correct match across
# them counts as false "as labelled", so results are also given with each group of labels merged.
SPOTSIGS_LABEL_MERGES: Mapping[str, str] = {
    "Subpoena": "Legal_Summons",
    "Lindsay": "Legal_Summons",
    "Pelosi": "Headlines",
    "Snuff": "Headlines",
    "Drink": "Caffeine",
    "Planned": "Florida",
    "Plea": "Paparazzi",
}


@dataclass(frozen=True, slots=True)
class LabeledArticle:
    """One article of a gold set; ``label`` is equal for copies (or for articles about one event).

    ``original``: the file marks the article as the first of its label.
    """

    article: Article
    label: str
    original: bool = False


def shuffle(gold: Sequence[LabeledArticle], seed: int) -> list[LabeledArticle]:
    """The articles in the random order of ``seed``, the same in every run."""
    order = list(gold)
    random.Random(seed).shuffle(order)
    return order


def originals_first(gold: Sequence[LabeledArticle], seed: int) -> list[LabeledArticle]:
    """The random order of ``seed`` with the marked originals before all others."""
    return sorted(shuffle(gold, seed), key=lambda item: not item.original)


def first_per_label(gold: Sequence[LabeledArticle], count: int | None) -> list[LabeledArticle]:
    """The first ``count`` articles of each label, in order; None: all."""
    seen: Counter[str] = Counter()
    kept = []
    for item in gold:
        seen[item.label] += 1
        if count is None or seen[item.label] <= count:
            kept.append(item)
    return kept


def labelings(gold: Sequence[LabeledArticle], label_merges: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Label by article id: as given, and (if ``gold`` has one of these labels) after ``label_merges``."""
    found = {AS_LABELED: {item.article.id: item.label for item in gold}}
    if not label_merges.keys().isdisjoint(found[AS_LABELED].values()):
        found[MERGED] = {item.article.id: label_merges.get(item.label, item.label) for item in gold}
    return found
