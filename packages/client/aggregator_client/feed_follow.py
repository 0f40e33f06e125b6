"""Follower of feeds: polls them in rounds, posts new items to a service, and reports in one line per feed.

A round polls the feeds that are due, ``PARALLEL`` hosts at a time and the feeds of a host one after the
other. A feed that fails is left out of the following rounds, twice as long each time. Items that were posted
are remembered while the feed lists them, so memory depends on the feeds and not on the number of polls; they
are posted again when they change. What a service that is unavailable did not get is posted in a later round.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from apscheduler.schedulers.asyncio import AsyncIOScheduler

from aggregator_client.client import Client
from aggregator_client.decision import TAKEN_DOWN, Decision
from aggregator_client.errors import ClientError, ConfigurationError, InvalidInput, Unavailable
from aggregator_client.feed_articles import Article, make_articles
from aggregator_client.feed_fetch import Document, Feed, FeedGone, Fetcher, FetchFailed
from aggregator_client.feed_ids import host_of
from aggregator_client.feed_parsing import ParsedFeed, parse_feed
from aggregator_client.opml import is_opml, read_opml

PARALLEL = 16
MAX_PAUSE_S = 24 * 3600.0
MAX_FEEDS = 10_000
VERDICTS = ("new", "related", "duplicate")
OPTIONAL_COUNTS = ("replaced_others", "already_stored", "undated", "refused", TAKEN_DOWN)


class Follower:
    """Feeds and the service that gets their items; ``client`` must fail closed.

    Args:
        client: Client of the service.
        fetcher: Downloads the feeds.
        locations: Addresses or files of feeds and OPML lists.
        interval_s: Time between the starts of two rounds, in seconds.
        write: Gets each line of the report.
        clock: Monotonic, in seconds.
    """

    def __init__(
        self,
        client: Client,
        fetcher: Fetcher,
        locations: Iterable[str],
        *,
        interval_s: float,
        write: Callable[[str], None] = print,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._fetcher = client, fetcher
        self._interval_s, self._write, self._clock = interval_s, write, clock
        self._slots = asyncio.Semaphore(PARALLEL)
        self._problem: ClientError | None = None
        self._outage: Unavailable | None = None  # of the service in this round
        self.feeds = {location: Feed(location, location) for location in locations}
        self.counts: Counter[str] = Counter()
        self.rounds = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Poll now and once per interval until ``stop`` is set or all feeds have ended.

        Raises Unavailable if the service is not ready at the start, ConfigurationError if it refuses the key.
        """

        async def scheduled_round() -> None:
            try:
                await self.poll_round()
            except Unavailable as error:
                self._write(f"{error} The feeds are polled in the next round.")
                self._problem = None if self.rounds else error
            except ConfigurationError as error:
                self._problem = error
            if self._problem or all(feed.ended for feed in self.feeds.values()):
                stop.set()

        scheduler = AsyncIOScheduler()
        scheduler.add_job(
            scheduled_round, "interval", seconds=self._interval_s, next_run_time=datetime.now().astimezone(),
            max_instances=1, coalesce=True, misfire_grace_time=None,
        )  # fmt: skip
        scheduler.start()
        try:
            await stop.wait()
        finally:
            scheduler.shutdown(wait=False)
        if self._problem:
            raise self._problem
        self._write(f"in all, {self.rounds} rounds: {_format_totals(self.counts)}")

    async def poll_round(self) -> Counter[str]:
        """Poll all feeds that are due, and those of the lists among them; returns the counts.

        Raises Unavailable if the service is not ready, or was not until the end.
        """
        started_s, seconds = self._clock(), time.monotonic()
        self._outage = None
        if problem := await self._client.readiness_problem():
            raise Unavailable(problem)
        counts: Counter[str] = Counter()
        due = [feed for feed in self.feeds.values() if not feed.ended and feed.due_s <= started_s]
        while due:
            known = set(self.feeds)
            hosts = defaultdict(list)
            for feed in due:
                hosts[host_of(feed.url)].append(feed)
            for counted in await asyncio.gather(
                *(self._poll_host(feeds, started_s) for feeds in hosts.values())
            ):
                counts += counted
            due = [feed for location, feed in self.feeds.items() if location not in known]
        self.counts += counts
        self.rounds += 1
        self._write(f"{_format_totals(counts)}; {time.monotonic() - seconds:.1f} s")
        if self._outage:
            raise self._outage
        return counts

    async def _poll_host(self, feeds: Sequence[Feed], started_s: float) -> Counter[str]:
        """Poll the feeds of one host, up to a failure of the service."""
        counts: Counter[str] = Counter()
        async with self._slots:
            for feed in feeds:
                if not self._outage:
                    counts += await self._poll(feed, started_s)
        return counts

    async def _poll(self, feed: Feed, started_s: float) -> Counter[str]:
        """Poll one feed, write its line and set the time of its next poll; the counts of this poll."""
        counts, wait_s, line = Counter(polled=1), self._interval_s, ""
        try:
            document = await self._fetcher.fetch(feed)
            if document is None or hash(document.data) == feed.digest:
                counts["unchanged"] += 1
                line = "" if self.rounds else "not modified"
            elif is_opml(document.data):
                line = self._add_list(feed, document, counts)
            else:
                line = await self._post(feed, document, counts)
            feed.failures = 0
        except FeedGone as error:
            feed.ended = True
            counts["gone"] += 1
            line = f"{error}."
        except (FetchFailed, InvalidInput, Unavailable) as error:
            counts["failed"] += 1
            if isinstance(error, Unavailable) and await self._client.readiness_problem():
                self._outage = error
                line = "not posted, since the service is unavailable; the next round does it."
            else:  # also if a service that is ready fails at these very items
                feed.failures += 1
                wait_s = self._pause_s(feed.failures, getattr(error, "retry_after_s", 0.0))
                line = f"error: {str(error).rstrip('.')}; next poll in {_format_span(wait_s)}."
        # Half an interval of tolerance: rounds do not start at exact times.
        feed.due_s = started_s + wait_s - self._interval_s / 2
        if line:
            self._write(f"{feed.location}: {line}")
        return counts

    def _pause_s(self, failures: int, asked_s: float) -> float:
        """Seconds from a failed poll to the next one; ``asked_s``: the minimum that the server asks for."""
        wait_s = max(self._interval_s * 2.0 ** min(failures, 20), asked_s)
        return min(wait_s, max(MAX_PAUSE_S, self._interval_s))

    def _add_list(self, feed: Feed, document: Document, counts: Counter[str]) -> str:
        """Follow the feeds of an OPML list; the line about it."""
        found = read_opml(document.data)
        for address in found.addresses:
            if len(self.feeds) < MAX_FEEDS:
                self.feeds.setdefault(address, Feed(address, address))
        counts["lists"] += 1
        counts["broken"] += bool(found.problem)
        _remember(feed, document, ())
        cut = f"; {MAX_FEEDS} feeds in all are the limit" if len(self.feeds) == MAX_FEEDS else ""
        problem = f"; {found.problem}." if found.problem else ""
        return f"a list of {len(found.addresses)} feeds{cut}{problem}"

    async def _post(self, feed: Feed, document: Document, counts: Counter[str]) -> str:
        """Post the items that are new or changed; the line about them, empty if there are none."""
        # In a thread: a large document takes seconds.
        parsed = await asyncio.to_thread(parse_feed, document.data, document.url, document.content_type)
        hashes = [hash(replace(item, published=str(item.published))) for item in parsed.items]
        articles = make_articles(parsed.items, host_of(feed.location) or host_of(parsed.website))
        fresh = [at for at, hash_ in enumerate(hashes) if hash_ not in feed.known]
        decisions = await self._submit([articles[at] for at in fresh])
        for at, decision in zip(fresh, decisions, strict=True):
            counts["articles"] += 1
            keep = decision.keep and decision.answer is not None
            repeated = keep and not decision.stored
            counts["already_stored" if repeated else decision.kind or decision.verdict] += 1
            counts["kept"] += keep
            counts["replaced_others"] += bool(decision.answer and decision.answer.reused_id)
            counts["undated"] += "published_at" not in articles[at]
        counts["broken"] += bool(parsed.problem)
        moved = f"moved permanently to {document.url}; " if document.url != feed.url else ""
        _remember(feed, document, hashes)
        refused = next((decision.problem for decision in decisions if decision.kind == "refused"), "")
        return _format_line(parsed, moved, counts, refused, not self.rounds)

    async def _submit(self, articles: Sequence[Article]) -> list[Decision]:
        """One Decision per article; one that is refused is posted once more, without its HTML or its address.

        A description of nothing but links has no main text, but its headline is news.
        """
        decisions = await self._client.submit_many(articles)
        again = [at for at, decision in enumerate(decisions) if decision.kind == "refused"]
        for at, decision in zip(
            again, await self._client.submit_many([_reduced(articles[at]) for at in again]), strict=True
        ):
            decisions[at] = decision
        return decisions


