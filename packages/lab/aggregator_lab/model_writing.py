"""Writer of model files, whose format ``aggregator.analysis.model_file`` describes and reads."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from aggregator.analysis import model_file
from aggregator.analysis.features import LOG_TF_WEIGHT, FeatureModel, stored_arrays
from aggregator.errors import ModelError


def save(model: FeatureModel, path: Path | str) -> None:
    """Write a model to one file atomically. Raises ModelError."""
    fields = {
        "kind": "folded-pca",
        "group": model.group,
        "recipe": model.recipe,
        "term_weight": LOG_TF_WEIGHT,
        "content_hash": model.content_hash,
        "metadata": dict(model.metadata),
    }
    write(Path(path), fields, stored_arrays(model))


def write(path: Path, fields: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write a model file atomically. Raises ModelError, and ValueError for arrays of another type."""
    for name, array in arrays.items():
        if array.dtype.str not in model_file.ALLOWED_DTYPES:
            raise ValueError(f"A model file cannot hold arrays of type {array.dtype.str}, as {name!r} is.")
    header = model_file.Header(
        dict(fields), [(name, a.dtype.str, list(a.shape)) for name, a in arrays.items()]
    )
    encoded = msgspec.msgpack.encode(header)
    body = model_file.PREFIX.pack(model_file.MAGIC, model_file.FORMAT_VERSION, len(encoded)) + encoded
    body += b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values())
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(body + sha256(body).digest())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise _write_error(path, error) from error


def check_writable(path: Path, *, makes_directory: bool = False) -> None:
    """Raise ModelError if the file cannot be created; ``makes_directory``: with its directory."""
    parent = next(each for each in path.absolute().parents if each.exists() or not makes_directory)
    code = 0 if parent.is_dir() else errno.ENOTDIR if parent.exists() else errno.ENOENT
    code = errno.EISDIR if path.is_dir() else code
    if code or not os.access(parent, os.W_OK):
        raise _write_error(path, OSError(code or errno.EACCES, os.strerror(code or errno.EACCES)))


def _write_error(path: Path, error: OSError) -> ModelError:
    return ModelError(f"{path}: the file cannot be written here ({error.strerror}); choose another path.")
