"""Pair model of the policy same-event: its features, their symmetry, and reports of one and of two events."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.analysis.shingles import NO_OVERLAP, estimate_overlap
from aggregator.dedup.copy_rule import Evidence
from aggregator.dedup.event_model import (
    FEATURES,
    MIN_PROBABILITY,
    WEIGHTS,
    features,
    same_event_probability,
    title_similarity,
)
from aggregator.dedup.verdict import cosine
from aggregator.domain import Analysis, Article

ANALYZER = Analyzer(load_models(None))


def analyze(title: str, text: str) -> Analysis:
    """Analysis of an English article."""
    return ANALYZER.analyze(Article(id=title, title=title, text=text, lang="en"))


def evidence(a: Analysis, b: Analysis) -> Evidence:
    """Shared wording and terms of two articles."""
    return Evidence(estimate_overlap(a.sketch, b.sketch), cosine(a.terms, b.terms))


QUAKE = analyze(
    "Earthquake of magnitude 6.1 strikes Aceh, killing at least 22",
    "A strong earthquake of magnitude 6.1 struck the Indonesian province of Aceh on Tuesday, killing at "
    "least 22 people and injuring more than 200. Houses collapsed in Bener Meriah, and a mosque "
    "fell on children.",
)
SAME_QUAKE = analyze(
    "Indonesia quake: rescuers search for children under Aceh mosque",
    "Rescue teams in Aceh searched the ruins of a mosque in which children were trapped when a 6.1 magnitude "
    "quake shook the Indonesian province on Tuesday. The death toll in Bener Meriah and nearby rose to 22.",
)
FERRY = analyze(
    "Ferry between Brackwater and Estmark runs again",
    "The ferry between Brackwater and Estmark runs again from Monday, every hour until ten at night. Tickets "
    "cost four crowns, and bicycles travel free of charge in the mornings.",
)


def test_one_event_in_other_words() -> None:
    """Two reports of one earthquake share no wording to speak of, and are one event."""
    pair = evidence(QUAKE, SAME_QUAKE)

    assert pair.overlap.containment < 0.2
    assert same_event_probability(QUAKE, SAME_QUAKE, pair) >= MIN_PROBABILITY


def test_unrelated_articles_and_other_languages() -> None:
    """Without common terms the probability is 0."""
    assert same_event_probability(QUAKE, FERRY, evidence(QUAKE, FERRY)) == 0.0
    assert same_event_probability(QUAKE, SAME_QUAKE, Evidence(NO_OVERLAP, similarity=0.0)) == 0.0


def test_features_are_symmetric() -> None:
    """The order of the two articles does not matter."""
    pair = evidence(QUAKE, SAME_QUAKE)

    assert features(QUAKE, SAME_QUAKE, pair) == pytest.approx(features(SAME_QUAKE, QUAKE, pair))
    assert len(features(QUAKE, SAME_QUAKE, pair)) == len(FEATURES) == len(WEIGHTS)


def test_names_and_figures_count() -> None:
    """Headline terms that are among the other's terms, and common figures, are shares of the smaller side."""
    values = dict(zip(FEATURES, features(QUAKE, SAME_QUAKE, evidence(QUAKE, SAME_QUAKE)), strict=True))
    without = dict(
        zip(FEATURES, features(replace(QUAKE, title="", figures=()), SAME_QUAKE, Evidence(NO_OVERLAP, 0.5)),
            strict=True)
    )  # fmt: skip

    assert values["figures"] >= 0.5
    assert values["names"] >= 0.2
    assert (without["figures"], without["titles"]) == (0.0, 0.0)
    assert 0.0 < without["names"] < values["names"]


def test_title_similarity_meets_a_boundary_exactly() -> None:
    """One of five terms in common gives exactly 0.2."""
    title, other_title = "dam river valley night flood", "dam orchard cider harvest autumn"

    assert title_similarity(title, "en", other_title, "en") == 0.2
    assert title_similarity(title, "en", title, "en") == 1.0
    assert title_similarity(title, "en", "", "en") == 0.0
