"""The engines that are held to each other: each runs a graph on arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
from tgraph.compiler.fusion import pieces
from tgraph.compiler.fusion.fusion import fuse
from tgraph.compiler.fusion.pieces import assemble_pieces
from tgraph.compiler.ir import Graph, Node, TensorType
from tgraph.compiler.kernel import memory_views, regions
from tgraph.compiler.kernel.kernel_interpreter import interpret_kernel
from tgraph.compiler.kernel.kernel_io import BufferLayout
from tgraph.compiler.passes import (
    attention_pattern,
    concatenate_updates,
    convolutions,
    fuse_attention_gradients,
    one_pass_statistics,
    split_scans,
)
from tgraph.compiler.passes.replace_empty import replace_empty
from tgraph.compiler.plan.plan_bytes import NotPlain, from_bytes, to_bytes
from tgraph.compiler.targets.cpu import attention as llvm_attention
from tgraph.compiler.targets.cpu import inner_loops as llvm_inner_loops
from tgraph.compiler.targets.cpu import scan_loops
from tgraph.compiler.targets.cpu import schedule as schedule_cpu
from tgraph.compiler.targets.cpu.executable import CpuExecutable, cpu_executable
from tgraph.compiler.targets.cpu.rules import CpuRules
from tgraph.runtime.arrays import evaluate

Array = np.ndarray[Any, Any]


def run_eagerly(graph: Graph, arrays: Sequence[Array]) -> dict[Node, Array]:
    """The value of every node, one after another."""
    values = dict(zip(graph.inputs, arrays, strict=True))
    for node in graph.nodes:
        if node not in values:
            operands = [values[each] for each in node.inputs]
            attrs = {name: _runnable(each) for name, each in node.attrs.items()}
            values[node] = evaluate(node.primitive.name, operands, attrs)
    return values


def _runnable(attr: Any) -> Any:
    """Graphs inside a branch or loop, as functions of arrays."""
    if isinstance(attr, Graph):
        return lambda _, *arrays: [run_eagerly(attr, arrays)[each] for each in attr.outputs]
    return tuple(map(_runnable, attr)) if type(attr) is tuple else attr


def element_strides(array: Array) -> tuple[int, ...]:
    return tuple(stride // array.itemsize for stride in array.strides)


def irregular_strides(graph: Graph, arrays: Sequence[Array]) -> dict[int, tuple[int, ...]]:
    """Element strides of the inputs that are not contiguous."""
    return {
        number: element_strides(array)
        for number, array in enumerate(arrays)
        if not array.flags.c_contiguous
    }


def run_kernel_interpreter(graph: Graph, arrays: Sequence[Array]) -> list[Array]:
    """Fuse and lower, then interpret each kernel."""
    planned = assemble_pieces(replace_empty(graph), CpuRules.machine)
    found = _KernelRun(planned, arrays).run()
    return [
        each.reshape(node.shape) if node.type.numel else np.zeros(node.shape, each.dtype)
        for node, each in zip(planned.outputs, found, strict=True)
    ]


class _KernelRun:
    def __init__(self, graph: Graph, arrays: Sequence[Array]) -> None:
        self.graph = graph
        self.memory: dict[Node, Array] = {}
        self.given: dict[Node, Any] = dict(zip(graph.inputs, arrays, strict=True))
        layouts: dict[Node, BufferLayout] = {}
        for node, array in self.given.items():
            strides = element_strides(array)
            extent = 1 + sum((n - 1) * s for n, s in zip(array.shape, strides, strict=True))
            if not array.flags.c_contiguous:
                layouts[node] = BufferLayout(strides, 0, extent if array.size else 0)
            extent = extent if array.size else 0
            flat = np.lib.stride_tricks.as_strided(array, (extent,), (array.itemsize,))
            self.memory[node] = flat
        for node in graph.nodes:
            if node.primitive.name == "constant":
                self.memory[node] = np.ascontiguousarray(node.attrs["value"]).reshape(-1)
                self.given[node] = node.attrs["value"]
        self.fused = fuse(CpuRules(graph, layouts))

    def run(self) -> list[Array]:
        for number, group in enumerate(self.fused.groups):
            node = group.roots[0].node
            if node in self.memory:  # made of pieces
                assert set(node.inputs) <= self.memory.keys()
            elif group.kind == "step":
                operands = [self.value(each) for each in node.inputs]
                self.given[node] = evaluate(node.primitive.name, operands, node.attrs)
                if isinstance(node.type, TensorType):
                    flat = np.ascontiguousarray(self.given[node]).reshape(-1)
                    self.memory[node] = flat
            elif node.type.numel:
                self._run_kernel(self.fused.lowering(group, f"k{number}"))
        return [self.value(node) for node in self.graph.outputs]

    def _run_kernel(self, lowering: Any) -> None:
        kernel = lowering.run()
        buffers = []
        for node, param in zip(lowering.param_nodes, kernel.params, strict=True):
            if node is None:
                buffers.append(np.zeros(8, np.int64))
                continue
            if node not in self.memory:
                self.memory[node] = self._fresh(node, param.elements)
            buffers.append(self.memory[node])
        interpret_kernel(kernel, buffers)

    def _fresh(self, node: Node, elements: int) -> Array:
        piece = self.fused.rules.pieces.get(node)
        if piece is None:
            return np.full(elements, 7, node.type.dtype.numpy)
        if piece.whole not in self.memory:
            self.memory[piece.whole] = self._fresh(piece.whole, piece.whole.type.numel)
        return self.memory[piece.whole][piece.offset : piece.offset + elements]

    def value(self, node: Node) -> Array:
        if node in self.given:
            return self.given[node]
        if node in self.memory:
            return self.memory[node].reshape(node.shape)
        operands = [self.value(each) for each in node.inputs]
        result: Array = evaluate(node.primitive.name, operands, node.attrs)
        return result


@contextmanager
def as_if_large() -> Iterator[None]:
    """Small kernels are vectorised, cut and shared among threads too, as large ones are."""
    with (
        patch.object(llvm_inner_loops, "SMALL_WORK", 0),
        patch.object(llvm_inner_loops, "CHUNK", 5),
        patch.object(scan_loops, "WORTHWHILE", 0),
        patch.object(llvm_attention, "KEYS", 3),
        patch.object(schedule_cpu, "SHORT_SCAN", 2),
        patch.object(regions, "MIN_PART", 3),
        patch.object(schedule_cpu, "GRAIN_OPERATIONS", 40),
        patch.object(CpuRules, "machine", replace(CpuRules.machine, most_pieces=1)),
        patch.object(pieces, "ASKED", 1e9),
    ):
        yield


@contextmanager
def small_pieces() -> Iterator[None]:
    """Passes that cut long loops, or change them, do so with short ones too."""
    changed: list[tuple[Any, str, Any]] = [
        (memory_views, "SHORTEST_RUN", 1),
        (convolutions, "FEWEST_OUTPUTS", 1),
        (convolutions, "LEAST_FOR_PHASES", 1),
        (attention_pattern, "FEW_QUERIES", 0),
        (fuse_attention_gradients, "STORED_BYTES", 0),
        (fuse_attention_gradients, "KEYS_OF_PART", 2),
        (concatenate_updates, "FEWEST", 2),
        (one_pass_statistics, "FOR_THREADS", one_pass_statistics.Limits(16, 16, 6, 2, 0)),
        (split_scans, "MIN_ELEMENTS", 6),
        (split_scans, "ENOUGH_ROWS", 1 << 20),
        (split_scans, "PIECES", range(3, 1, -1)),
    ]
    before = [getattr(module, name) for module, name, _ in changed]
    try:
        for module, name, value in changed:
            setattr(module, name, value)
        yield
    finally:
        for (module, name, _), value in zip(changed, before, strict=True):
            setattr(module, name, value)


def run_compiled(
    graph: Graph,
    arrays: Sequence[Array],
    donate: Mapping[int, int] | None = None,
    large: bool = False,
) -> list[Array]:
    """Fused and generated code, twice, and as read from a disk: nothing may differ."""
    with as_if_large() if large else nullcontext():
        executable = cpu_executable(graph, donate, irregular_strides(graph, arrays))
    first = [each.copy() for each in executable.run(_copies(arrays, donate or {}))]
    with suppress(NotPlain):
        _check_restored(executable, first, _copies(arrays, donate or {}))
    fed = _copies(arrays, donate or {})
    before = [each.copy() for each in fed]
    outputs = executable.run(fed)
    _check_ownership(fed, before, outputs, donate or {})
    for one, other in zip(first, outputs, strict=True):
        if one.tobytes() != other.tobytes():
            raise AssertionError("two calls on the same inputs gave different results")
    return outputs


def _check_restored(executable: CpuExecutable, wanted: list[Array], fed: list[Array]) -> None:
    """The plan does the same when it was made of its bytes."""
    plan = executable.plan
    executable.plan, _ = from_bytes(to_bytes(plan, {}))
    for one, other in zip(wanted, executable.run(fed), strict=True):
        if one.tobytes() != other.tobytes():
            raise AssertionError("a stored plan gave different results")
    executable.plan = plan


def _copies(arrays: Sequence[Array], donate: Mapping[int, int]) -> list[Array]:
    """The arrays, those that will be overwritten as copies of the same layout."""
    donated = set(donate.values())
    return [
        _like(array) if number in donated else array for number, array in enumerate(arrays)
    ]  # fmt: skip


def _like(array: Array) -> Array:
    strides = element_strides(array)
    extent = 1 + sum((n - 1) * s for n, s in zip(array.shape, strides, strict=True))
    flat = np.zeros(extent if array.size else 0, array.dtype)
    result = np.lib.stride_tricks.as_strided(flat, array.shape, array.strides)
    result[...] = array
    return result


def _check_ownership(
    fed: Sequence[Array],
    before: Sequence[Array],
    outputs: Sequence[Array],
    donate: Mapping[int, int],
) -> None:
    for number, output in enumerate(outputs):
        if number in donate:
            if output is not fed[donate[number]]:
                raise AssertionError(f"output {number} is not the array of the donated input")
        elif any(np.may_share_memory(output, array) for array in fed):
            raise AssertionError(f"output {number} shares the memory of an input")
    for number, (array, old) in enumerate(zip(fed, before, strict=True)):
        if number not in donate.values() and array.tobytes() != old.tobytes():
            raise AssertionError(f"input {number} was overwritten without being donated")
