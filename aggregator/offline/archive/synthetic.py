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

COPY_KINDS = ("truncated", "boilerplate", "changed", "joined", "header")
ARTICLES_PER_COPY = 10  # one in so many is a copy; digit 9 of its number, its originals have digits 3 and 4
HEADER_WORDS = 15
TOPIC_COUNT, TOPIC_WORDS, TOPIC_SHARE = 500, 200, 0.3
SITE_COUNT, SITE_SENTENCES, SENTENCE_WORDS = 200, 40, 16
ROWS_PER_PART = 20_000
_FIRST_ARTICLE_S = 1_577_836_800  # 2020-01-01
_FUNCTION_WORDS = (  # noqa: SIM905
    "the of and to in a that is was for it with as on be at by this had are but from have they which or an were "
    "their has been its more will would who said not he his she her we when there if out so up into than them"
).split()


@dataclass(frozen=True, slots=True)
class SyntheticPlan:
    """``articles`` in all, of about ``words`` words each."""

    articles: int
    words_per_article: int = 400
    seed: int = 1

    @property
    def copy_count(self) -> int:
        return self.articles // ARTICLES_PER_COPY

    def copy_source(self, number: int) -> tuple[str, list[int]] | None:
        """The kind and the originals of article ``number``; None when it is an original itself."""
        if (
            number % ARTICLES_PER_COPY != ARTICLES_PER_COPY - 1
            or number // ARTICLES_PER_COPY >= self.copy_count
        ):
            return None
        copy = number // ARTICLES_PER_COPY
        ten = ARTICLES_PER_COPY * (
            (copy * _coprime_stride(self.copy_count) + self.copy_count // 3) % self.copy_count
        )
        kind = COPY_KINDS[copy % len(COPY_KINDS)]
        return kind, [ten + 3, ten + 4] if kind == "joined" else [ten + 3]


@cache
def _coprime_stride(count: int) -> int:
    """A step that visits every one of ``count`` before any twice."""
    step = int(count * 0.618) | 1
    while np.gcd(step, count) != 1:
        step += 2
    return step


def article_id(number: int) -> str:
    return f"s{number:08}"


def planted_pairs(plan: SyntheticPlan) -> Iterator[tuple[str, str, str]]:
    """(kind, id, id) of every planted pair."""
    for number in range(ARTICLES_PER_COPY - 1, plan.articles, ARTICLES_PER_COPY):
        planted = plan.copy_source(number)
        if planted is not None:
            for original in planted[1]:
                yield planted[0], article_id(number), article_id(original)


def article_row(plan: SyntheticPlan, number: int) -> dict[str, object]:
    """One article as a row of an archive."""
    planted = plan.copy_source(number)
    words = _original_words(plan, number) if planted is None else _copy_words(plan, number, *planted)
    when = np.datetime64(_FIRST_ARTICLE_S + 31 * number, "s")
    return {
        "id": article_id(number),
        "title": " ".join(words[:8]),
        "text": " ".join(words),
        "source": f"site{_rng(plan, number, 7).integers(SITE_COUNT)}",
        "published_at": f"{when}Z",
    }


def write_corpus(plan: SyntheticPlan, directory: Path, executor: Executor) -> list[Path]:
    """The corpus as JSON Lines in parts, made by the executor's workers."""
    directory.mkdir(parents=True, exist_ok=True)
    starts = range(0, plan.articles, ROWS_PER_PART)
    files = [directory / f"part-{start // ROWS_PER_PART:05}.jsonl" for start in starts]
    for _ in executor.map(_write_part, [plan] * len(files), starts, files):
        pass
    return files


def _write_part(plan: SyntheticPlan, start: int, file: Path) -> None:
    with open(file, "w", encoding="utf-8") as out:
        for number in range(start, min(start + ROWS_PER_PART, plan.articles)):
            out.write(json.dumps(article_row(plan, number)) + "\n")


def _rng(plan: SyntheticPlan, number: int, purpose: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64([plan.seed, number, purpose]))


def _copy_words(plan: SyntheticPlan, number: int, kind: str, originals: list[int]) -> list[str]:
    words = _original_words(plan, originals[0])
    rng = _rng(plan, number, 1)
    if kind == "truncated":
        return words[: len(words) * 3 // 10]
    if kind == "joined":
        return words + _original_words(plan, originals[1])
    if kind == "header":
        return _draw_words(plan, number, HEADER_WORDS) + words[HEADER_WORDS:]
    if kind == "boilerplate":
        added = _boilerplate_words(plan, rng, len(words) // 5)
        return added[: len(added) // 4] + words + added[len(added) // 4 :]
    places = rng.choice(len(words), len(words) // 10, replace=False)
    for place, word in zip(places.tolist(), _draw_words(plan, number, len(places)), strict=True):
        words[place] = word
    return words


def _original_words(plan: SyntheticPlan, number: int) -> list[str]:
    length = round(plan.words_per_article * _rng(plan, number, 2).uniform(0.7, 1.3))
    return _draw_words(plan, number, length)


def _boilerplate_words(plan: SyntheticPlan, rng: np.random.Generator, count: int) -> list[str]:
    """Sentences of one site's stock, which its other pages use too."""
    site = -1 - int(rng.integers(SITE_COUNT))
    stock = _draw_words(plan, 2**40 - site, SITE_SENTENCES * SENTENCE_WORDS)
    wanted = -(-count // SENTENCE_WORDS)
    chosen = rng.choice(SITE_SENTENCES, wanted, replace=False)
    added = [
        word for at in chosen.tolist() for word in stock[at * SENTENCE_WORDS : (at + 1) * SENTENCE_WORDS]
    ]
    return added[:count]


def _draw_words(plan: SyntheticPlan, number: int, count: int) -> list[str]:
    rng = _rng(plan, number, 0)
    vocabulary, weights = _vocabulary()
    topic = int(rng.integers(TOPIC_COUNT))
    at = np.searchsorted(weights, rng.random(count))
    topical = rng.random(count) < TOPIC_SHARE
    at[topical] = _topic_terms(plan.seed, topic)[rng.integers(0, TOPIC_WORDS, int(topical.sum()))]
    found: list[str] = vocabulary[at].tolist()
    function = rng.random(count) < 0.45
    picked = rng.integers(0, len(_FUNCTION_WORDS), count)
    for place in np.flatnonzero(function).tolist():
        found[place] = _FUNCTION_WORDS[picked[place]]
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
def _topic_terms(seed: int, topic: int) -> npt.NDArray[np.int64]:
    rng = np.random.Generator(np.random.PCG64([seed, topic, 9]))
    return rng.integers(0, len(_vocabulary()[0]), TOPIC_WORDS)
