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
from aggregator.analysis.simhash import bits_of
from aggregator.analysis.text import chinese, tokenizer
from aggregator.analysis.text.html import extract
from aggregator.analysis.text.language import detect, group_of
from aggregator.analysis.text.orthography import compared
from aggregator.analysis.vocabulary import Numbers, Vocabulary
from aggregator.domain import Analysis, Article, Record, Sketch
from aggregator.errors import AggregatorError, NoText

SHORT_WORDS = 40
TITLED_WORDS = 80
MAX_TERMS = 24
MAX_FIGURES = 48
# Words and index terms that are kept, in all languages together: about 30 MB. Then they are looked up anew.
VOCABULARY = 1 << 17
# Bump when anything below changes what is stored of the same article.
RECIPE = "analyse-3"
_LANGUAGE_SAMPLE = 600
_UNSPACED = frozenset({"zh", "ja", "th", "lo", "km", "my"})


# Words of a text, and its terms where they are not those of the words (``tokens.cut``); heaviest terms and their weights.
Cut = tuple[list[str], list[str] | None]
Terms = tuple[tuple[str, float], ...]
Model = FeatureModel | HashedModel


class Analyser:
    """The models in use, one per language group; group "xx" serves every language without its own.

    For one thread at a time.
    """

    def __init__(self, models: Mapping[str, Model], plan_name: str = "4x16") -> None:
        self.plan_name = plan_name
        self._models = dict(models)
        self._spaces = {group: space_name(group, model, plan_name) for group, model in models.items()}
        self._vocabularies: dict[str, Vocabulary] = {}

    def __reduce__(self) -> tuple[type[Analyser], tuple[dict[str, Model], str]]:
        return Analyser, (self._models, self.plan_name)

    @property
    def spaces(self) -> tuple[str, ...]:
        """The fingerprint spaces of these models."""
        return tuple(self._spaces.values())

    def analyse(self, article: Article) -> Analysis:
        """Raises NoText when the article has no words at all."""
        title, text = _title_and_text(article)
        lang = detect(f"{title}\n{text[:_LANGUAGE_SAMPLE]}", article.lang)
        group, model = self._model_of(lang)
        titled, worded = tokenizer.cut(title, lang), tokenizer.cut(text, lang)
        words = _worded(titled[0], worded[0])
        if not words:
            raise NoText("The article has no words: give it a `text`, `html` with a main text, or a `title`.")
        known = self._vocabulary(lang, model)
        numbers = known.words(titled[0] + worded[0])
        fingerprint, terms = _weighed((titled, worded), numbers, known)
        shingled = compared(words, lang)
        numbered = known.words(shingled) if shingled is not words else numbers[-len(words) :]
        return Analysis(
            lang=lang,
            space=self._spaces[group],
            fingerprint=fingerprint,
            text_hash=xxhash.xxh3_128_digest(" ".join(shingled).encode("utf-8", "surrogatepass")),
            short=len(words) < SHORT_WORDS,
            sketch=known.sketch(numbered, _shingle_width(lang)),
            terms=terms,
            figures=figures_of(f"{title}\n{text}"),
            title=title,
            text=text,
        )

    def _vocabulary(self, lang: str, model: Model) -> Vocabulary:
        if sum(map(len, self._vocabularies.values())) > VOCABULARY:
            self._vocabularies.clear()
        return self._vocabularies.get(lang) or self._vocabularies.setdefault(lang, Vocabulary(lang, model))

    def weights(self, analysis: Analysis) -> dict[str, float]:
        """All term weights of an analysed article, L2 norm 1; ``analysis.terms`` has the heaviest of them."""
        _, model = self._model_of(analysis.lang)
        return model.weights(tokenizer.tokenize(f"{analysis.title}\n{analysis.text}", analysis.lang))

    def _model_of(self, lang: str) -> tuple[str, Model]:
        """The language group that serves a language, and its model."""
        group = group_of(lang)
        if group not in self._models:
            group = "xx"
        return group, self._models[group]

    def carried(self, record: Record, source: Analyser) -> Record | None:
        """A record of ``source`` as these models would make it, when only the block plan differs; else None."""
        group, model = self._model_of(record.lang)
        if source._model_of(record.lang)[1].id != model.id:
            return None
        return dataclasses.replace(record, space=self._spaces[group])

    def analyse_many(self, articles: Sequence[Article]) -> list[Analysis | AggregatorError]:
        """One result per article; an unusable one gives its error and costs the others nothing."""
        results: list[Analysis | AggregatorError] = []
        for article in articles:
            try:
                results.append(self.analyse(article))
            except AggregatorError as error:
                results.append(error)
        return results


