"""Writes a scheduled Kernel as CUDA C.

A kernel's parameters are its buffers; sizes are written out. First every thread finds its point of
the row axes, then the stages follow one after another, each a loop over the part that this thread
has of it, with its reductions joined behind it. Values are named after what computes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod

from ...runtime.dtypes import DType, int64, uint8
from ..kernel.dependences import dependences
from ..kernel.index import (
    Axis,
    Condition,
    Divides,
    Index,
    Loaded,
    Mask,
    Quotient,
    Remainder,
    atom_bounds,
    data_atoms,
)
from ..kernel.kernel import (
    COMBINE,
    POSITIONS,
    Instr,
    Kernel,
    Param,
    Stage,
    reduction_identity,
)
from ..kernel.schedule_cuda import (
    TILE,
    TILE_ROWS,
    CudaSchedule,
    Layout,
    is_packable,
    is_turned,
    kept_elements,
)
from ..kernel.template import TemplateSchedule
from .cuda_library import library_text
from .cuda_scalar import TEMPLATES, c_type, convert, literal, memory_type, narrow, widen
from .cuda_template import template_text
from .cuda_wide import SHARED, declared

_JOIN = {
    "sum": "Sum",
    "prod": "Product",
    "max": "Maximum",
    "min": "Minimum",
    "any": "Any",
    "all": "All",
    "argmax": "Best<true>",
    "argmin": "Best<false>",
}
_INT_LIMIT = 1 << 31
NEEDED_BY_ALL = ("reduce", "save", "check")
"""Instructions that every thread of a point takes part in, whoever stores."""
COPY_BLOCK = 256
COPY_BYTES = 16
GUARD = Param("failed", int64, 8)
"""The status, as what must not run after a failure reads it."""


def kernel_text(
    schedule: CudaSchedule | TemplateSchedule,
    name: str,
    comments: Iterable[str] = (),
    first_check: int = 0,
    guarded: bool = False,
    as_function: bool = False,
) -> str:
    """The text of `extern "C" __global__ void name(...)` for one scheduled kernel.

    `first_check` is the number of its first check among those of the whole module. A `guarded`
    kernel has the status as its last parameter, and does nothing where that tells of a failure.
    `as_function` makes it a part of another kernel: a function that is told its block.
    """
    if isinstance(schedule, TemplateSchedule):
        assert not guarded, f"{name} overwrites what lives on"
        head = [f"// {_printable(comment)}" for comment in comments]
        return "\n".join([*head, template_text(schedule, name, first_check)])
    return _KernelWriter(schedule, name, first_check, guarded, as_function).text(comments)


def copy_text(name: str, nbytes: int, guarded: bool, as_function: bool = False) -> str:
    """A kernel that copies bytes from its first parameter to its second; see `kernel_text`."""
    block = "block" if as_function else "blockIdx.x"
    guard = "  if (*failed != 0) return;\n" if guarded else ""
    return f"""\
{_head(name, copy_params(nbytes, guarded), COPY_BLOCK, as_function)}
{guard}  const long long first = ((long long){block} * {COPY_BLOCK} + threadIdx.x) * {COPY_BYTES};
  if (first + {COPY_BYTES} <= {nbytes}) {{
    typedef Pack<unsigned int, {COPY_BYTES // 4}> Piece;
    *(Piece*)(to + first) = *(const Piece*)(from + first);
  }} else {{
    for (long long i = first; i < {nbytes}; ++i) to[i] = from[i];
  }}
}}
"""


def copy_params(nbytes: int, guarded: bool) -> tuple[Param, ...]:
    """The parameters of `copy_text`."""
    source, target = Param("from", uint8, nbytes), Param("to", uint8, nbytes, written=True)
    return (source, target, GUARD) if guarded else (source, target)


def joined_bytes(schedule: CudaSchedule) -> int:
    """The shared memory through which the threads of a block join results, in bytes."""
    elements = schedule.team // 32 if schedule.team > 32 else 0
    if schedule.layout is Layout.COLUMN:
        elements = schedule.team * schedule.points if schedule.team > 1 else 0
    results = [instr for instr in schedule.kernel.instructions() if instr.op == "reduce"]
    return elements * max(map(_result_bytes, results), default=0)


def _head(
    name: str, params: Sequence[Param], threads: int, as_function: bool, shares: bool = False
) -> str:
    listed = [declared(param) for param in params]
    if as_function:
        listed += [SHARED] if shares else []
        listed.append("const unsigned int block")
        return f"__device__ __forceinline__ void {name}({', '.join(listed)}) {{"
    text = ", ".join(listed)
    return f'extern "C" __global__ void __launch_bounds__({threads}) {name}({text}) {{'


def module_text(kernels: Iterable[str]) -> str:
    """The text of a module of kernels."""
    return "\n".join([library_text(), *kernels])


class _KernelWriter:
    """One kernel on its way out: lines so far, and the current indentation."""

    def __init__(
        self,
        schedule: CudaSchedule,
        name: str,
        first_check: int,
        guarded: bool,
        as_function: bool,
    ) -> None:
        self.schedule = schedule
        self.as_function = as_function
        self.block_number = "block" if as_function else "blockIdx.x"
        self.guarded = guarded
        self.first_check = first_check
        self.kernel = schedule.kernel
        self.name = name
        self.lines: list[str] = []
        self.indent = 1
        self.integer = "int" if _fits_int(schedule) else "long long"
        points = prod(axis.size for axis in self.kernel.rows)
        returns = schedule.layout in (Layout.POINTWISE, Layout.TILE)  # those without a point
        everybody = returns or points % schedule.points == 0
        self.active = "" if everybody else "active"
        first_member = "member == 0" if schedule.team > 1 else ""
        self.owner = " && ".join(each for each in (self.active, first_member) if each)

    def text(self, comments: Iterable[str]) -> str:
        x, y = self.schedule.block
        head = [f"// {_printable(comment)}" for comment in comments]
        params = [*self.kernel.params, GUARD] if self.guarded else self.kernel.params
        shares = bool(joined_bytes(self.schedule))
        head.append(_head(self.name, params, x * y, self.as_function, shares))
        if self.guarded:
            self.line("if (*failed != 0) return;")
        if self.schedule.layout is Layout.TILE:
            self._tile()
        else:
            self._find_point()
            self._declare()
            for stage in self.kernel.stages:
                self._stage(stage)
        return "\n".join([*head, *self.lines, "}", ""])

    def line(self, text: str) -> None:
        self.lines.append("  " * self.indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Braces around what is written inside."""
        self.line(f"{head} {{" if head else "{")
        self.indent += 1
        yield
        self.indent -= 1
        self.line("}")

    # -- the thread's point --------------------------------------------------------------

    def _find_point(self) -> None:
        schedule, rows = self.schedule, self.kernel.rows
        first = f"({self.integer}){self.block_number} * {schedule.points}"
        if schedule.layout is Layout.POINTWISE:
            self.line(f"const {self.integer} item = {first} + threadIdx.x;")
            if schedule.items % schedule.points:
                self.line(f"if (item >= {schedule.items}) return;")
            self._decode("item", rows, schedule.vector)
            return
        if schedule.layout is Layout.COLUMN:
            member, mine = "threadIdx.y", "threadIdx.x"
        else:
            member, mine = f"threadIdx.x % {schedule.team}", f"threadIdx.x / {schedule.team}"
        if schedule.team > 1:
            self.line(f"const int member = {member};  // of the {schedule.team} that share a point")
        mine = f" + {mine}" if schedule.points > 1 else ""
        point = f"{first}{mine}" if schedule.points > 1 else f"({self.integer}){self.block_number}"
        if not self.active:
            self.line(f"const {self.integer} point = {point};")
        else:
            # Threads without a point go along, for the others wait for them.
            self.line(f"const bool active = {point} < {schedule.items};")
            self.line(f"const {self.integer} point = active ? {point} : {schedule.items - 1};")
        self._decode("point", rows, 1)

    def _decode(self, number: str, axes: Sequence[Axis], vector: int) -> None:
        """The values of row-major axes at a number; of the last one in steps of `vector`."""
        sizes = [axis.size for axis in axes]
        if axes:
            sizes[-1] //= vector
        behind = 1
        for position in range(len(axes) - 1, -1, -1):
            value = f"{number} / {behind}" if behind > 1 else number
            behind *= sizes[position]
            if position > 0:
                value = f"{value} % {sizes[position]}"
            if position == len(axes) - 1 and vector > 1:
                value = f"({value}) * {vector}" if position > 0 else f"{value} * {vector}"
            self.line(f"const {self.integer} {axes[position]} = {value};")

    def _tile(self) -> None:
        """A tile of the two last axes: what is turned comes into shared memory along its axis."""
        kernel = self.kernel
        *others, down, along = kernel.rows
        many_down, many_along = self.schedule.tiles
        (stage,) = kernel.stages
        body = _Body(self, stage)
        turned = [
            number
            for number, instr in enumerate(stage.body)
            if is_turned(kernel, instr, down, along)
        ]
        tile = f"({self.integer}){self.block_number}"
        self._decode(f"({tile} / {many_down * many_along})", others, 1)
        self.line(
            f"const {self.integer} first_{down} = {tile} / {many_along} % {many_down} * {TILE};"
        )
        self.line(f"const {self.integer} first_{along} = {tile} % {many_along} * {TILE};")
        for number in turned:
            type_ = memory_type(kernel.params[stage.body[number].param].dtype)
            # One more column than a tile has: else threads of a warp would meet in one bank.
            self.line(f"__shared__ {type_} tile{number}[{TILE}][{TILE + 1}];")
        with self._walk(down, along):
            for number in turned:
                self.line(f"tile{number}[row][threadIdx.x] = {body.raw_load(number)};")
        self.line("__syncthreads();")
        body.turned = {number: f"tile{number}[threadIdx.x][row]" for number in turned}
        with self._walk(along, down):
            body.write_all("")

    @contextmanager
    def _walk(self, lane: Axis, other: Axis) -> Iterator[None]:
        """A loop over a tile, threads of a warp along `lane`, for the points that exist."""
        with self.block(f"for (int row = threadIdx.y; row < {TILE}; row += {TILE_ROWS})"):
            self.line(f"const {self.integer} {lane} = first_{lane} + threadIdx.x;")
            self.line(f"const {self.integer} {other} = first_{other} + row;")
            ragged = [axis for axis in (lane, other) if axis.size % TILE]
            if not ragged:
                yield
                return
            with self.block(f"if ({' && '.join(f'{axis} < {axis.size}' for axis in ragged)})"):
                yield

    # -- storage -------------------------------------------------------------------------

    def _declare(self) -> None:
        """The results of reductions, what joins them, and saved rows."""
        schedule = self.schedule
        for instr in self.kernel.instructions():
            if instr.op == "reduce":
                number, operation = instr.value
                start = literal(reduction_identity(operation, instr.dtype), instr.dtype)
                if operation in POSITIONS:
                    start = f"{{{start}, 0x7fffffffffffffffLL}}"
                self.line(f"{_result_type(instr)} r{number} = {start};")
        if (nbytes := joined_bytes(schedule)) and not self.as_function:
            # One for all reductions: joins wait until the one before has been read.
            self.line(f"__shared__ __align__(16) unsigned char shared[{nbytes}];")
        for number, (dtype, elements) in enumerate(self.kernel.scratch):
            self.line(f"{c_type(dtype)} s{number}[{kept_elements(schedule, elements)}];")

    # -- stages --------------------------------------------------------------------------

    def _stage(self, stage: Stage) -> None:
        alone = self._is_for_one(stage)
        with self.block(f"if ({self.owner})" if alone else ""):
            body = _Body(self, stage)
            if self.schedule.layout is Layout.POINTWISE:
                last = self.kernel.rows[-1] if self.kernel.rows else None
                body.write_vector(last, self.schedule.vector, None)
            elif not stage.axes:
                body.write_all("" if alone else self.owner)
            else:
                body.write_invariant(stage.axes)
                self._loop(stage, body)
        for instr in stage.body:
            if instr.op == "reduce" and self.schedule.team > 1:
                self._join(instr)

    def _is_for_one(self, stage: Stage) -> bool:
        """Whether one thread of a point does a stage, since the others need nothing of it."""
        if not self.owner or stage.axes or self.schedule.layout is Layout.POINTWISE:
            return False
        return not any(instr.op in NEEDED_BY_ALL for instr in stage.body)

    def _loop(self, stage: Stage, body: _Body) -> None:
        """The part of a stage's loop that a thread has."""
        schedule = self.schedule
        size = prod(axis.size for axis in stage.axes)
        vector = schedule.vector if stage.axes[-1].size % schedule.vector == 0 else 1
        keeps = any(instr.op in ("save", "saved") for instr in stage.body)
        step = schedule.team * vector
        member = "member" if schedule.team > 1 else "0"
        first = f"{member} * {vector}" if vector > 1 and schedule.team > 1 else member
        if not keeps:
            head = f"for ({self.integer} j = {first}; j < {size}; j += {step})"
            with self.block(head):
                self._loop_body(stage, body, vector, None)
            return
        steps = -(-size // step)
        self.line("#pragma unroll")
        with self.block(f"for (int step = 0; step < {steps}; ++step)"):
            self.line(f"const {self.integer} j = step * {step} + {first};")
            if size % step == 0:
                self._loop_body(stage, body, vector, "step")
            else:
                with self.block(f"if (j < {size})"):
                    self._loop_body(stage, body, vector, "step")

    def _loop_body(self, stage: Stage, body: _Body, vector: int, step: str | None) -> None:
        self._decode("j", stage.axes, 1)
        body.write_vector(stage.axes[-1], vector, step, guard=self.active)

    def _join(self, instr: Instr) -> None:
        """What the members of a team have reduced becomes one value, known to all of them."""
        number, operation = instr.value
        schedule, join = self.schedule, _JOIN[operation]
        shared = f"({_result_type(instr)}*){'shared' if joined_bytes(schedule) else '0'}"
        if schedule.layout is Layout.COLUMN:
            call = f"tg_join_columns<{join}, {schedule.team}, {schedule.points}>"
        else:
            call = f"tg_join_neighbours<{join}, {schedule.team}>"
        self.line(f"r{number} = {call}(r{number}, {shared});")


class _Body:
    """The instructions of one stage: each is written once, as early as asked."""

    def __init__(self, writer: _KernelWriter, stage: Stage) -> None:
        self.writer = writer
        self.kernel: Kernel = writer.kernel
        self.stage = stage
        self.values: dict[int, str] = {}
        self.depends = dependences(self.kernel, stage)
        self.slot = ""
        self.guard = ""
        self.packs: dict[int, str] = {}
        self.turned: dict[int, str] = {}
        self.names: Mapping[Axis, str] = {}

    def write_all(self, guard: str) -> None:
        """Write everything; stores only where `guard` holds."""
        self.guard = guard
        for number, instr in enumerate(self.stage.body):
            if number not in self.values:
                self.values[number] = self._instr(number, instr)

    def write_invariant(self, axes: Sequence[Axis]) -> None:
        """Write what depends on none of `axes`."""
        for number, instr in enumerate(self.stage.body):
            depends = self.depends[number]
            if number not in self.values and depends is not None and depends.isdisjoint(axes):
                self.values[number] = self._instr(number, instr)

    def write_vector(
        self, axis: Axis | None, vector: int, step: str | None, guard: str = ""
    ) -> None:
        """Write the rest for `vector` neighbours along `axis`; `step` counts a thread's vectors."""
        self.slot = step or ""
        if axis is None or vector == 1:
            self.write_all(guard)
            return
        writer = self.writer
        self.write_invariant([axis])
        packed = [
            number
            for number, instr in enumerate(self.stage.body)
            if is_packable(instr, axis, vector) and self._is_ready(number)
        ]
        for number in packed:
            self._open_pack(number, vector)
        if step is not None:
            self.slot = f"{step} * {vector} + v"
        writer.line("#pragma unroll")
        with writer.block(f"for (int v = 0; v < {vector}; ++v)"):
            self.names = {axis: f"({axis} + v)"}
            self.write_all(guard)
            self.names = {}
        for number in packed:
            if self.stage.body[number].op == "store":
                self._close_pack(number, guard)

    def _is_ready(self, number: int) -> bool:
        """Whether the address of an access is known before the neighbours are looped over."""
        instr = self.stage.body[number]
        assert instr.index is not None
        return all(atom.key in self.values for atom in data_atoms(instr.index))

    def _open_pack(self, number: int, vector: int) -> None:
        """Load a vector of neighbours, or make room for one to be stored."""
        instr = self.stage.body[number]
        param = self.kernel.params[instr.param]
        type_ = f"Pack<{memory_type(param.dtype)}, {vector}>"
        name = self.packs[number] = f"{param.name}_{number}x{vector}"
        if instr.op == "store":
            self.writer.line(f"{type_} {name};")
            return
        address = f"{param.name} + {self._index(instr.index)}"
        self.writer.line(f"const {type_} {name} = *(const {type_}*)({address});")

    def _close_pack(self, number: int, guard: str) -> None:
        instr = self.stage.body[number]
        param = self.kernel.params[instr.param]
        name = self.packs[number]
        store = f"*(decltype({name})*)({param.name} + {self._index(instr.index)}) = {name};"
        self.writer.line(f"if ({guard}) {store}" if guard else store)

    # -- instructions --------------------------------------------------------------------

    def _instr(self, number: int, instr: Instr) -> str:
        """Write one instruction; gives what later ones call its value."""
        args = [self.values[arg] for arg in instr.args]
        match instr.op:
            case "const":
                return literal(instr.value, instr.dtype)
            case "store":
                return self._store(number, instr, args[0])
            case "reduce":
                return self._reduce(instr, args)
            case "result":
                operation = self._operation(instr.value)
                return f"r{instr.value}.position" if operation in POSITIONS else f"r{instr.value}"
            case "save":
                self.writer.line(f"s{instr.value}[{self.slot}] = {args[0]};")
                return args[0]
        name = f"{_stem(self.kernel, instr)}_{number}"
        self.writer.line(
            f"const {c_type(instr.dtype)} {name} = {self._value(number, instr, args)};"
        )
        return name

    def _value(self, number: int, instr: Instr, args: Sequence[str]) -> str:
        match instr.op:
            case "index":
                return f"({c_type(instr.dtype)})({self._index(instr.index)})"
            case "condition":
                return self._conditions(instr.mask)
            case "load":
                return self._load(number, instr)
            case "check":
                size, site, status = instr.value
                active = self.writer.active or "true"
                where = self.kernel.params[status].name
                number = self.writer.first_check + site + 1
                return f"tg_check({args[0]}, {size}, {number}, {active}, {where})"
            case "saved":
                return f"s{instr.value}[{self.slot}]"
            case "cast":
                return convert(args[0], self._dtype(instr.args[0]), instr.value)
            case "random_bits":
                return f"tg_random_bits({', '.join(args)}, {self._index(instr.index)})"
        return TEMPLATES[instr.op](args, self._dtype(instr.args[-1]))

    def _dtype(self, number: int) -> DType:
        return self.stage.body[number].dtype

    def _operation(self, result: int) -> str:
        for instr in self.kernel.instructions():
            if instr.op == "reduce" and instr.value[0] == result:
                operation: str = instr.value[1]
                return operation
        raise AssertionError(f"nobody computes r{result}")

    def _reduce(self, instr: Instr, args: Sequence[str]) -> str:
        number, operation = instr.value
        if operation in POSITIONS:
            value = f"{_result_type(instr)}{{{args[0]}, {args[1]}}}"
            joined = f"{_JOIN[operation]}::join<{c_type(instr.dtype)}>(r{number}, {value})"
        else:
            joined = TEMPLATES[COMBINE[operation]]([f"r{number}", args[0]], instr.dtype)
        self.writer.line(f"r{number} = {joined};")
        return f"r{number}"

    # -- memory --------------------------------------------------------------------------

    def raw_load(self, number: int) -> str:
        """The element in memory that a load reads, as it is stored there."""
        instr = self.stage.body[number]
        return f"{self.kernel.params[instr.param].name}[{self._index(instr.index)}]"

    def _load(self, number: int, instr: Instr) -> str:
        param = self.kernel.params[instr.param]
        if number in self.turned:
            return widen(self.turned[number], param.dtype)
        if number in self.packs:
            return widen(f"{self.packs[number]}.at[v]", param.dtype)
        value = widen(f"{param.name}[{self._index(instr.index)}]", param.dtype)
        if not instr.mask:
            return value
        return f"{self._conditions(instr.mask)} ? {value} : {literal(0, instr.dtype)}"

    def _store(self, number: int, instr: Instr, value: str) -> str:
        param = self.kernel.params[instr.param]
        if number in self.packs:
            self.writer.line(f"{self.packs[number]}.at[v] = {narrow(value, param.dtype)};")
            return value
        place = f"{param.name}[{self._index(instr.index)}]"
        if instr.value == "add":
            name = "logical_or" if param.dtype.kind == "bool" else "add"
            value = f"({TEMPLATES[name]([widen(place, param.dtype), value], param.dtype)})"
        store = f"{place} = {narrow(value, param.dtype)};"
        self.writer.line(f"if ({self.guard}) {store}" if self.guard else store)
        return value

    # -- index expressions ---------------------------------------------------------------

    def _index(self, index: Index | None) -> str:
        assert index is not None
        parts = []
        for atom, coefficient in index.terms.items():
            value = self._atom(atom)
            parts.append(value if coefficient == 1 else f"{value} * {coefficient}")
        if index.const or not parts:
            parts.append(str(index.const))
        return " + ".join(parts).replace("+ -", "- ")

    def _atom(self, atom: object) -> str:
        if isinstance(atom, Axis):
            return self.names.get(atom, atom.name)
        if isinstance(atom, Loaded):
            return f"({self.writer.integer}){self.values[atom.key]}"
        assert isinstance(atom, (Quotient, Remainder))
        low = atom.index.bounds[0]
        inner = atom.index
        lift = -(low // atom.divisor) if low < 0 else 0
        if lift:  # by a multiple of the divisor, so that truncation is floor
            inner = inner + lift * atom.divisor
        if isinstance(atom, Remainder):
            return f"(({self._index(inner)}) % {atom.divisor})"
        quotient = f"({self._index(inner)}) / {atom.divisor}"
        return f"({quotient} - {lift})" if lift else f"({quotient})"

    def _conditions(self, mask: Mask) -> str:
        return " && ".join(test for condition in mask for test in self._tests(condition)) or "true"

    def _tests(self, condition: Condition) -> Iterator[str]:
        if isinstance(condition, Divides):
            rest = Index({Remainder(condition.index, condition.divisor): 1})
            yield f"{self._index(rest)} == 0"
            return
        low, high = condition.index.bounds
        if low < condition.low:
            yield f"{self._index(condition.index)} >= {condition.low}"
        if high >= condition.high:
            yield f"{self._index(condition.index)} < {condition.high}"


def _printable(comment: str) -> str:
    """A comment that ends where its line does, whatever a file is called."""
    return "".join(each if each.isprintable() else "?" for each in comment).rstrip("\\")


def _stem(kernel: Kernel, instr: Instr) -> str:
    """What a value is named after."""
    return kernel.params[instr.param].name if instr.op == "load" else instr.op


def _result_type(instr: Instr) -> str:
    type_ = c_type(instr.dtype)
    return f"Place<{type_}>" if instr.value[1] in POSITIONS else type_


def _result_bytes(instr: Instr) -> int:
    return 16 if instr.value[1] in POSITIONS else instr.dtype.itemsize


def _fits_int(schedule: CudaSchedule) -> bool:
    """Whether all positions and thread numbers are below 2**31."""
    kernel = schedule.kernel
    if max((param.elements for param in kernel.params), default=0) >= _INT_LIMIT:
        return False
    if schedule.grid * schedule.points * schedule.team * schedule.vector >= _INT_LIMIT:
        return False
    step = schedule.team * schedule.vector
    for stage in kernel.stages:
        if prod(axis.size for axis in stage.axes) + step >= _INT_LIMIT:
            return False
    indices = (index for instr in kernel.instructions() for index in instr.indices)
    return all(_largest(index) < _INT_LIMIT for index in indices)


def _largest(index: Index) -> int:
    """A bound of all that is computed on the way to an index, its parts and their sums."""
    total = abs(index.const)
    inside = 0
    for atom, coefficient in index.terms.items():
        total += abs(coefficient) * max(map(abs, atom_bounds(atom)))
        if isinstance(atom, (Quotient, Remainder)):
            lift = atom.divisor - min(atom.index.bounds[0], 0)
            inside = max(inside, _largest(atom.index) + lift)
    return max(total, inside)
