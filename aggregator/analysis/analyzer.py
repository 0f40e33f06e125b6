"""Article analysis: language, words, index terms, fingerprint and shingle sketch of one article."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import xxhash

from aggregator.analysis import shingles
from aggregator.analysis.features import FeatureModel, HashedModel
from aggregator.analysis.models import Model
from aggregator.analysis.simhash import fingerprint_from_sums
from aggregator.analysis.term_profile import LEAD_TERMS, MINOR_TERMS, OPENING_UNITS, encode_minor_terms
from aggregator.analysis.text import tokenizer
from aggregator.analysis.text.figures import MAX_FIGURES, figure_hash, figures, is_marked, letter_marks
from aggregator.analysis.text.html import extract_article
from aggregator.analysis.text.language import (
    CANDIDATE_LANGUAGES,
    FALLBACK_GROUP,
    UNDETERMINED,
    detect_language,
    language_group,
)
from aggregator.analysis.text.markup import addresses, plain_text
from aggregator.analysis.text.morphology import SNOWBALL_LANGUAGES, stemmer
from aggregator.analysis.text.normalization import core_headline, nfkc, without_headline
from aggregator.analysis.text.problems import is_cut, text_problems
from aggregator.analysis.text.spelling import normalize_spelling
from aggregator.analysis.vocabulary import NO_TERMS, Vocabulary
from aggregator.domain import MAX_TEXT_WORDS, TERM_WEIGHT_STEPS, Analysis, Article
from aggregator.errors import AggregatorError, InputTooLarge, NoText

SHORT_BELOW_WORDS = 40
HEADLINE_COUNTS_BELOW_WORDS = 80
# Characters of a text after Unicode normalization, so that the same texts are accepted on every machine.
MAX_TEXT_CHARS = 3_000_000
NORMALIZED_CHARS_PER_CHAR = 18  # at most
_CHUNK_CHARS = 50_000
MAX_TERMS = 24
# Words and index terms cached over all languages, about 60 MB; a larger cache is dropped and refilled.
VOCABULARY_CAPACITY = 1 << 18  # 42,000 English articles have 203,000
# Part of the space name: change it when this module computes other stored values for the same article.
ANALYSIS_RECIPE = "analyse-9"
_SAMPLE_CHARS = 600
_KEY_SAMPLE_CHARS = 100  # of a text in its ``text_key``: it finds texts that may be equal
_NO_LETTERS = re.compile("[\\W_\u02b9-\u02bd]+")  # also the apostrophes that are letters
_CUT_FIGURE = re.compile(r"\d[\s.,…]*$")  # "2" of "27 million"
_UNSPACED_LANGUAGES = frozenset({"zh", "ja", "th", "lo", "km", "my"})


class SpaceParts(NamedTuple):
    """What a fingerprint space depends on: the model's id, and the recipe of the analysis."""

    model: str
    recipe: str


