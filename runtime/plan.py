"""Plans: what is executed. A list of steps over buffers, run by one native call.

A plan is a table that a generic native runner walks (see `plan_native`), so that making one costs
no compilation beyond that of its kernels. Buffers are named by slot and byte offset: slot 0 is the
plan's own arena for intermediate results, the others are arrays, either given at every call
(inputs, parameters, outputs) or bound once (constants).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from . import blas, interrupts, memory, plan_native
from .gemm_epilogue import MOST_ARGUMENTS
from .plan_gemm import calls_blas, native_product
from .plan_steps import (
    ARENA_SLOT,
    RANGES_PER_THREAD,
    STATUS_SLOT,
    ArrayRef,
    BindStep,
    BranchStep,
    BufferRef,
    CopyStep,
    GemmStep,
    JumpStep,
    KernelStep,
    PythonStep,
    Step,
    references,
)

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "ARENA_SLOT",
    "STATUS_SLOT",
    "ArrayRef",
    "BufferRef",
    "CopyStep",
    "GemmStep",
    "KernelStep",
    "NotDenseError",
    "Plan",
    "PythonStep",
    "ReadOnlyError",
    "Step",
]

COPY_GRAIN = 256 << 10
_FORMATS = {
    "bool": 1, "uint8": 1, "int8": -1, "uint16": 2, "int16": -2, "uint32": 4, "int32": -4,
    "uint64": 8, "int64": -8,
}  # fmt: skip
"""How the numbers of branches are read: see `plan_native`."""

Array = np.ndarray[Any, Any]


class ReadOnlyError(ValueError):
    """An array that a plan was to write must not be written; nothing has happened."""


class NotDenseError(ValueError):
    """An array that a plan reads or writes as dense is not; nothing has happened."""


class Plan:
    """Steps that are ready to run.

    `arena_bytes` is the size of slot 0; slots 1 to `num_slots` - 1 are arrays: those in
    `constants` are bound here for good (and kept alive), those in `pointers` are bound to places in
    others by steps, the rest are given to `run` in the order of their slots. Those in `written`
    must be writeable in NumPy's sense: where one is not, a call raises ReadOnlyError before it does
    anything, and where one of those in `dense` is not C-contiguous, NotDenseError. Several threads
    may run one plan at once; each call has its own arena.

    >>> source, target = np.arange(3.0), np.zeros(3)
    >>> plan = Plan([CopyStep("x", BufferRef(2), BufferRef(1), 24)], 0, 3)
    >>> plan.run((source, target))
    0
    >>> target
    array([0., 1., 2.])
    """

    def __init__(
        self,
        steps: Sequence[Step],
        arena_bytes: int,
        num_slots: int,
        constants: Mapping[int, Array] | None = None,
        written: Iterable[int] = (),
        dense: Iterable[int] = (),
        pointers: Iterable[int] = (),
    ) -> None:
        self.steps = tuple(steps)
        self.arena_bytes = arena_bytes
        self.keeps_arena = True  # between calls, which then have it without asking for memory
        self.spare: list[Array] | None = None  # where plans leave an arena for each other if not
        self.num_slots = max(num_slots, 1)
        self.constants = dict(constants or {})
        self.written, self.dense = frozenset(written), frozenset(dense)
        self.pointers = frozenset(pointers)
        own = self.pointers.union(self.constants)
        self._call_slots = [slot for slot in range(1, self.num_slots) if slot not in own]
        self._call_count = len(self._call_slots)
        self._check()
        self._native = plan_native.load()
        self._table, self._index_of = self._encode()
        self._frames: list[_Frame] = []
        self._failed = threading.local()

    def run(self, arrays: Sequence[Array]) -> int:
        """Run all steps on `arrays`, one for each slot that is neither the arena nor constant.

        The arrays must have the sizes and types that the steps were made for: that is the
        caller's duty. Returns 0, or the 1-based index of the step that stopped the plan by
        setting the status.
        """
        items = arrays if type(arrays) is tuple else tuple(arrays)
        if len(items) != self._call_count:
            raise ValueError(f"plan: expected {self._call_count} arrays, got {len(items)}")
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = _Frame(self)
        if frame.arena is None:
            frame.take_arena(self.arena_bytes, self.spare)
        try:
            position = frame.start(items)
            return self._go_on(frame, items, position) if position else 0
        finally:
            if not self.keeps_arena:
                if self.spare is not None and frame.arena is not None:
                    self.spare[:] = [frame.arena]
                frame.arena = None
            self._frames.append(frame)

    @property
    def status(self) -> Array:
        """The status of the last call of this thread that was stopped: int64[8].

        Word 0 is a code other than 0, the others are what the step stored beside it.
        """
        status: Array | None = getattr(self._failed, "status", None)
        return np.zeros(plan_native.STATUS_WORDS, np.int64) if status is None else status

    def describe(self) -> str:
        """A line per step, for people."""
        head = f"plan: {len(self.steps)} steps, arena {self.arena_bytes} bytes, "
        head += f"{self._call_count} arrays, {len(self.constants)} constants"
        lines = [f"{number:4d}  {step}" for number, step in enumerate(self.steps, 1)]
        return "\n".join([head, *lines])

    def __repr__(self) -> str:
        return f"<{self.describe().splitlines()[0]}>"

    def _go_on(self, frame: _Frame, items: tuple[Array, ...], position: int) -> int:
        """Run Python steps and the native segments behind them; loops pause for signals."""
        if -plan_native.READ_ONLY < position <= -plan_native.NOT_AN_ARRAY:
            items = self._exact(items)
            position = frame.start(items)
        if position <= -plan_native.NOT_DENSE:
            slot = self._call_slots[-position - plan_native.NOT_DENSE]
            raise NotDenseError(f"plan: the array for slot {slot} must be C-contiguous")
        if position <= -plan_native.READ_ONLY:
            slot = self._call_slots[-position - plan_native.READ_ONLY]
            raise ReadOnlyError(f"plan: the array for slot {slot} must not be written")
        while position > 0:
            step = self.steps[self._index_of[position]]
            if isinstance(step, JumpStep):
                interrupts.deliver()
                position = self._native.walk(frame.address, position, items)
                continue
            assert isinstance(step, PythonStep)
            self._call(step, frame, items)
            if frame.words[0]:
                position = -position
                break
            position = self._native.walk(frame.address, position + 1, items)
        if position == 0:
            return 0
        self._failed.status = frame.words[: plan_native.STATUS_WORDS].copy()
        return self._index_of[-position] + 1

    def _exact(self, items: tuple[Any, ...]) -> tuple[Array, ...]:
        """Subclasses of ndarray (such as memmap) as plain arrays over the same memory."""
        for slot, item in zip(self._call_slots, items):
            if not isinstance(item, np.ndarray):
                raise TypeError(
                    f"plan: expected a NumPy array for slot {slot}, got {type(item).__name__}"
                )
        return tuple(np.asarray(item) for item in items)

    def _call(self, step: PythonStep, frame: _Frame, items: tuple[Array, ...]) -> None:
        given = dict(zip(self._call_slots, items))
        owner = (frame, frame.arena, items, self)
        inputs = [frame.view(array, given, owner) for array in step.inputs]
        for each in inputs:
            each.flags.writeable = False
        outputs = [frame.view(array, given, owner) for array in step.outputs]
        step.function(*inputs, *outputs)

    def _check(self) -> None:
        for slot, array in self.constants.items():
            if not 1 <= slot < self.num_slots:
                raise ValueError(
                    f"plan: constant in slot {slot}, expected 1 to {self.num_slots - 1}"
                )
            if not isinstance(array, np.ndarray):
                raise TypeError(f"plan: constant in slot {slot} is a {type(array).__name__}")
        for index, step in enumerate(self.steps):
            for ref in references(step):
                if not STATUS_SLOT <= ref.slot < self.num_slots:
                    raise ValueError(
                        f"plan: {step.name} uses slot {ref.slot}, the plan has {self.num_slots}"
                    )
            if not self.pointers.issuperset(_bound(step)):
                raise ValueError(f"plan: {step.name} binds slots that are no pointers")
            if not all(0 <= index + by <= len(self.steps) for by in _leads(step)):
                raise ValueError(f"plan: {step.name} leads to steps that the plan does not have")

    def _encode(self) -> tuple[npt.NDArray[np.int64], dict[int, int]]:
        """The table, and the index of the step at each position of it."""
        asks = any(map(_limits_blas, self.steps))
        library = blas.load() if asks else None
        get, limit = (library.get_threads, library.set_threads) if library else (0, 0)
        first = plan_native.HEAD + self._call_count
        head = [first, self._call_count, get, limit, self._scratch_offset(), id(np.ndarray)]
        words = [*head, *map(self._slot_word, self._call_slots)]
        encoded = [*map(_encode_step, self.steps), [plan_native.END]]
        positions = list(accumulate(map(len, encoded), initial=len(words)))
        for index, step in enumerate(self.steps):
            if isinstance(step, BranchStep):
                encoded[index][5:] = [positions[index + by] for by in step.by]
            elif isinstance(step, JumpStep):
                encoded[index][1] = positions[index + step.by]
        table = [*words, *(word for each in encoded for word in each)]
        index_of = {positions[index]: index for index in range(len(self.steps))}
        return np.array(table, np.int64), index_of

    def _slot_word(self, slot: int) -> int:
        written = plan_native.WRITTEN if slot in self.written else 0
        return slot + written + (plan_native.DENSE if slot in self.dense else 0)

    def _scratch_offset(self) -> int:
        return 8 * (plan_native.SLOT_WORDS + self.num_slots)

    def _frame_words(self) -> int:
        most = max(map(_argument_count, self.steps), default=0)
        return self._scratch_offset() // 8 + most + 1


class _Frame:
    """What one call in progress owns: status, addresses, arena."""

    __slots__ = ("address", "arena", "start", "words")

    def __init__(self, plan: Plan) -> None:
        self.words = memory.arena(8 * plan._frame_words()).view(np.int64)
        self.start = plan._native.starter(self.words)
        self.words[:] = 0
        self.address = self.words.ctypes.data
        first = plan_native.SLOT_WORDS
        self.words[plan_native.TABLE_WORD] = plan._table.ctypes.data
        self.words[first + STATUS_SLOT] = self.address
        self.arena: Array | None = None
        for slot, array in plan.constants.items():
            self.words[first + slot] = array.ctypes.data

    def take_arena(self, nbytes: int, spare: list[Array] | None) -> None:
        try:
            arena = spare.pop() if spare else None
        except IndexError:  # another thread was quicker
            arena = None
        if arena is None or arena.nbytes < nbytes:
            arena = memory.arena(nbytes)
        self.arena = arena
        self.words[plan_native.SLOT_WORDS + ARENA_SLOT] = arena.ctypes.data

    def view(self, array: ArrayRef, given: Mapping[int, Array], owner: object) -> Array:
        """A view of an array of the call, or of the plan's memory, which keeps `owner` alive."""
        item = given.get(array.ref.slot)
        if item is not None and _is_wanted(item, array):
            return item.view()
        address = int(self.words[plan_native.SLOT_WORDS + array.ref.slot]) + array.ref.offset
        return np.asarray(_Memory(array, address, owner)).view(array.dtype)


