"""Analyses as they travel between processes: tuples, without the text that the caller has, at a third of the time of objects."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from aggregator.domain import Analysis, Article, Sketch
from aggregator.errors import AggregatorError

LENGTH_BYTES = 8

Result = Analysis | AggregatorError


def framed(data: bytes) -> bytes:
    """With its length before it."""
    return len(data).to_bytes(LENGTH_BYTES) + data


def packed(found: Result, article: Article) -> Any:
    """An analysis as a tuple in the order of its fields; title and text None where the article's own are meant."""
    if not isinstance(found, Analysis):
        return found
    return (
        found.lang, found.space, found.fingerprint, found.text_hash, found.short,
        found.sketch.size, found.sketch.sample.tobytes(), found.terms, found.figures,
        None if found.title == article.title else found.title,
        None if found.text == article.text else found.text,
    )  # fmt: skip


def unpacked(packed: Any, article: Article) -> Result:
    """The opposite."""
    if not isinstance(packed, tuple):
        return cast(AggregatorError, packed)
    lang, space, fingerprint, text_hash, short, size, sample, terms, figures, title, text = packed
    return Analysis(
        lang,
        space,
        fingerprint,
        text_hash,
        short,
        Sketch(size, np.frombuffer(sample, np.uint32)),
        terms,
        figures,
        article.title if title is None else title,
        article.text if text is None else text,
    )
