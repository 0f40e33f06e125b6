"""Figures of headlines over time: what counts with what, in several languages, and who said it first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.events.figures import MAX_VALUES, figures_in, figures_over_time


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


@given(st.text(max_size=80), st.sampled_from(["en", "es", "ru", "zh", "xx", ""]))
def test_any_headline_is_read(title: str, lang: str) -> None:
    """Whatever it holds; a number is positive."""
    assert all(value > 0 for value in figures_in(title, lang).values())
