"""Made-up boilerplate of news pages: navigation, related headlines, disclaimers, in five languages. Pure.

All texts are written for this project. Related headlines combine a subject, a verb and an object, so that two
pages hardly share one.
"""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PageFrame:
    """Parts of a page around its article, in one language. Lists are separated by "|"."""

    navigation: str
    heading: str  # of the related headlines
    subjects: str
    verbs: str
    objects: str
    disclaimers: str
    joint: str = " "  # between the parts of a headline


FRAMES = {
    "en": PageFrame(
        "Home|World|Politics|Business|Science|Health|Culture|Sport|Weather|Opinion|Live|Video|Podcasts|"
        "Newsletters|Sign in|Subscribe|My account|Search|Today's paper|Corrections",
        "More stories",
        "City council|Ferry operator|Regional court|Teachers' union|Harbour board|Museum trust|Dairy farmers|"
        "Weather office|Fire brigade|Transport minister",
        "approves|reviews|delays|defends|criticises|publishes|withdraws|funds|explains|tests",
        "new bus timetable|plan for the old mill|budget for school meals|report on the tunnel|rules for "
        "scooters|list of listed buildings|winter road plan|study of river levels|fee for parking permits|"
        "repair of the north pier",
        "All rights reserved. No part of this page may be reproduced without written permission.|Prices are "
        "delayed by at least fifteen minutes and are given without guarantee.|We use cookies to remember "
        "your settings and to measure how our pages are read.|Write to the editors if you have found a "
        "mistake in this article.|Follow us on your favourite network and never miss a story again.",
    ),
    "de": PageFrame(
        "Startseite|Welt|Politik|Wirtschaft|Wissen|Gesundheit|Kultur|Sport|Wetter|Meinung|Liveticker|Video|"
        "Podcasts|Newsletter|Anmelden|Abonnieren|Mein Konto|Suche|Zeitung von heute|Korrekturen",
        "Mehr zum Thema",
        "Stadtrat|Fährgesellschaft|Landgericht|Lehrerverband|Hafenamt|Museumsverein|Bauernverband|"
        "Wetterdienst|Feuerwehr|Verkehrsministerin",
        "billigt|prüft|verschiebt|verteidigt|kritisiert|veröffentlicht|verwirft|finanziert|erläutert|erprobt",
        "neuen Busfahrplan|Pläne für die alte Mühle|Haushalt für Schulessen|Gutachten zum Tunnel|Regeln für "
        "Tretroller|Liste der Denkmäler|Winterdienst auf Landstraßen|Studie zu Pegelständen|Gebühr für "
        "Parkausweise|Sanierung der Nordmole",
        "Alle Rechte vorbehalten. Nachdruck nur mit schriftlicher Genehmigung.|Kurse sind um mindestens "
        "fünfzehn Minuten verzögert und ohne Gewähr.|Wir verwenden Cookies, um Ihre Einstellungen zu "
        "speichern und die Nutzung zu messen.|Schreiben Sie der Redaktion, wenn Sie einen Fehler gefunden "
        "haben.|Folgen Sie uns und verpassen Sie keine Nachricht mehr.",
    ),
    "es": PageFrame(
        "Portada|Mundo|Política|Economía|Ciencia|Salud|Cultura|Deportes|El tiempo|Opinión|En directo|Vídeo|"
        "Pódcast|Boletines|Iniciar sesión|Suscríbete|Mi cuenta|Buscar|Edición impresa|Fe de errores",
        "Más noticias",
        "El ayuntamiento|La naviera|El tribunal regional|El sindicato docente|La junta del puerto|El museo|"
        "La cooperativa lechera|El servicio meteorológico|El cuerpo de bomberos|La ministra de Transportes",
        "aprueba|revisa|aplaza|defiende|critica|publica|retira|financia|explica|ensaya",
        "el nuevo horario de autobuses|el plan del viejo molino|el presupuesto de comedores|el informe sobre "
        "el túnel|las normas para patinetes|la lista de edificios protegidos|el plan invernal de carreteras|"
        "el estudio del caudal del río|la tasa de aparcamiento|la reparación del muelle norte",
        "Todos los derechos reservados. Prohibida la reproducción sin permiso escrito.|Las cotizaciones "
        "tienen un retraso mínimo de quince minutos y carecen de garantía.|Usamos cookies para recordar sus "
        "ajustes y medir la lectura de nuestras páginas.|Escriba a la redacción si ha encontrado un error.|"
        "Síganos en su red preferida y no se pierda ninguna noticia.",
    ),
    "ru": PageFrame(
        "Главная|Мир|Политика|Экономика|Наука|Здоровье|Культура|Спорт|Погода|Мнения|Онлайн|Видео|Подкасты|"
        "Рассылки|Войти|Подписаться|Мой профиль|Поиск|Свежий номер|Исправления",
        "Читайте также",
        "Депутаты городского совета|Владельцы парома|Судьи областного суда|Учителя района|Работники порта|"
        "Сотрудники музея|Фермеры области|Метеорологи|Пожарные|Чиновники министерства",
        "одобрили|изучили|отложили|поддержали|раскритиковали|опубликовали|отозвали|оплатили|"
        "объяснили|испытали",
        "новое расписание автобусов|проект старой мельницы|бюджет школьных обедов|доклад о тоннеле|правила "
        "для самокатов|список памятников|зимний план уборки дорог|исследование уровня реки|плату за парковку|"
        "ремонт северного причала",
        "Все права защищены. Перепечатка только с письменного разрешения.|Котировки приводятся с задержкой "
        "не менее пятнадцати минут и без гарантий.|Мы используем файлы cookie, чтобы помнить ваши настройки.|"
        "Напишите в редакцию, если нашли ошибку в тексте.|Подпишитесь на нас и не пропускайте новости.",
    ),
    "zh": PageFrame(
        "首页|国际|时政|财经|科学|健康|文化|体育|天气|评论|直播|视频|播客|订阅|登录|注册|我的账户|搜索|今日报纸|更正",
        "相关新闻",
        "市议会|轮渡公司|地方法院|教师工会|港务局|博物馆|奶农协会|气象局|消防队|交通部门",
        "批准|审查|推迟|维护|批评|公布|撤回|资助|说明|试行",
        "新公交时刻表|老磨坊改造方案|学校午餐预算|隧道调查报告|滑板车管理办法|历史建筑名录|冬季道路计划|河流水位研究|停车证收费标准|北码头修缮工程",
        "版权所有，未经书面许可不得转载。|行情至少延迟十五分钟，仅供参考。|本站使用缓存记录您的设置和阅读情况。|如发现错误，请与编辑部联系。|欢迎关注我们，不错过每一条新闻。",
        "",
    ),
}  # fmt: skip
FALLBACK = "en"


def page_parts(lang: str, rng: random.Random) -> tuple[str, list[str]]:
    """A page's navigation line, and the lines below an article: headlines and disclaimers in random order.

    ``lang`` without texts of its own gets English ones. 1,005 lines, no line twice.
    """
    frame = FRAMES.get(lang, FRAMES[FALLBACK])
    navigation = frame.navigation.split("|")
    rng.shuffle(navigation)
    lines = [
        frame.joint.join((subject, verb, object_))
        for subject in frame.subjects.split("|")
        for verb in frame.verbs.split("|")
        for object_ in frame.objects.split("|")
    ]
    lines += frame.disclaimers.split("|")
    rng.shuffle(lines)
    return " | ".join(navigation[:12]), [frame.heading, *lines]
