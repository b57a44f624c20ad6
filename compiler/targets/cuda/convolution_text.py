"""The text of a convolution: a matrix product in shared memory whose operands are read in place.

Each slice of k goes from memory into registers while the slice before is multiplied, then into the
other half of the shared memory: one barrier per slice. See `convolution_schedule.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import product
from math import prod

from ....runtime.dtypes import DType
from ...ir.shapes import contiguous_strides
from ...kernel.kernel import compute_dtype
from .convolution_schedule import (
    SUM_BLOCK,
    Axis,
    Convolution,
    ConvolutionSchedule,
    ConvolutionSumSchedule,
)
from .scalar import c_type, literal, memory_type, narrow, widen
from .writer import CudaWriter, conditions, decode, digit, linear

# Threads of a warp along the columns of a tile; the others of its 32 stand along the rows.
WARP_COLUMNS = 8
WARP_ROWS = 4
# With as many threads on a multiprocessor, each has up to 128 registers.
_THREADS_PER_PROCESSOR = 512


def convolution_text(schedule: ConvolutionSchedule, name: str) -> str:
    """The kernel that computes tiles of the result, or of its parts."""
    writer = _Convolution(schedule)
    writer.write(name)
    return writer.text()


def convolution_sum_text(schedule: ConvolutionSumSchedule, name: str) -> str:
    """The kernel that adds up the parts of every result."""
    writer = _Sum(schedule)
    writer.write(name)
    return writer.text()


class _Convolution(CudaWriter):
    def __init__(self, schedule: ConvolutionSchedule) -> None:
        super().__init__()
        self.schedule = schedule
        self.problem = schedule.problem
        self.tile = schedule.tile
        self.vector = schedule.vector
        self.integer = "int" if schedule.fits_int else "long long"
        self.dtype: DType = compute_dtype(self.problem.dtype)
        self.type = c_type(self.dtype)
        self.zero = literal(0, self.dtype)
        self.numbers = range(len(self.problem.axes))
        self.taps: tuple[int, ...] = ()  # of the places that are being written for

    def write(self, name: str) -> None:
        with self.definition(self.schedule, name, _THREADS_PER_PROCESSOR // self.tile.threads):
            self._declare_tiles()
            self._find_tile()
            self._find_w()
            self._find_x()
            self.line(f"{self.type} sum[{self.tile.each_m}][{self.tile.each_n}] = {{}};")
            for test, taps in self._numbers_of_taps():
                self.taps = taps
                with self.block(f"if ({test})") if test else nullcontext():
                    self._find_end()
                    self._fetching()
                    self._keeping()
                    self._multiply()
            self._store()

    def constant(self, name: str, value: str) -> None:
        self.line(f"const {self.integer} {name} = {value};")

    # -- where ---------------------------------------------------------------------------

    def _declare_tiles(self) -> None:
        """Two of each: one is filled while the other is read."""
        for name, size, along_k in (
            ("w_tile", self.tile.m, self.schedule.w_along_k),
            ("x_tile", self.tile.n, self.schedule.x_along_k),
        ):
            # Threads that write along k would else meet in one bank.
            width = size + self.vector if along_k else size
            self.line(f"__shared__ __align__(16) {self.type} {name}[2][{self.tile.k}][{width}];")

    def _find_tile(self) -> None:
        """The block's tile, and the thread's square in it: warps are 8 x 4 threads."""
        schedule, problem, tile = self.schedule, self.problem, self.tile
        sizes = (schedule.splits, problem.phases, problem.groups, schedule.tiles_n,
                 schedule.tiles_m)  # fmt: skip
        names = ("part", "phase", "group", "tile_n", "tile_m")
        self.constant("tile", f"({self.integer})blockIdx.x")
        decode(self, self.integer, "tile", names, sizes)
        self.constant("first_m", f"tile_m * {tile.m}")
        self.constant("first_n", f"tile_n * {tile.n}")
        self.constant("first_k", f"part * {schedule.chunk}")
        self._find_phase()
        warps = tile.n // tile.each_n // WARP_COLUMNS
        self.line("const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;")
        across, down = digit("warp", 1, warps, False), f"warp / {warps}"
        if warps == 1:
            across, down = "0", "warp"
        self.line(f"const int at_n = (lane % {WARP_COLUMNS} + {across} * {WARP_COLUMNS})"
                  f" * {self.vector};")  # fmt: skip
        self.line(f"const int at_m = (lane / {WARP_COLUMNS} + {down} * {WARP_ROWS})"
                  f" * {self.vector};")  # fmt: skip

    def _find_phase(self) -> None:
        """Per axis: the phase, the first tap that it meets, and where this stands in the input."""
        problem = self.problem
        if problem.phases == 1:
            return
        names = [f"phase{number}" for number in self.numbers]
        decode(self, self.integer, "phase", names, [axis.phases for axis in problem.axes])
        for number, axis in enumerate(problem.axes):
            if axis.phases == 1:
                continue
            start, by = axis.first_tap_terms
            self.constant(
                f"tap{number}",
                f"({linear([(f'phase{number}', by)], start)}) % {axis.phases}",
            )
            inner = linear(
                [(f"phase{number}", axis.stride), (f"tap{number}", axis.dilation)], -axis.low
            )
            self.constant(f"shift{number}", f"({inner}) / {axis.phases}")

    def _numbers_of_taps(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """How many taps the places of a phase meet on each axis, and for which phases.

        There is nothing to add up where they meet none.
        """
        choices = []
        for number, axis in enumerate(self.problem.axes):
            fewer, ragged = divmod(axis.taps, axis.phases)
            first = f"tap{number}"
            choices.append(
                [(f"{first} < {ragged}", fewer + 1), (f"{first} >= {ragged}", fewer)]
                if ragged
                else [("", fewer)]
            )
        for chosen in product(*choices):
            taps = tuple(count for _, count in chosen)
            if all(taps):
                test = conditions(test for test, _ in chosen)
                yield "" if test == "true" else test, taps

    @property
    def k(self) -> int:
        """Rows of the product for these places."""
        return self.problem.channels * prod(self.taps)

    def _find_end(self) -> None:
        chunk = self.schedule.chunk
        if self.schedule.splits == 1:
            self.constant("end_k", f"{self.k}")
            return
        end = f"first_k + {chunk}"
        ragged = self.schedule.splits * chunk != self.k
        self.constant("end_k", f"{end} < {self.k} ? {end} : {self.k}" if ragged else end)

    def _position(self, number: int, axis: Axis) -> str:
        """Where the window of place q begins on the input's axis."""
        if axis.phases > 1:
            return f"{linear([(f'q{number}', axis.stride)])} + shift{number}"
        return linear([(f"q{number}", axis.stride)], -axis.low)

    # -- reading -------------------------------------------------------------------------

    def _rows(self, along_k: bool, width: int) -> tuple[str, str, int, int]:
        """The first row and column of a slice that a thread fetches, how many, and their step.

        Along k a thread has one row k and several columns, else one column and several rows.
        """
        threads = self.tile.threads
        if along_k:
            count = threads // self.tile.k
            return (
                f"threadIdx.x % {self.tile.k}",
                f"threadIdx.x / {self.tile.k}",
                width // count,
                count,
            )
        count = threads // width
        column = f"threadIdx.x % {width}" if count > 1 else "threadIdx.x"
        row = f"threadIdx.x / {width}" if count > 1 else "0"
        return row, column, self.tile.k // count, count

    def _find_w(self) -> None:
        row, column, count, _ = self._rows(self.schedule.w_along_k, self.tile.m)
        self.line(f"const int w_k = {row}, w_m = {column};")
        self.line(f"{self.type} w_next[{count}];")

    def _find_x(self) -> None:
        row, column, count, step = self._rows(self.schedule.x_along_k, self.tile.n)
        self.line(f"const int x_k = {row}, x_n = {column};")
        self.line(f"{self.type} x_next[{count}];")
        if not self.schedule.x_along_k:
            self._find_column("first_n + x_n", "")
            return
        for name in ("x_base", *(f"at{number}" for number in self.numbers)):
            self.line(f"{self.integer} {name}[{count}];")
        with self.unrolled("i", count):
            self._find_column(f"first_n + x_n + i * {step}", "[i]")

    def _find_column(self, column: str, slot: str) -> None:
        """Sample and window of a column of the product; those behind the last one stay inside."""
        problem = self.problem
        ragged = problem.n % self.tile.n != 0
        value = f"{column} < {problem.n} ? {column} : {problem.n - 1}" if ragged else column
        self.constant("j", value)
        sizes = [problem.samples, *(axis.places for axis in problem.axes)]
        decode(self, self.integer, "j", ["sample", *(f"q{each}" for each in self.numbers)], sizes)
        declare = "" if slot else f"const {self.integer} "
        stride_n, stride_c, *strides = problem.x.strides
        base = linear(
            [
                ("sample" if problem.samples > 1 else "", stride_n),
                ("group" if problem.groups > 1 else "", stride_c * problem.channels),
            ],
            problem.x.offset,
        )
        terms = [(base, 1)]
        for number, (axis, stride) in enumerate(zip(problem.axes, strides, strict=True)):
            self.line(f"{declare}at{number}{slot} = {self._position(number, axis)};")
            if axis.zeros == 1:
                terms.append((f"at{number}{slot}", stride))
        self.line(f"{declare}x_base{slot} = {linear(terms)};")

    def _decode_k(self, k: str) -> None:
        """Channel and taps of a row of the product."""
        self.constant("k", k)
        problem = self.problem
        sizes = [problem.channels, *self.taps]
        decode(self, self.integer, "k", ["c", *(f"t{each}" for each in self.numbers)], sizes)

    @contextmanager
    def _each_row(self, along_k: bool, prefix: str, count: int, step: int) -> Iterator[None]:
        """For everything of a slice that a thread fetches, with `k` decoded."""
        if along_k:
            self._decode_k(f"k0 + {prefix}_k")
            with self.unrolled("i", count):
                yield
            return
        with self.unrolled("i", count):
            self._decode_k(f"k0 + {prefix}_k + i * {step}" if step > 1 or count > 1 else "k0")
            yield

    def _fetching(self) -> None:
        with self.block(f"const auto fetch = [&](const {self.integer} k0)", "};"):
            with self.block(""):
                self._fetch_w()
            with self.block(""):
                self._fetch_x()

    @property
    def _test_k(self) -> str:
        """Whether k has an end within a slice."""
        return "k < end_k" if self.k % self.tile.k else ""

    def _fetch_w(self) -> None:
        schedule, problem = self.schedule, self.problem
        along = schedule.w_along_k
        _, _, count, step = self._rows(along, self.tile.m)
        with self._each_row(along, "w", count, step):
            self.constant("m", f"first_m + w_m + i * {step}" if along else "first_m + w_m")
            stride_m, stride_c, *strides = problem.w.strides
            terms = [("m", stride_m), ("c", stride_c)]
            offset = problem.w.offset
            tests = [
                f"m < {problem.outputs}" if problem.outputs % self.tile.m else "",
                self._test_k,
            ]
            if problem.groups > 1:
                terms.append(("group", stride_m * problem.outputs))
            for number, (axis, stride) in enumerate(zip(problem.axes, strides, strict=True)):
                terms.append((f"t{number}", stride * axis.phases))
                if axis.phases > 1:
                    terms.append((f"tap{number}", stride))
            terms = self._flat_terms(terms)
            value = widen(f"w[{linear(terms, offset)}]", problem.dtype)
            self._take("w_next[i]", tests, value)

    def _flat_terms(self, terms: list[tuple[str, int]]) -> list[tuple[str, int]]:
        """The same sum with k itself, where channels and taps lie as they are counted."""
        problem = self.problem
        sizes = (problem.channels, *self.taps)
        names = ("c", *(f"t{number}" for number in self.numbers))
        have = dict(terms)
        step = have[names[-1]]
        wanted = contiguous_strides(sizes)
        flat = all(
            size == 1 or have[name] == stride * step
            for name, size, stride in zip(names, sizes, wanted, strict=True)
        )
        if not flat:
            return terms
        return [*((name, factor) for name, factor in terms if name not in names), ("k", step)]

    def _fetch_x(self) -> None:
        schedule, problem = self.schedule, self.problem
        along = schedule.x_along_k
        _, _, count, step = self._rows(along, self.tile.n)
        with self._each_row(along, "x", count, step):
            slot = "[i]" if along else ""
            _, stride_c, *strides = problem.x.strides
            terms = [(f"x_base{slot}", 1), ("c", stride_c)]
            tests = [self._test_k]
            for number, (axis, stride) in enumerate(zip(problem.axes, strides, strict=True)):
                position = linear([(f"at{number}{slot}", 1), (f"t{number}", axis.dilation)])
                if not axis.is_inside:
                    self.constant(f"p{number}", position)
                    unsigned = "unsigned int" if self.integer == "int" else "unsigned long long"
                    tests.append(f"({unsigned})p{number} < {axis.extent}")
                if axis.zeros == 1:
                    terms.append((f"t{number}", axis.dilation * stride))
                    continue
                tests.append(f"p{number} % {axis.zeros} == 0")
                terms.append((f"p{number} / {axis.zeros}", stride))
            self._take("x_next[i]", tests, widen(f"x[{linear(terms)}]", problem.dtype))

    def _take(self, target: str, tests: list[str], value: str) -> None:
        test = conditions(tests)
        self.line(f"{target} = {value};" if test == "true" else
                  f"{target} = {test} ? {value} : {self.zero};")  # fmt: skip

    def _keeping(self) -> None:
        """What was fetched goes into the tiles."""
        with self.block("const auto keep = [&](const int half)", "};"):
            for name, along, width in (
                ("w", self.schedule.w_along_k, self.tile.m),
                ("x", self.schedule.x_along_k, self.tile.n),
            ):
                _, _, count, step = self._rows(along, width)
                column = "m" if name == "w" else "n"
                row, at = f"{name}_k", f"{name}_{column}"
                moved = f" + i * {step}"
                place = f"[{row}][{at}{moved}]" if along else f"[{row}{moved}][{at}]"
                self.line("#pragma unroll")
                self.line(f"for (int i = 0; i < {count}; ++i) "
                          f"{name}_tile[half]{place} = {name}_next[i];")  # fmt: skip

    # -- multiplying ---------------------------------------------------------------------

    def _multiply(self) -> None:
        tile, vector = self.tile, self.vector
        # Behind the last slice of places that meet fewer taps, a part has nothing to add.
        may_be_empty = self.schedule.splits > 1 and self.k < self.problem.k
        with self.block("if (first_k < end_k)") if may_be_empty else nullcontext():
            self.line("fetch(first_k);")
            self.line("keep(0);")
            self.line("__syncthreads();")
            self.line("int half = 0;")
            head = f"for ({self.integer} k0 = first_k; k0 < end_k; k0 += {tile.k})"
            with self.block(head):
                self.line(f"const bool more = k0 + {tile.k} < end_k;")
                self.line(f"if (more) fetch(k0 + {tile.k});")
                with self.unrolled("k", tile.k):
                    self._multiply_row(vector)
                self.line("if (more) keep(half ^ 1);")
                self.line("__syncthreads();")
                self.line("half ^= 1;")

    def _multiply_row(self, vector: int) -> None:
        """What one row of a slice adds to the thread's sums."""
        tile = self.tile
        pack = f"Pack<{self.type}, {vector}>"
        for name, each, size in (("w", tile.each_m, tile.m), ("x", tile.each_n, tile.n)):
            at = "at_m" if name == "w" else "at_n"
            self.line(f"{pack} {name}_pack[{each // vector}];")
            read = f"*(const {pack}*)&{name}_tile[half][k][{at} + i * {size * vector // each}]"
            self.line("#pragma unroll")
            self.line(f"for (int i = 0; i < {each // vector}; ++i) {name}_pack[i] = {read};")
        with self.unrolled("m", tile.each_m), self.unrolled("n", tile.each_n):
            self.line(f"sum[m][n] += w_pack[m / {vector}].at[m % {vector}] * "
                      f"x_pack[n / {vector}].at[n % {vector}];")  # fmt: skip

    # -- writing -------------------------------------------------------------------------

    def _store(self) -> None:
        """Vectors along the columns where a row of the result has whole ones."""
        schedule, problem, tile, vector = self.schedule, self.problem, self.tile, self.vector
        width = vector if schedule.stores_vectors else 1
        step = tile.n * vector // tile.each_n
        with self.unrolled("n", tile.each_n, width):
            self.constant("j", f"first_n + at_n + n / {vector} * {step} + n % {vector}")
            if problem.n % tile.n:
                self.line(f"if (j >= {problem.n}) continue;")
            row = self._find_row()
            with self.unrolled("i", tile.each_m):
                step_m = tile.m * vector // tile.each_m
                self.constant("m", f"first_m + at_m + i / {vector} * {step_m} + i % {vector}")
                guard = f"if (m < {problem.outputs}) " if problem.outputs % tile.m else ""
                self._store_one(guard, row, width)

    def _store_one(self, guard: str, row: str, width: int) -> None:
        dtype = self.schedule.kernel.params[2].dtype
        if width == 1:
            self.line(f"{guard}y[{row}] = {narrow('sum[i][n]', dtype)};")
            return
        pack = f"Pack<{memory_type(dtype)}, {width}>"
        values = ", ".join(narrow(f"sum[i][n + {each}]", dtype) for each in range(width))
        self.line(f"{guard}*({pack}*)(y + {row}) = {pack}{{{{{values}}}}};")

    def _find_row(self) -> str:
        """The place of result m of column j; of a part where several blocks share the sum."""
        problem = self.problem
        if self.schedule.splits == 1:
            return _find_result(self, problem, self.integer, "continue")
        block = linear(
            [
                ("part", problem.phases * problem.groups),
                ("phase" if problem.phases > 1 else "", problem.groups),
                ("group" if problem.groups > 1 else "", 1),
            ]
        )
        return f"(({block}) * {problem.outputs} + m) * {problem.n} + j"


