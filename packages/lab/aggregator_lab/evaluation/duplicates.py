"""Report on the duplicates among unlabeled articles: numbers per source and language, and wrong ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from aggregator.domain import Article
from aggregator_lab.evaluation import natural_copies, wrong_kinds
from aggregator_lab.evaluation.duplicate_stream import (
    DuplicatePair,
    DuplicateStream,
    published_pairs,
    shingling_pairs,
)
from aggregator_lab.evaluation.published_shingling import PublishedSettings
from aggregator_lab.evaluation.shingling import ShinglingSettings

SHOWN_SOURCES = 10  # rows of the table
SHOWN_CHARACTERS = 200  # of a text that is printed
Group = tuple[str, str]  # source and language


@dataclass(slots=True)
class DuplicatesReport:
    """Duplicates of one method.

    articles_by_group  number of articles per (source, language)
    rejected           articles that the analysis rejected (no text)
    kinds              suspicious duplicates (``wrong_kinds.py``)
    natural            copies that the data hold (``natural_copies.py``); empty for other methods
    not_articles       articles whose text the service says is not the article
    """

    method: str
    articles_by_group: Counter[Group]
    pairs: list[DuplicatePair]
    rejected: int = 0
    kinds: dict[str, list[DuplicatePair]] = field(default_factory=dict)
    natural: dict[str, dict[str, Any]] = field(default_factory=dict)
    not_articles: list[Article] = field(default_factory=list)

    def rows(self) -> list[dict[str, Any]]:
        """One row per source and language, those with the most duplicates first."""
        duplicates, wrong = Counter(map(_group, self.pairs)), Counter(map(_group, self.wrong_pairs))
        dropped = Counter(map(_group, self.dropped_pairs))
        groups = sorted(self.articles_by_group, key=lambda g: (-duplicates[g], -self.articles_by_group[g], g))
        return [_row(*group, self.articles_by_group[group], duplicates[group], dropped[group], wrong[group])
                for group in groups]  # fmt: skip

    def total(self) -> dict[str, Any]:
        """The row of all articles."""
        languages = sorted({lang for _, lang in self.articles_by_group})
        counts = (
            self.articles_by_group.total(),
            len(self.pairs),
            len(self.dropped_pairs),
            len(self.wrong_pairs),
        )
        return _row("all", ",".join(languages), *counts)

    @property
    def dropped_pairs(self) -> list[DuplicatePair]:
        """The duplicates that a crawler drops (``keep: false``)."""
        return [pair for pair in self.pairs if not pair.kept]

    @property
    def wrong_pairs(self) -> list[DuplicatePair]:
        """The pairs that the counter counts as wrong."""
        return [pair for pair in self.pairs if pair.evidence.wrong]

    def as_json(self) -> dict[str, Any]:
        """Every value of the table, with all rows."""
        return {
            "method": self.method,
            "rejected": self.rejected,
            "total": self.total(),
            "rows": self.rows(),
            "kinds": wrong_kinds.as_json(self.kinds),
            "natural_copies": self.natural,
            "not_articles": [article.id for article in self.not_articles],
        }


def service_report(stream: DuplicateStream) -> DuplicatesReport:
    """The duplicates of the service."""
    report = _report(stream, f"policy {stream.policy.name}", stream.pairs)
    report.natural = natural_copies.count(stream.stored)
    report.not_articles = [
        item.article for item in stream.stored.values() if not item.answer.outcome.text_is_article
    ]
    return report


def shingling_report(stream: DuplicateStream, setting: ShinglingSettings) -> DuplicatesReport:
    """The duplicates of our reading of shingling among the same articles."""
    values = f"n={setting.n} k={setting.k} p={setting.p} t={setting.t} f={setting.f:g} r={setting.r:g}"
    return _report(stream, f"shingling {values}", shingling_pairs(stream, setting))


def published_report(stream: DuplicateStream, setting: PublishedSettings) -> DuplicatesReport:
    """The duplicates of shingling by the published rule among the same articles."""
    values = f"n={setting.n} k={setting.k} p={setting.p} t={setting.t} f={setting.f:g}"
    return _report(
        stream, f"published shingling rule, own setting {values}", published_pairs(stream, setting)
    )


def _report(stream: DuplicateStream, method: str, pairs: Iterable[DuplicatePair]) -> DuplicatesReport:
    groups = Counter((item.article.source, item.lang) for item in stream.stored.values())
    found = list(pairs)
    kinds = wrong_kinds.wrong_kinds(found, stream.stored)
    return DuplicatesReport(method, groups, found, stream.rejected, kinds)


def format_table(report: DuplicatesReport) -> str:
    """Table for a terminal: a row per source and language, suspicious kinds, natural copies."""
    rows = report.rows()
    shown = rows[:SHOWN_SOURCES]
    if hidden := rows[SHOWN_SOURCES:]:
        sums = [sum(row[name] for row in hidden) for name in ("articles", "duplicates", "dropped", "wrong")]
        shown.append(_row(f"{len(hidden)} others", "", *sums))
    lines = [
        f"duplicates by {report.method}; wrong: at least so many, whose headline, opening and "
        "wording all differ; judge a sample with --page",
        f"{'source':32} {'lang':8} {'articles':>9} {'duplicates':>10} {'dropped':>7} {'wrong':>7} "
        f"{'share':>7}",
        *map(_format_row, [*shown, report.total()]),
        "",
        "suspicious duplicates (dropped): "
        + ", ".join(
            f"{kind} {row['pairs']} ({row['dropped']})"
            for kind, row in wrong_kinds.as_json(report.kinds).items()
        ),
    ]
    if report.not_articles:
        share = len(report.not_articles) / report.articles_by_group.total()
        lines.append(f"texts that are not the article: {len(report.not_articles):,} ({share:.2%})")
    for name, row in report.natural.items():
        lines.append(
            f"natural copies, {name}: {row['found']:,} of {row['copies']:,} found, "
            f"{row['needless']:,} kept without need"
        )
    if report.rejected:
        lines.append(f"{report.rejected} articles without text were rejected")
    return "\n".join(lines)


def _group(pair: DuplicatePair) -> Group:
    return pair.article.source, pair.lang


def _row(source: str, lang: str, articles: int, duplicates: int, dropped: int, wrong: int) -> dict[str, Any]:
    return {
        "source": source,
        "lang": lang,
        "articles": articles,
        "duplicates": duplicates,
        "dropped": dropped,
        "wrong": wrong,
        "wrong_share": round(wrong / duplicates, 4) if duplicates else 0.0,
    }


def _format_row(row: dict[str, Any]) -> str:
    source = (row["source"] or "-")[:32]
    return (
        f"{source:32} {row['lang']:8} {row['articles']:9,} {row['duplicates']:10,} "
        f"{row['dropped']:7,} {row['wrong']:7,} {row['wrong_share']:7.1%}"
    )


def format_pairs(pairs: Sequence[DuplicatePair]) -> str:
    """Duplicates below their matches, for reading: source, headline and the first 200 characters."""
    blocks = []
    for number, pair in enumerate(pairs, start=1):
        overlap = "-" if pair.overlap is None else f"{pair.overlap:.2f}"
        blocks.append(f"[{number}] {pair.rule}, overlap {overlap}, {pair.distance} bits")
        blocks += map(format_article, (pair.match, pair.article))
    return "\n".join(blocks)


def format_article(article: Article) -> str:
    """Id, source and headline, and the first 200 characters."""
    text = " ".join(article.text[:SHOWN_CHARACTERS].split())
    return f"  {article.id} ({article.source or '-'}): {article.title or '-'}\n      {text}"
