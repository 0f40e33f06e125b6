"""Vocabulary: results from interned ids equal those from strings, bit for bit."""

from __future__ import annotations

import gc
import pickle
import random
import weakref
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.analysis import analyzer, shingles, vocabulary
from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import FeatureModel, HashedModel
from aggregator.analysis.models import load_models
from aggregator.analysis.simhash import fingerprint_from_sums
from aggregator.analysis.term_profile import LEAD_TERMS, OPENING_UNITS
from aggregator.analysis.text import tokenizer
from aggregator.analysis.text.language import language_group
from aggregator.analysis.text.normalization import core_headline
from aggregator.analysis.text.spelling import normalize_spelling
from aggregator.analysis.vocabulary import NO_TERM, Vocabulary
from aggregator.domain import Analysis, Article
from aggregator.errors import NoText
from aggregator.runtime import demo
from tests.analysis.reference_weights import term_weights

MODELS = load_models()
ANALYZER = Analyzer(MODELS)
STORIES = [row["text"] for row in demo.load_rows()]
WORDS = sorted({word for text in STORIES for word in text.split()})


Values = tuple[int, tuple[tuple[str, float], ...], bytes, list[int]]


def from_strings(article: Article) -> Values:
    """Return fingerprint, top terms, minor terms and sample of an article, computed from its strings."""
    lang = ANALYZER.analyze(article).lang
    model = MODELS[language_group(lang)].for_language(lang)
    title = core_headline(article.title)
    terms = tokenizer.tokenize(f"{title}\n{article.text}", lang)
    terms = terms or tokenizer.words(f"{title}\n{article.text}", lang)
    counts = Counter(terms)
    top_terms, minor_terms = analyzer._top_terms(term_weights(model, counts).items(), terms[:LEAD_TERMS])
    words, units = analyzer.select_compared(
        tokenizer.split_text(title, lang), tokenizer.split_text(article.text, lang)
    )
    compared = normalize_spelling(units if lang == "zh" else words, lang)
    sketch = shingles.build_sketch(compared, analyzer.shingle_width(lang))
    return fingerprint_from_sums(model.project(counts)), top_terms, minor_terms, sketch.sample.tolist()


texts = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=150).map(" ".join),
    st.lists(st.sampled_from(["zyxq", "the", "hello", "1", "Ω", "桥", "报道", "a" * 50]), max_size=30).map(
        " ".join
    ),
    st.text(max_size=40),
)


def from_ids(found: Analysis) -> Values:
    """Return the same four values of an analysis, which was computed from ids."""
    return found.fingerprint, found.terms, found.minor_terms, found.sketch.sample.tolist()


@settings(deadline=None)
@given(texts, texts, st.sampled_from(["en", "zh", "de", None]))
def test_ids_and_strings_give_equal_results(title: str, text: str, lang: str | None) -> None:
    """For known words, unknown words only, stop words only, and no words."""
    article = Article(id="a", title=title, text=text, lang=lang)

    try:
        found = ANALYZER.analyze(article)
    except NoText:
        assert not tokenizer.words(f"{title}\n{text}", lang or "en")
    else:
        assert from_ids(found) == from_strings(article)


@pytest.mark.parametrize("text", STORIES[::40])
def test_ids_and_strings_give_equal_results_for_stories(text: str) -> None:
    """Whole stories in several languages, with words that occur over 60 times."""
    for article in (Article(id="a", text=text), Article(id="a", title=text[:60], text=text * 70)):
        assert from_ids(ANALYZER.analyze(article)) == from_strings(article)


