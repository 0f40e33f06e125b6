"""Articles of evaluation files, with the label ``cluster``, for the commands that evaluate or train.

All formats of ``aggregator dedupe`` are read: JSON Lines, CSV, TSV and Parquet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from aggregator.contract.decoding import decode, to_article
from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator_archive.labeled import LabeledArticle
from aggregator_archive.rows import read_rows
from aggregator_client.decision import ARTICLE_FIELDS
from aggregator_client.wire import ArticleIn

_decode_article = msgspec.json.Decoder(ArticleIn).decode


def load_articles(files: Sequence[str]) -> list[Article]:
    """The articles of all rows. Raises InvalidInput."""
    return [_parse_article(row) for row in read_rows(files)]


def load_labeled(files: Sequence[str], *, unique_ids: bool = True) -> list[LabeledArticle]:
    """The articles of all rows with their labels.

    ``unique_ids``: reject an id that occurs twice, since a service would take the second article for a new
    version of the first. Raises InvalidInput for these, for invalid rows, and for files without rows.
    """
    labeled = [
        LabeledArticle(
            _parse_article(row), _parse_label(row, position), str(row.get("original")).lower() == "true"
        )
        for position, row in enumerate(read_rows(files), 1)
    ]
    if not labeled:
        raise InvalidInput(f"{', '.join(files)}: no articles found.")
    if unique_ids:
        _check_unique_ids(labeled)
    return labeled


def _check_unique_ids(labeled: Sequence[LabeledArticle]) -> None:
    id_, count = Counter(item.article.id for item in labeled).most_common(1)[0]
    if count > 1:
        raise InvalidInput(f"The id {id_!r} is used by {count} articles; give each article its own id.")


def _parse_article(row: dict[str, Any]) -> Article:
    fields = msgspec.json.encode({name: value for name, value in row.items() if name in ARTICLE_FIELDS})
    try:
        return to_article(decode(fields, _decode_article))
    except InvalidInput as error:
        raise InvalidInput(f"Article {row.get('id')!r}: {error}", field=error.field) from None


def _parse_label(row: dict[str, Any], position: int) -> str:
    label = row.get("cluster")
    if isinstance(label, int) and not isinstance(label, bool):
        return str(label)
    if not isinstance(label, str) or not label:
        raise InvalidInput(
            f"Article {position} has no `cluster`; give each article one, the same for duplicates."
        )
    return label
