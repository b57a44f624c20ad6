"""Elementwise functions as the arguments of CuPy's `ElementwiseKernel`, from a graph of scalars.

Every node of such a graph has no dimensions: it stands for one element. What broadcasts against
what is CuPy's concern, as are strides. The expressions are those of compiled kernels
(`scalar`), and so is their precision: 16-bit floats are computed in float32 and rounded where
they are cast or stored. They are parameters of 16 bits each, since CuPy has no arithmetic of ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from ....runtime.cuda.elementwise import Text
from ....runtime.dtypes import DType
from ...ir import Family, Graph, Node
from ...ir import primitives as p
from ...kernel.kernel import compute_dtype
from ...passes.simplify import simplify
from ...pipeline import Pass, optimize
from .device_library import library_text
from .scalar import TEMPLATES, c_type, convert, literal, narrow, widen

PASSES = (Pass("simplify", simplify, "fewer and cheaper operations for the same values"),)


def simplified(graph: Graph) -> Graph:
    """The graph after the passes that keep it elementwise."""
    return optimize(graph, passes=PASSES)


def write_text(graph: Graph, name: str, once: Sequence[bool] = ()) -> Text:
    """The kernel that computes the outputs of a graph of scalars, each of them one parameter.

    Inputs that are not read are no parameters; `read` of the result numbers those that are. Where
    `once` holds, an output is one element that the first thread writes through its address, a
    number; it must not depend on what differs from element to element.
    """
    once = once or (False,) * len(graph.outputs)
    written = _Writer(graph)
    stores, parameters, addresses = [], [], []
    for number, (node, is_single) in enumerate(zip(graph.outputs, once, strict=True)):
        value = narrow(written.values[node], node.type.dtype)
        if is_single:
            addresses.append(f"uint64 p{number}")
            type_ = "unsigned short" if node.type.dtype.is_half else c_type(node.type.dtype)
            stores.append(f"if (i == 0) *({type_}*)p{number} = {value};")
        else:
            parameters.append(f"{_parameter_type(node.type.dtype)} out{number}")
            stores.append(f"out{number} = {value};")
    return Text(
        ", ".join([*written.parameters, *addresses]),
        ", ".join(parameters),
        "\n".join([*written.lines, *stores]),
        "tg_" + re.sub(r"\W", "_", name, flags=re.ASCII),
        _preamble(),
        written.read,
    )


_preamble = cache(library_text)


def _parameter_type(dtype: DType) -> str:
    """What CuPy calls the type of an element."""
    return "uint16" if dtype.is_half else dtype.name


class _Writer:
    """One line for each node: all inputs are read before any output is written."""

    def __init__(self, graph: Graph) -> None:
        self.lines: list[str] = []
        self.parameters: list[str] = []
        self.values: dict[Node, str] = {}
        numbers = {node: number for number, node in enumerate(graph.inputs)}
        needed = [node for node in Graph((), graph.outputs).nodes if node in numbers]
        self.read = tuple(sorted(numbers[node] for node in needed))
        for number in self.read:
            node = graph.inputs[number]
            self.parameters.append(f"{_parameter_type(node.type.dtype)} in{number}")
            self.values[node] = self._loaded(number, node.type.dtype)
        for node in Graph((), graph.outputs).nodes:
            if node not in self.values:
                self.values[node] = self._value(node)

    def _loaded(self, number: int, dtype: DType) -> str:
        """A copy of a parameter: outputs may lie in the memory of inputs."""
        value = widen(f"in{number}", dtype) if dtype.is_half else f"in{number}"
        self.lines.append(f"const {c_type(dtype)} x{number} = {value};")
        return f"x{number}"

    def _value(self, node: Node) -> str:
        if node.primitive is p.full:
            return literal(node.attrs["value"], compute_dtype(node.type.dtype))
        if node.primitive is p.constant:
            return literal(node.attrs["value"].item(), compute_dtype(node.type.dtype))
        if node.primitive is p.copy:
            return self.values[node.inputs[0]]
        if node.primitive.family is not Family.ELEMENTWISE:
            raise ValueError(f"{node.primitive.name} is not elementwise")
        args = [self.values[operand] for operand in node.inputs]
        source = compute_dtype(node.inputs[-1].type.dtype)
        if node.primitive is p.cast:
            text = convert(args[0], source, node.attrs["dtype"])
        else:
            text = TEMPLATES[node.primitive.name](args, source)
        if text == args[0]:
            return text
        name = f"v{len(self.lines)}"
        self.lines.append(f"const {c_type(node.type.dtype)} {name} = {text};")
        return name
