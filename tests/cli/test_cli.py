"""The command line: what it reads and writes, what it says of mistakes, and its exit codes."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from aiohttp import web
from aiohttp.test_utils import TestServer

from aggregator.analysis.features import FeatureModel
from aggregator.cli import common_options, doctor, ingest_targets, main, options
from aggregator.cli.ingest import BATCH_BYTES, BATCH_LINES, iter_batches
from aggregator.contract.problems import to_problem
from aggregator.errors import ConfigurationError, StoreUnavailable, Unauthenticated
from aggregator.http.middleware import errors
from aggregator.index.keys import INTERACTIVE_BEACON
from aggregator.offline.jsonl import Line
from aggregator.runtime import demo
from aggregator.runtime.addresses import describe_store, redact_url, service_url
from aggregator.settings import Settings
from tests.support.server_fixture import serving_alone

ROOT = Path(__file__).resolve().parents[2]
ROWS = {row["id"]: row for row in demo.load_rows()}
ORIGINAL, EDITED, OTHER = (ROWS[id_] for id_ in ("demo-post-tram", "demo-coast-tram", "demo-radio-bees"))


def body(row: dict[str, Any]) -> dict[str, Any]:
    """What a crawler would send of a demonstration row."""
    return {name: row[name] for name in ("id", "url", "source", "title", "text")}


def write(path: Path, *lines: object) -> str:
    """A .jsonl file of objects, or of raw lines given as text; returns its name."""
    texts = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return str(path)


def run(*argv: str) -> int:
    """The exit code of one command, also of a usage error."""
    try:
        return main(argv)
    except SystemExit as stop:
        assert isinstance(stop.code, int)
        return stop.code


# -- usage ---------------------------------------------------------------------------------------


def test_help_imports_nothing_heavy() -> None:
    """It answers at once: numpy, aiohttp, the models and the store stay on the disk."""
    script = "import sys, aggregator.cli as c; c.options.parser().format_help(); print(*sys.modules)"

    loaded = set(subprocess.check_output([sys.executable, "-c", script], text=True, cwd=ROOT).split())

    assert "aggregator.cli.options" in loaded
    assert not loaded & {"numpy", "aiohttp", "redis", "asyncio", "aggregator.app", "tqdm"}


@pytest.mark.parametrize(
    "command", ["serve", "ingest", "check", "explain", "replay", "fit", "evaluate", "doctor"]
)
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--help of each command ends well and names it."""
    assert run(command, "--help") == 0

    assert f"usage: aggregator {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ((), "COMMAND"),
        (("srve",), "srve"),
        (("serve", "--prot", "1"), "--prot"),
        (("serve", "--port", "http"), "--port: 'http' is not a whole number."),
        (("serve", "--policy", "strict"), "must be one of verified, hamming"),
        (("serve", "--store-url", "localhost"), "store_url: expected memory or one of"),
        (("ingest", "--store", "localhost", "x.jsonl"), "store_url: expected memory or one of"),
        (("ingest", "--store", "memory", "absent.jsonl"), "absent.jsonl cannot be read"),
        (("ingest", "--store", "memory", "--server", "http://x", __file__), "either --store or --server"),
        (("ingest", "--policy", "hamming", __file__), "use --policy with --store"),
        (("ingest", "--server", "x:80", __file__), "not an http:// or https:// address"),
        (("ingest", "--store", "memory", "--out", "absent/out", __file__), "absent/out cannot be written"),
        (("evaluate", "near-duplicates", "--orders", "0", __file__), "not at least 1"),
        (("doctor", "--models-dir", "absent"), ""),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    argv: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never a traceback."""
    assert run(*argv) == 2

    captured = capsys.readouterr()
    assert said in captured.err or said in captured.out
    assert "Traceback" not in captured.err


def test_all_wrong_settings_are_told_at_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From variables and options together."""
    monkeypatch.setenv("AGGREGATOR_DETECTOR_INTERVAL_SECONDS", "soon")

    assert run("serve", "--port", "99999", "--workers", "0") == 2

    told = capsys.readouterr().err.splitlines()
    assert len(told) == 3
    assert all(line.startswith("aggregator: ") for line in told)


