"""Labeled articles made from unlabeled ones: planted edited copies (``edits.py``), in any language.

For languages without a gold set: each chosen article and its edited copies are one cluster, the original
marked, and all other articles are background, where a match is false.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from aggregator.analysis.text.language import detect_language
from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator_lab.evaluation.edit_recall import MIN_LANGUAGE_ARTICLES, MIN_WORDS
from aggregator_lab.evaluation.edits import EDITS, Editor, count_words, split_pieces
from aggregator_lab.labeled import LabeledArticle


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
