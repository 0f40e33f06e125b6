"""What ``aggregator doctor`` tells of a store that runs: keys, index, how far the detector is behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from aggregator.errors import AggregatorError
from aggregator.index.statistics import SegmentCount, survey
from aggregator.runtime.exit_codes import OK, UNUSABLE, exit_code
from aggregator.settings import Settings, is_loopback

if TYPE_CHECKING:
    from aggregator.app import Service

DAY_MS = 86_400_000
SOON_DAYS = 14
# Below so many texts the store's own memory is all that a division would show.
WORTH_DIVIDING = 1000
# Further behind than this is said as "more than".
AT_MOST_BEHIND = 5000
# What is said of a store that is reached, when something in it cannot be read.
CONTENTS = "contents"
EVENTS_READ = 500
# Articles that a tick of some seconds may leave: more is worth a word.
USUAL_BEHIND = 1000

Mark = Literal["ok", "note", "wrong"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence on one subject; ``code`` is the exit code it asks for."""

    subject: str
    mark: Mark
    sentence: str
    code: int = OK


async def contents(service: Service) -> list[Finding]:
    """All that is known of an opened store; what cannot be read does not hide the rest."""
    found: list[Finding] = []
    for look in (_keys, _detector, _events, _index):
        try:
            found += await look(service)
        except AggregatorError as error:
            found.append(Finding(CONTENTS, "wrong", str(error), exit_code(error)))
    return found


def in_the_clear(url: str) -> Iterator[Finding]:
    """A word on a store on another machine that is spoken to without TLS."""
    parts = urlsplit(url)
    if parts.scheme in ("redis", "redis+cluster") and parts.hostname and not is_loopback(parts.hostname):
        yield Finding(
            "store",
            "note",
            f"{parts.hostname} is spoken to in the clear; use rediss:// unless the network is your own.",
        )


async def _keys(service: Service) -> list[Finding]:
    now_ms = service.clock()
    known = await service.access.list()
    living = [key for key in known if key.lives(now_ms)]
    if not living and not service.settings.bootstrap_key:
        return [_without_keys(service.settings, len(known))]
    roles = ", ".join(f"{count} {role}" for role, count in sorted(Counter(k.role for k in living).items()))
    found = [Finding("access", "ok", f"{len(living)} key{'s' * (len(living) != 1)} in use{f' ({roles})' if roles else ''}, "
                     f"{len(known) - len(living)} expired; bootstrap key "
                     f"{'set' if service.settings.bootstrap_key else 'not set'}.")]  # fmt: skip
    ending = [k for k in living if k.expires_ms is not None and k.expires_ms < now_ms + SOON_DAYS * DAY_MS]
    for key in ending:
        found.append(
            Finding("access", "note", f"The key of {key.name!r} ends on {day(key.expires_ms or 0)}; "
                    "`aggregator keys rotate` makes its successor.")
        )  # fmt: skip
    return found


def _without_keys(settings: Settings, expired: int) -> Finding:
    if settings.open_access:
        return Finding(
            "access", "note", "No keys: the service asks for none and is for everybody who reaches it."
        )
    if expired:
        return Finding("access", "wrong", f"All {expired} keys have expired, so nobody is let in; `aggregator keys add NAME "
                       "--role ROLE` makes another one.", UNUSABLE)  # fmt: skip
    if not is_loopback(settings.host):
        return Finding("access", "wrong", f"No keys: the service does not start on {settings.host}, which other machines reach; "
                       "`aggregator keys add NAME --role admin` makes one.", UNUSABLE)  # fmt: skip
    return Finding(
        "access", "note", "No keys: the service asks for none and is for programs of this machine alone."
    )


async def _detector(service: Service) -> list[Finding]:
    behind = await service.events.behind(service.index, AT_MOST_BEHIND)
    much = f"more than {behind}" if behind >= AT_MOST_BEHIND else str(behind)
    return [
        Finding("events", "note" if behind > USUAL_BEHIND else "ok",
                f"The detector has {much} articles of the stream to read since its last checkpoint.")
    ]  # fmt: skip


async def _events(service: Service) -> list[Finding]:
    """What callers and the courier read whole: one damaged value keeps all of it from them."""
    newest = await service.events.list(limit=EVENTS_READ)
    for shelf in (service.watches, service.hooks):
        await shelf.values()
    owed = sum((await service.courier.owed()).values())
    return [
        Finding(
            "events", "ok", f"{len(newest)} newest events can be read; {owed} calls of webhooks are owed."
        )
    ]


async def _index(service: Service) -> list[Finding]:
    """What is stored, segment by segment, and how evenly it is spread."""
    findings = []
    memory = (await service.store.info()).memory_bytes
    surveys = [await survey(service.index, space) for space in service.index.spaces]
    total = sum(each.articles for each in surveys)
    for each in (each for each in surveys if each.articles):
        parts = ", ".join(_segment(segment) for segment in each.segments)
        findings.append(
            Finding("index", "ok", f"{each.space}: {parts}. Largest bucket sampled: {each.largest}; a look-up "
                    f"at 7 bits reads about {each.candidates:,.1f} entries.")
        )  # fmt: skip
    if total >= WORTH_DIVIDING:
        findings.append(
            Finding("index", "ok", f"{memory / total:,.0f} bytes of memory per text stored, all in all.")
        )
    return findings


def _segment(segment: SegmentCount) -> str:
    state = "writable" if segment.sealed_ms is None else f"sealed {day(segment.sealed_ms)}"
    oldest = "" if segment.oldest_ms is None else f", oldest {day(segment.oldest_ms)}"
    return f"segment {segment.number} with {segment.articles} texts ({state}{oldest})"


def day(ms: int) -> str:
    """UTC, to the minute."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")
