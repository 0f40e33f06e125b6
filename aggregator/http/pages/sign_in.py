"""Signing in: a key becomes a session that scripts cannot read and other sites' pages cannot use."""

from __future__ import annotations

from aiohttp import web

from aggregator.auth.api_keys import SESSION_TTL_MS
from aggregator.contract.requests import NoQuery, SignInForm, SignInQuery
from aggregator.http.app_keys import CALLER_KEY, SERVICE
from aggregator.http.middleware.auth import SESSION_COOKIE
from aggregator.http.middleware.errors import InvalidApiKey
from aggregator.http.pages import html_response
from aggregator.http.pages.lookup import read_form


async def sign_in_form(request: web.Request, query: SignInQuery) -> web.StreamResponse:
    """The page that asks for a key."""
    return html_response(
        request, "sign_in.html", page="sign-in", next=safe_redirect_path(query.next), stream="", position=""
    )


async def sign_in(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """A session for the key of the form; on to where the person wanted to go."""
    access = request.app[SERVICE].api_keys
    given = await read_form(request, SignInForm)
    key = await access.authenticate(given.key.strip())
    if key is None:
        raise InvalidApiKey("key: it is unknown, expired or was revoked; ask whoever runs this service.")
    request[CALLER_KEY] = key
    await request.app[SERVICE].rate_limiter.acquire(key.id)  # each session is kept for half a day
    response = web.Response(status=303, headers={"Location": safe_redirect_path(given.next)})
    _set_session_cookie(request, response, await access.start_session(key), SESSION_TTL_MS // 1000)
    return response


async def sign_out(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """The session ends here and in the store."""
    token = request.cookies.get(SESSION_COOKIE)
    if token:
        await request.app[SERVICE].api_keys.end_session(token)
    response = web.Response(status=303, headers={"Location": "/sign-in"})
    _set_session_cookie(request, response, "", 0)
    return response


def safe_redirect_path(address: str) -> str:
    """``address`` when it leads to a page of ours, else the first page."""
    good = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if good and address.isprintable() and "\\" not in address else "/"


def _set_session_cookie(request: web.Request, response: web.Response, token: str, seconds: int) -> None:
    secure = request.secure or request.app[SERVICE].settings.public_url.startswith("https://")
    response.set_cookie(
        SESSION_COOKIE, token, max_age=seconds, path="/", httponly=True, samesite="Strict", secure=secure
    )
