"""Response bodies about provenance: who published a text or an event first, and outlets that share texts."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Struct

from aggregator_client.wire import ArticleRef, doc

TimeBasis = Literal["published", "day", "arrived"]
OutletKind = Literal["first", "own", "copy", "same time"]


class ChangesOut(Struct):
    """What an article changed of the one that it repeats; without both texts, the numbers are estimates."""

    summary: Annotated[str, doc("The changes in one sentence.", "Cut by a quarter, new headline.")]
    same_text: Annotated[bool, doc("Whether the texts are equal.", False)]
    headline_changed: Annotated[bool, doc("Whether the headlines differ.", True)]
    kept: Annotated[float, doc("Share of the earlier wording that it has, 0 to 1.", 0.76)]
    own: Annotated[float, doc("Share of its wording that the earlier article lacks, 0 to 1.", 0.12)]
    figures_cut: Annotated[int, doc("Numbers of the earlier article that it lacks.", 1)]
    figures_added: Annotated[int, doc("Numbers that the earlier article lacks.", 0)]
    cut_words: Annotated[int | None, doc("Words that it cut; null: a text is not stored.", 35)]
    added_words: Annotated[int | None, doc("Words that it added; null: a text is not stored.", 6)]
    cut: Annotated[
        list[str] | None, doc("Passages cut; null: no texts are stored.", ["It costs four crowns."])
    ]
    added: Annotated[list[str] | None, doc("Passages added; null: as ``cut``.", ["Good news for swimmers."])]
    cut_figures: Annotated[list[str] | None, doc("Numbers cut; null: a text is not stored.", ["1,200"])]
    added_figures: Annotated[list[str] | None, doc("Numbers added; null: a text is not stored.", ["1,300"])]


class StepOut(Struct):
    """One article of a text's lineage.

    ``basis``: "published" (stated by the outlet), "day" (it states a day only) or "arrived" (neither: when it
    was sent here). ``copied_from`` was published strictly earlier.
    """

    article: Annotated[ArticleRef, doc("The article; null: none is stored.")]
    at: Annotated[datetime, doc("Time.", "2026-11-20T08:40:00Z")]
    basis: Annotated[TimeBasis, doc("Whether the outlet states time, day, or neither.", "published")]
    lag_minutes: Annotated[float, doc("Minutes after the first publication, 0 or more.", 42.0)]
    copied_from: Annotated[str | None, doc("Id of the article that it repeats; null: none.", "pool-1")]
    resemblance: Annotated[float | None, doc("Resemblance to that article, 0 to 1; null without one.", 0.55)]
    changes: Annotated[ChangesOut | None, doc("What it changed of that article; null: it repeats none.")]


class ProvenanceOut(Struct):
    """Who published a text first, and who repeated it; at most 100 articles are compared.

    ``certain``: outlets stated the times, and no other has the same one.
    """

    id: Annotated[str, doc("Id of the article.", "pool-1")]
    first: Annotated[ArticleRef, doc("The first article; null: none is stored.")]
    certain: Annotated[bool, doc("Whether the first publisher is known for sure.", True)]
    outlets: Annotated[int, doc("Number of outlets.", 4)]
    steps: Annotated[list[StepOut], doc("The articles in order of time, the first publisher first.")]
    truncated: Annotated[bool, doc("Whether there are more than are listed or compared.", False)]


class OutletOut(Struct):
    """The first article of one outlet on an event.

    ``kind``: "first" of the event; "own": nobody published this text earlier; "copy": another outlet did;
    "same time": another outlet published it at the same time.
    """

    source: Annotated[str, doc("Name of the outlet; empty: unknown.", "Brackwater Gazette")]
    article: Annotated[ArticleRef, doc("The article; null: none is stored.")]
    at: Annotated[datetime, doc("Time.", "2026-11-20T08:40:00Z")]
    basis: Annotated[TimeBasis, doc("Whether the outlet states time, day, or neither.", "published")]
    lag_minutes: Annotated[float, doc("Minutes after the first publication, 0 or more.", 42.0)]
    kind: Annotated[OutletKind, doc("Whether it was first, wrote its own text, or copied.", "own")]
    original: Annotated[ArticleRef | None, doc("First publication of the text, if another outlet's.")]
    articles: Annotated[int, doc("Articles of this outlet on the event.", 3)]


class TextOut(Struct):
    """A text that several outlets published."""

    certain: Annotated[bool, doc("Whether the first publisher is known for sure.", True)]
    outlets: Annotated[int, doc("Number of outlets.", 4)]
    steps: Annotated[list[StepOut], doc("The articles in order of time, the first publisher first.")]


class EventProvenanceOut(Struct):
    """Who had an event first, and the texts that its outlets share; its first 400 articles are read."""

    id: Annotated[str, doc("Id of the article.", "pool-1")]
    first: Annotated[ArticleRef | None, doc("The first article; null: none is stored.")]
    outlets: Annotated[list[OutletOut], doc("Outlets in order of their first articles.")]
    families: Annotated[list[list[str]], doc("Outlets that usually share texts.", [["Gazette", "Radio"]])]
    independent: Annotated[int, doc("Number of outlets, each family counted once.", 3)]
    texts: Annotated[list[TextOut], doc("Texts that several outlets published.")]
    articles: Annotated[int, doc("Number of articles.", 312)]
    truncated: Annotated[bool, doc("Whether there are more than are listed or compared.", False)]


class PartnerOut(Struct):
    """Another outlet, and the number of texts."""

    name: Annotated[str, doc("Name.", "Brackwater Gazette")]
    texts: Annotated[int, doc("Number of texts.", 57)]


class FamilyOut(Struct):
    """Outlets that publish the same texts; ``texts``: published by two or more of them."""

    members: Annotated[list[str], doc("The outlets, the largest first.", ["Brackwater Gazette", "Radio"])]
    texts: Annotated[int, doc("Number of texts.", 57)]
    first: Annotated[list[PartnerOut], doc("How many of the texts each member published first.")]


class SourceOut(Struct):
    """One outlet; articles = originals + copies + repeats."""

    name: Annotated[str, doc("Name.", "Brackwater Gazette")]
    articles: Annotated[int, doc("Number of articles.", 312)]
    originals: Annotated[int, doc("Articles whose text no other outlet published earlier.", 180)]
    copies: Annotated[int, doc("Articles whose text another outlet published earlier.", 120)]
    repeats: Annotated[int, doc("Articles that repeat an own text.", 12)]
    original_share: Annotated[float, doc("Originals divided by articles, 0 to 1.", 0.58)]
    copy_share: Annotated[float, doc("Copies divided by articles, 0 to 1.", 0.38)]
    copied: Annotated[int, doc("Originals that other outlets published later.", 44)]
    median_lag_minutes: Annotated[float | None, doc("Median lag of the copies, minutes; null: none.", 38.5)]
    undated: Annotated[int, doc("Articles ordered by arrival or day, for lack of a publication time.", 4)]
    family: Annotated[list[str], doc("Other members of its syndication family.", ["Coastline News"])]


class SourcesOut(Struct):
    """Statistics of the outlets of the last 30 days or 500,000 articles, the 5,000 with most articles."""

    computed_at: Annotated[datetime | None, doc("Time of the count; null: none yet.", "2026-11-20T08:00:00Z")]
    since: Annotated[datetime | None, doc("Arrival of the oldest article counted.", "2026-11-20T08:00:00Z")]
    articles: Annotated[int, doc("Number of articles.", 312)]
    unnamed: Annotated[int, doc("Articles without a source, which are not counted.", 2)]
    total: Annotated[int, doc("Number of all that match.", 214)]
    sources: Annotated[list[SourceOut], doc("The outlets.")]
    families: Annotated[list[FamilyOut], doc("Groups of outlets that usually publish the same texts.")]
    truncated: Annotated[bool, doc("Whether there are more than are listed or compared.", False)]


class SourceDetailOut(SourceOut):
    """As SourceOut, with the outlets that it copied most and those that copied it most."""

    copied_from: Annotated[list[PartnerOut], doc("The outlets that it copied most, at most 10.")]
    copied_by: Annotated[list[PartnerOut], doc("The outlets that copied it most, at most 10.")]
    shared_by_family: Annotated[FamilyOut | None, doc("Texts that its family shares; null: it has none.")]
    computed_at: Annotated[datetime, doc("Time of the count.", "2026-11-20T08:00:00Z")]
    since: Annotated[datetime | None, doc("Arrival of the oldest article counted.", "2026-11-20T08:00:00Z")]
