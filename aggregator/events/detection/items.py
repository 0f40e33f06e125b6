"""Conversion of stream items to items of the detector's window: terms, time, and whether they count.

On a timeline (window 4 h)::

    published 09:30, arrives 12:00           counts at 09:30
    published 08:00, arrives 12:00:00.001    over 4 h old: late; only teaches what is usual at 08:00
    published 13:00, arrives 12:00           date in the future: counts at its arrival
    published 00:00:00.000 of today, 12:00   a date without a time: counts at its arrival
    not dated,       arrives 12:00           counts at its arrival
    backfill, published at any time          late, also within the window; ignored without a date

**Bulk loads.** An archive of undated articles that is sent at once would look like a burst. What exceeds a
limit per minute, the usual number of a whole window, is ignored until a minute below it has passed.

**Name variants.** Countries and their adjectives ("Egypt", "Egyptian") count as one term, by English stems.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from aggregator.analysis.text import tokenizer
from aggregator.analysis.text.normalization import split_headline
from aggregator.domain import ArticleRecord, StreamItem, publication_time
from aggregator.events.detection.baseline import ALL_DOCUMENTS, Baseline
from aggregator.events.detection.clustering import MAX_TERM_WEIGHT, WindowItem
from aggregator.time_units import HOUR_MS, MINUTE_MS

# Adjective -> name, as word stems.
_ADJECTIVES = """
    afghan:afghanistan albanian:albania algerian:algeria american:america argentin:argentina
    armenian:armenia australian:australia austrian:austria azerbaijani:azerbaijan bangladeshi:bangladesh
    belgian:belgium bolivian:bolivia bosnian:bosnia brazilian:brazil british:britain bulgarian:bulgaria
    cambodian:cambodia canadian:canada chilean:chile chines:china colombian:colombia congoles:congo
    croatian:croatia cuban:cuba cypriot:cyprus czech:czech danish:denmark dutch:netherland
    ecuadorean:ecuador egyptian:egypt estonian:estonia ethiopian:ethiopia european:europ finnish:finland
    french:franc georgian:georgia german:germani ghanaian:ghana greek:greec haitian:haiti
    hungarian:hungari icelandic:iceland indian:india indonesian:indonesia iranian:iran iraqi:iraq
    irish:ireland israeli:israel italian:itali ivorian:ivori jamaican:jamaica japanes:japan
    jordanian:jordan kazakh:kazakhstan kenyan:kenya korean:korea kuwaiti:kuwait kyrgyz:kyrgyzstan
    latvian:latvia lebanes:lebanon libyan:libya lithuanian:lithuania malaysian:malaysia malian:mali
    mexican:mexico mongolian:mongolia moroccan:morocco nepales:nepal nigerian:nigeria norwegian:norway
    ossetian:ossetia pakistani:pakistan palestinian:palestin peruvian:peru polish:poland
    portugues:portug romanian:romania russian:russia rwandan:rwanda saudi:saudi serbian:serbia
    singaporean:singapor slovak:slovakia slovenian:slovenia somali:somalia spanish:spain sudanes:sudan
    swedish:sweden swiss:switzerland syrian:syria taiwanes:taiwan thai:thailand tunisian:tunisia
    turkish:turkey ugandan:uganda ukrainian:ukrain venezuelan:venezuela vietnames:vietnam yemeni:yemen
    zimbabwean:zimbabw
"""
_WORDS = "earthquak:quak gunmen:gunman"

VARIANTS = {
    variant: name
    for pair in f"{_ADJECTIVES} {_WORDS}".split()
    for variant, name in [pair.split(":")]
    if variant != name
}
# Limit that no stream exceeds: at that rate a day has 4 million.
MAX_PER_MINUTE = 3_000
# Limit of a small stream. The first visit of a crawler to its feeds brings that many.
MIN_PER_MINUTE = 300


def terms_of_word(word: str, lang: str) -> list[str]:
    """Return the terms of a word of a headline: several in a script without spaces, none for a stop word."""
    return [VARIANTS.get(term, term) for term in tokenizer.tokenize(word, lang)]


def to_window_item(item: StreamItem, now_ms: int, clock_ms: int, window_ms: int) -> WindowItem:
    """Convert an item that arrived at ``now_ms``; late ones and backfills get ``clock_ms``, do not count."""
    largest = max([weight for _, weight in item.terms], default=0.0) or 1.0
    desk_prefix, title = split_headline(item.title)
    at_ms = placed_ms(item, now_ms)
    late = item.backfill or at_ms < clock_ms - window_ms
    return WindowItem(
        number=item.number,
        first_version=item.first_version,
        id=item.id,
        at_ms=clock_ms if late else at_ms,
        source=item.source,
        title=title,
        terms=_to_integer_weights(item.terms, largest),
        is_counted=not late,
        cosine=1.0,
        cluster_key=-1,
        fingerprint=item.fingerprint,
        lang=item.lang,
        space=item.space,
        desk_prefix=desk_prefix,
    )


def placed_ms(item: StreamItem, now_ms: int) -> int:
    """Return the time of an item in the stream: its publication if that is plausible, else its arrival."""
    published_ms = plausible_date_ms(item)
    return now_ms if published_ms is None else min(published_ms, now_ms)


def plausible_date_ms(item: StreamItem | ArticleRecord) -> int | None:
    """Return the time of publication; None if ``publication_time`` takes the arrival instead."""
    at_ms, basis = publication_time(item.published_at_ms, item.arrived_ms)
    return None if basis == "arrived" else at_ms


def _to_integer_weights(terms: Iterable[tuple[str, float]], largest: float) -> dict[str, int]:
    weights: dict[str, int] = {}
    for variant, weight in terms:
        if weight > 0:
            term = VARIANTS.get(variant, variant)
            weights[term] = max(weights.get(term, 0), round(MAX_TERM_WEIGHT * weight / largest) or 1)
    return weights


class UndatedArticles(msgspec.Struct, array_like=True):
    """Undated articles of the present minute, and of a bulk load. The order is part of the saved state."""

    minute: int = 0
    count: int = 0
    ignored: int = 0

    def is_bulk(self, now_ms: int, baseline: Baseline) -> bool:
        """Count an undated article that arrives at ``now_ms``; return whether it belongs to a bulk load."""
        limit = limit_per_minute(baseline, now_ms // HOUR_MS)
        minute = now_ms // MINUTE_MS
        if minute != self.minute:
            if minute > self.minute + 1 or self.count <= limit:
                self.ignored = 0
            self.minute, self.count = minute, 0
        self.count += 1
        if not self.ignored and self.count <= limit:
            return False
        self.ignored += 1
        return True


def limit_per_minute(baseline: Baseline, hour: int) -> float:
    """Return the undated articles of one minute above which they are a bulk load."""
    if baseline.missing_share(hour):
        return MAX_PER_MINUTE
    return min(MAX_PER_MINUTE, max(MIN_PER_MINUTE, baseline.expected(ALL_DOCUMENTS, hour)))
