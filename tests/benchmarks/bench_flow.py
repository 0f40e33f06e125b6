"""Modules, functions and store round trips of the main flows (``scripts/bench flow [--list FLOW]``).

One process with an embedded store and the HTTP server; after a warm-up a profile hook records one execution
of each flow: a new article, a near-duplicate, related articles, and an event from the change to the webhook.
Counts are of this package only. A round trip is a write to the socket of the store.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib.util
import json
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from aiohttp import ClientSession, web

from aggregator.app import open_service
from aggregator.http.server import serve
from aggregator.settings import Settings

PACKAGES = tuple(
    str(Path(spec.origin or "").parent) + "/"
    for spec in map(importlib.util.find_spec, ("aggregator", "aggregator_client"))
    if spec is not None
)
SENTENCE = (
    "the harbor council voted on Monday to rebuild the northern breakwater after three winters of storms "
    "that damaged boats and closed the ferry line while fishermen asked for a lower wall and engineers "
    "presented drawings of a longer one with gates for spring tides and a road on top for lorries from "
    "the cannery whose owner offered to pay a tenth of the cost if the work begins before the autumn"
)


class Recorder:
    """Profile hook that collects the executed code of the package and the writes to unix sockets."""

    def __init__(self) -> None:
        self.codes: set[CodeType] = set()
        self.calls = self.round_trips = 0

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        """Count one call; the signature is that of ``sys.setprofile``."""
        if event != "call":
            return
        code = frame.f_code
        if code.co_filename.startswith(PACKAGES):
            self.codes.add(code)
            self.calls += 1
        elif code.co_name == "write" and code.co_filename.endswith("selector_events.py"):
            self.round_trips += frame.f_locals["self"]._sock.family == socket.AF_UNIX

    def figures(self) -> dict[str, int]:
        """Distinct modules and functions, calls, store round trips; comprehensions are no functions."""
        functions = {c for c in self.codes if not c.co_name.startswith("<")}
        modules = {c.co_filename for c in functions}
        return {
            "modules": len(modules),
            "functions": len(functions),
            "calls": self.calls,
            "round_trips": self.round_trips,
        }

    def listing(self) -> list[str]:
        """``module:function`` of everything that ran."""
        return sorted(f"{Path(c.co_filename)}:{c.co_qualname}" for c in self.codes)


async def record(flow: Callable[[], Awaitable[object]]) -> Recorder:
    """Run ``flow`` with the hook."""
    recorder = Recorder()
    sys.setprofile(recorder)
    try:
        await flow()
    finally:
        sys.setprofile(None)
    return recorder


def article(number: int, copy: bool = False, unlike: bool = False) -> dict[str, Any]:
    """An invented article of 70 words; ``copy``: three words are others; ``unlike``: no word is another's."""
    words = [f"{word}{number}" if unlike or i % 3 == 0 else word for i, word in enumerate(SENTENCE.split())]
    if copy:
        words[10:13] = ["yesterday", "evening", "finally"]
    title = "" if unlike else f"Harbor council {number} votes on breakwater {number}"
    return {"id": f"a{number}{'c' * copy}", "title": title, "text": " ".join(words), "lang": "en"}


def instance(name: str) -> Any:
    """The only object whose class has this name."""
    (found,) = (o for o in gc.get_objects() if type(o).__name__ == name)
    return found


async def measure() -> dict[str, Recorder]:
    """Start the service, warm it up and record each flow."""
    recorders: dict[str, Recorder] = {}
    with tempfile.TemporaryDirectory() as directory:
        settings = Settings(data_dir=directory, webhook_allow_private_addresses=True)
        async with open_service(settings) as service:
            ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            listener, stop = socket.create_server(("127.0.0.1", 0)), asyncio.Event()
            server = asyncio.create_task(serve(service, listener, on_ready=ready.set_result, stop=stop))
            base = f"http://127.0.0.1:{await ready}"
            async with ClientSession() as session:

                async def post(body: dict[str, Any], path: str = "/v1/articles") -> Any:
                    async with session.post(base + path, json=body) as response:
                        answer = await response.json()
                        assert response.status < 300, answer
                        return answer

                async def get(path: str) -> Any:
                    async with session.get(base + path) as response:
                        assert response.status == 200, await response.text()
                        return await response.json()

                for number in range(1, 40):
                    await post(article(number))
                    await post(article(number, copy=True))
                    await get(f"/v1/articles/a{number}/related")
                recorders["new"] = await record(lambda: post(article(49, unlike=True)))
                await post(article(50))
                recorders["duplicate"] = await record(lambda: post(article(50, copy=True)))
                recorders["related"] = await record(lambda: get("/v1/articles/a7/related"))
                recorders["webhook"] = await record_webhook(post)
            stop.set()
            await server
    return recorders


async def record_webhook(post: Callable[[dict[str, Any], str], Awaitable[Any]]) -> Recorder:
    """Let an event fire and record its delivery to a subscribed receiver."""
    received: list[Any] = []

    async def receive(request: web.Request) -> web.Response:
        received.append(await request.json())
        return web.Response()

    app = web.Application()
    app.router.add_post("/hook", receive)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    await post({"url": url}, "/v1/webhooks")
    for number in range(30):
        title = f"Dam of Lake Orrin bursts, flood reaches Thornby street {number} at {number} o'clock"
        await post({"id": f"e{number}", "title": title, "source": f"outlet {number}.example"}, "/v1/articles")
    dispatcher = instance("WebhookDispatcher")
    await dispatcher.run_once()
    await instance("DetectorTask").run_once()
    recorder = await record(dispatcher.run_once)
    assert received, "no event fired"
    await runner.cleanup()
    return recorder


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench flow", description=__doc__)
    parser.add_argument(
        "--list", metavar="FLOW", help="print what ran in this flow: new, duplicate, related, webhook"
    )
    args = parser.parse_args()
    recorders = asyncio.run(measure())
    for name, recorder in recorders.items():
        print(json.dumps({"flow": name, **recorder.figures()}))
    if args.list:
        print("\n".join(recorders[args.list].listing()))


if __name__ == "__main__":
    main()
