"""Fit of a feature model: the folded matrix equals scikit-learn's steps; corpus files give a model file."""

import gzip
import json
import random
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from aggregator.analysis.features import FeatureModel
from aggregator.analysis.models import load_model
from aggregator.analysis.simhash import fingerprint_from_sums, hamming_distance, hashed_sums
from aggregator.errors import InvalidInput, ModelError
from aggregator_lab.fit import FitResult, FitSettings, fit, fit_file

_WORD_LISTS = """
river rain flood levee water bridge evacuate boats storm sandbags banks crest gauge mud
judge jury trial lawyer verdict appeal witness prosecutor sentence evidence bench oath
shares index investors bank rates profit trading bonds dividend forecast exchange fund
match goal coach season league striker stadium final referee penalty transfer squad
hospital doctors vaccine patients virus clinic nurses trial ward infection symptoms dose
rocket orbit launch crew satellite engine capsule mission telescope moon probe pad
norton vale kessler bay harrow estmark lindholm ravens torre milbrook ash dunmore pell
"""
*TOPICS, PLACES = (line.split() for line in _WORD_LISTS.strip().splitlines())


def write_article(rng: random.Random) -> list[str]:
    """81 words: one topic, a few of another topic, places and names."""
    topic, other = rng.sample(TOPICS, 2)
    words = rng.choices(topic, k=55) + rng.choices(other, k=8)
    words += rng.choices(PLACES, k=12) + [f"name{rng.randrange(60)}" for _ in range(6)]
    rng.shuffle(words)
    return words


def write_corpus(articles: int, seed: int) -> list[list[str]]:
    rng = random.Random(seed)
    return [write_article(rng) for _ in range(articles)]


CORPUS = write_corpus(300, seed=1)
UNSEEN = [*write_corpus(60, seed=2), ["river"], ["judge", "judge", "unheard"]]
SMALL = FitSettings(terms=120, components=70)
VARIANTS = {
    "default": SMALL,
    "paper": FitSettings(terms=120, components=70, hyperplanes="hashed"),
    "few": FitSettings(terms=120, components=20, hyperplanes="hashed"),
    "learned": FitSettings(terms=120, components=70, hyperplanes="learned"),
}


def unfolded_sums(fitted: FitResult, token_lists: list[list[str]]) -> npt.NDArray[np.float64]:
    """(n, 64) sums by scikit-learn, without folding and rounding: the reference for ``FeatureModel``."""
    counter = CountVectorizer(analyzer=list, vocabulary=fitted.model.vocabulary)
    x = fitted.tfidf.transform(counter.transform(token_lists))
    projected = x @ fitted.axes.T - np.outer(x @ fitted.mean, fitted.axes @ fitted.mean)
    return np.asarray(projected @ fitted.hyperplanes)


@pytest.fixture(scope="module", params=VARIANTS)
def fitted(request: pytest.FixtureRequest) -> FitResult:
    return fit(CORPUS, "en", VARIANTS[request.param])


def test_folded_matrix_agrees_with_two_steps(fitted: FitResult) -> None:
    """Every bit whose sum exceeds the rounding error of the matrix equals that of scikit-learn's steps."""
    folded = np.array([fitted.model.project(tokens) for tokens in UNSEEN])
    exact = unfolded_sums(fitted, UNSEEN)
    # float16 has 11 significant bits: the relative error of an entry is at most 2^-11; x has norm 1.
    matrix = np.abs(fitted.model.matrix.astype(np.float64))
    noise = 2.0**-11 * 2 * np.linalg.norm(matrix, axis=0) + 1e-6
    clear = np.abs(exact) > noise

    assert np.abs(folded - exact).max() <= noise.max()
    assert clear.mean() > 0.95
    assert ((folded > 0) == (exact > 0))[clear].all()


def test_folded_matrix_is_the_product_as_stored(fitted: FitResult) -> None:
    """Only the last digits differ from scikit-learn's TF-IDF times the stored matrix."""
    counter = CountVectorizer(analyzer=list, vocabulary=fitted.model.vocabulary)
    x = fitted.tfidf.transform(counter.transform(UNSEEN))
    expected = x @ fitted.model.matrix.astype(np.float64) - fitted.model.offset
    folded = np.array([fitted.model.project(tokens) for tokens in UNSEEN])

    # idf is stored as float32, hence 1e-6 and not 1e-15.
    assert np.abs(folded - expected).max() < 1e-6 * max(1, np.abs(expected).max())


def test_model_of_a_fit(fitted: FitResult) -> None:
    """Shapes, order of terms and metadata."""
    model, settings = fitted.model, fitted.settings

    assert model.matrix.shape == (len(model.vocabulary), 64)
    assert list(model.vocabulary) == sorted(model.vocabulary)
    assert len(model.vocabulary) <= settings.terms
    assert fitted.axes.shape == (settings.components, len(model.vocabulary))
    assert np.allclose(fitted.axes @ fitted.axes.T, np.eye(settings.components), atol=1e-8)
    assert model.metadata["articles"] == 300
    assert model.metadata["settings"]["components"] == settings.components
    assert not np.any(model.offset)


