"""CUDA, as far as it goes without a GPU: the programs that functions become, to be read.

Running them on a device is not there yet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .tracing import trace

if TYPE_CHECKING:
    from .compiler.cuda_program import Program

__all__ = ["program"]


def program(
    function: Callable[..., Any], *args: Any, arch: str = "sm_90", **kwargs: Any
) -> Program:
    """What `function(*args, **kwargs)` becomes on CUDA: its kernels as CUDA C, and its launches.

    The function is traced with tensors of the CPU; neither a GPU nor CuPy is needed, and nothing is
    computed. `source` of the result is the text of the kernels, `launches` their launches in order,
    `steps` these and the library calls between them, `buffers` the memory that they work on;
    `str` lists all of it, and `save(folder)` writes it as files. `arch` is the architecture that
    the program is meant for.

    Raises TraceError where the function cannot be traced, ValueError for an unknown `arch`.

    >>> import tgraph as tg
    >>> program = tg.cuda.program(lambda x: tg.softmax(x, -1), tg.ones(64, 512))
    >>> [(launch.name, launch.grid, launch.block) for launch in program.launches]
    [('k0_max_sum_div', 16, (128, 1))]
    >>> print(program)
    program for sm_90
      status status int64[8] 64 bytes
      input x float32[64, 512] 131072 bytes
      output result0 float32[64, 512] 131072 bytes
       0  launch k0_max_sum_div<<<16, (128, 1)>>>(in0 = x float32[32768], out1 = result0 \
float32[32768])
    """
    from .compiler.cuda_program import Program

    return Program(trace(function, *args, **kwargs), arch)
