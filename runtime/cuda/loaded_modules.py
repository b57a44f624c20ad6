"""Modules of kernels on devices: plans of one text share one."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from ..device import Device
from ..plan_steps import CudaStep, LaunchStep
from . import backend, nvrtc
from .devices import architecture
from .launches import allow_shared


class LoadedModule:
    """The kernels of a module's text on a device, as long as a plan holds it."""

    def __init__(self, source: str, device: Device) -> None:
        self._module = backend.cupy().cuda.function.Module()
        self._module.load(nvrtc.compile_cubin(source, architecture(device)))
        self._functions: dict[str, Any] = {}
        self._shared: dict[str, int] = {}

    def function(self, name: str) -> int:
        """The driver's handle of a kernel."""
        found = self._functions.get(name)
        if found is None:
            found = self._functions[name] = self._module.get_function(name)
        return int(found.ptr)

    def allow_shared(self, name: str, nbytes: int) -> None:
        """Let launches of a kernel ask for as much shared memory beside what it declares."""
        if nbytes > self._shared.get(name, 0):
            self.function(name)
            allow_shared(name, self._functions[name], nbytes)
            self._shared[name] = nbytes


def loaded_module(source: str, steps: Sequence[CudaStep], device: Device) -> LoadedModule | None:
    """The module of what steps launch, on a device, which must be the current one."""
    launches = [step for step in steps if isinstance(step, LaunchStep)]
    if not launches:
        return None
    kept: weakref.WeakValueDictionary[Any, LoadedModule]
    kept = backend.kept().setdefault(LoadedModule, weakref.WeakValueDictionary())
    key = device, nvrtc.without_comments(source)
    found = kept.get(key)
    if found is None:
        found = kept[key] = LoadedModule(source, device)
    for step in launches:
        found.function(step.name)
        if step.shared:
            found.allow_shared(step.name, step.shared)
    return found
