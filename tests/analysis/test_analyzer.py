"""Analyzer: what is computed from one article."""

import pickle
import sys

import pytest

from aggregator.analysis.analyzer import SHORT_BELOW_WORDS, Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.analysis.text import chinese, tokenizer
from aggregator.domain import Article
from aggregator.errors import NoText
from tests.support.factories import story

ANALYZER = Analyzer({"xx": HashedModel()})
HTML = (
    "<html><head><title>Harbour wall repaired</title></head><body><nav>Home News Sport</nav>"
    "<article><h1>Harbour wall repaired</h1>"
    "<p>Masons in Quellport finished the harbour wall on Tuesday after two winters of work.</p>"
    "<p>The last stone was set by the oldest fisherman of the town, who said that he had seen "
    "three walls fall.</p>"
    "<p>The council paid for the stones with a loan that runs for twelve years.</p></article></body></html>"
)


def test_html_becomes_its_main_text() -> None:
    """Title and text come from the page, without its navigation."""
    found = ANALYZER.analyze(Article(id="a", html=HTML))

    assert found.title == "Harbour wall repaired"
    assert "oldest fisherman" in found.text
    assert "Sport" not in found.text


def test_given_text_wins_over_html() -> None:
    """A text that the crawler extracted is used as it is."""
    assert ANALYZER.analyze(Article(id="a", text=story(1), html=HTML)).text == story(1)


@pytest.mark.parametrize(
    "article", [Article(id="a"), Article(id="a", text=" \n\t"), Article(id="a", title="!!! ---")]
)
def test_no_words_is_an_error(article: Article) -> None:
    """Without words there is nothing to fingerprint; the error names what to send."""
    with pytest.raises(NoText, match="no words"):
        ANALYZER.analyze(article)


@pytest.mark.parametrize("lang", ["en", "fr"])
def test_texts_of_stop_words_only_get_different_fingerprints(lang: str) -> None:
    """Without an index term the words themselves are used: not fingerprint 0 for all such texts."""
    found = [
        ANALYZER.analyze(Article(id="a", text=text, lang=lang))
        for text in ("hello", "are you", "not us", "x")
    ]

    assert all(analysis.terms for analysis in found)
    assert min((a.fingerprint ^ b.fingerprint).bit_count() for a in found for b in found if a is not b) > 7


def test_headlines_count_for_short_texts_only() -> None:
    """One notice under two company names is two texts; one newswire story under two headlines is one."""
    notice = "Quarterly dividend 25 cents against 25 cents. Payable on April 20."
    short = [
        ANALYZER.analyze(Article(id="a", title=t, text=notice)) for t in ("Oskara Mills", "Belcourt Rail")
    ]
    long = [
        ANALYZER.analyze(Article(id="a", title=t, text=story(1))) for t in ("Oskara Mills", "Belcourt Rail")
    ]

    assert short[0].text_hash != short[1].text_hash
    assert long[0].text_hash == long[1].text_hash


def test_case_and_punctuation_do_not_change_the_text_hash() -> None:
    """The text hash is a hash of the normalized words."""
    first = ANALYZER.analyze(Article(id="a", text="The ferry sank. “Nobody” was hurt", lang="en"))
    second = ANALYZER.analyze(Article(id="b", text='THE FERRY  SANK - "nobody" was hurt!', lang="en"))

    assert first.text_hash == second.text_hash
    assert first.fingerprint == second.fingerprint


def test_short_flag_and_term_weights() -> None:
    """A headline is marked short; term weights are descending and of unit norm."""
    headline = ANALYZER.analyze(Article(id="a", title="Ferry sinks off Veldmoor"))
    long = ANALYZER.analyze(Article(id="a", text=story(3)))

    assert (headline.short, long.short) == (True, False)
    assert len(story(3).split()) > SHORT_BELOW_WORDS
    weights = [w for _, w in long.terms]
    assert weights == sorted(weights, reverse=True)
    assert sum(w * w for w in weights) == pytest.approx(1)


def test_unusable_articles_do_not_affect_the_others() -> None:
    """There is one result per article, in order."""
    results = ANALYZER.analyze_many(
        [Article(id="a", text=story(1)), Article(id="b"), Article(id="c", text=story(2))]
    )

    assert [isinstance(r, NoText) for r in results] == [False, True, False]


def test_the_analyzer_is_picklable() -> None:
    """An unpickled analyzer gives the same fingerprint."""
    again = pickle.loads(pickle.dumps(ANALYZER))

    assert (
        again.analyze(Article(id="a", text=story(1))).fingerprint
        == ANALYZER.analyze(Article(id="a", text=story(1))).fingerprint
    )


def test_chinese_text_in_the_fallback_space() -> None:
    """Without a Chinese model a Chinese article still gets words, sketch and fingerprint."""
    found = ANALYZER.analyze(
        Article(id="a", text="港口的渡船在星期二上午离开码头，船上有四十名乘客和六名船员。")
    )

    assert found.lang == "zh"
    assert found.space.startswith("xx.")
    assert found.sketch.size > 10


def test_spaces_with_and_without_opencc_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without OpenCC traditional characters stay, so the conversion is part of the Chinese space."""
    model = HashedModel("zh")
    with_it = Analyzer({"zh": model, "xx": HashedModel()}).spaces
    traditional = "港務局週二宣布關閉東碼頭"
    assert tokenizer.words(traditional, "zh") == tokenizer.words("港务局周二宣布关闭东码头", "zh")

    chinese.simplifier.cache_clear()
    monkeypatch.setitem(sys.modules, "opencc", None)
    without = Analyzer({"zh": model, "xx": HashedModel()}).spaces
    assert tokenizer.words(traditional, "zh") == list(traditional)
    chinese.simplifier.cache_clear()

    assert with_it[0] != without[0]
    assert with_it[1] == without[1]
