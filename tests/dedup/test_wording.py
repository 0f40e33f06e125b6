"""Shares of words that others have: exact cases, estimates of sampled texts, headlines and beginnings."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.analyzer import Analyzer, shingle_width
from aggregator.analysis.models import load_models
from aggregator.analysis.shingles import build_sketch
from aggregator.dedup.wording import (
    SharedWording,
    count_of_headline,
    has_text,
    headline_shingles,
    shared_wording,
    tells_news,
)
from aggregator.domain import NO_SKETCH, Analysis, Article, Problem, Sketch, build_record
from tests.support.factories import story

ANALYZER = Analyzer(load_models())
WORDS = st.lists(st.sampled_from([f"w{n}" for n in range(40)]), max_size=400)


def prose(seed: int, length: int) -> list[str]:
    """Words of a text that shares none with another seed's."""
    rng = random.Random(seed)
    return [f"s{seed}w{rng.randrange(10**6)}" for _ in range(length)]


def exchanged(words: Sequence[str], share: float, seed: int = 0) -> list[str]:
    """The text with this share of its words replaced by new ones, anywhere."""
    rng = random.Random(seed)
    places = set(rng.sample(range(len(words)), round(share * len(words))))
    return [f"new{seed}n{i}" if i in places else word for i, word in enumerate(words)]


def shared(subject: Sequence[str], *others: Sequence[str]) -> SharedWording:
    """What ``others`` have of the wording of ``subject``."""
    return shared_wording(build_sketch(subject), [build_sketch(words) for words in others], 3)


@given(WORDS, st.lists(WORDS, max_size=3))
def test_all_shares_are_shares(subject: list[str], others: list[list[str]]) -> None:
    """Whatever the texts, empty ones included; without a headline nothing is said of one."""
    found = shared(subject, *others)

    assert 0 <= found.words <= 1 and 0 <= found.beginning <= 1
    assert found.headline is None


@given(WORDS.filter(bool), WORDS, WORDS)
def test_a_contained_text_is_known_as_a_whole(text: list[str], before: list[str], after: list[str]) -> None:
    """At any place of the other; up to 128 shingles, else as far as both are sampled."""
    text = text[:100]
    width = min(3, len(text))
    found = shared_wording(build_sketch(text, width), [build_sketch([*before, *text, *after], width)], width)

    if len(before) + len(text) + len(after) <= 128:
        assert (found.words, found.beginning) == (1, 1)
    assert shared_wording(build_sketch(text), [build_sketch(text)], 3).words == 1


@given(st.integers(1, 400), st.integers(1, 400))
def test_texts_without_common_words_share_nothing(first: int, second: int) -> None:
    """Hashes are compared by 20 bits: of two sampled texts one may agree by chance."""
    found = shared(prose(1, first), prose(2, second))

    assert found.words <= 0.06
    assert found == SharedWording() or first * second > 128


def test_nothing_is_shared_with_nothing() -> None:
    """No other text, an empty one, or an empty subject."""
    some = build_sketch(prose(1, 50))

    assert shared_wording(some, [], 3) == shared_wording(some, [NO_SKETCH], 3) == SharedWording()
    assert shared_wording(NO_SKETCH, [some], 3) == SharedWording()
    assert shared_wording(some, [NO_SKETCH, some], 3).words == 1


@pytest.mark.parametrize("length", [40, 100, 300, 1_000, 3_000])
@pytest.mark.parametrize("new", [0.25, 0.5, 0.75])
def test_a_new_part_counts_by_its_words(length: int, new: float) -> None:
    """At the end, at the beginning, or in the middle: of half new text half is known."""
    fresh, old = prose(1, round(new * length)), prose(2, length - round(new * length))
    middle = len(old) // 2
    for text in ([*old, *fresh], [*fresh, *old], [*old[:middle], *fresh, *old[middle:]]):
        assert shared(text, [*old, *prose(3, 60)]).words == pytest.approx(1 - new, abs=0.1)


@pytest.mark.parametrize("length", [40, 100, 300, 1_000, 3_000])
@pytest.mark.parametrize("new", [0.05, 0.1, 0.2, 0.3])
def test_exchanged_words_count_by_their_number(length: int, new: float) -> None:
    """A tenth of the words takes a quarter of the shingles, and still counts as a tenth.

    Of a short text with more exchanged, some parts keep no shingle: then a little more counts as new.
    """
    texts = [prose(seed, length) for seed in range(30)]
    known = sum(shared(exchanged(text, new, n), text).words for n, text in enumerate(texts)) / len(texts)

    assert 1 - new - max(0.05, new / 2) <= known <= 1 - new + 0.05


