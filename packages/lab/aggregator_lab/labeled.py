"""Labeled articles of a gold set: files with the label ``cluster``, seeded orders, merged labels."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator_archive.dates import DateCounts
from aggregator_archive.rows import Columns, column_hint, id_text, parse_article, read_rows

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


def merged_label(label: str) -> str:
    """The label after ``SPOTSIGS_LABEL_MERGES``."""
    return SPOTSIGS_LABEL_MERGES.get(label, label)


def labelings(gold: Sequence[LabeledArticle]) -> dict[str, dict[str, str]]:
    """Label by article id: as given, and (if ``gold`` has one of these labels) merged."""
    found = {AS_LABELED: {item.article.id: item.label for item in gold}}
    if not SPOTSIGS_LABEL_MERGES.keys().isdisjoint(found[AS_LABELED].values()):
        found[MERGED] = {item.article.id: merged_label(item.label) for item in gold}
    return found


def two_valued(value: Any) -> bool | None:
    """A judgment in any of the usual spellings, as text, number or truth value; None for anything else."""
    return _JUDGMENTS.get(str(value).strip().lower())


def load_articles(files: Sequence[str], columns: Columns = ()) -> list[Article]:
    """The articles of all rows; ``columns`` as for ``read_rows``. Raises InvalidInput."""
    return [article for _, article in _read_articles(files, columns)]


def load_labeled(
    files: Sequence[str], columns: Columns = (), *, unique_ids: bool = True
) -> list[LabeledArticle]:
    """The articles of all rows with their labels. Raises InvalidInput for invalid rows and empty files.

    ``unique_ids``: reject an id that occurs twice, since a service would take the second for a new version.
    """
    labeled = [
        LabeledArticle(article, _parse_label(row, position), bool(two_valued(row.get("original"))))
        for position, (row, article) in enumerate(_read_articles(files, columns), 1)
    ]
    if not labeled:
        raise InvalidInput(f"{', '.join(files)}: no articles found.")
    id_, count = Counter(item.article.id for item in labeled).most_common(1)[0]
    if unique_ids and count > 1:
        raise InvalidInput(f"The id {id_!r} is used by {count} articles; give each article its own id.")
    return labeled


def _read_articles(files: Sequence[str], columns: Columns) -> Iterator[tuple[dict[str, Any], Article]]:
    """Yield each row and its article; dates that cannot be read are reported at the end."""
    dates = DateCounts()
    for position, row in enumerate(read_rows(files, columns), 1):
        try:
            article = parse_article(row, {})
        except InvalidInput as error:
            raise InvalidInput(f"Article {row.get('id', position)!r}: {error}") from None
        if article.id.startswith("content:") and not id_text(
            row.get("id")
        ):  # equal texts are copies to be found
            article = replace(article, id=f"row {position}")
        dates.add(row, {}, is_read=article.published_at_ms is not None)
        yield row, article
    dates.report()


def _parse_label(row: dict[str, Any], position: int) -> str:
    given = row.get("cluster")
    label = id_text(given) if isinstance(given, str | int | float) and not isinstance(given, bool) else ""
    if not label:
        need = f"Article {position} has no `cluster`, the same for duplicates"
        raise InvalidInput(need + column_hint(row, "cluster"))
    return label
