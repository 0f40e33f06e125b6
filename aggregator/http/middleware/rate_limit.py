"""Headers that state the rate limit of the caller's key (draft-ietf-httpapi-ratelimit-headers).

    RateLimit-Policy: "key";q=20;w=2     20 articles or requests per 2 s
    RateLimit: "key";r=17;t=1            17 are left; all 20 in 1 s

They are sent where a key is required and has a limit. ``r`` is what this process knows without a round trip
to the store; ``Retry-After`` of a 429 is exact.
"""

from __future__ import annotations

from aiohttp import web
from multidict import CIMultiDict

from aggregator.http.app_keys import CALLER_KEY, SERVICE

HEADER_NAMES = ("RateLimit", "RateLimit-Policy")


def add_headers(request: web.Request, headers: CIMultiDict[str]) -> None:
    """Set the headers of a response to a request with a key."""
    key = request.get(CALLER_KEY)
    status = request.app[SERVICE].rate_limiter.status(key.id) if key is not None else None
    if status is not None:
        headers["RateLimit-Policy"] = f'"key";q={status.quota};w={status.window_s}'
        headers["RateLimit"] = f'"key";r={status.remaining};t={status.reset_s}'
