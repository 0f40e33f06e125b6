"""Polite download of feeds: conditional requests, one request per host at a time, limits, redirects.

A permanent redirect (301, 308) is remembered for later polls, Retry-After is passed on, and 410 ends the
feed. A local file is read like a feed that answers 304 until it changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import aiohttp
from yarl import URL

import aggregator_client
from aggregator_client.errors import ClientError
from aggregator_client.feed_ids import is_address
from aggregator_client.transport import connection_error_reason

FETCH_TIMEOUT_S = 30.0
MAX_FEED_BYTES = 16 * 1024 * 1024
MAX_REDIRECTS = 5
CHUNK_BYTES = 64 * 1024
PERMANENT, REDIRECTS = (301, 308), (301, 302, 303, 307, 308)
GZIP_MAGIC = b"\x1f\x8b"
HEADERS = {
    "User-Agent": f"newsdedup-client/{aggregator_client.__version__} (follows feeds)",
    "Accept": "application/rss+xml, application/atom+xml, application/feed+json, application/xml;q=0.9, "
    "application/json;q=0.8, */*;q=0.5",
}


class FetchFailed(ClientError):
    """A feed could not be read, for the reason of the message; ``retry_after_s``: the server's wish, or 0."""

    def __init__(self, message: str, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class FeedGone(FetchFailed):
    """The server says that the feed has ended (410)."""


@dataclass(slots=True)
class Feed:
    """A feed, and what is remembered of it between two polls.

    Attributes:
        location: Address or file name, as given.
        url: Current address, after permanent redirects.
        validators: Headers of the next conditional request.
        digest: Hash of the last document.
        failures: Polls without success since the last one with.
        due_s: Time of the next poll, in seconds of the follower's clock.
        ended: Never to be polled again.
        known: Hashes of the items that were posted, the newest last.
    """

    location: str
    url: str
    validators: dict[str, str] = field(default_factory=dict)
    digest: int | None = None
    failures: int = 0
    due_s: float = float("-inf")
    ended: bool = False
    known: dict[int, None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Document:
    """An answer with a body; ``validators`` and ``url`` are those of the next request for it."""

    data: bytes
    content_type: str
    url: str
    validators: dict[str, str]


class Fetcher:
    """Downloads over one session, at most one request per host at a time. Use as an asynchronous context."""

    def __init__(self, *, timeout_s: float = FETCH_TIMEOUT_S, max_bytes: int = MAX_FEED_BYTES) -> None:
        self._timeout_s, self._max_bytes = timeout_s, max_bytes
        self._hosts: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Fetcher:
        self._session = aiohttp.ClientSession(
            headers=HEADERS,
            timeout=aiohttp.ClientTimeout(total=self._timeout_s),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    async def fetch(self, feed: Feed) -> Document | None:
        """The document, or None if it has not changed. Raises FetchFailed, FeedGone."""
        if not is_address(feed.url):
            return await asyncio.to_thread(self._read_file, feed)
        try:
            return await self._fetch(feed)
        except TimeoutError:
            raise FetchFailed(f"no answer within {self._timeout_s:g} s") from None
        except (aiohttp.ClientPayloadError, zlib.error, EOFError):
            raise FetchFailed("the answer was cut, or its compressed data is damaged") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:  # ValueError: an invalid address
            raise FetchFailed(connection_error_reason(error)) from None

    async def _fetch(self, feed: Feed) -> Document | None:
        url, permanent_url, is_permanent = feed.url, feed.url, True
        for _ in range(MAX_REDIRECTS + 1):
            async with self._request(url, feed.validators if url == feed.url else {}) as response:
                if response.status not in REDIRECTS:
                    return await self._read(response, permanent_url)
                target = response.headers.get("Location", "")
                status = response.status
            url = str(URL(url).join(URL(target))) if target else ""
            if not is_address(url):
                raise FetchFailed(f"status {status} to {target!r}, which is no address")
            is_permanent = is_permanent and status in PERMANENT
            permanent_url = url if is_permanent else permanent_url
        raise FetchFailed(f"more than {MAX_REDIRECTS} redirects")

    @contextlib.asynccontextmanager
    async def _request(self, url: str, headers: dict[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        assert self._session is not None
        host = urlsplit(url).hostname or ""
        lock = self._hosts.setdefault(host, asyncio.Lock())
        async with lock, self._session.get(url, headers=headers, allow_redirects=False) as response:
            yield response

    async def _read(self, response: aiohttp.ClientResponse, permanent_url: str) -> Document | None:
        if response.status == HTTPStatus.NOT_MODIFIED:
            return None
        if response.status == HTTPStatus.GONE:
            raise FeedGone("status 410: the feed has ended and is not polled again")
        if response.status != HTTPStatus.OK:
            phrase = f"status {response.status} {response.reason or ''}".rstrip()
            raise FetchFailed(phrase, _retry_after_s(response.headers.get("Retry-After", "")))
        names = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}
        return Document(
            data=await self._read_body(response),
            content_type=response.headers.get("Content-Type", ""),
            url=permanent_url,
            validators={
                asked: response.headers[name] for name, asked in names.items() if name in response.headers
            },
        )

    async def _read_body(self, response: aiohttp.ClientResponse) -> bytes:
        """The body, decompressed also if no header says that it is compressed. Raises FetchFailed."""
        body = bytearray()
        async for chunk in response.content.iter_chunked(CHUNK_BYTES):
            body += chunk
            self._check_size(len(body))
        return self._decompressed(bytes(body))

    def _decompressed(self, data: bytes) -> bytes:
        if not data.startswith(GZIP_MAGIC):
            return data
        stream = zlib.decompressobj(wbits=31)
        unpacked = stream.decompress(data, self._max_bytes + 1)
        self._check_size(len(unpacked))
        if not stream.eof:
            raise EOFError
        return unpacked

    def _check_size(self, size: int) -> None:
        if size > self._max_bytes:
            raise FetchFailed(f"more than {self._max_bytes} bytes")

    def _read_file(self, feed: Feed) -> Document | None:
        path = Path(feed.url)
        try:
            changed = str(path.stat().st_mtime_ns)
            if feed.validators.get("changed") == changed:
                return None
            with path.open("rb") as file:
                data = file.read(self._max_bytes + 1)
            self._check_size(len(data))
            return Document(self._decompressed(data), "", feed.url, {"changed": changed})
        except OSError as error:
            raise FetchFailed(f"cannot be read: {error.strerror}") from None
        except (zlib.error, EOFError):
            raise FetchFailed("its compressed data is damaged") from None


def _retry_after_s(header: str) -> float:
    """Seconds of a Retry-After header, which is a number or a date; 0 for anything else."""
    if header.isascii() and header.isdigit():
        return float(header[:9])
    try:
        date = parsedate_to_datetime(header)
    except (ValueError, TypeError):
        return 0.0
    return max(0.0, ((date if date.tzinfo else date.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds())
