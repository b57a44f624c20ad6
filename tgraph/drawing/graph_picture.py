"""The picture of a graph: as it was traced, or as kernels after it was compiled."""

from __future__ import annotations

import linecache
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from ..compiler.ir import Family, Graph, Node, Provenance, TensorType
from ..compiler.ir import primitives as p
from ..compiler.ir.dim import is_open
from ..compiler.ir.shapes import are_same, is_same
from ..compiler.ir.text import (
    format_attr,
    format_graph,
    format_node,
    format_type,
    named_graphs,
    node_names,
)
from ..compiler.plan.executable import Executable
from ..compiler.plan.program import Program
from ..compiler.plan.step_info import StepInfo
from ..runtime.records import NamedTuple
from .picture import Arrow, Box, Cluster, Picture

# A constant of at most this many elements is written inside of what reads it.
_INLINE = 4
_OPEN = "·"  # an operand that arrives by an arrow

KINDS = {
    Family.SOURCE: "constant",
    Family.ELEMENTWISE: "elementwise",
    Family.REDUCE: "reduce",
    Family.VIEW: "view",
    Family.ASSEMBLY: "view",
    Family.GATHER: "gather",
    Family.SCATTER: "gather",
    Family.WINDOW: "reduce",
    Family.CONTRACTION: "contraction",
    Family.RANDOM: "sampling",
    Family.SCAN: "reduce",
    Family.SORT: "reduce",
    Family.COMPLEX: "view",
    Family.TRANSFER: "view",
    Family.SEVERAL: "contraction",
    Family.LIBRARY: "contraction",
    Family.SPARSE: "contraction",
    Family.OPAQUE: "opaque",
    Family.CONTROL: "control",
    Family.GET: "view",
}


_NOTHING: Mapping[Any, Any] = MappingProxyType({})


class Ends(NamedTuple):
    """What a graph's inputs and outputs are, as far as it is known.

    `kinds` gives the kind of the box of an input ("argument" where it is missing), `names` what
    an input is called if not by its own name, `written` maps output numbers to the input whose
    memory they are written into, `outputs` names outputs, and `saved` are the outputs that only
    the backward plan reads.
    """

    kinds: Mapping[Node, str] = _NOTHING
    names: Mapping[Node, str] = _NOTHING
    written: Mapping[int, int] = _NOTHING
    outputs: Mapping[int, str] = _NOTHING
    saved: frozenset[int] = frozenset()


def graph_picture(graph: Graph, title: str = "graph", ends: Ends | None = None) -> Picture:
    """Every node of `graph` as a box."""
    drawn = _Drawing(graph, (), ends or Ends())
    count = len(graph.nodes) - len(graph.inputs)
    summary = (
        f"{count:,} operations, {plural(len(graph.inputs), 'input')}, "
        f"{plural(len(graph.outputs), 'output')}"
    )
    return drawn.picture(title, summary)


def executable_picture(
    executable: Executable | Program, title: str = "compiled graph", ends: Ends | None = None
) -> Picture:
    """The optimised graph of `executable`: a cluster per fused kernel, a box per library call."""
    ends = ends or Ends(written=executable.donate)
    infos = executable.kernels
    counts = Counter(info.kind for info in infos)
    parts = [plural(counts["kernel"], "fused kernel")]
    calls = counts["gemm"] + counts["attention"] + counts["sort"]
    parts += [plural(calls, "library call")] if calls else []
    parts += [plural(counts["python"], "Python step")] if counts["python"] else []
    parts += [plural(counts["loop"], "loop")] if counts["loop"] else []
    parts += [plural(counts["branch"], "branch", "branches")] if counts["branch"] else []
    moved, flops = sum(info.bytes for info in infos), sum(info.flops for info in infos)
    summary = f"{', '.join(parts)}, {si(moved, 'B')} moved, {si(flops, 'flop')}"
    return _Drawing(executable.graph, infos, ends).picture(title, summary)


def plural(count: int, noun: str, several: str = "") -> str:
    """Such as "1 node" and "2 nodes"."""
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"


def si(value: float, unit: str) -> str:
    """A number with a decimal prefix: 12,345 B is "12.3 kB". Of an open size its expression."""
    if is_open(value):
        return f"{value.text} {unit}"
    for prefix in ("", "k", "M", "G"):
        if value < 999.5:
            return f"{value:.3g} {prefix}{unit}"
        value /= 1000
    return f"{value:,.0f} T{unit}"


