"""Five newsroom edits of an article, in ten languages. All texts were written for these tests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from aggregator.domain import Article

LANGUAGES = ("en", "zh", "de", "fr", "es", "it", "ru", "ja", "ko", "ar")
TEXTS = Path(__file__).parent / "texts"
_SENTENCES = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_UNSPACED = ("zh", "ja")


@dataclass(frozen=True, slots=True)
class Phrases:
    """Boilerplate of a site in this language, and synonyms that an editor might use."""

    before: str
    after: str
    synonyms: dict[str, str]


PHRASES = {
    "en": Phrases(
        "Home | News | Regions. Please accept our cookies to read on.",
        "Share this story with your friends. Subscribe to our morning letter. All rights reserved.",
        {"said": "stated", "people": "persons", "found": "discovered", "new": "fresh", "about": "roughly",
         "years": "seasons", "until": "up to", "will": "shall"},
    ),
    "zh": Phrases(
        "首页 新闻 地方 请登录后阅读全文",
        "责任编辑 本网原创 欢迎转发给朋友 扫描二维码订阅早报 版权归本站",
        {"表示": "指出", "已经": "早已", "居民": "住户", "可以": "能够", "发现": "找到", "因为": "由于"},
    ),
    "de": Phrases(
        "Startseite | Nachrichten | Regionen. Bitte stimmen Sie den Cookies zu.",
        "Teilen Sie diesen Artikel mit Freunden. Abonnieren Sie unseren Morgenbrief. "
        "Alle Rechte vorbehalten.",
        {"sagte": "erklärte", "gefunden": "entdeckt", "neuer": "frischer", "bekommen": "erhalten",
         "jetzt": "nun", "soll": "dürfte", "und": "sowie", "will": "möchte"},
    ),
    "fr": Phrases(
        "Accueil | Actualités | Régions. Acceptez nos témoins pour continuer la lecture.",
        "Partagez cet article avec vos amis. Abonnez-vous à notre lettre du matin. Tous droits réservés.",
        {"trouvée": "découverte", "depuis": "dès", "près de": "environ", "afin": "pour",
         "plus de": "au-delà de", "habitants": "riverains", "assurent": "affirment", "puis": "ensuite"},
    ),
    "es": Phrases(
        "Portada | Noticias | Regiones. Acepte nuestras galletas para seguir leyendo.",
        "Comparta esta noticia con sus amigos. Suscríbase a nuestro boletín. Todos los derechos reservados.",
        {"aunque": "si bien", "vecinos": "habitantes", "encontrado": "hallado", "después de": "tras",
         "hasta": "incluso hasta", "quiere": "desea", "cree": "opina"},
    ),
    "it": Phrases(
        "Prima pagina | Notizie | Regioni. Accetta i nostri cookie per continuare.",
        "Condividi questo articolo con gli amici. Abbonati alla nostra lettera. Tutti i diritti riservati.",
        {"ha trovato": "ha scoperto", "circa": "all'incirca", "vuole": "desidera", "dopo": "passati",
         "abitanti": "residenti", "mentre": "intanto", "soltanto": "solo"},
    ),
    "ru": Phrases(
        "Главная | Новости | Регионы. Примите условия, чтобы читать дальше.",
        "Поделитесь новостью с друзьями. Подпишитесь на утреннюю рассылку. Все права защищены.",
        {"жители": "обитатели", "сообщила": "рассказала", "нашли": "обнаружили", "около": "примерно",
         "потому что": "так как", "обещает": "сулит", "решил": "постановил"},
    ),
    "ja": Phrases(
        "トップ ニュース 地域 続きを読むにはログインしてください。",
        "この記事を友だちに送る。朝のお知らせに登録する。無断で転載することを禁じます。",
        {"見つかった": "発見された", "話す": "語る", "およそ": "約", "町": "街", "決めた": "定めた"},
    ),
    "ko": Phrases(
        "첫 화면 | 새 소식 | 지역. 계속 읽으려면 약관에 동의하세요.",
        "이 기사를 친구와 나누세요. 아침 소식지를 받아 보세요. 함부로 옮겨 싣는 것을 금합니다.",
        {"말했다": "전했다", "발견되었다": "눈에 띄었다", "모두": "전부", "지금까지": "여태껏",
         "밝혔다": "알렸다", "약속했다": "다짐했다"},
    ),
    "ar": Phrases(
        "الرئيسية | الأخبار | المناطق. يرجى قبول الشروط لمتابعة القراءة.",
        "شارك هذا الخبر مع أصدقائك. اشترك في رسالتنا الصباحية. جميع الحقوق محفوظة.",
        {"وقال": "وذكر", "وقالت": "وذكرت", "نحو": "حوالي", "عثر": "وقع", "يستطيع": "يقدر", "بعد": "عقب"},
    ),
}  # fmt: skip


def articles(lang: str) -> list[Article]:
    """Return the twenty articles of a language, each about another topic."""
    lines = (TEXTS / f"{lang}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [
        Article(id=f"{lang}-{index}", title=row["title"], text=row["text"], lang=lang)
        for index, row in enumerate(rows)
    ]


def truncated(text: str, lang: str) -> str:
    """Return the first 60 % of a text."""
    if lang in _UNSPACED:
        return text[: len(text) * 3 // 5]
    words = text.split()
    return " ".join(words[: len(words) * 3 // 5])


def padded(text: str, lang: str) -> str:
    """Return a text with the boilerplate of a site before and after it."""
    phrases = PHRASES[lang]
    return f"{phrases.before}\n{text}\n{phrases.after}"


def reordered(text: str, lang: str) -> str:
    """Return every second sentence first, then the others."""
    sentences = [s for s in _SENTENCES.split(text) if s]
    return ("" if lang in _UNSPACED else " ").join(sentences[1::2] + sentences[::2])


def reworded(text: str, lang: str) -> str:
    """Return a text with words replaced by synonyms."""
    for word, other in PHRASES[lang].synonyms.items():
        pattern = word if lang in _UNSPACED else rf"(?<!\w){re.escape(word)}(?!\w)"
        text = re.sub(pattern, other, text)
    return text


def updated(text: str, lang: str) -> str:
    """Return a text with every number in digits increased by 3."""
    return re.sub(r"\d+", lambda match: str(int(match[0]) + 3), text)


EDITS: dict[str, Callable[[str, str], str]] = {
    "truncated": truncated,
    "padded": padded,
    "reordered": reordered,
    "reworded": reworded,
    "updated": updated,
}
