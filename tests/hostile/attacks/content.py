"""Attacks by what is stored: markup and control characters on pages, in feeds and in streams."""

from __future__ import annotations

import asyncio
import json
import re
from urllib.parse import quote
from xml.etree import ElementTree

from tests.hostile.attacks.running import Target

MARK = "xssmark"
PAYLOADS = (
    f"<script>{MARK}()</script>",
    f'"><img src=x onerror={MARK}()>', f"' onmouseover='{MARK}()", f"</title><svg onload={MARK}()>",
    f"javascript:{MARK}()", f"{{{{{MARK}}}}}", f"]]><x>{MARK}", f"<!--{MARK}", f"\u2028{MARK}",
    f"\u202e{MARK}", f"&lt;script&gt;{MARK}", f"</script><{MARK}>",
)  # fmt: skip
# Markup of a payload that a page must not contain: a tag, an attribute or an end of one.
UNSAFE = re.compile(
    rf"<script>{MARK}|<img src=x|<svg onload|' onmouseover='|<!--{MARK}|</script><{MARK}|<x>{MARK}"
    r"|href=\"javascript:",
    re.IGNORECASE,
)
STORY = (
    "The lock keeper of Estmark raised gate {n} at dawn, because the river had risen two metres "
    "overnight. Barges wait below the town."
)
PAGES = ("/", "/search?q={id}", "/compare?a={id}&b={other}", "/events/{event}", "/health", "/docs",
"/sign-in?next={raw}", "/nothing/{raw}",
         "/compare?a={raw}&b={raw}", "/?term={raw}", "/?source={raw}",
         "/?watch={raw}", "/search?q={raw}", "/search?q=Estmark", "/search?q=Estmark&source={raw}",
         "/articles/{id}/provenance", "/events/{event}/provenance", "/sources", "/sources?q={raw}",
         "/sources/{source}", "/desks", "/desks?done=created&target={raw}", "/?watch={desk}")  # fmt: skip
# Pages that show targets, which readers do not see.
EDITOR_PAGES = ("/desks/{desk}", "/webhooks", "/webhooks/{raw}")


async def markup(target: Target) -> None:
    """Payloads in every field of articles, desks and actions, looked for on every page and feed."""
    check = target.findings.check
    desks: list[str] = []
    for number, payload in enumerate(PAYLOADS):
        status, _, _ = await target.request("POST", "/v1/articles", "crawler", json={
            "id": f"{number} {payload}", "title": f"{payload} {number}", "source": f"{payload} {number}",
            "text": STORY.format(n=number) + payload,
            "url": f"https://radio.example/{number}?{quote(payload)}", "published_at": None,
        })  # fmt: skip
        check("markup in stored text", status in (200, 201, 400), f"{payload}: {status}")
        for url in (
            f"javascript:{MARK}()",
            f"JAVASCRIPT:{MARK}()",
            f"data:text/html,{MARK}",
            f'https://x/"onclick={MARK}',
            f"\x01javascript:{MARK}()",
        ):
            status, _, _ = await target.request(
                "POST",
                "/v1/articles",
                "crawler",
                json={"id": f"u{number}", "url": url, "text": STORY.format(n="u")},
            )
            check("markup in stored text", status in (200, 201, 400), f"{url}: {status}")
        desk = {"name": payload, "terms": [payload], "without": [payload], "sources": [payload]}
        status, _, body = await target.request("POST", "/v1/desks", "editor", json=desk)
        check("markup in stored text", status == 201, f"desk {payload}: {status}")
        desks.append(str(json.loads(body).get("id", "")))
        for kind, address in (
            ("mail", f"{payload}@news.example"),
            ("webhook", f"https://x.example/{payload}"),
        ):
            status, _, _ = await target.request(
                "POST", f"/v1/desks/{desks[-1]}/targets", "editor", json={"kind": kind, "address": address}
            )
            check("markup in stored text", status in (201, 400, 422), f"{kind} {payload}: {status}")
    events: list[dict[str, str]] = []
    for _ in range(50):
        _, _, answer = await target.request("GET", "/v1/events", "reader")
        if events := json.loads(answer)["events"]:
            break
        await asyncio.sleep(0.2)
    check("markup in stored text", bool(events), "no event fired, so its pages were not tried")
    event = events[0]["id"] if events else "none"
    await target.request(
        "POST",
        f"/v1/events/{quote(event, safe='')}/actions",
        "editor",
        json={"action": "acknowledge", "actor": PAYLOADS[0]},
    )
    ids = [quote(f"{number} {payload}", safe="") for number, payload in enumerate(PAYLOADS)]
    for number, payload in enumerate(PAYLOADS):
        values = {
            "id": ids[number],
            "other": ids[0],
            "event": quote(event, safe=""),
            "raw": quote(payload, safe=""),
            "source": quote(f"{payload} {number}", safe=""),
            "desk": desks[number],
        }
        for page in (*PAGES, *EDITOR_PAGES):
            caller = "editor" if page in EDITOR_PAGES else "reader"
            _, headers, body = await target.request(
                "GET", page.format(**values), caller, headers={"Accept": "text/html"}
            )
            text = body.decode()
            check(
                "markup in stored text", not UNSAFE.search(text), f"{page} {payload}: {UNSAFE.search(text)}"
            )
            policy = headers.get("Content-Security-Policy", "")
            safe = (
                "default-src 'self'" in policy
                and "unsafe" not in policy
                and headers.get("X-Content-Type-Options") == "nosniff"
            )
            check(
                "headers of pages", safe and headers.get("X-Frame-Options") == "DENY", f"{page}: {policy!r}"
            )
            check(
                "headers of pages",
                "<script>" not in text and " onclick=" not in text and "style=" not in text,
                f"{page}: inline script or style",
            )
    _, headers, atom = await target.request("GET", "/v1/events.atom", "reader")
    check("markup in stored text", len(ElementTree.fromstring(atom)) > 0, "the Atom feed is not XML")
    check(
        "markup in stored text",
        headers.get("X-Content-Type-Options") == "nosniff",
        "the Atom feed is sniffed",
    )
    for after in (
        "1-0%0aevent:%20fired%0adata:%20{}",
        "%00",
        "0-0",
        "-",
        "9" * 19 + "-" + "9" * 19,
        "%E2%80%A8",
        "a" * 40,
    ):
        line = f"GET /v1/events/stream?after={after} HTTP/1.1\r\nHost: localhost\r\n"
        key = f"Authorization: Bearer {target.keys['reader']}\r\n\r\n"
        answer = await target.send((line + key).encode(), timeout_s=1.0)
        forged = b"event: fired\ndata: {}" in answer
        check("markup in stored text", not forged, f"the stream repeats {after}")
