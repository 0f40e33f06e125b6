"""Voices: who published in which language in the last 7 days, and how many items of a story count.

The rules: docs/design/event-detection.md. A subject of the day is a pair of names in many voices' headlines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import ceil, pow
from typing import NamedTuple

import msgspec

from aggregator.analysis.source import site_group
from aggregator.analysis.text.normalization import normalize, source_key
from aggregator.events.detection.baseline import KNOWN_VOLUME_SHARE
from aggregator.events.detection.clustering import WindowItem
from aggregator.events.detection.items import is_name
from aggregator.events.detection.model import CHANCE_ITEMS, HISTORY_DAYS, HISTORY_MS, HOURS_PER_DAY, BurstRule
from aggregator.events.detection.newsworthiness import core_terms, count_terms
from aggregator.time_units import DAY_MS

MIN_VOICES = 5
# (factor, exponent): a story of factor * documents_a_day ** exponent items is large.
LARGE_STORY = (0.68, 0.3)
# (items, documents a day): a thin window has loose clusters, so at least so many items are needed (or one in
# MIN_VOICES voices), linearly less down to none at so many documents. A subject needs as many, and a share.
THIN_DESK = (6, 3_000)
SUBJECT_SHARE = 0.045
WIRE_A_DAY = 40
# Of what an event needs, one voice counts with one of so many parts, or what it publishes in a window.
VOICE_PARTS = 3


class Story(NamedTuple):
    """How much of a story counts.

    size       its items, those of a voice up to a third of the needed, those of a wire in proportion
    items      the same, those of a wire in full, to be compared with ``expected``
    told       the same, a wire as any voice
    new_items  items of sources first seen today
    """

    size: float
    items: int
    told: int
    voices: int
    new_items: int
    expected: float = 0.0


class Source(msgspec.Struct, array_like=True):
    """Its first hour here; whether an article was in time, its late ones, and those that taught, by day.

    ``name``: as its last late article spells it.
    """

    first_hour: int
    is_in_time: bool = False
    late: int = 0
    taught: dict[int, int] = {}
    name: str = ""


class Voices(msgspec.Struct, array_like=True):
    """Documents of the last 7 days by language, source and day; the sources by ``source_key``; known days."""

    by_language: dict[str, dict[str, dict[int, int]]] = {}
    documents: dict[str, dict[int, int]] = {}  # by language and day
    of_wires: dict[str, dict[int, int]] = {}  # those of a source beyond ``WIRE_A_DAY``
    sources: dict[str, Source] = {}
    days: set[int] = set()
    today: int = 0

    def observe(self, lang: str, key: str, hour: int) -> Source:
        """Count a document of a source in this hour: of its arrival, or for which it is declared."""
        day = hour // HOURS_PER_DAY
        if day > self.today:
            self._expire(day - HISTORY_DAYS)
            self.today, self.days = day, {d for d in self.days if d >= day - HISTORY_DAYS}
        elif day < self.today - HISTORY_DAYS:
            return self.sources.get(key) or Source(hour)
        self.days.add(day)
        days = self.by_language.setdefault(lang, {}).setdefault(key, {})
        total = self.documents.setdefault(lang, {})
        days[day], total[day] = days.get(day, 0) + 1, total.get(day, 0) + 1
        if days[day] > WIRE_A_DAY:
            wires = self.of_wires.setdefault(lang, {})
            wires[day] = wires.get(day, 0) + 1
        source = self.sources.setdefault(key, Source(hour))
        source.first_hour = min(hour, source.first_hour)
        return source

    def _expire(self, oldest: int) -> None:
        for lang, sources in self.by_language.items():
            kept = ((by, {d: n for d, n in days.items() if d >= oldest}) for by, days in sources.items())
            self.by_language[lang] = {source: days for source, days in kept if days}
            for total in (self.documents, self.of_wires):
                total[lang] = {d: n for d, n in total.get(lang, {}).items() if d >= oldest}
        names = {source for sources in self.by_language.values() for source in sources}
        self.sources = {key: source for key, source in self.sources.items() if key in names}

    def counts_voices(self, lang: str) -> bool:
        """Whether enough sources are known; else items are counted, as of one wire."""
        return len(self.by_language.get(lang, ())) >= MIN_VOICES

    def is_usual(self, lang: str, key: str) -> bool:
        """Whether the source published on half of the known days before today."""
        days = self.by_language.get(lang, {}).get(key, {})
        return 2 * len(days.keys() - {self.today}) >= max(2, len(self.days) - 1)

    def items_needed(self, lang: str, most: int, missing_share: float) -> int:
        """Items that an event exceeds, at most ``most``, which holds without a history.

        Large stories grow with the volume, but more slowly.
        """
        if not self.counts_voices(lang):
            return most
        a_day, today = self.a_day(lang), self._on(lang, self.today)
        few = min(THIN_DESK[0], len(self.by_language[lang]) / MIN_VOICES)
        least = few * (1.0 - a_day / THIN_DESK[1])
        large = min(most, ceil(max(CHANCE_ITEMS, least, LARGE_STORY[0] * pow(a_day, LARGE_STORY[1]))))
        missing = max(missing_share, 1.0 - a_day / (KNOWN_VOLUME_SHARE * today) if today else 0.0)
        return large + int(missing * (most - large))

    def voices_needed(self, lang: str) -> int:
        """Voices that a subject of the day needs."""
        return max(THIN_DESK[0], ceil(SUBJECT_SHARE * self.a_day(lang)))

    def a_day(self, lang: str) -> float:
        """Documents a day in a language before today, without those of wires; of today on the first day."""
        return self._mean({day: self._on(lang, day) for day in self.documents.get(lang, ())})

    def _on(self, lang: str, day: int) -> int:
        return self.documents[lang].get(day, 0) - self.of_wires.get(lang, {}).get(day, 0)

    def count(
        self, members: Sequence[WindowItem], lang: str, needed: int, rule: BurstRule, hour: int
    ) -> Story:
        """Measure a story that needs ``needed`` items, or those of the rule where items are counted."""
        by_source: dict[str, list[WindowItem]] = {}
        for member in members:
            by_source.setdefault(source_key(member.source), []).append(member)
        voices = {key: key for key in by_source}
        new = []
        if len(self.days) >= HISTORY_DAYS:
            known_hour = hour - HOURS_PER_DAY
            new = [k for k in by_source if k not in self.sources or self.sources[k].first_hour > known_hour]
        sent = {k: sum(sum(s.get(k, {}).values()) for s in self.by_language.values()) for k in new}
        alone = [key for key in new if sent[key] <= len(by_source[key])]
        for i, key in enumerate(alone):
            voices[key] = next((voices[a] for a in alone[:i] if self._is_one(a, key, by_source)), voices[key])
        items: Counter[str] = Counter()
        for key, own in by_source.items():
            items[voices[key]] += len(own)
        new_items = sum(len(by_source[key]) for key in new)
        if not self.counts_voices(lang):
            return Story(len(members), len(members), len(members), len(items), new_items)
        size, counted, told, known = 0.0, 0, 0, self.by_language.get(lang, {})
        for voice, number in items.items():
            part = min(number, ceil(needed / VOICE_PARTS))
            wire = min(number, int(self._mean(known.get(voice, {})) * rule.window_ms / DAY_MS))
            size, counted = size + max(part, wire * needed / rule.items), counted + max(part, wire)
            told += part
        return Story(size, counted, told, len(items), new_items)

    def find_subject(
        self, day: Sequence[WindowItem], usual: Mapping[str, float], needed: int, rule: BurstRule, hour: int
    ) -> tuple[list[WindowItem], float]:
        """The items with the names that most voices tell, and ``usual`` ones; at most half are new."""
        best, most, expected = list[WindowItem](), needed - 1, 0.0
        for a, b in combinations(usual, 2):
            told = [m for m in day if a in m.terms and b in m.terms and {a, b}.issubset(m.headline_terms)]
            if len(told) <= most or len(core_terms(told, count_terms(told))) < 3:
                continue  # "White House" alone is no subject
            story = self.count(told, told[-1].lang, needed, rule, hour)
            voices = min(story.voices, 2 * (story.voices - story.new_items))
            if voices > most and is_name(a, told) and is_name(b, told):
                best, most, expected = told, voices, min(usual[a], usual[b])
        return best, expected

    def _mean(self, documents: Mapping[int, int]) -> float:
        past = sum(n for day, n in documents.items() if day != self.today)
        return past / (len(self.days) - 1) if len(self.days) > 1 else documents.get(self.today, 0)

    def _is_one(self, a: str, b: str, items: Mapping[str, list[WindowItem]]) -> bool:
        """Whether two sources of one site are one voice; accounts of one host never are."""
        if not (site := site_group(a)) or site != site_group(b):
            return False
        titles = [{normalize(member.title) for member in items[key]} for key in (a, b)]
        same_hour = abs(self.sources[a].first_hour - self.sources[b].first_hour) <= 1
        return same_hour or not titles[0].isdisjoint(titles[1])


class Burst(msgspec.Struct, array_like=True):
    """One burst: start, what voices told of it at most, language."""

    at_ms: int
    peak: int
    lang: str


class Bursts(msgspec.Struct, array_like=True):
    """The bursts of the last 7 days, by cluster, from which the number that fits a desk is chosen."""

    by_cluster: dict[int, Burst] = {}

    def record(self, cluster_key: int, told: int, lang: str, now_ms: int) -> None:
        """Add the burst of a cluster, or raise its peak."""
        if cluster_key not in self.by_cluster:
            recent = ((k, b) for k, b in self.by_cluster.items() if b.at_ms >= now_ms - HISTORY_MS)
            self.by_cluster = {**dict(recent), cluster_key: Burst(now_ms, told, lang)}
        self.raise_peak(cluster_key, told)

    def raise_peak(self, cluster_key: int, peak: int) -> None:
        """Raise the peak of the burst of a cluster, if it had one."""
        if (burst := self.by_cluster.get(cluster_key)) is not None:
            burst.peak = max(burst.peak, peak)

    def peaks(self, lang: str, since_ms: int) -> list[int]:
        """What voices told of each burst in a language since then, largest first."""
        found = (burst for burst in self.by_cluster.values() if burst.lang == lang)
        return sorted((burst.peak for burst in found if burst.at_ms >= since_ms), reverse=True)
