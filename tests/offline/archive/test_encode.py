"""Encoding for archives gives what the service stores, only sooner."""

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
ANALYSER = Analyzer(load_models())
TEXTS = [
    "The minister said on Tuesday that 1,200 homes in the valley had lost power; it's not known for how long.",
    "“Prices rose by 3.5% — the most since 1998,” the bank’s governor told reporters in Zürich on Monday.",
    "Die Ministerin sagte am Dienstag, dass im Tal 1.200 Haushalte ohne Strom seien.",
    "国家统计局星期一公布的数据显示，今年前三季度国内生产总值同比增长百分之五。",
    "The the the a of",
    story(7, 12),
]


@given(st.sampled_from(TEXTS), st.integers(1, 4), st.text(string.printable + "é’國", max_size=40))
@settings(max_examples=60, deadline=None)
def test_the_numbers_are_those_of_the_service(text: str, times: int, title: str) -> None:
    """Fingerprint, sample, text hash and space, for plain English and anything else."""
    article = Article(id="a", title=title, text="\n".join([text] * times))
    ours, wanted = ENCODER.encode(article), ANALYSER.analyze(article)

    assert (ours.fingerprint, ours.space, ours.size) == (wanted.fingerprint, wanted.space, wanted.sketch.size)
    assert ours.sample.tolist() == wanted.sketch.sample.tolist()
    assert ours.text_hash.to_bytes(16, "big") == wanted.text_hash


def test_plain_english_is_recognised_and_nothing_else_is() -> None:
    """What it says is English, the detector calls so too."""
    english = (
        TEXTS[0]
        + " They have been told that help is on the way, but it was not clear when it would come to them."
    )

    assert is_plain_english(english)
    assert detect_language(english) == "en"
    for other in (TEXTS[2] * 3, TEXTS[3] * 3, TEXTS[4], story(1), "words without any of them " * 5):
        assert not is_plain_english(other)
