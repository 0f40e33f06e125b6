"""Description of a cluster: evidence for a merge, words that are shown, profiles, headlines."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.events.detection import description
from aggregator.events.detection.baseline import Baseline
from aggregator.events.detection.clustering import Cluster
from aggregator.events.detection.description import (
    KEY_TERMS_PER_CLUSTER,
    PROFILE_TERMS,
    SIDE,
    Candidate,
    KeyTermCache,
    build_profile,
    news_value,
    rank_headlines,
    typical_headline,
)
from aggregator.events.detection.expectation import ColdStart, TermWeights
from aggregator.events.detection.model import BurstRule, is_same_story
from aggregator.time_units import HOUR_MS
from tests.events.detection.window_items import cluster_of, window_item
from tests.support.detector_stream import DetectorStream

LANDING = [
    "engine runway passengers",
    "emergency runway pilot",
    "engine pilot smoke",
    "emergency passengers smoke",
]
CRASH = [
    "mountain victims search",
    "valley victims wreck",
    "mountain wreck families",
    "valley search families",
]


def test_the_headline_is_that_of_the_first_article_with_it() -> None:
    """A copy under the same headline is fresher, and does not represent the event."""
    words = ("harbour bridge collapse", "harbour bridge collapse rescue", "ferry timetable")
    members = [window_item(n, words[n] if n < 3 else words[0]) for n in (0, 1, 2, 3, 4)]
    cluster, weigh = cluster_of(*members), {"harbour": 3.0, "bridge": 3.0}

    def found(kept: str = "") -> str:
        return typical_headline(cluster, lambda term: weigh.get(term, 0.1), kept).id

    assert found() == found("a4") == "a0"


@pytest.mark.parametrize(("times_a_week", "events"), [(0, 1), (7, 0)])
def test_a_shared_word_merges_two_topics_only_if_it_is_rare(times_a_week: int, events: int) -> None:
    """Nine items on each of two planes; only an otherwise unused word would connect them."""
    stream = DetectorStream()
    for i in range(times_a_week):
        stream.send((i - 7) * 24 * 60, f"plane timetable{i} route{i}")
    for i in range(9):
        stream.send(i * 6, f"plane {LANDING[i % 4]}")
        stream.send(i * 6 + 3, f"plane {CRASH[i % 4]}")
    stream.tick(60)

    assert len(stream.fired) == events


@pytest.mark.parametrize(
    ("other_terms", "supported"),
    [
        ("plane engine", False),  # one common word
        ("plane crash", True),
        ("thornby fire", True),  # an otherwise unused place name
        ("summerton fire", False),  # exactly 0.05 per window is not rare
        ("engine runway", False),
    ],
)
def test_two_common_terms_or_one_rare_term_support_a_merge(other_terms: str, supported: bool) -> None:
    """A term is rare below 0.05 expected documents per window."""
    expected = {"plane": 1.2, "crash": 0.9, "thornby": 0.049, "summerton": 0.05}

    terms = ["plane", "crash", "thornby", "summerton"]

    assert (
        description.terms_support_merge(
            set(terms).intersection(other_terms.split()), lambda term: expected.get(term, 0.0)
        )
        is supported
    )


term_sums = st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(1, 4), max_size=30)


@given(term_sums)
def test_the_heaviest_terms_are_the_first_of_all(sums: dict[str, int]) -> None:
    """Also on ties, which the term decides; a cluster without terms has none."""
    cluster = Cluster(1, "s1", term_sums=sums)

    terms = description.heaviest_terms(cluster.term_sums, lambda term: float(len(term)))

    assert len(terms) == min(KEY_TERMS_PER_CLUSTER, len(sums))
    assert terms == sorted(sums, key=lambda term: (-sums[term] * len(term), term))[:KEY_TERMS_PER_CLUSTER]


def test_the_headline_has_the_common_terms() -> None:
    """As it was sent: a desk's background article is not the one that describes the cluster."""
    plain = window_item(1, "storm hits pier and ferry")
    background = window_item(2, "storm hits pier and ferry", at_ms=60_000)
    background.desk_prefix = "FACTBOX-"
    cluster = cluster_of(background, plain, window_item(3, "market closes early on friday"))

    assert description.typical_headline(cluster, lambda _: 1.0) is plain


