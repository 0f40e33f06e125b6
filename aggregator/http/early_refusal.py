"""Refusals before the parser, and the number of connections.

* Overload: an article of a caller without a free slot is answered before the parser (``EarlyRefusal``).
* Number of connections: bounded, below the limit on open files; idle ones are closed first.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from aggregator.auth.api_keys import parse_key_id
from aggregator.contract.problems import to_problem
from aggregator.contract.responses import encode
from aggregator.errors import Overloaded
from aggregator.http import errors
from aggregator.http.app_keys import LOAD_SHEDDER, METRICS, SERVICE
from aggregator.http.limits import LoadShedder

TOO_MANY_CONNECTIONS = "This server has too many open connections; retry later, over fewer connections."
TOO_MANY_ARTICLES = (
    "As many articles of this caller are in flight here as can be answered in time (setting "
    "max_inflight_articles); retry later, or send many articles in one batch."
)
DELAY_S = 0.1  # the answer is held back, so that a client that repeats at once sends few requests
RETRY_AFTER_S = (1, 2, 3)  # chosen at random, so that refused clients do not return together
MAX_HEAD_BYTES = 4096

_REQUEST_LINE = re.compile(rb"POST (/v1/articles)(?:\?[!-~]{0,100})? HTTP/1\.1\r\n")
_CONTENT_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,9})[ \t]*(?=\r\n)", re.IGNORECASE)
_UNUSUAL = re.compile(
    rb"\r\n(?:(?:transfer-encoding|expect|upgrade|cookie)[ \t]*:|connection[ \t]*:(?![ \t]*keep-alive\r\n))",
    re.IGNORECASE,
)
_AUTHORIZATION = re.compile(
    rb"\r\nauthorization:[ \t]*bearer[ \t]+([!-~]{1,300})[ \t]*(?=\r\n)", re.IGNORECASE
)
_ANY_AUTHORIZATION = re.compile(rb"\r\nauthorization[ \t]*:", re.IGNORECASE)


class EarlyRefusal:
    """Refusals before the parser. ``headers``: those of every response; ``counts`` count one.

    Under overload most requests are refused, and refusing them takes the processor time that the admitted
    ones need, in parser, task, middlewares and response. Here the decision takes about 8 us. Only a request
    that has arrived completely in one piece, to POST /v1/articles, is recognized; every other one, and every
    caller with a free slot, takes the usual way. The key is not verified: a wrong one holds no slots, so its
    caller is not refused here but gets 401 as usual.
    """

    def __init__(self, shedder: LoadShedder, headers: dict[str, str], *counts: Callable[[], None]) -> None:
        self.shedder = shedder
        self._counts = counts
        sent = {**headers, "Cache-Control": "no-store"}
        self._answers = [
            refusal(TOO_MANY_ARTICLES, {**sent, "Retry-After": str(seconds)}, "/v1/articles")
            for seconds in RETRY_AFTER_S
        ]

    def answer(self, data: bytes, peer: str) -> bytes | None:
        """The response to the request that ``data`` is, or None if it is not to be refused here."""
        if not self.shedder.may_be_full or not data.startswith(b"POST /v1/articles"):
            return None
        end = data.find(b"\r\n\r\n", 0, MAX_HEAD_BYTES) + 2
        head = data[:end]
        lengths = _CONTENT_LENGTH.findall(head)
        if end < 2 or len(lengths) != 1 or len(data) != end + 2 + int(lengths[0]):
            return None
        if not _REQUEST_LINE.match(head) or _UNUSUAL.search(head):
            return None
        keys = _AUTHORIZATION.findall(head)
        if len(keys) != len(_ANY_AUTHORIZATION.findall(head)) or len(keys) > 1:
            return None
        if not self.shedder.is_full_for(parse_key_id(keys[0].decode()) if keys else peer):
            return None
        for count in self._counts:
            count()
        return random.choice(self._answers)


def refusal(message: str, headers: dict[str, str], instance: str = "") -> bytes:
    """A whole 503 response with a problem as its body."""
    problem = to_problem(Overloaded(message))
    problem.instance = instance or problem.instance
    body = encode(problem) + b"\n"
    lines = [
        "HTTP/1.1 503 Service Unavailable",
        "Content-Type: application/problem+json",
        f"Content-Length: {len(body)}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class ConnectionPool:
    """The connections of a server, at most ``most`` open ones.

    ``idle``: between requests or before the first, longest first. ``early_refusal`` None: requests are
    refused after parsing only, since an early refusal is not in the access log.
    """

    def __init__(self, app: web.Application, most: int) -> None:
        self.settings, self.most = app[SERVICE].settings, most
        self.refusal_log, metrics = app[errors.REFUSAL_LOG], app[METRICS]
        self.count_refused = metrics.refused_connections.inc
        self.early_refusal: EarlyRefusal | None = None
        if not self.settings.access_log:
            self.early_refusal = EarlyRefusal(
                app[LOAD_SHEDDER],
                errors.SECURITY_HEADERS,
                metrics.requests.labels("POST", "/v1/articles", "503").inc,
                metrics.rejected_articles.labels("overloaded").inc,
            )
        self.idle: dict[RequestHandler, None] = {}
        self.open: set[RequestHandler] = set()

    def admit(self, connection: RequestHandler) -> bool:
        """Count a new connection, which replaces the one idle for longest; False if there is no place."""
        if len(self.open) >= self.most:
            longest_idle = next(iter(self.idle), None)
            if longest_idle is None:
                return False
            self.forget(longest_idle)
            longest_idle.force_close()
        self.open.add(connection)
        self.idle[connection] = None
        return True

    def forget(self, connection: RequestHandler) -> None:
        """The connection is closed. Idempotent."""
        self.open.discard(connection)
        self.idle.pop(connection, None)
