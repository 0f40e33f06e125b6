"""Python clients of the service: asyncio, blocking, Scrapy pipeline and Redis stream worker.

``Client`` is for asyncio, ``SyncClient`` for other code. ``scrapy_pipeline.NewsDedupPipeline`` goes into the
ITEM_PIPELINES of a Scrapy project. ``stream_worker`` is the command ``aggregator work``.
"""

from aggregator.clients.client import Client
from aggregator.clients.decision import Decision, Unavailable
from aggregator.clients.sync import SyncClient

__all__ = ["Client", "Decision", "SyncClient", "Unavailable"]
