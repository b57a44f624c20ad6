"""Asks a stream for the steps of a plan, one after another, with the addresses of a call.

The driver gets a launch's arguments by the addresses at which they lie. So there is one table for
all steps of a plan: words, which a call fills with the addresses of its arrays, and the numbers
that kernels take. Branches and loops are walked here: what decides is read from the device, which
is waited for, but for loops whose turns are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import interrupts
from ..device import Device
from ..plan_steps import (
    BindStep,
    BranchStep,
    BufferRef,
    CopyStep,
    CudaStep,
    GemmStep,
    JumpStep,
    LaunchStep,
    PythonStep,
    RoutineStep,
    Step,
    TurnsStep,
    references,
)
from . import backend, factorizations, failures, in_flight
from .launches import Launch, LaunchError, launch
from .loaded_modules import LoadedModule
from .memory import when_full
from .places import NUMBER_SLOT, Places
from .plan_layout import view_of
from .products import Product, prepare, workspaces_of

if TYPE_CHECKING:
    import numpy.typing as npt

NO_STOPS: frozenset[int] = frozenset()
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
    what the addresses point into beside the arrays of a call. Plans with branches or loops have
    `places`, whose pointers these move, and `failed`, which gives the error of a check that failed.
    `known` has numbers that the host knows by their places, as they were given to the call.
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
        self.places: Places | None = None
        self.failed: Callable[[], Exception | None] = _nothing
        self.known: Callable[[BufferRef], npt.NDArray[np.uint8] | None] = _nothing
        self.is_straight = not any(map(leads_elsewhere, steps))
        self.left: dict[int, int] = {}  # the turns of loops that have begun, by where these do
        self._decision: Any = None  # pinned memory, to which a number that decides is copied

    def _prepare(
        self, module: LoadedModule | None, products: Mapping[int, Product]
    ) -> list[tuple[Callable[..., Any], Any, int]]:
        """For every step what runs it, what of it is fixed, and where its words begin."""
        # Functions, not methods of this very object: what it holds is to go as soon as it goes.
        calls: list[tuple[Callable[..., Any], Any, int]] = []
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
                case BindStep() | BranchStep() | JumpStep() | TurnsStep():
                    calls.append((StepRunner._walk, number, first))
            first += len(words_of(step))
        return calls

    def ask(self, stream: int, at: int = 0, stops: frozenset[int] = NO_STOPS) -> int:
        """Ask a stream, by its pointer, for the steps from `at` on; where that ends.

        It ends before the first of `stops`.
        """
        if self.is_straight and not stops:
            for run, fixed, first in self.calls[at:] if at else self.calls:
                run(self, fixed, first, stream)
            return len(self.calls)
        if self.places:
            self.places.tell()
        while at < len(self.calls) and at not in stops:
            at = self._ask_for(at, stream)
        return at

    def ask_for(self, at: int, stream: int) -> int:
        """Ask a stream for one step; which one is next."""
        if self.places and not isinstance(self.steps[at], (BranchStep, TurnsStep)):
            self.places.tell()
        return self._ask_for(at, stream)

    def _ask_for(self, at: int, stream: int) -> int:
        run, fixed, first = self.calls[at]
        following: int | None = run(self, fixed, first, stream)
        return at + 1 if following is None else following

    def ask_and_wait(self, stream: Any) -> None:
        """Each step only when the one before it is done; LaunchError names one that fails."""
        stream.synchronize()  # what went wrong before is not the first step's fault
        at = 0
        while at < len(self.calls):
            number, at = at, self.ask_for(at, stream.ptr)
            try:
                stream.synchronize()
            except RuntimeError as error:
                _, fixed, _ = self.calls[number]
                what = fixed if isinstance(fixed, Launch) else self.steps[number]
                raise LaunchError(f"step {number}, {what}: {error}") from error
            failures.report()

    def make_ready(self, stream: Any, at: int, stops: frozenset[int]) -> None:
        """Let products choose and allocate before their addresses are captured."""
        pointers, left = self.pointers, dict(self.left)

        def go_back() -> None:
            self.pointers, self.left = pointers, dict(left)

        def ready() -> None:
            go_back()  # it is asked again where memory had to be given back first
            if self.places:
                self.places.tell()
            number = at
            while number < len(self.calls) and number not in stops:
                _, fixed, first = self.calls[number]
                if isinstance(fixed, Product):
                    a, b, c, *bias = self.words[first : first + fixed.operands].tolist()
                    fixed.ready(a, b, c, stream.ptr, *bias)
                is_control = leads_elsewhere(self.steps[number])
                number = self._ask_for(number, stream.ptr) if is_control else number + 1

        try:
            when_full(ready)
        finally:
            go_back()

    @property
    def pointers(self) -> bytes:
        """Where pointers are."""
        return self.places.pointers if self.places else b""

    @pointers.setter
    def pointers(self, found: bytes) -> None:
        if self.places and found:
            self.places.pointers = found

    # -- steps ---------------------------------------------------------------------------

    def _launch(self, asked: Launch, first: int, stream: int) -> None:
        launch(asked, stream)

    def _multiply(self, product: Product, first: int, stream: int) -> None:
        a, b, c, *bias = self.words[first : first + product.operands].tolist()
        product.launch(a, b, c, stream, *bias)

    def _copy(self, nbytes: int, first: int, stream: int) -> None:
        target, source = self.words[first : first + 2].tolist()
        if target == source:
            return
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

    # -- branches and loops --------------------------------------------------------------

    def _walk(self, at: int, first: int, stream: int) -> int:
        """Do what a step of control flow does; which step is next."""
        step, places = self.steps[at], self.places
        if isinstance(step, TurnsStep):
            left = self.left.pop(at, step.turns)
            if not left:
                return at + step.by
            self.left[at] = left - 1
            return at + 1
        assert places is not None
        if isinstance(step, BranchStep):
            known = self.known(step.index)
            if known is None:
                known = self._read(step.dtype, places.address(step.index), stream)
            chosen = int(known.view(step.dtype)[0])
            return at + step.by[min(max(chosen, 0), len(step.by) - 1)]
        if isinstance(step, BindStep):
            places.bind(step)
            return at + 1
        assert isinstance(step, JumpStep)
        places.exchange(step)
        return at + step.by

    def _read(self, dtype: str, address: int, stream: int) -> npt.NDArray[np.uint8]:
        """A number that the stream computes; the error of a check that failed meanwhile."""
        cuda = backend.cupy().cuda
        if self._decision is None:
            self._decision = failures.host_words(1)
        pinned, word = self._decision
        number: npt.NDArray[np.uint8] = word.view(np.uint8)[: np.dtype(dtype).itemsize]
        try:
            with backend.capturing:
                cuda.runtime.memcpyAsync(
                    number.ctypes.data, address, number.nbytes, cuda.runtime.memcpyDeviceToHost,
                    stream,
                )  # fmt: skip
                cuda.runtime.streamSynchronize(stream)
        except BaseException:
            in_flight.keep(pinned, cuda.get_current_stream())
            raise
        interrupts.deliver()
        failed = self.failed()
        if failed is not None:
            raise failed
        return number


def leads_elsewhere(step: Step | CudaStep) -> bool:
    """Whether what comes next is not simply the step behind this one, or pointers move."""
    return isinstance(step, (BindStep, BranchStep, JumpStep, TurnsStep))


def _nothing(*_: object) -> None:
    return None
