"""Registry of feature extractors, by the names that ``aggregator fit --features`` accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aggregator import extensions
from aggregator.errors import ModelError

if TYPE_CHECKING:  # it imports numpy, and the help text of ``fit`` needs the names only
    from aggregator.analysis.extractors.contract import StoredExtractor

# No extension: it is folded into one matrix and has its own file format (``features.FeatureModel``).
TFIDF_PCA = "tfidf-pca"


def feature_names() -> tuple[str, ...]:
    """The names of all extractors that are installed."""
    return TFIDF_PCA, *extensions.installed(extensions.EXTRACTORS)


def extractor_class(name: str) -> type[StoredExtractor]:
    """Return the class of an extractor. Raises ModelError for an unknown name."""
    point = extensions.installed(extensions.EXTRACTORS).get(name)
    if point is None:
        raise ModelError(
            f"The feature extractor {name!r} is unknown to this program; known: {', '.join(feature_names())} "
            "(newsdedup-lab has others)."
        )
    found: type[StoredExtractor] = point.load()
    return found
