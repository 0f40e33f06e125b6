"""Articles of input files of every format that ``aggregator dedupe`` reads, each id once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator_archive.rows import Row, parse_article, read_blocks


@dataclass(slots=True)
class ArticleFile:
    """Articles of input files in order, each id once; the rows left out are counted.

    invalid      rows that are no articles; ``first_invalid`` is the error of the first
    repeated_id  rows whose id occurred before: the service would take them for a new version
    """

    articles: list[Article] = field(default_factory=list)
    invalid: int = 0
    repeated_id: int = 0
    first_invalid: str = ""


def read_articles(files: Sequence[str], limit: int | None = None) -> ArticleFile:
    """Read at most ``limit`` articles, in every format that ``aggregator dedupe`` reads.

    Raises InvalidInput if no row is an article.
    """
    read = ArticleFile()
    seen: set[str] = set()
    for file, number, row in _numbered_rows(files):
        if limit is not None and len(read.articles) >= limit:
            break
        try:
            if isinstance(row, InvalidInput):
                raise row
            article = parse_article(row, {})
        except InvalidInput as error:
            read.invalid += 1
            read.first_invalid = read.first_invalid or f"{file}:{number}: {error}"
            continue
        if article.id in seen:
            read.repeated_id += 1
            continue
        seen.add(article.id)
        read.articles.append(article)
    if not read.articles:
        raise InvalidInput(read.first_invalid or f"{', '.join(files)}: no articles found.")
    return read


def _numbered_rows(files: Sequence[str]) -> Iterator[tuple[str, int, Row | InvalidInput]]:
    for block in read_blocks(files):
        yield from ((block.file, number, row) for number, row in block.rows)
