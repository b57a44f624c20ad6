"""What the tests of hand-written kernels share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from cuda_tools.shim import Launch, Library
from tgraph.compiler.targets.cuda.kernel_writer import kernel_text
from tgraph.compiler.targets.cuda.module_text import module_text
from tgraph.compiler.targets.cuda.program import CudaProgram
from tgraph.compiler.targets.cuda.template import TemplateSchedule


def golden_text(program: CudaProgram) -> str:
    """The launches of a program, then its kernels without the library in front of them."""
    kernels = program.source.split('extern "C"', 1)
    heads = [f"// {info.schedule.summary()}" for info in program.kernels if info.schedule]
    lines = [f"// {line}".rstrip() for line in str(program).splitlines()]
    return "\n".join([*lines, *heads, f'extern "C"{kernels[1]}'])


def launches_of(programs: Sequence[CudaProgram]) -> tuple[str, list[Launch]]:
    """The hand-written kernels of programs under names of their own, on what they find in a run.

    They run here once, so that each has what those before it left; positions are 0 or 1.
    """
    kernels = [
        [(program.steps[at].args, f"p{number}_{info.name}", info.schedule)
         for at, info in program.info_of_step.items() if _is_template(info)]
        for number, program in enumerate(programs)
    ]  # fmt: skip
    source = module_text(
        kernel_text(schedule, name) for each in kernels for _, name, schedule in each
    )
    library = Library(source)
    launches: list[Launch] = []
    for each in kernels:
        memory: dict[Any, Any] = {}
        for refs, name, schedule in each:
            args = [
                memory.setdefault((ref, param.dtype, param.elements), _buffer(param))
                for ref, param in zip(refs, schedule.kernel.params, strict=True)
            ]
            found = [array.copy() for array in args]
            library.launch(name, schedule.grid, schedule.block, args)
            launches += [
                Launch(name, schedule.grid, schedule.block, found, 0, order, 1)
                for order in ("forward", "shuffled")
            ]
    return source, launches


def _is_template(info: Any) -> bool:
    return isinstance(info.schedule, TemplateSchedule)


def _buffer(param: Any) -> np.ndarray[Any, Any]:
    """Memory for a parameter, exactly as large as it may be addressed."""
    rng = np.random.default_rng(0)
    if param.written:
        return np.zeros(param.elements, param.dtype.numpy)
    if param.dtype.kind == "float":
        return rng.standard_normal(param.elements).astype(param.dtype.numpy)
    return rng.integers(0, 2, param.elements).astype(param.dtype.numpy)