def test_the_first_report_is_about_the_event_like_others() -> None:
    """One shared name is not enough, nor two terms that nobody else combines; then nobody was first."""
    notice = window_item(1, "aldwyn appointed director", source="notices.example")
    chance = window_item(2, "harbour aldwyn lease")
    reports = [window_item(number, "harbour bridge collapse", source=f"s{number}") for number in range(3, 7)]
    terms = ["harbour", "bridge", "collapse", "aldwyn"]

    assert description.first_report([*reports[::-1], chance, notice], terms) == (3, "a3", "s3")
    assert description.first_report([notice, chance, *reports[:3]], terms) is None
    assert description.first_report([], terms) is None


def test_of_equal_items_the_older_gives_the_headline() -> None:
    """By number at one time; an item without terms is chosen only if it is alone."""
    first, second, empty = (
        window_item(number, words, at_ms=40)
        for number, words in ((1, "storm pier"), (2, "storm pier"), (3, ""))
    )

    assert description.typical_headline(cluster_of(first, second), lambda _: 1.0) is first
    assert description.typical_headline(cluster_of(empty, second), lambda _: 1.0) is second
    assert description.typical_headline(cluster_of(empty), lambda _: 1.0) is empty
    texts = [
        msgspec.structs.replace(window_item(number, "storm pier", at_ms=40), title="") for number in (4, 5)
    ]
    assert description.typical_headline(cluster_of(*texts, second), lambda _: 1.0) is second
    assert description.typical_headline(cluster_of(*texts, second), lambda _: 1.0, doubtful={"a2"}) is second


def test_a_headline_with_the_newest_figure_replaces_an_outdated_one() -> None:
    """Not one of a side story without any figure, which is taken only where no headline has the newest."""
    old = window_item(1, "train crash velmora", title="Train crash in Velmora kills 9", lang="en")
    side = window_item(2, "train crash velmora rail", title="Rail boss under pressure in Velmora", lang="en")
    new = window_item(3, "train", title="Train: 140 dead", lang="en")
    tolls = [(1, "dead", 9), (2, "dead", 140)]

    assert description.typical_headline(cluster_of(old, side, new), lambda _: 1.0, tolls=tolls) is new
    assert description.typical_headline(cluster_of(old, side), lambda _: 1.0, tolls=tolls) is side


def test_an_invalidated_cluster_gets_new_terms() -> None:
    """Until then the cached ones are returned, for this cluster only."""
    baseline = Baseline(4 * HOUR_MS)
    weights = TermWeights(BurstRule(), baseline, ColdStart(None, baseline))
    cache, cluster = KeyTermCache(weights), cluster_of(window_item(1, "storm"))
    assert cache.top_terms(cluster) == ["storm"]

    cluster.term_sums["aground"] = 900
    assert cache.top_terms(cluster) == ["storm"]
    cache.invalidate(cluster)

    assert cache.top_terms(cluster) == ["aground", "storm"]
    assert cache.top_terms(cluster_of(window_item(2, "ferry"), key=2)) == ["ferry"]


def test_clusters_agree_with_half_of_their_key_terms_in_common() -> None:
    """Four of eight; the other four differ."""
    baseline = Baseline(4 * HOUR_MS)
    cache = KeyTermCache(TermWeights(BurstRule(), baseline, ColdStart(None, baseline)))
    one, four, three = (
        cluster_of(window_item(number, words), key=number)
        for number, words in enumerate(("a b c d e f g h", "a b c d i j k l", "a b c m n o p q"))
    )

    assert cache.agree(one, four)
    assert not cache.agree(one, three)


