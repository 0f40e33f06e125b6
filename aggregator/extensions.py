"""Parts that other distributions add: entry points of the two groups below, which load at first use."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points

COMMANDS = "aggregator.commands"  # name of a command -> function that adds it to argparse's subparsers
# Name of a feature extractor -> its class, an ``analysis.models.Extractor``.
EXTRACTORS = "aggregator.extractors"
TFIDF_PCA = "tfidf-pca"  # the features of the service itself


@cache
def installed(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name."""
    return {point.name: point for point in entry_points(group=group)}


def feature_names() -> tuple[str, ...]:
    """The names that ``aggregator fit --features`` accepts."""
    return TFIDF_PCA, *installed(EXTRACTORS)