def test_sums_are_centered() -> None:
    """Over the corpus the 64 sums have a mean of nearly 0."""
    model = fit(CORPUS, "en", SMALL).model
    sums = np.array([model.project(tokens) for tokens in CORPUS])

    assert np.abs(sums.mean(axis=0)).max() < 0.1 * sums.std(axis=0).mean()


def test_directional_centering_keeps_headlines_apart() -> None:
    """Texts of two words have little in common; the whole mean would fix most of their bits."""
    model = fit(CORPUS, "en", SMALL).model
    bits = [fingerprint_from_sums(model.project(tokens[:2])) for tokens in UNSEEN[:60]]

    assert np.mean([hamming_distance(a, b) for a, b in combinations(bits, 2)]) > 28


def test_orthogonal_hyperplanes_are_orthonormal() -> None:
    """Each normal is on the same side as the hashed one that it was computed from."""
    normals = fit(CORPUS, "en", SMALL).hyperplanes
    hashed = fit(CORPUS, "en", VARIANTS["paper"]).hyperplanes

    assert np.allclose(normals.T @ normals, np.eye(64))
    assert ((normals * hashed).sum(axis=0) > 0).all()


def test_learned_hyperplanes_are_far_from_the_articles() -> None:
    """They are orthonormal, fewer articles are close to them, and so an edit changes fewer bits."""
    flipped, close = {}, {}
    for kind in ("orthogonal", "learned"):
        fitted = fit(CORPUS, "en", FitSettings(terms=120, components=70, hyperplanes=kind))
        sums = unfolded_sums(fitted, CORPUS)
        close[kind] = (np.abs(sums) < 0.2 * np.abs(sums).mean(axis=1, keepdims=True)).mean()
        pairs = [
            [fingerprint_from_sums(fitted.model.project(t)) for t in (full, full[:60])]
            for full in UNSEEN[:60]
        ]
        flipped[kind] = np.mean([hamming_distance(a, b) for a, b in pairs])
        assert np.allclose(fitted.hyperplanes.T @ fitted.hyperplanes, np.eye(64))

    assert close["learned"] < close["orthogonal"]
    assert flipped["learned"] < flipped["orthogonal"]


def test_equal_articles_give_equal_models() -> None:
    """A second fit, also from a generator, gives the same content hash; other articles a different one."""
    first = fit(CORPUS, "en", SMALL).model

    assert fit(iter(CORPUS), "en", SMALL).model.content_hash == first.content_hash
    learned = [fit(CORPUS, "en", VARIANTS["learned"]).model.content_hash for _ in range(2)]
    assert learned[0] == learned[1] != first.content_hash
    assert fit(CORPUS[:-1], "en", SMALL).model.content_hash != first.content_hash


def test_hashed_hyperplanes_give_the_simhash_of_the_components() -> None:
    """The fingerprint is Charikar's, with features named pca:0, pca:1, ... as in the paper."""
    fitted = fit(CORPUS, "en", VARIANTS["paper"])
    counter = CountVectorizer(analyzer=list, vocabulary=fitted.model.vocabulary)
    x = fitted.tfidf.transform(counter.transform(UNSEEN[:5])).toarray()
    centered = x - np.outer(x @ fitted.mean, fitted.mean)
    for components, sums in zip(centered @ fitted.axes.T, unfolded_sums(fitted, UNSEEN[:5]), strict=True):
        named = {f"pca:{j}": value for j, value in enumerate(components)}

        assert fingerprint_from_sums(hashed_sums(named)) == fingerprint_from_sums(sums)


