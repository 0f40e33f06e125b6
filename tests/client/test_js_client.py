"""The JavaScript client: the same scenario as the Python client, its types, and its package file.

Both clients talk to a live service through a proxy that loses an answer, lets a request hang, and counts the
requests in flight.
"""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

import aggregator
from aggregator.app import open_service
from aggregator.http.server import make_app
from aggregator.settings import Settings
from aggregator_client.client import Client
from aggregator_client.dates import ZONES, parse_feed_date, time_zone
from tests.client import misbehaving, scenario
from tests.client.test_dates import FORMS, READ, UNREAD
from tests.support.factories import edited, story
from tests.support.hang_limit import HANG_LIMIT_S

pytestmark = pytest.mark.integration

SCRIPT = Path(__file__).with_name("scenario.mjs")
TYPE_CHECK = (
    *("--noEmit", "--strict", "--allowJs", "--checkJs", "--target", "es2022", "--lib", "es2022,dom"),
    *("--module", "node16", "--moduleResolution", "node16", "--typeRoots", "none"),
)
PACKAGE = Path(__file__).parents[2] / "packages" / "client" / "js"
DATES = (
    "Thu, 05 Mar 2026 15:07:09 +0100",
    "2026-03-05T14:07:09Z",
    1772719629,
    "2026-03-05 15:07:09",
    "gestern",
    "",
)
ARTICLES: dict[str, Any] = {
    "original": {"id": "a", "title": "Ferry of Brackwater runs again", "text": story(1)},
    "copy": {"id": "b", "title": "Ferry runs", "text": edited(story(1), 2)},
    "other": {"id": "c", "title": "Brackwater gets a ferry", "text": story(3)},
    "lost": {"id": "lost", "title": "Lost answer", "text": story(4)},
    "hanging": {"id": "hanging", "title": "Hangs", "text": story(5)},
    "dates": DATES,
}
TIME = 1772719629
EXPECTED = {
    "ready": True,
    "check": ["new", True, "a", None, ""],
    "unstored": ["Rejected", 404],
    "new": ["new", True, "a", None, ""],
    "duplicate": ["duplicate", False, "b", "a", ""],
    "batch": [
        ["duplicate", False, "b", "a", ""],
        ["new", True, "c", None, ""],
        ["refused", True, None, None, "refused"],
    ],
    "lost_answer": ["new", True, "lost", None, ""],
    "lost_undone": [True, "Rejected", 404],
    "lost_batch_undone": [True, "Rejected", 404],
    "not_undone": False,
    "timeout": ["unknown", True, None, None, "timeout"],
    "timeout_closed": ["Unavailable", "timeout"],
    "refused": ["refused", True, None, None, "refused"],
    "policy": [["unknown", True, None, None, "policy"]] * 2,
    "related_to_ids": ["absent"],
    "related_to_each": [["a"], 120],
    "related_limit": 0,
    "search": ["a", "b", "c"],
    "copies": ["a", "b"],
    "explain": True,
    "events": [],
    "undone": ["Rejected", 507],
    "after_undo": ["Rejected", 404],
    "delete": [True, False],
    "take_down": True,
    "taken_down": [["refused", False, None, None, "taken_down"]] * 2,
    "lifted": [True, False],
    "burst": ["duplicate"] * 12,
    "dates": [[TIME, TIME, TIME, None, None, None], 2],
    "local_dates": [[TIME, TIME, TIME, TIME, None, None], 1],
    "closed": [["Error", None]] * 2,
}
FORWARDED = ("Content-Type", "X-Repeats-Ms")
LOG = [
    "1 of 6 articles rejected by the service",
    "1 of 1 articles passed unchecked: timeout 1",
    "at the end: 2 of 33 articles passed unchecked: policy 2",
    "at the end: 1 of 1 articles passed unchecked: timeout 1",
    *(
        f"{count} articles had a date that could not be read, e.g. {date}; they were sent without one (use "
        "RFC 3339 such as 2026-11-20T08:00:00Z; a local time needs a declared time zone)"
        for count, date in ((2, "'gestern' of dates-4"), (1, "'gestern' of local_dates-4"))
    ),
]


