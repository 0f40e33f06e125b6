"""Stop lists of jusText as hashes: the same words, used by the extraction."""

import justext.core
import justext.utils
import pytest
import trafilatura.external
from lxml import html as lxml_html  # type: ignore[import-untyped]

from aggregator.analysis.text.html import extract_article
from aggregator.analysis.text.stop_lists import HashedWords

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
