"""Stemmers, and what a process loads for them; rjieba, the fast segmenter, gives the words of jieba."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.analysis.text.morphology import (
    DICTIONARY_RANGE,
    SNOWBALL_LANGUAGES,
    Segmenter,
    jieba_segmenter,
    segmenter,
    stemmer,
)
from aggregator.analysis.text.tokenizer import tokenize
from tests.support.hang_limit import HANG_LIMIT_S

rjieba = pytest.importorskip("rjieba", reason="rjieba is not installed on this platform: nothing to compare")

TEXTS = [
    "市议会周二投票决定关闭旧桥进行维修，交通将改道三周，官员们表示已通知附近居民。",
    "渡轮公司宣布，两千名乘客已全部安全获救，船长王小明正在接受海事部门的调查。",
    "新华镇小学校长李雪梅说，今年秋天将有一百二十名新生入学，比去年多三成。",
    "央行下调存款准备金率0.5个百分点，释放长期资金约1.2万亿元，专家认为利好股市。",
    "BBC记者在Apple总部外报道：iPhone 15发布会吸引了5,000多名观众，T恤和卡拉OK券免费送。",
    "颱風逼近臺灣東部，氣象局發布海上警報，學校停課一天，航班取消逾百架次。",
    "研究生命的起源，南京市长江大桥，乒乓球拍卖完了，他说的确实在理。",
    "〇々㐀㐁𠀀𠀁龥鿕鿖鿿豈﨑々〆〻",
    "的的的的了了了中中中中中",
    "一二三四五六七八九十百千万亿两",
    "中\u0301国\u200b人\ufeff民\ud800银行\udfff ｱｲｳ カタカナとひらがな 한국어 עברית",
    "囧槑靐龘䶮㙍㵘",
    "a中b国c1人2民3 4%的+#&._-",
    "",
    " \n\t",
]


def _terms(text: str, monkeypatch: pytest.MonkeyPatch, cut: Segmenter) -> list[str]:
    monkeypatch.setattr("aggregator.analysis.text.tokenizer.segmenter", lambda: cut)
    return tokenize(text, "zh")


@pytest.mark.integration
@pytest.mark.parametrize("text", TEXTS)
def test_same_terms_from_both(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The terms are equal with both segmenters, also for unusual Unicode."""
    assert _terms(text, monkeypatch, rjieba.cut) == _terms(text, monkeypatch, jieba_segmenter())


@pytest.mark.integration
@pytest.mark.parametrize("text", TEXTS)
def test_same_words_from_both(text: str) -> None:
    """The raw segmentation is equal too, without surrogates, which are removed earlier."""
    text = text.encode("utf-8", "ignore").decode()
    runs = chinese_runs(text)

    assert [rjieba.cut(run) for run in runs] == [jieba_segmenter()(run) for run in runs]


def chinese_runs(text: str) -> list[str]:
    """Return what the tokenizer passes to a segmenter: runs within jieba's dictionary range."""
    return re.findall(f"[{DICTIONARY_RANGE}]+", text)


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FD5), max_size=30))
def test_same_words_for_any_ideographs(run: str) -> None:
    """Random ideographs, mostly unknown words for the hidden Markov model."""
    assert rjieba.cut(run) == jieba_segmenter()(run)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from("市议会周二投票决定关闭旧桥维修的了在是中国人民银行长江大桥南京"),
        max_size=30,
        unique=True,
    )
)
def test_same_words_for_common_ideographs(characters: list[str]) -> None:
    """Random orders of common characters, full of overlapping dictionary words.

    Each character occurs once: of two equally likely segmentations of a nonsense word that repeats a
    character (five of them, the first as the last, three alike between) jieba may return one and rjieba the
    other.
    """
    run = "".join(characters)

    assert rjieba.cut(run) == jieba_segmenter()(run)


def test_rjieba_is_used_if_installed() -> None:
    """It is installed in this environment."""
    assert segmenter() == rjieba.cut


@pytest.mark.integration
def test_jieba_is_used_silently_without_rjieba() -> None:
    """The terms are the same, without output or warning, and the dictionary is loaded only when needed."""
    program = """
import sys, warnings
warnings.simplefilter("error")
sys.modules["rjieba"] = None
from aggregator.analysis.text.tokenizer import tokenize
assert tokenize("The mayor spoke", "zh") and "jieba" not in sys.modules
print(" ".join(tokenize("渡轮公司宣布", "zh")))
assert "jieba" in sys.modules
"""
    completed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=HANG_LIMIT_S, check=True
    )

    assert completed.stdout.split() == ["渡轮", "公司", "宣布"]
    assert completed.stderr == ""


NAMES = ("nltk.text", "nltk.corpus", "scipy", "sklearn")
PROGRAM = """
import sys
{before}
from aggregator.analysis.text.morphology import SNOWBALL_LANGUAGES, stemmer
assert stemmer("en")("swimming") == "swim"
print(*(name for name in {names} if name in sys.modules))
words = "running مدرسة skiløbere laufenden stories corriendo juoksemassa marchaient futottak correndo бегущий"
stems = [stemmer(lang)(word) for lang in SNOWBALL_LANGUAGES for word in words.split()]
import scipy.stats, sklearn.base, nltk.stem.snowball
from aggregator.analysis.text.normalization import restore_umlauts
for lang, name in SNOWBALL_LANGUAGES.items():
    for word in words.split():
        prepared = restore_umlauts(word) if lang == "de" else word
        whole = getattr(nltk.stem.snowball, name + "Stemmer")().stem(prepared) or word
        assert stems.pop(0) == whole, (lang, word)
"""


def loaded_packages(before: str = "") -> list[str]:
    """Return which of ``NAMES`` a new process has loaded after stemming a word.

    The program also checks that they can be imported afterwards, and that nltk as a whole gives the same
    stems.
    """
    completed = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=before, names=NAMES)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert completed.returncode == 0, completed.stderr
    return completed.stdout.split()


@pytest.mark.integration
def test_a_stemmer_loads_neither_the_rest_of_nltk_nor_scipy() -> None:
    """They would cost about 1.5 s and 100 MB per process."""
    assert loaded_packages() == []


@pytest.mark.integration
def test_packages_imported_before_stay_imported() -> None:
    """A fit uses scikit-learn before the first word is stemmed; another library may use nltk."""
    assert loaded_packages("import nltk, sklearn.base") == list(NAMES)


def test_every_listed_language_has_a_stemmer() -> None:
    """Other languages have none."""
    assert all(stemmer(lang) is not None for lang in SNOWBALL_LANGUAGES)
    assert stemmer("zh") is None
