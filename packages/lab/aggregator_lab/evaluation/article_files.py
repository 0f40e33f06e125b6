"""Articles of input files of every format that ``aggregator dedupe`` reads, each id once."""

from __future__ import annotations

import contextlib
import re
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator_archive.dates import DateCounts
from aggregator_archive.rows import Columns, counted, parse_article, parse_rows


def read_articles(files: Sequence[str], columns: Columns = (), limit: int | None = None) -> list[Article]:
    """At most ``limit`` articles of files as for ``dedupe``, in order; ``columns`` as for ``parse_rows``.

    Rows that are left out (invalid, or with an id that occurred before: the service would take them for a new
    version) and dates not read are reported on stderr. Raises InvalidInput if there are no articles.
    """
    articles: dict[str, Article] = {}
    repeated, dates = 0, DateCounts()
    for row, article in parse_rows(files, columns, lambda _, row: (row, parse_article(row, {}))):
        if len(articles) == limit:
            break
        if article.id in articles:
            repeated += 1
            continue
        articles[article.id] = article
        dates.add(row, {}, is_read=article.published_at_ms is not None)
    if not articles:
        raise InvalidInput(f"{', '.join(files)}: no articles found.")
    if repeated:
        print(f"{counted(repeated, 'row')} left out whose id or text occurred before", file=sys.stderr)
    dates.report()
    return list(articles.values())


CHARSET_SEARCH_BYTES = 4096
_CHARSET = re.compile(rb"""charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]+)""", re.IGNORECASE)
# The encodings that browsers use for these names (WHATWG Encoding).
_ENCODING_ALIASES = {"iso-8859-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252", "ascii": "cp1252"}


def with_page_html(articles: Sequence[Article], path: Path) -> list[Article]:
    """Replace title and text by the HTML of each article's page. Raises InvalidInput if a page is missing."""
    if not path.exists():
        raise InvalidInput(f"{path} cannot be read: No such file or directory.")
    pages = _read_archive(path) if path.is_file() else _read_directory(path, articles)
    missing = [a.id for a in articles if a.id not in pages]
    if missing:
        raise InvalidInput(
            f"{path} has no page {missing[0]!r} ({len(missing)} of {len(articles)} are missing)."
        )
    return [replace(a, title="", text="", html=_decode_page(pages[a.id])) for a in articles]


def _read_archive(path: Path) -> Mapping[str, bytes]:
    try:
        with tarfile.open(path) as archive:
            opened = ((member.name, archive.extractfile(member)) for member in archive)
            return {name.removeprefix("./"): file.read() for name, file in opened if file is not None}
    except (OSError, tarfile.TarError, EOFError) as error:
        raise InvalidInput(f"{path}: not an archive that can be read ({error}); give a tar file.") from None


def _read_directory(path: Path, articles: Sequence[Article]) -> Mapping[str, bytes]:
    # An id such as "../secret" must not read a file outside of the directory.
    inside = {a.id: path / a.id for a in articles if path.resolve() in (path / a.id).resolve().parents}
    return {id_: file.read_bytes() for id_, file in inside.items() if file.is_file()}


def _decode_page(page: bytes) -> str:
    """Decode by the declared charset, else as UTF-8 if valid, else as Windows-1252."""
    declared = _CHARSET.search(page[:CHARSET_SEARCH_BYTES])
    for encoding in (declared[1].decode("ascii") if declared else "utf-8-sig", "utf-8-sig"):
        with contextlib.suppress(UnicodeDecodeError, LookupError):
            return page.decode(_ENCODING_ALIASES.get(encoding.lower(), encoding))
    return page.decode("cp1252", "replace")
