"""What a duplicate adds to the articles that readers have, and whether it is kept."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.dedup.policy import Policy
from aggregator.dedup.verdict import MAX_KEPT_MEMBERS, compare_with_readers_versions
from aggregator.domain import Analysis, Article, ArticleRecord, Match, Outcome, build_record
from tests.support.factories import edited, story

ANALYZER, VERIFIED = Analyzer({"xx": HashedModel()}), Policy()
TUNNEL = """The road tunnel to Estmark will cost 3.4 billion crowns, far more than the council had planned,
the minister said on Monday. The rock below the sound is softer than the first drillings had shown, so that
most of the way has to be lined with steel. The works begin in spring and will last until the end of the
decade. Until then the ferries continue to run, the oldest of which is to be replaced next year. The
opposition asked for a new tender. Fishermen fear for the spawning grounds of the herring and have announced
a complaint."""
SENTENCES = [f"{story(seed, 1)}" for seed in range(500)]


def text(*sentences: int) -> str:
    """A text of these sentences of ten words each."""
    return " ".join(SENTENCES[n] for n in sentences)


def analysis(own: str) -> Analysis:
    """The analysis of a text without a headline."""
    return ANALYZER.analyze(Article(id="later", text=own, lang="en"))


def record(own: str, number: int = 1) -> ArticleRecord:
    """The stored article with this text."""
    return build_record(Article(id=f"a{number}", text=own, lang="en"), analysis(own), number, number)


def duplicate(rule: str = "overlap") -> Outcome:
    """The outcome of the decision on a duplicate of article 1."""
    match = Match("a1", 1, "a1", 1, 9, 0.9, rule)  # type: ignore[arg-type]
    return Outcome("duplicate", 9, match, keep=False)


def compared(
    later: str,
    canonical: str,
    kept: Sequence[str] = (),
    *,
    outcome: Outcome | None = None,
    policy: Policy = VERIFIED,
    same_outlet: bool = False,
    titles: tuple[str, str] = ("", ""),
    lang: str = "en",
) -> Outcome:
    """The outcome after the comparison with these articles."""
    return compare_with_readers_versions(
        outcome or duplicate(),
        replace(analysis(later), title=titles[1], lang=lang),
        replace(record(canonical), title=titles[0], lang=lang),
        [record(own, number) for number, own in enumerate(kept, 2)],
        policy,
        same_outlet,
        is_revision=same_outlet,
    )


def test_an_exact_copy_adds_nothing() -> None:
    """If readers have its text: of the canonical article or of a kept member; else what it adds to those."""
    own, other = text(*range(30)), text(*range(100, 130))
    found = compared(own, own, outcome=duplicate("exact"))
    assert (found.verdict, found.adds, found.keep, found.fuller) == ("duplicate", 0, False, False)

    of_member = compared(own, other, [own], outcome=duplicate("exact"), same_outlet=True)
    assert (of_member.verdict, of_member.adds, of_member.follows) == ("duplicate", 0, None)
    of_dropped = compared(own, other, outcome=duplicate("exact"))
    assert (of_dropped.verdict, of_dropped.keep) == ("duplicate", True)


@pytest.mark.parametrize("new", [0, 2, 4, 10, 15])
@pytest.mark.parametrize("length", [20, 60, 200])
def test_new_sentences_are_what_it_adds(length: int, new: int) -> None:
    """Their share of its words; from a fifth on it is kept."""
    share = new / 20
    added = round(share * length)
    found = compared(text(*range(length - added), *range(300, 300 + added)), text(*range(length)))

    assert found.adds == pytest.approx(share, abs=0.06)
    assert found.adds is not None and found.keep is (found.adds >= VERIFIED.keep_if_adds) and not found.fuller
    assert compared(
        text(*range(length - added), *range(300, 300 + added)),
        text(*range(length)),
        policy=Policy(keep_if_adds=0.9),
    ) == Outcome("duplicate", 9, duplicate().match, adds=found.adds, keep=False)


@pytest.mark.parametrize("changes", [4, 15, 30])
def test_a_few_exchanged_words_are_not_news(changes: int) -> None:
    """Up to a tenth of 300 words."""
    found = compared(edited(story(1), 3, changes), story(1))

    assert found.adds is not None and found.adds <= 0.15
    assert not found.keep


def test_what_kept_members_have_adds_nothing() -> None:
    """The second outlet with the addition is not kept again; a member that was dropped does not count."""
    first, extended = text(*range(20)), text(*range(10, 20), *range(30, 45))
    assert compared(extended, first).keep

    found = compared(extended, first, [edited(extended, 3)])
    assert found.adds is not None and found.adds < 0.15 and not found.keep


def test_members_together_have_it() -> None:
    """One half in each of two."""
    found = compared(text(*range(10, 30)), text(*range(15)), [text(*range(15, 22)), text(*range(22, 40))])

    assert found.adds is not None and found.adds < 0.1


def test_the_first_eight_members_count() -> None:
    """A group may be large."""
    others = [text(*range(300 + 5 * n, 305 + 5 * n)) for n in range(MAX_KEPT_MEMBERS)]
    later, canonical, addition = text(*range(20)), text(*range(10)), text(*range(10, 20))

    assert compared(later, canonical, [*others[1:], addition]).adds == pytest.approx(0, abs=0.05)
    assert compared(later, canonical, [*others, addition]).adds == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    ("canonical", "later", "fuller"),
    [
        (10, 14, True),  # 30 % more
        (10, 12, False),
        (60, 65, False),
        (60, 67, True),  # 60 words more
        (20, 20, False),
        (20, 12, False),
        (2, 40, True),  # the article after its teaser
    ],
)
def test_a_fuller_version_is_kept(canonical: int, later: int, fuller: bool) -> None:
    """It contains the canonical article and goes on."""
    found = compared(text(*range(later)), text(*range(canonical)))

    assert found.fuller is fuller
    assert found.keep_reason in (("fuller", "adds") if found.keep else (None,))
    assert found.keep is (fuller or (found.adds or 0) >= VERIFIED.keep_if_adds)


def test_a_longer_text_without_most_of_the_canonical_one_is_not_fuller() -> None:
    """It is kept for what it adds."""
    found = compared(text(*range(10), *range(100, 130)), text(*range(25)))

    assert (found.fuller, found.keep) == (False, True)


def test_an_update_of_the_same_outlet_is_kept() -> None:
    """Though it adds hardly a word; another outlet's may be the older one. Not again once readers have it."""
    first, later = (f"{story(1)} The province counts {count} closed bridges." for count in (14, 21))
    update = compared(later, first, same_outlet=True)
    assert (update.updated_figures, update.keep, update.keep_reason) == (True, True, "updated_figures")
    assert [compared(later, first).updated_figures, compared(later, first).keep] == [True, False]

    again = compared(later, first, [edited(later, 2)], same_outlet=True)
    assert (again.updated_figures, again.keep) == (False, False)
    assert not compared(edited(first, 2), first, same_outlet=True).keep


