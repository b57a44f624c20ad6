"""Plans as bytes: numbers, names, and the LLVM text of the kernels that they call."""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...runtime import jit
from ...runtime.plan import Plan
from ...runtime.plan_steps import (
    BindStep,
    BranchStep,
    BufferRef,
    CopyStep,
    EpilogueStep,
    GemmStep,
    JumpStep,
    KernelStep,
    Spread,
    Step,
    kernel_of,
    with_kernel,
)

Checks = Mapping[int, tuple[tuple[int, str], ...]]
"""Step -> what it checks: the number of a node that has the line, and the message."""

MOST_CONSTANT_BYTES = 1 << 20

_CLASSES = (
    BufferRef, KernelStep, GemmStep, EpilogueStep, CopyStep, Spread, BindStep, BranchStep, JumpStep
)  # fmt: skip
_NUMBERS = {each: number for number, each in enumerate(_CLASSES)}
_PLAIN = frozenset((int, float, str, bool, type(None)))


class NotPlain(Exception):
    """A part of a plan that means something in this process only, such as a Python function."""


def to_bytes(plan: Plan, checks: Checks) -> bytes:
    """A plan and what it checks, for `from_bytes` of any process; NotPlain where that cannot be."""
    if sum(each.nbytes for each in plan.constants.values()) > MOST_CONSTANT_BYTES:
        raise NotPlain("large constants")
    kernels = {kernel.address: None for step in plan.steps if (kernel := kernel_of(step))}
    number = {address: at for at, address in enumerate(kernels)}
    code = _Code()
    functions = tuple(map(code.function, kernels))
    steps = [_located(step, number) for step in plan.steps]
    return marshal.dumps(
        (
            tuple(map(tuple, code.sources)),
            tuple(code.links),
            functions,
            tuple(map(_plain, steps)),
            (
                *(plan.arena_bytes, plan.num_slots),
                *(tuple(plan.written), tuple(plan.dense), tuple(plan.pointers)),
            ),
            tuple((slot, each.tobytes()) for slot, each in plan.constants.items()),
            tuple(checks.items()),
        )
    )


def from_bytes(data: bytes) -> tuple[Plan, Checks]:
    """What `to_bytes` was given; kernels are compiled where their objects are not on disk."""
    sources, links, functions, steps, memory, constants, checks = marshal.loads(data)
    modules = _loaded([jit.Source(*each) for each in sources], links)
    addresses = [modules[at].address(name) for at, name in functions]
    arena_bytes, num_slots, written, dense, pointers = memory
    plan = Plan(
        [_located(_made(each), addresses) for each in steps],
        arena_bytes,
        num_slots,
        {slot: np.frombuffer(content, np.uint8).copy() for slot, content in constants},
        written,
        dense,
        pointers,
    )
    return plan, dict(checks)


class _Code:
    """The modules that functions lie in, each behind those that it calls.

    `links` are the names by which they call, with the functions meant.
    """

    def __init__(self) -> None:
        self.sources: dict[jit.Source, int] = {}
        self.links: dict[tuple[str, int, str], None] = {}

    def function(self, address: int) -> tuple[int, str]:
        """The number of a function's module, and its name there."""
        origin = jit.origin(address)
        if origin is None:
            raise NotPlain("code that was not compiled here")
        source, name = origin
        if source not in self.sources:
            (module,) = jit.compile_modules([source])
            for called, at in module.calls.items():
                self.links[called, *self.function(at)] = None
            self.sources[source] = len(self.sources)
        return self.sources[source], name


def _loaded(sources: list[jit.Source], links: Iterable[tuple[str, int, str]]) -> list[jit.Module]:
    """Modules, of which later ones call earlier ones by the names in `links`."""
    jit.make_objects(sources)
    modules: list[jit.Module] = []
    for source in sources:
        modules += jit.compile_modules([source])
        for called, at, name in links:
            if at == len(modules) - 1:
                jit.add_symbol(called, modules[at].address(name))
    return modules


def _located(step: Step, addresses: Mapping[int, int] | Sequence[int]) -> Step:
    kernel = kernel_of(step)
    return step if kernel is None else with_kernel(step, address=addresses[kernel.address])


def _plain(value: Any) -> Any:
    """Records as lists, of which there are no others, that begin with the number of their class."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple:
        return tuple(map(_plain, value))
    if kind not in _NUMBERS:
        raise NotPlain(kind.__name__)
    return [_NUMBERS[kind], *(_plain(getattr(value, name)) for name in kind.__match_args__)]


def _made(value: Any) -> Any:
    if type(value) is tuple:
        return tuple(map(_made, value))
    if type(value) is list:
        number, *fields = value
        return _CLASSES[number](*map(_made, fields))
    return value