def test_every_setting_is_an_option_of_serve() -> None:
    """Nothing can be set by variable only."""
    args = options.build_parser().parse_args(["serve"])

    assert set(options.setting_overrides(args)) == set(common_options.SETTING_FIELDS)
    assert set(options.setting_overrides(args).values()) == {None}


def test_a_password_is_never_printed() -> None:
    """serve names its store, doctor its settings."""
    url = "rediss://user:geheim@store.example:6380/0?password=geheim"

    assert redact_url(url) == "rediss://store.example:6380/0"
    assert "geheim" not in describe_store(Settings(store_url=url))


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("::", "[::1]"),
        ("::1", "[::1]"),
        ("news", "news"),
    ],
)
def test_the_address_shown_can_be_opened_on_this_machine(host: str, shown: str) -> None:
    """A wildcard address is none to click on."""
    assert service_url(host, 8080) == f"http://{shown}:8080"


# -- ingest and check ----------------------------------------------------------------------------


def test_ingest_answers_one_line_per_line_in_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """New, duplicate, new; bad lines in between answer with their error and the rest go on; exit code 1."""
    articles = write(
        tmp_path / "articles.jsonl",
        body(ORIGINAL), "{not json", "", body(EDITED), {**body(OTHER), "txet": "?"}, {"id": "empty"}, body(OTHER),
    )  # fmt: skip

    assert run("ingest", "--store", "memory", articles) == 1

    captured = capsys.readouterr()
    answers = [json.loads(line) for line in captured.out.splitlines()]
    assert [a.get("verdict") for a in answers] == ["new", None, "duplicate", None, None, "new"]
    assert answers[2]["duplicate_of"]["canonical_id"] == ORIGINAL["id"]
    assert [(a["line"], a["error"]["field"]) for a in answers if "error" in a] == [
        (2, "body"), (5, "txet"), (6, "text"),
    ]  # fmt: skip
    assert answers[1]["error"]["instance"] == f"{articles}:2"
    assert "6 lines: 2 new, 0 related, 1 duplicate, 3 bad" in captured.err


def test_an_ingest_into_a_store_gives_way_to_single_posts(
    valkey_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A service has noted there that articles come one by one: the load pauses, and says so; nothing else changes."""
    articles = write(tmp_path / "articles.jsonl", *(body(row) for row in ROWS.values()))
    with redis.Redis.from_url(valkey_url) as client:
        client.set(INTERACTIVE_BEACON, b"now", px=60_000)

    assert run("ingest", "--store", valkey_url, articles) == 0

    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == len(ROWS)
    assert "0 bad" in captured.err and " gave way to single posts" in captured.err


def test_labels_of_evaluation_files_are_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """cluster and original are columns beside the article; any other unknown field is an error."""
    articles = write(
        tmp_path / "a.jsonl", {**body(OTHER), "cluster": "bees", "original": True, "published_at": None}
    )

    assert run("ingest", "--store", "memory", articles) == 0

    assert json.loads(capsys.readouterr().out)["verdict"] == "new"


def test_check_stores_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same article asked for twice is new twice."""
    articles = write(tmp_path / "articles.jsonl", body(ORIGINAL), body(ORIGINAL))

    assert run("check", "--store", "memory", articles) == 0

    assert [json.loads(line)["verdict"] for line in capsys.readouterr().out.splitlines()] == ["new", "new"]


def test_the_policy_decides(tmp_path: Path) -> None:
    """An edited copy is a duplicate by overlap; the paper's rule looks at the bits alone."""
    articles = write(tmp_path / "articles.jsonl", body(ORIGINAL), body(EDITED))
    verdicts = {}
    for policy in ("verified", "hamming"):
        out = tmp_path / policy
        assert run("ingest", "--store", "memory", "--policy", policy, "--out", str(out), articles) == 0
        verdicts[policy] = json.loads(out.read_text().splitlines()[1])

    assert verdicts["verified"]["duplicate_of"]["overlap"] > 0.75
    match = verdicts["hamming"]["duplicate_of"]
    assert match is None or match["overlap"] is None


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A crawler's pipe ends here."""
    data = json.dumps(body(OTHER)).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))

    assert run("ingest", "--store", "memory", "-") == 0

    assert json.loads(capsys.readouterr().out)["id"] == OTHER["id"]