class _Sum(CudaWriter):
    def __init__(self, schedule: ConvolutionSumSchedule) -> None:
        super().__init__()
        self.schedule = schedule

    def write(self, name: str) -> None:
        convolution = self.schedule.convolution
        problem, splits = convolution.problem, convolution.splits
        integer = "int" if convolution.fits_int else "long long"
        dtype = compute_dtype(problem.dtype)
        items = self.schedule.items
        with self.definition(self.schedule, name):
            self.line(f"const {integer} item = ({integer})blockIdx.x * {SUM_BLOCK} + threadIdx.x;")
            if items % SUM_BLOCK:
                self.line(f"if (item >= {items}) return;")
            sizes = (problem.phases, problem.groups, problem.outputs, problem.n)
            decode(self, integer, "item", ("phase", "group", "m", "j"), sizes)
            names = [f"phase{number}" for number in range(len(problem.axes))]
            if problem.phases > 1:
                decode(self, integer, "phase", names, [axis.phases for axis in problem.axes])
            row = _find_result(self, problem, integer, "return")
            self.line(f"{c_type(dtype)} sum = part[item];")
            self.line("#pragma unroll 4")
            self.line(f"for (int i = 1; i < {splits}; ++i) "
                      f"sum += part[item + ({integer})i * {items}];")  # fmt: skip
            self.line(f"y[{row}] = {narrow('sum', problem.dtype)};")


