"""Signing in: a key becomes a session that scripts cannot read and other sites' pages cannot use."""

from __future__ import annotations

from aiohttp import web

from aggregator.auth.api_keys import SESSION_MS
from aggregator.contract.requests import NoQuery, SignInForm, SignInQuery
from aggregator.http.app_keys import CALLER, SERVICE
from aggregator.http.middleware.auth import COOKIE
from aggregator.http.middleware.errors import UnknownKey
from aggregator.http.pages import shown
from aggregator.http.pages.lookup import form_fields


async def form(request: web.Request, query: SignInQuery) -> web.StreamResponse:
    """The page that asks for a key."""
    return shown(request, "sign_in.html", page="sign-in", next=local(query.next), stream="", position="")


async def sign_in(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """A session for the key of the form; on to where the person wanted to go."""
    access = request.app[SERVICE].access
    given = await form_fields(request, SignInForm)
    key = await access.identify(given.key.strip())
    if key is None:
        raise UnknownKey("key: it is unknown, expired or was revoked; ask whoever runs this service.")
    request[CALLER] = key
    await request.app[SERVICE].allowance.spend(key.id)  # each session is kept for half a day
    response = web.Response(status=303, headers={"Location": local(given.next)})
    _set(request, response, await access.begin_session(key), SESSION_MS // 1000)
    return response


async def sign_out(request: web.Request, query: NoQuery) -> web.StreamResponse:
    """The session ends here and in the store."""
    token = request.cookies.get(COOKIE)
    if token:
        await request.app[SERVICE].access.end_session(token)
    response = web.Response(status=303, headers={"Location": "/sign-in"})
    _set(request, response, "", 0)
    return response


def local(address: str) -> str:
    """``address`` when it leads to a page of ours, else the first page."""
    good = address.startswith("/") and not address.startswith(("//", "/\\"))
    return address if good and address.isprintable() and "\\" not in address else "/"


def _set(request: web.Request, response: web.Response, token: str, seconds: int) -> None:
    secure = request.secure or request.app[SERVICE].settings.public_url.startswith("https://")
    response.set_cookie(
        COOKIE, token, max_age=seconds, path="/", httponly=True, samesite="Strict", secure=secure
    )
