"""aiohttp middlewares: authentication, error responses, timeouts, observability."""
