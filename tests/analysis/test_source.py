"""The source of an article: names, hosts, accounts."""

import pytest

from aggregator.analysis.source import site_group, site_of, source_of, spelled_as


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://www.gazette.example/pool?x=1", "gazette.example"),
        ("http://M.Gazette.example:8080/", "gazette.example:8080"),
        ("https://m.example/a", "m.example"),
        ("https://news.gazette.example/a", "news.gazette.example"),
        ("https://münchen.example/@a", "xn--mnchen-3ya.example/@a"),
        ("https://social.example/@Harbour/109", "social.example/@harbour"),
        ("https://www.youtube.com/@Gazette/videos", "youtube.com/@gazette"),
        ("https://www.youtube.com/channel/UC12/videos", "youtube.com/uc12"),
        ("https://www.youtube.com/watch?v=1", ""),
        ("https://t.me/s/gazette/77", "t.me/gazette"),
        ("https://t.me/gazette/77", "t.me/gazette"),
        ("https://x.com/Gazette/status/1", "x.com/gazette"),
        ("https://x.com/i/web/status/1", ""),
        ("https://m.facebook.com/gazette/posts/1", "facebook.com/gazette"),
        ("https://m.facebook.com/story.php?id=1", ""),
        ("https://medium.com/@ann/pool-1", "medium.com/@ann"),
        ("https://medium.com/the-pool/pool-1", "medium.com/the-pool"),
        ("https://bsky.app/profile/gazette.example/post/1", "bsky.app/gazette.example"),
        ("https://ann.substack.com/p/pool", "ann.substack.com"),
        ("https://news.google.com/rss/articles/CB1", ""),
        ("https://www.msn.com/en-us/news/pool", ""),
        ("not an address", ""),
        ("", ""),
    ],
)
def test_site(url: str, expected: str) -> None:
    """The host, on hosts with accounts the account; a page that others fill is nobody's."""
    assert site_of(url) == expected


def test_a_name_comes_first_in_any_spelling() -> None:
    """The name that was sent counts; its spellings are one source."""
    assert source_of("Gazette", "https://t.me/other/7") == "Gazette"
    assert spelled_as("ＧＡＺＥＴＴＥ\u200b", ["Radio", "Gazette"]) == "Gazette"
    assert spelled_as("Gazetta", ["Radio", "Gazette"]) is None and spelled_as("", ["Radio"]) is None


@pytest.mark.parametrize(
    ("names", "site"),
    [
        (("www.dw.de", "dw.de"), "dw.de"),  # a short name is no suffix
        (("news.gazette.co.uk", "gazette.co.uk"), "gazette.co.uk"),
        (("a.gazette.example", "b.gazette.example"), "gazette.example"),  # a suffix that is not listed
        (("t.me/gazette", "gazette.substack.com"), ""),  # accounts of shared hosts
    ],
)
def test_a_site_is_the_registered_domain(names: tuple[str, str], site: str) -> None:
    """By the public suffix list."""
    assert set(map(site_group, names)) == {site}
