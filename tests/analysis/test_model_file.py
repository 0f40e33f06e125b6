"""Model files: fields and arrays are read as they were written (rejections: test_features.py)."""

from pathlib import Path

import numpy as np
import pytest

from aggregator.analysis import model_file
from aggregator.errors import ModelError
from aggregator_lab.model_writing import check_writable, write


def test_round_trip(tmp_path: Path) -> None:
    """Every type and shape, also empty arrays and non-contiguous memory."""
    arrays = {
        "bytes": np.frombuffer("流れ".encode(), np.uint8),
        "half": np.arange(6, dtype="<f2").reshape(2, 3),
        "single": np.arange(12, dtype="<f4").reshape(3, 4)[:, ::2],
        "double": np.array([np.pi, -0.0, np.inf]),
        "nothing": np.zeros((0, 64), "<f4"),
    }
    fields = {"group": "en", "metadata": {"articles": 3, "share": 0.5, "note": "ü", "flags": [True, None]}}
    write(tmp_path / "m", fields, arrays)
    read_fields, read_arrays = model_file.read(tmp_path / "m")

    assert read_fields == fields
    assert list(read_arrays) == list(arrays)
    for name, array in arrays.items():
        assert read_arrays[name].dtype == array.dtype
        assert np.array_equal(read_arrays[name], array)
        assert not read_arrays[name].flags.writeable


def test_layout_is_as_documented(tmp_path: Path) -> None:
    """Magic, version 1 and header length are at the start; the last array ends 32 bytes before the end."""
    write(tmp_path / "m", {}, {"a": np.array([1.5])})
    content = (tmp_path / "m").read_bytes()

    assert content[:10] == b"AGGMODEL\x01\x00"
    assert len(content) == 14 + int.from_bytes(content[10:14], "little") + 8 + 32
    assert content[-40:-32] == np.array([1.5], "<f8").tobytes()


def test_unsupported_dtypes_are_not_written(tmp_path: Path) -> None:
    """Object arrays would need pickle; other types have no use."""
    with pytest.raises(ValueError, match=r"cannot hold arrays of type .*, as 'a' is"):
        write(tmp_path / "m", {}, {"a": np.array([object()])})
    assert not (tmp_path / "m").exists()


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    """What exists at the path stays intact when it cannot be replaced."""
    (tmp_path / "m").mkdir()

    with pytest.raises(ModelError, match="cannot be written here"):
        write(tmp_path / "m", {}, {})
    with pytest.raises(ModelError, match=r"cannot be written here \(Is a directory\)"):
        check_writable(tmp_path / "m")
    check_writable(tmp_path / "another")
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
