"""What ``aggregator doctor`` tells of a store that runs: keys, index, how far the detector is behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from aggregator.errors import AggregatorError
from aggregator.index.statistics import SegmentStatistics, sample_buckets
from aggregator.runtime.exit_codes import EXIT_CONFIGURATION_ERROR, EXIT_OK, exit_code
from aggregator.settings import Settings, is_loopback
from aggregator.time_units import DAY_MS

if TYPE_CHECKING:
    from aggregator.app import Service

KEY_EXPIRY_NOTICE_DAYS = 14
# Below so many texts the store's own memory is all that a division would show.
MIN_TEXTS_FOR_MEMORY_RATIO = 1000
# Further behind than this is said as "more than".
MAX_LAG_COUNTED_ARTICLES = 5000
# What is said of a store that is reached, when something in it cannot be read.
CONTENTS_SUBJECT = "contents"
EVENTS_READ_LIMIT = 500
# Articles that a tick of some seconds may leave: more is worth a word.
LAG_NOTE_ABOVE_ARTICLES = 1000

FindingStatus = Literal["ok", "note", "wrong"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence on one subject; ``code`` is the exit code it asks for."""

    subject: str
    mark: FindingStatus
    sentence: str
    code: int = EXIT_OK


async def check_contents(service: Service) -> list[Finding]:
    """All that is known of an opened store; what cannot be read does not hide the rest."""
    found: list[Finding] = []
    for look in (_check_keys, _check_detector, _check_events, _check_index):
        try:
            found += await look(service)
        except AggregatorError as error:
            found.append(Finding(CONTENTS_SUBJECT, "wrong", str(error), exit_code(error)))
    return found


def check_tls(url: str) -> Iterator[Finding]:
    """A word on a store on another machine that is spoken to without TLS."""
    parts = urlsplit(url)
    if parts.scheme in ("redis", "redis+cluster") and parts.hostname and not is_loopback(parts.hostname):
        yield Finding(
            "store",
            "note",
            f"{parts.hostname} is spoken to in the clear; use rediss:// unless the network is your own.",
        )


async def _check_keys(service: Service) -> list[Finding]:
    now_ms = service.clock()
    known = await service.api_keys.list_keys()
    living = [key for key in known if key.is_active(now_ms)]
    if not living and not service.settings.bootstrap_key:
        return [_no_keys_finding(service.settings, len(known))]
    roles = ", ".join(f"{count} {role}" for role, count in sorted(Counter(k.role for k in living).items()))
    found = [Finding("access", "ok", f"{len(living)} key{'s' * (len(living) != 1)} in use{f' ({roles})' if roles else ''}, "
                     f"{len(known) - len(living)} expired; bootstrap key "
                     f"{'set' if service.settings.bootstrap_key else 'not set'}.")]  # fmt: skip
    ending = [
        k
        for k in living
        if k.expires_ms is not None and k.expires_ms < now_ms + KEY_EXPIRY_NOTICE_DAYS * DAY_MS
    ]
    for key in ending:
        found.append(
            Finding("access", "note", f"The key of {key.name!r} ends on {format_utc_minute(key.expires_ms or 0)}; "
                    "`aggregator keys rotate` makes its successor.")
        )  # fmt: skip
    return found


def _no_keys_finding(settings: Settings, expired_count: int) -> Finding:
    if settings.auth_disabled:
        return Finding(
            "access", "note", "No keys: the service asks for none and is for everybody who reaches it."
        )
    if expired_count:
        return Finding("access", "wrong", f"All {expired_count} keys have expired, so nobody is let in; `aggregator keys add NAME "
                       "--role ROLE` makes another one.", EXIT_CONFIGURATION_ERROR)  # fmt: skip
    if not is_loopback(settings.host):
        return Finding("access", "wrong", f"No keys: the service does not start on {settings.host}, which other machines reach; "
                       "`aggregator keys add NAME --role admin` makes one.", EXIT_CONFIGURATION_ERROR)  # fmt: skip
    return Finding(
        "access", "note", "No keys: the service asks for none and is for programs of this machine alone."
    )


async def _check_detector(service: Service) -> list[Finding]:
    behind = await service.background.detector.lag(service.index, MAX_LAG_COUNTED_ARTICLES)
    much = f"more than {behind}" if behind >= MAX_LAG_COUNTED_ARTICLES else str(behind)
    return [
        Finding("events", "note" if behind > LAG_NOTE_ABOVE_ARTICLES else "ok",
                f"The detector has {much} articles of the stream to read since its last checkpoint.")
    ]  # fmt: skip


async def _check_events(service: Service) -> list[Finding]:
    """What callers and the courier read whole: one damaged value keeps all of it from them."""
    newest = await service.events.list_events(limit=EVENTS_READ_LIMIT)
    for shelf in (service.saved_filters, service.webhook_subscriptions):
        await shelf.values()
    owed = sum((await service.webhook_dispatcher.pending()).values())
    return [
        Finding(
            "events", "ok", f"{len(newest)} newest events can be read; {owed} calls of webhooks are owed."
        )
    ]


async def _check_index(service: Service) -> list[Finding]:
    """What is stored, segment by segment, and how evenly it is spread."""
    findings = []
    memory = (await service.store.info()).memory_bytes
    surveys = [await sample_buckets(service.index, space) for space in service.index.spaces]
    total = sum(each.articles for each in surveys)
    for each in (each for each in surveys if each.articles):
        parts = ", ".join(_segment_summary(segment) for segment in each.segments)
        findings.append(
            Finding("index", "ok", f"{each.space}: {parts}. Largest bucket sampled: {each.largest_bucket_entries}; a look-up "
                    f"at 7 bits reads about {each.mean_candidates:,.1f} entries.")
        )  # fmt: skip
    if total >= MIN_TEXTS_FOR_MEMORY_RATIO:
        findings.append(
            Finding("index", "ok", f"{memory / total:,.0f} bytes of memory per text stored, all in all.")
        )
    return findings


def _segment_summary(segment: SegmentStatistics) -> str:
    state = "writable" if segment.sealed_ms is None else f"sealed {format_utc_minute(segment.sealed_ms)}"
    oldest = "" if segment.oldest_ms is None else f", oldest {format_utc_minute(segment.oldest_ms)}"
    return f"segment {segment.number} with {segment.articles} texts ({state}{oldest})"


def format_utc_minute(timestamp_ms: int) -> str:
    """UTC, to the minute."""
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
