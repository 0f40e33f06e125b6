"""Feature extractors beyond TF-IDF and PCA: entry points of the group ``aggregator.extractors``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any


class FittedByFile:
    """Base of the extractors: ``fit_file`` of ``StoredExtractor``."""

    @classmethod
    def fit_file(
        cls,
        paths: Sequence[Path | str],
        group: str,
        out: Path | str,
        *,
        metadata: Mapping[str, Any] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """Fit to the articles of ``group`` in files and save the model."""
        from aggregator_lab.extractor_fitting import fit_extractor_file  # imports scikit-learn

        fit_extractor_file(cls, paths, group, out, metadata=metadata, progress=progress)  # type: ignore[arg-type]
