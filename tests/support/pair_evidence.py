"""Evidence about two analyzed articles of unknown outlets, for tests of the copy rule."""

from __future__ import annotations

from aggregator.analysis.shingles import estimate_overlap
from aggregator.analysis.simhash import hamming_distance
from aggregator.dedup.copy_rule import Evidence
from aggregator.dedup.policy import Policy
from aggregator.dedup.verdict import compare_pair, cosine
from aggregator.domain import Analysis


def evidence_of(a: Analysis, b: Analysis) -> Evidence:
    """Return what the rules see of the two texts."""
    return Evidence(
        estimate_overlap(a.sketch, b.sketch),
        cosine(a.terms, b.terms),
        hamming_distance(a.fingerprint, b.fingerprint),
    )


def are_copies(a: Analysis, b: Analysis, policy: Policy | None = None) -> bool:
    """Whether the default policy, or another one, calls the two articles copies."""
    return compare_pair(a, b, evidence_of(a, b), policy or Policy())[0]
