"""Sign-in page: exchanges an access key for a session cookie (HttpOnly, SameSite=Strict)."""

from __future__ import annotations

from typing import Annotated

from aiohttp import web
from msgspec import Struct

from aggregator.auth.sessions import SESSION_TTL_MS
from aggregator.errors import InvalidApiKey
from aggregator.http.app_keys import BASE_PATH, CALLER_KEY, SERVICE
from aggregator.http.auth import SESSION_COOKIE
from aggregator.http.body import read_form
from aggregator.http.pages import html_response
from aggregator_client.wire import doc

MAX_FORM_BYTES = 32 * 1024  # the only body that is read without a key


class SignInQuery(Struct, forbid_unknown_fields=True):
    """Query of the sign-in page: the address to return to."""

    next: Annotated[str, doc("Page to return to.", "/", max_length=2000)] = "/"


class SignInForm(SignInQuery, forbid_unknown_fields=True):
    """Form of the sign-in page."""

    key: Annotated[str, doc("An access key.", "k9f3.0123456789abcdef", max_length=200)] = ""


async def sign_in_form(request: web.Request, query: SignInQuery) -> web.StreamResponse:
    """Page: sign-in form."""
    return html_response(request, "sign_in.html", page="sign-in", next=safe_redirect_path(query.next))


async def sign_in(request: web.Request) -> web.StreamResponse:
    """Exchange an access key for a browser session. Raises InvalidApiKey, RateLimited."""
    api_keys = request.app[SERVICE].edge.api_keys
    form = await read_form(request, SignInForm, MAX_FORM_BYTES)
    key = await api_keys.authenticate(form.key.strip())
    if key is None:
        raise InvalidApiKey(
            "key: unknown, revoked or expired access key; ask the administrator for a new one."
        )
    request[CALLER_KEY] = key
    await request.app[SERVICE].edge.rate_limiter.acquire(key.id)  # a session is stored for 12 hours
    response = web.Response(status=303, headers={"Location": safe_redirect_path(form.next)})
    _set_session_cookie(request, response, await api_keys.sessions.start(key.id), SESSION_TTL_MS // 1000)
    return response


async def sign_out(request: web.Request) -> web.StreamResponse:
    """End the browser session."""
    token = request.cookies.get(SESSION_COOKIE)
    if token:
        await request.app[SERVICE].edge.api_keys.sessions.end(token)
    location = request.app[SERVICE].settings.sign_out_url or "/sign-in"
    response = web.Response(status=303, headers={"Location": location})
    _set_session_cookie(request, response, "", 0)
    return response


def safe_redirect_path(path: str) -> str:
    """The path if it is local to this service, else "/" (no open redirect)."""
    is_local = path.startswith("/") and not path.startswith("//") and "\\" not in path
    return path if is_local and path.isprintable() else "/"


def _set_session_cookie(request: web.Request, response: web.Response, token: str, seconds: int) -> None:
    secure = request.secure or request.app[SERVICE].settings.public_url.startswith("https://")
    path = request.app[BASE_PATH] or "/"
    response.set_cookie(
        SESSION_COOKIE, token, max_age=seconds, path=path, httponly=True, samesite="Strict", secure=secure
    )