class Proxy:
    """Passes requests on to ``target``; loses answers 1 and 4 to "lost", "hanging" hangs; hides probes."""

    def __init__(self, target: str, session: aiohttp.ClientSession) -> None:
        self._target, self._session = target, session
        self._asked = 0
        self.in_flight = self.peak = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """The service's answer, after the fault."""
        if request.path == "/readyz":
            return await misbehaving.page(404)(request)
        body = await request.read()
        if b'"hanging"' in body:
            return await misbehaving.hang(request)
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            url = self._target + str(request.rel_url)
            headers = {name: value for name, value in request.headers.items() if name in FORWARDED}
            async with self._session.request(request.method, url, data=body, headers=headers) as response:
                answer = web.Response(body=await response.read(), status=response.status)
        finally:
            self.in_flight -= 1
        self._asked += b'"lost"' in body
        if b'"lost"' in body and self._asked in (1, 4):
            return await misbehaving.problem(503, "store_unavailable")(request)
        return answer


@asynccontextmanager
async def proxied_service() -> AsyncIterator[tuple[Proxy, str]]:
    """A proxy in front of a new service, and its URL."""
    settings = Settings(store_url="memory", request_timeout_seconds=HANG_LIMIT_S)
    async with (
        open_service(settings) as service,
        TestServer(make_app(service)) as server,
        aiohttp.ClientSession() as session,
    ):
        proxy = Proxy(str(server.make_url("")).rstrip("/"), session)
        async with misbehaving.serving(proxy.handle) as url:
            yield proxy, url


async def run_script(url: str) -> dict[str, Any]:
    """Results of the scenario in JavaScript."""
    arguments = ["node", str(SCRIPT), url, str(1000 * HANG_LIMIT_S), json.dumps(ARTICLES)]
    process = await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    assert process.returncode == 0
    result: dict[str, Any] = json.loads(output)
    return result


async def test_both_clients_get_the_same_results(caplog: pytest.LogCaptureFixture) -> None:
    """Check, duplicate, batch, lost answer, time-out, related, search, undo, limit of requests, log lines."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    async with proxied_service() as (proxy, url):
        by_python = await scenario.run(url, HANG_LIMIT_S, ARTICLES)
        python_peak = proxy.peak
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    by_python["log"] = [line.split(" (last ")[0] for line in warnings]
    async with proxied_service() as (proxy, url):
        by_node = await run_script(url)

    assert python_peak == proxy.peak == 4
    assert {name: by_python[name] for name in EXPECTED} == EXPECTED
    assert sorted(by_python["log"]) == sorted(LOG)
    assert {**by_node, "log": sorted(by_node["log"])} == {**by_python, "log": sorted(LOG)}


async def run_code(code: str, url: str) -> Any:
    """What a script prints as JSON; its arguments are the module of the client and the URL."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    arguments = ["node", "--input-type=module", "-e", code, str(PACKAGE / "aggregator-client.mjs"), url]
    process = await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    return json.loads(output)


async def test_what_is_no_article_is_refused_alone() -> None:
    """Not with its batch, of which the service would lack a line, or JSON.stringify raise an error."""
    code = """
        const { Client } = await import(process.argv[1]);
        const log = { warn() {}, error() {} };
        const client = new Client(process.argv[2], { log, deadlineMs: 60000 });
        const cycle = {};
        cycle.self = cycle;
        const wrong = [undefined, cycle, { id: 5n }, "text"];
        const decisions = await client.submitMany([{ title: "Ferry" }, ...wrong, { title: "Canal" }]);
        for (const article of wrong) decisions.push(await client.submit(article));
        const one = await client.submitMany({ title: "Ferry" }).catch((error) => error.message);
        console.log(JSON.stringify([decisions.map((each) => [each.verdict, each.problem]), one]));
    """
    async with proxied_service() as (_, url):
        decisions, one = await run_code(code, url)

    refused = [
        ["refused", "An article is an object; found undefined."],
        ["refused", "The article cannot be written as JSON: Converting circular structure to JSON."],
        ["refused", "The article cannot be written as JSON: Do not know how to serialize a BigInt."],
        ["refused", "An article is an object; found string."],
    ]
    assert decisions == [["new", ""], *refused, ["new", ""], *refused]
    assert one == "articles: expected an array, found one object."