def _reduced(article: Article) -> Article:
    """The article without the part that a service refuses most often."""
    removed = "html" if "html" in article else "url"
    return {name: value for name, value in article.items() if name != removed}


def _remember(feed: Feed, document: Document, hashes: Sequence[int]) -> None:
    """Store what the next poll needs: validators, address, and twice as many items as the document has."""
    feed.validators, feed.url = document.validators, document.url
    feed.digest = hash(document.data)
    for hash_ in hashes:
        feed.known.pop(hash_, None)
        feed.known[hash_] = None
    for oldest in list(feed.known)[: max(0, len(feed.known) - 2 * len(hashes))]:
        del feed.known[oldest]


def _format_line(parsed: ParsedFeed, moved: str, counts: Counter[str], refused: str, is_first: bool) -> str:
    if not (counts["articles"] or moved or is_first):
        return ""
    reason = f" ({refused.rstrip('.')})" if refused else ""
    problem = f"; {parsed.problem}." if parsed.problem else ""
    return moved + _format_articles(counts) + reason + problem


def _format_articles(counts: Counter[str]) -> str:
    """``12 articles: 10 new, 1 related, 1 duplicate; 11 kept, 2 undated``."""
    verdicts = ", ".join(f"{counts[name]} {name}" for name in VERDICTS)
    others = "".join(f", {counts[name]} {name.replace('_', ' ')}" for name in OPTIONAL_COUNTS if counts[name])
    return f"{counts['articles']} articles: {verdicts}; {counts['kept']} kept{others}"


def _format_totals(counts: Counter[str]) -> str:
    """``200 polls: 150 unchanged, 3 failed, 1 gone, 2 broken; 12 articles: ...``."""
    polls = ", ".join(f"{counts[name]} {name}" for name in ("unchanged", "failed", "gone", "broken"))
    return f"{counts['polled'] - counts['lists']} polls: {polls}; {_format_articles(counts)}"


def _format_span(seconds: float) -> str:
    return f"{seconds / 3600:.3g} h" if seconds >= 7200 else f"{max(1, round(seconds / 60))} min"
