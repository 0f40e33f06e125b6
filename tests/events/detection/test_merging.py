"""Merging of clusters that converge, division of those that hold two topics, and items that leave."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import pytest

from aggregator.analysis.text import tokenizer
from aggregator.events.detection import merging
from aggregator.events.detection.clustering import (
    MAX_TERM_WEIGHT,
    MIN_ITEMS_TO_BE_MERGED,
    Cluster,
    WindowItem,
)
from aggregator.events.detection.description import KeyTermCache, heaviest_terms
from aggregator.events.detection.detector import BurstDetector
from aggregator.events.detection.lifecycle import OpenEvent
from aggregator.events.detection.merging import (
    LATEST_TO_DIVIDE,
    MERGE_SHARE,
    find_division,
    find_outliers,
)
from aggregator.events.detection.model import BurstRule, EditorOverrides
from tests.events.detection.window_items import cluster_of, window_item
from tests.support.detector_stream import DetectorStream, time_ms


def send_fragments(stream: DetectorStream, overlap: str) -> None:
    """Send ten items on a shooting, the first six with the words ``overlap``, and eight on a town."""
    for i in range(10):
        stream.send(i, overlap if i < 6 else "shooting gunman theatre")
        if i < 8:
            stream.send(i + 0.5, f"summerton mourners{i} candles{i} vigil{i}")


def test_fragments_whose_terms_burst_in_the_same_documents_are_merged() -> None:
    """Neither has 16 items; the items that name both town and shooting connect them."""
    stream = DetectorStream()
    send_fragments(stream, "shooting gunman theatre summerton")
    stream.tick(12)

    assert len(stream.fired) == 1
    assert stream.last_event().size == 18


def test_fragments_that_only_burst_at_the_same_time_stay_apart() -> None:
    """No document holds both key terms: two topics of ten and eight items, no event."""
    stream = DetectorStream()
    send_fragments(stream, "shooting gunman theatre")
    stream.tick(12)

    assert stream.fired == []


def partner_by_exhaustive_search(detector: BurstDetector, cluster: Cluster) -> Cluster | None:
    """``find_merge_partner`` without its shortcuts."""
    weights, weight_share = detector.term_weights, MAX_TERM_WEIGHT * MERGE_SHARE
    own_term = heaviest_terms(cluster.term_sums, weights.weigh)[0]
    best, best_share = None, 0.0
    for other in detector.clusters.by_key.values():
        other_term = heaviest_terms(other.term_sums, weights.weigh)[0]
        if other is cluster or len(other.members) < MIN_ITEMS_TO_BE_MERGED:
            continue
        if other.event_id and cluster.event_id and not KeyTermCache(weights).agree(cluster, other):
            continue
        if not (weights.is_bursting(own_term) and weights.is_bursting(other_term)):
            continue
        own_sum = other.term_sums.get(own_term, 0)
        common = [
            t for t in cluster.term_sums if t != own_term and t in other.term_sums and weights.is_bursting(t)
        ]
        largest = max([own_sum, *(cluster.term_sums[t] + own_sum for t in common)])
        if largest < weight_share * weights.min_burst_documents:
            continue
        both = cluster.term_sums.get(other_term, 0) + own_sum
        rarer = min(weights.window_count(own_term), weights.window_count(other_term))
        share = both / MAX_TERM_WEIGHT / rarer
        if (
            share >= MERGE_SHARE
            and share > best_share
            and KeyTermCache(weights).support_merge(cluster, other)
        ):
            best, best_share = other, share
    return best


@pytest.mark.integration
def test_the_merge_partner_is_that_of_an_exhaustive_search() -> None:
    """For every cluster of 8 random streams, after each item."""
    partners = 0
    for seed in range(8):
        rng, stream = random.Random(seed), DetectorStream()
        detector = BurstDetector(BurstRule(items=10))
        words = ["harbour", "bridge", "ferry", "estmark", "fire", "strike", "vote"]
        topics = [rng.sample(words, 3) for _ in range(4)]
        for i in range(120):
            item_words = rng.sample(rng.choice(topics), rng.choice([1, 1, 1, 2]))
            detector.observe(item := stream.item(i / 4, " ".join(item_words)), item.arrived_ms)
            for cluster in detector.clusters.by_key.values():
                weights, key_terms = detector.term_weights, KeyTermCache(detector.term_weights)
                found = merging.find_merge_partner(
                    detector.clusters, cluster, weights, key_terms, key_terms.support_merge
                )
                assert found is partner_by_exhaustive_search(detector, cluster)
                partners += found is not None

    assert partners


def quake(place: str, country: str) -> list[str]:
    """Twelve headlines on one quake; one names both the place and the country."""
    return [
        f"Strong quake shakes {country}, roofs fall in {place}", f"Quake in {place} kills dozens",
        f"Death toll of {place} quake rises", f"Hospital in {place} damaged by quake",
        f"{country} asks for help after quake", f"Quake cuts power in {country}",
        f"Rescue teams reach {place}", f"Families dig for victims in {place}",
        f"Aftershock scares people in {place}", f"Schools closed in {country} after quake",
        f"Flights to {country} cancelled after quake", f"What we know about the {place} quake",
    ]  # fmt: skip


STORIES: dict[str, tuple[list[str], ...]] = {
    "en": (quake("Marrow", "Norland"), quake("Kelpton", "Tavinia"), quake("Aldery", "Zambora")),
    "de": tuple(
        [
            f"Beben in {place} ({country}): {part}"
            for part in ("Tote", "Hilfe", "Suche", "Strom", "Lage", "Not")
        ]
        for place, country in (("Marrau", "Nordland"), ("Kelpstadt", "Tavinien"))
    ),
    "zh": tuple(
        [f"{country}{place}地震{part}" for part in ("死亡", "救援", "停电", "余震", "医院", "学校")]
        for place, country in (("玉树", "青海"), ("札幌", "北海道"))
    ),
}


def told(stories: Iterable[list[str]], lang: str = "en", by_turns: bool = True) -> list[WindowItem]:
    """Items of these stories, by turns or one after the other; ids begin with the number of the story."""
    rows = [
        (i if by_turns else 0, k, i, title)
        for k, titles in enumerate(stories)
        for i, title in enumerate(titles)
    ]
    items = []
    for number, (_, k, i, title) in enumerate(sorted(rows)):
        terms = dict.fromkeys(tokenizer.tokenize(title, lang), 255)
        items.append(window_item(number, title=title, terms=terms, id=f"{k}-{i}", lang=lang))
    return items


def idf(items: Sequence[WindowItem]) -> Callable[[str], float]:
    """The rarity of terms in these items."""
    counts = Counter(term for item in items for term in item.terms)
    return lambda term: 1 / counts[term]


def divided(items: Sequence[WindowItem]) -> list[set[str]] | None:
    """The stories (numbers of ``told``) of each part."""
    found = find_division(items, idf(items))
    return None if found is None else [{item.id[0] for item in part} for part in found]


@pytest.mark.parametrize("by_turns", [True, False])
@pytest.mark.parametrize("lang", list(STORIES))
def test_two_stories_of_one_kind_are_told_apart_by_their_names(lang: str, by_turns: bool) -> None:
    """They share what happens in every quake; each alone is one story, and a few items are a side of it."""
    one, other = STORIES[lang][:2]

    assert divided(told([one, other], lang, by_turns)) == [{"0"}, {"1"}]
    assert divided(told([one], lang)) is None
    assert divided(told([other], lang)) is None
    assert divided(told([one, other[:4]], lang)) is None


def test_three_stories_are_divided_one_by_one() -> None:
    """Two at a time."""
    parts = divided(told(STORIES["en"]))

    assert parts is not None and parts[0] != parts[1]
    assert [len(part) for part in parts] == [1, 1]


def test_a_common_name_holds_the_sides_of_a_story_together() -> None:
    """A rescue and an inquiry about one ship; so do two words for one thing, which no name marks."""
    rescue = [f"Ferry Aldwyn: divers {word} cabins" for word in ("search", "reach", "open", "map", "leave")]
    inquiry = [
        f"Ferry Aldwyn: court {word} captain" for word in ("hears", "frees", "fines", "calls", "jails")
    ]
    phones = [
        f"Parents with {word} are cold, study says" for word in ("smartphones", "devices") for _ in range(8)
    ]

    assert divided(told([rescue, inquiry])) is None
    assert divided(told([phones[:8], phones[8:]])) is None


def test_a_word_that_is_a_name_in_one_story_alone_does_not_hold_two_together() -> None:
    """A collision near a bridge with a name, and a bridge that collapses elsewhere, in either order."""
    trains = [
        f"Two trains collide near Ostrau Bridge{rest}"
        for rest in (": 4 dead", ", line closed", ", signal suspected", ": six dead", ", driver questioned")
    ]
    collapse = [
        f"{first} Quellmar bridge collapse{rest}"
        for first, rest in (("", ": 3 dead"), ("The", ": 5 dead"), ("Inquiry into", ""), ("On", ""))
        for _ in range(2)
    ]

    for stories in ([trains * 2, collapse], [collapse, trains * 2]):
        for by_turns in (True, False):
            parts = divided(told(stories, by_turns=by_turns))
            assert parts is not None and sorted(map("".join, parts)) == ["0", "1"]


def test_words_of_two_languages_do_not_exclude_each_other() -> None:
    """One quake in two languages, whose stems of its place differ too; two quakes are divided in each."""
    places = ("Tavinia", "Marrowdale")
    english, other = (
        [f"Strong quake hits {place}, tsunami {n} feared" for n in range(8)] for place in places
    )
    spanish = [f"Fuerte terremoto sacude {places[0]}, se teme tsunami {n}" for n in range(8)]

    assert divided([*told([english]), *told([spanish], "es")]) is None
    assert divided([*told([english, other]), *told([spanish[:1]], "es")]) is not None


@pytest.mark.parametrize("minutes", [0.05, 4])
def test_two_stories_of_one_kind_are_two_events_with_an_alert_each(minutes: float) -> None:
    """They come by turns, within a minute or over hours; no item is counted in the wrong one."""
    stream = DetectorStream()
    stories = [[title for title in titles for _ in range(2)] for titles in STORIES["en"][:2]]
    for i in range(24):
        for k, titles in enumerate(stories):
            terms = tuple((term, 1.0) for term in tokenizer.tokenize(titles[i], "en"))
            stream.send((i + k / 2) * minutes, title=titles[i], terms=terms, lang="en", id=f"{k}-{i}")
    stream.tick(24 * minutes + 1)
    stream.tick(24 * minutes + 2)

    events = stream.detector.events
    assert sorted("".join({id_[0] for id_ in event.items}) for event in events) == ["0", "1"]
    assert len(stream.fired) == 2


def test_a_large_event_is_looked_through_at_a_limited_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a second quake after 500 headlines of the first is a second event."""
    examined = list[int]()

    def counting(members: Sequence[WindowItem], weigh: Callable[[str], float]) -> merging.Stories | None:
        examined.append(len(members))
        return find_division(members, weigh)

    monkeypatch.setattr(merging, "find_division", counting)
    stream = DetectorStream()
    for i in range(540):
        title = STORIES["en"][i >= 500][i % 12]
        terms = tuple((term, 1.0) for term in tokenizer.tokenize(title, "en"))
        stream.send(i / 6, title=title, terms=terms, lang="en", id=f"{int(i >= 500)}-{i}")
        assert max(examined, default=0) <= 2 * LATEST_TO_DIVIDE or i >= 500
    stream.tick(92)

    stories = [{id_[0] for id_ in event.items} for event in stream.detector.events]
    assert len(stories) == 2 and {"1"} in stories


