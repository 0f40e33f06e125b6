"""Titles, URLs and counts of events as text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aggregator.events.event import event_url, plain_title, size_summary
from tests.support.factories import event


def test_ids_are_escaped_in_urls() -> None:
    """Ids are hexadecimal today; a URL must be valid for any id."""
    assert event_url(event("a/b?c", "t"), "https://news.example") == ("https://news.example/events/a%2Fb%3Fc")


def test_the_number_of_outlets_is_singular_or_plural() -> None:
    """Singular "1 outlet", plural "2 outlets"."""
    one_outlet = replace(event("e", "t"), size=16, sources=("one.example",))

    assert size_summary(one_outlet) == "16 items from 1 outlet"
    assert size_summary(replace(one_outlet, sources=("a", "b"))) == "16 items from 2 outlets"


@pytest.mark.parametrize(
    ("title", "plain"),
    [
        ("Bridge closed", "Bridge closed"),
        ("**⚡️****Мост закрыт**: паром идёт **чаще **— порт", "⚡️Мост закрыт: паром идёт чаще — порт"),
        ("👀** Итоги недели", "👀 Итоги недели"),
        ("[📷](https://a.example/x?y=1)**Мост**", "📷Мост"),
        ("Мост [закрыт](https://a.example/cut", "Мост закрыт"),
        ("__Мост закрыт__ и __init__.py", "Мост закрыт и __init__.py"),
        (
            "what the f**k, F** you, f***ing, ***SNAPSHOT***",
            "what the f**k, F** you, f***ing, ***SNAPSHOT***",
        ),
        ("2 ** 3 ** 4, M*A*S*H [1] (2)", "2 ** 3 ** 4, M*A*S*H [1] (2)"),
        ("**", "**"),
    ],
)
def test_headlines_are_shown_without_markdown(title: str, plain: str) -> None:
    """Bold type, links and italics of chat channels; other asterisks stay."""
    assert plain_title(title) == plain