async def test_an_article_that_the_key_excludes_is_refused_alone() -> None:
    """Failing closed too: the key serves others; what excludes no part of the article is about the key."""
    code = """
        const { Client } = await import(process.argv[1]);
        const problem = (field) => ({ status: 403, code: "forbidden", detail: "source: no.", field });
        let field = "source";
        globalThis.fetch = async (url) => String(url).includes("batch")
          ? new Response(JSON.stringify({ error: problem(field) }))
          : new Response(JSON.stringify(problem(field)), { status: 403 });
        const log = { warn() {}, error() {} };
        const client = new Client(process.argv[2], { log, onFailure: "closed" });
        const kinds = [await client.submit({ id: "a" }), ...(await client.submitMany([{ id: "a" }]))];
        field = undefined;
        kinds.forEach((decision, n) => (kinds[n] = decision.kind));
        kinds.push(await client.submit({ id: "a" }).catch((error) => error.name));
        console.log(JSON.stringify(kinds));
    """
    assert await run_code(code, "http://a.example") == ["refused", "refused", "Rejected"]


async def sent_dates(values: Sequence[object], zone: str) -> list[float | None]:
    """The times of ``published_at`` as the JavaScript client sends them, in seconds since 1970."""
    code = """
        const { Client } = await import(process.argv[1]);
        const [values, timezone] = JSON.parse(process.argv[2]);
        const sent = [];
        globalThis.fetch = async (url, { body }) => {
          const articles = body.trim().split("\\n").map((line) => JSON.parse(line));
          for (const { published_at: date } of articles) sent.push(date ? Date.parse(date) / 1000 : null);
          return new Response(articles.map(() => '{"keep": true, "verdict": "new"}').join("\\n"));
        };
        const client = new Client("http://a.example", { timezone, log: { warn() {}, error() {} } });
        await client.submitMany(values.map((value) => ({ title: "Ferry", published_at: value })));
        console.log(JSON.stringify(sent));
    """
    found: list[float | None] = await run_code(code, json.dumps([values, zone]))
    return found


@pytest.mark.parametrize("zone", ["", "Asia/Shanghai", "America/Chicago", "Europe/Berlin", "Europe/Dublin"])
async def test_both_clients_read_the_same_dates(zone: str) -> None:
    """Every form with every name of a zone and spellings of offsets, and what is not read for certain."""
    names = [*ZONES, "", "AST", "CST", "IST", "NST", "XYZT", "+01:00", "GMT-0330", "+2500", "+530"]
    local = [datetime(2026, 3, 5, 14, 7, 9), datetime(2026, 10, 25, 2, 30), datetime(2026, 7, 31)]
    values: list[object] = [
        time.strftime(form).format(name) for time in local for form in FORMS for name in names
    ]
    values += [*READ, *UNREAD, "2026-03-05T24:00:00Z", "5 Mar 2026 12:30 AM Z", "5 Mar 2026 12:30 PM Z"]
    values += ["2026-02-30", "2025-W53-1", "2026-W53-7", "2026-W00-1", "2026-1127", "2026-03-29T02:30:00"]
    values += [
        "5 Jul 2026 08:07:09 CST",
        "2026-03-05T14:07:09.289+00:00",
        "5-Mar-49 10:00 Z",
        "5-Mar-50 10:00 Z",
    ]
    plain = [value for value in values if isinstance(value, str | int)]

    found = await sent_dates(plain, zone)

    dates = [parse_feed_date(value, time_zone(zone) if zone else None) for value in plain]
    assert dict(zip(map(str, plain), found, strict=True)) == {
        str(value): date and date.timestamp() for value, date in zip(plain, dates, strict=True)
    }


