"""Synthetic edits of articles: what other sites and scrapers make of a text. Pure and seeded.

A word is a run without spaces; in Chinese a word of the segmenter, in other scripts without spaces a
character. Punctuation alone is not a word.

    cut        the first half of the words
    padded     a navigation line before the text, related headlines and disclaimers below it
               (``boilerplate.py``), together 30 to 60 % of the words of the text
    reordered  the sentences in random order; one of under 5 words stays with the next
    replaced   10 % of the words replaced by words drawn from the other articles
    headline   the headline replaced by that of another article; the text is unchanged
    lead       the first 60 words, at most a third of the text, replaced by as many words of sentences, each
               from the second half of another article
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from aggregator.analysis.analyzer import uses_spaces
from aggregator.analysis.text.morphology import DICTIONARY_RANGE, segmenter
from aggregator.domain import Article
from aggregator_lab.evaluation.boilerplate import page_parts

PADDING_SHARES = (0.3, 0.6)
REPLACED_SHARE = 0.1
LEAD_WORDS = 60
MAX_LEAD_SHARE = 1 / 3
MIN_SENTENCE_WORDS = 5
POOL_ARTICLES = 200  # words are drawn from so many articles
MAX_DRAWS = 200  # of sentences for another opening
COPY_SOURCE = "copy.example"
COPY_DELAY_MS = 3_600_000

_PIECE = re.compile(r"\S+\s*|\s+")
_CHINESE_PIECE = re.compile(f"[{DICTIONARY_RANGE}]+|[^{DICTIONARY_RANGE}]")
_WORD = re.compile(r"\w")
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n\s*\n")


class Editor:
    """Edits articles of one language; ``articles``: all of that language, at least two."""

    def __init__(self, articles: Sequence[Article], lang: str, seed: int = 0) -> None:
        self.lang = lang
        self._articles = articles
        self._seed = seed
        sample = random.Random(seed).sample(articles, min(POOL_ARTICLES, len(articles)))
        self._pool = [piece.strip() for a in sample for piece in split_pieces(a.text, lang) if is_word(piece)]
        self._titled = [article for article in articles if article.title.strip()]

    def edit(self, name: str, article: Article) -> Article | None:
        """The edited copy: another source and id, an hour later; the same for the same seed.

        None if the edit does not apply: no headline, or no other article to take from.
        """
        rng = random.Random(f"{self._seed} {name} {article.id}")
        edited = EDITS[name](self, article, rng)
        if edited is None:
            return None
        published_ms = article.published_at_ms
        return replace(
            edited,
            id=f"edited-{name}",
            url="",
            source=COPY_SOURCE,
            published_at_ms=None if published_ms is None else published_ms + COPY_DELAY_MS,
        )

    def cut(self, article: Article, _rng: random.Random) -> Article:
        """See the module docstring, as for the other edits."""
        pieces = split_pieces(article.text, self.lang)
        return replace(article, text="".join(pieces[: _position_after(pieces, count_words(pieces) // 2)]))

    def padded(self, article: Article, rng: random.Random) -> Article:
        """Navigation above, headlines and disclaimers below."""
        missing = count_words(split_pieces(article.text, self.lang)) * rng.uniform(*PADDING_SHARES)
        navigation, lines = page_parts(self.lang, rng)
        below = []
        missing -= count_words(split_pieces(navigation, self.lang))
        for line in lines:
            if missing <= 0:
                break
            below.append(line)
            missing -= count_words(split_pieces(line, self.lang))
        return replace(article, text="\n".join([navigation, article.text, *below]))

    def reordered(self, article: Article, rng: random.Random) -> Article:
        """Sentences in random order."""
        sentences = split_sentences(article.text, self.lang)
        rng.shuffle(sentences)
        return replace(article, text=self._joint.join(sentences))

    def replaced(self, article: Article, rng: random.Random) -> Article:
        """10 % other words."""
        pieces = split_pieces(article.text, self.lang)
        positions = [i for i, piece in enumerate(pieces) if is_word(piece)]
        for position in rng.sample(positions, round(REPLACED_SHARE * len(positions))):
            space = pieces[position][len(pieces[position].rstrip()) :]
            pieces[position] = rng.choice(self._pool) + space
        return replace(article, text="".join(pieces))

    def headline(self, article: Article, rng: random.Random) -> Article | None:
        """Another headline."""
        others = [other for other in self._titled if other.title != article.title]
        if not article.title.strip() or not others:
            return None
        return replace(article, title=rng.choice(others).title)

    def lead(self, article: Article, rng: random.Random) -> Article | None:
        """Another opening."""
        pieces = split_pieces(article.text, self.lang)
        size = min(LEAD_WORDS, int(count_words(pieces) * MAX_LEAD_SHARE))
        opening: list[str] = []
        for _ in range(MAX_DRAWS):
            if count_words(opening) >= size:
                break
            other = rng.choice(self._articles)
            sentences = split_sentences(other.text, self.lang)
            if other.text != article.text and sentences:
                sentence = rng.choice(sentences[len(sentences) // 2 :])
                opening += split_pieces(sentence + self._joint, self.lang)
        if not opening:
            return None
        kept = opening[: _position_after(opening, size)] + pieces[_position_after(pieces, size) :]
        return replace(article, text="".join(kept))

    @property
    def _joint(self) -> str:
        return " " if uses_spaces(self.lang) else ""


EDITS: dict[str, Callable[[Editor, Article, random.Random], Article | None]] = {
    "cut": Editor.cut,
    "padded": Editor.padded,
    "reordered": Editor.reordered,
    "replaced": Editor.replaced,
    "headline": Editor.headline,
    "lead": Editor.lead,
}


def split_pieces(text: str, lang: str) -> list[str]:
    """The words of a text, each with what follows it up to the next; joined they are the text."""
    if uses_spaces(lang):
        return _PIECE.findall(text)
    if lang != "zh":
        return list(text)
    cut = segmenter()
    return [word for run in _CHINESE_PIECE.findall(text) for word in (cut(run) if len(run) > 1 else [run])]


def is_word(piece: str) -> bool:
    """Whether a piece has a letter or a digit."""
    return _WORD.search(piece) is not None


def count_words(pieces: Sequence[str]) -> int:
    """Number of pieces that are words."""
    return sum(map(is_word, pieces))


def split_sentences(text: str, lang: str) -> list[str]:
    """Sentences without surrounding space; one of under 5 words is joined with the next."""
    joint = " " if uses_spaces(lang) else ""
    sentences: list[str] = []
    started = ""
    for part in filter(None, map(str.strip, _SENTENCE_END.split(text))):
        started = f"{started}{joint}{part}" if started else part
        if count_words(split_pieces(started, lang)) >= MIN_SENTENCE_WORDS:
            sentences.append(started)
            started = ""
    return [*sentences, started] if started else sentences


def _position_after(pieces: Sequence[str], count: int) -> int:
    """Position of the piece that follows the first ``count`` words."""
    for position, piece in enumerate(pieces):
        if count <= 0:
            return position
        count -= is_word(piece)
    return len(pieces)
