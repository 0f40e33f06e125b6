"""URLs and store descriptions for people."""

from __future__ import annotations

import pytest

from aggregator.runtime.addresses import describe_store, redact_url, service_url
from aggregator.settings import Settings


def test_a_password_is_never_printed() -> None:
    """``serve`` prints its store, ``doctor`` the settings."""
    url = "rediss://user:geheim@store.example:6380/0?password=geheim"

    assert redact_url(url) == "rediss://store.example:6380/0"
    assert "geheim" not in describe_store(Settings(store_url=url))


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("::", "[::1]"),
        ("::1", "[::1]"),
        ("news", "news"),
    ],
)
def test_the_url_can_be_opened_on_this_machine(host: str, shown: str) -> None:
    """A wildcard address becomes the loopback address."""
    assert service_url(host, 8080) == f"http://{shown}:8080"
