"""From kernel texts to native addresses; each distinct kernel is compiled once per process."""

from __future__ import annotations

from ....runtime import interrupts, jit
from ....runtime.records import NamedTuple
from .math.functions import late_definitions
from .module_text import KernelText, kernels_module

CHARACTERS = 12_000
"""Kernels are compiled as modules of about so much text: cheaper than one by one; several modules
are compiled at a time, while the next kernels are still being written."""

FEW_CHARACTERS = 3_000
"""Of modules that are smaller than that where there would be none for all threads."""

_addresses: dict[tuple[int, KernelText], int] = {}
"""By the highest level of LLVM's passes, too."""


class Loaded(NamedTuple):
    """Where a kernel's code lies, and the parameters that it takes."""

    address: int
    parameters: tuple[int, ...]


class KernelLoader:
    """Compiles the kernels of a plan, beginning as soon as there are enough for a module.

    Of plans that are made for size after size (`varying`), kernels may have parameters.
    """

    def __init__(self, varying: bool = False) -> None:
        self.varying = varying
        self._texts: dict[KernelText, tuple[KernelText, tuple[int, ...]]] = {}
        self._new: dict[bool, list[KernelText]] = {False: [], True: []}  # by `small`
        self._batches: list[tuple[jit.Source, list[KernelText]]] = []

    def add(self, text: KernelText) -> None:
        """Let `loaded` tell of this kernel, too."""
        if text in self._texts:
            return
        as_it_is = not self.varying or (jit.highest_level, text) in _addresses
        self._texts[text] = (text, ()) if as_it_is else _with_varying_numbers(text)
        text, _ = self._texts[text]
        if (jit.highest_level, text) in _addresses or text in self._new[text.small]:
            return
        new = self._new[text.small]
        new.append(text)
        least = CHARACTERS if len(self._batches) >= jit.THREADS else FEW_CHARACTERS
        if sum(len(each.text) for each in new) >= least:
            self._close(text.small)
            jit.begin(self._batches[-1][0])

    def loaded(self) -> dict[KernelText, Loaded]:
        """Where every kernel lies, when all are compiled."""
        for small, new in self._new.items():
            if new:
                self._close(small)
        modules = jit.compile_modules([source for source, _ in self._batches])
        for module, (_, texts) in zip(modules, self._batches):
            for number, text in enumerate(texts):
                _addresses[jit.highest_level, text] = module.address(f"k{number}")
        self._batches.clear()
        return {
            text: Loaded(_addresses[jit.highest_level, code], parameters)
            for text, (code, parameters) in self._texts.items()
        }

    def _close(self, small: bool) -> None:
        """What is new becomes a module."""
        texts, self._new[small] = self._new[small], []
        named = {f"k{number}": text for number, text in enumerate(texts)}
        whole = kernels_module(named)
        source = jit.Source(whole, 1 if small else 3, late=late_definitions(whole))
        self._batches.append((source, texts))


def _with_varying_numbers(text: KernelText) -> tuple[KernelText, tuple[int, ...]]:
    with interrupts.held():
        from .varying_numbers import with_varying_numbers

    return with_varying_numbers(text)
