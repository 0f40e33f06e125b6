"""Idempotency-Key: a repeated request gets the answer of the first one (draft-ietf-httpapi-idempotency-key).

The key is 1 to 255 visible ASCII characters, quoted or not. The same key with the same method, address and
body returns the recorded answer with ``Idempotency-Replayed: true``; with another request it is 422. Keys of
two API keys are independent. Answers are kept for 24 h (``events/user_state.py``); errors are not recorded.
Of simultaneous requests with one key one acts; the others are 409 with ``Retry-After`` until it has finished.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from msgspec import structs

from aggregator.errors import IdempotencyKeyInUse, IdempotencyKeyReused, InvalidInput
from aggregator.events.user_state import RESERVED, StoredAnswer
from aggregator.http import body as bodies
from aggregator.http.app_keys import SERVICE, caller_id

HEADER, REPLAYED_HEADER = "Idempotency-Key", "Idempotency-Replayed"
MAX_KEY_CHARS = 255


async def run_once(
    request: web.Request, query: Any, handler: Callable[[web.Request, Any], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """The answer of ``handler``, or the recorded one. Raises InvalidInput, IdempotencyKey{Reused,InUse}."""
    key = _read_key(request)
    if not key:
        return await handler(request, query)
    service, owner = request.app[SERVICE], caller_id(request)
    answers = service.edge.idempotent_answers
    address = f"{request.method} {request.rel_url.raw_path_qs}\n"
    fingerprint = hashlib.sha256(address.encode() + await bodies.keep_body(request)).digest()
    reservation = StoredAnswer(key, fingerprint, service.clock())
    earlier = await answers.reserve(owner, reservation)
    if earlier is not None:
        return _replay(earlier, reservation.fingerprint)
    try:
        response = await handler(request, query)
    except Exception:
        await answers.release(owner, reservation)
        raise
    if not isinstance(response, web.Response) or not isinstance(response.body, bytes):
        await answers.release(owner, reservation)
        return response
    answer = structs.replace(
        reservation, status=response.status, location=response.headers.get("Location", ""), body=response.body
    )
    recorded = await answers.record(owner, answer)
    return response if recorded is answer else _replay(recorded, answer.fingerprint)


def _read_key(request: web.Request) -> str:
    """The key without quotes; "" without one. Raises InvalidInput."""
    values = request.headers.getall(HEADER, [])
    key = values[0].strip().removeprefix('"').removesuffix('"') if values else ""
    is_valid = len(values) < 2 and len(key) <= MAX_KEY_CHARS and key.isascii() and key.isprintable()
    if values and not (is_valid and key):
        raise InvalidInput(
            f"{HEADER}: expected one key of 1 to {MAX_KEY_CHARS} visible ASCII characters, such as a UUID.",
            field=HEADER, reason="bad_format", place="header",
        )  # fmt: skip
    return key


def _replay(answer: StoredAnswer, fingerprint: bytes) -> web.Response:
    """The recorded answer. Raises IdempotencyKeyReused or IdempotencyKeyInUse."""
    if answer.fingerprint != fingerprint:
        raise IdempotencyKeyReused(
            f"{HEADER}: this key was sent with another request within the last 24 h; use a new key for each "
            "new request.",
            field=HEADER, place="header",
        )  # fmt: skip
    if answer.status == RESERVED:
        raise IdempotencyKeyInUse(
            f"{HEADER}: the first request with this key has not finished; repeat this one in a second to get "
            "its answer."
        )
    headers = {REPLAYED_HEADER: "true", **({"Location": answer.location} if answer.location else {})}
    return web.Response(
        body=answer.body, status=answer.status, headers=headers, content_type="application/json", charset=None
    )
