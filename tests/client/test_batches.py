"""Batches: partial answers, and batches that are too large."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web

from aggregator_client import Client, Unavailable
from tests.client import misbehaving
from tests.client.test_connection import VERDICT

BUSY: dict[str, Any] = {
    "type": "about:blank",
    "title": "Busy",
    "status": 503,
    "detail": "Busy.",
    "code": "store_unavailable",
}
LARGE = {
    **BUSY,
    "status": 413,
    "code": "too_large",
    "detail": "body: more than 2 lines (setting max_batch_lines).",
}


def articles(count: int) -> list[dict[str, str]]:
    """Articles with the ids 0 to ``count`` - 1."""
    return [{"id": str(number), "text": "t"} for number in range(count)]


@pytest.mark.integration
async def test_only_lines_without_a_verdict_are_sent_again() -> None:
    """One failed line of three costs no other line its verdict."""
    batches: list[list[str]] = []

    async def handler(request: web.Request) -> web.Response:
        ids = [json.loads(line)["id"] for line in (await request.read()).splitlines()]
        batches.append(ids)
        lines = [
            {"error": BUSY} if id_ == "1" and len(batches) < 3 else {**VERDICT, "id": id_} for id_ in ids
        ]
        return web.Response(body=b"".join(json.dumps(line).encode() + b"\n" for line in lines))

    async with misbehaving.serving(handler) as url, Client(url, batch_deadline_s=60) as client:
        decisions = await client.submit_many(articles(3))

    assert batches == [["0", "1", "2"], ["1"], ["1"]]
    assert [decision.id for decision in decisions] == ["0", "1", "2"]


@pytest.mark.integration
@pytest.mark.usefixtures("virtual_time")
async def test_a_failed_batch_loses_no_decision() -> None:
    """Failing closed, the exception has those so far; all articles are counted, if their number is known."""

    async def handler(request: web.Request) -> web.Response:
        ids = [json.loads(line)["id"] for line in (await request.read()).splitlines()]
        lines = [{"error": BUSY} if int(id_) in (257, 300) else {**VERDICT, "id": id_} for id_ in ids]
        return web.Response(body=b"".join(json.dumps(line).encode() + b"\n" for line in lines))

    for sent, unchecked in ((articles(600), 90), (iter(articles(600)), 2)):
        async with (
            misbehaving.serving(handler) as url,
            Client(url, batch_deadline_s=30, on_failure="closed") as client,
        ):
            with pytest.raises(Unavailable, match=r"^Busy\.$") as raised:
                await client.submit_many(sent)

        decisions = raised.value.decisions
        assert [d.id or d.verdict for d in decisions] == [
            "unknown" if n in (257, 300) else str(n) for n in range(512)
        ]
        assert (client.counts["checked"], client.counts["unchecked"]) == (510, unchecked)


@pytest.mark.integration
@pytest.mark.usefixtures("virtual_time")
async def test_lines_with_a_verdict_keep_it_when_others_get_none() -> None:
    """Failing open, only the failed line is unknown."""

    async def handler(request: web.Request) -> web.Response:
        ids = [json.loads(line)["id"] for line in (await request.read()).splitlines()]
        lines = [{"error": BUSY} if id_ == "1" else {**VERDICT, "id": id_} for id_ in ids]
        return web.Response(body=b"".join(json.dumps(line).encode() + b"\n" for line in lines))

    async with misbehaving.serving(handler) as url, Client(url, batch_deadline_s=30) as client:
        decisions = await client.submit_many(articles(3))

    assert [decision.verdict for decision in decisions] == ["new", "unknown", "new"]
    assert decisions[1].problem == "Busy."


@pytest.mark.integration
async def test_a_batch_that_is_too_large_is_halved() -> None:
    """Both forms of the limit: lines and bytes; a single article that is too large is refused."""

    async def handler(request: web.Request) -> web.Response:
        lines = (await request.read()).splitlines()
        if any(b'"7"' in line for line in lines) and len(lines) <= 2:
            return web.json_response(LARGE, status=413)
        if len(lines) > 2:
            answers: list[dict[str, Any]] = [{"error": LARGE}]
        else:
            answers = [{**VERDICT, "id": json.loads(line)["id"]} for line in lines]
        return web.Response(body=b"".join(json.dumps(answer).encode() + b"\n" for answer in answers))

    async with misbehaving.serving(handler) as url, Client(url, batch_deadline_s=60) as client:
        decisions = await client.submit_many(articles(9))

    assert [decision.id for decision in decisions] == [*"0123456", None, "8"]
    assert (decisions[7].verdict, decisions[7].kind) == ("refused", "refused")
