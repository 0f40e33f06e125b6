"""Constants of the term profile by cross-validation: each language of judged pairs is left out once.

    python -m tests.benchmarks.bench_term_profile PAIRS [--related GOLD --background FILE]

PAIRS has pairs that people judged alike or not, in several languages (semeval2022_t8_dev.jsonl.gz). For every
setting of a grid the ROC AUC of the similarity is compared with that of TF-IDF fitted on the pairs, per
language. The setting is chosen whose mean difference over the languages is highest; the difference of the
left-out language under the setting that the **others** choose is printed.

With ``--related`` (ecbplus_dev.jsonl.gz, ``--background`` allsides_dev.jsonl.gz) only settings are chosen
whose recall@10 of related articles is at least ``--min-share`` of that of brute force: judged pairs alone say
nothing about the ranking among thousands of other articles. It takes about 10 minutes, without it one.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
from collections.abc import Collection
from statistics import mean
from typing import NamedTuple

from aggregator.analysis import analyzer as analysis_module
from aggregator.analysis import term_profile
from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.cli.labeled_articles import load_articles, load_labeled
from aggregator.domain import Analysis
from aggregator.offline.archive.rows import read_rows
from aggregator.offline.evaluation import pairs, related
from aggregator.offline.evaluation.metrics import roc_auc

RANK = 10


class Setting(NamedTuple):
    """Constants of ``term_profile``."""

    lead_terms: int
    exponent: float
    lead_factor: float
    short_prefix_factor: float

    def use(self) -> None:
        """Analyses and cosines from now on are made with these constants."""
        vars(analysis_module)["LEAD_TERMS"] = self.lead_terms  # imported there
        term_profile.WEIGHT_EXPONENT = self.exponent
        term_profile.LEAD_FACTOR = self.lead_factor
        term_profile.SHORT_PREFIX_FACTOR = self.short_prefix_factor


GRID = [
    Setting(lead_terms, *weights)
    for lead_terms, *weights in itertools.product(
        (10, 15, 20), (0.25, 0.35, 0.5, 0.65), (1.25, 1.5, 1.75, 2.0), (0.0, 0.3, 0.6, 0.9)
    )
]


class JudgedPairs:
    """The pairs of a file, and how far the similarity is above or below TF-IDF under a setting."""

    def __init__(self, file: str, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.judged = pairs.parse_pairs(read_rows([file]))
        self.report = pairs.evaluate(self.judged, analyzer)
        self.languages = [name for name in self.report.languages if name != "all"]
        self.baseline = {name: self.report.auc(name, "tf-idf") for name in self.languages}
        self._lead_terms = 0
        self._profiles: list[tuple[term_profile.TermProfile, term_profile.TermProfile]] = []

    def differences(self, setting: Setting) -> dict[str, float]:
        """ROC AUC of the similarity minus that of TF-IDF, per language."""
        setting.use()
        if setting.lead_terms != self._lead_terms:
            self._profiles, self._lead_terms = self._analyze(), setting.lead_terms
        scores = [float(term_profile.cosines(a, [b])[0]) for a, b in self._profiles]
        rows = list(zip(self.report.pairs, scores, strict=True))
        return {
            name: roc_auc(
                [pair.same for pair, _ in rows if pair.languages == name],
                [score for pair, score in rows if pair.languages == name],
            )
            - self.baseline[name]
            for name in self.languages
        }

    def _analyze(self) -> list[tuple[term_profile.TermProfile, term_profile.TermProfile]]:
        firsts = self.analyzer.analyze_many([pair.first for pair in self.judged])
        seconds = self.analyzer.analyze_many([pair.second for pair in self.judged])
        return [
            ((a.terms, a.minor_terms), (b.terms, b.minor_terms))
            for a, b in zip(firsts, seconds, strict=True)
            if isinstance(a, Analysis) and isinstance(b, Analysis)
        ]


class RelatedRecall:
    """recall@10 of related articles as a share of that of brute force."""

    def __init__(self, gold: str, background: list[str], analyzer: Analyzer) -> None:
        self.gold, self.background = load_labeled([gold]), load_articles(background)
        self.analyzer = analyzer
        self.brute_force = 0.0
        self._stored: dict[int, related.StoredArticles] = {}
        self._shares: dict[Setting, float] = {}

    async def share(self, setting: Setting) -> float:
        """The share under a setting; the articles are stored once per number of leading terms."""
        if setting in self._shares:
            return self._shares[setting]
        setting.use()
        if setting.lead_terms not in self._stored:
            self._stored[setting.lead_terms] = await related.store_articles(
                self.gold, self.analyzer, background=self.background
            )
        stored = self._stored[setting.lead_terms]
        self.brute_force = self.brute_force or stored.brute_force(RANK).recall
        self._shares[setting] = (await stored.served(RANK)).recall / self.brute_force
        return self._shares[setting]


async def _best(
    differences: dict[Setting, dict[str, float]],
    languages: Collection[str],
    recall: RelatedRecall | None,
    min_share: float,
) -> Setting:
    """The setting whose mean difference is highest among those with enough recall."""
    for setting in sorted(GRID, key=lambda s: -mean(differences[s][name] for name in languages)):
        if recall is None or await recall.share(setting) >= min_share:
            return setting
    raise SystemExit(f"No setting has {min_share:g} of the recall of brute force.")


async def _compare(judged: JudgedPairs, recall: RelatedRecall | None, min_share: float) -> None:
    shipped = Setting(
        term_profile.LEAD_TERMS,
        term_profile.WEIGHT_EXPONENT,
        term_profile.LEAD_FACTOR,
        term_profile.SHORT_PREFIX_FACTOR,
    )
    differences = {setting: judged.differences(setting) for setting in GRID}
    print(f"{'':8}{'TF-IDF':>8}{'shipped':>9}{'left out':>10}   chosen by the other languages")
    for name in judged.languages:
        others = [other for other in judged.languages if other != name]
        chosen = await _best(differences, others, recall, min_share)
        print(
            f"{name:8}{judged.baseline[name]:8.3f}{differences[shipped][name]:+9.4f}"
            f"{differences[chosen][name]:+10.4f}   {_describe(chosen)}"
        )
    chosen = await _best(differences, judged.languages, recall, min_share)
    print(f"chosen by all: {_describe(chosen)}; shipped: {_describe(shipped)}")
    if recall is not None:
        for setting in dict.fromkeys((chosen, shipped)):
            print(f"recall@{RANK} {await recall.share(setting):.4f} of brute force: {_describe(setting)}")


def _describe(setting: Setting) -> str:
    return (
        f"exponent {setting.exponent:g}, {setting.lead_terms} terms, factor {setting.lead_factor:g}, "
        f"short prefix {setting.short_prefix_factor:g}"
    )


def main() -> None:
    """Print one line per left-out language."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("pairs")
    parser.add_argument("--related", help="file of articles with their events")
    parser.add_argument("--background", nargs="*", default=[], help="files of other articles")
    parser.add_argument("--min-share", type=float, default=0.98, help="of the recall of brute force")
    args = parser.parse_args()
    analyzer = Analyzer(load_models())
    recall = RelatedRecall(args.related, args.background, analyzer) if args.related else None
    asyncio.run(_compare(JudgedPairs(args.pairs, analyzer), recall, args.min_share))


if __name__ == "__main__":
    main()
