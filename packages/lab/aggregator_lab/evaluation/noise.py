"""Noise of scanned print: OCR errors, shortened copy, confused page layout. Seeded.

    abridgement  the first sentence and 30 to 80 % of the others, early ones more likely, in their order
    join         a passage of another article, 20 to 60 % as long, before or after the text
    columns      a passage of 30 to 100 % of the text, set in two columns of 6-word lines, is read across them

The levels cover the word error rates reported for scanned newspapers: about 5, 15 and 35 %.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from aggregator.analysis.analyzer import uses_spaces
from aggregator.domain import Article
from aggregator_lab.evaluation.edits import split_pieces, split_sentences

# Typical confusions of OCR engines, most of them in both directions.
CONFUSED_CHARACTERS = {
    "e": "co", "c": "eo", "o": "0ce", "l": "1iI", "i": "l1j", "h": "bn", "b": "h6", "n": "urm", "u": "nv",
    "s": "5a", "a": "ou", "t": "fl", "f": "t", "m": "n", "r": "n", "g": "9q", "v": "y", "y": "v", "w": "v",
    "d": "cl", "1": "l", "0": "o", "5": "s", "k": "h", "p": "n", "q": "g", "z": "2", "x": "z", "j": "i",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class NoiseLevel:
    """Probabilities, each 0..1.

    confusion_rate    per character: replaced by a similar one
    break_rate        per letter: a space is inserted after it
    space_loss_rate   per space: removed
    truncation_rate   per text: cut off
    abridgement_rate  per text: shortened before printing
    join_rate         per text: read as one with a passage of another article
    columns_rate      per text: read across columns
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


KEPT_SHARES = (0.3, 0.8)
JOINED_SHARES = (0.2, 0.6)
MIXED_SHARES = (0.3, 1.0)
LINE_WORDS = 6


def add_noise(articles: Sequence[Article], level: NoiseLevel, langs: Sequence[str]) -> list[Article]:
    """The articles with the noise of ``level``, in the order of print; their ids are the seeds."""
    return [
        replace(article, text=noisy_text(article.text, articles, level, lang, article.id))
        for article, lang in zip(articles, langs, strict=True)
    ]


def noisy_text(text: str, articles: Sequence[Article], level: NoiseLevel, lang: str, seed: str) -> str:
    """Return one text with the noise of ``level``; ``articles``: those that it may be joined with."""

    def applies(kind: str, rate: float) -> random.Random | None:
        # One generator per kind: another rate of one kind leaves the others as they were.
        rng = random.Random(f"{seed}|{level.name}|{kind}")
        return rng if rng.random() < rate else None

    if rng := applies("abridgement", level.abridgement_rate):
        text = abridge(text, lang, rng)
    if rng := applies("join", level.join_rate):
        text = join_passage(text, rng.choice(articles).text, lang, rng)
    if rng := applies("columns", level.columns_rate):
        text = mix_columns(text, lang, rng)
    return add_ocr_noise(text, level, seed)


def abridge(text: str, lang: str, rng: random.Random) -> str:
    """Return the first sentence and a weighted sample of the others; a text of one sentence is unchanged."""
    sentences = split_sentences(text, lang)
    if len(sentences) < 2:
        return text
    rest = range(1, len(sentences))
    count = round(rng.uniform(*KEPT_SHARES) * len(rest))
    # Weighted sampling without replacement (Efraimidis & Spirakis 2006); weights fall from n - 1 to 1.
    keys = {at: rng.random() ** (1 / (len(sentences) - at)) for at in rest}
    kept = [0, *sorted(sorted(rest, key=lambda at: -keys[at])[:count])]
    return (" " if uses_spaces(lang) else "").join(sentences[at] for at in kept)


def join_passage(text: str, other: str, lang: str, rng: random.Random) -> str:
    """Return the text with a passage of ``other`` before or after it; unchanged if they are equal."""
    if text == other:
        return text
    own, others = split_pieces(text, lang), split_pieces(other, lang)
    size = min(len(others), round(rng.uniform(*JOINED_SHARES) * len(own)))
    begin = rng.randint(0, len(others) - size)
    passage = "".join(others[begin : begin + size])
    return f"{passage}\n{text}" if rng.random() < 0.5 else f"{text}\n{passage}"


def mix_columns(text: str, lang: str, rng: random.Random) -> str:
    """Return the text with the lines of a passage read across two columns; all words remain."""
    pieces = split_pieces(text, lang)
    if pieces and uses_spaces(lang) and not pieces[-1][-1].isspace():
        pieces[-1] += " "  # the last word may move into the text
    lines = ["".join(pieces[at : at + LINE_WORDS]) for at in range(0, len(pieces), LINE_WORDS)]
    size = round(rng.uniform(*MIXED_SHARES) * len(lines)) // 2 * 2
    begin = rng.randint(0, len(lines) - size)
    left, right = lines[begin : begin + size // 2], lines[begin + size // 2 : begin + size]
    mixed = [line for row in zip(left, right, strict=True) for line in row]
    return "".join([*lines[:begin], *mixed, *lines[begin + size :]]).rstrip()
