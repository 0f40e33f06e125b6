"""Feature models: the projection, the model file, and every way in which it can be invalid."""

import copy
import math
import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.analysis import model_file
from aggregator.analysis.features import FeatureModel, HashedModel
from aggregator.analysis.models import load_model
from aggregator.analysis.simhash import feature_hash, fingerprint_from_sums, hamming_distance, hashed_sums
from aggregator.analysis.text.tokenizer import TOKENIZER_RECIPE, tokenizer_recipe
from aggregator.errors import ModelError
from aggregator_lab.model_writing import save, write
from tests.analysis.reference_weights import term_weights

TERMS = (*(f"term{i}" for i in range(30)), "洪水", "überfall")
TOKENS = st.lists(st.sampled_from([*TERMS, "unheard", "of"]), max_size=60)


def make_model(**changes: Any) -> FeatureModel:
    random = np.random.default_rng(7)
    parts: dict[str, Any] = {
        "group": "en",
        "vocabulary": TERMS,
        "idf": (1 + 5 * random.random(len(TERMS))).astype("<f4"),
        "matrix": random.normal(size=(len(TERMS), 64)).astype("<f2"),
        "offset": random.normal(size=64) / 10,
        "metadata": {"corpus": "made up", "articles": 3},
    }
    return FeatureModel(**(parts | changes))


MODEL = make_model()


@given(TOKENS)
def test_projection_equals_its_definition_exactly(tokens: list[str]) -> None:
    """The gather equals a plain loop over terms in order of first occurrence, in every bit."""
    known = [term for term in dict.fromkeys(tokens) if term in TERMS]
    if not known:
        return
    x = [(1 + math.log(tokens.count(t))) * float(MODEL.idf[TERMS.index(t)]) for t in known]
    norm = math.sqrt(math.fsum(value * value for value in x))
    sums = [0.0] * 64
    for term, value in zip(known, x, strict=True):
        for k in range(64):
            sums[k] += float(MODEL.matrix[TERMS.index(term), k]) * (value / norm)

    assert MODEL.project(tokens).tolist() == [s - o for s, o in zip(sums, MODEL.offset.tolist(), strict=True)]


@given(TOKENS)
def test_term_counts_give_the_same_as_terms(tokens: list[str]) -> None:
    """Terms can be passed as a list or as counts."""
    counts = Counter(tokens)
    for model in (MODEL, HashedModel()):
        assert model.project(counts).tolist() == model.project(tokens).tolist()
        assert term_weights(model, counts) == term_weights(model, tokens)


def test_unknown_terms_do_not_change_the_projection() -> None:
    """Only known terms are projected."""
    assert np.array_equal(MODEL.project(["term1", "zyx", "term2"]), MODEL.project(["term1", "term2"]))


@pytest.mark.parametrize("model", [MODEL, HashedModel()], ids=["fitted", "hashed"])
def test_texts_of_unknown_terms_get_distinct_fingerprints(model: FeatureModel | HashedModel) -> None:
    """Two such texts are far apart, and a truncated copy of one is near it."""
    first = [f"foreign{i}" for i in range(40)]
    second = [f"other{i}" for i in range(40)]
    bits = fingerprint_from_sums(model.project(first))

    assert hamming_distance(bits, fingerprint_from_sums(model.project(second))) > 15
    assert hamming_distance(bits, fingerprint_from_sums(model.project(first[:-1]))) < 12
    assert fingerprint_from_sums(MODEL.project(first)) == fingerprint_from_sums(
        hashed_sums(dict.fromkeys(first, 1.0))
    )
    assert fingerprint_from_sums(model.project(first[::-1])) == bits


@pytest.mark.parametrize("model", [MODEL, HashedModel()], ids=["fitted", "hashed"])
def test_no_terms_give_zeros(model: FeatureModel | HashedModel) -> None:
    """An empty text has zero sums, so fingerprint 0, and no weights."""
    assert model.project([]).tolist() == [0.0] * 64
    assert term_weights(model, []) == {}


@pytest.mark.parametrize("model", [MODEL, HashedModel()], ids=["fitted", "hashed"])
@given(tokens=TOKENS.filter(bool))
def test_weights_have_norm_1_and_keep_the_order(model: FeatureModel | HashedModel, tokens: list[str]) -> None:
    """Every distinct term has a weight above 0, in order of first occurrence."""
    weights = term_weights(model, tokens)

    assert list(weights) == list(dict.fromkeys(tokens))
    assert math.isclose(sum(w * w for w in weights.values()), 1)
    assert min(weights.values()) > 0


