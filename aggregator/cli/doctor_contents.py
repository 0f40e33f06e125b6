"""Checks of ``aggregator doctor`` on a running store."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.client import HTTPException
from typing import Literal

from aggregator import errors
from aggregator.app import Service, open_service
from aggregator.background.tasks import last_backup
from aggregator.domain import arrival_ms_of
from aggregator.errors import AggregatorError, DamagedValue, exit_code
from aggregator.events.detection.model import LearningStatus
from aggregator.index.upkeep import spaces
from aggregator.runtime.addresses import get, service_url
from aggregator.settings import Settings, is_loopback
from aggregator.store.factory import with_running_store_url
from aggregator.time_units import DAY_MS, format_minute, format_rfc3339

KEY_EXPIRY_NOTICE_DAYS = 14
MIN_TEXTS_FOR_MEMORY_RATIO = 1000  # with fewer the quotient would show the fixed memory of the store
MAX_LAG_COUNTED_ARTICLES = 5000  # a greater lag is reported as "more than"
LAG_NOTE_ABOVE_ARTICLES = 1000  # a detector interval of some seconds may leave this many
CONTENTS_SUBJECT = "contents"  # of findings on stored values that cannot be read
EVENTS_READ_LIMIT = 500


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence on one subject; ``code``: the exit code that it calls for."""

    mark: Literal["ok", "note", "wrong"]  # needs nothing, may need something, is a problem
    subject: str
    sentence: str
    code: int = errors.EXIT_OK


ok, note, wrong = partial(Finding, "ok"), partial(Finding, "note"), partial(Finding, "wrong")


async def check_contents(settings: Settings) -> list[Finding]:
    """All findings on a running store; a check that fails does not prevent the others."""
    findings, running = list[Finding](), with_running_store_url(settings)
    if running.store_url in ("", "memory"):
        return []
    async with open_service(running) as service:
        if incident := service.articles.index.memory.incident:
            findings.append(wrong("store", incident.sentence, errors.EXIT_UNAVAILABLE))
        for check in (check_unread, _check_clock, _check_keys, _check_detector, _check_events, check_index):
            try:
                findings += await check(service)
            except AggregatorError as error:
                code = errors.EXIT_PARTIAL_FAILURE if isinstance(error, DamagedValue) else exit_code(error)
                findings.append(wrong(CONTENTS_SUBJECT, str(error), code))
    return findings


async def check_unread(service: Service) -> list[Finding]:
    """Indexes that the settings do not read: a fault if they hold articles that no other index has."""
    unread = service.articles.foreign_index
    used = await unread.used_elsewhere()
    code = errors.EXIT_CONFIGURATION_ERROR
    findings = [wrong("index", f"{spaces.OTHER_SETTINGS.format(space)}.", code) for space in used]
    for found in (found for found in await unread.find() if found.space not in used):
        findings.append(wrong("index", unread.sentence(found), errors.EXIT_PARTIAL_FAILURE))
        if directory := found.entry.models_dir:
            findings.append(note("index", f"{found.space} was written with models_dir={directory}."))
    for space in await unread.leftovers():
        remedy = f"`aggregator migrate --delete {space}` frees its memory"
        findings.append(
            note("index", f"{space} is left over from a migration: {remedy}{spaces.STREAM_READ}.")
        )
    return findings


async def _check_clock(service: Service) -> list[Finding]:
    guard = service.background.clock_guard
    if problem := await guard.observe():
        return [wrong("clock", problem, errors.EXIT_UNAVAILABLE)]
    basis = "no article is stored yet that could contradict it"
    if guard.trusted_ms is not None:
        basis = f"articles expire by the time {format_rfc3339(guard.trusted_ms)}, which follows it"
    return [ok("clock", f"The clock of this machine fits: {basis}.")]


async def _check_keys(service: Service) -> list[Finding]:
    now_ms, settings = service.clock(), service.settings
    keys = await service.edge.api_keys.list_keys()
    active = [key for key in keys if key.is_active(now_ms)]
    has_admin, status = settings.bootstrap_key or any(key.allows("admin") for key in active), 0
    if not has_admin:  # a running service may have a bootstrap key that these settings lack; it does not say
        with contextlib.suppress(OSError, HTTPException):
            url = service_url(settings.host, settings.port)
            status = (await asyncio.to_thread(get, f"{url}/v1/events?limit=1"))[0]
    if not has_admin and not keys:
        who = "its bootstrap key or a user of its proxy"
        required = ok("access", f"No keys in the store; the running service requires {who}.")
        return [required if status == HTTPStatus.UNAUTHORIZED else _no_keys_finding(settings)]
    roles = ", ".join(f"{count} {role}" for role, count in sorted(Counter(k.role for k in active).items()))
    counts = f"{len(active)} active key{'s' * (len(active) != 1)}{f' ({roles})' if roles else ''}"
    bootstrap = f"bootstrap key {'set' if settings.bootstrap_key else 'not set'}"
    findings = [ok("access", f"{counts}, {len(keys) - len(active)} expired; {bootstrap}.")]
    if not (has_admin or settings.auth_disabled or "=admin" in settings.user_roles):
        lack = "There are keys but no active admin key" if active else f"All {len(keys)} keys have expired"
        create = "create an admin key with `aggregator keys add NAME --role admin`."
        problem = f"{lack}: unless the service has a bootstrap key, which these settings lack, {create}"
        finding = note if status else partial(wrong, code=errors.EXIT_PARTIAL_FAILURE)
        findings.append(finding("access", problem))
    notice_until_ms = now_ms + KEY_EXPIRY_NOTICE_DAYS * DAY_MS
    for key in active:
        if key.expires_ms is not None and key.expires_ms < notice_until_ms:
            expiry = f"The key of {key.name!r} expires on {format_minute(key.expires_ms)}"
            remedy = f"`aggregator keys rotate {key.id}` replaces it"
            if any(successor.id == key.replaced_by for successor in active):
                remedy = f"it was rotated to {key.replaced_by}: nothing to do once its user sends that"
            findings.append(note("access", f"{expiry}; {remedy}."))
    return findings


