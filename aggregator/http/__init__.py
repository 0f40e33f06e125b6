"""HTTP server: the public contract v1 over aiohttp.

``routes`` is the single list of routes; the router, the OpenAPI document and the documentation page are built
from it. Bodies are defined in ``aggregator.contract``, which also assigns HTTP statuses to errors
(``problems``).
"""
