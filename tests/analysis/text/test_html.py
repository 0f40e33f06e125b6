"""HTML extraction: the article of a page, or a clear error if there is none."""

from __future__ import annotations

import logging
import pickle

import justext.core
import justext.utils
import pytest
import trafilatura.external
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import html as lxml_html

from aggregator.analysis.text import html as module
from aggregator.analysis.text.html import ExtractedArticle, HashedWords, extract_article
from aggregator.errors import InputTooLarge, NoText

SENTENCE = (
    "The council voted on Tuesday to close the old bridge, and traffic will be diverted for three weeks."
)
BODY = (
    "<p>"
    + " ".join([SENTENCE] * 3)
    + "</p><p>Officials told residents that the ferry would run every hour.</p>"
)


def _page(body: str, head: str = "") -> str:
    return f"<!DOCTYPE html><html><head>{head}</head><body>{body}</body></html>"


def test_main_text_without_boilerplate() -> None:
    """Menus, comments, scripts and footers are not part of the text."""
    page = _page(
        "<nav><a href='/'>Front page</a> <a href='/s'>Sport</a></nav>"
        f"<article><h1>Bridge to close</h1>{BODY}</article>"
        "<div id='comments'><p>" + "A reader disagrees with everything. " * 20 + "</p></div>"
        "<script>var hidden = 'not for readers';</script><footer>All rights reserved by the paper</footer>"
    )
    found = extract_article(page)

    assert found.title == "Bridge to close"
    assert SENTENCE in found.text
    assert "ferry would run every hour" in found.text
    for boilerplate in ("Front page", "disagrees", "hidden", "All rights"):
        assert boilerplate not in found.text


CONSENT = "<p>" + "We use cookies to measure and to show what you like; you may choose. " * 8 + "</p>"
FLASH = "The ferry to Estmark runs again from Monday, every hour until ten at night."


@pytest.mark.parametrize(
    "around",
    [
        f"<div role='dialog'>{CONSENT}</div>",
        f"<div aria-modal='true'>{CONSENT}</div>",
        f"<dialog open>{CONSENT}</dialog>",
        f"<div id='CookieBanner'>{CONSENT}</div>",
        f"<section class='site tool-CONSENT-layer'>{CONSENT}</section>",
        f"<div class='cookie_notice'><div class='gdpr'>{CONSENT}</div></div>",
        "<nav>" + "<a href='/'>A section of this paper</a> " * 30 + "</nav>",
    ],
)
def test_overlays_do_not_replace_a_short_article(around: str) -> None:
    """Otherwise all flashes of a site would have one text: its consent dialog."""
    page = _page(f"{around}<div class='story'><h1>Ferry runs again</h1><p>{FLASH}</p></div>")

    found = extract_article(page)

    assert FLASH in found.text
    assert "cookies" not in found.text and "A section" not in found.text


@pytest.mark.parametrize(
    "body",
    [
        f"<div role='dialog'><h1>Bridge to close</h1>{BODY}</div>",
        f"<article class='consent cookie-law'>{BODY}</article>",
        f"<div class='post tag-cookie-law topic-consent'>{BODY}</div>",
        f"<body class='cookie-consent-open'>{BODY}</body>",
    ],
)
def test_elements_that_contain_the_article_are_kept(body: str) -> None:
    """An article in a dialog, or about cookies."""
    assert SENTENCE in extract_article(_page(body)).text


def test_a_page_with_only_a_consent_dialog_has_no_text() -> None:
    """The dialog is not taken for the article."""
    with pytest.raises(NoText):
        extract_article(_page(f"<div id='cookie-banner'>{CONSENT}</div>"))


@pytest.mark.parametrize(
    ("head", "body", "expected"),
    [
        (
            "<meta property='og:title' content=' A &amp; B\n close '><title>Other</title>",
            "<h1>Third</h1>",
            "A & B close",
        ),
        ("<meta name='twitter:title' content='Bridge'>", "", "Bridge"),
        (
            "<meta property='og:title' content=''><title>Other</title>",
            "<h1>The <b>only</b> one</h1>",
            "The only one",
        ),
        ("<title>Bridge to close - The Paper</title>", "<h1>One</h1><h1>Two</h1>", "Bridge to close"),
        ("<title>Ex-mayor: well-known bridge</title>", "", "Ex-mayor: well-known bridge"),
        ("", "<h1>One</h1><h1>Two</h1>", "One"),
        ("", "", ""),
    ],
)
def test_titles(head: str, body: str, expected: str) -> None:
    """Metadata, then the only heading, then the title element without site name, then any heading."""
    assert extract_article(_page(body + f"<article>{BODY}</article>", head)).title == expected


