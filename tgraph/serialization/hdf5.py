"""HDF5 files by h5py, where it is installed: tensors by names, groups as dicts in dicts."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.tensor import Tensor
from ..ops.from_data import from_numpy
from ..runtime.dtypes import bfloat16
from .errors import LoadError
from .safetensors import named_arrays


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise ImportError(
            "HDF5 files need the package h5py: pip install 'tgraph[files]'", name="h5py"
        ) from error
    return h5py


def write(given: Any, file: Any, path: str) -> None:
    """Write a dict of tensors and of such dicts."""
    h5py, content = _h5py(), io.BytesIO()
    with h5py.File(content, "w") as target:
        _write_group(target, given)
    file.write(content.getbuffer())


def _write_group(target: Any, given: Any) -> None:
    tensors = given
    if isinstance(given, Mapping):
        tensors = {name: each for name, each in given.items() if not isinstance(each, Mapping)}
    for name, (array, dtype) in named_arrays(tensors, "HDF5").items():
        if dtype is bfloat16:
            raise TypeError(
                f"HDF5 files cannot hold bfloat16 {name!r}: save tensor.float(), or as .safetensors"
            )
        target.create_dataset(name, data=array, track_times=False)
    for name, each in given.items():
        if isinstance(each, Mapping):
            if not isinstance(name, str):
                raise TypeError(f"HDF5 files hold tensors by names, got the name {name!r:.100}")
            _write_group(target.create_group(name), each)


def read(path: str, mapped: bool) -> dict[str, Any]:
    """The tensors of a file by their names."""
    h5py = _h5py()
    if mapped:
        raise NotImplementedError("load(mmap=True): HDF5 files cannot be mapped")
    try:
        with h5py.File(path, "r") as file:
            return _read_group(h5py, file)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        if isinstance(error, LoadError | FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        raise LoadError(f"the HDF5 file cannot be read: {error!s:.200}") from error


def _read_group(h5py: Any, group: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in group:
        link = group.get(name, getlink=True)
        if not isinstance(link, h5py.HardLink):
            raise LoadError(
                f"{name!r:.100} is a link to another place or file, which is not followed"
            )
        each = group[name]
        if isinstance(each, h5py.Group):
            found[name] = _read_group(h5py, each)
        else:
            found[name] = _tensor(each, name)
    return found


def _tensor(dataset: Any, name: str) -> Tensor:
    if dataset.external or dataset.is_virtual or dataset.dtype.kind not in "biufc":
        raise LoadError(f"dataset {name!r:.100} holds no numbers, or lies in other files")
    return from_numpy(np.array(dataset[()]))
