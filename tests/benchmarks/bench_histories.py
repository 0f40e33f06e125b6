"""Reading histories: is each of several subjects answered (``scripts/bench histories FILE...``).

The articles of each file of labeled stories are stored in memory. A history has ``--subjects`` stories with
``--each`` articles, in random order, an hour between two; ``--each 0``: one to seven. Of ten answers:

* **all**      histories of which every subject is answered
* **subjects** share of the subjects that are answered
* **own**      share of the answers that are of one of the subjects
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections import defaultdict
from pathlib import Path

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.dedup.policy import Policy
from aggregator.queries.relatedness import MIN_PROBABILITY
from aggregator.time_units import HOUR_MS
from aggregator_archive.rows import read_rows
from aggregator_lab.evaluation.article_files import read_articles
from aggregator_lab.evaluation.related_store import store_articles

SPARE = 3  # groups of copies that a story has besides what is read


async def measure(file: str, analyzer: Analyzer, args: argparse.Namespace) -> None:
    """Print one line for a file."""
    labels = {str(row.get("id")): str(row["cluster"]) for row in read_rows([file]) if row.get("cluster")}
    articles = read_articles([file])
    stored, _ = await store_articles(articles, labels, (), analyzer, Policy(), MIN_PROBABILITY)
    by_story: dict[str, list[str]] = defaultdict(list)
    for article in stored.articles:
        by_story[labels.get(article.id, "")].append(article.id)
    most = args.each or 7
    stories = sorted(
        story
        for story, ids in by_story.items()
        if story and len({stored.group_by_id[id_] for id_ in ids}) >= most + SPARE
    )
    rng, answered, own, answers = random.Random(args.seed), list[int](), 0, 0
    for _ in range(args.histories):
        subjects = rng.sample(stories, args.subjects)
        read = [id_ for s in subjects for id_ in rng.sample(by_story[s], args.each or rng.randint(1, most))]
        rng.shuffle(read)
        items, _ = await stored.related.of_ids({id_: i * HOUR_MS for i, id_ in enumerate(read)})
        found = [labels.get(item.id, "") for item in items]
        answered.append(len(set(found).intersection(subjects)))
        own, answers = own + sum(label in subjects for label in found), answers + len(found)
    print(
        f"{Path(file).name:32} {len(stories):3} stories, {args.histories} histories: "
        f"all {sum(n == args.subjects for n in answered)}, "
        f"subjects {sum(answered) / args.subjects / args.histories:.3f}, own {own / max(1, answers):.3f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+")
    parser.add_argument("--histories", type=int, default=100)
    parser.add_argument("--subjects", type=int, default=5)
    parser.add_argument("--each", type=int, default=4)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    analyzer = Analyzer(load_models())
    for file in args.files:
        asyncio.run(measure(file, analyzer, args))


if __name__ == "__main__":
    main()
