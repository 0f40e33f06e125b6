"""Analyses in other processes say what they say in this one."""

from newsroom import story

from aggregator.analyse import Analyser
from aggregator.analysis_pool import BATCH, LONG_CHARACTERS, AnalysisPool
from aggregator.domain import Analysis, Article
from aggregator.errors import NoText
from aggregator.features import HashedModel

ANALYSER = Analyser({"xx": HashedModel()})


def told(results: list) -> list:
    """What can be compared of analyses and errors."""
    return [(r.fingerprint, r.text_hash) if isinstance(r, Analysis) else str(r) for r in results]


async def test_batches_and_heavy_articles_elsewhere() -> None:
    """A batch over two processes, and HTML or long texts beside plain ones, keep their order."""
    html = (
        "<html><body><article>"
        + "".join(f"<p>{story(9, 4)}</p>" for _ in range(3))
        + "</article></body></html>"
    )
    articles = [Article(id=str(i), text=story(i, 3)) for i in range(3 * BATCH)]
    articles[5] = Article(id="nothing")
    articles[7] = Article(id="html", html=html)
    articles[9] = Article(id="long", text="harbour " * (LONG_CHARACTERS // 8 + 1))
    expected = told(ANALYSER.analyse_many(articles))

    pool = AnalysisPool(ANALYSER, processes=2)
    try:
        assert told(await pool.analyse_many(articles)) == expected
        assert told(await pool.analyse_many(articles[:10])) == expected[:10]
        broken = (await pool.analyse_many([Article(id="x", html="<html></html>")]))[0]
        assert isinstance(broken, NoText)
    finally:
        pool.close()
        pool.close()
