"""Forms of store_url, and what is refused."""

from __future__ import annotations

import pytest

from aggregator.errors import ConfigurationError
from aggregator.store.address import parse_address


def test_options_of_the_service_are_taken_out() -> None:
    """redis-py gets a URL of its own; user and password stay."""
    at = parse_address("rediss+cluster://ada:p%40ss@cache:7000/?prefix=one:&replicated=2&ssl_cert_reqs=none")

    assert (at.url, at.prefix, at.replicas) == (
        "rediss://ada:p%40ss@cache:7000/?ssl_cert_reqs=none",
        b"one:",
        2,
    )
    assert at.is_cluster and at.shown == "cache:7000"
    assert parse_address("redis://cache/3?replicated=all").replicas is None
    assert parse_address("unix:///run/a%20b/store.sock?db=2").url == "unix:///run/a%20b/store.sock?db=2"


def test_sentinels_with_a_password_of_their_own() -> None:
    """Each host has the port 26379 unless it says otherwise; IPv6 in brackets."""
    at = parse_address("redis+sentinel://:key@one,[::1]:26380/news/2?sentinel_password=s")

    assert at.sentinels == [("one", 26379), ("::1", 26380)]
    assert (at.name, at.url, at.sentinel_options) == ("news", "redis://:key@localhost/2", {"password": "s"})
    assert at.shown == "one,[::1]:26380/news"


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("redis+sentinel://one,two", "26379,host:26379/name/0"),
        ("redis://cache?prefix={a}", "prefix takes up to 64 letters"),
        ("redis://cache?replicated=0", "replicated takes all, or a number"),
        ("rediss://cache?ssl_ca_certs=/absent.pem", "/absent.pem .ssl_ca_certs. cannot be read"),
    ],
)
def test_what_cannot_work_is_refused(url: str, sentence: str) -> None:
    """With what is expected."""
    with pytest.raises(ConfigurationError, match=sentence):
        parse_address(url)