def test_terms_are_shown_as_words_not_stems() -> None:
    """The most frequent spelling, preferably inside a headline; stems without a word are left out."""
    stream = DetectorStream()
    titles = ["Flooding: Thornby calls for help", "Thornby Floods again", "Help for flooded Thornby"]
    for i in range(18):
        terms = (("thornbi", 1.0), ("flood", 1.0), ("evacu", 1.0))
        stream.send(i, title=titles[i % 3], terms=terms, lang="en")

    (event,) = stream.fired
    assert set(event.terms) == {"Thornby", "flooded"}


def test_terms_of_a_script_without_spaces_are_shown_as_they_are() -> None:
    """A run of characters holds several terms; the whole clause is not shown."""
    stream = DetectorStream()
    for i in range(16):
        stream.send(
            i, title=f"白沙湾：三百只小海龟放归大海 {i}", terms=(("小海龟", 1.0), ("放归", 1.0)), lang="zh"
        )

    assert set(stream.fired[0].terms) == {"小海龟", "放归"}


def test_stems_are_shown_if_no_headline_contains_any_term() -> None:
    """Stems are better than no terms."""
    stream = DetectorStream()
    for i in range(16):
        stream.send(i, title=f"Help is near, part {i}", terms=(("thornbi", 1.0), ("evacu", 1.0)), lang="en")

    assert set(stream.fired[0].terms) == {"thornbi", "evacu"}


term_sums = st.dictionaries(st.text("abc", min_size=1, max_size=4), st.integers(1, 10_000), max_size=40)


@given(term_sums)
def test_a_profile_is_a_unit_vector_of_the_heaviest_terms(sums: dict[str, int]) -> None:
    """In descending order, with at most twenty terms, and the cluster matches its own profile."""
    profile = build_profile(Cluster(1, "s1", term_sums=sums), lambda term: float(len(term)))

    weights = [weight for _, weight in profile]
    assert len(profile) == min(len(sums), PROFILE_TERMS)
    assert weights == sorted(weights, reverse=True)
    assert is_same_story(profile, profile) is bool(sums)
    if sums:
        assert math.hypot(*weights) == pytest.approx(1.0, abs=0.001)


@given(term_sums)
def test_the_order_of_the_terms_does_not_matter(sums: dict[str, int]) -> None:
    """Equal weights are ordered by term, so every replica builds the same profile."""
    backwards = dict(reversed(sums.items()))

    assert build_profile(Cluster(1, "s", term_sums=sums), lambda _: 1.0) == build_profile(
        Cluster(1, "s", term_sums=backwards), lambda _: 1.0
    )


def test_without_weights_there_is_no_profile() -> None:
    """Neither for a cluster without terms nor if every idf is 0."""
    assert build_profile(Cluster(1, "s1"), lambda _: 1.0) == []
    assert build_profile(Cluster(1, "s1", term_sums={"storm": 3}), lambda _: 0.0) == []


@pytest.mark.parametrize(("weight", "same"), [(0.5, True), (0.49, False)])
def test_a_cosine_of_exactly_the_threshold_is_the_same_cluster(weight: float, same: bool) -> None:
    """In both directions; terms of only one profile do not count."""
    a, b = [("storm", 1.0)], [("storm", weight), ("pier", 0.8)]

    assert is_same_story(a, b) is is_same_story(b, a) is same


def test_an_empty_profile_describes_no_cluster() -> None:
    """A mute without a profile would otherwise silence everything."""
    assert not is_same_story([], [])
    assert not is_same_story([], [("storm", 1.0)])


def best(candidates: Sequence[Candidate]) -> int:
    """Position of the best headline."""
    return rank_headlines(candidates)[0]


def choose(*titles: str, minutes: int = 0) -> int:
    """The choice among headlines whose terms are their words, one every ``minutes``."""
    return best(
        [
            Candidate(title, number * minutes * 60_000, dict.fromkeys(title.lower().split(), 1.0))
            for number, title in enumerate(titles)
        ]
    )


def test_the_headline_with_most_in_common_is_chosen() -> None:
    """The older one on a tie; a single one needs no terms."""
    assert (
        choose("Harbour market closed on Friday", "Harbour bridge collapses in Wenlow", "Bridge in Wenlow")
        == 1
    )
    assert choose("Bridge closed in Wenlow", "Bridge closed in Wenlow") == 0
    assert best([Candidate("", 0, {})]) == 0


