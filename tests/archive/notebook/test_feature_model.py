"""The transformer: shapes, agreement with the analysis, use in a pipeline, models from files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from aggregator.analysis.analyzer import Analyzer
from aggregator.analysis.models import BUNDLED_DIR, load_models
from aggregator.domain import Article
from aggregator.errors import InvalidInput
from aggregator.runtime import demo
from aggregator_archive.notebook import FeatureModel

ROWS = [row for row in demo.load_rows() if row["title"].isascii()]
CHINESE = "台风海岚逼近北岸，渔船全部回港，学校停课两天。"


@pytest.mark.parametrize(
    ("language", "rows"),
    [
        ("en", [*ROWS, {"text": "the the of and"}]),
        ("zh", [{"text": CHINESE}]),
        ("de", [{"text": "Die Fähre fährt am Montag wieder."}]),
    ],
)
def test_fingerprints_are_those_of_the_service(language: str, rows: list[dict[str, str]]) -> None:
    """Of headline and text, and of texts of stop words only."""
    analyzer = Analyzer(load_models())
    articles = [Article(id="a", title=row.get("title", ""), text=row["text"], lang=language) for row in rows]

    assert FeatureModel(language).fingerprints(rows).tolist() == [
        analyzer.analyze(article).fingerprint for article in articles
    ]


def test_vectors_have_the_signs_of_the_fingerprint() -> None:
    """(n, 64) float32; a text without words gives zeros, no texts give no rows."""
    model = FeatureModel()
    texts = [*(row["text"] for row in ROWS[:3]), ""]
    vectors, fingerprints = model.transform(texts), model.fingerprints(texts)

    assert vectors.shape == (4, 64)
    assert (vectors.dtype, fingerprints.dtype) == (np.dtype(np.float32), np.dtype(np.uint64))
    assert [[bool(f >> k & 1) for k in range(64)] for f in fingerprints.tolist()] == (vectors > 0).tolist()
    assert not vectors[3].any()
    assert model.transform([]).shape == (0, 64)


def test_a_pipeline_may_contain_the_model() -> None:
    """Fit, predict, clone, and names of columns for data frames."""
    texts = pandas.Series([row["text"] for row in ROWS])
    is_event = np.array([row["role"] == "event" for row in ROWS])
    pipeline = make_pipeline(FeatureModel("en"), KNeighborsClassifier(3, metric="cosine"))

    assert clone(pipeline).fit(texts, is_event).score(texts, is_event) > 0.9
    frame = FeatureModel("en").set_output(transform="pandas").transform(texts)
    assert list(frame.columns[:2]) == ["bit0", "bit1"]


def test_a_model_is_loaded_from_its_file(tmp_path: Path) -> None:
    """It must be of the language."""
    path = tmp_path / "mine.model"
    path.write_bytes((BUNDLED_DIR / "en.model").read_bytes())

    assert np.array_equal(FeatureModel("en", path).transform(ROWS), FeatureModel("en").transform(ROWS))
    with pytest.raises(InvalidInput, match="language group 'en', not of 'zh'"):
        FeatureModel("zh", path).fit()


def test_a_table_without_texts_is_refused_unless_its_columns_are_named() -> None:
    """Rows of zeros would look like vectors."""
    frame = pandas.DataFrame({"titel": ["Fähre"], "inhalt": ["Die Fähre fährt am Montag wieder."]})
    model = FeatureModel("de", columns={"title": "titel", "text": "inhalt"})

    with pytest.raises(InvalidInput, match=r"columns are titel, inhalt; .*columns=\{'text': NAME\}"):
        FeatureModel("de").transform(frame)
    with pytest.raises(InvalidInput, match=r"^Row 1: expected texts, found .* and 5\.$"):
        FeatureModel("de").transform([{"text": 5}])
    expected = FeatureModel("de").transform(["Fähre\nDie Fähre fährt am Montag wieder."])
    assert expected.any() and np.array_equal(clone(model).transform(frame), expected)


def test_a_text_of_another_name_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """The headlines alone were transformed silently; an outlet would not be read."""
    rows = [{"title": "The ferry", "inhalt": "It runs again from Monday.", "published_at": "2031-03-01"}]
    FeatureModel().transform(rows)
    assert capsys.readouterr().err == (
        "no column is text; unused: inhalt; map them, e.g. with columns={'text': NAME}\n"
    )
    FeatureModel(columns={"text": "inhalt"}).transform(rows)
    assert not capsys.readouterr().err
