"""Response bodies about provenance: who published a text or an event first, and outlets that share texts.

As ``responses.py``: imports nothing of the service; docstrings become descriptions of the OpenAPI schemas.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import Struct

from aggregator_client.wire import ArticleRef

TimeBasis = Literal["published", "day", "arrived"]
OutletKind = Literal["first", "own", "copy", "same time"]


class ChangesOut(Struct):
    """What an article changed of the one that it repeats.

    ``kept``: share of the earlier wording that it has; ``own``: share of its wording that the earlier article
    lacks; both 0..1. The fields from ``cut_words`` on are null unless both texts are stored: then the shares
    and numbers of figures are estimates.
    """

    summary: str
    same_text: bool
    headline_changed: bool
    kept: float
    own: float
    figures_cut: int
    figures_added: int
    cut_words: int | None
    added_words: int | None
    cut: list[str] | None
    added: list[str] | None
    cut_figures: list[str] | None
    added_figures: list[str] | None


class StepOut(Struct):
    """One article of a text's lineage.

    ``at``: the time it is ordered by; ``basis``: "published" (stated by the outlet), "day" (it states a day
    only) or "arrived" (no usable publication time: when it was sent here). ``copied_from``: id of the article
    that it most likely repeats, published strictly earlier; null: none was. ``resemblance`` to that, 0..1.
    """

    article: ArticleRef
    at: datetime
    basis: TimeBasis
    lag_minutes: float
    copied_from: str | None
    resemblance: float | None
    changes: ChangesOut | None


class ProvenanceOut(Struct):
    """Who published a text first, and who repeated it; steps in order of time, the first publisher first.

    ``certain``: the first publisher is known: outlets stated the times, and no other has the same one.
    ``truncated``: there are more articles than the 100 compared.
    """

    id: str
    first: ArticleRef
    certain: bool
    outlets: int
    steps: list[StepOut]
    truncated: bool


class OutletOut(Struct):
    """The first article of one outlet on an event.

    ``kind``: "first" of the event; "own": nobody published this text earlier; "copy": another outlet did;
    "same time": another outlet published it at the same time. ``original``: the first publication of the
    text, if another outlet's. ``articles``: of this outlet on the event.
    """

    source: str
    article: ArticleRef
    at: datetime
    basis: TimeBasis
    lag_minutes: float
    kind: OutletKind
    original: ArticleRef | None
    articles: int


class TextOut(Struct):
    """A text that several outlets published; steps in order of time."""

    certain: bool
    outlets: int
    steps: list[StepOut]


class EventProvenanceOut(Struct):
    """Who had an event first: outlets in order of their first articles, and the texts that they share.

    ``families``: outlets among these that usually publish the same texts; ``independent``: number of outlets,
    each family counted once. ``articles``: number of articles read; ``truncated``: the event has more than
    these, its first 400.
    """

    id: str
    first: ArticleRef | None
    outlets: list[OutletOut]
    families: list[list[str]]
    independent: int
    texts: list[TextOut]
    articles: int
    truncated: bool


class PartnerOut(Struct):
    """Another outlet, and the number of texts."""

    name: str
    texts: int


class FamilyOut(Struct):
    """Outlets that publish the same texts, those with most articles first.

    ``texts``: published by two or more members; ``first``: how many of them each published first.
    """

    members: list[str]
    texts: int
    first: list[PartnerOut]


class SourceOut(Struct):
    """One outlet; articles = originals + copies + repeats.

    ``originals``: no other outlet published the text earlier; ``copies``: one did; ``repeats``: its own texts
    again. ``original_share`` and ``copy_share`` of the articles, 0..1. ``copied``: originals that others
    published later. ``median_lag_minutes`` of the copies behind the first publisher. ``undated``: articles
    ordered by their arrival or day, for lack of a publication time. ``family``: the other members of its
    syndication family.
    """

    name: str
    articles: int
    originals: int
    copies: int
    repeats: int
    original_share: float
    copy_share: float
    copied: int
    median_lag_minutes: float | None
    undated: int
    family: list[str]


class SourcesOut(Struct):
    """Statistics of the outlets of the last 30 days or 500,000 articles.

    ``computed_at``: null before the first count, up to a minute after the start. ``since``: arrival of the
    oldest article counted. ``total``: outlets that match the query. ``unnamed``: articles without a source.
    ``truncated``: only the 5,000 outlets with most articles are listed.
    """

    computed_at: datetime | None
    since: datetime | None
    articles: int
    unnamed: int
    total: int
    sources: list[SourceOut]
    families: list[FamilyOut]
    truncated: bool


class SourceDetailOut(SourceOut):
    """As SourceOut, with the outlets that it copied most and those that copied it most (10 each)."""

    copied_from: list[PartnerOut]
    copied_by: list[PartnerOut]
    shared_by_family: FamilyOut | None
    computed_at: datetime
    since: datetime | None
