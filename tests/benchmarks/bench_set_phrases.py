"""Width of shingles in scripts without a segmenter: false copies by set phrases, recall of edited copies.

    python -m tests.benchmarks.bench_set_phrases [--widths 5 7 8 10] [--languages ja ko th lo km my zh]

Articles: per language the twenty bulletins of ``tests/support/bulletins.py``, in which half of the text is
set phrases, and their news alone, twenty short articles.
Width ``words`` is 3 words, in Chinese of the segmenter. Per width:

* false  of the 190 pairs of bulletins, those called copies (``plain_rule.is_copy``), and the 0.9 quantile of
  their containment,
* per kind of edit, how many of 20 copies of bulletins (b) and of short articles (s) are called copies; in
  ``replaced`` a tenth of the text is replaced, two characters at a time,
* seam  the lowest containment of a reordered short article.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from aggregator.analysis import shingles
from aggregator.analysis.analyzer import Analyzer, compared_units, select_compared
from aggregator.analysis.models import load_models
from aggregator.analysis.text import tokenizer
from aggregator.dedup.similarity import cosine
from aggregator.domain import Analysis, Article
from tests.benchmarks.plain_rule import is_copy
from tests.support.bulletins import LANGUAGES, SET_PHRASES, bulletins, news

_SENTENCE = re.compile(r"[^。.]+[。.]?")
Edit = Callable[[str, str, random.Random], str]


def cut(text: str, lang: str, rng: random.Random) -> str:
    """The first half."""
    return text[: len(text) // 2]


def padded(text: str, lang: str, rng: random.Random) -> str:
    """Between two set phrases of another site."""
    first, last = (p.format(P="A", N="B", T="C", n=1) for p in rng.sample(SET_PHRASES[lang], 2))
    return f"{first}\n{text}\n{last}"


def reordered(text: str, lang: str, rng: random.Random) -> str:
    """Sentences in random order."""
    sentences = _SENTENCE.findall(text)
    rng.shuffle(sentences)
    return "".join(sentences)


def replaced(text: str, lang: str, rng: random.Random) -> str:
    """A tenth of the pairs of characters replaced by others of the text."""
    pairs = [text[i : i + 2] for i in range(0, len(text), 2)]
    return "".join(rng.choice(pairs) if rng.random() < 0.1 else pair for pair in pairs)


EDITS: tuple[Edit, ...] = (cut, padded, reordered, replaced)


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--widths", nargs="+", default=["5", "7", "8", "10"])
    options.add_argument("--scale", type=float, default=1.0, help="factor on the required shared shingles")
    options.add_argument("--languages", nargs="+", default=list(LANGUAGES))
    args = options.parse_args()
    analyzer = Analyzer(load_models())
    print(
        f"{'lang':5}{'width':6}{'false':>6}{'q0.9':>6}"
        + "".join(f"{e.__name__:>12}" for e in EDITS)
        + "  seam"
    )
    for lang in args.languages:
        for width in [*args.widths, *(["words"] if lang in ("zh", "ko") else [])]:
            print(measure(analyzer, lang, width, args.scale), flush=True)


def measure(analyzer: Analyzer, lang: str, width: str, scale: float) -> str:
    """One line of the table."""
    made = analyze(analyzer, bulletins(lang), width)
    short = analyze(analyzer, news(lang), width)
    found = [compare(a, b, scale) for a, b in itertools.combinations(made, 2)]
    line = (
        f"{lang:5}{width:6}{sum(copy for copy, _ in found):6}{np.quantile([c for _, c in found], 0.9):6.2f}"
    )
    seam = 1.0
    for edit in EDITS:
        counts = []
        for originals, kind in ((made, "b"), (short, "s")):
            rng = random.Random(3)
            edited = [
                Article(id="", text=edit(a.text, lang, rng), title=a.title, lang=lang) for a in originals
            ]
            results = [
                compare(a, b, scale) for a, b in zip(originals, analyze(analyzer, edited, width), strict=True)
            ]
            counts.append(f"{sum(copy for copy, _ in results)}{kind}")
            if edit is reordered and originals is short:
                seam = min(containment for _, containment in results)
        line += f"{' '.join(counts):>12}"
    return f"{line}{seam:6.2f}"


def analyze(analyzer: Analyzer, chosen: list[Article], width: str) -> list[Analysis]:
    """Analyses with the sketches of this width."""
    found = []
    for article in chosen:
        analysis = analyzer.analyze(article)
        if analysis.lang == "ko" and width == "words":
            analysis = replace(analysis, sketch=shingles.build_sketch(tokenizer.words(analysis.text, "ko")))
        elif width != "words":
            parts = [tokenizer.split_text(part, analysis.lang) for part in (article.title, article.text)]
            words, _ = select_compared(*parts)
            units = words if analysis.lang == "zh" else compared_units(words, words, analysis.lang)
            runs = [" ".join(units[i : i + int(width)]) for i in range(max(1, len(units) - int(width) + 1))]
            analysis = replace(analysis, sketch=shingles.build_sketch(runs, 1))
        found.append(analysis)
    return found


def compare(a: Analysis, b: Analysis, scale: float) -> tuple[bool, float]:
    """Whether two articles are copies, and their containment."""
    overlap = shingles.estimate_overlap(a.sketch, b.sketch)
    return is_copy(overlap, cosine(a.terms, b.terms), scale), overlap.containment


if __name__ == "__main__":
    main()
