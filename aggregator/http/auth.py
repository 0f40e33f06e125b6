"""Authentication and authorization of requests; ``routes.py`` states the permission that each route needs.

Programs send ``Authorization: Bearer KEY``, browsers a session cookie, or a trusted proxy names the user in a
header (``proxy_users.py``). Keys in addresses are not accepted, since addresses end up in logs.

Requests for unknown host names are refused before anything else (``hosts.py``).
"""

from __future__ import annotations

from dataclasses import replace

from aiohttp import web

from aggregator.auth.api_keys import ApiKey, Permission, audit_log
from aggregator.concurrency import current_caller
from aggregator.domain import Article
from aggregator.errors import CrossSiteRequest, Forbidden, InvalidApiKey, Unauthenticated
from aggregator.http import hosts
from aggregator.http.app_keys import CALLER_KEY, REQUEST_ID, SERVICE, caller_name
from aggregator.http.middleware import SAFE_METHODS
from aggregator.http.proxy_users import PROXY_USERS

SESSION_COOKIE = "aggregator_session"
AUTH_SCHEME = "bearer"
# Scrapes are not rate-limited: monitoring must work while a key is over its limit or the store is
# unavailable.
METRICS_PATH = "/metrics"
NO_KEY_MESSAGE = 'Authorization: send an access key as "Bearer KEY", or sign in at /sign-in.'
INVALID_KEY_MESSAGE = (
    "Authorization: invalid, revoked or expired access key (a new key is accepted within two seconds)."
)


async def authorize(request: web.Request, permission: Permission) -> None:
    """Admit the request. Raises UnknownHost, Unauthenticated, Forbidden, CrossSiteRequest, RateLimited.

    Sets ``current_caller``, which limits are divided by: the id of the key, or the address without one.
    """
    hosts.check_host(request)
    service = request.app[SERVICE]
    current_caller.set(request.remote or "")
    is_scrape = request.path == METRICS_PATH
    if permission == "nothing" or (is_scrape and service.settings.metrics_public):
        return
    if not (service.settings.user_header or await service.edge.api_keys.is_required()):
        return
    key = await authenticate(request)
    if key is None:
        if "Authorization" in request.headers:
            raise InvalidApiKey(INVALID_KEY_MESSAGE)
        raise Unauthenticated(NO_KEY_MESSAGE)
    request[CALLER_KEY] = key
    if not key.allows(permission):
        bound = ", and a key restricted to sources only posts articles" if key.sources else ""
        raise Forbidden(
            f"Authorization: the role {key.role} does not permit this; it requires {permission} or admin"
            f"{bound}."
        )
    current_caller.set(key.id)
    if not is_scrape:
        await service.edge.rate_limiter.acquire(key.id)


async def is_still_authorized(request: web.Request) -> bool:
    """Whether the caller's key is still valid, for responses that stay open for hours."""
    key = request.get(CALLER_KEY)
    return key is None or await request.app[SERVICE].edge.api_keys.is_still_valid(key)


async def authenticate(request: web.Request) -> ApiKey | None:
    """The key of the request's Authorization header, proxy user or session; None: none is valid.

    Raises CrossSiteRequest for a change without an Origin, Forbidden and InvalidApiKey for a user header.
    """
    api_keys = request.app[SERVICE].edge.api_keys
    if len(request.headers.getall("Authorization", ())) > 1:
        return None  # a proxy in front may have checked a different one
    scheme, _, presented = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == AUTH_SCHEME:
        return await api_keys.authenticate(presented.strip())
    token = request.cookies.get(SESSION_COOKIE)
    user = request.app[PROXY_USERS].user_of(request, has_session=bool(token))
    if user is None and not token:
        return None
    if request.method not in SAFE_METHODS and not {"Origin", "Sec-Fetch-Site"} & request.headers.keys():
        # ``middleware.py`` checks these headers where present; a browser always sends one of them.
        raise CrossSiteRequest("Origin: a session's change request needs an Origin or Sec-Fetch-Site header.")
    return user or await api_keys.authenticate_session(token or "")


async def charge(request: web.Request, articles: int) -> None:
    """Charge the caller's rate limit for ``articles`` articles of a batch. Raises RateLimited."""
    key = request.get(CALLER_KEY)
    if key is not None:
        await request.app[SERVICE].edge.rate_limiter.acquire(key.id, articles)


def caller_sources(request: web.Request) -> tuple[str, ...]:
    """The sources that the caller's key is bound to; (): all articles are permitted."""
    key = request.get(CALLER_KEY)
    return key.sources if key is not None else ()


def bind_source(request: web.Request, article: Article) -> Article:
    """The article with the source of the caller's key, if it names none and the key is bound to one.

    Raises Forbidden for another source; names are compared exactly. ``ingest/decide.py`` checks the id.
    """
    sources = caller_sources(request)
    if not sources or article.source in sources:
        return article
    if article.source or len(sources) > 1:
        raise Forbidden(
            f"source: this key is restricted to {', '.join(sources)}, which excludes "
            f"{article.source[:200]!r}."
        )
    return replace(article, source=sources[0])


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
