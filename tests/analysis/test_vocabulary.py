"""What is looked up once per word: the same bits as from the words themselves."""

from __future__ import annotations

import pickle
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.analysis import analyzer, vocabulary
from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import FeatureModel
from aggregator.analysis.models import load_models
from aggregator.analysis.simhash import fingerprint_from_sums
from aggregator.analysis.text import tokenizer
from aggregator.analysis.text.language import language_group
from aggregator.analysis.text.orthography import normalize_spelling
from aggregator.analysis.vocabulary import NO_TERM, Vocabulary
from aggregator.domain import Analysis, Article
from aggregator.errors import NoText
from aggregator.runtime import demo

MODELS = load_models()
ANALYSER = Analyzer(MODELS)
STORIES = [row["text"] for row in demo.load_rows()]
WORDS = sorted({word for text in STORIES for word in text.split()})


def by_strings(article: Article) -> tuple[int, tuple[tuple[str, float], ...], list[int]]:
    """Fingerprint, heaviest terms and sample of an article, from its strings themselves."""
    lang = ANALYSER.analyze(article).lang
    model = MODELS[language_group(lang)]
    terms = tokenizer.tokenize(f"{article.title}\n{article.text}", lang)
    counts = Counter(terms or tokenizer.words(f"{article.title}\n{article.text}", lang))
    heaviest = analyzer._top_terms(model.term_weights(counts).items())
    sketch = analyzer.sketch_in_language(
        normalize_spelling(analyzer.dedup_words(article.title, article.text, lang), lang), lang
    )
    return fingerprint_from_sums(model.project(counts)), heaviest, sketch.sample.tolist()


texts = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=150).map(" ".join),
    st.lists(st.sampled_from(["zyxq", "the", "hello", "1", "Ω", "桥", "报道", "a" * 50]), max_size=30).map(
        " ".join
    ),
    st.text(max_size=40),
)


def by_numbers(found: Analysis) -> tuple[int, tuple[tuple[str, float], ...], list[int]]:
    """What ``by_strings`` gives."""
    return found.fingerprint, found.terms, found.sketch.sample.tolist()


@settings(deadline=None)
@given(texts, texts, st.sampled_from(["en", "zh", "de", None]))
def test_an_article_is_the_same_from_numbers_and_from_strings(
    title: str, text: str, lang: str | None
) -> None:
    """Fingerprint, sketch and terms agree in every bit: known words, unknown ones alone, stop words alone, none."""
    article = Article(id="a", title=title, text=text, lang=lang)

    try:
        found = ANALYSER.analyze(article)
    except NoText:
        assert not tokenizer.words(f"{title}\n{text}", lang or "en")
    else:
        assert by_numbers(found) == by_strings(article)


@pytest.mark.parametrize("text", STORIES[::40])
def test_stories_are_the_same_from_numbers_and_from_strings(text: str) -> None:
    """Whole stories in several languages, with words that occur over sixty times."""
    for article in (Article(id="a", text=text), Article(id="a", title=text[:60], text=text * 70)):
        assert by_numbers(ANALYSER.analyze(article)) == by_strings(article)


def test_a_vocabulary_that_is_too_large_is_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded, and nobody notices."""
    monkeypatch.setattr(analyzer, "VOCABULARY_CAPACITY", 60)
    analyser = Analyzer(MODELS)
    rng, words = random.Random(1), [word for word in WORDS if word.isascii()]
    for number in range(30):
        article = Article(id=str(number), text=" ".join(rng.choices(words, k=60)), lang="en")

        assert by_numbers(analyser.analyze(article)) == by_strings(article)
        assert sum(map(len, analyser._vocabularies.values())) <= 60 + 2 * 60


def test_an_analyser_travels_without_its_vocabularies() -> None:
    """Another process gets the models; words it meets itself."""
    analyser = Analyzer(MODELS)
    empty = len(pickle.dumps(analyser))
    analyser.analyze(Article(id="a", text=STORIES[0]))

    assert len(pickle.dumps(analyser)) == empty


def test_words_without_a_term_and_terms_without_a_row() -> None:
    """A stop word has no term; a term that the model does not know is as rare as the rarest."""
    model = MODELS["en"]
    assert isinstance(model, FeatureModel)
    met = Vocabulary("en", model)
    words = ["the", "bridges", "of", "zyxqua", "bridges"]

    terms = met.term_ids_of_words(met.word_ids(words))
    bag = met.count_terms(terms)

    assert NO_TERM not in terms
    assert met.terms_of_ids(terms) == tokenizer.terms_of_words(words, "en") == ["bridg", "zyxqua", "bridg"]
    assert bag.counts.tolist() == [2, 1]
    weights = met.tf_idf(bag)
    assert dict(met.top_terms(bag, weights, 5)) == model.term_weights(tokenizer.terms_of_words(words, "en"))
    assert fingerprint_from_sums(met.project(bag, weights)) == fingerprint_from_sums(
        model.project(Counter(["bridg", "bridg"]))
    )


def test_words_are_told_apart_whatever_their_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words whose hashes end alike displace each other and are looked up anew, also while there come more of them."""
    monkeypatch.setattr(vocabulary, "_INITIAL_CAPACITY", 4)
    monkeypatch.setattr(vocabulary, "_SLOTS_PER_ENTRY", 1)
    met = Vocabulary("en", MODELS["en"])
    rng, words = random.Random(2), [*WORDS[:300], "ba", "慢"]  # Python gives the last two the same hash
    for _ in range(50):
        chosen = rng.choices(words, k=40)

        assert [met._words.strings[number] for number in met.word_ids(chosen)] == chosen


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_a_bag_counts_terms_in_order_of_first_occurrence(drawn: list[int]) -> None:
    """As ``Counter`` does."""
    met = Vocabulary("en", MODELS["en"])
    numbers = met.term_ids(list("abcdef"))[drawn]

    bag = met.count_terms(numbers)

    assert dict(zip(bag.terms.tolist(), bag.counts.tolist(), strict=True)) == Counter(numbers.tolist())
    assert bag.terms.tolist() == list(dict.fromkeys(numbers.tolist()))
