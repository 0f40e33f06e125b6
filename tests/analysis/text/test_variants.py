"""What must not matter and what must, in 15 languages, on the level of the analysis.

``SAME``: two spellings of one headline or sentence have one text hash. ``OTHER``: opposite or other news does
not, and headlines are told apart, whatever the rest of the words.
"""

from __future__ import annotations

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.text.decisive import decisive_difference
from aggregator.domain import Analysis, Article

ANALYZER = Analyzer(load_models())

SAME = [
    ("en", "Twelve people hurt, five hundred led out", "12 people hurt, 500 led out"),
    ("en", "U.S. envoy leaves Brine at 5 p.m.", "US ENVOY LEAVES BRINE AT 5 PM | Gazette"),
    ("en", "Mills fined $1.2 million", "Mills fined US$1,200,000"),
    ("en", "Marrow & Sons: 7 percent, \N{MINUS SIGN}12 °C", "Marrow and Sons: 7 %, minus 12 °C"),
    ("en", "Erdoğan meets Müller in São Paulo", "Erdogan meets Mueller in Sao Paulo"),
    ("de", "Fünfundzwanzig Häuser brannten, 3,5 Millionen Schaden", "25 Haeuser brannten, 3.500.000 Schaden"),
    ("de", "Straße in München gesperrt", "STRASSE IN MÜNCHEN GESPERRT - Spiegel Online"),
    ("fr", "Quatre-vingt-douze élèves à l'école", "92 ELEVES A L'ECOLE"),
    ("es", "Treinta y cinco años y dos millones", "35 años y 2.000.000"),
    ("it", "Ventotto città e due ponti", "28 citta e 2 ponti"),
    ("pt", "Três mortos e vinte e dois feridos em São João", "3 mortos e 22 feridos em Sao Joao"),
    ("nl", "Twaalf gewonden in België", "12 gewonden in Belgie"),
    ("sv", "Tolv skadade i Malmö", "12 skadade i Malmo"),
    ("pl", "Pięciu rannych w Łodzi", "5 rannych w Lodzi"),
    ("ru", "Двенадцать человек ещё на мосту", "12 человек еще на мосту"),
    ("uk", "Двоє поранених, п'ять авто", "2 поранених, п’ять авто"),
    ("tr", "On iki yaralı İstanbul'da", "12 yarali Istanbul'da"),
    ("id", "Dua puluh lima orang tewas", "25 orang tewas"),
    ("vi", "Hà Nội mở lại cầu cũ", "Ha Noi mo lai cau cu"),
    ("el", "Δώδεκα τραυματίες στην Αθήνα", "12 ΤΡΑΥΜΑΤΙΕΣ ΣΤΗΝ ΑΘΗΝΑ"),
    ("ar", "أغلقت بلديةُ المدينة الجسر ٥٪", "اغلقت بلديه المدينه الجسر 5%"),
    ("fa", "شهردار یک پارک تازه ساخت", "شهردار يك پارك تازه ساخت"),
    ("he", "הַגֶּשֶׁר נִסְגַּר", "הגשר נסגר"),
    ("hi", "सम्बन्ध सुधरे, क़ानून बदला", "संबंध सुधरे, कानून बदला"),
    ("sr", "Београд отвара двадесет пет мостова", "Beograd otvara 25 mostova"),
    ("zh", "公交车祸致五人死亡，拨款一百二十万元", "公交車禍致5人死亡，撥款120萬元"),
    ("ja", "橋は１２日に再開", "橋は12日に再開"),
    ("ko", "항구를 다시 열 수 있다", "항구를 다시 열수있다"),
]

OTHER = [
    ("en", "Mills shares: {}", "+12%", "-12%"),
    ("en", "Tomorrow in Brine: {} °C", "-12", "12"),
    ("en", "Mills fined {}", "$5m", "€5m"),
    ("en", "Serum {}50% effective", "<", ">"),
    ("en", "Learning {} in ten days", "C++", "C#"),
    ("en", "Mills graded {} by agency", "A+", "A-"),
    ("en", "Harbour v Mills ends {}", "3-1", "1-3"),
    ("de", "Umsatz der Werft: {}", "+4,2 %", "\N{EN DASH}4,2 %"),
    ("fr", "Chiffre d'affaires : {}", "+5 %", "\N{MINUS SIGN}5 %"),
    ("es", "El puente cuesta {}", "5 millones de euros", "5 millones de dólares"),
    ("it", "Temperatura a Brine: {} gradi", "-3", "3"),
    ("pt", "Multa de {} para a fábrica", "£5", "$5"),
    ("nl", "Omzet van de werf: {}", "+5%", "-5%"),
    ("pl", "Obroty stoczni: {}", "+5%", "-5%"),
    ("ru", "Завтра в Орлове {}", "минус 12", "12"),
    ("uk", "Акції заводу {}", "+5%", "\N{MINUS SIGN}5%"),
    ("tr", "Fabrikanın cirosu {}", "%5", "-%5"),
    ("ar", "أسهم المصنع {}", "+٥٪", "-٥٪"),
    ("he", "מניות המפעל {}", "+5%", "-5%"),
    ("hi", "कारखाने के शेयर {}", "+५%", "-५%"),
    ("zh", "股价{}", "＋５％", "－５％"),
    ("zh", "明日奥洛市{}度", "零下5", "5"),
    ("ja", "工場の株価{}", "+5%", "-5%"),
    ("ko", "공장 주가 {}", "+5%", "-5%"),
]


def analyze(lang: str, title: str) -> Analysis:
    """The analysis of a bare headline."""
    return ANALYZER.analyze(Article(id="a", title=title, lang=lang))


@pytest.mark.parametrize(("lang", "one", "other"), SAME)
def test_variants_do_not_matter(lang: str, one: str, other: str) -> None:
    """One text hash, one sample of shingles, no decisive difference."""
    first, second = analyze(lang, one), analyze(lang, other)

    assert first.text_hash == second.text_hash
    assert first.sketch.sample.tolist() == second.sketch.sample.tolist()
    assert decisive_difference(one, other, lang) == ""


@pytest.mark.parametrize(("lang", "headline", "one", "other"), OTHER)
def test_signs_units_and_comparisons_matter(lang: str, headline: str, one: str, other: str) -> None:
    """Neither text hash nor figures are equal, and the headlines are told apart."""
    titles = headline.format(one), headline.format(other)
    first, second = (analyze(lang, title) for title in titles)

    assert first.text_hash != second.text_hash
    difference = decisive_difference(*titles, lang)
    assert difference in ("figures", "signs")
    assert difference == "signs" or first.figures != second.figures
