"""Page on which a person judges a random sample of duplicate pairs: one HTML file without other resources.

The page does not show what the counter says. Judgments are kept in the browser and saved as a JSON file
(``judgments.py``).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import xxhash

from aggregator.analysis.analyzer import uses_spaces
from aggregator.dedup.diff import DiffSpan, diff_texts
from aggregator.domain import Article
from aggregator.time_units import DAY_MS, HOUR_MS, format_minute
from aggregator_archive.page_templates import load_templates
from aggregator_lab.evaluation.duplicate_stream import DuplicatePair
from aggregator_lab.evaluation.judgments import FORMAT

_TEMPLATES = load_templates(Path(__file__).parent / "pages")


def sample_pairs(pairs: Sequence[DuplicatePair], count: int, seed: int = 0) -> list[DuplicatePair]:
    """At most ``count`` of the pairs in random order, the same for the same seed."""
    return random.Random(seed).sample(pairs, min(count, len(pairs)))


def render_page(pairs: Sequence[DuplicatePair], total: int, method: str) -> str:
    """Return the complete HTML document for ``pairs``, a sample of the ``total`` duplicates of ``method``."""
    ids = "\n".join(f"{pair.article.id} {pair.match.id}" for pair in pairs)
    return _TEMPLATES.get_template("judgment.html").render(
        pairs=[_pair_context(pair) for pair in pairs],
        total=total,
        method=method,
        format=FORMAT,
        key=xxhash.xxh3_64_hexdigest(ids.encode("utf-8", "surrogatepass")),
    )


def _pair_context(pair: DuplicatePair) -> dict[str, Any]:
    first, second = pair.match, pair.article
    spans = diff_texts(first.text, second.text, pair.lang, pair.lang)
    return {
        "a": second.id,
        "b": first.id,
        "lang": pair.lang,
        "shared": pair.evidence.containment if first.text and second.text else None,
        "apart": _time_apart(first, second),
        "sides": [
            _side_context("first", first, spans[0], pair.lang),
            _side_context("second", second, spans[1], pair.lang),
        ],
    }


def _side_context(role: str, article: Article, spans: list[DiffSpan], lang: str) -> dict[str, Any]:
    if uses_spaces(lang):
        length = f"{len(article.text.split()):,} words"
    else:
        length = f"{len(article.text):,} characters"
    date = article.published_at_ms
    return {
        "role": role,
        "title": article.title,
        "source": article.source,
        "time": "" if date is None else format_minute(date),
        "length": length,
        "spans": spans,
    }


def _time_apart(a: Article, b: Article) -> str:
    """Difference of the dates as text (days, or hours below two days); empty for equal and missing dates."""
    if a.published_at_ms is None or b.published_at_ms is None or a.published_at_ms == b.published_at_ms:
        return ""
    apart_ms = abs(a.published_at_ms - b.published_at_ms)
    if apart_ms >= 2 * DAY_MS:
        return f"{apart_ms // DAY_MS:,} days apart"
    return f"{max(1, round(apart_ms / HOUR_MS))} h apart"