def test_an_embedded_store_remembers_between_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second command finds the original of the first; explain finds both by id."""
    store = ("--store", "embedded", "--data-dir", str(tmp_path / "data"), "--store-texts")
    assert run("ingest", *store, write(tmp_path / "one", body(ORIGINAL))) == 0
    assert run("ingest", *store, write(tmp_path / "two", body(EDITED))) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert [a["verdict"] for a in answers] == ["new", "duplicate"]
    assert run("explain", *store, ORIGINAL["id"], EDITED["id"]) == 0
    said = capsys.readouterr().out
    assert "so they are copies" in said
    assert "shared wording: containment" in said
    assert run("explain", *store, ORIGINAL["id"], "demo-unknown") == 1
    assert "under the id 'demo-unknown', and there is no file of that name." in capsys.readouterr().err


def test_explain_shows_bits_and_wording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two rows of 64 bits, the differing ones marked, and what stands in both or in one of the texts."""
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("The ferry sank off the long pier in heavy fog")
    two.write_text("The ferry sank off the new bridge in heavy fog")

    assert run("explain", "--store", "memory", str(one), str(two)) == 0
    lines = capsys.readouterr().out.splitlines()
    first, second, marks = (line[2:] for line in lines[5:8])
    assert len(first) == 67 and set(first) <= set("01 ")
    assert [a != b for a, b in zip(first, second, strict=True)] == [c == "^" for c in marks.ljust(67)]
    assert '  only the first: "long pier"' in lines and '  only the second: "new bridge"' in lines


def test_explain_takes_files_and_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Texts that were never stored can be compared; an empty or binary file is one sentence."""
    one, two, empty, binary = (tmp_path / name for name in ("one.txt", "two.txt", "empty.txt", "binary"))
    one.write_text(ORIGINAL["text"], encoding="utf-8")
    two.write_text(OTHER["text"], encoding="utf-8")
    empty.write_text(" \n")
    binary.write_bytes(b"\xff\xfe\x00")

    assert run("explain", "--store", "memory", "--json", str(one), str(two)) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["is_copy"] is False
    assert (said["a"]["label"], said["b"]["label"]) == (str(one), str(two))
    assert run("explain", "--store", "memory", str(one), str(empty)) == 2
    assert "is empty" in capsys.readouterr().err
    assert run("explain", "--store", "memory", str(one), str(binary)) == 2
    assert "is not UTF-8" in capsys.readouterr().err


def test_batches_are_bounded_by_lines_and_bytes() -> None:
    """One line may be longer than a batch alone; none is lost and the order stays."""
    sizes = [10] * (BATCH_LINES + 3) + [BATCH_BYTES + 5, 7, BATCH_BYTES // 2, BATCH_BYTES // 2 + 1]
    lines = [Line("f", number, b"x" * size) for number, size in enumerate(sizes)]

    cut = list(iter_batches(lines))

    assert [line for batch in cut for line in batch] == lines
    assert all(len(batch) <= BATCH_LINES for batch in cut)
    assert all(len(batch) == 1 or sum(len(line.data) for line in batch) <= BATCH_BYTES for batch in cut)
    assert list(iter_batches([])) == []


# -- against a server ----------------------------------------------------------------------------


@asynccontextmanager
async def answering(handle: Callable[[web.Request], Any]) -> AsyncIterator[ingest_targets.ServerTarget]:
    """A target whose server answers every batch by ``handle``."""
    app = web.Application()
    app.router.add_post("/v1/articles/batch", handle)
    async with (
        TestServer(app) as server,
        ingest_targets.ServerTarget.open(str(server.make_url("/"))) as target,
    ):
        yield target


def lines(count: int) -> list[Line]:
    """Input lines numbered from 1."""
    return [Line("f", number, json.dumps({"id": str(number)}).encode()) for number in range(1, count + 1)]


def new(data: bytes) -> bytes:
    """An answer line to an input line."""
    return json.dumps({"id": json.loads(data)["id"], "verdict": "new"}).encode() + b"\n"


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting is tested by counting, not by the clock."""
    monkeypatch.setattr(ingest_targets, "INITIAL_BACKOFF_S", 0.0)
    monkeypatch.setattr(ingest_targets, "FIRST_CONTACT_TIMEOUT_S", 0.2)


