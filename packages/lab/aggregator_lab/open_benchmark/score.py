"""Score of predicted duplicate groups on the open benchmark. Runs alone.

    python score.py PREDICTED.jsonl

PREDICTED has one JSON object per article of articles.jsonl (next to this file): {"id": ..., "group": ...}.
Equal groups are duplicates; an article without a line is in a group of its own. Printed: precision, recall
and F1 of pairs, B-cubed F1, the share of copies of each kind found, wrong pairs by kinds of articles.
"""

import json
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path


def score(rows: list[dict[str, str]], groups: dict[str, str]) -> dict[str, object]:
    """Measures of ``groups`` (id -> group) on ``rows`` of articles.jsonl."""
    predicted = [f"g {groups[row['id']]}" if row["id"] in groups else f"own {row['id']}" for row in rows]
    truth = [row["cluster"] for row in rows]
    both = Counter(zip(truth, predicted, strict=True))
    of_truth, of_group = Counter(truth), Counter(predicted)
    pairs = [sum(n * (n - 1) // 2 for n in counts.values()) for counts in (both, of_group, of_truth)]
    correct, called, relevant = pairs
    count = len(rows)
    precision = sum(n * n / of_group[g] for (_, g), n in both.items()) / count
    recall = sum(n * n / of_truth[t] for (t, _), n in both.items()) / count
    originals = {
        row["cluster"]: g for row, g in zip(rows, predicted, strict=True) if row["kind"] == "original"
    }
    found, copies = Counter(), Counter()  # type: ignore[var-annotated]
    members: dict[str, list[dict[str, str]]] = {}
    for row, group in zip(rows, predicted, strict=True):
        members.setdefault(group, []).append(row)
        if row["kind"] != "original" and row["cluster"] in originals:
            copies[row["kind"]] += 1
            found[row["kind"]] += group == originals[row["cluster"]]
    wrong = Counter(
        " / ".join(sorted((a["kind"], b["kind"])))
        for group in members.values()
        for a, b in combinations(group, 2)
        if a["cluster"] != b["cluster"]
    )
    return {
        "pair_precision": correct / called if called else 1.0,
        "pair_recall": correct / relevant if relevant else 1.0,
        "pair_f1": 2 * correct / (called + relevant) if called + relevant else 1.0,
        "b_cubed_f1": 2 * precision * recall / (precision + recall) if count else 1.0,
        "found": {kind: found[kind] / copies[kind] for kind in sorted(copies)},
        "wrong_pairs": dict(wrong.most_common()),
    }


def main() -> None:
    """Print the score of the file named on the command line."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    articles = Path(__file__).with_name("articles.jsonl").read_text(encoding="utf-8").splitlines()
    lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    groups = {str(row["id"]): str(row["group"]) for row in map(json.loads, filter(str.strip, lines))}
    print(json.dumps(score([json.loads(line) for line in articles], groups), indent=2))


if __name__ == "__main__":
    main()
