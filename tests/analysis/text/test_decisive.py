"""Decisive differences of headlines and word lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.text.decisive import decisive_difference, reversal
from tests.analysis.text.any_text import ANY_TEXT, DIFFICULT_TEXT

# A headline that a feed may cut.
LONG = "Ferry between Brine and Orlow stops for the whole winter as the old harbour mayor"


@pytest.mark.parametrize(
    ("lang", "one", "other", "difference"),
    [
        ("en", "Ferry shares: +12%", "Ferry shares: -12%", "figures"),
        ("en", "Mills fined $5m", "Mills fined €5m", "figures"),
        ("en", "Serum <50% effective", "Serum >50% effective", "figures"),
        ("en", "Harbour v Mills ends 3-1", "Harbour v Mills ends 1-3", "figures"),
        ("en", "Five hurt in Brine fire", "Six hurt in Brine fire", "figures"),
        ("en", "Learning C++ in ten days", "Learning C# in ten days", "signs"),
        ("en", "Court acquits mayor of Brine", "Court convicts mayor of Brine", "opposite"),
        ("en", "Police detain three men", "Police question three men", "opposite"),
        ("en", "Mayor is guilty, court says", "Mayor is not guilty, court says", "negation"),
        ("en", "Ideas for the weekend in Brine", "Ideas for the weekend in Orlow", "names"),
        ("en", "Mayor of Brine meets Brown", "Mayor of Brine meets Brownlow", "names"),
        ("en", f"{LONG} meets Brown", f"{LONG} meets Brooks", "names"),
        ("en", f"{LONG}: wait of 1", f"{LONG}: wait of 15", "figures"),
        ("de", "Brücke in Brine öffnet am Montag", "Brücke in Brine schließt am Montag", "opposite"),
        ("de", "Minister tritt zurück", "Minister tritt nicht zurück", "negation"),
        ("fr", "Le pont ouvre lundi", "Le pont ferme lundi", "opposite"),
        ("es", "El paro sube en mayo", "El paro baja en mayo", "opposite"),
        ("pt", "Preço da gasolina sobe 5%", "Preço da gasolina sobe 6%", "figures"),
        ("it", "Il ponte apre oggi", "Il ponte chiude oggi", "opposite"),
        ("nl", "Brug open voor verkeer", "Brug gesloten voor verkeer", "opposite"),
        ("sv", "Bron är öppen", "Bron är inte öppen", "negation"),
        ("pl", "Ceny paliw rosną w maju", "Ceny paliw spadają w maju", "opposite"),
        ("ru", "Мост открыт", "Мост закрыт", "opposite"),
        ("uk", "Двоє загинули на мосту", "Троє загинули на мосту", "figures"),
        ("tr", "Köprü trafiğe açıldı", "Köprü trafiğe kapandı", "opposite"),
        ("id", "Polisi tahan tiga warga", "Polisi periksa tiga warga", "opposite"),
        ("vi", "Giá vàng tăng mạnh", "Giá vàng giảm mạnh", "opposite"),
        ("ar", "ارتفاع أسعار النفط", "انخفاض أسعار النفط", "opposite"),
        ("hi", "पुल आज खुलेगा", "पुल आज नहीं खुलेगा", "negation"),
        ("zh", "股价+5%", "股价-5%", "figures"),
        ("zh", "法院判市长无罪", "法院判市长有罪", "opposite"),
        ("zh", "市政府關閉橋樑", "市政府開放橋樑", "opposite"),
        ("ja", "橋が開通した", "橋が閉鎖した", "opposite"),
        ("ko", "주가 5% 상승", "주가 5% 하락", "opposite"),
    ],
)
def test_headlines_that_differ(lang: str, one: str, other: str, difference: str) -> None:
    """In one word or sign."""
    assert decisive_difference(one, other, lang) == difference
    assert decisive_difference(other, one, lang) == difference


@pytest.mark.parametrize(
    ("lang", "one", "other"),
    [
        ("en", "Mills fined US$5m over spill", "Mills fined $5 million over spill"),
        ("en", "Five hurt in Brine fire", "5 hurt in Brine fire | Gazette"),
        ("en", "Mayor not guilty, court says", "Mayor innocent, court says"),
        ("en", "Kyiv mayor meets Zelenskyy in Brine", "Kiev mayor meets Zelensky in Brine"),
        ("en", "MAN HELD IN BRINE", "Man held in Brine"),
        ("en", "Marrow & Sons closes three shops", "Marrow and Sons closes 3 shops"),
        ("en", "Five hurt in fire", "Fire in Brine"),
        ("de", "Zwölf Verletzte in München", "12 Verletzte in Muenchen"),
        ("zh", "公交车祸致五人死亡十二人受伤", "公交车祸致5人死亡12人受伤"),
        ("tr", "Erdoğan köprüyü açtı", "Erdogan kopruyu acti"),
        ("en", f"{LONG} meets Brown", f"{LONG} meets Brownlow and others"),
        ("fr", f"{LONG} au secours de Zoé Lamb", f"{LONG} au secours de Zoé Lambert"),
        ("", "", ""),
    ],
)
def test_house_style_separates_nothing(lang: str, one: str, other: str) -> None:
    """Nor does what only one headline says."""
    assert decisive_difference(one, other, lang) == ""


def test_word_lists_are_reversed_by_one_word() -> None:
    """The other words do not matter."""
    words = ["the", "court", "acquitted", "the", "mayor", "of", "Brine", "on", "all", "counts"]
    reversed_ = ["convicted" if word == "acquitted" else word for word in words]

    assert reversal(words, reversed_, "en") == reversal(reversed_, words, "en") == "opposite"
    assert reversal(words, [*words, "not"], "en") == "negation"
    assert reversal(words, words, "en") == ""


@given(ANY_TEXT | DIFFICULT_TEXT, ANY_TEXT, st.sampled_from(["en", "zh", "ar", "ko", "th", ""]))
def test_any_headlines_can_be_compared(a: str, b: str, lang: str) -> None:
    """The result does not depend on the order; a headline differs in nothing from itself."""
    assert decisive_difference(a, a, lang) == ""
    assert decisive_difference(a, b, lang) == decisive_difference(b, a, lang)
