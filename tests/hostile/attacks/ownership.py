"""A key bound to one source against the articles of another, from outside."""

from __future__ import annotations

import asyncio
import itertools
import json

from tests.hostile.attacks.running import BOUND_SOURCE, Target
from tests.http.test_source_bound_keys import ATTEMPTS, ID, RADIO, TEXT, TITLE, URL
from tests.support.factories import story

# Ids that somebody may take for the stored one; each is refused or names a separate article.
VARIANTS = (
    "RADIO.example/locks/7", "radio.example/locks/7/", "radio.example/locks/%37", "radio.example//locks/7",
    "radio.example/locks/7\u200b", "radio.example/locks/\uff17", "radio.example/locks/7\u0301",
    "radio.example./locks/7",
    "radio.example/locks/7 ", " radio.example/locks/7", "radio.example/locks/7\u00a0",
    "radio.example/locks/./7",
    "radio.example/locks/7\x00", "radio.example/locks/7\n", "radio.example/locks/x/../7",
    "www.radio.example/locks/7",
    URL, "radio.example%2Flocks%2F7", "radio.example:80/locks/7", "radio.example/locks/7#a",
    "radio.example/locks/7?",
)  # fmt: skip
URLS = (
    URL, URL + "/", URL + "#a", URL.upper(), "http://radio.example:80/locks/7",
    "https://www.radio.example/locks/7",
    "https://radio.example/locks/./7", "https://radio.example/locks/%37",
    "https://user@radio.example/locks/7",
    "HTTPS://RADIO.EXAMPLE/locks/7?utm_source=a&fbclid=b", "https://radio.example./locks/7",
    "//radio.example/locks/7",
    "https://radio.example\\locks\\7", "https://radio.example/locks/7?", "https://radio.example:443/locks/7",
    "https://r\u00e0dio.example/locks/7", "https://radio.example/locks/7;a",
    "https://\uff52adio.example/locks/7",
)  # fmt: skip
# Bodies that one JSON reader may take for the stored article and another one not; TEXT is replaced by a text.
BODIES = (
    b'{"id": "ID", "text": "TEXT", "source": "OWN", "s\\u006furce": "Radio"}',
    b'{"id": "ID", "text": "TEXT", "s\\u006furce": "Radio"}',
    b'{"\\u0069d": "ID", "text": "TEXT"}',
    b'{"id": "own", "\\u0069d": "ID", "text": "TEXT"}',
    b'{"id": "ID", "id": "own", "text": "TEXT"}',
    b'\xef\xbb\xbf{"id": "ID", "text": "TEXT"}',
    b'{"id": "ID", "text": "TEXT", "text": "A b."}',
    b'{"id": "ID", "text": "TEXT", "source": ["OWN"]}',
    b'{"id": "ID", "text": "TEXT", "source": "Radio,OWN"}',
    b'{"id": "ID", "text": "TEXT", "source": "OWN\\u0000"}',
    b'{"id": "ID", "text": "TEXT"} {"id": "own"}',
    b'{"id": "ID", "text": "TEXT", "published_at": "1990-01-01T00:00:00Z"}',
    b'[{"id": "ID", "text": "TEXT"}]',
    b'{"id": "ID", "text": "TEXT", "html": "<p>A b.</p>"}',
    b'{"ID": "ID", "id": "ID", "text": "TEXT"}',
)
BODY_ENCODINGS = ("utf-16", "utf-32", "utf-7")
PAIRS = 60