def _is_wanted(item: Array, wanted: ArrayRef) -> bool:
    """Whether an array is all that a step asks for, as it is."""
    if wanted.ref.offset or item.shape != wanted.shape or item.dtype != wanted.dtype:
        return False
    if wanted.strides is None:
        return item.flags.c_contiguous
    return item.strides == wanted.strides


class _Memory:
    """Memory in NumPy's array interface (version 3), which knows any address and strides."""

    def __init__(self, array: ArrayRef, address: int, owner: object) -> None:
        self.owner = owner
        native = array.dtype.kind in "biufc"
        self.__array_interface__ = {
            "version": 3,
            "shape": array.shape,
            # Types that NumPy does not have by itself travel as unsigned numbers of their size: as
            # raw bytes, "|V2", they end NumPy 2.1.0 with a segmentation fault.
            "typestr": array.dtype.str if native else f"=u{array.dtype.itemsize}",
            "data": (address, False),
            "strides": array.strides,
        }


def _argument_count(step: Step) -> int:
    """The addresses that a native step finds in the frame."""
    if isinstance(step, GemmStep) and step.then is not None:
        return 3 + MOST_ARGUMENTS
    return len(references(step))


def _limits_blas(step: Step) -> bool:
    if isinstance(step, KernelStep):
        return step.limits_blas
    return isinstance(step, GemmStep) and calls_blas(step)


