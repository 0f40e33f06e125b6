"""What the process that answers does before it is ready."""

from aggregator.analysis.text import chinese, language
from aggregator.app import open_service
from aggregator.runtime.web_process import warm_up
from aggregator.settings import Settings


async def test_no_article_waits_for_dictionaries() -> None:
    """Single ones are analysed in this process: it has loaded what theirs need, though batches go to another one."""
    language._identifier.cache_clear()
    chinese.segmenter.cache_clear()
    async with open_service(Settings(store_url="memory"), processes=1) as service:
        await warm_up(service)

    assert language._identifier.cache_info().currsize == 1
    assert chinese.segmenter.cache_info().currsize == 1
