"""The largest stories of the window, usual or not, and those that are close to the number."""

from __future__ import annotations

from aggregator.events.detection.top_stories import TopStory, story_size, top_stories
from tests.events.detection.test_newsworthiness import TOWNS
from tests.support.detector_stream import DetectorStream, time_ms

DAY_MINUTES = 24 * 60


def found(stream: DetectorStream) -> list[TopStory]:
    """The stories now."""
    return list(top_stories(stream.detector))


def test_each_story_is_listed_once_by_its_voices() -> None:
    """An event and one on its way; no list of one source, none of three items. Nothing is changed."""
    stream = DetectorStream()
    stream.send_burst(17, start=0, words="harbour bridge collapse")
    stream.send_burst(9, start=3, words="ferry strike northern quay")
    for i, town in enumerate(TOWNS):
        title = f"{town} retailer posts May same-store sales up {i} pct"
        stream.send(5 + 2 * i, "retailer sales", title=title, source="one.example")
    stream.send_burst(3, start=40, words="chess master wins title")
    state = stream.detector.dump()

    stories = found(stream)

    assert [(s.is_event, s.needed, s.event.size) for s in stories] == [
        (True, 0, 17),
        (False, 16, 9),
    ]
    assert [len(s.event.sources) for s in stories] == [17, 9]
    assert stories[0].event.id == stream.last_event().id
    assert stories[1].event.title.startswith("Ferry strike") and "Ferry" in stories[1].event.terms
    assert stories[1].since_ms == time_ms(3)
    assert [len(s.event.items) for s in stories] == [17, 9]
    assert stream.detector.dump() == state


def test_items_that_share_one_word_are_no_story() -> None:
    """Six headlines about a return of six things; as an event they would be listed."""
    stream = DetectorStream()
    returns = ("choir tower", "ferry quay", "painter attic", "goalkeeper club", "otter river", "mayor office")
    for n, words in enumerate(returns):
        terms = (("return", 3.0), *((word, 1.0) for word in words.split()))
        stream.send(n, words, title=f"The return of the {words}", terms=terms)
    stream.send_burst(6, start=3, words="ferry strike northern quay")

    assert [len(cluster.members) for cluster in stream.detector.clusters.by_key.values()] == [6, 6]
    assert [story.event.title.startswith("Ferry strike") for story in found(stream)] == [True]


def test_items_count_by_doublings() -> None:
    """Twelve items of four outlets are fewer than nine of nine outlets."""
    stream = DetectorStream()
    for n in range(12):
        stream.send(n, "ferry strike northern quay", source=f"f{n % 4}.example")
    stream.send_burst(9, start=3, words="apple pear market figures")

    assert [s.event.size for s in found(stream)] == [9, 12]
    assert [len(s.event.items) for s in found(stream)] == [9, 4]
    assert sum(count for _, count in found(stream)[1].event.voices) == 4
    assert story_size(1, 64) == story_size(4, 8) == 7
    assert story_size(0, 0) == 0


def test_a_usual_story_is_listed_and_not_building_up() -> None:
    """What has nine items at this hour of every day does not become an event with sixteen."""
    stream = DetectorStream()
    for day in range(8):
        for story in ("apple pear market", f"mayor{day} town{day} leaves{day}"):
            terms = tuple((word, 1.0) for word in story.split())
            stream.send_burst(9, start=day * DAY_MINUTES, words=story, terms=terms)

    market, mayor = sorted(found(stream), key=lambda s: s.needed)

    assert (market.event.size, market.needed, mayor.event.size, mayor.needed) == (9, 0, 9, 16)


def test_a_story_that_goes_on_has_run_since_its_first_item() -> None:
    """Also when that has left the window."""
    stream = DetectorStream()
    stream.send_burst(20, start=0, step=60, words="harbour strike talks")
    assert [s.since_ms for s in found(stream)] == [time_ms(0)]
