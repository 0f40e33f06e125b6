"""The fingerprint index: what is stored about articles, and how near-duplicates of an article are found.

``Index`` composes the parts; ``keys.py`` lists every key. A batch is decided on a **snapshot**, the values of
all keys that its lookups read; the writes of each article are applied to it before the next is decided. So a
batch gives the verdicts of posting its articles one by one, with two reads per batch.
"""

from __future__ import annotations

from aggregator.index.articles import StoredArticle
from aggregator.index.index import Index
from aggregator.index.lookup import RADIUS_BITS, Probe
from aggregator.index.snapshot import Snapshot

__all__ = ["RADIUS_BITS", "Index", "Probe", "Snapshot", "StoredArticle"]
