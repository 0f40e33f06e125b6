"""Figures of headlines over time: what counts with what, in several languages, and who said it first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.events.figures import (
    MAX_VALUES,
    Toll,
    figures_in,
    figures_over_time,
    new_tolls,
    newer_figures,
)


@pytest.mark.parametrize(
    ("lang", "title", "found"),
    [
        ("en", "Ferry fire kills at least 14 passengers, 1,200 evacuated", {"dead": 14, "evacuated": 1200}),
        ("en", "Fourteen dead and forty-two injured in ferry fire", {"dead": 14, "injured": 42}),
        ("en", "Death toll rises to 14 in ferry fire", {"dead": 14}),
        ("en", "Ferry fire: killed 14, injured 40", {"dead": 14, "injured": 40}),
        ("es", "Suben a 14 los muertos y 40 heridos por el incendio", {"dead": 14, "injured": 40}),
        ("fr", "Incendie d'un ferry : au moins 14 morts, 40 blessés", {"dead": 14, "injured": 40}),
        ("de", "Zahl der Toten steigt auf 14 - 40 Verletzte", {"dead": 14, "injured": 40}),
        ("it", "Incendio sul traghetto, almeno 14 morti e 40 feriti", {"dead": 14, "injured": 40}),
        ("pt", "Sobe para 14 o número de mortos", {"dead": 14}),
        ("ru", "Число погибших выросло до 14 человек", {"dead": 14}),
        ("ru", "Погибли двое, пострадали сорок человек", {"dead": 2, "injured": 40}),
        ("zh", "渡轮火灾致14死40伤", {"dead": 14, "injured": 40}),
        ("zh", "渡轮火灾遇难人数升至十四人，5人失踪", {"dead": 14, "missing": 5}),
        ("tr", "Feribot yangınında 14 kişi öldü", {"dead": 14}),
        ("de", "Zahl der Toten in Vellmark steigt auf neun", {"dead": 9}),
        ("de", "Zahl der Toten nach dem Beben auf neun gestiegen", {"dead": 9}),
        ("en", "Death toll from magnitude 7 quake rises to 9", {"dead": 9}),
        ("it", "Sale a nove a Vellmark il numero dei morti", {"dead": 9}),
        ("pl", "Liczba ofiar w Vellmark wzrosła do dziewięciu", {"dead": 9}),
        ("nl", "Dodental in Vellmark stijgt naar negen", {"dead": 9}),
        ("sv", "Dödssiffran i Vellmark stiger till nio", {"dead": 9}),
        ("no", "Ni døde og tre skadde i jordskjelv", {"dead": 9, "injured": 3}),
        ("cs", "Počet obětí v Brně stoupl na devět", {"dead": 9}),
        ("id", "Korban tewas gempa di Vellmark menjadi sembilan orang", {"dead": 9}),
        ("ar", "مقتل تسعة أشخاص في زلزال", {"dead": 9}),
        ("hi", "भूकंप में 9 लोगों की मौत", {"dead": 9}),
        ("en", "Toll climbs to 17 in Vellmark quake", {"toll": 17}),
        ("en", "Toll in Vellmark rises from 12 to 17", {"toll": 17}),
        ("en", "Vellmark quake toll stands at 17", {"toll": 17}),
        ("en", "Injury toll rises to 40 as toll of dead reaches 9", {"injured": 40, "dead": 9}),
        ("en", "Missing climb to 17", {"missing": 17}),
        ("en", "17 fishermen missing after boat capsizes", {"missing": 17}),
        ("en", "Fears for 17 missing after ferry sinks", {"missing": 17}),
        ("en", "17 people still unaccounted for", {"missing": 17}),
        ("de", "Opferzahl klettert auf 17", {"toll": 17}),
        ("de", "17 Fischer vermisst", {"missing": 17}),
        ("fr", "Séisme : le bilan grimpe à 17", {"toll": 17}),
        ("fr", "17 personnes portées disparues", {"missing": 17}),
        ("es", "Asciende a 17 el balance del terremoto", {"toll": 17}),
        ("es", "El saldo de muertos llega a 17", {"dead": 17}),
        ("it", "Terremoto, il bilancio sale a 17", {"toll": 17}),
        ("pt", "Balanço sobe para 17", {"toll": 17}),
        ("ru", "17 рыбаков пропали без вести", {"missing": 17}),
        ("uk", "17 рибалок зникли безвісти", {"missing": 17}),
        ("zh", "仍有17人下落不明", {"missing": 17}),
        ("sv", "Dödstalet i Vellmark stiger till 17", {"dead": 17}),
        ("da", "17 savnes efter forlis", {"missing": 17}),
        ("pl", "Bilans ofiar wzrósł do 17", {"dead": 17}),
        ("ar", "فقدان 17 شخصا", {"missing": 17}),
        ("hi", "मृतकों की संख्या 17 हुई", {"dead": 17}),
        ("ja", "地震で死者12人、負傷者40人", {"dead": 12, "injured": 40}),
        ("ja", "フェリー火災で14人が死亡", {"dead": 14}),
        ("ja", "地震の死者は計14人に増加", {"dead": 14}),
        ("ja", "12人が死傷", {}),
        ("ja", "地震、死者1万2000人超", {}),
        ("ja", "12歳男児が死亡、死後20年の絵画公開", {}),
        ("ko", "페리 화재로 12명 사망, 40명 부상", {"dead": 12, "injured": 40}),
        ("ko", "지진 사망자 12명으로 늘어", {"dead": 12}),
        ("ko", "어선 전복으로 5명 실종", {"missing": 5}),
        ("ko", "지진으로 12명이 숨지고 40명 다쳐", {"dead": 12, "injured": 40}),
        ("ko", "10명 중 3명 사망", {"dead": 3}),
        ("ko", "12살 어린이 사망", {}),
        ("ko", "화가 사망 3년 만에 그림 공개", {}),
        ("en", "Bridge toll rises to 17 dollars", {}),
        ("en", "Bridge toll climbs to $17, up 4% after 12% last year", {}),
        ("en", "Number of homes rises to 900 after two killed", {"dead": 2}),
        ("en", "Man killed as temperature rises to 40", {}),
        ("en", "Captain, 71, dead; a 64-year-old sailor was killed", {}),
        ("en", "Actor dies at 72", {}),
        ("en", "Magnitude 7.8 quake kills dozens", {}),
        ("en", "Missing 22 years, killed in 1987", {}),
        ("zh", "失踪22年登山者遗体被找到", {}),
        ("sw", "Watu 14 wamekufa", {}),
    ],
)
def test_a_number_counts_with_the_word_that_it_belongs_to(
    lang: str, title: str, found: dict[str, int]
) -> None:
    """Before or behind it, with words between that link them; ages, years, times and decimals do not."""
    assert figures_in(title, lang) == found


@pytest.mark.parametrize(
    ("lang", "title"),
    [
        ("en", "Quake death toll passes 100, now 113"),
        ("en", "Death toll over 100, now at 113"),
        ("en", "More than 100 killed, now 113 dead after 4 die in hospital"),
        ("de", "Zahl der Toten steigt auf über 100, jetzt 113"),
        ("de", "Mehr als 100 Tote, inzwischen 113"),
        ("fr", "Le bilan dépasse 100 morts, désormais 113"),
        ("es", "Más de 100 muertos, ya 113"),
        ("it", "Oltre 100 morti, ora 113"),
        ("ru", "Число погибших превысило 100, теперь 113"),
        ("nl", "Dodental boven 100, nu 113"),
        ("zh", "死亡人数超过100，现已达113人"),
    ],
)
def test_a_number_that_is_said_again_as_of_now_replaces_the_first(lang: str, title: str) -> None:
    """The round number that was passed is not a figure of the headline."""
    assert figures_in(title, lang) == {"dead": 113}
    for rest in ("now 3 states send aid", "now 0"):
        assert figures_in(f"100 dead in quake, {rest}", "en") == {"dead": 100}


@pytest.mark.parametrize(
    ("lang", "title", "figures"),
    [
        ("en", "Milk recall: 21 infants sick after formula", {"ill": 21}),
        ("en", "23 babies hospitalised, one dies", {"hospitalized": 23}),
        ("en", "Sick of it: 20 reasons to leave", {}),
        ("de", "21 Kinder erkrankt nach Ausflug", {"ill": 21}),
        ("fr", "21 malades après un repas", {"ill": 21}),
        ("es", "21 enfermos por leche", {"ill": 21}),
        ("it", "21 malati dopo la gita", {"ill": 21}),
        ("ru", "21 человек госпитализированы", {"hospitalized": 21}),
    ],
)
def test_the_ill_are_counted(lang: str, title: str, figures: dict[str, int]) -> None:
    """In headlines of eight languages."""
    assert figures_in(title, lang) == figures


def test_of_a_number_that_may_fall_the_later_one_counts() -> None:
    """When its first report is later; what two outlets had said before is not new, nor what one says."""

    def said(*numbers: int) -> list[tuple[int, str, dict[str, int]]]:
        return [(2 * n, by, {"missing": m}) for n, m in enumerate(numbers) for by in ("Quay", "Mole")]

    assert new_tolls(said(12, 31, 5), ()) == [(2 * n, "missing", m) for n, m in enumerate((12, 31, 5))]
    assert new_tolls(said(12, 31), [(0, "missing", 12)]) == [(2, "missing", 31)]
    assert new_tolls(said(31, 5), [(0, "missing", 12), (2, "missing", 31)]) == [(2, "missing", 5)]
    assert not new_tolls(said(12, 31, 5), [(4, "missing", 5)])
    assert not new_tolls([*said(12, 5)[1:], (9, "Quay", {"missing": 12})], [(0, "missing", 5)])
    assert not new_tolls([(1, "Quay", {"missing": 5}), (2, "QUAY", {"missing": 5})], [(0, "missing", 9)])


def test_each_number_has_its_first_report_and_its_outlets() -> None:
    """In order of time; spellings of one outlet are one, and what one outlet counts alone is not shown."""
    series = figures_over_time(
        [
            (3, "Pier Post", {"dead": 11}),
            (1, "Quay", {"dead": 10, "missing": 4}),
            (2, "QUAY", {"dead": 10, "missing": 3}),
            (4, "Mole", {"dead": 11}),
            (5, "Mole", {}),
        ]
    )

    assert series == {"dead": [(10, 1, "Quay", 1), (11, 3, "Pier Post", 2)]}
    many = figures_over_time([(n, f"s{n}", {"dead": n}) for n in range(30)])
    assert [value for value, *_ in many["dead"]] == list(range(30 - MAX_VALUES, 30))


def test_a_toll_remains_after_its_outlets_have_updated_their_headlines() -> None:
    """At the time of its first report, with the outlets that say it by now."""
    said = [(5, "Quay", {"dead": 65}), (3, "Mole", {"dead": 62})]

    assert figures_over_time(said, [(1, "dead", 62)]) == {"dead": [(62, 1, "", 1), (65, 5, "Quay", 1)]}
    assert figures_over_time(said[:1], [(1, "dead", 62), (4, "dead", 65)]) == {
        "dead": [(62, 1, "", 0), (65, 4, "", 1)]
    }
    assert figures_over_time(said[1:], [(3, "dead", 62)]) == {"dead": [(62, 3, "Mole", 1)]}


def test_a_toll_of_no_kind_counts_the_dead_where_another_headline_counts_dead() -> None:
    """The larger number of a headline is its toll; it is left out unless another headline counts dead."""
    said = [(1, "Quay", figures_in("Nine dead in quake", "en"))]
    later = [
        (2, "Mole", figures_in("Toll rises to 17 after 3 bodies found", "en")),
        (3, "Pier", figures_in("Toll hits 17", "en")),
    ]

    assert figures_over_time([(n, by, {"toll": 17, "injured": 40}) for n, by, _ in later]).keys() == {
        "injured"
    }
    assert new_tolls(said + later, ()) == [(2, "dead", 17)]
    assert newer_figures("Quake: toll climbs to 12", "en", [(2, "dead", 17)]) == {"dead": 17}


def test_a_lower_toll_is_a_correction_if_more_outlets_report_it_from_then_on() -> None:
    """Not one that was reported before two had the larger one, nor one that fewer outlets report since."""
    said = [(1, "Quay", 9), (2, "Mole", 9), (3, "Pier", 140), (4, "Quay", 140)]
    late = [(5, "Buoy", 9), (6, "Dock", 9), (7, "Gull", 9)]
    lower = [(8, "Quay", 41), (9, "Mole", 41)]
    larger = [(8, "Buoy", 140), (9, "Dock", 140)]
    early = [(4, "Mole", 41), (5, "Buoy", 41), (6, "Dock", 41)]

    def new(reports: list[tuple[int, str, int]], *known: Toll) -> list[Toll]:
        return new_tolls(((at_ms, source, {"dead": number}) for at_ms, source, number in reports), known)

    known = [(1, "dead", 9), (3, "dead", 140)]
    for reports in (late, lower[:1], early, lower + larger):
        assert new(said + reports) == known and new(said + reports, *known) == []
    assert new(said + late + lower) == [*known, (8, "dead", 41)]
    assert new(said + late + lower, *known) == [(8, "dead", 41)]
    assert new(said + lower + larger, *known, (8, "dead", 41)) == known[1:]
    assert new(lower, *known) == []  # nobody reports the larger one in the window


def test_a_headline_with_a_corrected_figure_is_outdated() -> None:
    """A larger number that no two outlets have reported does not count."""
    known = [(1, "dead", 9), (2, "dead", 140), (8, "dead", 41)]

    for number, newer in ((9, {"dead": 41}), (140, {"dead": 41}), (41, {}), (45, {})):
        assert newer_figures(f"Quake kills {number}", "en", known) == newer, number


@given(st.text(max_size=80), st.sampled_from(["en", "es", "ru", "zh", "xx", ""]))
def test_any_headline_is_read(title: str, lang: str) -> None:
    """Whatever it holds; a number is positive."""
    assert all(value > 0 for value in figures_in(title, lang).values())
