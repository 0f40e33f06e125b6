"""HTML in texts, and Markdown in headlines, that should be plain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.text.markup import addresses, plain_text, plain_title
from tests.analysis.text.any_text import ANY_TEXT, DIFFICULT_TEXT

IMAGE = (
    '<figure class="wide"><img src="https://gazette.example/a-1024.jpg" alt="" '
    'srcset="https://gazette.example/a-300.jpg 300w, https://gazette.example/a-768.jpg 768w" /></figure>'
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{IMAGE}<p>The ferry sank.</p>", "The ferry sank."),
        (
            '<p>The <b>fer</b>ry <a href="https://x.example/?a=1">sank</a>.</p><br/>Nobody',
            "The ferry sank. Nobody",
        ),
        ("&lt;p&gt;The caf&amp;eacute; burned&lt;/p&gt;", "The café burned"),
        ("The mayor&#8217;s fer&shy;ry &amp; bridge", "The mayor\u2019s fer\xadry & bridge"),
        ("<div><script>if (a < b) { x('<p>') }</script>Rain<!-- <p>old</p> --></div>", "Rain"),
        ("<p>Rain</p><style>p { color: red }", "Rain"),
        ("<P CLASS=lead>Rain</P>", "Rain"),
        ("a < b and c > d", "a < b and c > d"),
        ("Use the tag <b> for it; AT&T; R&D", "Use the tag <b> for it; AT&T; R&D"),
        ("Shares < 5 % <harbour> <mills>", "Shares < 5 % <harbour> <mills>"),
    ],
)
def test_markup_is_not_wording(text: str, words: str) -> None:
    """Tags, addresses, comments and scripts vanish, entities are decoded; other angle brackets stay."""
    assert " ".join(plain_text(text).split()) == words


@given(ANY_TEXT | DIFFICULT_TEXT | st.text("<>/pb&;-! amp", max_size=80))
def test_plain_text_stays(text: str) -> None:
    """A text without markup is returned as it is; the result never grows."""
    assert len(plain_text(text)) <= len(text)
    if "<" not in text and "&" not in text:
        assert plain_text(text) is text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "See https://gazette.example/a.png?b=1, or t.me/tide.",
            "https://gazette.example/a.png?b=1, t.me/tide.",
        ),
        ("渡轮复航详情https://t.example/abc更多 @渡轮公司 发布", "https://t.example/abc @渡轮公司"),
        ("Пишите: desk@gazette.example, канал @parom", "desk@gazette.example @parom"),
        ("Gazette.de: Fähre, foto.jpg", ".de .jpg"),
        ("Ver.di and S.Korea agree, it said.The U.S. (e.g. #ferry) @ noon", ".di"),
    ],
)
def test_addresses_in_texts(text: str, found: str) -> None:
    """Of a host or a file in a sentence, which may be a name, only the ending is one; tags are words."""
    assert addresses(text) == found


def test_hostile_markup_takes_linear_time() -> None:
    """Unclosed tags, scripts, comments and addresses."""
    for part in ("<p", "<script>", "<!--", "<p a='", "&amp", "<p><", "a.b", "aa.bc.", "a+", "@", "www."):
        assert len(plain_text(part * 200_000)) <= len(part) * 200_000
        assert len(addresses(part * 200_000)) <= len(part) * 200_000


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
        ("**Мост закрыт**. @portnews", "Мост закрыт."),
        ("港口大桥关闭 | @gangkou", "港口大桥关闭"),
        ("Bridge closed: https://t.example/x?y=1", "Bridge closed:"),
        ("Мост закрыт t.me/portnews/17", "Мост закрыт"),
        ("Dredger talks to @mayor", "Dredger talks to @mayor"),
        ("https://t.example/x", "https://t.example/x"),
        ("Is 1/2 @home enough?", "Is 1/2 @home enough?"),
    ],
)
def test_headlines_are_shown_without_markdown(title: str, plain: str) -> None:
    """Bold type, links, italics and signatures of chat channels; other asterisks and names stay."""
    assert plain_title(title) == plain
