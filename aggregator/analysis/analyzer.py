"""Article analysis: language, words, index terms, fingerprint and shingle sketch of one article.

Pure and picklable, so that it can run in another process. The stages run in the order of the lines of
``Analyzer.analyze``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import xxhash

from aggregator.analysis import shingles
from aggregator.analysis.features import FeatureModel, HashedModel
from aggregator.analysis.simhash import fingerprint_from_sums
from aggregator.analysis.text import chinese, tokenizer
from aggregator.analysis.text.figures import figures
from aggregator.analysis.text.html import extract_article
from aggregator.analysis.text.language import FALLBACK_GROUP, detect_language, language_group
from aggregator.analysis.text.orthography import normalize_spelling
from aggregator.analysis.vocabulary import InternIds, Vocabulary
from aggregator.domain import Analysis, Article, ArticleRecord, Sketch
from aggregator.errors import AggregatorError, NoText

SHORT_BELOW_WORDS = 40
# A long text is compared without its headline, since newswire copy is printed under many headlines.
HEADLINE_COUNTS_BELOW_WORDS = 80
MAX_TERMS = 24
MAX_FIGURES = 48
# Words and index terms cached over all languages, about 30 MB; a larger cache is dropped and refilled.
VOCABULARY_CAPACITY = 1 << 17
# Part of the space name: change it when this module computes other stored values for the same article.
ANALYSIS_RECIPE = "analyse-3"
_LANGUAGE_SAMPLE_CHARS = 600
_UNSPACED_LANGUAGES = frozenset({"zh", "ja", "th", "lo", "km", "my"})

# Words of a text, and its index terms, or None if they follow from the words (``split_words_and_terms``).
Tokenized = tuple[list[str], list[str] | None]
Model = FeatureModel | HashedModel


class Analyzer:
    """Computes the ``Analysis`` of articles. Not thread-safe.

    ``models``: one per language group; that of ``FALLBACK_GROUP`` is required and serves all other languages.
    ``plan_name``: block plan of the index, part of the space names.
    """

    def __init__(self, models: Mapping[str, Model], plan_name: str = "4x16") -> None:
        self.plan_name = plan_name
        self._models = dict(models)
        self._spaces = {group: space_name(group, model, plan_name) for group, model in models.items()}
        self._vocabularies: dict[str, Vocabulary] = {}

    def __reduce__(self) -> tuple[type[Analyzer], tuple[dict[str, Model], str]]:
        return Analyzer, (self._models, self.plan_name)

    @property
    def spaces(self) -> tuple[str, ...]:
        """Names of the fingerprint spaces, one per model."""
        return tuple(self._spaces.values())

    def analyze(self, article: Article) -> Analysis:
        """Return the analysis of one article. Raises NoText when it has no words."""
        title, text = _title_and_text(article)
        lang = detect_language(f"{title}\n{text[:_LANGUAGE_SAMPLE_CHARS]}", article.lang)
        group, model = self._group_and_model(lang)
        tokenized = [tokenizer.split_words_and_terms(part, lang) for part in (title, text)]
        (title_words, _), (text_words, _) = tokenized
        words = _select_dedup_words(title_words, text_words)
        if not words:
            raise NoText("The article has no words: give it a `text`, `html` with a main text, or a `title`.")
        vocabulary = self._vocabulary_for(lang, model)
        word_ids = vocabulary.word_ids(title_words + text_words)
        fingerprint, terms = _fingerprint_and_terms(tokenized, word_ids, vocabulary)
        compared = normalize_spelling(words, lang)
        # Unchanged spelling: ``words`` are the last of the words that have been looked up already.
        compared_ids = word_ids[-len(words) :] if compared is words else vocabulary.word_ids(compared)
        return Analysis(
            lang=lang,
            space=self._spaces[group],
            fingerprint=fingerprint,
            text_hash=xxhash.xxh3_128_digest(" ".join(compared).encode("utf-8", "surrogatepass")),
            short=len(words) < SHORT_BELOW_WORDS,
            sketch=vocabulary.sketch(compared_ids, _shingle_width(lang)),
            terms=terms,
            figures=figure_hashes(f"{title}\n{text}"),
            title=title,
            text=text,
        )

    def _vocabulary_for(self, lang: str, model: Model) -> Vocabulary:
        if sum(map(len, self._vocabularies.values())) > VOCABULARY_CAPACITY:
            self._vocabularies.clear()
        return self._vocabularies.get(lang) or self._vocabularies.setdefault(lang, Vocabulary(lang, model))

    def term_weights(self, analysis: Analysis) -> dict[str, float]:
        """Return all term weights of an analyzed article, L2 norm 1; ``analysis.terms`` has the top ones."""
        _, model = self._group_and_model(analysis.lang)
        return model.term_weights(tokenizer.tokenize(f"{analysis.title}\n{analysis.text}", analysis.lang))

    def _group_and_model(self, lang: str) -> tuple[str, Model]:
        """Return the language group that serves a language, and its model."""
        group = language_group(lang)
        if group not in self._models:
            group = FALLBACK_GROUP
        return group, self._models[group]

    def convert_record(self, record: ArticleRecord, source: Analyzer) -> ArticleRecord | None:
        """Return a record of ``source`` moved to the space of this analyzer; None unless the models agree.

        Equal models compute equal fingerprints: only the block plan, part of the space name, may differ.
        """
        group, model = self._group_and_model(record.lang)
        if source._group_and_model(record.lang)[1].id != model.id:
            return None
        return dataclasses.replace(record, space=self._spaces[group])

    def analyze_many(self, articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        """Return one result per article, in order; an unusable article gives its error."""
        results: list[Analysis | AggregatorError] = []
        for article in articles:
            try:
                results.append(self.analyze(article))
            except AggregatorError as error:
                results.append(error)
        return results


def space_name(group: str, model: Model, plan_name: str) -> str:
    """Return "<language group>.<4 hex digits>"; articles are compared only within one space.

    The digits hash the model, the recipes and the block plan: all that must agree for a comparison.
    """
    parts = [model.id, tokenizer.TOKENIZER_RECIPE, ANALYSIS_RECIPE, plan_name]
    if group == "zh" and chinese.conversion_id():
        parts.append(chinese.conversion_id())
    return f"{group}.{xxhash.xxh3_64_intdigest('|'.join(parts).encode()) & 0xFFFF:04x}"


def uses_spaces(lang: str) -> bool:
    """Whether a language is written with spaces between words."""
    return lang not in _UNSPACED_LANGUAGES


def sketch_in_language(words: Sequence[str], lang: str) -> Sketch:
    """Return the sketch of the words in compared spelling (``normalize_spelling``).

    Shingles are runs of words, or of characters in languages without spaces and in Korean, where spacing
    varies.
    """
    return shingles.build_sketch(words, _shingle_width(lang))


def _shingle_width(lang: str) -> int:
    return shingles.SHINGLE_WORDS if uses_spaces(lang) and lang != "ko" else shingles.SHINGLE_CHARACTERS


def dedup_words(title: str, text: str, lang: str) -> list[str]:
    """Return the words that duplicates share: those of the text, and of the title if the text is short.

    A long text is compared alone: newswire copy is printed under many headlines. A three-line notice
    ("dividend 25 cents, payable April 20") names its subject only in the headline.
    """
    return _select_dedup_words(tokenizer.words(title, lang), tokenizer.words(text, lang))


def _select_dedup_words(title_words: list[str], text_words: list[str]) -> list[str]:
    return text_words if len(text_words) >= HEADLINE_COUNTS_BELOW_WORDS else title_words + text_words


def _title_and_text(article: Article) -> tuple[str, str]:
    if article.text or not article.html:
        return article.title, article.text
    extracted = extract_article(article.html)
    return article.title or extracted.title, extracted.text


def _fingerprint_and_terms(
    tokenized: Sequence[Tokenized], word_ids: InternIds, vocabulary: Vocabulary
) -> tuple[int, tuple[tuple[str, float], ...]]:
    """Return fingerprint and top terms of headline and text, whose words have the ids ``word_ids`` in order.

    An article that consists of stop words only uses its words as terms.
    """
    if all(terms is None for _, terms in tokenized):
        terms = vocabulary.term_ids_of_words(word_ids)
    else:
        parts = np.split(word_ids, [len(words) for words, _ in tokenized[:-1]])
        terms = np.concatenate(
            [
                vocabulary.term_ids_of_words(ids) if part_terms is None else vocabulary.term_ids(part_terms)
                for ids, (_, part_terms) in zip(parts, tokenized, strict=True)
            ]
        )
    if not len(terms):
        terms = vocabulary.term_ids([word for words, _ in tokenized for word in words])
    counts = vocabulary.count_terms(terms)
    weights = vocabulary.tf_idf(counts)
    fingerprint = fingerprint_from_sums(vocabulary.project(counts, weights))
    return fingerprint, _top_terms(vocabulary.top_terms(counts, weights, MAX_TERMS))


def _top_terms(weights: Iterable[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """Return the ``MAX_TERMS`` terms of the highest weight, descending, scaled to L2 norm 1."""
    kept = sorted(weights, key=lambda item: (-item[1], item[0]))[:MAX_TERMS]
    norm = sum(weight * weight for _, weight in kept) ** 0.5
    return tuple([(term, weight / norm) for term, weight in kept]) if norm else ()


def figure_hashes(text: str) -> tuple[int, ...]:
    """Return the hashes (uint32) of the first ``MAX_FIGURES`` distinct numbers of a text, in order."""
    distinct = list(dict.fromkeys(figures(text)))
    return tuple(xxhash.xxh32_intdigest(figure.encode()) for figure in distinct[:MAX_FIGURES])
