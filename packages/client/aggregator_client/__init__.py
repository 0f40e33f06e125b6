"""Python clients of an aggregator service: asyncio, blocking, Scrapy, feeds and Redis streams.

``Client`` is for asyncio, ``SyncClient`` for other code. ``scrapy_pipeline.NewsDedupPipeline`` goes into the
ITEM_PIPELINES of a Scrapy project. ``follow_command`` and ``work_command`` add commands to the server's
command line. ``wire`` has the types of requests and answers, which the service imports as well; the names
below are imported on first use, so that those types load no HTTP client.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aggregator_client.client import Client
    from aggregator_client.decision import Decision
    from aggregator_client.errors import (
        ClientError,
        ConfigurationError,
        InputTooLarge,
        InvalidInput,
        NotFound,
        Unavailable,
    )
    from aggregator_client.sync import SyncClient

__version__ = "0.1.0"
__all__ = [
    "Client",
    "ClientError",
    "ConfigurationError",
    "Decision",
    "InputTooLarge",
    "InvalidInput",
    "NotFound",
    "SyncClient",
    "Unavailable",
]
_MODULES = {"Client": "client", "Decision": "decision", "SyncClient": "sync"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'errors')}"), name)