def test_an_unknown_term_has_the_weight_of_the_rarest() -> None:
    """No idf was fitted for it, so it gets the largest one."""
    rarest = TERMS[int(MODEL.idf.argmax())]
    weights = term_weights(MODEL, ["unheard", rarest, "term0"])

    assert weights["unheard"] == weights[rarest] >= weights["term0"]


def test_hashed_model_weighs_by_count() -> None:
    """A repeated term outweighs a single one; one term alone gives its hash as fingerprint."""
    weights = term_weights(HashedModel(), ["ox", "elephant", "ox"])

    assert weights["ox"] == pytest.approx((1 + math.log(2)) * weights["elephant"])
    assert fingerprint_from_sums(HashedModel().project(["elephant"])) == feature_hash("elephant")
    assert fingerprint_from_sums(HashedModel().project(["ox", "elephant", "ox"])) == fingerprint_from_sums(
        hashed_sums(weights)
    )


def test_the_id_depends_on_everything_that_changes_bits() -> None:
    """Metadata, which changes no fingerprint, does not change the id."""
    assert MODEL.id == MODEL.content_hash[:4]
    assert make_model(metadata={}).content_hash == MODEL.content_hash
    assert make_model(group="de").content_hash != MODEL.content_hash
    assert make_model(offset=np.zeros(64)).content_hash != MODEL.content_hash
    assert make_model(recipe="older").content_hash != MODEL.content_hash
    assert make_model(vocabulary=TERMS[::-1]).content_hash != MODEL.content_hash
    assert HashedModel().id != HashedModel("de").id


def test_save_and_load(tmp_path: Path) -> None:
    """A loaded model equals the saved one, and saving a model twice gives equal bytes."""
    save(MODEL, tmp_path / "a.model")
    save(MODEL, tmp_path / "b.model")
    loaded = load_model(tmp_path / "a.model")
    assert isinstance(loaded, FeatureModel)

    assert (tmp_path / "a.model").read_bytes() == (tmp_path / "b.model").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.model", "b.model"]
    assert (loaded.content_hash, loaded.vocabulary, loaded.metadata) == (
        MODEL.content_hash,
        TERMS,
        MODEL.metadata,
    )
    assert np.array_equal(loaded.project(["term3", "洪水"]), MODEL.project(["term3", "洪水"]))


@pytest.mark.parametrize("model", [MODEL, HashedModel()], ids=["fitted", "hashed"])
def test_models_can_be_pickled_and_copied(model: FeatureModel | HashedModel) -> None:
    """A pickled or copied model gives the same sums."""
    for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert copied.id == model.id
        assert np.array_equal(copied.project(["term1", "x"]), model.project(["term1", "x"]))


def test_the_repr_of_a_model_is_short() -> None:
    """A log line with a model does not contain the vocabulary."""
    assert len(repr(MODEL)) < 300


