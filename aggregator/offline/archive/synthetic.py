"""A corpus of any size whose copies are known, for measuring time, memory, recall and precision.

Article n is a function of n and the seed alone, so any part can be made anywhere and the truth need not be kept.
Words are the shipped English model's terms, drawn by Zipf's law with a preference for one of many topics, between
the function words of English. Every tenth article is a copy of one kind of ``KINDS``, in equal shares:

    truncated     the first 30 % of the words
    boilerplate   a fifth more words around it: sentences of its site's stock
    changed       one word in ten replaced
    joined        two articles, one after the other
    header        another headline, and the opening line replaced
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from aggregator.analysis.models import load_models

KINDS = ("truncated", "boilerplate", "changed", "joined", "header")
EVERY = 10  # one in so many is a copy; digit 9 of its number, its originals have digits 3 and 4
HEADER_WORDS = 15
TOPICS, TOPIC_WORDS, TOPIC_SHARE = 500, 200, 0.3
SITES, SITE_SENTENCES, SENTENCE_WORDS = 200, 40, 16
PART_ROWS = 20_000
_START_S = 1_577_836_800  # 2020-01-01
_FUNCTION = (  # noqa: SIM905
    "the of and to in a that is was for it with as on be at by this had are but from have they which or an were "
    "their has been its more will would who said not he his she her we when there if out so up into than them"
).split()


@dataclass(frozen=True, slots=True)
class Plan:
    """``articles`` in all, of about ``words`` words each."""

    articles: int
    words: int = 400
    seed: int = 1

    @property
    def copies(self) -> int:
        return self.articles // EVERY

    def copy_of(self, number: int) -> tuple[str, list[int]] | None:
        """The kind and the originals of article ``number``; None when it is an original itself."""
        if number % EVERY != EVERY - 1 or number // EVERY >= self.copies:
            return None
        copy = number // EVERY
        ten = EVERY * ((copy * _stride(self.copies) + self.copies // 3) % self.copies)
        kind = KINDS[copy % len(KINDS)]
        return kind, [ten + 3, ten + 4] if kind == "joined" else [ten + 3]


@cache
def _stride(count: int) -> int:
    """A step that visits every one of ``count`` before any twice."""
    step = int(count * 0.618) | 1
    while np.gcd(step, count) != 1:
        step += 2
    return step


def id_of(number: int) -> str:
    return f"s{number:08}"


def pairs(plan: Plan) -> Iterator[tuple[str, str, str]]:
    """(kind, id, id) of every planted pair."""
    for number in range(EVERY - 1, plan.articles, EVERY):
        planted = plan.copy_of(number)
        if planted is not None:
            for original in planted[1]:
                yield planted[0], id_of(number), id_of(original)


def row(plan: Plan, number: int) -> dict[str, object]:
    """One article as a row of an archive."""
    planted = plan.copy_of(number)
    words = _original(plan, number) if planted is None else _copied(plan, number, *planted)
    when = np.datetime64(_START_S + 31 * number, "s")
    return {
        "id": id_of(number),
        "title": " ".join(words[:8]),
        "text": " ".join(words),
        "source": f"site{_rng(plan, number, 7).integers(SITES)}",
        "published_at": f"{when}Z",
    }


def write(plan: Plan, directory: Path, executor: Executor) -> list[Path]:
    """The corpus as JSON Lines in parts, made by the executor's workers."""
    directory.mkdir(parents=True, exist_ok=True)
    starts = range(0, plan.articles, PART_ROWS)
    files = [directory / f"part-{start // PART_ROWS:05}.jsonl" for start in starts]
    for _ in executor.map(_write_part, [plan] * len(files), starts, files):
        pass
    return files


def _write_part(plan: Plan, start: int, file: Path) -> None:
    with open(file, "w", encoding="utf-8") as out:
        for number in range(start, min(start + PART_ROWS, plan.articles)):
            out.write(json.dumps(row(plan, number)) + "\n")


def _rng(plan: Plan, number: int, purpose: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64([plan.seed, number, purpose]))


def _copied(plan: Plan, number: int, kind: str, originals: list[int]) -> list[str]:
    words = _original(plan, originals[0])
    rng = _rng(plan, number, 1)
    if kind == "truncated":
        return words[: len(words) * 3 // 10]
    if kind == "joined":
        return words + _original(plan, originals[1])
    if kind == "header":
        return _words(plan, number, HEADER_WORDS) + words[HEADER_WORDS:]
    if kind == "boilerplate":
        added = _boilerplate(plan, rng, len(words) // 5)
        return added[: len(added) // 4] + words + added[len(added) // 4 :]
    places = rng.choice(len(words), len(words) // 10, replace=False)
    for place, word in zip(places.tolist(), _words(plan, number, len(places)), strict=True):
        words[place] = word
    return words


def _original(plan: Plan, number: int) -> list[str]:
    length = round(plan.words * _rng(plan, number, 2).uniform(0.7, 1.3))
    return _words(plan, number, length)


def _boilerplate(plan: Plan, rng: np.random.Generator, count: int) -> list[str]:
    """Sentences of one site's stock, which its other pages use too."""
    site = -1 - int(rng.integers(SITES))
    stock = _words(plan, 2**40 - site, SITE_SENTENCES * SENTENCE_WORDS)
    wanted = -(-count // SENTENCE_WORDS)
    chosen = rng.choice(SITE_SENTENCES, wanted, replace=False)
    added = [
        word for at in chosen.tolist() for word in stock[at * SENTENCE_WORDS : (at + 1) * SENTENCE_WORDS]
    ]
    return added[:count]


def _words(plan: Plan, number: int, count: int) -> list[str]:
    rng = _rng(plan, number, 0)
    vocabulary, weights = _vocabulary()
    topic = int(rng.integers(TOPICS))
    at = np.searchsorted(weights, rng.random(count))
    topical = rng.random(count) < TOPIC_SHARE
    at[topical] = _topic(plan.seed, topic)[rng.integers(0, TOPIC_WORDS, int(topical.sum()))]
    found: list[str] = vocabulary[at].tolist()
    function = rng.random(count) < 0.45
    picked = rng.integers(0, len(_FUNCTION), count)
    for place in np.flatnonzero(function).tolist():
        found[place] = _FUNCTION[picked[place]]
    return found


@cache
def _vocabulary() -> tuple[npt.NDArray[np.object_], npt.NDArray[np.float64]]:
    """Terms by frequency, and the running sum of their shares."""
    model = load_models()["en"]
    terms = sorted(zip(getattr(model, "idf").tolist(), getattr(model, "vocabulary"), strict=True))  # noqa: B009
    words = np.array([term for _, term in terms if term.isascii() and term.isalpha()], dtype=object)
    shares = 1.0 / np.arange(10, len(words) + 10)
    return words, np.cumsum(shares) / shares.sum()


@cache
def _topic(seed: int, topic: int) -> npt.NDArray[np.int64]:
    rng = np.random.Generator(np.random.PCG64([seed, topic, 9]))
    return rng.integers(0, len(_vocabulary()[0]), TOPIC_WORDS)
