"""Ask the service from Python: before your insert, in a Scrapy pipeline, or behind a Redis stream.

from aggregator.clients import Client            # asyncio
from aggregator.clients import SyncClient        # everything else
"aggregator.clients.scrapy_pipeline.NewsDedupPipeline"   # ITEM_PIPELINES of a Scrapy project
aggregator work                                  # articles from one Redis stream, verdicts to another
"""

from aggregator.clients.client import Client
from aggregator.clients.decision import Decision, Unavailable
from aggregator.clients.sync import SyncClient

__all__ = ["Client", "Decision", "SyncClient", "Unavailable"]
