"""Article ids: canonical URLs, content ids, and rejected input."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.article_id import NORMALIZED_CHARS, canonical_url, derive_id, validate_id
from aggregator.errors import InvalidInput


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.org/a/b", "example.org/a/b"),
        ("http://example.org/a/b/", "example.org/a/b"),
        ("HTTPS://EXAMPLE.org:443/A/b#top", "example.org/A/b"),
        ("http://example.org:80", "example.org"),
        ("http://example.org:8080/", "example.org:8080"),
        ("https://example.org:80/", "example.org:80"),
        ("http://user:secret@example.org/x", "example.org/x"),
        ("http://example.org./x", "example.org/x"),
        ("http://example.org/?utm_source=a&UTM_Medium=b&fbclid=c&gclid=d", "example.org"),
        ("http://example.org/p?b=2&a=1&utm_x=9", "example.org/p?a=1&b=2"),
        ("http://example.org/p?a=2&a=1", "example.org/p?a=2&a=1"),
        ("http://example.org/p/?id=7", "example.org/p?id=7"),
        ("http://example.org/%7euser/%e6%96%b0", "example.org/~user/%E6%96%B0"),
        ("http://example.org/~user/新", "example.org/~user/%E6%96%B0"),
        ("http://example.org/a b", "example.org/a%20b"),
        ("http://example.org/100%", "example.org/100%25"),
        ("http://münchen.example/x", "xn--mnchen-3ya.example/x"),
        ("http://[2001:DB8::1]:8080/x", "[2001:db8::1]:8080/x"),
        ("  http://example.org/x ", "example.org/x"),
        ("http://example.org/a%2Fb", "example.org/a%2Fb"),
        # Routes of pages that are one file belong to the id; places within a page do not.
        ("https://spa.example/#/article/1", "spa.example#/article/1"),
        ("https://spa.example/#/article/1/?utm_source=x&b=2&a=1", "spa.example#/article/1?a=1&b=2"),
        (
            "https://spa.example/app/?v=2#!/новости/7/",
            "spa.example/app?v=2#!/%D0%BD%D0%BE%D0%B2%D0%BE%D1%81%D1%82%D0%B8/7",
        ),
        ("https://spa.example/#!beitrag-7", "spa.example#!/beitrag-7"),
        ("https://spa.example/#/?id=7", "spa.example#/?id=7"),
        ("https://spa.example/#/", "spa.example"),
        ("https://spa.example/x#comments", "spa.example/x"),
        ("https://spa.example/x#:~:text=said", "spa.example/x"),
        # What a proxy that normalizes paths would change.
        ("http://example.org/a//b/./c/../d", "example.org/a/b/d"),
        ("http://example.org/../a/%2e%2e/b/.", "example.org/b"),
        ("http://example.org/a/...b", "example.org/a/...b"),
        ("http://example.org/p?u=http://example.com/../x", "example.org/p?u=http:%2F%2Fexample.com%2F..%2Fx"),
        ("https://spa.example/#/a/../b//c", "spa.example#/b/c"),
        # Tracking parameters, by courlan.
        (
            "http://example.org/p?at_medium=RSS&s_cid=123&fb_ref=0&clickid=1&gclsrc=aw&a=1",
            "example.org/p?a=1",
        ),
        ("http://example.org/p?referrer=x&xtor=RSS-7&ns_campaign=y&cid=social_tw", "example.org/p"),
        ("http://example.org/p?utm_source=rss&amp;utm_medium=rss&amp;id=7", "example.org/p?id=7"),
        ("http://example.org/front.php?cid=1042&uid=7", "example.org/front.php?cid=1042&uid=7"),
        ("http://example.org/a.cfm?SourceCode=20140310ff", "example.org/a.cfm?SourceCode=20140310ff"),
        ("http://example.org/news?1042", "example.org/news?1042"),
    ],
)
def test_canonical_form(url: str, expected: str) -> None:
    """Each rule of the canonical form is applied."""
    assert canonical_url(url) == expected


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("javascript:alert(1)", "http:// or https://"),
        ("ftp://example.org/x", "http:// or https://"),
        ("example.org/x", "http:// or https://"),
        ("//example.org/x", "http:// or https://"),
        ("http://", "host name"),
        ("http:///x", "host name"),
        ("http://exa mple.org/", "host name"),
        ("http://evil.example\\@example.org/", "host name"),
        ("http://example.org:99999/", "not an address"),
        ("http://[::1/", "not an address"),
        ("http://example.org/a\nb", "control characters"),
        ("http://example.org/\x00", "control characters"),
        ("http://example.org/" + "a" * 5000, "4096"),
    ],
)
def test_invalid_urls_are_rejected(url: str, part: str) -> None:
    """Anything but an absolute http(s) URL is rejected with an error about the field url."""
    with pytest.raises(InvalidInput) as caught:
        canonical_url(url)

    assert caught.value.field == "url"
    assert part in str(caught.value)


PARTS = st.lists(
    st.sampled_from(["a", "/", ".", "%2e", "?", "#", "!", "&", "&amp;", "amp;", "=", "utm_", "新"])
)


@given(st.text(max_size=60) | PARTS.map("".join), st.text(max_size=30) | PARTS.map("".join))
def test_canonical_form_is_a_fixed_point(path: str, query: str) -> None:
    """Canonicalizing twice changes nothing, and the only error is InvalidInput."""
    try:
        canonical = canonical_url(f"http://example.org/{path}?{query}")
    except InvalidInput:
        return

    assert canonical.isascii()
    assert canonical_url("http://" + canonical) == canonical


def test_given_id_wins_over_url_and_content() -> None:
    """A given id is used unchanged, else the URL, else the content."""
    assert derive_id("desk/7", "http://example.org/x", "t", "x") == "desk/7"
    assert derive_id(None, "http://example.org/x", "t", "x") == "example.org/x"
    assert derive_id(None, "", "t", "x").startswith("content:")


@pytest.mark.parametrize("page", ["", "/", "/index.html", "/?utm_source=rss", "/de/", "/pt-BR/index.php"])
def test_a_front_page_names_no_article(page: str) -> None:
    """Items of a feed that all link to it are told apart by their content, and from those of other sites."""
    url = "https://radio.example" + page
    fog = derive_id(None, url, "Nebel", "Den ganzen Tag.")

    assert fog.startswith("content:") and fog == derive_id(
        None, "http://radio.example", "nebel", "den ganzen Tag."
    )
    assert len({fog, derive_id(None, url, "Zoll", ""), derive_id(None, "", "Nebel", "Den ganzen Tag.")}) == 3
    assert derive_id(None, "https://radio.example/de/nebel", "", "") == "radio.example/de/nebel"


def test_content_ids_ignore_case_and_white_space() -> None:
    """The same words give the same content id; another title gives another."""
    content_id = derive_id(None, "", "Storm  Warning", "Wind rises.\n")

    assert content_id == derive_id(None, "", "storm warning", "wind  RISES.")
    assert content_id != derive_id(None, "", "storm", "warning wind rises.")
    assert len(content_id) == len("content:") + 32


def test_long_urls_are_hashed() -> None:
    """A canonical URL above 512 bytes still gives a valid id."""
    url = "http://example.org/" + "a" * 600

    assert derive_id(None, url, "", "").startswith("url:")
    assert derive_id(None, url, "", "") == derive_id(None, url + "/", "", "")


@pytest.mark.parametrize("id", ["", "  ", "a\nb", "a\x00", "\x85", "a\u2028b", "é" * 257, "\ud800"])
def test_invalid_ids_are_rejected(id: str) -> None:
    """Empty, too long and unprintable ids are rejected."""
    with pytest.raises(InvalidInput, match=r"^id: "):
        validate_id(id)


@pytest.mark.parametrize("id", ["a", "{tag}", "a:b", "文章/7?x=1", "🙂", "é" * 256])
def test_valid_ids_are_accepted(id: str) -> None:
    """Braces, colons, slashes and emoji are allowed."""
    assert validate_id(id) == id


def test_the_content_id_of_an_expanding_text_is_cheap() -> None:
    """Its normal form has 18 times as many characters; only the head is normalized, and the rest counts."""
    text = "\ufdfa" * NORMALIZED_CHARS

    assert derive_id(None, "", "", text + "a") != derive_id(None, "", "", text + "b")
    assert derive_id(None, "", "", "ＢＢＣ " + text) == derive_id(None, "", "", "bbc " + text)
    assert derive_id(None, "", "", "a" + "\u0301\u0327" * 500_000).startswith("content:"), "in linear time"