def test_a_vocabulary_that_is_too_large_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded, and the results do not change."""
    monkeypatch.setattr(analyzer, "VOCABULARY_CAPACITY", 60)
    fresh_analyzer = Analyzer(MODELS)
    rng, words = random.Random(1), [word for word in WORDS if word.isascii()]
    for number in range(30):
        article = Article(id=str(number), text=" ".join(rng.choices(words, k=60)), lang="en")

        assert from_ids(fresh_analyzer.analyze(article)) == from_strings(article)
        tables = [own for each in fresh_analyzer._vocabularies.values() for own in (each.words, each.terms)]
        assert sum(map(len, tables)) <= 60 + 2 * 60


def test_a_pickled_analyzer_has_no_vocabularies() -> None:
    """Only the models are pickled."""
    fresh_analyzer = Analyzer(MODELS)
    empty = len(pickle.dumps(fresh_analyzer))
    fresh_analyzer.analyze(Article(id="a", text=STORIES[0]))

    assert len(pickle.dumps(fresh_analyzer)) == empty


def test_words_without_a_term_and_terms_without_a_row() -> None:
    """A stop word has no term; a term unknown to the model has the largest idf."""
    model = MODELS["en"]
    assert isinstance(model, FeatureModel)
    en_vocabulary = Vocabulary("en", model)
    words = ["the", "bridges", "of", "zyxqua", "bridges"]

    terms = en_vocabulary.term_ids(tokenizer.SplitText(words, words, None), en_vocabulary.words.ids_of(words))
    distinct, counts, weights = en_vocabulary.count_terms(terms)

    assert NO_TERM not in terms
    assert (
        en_vocabulary.terms_of_ids(terms)
        == tokenizer.terms_of_words(words, "en")
        == ["bridg", "zyxqua", "bridg"]
    )
    assert counts.tolist() == [2, 1]
    assert dict(en_vocabulary.top_terms(distinct, weights, 5)) == term_weights(
        model, tokenizer.terms_of_words(words, "en")
    )
    assert fingerprint_from_sums(en_vocabulary.project(distinct, counts, weights)) == fingerprint_from_sums(
        model.project(Counter(["bridg", "bridg"]))
    )


def test_cache_collisions_do_not_mix_up_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words that share a cache slot replace each other and are looked up again, also when the table grows."""
    monkeypatch.setattr(vocabulary, "_INITIAL_CAPACITY", 4)
    monkeypatch.setattr(vocabulary, "_SLOTS_PER_ENTRY", 1)
    en_vocabulary = Vocabulary("en", MODELS["en"].for_language("en"))
    rng, words = random.Random(2), [*WORDS[:300], "ba", "慢"]  # Python gives the last two the same hash
    for _ in range(50):
        chosen = rng.choices(words, k=40)

        assert [
            en_vocabulary.words.strings[number] for number in en_vocabulary.words.ids_of(chosen)
        ] == chosen


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_terms_are_counted_in_order_of_first_occurrence(drawn: list[int]) -> None:
    """As ``Counter`` does."""
    en_vocabulary = Vocabulary("en", MODELS["en"].for_language("en"))
    numbers = en_vocabulary.terms.ids_of(list("abcdef"))[drawn]

    terms, counts, _ = en_vocabulary.count_terms(numbers)

    assert dict(zip(terms.tolist(), counts.tolist(), strict=True)) == Counter(numbers.tolist())
    assert terms.tolist() == list(dict.fromkeys(numbers.tolist()))


def test_the_opening_ends_after_its_units() -> None:
    """In languages with spaces, and in those without a segmenter."""
    text = " ".join(["word"] * (OPENING_UNITS - 1) + ["storm", "ferry"])
    thai = "\u0e01\u0e02\u0e03\u0e04"

    assert set(opening_terms(text, "xx")) == {"word", "storm"}
    assert opening_terms("", "xx") == []
    assert thai[1:3] in opening_terms(thai, "th")
    ferry = Article(
        id="a", text=" ".join(["storm"] * OPENING_UNITS + ["ferry"] * OPENING_UNITS * 2), lang="en"
    )
    found = ANALYZER.analyze(ferry)
    assert [term for term, _ in found.terms] == ["ferri", "storm"]
    assert found.opening_mask == 0b10


def opening_terms(text: str, lang: str) -> list[str]:
    """The terms of the opening of a text."""
    own, split = Vocabulary(lang, HashedModel()), tokenizer.split_text(text, lang)
    return own.terms_of_ids(own.term_ids(split, own.words.ids_of(split.units), OPENING_UNITS))


def test_a_dropped_vocabulary_is_freed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a collection, which a process of few objects makes rarely: junk words filled 860 MB."""
    monkeypatch.setattr(analyzer, "VOCABULARY_CAPACITY", 20)
    own = Analyzer(MODELS)
    gc.collect()
    gc.disable()
    try:
        own.analyze(Article(id="", text=" ".join(f"junk{number}a" for number in range(40)), lang="en"))
        dropped = weakref.ref(own._vocabularies["en"].words)
        own.analyze(Article(id="", text="The ferry runs again at nine.", lang="en"))
        assert dropped() is None
    finally:
        gc.enable()
