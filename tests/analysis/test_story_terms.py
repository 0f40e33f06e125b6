"""Story terms: the headline, and the heaviest terms of the opening."""

from __future__ import annotations

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.story_terms import OPENING_UNITS, OPENING_WEIGHT, opening_mask, story_terms
from aggregator.analysis.text.tokenizer import split_text
from aggregator.domain import Article

TITLE = "UPDATE 2-Dam bursts above Orvale; 3 dead"
LEAD = (
    "The dam on the river Lomm burst on Sunday, the mayor of Orvale said. " + "It was old and it was so. " * 4
)
REST = " ".join(f"Paragraph {i} describes the harbour of Tarnow and its ferries." for i in range(12))


def test_the_terms_are_those_of_the_headline_and_the_names_in_the_lead() -> None:
    """Not the names further below, nor numbers and desk prefixes."""
    analysis = Analyzer(load_models()).analyze(Article("a", TITLE, f"{LEAD} {REST}", lang="en"))

    found = dict(story_terms(TITLE, "en", analysis.terms, analysis.opening_mask))

    assert {term for term, weight in found.items() if weight == 1.0} == {"dam", "burst", "orval", "dead"}
    assert found["lomm"] == found["mayor"] == OPENING_WEIGHT
    assert "tarnow" in dict(analysis.terms)
    assert not found.keys() & {"3", "2", "updat", "tarnow", "ferri"}


def test_a_headline_alone_gives_its_words() -> None:
    """Each once, in order; the mask of an article without a text is 0."""
    analysis = Analyzer(load_models()).analyze(Article("a", "Storm after storm: ferry aground", lang="en"))

    assert analysis.opening_mask == 0
    assert story_terms(analysis.title, "en", analysis.terms, 0) == (
        ("storm", 1.0), ("ferri", 1.0), ("aground", 1.0),
    )  # fmt: skip


def test_an_article_without_headline_and_opening_has_its_heaviest_terms() -> None:
    """As those that earlier versions stored."""
    assert story_terms("", "en", (("storm", 0.8), ("ferri", 0.6)), 0) == (("storm", 0.8), ("ferri", 0.6))


def test_the_opening_ends_after_its_units() -> None:
    """In languages with spaces, and in those without a segmenter."""
    terms = (("storm", 0.8), ("ferry", 0.6))
    text = " ".join(["word"] * (OPENING_UNITS - 1) + ["storm", "ferry"])

    assert opening_mask(terms, split_text(text, "xx"), "xx") == 0b01
    assert opening_mask(terms, split_text("", "xx"), "xx") == 0
    thai = "\u0e01\u0e02\u0e03\u0e04"
    assert opening_mask(((thai[1:3], 1.0),), split_text(thai, "th"), "th") == 0b1
