"""Asks a stream for the steps of a plan, one after another, with the addresses of a call.

The driver gets a launch's arguments by the addresses at which they lie. So there is one table for
all steps of a plan: words, which a call fills with the addresses of its arrays, and the numbers
that kernels take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..device import Device
from ..plan_steps import (
    BufferRef,
    CopyStep,
    CudaStep,
    GemmStep,
    LaunchStep,
    PythonStep,
    RoutineStep,
    references,
)
from . import backend, factorizations, failures
from .launches import Launch, LaunchError, launch
from .loaded_modules import LoadedModule
from .memory import when_full
from .plan_layout import Part, view_of
from .products import Product, prepare, workspaces_of

if TYPE_CHECKING:
    import numpy.typing as npt

NUMBER_SLOT = -2
"""Where every number is its own address."""
_WORD = 8


def words_of(step: CudaStep) -> tuple[BufferRef, ...]:
    """What a step has in the table: the places that it is told of, then the numbers."""
    if not isinstance(step, LaunchStep) or not step.numbers:
        return references(step)
    return (*step.args, *(BufferRef(NUMBER_SLOT, number) for number in step.numbers))


def products_of(steps: Sequence[CudaStep], device: Device) -> dict[int, Product]:
    """The matrix products among steps, by their number; the device must be the current one."""
    workspaces = workspaces_of(device.index or 0)
    return {
        number: prepare(step, device.index or 0, workspaces)
        for number, step in enumerate(steps)
        if isinstance(step, GemmStep)
    }


class StepRunner:
    """The steps of a plan, ready to be asked for: `words` has what they are told, in their order.

    The number `at` of `words` means what `words_of` has at that place among all steps. `memory` is
    what the addresses point into beside the arrays of a call.
    """

    def __init__(
        self,
        steps: Sequence[CudaStep],
        module: LoadedModule | None,
        products: Mapping[int, Product],
    ) -> None:
        self.steps = steps
        count = sum(len(words_of(step)) for step in steps)
        self.words: npt.NDArray[np.int64] = np.zeros(count, np.int64)
        self.table: npt.NDArray[np.int64] = self.words.ctypes.data + _WORD * np.arange(
            count, dtype=np.int64
        )
        self.calls = self._prepare(module, products)
        self.memory: Any = None

    def _prepare(
        self, module: LoadedModule | None, products: Mapping[int, Product]
    ) -> list[tuple[Callable[..., None], Any, int]]:
        """For every step what runs it, what of it is fixed, and where its words begin."""
        # Functions, not methods of this very object: what it holds is to go as soon as it goes.
        calls: list[tuple[Callable[..., None], Any, int]] = []
        first = 0
        for number, step in enumerate(self.steps):
            match step:
                case LaunchStep():
                    assert module is not None
                    table = self.table.ctypes.data + _WORD * first
                    function = module.function(step.name)
                    asked = Launch(step.name, function, step.grid, step.block, step.shared, table)
                    calls.append((StepRunner._launch, asked, first))
                case GemmStep():
                    calls.append((StepRunner._multiply, products[number], first))
                case CopyStep():
                    calls.append((StepRunner._copy, step.nbytes, first))
                case PythonStep():
                    calls.append((StepRunner._call, step, first))
                case RoutineStep():
                    calls.append((StepRunner._factorize, step, first))
            first += len(words_of(step))
        return calls

    def ask(self, stream: int, part: Part | None = None) -> None:
        """Ask a stream, by its pointer, for all steps, or for those of a part."""
        for run, fixed, first in self.calls[part.start : part.stop] if part else self.calls:
            run(self, fixed, first, stream)

    def ask_and_wait(self, stream: Any) -> None:
        """Each step only when the one before it is done; LaunchError names one that fails."""
        stream.synchronize()  # what went wrong before is not the first step's fault
        for number, (run, fixed, first) in enumerate(self.calls):
            run(self, fixed, first, stream.ptr)
            try:
                stream.synchronize()
            except RuntimeError as error:
                what = fixed if isinstance(fixed, Launch) else self.steps[number]
                raise LaunchError(f"step {number}, {what}: {error}") from error
            failures.report()

    def make_ready(self, stream: Any) -> None:
        """Let products choose and allocate before their addresses are captured."""
        words = self.words.tolist()

        def ready() -> None:
            for _, fixed, first in self.calls:
                if isinstance(fixed, Product):
                    a, b, c, *bias = words[first : first + fixed.operands]
                    fixed.ready(a, b, c, stream.ptr, *bias)

        when_full(ready)

    # -- steps ---------------------------------------------------------------------------

    def _launch(self, asked: Launch, first: int, stream: int) -> None:
        launch(asked, stream)

    def _multiply(self, product: Product, first: int, stream: int) -> None:
        a, b, c, *bias = self.words[first : first + product.operands].tolist()
        product.launch(a, b, c, stream, *bias)

    def _copy(self, nbytes: int, first: int, stream: int) -> None:
        target, source = self.words[first : first + 2].tolist()
        runtime = backend.cupy().cuda.runtime
        runtime.memcpyAsync(target, source, nbytes, runtime.memcpyDeviceToDevice, stream)

    def _call(self, step: PythonStep, first: int, stream: int) -> None:
        arrays = [
            view_of(array, int(address), self.memory)
            for array, address in zip(
                (*step.inputs, *step.outputs), self.words[first:].tolist(), strict=False
            )
        ]
        step.function(*arrays)

    def _factorize(self, step: RoutineStep, first: int, stream: int) -> None:
        words = iter(self.words[first:].tolist())
        operands = [view_of(array, next(words), self.memory) for array in step.operands]
        given = [
            None if array is None else view_of(array, next(words), self.memory)
            for array in step.results
        ]
        status = next(words) if step.site else 0
        factorizations.run_step(step, operands, given, status)