async def test_a_date_object_is_read() -> None:
    """Of JavaScript, and of libraries that write it as RFC 3339; not an invalid one."""
    code = """
        const { Client } = await import(process.argv[1]);
        const lines = [];
        globalThis.fetch = async (url, { body }) => {
          lines.push(JSON.parse(body).published_at ?? null);
          return new Response('{"keep": true, "verdict": "new"}');
        };
        const log = { warn: (line) => lines.push(line), error() {} };
        const client = new Client("http://a.example", { log });
        const library = { toJSON: () => "2026-03-05T15:07:09+01:00" };
        for (const date of [new Date(1772719629000), library, new Date("soon"), {}, true]) {
          await client.submit({ title: "Ferry", published_at: date });
        }
        await client.close();
        await client.close();
        console.log(JSON.stringify(lines));
    """

    assert await run_code(code, "") == [
        *["2026-03-05T14:07:09.000Z"] * 2,
        *[None] * 3,
        "3 articles had a date that could not be read, e.g. 'true' of Ferry; they were sent without one "
        "(use RFC 3339 such as 2026-11-20T08:00:00Z; a local time needs a declared time zone)",
    ]


async def test_a_url_with_a_path_of_the_api_is_named() -> None:
    """The service did answer, so its answer says which address there is not, in both clients."""
    code = """
        const { Client } = await import(process.argv[1]);
        const log = { warn() {}, error() {} };
        const decision = await new Client(process.argv[2] + "/v1", { log }).submit({ title: "Ferry" });
        console.log(JSON.stringify([decision.kind, decision.problem]));
    """
    async with proxied_service() as (_, url), Client(f"{url}/v1", deadline_s=HANG_LIMIT_S) as client:
        decision = await client.submit({"title": "Ferry"})
        found = await run_code(code, url)

    assert decision.problem == (
        "There is nothing at /v1/v1/articles; /docs lists all addresses. "
        "Check the URL, which ends before /v1."
    )
    assert found == [decision.kind, decision.problem] and decision.kind == "not_an_aggregator"


async def test_a_missing_key_is_named_by_its_option() -> None:
    """Not by the header that the service reads."""
    code = """
        const { Client } = await import(process.argv[1]);
        const log = { warn() {}, error() {} };
        const found = await new Client(process.argv[2], { log }).get("a").catch((error) => error);
        console.log(JSON.stringify([found.name, found.status, found.message]));
    """
    problem = {"type": "", "title": "", "status": 401, "detail": "Authorization.", "code": "unauthenticated"}

    async def handler(request: web.Request) -> web.Response:
        return web.json_response(problem, status=401)

    async with misbehaving.serving(handler) as url:
        assert await run_code(code, url) == [
            "Rejected",
            401,
            "The service requires a valid API key: pass one as the option `key`.",
        ]


async def test_an_option_that_does_not_exist_is_refused() -> None:
    """Without effect, it would fail open, store instead of check, or keep what is to be taken down."""
    code = """
        const { Client } = await import(process.argv[1]);
        const client = new Client(process.argv[2]);
        const options = [
          { on_failure: "closed" }, { deadlineS: -1 }, { deadlineMs: "500" }, { timeout: 3 },
          { backfil: true },
        ];
        const calls = [
          ...options.map((given) => async () => new Client(process.argv[2], given)),
          () => client.submitMany([], { dry_run: true }),
          () => client.delete("a", { take_down: true }),
          () => client.delete("a", { undo: true, takeDown: false }),
        ];
        const results = calls.map((call) => call().then(String, (error) => `${error.name} ${error.message}`));
        console.log(JSON.stringify(await Promise.all(results)));
    """
    requests = []

    async def handler(request: web.Request) -> web.Response:
        requests.append((request.method, str(request.rel_url)))
        return web.Response(status=204)

    async with misbehaving.serving(handler) as url:
        results = await run_code(code, url)

    no_such = "there is no such option; "
    assert results == [
        f"TypeError on_failure: {no_such}did you mean onFailure?",
        f"TypeError deadlineS: {no_such}did you mean deadlineMs?",
        "TypeError deadlineMs: expected number, found string.",
        f"TypeError timeout: {no_such}allowed: key, deadlineMs, batchDeadlineMs, onFailure, concurrency, "
        "backfill, timezone, log.",
        f"TypeError backfil: {no_such}did you mean backfill?",
        f"TypeError dry_run: {no_such}did you mean dryRun?",
        f"TypeError take_down: {no_such}did you mean takeDown?",
        "true",
    ]
    assert requests == [("DELETE", "/v1/articles/a?undo=true&take_down=false")]


