"""Share of synthetically edited copies (``edits.py``) that the service calls duplicates, per language.

The service holds all articles; each copy is checked without being stored, and found if it is a duplicate of
the original's group. Planted copies label articles of any language: originals and copies are the clusters.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from aggregator.analysis.text.language import detect_language
from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator_lab.evaluation.duplicate_stream import DuplicateStream, is_needless
from aggregator_lab.evaluation.edits import EDITS, Editor, count_words, split_pieces
from aggregator_lab.evaluation.online_protocol import duplicate_group
from aggregator_lab.evaluation.unrelated import MIN_NEWS_SHARE, joined_pieces, shingles, unknown_share
from aggregator_lab.labeled import LabeledArticle

MIN_WORDS = 80  # of an article that is edited
MIN_LANGUAGE_ARTICLES = 10  # of at least so many words; a language with fewer is left out
TARGETS = {**dict.fromkeys(EDITS, 0.98), "reordered": 0.95}


@dataclass(slots=True)
class EditResult:
    """Copies made by one edit in one language: ``found`` or of ``other`` groups.

    needless  copies with less than a fifth of unknown words that are kept without need
    missed    ids of the originals whose copies were not found
    """

    lang: str
    edit: str
    copies: int = 0
    found: int = 0
    other: int = 0
    needless: int = 0
    missed: list[str] = field(default_factory=list)

    @property
    def share(self) -> float | None:
        """Share found, 0..1; None without copies."""
        return self.found / self.copies if self.copies else None

    def as_json(self) -> dict[str, Any]:
        """All values."""
        share = None if self.share is None else round(self.share, 4)
        return asdict(self) | {"share": share, "target": TARGETS[self.edit]}


async def evaluate(stream: DuplicateStream, count: int, seed: int = 0) -> list[EditResult]:
    """Edit a seeded sample of ``count`` articles of at least 80 words per language, in every way."""
    by_lang: dict[str, list[Article]] = defaultdict(list)
    for item in stream.stored.values():
        by_lang[item.lang].append(item.article)
    results = []
    for lang, articles in sorted(by_lang.items()):
        long = [a for a in articles if count_words(split_pieces(a.text, lang)) >= MIN_WORDS]
        if len(long) < MIN_LANGUAGE_ARTICLES:
            continue
        chosen = random.Random(seed).sample(long, min(count, len(long)))
        editor = Editor(long, lang, seed)
        results += [await _evaluate_edit(stream, editor, name, chosen) for name in EDITS]
    return results


async def _evaluate_edit(
    stream: DuplicateStream, editor: Editor, name: str, articles: list[Article]
) -> EditResult:
    result = EditResult(editor.lang, name)
    for article in articles:
        copy = editor.edit(name, article)
        if copy is None:
            continue
        result.copies += 1
        answer = await stream.check(copy)
        if answer is None:
            result.missed.append(article.id)
            continue
        group = duplicate_group(copy.id, answer)
        if group == stream.stored[article.id].group:
            result.found += 1
        else:
            result.other += group != copy.id
            result.missed.append(article.id)
        if is_needless(answer):
            known = shingles(joined_pieces(article.text, editor.lang))
            result.needless += unknown_share(joined_pieces(copy.text, editor.lang), known) < MIN_NEWS_SHARE
    return result


def format_table(results: list[EditResult]) -> str:
    """Table for a terminal: a row per language, a column per edit; "!" marks a share below its target."""
    langs = dict.fromkeys(result.lang for result in results)
    lines = [
        f"edited copies found as duplicates, of articles of at least {MIN_WORDS} words "
        f"(target {TARGETS['cut']:.0%}, reordered {TARGETS['reordered']:.0%})",
        f"{'lang':6} {'copies':>7} "
        + " ".join(f"{name:>10}" for name in EDITS)
        + f" {'of another':>11} {'needless':>9}",
    ]
    for lang in langs:
        row = [result for result in results if result.lang == lang]
        cells = " ".join(f"{_format_share(result):>10}" for result in row)
        copies, other = max(r.copies for r in row), sum(r.other for r in row)
        needless = sum(r.needless for r in row) / max(1, sum(r.copies for r in row))
        lines.append(f"{lang:6} {copies:7,} {cells} {other:11,} {needless:9.1%}")
    return "\n".join(lines)


def _format_share(result: EditResult) -> str:
    if result.share is None:
        return "-"
    return f"{result.share:.1%}{'!' if result.share < TARGETS[result.edit] else ''}"


def plant_copies(
    articles: Sequence[Article], count: int, seed: int = 0
) -> tuple[list[LabeledArticle], list[Article]]:
    """Originals and copies of a seeded sample of ``count`` articles per language, and the other articles.

    Raises InvalidInput if no language has ``MIN_LANGUAGE_ARTICLES`` articles of ``MIN_WORDS`` words.
    """
    by_lang: dict[str, list[Article]] = defaultdict(list)
    for article in articles:
        lang = detect_language(f"{article.title}\n{article.text[:2_000]}", article.lang)
        if count_words(split_pieces(article.text, lang)) >= MIN_WORDS:
            by_lang[lang].append(article)
    gold: list[LabeledArticle] = []
    for lang, long in sorted(by_lang.items()):
        if len(long) < MIN_LANGUAGE_ARTICLES:
            continue
        editor = Editor(long, lang, seed)
        for article in random.Random(seed).sample(long, min(count, len(long))):
            gold.append(LabeledArticle(article, article.id, original=True))
            for name in EDITS:
                copy = editor.edit(name, article)
                if copy is not None:  # of an outlet of its own: copies of one outlet need more in common
                    gold.append(LabeledArticle(replace(copy, source=f"{name}.example"), article.id))
    if not gold:
        raise InvalidInput(
            f"plant: no language has {MIN_LANGUAGE_ARTICLES} articles of at least {MIN_WORDS} words."
        )
    chosen = {item.article.id for item in gold if item.original}
    return gold, [article for article in articles if article.id not in chosen]
