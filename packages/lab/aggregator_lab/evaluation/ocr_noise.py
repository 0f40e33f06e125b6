"""OCR noise: confused characters, broken and joined words, truncated pages; levels of all noise.

Seeded, so two runs damage a text in the same way. The levels cover the word error rates reported for scanned
newspapers: about 5, 15 and 35 %.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

# Typical confusions of OCR engines, most of them in both directions.
CONFUSED_CHARACTERS = {
    "e": "co", "c": "eo", "o": "0ce", "l": "1iI", "i": "l1j", "h": "bn", "b": "h6", "n": "urm", "u": "nv",
    "s": "5a", "a": "ou", "t": "fl", "f": "t", "m": "n", "r": "n", "g": "9q", "v": "y", "y": "v", "w": "v",
    "d": "cl", "1": "l", "0": "o", "5": "s", "k": "h", "p": "n", "q": "g", "z": "2", "x": "z", "j": "i",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class NoiseLevel:
    """Probabilities, each 0..1.

    confusion_rate   per character: replaced by a similar one
    break_rate       per letter: a space is inserted after it
    space_loss_rate  per space: removed
    truncation_rate  per text: cut off

    Of ``print_noise.py``, per text:

    abridgement_rate  shortened before printing
    join_rate         read as one with a passage of another article
    columns_rate      read across columns
    """

    name: str
    confusion_rate: float
    break_rate: float
    space_loss_rate: float
    truncation_rate: float
    abridgement_rate: float = 0.0
    join_rate: float = 0.0
    columns_rate: float = 0.0


CLEAN = NoiseLevel("clean", 0.0, 0.0, 0.0, 0.0)
NOISE_LEVELS = (
    NoiseLevel("light", 0.01, 0.002, 0.01, 0.1, 0.2, 0.05, 0.05),
    NoiseLevel("medium", 0.03, 0.006, 0.03, 0.2, 0.3, 0.1, 0.1),
    NoiseLevel("heavy", 0.08, 0.015, 0.06, 0.3, 0.4, 0.2, 0.2),
)
# Each kind alone, in half of the texts.
SINGLE_KINDS = (
    NoiseLevel("ocr", 0.03, 0.006, 0.03, 0.2),
    NoiseLevel("abridged", 0.0, 0.0, 0.0, 0.0, abridgement_rate=0.5),
    NoiseLevel("joined", 0.0, 0.0, 0.0, 0.0, join_rate=0.5),
    NoiseLevel("columns", 0.0, 0.0, 0.0, 0.0, columns_rate=0.5),
)
MIN_KEPT_SHARE = 0.5  # of the characters of a truncated text


def add_ocr_noise(text: str, level: NoiseLevel, seed: str) -> str:
    """Return ``text`` with noise of ``level``; equal seeds give equal results."""
    rng = random.Random(f"{seed}|{level.name}")
    if rng.random() < level.truncation_rate:
        text = text[: int(len(text) * rng.uniform(MIN_KEPT_SHARE, 1.0))]
    noisy = []
    for character in text:
        if character == " " and rng.random() < level.space_loss_rate:
            continue
        similar = CONFUSED_CHARACTERS.get(character.lower())
        seen = rng.choice(similar) if similar and rng.random() < level.confusion_rate else character
        noisy.append(seen)
        if seen.isalpha() and rng.random() < level.break_rate:
            noisy.append(" ")
    return "".join(noisy)
