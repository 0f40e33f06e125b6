"""What a scanner makes of a text: characters taken for others, words broken and run together, pages cut off.

Seeded, so two runs damage alike. The levels span what is reported for scanned newspapers: word error rates of
about 5, 15 and 35 %.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

# Confusions that recognisers are known for, most of them both ways round.
CONFUSED_CHARACTERS = {
    "e": "co", "c": "eo", "o": "0ce", "l": "1iI", "i": "l1j", "h": "bn", "b": "h6", "n": "urm", "u": "nv",
    "s": "5a", "a": "ou", "t": "fl", "f": "t", "m": "n", "r": "n", "g": "9q", "v": "y", "y": "v", "w": "v",
    "d": "cl", "1": "l", "0": "o", "5": "s", "k": "h", "p": "n", "q": "g", "z": "2", "x": "z", "j": "i",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class NoiseLevel:
    """Rates per character (confused), per letter within a word (broken), per space (joined), per text (cut)."""

    name: str
    confusion_rate: float
    break_rate: float
    space_loss_rate: float
    truncation_rate: float


CLEAN = NoiseLevel("clean", 0.0, 0.0, 0.0, 0.0)
NOISE_LEVELS = (
    NoiseLevel("light", 0.01, 0.002, 0.01, 0.1),
    NoiseLevel("medium", 0.03, 0.006, 0.03, 0.2),
    NoiseLevel("heavy", 0.08, 0.015, 0.06, 0.3),
)
MIN_KEPT_SHARE = 0.5  # of the words, when a text is cut


def add_ocr_noise(text: str, level: NoiseLevel, seed: str) -> str:
    """``text`` as a scanner at this level may give it."""
    rng = random.Random(f"{seed}|{level.name}")
    if rng.random() < level.truncation_rate:
        text = text[: int(len(text) * rng.uniform(MIN_KEPT_SHARE, 1.0))]
    out = []
    for character in text:
        if character == " " and rng.random() < level.space_loss_rate:
            continue
        known = CONFUSED_CHARACTERS.get(character.lower())
        if known and rng.random() < level.confusion_rate:
            character = rng.choice(known)
        out.append(character)
        if character.isalpha() and rng.random() < level.break_rate:
            out.append(" ")
    return "".join(out)
