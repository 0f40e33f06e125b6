"""Fingerprints of real articles under the block plan: bucket sizes and false neighbors, per language.

Random fingerprints fill buckets evenly and are far from each other; those of one site's articles are not. A
**false neighbor** is a pair within a radius whose wording is not that of a copy: containment below 0.2.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any

import numpy as np

from aggregator.analysis.shingles import estimate_overlaps
from aggregator.dedup.policy import Policy
from aggregator.domain import Analysis
from aggregator.index.blocks import PLAN

RADII = (3, 7)
SAMPLED_LOOKUPS = 500


@dataclass(frozen=True, slots=True)
class BlockReport:
    """Articles of one language.

    fullest_bucket     largest number of articles under one block value; ``expected_bucket``: random ones
    entries_read       mean number of bucket entries that a look-up at radius 7 reads
    expected_entries   of random fingerprints
    pairs              number of pairs per radius of ``RADII``; ``false_pairs``: those that are no copies
    """

    lang: str
    articles: int
    fullest_bucket: int
    expected_bucket: float
    entries_read: float
    expected_entries: float
    pairs: tuple[int, ...]
    false_pairs: tuple[int, ...]

    def as_json(self) -> dict[str, Any]:
        """All values."""
        return asdict(self)


def evaluate(analyses: Sequence[Analysis]) -> list[BlockReport]:
    """One row per language, the largest first. Memory is linear, time quadratic in the articles of one."""
    by_lang: dict[str, list[Analysis]] = defaultdict(list)
    for analysis in analyses:
        by_lang[analysis.lang].append(analysis)
    return [_evaluate_lang(*item) for item in sorted(by_lang.items(), key=lambda item: -len(item[1]))]


def _evaluate_lang(lang: str, analyses: Sequence[Analysis]) -> BlockReport:
    fingerprints = np.array([analysis.fingerprint for analysis in analyses], np.uint64)
    sizes = []
    lowest_bit = 64
    for width in PLAN.widths:
        lowest_bit -= width
        values = fingerprints >> np.uint64(lowest_bit) & np.uint64(2**width - 1)
        sizes.append(np.bincount(values.astype(np.int64), minlength=2**width))
    probes = [PLAN.probe_plan(int(f), max(RADII)).block_probes for f in fingerprints[:SAMPLED_LOOKUPS]]
    read = [
        sum(int(sizes[block][value ^ mask]) for block, value, _, masks in probe for mask in masks)
        for probe in probes
    ]
    keys = sum(len(masks) for *_, masks in probes[0])
    count = len(analyses)
    pairs, false_pairs = neighbor_pairs(analyses, fingerprints)
    return BlockReport(
        lang,
        count,
        max(int(size.max()) for size in sizes),
        round(count / len(sizes[0]), 3),
        round(mean(read), 1),
        round(keys * count / len(sizes[0]), 1),
        pairs,
        false_pairs,
    )


def neighbor_pairs(
    analyses: Sequence[Analysis], fingerprints: np.ndarray[Any, np.dtype[np.uint64]]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the number of pairs within each of ``RADII``, and of the false ones among them.

    ``fingerprints``: (n,) uint64, those of the analyses or of another model for the same texts.
    """
    floor = Policy().containment_floor
    pairs, false_pairs = [0] * len(RADII), [0] * len(RADII)
    for at in range(1, len(analyses)):
        distance = np.bitwise_count(fingerprints[:at] ^ fingerprints[at])
        near = np.flatnonzero(distance <= max(RADII)).tolist()
        if not near:
            continue
        overlaps = estimate_overlaps(analyses[at].sketch, [analyses[other].sketch for other in near])
        for other, overlap in zip(near, overlaps, strict=True):
            for position, radius in enumerate(RADII):
                if distance[other] <= radius:
                    pairs[position] += 1
                    false_pairs[position] += overlap.containment < floor
    return tuple(pairs), tuple(false_pairs)


def format_table(rows: Sequence[BlockReport]) -> str:
    """Table for a terminal: one line per language."""
    radii = "".join(f"{f'pairs <= {r}':>11} {'false':>7}" for r in RADII)
    lines = [f"{'lang':5} {'articles':>9} {'fullest':>8} {'random':>7} {'read':>7} {'random':>7} {radii}"]
    for row in rows:
        counts = "".join(f"{n:11,} {m:7,}" for n, m in zip(row.pairs, row.false_pairs, strict=True))
        lines.append(
            f"{row.lang:5} {row.articles:9,} {row.fullest_bucket:8,} {row.expected_bucket:7.2f} "
            f"{row.entries_read:7.1f} {row.expected_entries:7.1f} {counts}"
        )
    return "\n".join(lines)
