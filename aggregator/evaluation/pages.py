"""Saved web pages as articles: the extraction stage is scored with what follows it.

Pages lie in a directory or a tar archive (compressed or not), each under the id of its article. Their bytes are
decoded as a crawler would: what the page declares, else what its bytes look like.
"""

from __future__ import annotations

import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from aggregator.domain import Article
from aggregator.errors import BadInput


def with_pages(articles: Sequence[Article], path: Path) -> list[Article]:
    """The articles with their page's markup in place of title and text. Raises BadInput when one is missing."""
    pages = _archive(path) if path.is_file() else _directory(path, articles)
    missing = [a.id for a in articles if a.id not in pages]
    if missing:
        raise BadInput(f"{path} has no page {missing[0]!r} ({len(missing)} of {len(articles)} are missing).")
    return [replace(a, title="", text="", html=_decoded(pages[a.id])) for a in articles]


def _archive(path: Path) -> Mapping[str, bytes]:
    try:
        with tarfile.open(path) as archive:
            opened = ((member.name, archive.extractfile(member)) for member in archive)
            return {name.removeprefix("./"): file.read() for name, file in opened if file is not None}
    except (OSError, tarfile.TarError, EOFError) as error:
        raise BadInput(f"{path}: not an archive that can be read ({error}).") from None


def _directory(path: Path, articles: Sequence[Article]) -> Mapping[str, bytes]:
    inside = {a.id: path / a.id for a in articles if path.resolve() in (path / a.id).resolve().parents}
    return {id_: file.read_bytes() for id_, file in inside.items() if file.is_file()}


def _decoded(page: bytes) -> str:
    from trafilatura.utils import decode_file

    return decode_file(page)
