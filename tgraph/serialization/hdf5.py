"""HDF5 files by h5py, where it is installed: tensors by names, groups as dicts in dicts."""

from __future__ import annotations

import io
import os
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
            return _Reader(h5py, os.path.getsize(path)).group(file)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        if isinstance(error, LoadError | FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        raise LoadError(f"the HDF5 file cannot be read: {error!s:.200}") from error


_DEEPEST = 100
_MOST_BYTES = 1 << 28
"""So large a dataset may be of which the file has hardly anything: what is not there is 0."""
_MOST_COMPRESSED = 2000


class _Reader:
    """Reads a file of some size. What lies in several groups is read once, and is one object."""

    def __init__(self, h5py: Any, nbytes: int) -> None:
        self.h5py, self.nbytes = h5py, nbytes
        self.found: dict[int, Any] = {}  # by their places in the file

    def group(self, group: Any, depth: int = 0) -> dict[str, Any]:
        if depth > _DEEPEST:
            raise LoadError(f"the HDF5 file has more than {_DEEPEST} groups in each other")
        found: dict[str, Any] = {}
        for name in group:
            link = group.get(name, getlink=True)
            if not isinstance(link, self.h5py.HardLink):
                raise LoadError(
                    f"{name!r:.100} is a link to another place or file, which is not followed"
                )
            each = group[name]
            place = self.h5py.h5o.get_info(each.id).addr
            if place not in self.found:
                self.found[place] = None  # until it is read
                is_group = isinstance(each, self.h5py.Group)
                read = self.group(each, depth + 1) if is_group else self._tensor(each, name)
                self.found[place] = read
            if self.found[place] is None:
                raise LoadError(f"the group {name!r:.100} lies in itself")
            found[name] = self.found[place]
        return found

    def _tensor(self, dataset: Any, name: str) -> Tensor:
        if (
            not isinstance(dataset, self.h5py.Dataset)
            or dataset.external
            or dataset.is_virtual
            or dataset.dtype.kind not in "biufc"
        ):
            raise LoadError(f"dataset {name!r:.100} holds no numbers, or lies in other files")
        if dataset.nbytes > max(_MOST_BYTES, _MOST_COMPRESSED * self.nbytes):
            raise LoadError(
                f"dataset {name!r:.100} has {dataset.nbytes:,} bytes, in a file of {self.nbytes:,}"
            )
        return from_numpy(np.array(dataset[()]))
