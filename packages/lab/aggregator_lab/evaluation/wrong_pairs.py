"""File of the pairs that a rule decides otherwise than their labels, to be looked at."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import NamedTuple

from aggregator import jsonl
from aggregator.domain import Article

FIELDS = ("id", "title", "text")


class WrongPair(NamedTuple):
    """Two articles in order; ``same``: labeled as copies, and missed; else called copies wrongly."""

    first: Article
    second: Article
    same: bool


HINT = (  # below a table of policies
    "`{}` is the rule of the service, the rows `hamming` compare fingerprints alone; "
    "`--errors FILE.jsonl` lists its missed and wrong pairs."
)


def write(file: str, pairs: Sequence[WrongPair]) -> None:
    """Write a row per pair, readable by `aggregator evaluate pairs`, and report their numbers on stderr.

    A row has ``error`` ("missed" or "wrong"), ``same``, and ``FIELDS`` of both articles (``text1``).
    """
    with jsonl.open_output(file) as write_line:
        for pair in pairs:
            row: dict[str, object] = {"error": "missed" if pair.same else "wrong", "same": pair.same}
            for side, article in enumerate(pair[:2], 1):
                row |= {f"{name}{side}": getattr(article, name) for name in FIELDS}
            write_line(json.dumps(row).encode())
    missed = sum(pair.same for pair in pairs)
    print(f"{missed} missed pairs, {len(pairs) - missed} wrong ones: {file}", file=sys.stderr)
