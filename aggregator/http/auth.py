"""Admission of requests: host name, site, authentication and authorization.

``routes.py`` states the permission that each route needs. Programs send ``Authorization: Bearer KEY``,
browsers a session cookie, or a trusted proxy names the user in a header (``proxies.py``). Keys in addresses
are not accepted, since addresses end up in logs.

Against DNS rebinding and links to any ``Host`` in a shared cache, a name that public DNS could resolve is
answered only if the settings name it, and links are built from named hosts alone.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import replace
from functools import lru_cache
from urllib.parse import urlsplit

from aiohttp import web
from yarl import URL

from aggregator.analysis.source import spelled_as
from aggregator.auth.api_keys import ROLE_PERMISSIONS, ApiKey, Permission, audit_log
from aggregator.concurrency import current_caller
from aggregator.domain import Article
from aggregator.errors import CrossSiteRequest, Forbidden, InvalidApiKey, Unauthenticated, UnknownHost
from aggregator.http.app_keys import CALLER_KEY, REQUEST_ID, SERVICE, caller_name
from aggregator.http.proxies import PROXY_USERS, parse_address

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
SESSION_COOKIE = "aggregator_session"
# Scrapes are not rate-limited: monitoring must work while a key is over its limit or the store is
# unavailable.
METRICS_PATH = "/metrics"
INVALID_KEY_MESSAGE = (
    "Authorization: invalid, revoked or expired access key (a new key is accepted within two seconds)."
)
# Probes address a replica directly, under any name, and answer nothing that a page could use.
PROBE_PATHS = ("/healthz", "/readyz")
# Names that public DNS does not resolve: reserved, or of a cluster.
PRIVATE_SUFFIXES = (".localhost", ".internal", ".svc", ".svc.cluster.local")
# RFC 9110, section 7.2. Other characters (user@, \\, #) make a browser go elsewhere than this program reads.
_HOST_HEADER = re.compile(r"(?P<name>[A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?")


async def authorize(request: web.Request, permission: Permission) -> None:
    """Admit the request. Raises UnknownHost, Unauthenticated, Forbidden, CrossSiteRequest, RateLimited.

    Sets ``current_caller``, which limits are divided by: the id of the key, or the address without one.
    """
    check_host(request)
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
        raise Unauthenticated('Authorization: send an access key as "Bearer KEY", or sign in at /sign-in.')
    request[CALLER_KEY] = key
    require(request, permission)
    current_caller.set(key.id)
    if key.role == "related":  # it is public, so that its callers differ by their addresses only
        current_caller.set(f"{key.id} {request.remote}")
        await service.edge.related_limiter.acquire(current_caller.get())
    elif not is_scrape:
        await service.edge.rate_limiter.acquire(key.id)


def require(request: web.Request, permission: Permission) -> None:
    """Raise Forbidden unless the caller's key grants ``permission``, or keys are not required."""
    key = request.get(CALLER_KEY)
    if key is not None and not key.allows(permission):
        bound = ", and a key restricted to sources only posts articles" if key.sources else ""
        roles = ", ".join(role for role, granted in ROLE_PERMISSIONS.items() if permission in granted)
        raise Forbidden(f"Authorization: the role {key.role} does not permit this; these do: {roles}{bound}.")


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
    if scheme.lower() == "bearer":
        return await api_keys.authenticate(presented.strip())
    token = request.cookies.get(SESSION_COOKIE)
    user = request.app[PROXY_USERS].user_of(request, has_session=bool(token))
    if user is None and not token:
        return None
    if request.method not in SAFE_METHODS and not {"Origin", "Sec-Fetch-Site"} & request.headers.keys():
        # ``refuse_other_sites`` checks these headers where present; a browser always sends one of them.
        raise CrossSiteRequest("Origin: a session's change request needs an Origin or Sec-Fetch-Site header.")
    return user or await api_keys.authenticate_session(token or "")


def caller_sources(request: web.Request) -> tuple[str, ...]:
    """The sources that the caller's key is bound to; (): all articles are permitted."""
    return request[CALLER_KEY].sources if CALLER_KEY in request else ()


