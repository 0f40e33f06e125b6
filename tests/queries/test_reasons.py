"""The kind of a related article, and the words because of which it is one."""

import pytest

from aggregator.domain import NO_SKETCH, ArticleRecord, RelatedItem, WeightedTerms
from aggregator.queries.reasons import kind_of, relatedness_out, shared_words
from aggregator.queries.relatedness import related_evidence
from aggregator_client.wire import RelatedKindName, SharedWord

FLOOD = (("brackwat", 0.6), ("tunnel", 0.5), ("flood", 0.5), ("estmark", 0.36))


def record(title: str, terms: WeightedTerms, lang: str = "en") -> ArticleRecord:
    """A stored article."""
    return ArticleRecord(
        1, 1, "a", f"{lang}.0", lang, 0, b"", False, title, "", "", None, NO_SKETCH, tuple(terms)
    )


def test_words_are_spelled_as_in_a_headline() -> None:
    """Stems are left out that no headline has, unless all are; terms of Chinese are words."""
    one = record("Floods close “Brackwater” tunnel", FLOOD)
    other = record("Tunnel shut", (("tunnel", 0.8), ("estmark", 0.6)))
    assert shared_words(one, other) == (("tunnel", 0.65),)
    assert shared_words(one, other, {"tunnel": 0.0, "estmark": 0.5}) == (("estmark", 1.0),)
    assert shared_words(one, record("Cider", (("cider", 1.0),))) == ()
    chinese = record("特朗普宣布加征关税", (("关税", 0.8), ("贸易", 0.6)), "zh")
    assert shared_words(chinese, chinese) == (("关税", 0.64), ("贸易", 0.36))


@pytest.mark.parametrize(
    ("terms", "days_older", "expected"),
    [
        (FLOOD, 0.5, "same_story"),
        (FLOOD, -20.0, "same_story"),
        (FLOOD, 20.0, "background"),
        ((("brackwat", 0.3), ("orchard", 0.95)), 20.0, "same_person_or_place"),
        ((("brackwat", 0.3), ("orchard", 0.95)), 0.0, "same_person_or_place"),
        ((("brackwat", 0.6), ("tunnel", 0.8)), 0.0, "same_person_or_place"),
        ((("brackwat", 0.3), ("tunnel", 0.3), ("flood", 0.24)), 0.0, "same_person_or_place"),
    ],
)
def test_the_kind_depends_on_terms_and_age(terms: WeightedTerms, days_older: float, expected: str) -> None:
    """One name in common, of two words too, is neither a story nor its background; few words need weight."""
    subject, other = record("Floods close Brackwater tunnel", FLOOD), record("Brackwater tunnel", terms)
    evidence = related_evidence(subject, other, 0.5, 20)

    assert kind_of(evidence, days_older) == expected


def test_two_sentences() -> None:
    """What both are about and in which way; of a pair that is not listed why, and what little they share."""

    def item(kind: RelatedKindName, score: float, hours: float, *words: tuple[str, float]) -> RelatedItem:
        return RelatedItem("b", "", "", "", None, 9, 0.5, score, 0, kind, words, hours)

    words = (("Brackwater", 0.7), ("tunnel", 0.3))
    found = relatedness_out(item("background", 0.934, 50.0, *words), "")
    assert found.summary == (
        "Probability of one subject 0.934: both are about Brackwater, tunnel. The earlier one is background "
        "of the later one (2 days apart)."
    )
    assert (found.listed, found.kind, found.shared[1]) == (True, "background", SharedWord("tunnel", 0.3))
    found = relatedness_out(item("same_event", 0.5, 33.2, *words), "")
    assert found.summary == (
        "Probability of one subject 0.500, by wording alone: both are about Brackwater, tunnel. "
        "They belong to one event (33 h apart)."
    )
    found = relatedness_out(item("same_story", 0.05, 0.0), "less than 0.78")
    assert found.summary == (
        "Probability of one subject 0.050, less than 0.78: not listed. Common words: nothing (0 h apart)."
    )
    assert (found.listed, found.kind) == (False, "same_story")
