"""Warm-up: afterwards no language loads anything again."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.support.hang_limit import HANG_LIMIT_S

# A sentence per language: those with a stemmer, a segmenter or a separate script.
TEXTS = {
    "en": "The ferry to the island resumed its service on Monday after the storm had passed.",
    "de": "Die Fähre nach Estmark fährt am Montag wieder, nachdem der Sturm vorübergezogen ist.",
    "fr": "Le ferry reprend son service lundi après le passage de la tempête et la fin des réparations.",
    "es": "El transbordador reanuda el servicio el lunes tras el paso de la tormenta.",
    "it": "Il traghetto riprende il servizio lunedì dopo il passaggio della tempesta.",
    "ru": "Паром возобновляет движение в понедельник после того, как шторм прошёл.",
    "uk": "Пором відновлює рух у понеділок після того, як буря минула.",
    "zh": "渡轮星期一恢复通航，暴风雨已经过去，维修工作也已经完成。",
    "zh-Hant": "渡輪星期一恢復通航，暴風雨已經過去，維修工作也已經完成。",
    "ja": "フェリーは月曜日に運航を再開した。嵐は過ぎ去り、修理も完了した。",
    "ko": "폭풍이 지나가고 수리가 끝난 뒤 여객선이 월요일에 운항을 재개했다.",
    "th": "เรือข้ามฟากกลับมาให้บริการในวันจันทร์หลังจากพายุผ่านไป",
    "ar": "استأنفت العبارة خدمتها يوم الاثنين بعد مرور العاصفة وانتهاء الإصلاحات.",
    "fa": "کشتی پس از پایان طوفان روز دوشنبه دوباره به راه افتاد.",
    "hi": "तूफान गुजरने और मरम्मत पूरी होने के बाद सोमवार को नौका सेवा फिर शुरू हुई।",
    "tr": "Feribot, fırtınanın geçmesinin ardından pazartesi günü seferlerine yeniden başladı.",
    "el": "Το φέρι επαναλαμβάνει τα δρομολόγιά του τη Δευτέρα μετά το πέρασμα της καταιγίδας.",
    "und": "12345 67890",
}
PROGRAM = """
import json, sys
from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.text import chinese, stemming, tokenizer
from aggregator.analysis.text.language import _identifier
from aggregator.analysis.warm_up import warm_up
from aggregator.domain import Article

analyzer = Analyzer(load_models(None))
if "cold" not in sys.argv:
    warm_up(analyzer)
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
caches = (tokenizer.stop_words, stemming.stemmer, chinese.segmenter, chinese.simplifier, _identifier)
loaded = {}
for lang, text in json.load(sys.stdin).items():
    page = f"<html><body><article><h1>{text}</h1><p>{text}</p></article></body></html>"
    for article in (Article(id="", text=text), Article(id="", html=page)):
        before, modules = len(opened), set(sys.modules)
        misses = [cache.cache_info().misses for cache in caches]
        analyzer.analyze_many([article])
        misses = [cache.cache_info().misses - was for cache, was in zip(caches, misses)]
        new = [*opened[before:], *(set(sys.modules) - modules)]
        if new or any(misses):
            loaded.setdefault(lang, []).append([new[:5], misses])
print(json.dumps(loaded))
"""


def loaded_afterwards(*options: str) -> dict[str, object]:
    """Return what each language loads, in a new process."""
    completed = subprocess.run(
        [sys.executable, "-c", PROGRAM, *options],
        input=json.dumps(TEXTS), capture_output=True, text=True, timeout=HANG_LIMIT_S, check=True,
    )  # fmt: skip
    result: dict[str, object] = json.loads(completed.stdout)
    return result


def test_nothing_is_loaded_after_the_warm_up() -> None:
    """No file is opened, no module imported and no dictionary, stemmer or stop word list made."""
    assert loaded_afterwards() == {}


def test_the_probe_sees_what_is_loaded() -> None:
    """Without the warm-up nearly every language loads something: the other test can fail."""
    assert loaded_afterwards("cold").keys() >= {"en", "de", "ru", "zh", "ja", "ar"}
