"""Demonstration: invented articles posted to a running service, as a crawler would, and what came of them.

``aggregator serve --demo`` calls it with the articles of the server.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aggregator_client.client import Client
from aggregator_client.errors import NotFound
from aggregator_client.wire import EventOut, VerdictOut

EVENT_TIMEOUT_S = 20.0
# A machine that is busy with the start answers 503 at first: a request is repeated for so long.
REPEAT_S = 120.0
EVENT_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class DemoReport:
    """The answers in the order of sending, and the events at the end."""

    answers: Sequence[VerdictOut]
    events: Sequence[EventOut]

    @property
    def verdict_counts(self) -> Counter[str]:
        """Number of articles per verdict."""
        return Counter(answer.verdict for answer in self.answers)

    def format_text(self, url: str) -> str:
        """A short summary for a terminal, with URLs to open."""
        counts = self.verdict_counts
        counted = ", ".join(f"{counts[name]} {name}" for name in ("new", "related", "duplicate"))
        lines = [f"demonstration: {len(self.answers)} articles sent: {counted}."]
        if not self.answers:
            lines = ["demonstration: its articles are stored, with the times of the first start."]
        for verdict, relation in (("duplicate", "repeats"), ("related", "covers the same story as")):
            example = self._first_example(verdict)
            if example is not None:
                lines.append(f"  {verdict}: {example[0]} {relation} {example[1]}")
                lines.append(f"    {url}/v1/articles/{example[0]}")
        for event in self.events:
            state = "ended" if event.status == "closed" else f"{event.size} items so far"
            lines.append(f"  event: {event.title} ({state}, {len(event.sources)} sources)")
            lines.append(f"    {url}/events/{event.id}")
        if not self.events:
            lines.append("  no event was detected.")
        return "\n".join([*lines, *self._format_places(url)])

    def _format_places(self, url: str) -> list[str]:
        places = []
        stories = Counter(event.story_id for event in self.events)
        if stories and max(stories.values()) > 1:
            places.append(("storyline of two events", f"/stories/{stories.most_common(1)[0][0]}"))
        copied = next((a.duplicate_of for a in self.answers if a.duplicate_of), None)
        if copied:
            places.append(("who published a text first", f"/articles/{copied.canonical_id}/provenance"))
        places += [
            ("search", "/search?q=dam"),
            ("outlets and their copies", "/sources"),
            ("editors' page, start here", "/"),
            ("API", "/docs"),
        ]
        return [f"  {name}: {url}{path}" for name, path in places]

    def _first_example(self, verdict: str) -> tuple[str, str] | None:
        """Ids of the first such article other than exact copies, and of its match."""
        for answer in self.answers:
            match = answer.duplicate_of
            if answer.verdict != verdict or (match and match.rule == "exact"):
                continue
            if match:
                return answer.id, match.canonical_id
            if answer.related:
                return answer.id, answer.related[0].id
        return None


async def replay(
    url: str, articles: Sequence[Mapping[str, Any]], *, pause_s: float = 0.0, key: str = ""
) -> DemoReport:
    """Post the articles that are not stored, and wait until an event changes. Raises ClientError."""
    async with Client(url, key=key, deadline_s=REPEAT_S, on_failure="closed") as client:
        answers, before = [], (await client.events()).events
        for article in articles:
            with suppress(NotFound):
                if await client.get(article["id"]):  # with the times of the start that sent it
                    continue
            answer = (await client.submit(article)).answer
            if answer is not None:
                answers.append(answer)
            await asyncio.sleep(pause_s)
        return DemoReport(answers, await _wait_for_events(client, before) if answers else before)


async def _wait_for_events(client: Client, before: Sequence[EventOut]) -> Sequence[EventOut]:
    """The events as soon as one is new or has another size than in ``before``, or after the time limit."""
    deadline_s = time.monotonic() + EVENT_TIMEOUT_S
    sizes_before = {event.id: event.size for event in before}
    while True:
        events = (await client.events()).events
        sizes = {event.id: event.size for event in events}
        if sizes != sizes_before or time.monotonic() > deadline_s:
            return events
        await asyncio.sleep(EVENT_POLL_S)