class Analyzer:
    """Computes the ``Analysis`` of articles. Not thread-safe.

    ``models``: one per language group; that of ``FALLBACK_GROUP`` is required and serves all other languages.
    """

    def __init__(self, models: Mapping[str, Model]) -> None:
        self._models = dict(models)
        self._spaces = {group: space_name(group, model) for group, model in models.items()}
        self._vocabularies: dict[str, Vocabulary] = {}

    def __reduce__(self) -> tuple[type[Analyzer], tuple[dict[str, Model]]]:
        return Analyzer, (self._models,)

    @property
    def spaces(self) -> tuple[str, ...]:
        """Names of the fingerprint spaces, one per model."""
        return tuple(self._spaces.values())

    @property
    def space_parts(self) -> dict[str, SpaceParts]:
        """What each of ``spaces`` depends on."""
        return {
            self._spaces[group]: SpaceParts(model.id, "|".join(_recipes(group)))
            for group, model in self._models.items()
        }

    def analyze(self, article: Article) -> Analysis:
        """The analysis of one article, without limit on unknown words; raises as ``analyze_with_words``."""
        return self.analyze_with_words(article)[0]

    def analyze_with_words(
        self, article: Article, *, max_new_strings: int | None = None
    ) -> tuple[Analysis, list[str]]:
        """The analysis of one article, and the words that are compared, as written.

        Raises NoText when it has no words, InputTooLarge above ``MAX_TEXT_CHARS``, and TooManyNewStrings when
        more than ``max_new_strings`` of its words or terms are unknown (None: no limit).
        """
        title, text = plain_text(article.title), plain_text(article.text)
        has_markup = text is not article.text
        if article.html and not text:
            extracted = extract_article(article.html)
            text = without_headline(extracted.text, title := title or extracted.title)
        _check_length(text)
        headline, tag = core_headline(title), article.lang
        lang = article.known_lang or detect_language(f"{headline}\n{text[:_SAMPLE_CHARS]}", tag)
        group, model = self._group_and_model(lang)
        in_title, in_text = tokenizer.split_text(headline, lang), tokenizer.split_text(text, lang)
        words, units = select_compared(in_title, in_text)
        if not words:
            raise NoText("The article has no words: give it a `text`, `html` with a main text, or a `title`.")
        vocabulary = self._vocabulary_for(lang, model)
        vocabulary.words.max_new = vocabulary.terms.max_new = max_new_strings
        unit_ids = vocabulary.words.ids_of(in_title.units + in_text.units)
        parts = np.split(unit_ids, [len(in_title.units)])
        title_terms, text_terms = map(vocabulary.term_ids, (in_title, in_text), parts)
        ids = np.concatenate([title_terms, text_terms])
        ids = ids if len(ids) else vocabulary.terms.ids_of(in_title.words + in_text.words)
        found = addresses(f"{headline}\n{text}")
        without = vocabulary.terms.ids_of(tokenizer.tokenize(found, lang)) if found else NO_TERMS
        distinct, counts, weights = vocabulary.count_terms(ids, without)
        fingerprint = fingerprint_from_sums(vocabulary.project(distinct, counts, weights))
        heaviest = vocabulary.top_terms(distinct, weights, MAX_TERMS + MINOR_TERMS)
        terms, minor_terms = _top_terms(heaviest, vocabulary.terms_of_ids(ids[:LEAD_TERMS]))
        first = set(vocabulary.terms_of_ids(vocabulary.term_ids(in_text, parts[1], OPENING_UNITS)))
        if not isinstance(model, FeatureModel | HashedModel):
            extracted_bits = model.fingerprint(f"{title}\n{text}", lang)
            fingerprint = fingerprint if extracted_bits is None else extracted_bits
        if lang == "ko":
            compared_ids = vocabulary.words.ids_of(normalize_spelling(words, lang))
            word_hashes = vocabulary.words.columns[0][compared_ids]
        else:  # ``units`` are the last of the units that have been looked up already
            word_hashes = vocabulary.compared_hashes(unit_ids[-len(units) :])
        # Of Chinese the characters, since its segmentation depends on white space.
        hashed = " ".join(words).encode("utf-8", "surrogatepass") if lang == "zh" else word_hashes.tobytes()
        of_title, of_text = figures(headline, lang), figures(text, lang)
        if len(words) >= SHORT_BELOW_WORDS and _CUT_FIGURE.search(text[-40:]) and is_cut(text, lang):
            of_text.pop()  # a flash is not cut: it often has no full stop
        in_headline = None
        if in_text.terms is None and len(word_hashes) == len(units):  # a term for each unit
            in_headline = vocabulary.are_among(
                vocabulary.words.columns[1][unit_ids[-len(units) :]], title_terms
            )
            in_headline[: len(units) - len(in_text.units)] = False
        with_title = len(units) > len(in_text.units)
        marks = [*filter(is_marked, of_title), *letter_marks(headline)] if with_title else []
        marks += [*filter(is_marked, of_text), *letter_marks(text)]
        in_both = vocabulary.are_among(title_terms, text_terms).tolist() or [True]
        letters = nfkc(f"{headline if with_title else ''} {text[:_KEY_SAMPLE_CHARS]}").casefold()
        analysis = Analysis(
            lang=lang,
            space=self._spaces[group],
            fingerprint=fingerprint,
            text_hash=xxhash.xxh3_128_digest(hashed + " ".join(marks).encode("utf-8", "surrogatepass")),
            short=len(words) < SHORT_BELOW_WORDS,
            sketch=shingles.sketch_of_word_hashes(word_hashes, shingle_width(lang), in_headline),
            terms=terms,
            figures=tuple(map(figure_hash, list(dict.fromkeys(of_title + of_text))[:MAX_FIGURES])),
            problems=text_problems(text if in_text.units != in_title.units else "", lang, tag, has_markup),
            title=title,
            text=text,
            minor_terms=minor_terms,
            opening_mask=sum(1 << i for i, (term, _) in enumerate(terms) if term in first),
            text_key=xxhash.xxh32_intdigest(_NO_LETTERS.sub("", letters).encode("utf-8", "surrogatepass")),
            text_words=min(len(in_text.units), MAX_TEXT_WORDS),
            own_headline=round(sum(in_both) / len(in_both) * TERM_WEIGHT_STEPS) / TERM_WEIGHT_STEPS,
        )
        return analysis, words

    def _vocabulary_for(self, lang: str, model: Model) -> Vocabulary:
        if sum(len(own.words) + len(own.terms) for own in self._vocabularies.values()) > VOCABULARY_CAPACITY:
            self._vocabularies.clear()
        return self._vocabularies.get(lang) or self._vocabularies.setdefault(
            lang, Vocabulary(lang, model.for_language(lang))
        )

    def _group_and_model(self, lang: str) -> tuple[str, Model]:
        own = language_group(lang)
        group = own if own in self._models else FALLBACK_GROUP
        return group, self._models[group]

    def space_of(self, lang: str) -> str:
        """Return the space of the texts of a language."""
        return self._spaces[self._group_and_model(lang)[0]]

    def analyze_many(
        self, articles: Sequence[Article], *, max_new_strings: int | None = None
    ) -> list[Analysis | AggregatorError]:
        """One result per article, in order; an unusable one gives its error. Raises TooManyNewStrings."""
        results: list[Analysis | AggregatorError] = []
        for article in articles:
            try:
                results.append(self.analyze_with_words(article, max_new_strings=max_new_strings)[0])
            except AggregatorError as error:
                results.append(error)
        return results


