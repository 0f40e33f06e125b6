"""Fingerprints to store and to query: uniform, clustered, and real ones of the shipped English model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from aggregator.analysis.models import load_models
from aggregator.analysis.simhash import fingerprint_from_sums
from aggregator.analysis.text import tokenizer
from aggregator_archive.rows import read_rows
from tests.support.development_data import DATA

Fingerprints = npt.NDArray[np.uint64]

ROOT = Path(__file__).resolve().parents[3]
FILES = ("reuters_titles_2007.jsonl.gz", "allsides_dev.jsonl.gz")


def uniform(count: int, seed: int = 1) -> Fingerprints:
    """``count`` fingerprints of independent, uniform bits."""
    return np.random.default_rng(seed).integers(0, 2**64, count, np.uint64)


def clustered(count: int, seed: int = 2) -> Fingerprints:
    """``count`` fingerprints in clusters of eight, each member 0 to 12 bits from its center."""
    rng = np.random.default_rng(seed)
    centers = np.repeat(uniform(-(-count // 8), seed), 8)[:count]
    return flipped(centers, rng.integers(0, 13, count), rng)


def flipped(
    fingerprints: Fingerprints, bits: npt.NDArray[np.int64], rng: np.random.Generator
) -> Fingerprints:
    """Each fingerprint with ``bits[i]`` random bits flipped."""
    order = np.argsort(rng.random((len(fingerprints), 64)), axis=1).astype(np.uint64)
    chosen = np.arange(64)[None, :] < bits[:, None]
    masks = np.where(chosen, np.uint64(1) << order, np.uint64(0))
    flips: Fingerprints = np.bitwise_or.reduce(masks, axis=1)
    return fingerprints ^ flips


def queries(stored: Fingerprints, count: int, radius: int, seed: int = 3) -> list[int]:
    """Stored fingerprints with 0 to ``radius`` bits flipped and uniform ones, alternating."""
    rng = np.random.default_rng(seed)
    members = flipped(rng.choice(stored, count), rng.integers(0, radius + 1, count), rng)
    members[1::2] = uniform(count // 2, seed)
    return [int(f) for f in members]


def real() -> tuple[Fingerprints, str]:
    """Fingerprints of the development data under the shipped English model, and a description; else none."""
    files = [DATA / name for name in FILES if (DATA / name).exists()]
    if len(files) < len(FILES):
        return np.empty(0, np.uint64), "the development data is absent"
    model = load_models()["en"].for_language("en")
    found = []
    for row in read_rows([str(f) for f in files]):
        terms = tokenizer.tokenize(f"{row.get('title') or ''}\n{row.get('text') or ''}", "en")
        if terms:
            found.append(fingerprint_from_sums(model.project(terms)))
    return np.array(found, np.uint64), " + ".join(name.removesuffix(".jsonl.gz") for name in FILES)