async def bound_keys(target: Target) -> None:
    """Every attempt of the test's table and more: nothing is revealed, and the article stays as it was."""
    check = target.findings.check
    status, _, _ = await target.request("POST", "/v1/articles", "admin", json=RADIO)
    check("source-bound keys", status == 201, f"the article of Radio: {status}")
    _, _, before = await target.request("GET", f"/v1/articles/{ID}", "admin")
    attempts = dict(ATTEMPTS)
    for number, id_ in enumerate(VARIANTS):
        body = json.dumps({"id": id_, "text": TEXT, "title": "Forged", "source": BOUND_SOURCE}).encode()
        attempts[f"id {id_!r}"] = ("POST", "/v1/articles", body)
        attempts[f"batch id {id_!r}"] = ("POST", "/v1/articles/batch", body)
        attempts[f"delete {number}"] = (
            "DELETE",
            "/v1/articles/" + "".join(f"%{b:02x}" for b in id_.encode()),
            b"",
        )
    for url in URLS:
        body = json.dumps({"url": url, "text": TEXT, "title": "Forged", "source": BOUND_SOURCE}).encode()
        attempts[f"url {url!r}"] = ("POST", "/v1/articles", body)
        attempts[f"dry run {url!r}"] = ("POST", "/v1/articles?dry_run=true", body)
    for template, text in itertools.product(BODIES, (TEXT, TEXT.upper(), story(7))):
        body = template.replace(b"ID", ID.encode()).replace(b"OWN", BOUND_SOURCE.encode())
        body = body.replace(b"TEXT", text.encode())
        for path in ("/v1/articles", "/v1/articles?dry_run=true", "/v1/articles/batch"):
            attempts[f"{path} {template!r} {text[:9]}"] = ("POST", path, body)
        for encoding in BODY_ENCODINGS:
            encoded = body.decode("utf-8").encode(encoding)
            attempts[f"{encoding} {template!r} {text[:9]}"] = ("POST", "/v1/articles", encoded)
    for name, (method, path, data) in attempts.items():
        status, _, answer = await target.request(method, path, "bound", data=data or None)
        _, _, after = await target.request("GET", f"/v1/articles/{ID}", "admin")
        check("source-bound keys", after == before, f"{name} changed the article: {status}")
        check(
            "source-bound keys",
            TITLE.encode() not in answer and status < 500,
            f"{name}: {status} {answer[:80]!r}",
        )
    for number in range(PAIRS):  # both sources claim an id at the same moment
        claimed = {"id": f"claimed-{number}", "text": story(number)}
        (bound, _, _), (other, _, _) = await asyncio.gather(
            target.request("POST", "/v1/articles", "bound", json={**claimed, "source": BOUND_SOURCE}),
            target.request("POST", "/v1/articles", "admin", json={**claimed, "source": "Radio",
            "text": story(number + 500)}),
        )  # fmt: skip
        _, _, first = await target.request("GET", f"/v1/articles/claimed-{number}", "admin")
        second_source = ({BOUND_SOURCE, "Radio"} - {json.loads(first)["source"]}).pop()
        path = f"/v1/articles/{second_source}:claimed-{number}"
        _, _, second = await target.request("GET", path.replace(" ", "%20"), "admin")
        is_right = {bound, other} <= {200, 201} and json.loads(second).get("source") == second_source
        check("source-bound keys", is_right, f"claimed at the same moment: {bound}, {other}, {second[:80]!r}")


async def undo(target: Target) -> None:
    """A bound key posts what another source has, and takes it back: the other's article stays as it is."""
    check = target.findings.check
    body = {"text": story(8), "title": "Stored first", "source": "Radio", "id": "undo/radio"}
    await target.request("POST", "/v1/articles", "admin", json=body)
    _, _, before = await target.request("GET", "/v1/articles/undo/radio", "admin")
    own = {"id": "undo/own", "text": story(8), "published_at": "1990-01-01T00:00:00Z"}
    steps: tuple[tuple[str, str, object, int], ...] = (
        ("POST", "/v1/articles", own, 200),
        ("GET", "/v1/articles/undo/own/copies", None, 403),
        ("GET", "/v1/articles/undo/own/related", None, 403),
        ("DELETE", "/v1/articles/undo/radio", None, 403),
        ("DELETE", "/v1/articles/undo/own", None, 204),
        ("DELETE", "/v1/articles/undo/own", None, 404),
        ("DELETE", "/v1/articles/undo/radio", None, 403),
    )
    for method, path, sent, expected in steps:
        status, _, answer = await target.request(method, path, "bound", json=sent)
        _, _, after = await target.request("GET", "/v1/articles/undo/radio", "admin")
        is_right = status == expected and after == before and b"Stored first" not in answer
        check("source-bound keys", is_right, f"{method} {path}: {status} {answer[:80]!r}")
