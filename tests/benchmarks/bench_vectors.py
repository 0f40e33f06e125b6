"""``aggregator dedupe --encode doc2vec`` on real articles: seconds and CPU of each stage, and peak memory.

    python -m tests.benchmarks.bench_vectors headlines --articles 1000000 --dir DIR [options of dedupe]
    python -m tests.benchmarks.bench_vectors texts --articles 100000 --dir DIR [options of dedupe]

``headlines`` are those of the newswire, first those of 2007. ``texts`` are the English, Chinese and Russian
articles of the development data, 57,000, then edited copies of these (``offline/evaluation/edits.py``); the
share of the copies that are a candidate pair with their original is printed. DIR gets the articles and the
result.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aggregator.domain import Article
from aggregator.offline.evaluation.edits import Editor
from tests.support.development_data import DATA

HEADLINES = ("reuters_titles_2007", "reuters_window_*", "window_*")
TEXTS = (
    ("allsides_dev", "en"),
    ("reuters21578_dev", "en"),
    ("xinwenlianbo_dev", "zh"),
    ("ru_telegram_dev", "ru"),
)
EDITS = ("cut", "padded", "reordered", "replaced", "lead")
METHOD = ("--encode", "doc2vec", "--verify", "none", "--cluster", "union-find")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=("headlines", "texts"))
    parser.add_argument("--articles", type=int, required=True)
    parser.add_argument("--dir", type=Path, required=True)
    args, options = parser.parse_known_args()
    args.dir.mkdir(parents=True, exist_ok=True)
    file, out = args.dir / f"{args.kind}-{args.articles}.jsonl", args.dir / f"out-{args.kind}-{args.articles}"
    if not file.exists():
        rows = filter(has_words, headlines() if args.kind == "headlines" else texts())
        with file.open("w", encoding="utf-8") as lines:
            for row in itertools.islice(rows, args.articles):
                lines.write(json.dumps(row, ensure_ascii=False) + "\n")
    command = [sys.executable, "-m", "aggregator", "dedupe", str(file), "--out", str(out), "--fresh"]
    subprocess.run([*command, "--no-copy", *METHOD, *options], check=True)
    report(json.loads((out / "summary.json").read_bytes()))
    if args.kind == "texts":
        print(f"copies that are a candidate pair with their original: {copies_found(file, out):.3f}")


def has_words(row: dict[str, Any]) -> bool:
    """Whether ``dedupe`` accepts the article."""
    return any(map(str.isalnum, f"{row['title'] or ''}{row.get('text') or ''}"))


def headlines() -> Iterator[dict[str, Any]]:
    """Rows with distinct ids, in the order of the files."""
    for pattern in HEADLINES:
        for file in sorted(DATA.glob(f"{pattern}.jsonl.gz")):
            for number, row in enumerate(read_rows(file)):
                yield row | {"id": f"{file.name.partition('.')[0]}-{number}"}


def texts() -> Iterator[dict[str, Any]]:
    """All articles, then one edited copy after another, of each article once per kind of edit."""
    editors = []
    for name, lang in TEXTS:
        articles = []
        for row in read_rows(DATA / f"{name}.jsonl.gz"):
            row["lang"] = row.get("lang") or lang
            yield row
            article = Article(id=row["id"], title=row["title"] or "", text=row["text"] or "")
            articles.append(article)
        editors.append((Editor(articles, lang), lang, articles))
    for edit in EDITS:
        for editor, lang, articles in editors:
            for article in articles:
                copy = editor.edit(edit, article)
                if copy is not None:
                    yield {"id": f"{edit} {article.id}", "title": copy.title, "text": copy.text, "lang": lang}


def read_rows(file: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def copies_found(file: Path, out: Path) -> float:
    """Share of the edited copies, 0..1; equal texts count as one article."""
    with file.open(encoding="utf-8") as lines:
        ids = {json.loads(line)["id"] for line in lines}
    copies = {id_ for id_ in ids if id_.partition(" ")[0] in EDITS}
    found = set()
    with (out / "pairs.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            pair = json.loads(line)
            for copy, other in itertools.permutations((pair["id1"], pair["id2"])):
                if copy in copies and copy.partition(" ")[2] == other:
                    found.add(copy)
    return len(found) / max(1, len(copies))


def report(summary: dict[str, Any]) -> None:
    """Print the counts, then the seconds of each stage."""
    names = ("articles", "distinct_texts", "candidate_pairs", "clusters", "cpu_seconds", "peak_memory_gb")
    print(*(f"{name} {summary[name]:,}" for name in names), sep="\n")
    print("seconds:", ", ".join(f"{stage} {value:,.0f}" for stage, value in summary["seconds"].items()))


if __name__ == "__main__":
    main()