def bind_source(request: web.Request, article: Article) -> Article:
    """The article with the source of the caller's key, as the key spells it, if it is bound to sources.

    Without a source it gets the only one. Raises Forbidden for another. ``ingest/decide.py`` checks the id.
    """
    sources = caller_sources(request)
    if not sources:
        return article
    own = spelled_as(article.source, sources)
    if own is None and (article.source or len(sources) > 1):
        raise Forbidden(
            f"source: this key is restricted to {', '.join(sources)}, which excludes "
            f"{article.source[:200]!r}.",
            "source",
        )
    return replace(article, source=own or sources[0])


def audit_request(request: web.Request, operation: str, status: int) -> None:
    """Write one line to the audit log. The path is logged percent-encoded, so it contains no line breaks."""
    key = request.get(CALLER_KEY)
    audit_log.info(
        "%s %s by=%r key=%s status=%d request=%s",
        operation, request.rel_url.raw_path_qs[:500], caller_name(request), key.id if key else "-", status,
        request.get(REQUEST_ID),
    )  # fmt: skip


def refuse_other_sites(request: web.Request) -> None:
    """Raise CrossSiteRequest for a change by a page of another site. Programs send neither header."""
    fetch_site = request.headers.get("Sec-Fetch-Site", "none")
    origin = request.headers.get("Origin")
    if fetch_site in ("none", "same-origin") and (origin is None or _is_own_origin(origin, request)):
        return
    raise CrossSiteRequest(
        "Origin: pages of other sites must not send this request (behind a proxy, set public_url)."
    )


def _is_own_origin(origin: str, request: web.Request) -> bool:
    """Whether the origin is this service: it matches the Host header, or public_url behind a proxy."""
    public_url = request.app[SERVICE].settings.public_url
    matches_host = origin.partition("://")[2] == request.headers.get("Host")
    return matches_host or (bool(public_url) and origin == str(URL(public_url).origin()))


def check_host(request: web.Request) -> None:
    """Raise UnknownHost for a name that is neither configured nor unknown to public DNS."""
    settings, host = request.app[SERVICE].settings, request.host
    names = settings.allowed_hosts, settings.host, settings.public_url
    if request.path not in PROBE_PATHS and not is_answered_host(host, *names):
        problem = f"Host: {host[:100]!r} is not a host name of this service"
        raise UnknownHost(f"{problem}; set public_url or allowed_hosts to answer requests for it.")


@lru_cache(maxsize=256)  # called for every request
def is_answered_host(host: str, allowed_hosts: str, own_host: str, public_url: str) -> bool:
    """Whether a Host header is an IP address, a configured name, or a name that public DNS cannot resolve."""
    name = _name_of(host)
    if name is None:
        return False
    named = _named_hosts(allowed_hosts, own_host, public_url)
    return (
        name in named
        or "*" in named
        or "." not in name
        or name.endswith(PRIVATE_SUFFIXES)
        or parse_address(name) is not None
    )


def base_url(request: web.Request) -> str:
    """Base address of links, without a trailing slash: public_url, else the address of the request.

    That is used if its Host is a configured name, localhost or the address that the request arrived at. For
    any other the result is "", which makes links relative to the address that the caller used.
    """
    settings = request.app[SERVICE].settings
    if settings.public_url:
        return settings.public_url.rstrip("/")
    name = _name_of(request.host)
    if name is None:
        return ""
    named = _named_hosts(settings.allowed_hosts, settings.host, settings.public_url)
    is_named = name in named or name == "localhost" or name.endswith(".localhost")
    address = parse_address(name)
    if is_named or (address is not None and address == _local_address(request)):
        return f"{request.scheme}://{request.host}"
    return ""


def _named_hosts(allowed_hosts: str, host: str, public_url: str) -> frozenset[str]:
    named = {name.strip().lower().rstrip(".") for name in allowed_hosts.split(",")}
    return frozenset(named | {host.lower(), urlsplit(public_url).hostname or ""}) - {""}


def _name_of(host: str) -> str | None:
    """The name or address of a Host header in lower case, without port; None if it is malformed."""
    match = _HOST_HEADER.fullmatch(host)
    return match["name"].strip("[]").lower().rstrip(".") if match else None


def _local_address(request: web.Request) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that the connection was accepted at; None for a Unix socket."""
    own = request.transport.get_extra_info("sockname") if request.transport is not None else None
    return parse_address(own[0].partition("%")[0]) if isinstance(own, tuple) else None
