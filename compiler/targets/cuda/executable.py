"""A compiled graph on a CUDA device: arrays of CuPy in, arrays of CuPy out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ....runtime.cuda import failures
from ....runtime.cuda.arrays import array_over, current, empty, memory_block
from ....runtime.cuda.direct_plan import DirectPlan
from ....runtime.cuda.memory import note_peak, when_full
from ....runtime.cuda.plan import CudaPlan
from ....runtime.device import Device
from ...ir import TensorType
from ...kernel.checks import Check, RoutineCheck
from ...plan.executable import Executable
from .program import CudaProgram

Array = Any  # of CuPy; of NumPy for inputs that come from the host


SMALL_BYTES = 64 << 10
"""Results of at most this many bytes are copied out of the plan's own memory."""


class CudaExecutable(Executable):
    """A program on `device`, its kernels compiled and loaded.

    `run` takes one array per graph input and gives one per output; the inputs numbered by
    `from_host` are arrays of NumPy. Otherwise as on the CPU, but that nothing is waited for: the
    error of a failed check comes later, unless it is to be one of `eager` mode. CublasLtError where
    the device has no product of a kind.
    """

    def __init__(
        self,
        program: CudaProgram,
        device: Device,
        from_host: Sequence[int] = (),
        eager: bool = False,
    ) -> None:
        self._program, self.device = program, device
        self.plan = _load(program, device, from_host)
        self.planning, self.donate = program.planning, program.planning.donate
        self._small, self._large = _results(program)
        self._fresh = sorted([*self._small, *self._large])
        self._waits = eager or len(self.planning.direct) < len(self.donate)

    @property
    def program(self) -> CudaProgram:
        return self._program

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Ask the device for the outputs of `inputs`."""
        with current(self.device):
            block, large = when_full(self._allocate)
            note_peak()
            self.plan.run((*inputs, *large), block)
            fresh = self._collected(block, large)
            if self._waits:
                self.wait_for_checks()
            return self.planning.results(inputs, fresh, _empty)

    def wait_for_checks(self) -> None:
        if self._program.checks:
            failures.wait_and_report(self.device)

    def _allocate(self) -> tuple[Any, list[Array]]:
        """One block for all small results, and an array for each large one."""
        block = memory_block(self.plan.small_bytes) if self._small else None
        return block, [empty(type_.shape, type_.dtype.numpy) for type_ in self._large.values()]

    def _collected(self, block: Any, large: list[Array]) -> list[Array]:
        """The results in the order of their slots."""
        if not self._small:
            return large
        found = dict(zip(self._large, large))
        for slot, type_ in self._small.items():
            start = self.plan.small[slot].start
            found[slot] = array_over(block + start, type_.shape, type_.dtype.numpy)
        return [found[slot] for slot in self._fresh]


class EagerExecutable(Executable):
    """A program of eager mode on `device`, its kernels compiled and loaded.

    As `CudaExecutable`, but that nothing is captured, results have memory of their own, and a call
    whose program checks something waits for that, as operations by themselves do.
    """

    def __init__(self, program: CudaProgram, device: Device, from_host: Sequence[int] = ()) -> None:
        self._program, self.device = program, device
        self.plan = _load_direct(program, device, from_host)
        self.planning, self.donate = program.planning, program.planning.donate
        types = self.planning.types(self.planning.fresh)
        self._fresh = [(type_.shape, type_.dtype.numpy) for type_ in types]

    @property
    def program(self) -> CudaProgram:
        return self._program

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Ask the device for the outputs of `inputs`."""
        with current(self.device):
            fresh = when_full(self._allocate)
            self.plan.run((*inputs, *fresh))
            return self.planning.results(inputs, fresh, _empty)

    def wait_for_checks(self) -> None:
        """A call has raised the errors of its checks before it returns."""

    def _allocate(self) -> list[Array]:
        return [empty(shape, dtype) for shape, dtype in self._fresh]


def _results(program: CudaProgram) -> tuple[dict[int, TensorType], dict[int, TensorType]]:
    """The small and the large results by their slots."""
    fresh = program.planning.types(program.planning.fresh)
    slots = dict(enumerate(fresh, 1 + len(program.graph.inputs)))
    small = {slot: type_ for slot, type_ in slots.items() if type_.nbytes <= SMALL_BYTES}
    return small, {slot: type_ for slot, type_ in slots.items() if slot not in small}


def _load(program: CudaProgram, device: Device, from_host: Sequence[int]) -> CudaPlan:
    """The plan of a program on a device, its kernels compiled and loaded."""
    small, _ = _results(program)
    sizes = {slot: type_.nbytes for slot, type_ in small.items()}
    given = _given(program, device, from_host)
    return CudaPlan(**given, small=sizes, pointers=program.pointers)


def _load_direct(program: CudaProgram, device: Device, from_host: Sequence[int]) -> DirectPlan:
    """The plan of a program of eager mode on a device, its kernels compiled and loaded."""
    return DirectPlan(
        **_given(program, device, from_host),
        by_value=[1 + number for number in program.by_value],
        needs_alignment=program.needs_alignment,
    )


def _given(program: CudaProgram, device: Device, from_host: Sequence[int]) -> dict[str, Any]:
    """What both kinds of plans are given."""
    inputs = program.graph.inputs
    return {
        "device": device,
        "source": program.source,
        "steps": program.cuda_steps,
        "arena_bytes": program.arena_bytes,
        "num_slots": program.num_slots,
        "constants": program.constants,
        "from_host": {1 + number: inputs[number].type.nbytes for number in from_host},
        "written": [1 + source for source in program.planning.direct.values()],
        "on_failure": partial(_failed, program.checks) if program.checks else None,
    }


def _failed(
    checks: Sequence[Check | RoutineCheck], code: int, position: int, size: int
) -> Exception:
    """The error of a failed check; a status that is pending holds this, and nothing of the plan."""
    return checks[code - 1].error(position, size)


def _empty(type_: TensorType) -> Array:
    return empty(type_.shape, np.dtype(type_.dtype.numpy))