@given(
    seed=st.integers(0, 10_000), length=st.integers(800, 4_000), known=st.sampled_from([0.0, 0.3, 0.6, 1.0])
)
def test_estimates_of_long_texts(seed: int, length: int, known: float) -> None:
    """Within 0.1 of the truth, though of 8 shingles one is sampled; the other text continues differently."""
    old = prose(seed, round(known * length))
    text = [*old, *prose(seed + 1, length - len(old))]

    assert shared(text, [*old, *prose(seed + 2, length // 3)]).words == pytest.approx(known, abs=0.1)


def test_several_texts_together_have_more_than_each() -> None:
    """A compilation of two known texts adds nothing; each alone has half of it."""
    first, second = prose(1, 200), prose(2, 200)
    both = [*first, *second]

    assert shared(both, first, second).words > 0.97
    assert shared(both, first).words == pytest.approx(0.5, abs=0.1)
    assert shared(both, second).words == pytest.approx(0.5, abs=0.1)


@given(st.permutations(range(4)))
def test_the_order_of_the_others_does_not_matter(order: list[int]) -> None:
    """They are one set of known shingles."""
    text = prose(9, 400)
    parts = [build_sketch(text[100 * n : 100 * n + 60]) for n in range(4)]

    assert shared_wording(build_sketch(text), [parts[n] for n in order], 3) == shared_wording(
        build_sketch(text), parts, 3
    )


def test_directions_differ() -> None:
    """Of a part all is known, of the whole a quarter."""
    whole = prose(1, 400)
    assert shared(whole[:100], whole).words == 1
    assert shared(whole, whole[:100]).words == pytest.approx(0.25, abs=0.1)


def test_the_beginning_is_that_of_the_first_words() -> None:
    """A text with the same beginning and another end, and the reverse."""
    lead, rest, other = prose(1, 30), prose(2, 70), prose(3, 70)

    assert shared([*lead, *rest], [*lead, *other]).beginning == 1
    assert shared([*lead, *rest], [*other, *rest]).beginning == 0
    assert shared([*lead, *rest], [*other, *lead]).beginning == 1  # anywhere in the other


TEXTS = {
    "en": (
        "Harbour pilots end strike",
        "The pilots of the harbour at Tornavik end their strike tonight after nine days.",
        "Read our newsletter every morning, free of charge and without advertising, on all your devices.",
    ),
    "de": (
        "Lotsen beenden Streik",
        "Die Lotsen im Hafen von Tornavik beenden ihren Streik heute Abend nach neun Tagen.",
        "Lesen Sie jeden Morgen unseren Rundbrief, kostenlos und ohne Werbung, auf allen Geräten.",
    ),
    "fr": (
        "Les pilotes cessent la grève",
        "Les pilotes du port de Tornavik cessent leur grève ce soir après neuf jours de blocage.",
        "Recevez chaque matin notre lettre, gratuite et sans publicité, sur tous vos appareils.",
    ),
    "ru": (
        "Лоцманы прекращают забастовку",
        "Лоцманы порта Торнавик прекращают забастовку сегодня вечером после девяти дней.",
        "Читайте каждое утро нашу рассылку, бесплатно и без рекламы, на всех ваших устройствах.",
    ),
}


def sketch(title: str, text: str, lang: str) -> Sketch:
    """The sketch of an article, with marks of its headline."""
    return ANALYZER.analyze(Article(id="a", title=title, text=text, lang=lang)).sketch


@pytest.mark.parametrize("lang", TEXTS)
def test_what_a_headline_is_about(lang: str) -> None:
    """The share of the sentences with its terms that is known, not of the notice around them."""
    title, lead, notice = TEXTS[lang]
    own, width = sketch(title, f"{lead} {notice}", lang), shingle_width(lang)

    with_lead = shared_wording(own, [sketch("", f"{lead} {notice}", lang)], width).headline
    with_notice = shared_wording(own, [sketch("", notice, lang)], width).headline

    assert with_lead is not None and with_lead >= 0.7
    assert with_notice is not None and with_notice <= 0.1


@pytest.mark.parametrize("lang", TEXTS)
def test_a_headline_that_is_not_in_the_text_says_nothing(lang: str) -> None:
    """None, rather than a share of nothing."""
    title, _, notice = TEXTS[lang]
    own = sketch(title, f"{notice} " * 8, lang)  # long enough that the sketch leaves out the headline

    assert shared_wording(own, [own], shingle_width(lang)).headline is None


def test_shingles_of_a_headline_alone() -> None:
    """Those that a short text's sketch has of its headline; none if the text repeats it."""
    title, text = (
        "Ferry to the northern islands is sold",
        "The council took the higher of two offers on Monday.",
    )
    apart, repeated = (
        ANALYZER.analyze(Article(id="", title=title, text=body, lang="en"))
        for body in (text, f"{title}\n{text}")
    )

    assert 0 < count_of_headline(apart) <= len(headline_shingles(apart))
    assert count_of_headline(repeated) <= 2


@pytest.mark.parametrize(
    ("title", "text", "lang", "known"),
    [
        ("Ferry sinks off Veldmoor", "FERRY SINKS OFF VELDMOOR.", "en", False),
        ("Ferry sinks off Veldmoor - Quay News", "Ferry sinks off Veldmoor", "en", False),
        ("Ferry sinks off Veldmoor", "Ferry sinks off Veldmoor, nine dead", "en", True),
        ("Ferry sinks off Veldmoor", "Nobody was hurt", "en", True),
        ("Fähre sinkt vor Veldmoor", "Fähre sinkt vor Veldmoor!", "de", False),
        ("Паром затонул у Велдмора", "Паром затонул у Велдмора", "ru", False),
        ("渡轮在凌晨沉没", "渡轮在凌晨沉没。", "zh", False),
        ("渡轮在凌晨沉没", "渡轮在凌晨沉没，九人死亡。", "zh", True),
        ("Ferry sinks off Veldmoor", "", "en", False),
        ("", "Nobody was hurt", "en", True),
    ],
)
def test_a_text_that_repeats_its_headline_is_none(title: str, text: str, lang: str, known: bool) -> None:
    """In other letters and with another end, too; a word more may be the news."""
    article = Article(id="a", title=title, text=text, known_lang=lang)
    analysis = ANALYZER.analyze(article)

    assert has_text(build_record(article, analysis)) is known
    assert (Problem.empty not in analysis.problems) is known


BACKGROUND = {
    "ru": "Шахта в посёлке Камыш работает с пятидесятых годов, на ней заняты около восьмисот человек. "
    "Спасатели пробивались через соседний штрек, работы осложнял метан.",
    "zh": "这座水库建于上世纪七十年代，为下游的两个县城供水。工程师连夜用沙袋加固，学校停课，道路多处塌方。",
}


def told(title: str, lead: str, lang: str, seed: int = 1) -> Analysis:
    """An article with this headline and first sentence, and the background of the story ``seed``."""
    background = BACKGROUND.get(lang) or story(seed, 12)
    return ANALYZER.analyze(Article(id="a", title=title, text=f"{lead} {background}", lang=lang))


@pytest.mark.parametrize(
    ("first", "first_lead", "later", "lead", "lang"),
    [
        (
            "Boy of nine missing in Kellmar", "A boy of nine is missing in Kellmar since Tuesday.",
            "Missing boy found alive in Kellmar", "The boy was found alive in a hut on Thursday.", "en",
        ),
        (
            "Truce agreed in the Morn valley", "Both sides agreed on a truce in the Morn valley.",
            "Truce in the Morn valley broken", "Artillery has broken the truce in the Morn valley.", "en",
        ),
        (
            "Earthquake shakes Kell", "An earthquake shook Kell on Sunday and killed nine people.",
            "Earthquake in Kell kills 31", "The earthquake in Kell has killed 31 people.", "en",
        ),
        (
            "Urteil gegen Sparkassenchef erwartet", "Das Gericht will am Mittwoch das Urteil sprechen.",
            "Sparkassenchef zu sechs Jahren Haft verurteilt",
            "Das Gericht hat den früheren Chef am Mittwoch zu sechs Jahren Haft verurteilt.", "de",
        ),
        (
            "Usine de Castelroy : une décision attendue", "La direction annoncera mardi sa décision.",
            "L’usine de Castelroy fermera en juin", "La direction fermera l’usine en juin.", "fr",
        ),
        (
            "Горняки заблокированы в шахте", "Двенадцать горняков заблокированы после обвала.",
            "Заблокированных горняков подняли на поверхность",
            "Всех горняков, заблокированных после обвала, подняли на поверхность.", "ru",
        ),
        (
            "水库大坝出现裂缝", "周一上午大坝出现裂缝。",
            "水库大坝垮塌", "周一深夜水库大坝垮塌，村庄被淹。", "zh",
        ),
    ],
)  # fmt: skip
def test_news_in_headline_and_lead_above_old_paragraphs(
    first: str, first_lead: str, later: str, lead: str, lang: str
) -> None:
    """Not if another article says it, nor if the headline or the lead alone is new."""
    before, now = told(first, first_lead, lang), told(later, lead, lang)

    assert tells_news(now, [before], now.text)
    assert not tells_news(now, [before, now], now.text)
    headline_alone, lead_alone = told(later, first_lead, lang), told(first, lead, lang)
    for article in (headline_alone, lead_alone, before):
        assert not tells_news(article, [before], article.text)
    titled = f"{later}. {headline_alone.text}"  # as pages repeat their headline
    assert not tells_news(ANALYZER.analyze(Article(id="a", title=later, text=titled)), [before], titled)


@pytest.mark.parametrize(("sentences", "least"), [(12, 30), (40, 25), (70, 18)])
def test_news_above_a_long_text_is_found_though_it_is_sampled(sentences: int, least: int) -> None:
    """Mostly: of a text of 700 words little more than one shingle in four is compared."""
    found = 0
    for seed in range(30):
        background, place = story(seed, sentences), f"Quar{chr(ord('a') + seed % 26)}{'aeiou'[seed % 5]}n"
        before, now = (
            ANALYZER.analyze(Article(id="a", title=title, text=f"{lead} {background}", lang="en"))
            for title, lead in (
                ("Truce agreed in the Morn valley", "Both sides agreed on a truce in the Morn valley."),
                (
                    f"Truce in the Morn valley broken by shells on {place}",
                    f"Shells fell on {place} on Thursday and broke what was agreed, observers said by radio.",
                ),
            )
        )
        found += tells_news(now, [before], now.text)
    assert found >= least, (now.text_words, found)


def test_the_headline_may_share_its_subject_with_the_text_alone() -> None:
    """News on somebody of whom the earlier headline says nothing."""
    first = "The court convicted Ulla Rieker of bribery. Rieker denied it. The shops of Rieker are closed."
    lead = "Ulla Rieker was found dead in her cell on Tuesday, the prison said."
    before = told("Former mayor convicted", first, "en")
    now = told("Rieker found dead", f"{lead} {first}", "en")
    other = told("Marlow found dead", f"Ada Marlow was found dead in her cell. {first}", "en")

    assert tells_news(now, [before], now.text)
    assert not tells_news(other, [before], other.text)


@pytest.mark.parametrize(
    ("lang", "first", "later", "end"),
    [
        (
            "en", "Coach falls into the Tarnfeld reservoir", "Tarnfeld: driver charged with manslaughter",
            "On Friday the driver was charged with manslaughter.",
        ),
        (
            "de", "Bus stürzt in den Stausee", "Busfahrer nach Sturz in den Stausee verhaftet",
            "Am Freitag wurde der Busfahrer verhaftet.",
        ),
    ],
)  # fmt: skip
def test_two_terms_of_the_headline_may_be_new_at_the_end(lang: str, first: str, later: str, end: str) -> None:
    """One is not enough, as it may be of a list of links."""
    before = told(first, "", lang, 5)
    text = f"{before.text} {end}"
    now = ANALYZER.analyze(Article(id="a", title=later, text=text, lang=lang))
    other = f"{before.text} {later.rsplit(maxsplit=1)[-1]} of the week"

    assert tells_news(now, [before], text)
    assert not tells_news(now, [before], other)
    assert not tells_news(now, [before], before.text)


def test_the_name_of_a_site_is_no_news() -> None:
    """A headline without a common word, though the page says it at its start."""
    before = told("Truce agreed in the Morn valley", "Both sides agreed on a truce.", "en")
    page = told("Westfall Weekly Online", "Welcome to Westfall Weekly Online, sections and weather.", "en")

    assert not tells_news(page, [before], page.text)
    assert not tells_news(page, [before], "")


@pytest.mark.parametrize("kicker", ["Good news for swimmers: ", "Swimmers rejoice. "])
def test_a_kicker_in_front_of_a_text_is_no_news(kicker: str) -> None:
    """Though it says what the headline says; a sentence in front of it may be."""
    before = told("Swimming hall opens again", "The hall of Brackwater opens on Saturday.", "en")
    now = told("Swimmers get their hall back", f"{kicker}{before.text}", "en")
    closed = "On Sunday the swimmers were sent home since chlorine had leaked into the water of the pool."
    sent = told("Swimmers sent home from the hall", f"{closed} {before.text}", "en")

    assert not tells_news(now, [before], now.text)
    assert tells_news(sent, [before], sent.text)