def space_name(group: str, model: Model, plan_name: str) -> str:
    """Language group and four hex digits of all that makes fingerprints and sketches comparable."""
    parts = [model.id, tokenizer.RECIPE, RECIPE, plan_name]
    if group == "zh" and chinese.form():
        parts.append(chinese.form())
    return f"{group}.{xxhash.xxh3_64_intdigest('|'.join(parts).encode()) & 0xFFFF:04x}"


def separates_words(lang: str) -> bool:
    """Does writing in this language put spaces between words?"""
    return lang not in _UNSPACED


def sketch_of(words: Sequence[str], lang: str) -> Sketch:
    """Shingles of what is compared (``spelling.compared``): words, or characters where words are not separated, or freely."""
    return shingles.sketch(words, _shingle_width(lang))


def _shingle_width(lang: str) -> int:
    return shingles.SHINGLE_WORDS if separates_words(lang) and lang != "ko" else shingles.SHINGLE_CHARACTERS


def worded(title: str, text: str, lang: str) -> list[str]:
    """The words that make an article a copy of another: its text's, and of a short text the title's too.

    Wire copy is printed under many headlines, so a long text stands for itself. But a three-line
    notice ("dividend 25 cents, payable April 20") says only in its headline whom it is about.
    """
    return _worded(tokenizer.words(title, lang), tokenizer.words(text, lang))


def _worded(title_words: list[str], text_words: list[str]) -> list[str]:
    return text_words if len(text_words) >= TITLED_WORDS else title_words + text_words


def _title_and_text(article: Article) -> tuple[str, str]:
    if article.text or not article.html:
        return article.title, article.text
    extracted = extract(article.html)
    return article.title or extracted.title, extracted.text


def _weighed(cuts: Sequence[Cut], numbers: Numbers, known: Vocabulary) -> tuple[int, Terms]:
    """Fingerprint and heaviest terms of headline and text, whose words have these ``numbers``.

    What has no terms but stop words has its words.
    """
    if all(terms is None for _, terms in cuts):
        terms = known.terms_of(numbers)
    else:
        parts = np.split(numbers, [len(words) for words, _ in cuts[:-1]])
        terms = np.concatenate(
            [
                known.terms_of(part) if of is None else known.terms(of)
                for part, (_, of) in zip(parts, cuts, strict=True)
            ]
        )
    if not len(terms):
        terms = known.terms([word for words, _ in cuts for word in words])
    bag = known.bag(terms)
    weights = known.weights(bag)
    return bits_of(known.project(bag, weights)), _heaviest(known.heaviest(bag, weights, MAX_TERMS))


def _heaviest(weights: Iterable[tuple[str, float]]) -> Terms:
    """The heaviest of them in order, L2 norm 1."""
    kept = sorted(weights, key=lambda item: (-item[1], item[0]))[:MAX_TERMS]
    norm = sum(weight * weight for _, weight in kept) ** 0.5
    return tuple([(term, weight / norm) for term, weight in kept]) if norm else ()


def figures_of(text: str) -> tuple[int, ...]:
    """Hashes (uint32) of the distinct numbers of a text, in order, the first ``MAX_FIGURES``."""
    found = dict.fromkeys(tokenizer.figures(text))
    return tuple(xxhash.xxh32_intdigest(figure.encode()) for figure in list(found)[:MAX_FIGURES])
