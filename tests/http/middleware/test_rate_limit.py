"""Headers of the rate limit of a key."""

from __future__ import annotations

from aggregator.settings import Settings
from tests.support.fake_service import FakeService, serving


async def test_answers_state_the_limit_and_what_is_left() -> None:
    """The quota of 2 s, less with each request; a refused one has nothing left and says when to retry."""
    service = FakeService(Settings(store_url="memory", rate_limit_per_second=2.0))
    _, text = await service.api_keys.add("Reader", "reader")
    async with serving(service) as client:
        answers = [
            await client.get("/v1/events", headers={"Authorization": f"Bearer {text}"}) for _ in range(5)
        ]

    assert [answer.status for answer in answers] == [200] * 4 + [429]
    assert {answer.headers["RateLimit-Policy"] for answer in answers} == {'"key";q=4;w=2'}
    assert [answer.headers["RateLimit"] for answer in answers] == [
        '"key";r=3;t=1', '"key";r=2;t=1', '"key";r=1;t=2', '"key";r=0;t=2', '"key";r=0;t=2',
    ]  # fmt: skip
    assert answers[-1].headers["Retry-After"] == "1"


async def test_without_a_limit_or_a_key_nothing_is_stated() -> None:
    """There is no limit without keys, and none with the setting 0."""
    limited = FakeService(Settings(store_url="memory", rate_limit_per_second=2.0))
    unlimited = FakeService(Settings(store_url="memory", rate_limit_per_second=0.0))
    _, text = await unlimited.api_keys.add("Reader", "reader")
    async with serving(limited) as client:
        anonymous = await client.get("/v1/events")
    async with serving(unlimited) as client:
        keyed = await client.get("/v1/events", headers={"Authorization": f"Bearer {text}"})

    assert (anonymous.status, keyed.status) == (200, 200)
    assert not {"RateLimit", "RateLimit-Policy"} & {*anonymous.headers, *keyed.headers}
