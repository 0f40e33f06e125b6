"""Headlines, URLs and counts of events as text. Pure."""

from __future__ import annotations

import re
from urllib.parse import quote

from aggregator.events.event import Event

# Title of an event with neither headline (its article was deleted) nor terms.
NO_HEADLINE = "(no headline)"
# Markdown in headlines of chat channels: bold type, italics, links, the last of which may be cut. Kept are
# "f**k" with letters on both sides, "F** you" without any asterisks that follow something else, and "***".
_LINK = re.compile(r"\[([^\[\]]*)\]\([a-z]+:[^()\[\]\s]*(?:\)|$)")
_MARKS = r"\*\*(?:\*\*)?(?!\*)"
_BOLD_BEGINS = re.compile(rf"(?<![\w*\s]){_MARKS}|(?<![\w*]){_MARKS}(?=\S)")
_BOLD = re.compile(rf"(?<![\w*]){_MARKS}|(?<!\*){_MARKS}(?!\w)")
_ITALIC = re.compile(r"(?<![\w_])__([^_]+)__(?!\w)")


def title_of(event: Event) -> str:
    """The headline without Markdown, or the terms of an event without one."""
    return plain_title(event.title) or ", ".join(event.terms) or NO_HEADLINE


def plain_title(title: str) -> str:
    """A headline without the Markdown that chat channels put into it: bold type and links.

    >>> plain_title("**[Bridge](https://a.example) closed** after storm")
    'Bridge closed after storm'
    """
    bare = _LINK.sub(r"\1", title) if "](" in title else title
    if "**" in bare and _BOLD_BEGINS.search(bare):
        bare = _BOLD.sub("", bare)
    if "__" in bare:
        bare = _ITALIC.sub(lambda match: match[1] if " " in match[1] else match[0], bare)
    return title if bare == title else " ".join(bare.split()) or title


def event_url(event: Event, base_url: str) -> str:
    """URL of the event's page. ``base_url``: public URL of the service, without a trailing slash."""
    return f"{base_url}/events/{quote(event.id, safe='')}"


def size_summary(event: Event) -> str:
    """Number of items and outlets, for example "21 items from 3 outlets"."""
    outlets = len(event.sources)
    return f"{event.size} items from {outlets} {'outlet' if outlets == 1 else 'outlets'}"