def test_a_specific_headline_is_preferred_to_a_bare_one() -> None:
    """A cosine would prefer the words that all have, and nothing else."""
    assert (
        choose("Bridge collapses", "Wenlow bridge collapses in storm", "Old bridge collapses in storm") != 0
    )


def test_of_similar_headlines_the_latest_is_chosen() -> None:
    """Its figures are the newest."""
    assert choose("Storm kills 3 in Wenlow harbour", "Storm kills 8 in Wenlow harbour", minutes=30) == 1


@pytest.mark.parametrize(
    "less",
    [
        "FACTBOX-Bridges that collapsed in storms",
        "Analysis: what the bridge collapse means",
        "GLOBAL MARKETS-Wenlow bridge collapse hits builders",
        "Did a storm bring down the Wenlow bridge?",
        "Premier expresses shock at Wenlow bridge collapse",
        "Builders' shares slide after Wenlow bridge collapse",
        "Premier says Wenlow bridge will be rebuilt",
        "Wenlow bridge will be rebuilt soon: Miller",
        "Video shows Wenlow bridge collapse",
    ],
)
def test_reactions_and_background_have_less_news_value(less: str) -> None:
    """Than a plain statement, with or without a mark of an update; a toll has more."""
    plain = news_value("Wenlow bridge collapses in storm")

    assert plain == news_value("UPDATE 2-Wenlow bridge collapses in storm") == 1.0
    assert news_value(less) < plain < news_value("At least 8 dead as Wenlow bridge collapses")


def test_who_reports_what_happened_does_not_make_it_a_statement() -> None:
    """Police, officials, witnesses and media; nor does a statement about oneself."""
    assert news_value("Wenlow bridge collapses in storm: police source") == 1.0
    assert news_value("Wenlow bridge collapses in storm -official") == 1.0
    assert news_value("Builder says has closed the Wenlow bridge") == 1.0


@pytest.mark.parametrize(
    "title",
    [
        "Sismo en Lanor: por qué no hubo un gran maremoto",
        "Qué se sabe del sismo de Lanor",
        "Pourquoi le pont de Lanor est tombé",
        "Einsturz in Lanor: was wir wissen",
        "Что известно об обрушении моста в Ланоре",
        "\u4e3a\u4ec0\u4e48\u6865\u6881\u4f1a\u5012\u584c",
        "What we know about the fall of the Lanor bridge",
    ],
)
def test_questions_and_explainers_are_recognized_in_several_languages(title: str) -> None:
    """At the start, or behind a colon."""
    assert news_value(title) == SIDE


def test_a_headline_is_whole_in_the_main_language_and_kept_for_a_while() -> None:
    """Cut only if all are; in the language of most items; a little better is not enough."""
    cut = window_item(1, "storm hits pier ferry", title="Storm hits pier and ferry ...", lang="en")
    other = window_item(2, "storm hits pier ferry", title="Sturm trifft Pier und Fähre", lang="de")
    plain = window_item(3, "storm hits pier", title="Storm hits pier today", lang="en")
    late = window_item(4, "storm hits ferry pier", title="Storm hits ferry and pier", lang="en", at_ms=90)

    assert description.typical_headline(cluster_of(cut, other, plain), lambda _: 1.0) is plain
    assert description.typical_headline(cluster_of(cut), lambda _: 1.0) is cut
    assert description.typical_headline(cluster_of(cut, plain, late), lambda _: 1.0) is late
    assert description.typical_headline(cluster_of(cut, plain, late), lambda _: 1.0, plain.id) is plain
    assert description.typical_headline(cluster_of(cut, late), lambda _: 1.0, plain.id) is late


def test_other_scripts_have_no_word_lists() -> None:
    """Only a question mark counts; a headline without spaces is not short."""
    assert news_value("\u6865\u6881\u5728\u66b4\u98ce\u96e8\u4e2d\u5012\u584c") == 1.0
    assert news_value("\u6865\u6881\u5012\u584c\u4e86\uff1f") == SIDE
