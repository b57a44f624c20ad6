"""A plan together with the memory of its results: arrays in, arrays out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...runtime import memory
from ...runtime.plan import Plan
from ..ir import TensorType
from ..kernel.checks import Checks, error_of
from .executable import Executable
from .output_memory import OutputMemory

if TYPE_CHECKING:  # who finds a plan on disk imports no more than this
    from .program import Program

Array = np.ndarray[Any, Any]


class ReadyPlan(Executable):
    """A plan of native code, ready to run.

    `run` takes one array per graph input and gives one per output. Outputs own fresh memory,
    except donated ones: those are written into the array of the input that they replace, which is
    returned for them. Where an input that is overwritten is read-only, `run` raises ReadOnlyError
    and does nothing. `refuses_gaps`: where an array is not C-contiguous for which no strides were
    given, `run` raises NotDenseError and does nothing. `checks` has what the steps of the plan
    check, by their number.
    """

    refuses_gaps = True

    def __init__(self, plan: Plan, outputs: OutputMemory, checks: Mapping[int, Checks]) -> None:
        self.plan, self.checks = plan, checks
        self.donate = outputs.donate
        self._outputs, self._simple = outputs, outputs.simple
        self._fresh = [
            (memory.allocator(type_.nbytes), type_.shape, type_.dtype.numpy)
            for type_ in outputs.types(outputs.fresh)
        ]

    @property
    @abstractmethod
    def whole(self) -> ReadyPlan:
        """The same with all that can be told of it."""

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Run on `inputs`; the error of a failed check, such as a position outside its axis."""
        fresh = [empty(shape, dtype) for empty, shape, dtype in self._fresh]
        stopped = self.plan.run((*inputs, *fresh))
        if stopped:
            self._raise(stopped)
        return fresh if self._simple else self._outputs.results(inputs, fresh, _empty)

    def wait_for_checks(self) -> None:
        """A call has raised the errors of its checks before it returns."""

    def _raise(self, stopped: int) -> None:
        raise error_of(self.checks[stopped - 1], self.plan.status.tolist())


class LatePlan(ReadyPlan):
    """A plan alone. What else is to be told of it is made when it is asked for."""

    def __init__(
        self,
        plan: Plan,
        outputs: OutputMemory,
        checks: Mapping[int, Checks],
        make: Callable[[], ReadyPlan],
    ) -> None:
        super().__init__(plan, outputs, checks)
        self._make = make
        self._whole: ReadyPlan | None = None

    @property
    def whole(self) -> ReadyPlan:
        if self._whole is None:
            self._whole = self._make()
        return self._whole

    @property
    def program(self) -> Program:
        return self.whole.program


def _empty(type_: TensorType) -> Array:
    return np.empty(type_.shape, type_.dtype.numpy)