def _no_keys_finding(settings: Settings) -> Finding:
    if settings.auth_disabled:
        return note("access", "No keys: the service is open to every machine that can reach it.")
    problem = f"everybody who reaches {settings.public_url} may read and write"
    if not is_loopback(settings.host):
        problem = f"the service does not start on {settings.host}, which other machines can reach"
    elif not settings.public_url or settings.user_header:
        return note("access", "No keys: the service is open to every program on this machine.")
    problem += "; create a key with `aggregator keys add NAME --role admin`."
    return wrong("access", f"No keys: {problem}", errors.EXIT_CONFIGURATION_ERROR)


async def _check_detector(service: Service) -> list[Finding]:
    lag = await service.background.detector.lag(service.articles.index.stream, MAX_LAG_COUNTED_ARTICLES)
    shown = f"more than {lag}" if lag >= MAX_LAG_COUNTED_ARTICLES else str(lag)
    finding = note if lag > LAG_NOTE_ABOVE_ARTICLES else ok
    findings = [finding("events", f"The detector is {shown} articles behind since its last checkpoint.")]
    history = await service.events.repository.learned_history()
    learning = history.status(service.clock()) if history else LearningStatus(0.0)
    sentence = f"{learning}.".capitalize()
    if history and history.late:
        findings.append(ok("events", f"Late articles that changed what is usual: {history.late}."))
    if not learning.is_complete:
        sentence += " Until then routine may fire; `aggregator ingest FILE --backfill` shortens it."
    findings.append((ok if learning.is_complete else note)("events", sentence))
    findings += [ok("events", f"{reason}.") for reason in (history.reasons if history else ())]
    return findings


async def _check_events(service: Service) -> list[Finding]:
    """Read everything that requests and the webhook dispatcher read: one corrupt value would block them."""
    newest = await service.events.repository.list_events(limit=EVENTS_READ_LIMIT)
    for stored_map in (service.events.desks, service.events.subscriptions):
        await stored_map.values()
    pending = sum((await service.background.webhook_dispatcher.queue.pending()).values())
    return [
        ok("events", f"The newest {len(newest)} events can be read; {pending} webhook deliveries pending.")
    ]


async def check_index(service: Service) -> list[Finding]:
    """What is stored, what of it has expired or will when the service runs, and the last backup."""
    store, findings, total = service.store, list[Finding](), 0
    if untrusted := await service.articles.index.untrusted.read():
        listed = ", ".join(sorted(untrusted))
        findings.append(note("sources", f"Untrusted, so not stored: {listed} (`aggregator audit SOURCE`)."))
    made_ms = await last_backup(store).read()
    made = f"was at {format_minute(made_ms)} UTC" if made_ms else "is unknown (`aggregator backup DIR`)"
    finding = ok if service.clock() - made_ms < 2 * DAY_MS else note  # as the alert BackupOverdue
    findings.append(finding("backup", f"The last complete backup of this store {made}."))
    retention, expiring = service.background.maintenance.jobs.retention, list[Finding]()
    with_days = f"with retention_days = {service.settings.retention_days:g}"
    for space in service.articles.index.spaces:
        found = await spaces.count_articles(store, space, spaces.StoredSpace())
        total += found.articles
        if found.articles:
            span = f"arrived {format_minute(found.oldest_ms)} to {format_minute(found.newest_ms)} UTC"
            floor, next_floor = await retention.floors(space, service.clock())
            texts, expired = f"{space}: about {found.articles} texts, {span}", found.below(floor)
            waiting = f"; about {expired} have expired and wait to be deleted" if expired else ""
            findings.append(ok("index", f"{texts}{waiting}."))
            if count := found.below(next_floor) - expired:
                before = f"which arrived before {format_minute(arrival_ms_of(next_floor))} UTC"
                what = f"{space}: about {count} of {found.articles} texts, {before}"
                expiring.append(note("index", f"{what}, expire when the service runs {with_days}."))
    findings += expiring or [ok("index", f"No text of the sample expires when the service runs {with_days}.")]
    if total >= MIN_TEXTS_FOR_MEMORY_RATIO:
        per_text = f"{(await store.info()).memory_bytes / total:,.0f}"
        findings.append(ok("index", f"{per_text} bytes of memory per stored text, including the fixed part."))
    return findings