def assert_rejected(path: Path, because: str) -> None:
    with pytest.raises(ModelError, match=because) as refused:
        load_model(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_any_truncation_is_rejected(tmp_path: Path) -> None:
    """A file cut at any position is rejected with the remedy."""
    path = tmp_path / "en.model"
    save(MODEL, path)
    whole = path.read_bytes()
    for length in (1, 5, 8, 10, 13, 14, 40, 300, len(whole) // 2, len(whole) - 33, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert_rejected(path, "truncated; copy it again")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 an npz file", b"\x80\x05 a pickle", b"hello"])
def test_foreign_files_are_rejected(tmp_path: Path, content: bytes) -> None:
    """A file that was never a model is reported as that."""
    path = tmp_path / "en.model"
    path.write_bytes(content)
    assert_rejected(path, "not a feature model; `aggregator fit --help` says how")


def test_any_flipped_byte_is_rejected(tmp_path: Path) -> None:
    """Damage of the header, the arrays or the checksum itself is detected."""
    path = tmp_path / "en.model"
    save(MODEL, path)
    whole = path.read_bytes()
    for position in range(10, len(whole), 97):
        damaged = bytearray(whole)
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        assert_rejected(path, "damaged|truncated")
    path.write_bytes(whole + b"\0")
    assert_rejected(path, "damaged")


def test_another_format_version_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error for a file of a later program names both versions."""
    path = tmp_path / "en.model"
    monkeypatch.setattr(model_file, "FORMAT_VERSION", 99)
    save(MODEL, path)
    monkeypatch.undo()
    assert_rejected(path, "format version 99, but this program reads version 1; fit it again")


def test_another_recipe_is_rejected(tmp_path: Path) -> None:
    """A model fitted on other index terms would give fingerprints that are not comparable."""
    path = tmp_path / "en.model"
    save(make_model(recipe="tokens/0 by hand"), path)
    assert_rejected(path, "fitted for index terms 'tokens/0 by hand'.*fit it again")


def test_an_unknown_term_weight_is_rejected(tmp_path: Path) -> None:
    """A model fitted with another function of tf would give other fingerprints."""
    path = tmp_path / "en.model"
    save(MODEL, path)
    fields, arrays = model_file.read(path)
    write(path, fields | {"term_weight": "sqrt(tf)"}, arrays)
    assert_rejected(path, r"with weights 'sqrt\(tf\)'.*fit it again")


def test_content_that_differs_from_its_hash_is_rejected(tmp_path: Path) -> None:
    """A valid file with exchanged parts is not the model that its hash identifies."""
    path = tmp_path / "en.model"
    save(MODEL, path)
    fields, arrays = model_file.read(path)
    write(path, fields | {"group": "zh", "recipe": tokenizer_recipe("zh")}, arrays)
    assert_rejected(path, "does not match the content hash")


@pytest.mark.parametrize(
    "corrupt",
    [
        lambda fields, arrays: fields.pop("group"),
        lambda fields, arrays: fields.pop("recipe"),
        lambda fields, arrays: arrays.pop("idf"),
        lambda fields, arrays: arrays.update(idf=arrays["idf"][1:]),
        lambda fields, arrays: arrays.update(offset=arrays["offset"].astype("<f4")),
        lambda fields, arrays: arrays.update(vocabulary=np.frombuffer(b"\xff\xfe", np.uint8)),
        lambda fields, arrays: arrays.update(idf=-arrays["idf"]),
        lambda fields, arrays: arrays.update(offset=arrays["offset"] * np.nan),
    ],
)
def test_inconsistent_parts_are_rejected(
    tmp_path: Path, corrupt: Callable[[dict[str, Any], dict[str, Any]], Any]
) -> None:
    """The checksum shows only that a file is complete, not that its parts are consistent."""
    path = tmp_path / "en.model"
    save(MODEL, path)
    fields, arrays = model_file.read(path)
    corrupt(fields, arrays)
    write(path, fields, arrays)
    assert_rejected(path, "do not fit together")


def test_missing_file_and_directory(tmp_path: Path) -> None:
    """The error names a path that is missing or a directory."""
    assert_rejected(tmp_path / "nothing.model", "cannot be read .No such file")
    assert_rejected(tmp_path, "cannot be read .Is a directory")


def test_unwritable_target(tmp_path: Path) -> None:
    """Saving below a file gives one sentence and leaves no temporary file."""
    file = tmp_path / "notes.txt"
    file.write_text("", "utf-8")
    with pytest.raises(ModelError, match=r"cannot be written here .* choose another path"):
        save(MODEL, file / "en.model")
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("vocabulary", [TERMS[:-1] + TERMS[:1], (*TERMS[:-1], "two\nlines"), TERMS[:-1]])
def test_an_invalid_vocabulary_is_rejected(vocabulary: tuple[str, ...]) -> None:
    """Repeated terms, line breaks and a wrong number of terms are errors of the caller."""
    with pytest.raises(ValueError, match=r"vocabulary|idf"):
        make_model(vocabulary=vocabulary)


def test_the_default_recipe_is_that_of_the_tokenizer() -> None:
    """A new model is made for the index terms of this version."""
    assert MODEL.recipe == TOKENIZER_RECIPE


def test_a_model_of_another_orthography_is_rejected(tmp_path: Path) -> None:
    """For languages without a bundled model the recipe includes the orthography version."""
    path = tmp_path / "xx.model"
    save(make_model(group="xx", recipe=tokenizer_recipe("xx")), path)
    loaded = load_model(path)
    assert isinstance(loaded, FeatureModel)
    assert loaded.recipe == tokenizer_recipe("xx") != TOKENIZER_RECIPE
    save(make_model(group="xx"), path)
    assert_rejected(path, "fitted for index terms")
