"""Feature models: the arithmetic of serving, the file and every way in which it can be wrong."""

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
from aggregator.analysis.simhash import feature_hash, fingerprint_from_sums, hamming_distance, simhash
from aggregator.analysis.text.tokenizer import TOKENIZER_RECIPE, tokenizer_recipe
from aggregator.errors import ModelError

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
def test_projection_is_the_definition_bit_by_bit(tokens: list[str]) -> None:
    """The gather equals a plain loop over terms in order of first occurrence, in every last digit."""
    known = [token for token in dict.fromkeys(tokens) if token in TERMS]
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
def test_counted_terms_give_the_same(tokens: list[str]) -> None:
    """Terms counted once serve both sums and weights."""
    counts = Counter(tokens)
    for model in (MODEL, HashedModel()):
        assert model.project(counts).tolist() == model.project(tokens).tolist()
        assert model.term_weights(counts) == model.term_weights(tokens)


def test_unknown_terms_do_not_move_a_known_text() -> None:
    """Only what the model knows is projected."""
    assert np.array_equal(MODEL.project(["term1", "zyx", "term2"]), MODEL.project(["term1", "term2"]))


@pytest.mark.parametrize("model", [MODEL, HashedModel()], ids=["fitted", "hashed"])
def test_texts_of_unknown_terms_do_not_meet(model: FeatureModel | HashedModel) -> None:
    """Two texts without a known term are told apart, and a copy of one is still found."""
    first = [f"foreign{i}" for i in range(40)]
    second = [f"other{i}" for i in range(40)]
    bits = fingerprint_from_sums(model.project(first))

    assert hamming_distance(bits, fingerprint_from_sums(model.project(second))) > 15
    assert hamming_distance(bits, fingerprint_from_sums(model.project(first[:-1]))) < 12
    assert fingerprint_from_sums(MODEL.project(first)) == simhash(dict.fromkeys(first, 1.0))
    assert fingerprint_from_sums(model.project(first[::-1])) == bits


@pytest.mark.parametrize("model", [MODEL, HashedModel()], ids=["fitted", "hashed"])
def test_no_terms(model: FeatureModel | HashedModel) -> None:
    """An empty text has zero sums, so fingerprint 0, and no weights."""
    assert model.project([]).tolist() == [0.0] * 64
    assert model.term_weights([]) == {}


@pytest.mark.parametrize("model", [MODEL, HashedModel()], ids=["fitted", "hashed"])
@given(tokens=TOKENS.filter(bool))
def test_weights_have_norm_one_and_keep_the_order(
    model: FeatureModel | HashedModel, tokens: list[str]
) -> None:
    """Every distinct token has a weight above 0, in order of first occurrence."""
    weights = model.term_weights(tokens)

    assert list(weights) == list(dict.fromkeys(tokens))
    assert math.isclose(sum(w * w for w in weights.values()), 1)
    assert min(weights.values()) > 0


def test_an_unknown_term_weighs_as_the_rarest_known() -> None:
    """No idf was learnt for it, so it gets the highest one."""
    rarest = TERMS[int(MODEL.idf.argmax())]
    weights = MODEL.term_weights(["unheard", rarest, "term0"])

    assert weights["unheard"] == weights[rarest] >= weights["term0"]


def test_hashed_model_weighs_by_count() -> None:
    """A repeated term outweighs a single one; one term alone is its own hash."""
    weights = HashedModel().term_weights(["ox", "elephant", "ox"])

    assert weights["ox"] == pytest.approx((1 + math.log(2)) * weights["elephant"])
    assert fingerprint_from_sums(HashedModel().project(["elephant"])) == feature_hash("elephant")
    assert fingerprint_from_sums(HashedModel().project(["ox", "elephant", "ox"])) == simhash(weights)


def test_ids_follow_content() -> None:
    """Whatever can change a bit changes the id; what only people read does not."""
    assert MODEL.id == MODEL.content_hash[:4]
    assert make_model(metadata={}).content_hash == MODEL.content_hash
    assert make_model(group="de").content_hash != MODEL.content_hash
    assert make_model(offset=np.zeros(64)).content_hash != MODEL.content_hash
    assert make_model(recipe="older").content_hash != MODEL.content_hash
    assert make_model(vocabulary=TERMS[::-1]).content_hash != MODEL.content_hash
    assert HashedModel().id != HashedModel("de").id


def test_save_and_load(tmp_path: Path) -> None:
    """A model comes back the same, and the same model is the same bytes."""
    MODEL.save(tmp_path / "a.model")
    MODEL.save(tmp_path / "b.model")
    loaded = FeatureModel.load(tmp_path / "a.model")

    assert (tmp_path / "a.model").read_bytes() == (tmp_path / "b.model").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.model", "b.model"]
    assert (loaded.content_hash, loaded.vocabulary, loaded.metadata) == (
        MODEL.content_hash,
        TERMS,
        MODEL.metadata,
    )
    assert np.array_equal(loaded.project(["term3", "洪水"]), MODEL.project(["term3", "洪水"]))


@pytest.mark.parametrize("model", [MODEL, HashedModel()], ids=["fitted", "hashed"])
def test_models_travel_to_worker_processes(model: FeatureModel | HashedModel) -> None:
    """Pickled and copied, a model gives the same sums."""
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert twin.id == model.id
        assert np.array_equal(twin.project(["term1", "x"]), model.project(["term1", "x"]))


def test_a_model_prints_as_one_line() -> None:
    """A log line with a model in it does not hold the vocabulary."""
    assert len(repr(MODEL)) < 300


