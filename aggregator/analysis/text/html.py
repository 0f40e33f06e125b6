"""Extraction of title and main text from HTML, by trafilatura, without network access.

Its options: docs/decisions/0011-html-extraction.md; no metadata, whose date search takes longer than the
extraction; no deduplication, which remembers earlier pages.
"""

from __future__ import annotations

import contextlib
import logging
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from xxhash import xxh3_64_intdigest

from aggregator.errors import InputTooLarge, NoText

MAX_HTML_CHARS = 20_000_000
MAX_HTML_TAGS = 100_000  # large news pages have 20,000; the extraction takes 30 to 60 us per tag
# The parser's work grows with the square of the attributes of one tag, and by 4 us per attribute beyond that.
MAX_TAG_ATTRIBUTES = 256
MAX_HTML_ATTRIBUTES = 200_000
MAX_TITLE_CHARS = 1_000
# Slots per word, at least; a look-up then reads 1.2 slots for a word of the list, 1.5 for another one.
_SLOTS_PER_WORD = 3

_NON_XML_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")
_HAS_ROOT = re.compile(r"<(?:html|body)[\s>]", re.IGNORECASE)
_XML_DECLARATION = re.compile(r"<\?xml[^>]{0,200}>", re.IGNORECASE)
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
# "Headline | The Paper", "Headline - The Paper": the part after the last such separator, if it is short.
_SITE_NAME = re.compile(r"\s(?:[|\u2013\u2014\u00b7\u00bb-]|::)\s[^|\u2013\u2014\u00b7\u00bb]{1,40}$")

# Elements whose text is not part of an article; on pages without one the extraction returns such text.
_BOILERPLATE_TAGS = ("nav", "menu", "footer", "header", "button", "select", "label", "noscript")
_CONTENT_TAGS = ("article", "main")

# Consent dialogs are recognized by their role or by the ids and classes that consent tools use.
_CONTAINS_NO_ARTICLE_XPATH = (
    "not(self::body or self::article or self::main or .//article or .//main or .//h1)"
)
_DIALOGS_AND_MENUS_XPATH = (
    "//*[(self::dialog or @role='dialog' or @role='alertdialog' or @aria-modal='true'"
    f" or self::nav[not(.//p)] or self::menu[not(.//p)]) and {_CONTAINS_NO_ARTICLE_XPATH}]"
)
_LOWERCASE_NAMES_XPATH = "translate(concat(@id, ' ', @class), 'CDEGIKNOPRST', 'cdegiknoprst')"
_MENTIONS_CONSENT_XPATH = " or ".join(
    f"contains({_LOWERCASE_NAMES_XPATH}, '{word}')" for word in ("cookie", "consent", "gdpr")
)
_CONSENT_CANDIDATES_XPATH = f"//*[({_MENTIONS_CONSENT_XPATH}) and {_CONTAINS_NO_ARTICLE_XPATH}]"
# Excludes classes of articles about the topic ("tag-cookies").
_CONSENT_DIALOG_NAME = re.compile(
    r"(?:^|\s)(?!(?:tag|category|topic|term)-)\S*"
    r"(?:cookie[_-]?(?:banner|bar|bot|box|consent|dialog|disclaimer|hint|info|law|layer|message|modal|notice|"
    r"notification|overlay|policy|popup|wall)|consent|gdpr)",
    re.IGNORECASE,
)

_TITLE_ATTRIBUTES = ("property='og:title'", "name='og:title'", "name='twitter:title'", "name='title'")


@dataclass(frozen=True, slots=True)
class ExtractedArticle:
    """Title (one line, may be empty) and text (at least one letter or digit; one line per paragraph)."""

    title: str
    text: str


def extract_article(html: str) -> ExtractedArticle:
    """Return title and main text of an HTML page or fragment; plain text is accepted too. Deterministic.

    Raises NoText without a main text, InputTooLarge above the limits of this module, and no other error.
    """
    for what, count, limit in (
        ("characters", len(html), MAX_HTML_CHARS),
        ("tags", html.count("<"), MAX_HTML_TAGS),
    ):
        if count > limit:
            raise InputTooLarge(
                f"html has {count:,} {what}; the limit is {limit:,}: send the article's text instead.",
                field="html",
            )
    trafilatura = _import_trafilatura()  # outside the try: its ImportError is not an error of the page
    try:
        document = _XML_DECLARATION.sub("", _NON_XML_CHARACTERS.sub("", html), count=1)
        if not _HAS_ROOT.search(document):
            document = f"<html><body>{document}</body></html>"
        _check_attributes(document)
        found = _extract_document(trafilatura, document)
    except (MemoryError, InputTooLarge):
        raise
    except Exception as error:  # the parser failed on this page; the client can only send the text instead
        raise NoText(
            f"html could not be read ({type(error).__name__}): send the article's text instead.", field="html"
        ) from error
    if found is None:
        raise NoText(
            "html has no main text (nothing but links, text written by scripts, or nested too deep): "
            "send the article's text instead.",
            field="html",
        )
    return found


class _AttributeCounter:
    """Parser target that builds no tree and raises InputTooLarge above the limits on attributes."""

    _total = 0

    def start(self, _tag: str, attributes: Mapping[str, str]) -> None:
        self._total += (count := len(attributes))
        if count > MAX_TAG_ATTRIBUTES or self._total > MAX_HTML_ATTRIBUTES:
            raise InputTooLarge(
                f"html has a tag of more than {MAX_TAG_ATTRIBUTES:,} attributes, or more than "
                f"{MAX_HTML_ATTRIBUTES:,} attributes in all: send the article's text instead.",
                field="html",
            )

    def close(self) -> None:
        """Called at the end of the page."""


