"""Recall is 1.0 at every radius: look-ups of the service beside brute force, for every plan, over real stores."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.models import load_models
from aggregator.analysis.simhash import fingerprint_from_sums
from aggregator.analysis.text import tokenizer
from aggregator.app import open_service
from aggregator.index import Index, keys
from aggregator.index.blocks import MAX_RADIUS, PLANS, BlockPlan
from aggregator.index.codec.postings import encode_posting, numbers_within
from aggregator.settings import Settings
from aggregator.store.base import Store
from tests.support.factories import edited, story
from tests.support.loaders import FIRST_MS, SPACE, fill

Fingerprints = npt.NDArray[np.uint64]
STORED = 1200


def uniform() -> Fingerprints:
    """Fair bits: hardly any neighbours."""
    return np.random.default_rng(1).integers(0, 2**64, STORED, np.uint64)


def clustered() -> Fingerprints:
    """Twenty centres, members 0 to 9 bits away: neighbours at every distance, in every spread over blocks."""
    rng = np.random.default_rng(2)
    centres = rng.integers(0, 2**64, 20, np.uint64)
    masks = [sum(1 << int(b) for b in rng.choice(64, rng.integers(0, 10), False)) for _ in range(STORED)]
    return rng.choice(centres, STORED) ^ np.array(masks, np.uint64)


def skewed() -> Fingerprints:
    """The shipped English model on texts that share their words: crowded buckets."""
    model = load_models()["en"]
    base = " ".join(sorted(model.vocabulary)[1000:1400])
    texts = [edited(base, seed, changes=1 + seed % 60) for seed in range(STORED - 20)]
    texts += [story(seed) for seed in range(20)]
    return np.array(
        [fingerprint_from_sums(model.project(tokenizer.tokenize(t, "en") or [t])) for t in texts], np.uint64
    )


def questions(stored: Fingerprints) -> list[int]:
    """Stored ones with 0 to 7 bits flipped, and strangers."""
    rng = np.random.default_rng(3)
    found = [int(f) for f in rng.integers(0, 2**64, 4, np.uint64)]
    for flips in range(MAX_RADIUS + 1):
        for member in rng.choice(stored, 3).tolist():
            found.append(member ^ sum(1 << int(b) for b in rng.choice(64, flips, False)))
    return found


@pytest.mark.parametrize("make", [uniform, clustered, skewed])
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
async def test_a_look_up_finds_exactly_what_brute_force_finds(
    store: Store, plan: BlockPlan, make: Callable[[], Fingerprints]
) -> None:
    """At every radius 0 to 7, with their distances; half of the articles lie in a frozen segment."""
    index = Index(store, [SPACE], plan=plan)
    stored = make()
    half = len(stored) // 2
    numbers = await fill(index, stored[:half].tolist())
    await index.segments.seal(SPACE, 0, FIRST_MS)
    numbers += await fill(index, stored[half:].tolist(), half)

    pairs = 0
    for asked in questions(stored):
        bits = np.bitwise_count(stored ^ np.uint64(asked))
        for radius in range(MAX_RADIUS + 1):
            expected = [(numbers[i], int(bits[i])) for i in np.flatnonzero(bits <= radius)]
            found, distances = await index.lookup.find_within_radius(SPACE, asked, radius, FIRST_MS)

            assert list(zip(found.tolist(), distances.tolist(), strict=True)) == expected, radius
            pairs += len(expected)
    assert pairs > 50


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@given(
    asked=st.integers(0, 2**64 - 1),
    masks=st.lists(st.sets(st.integers(0, 63), max_size=12), min_size=1, max_size=30),
    radius=st.integers(0, MAX_RADIUS),
)
def test_buckets_hold_all_neighbours_and_the_filter_keeps_just_them(
    plan: BlockPlan, asked: int, masks: list[set[int]], radius: int
) -> None:
    """Any fingerprints around any other: what the probes read, filtered, is what brute force finds."""
    stored = [asked ^ sum(1 << bit for bit in mask) for mask in masks]
    buckets: dict[bytes, bytes] = {}
    for number, fingerprint in enumerate(stored, 1):
        for block, (value, rest) in enumerate(plan.split(fingerprint)):
            key = keys.block_bucket(b"", block, value)
            buckets[key] = buckets.get(key, b"") + encode_posting(rest, number, plan.remainder_bytes)

    around = plan.probe_plan(asked, radius)
    found, distances = numbers_within(
        list(map(buckets.get, keys.block_buckets(b"", around))), around, radius, 0
    )

    truth = [(n, (f ^ asked).bit_count()) for n, f in enumerate(stored, 1)]
    assert list(zip(found.tolist(), distances.tolist(), strict=True)) == [t for t in truth if t[1] <= radius]


async def test_another_plan_is_another_index() -> None:
    """The setting reaches the index, and no space holds entries of two plans."""
    spaces: list[set[str]] = []
    for name, plan in PLANS.items():
        async with open_service(Settings(store_url="memory", block_plan=name)) as service:
            assert all(service.index.plan(space) == plan for space in service.index.spaces)
            spaces.append(set(service.index.spaces))

    assert len(set.union(*spaces)) == sum(map(len, spaces))