def _leads(step: Step) -> tuple[int, ...]:
    """How many steps further a step may go on, where it is not the next one."""
    if isinstance(step, BranchStep):
        return step.by
    return (step.by,) if isinstance(step, JumpStep) else ()


def _bound(step: Step) -> tuple[int, ...]:
    """The slots whose beginnings a step changes."""
    if isinstance(step, JumpStep):
        return tuple(slot for pair in step.exchanged for slot in pair)
    return step.slots if isinstance(step, BindStep) else ()


def _encode_step(step: Step) -> list[int]:
    match step:
        case KernelStep():
            return _native(
                *(step.address, step.args, step.extent, step.grain, RANGES_PER_THREAD),
                step.parameters,
            )
        case GemmStep():
            product = native_product(step)
            if product is None:
                return []
            body, args, extent, grain, split, parameters = product
            return _native(body, args, extent, grain, split, parameters)
        case CopyStep():
            body, args = plan_native.load().copy, (step.dst, step.src)
            return _native(body, args, step.nbytes, COPY_GRAIN, RANGES_PER_THREAD)
        case PythonStep():
            return [plan_native.PYTHON]
        case BindStep():
            bound = zip(step.slots, step.places, strict=True)
            words = [word for slot, ref in bound for word in (slot, ref.slot, ref.offset)]
            return [plan_native.BIND, len(step.slots), *words]
        case BranchStep():  # positions are known once all steps are encoded, as a jump's
            number = _FORMATS[step.dtype]
            place = step.index.slot, step.index.offset
            return [plan_native.BRANCH, *place, number, len(step.by), *step.by]
        case JumpStep():
            pairs = [slot for pair in step.exchanged for slot in pair]
            return [plan_native.JUMP, 0, len(step.exchanged), *pairs]


def _native(
    body: int,
    args: tuple[BufferRef, ...],
    extent: int,
    grain: int,
    split: int,
    parameters: Sequence[int] = (),
) -> list[int]:
    if extent <= 0:
        return []
    places = [word for ref in args for word in (ref.slot, ref.offset)]
    size = 7 + len(places) + len(parameters)
    head = [plan_native.NATIVE, size, body, extent, grain, split, len(args)]
    return [*head, *places, *parameters]