async def test_options_of_another_type_are_refused_by_name() -> None:
    """As by the Python client: `"8"` for a number would let nothing or everything through."""
    code = """
        const { Client } = await import(process.argv[1]);
        const options = [
          { concurrency: "8" }, { concurrency: 2.5 }, { concurrency: 0 }, { batchDeadlineMs: 0 },
          { deadlineMs: NaN }, { key: 5 }, { key: "schlüssel" }, { backfill: "false" },
          { onFailure: "close" }, { timezone: "Berlin" }, { timezone: 1 },
          { log: "file" }, { log: {} }, null, "closed",
          { key: null, concurrency: null, log: undefined },
          { key: "key\\n" },
        ];
        const calls = [
          ...options.map((given) => async () => typeof new Client("http://a.example/", given)),
          async () => new Client(new URL("http://a.example/")),
          async () => new Client("http://"),
          async () => new Client("http://127.0.0.1:99999"),
          () => new Client("http://a.example").submitMany([], { dryRun: "false" }),
          () => new Client("http://a.example").delete("a", { takeDown: "false" }),
        ];
        const results = calls.map((call) => call().then(String, (error) => `${error.name} ${error.message}`));
        console.log(JSON.stringify(await Promise.all(results)));
    """
    results = await run_code(code, "")

    names = "key, deadlineMs, batchDeadlineMs, onFailure, concurrency, backfill, timezone, log"
    assert [result.removeprefix("TypeError ") for result in results] == [
        "concurrency: expected number, found string.",
        "concurrency: expected an integer of 1 or more, found 2.5.",
        "concurrency: expected an integer of 1 or more, found 0.",
        "batchDeadlineMs: expected a number above 0, found 0.",
        "deadlineMs: expected a number above 0, found NaN.",
        "key: expected string, found number.",
        "key: it has a character that no key has.",
        "backfill: expected boolean, found string.",
        "onFailure: expected 'open' or 'closed', found 'close'.",
        "timezone: expected a time zone such as Europe/Berlin, found 'Berlin'.",
        "timezone: expected string, found number.",
        "log: expected object, found string.",
        "log: expected an object with the functions warn and error.",
        f"options: expected an object with {names}, found null.",
        f"options: expected an object with {names}, found string.",
        "object",
        "object",
        "url: expected string, found object.",
        "'http://' is not an http:// or https:// URL.",
        "'http://127.0.0.1:99999' is not an http:// or https:// URL.",
        "dryRun: expected boolean, found string.",
        "takeDown: expected boolean, found string.",
    ]


async def test_a_failed_batch_loses_no_decision() -> None:
    """Failing closed, the error has the decisions so far; articles that were not sent count, too."""
    code = """
        const { Client } = await import(process.argv[1]);
        const client = new Client(process.argv[2], { onFailure: "closed", batchDeadlineMs: 1 });
        const articles = Array.from({ length: 300 }, (_, i) => ({ id: String(i), text: "t" }));
        const error = await client.submitMany(articles).catch((error) => error);
        const verdicts = error.decisions.map(({ verdict }) => verdict);
        console.log(JSON.stringify([error.name, verdicts, client.counts.unchecked]));
    """
    async with misbehaving.serving(misbehaving.problem(503, "store_unavailable")) as url:
        results = await run_code(code, url)

    assert results == ["Unavailable", ["unknown"] * 256, 300]


def test_the_code_agrees_with_the_declarations() -> None:
    """The TypeScript compiler checks the client and the scenario against the declared types."""
    compiler = shutil.which("tsc")
    if compiler is None:
        pytest.skip("tsc is not installed")
    files = [*map(str, sorted(PACKAGE.glob("*.m*"))), str(SCRIPT)]
    done = subprocess.run(
        [compiler, *TYPE_CHECK, *files], capture_output=True, text=True, check=False, timeout=HANG_LIMIT_S
    )

    assert done.returncode == 0, done.stdout


def test_the_package_has_the_version_of_the_service() -> None:
    """And names files that exist."""
    package = json.loads((PACKAGE / "package.json").read_text(encoding="utf-8"))

    assert package["version"] == aggregator.__version__
    assert all((PACKAGE / name).is_file() for name in package["files"])
