"""Markup and addresses in texts: HTML, and Markdown of chat channels in headlines. Linear time."""

from __future__ import annotations

import re
from html import unescape
from itertools import islice

from aggregator.analysis.text.lexicon import table

MIN_TAGS = 2  # "a < b", "the tag <b>" are no markup
_MAX_LAYERS = 3  # escaped markup in a feed, with escaped entities
_INLINE = table("inline", "")
_TAG = re.compile(rf"<(/?)({'|'.join(_INLINE | table('block', ''))})(?:[\s/][^<>]*)?>|<!--", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:[a-z]{2,8}|#[0-9]{2,6}|#x[0-9a-f]{2,5});", re.IGNORECASE)
# Markdown in headlines: bold type, italics, links, the last of which may be cut. Kept are
# "f**k" with letters on both sides, "F** you" without any asterisks that follow something else, and "***".
_LINK = re.compile(r"\[([^\[\]]*)\]\([a-z]+:[^()\[\]\s]*(?:\)|$)")
_MARKS = r"\*\*(?:\*\*)?(?!\*)"
_BOLD_BEGINS = re.compile(rf"(?<![\w*\s]){_MARKS}|(?<![\w*]){_MARKS}(?=\S)")
_BOLD = re.compile(rf"(?<![\w*]){_MARKS}|(?<!\*){_MARKS}(?!\w)")
_ITALIC = re.compile(r"(?<![\w_])__([^_]+)__(?!\w)")
# Behind a finished sentence or a separator, so that "talks to @mayor" stays; an address behind any word.
_SIGNATURE = re.compile(
    r"(?:(?<=[.!?…»”\")])\s*@\w{3,}|\s[|/—–-]+\s*@\w{3,}|(?<=\w\W)\s*(?:https?://|t\.me/)\S*)\s*$"
)

_REST = r"[\w./%?=&#:~+,;@!$*-]*"
_ADDRESS = re.compile(
    rf"(?a:(?<![a-z])[a-z]{{2,10}}://{_REST}|(?<!\w)www\d?\.{_REST}|(?<![\w.+-])[\w.+-]+@[\w.-]+"
    rf"|(?<![\w.-])(?:[\w-]+\.){{1,4}}[a-z]{{2,9}}/{_REST}|(?<=\w\w)(?:\.[a-z]{{2,5}}){{1,2}}(?!\.?\w))|(?<!\w)@\w+"
)
_ADDRESS_HINT = re.compile(r"(?:\.[a-z]|@|://)\S*")


def addresses(text: str) -> str:
    """URLs, e-mail addresses and @handles of a text; of a host or file in a sentence only the ending.

    >>> addresses("Read amazon.com, www.a.example/b.png or t.me/tide, says @tide #storm")
    '.com www.a.example/b.png t.me/tide @tide'
    """
    words, end = [], 0  # only those with a hint: 55 -> 12 us for a text of 400 words
    for hint in _ADDRESS_HINT.finditer(text):
        words.append(text[text.rfind(" ", end, hint.start()) + 1 or end : hint.end()])
        end = hint.end()
    return " ".join(_ADDRESS.findall("\n".join(words)))


def has_markup(text: str) -> bool:
    """Whether a text has a tag or an entity."""
    return bool(("<" in text and _TAG.search(text)) or ("&" in text and _ENTITY.search(text)))


def plain_text(text: str) -> str:
    """The text without tags, comments and scripts, entities decoded; the same object if it has no markup."""
    for _ in range(_MAX_LAYERS):
        if "<" in text and len(list(islice(_TAG.finditer(text), MIN_TAGS))) == MIN_TAGS:
            text = _without_tags(text)
        elif "&" in text and _ENTITY.search(text):
            text = unescape(text)
        else:
            break
    return text


def _without_tags(text: str) -> str:
    """Tags removed; those of blocks, and images, become line ends."""
    parts, end, hidden_until = [], 0, ""
    for tag in _TAG.finditer(text):
        name = (tag[2] or "").lower()
        if tag.start() < end or (hidden_until and tag[1] + name != hidden_until):
            continue
        if not hidden_until:
            parts.append(text[end : tag.start()])
        end, hidden_until = tag.end(), f"/{name}" if name in ("script", "style") and not tag[1] else ""
        if not name:  # a comment, to the end of the text if it has none
            found = text.find("-->", end)
            end = found + 3 if found >= 0 else len(text)
        elif name not in _INLINE:
            parts.append("\n")
    return "".join([*parts, "" if hidden_until else text[end:]])


def plain_title(title: str) -> str:
    """A headline without what chat channels put into it: Markdown, and their name or address at its end.

    >>> plain_title("**[Bridge](https://a.example) closed** after storm. @harbournews")
    'Bridge closed after storm.'
    """
    bare = _LINK.sub(r"\1", title) if "](" in title else title
    if "**" in bare and _BOLD_BEGINS.search(bare):
        bare = _BOLD.sub("", bare)
    if "__" in bare:
        bare = _ITALIC.sub(lambda match: match[1] if " " in match[1] else match[0], bare)
    if "@" in bare or "/" in bare:
        bare = _SIGNATURE.sub("", bare)
    return title if bare == title else " ".join(bare.split()) or title
