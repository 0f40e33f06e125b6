"""The source of an article: names, hosts, accounts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from aggregator.analysis.source import (
    is_own,
    name_outlets,
    outlet_groups,
    outlet_key,
    outlet_name,
    own_outlets,
    site_group,
    site_of,
    spelled_as,
    with_source,
)
from aggregator.app import read_outlets
from aggregator.domain import Article
from aggregator.errors import ConfigurationError
from aggregator.provenance.directory import families_among
from aggregator.provenance.statistics import Family, SourcesReport
from aggregator.settings import Settings

OUTLETS = """
[[outlets]]
name = "Quay Wire"
sources = ["in.quay.example", "ca.quay.example", "WWW.quay.example"]
group = "Harbour Holding"

[[outlets]]
name = "Pier Post"
group = "Harbour Holding"
own = true
"""


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
    named, unnamed = (
        Article("a", source="Gazette", url="https://t.me/other/7"),
        Article("b", url="https://t.me/other/7"),
    )
    assert [with_source(article).source for article in (named, unnamed)] == ["Gazette", "t.me/other"]
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


@pytest.fixture
def outlets_file(tmp_path: Path) -> Iterator[Path]:
    """A file of outlets, whose names the other tests do not see."""
    yield tmp_path / "outlets.toml"
    name_outlets(())


def test_a_file_names_outlets_groups_and_own_ones(outlets_file: Path) -> None:
    """Its sources are one outlet in any spelling, its groups are families, its own outlets are ours."""
    outlets_file.write_text(OUTLETS)
    name_outlets(read_outlets(Settings(outlets_file=str(outlets_file))))

    for source in ("Quay  wire", "in.quay.example", "CA.quay.example", "quay.example", "www2.quay.example"):
        assert outlet_name(source) == "Quay Wire" and outlet_key(source) == "quay wire"
    assert outlet_name("origin-www.mole.example") == "mole.example" and outlet_name("Mole") == "Mole"
    assert outlet_groups(["pier post", "ca.quay.example"]) == [("Quay Wire", "Pier Post")]
    assert outlet_groups(["Pier Post", "Mole"]) == []
    assert own_outlets() == {"pier post"}
    assert [is_own(name) for name in ("PIER  POST", "quay.example", "")] == [True, False, False]
    report = SourcesReport(1, None, 0, 0, (), (Family(("Mole", "Pier Post", "Buoy"), 9, ()),))
    among = families_among(report, {"Mole", "Buoy", "Pier Post", "in.quay.example"})
    assert among == [("Quay Wire", "Pier Post"), ("Mole", "Buoy")]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('[[outlets]]\nname = "Mole"\nsource = ["mole"]', r"unknown field `source` - at `outlets\[0\]`; "),
        ('[[outlet]]\nname = "Mole"', r": outlet: unknown key; .* has name, sources, group, own\."),
        ('[[outlets]]\nsources = ["mole"]', "missing required field `name`"),
        ("[outlets", "is not valid TOML"),
    ],
)
def test_a_faulty_file_of_outlets_is_one_sentence(outlets_file: Path, content: str, problem: str) -> None:
    """It names the setting, the file and what is wrong."""
    outlets_file.write_text(content)
    with pytest.raises(ConfigurationError, match=problem) as failed:
        read_outlets(Settings(outlets_file=str(outlets_file)))

    assert str(failed.value).count("outlets_file: ") == 1
