"""Writes reductions with reuse tiles as CUDA C: tiles of results over pieces of the loop.

A piece is loaded into shared memory by all threads of the block, each element once. Then every
thread goes through the piece for the results that it holds, in registers: its loops over them are
written out, so that what they have in common is read and computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod

from ...kernel.index import Axis
from ...kernel.kernel import Instr, Stage, long_sums
from .reuse_tile_schedule import depends_on, tiled_loads
from .scalar import c_type
from .schedule import CudaSchedule
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
from .writer import decode


def write_reuse_tile(writer: KernelWriter, schedule: CudaSchedule, block: str) -> None:
    """Write the body of a kernel with reuse tiles; `block` is the number of the block."""
    _Pairs(writer, schedule).write(block)


class _Pairs:
    def __init__(self, writer: KernelWriter, schedule: CudaSchedule) -> None:
        assert schedule.reuse_tile is not None
        self.writer = writer
        self.line = writer.line
        self.schedule = schedule
        self.kernel = schedule.kernel
        self.reuse = reuse = schedule.reuse_tile
        self.loop, *self.rest = self.kernel.stages
        self.reductions = [instr for instr in self.loop.body if instr.op == "reduce"]
        self.tiled = [
            n for n, instr in enumerate(self.loop.body) if instr in tiled_loads(self.loop)
        ]
        self.length = prod(axis.size for axis in self.loop.axes)
        is_long = self.length > BLOCK_STEPS * reuse.members
        self.long_sums = long_sums(self.loop) if is_long else []
        # The axes with their lane, what lies between a thread's results, and how many it has.
        sides = [(reuse.down, "down", 0), (reuse.along, "along", 1)]
        self.sides = [(axis, name, at) for axis, name, at in sides if axis is not None]

    def write(self, block: str) -> None:
        self._find_tile(block)
        self._declare()
        body = StageBody(self.writer, self.loop)
        self._load_what_stays(body)
        integer, depth = self.writer.integer, self.reuse.depth
        with self.writer.block(
            f"for ({integer} start = 0; start < {self.length}; start += {depth})"
        ):
            for number in self.tiled:
                self._fill(number, body)
            self.line("__syncthreads();")
            self._reduce(body)
            self.line("__syncthreads();")
            self._carry_pieces()
        self._total()
        self._join()
        for stage in self.rest:
            self._finish(stage)

    # -- the results of a thread -----------------------------------------------------------

    def _find_tile(self, block: str) -> None:
        down, along = self.reuse.tiles
        others = self.kernel.rows[: -len(self.sides)]
        tile = f"({self.writer.integer}){block}"
        self._declare_digits(f"({tile} / {down * along})", others)
        if others:
            tile = f"{tile} % {down * along}"
        lanes = self.reuse.lanes[1]
        for axis, name, at in self.sides:
            number = f"{tile} / {along}" if name == "down" else f"{tile} % {along}"
            number = tile if len(self.sides) == 1 else number
            first = f"{number} * {self.reuse.tile[at]}"
            self.line(f"const {self.writer.integer} first_{axis} = {first};")
            lane = "/" if name == "down" else "%"
            mine = f"(int)threadIdx.x {lane} {lanes}" if len(self.sides) > 1 else "(int)threadIdx.x"
            self.line(f"const int {name} = {mine};")

    def _declare_digits(self, number: str, axes: tuple[Axis, ...]) -> None:
        names = [axis.name for axis in axes]
        decode(self.writer, self.writer.integer, number, names, [axis.size for axis in axes])

    @contextmanager
    def _held(
        self, axes: frozenset[Axis], guard: bool = False, inside: bool = False
    ) -> Iterator[None]:
        """Loops over a thread's results along the axes of the pair that `axes` has.

        `guard` leaves out what lies outside, `inside` goes to the last one that is there instead.
        """
        indent = self.writer.indent
        for axis, name, at in self.sides:
            if axis not in axes:
                continue
            lanes, held = self.reuse.lanes[at], self.reuse.held[at]
            self.line("#pragma unroll")
            self.line(f"for (int {name}_i = 0; {name}_i < {held}; ++{name}_i) {{")
            self.writer.indent += 1
            place = f"first_{axis} + {name} + {name}_i * {lanes}"
            ragged = axis.size % self.reuse.tile[at] != 0
            if inside and ragged:
                place = f"min({place}, ({self.writer.integer}){axis.size - 1})"
            self.line(f"const {self.writer.integer} {axis} = {place};")
            if guard and ragged:
                self.line(f"if ({axis} >= {axis.size}) continue;")
        yield
        while self.writer.indent > indent:
            self.writer.indent -= 1
            self.line("}")

    def _of_thread(self, axes: frozenset[Axis]) -> str:
        """The index of what belongs to one result among what a thread holds."""
        return "".join(f"[{name}_i]" for axis, name, _ in self.sides if axis in axes)

    def _sizes(self, axes: frozenset[Axis]) -> str:
        return "".join(f"[{self.reuse.held[at]}]" for axis, _, at in self.sides if axis in axes)

    @property
    def _both(self) -> frozenset[Axis]:
        return frozenset(axis for axis, _, _ in self.sides)

    # -- the loop --------------------------------------------------------------------------

    def _declare(self) -> None:
        for number in self.tiled:
            type_ = c_type(self.loop.body[number].dtype)
            # One more column than a tile has: else threads of a warp would meet in one bank.
            width = self._width(number)
            columns = f"[{width + 1}]" if width > 1 else ""
            self.line(f"__shared__ {type_} tile{number}[{self.reuse.depth}]{columns};")
        if self.schedule.joined:
            self.line(f"__shared__ __align__(16) unsigned char shared[{self.schedule.joined}];")
        for instr in self.reductions:
            number = instr.value[0]
            self.line(f"{result_type(instr)} results{number}{self._sizes(self._both)};")
        with self._held(self._both):
            for instr in self.reductions:
                place = f"results{instr.value[0]}{self._of_thread(self._both)}"
                self.line(f"{place} = {result_start(instr)};")

        for instr in self.long_sums:
            declare_totals(self.writer, instr, self._sizes(self._both))

    def _width(self, number: int) -> int:
        return self.reuse.width(depends_on(self.loop.body[number]))

    def _load_what_stays(self, body: StageBody) -> None:
        """What no step of the loop changes is loaded once, for each result that it differs for."""
        for number, instr in enumerate(self.loop.body):
            if instr.op != "load" or number in self.tiled:
                continue
            axes = depends_on(instr)
            name = f"stays{number}"
            self.line(f"{c_type(instr.dtype)} {name}{self._sizes(axes)};")
            with self._held(axes, inside=True):
                self.line(f"{name}{self._of_thread(axes)} = {body.load(number)};")
            body.given[number] = name + self._of_thread(axes)

    def _fill(self, number: int, body: StageBody) -> None:
        """Bring the elements that one load reads in this piece into shared memory."""
        instr = self.loop.body[number]
        width, depth = self._width(number), self.reuse.depth
        axis = self.reuse.side(depends_on(instr))
        thread = "threadIdx.x"
        if self.reuse.members > 1:
            thread = f"threadIdx.y * {prod(self.reuse.lanes)} + threadIdx.x"
        count, threads = width * depth, self.reuse.threads
        with self.writer.block(f"for (int e = {thread}; e < {count}; e += {threads})"):
            # Neighbouring threads read neighbouring memory: along the loop, or along the tile.
            row, column = ("e", "0") if axis is None else (f"e / {width}", f"e % {width}")
            if axis is not None and self._runs_along_loop(instr, axis):
                row, column = f"e % {depth}", f"e / {depth}"
            self.line(f"const int row = {row};")
            tests = self._piece_tests("row")
            if axis is not None:
                self.line(f"const int column = {column};")
                self.line(f"const {self.writer.integer} {axis} = first_{axis} + column;")
                if axis.size % width:
                    tests.append(f"{axis} < {axis.size}")
            self._declare_step("row")
            place = f"tile{number}[row]{'[column]' if width > 1 else ''}"
            store = f"{place} = {body.load(number)};"
            self.line(f"if ({' && '.join(tests)}) {store}" if tests else store)
        body.given[number] = f"tile{number}[row]"
        if axis is not None and width > 1:
            name, at = next((name, at) for each, name, at in self.sides if each is axis)
            lanes = self.reuse.lanes[at]
            body.given[number] += f"[{name} + {name}_i * {lanes}]"

    def _runs_along_loop(self, instr: Instr, axis: Axis) -> bool:
        assert instr.index is not None
        inner = instr.index.terms.get(self.loop.axes[-1])
        return inner is not None and abs(inner) == 1 and abs(instr.index.terms.get(axis, 0)) != 1

    def _piece_tests(self, row: str) -> list[str]:
        """What holds for steps that are there."""
        return [f"start + {row} < {self.length}"] if self.length % self.reuse.depth else []

    def _declare_step(self, row: str) -> None:
        """Where a step of the piece is in the loop."""
        self._declare_digits(f"(start + {row})", self.loop.axes)

    def _reduce(self, body: StageBody) -> None:
        """The steps of the piece, for all results of the thread; its sums in short blocks."""
        depth, block = self.reuse.depth, BLOCK_STEPS * self.reuse.members
        if not self.long_sums or block >= depth:
            self._reduce_rows(body, "0", str(depth))
            return
        with self.writer.block(f"for (int low = 0; low < {depth}; low += {block})"):
            self._reduce_rows(body, "low", f"low + {block}")
            self._carry()

    def _reduce_rows(self, body: StageBody, low: str, high: str) -> None:
        members = self.reuse.members
        lane = low if members == 1 else "threadIdx.y"
        first = lane if low in ("0", lane) else f"{low} + {lane}"
        tests = " && ".join([f"row < {high}", *self._piece_tests("row")])
        self.line("#pragma unroll 4")
        with self.writer.block(f"for (int row = {first}; {tests}; row += {members})"):
            self._declare_step("row")
            with self._held(self._both):
                for instr in self.reductions:
                    place = f"results{instr.value[0]}{self._of_thread(self._both)}"
                    self.line(f"{result_type(instr)}& r{instr.value[0]} = {place};")
                body.write_all("")

    def _carry(self) -> None:
        """A block of the sums is over."""
        with self._held(self._both):
            self._of_each_sum(carry)

    def _carry_pieces(self) -> None:
        """Some short pieces make a block."""
        depth = self.reuse.depth
        every = BLOCK_STEPS * self.reuse.members // depth
        if not self.long_sums or every < 1:
            return
        test = f"if (start / {depth} % {every} == {every - 1})" if every > 1 else ""
        with self.writer.block(test):
            self._carry()

    def _total(self) -> None:
        """The sums of all blocks, the last one among them."""
        if not self.long_sums:
            return
        with self._held(self._both):
            self._of_each_sum(carry)
            self._of_each_sum(total)

    def _of_each_sum(self, form: Callable[[Instr, str], str]) -> None:
        place = self._of_thread(self._both)
        for instr in self.long_sums:
            number = instr.value[0]
            with self.writer.block(""):
                self.line(f"{result_type(instr)}& r{number} = results{number}{place};")
                self.line(form(instr, place))

    # -- behind the loop -------------------------------------------------------------------

    def _join(self) -> None:
        """What the members of a group have reduced becomes one value, known to all of them."""
        if self.reuse.members == 1:
            return
        with self._held(self._both):
            for instr in self.reductions:
                number, monoid = instr.value
                place = f"results{number}{self._of_thread(self._both)}"
                sizes = f"{self.reuse.members}, {prod(self.reuse.lanes)}"
                call = f"tg_join_columns<{JOIN[monoid]}, {sizes}>"
                self.line(f"{place} = {call}({place}, ({result_type(instr)}*)shared);")

    def _finish(self, stage: Stage) -> None:
        """A stage behind the loop, for each result that is there, by one of its members."""
        one = "if (threadIdx.y == 0)" if self.reuse.members > 1 else ""
        with self.writer.block(one), self._held(self._both, guard=True):
            for instr in self.reductions:
                place = f"results{instr.value[0]}{self._of_thread(self._both)}"
                self.line(f"const {result_type(instr)} r{instr.value[0]} = {place};")
            StageBody(self.writer, stage).write_all("")
