"""Term profiles: what is stored of them, and their cosines."""

import math
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis.analyzer import MAX_TERMS, Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.analysis.models import load_models
from aggregator.analysis.term_profile import (
    LEAD_FACTOR,
    LEAD_TERMS,
    MINOR_TERMS,
    OPENING_WEIGHT,
    PREFIX_CHARS,
    SHORT_PREFIX_CHARS,
    SHORT_PREFIX_FACTOR,
    WEIGHT_EXPONENT,
    cosines,
    encode_minor_terms,
    story_terms,
)
from aggregator.domain import Article, ArticleRecord
from tests.support.loaders import record

WORDS = [f"{n}word" for n in range(10, 90)]  # whose prefixes and hashes differ
WEIGHTS = st.dictionaries(st.sampled_from(WORDS), st.floats(0.01, 1.0), min_size=1, max_size=60)
# Squared length of a stored term of weight 1, which has a short prefix too; a minor one has 1.
STORED = 1 + SHORT_PREFIX_FACTOR**2
LEADS = st.sets(st.sampled_from(WORDS))


def of_terms(terms: Iterable[tuple[str, float]], minor_terms: bytes = b"") -> ArticleRecord:
    """An article of a language without a calendar."""
    return replace(record(0, 1), terms=tuple(terms), minor_terms=minor_terms, lang="eo")


def test_the_encoding_is_pinned() -> None:
    """Golden value: a bit per leading term, the share of the last weight, then two bytes per hash."""
    minor = [("storm", 0.4), ("pier", 0.25)]
    encoded = encode_minor_terms([("ferry", 0.5)], minor, {"ferry", "pier", "captain"})
    assert encoded.hex() == "0500000000" + "80" + "c58a" + "b2fc"
    assert encode_minor_terms([("ferry", 0.5)], [], {"ferry"}).hex() == "0100000000" + "ff"
    assert encode_minor_terms([], [], {"ferry"}) == b""


def test_minor_weights_fall_geometrically_to_the_last() -> None:
    """From the last stored weight; the cosine with an article of one term sees the exponent."""
    stored = [("ferry", 1.0)]
    minor = encode_minor_terms(stored, [(f"{n}minor", 0.5**n) for n in range(1, 5)], ())
    single = [of_terms([(term, 1.0)]) for term in ("ferry", "1minor", "2minor", "3minor", "4minor")]
    found = cosines(of_terms(stored, minor), single)
    expected = [1.0, *(0.5 ** (n * WEIGHT_EXPONENT) / STORED for n in range(1, 5))]
    assert found / found[0] == pytest.approx(expected, rel=0.02)


def test_terms_of_the_lead_weigh_more() -> None:
    """Stored and minor ones alike."""
    stored, minor = [("ferry", 0.5), ("storm", 0.5)], [("pier", 0.5), ("captain", 0.5)]
    profile = of_terms(stored, encode_minor_terms(stored, minor, {"storm", "captain"}))
    single = [of_terms([(term, 1.0)]) for term in ("ferry", "storm", "pier", "captain")]
    found = cosines(profile, single)
    expected = [1.0, LEAD_FACTOR, 1 / STORED, LEAD_FACTOR / STORED]
    assert found / found[0] == pytest.approx(expected)


def test_terms_with_one_beginning_are_one_term() -> None:
    """Their weights add up, in one article and between two."""
    inflected = [("limanda", 0.5), ("limandan", 0.5)]
    first = of_terms(inflected)
    second = of_terms([("limanlar", 1.0)], encode_minor_terms([("", 1.0)], [], ()))
    assert all(term.startswith("liman") and len(term) > PREFIX_CHARS for term, _ in inflected)
    assert cosines(first, [first, second]) == pytest.approx([1.0, 1.0])


def test_terms_with_one_short_beginning_are_alike_in_part() -> None:
    """Stored ones: by the share that the short prefix has of the squared length. Minor ones are not."""
    first, second, other = "reka", "rekach", "rzeka"
    assert first[:SHORT_PREFIX_CHARS] == second[:SHORT_PREFIX_CHARS] != other[:SHORT_PREFIX_CHARS]
    assert first[:PREFIX_CHARS] != second[:PREFIX_CHARS]
    found = cosines(of_terms([(first, 1.0)]), [of_terms([(term, 1.0)]) for term in (second, other)])
    assert found == pytest.approx([SHORT_PREFIX_FACTOR**2 / STORED, 0.0])
    minor = of_terms([("ferry", 1.0)], encode_minor_terms([("ferry", 1.0)], [(second, 1.0)], ()))
    assert cosines(of_terms([(first, 1.0)]), [minor]) == [0.0]


def test_articles_without_an_encoded_rest_are_compared_by_their_stored_terms() -> None:
    """As those that the codec tests make; no terms at all give 0."""
    alone = of_terms([("ferry", 0.8), ("storm", 0.6)])
    with_minor = of_terms(alone.terms, encode_minor_terms([("", 0.6)], [("pier", 0.6)], ()))
    empty = of_terms(())
    found = cosines(alone, [alone, with_minor, empty])
    ferry, storm = (weight ** (2 * WEIGHT_EXPONENT) for weight in (0.8, 0.6))  # squared
    stored = STORED * (ferry + storm)
    assert found == pytest.approx([1.0, math.sqrt(stored / (stored + storm)), 0.0])
    assert cosines(empty, [alone, empty]).tolist() == [0.0, 0.0] and not len(cosines(alone, []))


def test_a_truncated_profile_is_refused() -> None:
    """An odd number of bytes of hashes, or less than the fixed part."""
    stored = [("ferry", 1.0)]
    whole = encode_minor_terms(stored, [("pier", 0.5)], ())
    for cut in (1, 4):
        with pytest.raises(ValueError):
            cosines(of_terms(stored, whole[:-cut]), [of_terms(stored, whole)])


@given(WEIGHTS, WEIGHTS, LEADS)
def test_cosines_are_in_the_unit_interval(a: dict[str, float], b: dict[str, float], lead: set[str]) -> None:
    """Symmetric, and 1 for a profile with itself."""
    first, second = (_profile(weights, lead) for weights in (a, b))
    found = cosines(first, [first, second])
    assert found == pytest.approx([1.0, cosines(second, [first])[0]])
    assert 0.0 <= found[1] <= 1.0


def test_an_analysis_keeps_the_terms_that_follow_the_stored_ones() -> None:
    """All distinct terms of a text up to the limit, and which ones are the first of headline and text."""
    words = [f"zylo{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(60)]
    article = Article(id="", title=words[0], text=" ".join(words[:0:-1]), lang="eo")
    analysis = Analyzer({"xx": HashedModel()}).analyze(article)
    assert len(analysis.terms) == MAX_TERMS and len(analysis.minor_terms) == 6 + 2 * MINOR_TERMS
    # All weights are equal, so the terms are in alphabetical order and the first is that of the headline.
    assert [term for term, _ in analysis.terms] == words[:MAX_TERMS]
    assert int.from_bytes(analysis.minor_terms[:5], "little") == 1
    short = Analyzer({"xx": HashedModel()}).analyze(Article(id="", text=" ".join(words[:18]), lang="eo"))
    assert short.minor_terms == ((1 << LEAD_TERMS) - 1).to_bytes(5, "little") + b"\xff"


def _profile(weights: dict[str, float], lead: set[str]) -> ArticleRecord:
    ordered = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
    stored, minor = ordered[:MAX_TERMS], ordered[MAX_TERMS:][:MINOR_TERMS]
    return of_terms(stored, encode_minor_terms(stored, minor, lead))


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
