"""Headers of routes that will go: Deprecation (RFC 9745), Sunset (RFC 8594) and a link to /docs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime

from aiohttp import web

# Headers of the response to this request; absent: the route is not deprecated.
DEPRECATION_HEADERS: web.RequestKey[dict[str, str]] = web.RequestKey("deprecation_headers")


@dataclass(frozen=True, slots=True)
class Deprecation:
    """A route is deprecated ``since`` a time, and may be removed at ``sunset``; both UTC."""

    since: datetime
    sunset: datetime

    def headers(self, operation_id: str, base: str = "") -> dict[str, str]:
        """The headers of every answer of the route; ``base``: the path below which a proxy serves the API."""
        return {
            "Deprecation": f"@{int(self.since.timestamp())}",
            "Sunset": format_datetime(self.sunset, usegmt=True),
            "Link": f'<{base}/docs#{operation_id}>; rel="deprecation"; type="text/html"',
        }
