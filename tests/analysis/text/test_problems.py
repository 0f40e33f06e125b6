"""What is wrong with a text as an extractor delivered it."""

from __future__ import annotations

import pytest

from aggregator.analysis.text.problems import text_problems
from aggregator.domain import NO_PROBLEM, Problem

WHOLE = {
    "en": "The ferry of Estmark runs again on Monday. The pier has been repaired.",
    "en with a byline": "The ferry of Estmark runs again.\nBy Ada Muster, Radio Estmark, in the harbour",
    "en, agency": "The ferry of Estmark runs again. (Reporting by Ada Muster in Estmark; editing by Bo)",
    "en, quotation": "The keeper of the lighthouse looked at the sea and said: “I will not leave.”",
    "de": "Die Fähre von Estmark fährt wieder, und der Hafenmeister sagt: »Endlich ist es so weit!«",
    "fr": "Le bac d’Estmark reprend son service lundi, et le maire se dit « très satisfait ».",
    "es": "El transbordador de Estmark vuelve a salir el lunes. ¿Quién pagará las obras del muelle?",
    "ru": "Паром в Эстмарке снова ходит с понедельника, сообщили в порту.",
    "el": "Το πλοίο του Έστμαρκ ξεκινά πάλι τη Δευτέρα, λέει ο δήμαρχος;",
    "ar": "تعود العبارة إلى العمل يوم الاثنين في ميناء المدينة، فمن يدفع ثمن الإصلاح؟",
    "hi": "नौका सोमवार से फिर चलेगी और घाट की मरम्मत पूरी हो चुकी है।",
    "zh": "渡轮星期一恢复通航，码头已经修好，船长表示满意。",
    "ja": "渡し船は月曜日に運航を再開し、桟橋の修理も終わった。",
    "ko": "나룻배가 월요일부터 다시 다니고 부두 수리도 모두 끝났다고 시장이 말했다.",
    "th": "เรือข้ามฟากกลับมาให้บริการในวันจันทร์หลังจากซ่อมท่าเรือเสร็จแล้ว",
    "a short line": "Ferry runs again",
    "a table": "Results of the regatta.\nEstmark 3\nKelpmouth 2",
}
CUT = {
    "en": "The ferry of Estmark runs again on Monday. The pier has been repaired, and the captain of the new",
    "en, within a word": "The ferry runs again on Monday. The captain said that he would not leave the harb",
    "en, comma": "The ferry of Estmark runs again on Monday, and after the repair of the pier,",
    "en, teaser": "The ferry of Estmark runs again ...",
    "en, ellipsis": "The ferry of Estmark runs again on Monday. Its captain […]",
    "en, link": "The ferry of Estmark runs again on Monday. Read more »",
    "en, rest": "The ferry of Estmark runs again. The captain is [+2314 chars]",
    "de": "Die Fähre von Estmark fährt am Montag wieder. Weiterlesen",
    "fr": "Le bac d’Estmark reprend son service. Lire la suite…",
    "es": "El transbordador vuelve a salir el lunes y el alcalde de la villa no ha querido decir quién paga",
    "ru": "Паром снова ходит. Капитан сказал, что в этом году он больше не будет ждать",
    "ar": "تعود العبارة إلى العمل يوم الاثنين. اقرأ المزيد",
    "zh": "渡轮星期一恢复通航。船长在码头对记者表示他今年不会再等待任何人的",
    "ja": "渡し船は月曜日に運航を再開した。続きを読む",
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_text_has_no_problem(name: str) -> None:
    """Whatever its end looks like."""
    assert text_problems(WHOLE[name], name[:2], None) == NO_PROBLEM


@pytest.mark.parametrize("name", CUT)
def test_a_text_that_ends_before_its_end_is_cut(name: str) -> None:
    """Within a sentence, or with a reference to the rest."""
    assert text_problems(CUT[name], name[:2], None) == Problem.cut


@pytest.mark.parametrize("text", ["", " \n\t"])
def test_a_headline_alone_is_empty(text: str) -> None:
    """Blanks are no text."""
    assert text_problems(text, "en", "en") == Problem.empty


@pytest.mark.parametrize(
    ("text", "is_markup"),
    [
        ("<p>The ferry runs again.</p>", True),
        ('<img src="/pier.jpg" alt="">The ferry runs again.', True),
        ("The ferry runs&nbsp;again.", True),
        ("The mayor said &#8220;good&#8221;.", True),
        ("Pike & Sons own the ferry.", False),
        ("A fare of < 5 and > 3 is planned; a <b was never meant.", False),
        ("Brackwater R&D; the firm's ferry <sank>.", False),
    ],
)
def test_tags_and_entities_are_markup(text: str, is_markup: bool) -> None:
    """Characters that occur in prose are not."""
    assert bool(text_problems(text, "en", None) & Problem.markup) is is_markup


@pytest.mark.parametrize(
    ("lang", "declared", "is_other"),
    [
        ("de", "en-US", True),
        ("de", "de_AT", False),
        ("de", None, False),
        ("de", "nonsense", False),
        ("und", "en", False),
    ],
)
def test_another_language_than_declared(lang: str, declared: str | None, is_other: bool) -> None:
    """An unknown tag or language says nothing."""
    assert bool(text_problems("Ein Satz.", lang, declared) & Problem.other_language) is is_other
