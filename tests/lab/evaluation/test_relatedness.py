"""The fit of the probability of one subject, with each language left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.features import HashedModel
from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator.queries.relatedness import RelatedEvidence, probability
from aggregator.time_units import DAY_MS
from aggregator_lab.evaluation.judgments import Judgment
from aggregator_lab.evaluation.relatedness import (
    JudgedEvidence,
    evaluate,
    evidence_of_ids,
    evidence_of_rows,
)
from aggregator_lab.evaluation.wrong_pairs import JudgedPair

ANALYZER = Analyzer({"xx": HashedModel()})
TEXTS = {
    "ferry": "Die Fähre nach Estmark fährt nach dem Sturm wieder, sagt die Reederei Nordlinie.",
    "storm": "Nach dem Sturm prüft die Reederei Nordlinie, ob die Fähre nach Estmark Schaden nahm.",
    "vote": "Der Gemeinderat von Brackwasser stimmt am Abend über die neue Turnhalle ab.",
}
ARTICLES = [Article(id=id_, text=text, lang="de", published_at_ms=DAY_MS) for id_, text in TEXTS.items()]


def judged(lang: str, cosine: float, same: bool) -> JudgedEvidence:
    """A pair with this cosine."""
    return JudgedEvidence(lang, same, RelatedEvidence(cosine, cosine, 3, 20, 20, 0.8), 0.5)


async def test_evidence_of_ids_and_of_rows_agrees() -> None:
    """Both judge by the terms; an unsure verdict and an unknown article are left out."""
    verdicts = [
        Judgment("ferry", "storm", "right"), Judgment("ferry", "vote", "wrong"),
        Judgment("storm", "vote", "unsure"), Judgment("storm", "absent", "wrong"),
    ]  # fmt: skip
    by_id = await evidence_of_ids(ARTICLES, verdicts, ANALYZER)
    ferry, storm, vote = ARTICLES
    by_row = evidence_of_rows([JudgedPair(ferry, storm, True), JudgedPair(ferry, vote, False)], ANALYZER)

    assert [(pair.lang, pair.same) for pair in by_id] == [("de", True), ("de", False)]
    assert probability(by_id[0].evidence) > 0.5 > probability(by_id[1].evidence)
    assert [pair.dated for pair in (*by_row, *by_id)] == [False, False, True, True]
    assert [pair.evidence for pair in by_row] == [replace(pair.evidence, days=0.0) for pair in by_id]
    assert by_id[0].tfidf > by_id[1].tfidf == 0


def test_each_language_is_left_out() -> None:
    """A language whose verdicts contradict the others is predicted by these, and so wrongly."""
    pairs = [judged(lang, at / 20, at >= 10) for lang in ("de", "fr") for at in range(20)]
    result = evaluate([*pairs, *(judged("xx", at / 20, at < 10) for at in range(20))])

    by_lang = {row["lang"]: row for row in result["languages"]}
    assert by_lang["xx"]["left_out"] == 0.0
    assert by_lang["de"]["shipped"] == 1.0 and by_lang["de"]["tfidf"] == 0.5
    assert sum(row["pairs"] for row in result["reliability"]) == 60
    assert evaluate(pairs)["precision_at_minimum"] == 1.0
    assert evaluate(pairs)["fitted"]["weights"][0] > 0
    with pytest.raises(InvalidInput, match="two languages"):
        evaluate(pairs[:20])
