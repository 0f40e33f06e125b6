"""Early refusal: 503 for single articles from the bytes of the request alone, while their caller has no slot.

Under overload most requests are refused, and refusing them takes the processor time that the admitted ones
need, in parser, task, middlewares and response. Here the decision takes about 8 us. Only a request that has
arrived completely in one piece, to POST /v1/articles, is recognized; every other one, and every caller with a
free slot, takes the usual way. The key is not verified: a wrong one holds no slots, so its caller is not
refused here but gets 401 as usual.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from aggregator.auth.api_keys import parse_key_id
from aggregator.contract.problems import to_problem
from aggregator.contract.responses import encode
from aggregator.errors import Overloaded
from aggregator.http.limits import LoadShedder

# The answer is held back, so that a client that repeats at once sends few requests.
DELAY_S = 0.1
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
    """Refusals of one process. ``headers``: those of every response; ``on_refused`` counts one."""

    def __init__(self, shedder: LoadShedder, headers: dict[str, str], on_refused: Callable[[], None]) -> None:
        self.shedder = shedder
        self._on_refused = on_refused
        problem = to_problem(
            Overloaded(
                "As many articles of this caller are in flight here as can be answered in time (setting "
                "max_inflight_articles); retry later, or send many articles in one batch."
            )
        )
        problem.instance = "/v1/articles"
        body = encode(problem) + b"\n"
        self._answers = [
            _response_bytes(body, {**headers, "Cache-Control": "no-store", "Retry-After": str(seconds)})
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
        self._on_refused()
        return random.choice(self._answers)


def connection_refusal(headers: dict[str, str]) -> bytes:
    """The answer to a connection beyond the limit; it is then closed."""
    problem = to_problem(
        Overloaded("This server has too many open connections; retry later, over fewer connections.")
    )
    return _response_bytes(encode(problem) + b"\n", {**headers, "Retry-After": "1", "Connection": "close"})


def _response_bytes(body: bytes, headers: dict[str, str]) -> bytes:
    """A whole 503 response with a problem as its body."""
    lines = [
        "HTTP/1.1 503 Service Unavailable",
        "Content-Type: application/problem+json",
        f"Content-Length: {len(body)}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