async def test_a_server_that_is_away_for_a_while_is_asked_again() -> None:
    """503, an answer that was cut off and a line that failed with 503: the whole batch is sent again."""
    asked: list[bytes] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        given = (await request.read()).splitlines()
        asked.append(b"|".join(given))
        failed = json.dumps(
            {"line": 2, "error": {"type": "", "title": "", "status": 503, "detail": "away", "code": "c"}}
        )
        answers = {
            1: web.Response(status=503, body=b'{"detail": "loading"}'),
            2: web.Response(body=new(given[0])),
            3: web.Response(body=new(given[0]) + failed.encode() + b"\n"),
        }
        return answers.get(len(asked)) or web.Response(body=b"".join(map(new, given)))

    async with answering(handle) as target:
        replies = await target.send(lines(2), dry_run=False)

    assert [reply.verdict for reply in replies] == ["new", "new"]
    assert len(asked) == 4
    assert len(set(asked)) == 1


@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("by_lines", [True, False])
async def test_a_server_with_smaller_limits_gets_smaller_batches(limit: int, by_lines: bool) -> None:
    """Above its limits it refuses the body, or the line behind the last it takes; no line is lost."""

    async def handle(request: web.Request) -> web.StreamResponse:
        given = (await request.read()).splitlines()
        if len(given) <= limit:
            return web.Response(body=b"".join(map(new, given)))
        if not by_lines:
            return web.Response(status=413, body=b'{"detail": "too large"}')
        error = {
            "type": "",
            "title": "",
            "status": 413,
            "code": "too_large",
            "detail": "more (setting max_batch_lines)",
        }
        told = json.dumps({"line": limit + 1, "error": error}, separators=(",", ":")).encode()
        return web.Response(body=b"".join(map(new, given[:limit])) + told + b"\n")

    async with answering(handle) as target:
        replies = await target.send(lines(7), dry_run=True)

    assert [json.loads(reply.data)["id"] for reply in replies] == [str(n) for n in range(1, 8)]


async def test_line_numbers_of_a_batch_become_those_of_the_file() -> None:
    """The third line of a batch may be line 1003 of its file."""

    async def handle(request: web.Request) -> web.StreamResponse:
        error = {
            "type": "t",
            "title": "t",
            "status": 400,
            "code": "bad_input",
            "detail": "no",
            "field": "text",
        }
        return web.Response(body=json.dumps({"line": 1, "error": error}).encode() + b"\n")

    async with answering(handle) as target:
        replies = await target.send([Line("f", 1003, b"{}")], dry_run=False)

    told = json.loads(replies[0].data)
    assert replies[0].verdict is None
    assert (told["line"], told["error"]["instance"], told["error"]["field"]) == (1003, "f:1003", "text")


async def test_what_is_no_aggregator_is_said_so() -> None:
    """A mistyped address must not look like an outage."""

    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(status=404, text="<h1>Not here</h1>")

    async with answering(handle) as target:
        with pytest.raises(ConfigurationError, match="answered with status 404; is it an aggregator"):
            await target.send(lines(1), dry_run=False)


async def test_a_server_that_asks_for_a_key_is_told_of() -> None:
    """With the variable to set, whatever the server says to programs."""

    async def handle(_: web.Request) -> web.Response:
        return errors.problem_response(
            to_problem(Unauthenticated("Authorization: send an access key."))
        )

    async with answering(handle) as target:
        with pytest.raises(ConfigurationError, match=r"asks for an access key; set AGGREGATOR_KEY to one"):
            await target.send(lines(1), dry_run=False)


async def test_patience_has_an_end() -> None:
    """The last failure is what is told."""
    asked = 0

    async def fail() -> None:
        nonlocal asked
        asked += 1
        raise StoreUnavailable("still away")

    with pytest.raises(StoreUnavailable, match="still away"):
        await ingest_targets.retry_while_unavailable(fail, 0.0)

    assert asked >= 1