def assert_refused(path: Path, because: str) -> None:
    with pytest.raises(ModelError, match=because) as refused:
        FeatureModel.load(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_any_truncation_is_refused(tmp_path: Path) -> None:
    """Cut anywhere, the file is refused with what to do."""
    path = tmp_path / "en.model"
    MODEL.save(path)
    whole = path.read_bytes()
    for length in (1, 5, 8, 10, 13, 14, 40, 300, len(whole) // 2, len(whole) - 33, len(whole) - 1):
        path.write_bytes(whole[:length])
        assert_refused(path, "truncated; copy it again")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 an npz file", b"\x80\x05 a pickle", b"hello"])
def test_foreign_files_are_refused(tmp_path: Path, content: bytes) -> None:
    """What was never a model is called that."""
    path = tmp_path / "en.model"
    path.write_bytes(content)
    assert_refused(path, "not a feature model; use a file written by `aggregator fit`")


def test_any_flipped_byte_is_refused(tmp_path: Path) -> None:
    """Damage of the header, the arrays or the checksum itself is found."""
    path = tmp_path / "en.model"
    MODEL.save(path)
    whole = path.read_bytes()
    for position in range(10, len(whole), 97):
        damaged = bytearray(whole)
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        assert_refused(path, "damaged|truncated")
    path.write_bytes(whole + b"\0")
    assert_refused(path, "damaged")


def test_another_format_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of a later program names both versions."""
    path = tmp_path / "en.model"
    monkeypatch.setattr(model_file, "FORMAT_VERSION", 99)
    MODEL.save(path)
    monkeypatch.undo()
    assert_refused(path, "format version 99, but this program reads version 1; fit it again")


def test_another_recipe_is_refused(tmp_path: Path) -> None:
    """A model fitted on other index terms would give bits that mean something else."""
    path = tmp_path / "en.model"
    make_model(recipe="tokens/0 by hand").save(path)
    assert_refused(path, "fitted for index terms 'tokens/0 by hand'.*fit it again")


def test_another_term_weight_is_refused(tmp_path: Path) -> None:
    """So would another form of tf."""
    path = tmp_path / "en.model"
    MODEL.save(path)
    fields, arrays = model_file.read(path)
    model_file.write(path, fields | {"term_weight": "sqrt(tf)"}, arrays)
    assert_refused(path, r"with weights 'sqrt\(tf\)'.*fit it again")


@pytest.mark.parametrize(("term_weight", "thrice_as"), [("tf", 3), ("tf^.75", 3**0.75)])
def test_other_weights_are_other_models(tmp_path: Path, term_weight: str, thrice_as: float) -> None:
    """What a repeated term weighs is kept in the file, and the id tells."""
    other = make_model(term_weight=term_weight)
    other.save(tmp_path / "en.model")
    loaded = FeatureModel.load(tmp_path / "en.model")
    once, thrice = (
        other.term_weights(["term1", "term2"]),
        loaded.term_weights(["term1", "term2", "term1", "term1"]),
    )

    assert loaded.content_hash == other.content_hash != MODEL.content_hash
    assert thrice["term1"] / thrice["term2"] == pytest.approx(thrice_as * once["term1"] / once["term2"])
    assert other.project(["term1"]).tolist() == MODEL.project(["term1"]).tolist()


def test_content_that_is_not_its_hash_is_refused(tmp_path: Path) -> None:
    """A sound file whose parts were exchanged is not the model it says it is."""
    path = tmp_path / "en.model"
    MODEL.save(path)
    fields, arrays = model_file.read(path)
    model_file.write(path, fields | {"group": "zh"}, arrays)
    assert_refused(path, "does not match the content hash")


@pytest.mark.parametrize(
    "spoil",
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
def test_parts_that_do_not_fit_are_refused(
    tmp_path: Path, spoil: Callable[[dict[str, Any], dict[str, Any]], Any]
) -> None:
    """A checksum says that a file is whole, not that it makes sense."""
    path = tmp_path / "en.model"
    MODEL.save(path)
    fields, arrays = model_file.read(path)
    spoil(fields, arrays)
    model_file.write(path, fields, arrays)
    assert_refused(path, "do not fit together")


def test_missing_file_and_directory(tmp_path: Path) -> None:
    """A wrong path says so."""
    assert_refused(tmp_path / "nothing.model", "cannot be read .No such file")
    assert_refused(tmp_path, "cannot be read .Is a directory")


def test_unwritable_target(tmp_path: Path) -> None:
    """Saving where nothing can be written is one sentence, and leaves nothing behind."""
    with pytest.raises(ModelError, match=r"cannot be written here .* choose another path"):
        MODEL.save(tmp_path / "absent" / "en.model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("vocabulary", [TERMS[:-1] + TERMS[:1], (*TERMS[:-1], "two\nlines"), TERMS[:-1]])
def test_an_unsound_vocabulary_makes_no_model(vocabulary: tuple[str, ...]) -> None:
    """Repeated terms, line breaks and a wrong number of terms are mistakes of the maker."""
    with pytest.raises(ValueError, match=r"vocabulary|idf"):
        make_model(vocabulary=vocabulary)


def test_recipe_is_that_of_the_tokens() -> None:
    """A model made here and now is made for the index terms made here and now."""
    assert MODEL.recipe == TOKENIZER_RECIPE


def test_a_model_of_another_spelling_is_refused(tmp_path: Path) -> None:
    """What other languages' words were fitted by stands in the model: one fitted before spellings were one is named."""
    path = tmp_path / "xx.model"
    make_model(group="xx", recipe=tokenizer_recipe("xx")).save(path)
    assert FeatureModel.load(path).recipe == tokenizer_recipe("xx") != TOKENIZER_RECIPE
    make_model(group="xx").save(path)
    assert_refused(path, "fitted for index terms")
