"""The fingerprint index: what is stored about articles, and how near-duplicates of an article are found.

``Index`` (``index.py``) composes the parts; ``keys.py`` lists every key. The rules that decide on what was
found are in ``dedup``, the commit protocol is in ``ingest``, and ``transactions.py`` says what a change
consists of.

A batch is decided on a **snapshot**, the values of all keys that its lookups read. Articles are decided in
order, and the writes of each are applied to the snapshot before the next is decided. So a batch gives the
same verdicts as posting its articles one by one, with two reads per batch instead of two per article.
"""

from __future__ import annotations

from aggregator.index.articles import StoredArticle
from aggregator.index.index import Index
from aggregator.index.lookup import RADIUS_BITS, Probe
from aggregator.index.snapshot import Snapshot

__all__ = ["RADIUS_BITS", "Index", "Probe", "Snapshot", "StoredArticle"]
