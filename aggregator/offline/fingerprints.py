"""Fingerprints of archive rows as the service computes them, for the literal event rule offline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aggregator.domain import Article
from aggregator.errors import AggregatorError

if TYPE_CHECKING:
    from aggregator.analysis.analyzer import Analyzer


class ServiceFingerprints:
    """Analyzer of rows that is loaded at its first use, so that it can be sent to another process.

    ``models_dir``: directory of fitted feature models; empty: the models shipped with the package.
    """

    def __init__(self, models_dir: str = "") -> None:
        self._models_dir = models_dir
        self._analyzer: Analyzer | None = None

    def __reduce__(self) -> tuple[type[ServiceFingerprints], tuple[str]]:
        return ServiceFingerprints, (self._models_dir,)

    def of_row(self, row: Mapping[str, Any]) -> tuple[str, int]:
        """Return (space, fingerprint) of a row's ``title`` and ``text``; ("", 0) if it has no words."""
        lang = _text_of(row, "lang") or None
        article = Article(id="row", title=_text_of(row, "title"), text=_text_of(row, "text"), lang=lang)
        try:
            analysis = self._loaded().analyze(article)
        except AggregatorError:
            return "", 0
        return analysis.space, analysis.fingerprint

    def _loaded(self) -> Analyzer:
        if self._analyzer is None:
            from aggregator.analysis.analyzer import Analyzer
            from aggregator.analysis.models import load_models

            self._analyzer = Analyzer(load_models(Path(self._models_dir) if self._models_dir else None))
        return self._analyzer


def _text_of(row: Mapping[str, Any], field: str) -> str:
    value = row.get(field)
    return value if isinstance(value, str) else ""
