"""Ids of feed items."""

from __future__ import annotations

import pytest

from aggregator.analysis.article_id import MAX_ID_BYTES, derive_id
from aggregator.analysis.source import site_of
from aggregator_client.feed_ids import global_id, host_of, is_address


@pytest.mark.parametrize(
    ("guid", "expected"),
    [
        ("1042", "gazette.example:1042"),
        (" tag:gazette.example,2026:7\n", "gazette.example:tag:gazette.example,2026:7"),
        ("Новость 7", "gazette.example:Новость 7"),
        ("http:1", "gazette.example:http:1"),
        ("https://gazette.example/?p=7", "https://gazette.example/?p=7"),
        ("gazette.example:1042", "gazette.example:1042"),
        ("a\x00b\ud800", "gazette.example:ab"),
        ("", ""),
    ],
)
def test_a_guid_that_is_no_address_gets_the_host(guid: str, expected: str) -> None:
    """Once; characters that the service refuses are removed."""
    assert global_id(guid, "gazette.example") == expected
    assert global_id(expected, "gazette.example") == expected


@pytest.mark.parametrize("guid", ["x" * 600, "новость" * 80, "https://gazette.example/" + "y" * 600])
def test_a_long_guid_is_replaced_by_its_hash(guid: str) -> None:
    """The service accepts each of them, and two long guids stay different."""
    id_ = global_id(guid, "gazette.example")

    assert derive_id(id_, "", "", "") == id_
    assert len(id_.encode()) <= MAX_ID_BYTES
    assert id_ != global_id(guid + "z", "gazette.example")


def test_a_guid_without_a_host_is_left_as_it_is() -> None:
    """A file has no host."""
    assert global_id("7", "") == "7"


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://www.Gazette.example:8443/a", "gazette.example:8443"),
        ("https://gazette.example:443/a", "gazette.example"),
        ("http://gazette.example:443/a", "gazette.example:443"),
        ("http://:8080/a", ""),
        ("http://gazette.example:port/a", ""),
        ("http://[2001:db8::1]/rss", "2001:db8::1"),
        ("http://gazette.example.", "gazette.example"),
        ("mailto:desk@gazette.example", ""),
        ("http://[broken/", ""),
        ("/latest", ""),
    ],
)
def test_the_host_of_an_address(url: str, host: str) -> None:
    """Lower case, without ``www.`` and the default port, as the service names a source."""
    assert host_of(url) == host
    assert is_address(url) == bool(host)
    assert site_of(url).strip("[]") == host
