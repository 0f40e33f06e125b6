"""Inverse document frequencies: look-up, file, bundled table."""

import math
import pickle
from pathlib import Path

import numpy as np
import pytest

from aggregator.analysis.features import HashedModel
from aggregator.analysis.models import TERM_IDF_PATH, load_term_idf, load_term_rates
from aggregator.analysis.term_frequencies import EQUAL_IDF, RateTable, TermIdf, TermRates, hash_term
from aggregator.errors import ModelError
from aggregator_lab.model_writing import write
from tests.analysis.reference_weights import term_weights

HASHES = np.array(sorted([hash_term("de", "haus"), hash_term("es", "casa")]), np.uint32)
TABLE = TermIdf("recipe", {"de": "de", "es": "es", "gl": "es"}, HASHES, np.array([32, 32], np.uint8), 6.5)


@pytest.mark.parametrize(
    ("lang", "term", "idf"),
    [("de", "haus", 2.0), ("gl", "casa", 2.0), ("de", "casa", 6.5), ("eo", "haus", EQUAL_IDF)],
)
def test_terms_are_found_by_language(lang: str, term: str, idf: float) -> None:
    """A term that is not listed is rare; a language may share the list of another."""
    assert TABLE.idf(lang, term) == idf


def test_the_file_gives_an_equal_table(tmp_path: Path) -> None:
    """Of the same recipe only; anything else is rejected with the remedy."""
    fields = {name: getattr(TABLE, name) for name in ("recipe", "languages", "rare_idf")}
    write(tmp_path / "xx.idf", fields, {"hashes": TABLE.hashes, "steps": TABLE.steps})
    assert TermIdf.load(tmp_path / "xx.idf", "recipe").content_hash == TABLE.content_hash
    with pytest.raises(ModelError, match="scripts/build-term-idf"):
        TermIdf.load(tmp_path / "xx.idf", "another recipe")


def test_common_words_of_the_bundled_table_weigh_less() -> None:
    """In the languages that it is used for; sums of the values are exact."""
    table = load_term_idf()
    for lang, common, rare in (("de", "jahr", "vulkan"), ("es", "pais", "volcan"), ("ru", "год", "вулкан")):
        assert 1.0 <= table.idf(lang, common) < table.idf(lang, rare) <= table.rare_idf
    assert table.rare_idf * 16 == round(table.rare_idf * 16)
    assert (np.diff(table.hashes.astype(np.int64)) > 0).all()
    assert TERM_IDF_PATH.stat().st_size < 1_500_000


def test_weights_of_the_hashed_model_use_the_idf() -> None:
    """Its id depends on the table; a copy in another process gives the same."""
    plain, weighted = HashedModel(), HashedModel(term_idf=TABLE).for_language("de")
    assert plain.id != weighted.id == HashedModel(term_idf=TABLE).id
    assert weighted.row_and_idf("haus")[1] == 2.0
    weights = term_weights(weighted, ["haus", "turm"])
    assert weights["turm"] / weights["haus"] == pytest.approx(3.25)
    copy = pickle.loads(pickle.dumps(weighted))
    assert copy.id == weighted.id and copy.project(["haus"]).tolist() == weighted.project(["haus"]).tolist()
    assert set(np.abs(weighted.project(["haus"])).tolist()) == {2.0}


def table() -> RateTable:
    """Three terms of 1,000 documents: in half, in 100 and in one of them."""
    documents = np.array([100, 1])
    return RateTable.from_idf(["storm", "ferry"], (1 - np.log(documents / 1000)).astype("<f4"), {"say": 0.5})


def test_rates_are_proportional_to_occurrences_per_document() -> None:
    """A share s of the documents holds -ln(1 - s) occurrences; the rates of all terms add up to 1."""
    rates = table()

    assert rates.rate("say") / rates.rate("storm") == pytest.approx(math.log(0.5) / math.log(0.9), rel=1e-4)
    assert sum(map(rates.rate, ("say", "storm", "ferry"))) == pytest.approx(1.0)
    assert rates.rate("unlisted") == rates.rate("ferry") / 2


def test_a_language_without_frequencies_has_no_rates() -> None:
    """Not the rates of another language."""
    rates = TermRates({"en": table()})

    assert rates.rate("en", "storm") > 0
    assert rates.rate("ja", "storm") == 0.0


def test_frequent_words_have_higher_rates_in_the_bundled_models() -> None:
    """In languages with a fitted model and in those with word frequencies."""
    rates = load_term_rates()

    for lang, frequent, rare in (
        ("en", "govern", "earthquak"),
        ("de", "regier", "erdbeb"),
        ("zh", "\u53d1\u5c55", "\u5730\u9707"),  # development, earthquake
    ):
        assert rates.rate(lang, frequent) > 3 * rates.rate(lang, rare) > 0
