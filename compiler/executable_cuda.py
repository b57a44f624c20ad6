"""A compiled graph on a CUDA device: arrays of CuPy in, arrays of CuPy out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..runtime.cuda import failures
from ..runtime.cuda.arrays import current, empty
from ..runtime.cuda.devices import architecture
from ..runtime.cuda.memory import note_peak, when_full
from ..runtime.cuda.plan import CudaPlan
from ..runtime.device import Device
from .cuda_program import Program
from .fusion import Refusal
from .ir import Graph, TensorType
from .plan_builder import StepInfo

Array = Any  # of CuPy; of NumPy for inputs that come from the host


class CudaExecutable:
    """A graph, all of whose values lie on `device`, fused, generated and loaded.

    `run` takes one array per graph input and gives one per output; the inputs numbered by
    `from_host` are arrays of NumPy. Otherwise as `Executable`, but that nothing is waited for: the
    error of a failed check comes later.
    """

    def __init__(
        self,
        graph: Graph,
        device: Device,
        donate: Mapping[int, int] | None = None,
        strides: Mapping[int, tuple[int, ...]] | None = None,
        from_host: Sequence[int] = (),
    ) -> None:
        self.device = device
        self.program = program = Program(graph, architecture(device), donate, strides)
        self.planning = program.planning
        self.graph, self.donate = self.planning.graph, self.planning.donate
        self.refused: list[Refusal] = program.refused
        self.kernels: list[StepInfo] = list(program.kernels)
        self.plan = CudaPlan(
            device,
            program.source,
            program.steps,
            program.arena_bytes,
            program.num_slots,
            program.constants,
            {1 + number: graph.inputs[number].type.nbytes for number in from_host},
            [1 + source for source in self.planning.direct.values()],
            self._failure if program.checks else None,
        )
        self._copies_results = len(self.planning.direct) < len(self.donate)
        self._fresh = self.planning.types(self.planning.fresh)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Ask the device for the outputs of `inputs`."""
        with current(self.device):
            fresh = when_full(self._allocate)
            note_peak()
            self.plan.run((*inputs, *fresh))
            if self._copies_results and self.program.checks:
                failures.wait_and_report(self.device)
            return self.planning.results(inputs, fresh, _empty)

    def _allocate(self) -> list[Array]:
        return [empty(type_.shape, type_.dtype.numpy) for type_ in self._fresh]

    def _failure(self, code: int, position: int, size: int) -> Exception:
        return self.program.checks[code - 1].error(position, size)


def _empty(type_: TensorType) -> Array:
    return empty(type_.shape, np.dtype(type_.dtype.numpy))
