"""Labeled articles of a gold set: files with the label ``cluster``, seeded orders, merged labels."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator_archive.dates import DateCounts
from aggregator_archive.input_check import require_columns
from aggregator_archive.rows import Columns, Parsed, column_hint, id_text, parse_article, parse_rows

DEFAULT_LANG = "en"  # of articles that declare no language
_JUDGMENTS = dict.fromkeys(("1", "1.0", "true", "t", "yes", "y"), True)
_JUDGMENTS |= dict.fromkeys(("0", "0.0", "false", "f", "no", "n"), False)
AS_LABELED, MERGED = "as labelled", "labels merged"  # names of the labelings in results
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


def merged_labels(gold: Sequence[LabeledArticle]) -> list[str]:
    """The label of each article, after ``SPOTSIGS_LABEL_MERGES`` if ``gold`` has all these labels."""
    labels = [item.label for item in gold]
    merges = SPOTSIGS_LABEL_MERGES if SPOTSIGS_LABEL_MERGES.keys() <= set(labels) else {}
    return [merges.get(label, label) for label in labels]


def labelings(gold: Sequence[LabeledArticle]) -> dict[str, dict[str, str]]:
    """Label by article id: as given, and (if that differs) merged."""
    found = {AS_LABELED: {item.article.id: item.label for item in gold}}
    merged = dict(zip((item.article.id for item in gold), merged_labels(gold), strict=True))
    return found | ({MERGED: merged} if merged != found[AS_LABELED] else {})


def two_valued(value: Any) -> bool | None:
    """A judgment in any of the usual spellings, as text, number or truth value; None for anything else."""
    return _JUDGMENTS.get(str(value).strip().lower())


def load_articles(files: Sequence[str], columns: Columns = ()) -> list[Article]:
    """The articles of all rows (``parse_rows``)."""
    return _read_articles(files, columns, lambda article, _: article)


def load_labeled(
    files: Sequence[str], columns: Columns = (), *, unique_ids: bool = True
) -> list[LabeledArticle]:
    """The labeled articles of all rows (``parse_rows``). Raises InvalidInput if there are none.

    ``unique_ids``: reject an id that occurs twice, since a service would take the second for a new version.
    """
    require_columns(files, columns)
    labeled = _read_articles(files, columns, _labeled)
    if not labeled:
        raise InvalidInput(f"{', '.join(files)}: no articles found.")
    id_, count = Counter(item.article.id for item in labeled).most_common(1)[0]
    if unique_ids and count > 1:
        remedy = "give each its own, or name the column that has one with --column id=NAME"
        raise InvalidInput(f"{', '.join(files)}: the id {id_!r} is used by {count} articles; {remedy}.")
    return labeled


def _read_articles(
    files: Sequence[str], columns: Columns, convert: Callable[[Article, dict[str, Any]], Parsed]
) -> list[Parsed]:
    """What ``convert`` makes of each article and its row; dates that cannot be read are reported."""
    dates = DateCounts()

    def parse(position: int, row: dict[str, Any]) -> Parsed:
        article = parse_article(row, {})
        if article.id.startswith("content:") and not id_text(row.get("id")):  # equal texts are copies
            article = replace(article, id=f"row {position}")
        parsed = convert(article, row)
        dates.add(row, {}, is_read=article.published_at_ms is not None)
        return parsed

    found = list(parse_rows(files, columns, parse))
    dates.report()
    return found


def _labeled(article: Article, row: dict[str, Any]) -> LabeledArticle:
    given = row.get("cluster")
    label = id_text(given) if isinstance(given, str | int | float) and not isinstance(given, bool) else ""
    if not label:
        raise InvalidInput("no `cluster`, the same for duplicates" + column_hint(row, "cluster"))
    return LabeledArticle(article, label, bool(two_valued(row.get("original"))))
