"""NumPy, and CuPy with NumPy's code: the modules for NumPy loaded again over CuPy's arrays."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from ...case import Array, Case
from ...measure import doubled
from ..workloads import GpuWorkload

BASE = f"{__package__.removesuffix('.gpu.contenders')}.contenders.with_numpy"
OURS = f"{__package__}.with_numpy"


def loaded(name: str, replaced: Mapping[str, Any]) -> ModuleType:
    """A module of its own of that name's code, with some of its names replaced."""
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(module).update(replaced)
    return module


class Contender:
    """Variants: "numpy", "cupy", and "cupy_fuse" with `cupy.fuse` around what is elementwise."""

    def __init__(self, variant: str, device: str, threads: int) -> None:
        fuses = variant == "cupy_fuse"
        self.library = importlib.import_module("numpy" if variant == "numpy" else "cupy")
        names: dict[str, Any] = {"np": self.library}
        base = loaded(BASE, {**names, "fused": self.library.fuse()} if fuses else names)
        if variant != "numpy":
            names["erf"] = importlib.import_module("cupyx.scipy.special").erf
        self.module = loaded(OURS, {**names, "base": base})

    def versions(self) -> dict[str, str]:
        return {self.library.__name__: self.library.__version__}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        make = getattr(self.module, name, None) or getattr(self.module.base, name)

        def on_device(data: Mapping[str, Array]) -> Case:
            given = {name: self.library.array(value) for name, value in data.items()}
            case: Case = make(given)
            return Case(case.call, lambda result: [*map(self._fetched, case.fetch(result))])

        return on_device

    def _fetched(self, array: Any) -> Array:
        return array if isinstance(array, np.ndarray) else self.library.asnumpy(array)

    def synchronize(self, result: Any) -> None:
        if self.library is not np:
            self.library.cuda.get_current_stream().synchronize()

    def release(self) -> None:
        if self.library is not np:
            self.library.get_default_memory_pool().free_all_blocks()

    def reference(self, workload: GpuWorkload, data: Mapping[str, Array]) -> list[Array]:
        """The results in float64."""
        case = getattr(self, workload.implementation)(doubled(data))
        for _ in range(workload.steps):
            result = case.call()
        return case.fetch(result)

    def copy(self, size: int) -> Case:
        """Not a workload: copies as many bytes."""
        source = self.library.ones(size, np.uint8)
        target = self.library.zeros_like(source)
        return Case(lambda: self.library.copyto(target, source), lambda result: [])
