"""HTTP server: the public contract v1 over aiohttp. ``routes`` is the single list of routes."""
