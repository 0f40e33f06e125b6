"""Idempotency-Key: one request, one answer, for each API key."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.fake_service import Client, FakeService, serving

pytestmark = pytest.mark.integration

WATCH = {"name": "floods", "query": "term=flood"}
OTHER = {"name": "fires", "query": "term=fire"}


async def test_a_repeated_request_gets_the_first_answer(client: Client) -> None:
    """Status, address and body, although the watch exists by then; quotes around the key do not count."""
    first = await client.post("/v1/watches", json=WATCH, headers={"Idempotency-Key": '"a-1"'})
    again = await client.post("/v1/watches", json=WATCH, headers={"Idempotency-Key": "a-1"})
    without = await client.post("/v1/watches", json=WATCH)

    assert (first.status, again.status, without.status) == (201, 201, 200)
    assert await again.read() == await first.read()
    assert again.headers["Location"] == first.headers["Location"]
    assert [r.headers.get("Idempotency-Replayed") for r in (first, again)] == [None, "true"]


async def test_a_key_with_another_request_is_422(client: Client) -> None:
    """Another body or another address; nothing is created."""
    headers = {"Idempotency-Key": "a-1"}
    await client.post("/v1/watches", json=WATCH, headers=headers)
    other_body = await client.post("/v1/watches", json=OTHER, headers=headers)
    other_path = await client.post("/v1/desks", json={"name": "floods"}, headers=headers)
    problem = await other_body.json(content_type="application/problem+json")

    assert (other_body.status, other_path.status) == (422, 422)
    assert problem["code"] == "idempotency_key_reused"
    assert problem["errors"] == [
        {"detail": problem["detail"], "code": "idempotency_key_reused", "header": "Idempotency-Key"}
    ]
    assert len((await (await client.get("/v1/watches")).json())["watches"]) == 1


async def test_errors_are_not_recorded(client: Client) -> None:
    """The corrected request may use the key again."""
    headers = {"Idempotency-Key": "a-1"}
    refused = await client.post("/v1/watches", json={"name": "floods"}, headers=headers)
    corrected = await client.post("/v1/watches", json=WATCH, headers=headers)

    assert (refused.status, corrected.status) == (400, 201)


async def test_one_of_simultaneous_requests_acts(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the first one is in its handler, nine others are 409 and one with another body is 422."""
    service, entered, may_finish = FakeService(), asyncio.Event(), asyncio.Event()
    subscribe, calls = service.events.subscriptions.subscribe, list[Any]()

    async def slow_subscribe(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        entered.set()
        await may_finish.wait()
        return await subscribe(*args, **kwargs)

    monkeypatch.setattr(service.events.subscriptions, "subscribe", slow_subscribe)
    hook, headers = {"url": "https://hooks.example/a"}, {"Idempotency-Key": "k"}
    async with serving(service) as client:
        first = asyncio.create_task(client.post("/v1/webhooks", json=hook, headers=headers))
        await entered.wait()
        others = await asyncio.gather(
            *(client.post("/v1/webhooks", json=hook, headers=headers) for _ in range(9))
        )
        changed = await client.post("/v1/webhooks", json={"url": "https://b.example/"}, headers=headers)
        may_finish.set()
        created = await first
        again = await client.post("/v1/webhooks", json=hook, headers=headers)
        problem = await others[0].json(content_type="application/problem+json")
        assert await again.read() == await created.read()

    assert {(answer.status, answer.headers["Retry-After"]) for answer in others} == {(409, "1")}
    assert problem["code"] == "idempotency_key_in_use"
    assert (changed.status, created.status, again.status, len(calls)) == (422, 201, 201, 1)


async def test_an_unexpected_failure_releases_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The repeated request acts, at once."""
    service = FakeService()
    create = service.events.desks.create
    monkeypatch.setattr(service.events.desks, "create", raise_error)
    async with serving(service) as client:
        failed = await client.post("/v1/watches", json=WATCH, headers={"Idempotency-Key": "k"})
        monkeypatch.setattr(service.events.desks, "create", create)
        repeated = await client.post("/v1/watches", json=WATCH, headers={"Idempotency-Key": "k"})

    assert (failed.status, repeated.status) == (500, 201)


async def raise_error(*_args: Any, **_kwargs: Any) -> None:
    """Fail as a defect would."""
    raise RuntimeError("a defect")


@pytest.mark.parametrize("key", ["", '""', "x" * 256, "a\tb", "ключ"])
async def test_an_invalid_key_is_refused(client: Client, key: str) -> None:
    """400 that names the header; the same for a second header."""
    response = await client.post("/v1/watches", json=WATCH, headers={"Idempotency-Key": key})
    problem = await response.json(content_type="application/problem+json")

    assert (response.status, problem["errors"][0]["header"]) == (400, "Idempotency-Key")


async def test_two_api_keys_have_independent_keys() -> None:
    """Neither gets the answer of the other."""
    service = FakeService()
    texts = [(await service.edge.api_keys.add(name, "editor"))[1] for name in ("One", "Two")]
    async with serving(service) as client:
        answers = [
            await client.post(
                "/v1/watches", json=body,
                headers={"Idempotency-Key": "k", "Authorization": f"Bearer {text}"},
            )
            for text, body in zip(texts, (WATCH, OTHER), strict=True)
        ]  # fmt: skip

    assert [answer.status for answer in answers] == [201, 201]
    assert all("Idempotency-Replayed" not in answer.headers for answer in answers)
