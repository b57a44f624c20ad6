"""From kernel texts to native addresses; each distinct kernel is compiled once per process."""

from __future__ import annotations

from collections.abc import Iterable

from ...runtime import locks
from ...runtime.jit import compile_module
from .llvm_math import late_definitions
from .llvm_module import KernelText, kernels_module

# Kernels compiled as one module: cheaper than one by one, and a bound on the memory that takes.
BATCH = 12

_addresses: dict[KernelText, int] = {}


def load_kernels(texts: Iterable[KernelText]) -> dict[KernelText, int]:
    """The address of every kernel, compiling in batches those that are new."""
    wanted = list(dict.fromkeys(texts))
    with locks.RUNTIME:
        for small in (False, True):
            new = [text for text in wanted if text not in _addresses and text.small == small]
            for start in range(0, len(new), BATCH):
                _load_batch(new[start : start + BATCH], 1 if small else 3)
        return {text: _addresses[text] for text in wanted}


def _load_batch(texts: list[KernelText], opt: int) -> None:
    named = {f"k{number}": text for number, text in enumerate(texts)}
    whole = kernels_module(named)
    module = compile_module(whole, opt=opt, late=late_definitions(whole))
    for name, text in named.items():
        _addresses[text] = module.address(name)
