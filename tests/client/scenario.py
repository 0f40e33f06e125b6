"""The scenario of test_js_client.py with the Python client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from datetime import UTC, datetime
from typing import Any

from aggregator_client import Client, Decision, Unavailable
from aggregator_client.errors import InvalidInput, NotFound

Article = Mapping[str, Any]
# The names and statuses that the JavaScript client gives the same errors.
NOW = datetime.now(UTC)
STATUSES: dict[type[Exception], int] = {NotFound: 404, InvalidInput: 400, OSError: 507}


def short(decision: Decision) -> list[Any]:
    """What both clients have."""
    return [decision.verdict, decision.keep, decision.id, decision.canonical_id, decision.kind]


async def rejection(call: Awaitable[object]) -> Any:
    """The error that a call raises."""
    try:
        await call
    except Unavailable as error:
        return ["Unavailable", error.kind]
    except RuntimeError:
        return ["Error", None]
    except (NotFound, InvalidInput, OSError) as error:
        return ["Rejected", STATUSES[type(error)]]
    return "none"


async def run(url: str, deadline_s: float, articles: Mapping[str, Any]) -> dict[str, Any]:
    """The result of each step."""
    original, copy, other = articles["original"], articles["copy"], articles["other"]
    result: dict[str, Any] = {}
    async with (
        Client(url, deadline_s=deadline_s, concurrency=4) as client,
        Client(url, deadline_s=deadline_s, timezone="Europe/Berlin") as local,
        Client(url, deadline_s=0.3) as impatient,
        Client(url, deadline_s=0.3, on_failure="closed") as strict,
    ):

        async def failed_insert() -> None:
            async with client.reservation({"id": "undone", "title": "Undone", "text": "A note."}):
                raise OSError("disk full")

        result["ready"] = await client.ready()
        result["check"] = short(await client.check(original))
        result["unstored"] = await rejection(client.get(original["id"]))
        result["new"] = short(await client.submit(original))
        result["duplicate"] = short(await client.submit(copy))
        result["batch"] = [short(d) for d in await client.submit_many([copy, other, {"id": "empty"}])]
        lost = await client.submit(articles["lost"])
        result["lost_answer"] = short(lost)
        again = await client.submit(articles["lost"])
        result["not_undone"] = again.stored
        result["lost_undone"] = [await client.undo(lost), *await rejection(client.get("lost"))]
        (lost,) = await client.submit_many([articles["lost"]])
        result["lost_batch_undone"] = [await client.undo(lost), *await rejection(client.get("lost"))]
        result["timeout"] = short(await impatient.submit(articles["hanging"]))
        result["timeout_closed"] = await rejection(strict.submit(articles["hanging"]))
        result["refused"] = short(await client.submit({"id": "empty"}))
        unknown = {"id": "policy", "title": "Ferry", "policy": "defualt"}
        result["policy"] = [
            short(await client.submit(unknown)), short((await client.submit_many([unknown]))[0])
        ]  # fmt: skip
        result["related"] = [item.id for item in await client.related(original["id"])]
        result["related_to"] = [item.id for item in await client.related_to({"text": original["text"]})]
        result["related_to_ids"] = (
            await client.related_to_ids({original["id"]: NOW, "absent": NOW})
        ).not_found
        many = [original["id"], *(f"absent-{n}" for n in range(120)), original["id"]]
        each = await client.related_to_each(many, limit=3)
        result["related_to_each"] = [[found.id for found in each.lists], len(each.not_found)]
        result["related_limit"] = len(
            await client.related(original["id"], limit=1, source=["none", "nobody"])
        )
        result["search"] = sorted(a.id for a in (await client.search("Brackwater ferry")).articles)
        result["copies"] = [article.id for article in (await client.copies(copy["id"])).copies]
        result["explain"] = (await client.explain(original["id"], copy["id"])).is_copy
        result["events"] = (await client.events("status=breaking")).events
        result["undone"] = await rejection(failed_insert())
        result["after_undo"] = await rejection(client.get("undone"))
        result["delete"] = [await client.delete(other["id"]), await client.delete(other["id"])]
        result["take_down"] = await client.delete(copy["id"], take_down=True)
        result["taken_down"] = [
            short(await client.submit(copy)), short((await client.submit_many([copy]))[0])
        ]  # fmt: skip
        result["lifted"] = [await client.delete(copy["id"], take_down=False) for _ in range(2)]
        burst = [client.check({"id": f"burst-{n}", "text": original["text"]}) for n in range(12)]
        result["burst"] = [decision.verdict for decision in await asyncio.gather(*burst)]
        for name, reader in (("dates", client), ("local_dates", local)):
            dated = [
                {"id": f"{name}-{n}", "title": f"Day {n}", "published_at": date}
                for n, date in enumerate(articles["dates"])
            ]
            stored = [await reader.get(answer.id or "") for answer in await reader.submit_many(dated)]
            times = [article.published_at and article.published_at.timestamp() for article in stored]
            result[name] = [times, reader.counts["unread_date"]]
        result["counts"] = dict(client.counts)
    result["closed"] = [await rejection(client.submit(original)), await rejection(client.get("a"))]
    return result