def _check_attributes(document: str) -> None:
    """Raise InputTooLarge above the limits on attributes. Linear: the same parser, but without a tree."""
    from lxml import etree  # a dependency of trafilatura, loaded as late

    parser = etree.HTMLParser(target=_AttributeCounter(), huge_tree=True)
    with contextlib.suppress(etree.LxmlError):  # the parser that builds the tree reports it
        parser.feed(document)
        parser.close()


def _extract_document(trafilatura: Any, document: str) -> ExtractedArticle | None:
    tree = trafilatura.load_html(document)
    if tree is None:
        return None
    title = _page_title(tree)
    _remove_overlays(tree)
    found = trafilatura.bare_extraction(tree, include_comments=False, with_metadata=False)
    text = (found.text or "").strip() if found is not None else ""
    if not _LETTER_OR_DIGIT.search(text) or _is_only_boilerplate(tree, text):
        return None
    return ExtractedArticle(title, text)


def _remove_overlays(tree: Any) -> None:
    """Remove dialogs and menus without an article or main heading: they may be longer than it."""
    overlays = tree.xpath(_DIALOGS_AND_MENUS_XPATH)
    for element in tree.xpath(_CONSENT_CANDIDATES_XPATH):
        if _CONSENT_DIALOG_NAME.search(f"{element.get('id', '')} {element.get('class', '')}"):
            overlays.append(element)
    for element in overlays:
        if element.getparent() is not None:
            element.drop_tree()


def _is_only_boilerplate(tree: Any, text: str) -> bool:
    """Whether each line of ``text`` is a link or boilerplate, as on pages without an article."""
    links = [_single_line(link.text_content()) for link in tree.iterfind(".//a[@href]")]
    boilerplate = {*links, *map(_single_line, _boilerplate_text(tree))}
    joined_links = "".join("".join(links).split())  # the text may have a list of links as one unspaced line
    lines = [_single_line(line.removeprefix("- ")) for line in text.splitlines()]
    return all(line in boilerplate or "".join(line.split()) in joined_links for line in lines)


def _boilerplate_text(tree: Any) -> Iterator[str]:
    """Yield the text of menus, footers and headers outside articles, in one walk of linear time."""
    from lxml import etree

    outermost = None
    articles = 0  # nesting depth of articles: a header inside one contains headline and lead
    for event, element in etree.iterwalk(
        tree, events=("start", "end"), tag=_BOILERPLATE_TAGS + _CONTENT_TAGS
    ):
        if element.tag in _CONTENT_TAGS:
            articles += 1 if event == "start" else -1
        elif event == "end":
            outermost = None if element is outermost else outermost
        elif outermost is None and not (articles and element.tag == "header"):
            outermost = element
            yield from element.itertext()


@cache
def _import_trafilatura() -> Any:
    """Import trafilatura, with its stop lists, when the first page arrives (0.3 s), and silence its log."""
    for name in ("trafilatura", "htmldate"):  # before the import, which logs too
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    import justext.core
    import justext.utils
    import trafilatura.external

    replace_stop_lists(trafilatura.external, justext.core, justext.utils)
    return trafilatura


def _page_title(tree: Any) -> str:
    """From metadata, else the only <h1>, else <title> without site name, else any <h1>."""
    for attribute in _TITLE_ATTRIBUTES:
        for tag in tree.iterfind(f".//meta[@{attribute}]"):
            if title := _single_line(tag.get("content") or ""):
                return title
    headings = [line for tag in tree.iterfind(".//h1") if (line := _single_line(tag.text_content()))]
    if len(headings) == 1:
        return headings[0]
    for tag in tree.iterfind(".//title"):
        if title := _single_line(tag.text_content()):
            return _SITE_NAME.sub("", title)
    return headings[0] if headings else ""


def _single_line(text: str) -> str:
    return " ".join(text[: 10 * MAX_TITLE_CHARS].split())[:MAX_TITLE_CHARS]


class HashedWords:
    """Set of words for membership tests: a hash table with open addressing and linear probing.

    The 154,484 stop words of jusText take 4 MB instead of 33; the answers are the same.
    """

    def __init__(self, words: Iterable[str]) -> None:
        hashes = {xxh3_64_intdigest(word) for word in words}
        self._mask = (1 << (len(hashes) * _SLOTS_PER_WORD).bit_length()) - 1
        self._slots = array("Q", bytes(8 * (self._mask + 1)))  # 0: empty
        for hashed in hashes:
            self._slots[self._slot(hashed)] = hashed

    def __contains__(self, word: str) -> bool:
        hashed = xxh3_64_intdigest(word)
        return self._slots[self._slot(hashed)] == hashed

    def _slot(self, hashed: int) -> int:
        slots, mask = self._slots, self._mask
        slot = hashed & mask
        while (found := slots[slot]) and found != hashed:
            slot = (slot + 1) & mask
        return slot


def replace_stop_lists(trafilatura_external: Any, justext_core: Any, justext_utils: Any) -> None:
    """Make these modules of trafilatura and jusText use one table instead of sets. Idempotent."""
    if isinstance(trafilatura_external.JT_STOPLIST, HashedWords):
        return
    trafilatura_external.JT_STOPLIST = HashedWords(
        word for name in sorted(justext_utils.get_stoplists()) for word in justext_utils.get_stoplist(name)
    )
    define: Callable[[Any], Any] = justext_core.define_stoplist
    # It makes a set of a list of words, and would need the words.
    justext_core.define_stoplist = lambda words: words if isinstance(words, HashedWords) else define(words)
