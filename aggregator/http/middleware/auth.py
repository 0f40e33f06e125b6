"""Authentication and authorization of requests; ``routes.py`` states the permission that each route needs.

Programs send ``Authorization: Bearer KEY``, browsers a session cookie. Keys in addresses are not accepted,
since addresses end up in logs.

Where no key is required (on loopback, without keys), a web page could reach this service from a browser on
the same machine through a host name that it lets resolve to the loopback address (DNS rebinding), and would
count as the same site. Therefore only known host names are answered then.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from aiohttp import web

from aggregator.auth.api_keys import ApiKey, Permission, audit_log
from aggregator.concurrency import fair_semaphore
from aggregator.errors import CrossSiteRequest, Forbidden, InvalidApiKey, Unauthenticated
from aggregator.http.app_keys import CALLER_KEY, REQUEST_ID, SERVICE, caller_name
from aggregator.http.middleware.observability import SAFE_METHODS
from aggregator.settings import Settings

SESSION_COOKIE = "aggregator_session"
AUTH_SCHEME = "bearer"
# Scrapes are not rate-limited: monitoring must work while a key is over its limit or the store is
# unavailable.
METRICS_PATH = "/metrics"
NO_KEY_MESSAGE = 'Authorization: send an access key as "Bearer KEY", or sign in at /sign-in.'
INVALID_KEY_MESSAGE = (
    "Authorization: invalid, revoked or expired access key (a new key is accepted within two seconds)."
)
UNTRUSTED_HOST_MESSAGE = (
    "Host: without a required key only IP addresses and localhost are answered, not {name!r}; set "
    "public_url to an address with that name, or create an access key (`aggregator keys add`)."
)


async def authorize(request: web.Request, permission: Permission) -> None:
    """Admit the request. Raises Unauthenticated, Forbidden, CrossSiteRequest, RateLimited."""
    service = request.app[SERVICE]
    is_scrape = request.path == METRICS_PATH
    if permission == "nothing" or (is_scrape and service.settings.metrics_public):
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
            f"Authorization: the role {key.role} does not permit this; it requires {permission} or admin."
        )
    fair_semaphore.current_caller.set(key.id)
    if not is_scrape:
        await service.rate_limiter.acquire(key.id)


async def is_still_authorized(request: web.Request) -> bool:
    """Whether the caller's key is still valid, for responses that stay open for hours."""
    key = request.get(CALLER_KEY)
    return key is None or await request.app[SERVICE].api_keys.is_still_valid(key)


def is_trusted_host(host: str, settings: Settings) -> bool:
    """Whether a Host header is an IP address, a configured name, or a name that public DNS cannot resolve."""
    try:
        name = (urlsplit("//" + host).hostname or "").rstrip(".")
        configured = (settings.host.lower(), urlsplit(settings.public_url).hostname)
        return (
            "." not in name
            or name in configured
            or name.endswith(".localhost")
            or bool(ipaddress.ip_address(name))
        )
    except ValueError:
        return False


async def authenticate(request: web.Request) -> ApiKey | None:
    """The key of the request's Authorization header or session; None: neither is valid.

    Raises CrossSiteRequest for a change by a session without an Origin.
    """
    api_keys = request.app[SERVICE].api_keys
    if len(request.headers.getall("Authorization", ())) > 1:
        return None  # a proxy in front may have checked a different one
    scheme, _, presented = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == AUTH_SCHEME:
        return await api_keys.authenticate(presented.strip())
    token = request.cookies.get(SESSION_COOKIE)
    if not token:
        return None
    if request.method not in SAFE_METHODS and not {"Origin", "Sec-Fetch-Site"} & request.headers.keys():
        # ``observability.csrf_protect`` checks these headers where present; a browser always sends one of
        # them.
        raise CrossSiteRequest("Origin: a session's change request needs an Origin or Sec-Fetch-Site header.")
    return await api_keys.authenticate_session(token)


async def charge(request: web.Request, articles: int) -> None:
    """Charge the caller's rate limit for ``articles`` articles of a batch. Raises RateLimited."""
    key = request.get(CALLER_KEY)
    if key is not None:
        await request.app[SERVICE].rate_limiter.acquire(key.id, articles)


def source_error(request: web.Request, source: str) -> Forbidden | None:
    """The error for a key that is restricted to other sources; None: the source is permitted."""
    key = request.get(CALLER_KEY)
    if key is None or not key.sources or source in key.sources:
        return None
    return Forbidden(
        f"source: this key is restricted to {', '.join(key.sources)}, which excludes {source[:200]!r}."
    )


def check_source(request: web.Request, source: str) -> None:
    """Raises Forbidden for a key that is restricted to other sources."""
    error = source_error(request, source)
    if error is not None:
        raise error


def actor_name(request: web.Request, requested_name: str) -> str:
    """Name under which a change is recorded: the key's, where keys are required."""
    return caller_name(request) or requested_name


def audit_request(request: web.Request, operation: str, status: int) -> None:
    """Write one line to the audit log. The path is logged percent-encoded, so it contains no line breaks."""
    key = request.get(CALLER_KEY)
    audit_log.info(
        "%s %s by=%r key=%s status=%d request=%s",
        operation, request.rel_url.raw_path[:500], caller_name(request), key.id if key else "-", status,
        request.get(REQUEST_ID),
    )  # fmt: skip
