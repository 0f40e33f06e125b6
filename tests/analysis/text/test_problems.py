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

# A text; notices that its rest comes later or for subscribers; a whole text that ends in such words.
CONTINUED = {
    "en": (
        "The ferry of Estmark is aground.",
        [
            "More to follow.",
            "MORE FOLLOWS",
            "This story is developing.",
            "(More soon)",
            "— To be continued …",
        ],
        "The ferry of Estmark is aground. The captain said that there was more to follow.",
    ),
    "en, wall": (
        "The ferry of Estmark is aground.",
        ["Continue reading with a subscription.", "Continue reading with a free account »"],
        "The ferry of Estmark is aground. Those on board continued reading with a torch.",
    ),
    "de": (
        "Die Fähre von Estmark sitzt fest.",
        ["Mehr in Kürze.", "Mehr folgt.", "(Details folgen)", "Weiterlesen mit Abo", "Fortsetzung folgt …"],
        "Die Fähre von Estmark sitzt fest. Der Kapitän versprach, dass darüber hinaus noch mehr folgt.",
    ),
    "fr": (
        "Le bac d’Estmark est échoué.",
        ["Plus d’informations à venir.", "À suivre…", "Cet article sera mis à jour."],
        "Le bac d’Estmark est échoué. Le maire rappelle la route à suivre.",
    ),
    "es": (
        "El transbordador encalló.",
        ["Habrá ampliación.", "Más información en breve.", "(Noticia en desarrollo)", "¡Continuará!"],
        "El transbordador encalló. El alcalde dijo que la búsqueda continuará.",
    ),
    "it": (
        "Il traghetto si è arenato.",
        ["Notizia in aggiornamento.", "(segue)", "Seguono aggiornamenti", "Continua..."],
        "Il traghetto si è arenato. Il sindaco dice che il lavoro dei sommozzatori continua.",
    ),
    "pt": (
        "A balsa encalhou.",
        ["Mais informações em breve.", "Reportagem em atualização", "Notícia em desenvolvimento."],
        "A balsa encalhou. O prefeito prometeu dar mais informações em breve.",
    ),
    "nl": (
        "De veerboot zit vast.",
        ["Meer volgt.", "Later meer.", "Wordt vervolgd…", "Dit bericht wordt aangevuld."],
        "De veerboot zit vast. De kapitein zei dat er nog meer volgt.",
    ),
    "pl": (
        "Prom utknął na mieliźnie.",
        ["Więcej informacji wkrótce.", "Szczegóły wkrótce", "Artykuł jest aktualizowany."],
        "Prom utknął na mieliźnie. Kapitan obiecał podać szczegóły wkrótce.",
    ),
    "ru": (
        "Паром сел на мель.",
        ["Подробности позже.", "Новость дополняется", "Продолжение следует…"],
        "Паром сел на мель. Капитан пообещал сообщить подробности позже.",
    ),
    "uk": (
        "Пором сів на мілину.",
        ["Подробиці згодом.", "Новина доповнюється", "Далі буде…"],
        "Пором сів на мілину. Капітан пообіцяв повідомити подробиці згодом.",
    ),
    "tr": (
        "Feribot karaya oturdu.",
        ["Ayrıntılar geliyor.", "Haber güncelleniyor", "(Devamı gelecek)"],
        "Feribot karaya oturdu. Kaptan, öykünün devamı var, dedi.",
    ),
    "ar": (
        "جنحت العبارة قرب الميناء.",
        ["التفاصيل لاحقاً.", "المزيد لاحقًا", "يتبع…"],
        "جنحت العبارة قرب الميناء. وقال القبطان إنه سيعلن التفاصيل لاحقا.",
    ),
    "zh": (
        "渡轮在港口搁浅。",
        ["更多消息稍后公布。", "（未完待续）", "持续更新中…", "訂閱後繼續閱讀"],
        "渡轮在港口搁浅。船长说，详情稍后公布。",
    ),
    "ja": (
        "渡し船が座礁した。",
        ["詳細は追って。", "続報をお待ちください", "（つづく）", "続きは有料会員限定です。"],
        "渡し船が座礁した。船長の話では捜索は夜まで続く。",
    ),
    "ko": (
        "나룻배가 좌초했다.",
        ["자세한 내용은 추후 보도.", "(계속)", "속보가 이어집니다."],
        "나룻배가 좌초했다. 선장은 수색이 밤까지 계속 이어진다고 말했다.",
    ),
}


