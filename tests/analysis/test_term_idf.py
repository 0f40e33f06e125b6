"""Inverse document frequencies: look-up, file, bundled table."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from aggregator.analysis.features import HashedModel
from aggregator.analysis.models import TERM_IDF_PATH, load_term_idf
from aggregator.analysis.term_idf import EQUAL_IDF, TermIdf, hash_term
from aggregator.errors import ModelError

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
    TABLE.save(tmp_path / "xx.idf")
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
    assert weighted.row_and_idf("haus") == (-1, 2.0)
    weights = weighted.term_weights(["haus", "turm"])
    assert weights["turm"] / weights["haus"] == pytest.approx(3.25)
    copy = pickle.loads(pickle.dumps(weighted))
    assert copy.id == weighted.id and copy.project(["haus"]).tolist() == weighted.project(["haus"]).tolist()
    assert set(np.abs(weighted.project(["haus"])).tolist()) == {2.0}