def test_no_cluster_is_emptied_when_its_items_have_changed_meanwhile() -> None:
    """All of one cluster belong to the first story, and the items of the second are gone."""
    detector = BurstDetector(BurstRule())
    index, items = detector.clusters, [window_item(i, "harbour bridge") for i in range(9)]
    a, b = index.create(items[0]), index.create(items[5])
    for cluster, members in ((a, items[:4]), (b, items[4:8])):
        for member in members:
            index.add_item(cluster, member)

    detector.merger._tell_apart(a, b, (items[4:8], items[8:]))

    assert (len(a.members), len(b.members)) == (4, 4)


def test_items_of_another_topic_leave_the_event() -> None:
    """They become another cluster, and its event has the articles that left."""
    stream = DetectorStream()
    for hour in range(-240, 0):
        stream.send(hour * 60, f"topic{hour}" if hour % 2 else f"bank topic{hour}")
    for i in range(20):
        stream.send(1 + i * 0.1, "bank governor rates")
    for i in range(18):
        stream.send(10 + i * 0.1, "bank clothier offer")
    one, other = (stream.detector.clusters.by_key[event.cluster_key] for event in open_events(stream))
    stream.detector.merger.merge(one, other, stream.detector.clock_ms)

    stream.send(12.5, "bank governor rates")
    stream.tick(15)

    assert sorted(event.size for event in open_events(stream)) == [18, 21]
    assert len({number for event in open_events(stream) for number in event.to_event().numbers}) == 39


