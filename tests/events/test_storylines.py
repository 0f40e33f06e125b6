"""Storylines: which events are linked, what is kept to link later ones, agreement of names."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from aggregator.domain import NO_SKETCH, ArticleRecord, article_number_at
from aggregator.errors import StoreUnavailable
from aggregator.events.changes import encode_msgpack
from aggregator.events.event import Event
from aggregator.events.storylines import (
    LINK_MS,
    MAX_ALTERNATIVES,
    MAX_ENTRIES,
    MAX_HEADLINES,
    MAX_STORY_ARTICLES,
    Storylines,
    decode_storylines,
    developments,
    headline_alternatives,
    headline_items,
    latin_agreement,
    link_cosine,
    newest_of_outlets,
    report_the_same,
    sample_items,
    to_latin,
)
from aggregator.time_units import DAY_MS, HOUR_MS
from tests.support.factories import EVENT_MS, event


def profile(words: str) -> dict[str, float]:
    """Equally heavy terms."""
    return dict.fromkeys(words.split(), len(words.split()) ** -0.5)


def test_names_agree_in_latin_script() -> None:
    """Accents, Cyrillic, and endings of one to three letters; a short common start is not enough."""
    assert to_latin("\u0424\u0443\u043a\u0443\u0441\u0438\u043c\u0430") == "fukusima"
    assert latin_agreement(profile("bundestag"), profile("bundesrat")) == (1.0, 1)
    assert latin_agreement(profile("\u043f\u0430\u0440\u0438\u0436"), profile("parizh")) == (1.0, 1)
    assert latin_agreement(profile("turkei"), profile("turkish"))[1] == 0
    assert latin_agreement(profile("constitution"), profile("constantinople"))[1] == 0
    assert latin_agreement({}, profile("wenlow")) == (0.0, 0)


def test_three_names_make_an_event() -> None:
    """Two do not, nor three that are a small part of what the events are about."""
    english = profile("wenlow ferry thornby miller capsize")

    assert report_the_same(english, profile("wenlow faehre thornby miller kentert"))
    assert not report_the_same(english, profile("wenlow faehre thornby kentert hafen"))
    assert not report_the_same(
        english, {**profile("a1 b2 election"), "wenlow": 0.05, "thornby": 0.05, "miller": 0.05}
    )


def test_names_written_by_sound_in_chinese_do_not_agree() -> None:
    """A known limit: their transliteration is that of the syllables."""
    assert latin_agreement({"\u57c3\u5c14\u591a\u5b89": 1.0}, {"erdogan": 1.0})[1] == 0


@pytest.mark.parametrize("term", ["", "!", "\ud800"])
def test_terms_without_letters_never_agree(term: str) -> None:
    """They have no Latin form."""
    assert latin_agreement({term: 1.0}, {term: 1.0}) == (0.0, 0)


def story_event(id_: str, words: str, day: float = 0.0, **fields: object) -> Event:
    """An event with a profile of equally heavy terms, detected on a day after ``EVENT_MS``."""
    terms = words.split()
    at_ms = EVENT_MS + round(day * DAY_MS)
    times = {"detected_at_ms": at_ms, "first_seen_ms": at_ms - HOUR_MS, "last_seen_ms": at_ms}
    profile = tuple((term, len(terms) ** -0.5) for term in terms)
    return event(id_, words, **cast("Any", {"profile": profile, "story_id": "", **times, **fields}))


def stories(*events: Event) -> dict[str, str]:
    """Storyline by event id, placed in this order."""
    storylines = Storylines()
    return {e.id: storylines.place(e).story_id for e in events}


def test_an_event_joins_the_storyline_of_the_event_that_it_resembles_most() -> None:
    """The example of the module: two of its terms are enough, one is not."""
    found = stories(
        story_event("a", "quake japan tsunami coast"),
        story_event("b", "japan reactor quake plant", 1),
        story_event("c", "quake chile coast village", 2),
        story_event("d", "japan reactor plant leak", 16),
        story_event("e", "election capital vote", 17),
    )

    assert found == {"a": "a", "b": "a", "c": "a", "d": "a", "e": "e"} | {"c": found["c"]}
    assert stories(story_event("a", "quake japan tsunami"), story_event("c", "quake chile harbour", 2)) == {
        "a": "a",
        "c": "c",
    }


def test_an_event_may_resemble_how_an_earlier_one_began() -> None:
    """Its last version describes the market; the new event describes the quake again."""
    storylines = Storylines()
    storylines.place(story_event("a", "quake japan tsunami"))
    storylines.place(story_event("a", "market shares yen"))

    assert storylines.place(story_event("b", "quake japan aftershock", 1)).story_id == "a"
    assert storylines.place(story_event("c", "market shares loss", 1)).story_id == "a"


def test_a_storyline_ends_three_weeks_after_its_last_item() -> None:
    """One millisecond more, and the topic starts a new storyline."""
    words, days = "quake japan tsunami", LINK_MS / DAY_MS
    first = story_event("a", words)
    last = story_event("b", words, days, first_seen_ms=EVENT_MS + LINK_MS)
    late = story_event("b", words, days, first_seen_ms=EVENT_MS + LINK_MS + 1)

    assert stories(first, last)["b"] == "a"
    assert stories(first, late)["b"] == "b"


def test_an_event_keeps_its_storyline() -> None:
    """Later versions are not compared again, whatever they are about by then."""
    storylines = Storylines()
    storylines.place(story_event("a", "quake japan tsunami"))
    storylines.place(story_event("b", "election capital vote"))

    assert storylines.place(story_event("b", "quake japan tsunami")).story_id == "b"
    assert storylines.place(story_event("c", "quake japan tsunami", story_id="x")).story_id == "x"


def test_an_event_told_in_another_language_is_a_translation() -> None:
    """Within a day of the first alert, and with another language; it joins the storyline."""
    english = story_event("en", "wenlow ferry thornby miller capsize", languages=("en",))
    words = "wenlow faehre thornby miller kentert"

    def link(day: float, *languages: str) -> tuple[str, str | None]:
        storylines = Storylines()
        storylines.place(english)
        placed = storylines.place(story_event("b", words, day, languages=languages))
        return placed.story_id, placed.translation_of

    assert link(1, "de") == ("en", "en")
    assert link(1.01, "de")[1] is None
    assert link(1, "de", "en")[1] is None
    assert link(1)[1] is None


def test_a_merged_event_is_forgotten() -> None:
    """Its survivor describes the topic."""
    storylines = Storylines()
    storylines.place(story_event("a", "quake japan tsunami"))
    merged = storylines.place(story_event("a", "quake japan tsunami", merged_into="z", story_id="a"))

    assert (merged.story_id, storylines.entries) == ("a", [])


def test_memory_is_bounded() -> None:
    """By number and by age; the oldest entries are dropped."""
    storylines = Storylines()
    for number in range(MAX_ENTRIES + 5):
        storylines.place(story_event(f"e{number}", f"word{number} other{number}"))
    assert len(storylines.entries) == MAX_ENTRIES
    assert storylines.entries[0].event_id == "e5"

    storylines.place(story_event("late", "quake japan", 60))
    assert [entry.event_id for entry in storylines.entries] == ["late"]


def test_entries_survive_a_restart() -> None:
    """Equal entries after encoding; damaged ones are refused."""
    storylines = Storylines()
    storylines.place(story_event("a", "quake japan tsunami"))

    restored = decode_storylines(encode_msgpack(storylines.entries))

    assert restored.entries == storylines.entries
    assert restored.place(story_event("b", "quake japan reactor", 3)).story_id == "a"
    assert decode_storylines(None).entries == []
    with pytest.raises(StoreUnavailable, match="storylines"):
        decode_storylines(b"damaged")


def test_one_common_word_is_no_topic() -> None:
    """However heavy it is."""
    assert link_cosine({"crash": 0.9, "plane": 0.4}, {"crash": 0.9, "train": 0.4}) == 0.0
    assert link_cosine({"crash": 0.8, "plane": 0.6}, {"crash": 0.8, "plane": 0.6}) == pytest.approx(1.0)
    assert link_cosine({}, {"crash": 1.0}) == 0.0


def test_events_like_an_unlinked_one_join_its_own_storyline() -> None:
    """An editor took b out of the storyline of a; other ids change nothing."""
    storylines = Storylines()
    storylines.place(story_event("a", "quake japan tsunami"))
    assert storylines.place(story_event("b", "quake japan reactor", 1)).story_id == "a"

    storylines.follow({"a": "", "b": "b", "z": "z"})

    assert storylines.place(story_event("c", "quake japan reactor", 2)).story_id == "b"
    assert storylines.place(story_event("d", "quake japan tsunami", 3)).story_id == "a"


CURRENT = "Harbour bridge collapses in Wenlow"


def article(title: str) -> ArticleRecord:
    """An article whose terms are the words of its headline."""
    terms = tuple((word, 1.0) for word in title.lower().split())
    return ArticleRecord(
        1, 1, title, "en.1", "en", 0, b"", True, title, "", "one.example", 5, NO_SKETCH, terms
    )


def test_alternatives_differ_from_the_headline_and_from_each_other() -> None:
    """One of two headlines that say the same, and none that repeats the present one."""
    found = headline_alternatives(
        [
            article(title)
            for title in (
                CURRENT,
                "UPDATE 2-Harbour bridge in Wenlow collapses",
                "Will the harbour bridge of Wenlow be built again next year?",
                "Storm destroys bridge, ferries carry commuters across harbour",
                "Storm destroys harbour bridge, ferries carry commuters across",
                "Engineers had warned of rust in cables of bridge",
                "",
            )
        ],
        CURRENT,
    )

    assert sorted(a.title.split()[0] for a in found) == ["Engineers", "Storm"]


def test_the_newest_headlines_are_compared_and_no_doubtful_one() -> None:
    """By publication, whatever the order of joining; doubtful ones if there are no others."""
    ids = [f"a{n}" for n in range(MAX_HEADLINES + 3)]
    times = tuple(DAY - n for n in range(len(ids)))
    quake = event("a", "Quake", ids, times=times, doubtful=("a1",), claims={"a0": DAY - 10**6})

    assert [*headline_items(quake)] == [ids[n] for n in range(MAX_HEADLINES + 1, 1, -1)]
    assert [*headline_items(event("a", "Quake", ("a1",), doubtful=("a1",)))] == ["a1"]


def test_an_event_may_have_none() -> None:
    """All headlines say the same, or no article is stored any more."""
    assert headline_alternatives([article(CURRENT)] * 5, CURRENT) == []
    assert headline_alternatives([], CURRENT) == []


def test_the_newest_headline_is_an_alternative() -> None:
    """However few words it has in common with the others; the best ones come first."""
    said = ("storm shuts harbour bridge", "ferries carry storm commuters", "harbour bridge storm inquiry")
    articles = [record(title, n, title) for n, title in enumerate((*said, "mayor resigns"))]

    found = [each.title for each in headline_alternatives(articles, CURRENT)]
    assert "mayor resigns" in found and len(found) == MAX_ALTERNATIVES and found[-1] == "mayor resigns"


def test_a_headline_is_credited_to_the_first_article_that_has_it() -> None:
    """Not to a copy, which is newer."""
    titles = (
        "Storm shuts bridge",
        "Ferries carry commuters",
        "STORM SHUTS BRIDGE",
        "Ferries carry commuters",
    )
    articles = [record(f"a{n}", n, title) for n, title in enumerate(titles)][::-1]

    assert sorted(each.id for each in headline_alternatives(articles, CURRENT)) == ["a0", "a1"]
    assert [each.id for each in newest_of_outlets(articles, CURRENT)] == ["a1", "a0"]
    assert [each.id for each in newest_of_outlets(articles, titles[1])] == ["a0"]


def test_an_outdated_figure_is_no_alternative() -> None:
    """Neither a lower toll nor one that was corrected; what one outlet counts more is not outdated."""
    said = ("quake kills 9 in Wenlow", "toll of Wenlow now 62 dead", "army sent, 65 dead", "mayor resigns")
    articles = [record(title, n, title) for n, title in enumerate(said)]

    found = headline_alternatives(articles, CURRENT, [(0, "dead", 9), (1, "dead", 62)])
    assert sorted(each.title for each in found) == sorted(said[1:])
    found = headline_alternatives(articles, "Village mourns its 61 dead", [(0, "dead", 9)])
    assert sorted(each.title for each in found) == sorted(said[1:])


def test_of_a_copy_only_another_headline_is_new() -> None:
    """It says something else than its original, or it is left out."""
    said = ("fire in Wenlow tunnel traps buses", "Wenlow tunnel fire traps buses", "blaze under control")
    articles = [record(f"a{n}", n, title) for n, title in enumerate(said)]

    found = newest_of_outlets(articles, "", {"a1": "a0", "a2": "a0"})
    assert [each.id for each in found] == ["a2", "a0"]
    assert [each.id for each in newest_of_outlets(articles, "")] == ["a2", "a1", "a0"]


def test_their_number_is_limited() -> None:
    """An editor compares a few."""
    titles = [f"Wordone{n} wordtwo{n} wordthree{n} wordfour{n}" for n in range(9)]
    assert len(headline_alternatives([article(t) for t in titles], CURRENT)) == MAX_ALTERNATIVES


DAY = 20_000 * DAY_MS


def record(id_: str, at_ms: int, words: str) -> ArticleRecord:
    """A stored article with equally heavy terms, published at ``at_ms``."""
    number = article_number_at(DAY + 9 * DAY_MS)
    terms = tuple((word, 0.5) for word in words.split())
    return ArticleRecord(
        number, number, id_, "en.1", "en", 0, b"", True, words, "", "one.example", at_ms, NO_SKETCH, terms
    )


def test_each_event_has_one_headline_a_day() -> None:
    """The headline that says most of what the day's have in common, the latest first; days in order."""
    articles = {
        r.id: r
        for r in (
            record("a1", DAY + 1, "quake coast japan"),
            record("a2", DAY + 2, "quake japan market"),
            record("a3", DAY + 3, "quake japan coast tsunami"),
            record("a4", DAY + DAY_MS + 1, "rescue teams arrive"),
            record("a5", DAY + DAY_MS + 2, "rescue teams arrive arrive"),
            record("b1", DAY + DAY_MS + 2, "reactor cooling fails"),
        )
    }
    times = (DAY + 1, DAY + 2, DAY + 3, DAY + DAY_MS + 1, DAY + DAY_MS + 2)
    outlets, sources = (0, 1, 0, 2, -1), ("one.example", "two.example", "three.example")
    quake = event("a", "Quake", ("a1", "a2", "a3", "a4", "a5"), detected_at_ms=DAY, doubtful=("a5",))
    quake = replace(quake, times=times, outlets=outlets, sources=sources)
    reactor = event("b", "Reactor", ("b1", "gone"), detected_at_ms=DAY + HOUR_MS)
    unlisted_ms = DAY + 2 * DAY_MS
    reactor = replace(reactor, times=(DAY + DAY_MS + 2, DAY + DAY_MS + HOUR_MS, unlisted_ms))

    found = developments([quake, reactor], articles)

    first = datetime.fromtimestamp(DAY / 1000, UTC).date()
    assert [
        ((d.day - first).days, d.event.id, d.items, d.sources, d.article and d.article.id) for d in found
    ] == [
        (0, "a", 3, ("one.example", "two.example"), "a3"),
        (1, "a", 2, ("three.example",), "a4"),
        (1, "b", 2, ("one.example", "two.example"), "b1"),
        (2, "b", 1, (), None),
    ]
    in_lima = developments([quake], articles, ZoneInfo("America/Lima"))
    assert [((d.day - first).days, d.items) for d in in_lima] == [(-1, 3), (0, 2)]


def test_the_articles_read_are_spread_over_all_events() -> None:
    """A long event must not hide a short one, nor its last days."""
    long = event("a", "Long", [f"a{i}" for i in range(1000)])
    short = event("b", "Short", ["b0", "b1"])

    ids = sample_items([long, short])

    assert len(ids) == MAX_STORY_ARTICLES // 2 + 2 and ids[-2:] == ["b0", "b1"]
    assert np.diff([int(id_[1:]) for id_ in ids[:-2]]).tolist() == [5] * (MAX_STORY_ARTICLES // 2 - 1)
    assert sample_items([]) == []