@pytest.mark.parametrize("name", CONTINUED)
def test_a_notice_that_the_rest_follows_is_a_sentence_of_its_own(name: str) -> None:
    """After the text, below it, or alone; within a sentence or a quotation its words are the text's."""
    text, notices, whole = CONTINUED[name]
    lang = name[:2]

    for notice in notices:
        for separator in (" ", "\n", "\n\n* "):
            assert text_problems(f"{text}{separator}{notice}", lang, None) == Problem.cut, notice
        assert text_problems(notice, lang, None) == Problem.cut, notice
        assert text_problems(f"{notice} {text}", lang, None) == NO_PROBLEM, notice
    assert text_problems(text, lang, None) == text_problems(whole, lang, None) == NO_PROBLEM


def test_a_quoted_notice_is_part_of_the_text() -> None:
    """The telegram that a character of the story receives."""
    text = "The keeper of the lighthouse read the telegram of his brother: “More to follow.”"

    assert text_problems(text, "en", None) == NO_PROBLEM


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_text_has_no_problem(name: str) -> None:
    """Whatever its end looks like."""
    assert text_problems(WHOLE[name], name[:2], None) == NO_PROBLEM


@pytest.mark.parametrize("name", CUT)
def test_a_text_that_ends_before_its_end_is_cut(name: str) -> None:
    """Within a sentence, or with a reference to the rest."""
    assert text_problems(CUT[name], name[:2], None) == Problem.cut


LONG = "The ferry of Estmark runs again on Monday, and the pier has been repaired by the town. " * 15
LINKS = "Captain of the new ferry of Estmark on the storm that broke the pier and much else"


@pytest.mark.parametrize(
    "end",
    [
        f"Read more: {LINKS}",
        f"\nREAD MORE:\n\n{LINKS}\n\n{LINKS}",
        "\n\nREAD MORE:",
        f"\n* Mehr lesen: {LINKS}",
        f"“I will stay.” Leer más: {LINKS}",
        f"\n\nMore: {LINKS}",
        f"\nRelated: {LINKS}\n{LINKS}",
        "\n\nRead more",
        " Read more »",
        f"\n© 2031 {LINKS}, and of all those who worked on it",
        f" Copyright 2031 {LINKS}",
        f"\n(c) {LINKS}, and of all those who worked on it",
        f"\n{LINKS.title().replace(' ', ' | ', 4)}\n© 2031 The Courier",
    ],
)
def test_what_is_below_a_long_text_is_not_its_end(end: str) -> None:
    """Links, a button, a copyright line."""
    assert text_problems(LONG + end, "en", None) == NO_PROBLEM


@pytest.mark.parametrize(
    ("lang", "button", "hidden"),
    [
        ("de", "Mehr", "Weiterlesen"),
        ("fr", "À lire aussi", "Lire la suite"),
        ("es", "Leer más", "Seguir leyendo"),
        ("ru", "Читайте также", "Читать далее"),
        ("ar", "اقرأ المزيد", None),
        ("zh", "阅读更多", "阅读全文"),
        ("ja", "関連記事", "続きを読む"),
        ("ko", "더 보기", None),
    ],
)
def test_a_long_page_with_a_link_is_whole_in_any_language(lang: str, button: str, hidden: str | None) -> None:
    """A button that says that the text continues hides the rest; below a short text any does."""
    whole, link = f"{WHOLE[lang]}\n" * (1_200 // len(WHOLE[lang]) + 1), WHOLE[lang].rstrip(".!。؟»“") * 2

    for below in (button, f"{button} »", f"{button}: {link}"):
        assert text_problems(whole + below, lang, None) == NO_PROBLEM, below
    assert hidden is None or text_problems(whole + hidden, lang, None) == Problem.cut


@pytest.mark.parametrize(
    "text",
    [
        f"{LONG}The captain of the new ferry from the harbour said\n\nRead more:\n{LINKS}",
        f"{LONG}The captain of the new ferry from the harbour said Read more",
        f"{LONG}\n\nContinue reading",
        f"{LONG}The captain saw that the town had no more",
        "The ferry runs again.\nRead more",
        f"The ferry runs again. Read more: {LINKS}",
        "The ferry runs again. Read more:",
    ],
)
def test_a_text_before_links_may_be_cut(text: str) -> None:
    """It is judged by its own end."""
    assert text_problems(text, "en", None) == Problem.cut


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
