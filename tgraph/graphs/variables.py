"""The values that one session has for the variables of its graph, in memory and in files."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import numpy as np

from ..compiled.call_inputs import copies
from ..compiler.ir import Node
from ..core.context import use_context
from ..core.eager_context import EAGER
from ..core.tensor import Tensor, intern_type, wrap
from ..ops.from_data import as_tensor
from ..runtime.arrays import contiguous, copy_elements, copy_of, place, to_host
from ..runtime.device import CPU, Device
from ..runtime.whole_files import written_whole
from ..serialization.errors import LoadError
from .lookup import plain
from .reads import check_array

if TYPE_CHECKING:
    from .graph import Graph

Array = Any  # of NumPy or CuPy


class Variables:
    """Arrays that plans write in place. One that is first asked for begins as its tensor is."""

    def __init__(self, graph: Graph, device: Device) -> None:
        self._graph, self._device = graph, device
        self._arrays: dict[int, tuple[Tensor, Array]] = {}
        self._is_closed = False
        self.lock = threading.RLock()
        for tensor in graph.variables.values():
            self.array(tensor)

    def has(self, tensor: Tensor) -> bool:
        """Whether a tensor of the outside is a variable."""
        return id(tensor) in self._arrays or self._graph.is_variable(tensor)

    def array(self, tensor: Tensor) -> Array:
        """The array of a variable, which stays the same one."""
        found = self._arrays.get(id(tensor))
        if found is None:
            self.check_open()
            (array,) = copies([EAGER.value_of(tensor)])
            if self._is_moved(tensor):
                array = place(contiguous(array), self._device)
            found = self._arrays[id(tensor)] = tensor, array
        return found[1]

    def array_for(self, node: Node, tensor: Tensor) -> Array:
        """The same, for plans that take it for what stands for it in the graph.

        TraceError where the tensor had become another one when the session began.
        """
        array = self.array(tensor)
        check_array(node, tensor._type, None if self._is_moved(tensor) else array)
        return array

    def _is_moved(self, tensor: Tensor) -> bool:
        return self._device is not CPU and tensor._type.device is CPU

    def _device_of(self, tensor: Tensor) -> Device:
        own: Device = tensor._type.device
        return self._device if own is CPU else own

    def get(self, variable: Tensor | str) -> Tensor:
        tensor = self._find(variable)
        with self.lock:
            type_ = tensor._type.with_device(self._device_of(tensor))
            return wrap(copy_of(self.array(tensor)), intern_type(*type_))

    def set(self, variable: Tensor | str, value: Any) -> None:
        tensor = self._find(variable)
        with use_context(EAGER):
            given = value if isinstance(value, Tensor) else as_tensor(value, dtype=tensor.dtype)
            _check(self._name(tensor), tensor, given._type.shape, given._type.dtype.name)
            array = EAGER.value_of(given)
            if given._type.device != self._device_of(tensor):
                array = place(to_host(array), self._device_of(tensor))
        with self.lock:
            copy_elements(self.array(tensor), array)

    def initialize(self) -> None:
        self.check_open()
        with self.lock:
            for tensor, array in self._arrays.values():
                value = EAGER.value_of(tensor)
                if self._is_moved(tensor):
                    value = place(contiguous(value), self._device)
                copy_elements(array, value)

    def close(self) -> None:
        self._is_closed = True
        self._arrays.clear()

    def check_open(self) -> None:
        """RuntimeError for values of a session that is closed."""
        if self._is_closed:
            raise RuntimeError("the session is closed")

    def _find(self, variable: Tensor | str) -> Tensor:
        every = self._graph.variables
        found = every.get(plain(variable)) if isinstance(variable, str) else variable
        if found is None or not self._graph.is_variable(found):
            shown = variable if isinstance(variable, str) else f"tensor of {variable._type}"
            raise KeyError(f"the graph has no variable {shown}; it has {', '.join(every)}")
        return found

    def _name(self, tensor: Tensor) -> str:
        return next(name for name, each in self._graph.variables.items() if each is tensor)

    # --- files ---

    def save(self, path: Any) -> None:
        with self.lock:
            arrays = {
                name: to_host(self.array(each)) for name, each in self._graph.variables.items()
            }
            with written_whole(path) as file:
                _write(file, arrays)

    def restore(self, path: Any, strict: bool) -> None:
        every = self._graph.variables
        saved = _read(os.fspath(path))
        missing, unknown = every.keys() - saved.keys(), saved.keys() - every.keys()
        if strict and (missing or unknown):
            raise ValueError(
                f"{os.fspath(path)} has other variables than the graph: "
                f"missing {sorted(missing)}, unknown {sorted(unknown)}; restore(..., strict=False) "
                "reads those that both have"
            )
        arrays: list[tuple[Tensor, Any]] = []
        for name, tensor in every.items():
            if name not in saved:
                continue
            array, dtype = saved[name], tensor._type.dtype.numpy
            if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
                array = array.view(dtype)  # a type that NumPy's files do not know
            _check(name, tensor, array.shape, array.dtype.name)
            arrays.append((tensor, array))
        with self.lock:
            for tensor, array in arrays:
                copy_elements(self.array(tensor), place(array, self._device_of(tensor)))


def _read(path: str) -> dict[str, Any]:
    """The arrays of a file by their names; LoadError where it is damaged."""
    with open(path, "rb") as opened:
        try:
            with np.load(opened, allow_pickle=False) as file:
                return {name: file[name] for name in file.files}
        except Exception as error:  # NumPy's, zipfile's and zlib's, of eight types
            raise LoadError(
                f"{path!r} is no file of session.save(), or is damaged: {error!s:.200}"
            ) from error


def _write(file: Any, arrays: Mapping[str, Any]) -> None:
    """As `np.savez` does, which has other uses for some names."""
    with ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _check(name: str, tensor: Tensor, shape: tuple[int, ...], dtype: str) -> None:
    type_ = tensor._type
    if tuple(shape) != type_.shape or dtype != type_.dtype.name:
        given = f"{dtype}[{', '.join(map(str, shape))}]"
        raise ValueError(f"variable '{name}' is {type_}, and is given {given}")