def test_a_number_word_that_only_the_later_headline_says_is_an_update() -> None:
    """Of the outlet itself; not if the first text or its headline says the number, in digits or words."""
    first, later = (f"{story(1)} At least {count} bridges are closed." for count in ("three", "seven"))
    titles = ("Bridges closed in the province", "Bridges closed: count rises to seven")
    update = compared(later, first, titles=titles, same_outlet=True)
    assert (update.updated_figures, update.keep) == (True, True)
    assert not compared(later, first, titles=titles).keep

    for known, title in ((f"{story(1)} At least 7 bridges are closed.", titles[0]), (first, "Seven closed")):
        again = compared(later, known, titles=(title, titles[1]), same_outlet=True)
        assert (again.updated_figures, again.keep) == (False, False)


@pytest.mark.parametrize(
    ("first", "later", "is_update"),
    [
        ("Ferry tunnel to cost 3.4 billion", "Five things to know about the Estmark tunnel", False),
        ("Ferry tunnel to cost 3.4 billion", "You will not believe what this tunnel costs", False),
        ("Quake kills two in Molvar", "Quake kills nine in Molvar", True),
        ("Quake kills 2 in Molvar", "Molvar: toll rises to 14", True),
        ("Molvar: two dead", "Quake: toll rises to fourteen", True),
        ("Quake in Molvar: bridges closed", "Quake in Molvar: nine bridges closed", True),
        ("Mayor of Molvar resigns", "Mayor of Molvar stays", True),
    ],
)
def test_another_headline_over_an_equal_text_corrects_what_it_replaces(
    first: str, later: str, is_update: bool
) -> None:
    """Of one outlet: what the text says as before, or an unlike headline adds, is no correction."""
    before, now = (Article(id="x", title=title, text=TUNNEL, lang="en") for title in (first, later))
    canonical = build_record(before, ANALYZER.analyze(before), 1, 1)

    found = compare_with_readers_versions(
        duplicate("exact"), ANALYZER.analyze(now), canonical, [], VERIFIED, True, True
    )
    assert (found.keep, found.updated_figures or found.reversed) == (is_update, is_update)