def test_no_server_is_exit_code_3(tmp_path: Path, free_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    """And says how to start one."""
    articles = write(tmp_path / "articles.jsonl", body(OTHER))

    assert run("ingest", "--server", f"http://127.0.0.1:{free_port}", articles) == 3

    assert "(Connection refused); start it with `aggregator serve`" in capsys.readouterr().err


def test_work_without_its_redis_is_exit_code_3(free_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, which says that nothing is lost."""
    assert run("work", "--redis", f"redis://127.0.0.1:{free_port}", "--until-empty") == 3

    said = capsys.readouterr().err
    assert (
        said.startswith("aggregator: The stream 'articles' cannot be worked on now (")
        and said.count("\n") == 1
    )
    assert "Connection refused); call again when its Redis answers: nothing is lost." in said


# -- serve ---------------------------------------------------------------------------------------


@pytest.mark.services
def test_a_server_gives_the_same_verdicts_and_ends_when_told(tmp_path: Path) -> None:
    """Over HTTP and in this process: line for line the same, but for the order of equals; SIGTERM ends in time."""
    articles = write(
        tmp_path / "articles.jsonl", *(body(row) for row in ROWS.values()), "{bad", body(ORIGINAL)
    )
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    assert run("ingest", "--store", "memory", "--out", str(here), articles) == 1

    with serving_alone(tmp_path, "--store-url", "memory") as (process, url):
        assert run("ingest", "--server", url, "--out", str(there), articles) == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0

    assert list(map(verdict_of, here.read_text().splitlines())) == list(
        map(verdict_of, there.read_text().splitlines())
    )


def verdict_of(line: str) -> tuple[Any, ...]:
    """The parts of an answer that do not depend on when it was given."""
    answer = json.loads(line)
    if "error" in answer:
        return answer["line"], answer["error"]["detail"], answer["error"]["instance"]
    related = sorted((item["id"], item["distance"], item["similarity"]) for item in answer["related"])
    kept = ("id", "verdict", "distance", "duplicate_of", "updated_figures", "space", "fingerprint", "short")
    return *(json.dumps(answer[name]) for name in kept), related


@pytest.mark.services
def test_workers_share_port_and_store_and_are_replaced(tmp_path: Path) -> None:
    """Two workers on an embedded store: one dies and comes back; the articles stay; SIGINT ends all of them."""
    articles = write(tmp_path / "articles.jsonl", body(ORIGINAL))
    with serving_alone(tmp_path, "--workers", "2") as (process, url):
        assert run("ingest", "--server", url, "--out", os.devnull, articles) == 0
        first = children(process.pid)
        os.kill(first["aggregator"][0], signal.SIGKILL)
        out = tmp_path / "out.jsonl"
        assert run("ingest", "--server", url, "--out", str(out), write(tmp_path / "two", body(EDITED))) == 0

        assert json.loads(out.read_text())["duplicate_of"]["id"] == ORIGINAL["id"]
        process.send_signal(signal.SIGINT)
        assert process.wait(15) == 0


def children(pid: int) -> dict[str, list[int]]:
    """Process ids of the workers and of the store below ``pid``."""
    found: dict[str, list[int]] = {"aggregator": [], "store": []}
    listed = subprocess.check_output(["ps", "-eo", "pid=,ppid=,args="], text=True)
    for line in listed.splitlines():
        child, parent, args = line.split(None, 2)
        if int(parent) != pid or "resource_tracker" in args:
            continue
        found["store" if "valkey" in args else "aggregator"].append(int(child))
    return found


@pytest.mark.services
def test_a_taken_port_or_directory_is_one_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A second server on the same port or data is refused, and the first goes on."""
    with serving_alone(tmp_path) as (process, url):
        port = url.rpartition(":")[2]
        assert run("serve", "--port", port, "--store-url", "memory") == 2
        assert "is in use by another process" in capfd.readouterr().err
        assert run("serve", "--port", "0", "--data-dir", str(tmp_path / "data")) == 2
        assert f"is in use by process {process.pid}" in capfd.readouterr().err
        assert run("doctor", "--port", port, "--data-dir", str(tmp_path / "data")) == 0
        said = capfd.readouterr().out
        assert f"In use by a running service (process {process.pid})." in said
        assert f"Running and ready on {url}." in said


# -- doctor, fit, evaluate -----------------------------------------------------------------------


def test_doctor_says_what_there_is_and_changes_nothing(
    tmp_path: Path, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """A directory that does not exist is named, not made."""
    data = tmp_path / "data"

    assert run("doctor", "--data-dir", str(data), "--port", str(free_port)) == 0

    said = capsys.readouterr().out
    assert f"{data} does not exist yet" in said
    assert f"Nothing answers on http://127.0.0.1:{free_port}" in said
    assert "xx." in said
    assert not data.exists()


def test_doctor_knows_a_store_that_was_restored(
    tmp_path: Path, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of which there is only what the backup had."""
    (tmp_path / "appendonlydir").mkdir()
    (tmp_path / "appendonlydir" / "appendonly.aof.1.incr.aof").write_bytes(bytes(300_000))

    assert run("doctor", "--data-dir", str(tmp_path), "--port", str(free_port)) == 0
    assert "Not running; 0.3 MB on disk." in capsys.readouterr().out


@pytest.mark.parametrize("silent", [False, True], ids=["not ready", "silent"])
async def test_doctor_says_of_a_service_that_is_not_ready_that_something_is_wrong(
    silent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of one that says nothing in time: it runs, and starting another one would be of no use."""
    monkeypatch.setattr(doctor, "READINESS_TIMEOUT_S", 0.2)
    never = asyncio.Event()

    async def ready(request: web.Request) -> web.Response:
        if silent:
            await never.wait()
        return web.json_response({"detail": "The store is full."}, status=503)

    application = web.Application()
    application.router.add_get("/readyz", ready)
    async with TestServer(application) as server:
        found = await doctor._check_readiness(str(server.make_url("")))
        never.set()

    assert (found.mark, found.code) == ("wrong", 3)
    assert ("did not say within" if silent else "The store is full.") in found.sentence


def test_why_it_does_not_start_is_a_record_where_records_are_json(tmp_path: Path) -> None:
    """What collects them reads nothing else, and this is the line that matters most."""
    told = subprocess.run(
        [sys.executable, "-m", "aggregator", "serve", "--log-format=json", "--store-url=redis://127.0.0.1:1", "--port=0"],
        capture_output=True, text=True, timeout=60, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip

    record = json.loads(told.stderr)
    assert (told.returncode, record["level"]) == (3, "ERROR")
    assert record["message"].startswith("The store at 127.0.0.1:1 cannot be reached")


@pytest.mark.parametrize("command", [("doctor",), ("keys", "list")], ids=["doctor", "keys"])
def test_a_store_directory_that_cannot_be_read_is_named(
    command: tuple[str, ...], tmp_path: Path, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a sentence and exit code 2, whatever keeps it from being read: here a directory in the place of the lock."""
    (tmp_path / "lock").mkdir()
    where = ["--data-dir", str(tmp_path), *(["--port", str(free_port)] if command == ("doctor",) else [])]

    assert run(*command, *where) == 2

    out, err = capsys.readouterr()
    assert (
        f"{tmp_path} cannot be read (Is a directory); run this as the user that runs the service."
        in out + err
    )


def test_doctor_compares_what_is_found_with_what_is_stored(
    valkey_url: str, tmp_path: Path, free_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """--audit: 0 while all is found, 1 once a bucket has lost its entries, also in the embedded store."""
    lines = tmp_path / "articles.jsonl"
    lines.write_text(
        "".join(
            json.dumps({"id": str(i), "text": f"Tern {i} landed.", "lang": "eo"}) + "\n" for i in range(9)
        )
    )
    own = ["--data-dir", str(tmp_path / "data")]
    for store, where in (("embedded", own), (valkey_url, ["--store-url", valkey_url])):
        assert run("ingest", "--store", store, *own, "--out", os.devnull, str(lines)) == 0
        capsys.readouterr()
        assert run("doctor", *where, "--port", str(free_port), "--audit", "5") == 0
        said = capsys.readouterr().out
        assert "5 of 9 articles compared with all: recall 1.0 at every radius" in said
        counted = "segment 0 with 9 texts (writable). Largest bucket sampled: "
        assert (counted in said) == (
            store == valkey_url
        )  # an embedded store that does not run is not started

    with redis.Redis.from_url(valkey_url) as client:
        client.delete(*client.keys("*}b0:*"))
    assert run("doctor", "--store-url", valkey_url, "--port", str(free_port), "--audit", "5") == 1
    assert "look-ups missed" in capsys.readouterr().out


@pytest.mark.services
def test_reindex_finds_the_store_of_the_service_that_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside an embedded one, by its directory; nothing else need be said, and nothing is started."""
    lines = write(tmp_path / "articles.jsonl", body(OTHER))
    with serving_alone(tmp_path, "--migration-block-plan", "5x13") as (_, url):
        assert run("ingest", "--server", url, "--out", os.devnull, lines) == 0
        own = ["--data-dir", str(tmp_path / "data"), "--migration-block-plan", "5x13"]
        assert run("reindex", "--no-progress", *own) == 0

    assert "1 articles looked at, 0 could not be brought in." in capsys.readouterr().err


def test_doctor_asks_the_store(valkey_url: str, free_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Version and durability in plain words; as JSON when asked."""
    assert run("doctor", "--store-url", valkey_url, "--port", str(free_port), "--json") == 0

    findings = json.loads(capsys.readouterr().out)
    store = " ".join(f["sentence"] for f in findings if f["subject"] == "store")
    assert "Valkey" in store
    assert "Durability: survives a crash of the server" in store
    assert {f["mark"] for f in findings} <= {"ok", "note"}


def test_doctor_finds_a_store_that_is_away(free_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 3, and everything else is still looked at."""
    assert (
        run("doctor", "--store-url", f"redis://:geheim@127.0.0.1:{free_port}", "--port", str(free_port)) == 3
    )

    said = capsys.readouterr().out
    assert "wrong  store" in said
    assert "service" in said
    assert "geheim" not in said


def test_a_model_of_ones_own_is_fitted_and_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """fit writes a file that --models-dir takes; its space is another one than that of the shipped model."""
    texts = [row["text"] for row in ROWS.values() if row["text"].isascii()]
    rows = [{"id": str(n), "text": " ".join([*texts[n % 40].split()[n % 7 :], *texts[(n * 7) % 41].split()]), "lang": "en"}
            for n in range(150)]  # fmt: skip
    corpus = write(tmp_path / "corpus.jsonl", *rows)
    model = tmp_path / "models" / "en.model"
    model.parent.mkdir()

    code = run(
        "fit",
        corpus,
        "--group",
        "en",
        "--out",
        str(model),
        "--components",
        "64",
        "--counts",
        "power",
        "--whiten",
        "-1.25",
        "--corpus",
        "the demonstration",
    )

    assert code == 0
    assert "model en." in capsys.readouterr().err
    fitted = FeatureModel.load(model)
    assert (fitted.metadata["settings"]["whiten"], fitted.term_weight) == (-1.25, "tf^.75")
    own = ("--models-dir", str(model.parent), "--store", "memory")
    assert run("ingest", *own, write(tmp_path / "a", body(OTHER))) == 0
    space = json.loads(capsys.readouterr().out)["space"]
    assert run("doctor", *own[:2], "--store-url", "memory") == 0
    assert f"{space}: " in capsys.readouterr().out


def test_evaluate_scores_labelled_articles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Copies share a cluster; without labels there is nothing to score."""
    gold = [
        {**body(row), "cluster": row.get("of", row["id"])}
        for row in ROWS.values()
        if row["role"] in ("new", "edited", "copy")
    ]

    assert run("evaluate", "near-duplicates", "--json", "--orders", "2", write(tmp_path / "gold", *gold)) == 0

    verified = next(r for r in json.loads(capsys.readouterr().out) if r["policy"] == "verified")
    assert verified["f1"] == 1.0
    small = ("--grid", "--shingle", "3", "--sample", "1", "--sketch", "8,64", "--collisions", "1")
    assert (
        run("evaluate", "near-duplicates", "--json", *small, "--overlap", "0.2", str(tmp_path / "gold")) == 0
    )
    assert [line["p"] for line in json.loads(capsys.readouterr().out)] == [8, 64]
    assert run("evaluate", "near-duplicates", "--grid", "--shingle", "9", str(tmp_path / "gold")) == 2
    assert "at most 5 words" in capsys.readouterr().err
    assert run("evaluate", "near-duplicates", write(tmp_path / "plain", body(OTHER))) == 2
    assert "has no `cluster`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        ([], (), "there are no articles in it"),
        ([{"id": "a", "text": "x y", "cluster": 1}] * 2, (), "The id 'a' stands for 2 of these articles"),
        (
            [{"id": "a", "title": 5, "cluster": "c"}],
            (),
            "Article 'a': title: expected a string, got an integer.",
        ),
        ([{"id": "a", "text": "x", "cluster": True}], (), "Article 1 has no `cluster`"),
        ([{"id": "a", "text": "x", "cluster": 1}], ("--html", "nowhere"), "nowhere cannot be read"),
    ],
)
def test_labelled_articles_that_cannot_be_scored(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    rows: list[dict[str, object]],
    options: tuple[str, ...],
    said: str,
) -> None:
    """One sentence each, and no perfect score of nothing; numbers are labels too."""
    gold = tmp_path / "gold.jsonl"
    gold.write_text("".join(json.dumps(row) + "\n" for row in rows))

    assert run("evaluate", "clusters", str(gold), *options) == 2
    assert said in capsys.readouterr().err


def test_evaluate_scores_clusters_pairs_and_related(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every protocol answers in JSON and as a table, and refuses rows it cannot use."""
    gold = write(tmp_path / "gold", *({**body(r), "cluster": r.get("of", r["id"])} for r in ROWS.values()))
    some = [row["text"] for row in list(ROWS.values())[:2]]
    pairs = write(
        tmp_path / "pairs",
        {"text1": some[0], "text2": some[0], "same": True},
        {"text1": some[0], "text2": some[1], "same": False},
    )

    assert run("evaluate", "clusters", "--json", gold) == 0
    assert json.loads(capsys.readouterr().out)[0]["b_cubed_f1"] > 0.5
    assert run("evaluate", "pairs", "--json", pairs) == 0
    assert json.loads(capsys.readouterr().out)["roc_auc"]["all"]["similarity"] == 1.0
    events = [{**body(row), "cluster": "one"} for row in (ORIGINAL, OTHER)]
    assert run("evaluate", "related", "--json", write(tmp_path / "events", *events)) == 0
    assert json.loads(capsys.readouterr().out)["rankings"][1]["recall"] == 1.0
    assert run("evaluate", "clusters", gold) == run("evaluate", "pairs", pairs) == 0
    assert "ARI" in capsys.readouterr().out
    assert run("evaluate", "pairs", gold) == 2
    assert "Pair 1" in capsys.readouterr().err


def test_replay_writes_the_events_of_a_dated_stream(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The dam of the demonstration breaks under its own clock: one event, detected with the sixteenth item."""
    from datetime import UTC, datetime

    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    dated = write(tmp_path / "dated.jsonl", *(demo.article_body(row, now) for row in ROWS.values()))
    out = tmp_path / "events.jsonl"

    assert run("replay", dated, "--out", str(out)) == 0

    events = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(events) == 1
    assert events[0]["size"] > 15
    assert {
        "id",
        "title",
        "detected_at",
        "first_seen",
        "last_seen",
        "size",
        "peak",
        "sources",
        "expected",
        "items",
    } <= set(events[0])
    assert capsys.readouterr().err.endswith(", 1 event\n")


@pytest.mark.parametrize("given", [(), ("nosuch",), ("dedupe",), ("keys", "add", "x", "--role", "boss")])
def test_a_wrong_command_line_is_one_line(given: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """What is wrong, and where the rest stands; not thirty lines of options first."""
    with pytest.raises(SystemExit) as ended:
        main(list(given))

    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert told.count("\n") == 1
    assert told.endswith(" --help` tells more).\n")


def test_replay_refuses_a_stream_without_a_date(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing was replayed where no article has a time: no count of events may say so."""
    undated = write(
        tmp_path / "undated.jsonl", {"title": "Dam breaks"}, {"title": "Dam", "published_at": "now"}
    )

    assert run("replay", undated) == run("replay", "--preview", "24h", undated) == 2

    told = capsys.readouterr()
    assert told.err.count("No article has a usable `published_at`") == 2
    assert "1970" not in told.out
