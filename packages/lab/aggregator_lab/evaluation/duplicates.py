"""Report on the duplicates among unlabeled articles: numbers per source and language, and wrong ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from aggregator.domain import Article
from aggregator_lab.evaluation.duplicate_stream import (
    DuplicatePair,
    DuplicateStream,
    published_pairs,
    shingling_pairs,
)
from aggregator_lab.evaluation.published_shingling import PublishedSettings
from aggregator_lab.evaluation.shingling import ShinglingSettings

_TICKER = re.compile(r"<[A-Z0-9.-]+>")


def tickers(article: Article) -> frozenset[str]:
    """Ticker symbols in headline and text, with their angle brackets."""
    return frozenset(_TICKER.findall(f"{article.title}\n{article.text}"))


def names_other_companies(article: Article, match: Article) -> bool:
    """Whether both name companies, and none in common: a duplicate verdict is then very likely wrong."""
    ours, others = tickers(article), tickers(match)
    return bool(ours) and bool(others) and not ours & others


HISTOGRAM_BINS = 10
SHOWN_SOURCES = 10  # rows of the table
Group = tuple[str, str]  # source and language


@dataclass(slots=True)
class DuplicatesReport:
    """Duplicates of one method.

    articles_by_group  number of articles per (source, language)
    rejected           articles that the analysis rejected (no text)
    """

    method: str
    articles_by_group: Counter[Group]
    pairs: list[DuplicatePair]
    rejected: int = 0

    def rows(self) -> list[dict[str, Any]]:
        """One row per source and language, those with the most duplicates first."""
        duplicates, wrong = Counter(map(_group, self.pairs)), Counter(map(_group, self.wrong_pairs))
        groups = sorted(self.articles_by_group, key=lambda g: (-duplicates[g], -self.articles_by_group[g], g))
        return [_row(*group, self.articles_by_group[group], duplicates[group], wrong[group])
                for group in groups]  # fmt: skip

    def total(self) -> dict[str, Any]:
        """The row of all articles."""
        languages = sorted({lang for _, lang in self.articles_by_group})
        return _row(
            "all", ",".join(languages), self.articles_by_group.total(), len(self.pairs), len(self.wrong_pairs)
        )

    @property
    def wrong_pairs(self) -> list[DuplicatePair]:
        """The pairs that the counter counts as wrong."""
        return [pair for pair in self.pairs if pair.evidence.wrong]

    def histogram(self) -> dict[str, list[int]]:
        """Number of duplicates, and of wrong ones, per tenth of containment: 10 counts each."""
        return {"duplicates": _containment_counts(self.pairs), "wrong": _containment_counts(self.wrong_pairs)}

    def companies(self) -> dict[str, int] | None:
        """Duplicates whose companies differ, by ticker symbols; None if no duplicate names a company.

        no_company  the match names no company: mostly one text sent twice, the second time with its ticker
        """
        named = [pair for pair in self.pairs if tickers(pair.article)]
        if not named:
            return None
        return {
            "duplicates_with_company": len(named),
            "other_company": sum(names_other_companies(pair.article, pair.match) for pair in named),
            "no_company": sum(not tickers(pair.match) for pair in named),
        }

    def as_json(self) -> dict[str, Any]:
        """Every value of the table, with all rows."""
        return {
            "method": self.method,
            "rejected": self.rejected,
            "total": self.total(),
            "rows": self.rows(),
            "containment": self.histogram(),
            "companies": self.companies(),
        }


def service_report(stream: DuplicateStream) -> DuplicatesReport:
    """The duplicates of the service."""
    return _report(stream, f"policy {stream.policy.name}", stream.pairs)


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
    return DuplicatesReport(method, groups, list(pairs), stream.rejected)


def format_table(report: DuplicatesReport) -> str:
    """Table for a terminal: a row per source and language, the containment histogram, companies."""
    rows = report.rows()
    shown = rows[:SHOWN_SOURCES]
    if hidden := rows[SHOWN_SOURCES:]:
        sums = [sum(row[name] for row in hidden) for name in ("articles", "duplicates", "wrong")]
        shown.append(_row(f"{len(hidden)} others", "", *sums))
    lines = [
        f"duplicates by {report.method}; wrong: headline, opening and wording differ",
        f"{'source':32} {'lang':8} {'articles':>9} {'duplicates':>10} {'wrong':>7} {'share':>7}",
        *map(_format_row, [*shown, report.total()]),
        "",
        "containment " + " ".join(f"{bin_ / HISTOGRAM_BINS:>5.1f}-" for bin_ in range(HISTOGRAM_BINS)),
        *(
            f"{name:11} " + " ".join(f"{count:6}" for count in counts)
            for name, counts in report.histogram().items()
        ),
    ]
    if companies := report.companies():
        lines += [
            "",
            f"{companies['other_company']} of {len(report.pairs)} duplicates name other companies than "
            f"their match (by ticker symbols), {companies['no_company']} name one where the match names none",
        ]
    if report.rejected:
        lines.append(f"{report.rejected} articles without text were rejected")
    return "\n".join(lines)


def _group(pair: DuplicatePair) -> Group:
    return pair.article.source, pair.lang


def _row(source: str, lang: str, articles: int, duplicates: int, wrong: int) -> dict[str, Any]:
    return {
        "source": source,
        "lang": lang,
        "articles": articles,
        "duplicates": duplicates,
        "wrong": wrong,
        "wrong_share": round(wrong / duplicates, 4) if duplicates else 0.0,
    }


def _format_row(row: dict[str, Any]) -> str:
    source = (row["source"] or "-")[:32]
    return (
        f"{source:32} {row['lang']:8} {row['articles']:9,} {row['duplicates']:10,} {row['wrong']:7,} "
        f"{row['wrong_share']:7.1%}"
    )


def _containment_counts(pairs: Iterable[DuplicatePair]) -> list[int]:
    bins = Counter(min(HISTOGRAM_BINS - 1, int(pair.evidence.containment * HISTOGRAM_BINS)) for pair in pairs)
    return [bins[i] for i in range(HISTOGRAM_BINS)]
