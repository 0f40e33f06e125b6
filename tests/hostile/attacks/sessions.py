"""Attacks on browser sessions: cookies, cross-site requests, redirects after signing in."""

from __future__ import annotations

from urllib.parse import urlencode

from tests.hostile.attacks.access import FORM
from tests.hostile.attacks.running import Target

NEXT_TRICKS = (
    "//evil.example", "///evil.example", "/\\evil.example", "\\\\evil.example", "https://evil.example",
    "javascript:alert(1)", "/\t/evil.example", "/\n/evil.example", "/\r\nX-A: b", "/%0d%0aX-A:b", " //evil",
    "http:evil.example", "/\u2028", "/\u3000/evil", "?x", "", "/.//evil.example", "data:text/html,x", "//",
    "/\x00/evil.example", "\u2044\u2044evil.example", "/@evil.example", "/;//evil.example",
    "/..//evil.example",
)  # fmt: skip


async def sessions(target: Target) -> None:
    """Cookie attributes, fixation, sign-out, cross-site requests, redirects after signing in."""
    check = target.findings.check
    for next_ in NEXT_TRICKS:
        form = urlencode({"key": target.keys["reader"], "next": next_})
        status, headers, _ = await target.request("POST", "/sign-in", data=form, headers=FORM)
        location = headers.get("Location", "")
        local = location.startswith("/") and not location.startswith(("//", "/\\")) and "\n" not in location
        check(
            "redirects at sign-in", (status, local) in ((303, True), (400, False)), f"{next_!r}: {location!r}"
        )
        status, _, body = await target.request("GET", "/sign-in?" + urlencode({"next": next_}))
        check("redirects at sign-in", b"evil.example" not in body or b'value="/' in body, f"{next_!r}: page")
    chosen = "A" * 43
    status, headers, _ = await target.request(
        "POST", "/sign-in", data=urlencode({"key": target.keys["editor"]}),
        headers={**FORM, "Cookie": f"aggregator_session={chosen}"},
    )  # fmt: skip
    cookie = headers.get("Set-Cookie", "")
    for attribute in ("HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"):
        check("session cookie", attribute in cookie, f"{attribute} is missing: {cookie}")
    check("session cookie", chosen not in cookie, "the session id of the client is kept")
    session = {"Cookie": cookie.partition(";")[0]}
    own = {"Origin": target.base}
    desk = b'{"name": "review", "terms": ["lock"]}'
    cases: list[tuple[dict[str, str], bool]] = [
        ({}, False), ({"Origin": "null"}, False), ({"Origin": "https://evil.example"}, False),
        ({"Origin": target.base + ".evil.example"}, False),
        ({"Origin": f"http://evil.example:{target.port}"}, False),
        ({"Origin": target.base + "/"}, False), ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "same-site"}, False), ({"Sec-Fetch-Site": ""}, False),
        ({"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"}, False),
        ({**own, "Sec-Fetch-Site": "cross-site"}, False), ({"Sec-Fetch-Site": "SAME-ORIGIN "}, False),
        ({"Origin": f"http://localhost:{target.port}"}, False), ({"Referer": target.base}, False),
        (own, True), ({"Sec-Fetch-Site": "same-origin"}, True),
    ]  # fmt: skip
    for types in (
        "application/json",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
    ):
        for headers_, allowed in cases:
            status, _, _ = await target.request(
                "POST", "/v1/desks", data=desk, headers={**session, **headers_, "Content-Type": types}
            )
            check("cross-site requests", (status in (200, 201)) == allowed, f"{headers_} {types}: {status}")
    forms = {
        "/desks": {"name": "Review"},
        "/webhooks/unknown": {"action": "ping"},
    }
    for page, fields in forms.items():
        for headers_, allowed in cases:
            status, _, _ = await target.request(
                "POST", page, data=urlencode(fields), headers={**FORM, **session, **headers_}
            )
            check("cross-site requests", (status != 403) == allowed, f"{page} {headers_}: {status}")
    for method, path in (("GET", "/sign-out"), ("GET", "/v1/desks"), ("HEAD", "/v1/desks")):
        status, _, _ = await target.request(
            method, path, headers={**session, "Origin": "https://evil.example"}
        )
        check("cross-site requests", status in (200, 405), f"{method} {path}: {status}")
    status, _, _ = await target.request(
        "POST", "/sign-out", headers={**session, "Origin": "https://evil.example"}
    )
    check("cross-site requests", status == 403, f"sign-out from another site: {status}")
    status, headers, _ = await target.request("POST", "/sign-out", headers={**session, **own})
    check("session cookie", status == 303 and "Max-Age=0" in headers.get("Set-Cookie", ""), "sign-out")
    status, _, _ = await target.request("GET", "/v1/desks", headers=session)
    check("session cookie", status == 401, f"a session after sign-out: {status}")
    status, _, _ = await target.request(
        "GET", "/v1/desks", headers={"Cookie": f"aggregator_session={chosen}"}
    )
    check("session cookie", status == 401, f"a chosen session: {status}")
