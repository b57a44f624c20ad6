"""The programs that the tests of the CUDA target share."""

from __future__ import annotations

from typing import Any

import numpy as np
from random_graphs.engines import run_eagerly
from test_ops import Gradients, as_tuple, tensors
from tgraph.compiler.targets.cuda.program import CudaProgram, cuda_program

from tgraph.core import pytree
from tgraph.tracing.record_call import record_call
from tgraph.tracing.recording.recorder import Recorder
from tgraph.tracing.trace_context import Trace


def forward(case: Any) -> tuple[Any, list[Any]]:
    """A row of the table as one function of the inputs of all its dtypes, and these inputs."""
    inputs = [tensors(case.arrays(dtype)) for dtype in case.dtypes]

    return owned(lambda *given: [as_tuple(case.function(*each)) for each in given]), inputs


def owned(function: Any) -> Any:
    """The same function with copies as results: those that are views need no kernel."""
    return lambda *inputs: pytree.map(lambda each: each.clone(), function(*inputs))


def gradient(case: Any) -> tuple[Any, list[Any]]:
    """The first derivative of a row, with float64 inputs, and these."""
    row = Gradients(case)
    return owned(row.first), [each.detach().requires_grad_() for each in row.arguments()]


def program_of(function: Any, inputs: list[Any]) -> tuple[CudaProgram, list[Any], list[Any]]:
    """The program of a function, the arrays that it takes, and its results as eager code has them.

    It takes the function's arguments and the tensors that it captures.
    """
    leaves, spec = pytree.flatten((tuple(inputs), {}))
    names = [f"x{number}" for number in range(len(leaves))]
    recorder = Recorder()
    trace = Trace(recorder.names)
    call = record_call(function, leaves, spec, names, trace, recorder, gradients=False)
    sources = [each.source for each in call.inputs]
    tensors = [each.key if each.kind == "captured" else leaves[each.key] for each in sources]
    arrays = [np.asarray(each.detach().numpy(), order="C") for each in tensors]
    values = run_eagerly(call.graph, arrays)
    return cuda_program(call.graph), arrays, [values[node] for node in call.graph.outputs]
