"""OPML lists."""

from __future__ import annotations

import pytest

from aggregator_client.opml import is_opml, read_opml
from tests.client.feed_server import opml


def test_outlines_at_any_depth() -> None:
    """Each address once; whatever is no web address is left out, since a list may come from anywhere."""
    given = [f"https://paper{number}.example/rss?a=1&b={number}" for number in range(9)]
    data = opml([*given, given[0], "/etc/hostname", "file:///etc/hostname"]).encode()

    assert is_opml(data)
    assert sorted(read_opml(data).addresses) == given
    assert read_opml(data).problem == ""


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("feed://paper.example/rss", "http://paper.example/rss"),
        ("feed:https://paper.example/rss", "https://paper.example/rss"),
        (" HTTPS://paper.example/rss ", "HTTPS://paper.example/rss"),
    ],
)
def test_spellings_of_an_address(written: str, read: str) -> None:
    """The scheme ``feed`` and white space."""
    assert read_opml(f'<opml><body><outline XMLURL="{written}"/></body></opml>'.encode()).addresses == {
        read: None
    }


def test_a_broken_list_gives_what_was_read() -> None:
    """With the place of the damage."""
    data = opml([f"https://paper{number}.example/" for number in range(3)]).encode()
    found = read_opml(data.replace(b"</body>", b"& </body>"))

    assert len(found.addresses) == 3
    assert "the OPML is broken (not well-formed" in found.problem


def test_entities_are_not_expanded() -> None:
    """A list of 1 kB cannot become one of gigabytes, nor contain files of this machine."""
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 20}">' for n in range(1, 12))
    bomb = (
        f'<!DOCTYPE opml [<!ENTITY e0 "ha">{levels}]><opml><body><outline xmlUrl="https://a.example/&e11;"/>'
    )
    external = '<!DOCTYPE opml [<!ENTITY x SYSTEM "file:///etc/hostname">]><opml><body>&x;</body></opml>'
    for data in (bomb, external):
        found = read_opml(data.encode())
        assert found.addresses == {}
        assert "declares entities" in found.problem


def test_other_encodings() -> None:
    """UTF-16, and one that nobody knows."""
    text = (
        '<?xml version="1.0" encoding="{}"?><opml><body><outline xmlUrl="https://a.example/é"/></body></opml>'
    )

    assert is_opml(text.format("utf-16").encode("utf-16"))
    assert read_opml(text.format("utf-16").encode("utf-16")).addresses == {"https://a.example/é": None}
    assert "unknown encoding" in read_opml(text.format("x-none").encode()).problem
