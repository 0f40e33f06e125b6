"""Everything that is computed from an article alone: language, words, fingerprint, sketch.

Pure and picklable, so that it can run in another process. The order of the stages is the order of
the lines of ``Analyser.analyse``.
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
from aggregator.analysis.text.html import extract_article
from aggregator.analysis.text.language import detect_language, language_group
from aggregator.analysis.text.orthography import normalize_spelling
from aggregator.analysis.vocabulary import InternIds, Vocabulary
from aggregator.domain import Analysis, Article, ArticleRecord, Sketch
from aggregator.errors import AggregatorError, NoText

SHORT_BELOW_WORDS = 40
HEADLINE_COUNTS_BELOW_WORDS = 80
MAX_TERMS = 24
MAX_FIGURES = 48
# Words and index terms that are kept, in all languages together: about 30 MB. Then they are looked up anew.
VOCABULARY_CAPACITY = 1 << 17
# Bump when anything below changes what is stored of the same article.
ANALYSIS_RECIPE = "analyse-3"
_LANGUAGE_SAMPLE_CHARS = 600
_UNSPACED_LANGUAGES = frozenset({"zh", "ja", "th", "lo", "km", "my"})


# Words of a text, and its terms where they are not those of the words (``tokens.cut``); heaviest terms and their weights.
Tokenized = tuple[list[str], list[str] | None]
WeightedTerms = tuple[tuple[str, float], ...]
Model = FeatureModel | HashedModel


class Analyzer:
    """The models in use, one per language group; group "xx" serves every language without its own.

    For one thread at a time.
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
        """The fingerprint spaces of these models."""
        return tuple(self._spaces.values())

    def analyze(self, article: Article) -> Analysis:
        """Raises NoText when the article has no words at all."""
        title, text = _title_and_text(article)
        lang = detect_language(f"{title}\n{text[:_LANGUAGE_SAMPLE_CHARS]}", article.lang)
        group, model = self._group_and_model(lang)
        titled, worded = (
            tokenizer.split_words_and_terms(title, lang),
            tokenizer.split_words_and_terms(text, lang),
        )
        words = _select_dedup_words(titled[0], worded[0])
        if not words:
            raise NoText("The article has no words: give it a `text`, `html` with a main text, or a `title`.")
        known = self._vocabulary_for(lang, model)
        numbers = known.word_ids(titled[0] + worded[0])
        fingerprint, terms = _fingerprint_and_terms((titled, worded), numbers, known)
        shingled = normalize_spelling(words, lang)
        numbered = known.word_ids(shingled) if shingled is not words else numbers[-len(words) :]
        return Analysis(
            lang=lang,
            space=self._spaces[group],
            fingerprint=fingerprint,
            text_hash=xxhash.xxh3_128_digest(" ".join(shingled).encode("utf-8", "surrogatepass")),
            short=len(words) < SHORT_BELOW_WORDS,
            sketch=known.sketch(numbered, _shingle_width(lang)),
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
        """All term weights of an analysed article, L2 norm 1; ``analysis.terms`` has the heaviest of them."""
        _, model = self._group_and_model(analysis.lang)
        return model.term_weights(tokenizer.tokenize(f"{analysis.title}\n{analysis.text}", analysis.lang))

    def _group_and_model(self, lang: str) -> tuple[str, Model]:
        """The language group that serves a language, and its model."""
        group = language_group(lang)
        if group not in self._models:
            group = "xx"
        return group, self._models[group]

    def convert_record(self, record: ArticleRecord, source: Analyzer) -> ArticleRecord | None:
        """A record of ``source`` as these models would make it, when only the block plan differs; else None."""
        group, model = self._group_and_model(record.lang)
        if source._group_and_model(record.lang)[1].id != model.id:
            return None
        return dataclasses.replace(record, space=self._spaces[group])

    def analyze_many(self, articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        """One result per article; an unusable one gives its error and costs the others nothing."""
        results: list[Analysis | AggregatorError] = []
        for article in articles:
            try:
                results.append(self.analyze(article))
            except AggregatorError as error:
                results.append(error)
        return results


def space_name(group: str, model: Model, plan_name: str) -> str:
    """Language group and four hex digits of all that makes fingerprints and sketches comparable."""
    parts = [model.id, tokenizer.TOKENIZER_RECIPE, ANALYSIS_RECIPE, plan_name]
    if group == "zh" and chinese.conversion_id():
        parts.append(chinese.conversion_id())
    return f"{group}.{xxhash.xxh3_64_intdigest('|'.join(parts).encode()) & 0xFFFF:04x}"


def uses_spaces(lang: str) -> bool:
    """Does writing in this language put spaces between words?"""
    return lang not in _UNSPACED_LANGUAGES


def sketch_in_language(words: Sequence[str], lang: str) -> Sketch:
    """Shingles of what is compared (``spelling.compared``): words, or characters where words are not separated, or freely."""
    return shingles.build_sketch(words, _shingle_width(lang))


def _shingle_width(lang: str) -> int:
    return shingles.SHINGLE_WORDS if uses_spaces(lang) and lang != "ko" else shingles.SHINGLE_CHARACTERS


def dedup_words(title: str, text: str, lang: str) -> list[str]:
    """The words that make an article a copy of another: its text's, and of a short text the title's too.

    Wire copy is printed under many headlines, so a long text stands for itself. But a three-line
    notice ("dividend 25 cents, payable April 20") says only in its headline whom it is about.
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
) -> tuple[int, WeightedTerms]:
    """Fingerprint and heaviest terms of headline and text, whose words have these ``numbers``.

    What has no terms but stop words has its words.
    """
    if all(terms is None for _, terms in tokenized):
        terms = vocabulary.term_ids_of_words(word_ids)
    else:
        parts = np.split(word_ids, [len(words) for words, _ in tokenized[:-1]])
        terms = np.concatenate(
            [
                vocabulary.term_ids_of_words(part) if of is None else vocabulary.term_ids(of)
                for part, (_, of) in zip(parts, tokenized, strict=True)
            ]
        )
    if not len(terms):
        terms = vocabulary.term_ids([word for words, _ in tokenized for word in words])
    bag = vocabulary.count_terms(terms)
    weights = vocabulary.tf_idf(bag)
    return fingerprint_from_sums(vocabulary.project(bag, weights)), _top_terms(
        vocabulary.top_terms(bag, weights, MAX_TERMS)
    )


def _top_terms(weights: Iterable[tuple[str, float]]) -> WeightedTerms:
    """The heaviest of them in order, L2 norm 1."""
    kept = sorted(weights, key=lambda item: (-item[1], item[0]))[:MAX_TERMS]
    norm = sum(weight * weight for _, weight in kept) ** 0.5
    return tuple([(term, weight / norm) for term, weight in kept]) if norm else ()


def figure_hashes(text: str) -> tuple[int, ...]:
    """Hashes (uint32) of the distinct numbers of a text, in order, the first ``MAX_FIGURES``."""
    found = dict.fromkeys(tokenizer.figures(text))
    return tuple(xxhash.xxh32_intdigest(figure.encode()) for figure in list(found)[:MAX_FIGURES])
