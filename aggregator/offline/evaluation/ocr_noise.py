"""What a scanner makes of a text: characters taken for others, words broken and run together, pages cut off.

Seeded, so two runs damage alike. The levels span what is reported for scanned newspapers: word error rates of
about 5, 15 and 35 %.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

# Confusions that recognisers are known for, most of them both ways round.
CONFUSED = {
    "e": "co", "c": "eo", "o": "0ce", "l": "1iI", "i": "l1j", "h": "bn", "b": "h6", "n": "urm", "u": "nv",
    "s": "5a", "a": "ou", "t": "fl", "f": "t", "m": "n", "r": "n", "g": "9q", "v": "y", "y": "v", "w": "v",
    "d": "cl", "1": "l", "0": "o", "5": "s", "k": "h", "p": "n", "q": "g", "z": "2", "x": "z", "j": "i",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Level:
    """Rates per character (confused), per letter within a word (broken), per space (joined), per text (cut)."""

    name: str
    confused: float
    broken: float
    joined: float
    cut: float


CLEAN = Level("clean", 0.0, 0.0, 0.0, 0.0)
LEVELS = (
    Level("light", 0.01, 0.002, 0.01, 0.1),
    Level("medium", 0.03, 0.006, 0.03, 0.2),
    Level("heavy", 0.08, 0.015, 0.06, 0.3),
)
SHORTEST_SHARE = 0.5  # of the words, when a text is cut


def damaged(text: str, level: Level, seed: str) -> str:
    """``text`` as a scanner at this level may give it."""
    rng = random.Random(f"{seed}|{level.name}")
    if rng.random() < level.cut:
        text = text[: int(len(text) * rng.uniform(SHORTEST_SHARE, 1.0))]
    out = []
    for character in text:
        if character == " " and rng.random() < level.joined:
            continue
        known = CONFUSED.get(character.lower())
        if known and rng.random() < level.confused:
            character = rng.choice(known)
        out.append(character)
        if character.isalpha() and rng.random() < level.broken:
            out.append(" ")
    return "".join(out)
