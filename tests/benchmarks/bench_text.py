"""CPU time of the text stages and of the whole analysis per article.

    python -m tests.benchmarks.bench_text

The articles are written for this benchmark: about 400 English words and 800 Chinese characters, with curly
quotes as on the web. Every repetition is a different article (other numbers, other order of sentences), so
only the stem cache helps, as in production. Reports the minimum of five rounds of process time after one
warm-up round.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from functools import partial

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.text.figures import figures
from aggregator.analysis.text.html import extract_article
from aggregator.analysis.text.language import detect_language
from aggregator.analysis.text.normalization import normalize
from aggregator.analysis.text.tokenizer import tokenize, words
from aggregator.domain import Article

ARTICLES = 200
ROUNDS = 5
# ruff: noqa: E501  one sentence per line

ENGLISH = [
    "The harbour authority closed the eastern pier on Tuesday after divers found {n} cracks in its oldest pillars.",
    "“We can’t wait for another winter,” the harbour master, Ellen O’Brien, told reporters — the third warning since March.",
    "Ferries carrying 1,{n} passengers a day will berth at the timber quay until engineers finish their survey.",
    "Residents’ groups welcomed the decision but asked why last year’s report, which cost ${n},500, wasn’t published.",
    "The survey is expected to take three weeks, and the council’s budget committee meets on 14 May to discuss repairs.",
    "Fishing crews complained that moving to the northern basin would add {n} minutes to every trip in heavy weather.",
    "A spokesman for the regional government said emergency funding of 2.{n} million could be released within days.",
    "Shops along the waterfront reported a fall in trade, with some owners sending staff home early on Wednesday.",
    "The pier, built in 1908 by a local shipping company, was last strengthened after the storm of 1987.",
    "Opposition councillors accused the mayor of ignoring well-known risks, a claim her office called “simply untrue”.",
]
CHINESE = [
    "港务局周二宣布，潜水员在东码头最老的桥墩上发现{n}处裂缝，码头即日起关闭。",
    "“我们不能再等一个冬天了，”港务局长李海峰对记者说，这是三月以来的第三次警告。",
    "每天运送1{n}名乘客的渡轮将改在木材码头停靠，直到工程师完成全面检测为止。",
    "居民团体对这一决定表示欢迎，同时质疑去年花费{n}万元完成的检测报告为何没有公布。",
    "检测预计需要三周时间，市议会预算委员会将于5月14日开会讨论维修方案和资金来源。",
    "渔民抱怨说，迁往北港池后，遇到恶劣天气时每次出海都要多花{n}分钟。",
    "省政府发言人表示，2.{n}亿元应急资金最快可以在几天之内拨付到位。",
    "沿岸商铺营业额明显下滑，有店主周三提前让员工回家休息，盼望码头早日重新开放。",
]


def _articles(sentences: Sequence[str], length: int, seed: int) -> list[str]:
    chooser = random.Random(seed)
    return [
        " ".join(chooser.choice(sentences).format(n=chooser.randint(10, 99)) for _ in range(length))
        for _ in range(ARTICLES)
    ]


def _cpu_us(stage: Callable[[str], object], texts: Sequence[str]) -> float:
    """Process time per text in microseconds: the minimum over the rounds, as noise only adds to it."""
    rounds = []
    for _ in range(ROUNDS + 1):
        start = time.process_time()
        for text in texts:
            stage(text)
        rounds.append(time.process_time() - start)
    return min(rounds[1:]) / len(texts) * 1e6


def _page(text: str) -> str:
    menu = "".join(f"<li><a href='/section/{n}'>Section {n}</a></li>" for n in range(60))
    body = "".join(f"<p>{part}</p>" for part in text.split(". "))
    return f"<html><head><title>News</title></head><body><nav>{menu}</nav><article>{body}</article></body></html>"


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    analyzer = Analyzer(load_models())
    for lang, texts in (("en", _articles(ENGLISH, 22, 1)), ("zh", _articles(CHINESE, 21, 2))):
        size = sum(map(len, texts)) / ARTICLES
        count = sum(len(words(text, lang)) for text in texts) / ARTICLES
        stages: dict[str, Callable[[str], object]] = {
            "detect": detect_language,
            "normalise": normalize,
            "words": partial(words, lang=lang),
            "tokenize": partial(tokenize, lang=lang),
            "figures": figures,
            "analyse": lambda text: analyzer.analyze(
                Article(id="x", text=text)
            ),  # everything, including language detection
        }
        print(f"{lang}: {size:.0f} characters, {count:.0f} words per article")
        for name, stage in stages.items():
            print(f"  {name:10s} {_cpu_us(stage, texts):8.0f} us CPU per article")
    pages = [_page(text) for text in _articles(ENGLISH, 22, 3)[:50]]
    print(
        f"  extract    {_cpu_us(extract_article, pages):8.0f} us CPU per page of {len(pages[0])} characters"
    )


if __name__ == "__main__":
    main()
