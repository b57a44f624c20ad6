"""Fusion for CUDA: what hand-written kernels compute is left alone, and reads views as they lie.

These nodes are convolutions, and additions at positions that are worth a sort.
"""

from __future__ import annotations

from functools import cached_property

from ...fusion.rules import FusionRules, is_step, is_virtual_source
from ...ir import Family, Node
from ...ir import primitives as p
from ...kernel.kernel import Kernel
from ...kernel.kernel_io import BufferLayout
from ...kernel.kernel_needs import KernelNeeds
from ...kernel.memory_views import View, strided_view
from ...passes.split_reductions import GPU_WALK, GPU_WALKED
from .contractions import schedule_contraction
from .machine import GPU
from .scatter_form import ScatterForm, adds, flat_stride, is_worth_a_sort, scatter_form

_VIEWS = frozenset((p.reshape, p.permute, p.slice_, p.broadcast, p.flip, p.barrier))

# A number that takes more operations than this is computed once, not by each of so many threads.
COSTLY_NUMBER = 24
MANY_READERS = 4096
# Columns of which a block of 512 threads keeps sums in registers, of all sums together.
MOST_SUMMED = 1 << 13


class CudaRules(FusionRules):
    """The rules of plans for CUDA."""

    machine = GPU

    def has_epilogues(self, node: Node) -> bool:
        """Only where that is asked for: beside cublasLt it has not been measured."""
        return self.contractions and node.primitive is p.matmul and node.type.dtype.kind == "float"

    def contraction_price(self, kernel: Kernel, needs: KernelNeeds) -> float:
        """Nothing: what it takes beside cublasLt is not known, and who asks for it is to get it."""
        schedule_contraction(kernel)
        return 0.0

    @cached_property
    def scatters(self) -> dict[Node, ScatterForm]:
        """The form of those additions that are sorted."""
        return {node: form for node in self.graph.nodes if (form := _sorted_form(node))}

    def is_costly_number(self, node: Node, spent: float) -> bool:
        """Threads cannot move a number out of their loop, as the CPU does: each computes it.

        The powers in Adam's bias correction are hundreds of float64 operations, for each thread.
        """
        if node.type.numel != 1 or spent <= COSTLY_NUMBER:
            return False
        return any(
            reader.primitive.family in (Family.ELEMENTWISE, Family.VIEW)
            and reader.type.numel >= MANY_READERS
            for reader in self.graph.consumers[node]
        )

    def adds_up_rows(self, *nodes: Node) -> bool:
        """The pieces of sums of columns that `split_reductions` makes, as many as threads keep."""
        columns = sum([node.shape[-1] for node in nodes if self._is_walk(node)])
        return columns <= MOST_SUMMED and all(map(self._is_walk, nodes))

    def _is_walk(self, node: Node) -> bool:
        """Whether a node adds up a few rows each for a sum of columns."""
        is_sum = node.primitive is p.sum_ and node.attrs["axes"] == (1,)
        if not is_sum or node.inputs[0].type.ndim != 3 or node.attrs["keepdims"]:
            return False
        _, length, columns = node.inputs[0].shape
        if length not in GPU_WALK or columns not in GPU_WALKED:
            return False
        readers = self.graph.consumers
        behind = [
            reader
            for each in readers[node]
            for reader in (readers[each] if each.primitive is p.cast else (each,))
        ]
        return all(each.primitive is p.sum_ and each.attrs["axes"] == (0,) for each in behind)

    def is_template(self, node: Node) -> bool:
        """Whether a hand-written kernel computes `node`."""
        return node.primitive is p.convolution or node in self.scatters

    def is_step(self, node: Node) -> bool:
        return is_step(node) or node in self.scatters

    def step_operands(self, step: Node) -> list[Node]:
        if step in self.scatters and starts_from_number(step):
            return [self.step_operand(step, each) for each in step.inputs[1:]]
        return super().step_operands(step)

    def find_operand(self, step: Node, operand: Node) -> Node:
        if not self.is_template(step):
            return super().find_operand(step, operand)
        base = _view_base(operand)
        if base is operand or is_virtual_source(base):
            return operand
        view = strided_view(operand, base, self.buffer(base))
        if view is None:
            return operand
        return base if step not in self.scatters or self._suits(step, operand, view) else operand

    def _suits(self, step: Node, operand: Node, view: View) -> bool:
        """Whether the kernels of a scatter can read an operand through this view."""
        return all(
            scatter_steps(step, self.scatters[step], number, view) is not None
            for number, each in enumerate(step.inputs)
            if each is operand
        )


def starts_from_number(node: Node) -> bool:
    """Whether a scatter begins with one number everywhere, which lies nowhere in memory."""
    return node.inputs[0].primitive is p.full


def scatter_steps(node: Node, form: ScatterForm, number: int, view: View) -> tuple[int, ...] | None:
    """The steps of operand `number` along what the kernels count, if it has them.

    () for the base, which has to be dense; (step of an addition,) for positions; (step of a slice,
    of an addition) for the values, whose rows have to be dense. What is counted once has step 0.
    """
    shape, (strides, offset) = node.inputs[number].shape, view
    if number == 0:
        return () if flat_stride(shape, strides) == 1 and offset == 0 else None
    if number < len(node.inputs) - 1:
        sizes = [shape[axis] for axis in form.index_axes]
        step = flat_stride(sizes, [strides[axis] for axis in form.index_axes])
        return None if step is None else (step,)
    first, last = form.value_axes
    pieces = (slice(0, first), slice(first, last), slice(last, None))
    outer, step, row = (flat_stride(shape[each], strides[each]) for each in pieces)
    if outer is None or step is None or row != 1:
        return None
    return outer if form.lead > 1 else 0, step if form.count > 1 else 0


def _sorted_form(node: Node) -> ScatterForm | None:
    if not adds(node) or not node.type.numel or not node.inputs[-1].type.numel:
        return None
    form = scatter_form(node, _is_expanded(node))
    return form if is_worth_a_sort(node, form) else None


def _is_expanded(node: Node) -> bool:
    """Whether the positions of a `scatter_add` are the same along all axes but their own."""
    if node.primitive is not p.scatter_add:
        return False
    index, axis = node.inputs[1], node.attrs["axis"]
    others = [each for each in range(node.type.ndim) if each != axis]
    if any(index.shape[each] != node.shape[each] for each in others):
        return False
    base = _view_base(index)
    view = strided_view(index, base, BufferLayout.contiguous(base.shape))
    if base is index or view is None:
        return all(index.shape[each] == 1 for each in others)
    return all(index.shape[each] == 1 or view[0][each] == 0 for each in others)


def _view_base(node: Node) -> Node:
    while node.primitive in _VIEWS:
        node = node.inputs[0]
    return node
