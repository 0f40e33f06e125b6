"""Fingerprints of rows: those of the service, in another process too."""

from __future__ import annotations

import pickle

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import load_models
from aggregator.domain import Article
from aggregator.offline.fingerprints import ServiceFingerprints


def test_a_row_has_the_fingerprint_of_the_service() -> None:
    """Of headline and text, in the space of its language; also after pickling."""
    row = {"title": "Harbour bridge closed", "text": "A storm damaged its pillars.", "lang": "en"}
    analysis = Analyzer(load_models()).analyze(Article("a", row["title"], row["text"], lang="en"))

    sent = pickle.loads(pickle.dumps(ServiceFingerprints()))

    assert sent.of_row(row) == (analysis.space, analysis.fingerprint)


def test_a_row_without_words_is_in_no_space() -> None:
    """The service refuses such an article."""
    assert ServiceFingerprints().of_row({"title": "---", "text": None}) == ("", 0)
