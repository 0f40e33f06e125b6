"""The probability of one subject, and the choice of one article per group."""

from dataclasses import replace

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.term_profile import cosines
from aggregator.domain import NO_SKETCH, Article, ArticleRecord, WeightedTerms
from aggregator.queries.reasons import shared_words
from aggregator.queries.relatedness import (
    MIN_PROBABILITY,
    ScoredArticle,
    best_of_groups,
    probability,
    related_evidence,
)

FLOOD = (("brackwater", 0.8), ("tunnel", 0.6))


def record(terms: WeightedTerms, number: int = 1) -> ArticleRecord:
    """A stored article of these terms."""
    return ArticleRecord(
        number, number, f"a{number}", "en.0", "en", 0, b"", False, "", "", "", None, NO_SKETCH, tuple(terms)
    )


def scored(number: int, group: int, likely: float) -> ScoredArticle:
    """An article of a group with this probability."""
    stored = record(FLOOD, number)
    return ScoredArticle(stored, group, related_evidence(stored, stored, 1.0, 0), likely)


ANALYZER = Analyzer(load_models())


def analyzed(lang: str, text: str) -> ArticleRecord:
    """What is stored of a headline and a sentence, separated by a line break."""
    title, _, body = text.partition("\n")
    found = ANALYZER.analyze(Article("", title, body, lang=lang))
    return replace(record(found.terms), minor_terms=found.minor_terms, lang=lang, title=title)


@pytest.mark.parametrize(
    ("lang", "one", "other"),
    [
        (
            "en",
            "Horoscope: Sunday 22 May\nPisces rests early on 22 May.",
            "TV, Sunday 22 May\nOpera",
        ),
        ("de", "Horoskop: Sonntag, 22. Mai\nFische ruhen am 22. Mai.", "Wetter am Sonntag, 22. Mai\nSchauer"),
        ("fr", "Horoscope du dimanche 22 mai\nPoissons, dormez tôt.", "Météo du dimanche 22 mai\nAverses"),
        ("es", "Horóscopo del domingo 22 de mayo\nPiscis descansa.", "Fútbol del domingo 22 de mayo\nGoles"),
        ("ru", "Гороскоп на воскресенье 22 мая\nРыбы, отдохните.", "Погода в воскресенье 22 мая\nЛивни"),
        ("zh", "5月22日星期日星座运势\n双鱼座早点休息。", "5月22日星期日天气\n北部有阵雨。"),
        (
            "fi",
            "Horoskooppi sunnuntaina 22. toukokuuta\nKalat lepäävät.",
            "Sää sunnuntaina 22. toukokuuta\nPilvi",
        ),
    ],
)
def test_columns_of_one_day_are_not_related(lang: str, one: str, other: str) -> None:
    """Weekday, month and day are no subject; other words next to them still are."""
    a, b = analyzed(lang, one), analyzed(lang, other)
    repeated = analyzed(lang, f"{other}\n{one}")

    def likely(stored: ArticleRecord) -> float:
        return probability(related_evidence(a, stored, float(cosines(a, [stored])[0]), 32))

    assert likely(b) < 0.5 and shared_words(a, b) == ()
    assert likely(repeated) > MIN_PROBABILITY and shared_words(a, repeated)


def test_evidence_is_the_same_in_either_order() -> None:
    """Of two articles with one term in common, and of two with none."""
    one, other = record(FLOOD), record((("tunnel", 1.0),))

    evidence = related_evidence(one, other, 0.5, 9)

    assert evidence == related_evidence(other, one, 0.5, 9)
    assert (evidence.shared, evidence.terms) == (1, 1)
    assert evidence.main == pytest.approx(0.6)
    assert related_evidence(one, record(()), 0.0, 30).shared == 0
    assert 0 < probability(related_evidence(one, record(()), 0.0, 30)) < 0.1
    assert probability(related_evidence(one, one, 1.0, 0)) > 0.9
    assert probability(related_evidence(one, one, 1.0, 0, hours_apart=-720.0)) < probability(
        related_evidence(one, one, 1.0, 0, hours_apart=24.0)
    )


def test_one_article_of_each_group_is_left() -> None:
    """The original with the probability of its likeliest copy."""
    found = best_of_groups([scored(1, 1, 0.4), scored(2, 1, 0.6), scored(3, 3, 0.6), scored(5, 4, 0.5)])

    assert [(each.record.number, each.probability) for each in found] == [(3, 0.6), (1, 0.6), (5, 0.5)]