def test_what_an_editor_merged_stays_together() -> None:
    """The same two topics."""
    stream = DetectorStream()
    for hour in range(-240, 0):
        stream.send(hour * 60, f"topic{hour}" if hour % 2 else f"bank topic{hour}")
    for words in ("bank governor rates", "bank clothier offer"):
        stream.send_burst(20, words=words, step=0.1)
    one, other = stream.detector.events
    stream.detector.set_overrides(EditorOverrides(merges={other.id: (one.id, time_ms(5))}))

    stream.send(12.5, "bank governor rates")
    stream.tick(15)

    assert [event.size for event in stream.detector.events] == [41]


def open_events(stream: DetectorStream) -> list[OpenEvent]:
    """The open events of the detector, in order of detection."""
    return list(stream.detector.open_events.by_id.values())


def outliers(*parts: tuple[int, str], elsewhere: dict[str, int]) -> list[str]:
    """Ids of the outliers of a cluster of these items, when ``elsewhere`` other documents hold a term."""
    words = [words for count, words in parts for _ in range(count)]
    cluster = cluster_of(*(window_item(i, f"{text} own{i}") for i, text in enumerate(words)))
    count = {t: total // 255 + elsewhere.get(t, 0) for t, total in cluster.term_sums.items()}
    return [member.id for member in find_outliers(cluster, lambda term: count[term])]


def test_items_that_hold_no_term_of_the_clusters_own_are_strays() -> None:
    """A term that 10 other documents hold too connects nothing, be it the most frequent."""
    tanker, tax = (18, "brackwater tanker oil"), (3, "oil")
    assert outliers(tanker, tax, elsewhere={"oil": 10}) == ["a18", "a19", "a20"]
    assert outliers(tanker, tax, elsewhere={"oil": 1}) == []
    assert outliers(tanker, (3, "oil tanker"), elsewhere={"oil": 10}) == []


def test_a_cluster_most_of_which_is_strays_has_no_own_terms() -> None:
    """No item leaves a cluster of which over a quarter would."""
    assert outliers((18, "brackwater oil"), (7, "oil"), elsewhere={"oil": 30}) == []


def test_strays_leave_an_event_with_its_next_minute() -> None:
    """The articles that left are reported, and the event has a headline."""
    stream = DetectorStream()
    for i in range(10):
        stream.send(i / 100, f"oil topic{i}")
    stream.send_burst(20, start=2, step=0.1, words="brackwater viaduct tanker")
    detector, (event,) = stream.detector, open_events(stream)
    cluster = detector.clusters.by_key[event.cluster_key]
    for member in [m for m in detector.window if m.id in {"a1", "a2"}]:
        detector.clusters.remove_item(member)
        detector.clusters.add_item(cluster, member)
        detector.open_events.add_items(cluster, [member])
    assert {"a1", "a2"} <= set(event.items)

    stream.send(5, "brackwater viaduct tanker")
    stream.tick(6)

    assert not {"a1", "a2"} & set(event.items)
    assert event.title
