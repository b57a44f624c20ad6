"""Complex values become pairs of real ones, before any other pass.

What follows, algebra, fusion, code generation, knows real numbers alone. Inputs and outputs of the
graph stay where they are in memory, where a complex number is two floats side by side: they become
real arrays with one more axis of size 2. Who runs the plan gives and gets complex arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...runtime.array_functions_complex import view_as_complex, view_as_real
from ...runtime.dtypes import bool_, float64
from ...runtime.records import record
from ..ir import Builder, Family, Graph, Node, Primitive
from ..ir import primitives as p
from ..ir.complex_numbers import has_complex, is_complex, pair_strides, real_type
from ..ir.host_calls import effect_of
from ..ir.primitive import Attrs
from ..ir.shapes import numel
from .complex_arithmetic import FUNCTIONS, Pair, Real, multiply
from .matching import call, cast, constant, full, part, permute, reshape
from .rewrite import RewriteBuilder

Array = np.ndarray[Any, Any]
Operands = Sequence[Node | Pair]


def split_complex(graph: Graph) -> Graph:
    """`graph` without complex values; itself, where it has none."""
    return _Splitting(graph).graph() if has_complex(graph) else graph


def _split_graphs(attribute: Any) -> Any:
    """An attribute without complex values in its graphs, where it has any."""
    if type(attribute) is tuple:
        return tuple(map(_split_graphs, attribute))
    return split_complex(attribute) if isinstance(attribute, Graph) else attribute


class _Splitting:
    """The graph in the making: `values` has what stands for each node."""

    def __init__(self, graph: Graph) -> None:
        self.build = RewriteBuilder()
        self.values: dict[Node, Node | Pair] = {}
        self.packed: dict[Node, Node] = {}  # complex node -> its parts side by side in memory
        self.source = graph
        self.inputs = [self._input(node) for node in graph.inputs]
        for node in graph.nodes:
            if node not in self.values:
                self.build.node = node
                self.values[node] = self._made(node, [self.values[each] for each in node.inputs])

    def graph(self) -> Graph:
        outputs = [self._joined(node) for node in self.source.outputs]
        return Graph(self.inputs, outputs)

    def _input(self, node: Node) -> Node:
        if not is_complex(node):
            self.values[node] = node
            return node
        type_, attrs = real_type(node.type), dict(node.attrs)
        attrs["type"] = type_
        if "strides" in attrs:
            attrs["strides"] = pair_strides(attrs["strides"])
        given = Node(p.input_, (), attrs, type_, node.where)
        self.build.node = node
        self.values[node] = self._unpacked(node, given)
        return given

    def _unpacked(self, node: Node, pairs: Node) -> Pair:
        self.packed[node] = pairs
        last = pairs.type.ndim - 1
        chosen = (part(self.build, pairs, last, at, at + 1) for at in (0, 1))
        shape = pairs.shape[:-1]
        re, im = (Real(self.build, reshape(self.build, each, shape)) for each in chosen)
        return Pair(re, im)

    def _joined(self, node: Node) -> Node:
        """What stands for a node, complex numbers with their parts side by side."""
        value = self.values[node]
        if isinstance(value, Node):
            return value
        if node not in self.packed:
            self.build.node = node
            shape = (*node.shape, 1)
            pieces = [reshape(self.build, each.node, shape) for each in value]
            self.packed[node] = call(self.build, p.concatenate, *pieces, axis=len(node.shape))
        return self.packed[node]

    def _made(self, node: Node, operands: list[Node | Pair]) -> Node | Pair:
        primitive, build = node.primitive, self.build
        if primitive is p.view_as_real:
            return self._joined(node.inputs[0])
        if primitive is p.view_as_complex:
            return self._unpacked(node, _real(operands[0]))
        if primitive is p.host_call:
            return self._host_call(node)
        if primitive.family is Family.CONTROL:
            return self._control(node)
        if primitive is p.get and is_complex(node):
            return self._unpacked(node, build.rebuild(node, [_real(operands[0])]))
        if not (is_complex(node) or any(isinstance(each, Pair) for each in operands)):
            return build.rebuild(node, [_real(each) for each in operands])
        if primitive in FUNCTIONS:
            made = FUNCTIONS[primitive](*operands)
            return made.node if isinstance(made, Real) else made
        if primitive in _RULES:
            return _RULES[primitive](build, node, operands)
        if primitive in _PARTWISE:
            return _partwise(build, node, operands)
        raise NotImplementedError(f"{primitive.name} of complex numbers, at {node.where}")

    def _control(self, node: Node) -> Node:
        """A branch or a loop, of graphs whose inputs and outputs are arrays of pairs, too."""
        attrs = {name: _split_graphs(value) for name, value in node.attrs.items()}
        operands = [self._joined(each) for each in node.inputs]
        return self.build.apply(node.primitive, operands, attrs, node.where)

    def _host_call(self, node: Node) -> Node:
        """A Python function, which still gets and gives complex arrays."""
        if not (is_complex(node) or any(map(is_complex, node.inputs))):
            return self.build.rebuild(node, [_real(self.values[each]) for each in node.inputs])
        results = node.attrs["results"]
        arrays = node.inputs[:-1] if effect_of(node) == "ordered" else node.inputs
        function = _OfPairs(
            node.attrs["function"],
            tuple(map(is_complex, arrays)),
            tuple(each.dtype.is_complex for each in results),
        )
        types = tuple(real_type(each) if each.dtype.is_complex else each for each in results)
        attrs = {**node.attrs, "function": function, "results": types}
        return self.build.apply(p.host_call, [self._joined(each) for each in node.inputs], attrs)


@record()
class _OfPairs:
    """A function of arrays, of which some are complex, of arrays of their parts."""

    function: Callable[..., Any]
    of: tuple[bool, ...]
    gives: tuple[bool, ...]

    def __call__(self, *arrays: Array) -> tuple[Array, ...]:
        given = [
            view_as_complex(np, np.ascontiguousarray(each)) if is_pair else each
            for each, is_pair in zip(arrays, self.of, strict=True)
        ]
        return tuple(
            np.ascontiguousarray(view_as_real(np, each)) if is_pair else each
            for each, is_pair in zip(self.function(*given), self.gives, strict=True)
        )


def _real(value: Node | Pair) -> Node:
    assert isinstance(value, Node)
    return value


def _partwise(build: Builder, node: Node, operands: Operands, *attrs: Attrs) -> Pair:
    """The same of both parts; what is real, as positions and conditions, goes to both.

    `attrs` are those for each part, unless they are the node's own.
    """
    re, im = (
        build.apply(
            node.primitive,
            [each[at].node if isinstance(each, Pair) else each for each in operands],
            attrs[at] if attrs else node.attrs,
        )
        for at in (0, 1)
    )
    return Pair(Real(build, re), Real(build, im))


_PARTWISE = frozenset({
    p.add, p.sub, p.neg, p.copy, p.where, p.reshape, p.permute, p.broadcast, p.slice_, p.diagonal,
    p.flip, p.concatenate, p.assemble, p.slice_update, p.unfold, p.fold, p.gather, p.index,
    p.scatter_add, p.index_put, p.sum_, p.cumsum, p.transfer, p.require, p.barrier,
})  # fmt: skip


def _full(build: Builder, node: Node, operands: Operands) -> Pair:
    value = complex(node.attrs["value"])
    type_ = node.type.with_dtype(node.type.dtype.to_real())
    return Pair(*(Real(build, full(build, type_, each)) for each in (value.real, value.imag)))


def _constant(build: Builder, node: Node, operands: Operands) -> Pair:
    value = node.attrs["value"]
    parts = map(np.ascontiguousarray, (value.real, value.imag))
    return Pair(*(Real(build, constant(build, node.type, each)) for each in parts))


def _pad(build: Builder, node: Node, operands: Operands) -> Pair:
    value = complex(node.attrs["value"])
    values = [{**node.attrs, "value": each} for each in (value.real, value.imag)]
    return _partwise(build, node, operands, *values)


def _complex(build: Builder, node: Node, operands: Operands) -> Pair:
    re, im = (Real(build, _broadcast(build, _real(each), node.shape)) for each in operands)
    return Pair(re, im)


def _broadcast(build: Builder, node: Node, shape: tuple[int, ...]) -> Node:
    return node if node.shape == shape else call(build, p.broadcast, node, shape=shape)


def _conj(build: Builder, node: Node, operands: Operands) -> Pair:
    (x,) = operands
    assert isinstance(x, Pair)
    return Pair(x.re, -x.im)


def _cast(build: Builder, node: Node, operands: Operands) -> Node | Pair:
    (x,), dtype = operands, node.attrs["dtype"]
    if not isinstance(x, Pair):
        x = Pair(re := Real(build, cast(build, x, dtype.to_real())), _zeros(build, re.node))
    if dtype is bool_:
        return (x.re.differs(0) | x.im.differs(0)).node
    return x.cast(dtype.to_real()) if dtype.is_complex else x.re.cast(dtype).node


def _zeros(build: Builder, like: Node) -> Real:
    return Real(build, full(build, like.type, 0))


def _matmul(build: Builder, node: Node, operands: Operands) -> Pair:
    a, b = operands
    assert isinstance(a, Pair) and isinstance(b, Pair)

    def product(x: Real, y: Real) -> Real:
        return x.apply(p.matmul, y, **node.attrs)

    re = product(a.re, b.re) - product(a.im, b.im)
    return Pair(re, product(a.re, b.im) + product(a.im, b.re))


def _prod(build: Builder, node: Node, operands: Operands) -> Pair:
    """One half times the other, again and again."""
    axes = node.attrs["axes"]
    shape = node.inputs[0].shape
    kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
    rows = (*(shape[axis] for axis in kept), numel(tuple(shape[axis] for axis in axes)))
    last = len(rows) - 1

    def flat(each: Real) -> Real:
        transposed = permute(build, each.node, (*kept, *axes))
        return Real(build, reshape(build, transposed, rows))

    def cut(each: Pair, start: int, stop: int) -> Pair:
        return Pair(*(Real(build, part(build, x.node, last, start, stop)) for x in each))

    (x,) = operands
    assert isinstance(x, Pair)
    found, count = Pair(flat(x.re), flat(x.im)), rows[-1]
    if not count:
        one = full(build, x.re.node.type.with_shape(node.shape), 1)
        return Pair(Real(build, one), _zeros(build, one))
    while count > 1:
        half = count // 2
        product = multiply(cut(found, 0, half), cut(found, half, 2 * half))
        if count % 2:
            rest = cut(found, count - 1, count)
            pairs = zip(product, rest, strict=True)
            product = Pair(*(one.apply(p.concatenate, other, axis=last) for one, other in pairs))
        found, count = product, half + count % 2
    return Pair(*(Real(build, reshape(build, each.node, node.shape)) for each in found))


def _flipped(x: Pair, axis: int, reverse: bool) -> Pair:
    return Pair(*(each.apply(p.flip, axes=(axis,)) for each in x)) if reverse else x


def _moved(build: Builder, x: Pair, axis: int, by: int, value: float) -> Pair:
    """A value moved along an axis, with a real number coming in."""
    pairs = zip(x, (value, 0.0), strict=True)
    return Pair(*(Real(build, _moved_along(build, each.node, axis, by, v)) for each, v in pairs))


def _moved_along(build: Builder, node: Node, axis: int, by: int, value: Any) -> Node:
    """`node` moved along an axis, with a value coming in."""
    zero = (0,) * node.type.ndim
    stops = tuple(size - by * (at == axis) for at, size in enumerate(node.shape))
    low = tuple(by * (at == axis) for at in range(node.type.ndim))
    head = call(build, p.slice_, node, starts=zero, stops=stops, steps=(1,) * node.type.ndim)
    return call(build, p.pad, head, low=low, high=zero, interior=zero, value=value)


def _cumprod(build: Builder, node: Node, operands: Operands) -> Pair:
    """In log2(n) steps: each multiplies by what lies twice as far before as the last."""
    axis, reverse = node.attrs["axis"], node.attrs["reverse"]
    (x,), reach = operands, 1
    assert isinstance(x, Pair)
    found = _flipped(x.cast(float64), axis, reverse)
    while reach < node.shape[axis]:
        found = multiply(found, _moved(build, found, axis, reach, 1))
        reach *= 2
    return _flipped(found, axis, reverse).cast(x.re.dtype)


def _linear_scan(build: Builder, node: Node, operands: Operands) -> Pair:
    """Each step is a step of twice the reach: s' = s a + b twice is s (a a') + (b a' + b')."""
    axis, reverse = node.attrs["axis"], node.attrs["reverse"]
    given = []
    for each in operands:
        assert isinstance(each, Pair)
        given.append(_flipped(each.cast(float64), axis, reverse))
    (factor, added), reach = given, 1
    while reach < node.shape[axis]:
        before = multiply(_moved(build, added, axis, reach, 0), factor)
        added = Pair(before.re + added.re, before.im + added.im)
        factor = multiply(_moved(build, factor, axis, reach, 1), factor)
        reach *= 2
    return _flipped(added, axis, reverse).cast(node.type.dtype.to_real())


_RULES: dict[Primitive, Callable[[Builder, Node, Operands], Node | Pair]] = {
    p.full: _full,
    p.constant: _constant,
    p.pad: _pad,
    p.complex_: _complex,
    p.conj: _conj,
    p.cast: _cast,
    p.matmul: _matmul,
    p.prod: _prod,
    p.cumprod: _cumprod,
    p.linear_scan: _linear_scan,
}
