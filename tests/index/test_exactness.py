"""Recall is 1.0 at every radius: lookups are compared with brute force, for every plan and store."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.features import FeatureModel
from aggregator.analysis.models import load_models
from aggregator.analysis.simhash import fingerprint_from_sums
from aggregator.analysis.text import tokenizer
from aggregator.index import Index, keys
from aggregator.index.blocks import MAX_RADIUS, BlockPlan
from aggregator.index.codec.postings import numbers_within
from aggregator.store.base import Store
from tests.index.radius import find_within_radius
from tests.support.factories import edited, story
from tests.support.index_layout import PLANS, encode_posting
from tests.support.loaders import FIRST_MS, SPACE, fill

Fingerprints = npt.NDArray[np.uint64]
STORED = 1200


def uniform() -> Fingerprints:
    """Uniform bits: hardly any neighbors."""
    return np.random.default_rng(1).integers(0, 2**64, STORED, np.uint64)


def clustered() -> Fingerprints:
    """Twenty centers with members 0 to 9 bits away: neighbors at every distance and spread over blocks."""
    rng = np.random.default_rng(2)
    centers = rng.integers(0, 2**64, 20, np.uint64)
    masks = [sum(1 << int(b) for b in rng.choice(64, rng.integers(0, 10), False)) for _ in range(STORED)]
    chosen: Fingerprints = rng.choice(centers, STORED)
    return chosen ^ np.array(masks, np.uint64)


def skewed() -> Fingerprints:
    """Fingerprints by the shipped English model of texts that share their words: large buckets."""
    model = load_models()["en"]
    assert isinstance(model, FeatureModel)
    base = " ".join(sorted(model.vocabulary)[1000:1400])
    texts = [edited(base, seed, changes=1 + seed % 60) for seed in range(STORED - 20)]
    texts += [story(seed) for seed in range(20)]
    return np.array(
        [fingerprint_from_sums(model.project(tokenizer.tokenize(t, "en") or [t])) for t in texts], np.uint64
    )


def query_fingerprints(stored: Fingerprints) -> list[int]:
    """Stored fingerprints with 0 to 7 bits flipped, and unrelated ones."""
    rng = np.random.default_rng(3)
    found = [int(f) for f in rng.integers(0, 2**64, 4, np.uint64)]
    for flips in range(MAX_RADIUS + 1):
        for member in rng.choice(stored, 3).tolist():
            found.append(member ^ sum(1 << int(b) for b in rng.choice(64, flips, False)))
    return found


@pytest.mark.integration
@pytest.mark.parametrize("make", [uniform, clustered, skewed])
async def test_a_lookup_finds_exactly_what_brute_force_finds(
    store: Store, make: Callable[[], Fingerprints]
) -> None:
    """At every radius 0 to 7, with distances; half of the articles are in a frozen segment."""
    index = Index(store, [SPACE])
    stored = make()
    half = len(stored) // 2
    numbers = await fill(index, stored[:half].tolist())
    await index.segments.seal(SPACE, 0, FIRST_MS)
    numbers += await fill(index, stored[half:].tolist(), half)

    pairs = 0
    for query in query_fingerprints(stored):
        bits = np.bitwise_count(stored ^ np.uint64(query))
        for radius in range(MAX_RADIUS + 1):
            expected = [(numbers[i], int(bits[i])) for i in np.flatnonzero(bits <= radius)]
            found, distances = await find_within_radius(index, SPACE, query, radius)

            assert list(zip(found.tolist(), distances.tolist(), strict=True)) == expected, radius
            pairs += len(expected)
    assert pairs > 50


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@given(
    query=st.integers(0, 2**64 - 1),
    masks=st.lists(st.sets(st.integers(0, 63), max_size=12), min_size=1, max_size=30),
    radius=st.integers(0, MAX_RADIUS),
)
def test_probed_buckets_hold_all_neighbors_and_the_filter_keeps_only_them(
    plan: BlockPlan, query: int, masks: list[set[int]], radius: int
) -> None:
    """For any fingerprints, filtering the probed buckets gives what brute force finds."""
    stored = [query ^ sum(1 << bit for bit in mask) for mask in masks]
    buckets: dict[bytes, bytes] = {}
    for number, fingerprint in enumerate(stored, 1):
        for block, (value, remainder) in enumerate(plan.split(fingerprint)):
            key = keys.block_bucket(b"", block, value)
            buckets[key] = buckets.get(key, b"") + encode_posting(remainder, number, plan.remainder_bytes)

    probe_plan = plan.probe_plan(query, radius)
    found, distances = numbers_within(
        list(map(buckets.get, keys.block_buckets(b"", [probe_plan]))), probe_plan, radius, 0
    )

    truth = [(n, (f ^ query).bit_count()) for n, f in enumerate(stored, 1)]
    assert list(zip(found.tolist(), distances.tolist(), strict=True)) == [t for t in truth if t[1] <= radius]
