"""Writes a scheduled Kernel as CUDA C.

A kernel's parameters are its buffers; sizes are written out. First every thread finds its point of
the row axes, then the stages follow one after another, each a loop over the part that this thread
has of it, with its reductions joined behind it. Values are named after what computes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod

from ....runtime.dtypes import int64, uint8
from ....runtime.records import replace
from ...kernel.index import Axis, Index, Quotient, Remainder, atom_bounds
from ...kernel.kernel import Instr, Param, Stage, adds_up_rows, long_sums
from .reuse_tile_text import write_reuse_tile
from .scalar import c_type, memory_type, narrow, widen
from .scan_loop import ScanLoop
from .schedule import (
    TILE,
    TILE_ROWS,
    WALKING_THREADS,
    CudaSchedule,
    Layout,
    cached_elements,
    is_transposed,
    scans,
)
from .stage_body import (
    BLOCK_STEPS,
    JOIN,
    KernelWriter,
    StageBody,
    carry,
    declare_totals,
    result_start,
    result_type,
    total,
)
from .template import TemplateSchedule
from .template_text import template_text
from .varying_numbers import TAKEN_HERE, Number
from .wide_kernels import SHARED
from .writer import declared

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
    first_check: int = 0,
    guarded: bool = False,
    as_function: bool = False,
    varying: bool = False,
) -> str:
    """The text of `extern "C" __global__ void name(...)` for one scheduled kernel.

    `first_check` is the number of its first check among those of the whole module. A `guarded`
    kernel has the status as its last parameter, and does nothing where that tells of a failure.
    `as_function` makes it a part of another kernel: a function that is told its block. Numbers are
    marked where they are `varying`, see `varying_numbers`.
    """
    if isinstance(schedule, TemplateSchedule):
        assert not guarded, f"{name} overwrites what lives on"
        return template_text(schedule, name, first_check)
    return _ScheduleWriter(schedule, name, first_check, guarded, as_function, varying).written()


def copy_text(
    nbytes: int, guarded: bool, varying: bool, name: str, as_function: bool = False
) -> str:
    """A kernel that copies bytes from its first parameter to its second; see `kernel_text`."""
    number = Number("long long", nbytes, free=True).marked() if varying else str(nbytes)
    block = "block" if as_function else "blockIdx.x"
    guard = "  if (*failed != 0) return;\n" if guarded else ""
    return f"""\
{_head(name, copy_params(nbytes, guarded), COPY_BLOCK, as_function, varying)}
{guard}  const long long first = ((long long){block} * {COPY_BLOCK} + threadIdx.x) * {COPY_BYTES};
  if (first + {COPY_BYTES} <= {number}) {{
    typedef Pack<unsigned int, {COPY_BYTES // 4}> Piece;
    *(Piece*)(to + first) = *(const Piece*)(from + first);
  }} else {{
    for (long long i = first; i < {number}; ++i) to[i] = from[i];
  }}
}}
"""


def copy_params(nbytes: int, guarded: bool) -> tuple[Param, ...]:
    """The parameters of `copy_text`."""
    source, target = Param("from", uint8, nbytes), Param("to", uint8, nbytes, written=True)
    return (source, target, GUARD) if guarded else (source, target)


def _head(
    name: str,
    params: Sequence[Param],
    threads: int,
    as_function: bool,
    varying: bool,
    shares: bool = False,
    resident: int = 0,
) -> str:
    """The first line of a kernel, of which a multiprocessor may have `resident` blocks at once."""
    listed = [declared(param) for param in params]
    numbers = TAKEN_HERE if varying else ""
    if as_function:
        listed += [SHARED] if shares else []
        listed.append("const unsigned int block")
        return f"__device__ __forceinline__ void {name}({', '.join(listed)}{numbers}) {{"
    text = ", ".join(listed) + numbers
    bounds = f"{threads}, {resident}" if resident else f"{threads}"
    return f'extern "C" __global__ void __launch_bounds__({bounds}) {name}({text}) {{'


class _ScheduleWriter(KernelWriter):
    """One kernel on its way out: lines so far, and the current indentation."""

    def __init__(
        self,
        schedule: CudaSchedule,
        name: str,
        first_check: int,
        guarded: bool,
        as_function: bool,
        varying: bool,
    ) -> None:
        integer = "int" if _fits_int(schedule) else "long long"
        super().__init__(schedule.kernel, integer, first_check, varying)
        self.schedule = schedule
        self.as_function = as_function
        self.block_number = "block" if as_function else "blockIdx.x"
        self.guarded = guarded
        self.name = name
        points = prod(axis.size for axis in self.kernel.rows)
        # There threads without a point return.
        returns = schedule.layout in (Layout.POINTWISE, Layout.TRANSPOSED_TILE)
        everybody = returns or self._is_even(points, schedule.items_per_block)
        self.active = "" if everybody else "active"
        first_member = "member == 0" if schedule.group > 1 else ""
        self.owner = " && ".join(each for each in (self.active, first_member) if each)

    def _is_even(self, size: int, step: int) -> bool:
        """Whether a size is a multiple of a step, and that of other texts with it."""
        return step == 1 or (size % step == 0 and not self.varying)

    def written(self) -> str:
        x, y = self.schedule.block
        params = [*self.kernel.params, GUARD] if self.guarded else self.kernel.params
        shares = bool(self.schedule.joined)
        resident = WALKING_THREADS // (x * y) if self.schedule.walked > 1 else 0
        head = _head(self.name, params, x * y, self.as_function, self.varying, shares, resident)
        if self.guarded:
            self.line("if (*failed != 0) return;")
        if self.schedule.layout is Layout.TRANSPOSED_TILE:
            self._tile()
        elif self.schedule.layout is Layout.REUSE_TILE:
            write_reuse_tile(self, self.schedule, self.block_number)
        else:
            self._points()
        return "\n".join([head, *self.lines, "}", ""])

    # -- the thread's point --------------------------------------------------------------

    def _points(self) -> None:
        """What a thread computes of its point; of each of its points where it has many."""
        schedule = self.schedule
        if schedule.walked > 1:
            self._walk_over_points()
            return
        if schedule.layout is not Layout.POINTWISE:
            self._find_member()
            self._find_point()
            self._declare()
            self._compute()
            return
        first = f"({self.integer}){self.block_number} * {schedule.items_per_block} + threadIdx.x"
        items = self.number(schedule.items, free=True)
        if schedule.strides_over_grid:
            step = schedule.grid * schedule.items_per_block
            head = f"for ({self.integer} item = {first}; item < {items}; item += {step})"
            with self.block(head):
                self.decode("item", self.kernel.rows, schedule.vector)
                self._declare()
                self._compute()
            return
        self.line(f"const {self.integer} item = {first};")
        if not self._is_even(schedule.items, schedule.items_per_block):
            self.line(f"if (item >= {items}) return;")
        self.decode("item", self.kernel.rows, schedule.vector)
        self._declare()
        self._compute()

    def _walk_over_points(self) -> None:
        """A block computes neighbouring points, and then stores the sums of what they give."""
        schedule = self.schedule
        self._find_member()
        self._declare_rows()
        first = f"({self.integer}){self.block_number} * {self.number(schedule.walked)}"
        walk = f"for (int walk = 0; walk < {self.number(schedule.walked, free=True)}; ++walk)"
        self.line("#pragma unroll 1")
        with self.block(walk):
            self.line(f"const {self.integer} point = {first} + walk;")
            self.decode("point", self.kernel.rows)
            self._declare_results()
            self._compute()
        self.line(f"const {self.integer} point = {first};")
        self.decode("point", self.kernel.rows)
        for stage in self.kernel.stages:
            if any(map(adds_up_rows, stage.body)):
                self._store_sums(stage)

    def _store_sums(self, stage: Stage) -> None:
        """Store the sums of rows that a stage has added to."""
        body: list[Instr] = []
        for instr in filter(adds_up_rows, stage.body):
            slot = Instr("saved", (), instr.dtype, value=instr.value[1])
            body += slot, replace(instr, args=(len(body),), value=None)
        stored = Stage(stage.axes, tuple(body))
        with self.block(""):
            self._loop(stored, StageBody(self, stored))

    def _compute(self) -> None:
        for stage in self.kernel.stages:
            self._stage(stage)

    def _find_member(self) -> None:
        schedule = self.schedule
        is_column = schedule.layout is Layout.COLUMN
        member = "threadIdx.y" if is_column else f"threadIdx.x % {schedule.group}"
        if schedule.group > 1:
            shared = f"of the {schedule.group} that share a point"
            self.line(f"const int member = {member};  // {shared}")

    def _find_point(self) -> None:
        schedule = self.schedule
        first = f"({self.integer}){self.block_number} * {schedule.items_per_block}"
        is_column = schedule.layout is Layout.COLUMN
        mine = "threadIdx.x" if is_column else f"threadIdx.x / {schedule.group}"
        mine = f" + {mine}" if schedule.items_per_block > 1 else ""
        point = (
            f"{first}{mine}"
            if schedule.items_per_block > 1
            else f"({self.integer}){self.block_number}"
        )
        if not self.active:
            self.line(f"const {self.integer} point = {point};")
        else:
            # Threads without a point go along, for the others wait for them.
            items, last = (self.number(schedule.items - less, free=True) for less in (0, 1))
            self.line(f"const bool active = {point} < {items};")
            self.line(f"const {self.integer} point = active ? {point} : {last};")
        self.decode("point", self.kernel.rows)

    def decode(self, number: str, axes: Sequence[Axis], vector: int = 1) -> None:
        sizes = [axis.size for axis in axes]
        if axes:
            sizes[-1] //= vector
        behind = 1
        for position in range(len(axes) - 1, -1, -1):
            value = f"{number} / {self.number(behind)}" if behind > 1 else number
            behind *= sizes[position]
            if position > 0:
                value = f"{value} % {self.number(sizes[position])}"
            if position == len(axes) - 1 and vector > 1:
                value = f"({value}) * {vector}" if position > 0 else f"{value} * {vector}"
            self.line(f"const {self.integer} {axes[position]} = {value};")

    def _tile(self) -> None:
        """A tile of the two last axes: what is transposed is loaded along its axis, and shared."""
        kernel = self.kernel
        *others, down, along = kernel.rows
        many_down, many_along = self.schedule.tiles
        (stage,) = kernel.stages
        body = StageBody(self, stage)
        transposed = [
            number
            for number, instr in enumerate(stage.body)
            if is_transposed(kernel, instr, down, along)
        ]
        tile = f"({self.integer}){self.block_number}"
        self.decode(f"({tile} / {self.number(many_down * many_along)})", others)
        in_row, in_column = self.number(many_along), self.number(many_down)
        self.line(f"const {self.integer} first_{down} = {tile} / {in_row} % {in_column} * {TILE};")
        self.line(f"const {self.integer} first_{along} = {tile} % {in_row} * {TILE};")
        for number in transposed:
            type_ = memory_type(kernel.params[stage.body[number].param].dtype)
            # One more column than a tile has: else threads of a warp would meet in one bank.
            self.line(f"__shared__ {type_} tile{number}[{TILE}][{TILE + 1}];")
        with self._walk(down, along):
            for number in transposed:
                self.line(f"tile{number}[row][threadIdx.x] = {body.raw_load(number)};")
        self.line("__syncthreads();")
        for number in transposed:
            dtype = kernel.params[stage.body[number].param].dtype
            body.given[number] = widen(f"tile{number}[threadIdx.x][row]", dtype)
        with self._walk(along, down):
            body.write_all("")

    @contextmanager
    def _walk(self, lane: Axis, other: Axis) -> Iterator[None]:
        """A loop over a tile, threads of a warp along `lane`, for the points that exist."""
        with self.block(f"for (int row = threadIdx.y; row < {TILE}; row += {TILE_ROWS})"):
            self.line(f"const {self.integer} {lane} = first_{lane} + threadIdx.x;")
            self.line(f"const {self.integer} {other} = first_{other} + row;")
            ragged = [axis for axis in (lane, other) if not self._is_even(axis.size, TILE)]
            if not ragged:
                yield
                return
            tests = [f"{axis} < {self.number(axis.size, free=True)}" for axis in ragged]
            with self.block(f"if ({' && '.join(tests)})"):
                yield

    # -- storage -------------------------------------------------------------------------

    def _declare(self) -> None:
        """The results of reductions, what joins them, and saved rows."""
        self._declare_results()
        self._declare_rows()

    def _declare_results(self) -> None:
        for instr in self.kernel.instructions():
            if instr.op == "reduce":
                self.line(f"{result_type(instr)} r{instr.value[0]} = {result_start(instr)};")

    def _declare_rows(self) -> None:
        schedule = self.schedule
        if schedule.joined and not self.as_function:
            # One for all reductions: joins wait until the one before has been read.
            self.line(f"__shared__ __align__(16) unsigned char shared[{schedule.joined}];")
        if schedule.cached_in_shared:
            self._declare_shared_rows()
            return
        sums = {instr.value[1] for instr in self.kernel.sums_of_rows}
        for number, (dtype, elements) in enumerate(self.kernel.scratch):
            start = " = {}" if number in sums else ""
            many = cached_elements(schedule, elements)
            self.line(f"{c_type(dtype)} s{number}[{many}]{start};")

    def _declare_shared_rows(self) -> None:
        """Rows in shared memory: elements of neighbouring threads lie beside each other."""
        schedule = self.schedule
        self.line("extern __shared__ __align__(16) unsigned char rows[];")
        thread = "threadIdx.x"
        if schedule.block[1] > 1:
            thread = f"threadIdx.y * {schedule.block[0]} + threadIdx.x"
        offset = 0
        for number, (dtype, elements) in enumerate(self.kernel.scratch):
            type_ = memory_type(dtype)
            place = f"(rows + {offset})" if offset else "rows"
            self.line(f"{type_}* const s{number} = ({type_}*){place} + {thread};")
            offset += schedule.cached_bytes_of(dtype, elements)

    def save(self, number: int, slot: str, value: str) -> None:
        dtype, _ = self.kernel.scratch[number]
        cached = narrow(value, dtype) if self.schedule.cached_in_shared else value
        self.line(f"{self._cached(number, slot)} = {cached};")

    def saved(self, number: int, slot: str) -> str:
        dtype, _ = self.kernel.scratch[number]
        cached = self._cached(number, slot)
        return widen(cached, dtype) if self.schedule.cached_in_shared else cached

    def _cached(self, number: int, slot: str) -> str:
        if self.schedule.cached_in_shared:
            slot = f"({slot}) * {prod(self.schedule.block)}"
        return f"s{number}[{slot}]"

    # -- stages --------------------------------------------------------------------------

    def _stage(self, stage: Stage) -> None:
        alone = self._is_for_one(stage)
        with self.block(f"if ({self.owner})" if alone else ""):
            body = ScanLoop(self, stage) if scans(stage) else StageBody(self, stage)
            if self.schedule.layout is Layout.POINTWISE:
                last = self.kernel.rows[-1] if self.kernel.rows else None
                body.write_vector(last, self.schedule.vector, None)
            elif not stage.axes:
                body.write_all("" if alone else self.owner)
            else:
                body.write_invariant(stage.axes)
                self._loop(stage, body)
        for instr in stage.body:
            if instr.op == "reduce" and self.schedule.group > 1:
                self._join(instr)

    def _is_for_one(self, stage: Stage) -> bool:
        """Whether one thread of a point does a stage, since the others need nothing of it."""
        if not self.owner or stage.axes or self.schedule.layout is Layout.POINTWISE:
            return False
        return not any(instr.op in NEEDED_BY_ALL for instr in stage.body)

    def _loop(self, stage: Stage, body: StageBody) -> None:
        """The part of a stage's loop that a thread has."""
        schedule = self.schedule
        size = prod(axis.size for axis in stage.axes)
        vector = schedule.vector if stage.axes[-1].size % schedule.vector == 0 else 1
        caches = any(instr.op in ("save", "saved") or adds_up_rows(instr) for instr in stage.body)
        step = schedule.group * vector
        member = "member" if schedule.group > 1 else "0"
        first = f"{member} * {vector}" if vector > 1 and schedule.group > 1 else member
        steps = -(-size // step)
        sums = long_sums(stage) if steps * vector > BLOCK_STEPS else []
        for instr in sums:
            declare_totals(self, instr)
        if isinstance(body, ScanLoop):
            body.write_loop(schedule, caches, sums)
        elif caches:
            self._caching_loop(stage, body, vector, first, bool(sums))
        elif not sums:
            stop = self.number(size)
            with self.block(f"for ({self.integer} j = {first}; j < {stop}; j += {step})"):
                self._loop_body(stage, body, vector, None)
        else:
            block = BLOCK_STEPS // vector * step
            end = self.number(size)
            head = f"for ({self.integer} start = {first}; start < {end}; start += {block})"
            with self.block(head):
                stop = f"min(start + {block}, ({self.integer}){end})"
                self.line(f"const {self.integer} stop = {stop};")
                with self.block(f"for ({self.integer} j = start; j < stop; j += {step})"):
                    self._loop_body(stage, body, vector, None)
                for instr in sums:
                    self.line(carry(instr))
        for instr in sums:
            if caches or scans(stage):
                self.line(carry(instr))
            self.line(total(instr))

    def _caching_loop(
        self, stage: Stage, body: StageBody, vector: int, first: str, in_blocks: bool
    ) -> None:
        """A thread's part of a loop that caches elements for later stages, or reads them."""
        schedule = self.schedule
        size = prod(axis.size for axis in stage.axes)
        step = schedule.group * vector
        steps = -(-size // step)
        # Registers have no addresses: loops over them are written out. A block alone on its
        # multiprocessor, as those with rows in shared memory are, needs many loads under way.
        self.line("#pragma unroll 8" if schedule.cached_in_shared else "#pragma unroll")
        with self.block(f"for (int step = 0; step < {steps}; ++step)"):
            self.line(f"const {self.integer} j = step * {step} + {first};")
            if self._is_even(size, step):
                self._loop_body(stage, body, vector, "step")
            else:
                with self.block(f"if (j < {self.number(size, free=True)})"):
                    self._loop_body(stage, body, vector, "step")
            if in_blocks:
                block = BLOCK_STEPS // vector
                with self.block(f"if (step % {block} == {block - 1})"):
                    for instr in long_sums(stage):
                        self.line(carry(instr))

    def _loop_body(self, stage: Stage, body: StageBody, vector: int, step: str | None) -> None:
        self.decode("j", stage.axes)
        body.write_vector(stage.axes[-1], vector, step, guard=self.active)

    def _join(self, instr: Instr) -> None:
        """What the members of a group have reduced becomes one value, known to all of them."""
        number, monoid = instr.value
        schedule, join = self.schedule, JOIN[monoid]
        shared = f"({result_type(instr)}*){'shared' if schedule.joined else '0'}"
        if schedule.layout is Layout.COLUMN:
            call = f"tg_join_columns<{join}, {schedule.group}, {schedule.items_per_block}>"
        else:
            call = f"tg_join_neighbours<{join}, {schedule.group}>"
        self.line(f"r{number} = {call}(r{number}, {shared});")


def _fits_int(schedule: CudaSchedule) -> bool:
    """Whether all positions and thread numbers are below 2**31."""
    kernel = schedule.kernel
    if max((param.elements for param in kernel.params), default=0) >= _INT_LIMIT:
        return False
    threads = schedule.grid * schedule.items_per_block * schedule.group
    if (schedule.items + threads) * schedule.vector >= _INT_LIMIT:
        return False
    step = schedule.group * BLOCK_STEPS
    if schedule.reuse_tile is not None:
        step = schedule.reuse_tile.depth
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