# --- where a value comes from ------------------------------------------------------------------


def place(where: Provenance) -> str:
    """Short: the file's name and the line."""
    if not where.file:
        return ""
    return f"{os.path.basename(where.file)}:{where.line}{' backward' if where.backward else ''}"


def place_lines(where: Provenance) -> list[str]:
    """In full, with the text of the line."""
    if not where.file:
        return []
    lines = [f"{where.file}:{where.line}" + (f" in {where.function}" if where.function else "")]
    if code := code_at(where.file, where.line):
        lines.append(f"    {code}")
    if where.backward:
        lines.append("gradients of that line")
    return [*lines, *([f"module {where.module}"] if where.module else [])]


def module_of(where: Provenance) -> str:
    """The module path by which boxes are put together."""
    return f"{where.module} backward" if where.module and where.backward else where.module


@lru_cache(maxsize=4096)
def code_at(file: str, line: int) -> str:
    """The text of a line of the user's program, if it can be read."""
    return linecache.getline(file, line).strip()


_STEP = re.compile(r"\.step\(")


def phase_of(where: Provenance) -> str:
    """What a value is for in a training step: the text of a line tells where optimizers step."""
    if where.backward:
        return "backward"
    return "step" if _STEP.search(code_at(where.file, where.line)) else ""


# --- one node as text --------------------------------------------------------------------------


def inline_text(node: Node) -> str | None:
    """How a small constant is written inside of what reads it; None for everything else."""
    while node.primitive in (p.broadcast, p.reshape, p.cast):
        node = node.inputs[0]
    if node.primitive is p.full:
        return scalar_text(node.attrs["value"])
    if node.primitive is p.constant and node.type.numel <= _INLINE:
        value = node.attrs["value"]
        return scalar_text(value.item()) if value.ndim == 0 else format_attr(value)
    return None