@pytest.mark.parametrize(
    "html",
    [
        BODY,
        f"<div>{BODY}",
        f"<article><p>{SENTENCE}<p>{SENTENCE}<b>unclosed<i>tags</article></table></div>",
        f"<?xml version='1.0' encoding='gb2312'?>{_page(BODY)}",
        f"\ufeff{_page(BODY)}",
        _page(f"<article>\x00\x0b{BODY}\ud800</article>"),
        _page(f"<div {'a=1 ' * 50_000}>{BODY}</div>"),
        _page(BODY + "<div>" * 10_000),
        _page("<div>" * 150 + BODY),
        SENTENCE,
        _page(f"<nav>Home</nav><article><header><p>{SENTENCE}</p></header></article>"),
    ],
    ids=[
        "fragment",
        "open",
        "broken",
        "encoding",
        "bom",
        "control",
        "attributes",
        "deep-after",
        "deep",
        "plain",
        "in-a-header",
    ],
)
def test_broken_markup_still_gives_its_text(html: str) -> None:
    """Fragments, unclosed and nested tags, wrong declarations, invalid characters, even plain text."""
    assert SENTENCE in extract_article(html).text


@pytest.mark.parametrize(
    "html",
    [
        "",
        " \n",
        "<html></html>",
        _page("<script>render('" + SENTENCE + "')</script>"),
        _page("<nav><a href='/'>Front page</a><a href='/s'>Sport</a></nav>"),
        _page("".join(f"<li><a href='/{n}'>Story {n}</a></li>" for n in range(50))),
        "<nav>Home</nav>",
        _page("<nav>Home | Sport | News</nav><main></main><footer>Imprint</footer>"),
        _page("<header>The Paper</header><article><nav>Home News</nav><button>Menu</button></article>"),
        _page("<nav>Home</nav><a href='/more'>More</a>", "<title>The Paper</title>"),
        _page("<noscript>Please enable JavaScript to read on.</noscript>"),
        _page("<p>*** --- ***</p>"),
        _page("<div>" * 20_000 + BODY),
        "<b><i>" * 49_000 + BODY,
        "<" * 100_000,
        "&" * 100_000,
        "<!-- " + BODY,
        "<![CDATA[" + SENTENCE,
    ],
    ids=[
        "empty", "blank", "no-body", "script", "menu", "index", "nav", "nav-footer", "header-button",
        "nav-link", "noscript", "ornament", "nested", "unclosed",
        "angles", "ampersands", "comment", "cdata",
    ],
)  # fmt: skip
def test_pages_without_main_text_are_rejected(html: str) -> None:
    """The error names the field and the remedy in one sentence."""
    with pytest.raises(NoText, match=r"^html .*: send the article's text instead\.$") as raised:
        extract_article(html)

    assert raised.value.field == "html"


def test_nested_menus_take_linear_time() -> None:
    """Menus nested to the limit of the parser are read in one walk, not in one for each."""
    with pytest.raises(NoText):
        extract_article(_page("<nav>" * 200 + "<b>x y</b>" * 20_000))


