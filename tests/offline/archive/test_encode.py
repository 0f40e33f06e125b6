"""The archive encoder returns the numbers that the service stores."""

import string

from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.text.language import detect_language
from aggregator.domain import Article
from aggregator.offline.archive.encode import Encoder, Encoding
from aggregator.offline.archive.english import is_plain_english
from tests.support.factories import story

ENCODER = Encoder(Encoding(shingles="words"))
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
    """Fingerprint, sample, text hash and space, for plain English and anything else."""
    article = Article(id="a", title=title, text="\n".join([text] * times))
    actual, expected = ENCODER.encode(article), ANALYZER.analyze(article)

    assert (actual.fingerprint, actual.space) == (expected.fingerprint, expected.space)
    assert actual.size == expected.sketch.size
    assert actual.sample.tolist() == expected.sketch.sample.tolist()
    assert actual.text_hash.to_bytes(16, "big") == expected.text_hash


def test_only_plain_english_is_recognized_as_such() -> None:
    """Text recognized as plain English is English to the language detector too."""
    english = (
        TEXTS[0]
        + " They have been promised that help is on the way, but it was not clear when it would come to them."
    )

    assert is_plain_english(english)
    assert detect_language(english) == "en"
    for other in (TEXTS[2] * 3, TEXTS[3] * 3, TEXTS[4], story(1), "words without any of them " * 5):
        assert not is_plain_english(other)
