"""Language identifier: agreement with py3langid, file."""

from functools import cache
from pathlib import Path

import pytest
from py3langid import langid

from aggregator.analysis import model_file
from aggregator.analysis.text.language import CANDIDATE_LANGUAGES
from aggregator.analysis.text.language_identifier import LanguageIdentifier
from aggregator.errors import ModelError

TEXTS = (
    "The council of the town voted on a new bridge after months of talks.",
    "Die Fähre nach Estmark fährt am Montag wieder, sagte der Bürgermeister.",
    "DIE FÄHRE NACH ESTMARK FÄHRT AM MONTAG WIEDER.",
    "El ayuntamiento votó ayer por un nuevo puente sobre el río.",
    "Городской совет проголосовал за строительство нового моста.",
    "Градско веће је гласало за изградњу новог моста.",
    "Gradsko veće je glasalo za izgradnju novog mosta.",
    "市议会星期三投票决定修建一座新的大桥。",
    "وافق مجلس المدينة على بناء جسر جديد",
    "नगर परिषद ने नए पुल के लिए मतदान किया",
    "The ferry\0again \ud800 1,200 times. " * 40,
    "Brücke",
)


@cache
def identifier() -> LanguageIdentifier:
    """The bundled model."""
    return LanguageIdentifier.load()


@cache
def reference() -> langid.LanguageIdentifier:
    """py3langid, restricted to the same languages."""
    model = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE)
    model.set_languages(CANDIDATE_LANGUAGES)
    return model


@pytest.mark.parametrize("text", TEXTS)
def test_scores_are_those_of_py3langid(text: str) -> None:
    """For each language, up to the precision of its sums (float32)."""
    assert identifier().scores(text) == pytest.approx(dict(reference().rank(text)), rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("text", ["", "\0", "q"])
def test_all_scores_are_equal_without_a_known_ngram(text: str) -> None:
    """So nothing is taken for a language."""
    scores = identifier().scores(text)
    assert scores.keys() == set(CANDIDATE_LANGUAGES)
    assert len(set(scores.values())) == 1


def test_the_file_gives_an_equal_model(tmp_path: Path) -> None:
    """A file with other parts is refused, with the remedy."""
    path = tmp_path / "languages.ngrams"
    identifier().save(path)
    assert LanguageIdentifier.load(path).scores(TEXTS[0]) == identifier().scores(TEXTS[0])
    fields, arrays = model_file.read(path)
    model_file.write(path, fields, {name: array for name, array in arrays.items() if name != "row"})
    with pytest.raises(ModelError, match="scripts/build-language-model"):
        LanguageIdentifier.load(path)