def test_pages_above_the_size_limit_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not parsed."""
    monkeypatch.setattr(module, "MAX_HTML_CHARS", 100)
    with pytest.raises(InputTooLarge, match="the limit is 100"):
        extract_article("x" * 101)


@pytest.mark.integration
def test_a_large_page_is_extracted_completely() -> None:
    """One megabyte of distinct paragraphs."""
    page = _page("<article>" + "".join(f"<p>Report {n}: {SENTENCE}</p>" for n in range(9_000)) + "</article>")

    text = extract_article(page).text
    assert "Report 0:" in text
    assert "Report 8999:" in text


MARKUP = st.lists(
    st.sampled_from(
        ["<p>", "</p>", "<div>", "</div>", "<table>", "<td>", "<a href='x'>", "</a>", "<ul><li>", "<br/>",
         "<h1>", "<title>", "<body>", "<html>", "<head>", "<meta property='og:title' content=\"", "<!--",
         "-->", "<script>", "&#0;", "&#xd800;", "&amp", "<svg>", "<form>", "<iframe>", "]]>", "<?xml ",
         "\x00", "\ud800", SENTENCE, "word ", "中文", "<", ">", '"'],
    ),
    max_size=30,
).map("".join)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(MARKUP | st.text(st.characters(exclude_categories=()), max_size=80))
def test_any_string_gives_text_or_no_text(html: str) -> None:
    """No other error, no empty text, and the same result twice."""
    try:
        found = extract_article(html)
    except NoText:
        return
    assert found.text.strip()
    assert "\n" not in found.title
    assert extract_article(html) == found


def test_earlier_pages_do_not_affect_the_result() -> None:
    """A page extracted four times keeps its text: no deduplication across pages."""
    page = _page(f"<article>{BODY}</article>")

    assert len({extract_article(page) for _ in range(4)}) == 1


def test_results_can_be_pickled_and_nothing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Function, result and error survive pickling; the log records of trafilatura are suppressed."""
    with caplog.at_level(logging.DEBUG), pytest.raises(NoText) as raised:
        extract_article("<html>")

    assert caplog.records == []
    assert pickle.loads(pickle.dumps(extract_article)) is extract_article
    assert pickle.loads(pickle.dumps(ExtractedArticle("t", "x"))) == ExtractedArticle("t", "x")
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_attributes_are_limited() -> None:
    """The parser's work grows with the square of the attributes of one tag; quoted text does not count."""
    names = [f"a{n}" for n in range(module.MAX_TAG_ATTRIBUTES + 1)]
    words = " ".join(names * 4)
    attributes = " ".join(names[2:])
    extract_article(_page(f"<article><p {attributes} title='{words}'>{BODY}</p></article>"))
    for tag in (f"<p {' '.join(names)}>", f'<p x=">" {" ".join(names)}>', "<p " + "=1 ".join(names) + ">"):
        with pytest.raises(InputTooLarge, match="more than 256 attributes"):
            extract_article(_page(f"<article>{tag}{BODY}</article>"))


def test_all_attributes_of_a_page_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """They cost time in each tag."""
    monkeypatch.setattr(module, "MAX_HTML_ATTRIBUTES", 100)
    page = _page("<article>" + "<p class='a' id='b'>The ferry runs again today.</p>" * 50 + "</article>")
    assert extract_article(page).text
    with pytest.raises(InputTooLarge, match="more than 100 attributes in all"):
        extract_article(page.replace("<article>", "<article lang='en'>"))


PARAGRAPHS = (
    "The ferry to the island will run again on Monday, the mayor of the town said after the storm. " * 3,
    "Tickets Timetable Harbour Contact Newsletter Imprint",
    "Die Fähre zu der Insel wird am Montag wieder fahren, wie der Bürgermeister nach dem Sturm sagte. " * 3,
    "zxq wvk plm " * 40,
)
PAGE = "<html><body><article><h1>Ferry</h1>{}<aside>More</aside></article></body></html>".format(
    "".join(f"<p>{text}</p>" for text in PARAGRAPHS)
)


def stop_words() -> set[str]:
    """The words of all lists, as trafilatura joins them."""
    return {word for name in justext.utils.get_stoplists() for word in justext.utils.get_stoplist(name)}


@pytest.fixture
def hashed() -> HashedWords:
    """The table that the extraction uses, after it has examined a page that needs it."""
    assert extract_article(PAGE).text
    table = trafilatura.external.JT_STOPLIST
    assert isinstance(table, HashedWords)
    return table


def test_the_table_has_the_words_of_the_lists_and_no_others(hashed: HashedWords) -> None:
    """Words that are made of them are not in it, unless they are in the lists."""
    words = stop_words()
    assert len(words) > 150_000
    assert all(word in hashed for word in words)
    made = {word + "q" for word in words} - words
    assert not any(word in hashed for word in made)


def test_justext_classifies_as_with_its_own_lists(hashed: HashedWords) -> None:
    """With the function that makes a set of a list as before."""
    classes = []
    for words in (hashed, tuple(stop_words())):
        paragraphs = justext.core.ParagraphMaker.make_paragraphs(lxml_html.fromstring(PAGE))
        justext.core.classify_paragraphs(paragraphs, words)
        classes.append([(paragraph.text, paragraph.cf_class) for paragraph in paragraphs])
    assert classes[0] == classes[1]
    assert len({cf_class for _, cf_class in classes[0]}) > 1
