"""Ownership of stored articles by source, for callers that are bound to sources.

The source of a stored version never changes: a post that names another source stores a new version
(``ingest/decide.py``). So a commit that checks the binding it read also checks the owner.
"""

from __future__ import annotations

from collections.abc import Sequence

from aggregator.domain import ArticleRecord
from aggregator.errors import Forbidden


def is_owned(record: ArticleRecord | None, sources: Sequence[str]) -> bool:
    """Whether a caller bound to ``sources`` (empty: to none) may read, replace and delete an article.

    ``record`` None: it has expired, or another version was committed since, which the commit finds out.
    """
    return not sources or record is None or record.source in sources


def foreign_article_error(id_: str, sources: Sequence[str]) -> Forbidden:
    """The error for an id whose stored article is of another source, which the message does not name."""
    return Forbidden(
        f"id: the article {id_[:200]!r} is not one of {', '.join(sources)}, to which this key is restricted; "
        "post yours under another id."
    )
