"""HTTP parts of the clients: URL check, headers, reasons of failures, retries."""

from __future__ import annotations

import aiohttp
import pytest

from aggregator_client.errors import ConfigurationError
from aggregator_client.transport import (
    SHORTEST_ATTEMPT_S,
    authorization_headers,
    check_http_url,
    connection_error_reason,
    has_too_many_lines,
    retry,
)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("https://news.example/", "https://news.example"),
        ("https://news.example/desk//", "https://news.example/desk"),
    ],
)
def test_paths_can_be_appended_to_a_checked_url(url: str, expected: str) -> None:
    """No slash is left at the end."""
    assert check_http_url(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        *("", "news.example:8080", "http://", "redis://news.example", "file:///etc/passwd"),
        *("http://127.0.0.1:99999", "http://news.example:0", "http://news.example:http", "http://[::1"),
    ],
)
def test_another_url_is_a_configuration_error(url: str) -> None:
    """The message quotes it."""
    with pytest.raises(ConfigurationError) as caught:
        check_http_url(url)

    assert repr(url) in str(caught.value)


def test_without_a_key_there_is_no_authorization_header() -> None:
    """An empty bearer token would be refused."""
    assert authorization_headers("") == {}
    assert authorization_headers("k1.secret") == {"Authorization": "Bearer k1.secret"}


def test_a_key_from_a_file_ends_with_a_newline() -> None:
    """White space around a key is removed; any other character that no header can carry is named at once."""
    assert authorization_headers("k1.secret\n") == {"Authorization": "Bearer k1.secret"}
    for key in ("k1\nk2", "k1.schl\u00fcssel"):
        with pytest.raises(ConfigurationError, match="key: "):
            authorization_headers(key)


@pytest.mark.integration
async def test_a_refused_connection_is_named_as_by_the_system(free_port: int) -> None:
    """Without the driver's class and address."""
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorError) as caught:
            await session.get(f"http://127.0.0.1:{free_port}/")

    assert connection_error_reason(caught.value) == "Connection refused"


def test_only_the_last_line_says_that_a_batch_has_too_many_lines() -> None:
    """A line that is too long, or an article about the limit, is an ordinary answer."""
    limit = b'{"line":3,"error":{"code":"too_large","detail":"more than max_batch_lines=2 lines"}}'
    too_long = b'{"line":1,"error":{"code":"too_large","detail":"line: longer than 100 bytes"}}'

    assert has_too_many_lines([too_long, limit])
    assert not has_too_many_lines([limit, too_long])
    assert not has_too_many_lines([b'{"verdict":"new","id":"max_batch_lines"}'])
    assert not has_too_many_lines([])


@pytest.mark.parametrize(
    ("error", "reason"), [(ValueError("no luck"), "no luck"), (TimeoutError(), "TimeoutError")]
)
def test_an_error_without_a_message_is_named_by_its_class(error: Exception, reason: str) -> None:
    """A reason is never empty."""
    assert connection_error_reason(error) == reason


class Busy(Exception):
    """A failure that may pass."""


class LongPause(Busy):
    min_pause_s = 3600.0


class Attempts:
    """An attempt that raises ``errors`` in order, then returns its number; records the time left."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)
        self.times_left_s: list[float] = []

    async def __call__(self, time_left_s: float) -> int:
        self.times_left_s.append(time_left_s)
        if self._errors:
            raise self._errors.pop(0)
        return len(self.times_left_s)


async def run_retry(attempts: Attempts, timeout_s: float = 60.0, backoff_s: float = 0.0) -> int:
    """``retry`` with pauses of ``backoff_s``."""
    return await retry(
        attempts, timeout_s, retry_on=Busy, initial_backoff_s=backoff_s, max_backoff_s=backoff_s
    )


async def test_attempts_are_repeated_until_one_succeeds() -> None:
    """Each gets the remaining time, which never grows."""
    attempts = Attempts(Busy(), Busy())

    assert await run_retry(attempts) == 3
    assert attempts.times_left_s == sorted(attempts.times_left_s, reverse=True)
    assert all(0 < left_s <= 60 for left_s in attempts.times_left_s)


async def test_other_errors_are_not_repeated() -> None:
    """An invalid article stays invalid."""
    attempts = Attempts(Busy(), ValueError("invalid"))

    with pytest.raises(ValueError, match="invalid"):
        await run_retry(attempts)
    assert len(attempts.times_left_s) == 2


@pytest.mark.parametrize(
    ("error", "timeout_s", "backoff_s"), [(Busy("last"), 60.0, 3600.0), (LongPause("last"), 60.0, 0.0)]
)
async def test_a_pause_beyond_the_deadline_is_not_waited_for(
    error: Exception, timeout_s: float, backoff_s: float
) -> None:
    """The error is raised at once: the caller gains nothing from waiting."""
    attempts = Attempts(error)

    with pytest.raises(Busy, match="last"):
        await run_retry(attempts, timeout_s, backoff_s)
    assert len(attempts.times_left_s) == 1


async def test_there_is_one_attempt_without_any_time() -> None:
    """It gets a little time, since 0 means no limit to many libraries."""
    attempts = Attempts()

    assert await run_retry(attempts, timeout_s=0.0) == 1
    assert attempts.times_left_s == [SHORTEST_ATTEMPT_S]
