"""Agreement of the clusters of ``aggregator dedupe`` with labels (B-cubed, ARI).

    aggregator dedupe LABELLED --out DIR; python -m tests.benchmarks.bench_groups LABELLED DIR

LABELLED holds articles with ``id`` and ``cluster``. Nothing is tuned on the labels.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from aggregator.offline import jsonl
from aggregator.offline.evaluation.labeled import SPOTSIGS_LABEL_MERGES
from aggregator.offline.evaluation.metrics import adjusted_rand, b_cubed


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("labelled")
    options.add_argument("out", type=Path)
    args = options.parse_args()
    group_of = {row["id"]: str(row["cluster"]) for row in jsonl.read_rows([str(args.out / "clusters.jsonl")])}
    label_of = {str(row["id"]): str(row["cluster"]) for row in jsonl.read_rows([args.labelled])}
    found = [group_of.get(id_, f"single {id_}") for id_ in label_of]
    labels = list(label_of.values())
    for name, truth in (
        ("as labelled", labels),
        ("groups merged", [SPOTSIGS_LABEL_MERGES.get(label, label) for label in labels]),
    ):
        precision, recall, f1 = b_cubed(truth, found)
        ari = adjusted_rand(truth, found)
        print(f"{name:14} B-cubed P {precision:.3f} R {recall:.3f} F1 {f1:.3f}  ARI {ari:.3f}")


if __name__ == "__main__":
    main()
