"""The archive encoder returns the numbers that the service stores."""

import string

from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.domain import Article
from aggregator_archive.encode import Encoder, Encoding
from tests.support.factories import story

ENCODER = Encoder(Encoding())
ANALYZER = Analyzer(load_models())
TEXTS = [
    "The minister said on Tuesday that 1,200 homes in the valley had lost power; it's not known why.",
    "“Prices rose by 3.5% — the most since 1998,” the bank’s governor told reporters in Zürich on Monday.",
    "Die Ministerin sagte am Dienstag, dass im Tal 1.200 Haushalte ohne Strom seien.",
    "国家统计局星期一公布的数据显示，今年前三季度国内生产总值同比增长百分之五。",
    "The the the a of",
    story(7, 12),
]


@given(st.sampled_from(TEXTS), st.integers(1, 4), st.text(string.printable + "é’國", max_size=40))
@settings(max_examples=60, deadline=None)
def test_signatures_equal_those_of_the_service(text: str, times: int, title: str) -> None:
    """Whatever the rules read is equal, for plain English and anything else."""
    article = Article(id="a", title=title, text="\n".join([text] * times))
    actual, expected = ENCODER.encode(article), ANALYZER.analyze(article)

    assert (actual.fingerprint, actual.space) == (expected.fingerprint, expected.space)
    assert actual.sketch.size == expected.sketch.size
    assert actual.sketch.sample.tolist() == expected.sketch.sample.tolist()
    assert actual.sketch.marks.tolist() == expected.sketch.marks.tolist()
    assert (actual.lang, actual.short, actual.title) == (expected.lang, expected.short, expected.title)
    assert (actual.terms, actual.figures) == (expected.terms, expected.figures)
    assert actual.text_hash.to_bytes(16, "big") == expected.text_hash


def test_the_language_of_the_run_is_that_of_articles_without_one() -> None:
    """``--lang`` is a declaration like that of an article, which comes first."""
    encoder = Encoder(Encoding(lang="sv"))

    assert encoder.encode(Article(id="a", text="Stor brand i natt")).lang == "sv"
    assert encoder.encode(Article(id="a", text="Stor brand i natt", lang="no")).lang == "no"
