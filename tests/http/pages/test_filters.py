"""Template filters: formatting of values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.http.pages import filters

AT = datetime(2026, 11, 20, 8, 5, 9, tzinfo=UTC)
AT_MS = int(AT.timestamp() * 1000)
SAME_IN_INDIA = AT.astimezone(timezone(timedelta(hours=5, minutes=30)))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://one.example/a", "https://one.example/a"),
        ("HTTP://one.example", "HTTP://one.example"),
        ("javascript:alert(1)", ""),
        ("JavaScript://one.example/%0aalert(1)", ""),
        (" https://one.example", ""),
        ("data:text/html,https://one.example", ""),
        ("//one.example", ""),
        ("", ""),
    ],
)
def test_only_web_addresses_become_links(url: str, expected: str) -> None:
    """A stored address comes from a crawler and may contain a script."""
    assert filters.safe_url(url) == expected


@pytest.mark.parametrize("at", [AT, SAME_IN_INDIA, AT_MS, AT_MS + 999])
def test_times_are_shown_in_utc(at: datetime | int) -> None:
    """Milliseconds and datetimes of any zone; fractions of a second are omitted."""
    assert filters.utc(at, "%Y-%m-%dT%H:%M:%SZ") == "2026-11-20T08:05:09Z"
    assert filters.utc(at, "%A, %-d %B %Y") == "Friday, 20 November 2026"


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0, "0%"), (0.001, "<1%"), (0.01, "1%"), (0.92, "92%"), (0.996, ">99%"), (1, "100%")],
)
def test_a_share_is_a_whole_percentage(share: float, expected: str) -> None:
    """A few copies of many articles are not none, and not all of them."""
    assert filters.percent(share) == expected


@pytest.mark.parametrize(
    ("count", "words", "expected"),
    [
        (0, ("item",), "0 items"),
        (1, ("item",), "1 item"),
        (2, ("item",), "2 items"),
        (2, ("copy", "copies"), "2 copies"),
        (1, ("copy", "copies"), "1 copy"),
        (1_234_567, ("item",), "1\u202f234\u202f567 items"),
    ],
)
def test_a_noun_agrees_with_its_count(count: int, words: tuple[str, ...], expected: str) -> None:
    """Zero takes the plural; thousands are separated."""
    assert filters.pluralize(count, *words) == expected


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_query_value_is_one_value(text: str) -> None:
    """No character of it separates parameters or path segments."""
    encoded = filters.query_value(text)

    assert unquote(encoded) == text
    assert not set(encoded) & set("/?&=#+ \"'<>")


def test_words_in_double_backticks_are_code() -> None:
    """Markup in the text is escaped, inside and outside."""
    assert filters.inline_code("use ``a<b>`` & ``c``") == "use <code>a&lt;b&gt;</code> &amp; <code>c</code>"
    assert filters.inline_code("<script>") == "&lt;script&gt;"


@given(st.text(st.sampled_from("`<>&\"' ab")))
def test_inline_code_adds_no_other_tag(text: str) -> None:
    """Whatever the text, the result has balanced <code> tags and nothing else."""
    rest = str(filters.inline_code(text))

    assert rest.count("<code>") == rest.count("</code>")
    rest = rest.replace("<code>", "").replace("</code>", "")
    assert "<" not in rest
    assert ">" not in rest


@pytest.mark.parametrize(
    ("ms", "expected"),
    [
        (0, "0 s"),
        (999, "0 s"),
        (40_000, "40 s"),
        (200_000, "3 min 20 s"),
        (180_000, "3 min"),
        (1_500_000 + 59_000, "25 min"),
        (7_500_000, "2 h 5 min"),
        (7_200_000, "2 h"),
        (97_200_000, "1 d 3 h"),
        (864_000_000, "10 d"),
    ],
)
def test_durations(ms: int, expected: str) -> None:
    """Two units at most; seconds matter below 10 minutes only."""
    assert filters.duration(ms).replace("\u00a0", " ") == expected