def scalar_text(value: Any) -> str:
    """A Python number, floats to six digits."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _axes(axes: Sequence[int]) -> str:
    return f"{'dim' if len(axes) == 1 else 'dims'} {', '.join(map(str, axes))}" if axes else ""


def _slice_text(attrs: Mapping[str, Any], shape: tuple[int, ...]) -> str:
    parts = []
    for size, start, stop, step in zip(
        shape, attrs["starts"], attrs["stops"], attrs["steps"], strict=True
    ):
        first, last = "" if is_same(start, 0) else start, "" if is_same(stop, size) else stop
        parts.append(f"{first}:{last}" + (f":{step}" if step != 1 else ""))
    return f"[{', '.join(parts)}]"


def detail_text(node: Node) -> str:
    """The attributes that matter, short; shape and dtype of the result are shown apart."""
    name, attrs = node.primitive.name, node.attrs
    if node.primitive.family is Family.REDUCE:
        everything = len(attrs["axes"]) == node.inputs[0].type.ndim > 1
        return "all" if everything else _axes(attrs["axes"])
    match name:
        case "slice" | "slice_update":
            return _slice_text(attrs, node.inputs[0].shape)
        case "permute":
            return f"({', '.join(map(str, attrs['axes']))})"
        case "diagonal":
            return f"offset {attrs['offset']}" if attrs["offset"] else ""
        case "flip" | "unfold" | "fold":
            return _axes(attrs["axes"])
        case "matmul":
            flags = [side for side in "ab" if attrs[f"transpose_{side}"]]
            return f"transposed {', '.join(flags)}" if flags else ""
        case "full":
            return scalar_text(attrs["value"])
        case "cumsum" | "cumprod" | "cummax" | "cummin" | "linear_scan":
            return _axes((attrs["axis"],)) + (", from the end" if attrs["reverse"] else "")
        case "get":
            return str(attrs["index"])
        case "branch" | "loop":
            return ", ".join(name for name, _ in named_graphs(node))
        case "host_call":
            effect = attrs.get("effect", "pure")
            return str(attrs["name"]) + ("" if effect == "pure" else f", {effect}")
        case "pad":
            return f"with {scalar_text(attrs['value'])}"
        case "index_put":
            return "accumulate" if attrs["accumulate"] else ""
    return _axes([attrs["axis"]]) if isinstance(attrs.get("axis"), int) else ""


def operands_text(node: Node) -> str:
    """The constants among the operands: "0.5", or "1 ·" where it matters which they are."""
    texts = [inline_text(operand) for operand in node.inputs]
    if all(text is None for text in texts):
        return ""
    given = [text for text in texts if text is not None]
    if len(texts) == 2 and len(given) == 1 and (node.primitive.commutative or texts[1]):
        return given[0]
    return " ".join(_OPEN if text is None else text for text in texts)


def shape_text(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) if shape else "scalar"


# --- the picture -------------------------------------------------------------------------------

# A node as part of a step; a value that several kernels compute for themselves is drawn in each.
_Part = tuple[Node, int | None]


class _Drawing:
    """Boxes and arrows of one graph; `steps` is empty for a graph that is not compiled."""

    def __init__(self, graph: Graph, steps: Sequence[StepInfo], ends: Ends) -> None:
        self.graph = graph
        self.steps = steps
        self.ends = ends
        self.names = node_names(graph)
        self.number = {node: number for number, node in enumerate(graph.nodes)}
        self.written_inputs = {graph.inputs[at] for at in ends.written.values()}
        self.kept = set(graph.outputs)
        self.places = [_places(step) for step in steps]
        self.owner: dict[Node, int] = {}
        self.parts: dict[_Part, None] = {}
        for number, step in enumerate(steps):
            self.owner.update((node, number) for node in (*step.nodes[-1:], *step.outputs))
            self.parts.update(((node, number), None) for node in step.nodes)

    def picture(self, title: str, summary: str) -> Picture:
        order = self._parts()
        boxes = [self._box(part) for part in order]
        arrows = [arrow for part in order for arrow in self._arrows(part)]
        for number, node in enumerate(self.graph.outputs):
            box = self._output(number, node)
            boxes.append(box)
            arrows.append(Arrow(self._key(self._source(node, None)), box.key))
        clusters = [
            self._cluster(number, step)
            for number, step in enumerate(self.steps)
            if _is_cluster(step)
        ]
        return Picture(title, summary, tuple(boxes), tuple(arrows), tuple(clusters))

    # -- which nodes are drawn where --

    def _parts(self) -> list[_Part]:
        """What is drawn, in the order of the graph; constants inside of what reads them are not."""
        wanted: dict[_Part, None] = {(node, None): None for node in self.graph.inputs}
        pending = [self._source(node, None) for node in self.graph.outputs]
        pending += [part for part in self.parts if self._is_drawn(part)]
        while pending:
            part = pending.pop()
            if part not in wanted:
                wanted[part] = None
                pending += [source for source, _ in self._sources(part)]
        return sorted(wanted, key=self._rank)

    def _rank(self, part: _Part) -> tuple[int, int]:
        return self.number[part[0]], -1 if part[1] is None else part[1]

    def _is_drawn(self, part: _Part) -> bool:
        return part[0] in self.kept or inline_text(part[0]) is None

    def _source(self, node: Node, step: int | None) -> _Part:
        """Where `node` comes from when it is read in `step`."""
        if node.primitive.family is Family.GET:
            node = node.inputs[0]
        if step is not None and (node, step) in self.parts:
            return node, step
        return node, self.owner.get(node)

    def _sources(self, part: _Part) -> list[tuple[_Part, list[int]]]:
        """The parts that one reads, with the positions of the operands."""
        found: dict[_Part, list[int]] = {}
        for position, operand in enumerate(part[0].inputs):
            source = self._source(operand, part[1])
            if self._is_drawn(source):
                found.setdefault(source, []).append(position)
        return list(found.items())

    # -- boxes --

    def _key(self, part: _Part) -> str:
        node, step = part
        return f"n{self.number[node]}" + ("" if step is None else f"_{step}")

    def _box(self, part: _Part) -> Box:
        node, number = part
        if node.primitive is p.input_:
            return self._input(node)
        step = None if number is None else self.steps[number]
        kind, title = KINDS[node.primitive.family], node.primitive.name
        detail = ", ".join(filter(None, (detail_text(node), operands_text(node))))
        lines, tooltip = [format_type(node.type)], self._tooltip(node)
        cluster = f"k{number}" if step is not None and _is_cluster(step) else ""
        if step is not None and step.kind != "kernel":
            if step.kind not in ("loop", "branch"):
                kind = "gemm" if step.kind in ("gemm", "attention", "sort", "library") else "python"
            lines += [] if cluster else [_work(step)]
            tooltip = f"{step.name}: {_work(step)}\n{tooltip}"
        elif self.steps and step is None and node.primitive.family is not Family.SOURCE:
            kind = "free"
        where, code = place(node.where), code_at(node.where.file, node.where.line)
        if number is None or not cluster or len(self.places[number]) > 1:
            lines.append(where)
        return Box(
            self._key(part), kind, title, detail, tuple(filter(None, lines)), tooltip,
            cluster, module_of(node.where), where, code, phase_of(node.where),
        )  # fmt: skip

    def _input(self, node: Node) -> Box:
        name, kind = self._name(node), self.ends.kinds.get(node, "argument")
        lines = [str(node.type), *(["overwritten"] if node in self.written_inputs else [])]
        return Box(self._key((node, None)), kind, name, "", tuple(lines), self._tooltip(node))

    def _name(self, node: Node) -> str:
        return self.ends.names.get(node) or str(node.attrs["name"])

    def _output(self, number: int, node: Node) -> Box:
        key, type_ = f"out{number}", format_type(node.type)
        if number in self.ends.saved:
            return Box(key, "saved", "saved", "", (type_,), f"saved for the backward plan: {type_}")
        target = self.ends.written.get(number)
        if target is None:
            name = self.ends.outputs.get(number, f"output {number}")
            return Box(key, "output", name, "", (type_,), f"output {number}: {type_}")
        name = self._name(self.graph.inputs[target])
        text = f"output {number}, written into the memory of {name}: {type_}"
        return Box(key, "written", name, "", ("written in place",), text)

    def _tooltip(self, node: Node) -> str:
        lines = [format_node(node, self.names) if node.inputs or node.attrs else ""]
        lines += [part for each in named_graphs(node) for part in _graph_lines(*each)]
        if isinstance(node.type, TensorType):
            lines.append(si(node.type.nbytes, "B"))
        return "\n".join(filter(None, (*lines, *place_lines(node.where))))

    # -- arrows and clusters --

    def _arrows(self, part: _Part) -> Iterable[Arrow]:
        node = part[0]
        for source, positions in self._sources(part):
            types = [node.inputs[position].type for position in positions]
            label = ""
            if isinstance(types[0], TensorType) and isinstance(node.type, TensorType):
                changes = not are_same(types[0].shape, node.type.shape)
                label = shape_text(types[0].shape) if changes else ""
            text = " and ".join(map(str, positions))
            tooltip = f"{format_type(types[0])}, operand {text} of {node.primitive.name}"
            yield Arrow(self._key(source), self._key(part), label, tooltip)

    def _cluster(self, number: int, step: StepInfo) -> Cluster:
        places = self.places[number]
        lines = [f"{step.name}: {_work(step)}", *_schedule_lines(step), *places]
        detail = f"{_work(step)}, {places[0]}" if len(places) == 1 else _work(step)
        return Cluster(f"k{number}", "kernel", step.name, detail, "\n".join(lines))


def _graph_lines(name: str, graph: Graph) -> list[str]:
    """A graph inside a node, as text."""
    head, *rest = format_graph(graph).splitlines()
    return [head.replace("graph", name, 1), *rest]


def _is_cluster(step: StepInfo) -> bool:
    """Whether a step is a frame around its operations: not a library call for just one."""
    return step.kind == "kernel" or len(step.nodes) > 1


def _work(step: StepInfo) -> str:
    flops = f", {si(step.flops, 'flop')}" if step.flops else ""
    return f"{si(step.bytes, 'B')}{flops}"


def _places(step: StepInfo) -> list[str]:
    """The lines that the operations of a step come from; constants may come from anywhere."""
    return sorted({place(node.where) for node in step.nodes if inline_text(node) is None} - {""})


def _schedule_lines(step: StepInfo) -> list[str]:
    """How a kernel loops: its rows, the stages of each, and what is vectorised."""
    if step.kernel is None:
        return []
    rows = " × ".join(str(axis.size) for axis in step.kernel.rows) or "1"
    stages = ", ".join(
        " × ".join(str(axis.size) for axis in stage.axes) or "1" for stage in step.kernel.stages
    )
    # A hand-written kernel tells by its schedule alone what it does.
    lines = [f"rows {rows}, stages of {stages}"] if step.kernel.stages else []
    if step.schedule is not None:
        lines.append(step.summary())
    return lines