@pytest.mark.parametrize(
    ("first", "later", "lang"),
    [
        ("Council adopts the budget", "CORRECTED: Council adopts the budget", "en"),
        ("Council adopts the budget", "Council adopts the budget (corrected)", "en"),
        ("Council adopts the budget", "KILL: Council adopts the budget", "en"),
        ("Rat nimmt den Haushalt an", "Berichtigung: Rat nimmt den Haushalt an", "de"),
        ("Le conseil adopte le budget", "Rectificatif: le conseil adopte le budget", "fr"),
        ("Совет принял бюджет", "Исправление: совет принял бюджет", "ru"),
        ("市议会通过预算", "更正：市议会通过预算", "zh"),
    ],
)
def test_a_correction_is_kept(first: str, later: str, lang: str) -> None:
    """Of its own outlet, once."""
    own = story(1)
    corrected = compared(edited(own, 2), own, titles=(first, later), lang=lang, same_outlet=True)
    assert (corrected.keep, corrected.keep_reason) == (True, "correction")
    assert not compared(edited(own, 2), own, titles=(first, later), lang=lang).keep
    assert not compared(edited(own, 2), own, titles=(later, later), lang=lang, same_outlet=True).keep
    assert not compared(edited(own, 2), own, titles=(first, first), lang=lang, same_outlet=True).keep


@pytest.mark.parametrize(
    ("text", "is_correction"),
    [
        (f"Correction: an earlier version of this article named another architect.\n{TUNNEL}", True),
        (f"{TUNNEL}\nThis article was corrected on Tuesday: the state pays half.", True),
        (f"{TUNNEL}\nThe mayor said that the plan was corrected in June.", False),
        (TUNNEL, False),
    ],
)
def test_a_correction_in_the_text_is_kept(text: str, is_correction: bool) -> None:
    """At its start, or in its last line, under the same headline; not if readers have the same text."""
    before, now = (Article(id="x", title="Tunnel to open", text=t, lang="en") for t in (TUNNEL, text))
    for first in (before, now):
        canonical = build_record(first, ANALYZER.analyze(first), 1, 1)
        found = compare_with_readers_versions(
            duplicate("overlap"), ANALYZER.analyze(now), canonical, [], VERIFIED, True, True
        )
        kept = is_correction and first is before
        assert (found.keep, found.keep_reason) == (kept, "correction" if kept else None)


