"""`save` and `load`: which format a file has, and the way there and back."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ..core.context import use_context
from ..core.eager_context import EAGER
from ..runtime.whole_files import written_whole
from . import checkpoint, hdf5, legacy, numpy_files, safetensors
from .allowed import Allowed
from .code import unpickled_by
from .errors import LoadError
from .locations import Location, restore, to_one_device
from .sources import FileSource
from .unpickler import Unpickler

DEFAULT_PROTOCOL = 2
_FORMATS = {
    ".safetensors": safetensors, ".h5": hdf5, ".hdf5": hdf5, ".npy": numpy_files,
    ".npz": numpy_files,
}  # fmt: skip
"""Formats of others, by the ends of names; all other files are PyTorch's."""


def _is_path(given: Any) -> bool:
    return isinstance(given, str | os.PathLike)


def _other_format(path: Any) -> Any:
    return _FORMATS.get(os.path.splitext(os.fspath(path))[1].lower()) if _is_path(path) else None


# --- save --------------------------------------------------------------------------------------


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write `obj` to a path or an open file, as PyTorch's zip format, which `torch.load` reads.

    Tensors that share memory share it again when they are loaded. A path is written whole or not at
    all. Paths that end with `.safetensors`, `.h5` or `.hdf5` (which needs h5py), `.npz` or `.npy`
    are written in those formats, which hold tensors by names (`.npy` one tensor). The arguments may
    also come in the other order, the path first.

    >>> import io
    >>> import tgraph as tg
    >>> file = io.BytesIO()
    >>> tg.save({"weight": tg.ones(2), "epoch": 3}, file)
    >>> _ = file.seek(0)
    >>> tg.load(file)
    {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    if not _is_path(f) and not hasattr(f, "write"):
        if not _is_path(obj):
            raise TypeError(
                f"save(obj, f) expected a path or a file with write() as f, got {type(f).__name__}"
            )
        obj, f = f, obj
    if not _use_new_zipfile_serialization:
        raise NotImplementedError(
            "save(_use_new_zipfile_serialization=False): the format from before PyTorch 1.6 is "
            "read but not written; leave the argument out, all later versions read the zip format"
        )
    other = _other_format(f)
    file: AbstractContextManager[Any] = written_whole(f) if _is_path(f) else nullcontext(f)
    with file as opened:
        if other is not None:
            other.write(obj, opened, os.fspath(f))
        else:
            checkpoint.write(obj, opened, pickle_module, pickle_protocol)


# --- load --------------------------------------------------------------------------------------


def load(
    f: Any,
    map_location: Location = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what `save`, or `torch.save`, has written to a path or an open file.

    No code of the file runs, unless `weights_only=False` is given: then anything can be loaded that
    can be imported here, by a pickle that may do whatever its author wants. What else may be loaded
    without that, `tgraph.serialization.add_safe_globals` tells.

    `map_location` says where tensors go: a device, a dict from names of devices to others, or a
    function of a storage and the name of its device; by default where they were. With `mmap`, the
    elements stay in the file until they are used; what is written to them does not reach it.

    LoadError, which is a RuntimeError and an UnpicklingError, where the file is damaged, of no
    known format, or holds what may not be loaded.
    """
    if pickle_module is not None and weights_only:
        raise RuntimeError(
            "Can not safely load weights when explicit pickle_module is specified: leave out one "
            "of pickle_module and weights_only=True"
        )
    safely = pickle_module is None if weights_only is None else weights_only
    encoding = pickle_load_args.pop("encoding", "utf-8")
    if pickle_load_args:
        unknown = next(iter(pickle_load_args))
        raise TypeError(f"load() got an unexpected keyword argument '{unknown}'")
    if mmap and not _is_path(f):
        raise ValueError(
            "load(mmap=True) needs the path of a file, as an open one cannot be mapped"
        )
    other, mapped = _other_format(f), bool(mmap)
    with use_context(EAGER):
        if other is not None:
            device = to_one_device(map_location, os.path.splitext(os.fspath(f))[1])
            found = other.read(os.fspath(f), mapped)
            return found if device is None else _moved(found, device)
        with open(f, "rb") if _is_path(f) else nullcontext(f) as file:
            source = FileSource(file)
            reading = _Reading(source, map_location, mapped)
            if safely:
                return reading.result(lambda: Allowed(), encoding)
            return reading.result_by(pickle_module or pickle, encoding)


def _moved(found: Any, device: Any) -> Any:
    if isinstance(found, dict):
        return {name: each.to(device) for name, each in found.items()}
    return found.to(device)


class _Reading:
    """One file of PyTorch's and where its tensors go."""

    def __init__(self, source: FileSource, map_location: Location, mapped: bool) -> None:
        self.source = source
        self.restore = restore(map_location)
        self.mapped = mapped
        self._kind = self._kind_of(source)
        if self._kind == "legacy" and mapped:
            raise RuntimeError(
                "mmap can only be used with files of PyTorch's zip format; load the file and save "
                "it again"
            )

    def _kind_of(self, source: FileSource) -> str:
        start = source.bytes_at(0, 512)
        if start[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
            return "zip"
        if legacy.START in start[:32]:
            return "legacy"
        if start[257:262] == b"ustar" or _is_old_tar(start):
            raise LoadError(
                "the file is a tar archive, as PyTorch wrote before 0.1.10; load it in PyTorch and "
                "save it again with torch.save"
            )
        if not start:
            raise LoadError("the file is empty")
        raise LoadError(
            "the file is no checkpoint of PyTorch or tgraph: it begins with neither 'PK' nor the "
            "number of the format from before PyTorch 1.6. It was damaged, or is of another kind "
            "(other formats are known by the ends of names: " + ", ".join(_FORMATS) + ")"
        )

    def result(self, allowed: Callable[[], Allowed], encoding: str) -> Any:
        """The object, read without running code."""
        if self._kind == "zip":
            return checkpoint.read(
                self.source,
                lambda data, storages: Unpickler(data, allowed(), storages, encoding).load(),
                self.restore,
                self.mapped,
            )
        data = self.source.bytes_at(0, self.source.size)

        def start() -> tuple[legacy.Load, legacy.Position]:
            reader = Unpickler(data, allowed(), _no_storage, encoding)

            def next_pickle(persistent_load: Callable[[Any], Any] | None) -> Any:
                reader.persistent_load = persistent_load or _no_storage
                return reader.load()

            return next_pickle, lambda: reader.at

        return legacy.read(self.source, start, self.restore)

    def result_by(self, module: Any, encoding: str) -> Any:
        """The object, read by another unpickler, which runs what the file asks for."""
        if self._kind == "zip":
            return checkpoint.read(
                self.source,
                lambda data, storages: unpickled_by(module, data, storages, encoding)[0],
                self.restore,
                self.mapped,
            )
        data = self.source.bytes_at(0, self.source.size)

        def start() -> tuple[legacy.Load, legacy.Position]:
            at = 0

            def next_pickle(persistent_load: Callable[[Any], Any] | None) -> Any:
                nonlocal at
                loader = persistent_load or _no_storage
                found, size = unpickled_by(module, data[at:], loader, encoding)
                at += size
                return found

            return next_pickle, lambda: at

        return legacy.read(self.source, start, self.restore)


def _no_storage(given: Any) -> Any:
    raise LoadError("the file speaks of a storage where there is none: it is damaged")


def _is_old_tar(start: bytes) -> bool:
    """Whether a header of a tar archive without a mark: its sum is written in it."""
    digits = start[148:154].strip(b" \0")
    if len(start) < 512 or not digits.isdigit() or max(digits) > ord("7"):
        return False
    return int(digits, 8) == sum(start[:148]) + 8 * 32 + sum(start[156:])


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names in a file that `load` would refuse, without loading it.

    >>> import argparse, io
    >>> import tgraph as tg
    >>> file = io.BytesIO()
    >>> tg.save(argparse.Namespace(lr=0.1), file)
    >>> _ = file.seek(0)
    >>> tg.serialization.get_unsafe_globals_in_checkpoint(file)
    ['argparse.Namespace']
    """
    every: list[Allowed] = []

    def collecting() -> Allowed:
        every.append(Allowed(collect=True))
        return every[-1]

    with use_context(EAGER), open(f, "rb") if _is_path(f) else nullcontext(f) as file:
        _Reading(FileSource(file), "cpu", False).result(collecting, "utf-8")
    return sorted({name for each in every for name in each.unknown})
