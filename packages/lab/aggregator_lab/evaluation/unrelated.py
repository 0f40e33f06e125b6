"""Unrelated articles that test streams are built from, and how much of a text is known. Pure, seeded.

Words are those of ``edits.py``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from aggregator.domain import Article
from aggregator_lab.evaluation.edits import Editor, is_word, split_pieces

SHINGLE_WORDS = 5
MAX_KNOWN_SHARE = 0.1  # of an article's words, in the articles before it
MIN_NEWS_SHARE = 0.2  # of an article's words that are unknown: it has news
MIN_WORDS = 60  # of an article that cases are built from
_NO_WORD = re.compile(r"\W+")


class ExhaustedError(Exception):
    """The supply has no further article of the length that was asked for."""


@dataclass(slots=True)
class Source:
    """An article that cases take from; ``pieces``: its words, each with what follows it."""

    article: Article
    pieces: list[str]

    def words(self, start: int, stop: int | None = None) -> str:
        """The words from ``start`` to ``stop``."""
        return "".join(self.pieces[start:stop]).strip()

    def __len__(self) -> int:
        return len(self.pieces)


class Supply:
    """Unrelated articles of one language in random order, each taken once until ``refill``."""

    def __init__(self, articles: Iterable[Article], lang: str, seed: int, limit: int = 2_000) -> None:
        self.lang = lang
        self.rng = random.Random(seed)
        self._all = list(islice(unrelated(articles, lang), limit))
        self.editor = Editor([source.article for source in self._all], lang, seed) if self._all else None
        self.refill()

    def refill(self) -> None:
        """Make all articles available again."""
        self._left = self.rng.sample(self._all, len(self._all))

    def take(self, min_words: int = MIN_WORDS) -> Source:
        """The next article of at least so many words. Raises ExhaustedError."""
        for position, source in enumerate(self._left):
            if len(source) >= min_words:
                return self._left.pop(position)
        raise ExhaustedError

    def noise(self, count: int) -> str:
        """``count`` words from the middle of other articles."""
        words: list[str] = []
        while len(words) < count:
            source = self.take()
            middle = len(source) // 2
            words += [*source.pieces[middle - 20 : middle + 19], source.pieces[middle + 19].rstrip() + "\n"]
        return "".join(words[:count]).strip()


def unrelated(articles: Iterable[Article], lang: str) -> Iterable[Source]:
    """The articles of at least 60 words of which those before them hold next to nothing."""
    seen: set[tuple[str, ...]] = set()
    titles: set[str] = set()
    for article in articles:
        pieces = joined_pieces(article.text, lang)
        if len(pieces) < MIN_WORDS or article.title in titles:
            continue
        new = unknown_share(pieces, seen) >= 1 - MAX_KNOWN_SHARE
        seen |= shingles(pieces)
        titles |= {article.title} - {""}
        if new:
            yield Source(article, pieces)


def joined_pieces(text: str, lang: str) -> list[str]:
    """The words of a text, each with all that follows up to the next."""
    words: list[str] = []
    for piece in split_pieces(text, lang):
        if words and not is_word(piece):
            words[-1] += piece
        else:
            words.append(piece)
    return words


def shingles(pieces: Sequence[str]) -> set[tuple[str, ...]]:
    """Runs of 5 words in lower case, without punctuation."""
    words = [_NO_WORD.sub("", piece).lower() for piece in pieces]
    return set(zip(*(words[at:] for at in range(SHINGLE_WORDS)), strict=False))


def unknown_share(pieces: Sequence[str], seen: set[tuple[str, ...]]) -> float:
    """Share of the words that no run of 5 words in ``seen`` covers, 0..1; 1 for a text without words."""
    words = [_NO_WORD.sub("", piece).lower() for piece in pieces]
    known: set[int] = set()
    for at in range(len(words) - SHINGLE_WORDS + 1):
        if tuple(words[at : at + SHINGLE_WORDS]) in seen:
            known.update(range(at, at + SHINGLE_WORDS))
    return 1 - len(known) / len(words) if words else 1.0
