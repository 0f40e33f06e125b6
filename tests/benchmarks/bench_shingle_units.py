"""Shingle units of Chinese: false copies by set phrases, recall of edited copies, CPU per article.

    python -m tests.benchmarks.bench_shingle_units FILE [--articles N] [--edited N] [--units c5 c8 w3 w4 w5]

FILE has one Chinese source (xinwenlianbo_dev.jsonl.gz). Units: ``c5`` are runs of 5 characters, ``w3`` runs
of 3 words of the segmenter. The source is split by publication year (up to 2023, from 2024), so that a unit
chosen on one half is quoted on the other. For every unit and half:

* pairs  pairs that share a sketch key (8 stored, 16 looked up) and the wording of a copy
  (``plain_rule.is_copy``),
* wrong  those of other bulletins: headlines with a similarity below 0.6, and less than half of the
  4-character shingles of the shorter text in the other one,
* whole  those with at least 0.8 of these shingles in common: copies that every unit should find,
* called, wrong  pairs that also have the term similarity of a copy,
* per kind of edit, the share of ``--edited`` copies that are found (a sketch key in common or at most 7 bits)
  and called duplicates, and after the slash the 0.05 quantile of their containment.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from aggregator.analysis import shingles
from aggregator.analysis.analyzer import Analyzer, select_compared
from aggregator.analysis.models import load_models
from aggregator.analysis.simhash import hamming_distance
from aggregator.analysis.text import tokenizer
from aggregator.analysis.text.chinese import segmenter
from aggregator.dedup.similarity import cosine
from aggregator.domain import Analysis, Article, Sketch
from aggregator.offline import jsonl
from tests.benchmarks.plain_rule import RELATED_BITS, is_copy

HALVES = {"until 2023": ("2000", "2024"), "from 2024": ("2024", "2100")}
TITLE_SIMILARITY, SAME_TEXT, WHOLE_TEXT = 0.6, 0.5, 0.8
_SENTENCE = re.compile(r"[^。！？\n]+[。！？\n]*")


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("file")
    options.add_argument("--articles", type=int, default=12_000)
    options.add_argument("--edited", type=int, default=500)
    options.add_argument("--units", nargs="+", default=["c5", "c8", "w3", "w4", "w5"])
    args = options.parse_args()
    rows = list(jsonl.read_rows([args.file]))
    rows = random.Random(1).sample(rows, min(args.articles, len(rows)))
    analyzer = Analyzer(load_models())
    for half, (since, until) in HALVES.items():
        chosen = [row for row in rows if since <= str(row["published_at"]) < until]
        analyses = analyze(analyzer, chosen)
        edits = edited_copies(analyses, args.edited)
        edited = {kind: analyze(analyzer, copies) for kind, copies in edits.items()}
        print(f"{half}: {len(analyses)} articles", flush=True)
        print(
            f"{'unit':5}{'pairs':>7}{'wrong':>7}{'whole':>7}{'called':>8}{'wrong':>7}"
            + "".join(f"{k:>11}" for k in edits)
        )
        for unit in args.units:
            print(measure(unit, analyses, edited, args.edited), flush=True)


def analyze(analyzer: Analyzer, rows: Sequence[dict[str, Any]]) -> list[Analysis]:
    """The analyses of rows, as Chinese."""
    articles = [Article(id=str(r["id"]), title=str(r["title"]), text=str(r["text"]), lang="zh") for r in rows]
    return [found for found in analyzer.analyze_many(articles) if isinstance(found, Analysis)]


def edited_copies(analyses: Sequence[Analysis], count: int) -> dict[str, list[dict[str, Any]]]:
    """Edited copies of ``count`` articles, by kind of edit."""
    rng = random.Random(2)
    originals = rng.sample(analyses, min(count, len(analyses)))
    words = [w for a in originals[:100] for w in tokenizer.tokenize(a.text, "zh") if len(w) > 1]
    edits: dict[str, Callable[[str], str]] = {
        "cut": lambda text: text[: len(text) // 2],
        "cut front": lambda text: text[len(text) // 2 :],
        "padded": lambda text: (
            f"{rng.choice(originals).text[:200]}\n{text}\n{rng.choice(originals).text[-400:]}"
        ),
        "reordered": lambda text: "".join(shuffled(_SENTENCE.findall(text), rng)),
        "replaced": lambda text: with_replaced_words(text, words, 0.1, rng),
        "wrapped": lambda text: "\n".join(text[i : i + 35] for i in range(0, len(text), 35)),
    }
    return {
        kind: [{"id": str(n), "title": a.title, "text": edit(a.text)} for n, a in enumerate(originals)]
        for kind, edit in edits.items()
    } | {"original": [{"id": str(n), "title": a.title, "text": a.text} for n, a in enumerate(originals)]}


def shuffled(parts: list[str], rng: random.Random) -> list[str]:
    rng.shuffle(parts)
    return parts


def with_replaced_words(text: str, words: Sequence[str], share: float, rng: random.Random) -> str:
    """``text`` with a share of its words replaced by random ones of ``words``."""
    parts = segmenter()(text)
    return "".join(rng.choice(words) if len(p) > 1 and rng.random() < share else p for p in parts)


def units_of(analysis: Analysis, unit: str) -> list[str]:
    """The shingles of an article as strings, before hashing."""
    title, text = (tokenizer.split_text(part, "zh") for part in (analysis.title, analysis.text))
    characters, words = select_compared(title, text)
    parts, width = characters if unit[0] == "c" else words, int(unit[1:])
    return [" ".join(parts[i : i + width]) for i in range(max(1, len(parts) - width + 1))]


def measure(unit: str, analyses: Sequence[Analysis], edited: dict[str, list[Analysis]], count: int) -> str:
    """One line of the table."""
    own = [replace(a, sketch=shingles.build_sketch(units_of(a, unit), 1)) for a in analyses]
    pairs = sharing_keys([a.sketch for a in own])
    reached = wrong = whole = called = wrong_called = 0
    for i, js in pairs.items():
        overlaps = shingles.estimate_overlaps(own[i].sketch, [own[j].sketch for j in js])
        for j, overlap in zip(js, overlaps, strict=True):
            if not is_copy(overlap, 1.0):
                continue
            share = common_text(own[i], own[j])
            different = share < SAME_TEXT and title_similarity(own[i], own[j]) < TITLE_SIMILARITY
            reached += 1
            wrong += different
            whole += share >= WHOLE_TEXT
            if is_copy(overlap, cosine(own[i].terms, own[j].terms)):
                called += 1
                wrong_called += different
    originals = [replace(a, sketch=shingles.build_sketch(units_of(a, unit), 1)) for a in edited["original"]]
    line = f"{unit:5}{reached:7}{wrong:7}{whole:7}{called:8}{wrong_called:7}"
    for copies in edited.values():
        containments, found = [], 0
        for a, copy in zip(originals, copies, strict=True):
            b = replace(copy, sketch=shingles.build_sketch(units_of(copy, unit), 1))
            overlap = shingles.estimate_overlap(a.sketch, b.sketch)
            distance = hamming_distance(a.fingerprint, b.fingerprint)
            near = distance <= RELATED_BITS or share_keys(a.sketch, b.sketch)
            containments.append(overlap.containment)
            found += near and is_copy(overlap, cosine(a.terms, b.terms))
        line += f"{found / len(originals):6.3f}/{np.quantile(containments, 0.05):.2f}"
    return line


def share_keys(stored: Sketch, queried: Sketch) -> bool:
    return bool(set(shingles.sketch_keys(stored)) & set(shingles.query_keys(queried)))


def sharing_keys(sketches: Sequence[Sketch]) -> dict[int, list[int]]:
    """For each article the earlier ones that share a sketch key with it."""
    stored: dict[int, list[int]] = defaultdict(list)
    found: dict[int, list[int]] = {}
    for i, sketch in enumerate(sketches):
        earlier = {j for key in shingles.query_keys(sketch) for j in stored.get(key, ())}
        if earlier:
            found[i] = sorted(earlier)
        for key in shingles.sketch_keys(sketch):
            stored[key].append(i)
    return found


def title_similarity(a: Analysis, b: Analysis) -> float:
    return SequenceMatcher(None, a.title, b.title).ratio()


def common_text(a: Analysis, b: Analysis) -> float:
    """The share of the 4-character shingles of the shorter text that are in the other one."""
    first, second = (runs_of_4(x.text) for x in (a, b))
    return len(first & second) / max(1, min(len(first), len(second)))


def runs_of_4(text: str) -> set[str]:
    joined = "".join(tokenizer.words(text, "zh"))
    return {joined[i : i + 4] for i in range(len(joined) - 3)}


if __name__ == "__main__":
    started = time.monotonic()
    main()
    print(f"{time.monotonic() - started:.0f} s")
