"""A day of invented news, decided before a demonstration starts, under a virtual clock.

Events need time: a live demonstration would show all items of a story in one minute. The articles get the
times at which they were published; the service then continues under the wall clock.

Besides the articles of ``articles.jsonl`` there are headlines of four stories: a strike that is voted on and,
twelve hours later, begins, two events of one storyline, both ended; a typhoon in Chinese and a sandstorm in a
right-to-left script, both growing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from aggregator.contract.decoding import decode_article
from aggregator.domain import Article
from aggregator.runtime.demo import article_body, load_rows
from aggregator.settings import Settings
from aggregator.time_units import HOUR_MS, MINUTE_MS

# Less than the day after which event detection waits for the clock to settle (``ClockGuard.pause_reason``).
SPAN_MS = 22 * HOUR_MS
STEP_MS = 5 * MINUTE_MS
# Articles of the last minutes of the stream are left to the live part.
LIVE_MINUTES = 75

OUTLETS = (
    "Estmark Courier", "Northern Wire", "Harbour Times", "Selwyn Post", "The Meridian",
    "Channel Five Estmark", "Estmark Radio", "Coastline News", "The Corvane Ledger",
    "Brackwater Gazette", "Farm & Field", "Tram & Rail", "Evening Standardbearer", "Lakeside Voice",
    "Hillfoot Herald", "Students' Paper", "Pier Nine", "Valley FM", "Quay News",
)  # fmt: skip
CHINESE_OUTLETS = ("北岸日报", "海岚晚报", "湾区新闻", "渔港之声", "东城快讯", "山城周刊")
ARABIC_OUTLETS = ("صوت الواحات", "بريد الجنوب", "أخبار الميناء", "الصحيفة", "راديو النخيل")

VOTE = (
    "Rail strike", "en", OUTLETS, 1290, 6,
    ("vote begins in Estmark", "vote: drivers queue before dawn", "vote splits depots of Corvane",
     "ballot counted through the night", "looms as unions count votes", "approved by nine in ten drivers",
     "vote alarms grain traders", "talks called off before vote ends", "vote joined by ferry crews",
     "fund has money for three weeks, union says", "to begin within a day, unions announce",
     "announced: railway prints emergency timetable", "warning sent to schools", "fears fill petrol stations",
     "vote unlawful, railway tells court", "vote stands, court rules", "vote greeted with songs in Selwyn",
     "plans: hospitals book rooms for staff", "vote: minister invites both sides"),
)  # fmt: skip
STRIKE = (
    "Rail strike", "en", OUTLETS, 560, 3,
    ("stops night trains across Estmark", "leaves commuters stranded in Corvane",
     "begins after talks fail", "over pay enters first day", "hits ferries as crews join in",
     "costs shops a day of trade, union of traders says", "may last a week, drivers say",
     "fills buses and roads", "divides parliament", "delays exams at two universities",
     "keeps grain in the harbour", "brings out bicycles", "talks to resume, minister says",
     "unions reject first offer", "spreads to the trams of Selwyn", "forces hospitals to house staff",
     "ends for night trains, goes on for freight", "mediator named", "sees first compromise on pay",
     "keeps one train in eight running", "cancels the football special", "empties the stations of Corvane",
     "makes taxis scarce", "backed by bus drivers", "costs a million crowns a day", "delays post by two days",
     "stops coal for the power station", "picket lines peaceful, police say", "lets hikers sleep in huts",
     "closes the sleeper to the coast", "reaches the border", "enters its night",
     "helps boatmen to a good day",
     "leaves fish on the quay", "discussed in every kitchen", "offer leaves drivers cold",
     "splits the cabinet", "songs heard at Selwyn depot"),
)  # fmt: skip
TYPHOON = (
    "台风海岚", "zh", CHINESE_OUTLETS, 150, 8,
    ("逼近北岸 渔船回港", "登陆前夕 学校停课", "路径西移 北岸发布红色预警", "致港口停工",
     "带来暴雨 三条公路中断", "登陆北岸 风力十四级", "造成两万户停电", "救援队连夜出动",
     "致航班大面积取消", "过境 老城积水齐腰", "袭击渔村 百余人转移", "吹倒古树 市民清理街道",
     "影响铁路 列车停运", "致多处山体滑坡", "伤员送往临时医院", "灾后供水逐步恢复",
     "登陆后减弱为热带风暴", "损失初步统计公布"),
)  # fmt: skip
SANDSTORM = (
    "عاصفة رملية في الواحات", "ar", ARABIC_OUTLETS, 120, 6,
    ("تغلق الطرق", "توقف المدارس", "تؤخر القوافل", "تحجب الرؤية", "تعطل الكهرباء", "تلغي رحلات الطيران",
     "تقترب من الميناء", "وتحذير للمرضى", "والمزارعون يخشون على التمور", "وفرق الإنقاذ تستعد",
     "تبلغ ذروتها مساء", "والمستشفيات تستقبل المصابين", "وأسواق مغلقة", "وصيادون يعودون إلى البر",
     "وسكان يلازمون البيوت", "وتوقعات بانحسارها ليلا", "وأضرار في الخيام", "وقطار يتوقف ساعات"),
)  # fmt: skip


def live_rows() -> list[dict[str, Any]]:
    """The rows of the demonstration that are posted after the history, oldest first."""
    return [row for row in load_rows() if row["minutes_ago"] < LIVE_MINUTES]


def history_articles(now: datetime) -> list[tuple[int, Article]]:
    """(arrival in ms, article), in order of arrival; ``now`` has a time zone.

    Articles that were published before the history began arrive at its beginning.
    """
    bodies = [article_body(row, now) for row in load_rows() if row["minutes_ago"] >= LIVE_MINUTES]
    articles = [decode_article(msgspec.json.encode(body)) for body in bodies + article_bodies(now)]
    begin_ms = round(now.timestamp() * 1000) - SPAN_MS
    dated = [(max(begin_ms, article.published_at_ms or 0), article) for article in articles]
    return sorted(dated, key=lambda item: item[0])


async def load_history(settings: Settings) -> int:
    """Store and decide the history; returns the number of its articles, 0 if the store has articles already.

    ``settings``: with the URL of a store that runs, used by no other process.
    """
    from aggregator.app import open_service

    now = datetime.now(UTC)
    articles = history_articles(now)
    clock_ms = articles[0][0]
    async with open_service(settings, clock=lambda: clock_ms) as service:
        if await service.index.stream.recent_entries(1):
            return 0
        for step_ms, group in _steps(articles):
            clock_ms = step_ms
            await service.ingest.submit_many(group)
            await service.background.scheduler.detector.run_once()
        clock_ms = round(now.timestamp() * 1000)
        await service.background.scheduler.detector.run_once()
        await service.background.source_collector.run_once()
    return len(articles)


def _steps(articles: list[tuple[int, Article]]) -> Iterator[tuple[int, list[Article]]]:
    """Articles of the same ``STEP_MS``, with the arrival of the last."""
    for _, group in itertools.groupby(articles, lambda item: item[0] // STEP_MS):
        items = list(group)
        yield items[-1][0], [article for _, article in items]


def article_bodies(now: datetime) -> list[dict[str, Any]]:
    """Request bodies of all articles, dated before ``now``."""
    bodies = []
    for number, (topic, lang, outlets, minutes_ago, interval, angles) in enumerate(
        (STRIKE, TYPHOON, SANDSTORM, VOTE)
    ):
        for index, angle in enumerate(angles):
            title = f"{topic} {angle}" if lang != "zh" else topic + angle
            published = now - timedelta(minutes=minutes_ago - index * interval - index % 3)
            bodies.append(
                {
                    "id": f"day-{number}-{index}",
                    "title": title,
                    "text": title,
                    "lang": lang,
                    "source": outlets[index % len(outlets)],
                    "url": f"https://outlet{index % len(outlets)}.example/{number}/{index}",
                    "published_at": published.isoformat(),
                }
            )
    return bodies