def _find_result(writer: CudaWriter, problem: Convolution, integer: str, skip: str) -> str:
    """The place in y of result m of column j; `skip` where a phase has no such column."""
    if problem.phases == 1:
        decode(writer, integer, "j", ("sample", "place"), (problem.samples, problem.places))
        inner = "place"
    else:
        names = [f"q{number}" for number in range(len(problem.axes))]
        sizes = [problem.samples, *(axis.places for axis in problem.axes)]
        decode(writer, integer, "j", ["sample", *names], sizes)
        terms: list[tuple[str, int]] = []
        strides = contiguous_strides(tuple(axis.out for axis in problem.axes))
        for number, (axis, stride) in enumerate(zip(problem.axes, strides, strict=True)):
            place = f"(q{number} * {axis.phases} + phase{number})"
            terms.append((f"q{number}" if axis.phases == 1 else place, stride))
            if axis.out % axis.phases:
                writer.line(f"if ({place} >= {axis.out}) {skip};")
        inner = linear(terms)
    channels = problem.groups * problem.outputs
    outer = linear(
        [
            ("sample" if problem.samples > 1 else "", channels),
            ("group" if problem.groups > 1 else "", problem.outputs),
            ("m", 1),
        ]
    )
    return f"({outer}) * {problem.places} + {inner}"