def test_edited_copies_are_nearer_than_others() -> None:
    """Without a tenth of its words an article is less than half as far away as another article."""
    model = fit(CORPUS, "en", SMALL).model
    originals = [fingerprint_from_sums(model.project(tokens)) for tokens in UNSEEN[:60]]
    copies = [fingerprint_from_sums(model.project(tokens[: len(tokens) * 9 // 10])) for tokens in UNSEEN[:60]]
    to_copy = [hamming_distance(a, b) for a, b in zip(originals, copies, strict=True)]
    to_other = [hamming_distance(a, b) for a, b in zip(originals, copies[1:] + copies[:1], strict=True)]

    assert np.mean(to_copy) < 0.5 * np.mean(to_other)


def test_terms_of_most_articles_are_chosen() -> None:
    """Rare and too frequent terms are left out."""
    token_lists = [[*tokens, "everywhere"] for tokens in CORPUS]
    token_lists[0] += ["once"] * 500
    vocabulary = fit(token_lists, "en", SMALL).model.vocabulary

    assert "everywhere" not in vocabulary
    assert "once" not in vocabulary
    assert {"flood", "judge", "orbit"} <= set(vocabulary)


def test_axes_are_fitted_to_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above PCA_ARTICLES the axes are computed from evenly spaced articles, idf from all."""
    whole = fit(CORPUS, "en", FitSettings(terms=120, components=64))
    monkeypatch.setattr("aggregator_lab.fit.PCA_ARTICLES", 150)
    sampled = fit(CORPUS, "en", FitSettings(terms=120, components=64))

    assert np.array_equal(sampled.model.idf, whole.model.idf)
    assert sampled.model.content_hash != whole.model.content_hash


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (
            {"components": 32, "hyperplanes": "orthogonal"},
            "64 orthogonal hyperplanes need at least 64 components, not 32; --hyperplanes hashed takes fewer",
        ),
        ({"terms": 10}, "terms must be at least 64, not 10"),
        ({"components": 0, "hyperplanes": "hashed"}, "components must be at least 1"),
        ({"hyperplanes": "curved"}, "hashed, orthogonal or learned, not 'curved'"),
    ],
)
def test_invalid_settings_are_refused(changes: dict[str, object], problem: str) -> None:
    """The error names the setting and its value."""
    with pytest.raises(InvalidInput, match=problem):
        FitSettings(**changes)  # type: ignore[arg-type]  # invalid on purpose


def test_one_error_names_all_invalid_settings() -> None:
    """They are separated by semicolons."""
    with pytest.raises(InvalidInput, match=r"terms must.*; components must"):
        FitSettings(terms=1, components=0, hyperplanes="hashed")


@pytest.mark.parametrize("token_lists", [[], [[]], [[], []]])
def test_a_corpus_without_terms_is_refused(token_lists: list[list[str]]) -> None:
    """No articles, or only empty ones."""
    with pytest.raises(InvalidInput, match="no article with index terms in group 'en'"):
        fit(token_lists, "en", SMALL)


def test_too_few_articles_are_refused() -> None:
    """The number of axes cannot exceed the number of articles."""
    with pytest.raises(InvalidInput, match=r"^40 articles in group 'en' are too few for 70 components"):
        fit(CORPUS[:40], "en", SMALL)
    with pytest.raises(
        InvalidInput, match=r"^1 terms that 2 of them, but at most 50%, have in group 'en' are"
    ):
        fit([["rare", "common"], ["rare", "common"], *([["common"]] * 80)], "en", SMALL)


def write_rows(path: Path, token_lists: list[list[str]], lang: str | None = "en") -> None:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8") as out:
        for tokens in token_lists:
            row = {"title": " ".join(tokens[:6]), "text": " ".join(tokens[6:]), "lang": lang}
            out.write(json.dumps(row) + "\n")


def test_corpus_files_give_a_model_file(tmp_path: Path) -> None:
    """Plain and gzipped files; rows of other groups and without text are skipped; progress is reported."""
    write_rows(tmp_path / "a.jsonl", CORPUS[:150])
    write_rows(tmp_path / "b.jsonl.gz", CORPUS[150:])
    write_rows(tmp_path / "de.jsonl", CORPUS[:20], lang="de")
    (tmp_path / "empty.jsonl").write_text('{"title": "", "text": null}\n\n{"id": "7"}\n')
    files = [tmp_path / name for name in ("a.jsonl", "b.jsonl.gz", "de.jsonl", "empty.jsonl")]
    progress: list[int] = []
    fitted = fit_file(
        files, "en", tmp_path / "en.model", SMALL, metadata={"corpus": "x"}, progress=progress.append
    )
    loaded = load_model(tmp_path / "en.model")
    assert isinstance(loaded, FeatureModel)

    assert progress == list(range(1, 301))
    assert loaded.content_hash == fitted.model.content_hash
    assert (loaded.metadata["corpus"], loaded.metadata["articles"]) == ("x", 300)


@pytest.mark.parametrize("line", ["{", "[1]", '"text"'])
def test_an_invalid_line_costs_no_other(
    tmp_path: Path, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named by its file and number."""
    path = tmp_path / "corpus.jsonl"
    write_rows(path, CORPUS)
    with path.open("a") as out:
        out.write(line + "\n")

    fitted = fit_file([path], "en", tmp_path / "en.model", SMALL)

    assert fitted.model.metadata["articles"] == len(CORPUS)
    assert f"1 row left out, the first: {path}, row {len(CORPUS) + 1}: " in capsys.readouterr().err


def test_missing_corpus_and_unwritable_target_are_refused(tmp_path: Path) -> None:
    """The target is checked before any article is read."""
    write_rows(tmp_path / "corpus.jsonl", CORPUS)

    with pytest.raises(InvalidInput, match=r"absent\.jsonl cannot be read"):
        fit_file([tmp_path / "absent.jsonl"], "en", tmp_path / "en.model", SMALL)
    for absent in (tmp_path / "corpus.jsonl" / "en.model", tmp_path):
        read: list[int] = []
        with pytest.raises(ModelError, match="cannot be written here"):
            fit_file([tmp_path / "corpus.jsonl"], "en", absent, SMALL, progress=read.append)
        assert not read, "articles were read before the target was checked"


def test_a_corpus_of_another_language_is_refused(tmp_path: Path) -> None:
    """No article of the requested group is an error, not an empty model."""
    write_rows(tmp_path / "de.jsonl", CORPUS, lang="de")

    with pytest.raises(InvalidInput, match=r"group: no article is in 'en'; the groups .* are xx \(\d+\)"):
        fit_file([tmp_path / "de.jsonl"], "en", tmp_path / "en.model", SMALL)
