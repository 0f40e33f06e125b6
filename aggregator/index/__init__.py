"""Which stored articles are near this one, and how is a decision recorded?

Everything the service knows of stored articles goes through ``Index``: look-ups of many articles in one
round trip (``lookup``), what readers ask for (``neighbourhood``), bindings by id and groups of copies (``groups``), the articles in the order they
came (``articlestream``), over the segments of each space (``segments``, ``snapshot``). The rules are
elsewhere (``verdict.py``); what a change consists of is in ``changes.py``.

A **snapshot** holds the values of all keys that one batch looked at. Decisions for the batch are made
in order against the snapshot, each one's writes applied to it before the next is made; so a batch
gives the verdicts of posting its articles one by one, in two reads instead of two per article.
"""

from __future__ import annotations

from aggregator.index.article_stream import ArticleStream
from aggregator.index.base import MAX_COMMIT_ATTEMPTS
from aggregator.index.bindings import StoredArticle
from aggregator.index.lookup import MAX_CANDIDATES, RADIUS_BITS, Probe
from aggregator.index.related_lookup import RelatedCandidates, RelatedLookup
from aggregator.index.snapshot import SegmentStack, Snapshot

__all__ = [
    "MAX_CANDIDATES",
    "MAX_COMMIT_ATTEMPTS",
    "RADIUS_BITS",
    "Index",
    "Probe",
    "RelatedCandidates",
    "SegmentStack",
    "Snapshot",
    "StoredArticle",
]


class Index(RelatedLookup, ArticleStream):
    """The fingerprint index of all spaces over one store."""
