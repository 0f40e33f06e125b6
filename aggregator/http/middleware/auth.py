"""Who asks, and may they? Before every handler; what each route needs stands in ``endpoints.py``.

Programs send ``Authorization: Bearer KEY``, browsers the cookie of a session. Nothing else is looked at: a key in an
address would end up in logs.

Where nobody is asked, on loopback without keys, a page anywhere could reach us from a browser on this machine under a
name of its own that it lets point here (DNS rebinding), and it would be its own site. So only our names are answered.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from aiohttp import web

from aggregator.auth.api_keys import ApiKey, Permission, audit_log
from aggregator.concurrency import fair_semaphore
from aggregator.http.app_keys import CALLER_KEY, REQUEST_ID, SERVICE, caller_name
from aggregator.http.middleware.errors import CrossSiteRequest, Forbidden, InvalidApiKey, Unauthenticated
from aggregator.http.middleware.observability import SAFE_METHODS
from aggregator.settings import Settings

SESSION_COOKIE = "aggregator_session"
AUTH_SCHEME = "bearer"
# Watching costs nothing: it must go on while a key is over its limit, and while the store, which counts, is away.
METRICS_PATH = "/metrics"
NO_KEY_MESSAGE = 'Authorization: send an access key as "Bearer KEY", or sign in at /sign-in.'
INVALID_KEY_MESSAGE = (
    'Authorization: what was sent as "Bearer KEY" is no access key of this service, or it was revoked or has expired '
    "(a new one is known within two seconds)."
)
UNTRUSTED_HOST_MESSAGE = (
    "Host: while nobody is asked for a key, addresses and localhost are answered, not the name {name!r}; set "
    "public_url to an address with that name, or make an access key (`aggregator keys add`)."
)


async def authorize(request: web.Request, permission: Permission) -> None:
    """Let it pass, or raise Unauthenticated, Forbidden, OverLimit."""
    service = request.app[SERVICE]
    figures = request.path == METRICS_PATH
    if permission == "nothing" or (figures and service.settings.metrics_public):
        return
    if not await service.api_keys.is_required():
        if not (service.settings.auth_disabled or is_trusted_host(request.host, service.settings)):
            raise CrossSiteRequest(UNTRUSTED_HOST_MESSAGE.format(name=request.host[:100]))
        return
    key = await authenticate(request)
    if key is None:
        raise (
            InvalidApiKey(INVALID_KEY_MESSAGE)
            if "Authorization" in request.headers
            else Unauthenticated(NO_KEY_MESSAGE)
        )
    request[CALLER_KEY] = key
    if not key.allows(permission):
        raise Forbidden(
            f"Authorization: the role {key.role} may not do this; it takes {permission} or admin."
        )
    fair_semaphore.current_caller.set(key.id)
    if not figures:
        await service.rate_limiter.acquire(key.id)


async def is_still_authorized(request: web.Request) -> bool:
    """Whether who was let in would be let in now: for answers that go on for hours."""
    key = request.get(CALLER_KEY)
    return key is None or await request.app[SERVICE].api_keys.is_still_valid(key)


def is_trusted_host(host: str, settings: Settings) -> bool:
    """Whether a ``Host`` is an address, or a name that no stranger can let point here: one without a dot, or set."""
    try:
        name = (urlsplit("//" + host).hostname or "").rstrip(".")
        ours = (settings.host.lower(), urlsplit(settings.public_url).hostname)
        return (
            "." not in name or name in ours or name.endswith(".localhost") or bool(ipaddress.ip_address(name))
        )
    except ValueError:
        return False


async def authenticate(request: web.Request) -> ApiKey | None:
    """Whose key or session the request carries."""
    access = request.app[SERVICE].api_keys
    if len(request.headers.getall("Authorization", ())) > 1:
        return None  # whatever stands before us may have read another one
    scheme, _, presented = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == AUTH_SCHEME:
        return await access.authenticate(presented.strip())
    token = request.cookies.get(SESSION_COOKIE)
    if not token:
        return None
    if request.method not in SAFE_METHODS and not {"Origin", "Sec-Fetch-Site"} & request.headers.keys():
        # ``edge.same_site`` looked at them where they are; a browser always sends one of them.
        raise CrossSiteRequest("Origin: a change by a session must say which page sends it.")
    return await access.authenticate_session(token)


async def charge(request: web.Request, articles: int) -> None:
    """Charge the caller for more than one article. Raises OverLimit."""
    key = request.get(CALLER_KEY)
    if key is not None:
        await request.app[SERVICE].rate_limiter.acquire(key.id, articles)


def source_error(request: web.Request, source: str) -> Forbidden | None:
    """Why a caller whose key is for some sources must not touch articles of this one."""
    key = request.get(CALLER_KEY)
    if key is None or not key.sources or source in key.sources:
        return None
    return Forbidden(f"source: this key is for {', '.join(key.sources)} alone, not for {source[:200]!r}.")


def check_source(request: web.Request, source: str) -> None:
    """Raises Forbidden."""
    refused = source_error(request, source)
    if refused is not None:
        raise refused


def actor_name(request: web.Request, requested_name: str) -> str:
    """Under which name a change is recorded: that of the key, where keys are asked for."""
    return caller_name(request) or requested_name


def audit_request(request: web.Request, operation: str, status: int) -> None:
    """One line of the audit log. The address is percent-encoded as it was sent: it holds no line ends."""
    key = request.get(CALLER_KEY)
    audit_log.info(
        "%s %s by=%r key=%s status=%d request=%s",
        operation, request.rel_url.raw_path[:500], caller_name(request), key.id if key else "-", status,
        request.get(REQUEST_ID),
    )  # fmt: skip