@pytest.mark.parametrize(
    ("first", "later", "lang"),
    [
        ("Council adopts budget", "Council rejects budget", "en"),
        ("Mayor resigns", "Mayor stays", "en"),
        ("Bill passes in the house", "Bill fails in the house", "en"),
        ("Bill passes in the house", "Bill fails to pass in the house", "en"),
        ("Dockers and port agree on pay", "Dockers and port fail to agree on pay", "en"),
        ("Court upholds ban on quarry", "Court overturns ban on quarry", "en"),
        ("Klage gegen den Hafen erfolgreich", "Klage gegen den Hafen scheitert", "de"),
        ("Les négociations du port aboutissent", "Les négociations du port échouent", "fr"),
        ("Rat nimmt Haushalt an", "Rat lehnt Haushalt ab", "de"),
        ("Stadt verbietet das Feuerwerk", "Stadt erlaubt das Feuerwerk", "de"),
        ("Le conseil vote la gratuité", "Le conseil rejette la gratuité", "fr"),
        ("Il consiglio adotta il bilancio", "Il consiglio respinge il bilancio", "it"),
        ("Dam break: three dead", "Dam break: seven dead", "en"),
        ("Dam break: 3 dead", "Dam break: 11 dead", "en"),
        ("Court finds Marlow guilty of fraud", "Court finds Marlow not guilty of fraud", "en"),
        ("Dammbruch: drei Tote", "Dammbruch: sieben Tote", "de"),
        ("Rupture du barrage: trois morts", "Rupture du barrage: sept morts", "fr"),
        ("Rotura de la presa: tres muertos", "Rotura de la presa: siete muertos", "es"),
        ("Прорыв дамбы: трое погибших, пять домов", "Прорыв дамбы: трое погибших, семь домов", "ru"),
        ("大坝决堤三人死亡", "大坝决堤七人死亡", "zh"),
    ],
)
def test_a_contradicting_headline_is_kept(first: str, later: str, lang: str) -> None:
    """Of any outlet, unless a kept member says the same; an equal text under it adds nothing."""
    own = story(1)
    found = compared(edited(own, 2), own, titles=(first, later), lang=lang)
    assert (found.keep, found.keep_reason) == (True, "headline")
    assert not compared(edited(own, 2), own, titles=(first, first), lang=lang).keep
    assert not compared(own, own, titles=(first, later), lang=lang, outcome=duplicate("exact")).keep


@pytest.mark.parametrize(
    ("first", "later", "lang"),
    [
        ("Court rejects appeal of banker Sand", "Court upholds appeal of banker Sand", "en"),
        ("Mayor Brook charged with bribery", "Mayor Brook cleared of bribery", "en"),
        ("Evacuation of Low Town ordered", "Evacuation of Low Town lifted", "en"),
        ("Miner Tal recovers after fall", "Miner Tal dies after fall", "en"),
        ("Gericht bestätigt Mietgrenze in Aldby", "Gericht kippt Mietgrenze in Aldby", "de"),
        ("La cour confirme la fermeture du pont", "La cour annule la fermeture du pont", "fr"),
        ("El juez concede la fianza a Ossen", "El juez niega la fianza a Ossen", "es"),
        ("Суд отклонил жалобу банкира", "Суд удовлетворил жалобу банкира", "ru"),
        ("法院维持大桥禁令", "法院撤销大桥禁令", "zh"),
    ],
)
def test_words_that_headline_and_text_replace_are_kept(first: str, later: str, lang: str) -> None:
    """Of any outlet; not another word for what the text says as before, nor one that it says, too."""
    own = story(1)

    def kept(opening: str, title: str = later) -> bool:
        before, now = (
            Article(id="x", title=headline, text=f"{said}. {rest}", lang=lang)
            for headline, said, rest in ((first, first, own), (title, opening, edited(own, 1)))
        )
        canonical = build_record(before, ANALYZER.analyze(before), 1, 1)
        assert canonical.own_headline == 1
        found = compare_with_readers_versions(
            duplicate(), ANALYZER.analyze(now), canonical, [], VERIFIED, False, False
        )
        return found.keep

    assert kept(later)
    assert not kept(first)
    assert not kept(f"{later}; {first}")
    assert not kept(first, first)


def test_a_headline_about_what_the_earlier_one_is_about_may_contradict() -> None:
    """Though its text says it in other words: a toll that rose."""
    text = "people died when a bus left the road. It fell eight metres into a field, the police said. " * 3
    before, now = (
        Article(id="x", title=title, text=f"{number} {text}", lang="en")
        for title, number in (
            ("12 dead in coach crash near Sollim", "Twelve"),
            ("Death toll in Sollim crash climbs to 19", "Nineteen"),
        )
    )
    found = compare_with_readers_versions(
        duplicate("overlap"), ANALYZER.analyze(now), build_record(before, ANALYZER.analyze(before), 1, 1),
        [], VERIFIED, False, False,
    )  # fmt: skip
    assert ANALYZER.analyze(now).own_headline < 0.34
    assert (found.keep, found.keep_reason) == (True, "headline")


