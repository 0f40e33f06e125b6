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

from aggregator.auth.api_keys import AccessKey, Need, audit
from aggregator.concurrency import fair_semaphore
from aggregator.http.app_keys import CALLER, REQUEST_ID, SERVICE, caller_name
from aggregator.http.middleware.errors import CrossSite, Forbidden, Unauthenticated, UnknownKey
from aggregator.http.middleware.observability import SAFE_METHODS
from aggregator.settings import Settings

COOKIE = "aggregator_session"
SCHEME = "bearer"
# Watching costs nothing: it must go on while a key is over its limit, and while the store, which counts, is away.
FIGURES = "/metrics"
NO_KEY = 'Authorization: send an access key as "Bearer KEY", or sign in at /sign-in.'
UNKNOWN_KEY = (
    'Authorization: what was sent as "Bearer KEY" is no access key of this service, or it was revoked or has expired '
    "(a new one is known within two seconds)."
)
FOREIGN_NAME = (
    "Host: while nobody is asked for a key, addresses and localhost are answered, not the name {name!r}; set "
    "public_url to an address with that name, or make an access key (`aggregator keys add`)."
)


async def admit(request: web.Request, needs: Need) -> None:
    """Let it pass, or raise Unauthenticated, Forbidden, OverLimit."""
    service = request.app[SERVICE]
    figures = request.path == FIGURES
    if needs == "nothing" or (figures and service.settings.open_metrics):
        return
    if not await service.access.required():
        if not (service.settings.open_access or is_our_name(request.host, service.settings)):
            raise CrossSite(FOREIGN_NAME.format(name=request.host[:100]))
        return
    key = await caller(request)
    if key is None:
        raise UnknownKey(UNKNOWN_KEY) if "Authorization" in request.headers else Unauthenticated(NO_KEY)
    request[CALLER] = key
    if not key.may(needs):
        raise Forbidden(f"Authorization: the role {key.role} may not do this; it takes {needs} or admin.")
    fair_semaphore.CALLER.set(key.id)
    if not figures:
        await service.allowance.spend(key.id)


async def still_admitted(request: web.Request) -> bool:
    """Whether who was let in would be let in now: for answers that go on for hours."""
    key = request.get(CALLER)
    return key is None or await request.app[SERVICE].access.holds(key)


def is_our_name(host: str, settings: Settings) -> bool:
    """Whether a ``Host`` is an address, or a name that no stranger can let point here: one without a dot, or set."""
    try:
        name = (urlsplit("//" + host).hostname or "").rstrip(".")
        ours = (settings.host.lower(), urlsplit(settings.public_url).hostname)
        return (
            "." not in name or name in ours or name.endswith(".localhost") or bool(ipaddress.ip_address(name))
        )
    except ValueError:
        return False


async def caller(request: web.Request) -> AccessKey | None:
    """Whose key or session the request carries."""
    access = request.app[SERVICE].access
    if len(request.headers.getall("Authorization", ())) > 1:
        return None  # whatever stands before us may have read another one
    scheme, _, presented = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == SCHEME:
        return await access.identify(presented.strip())
    token = request.cookies.get(COOKIE)
    if not token:
        return None
    if request.method not in SAFE_METHODS and not {"Origin", "Sec-Fetch-Site"} & request.headers.keys():
        # ``edge.same_site`` looked at them where they are; a browser always sends one of them.
        raise CrossSite("Origin: a change by a session must say which page sends it.")
    return await access.of_session(token)


async def spend(request: web.Request, articles: int) -> None:
    """Charge the caller for more than one article. Raises OverLimit."""
    key = request.get(CALLER)
    if key is not None:
        await request.app[SERVICE].allowance.spend(key.id, articles)


def refusal(request: web.Request, source: str) -> Forbidden | None:
    """Why a caller whose key is for some sources must not touch articles of this one."""
    key = request.get(CALLER)
    if key is None or not key.sources or source in key.sources:
        return None
    return Forbidden(f"source: this key is for {', '.join(key.sources)} alone, not for {source[:200]!r}.")


def check_source(request: web.Request, source: str) -> None:
    """Raises Forbidden."""
    refused = refusal(request, source)
    if refused is not None:
        raise refused


def actor(request: web.Request, told: str) -> str:
    """Under which name a change is recorded: that of the key, where keys are asked for."""
    return caller_name(request) or told


def record(request: web.Request, what: str, status: int) -> None:
    """One line of the audit log. The address is percent-encoded as it was sent: it holds no line ends."""
    key = request.get(CALLER)
    audit.info(
        "%s %s by=%r key=%s status=%d request=%s",
        what, request.rel_url.raw_path[:500], caller_name(request), key.id if key else "-", status,
        request.get(REQUEST_ID),
    )  # fmt: skip