def space_name(group: str, model: Model) -> str:
    """Return "<language group>.<4 hex digits>", the hash of model and recipes."""
    parts = [model.id, *_recipes(group)]
    return f"{group}.{xxhash.xxh3_64_intdigest('|'.join(parts).encode()) & 0xFFFF:04x}"


def group_of(space: str) -> str:
    """The language group of a space, from its name: "en" of "en.3f2a"."""
    return space.partition(".")[0]


def _recipes(group: str) -> list[str]:
    """The recipes of a language group, in the order of the hash; the conversion is part of Chinese."""
    return [tokenizer.TOKENIZER_RECIPE, ANALYSIS_RECIPE, *(["t2s"] if group == "zh" else [])]


def uses_spaces(lang: str) -> bool:
    """Whether a language is written with spaces between words."""
    return lang not in _UNSPACED_LANGUAGES


def shingle_width(lang: str) -> int:
    """Units of a shingle: words, syllables, or characters in Korean and where nothing separates words."""
    if lang in shingles.SHINGLE_WIDTHS:
        return shingles.SHINGLE_WIDTHS[lang]
    by_character = lang == "ko" or (lang != "zh" and lang in _UNSPACED_LANGUAGES)
    return shingles.SHINGLE_CHARACTERS if by_character else shingles.SHINGLE_WORDS


def select_compared(title: tokenizer.SplitText, text: tokenizer.SplitText) -> tuple[list[str], list[str]]:
    """Words and shingle units that duplicates share: the text's, and the title's if the text is short.

    Newswire copy is printed under many headlines; a three-line notice names its subject only in the headline.
    """
    if len(text.words) >= HEADLINE_COUNTS_BELOW_WORDS:
        return text.words, text.units
    return title.words + text.words, title.units + text.units


def _check_length(text: str) -> None:
    """Raise InputTooLarge above ``MAX_TEXT_CHARS``, counted after normalization."""
    if NORMALIZED_CHARS_PER_CHAR * len(text) <= MAX_TEXT_CHARS:
        return
    length = sum(len(nfkc(text[i : i + _CHUNK_CHARS])) for i in range(0, len(text), _CHUNK_CHARS))
    if length > MAX_TEXT_CHARS:
        raise InputTooLarge(
            f"text has {length:,} characters after Unicode normalization; the limit is {MAX_TEXT_CHARS:,}: "
            "split the article.",
            field="text",
        )


def _top_terms(
    weights: Iterable[tuple[str, float]], lead: Iterable[str]
) -> tuple[tuple[tuple[str, float], ...], bytes]:
    """The ``MAX_TERMS`` heaviest terms, L2 norm 1, rounded as stored; the next ones encoded."""
    ordered = sorted(weights, key=lambda item: (-item[1], item[0]))[: MAX_TERMS + MINOR_TERMS]
    kept, minor = ordered[:MAX_TERMS], ordered[MAX_TERMS:]
    norm = sum(weight * weight for _, weight in kept) ** 0.5
    if not norm:
        return (), b""
    scale = TERM_WEIGHT_STEPS / norm
    rounded = tuple([(term, round(weight * scale) / TERM_WEIGHT_STEPS) for term, weight in kept])
    return rounded, encode_minor_terms(kept, minor, set(lead))


# Both scripts of Chinese (segmenter, conversion), and a text whose language only the statistics tell.
_WARM_UP_TEXTS = (
    Article(id="", text="The ferry runs again at 9."),
    Article(id="", text="渡轮星期一恢复通航。"),
    Article(id="", text="渡輪星期一恢復通航。"),
    Article(id="", text="Die Fähre nach Estmark fährt am Montag wieder."),
)
_WARM_UP_PAGE = Article(id="", html="<article><h1>Fähre</h1><p>Die Brücke bleibt geschlossen.</p></article>")


def warm_up(analyzer: Analyzer, *, html: bool = True) -> None:
    """Load what analysis loads when first needed, for every language; takes 1 s. Idempotent.

    ``html``: load the HTML extraction as well (20 MB), for a process that reads pages.
    """
    analyzer.analyze_many([*_WARM_UP_TEXTS, _WARM_UP_PAGE] if html else _WARM_UP_TEXTS)
    for lang in (UNDETERMINED, *CANDIDATE_LANGUAGES, *SNOWBALL_LANGUAGES):
        tokenizer.stop_words(lang)
        if (stem := stemmer(lang)) is not None:
            stem("ferry")