def test_a_headline_that_is_not_about_its_text_contradicts_nothing() -> None:
    """An extractor that takes the number of the page, or of the article, for the headline."""
    own = story(1)
    later = replace(analysis(edited(own, 2)), title="Page 85", own_headline=0.0)
    first = replace(record(own), title="Page 5")

    assert not compare_with_readers_versions(duplicate(), later, first, [], VERIFIED, False, False).keep


def test_house_style_contradicts_nothing() -> None:
    """Number words and digits, and a headline that says less."""
    own = story(1)
    for later in ("Dam break: 3 dead", "Dam break leaves three dead", "Dam break"):
        assert not compared(edited(own, 2), own, titles=("Dam break: three dead", later)).keep


def test_a_version_without_the_canonical_text_follows_it() -> None:
    """Of the same outlet; of another one it is the report with a new beginning."""
    first, last = text(*range(20)), text(*range(15, 40))
    found = compared(last, first, [text(*range(8, 28))], same_outlet=True)

    assert (found.verdict, found.match, found.keep, found.follows) == ("related", None, True, "a1")
    assert found.group(7) == 7
    assert compared(last, first, [text(*range(8, 28))]).verdict == "duplicate"


@pytest.mark.parametrize("step", [1, 3, 5])
def test_a_rolling_page_of_twelve_versions(step: int) -> None:
    """Each drops its last sentences: no version stays with a canonical article of which nothing remains."""
    canonical, groups, kept = 0, [], list[int]()
    versions = [text(*range(100 - step * n, 120 - step * n)) for n in range(12)]
    for n in range(1, 12):
        outcome = compared(versions[n], versions[canonical], [versions[k] for k in kept], same_outlet=True)
        if outcome.match is None:
            assert (outcome.verdict, outcome.follows, outcome.keep) == ("related", "a1", True)
            canonical, kept = n, []
        elif outcome.keep:
            kept.append(n)
        groups.append(canonical)
        assert step * (n - canonical) <= 10  # of 20 sentences half is left

    assert groups[0] == 0  # the next version is one of the first
    assert len({0, *groups}) >= 1 + (11 * step) // 15


@given(st.lists(st.integers(0, 399), min_size=1, max_size=60), st.randoms(use_true_random=False))
def test_each_outcome_is_consistent(sentences: list[int], rng: random.Random) -> None:
    """``keep`` follows from ``adds``, ``fuller`` and ``follows``; ``adds`` is a share."""
    others = [rng.sample(range(400), rng.randint(1, 40)) + sentences[: rng.randint(0, 30)] for _ in range(3)]
    same_outlet = rng.random() < 0.5
    found = compared(
        text(*sentences), text(*others[0]), [text(*o) for o in others[1:]], same_outlet=same_outlet
    )

    if found.match is None:
        assert (found.verdict, found.keep, found.follows) == ("related", True, "a1") and same_outlet
        return
    assert found.adds is not None and 0 <= found.adds <= 1
    assert found.fuller <= found.keep == (found.keep_reason is not None or found.verdict != "duplicate")
    assert (found.keep_reason == "adds") == (found.verdict == "duplicate" and found.adds >= 0.2)
    assert found.keep == (found.fuller or found.adds >= 0.2) or found.adds == 0.2


def test_the_rule_of_the_paper_knows_what_is_added() -> None:
    """A duplicate of one outlet does not follow."""
    found = compared(text(*range(20)), text(*range(5)), policy=Policy(name="hamming"), same_outlet=True)

    assert found.adds is not None and found.adds > 0.6
    assert (found.verdict, found.follows) == ("duplicate", None)
    assert (found.fuller, found.keep) == (True, True)


@pytest.mark.parametrize(
    "title, adds",
    [("Marrowdale quay closed for repairs", 0.0), ("Marrowdale quay closed for repairs, ferries stop", 0.29)],
)
def test_a_bare_headline_adds_the_words_that_the_other_headline_lacks(title: str, adds: float) -> None:
    """Its few shingles tell no share of words."""
    canonical = replace(
        record(text(1)), title="Marrowdale quay closed for repairs | The Gazette", text_words=0
    )
    later = replace(analysis(text(2)), title=title, text_words=0)

    found = compare_with_readers_versions(duplicate(), later, canonical, [], VERIFIED, False, False)

    assert found.adds == adds and found.keep is (adds >= 0.2)
