"""The texts of the kernels that add at positions in a fixed order.

See `scatter_schedule.py`: the result starts as its base, positions are sorted, neighbours in
the sorted order are summed, and what several pieces have of one row is joined.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...kernel.kernel import compute_dtype
from .scalar import TEMPLATES, c_type, literal, memory_type, narrow, widen
from .scatter_schedule import (
    ATOMIC_BLOCK,
    JOIN_COLUMNS,
    JOIN_MEMBERS,
    START_BLOCK,
    SUM_UNROLLED,
    AtomicSchedule,
    CountSchedule,
    JoinSchedule,
    PlaceSchedule,
    ScatterSchedule,
    StartSchedule,
    SumSchedule,
)
from .writer import CudaWriter, digit, linear


def scatter_text(schedule: ScatterSchedule, name: str, first_check: int) -> str:
    """The text of one of the kernels."""
    writer = _Scatter(schedule)
    with writer.definition(schedule, name):
        match schedule:
            case StartSchedule():
                writer.start(schedule)
            case AtomicSchedule():
                writer.add_atomically(first_check)
            case CountSchedule():
                writer.count(schedule, first_check)
            case PlaceSchedule():
                writer.place(schedule, first_check)
            case SumSchedule():
                writer.sum(schedule)
            case JoinSchedule():
                writer.join(schedule)
    return writer.text()


class _Scatter(CudaWriter):
    def __init__(self, schedule: ScatterSchedule) -> None:
        super().__init__()
        self.problem = schedule.problem
        self.integer = "int" if self.problem.fits_int else "long long"
        self.dtype = compute_dtype(self.problem.dtype)
        self.type = c_type(self.dtype)
        self.zero = literal(0, self.dtype)
        self.digits = 1 << self.problem.digit_bits

    def add(self, a: str, b: str) -> str:
        name = "logical_or" if self.dtype.kind == "bool" else "add"
        return TEMPLATES[name]([a, b], self.dtype)

    def start(self, schedule: StartSchedule) -> None:
        problem, vector = self.problem, schedule.vector
        type_ = memory_type(problem.dtype)
        items = problem.elements // vector
        self.line(f"const {self.integer} item = ({self.integer})blockIdx.x * {START_BLOCK} + "
                  "threadIdx.x;")  # fmt: skip
        if items % START_BLOCK:
            self.line(f"if (item >= {items}) return;")
        pack = f"Pack<{type_}, {vector}>"
        if problem.base is None:
            self.line(
                f"*({pack}*)(out + item * {vector}) = *(const {pack}*)(base + item * {vector});"
            )
            return
        value = narrow(literal(problem.base, self.dtype), problem.dtype)
        self.line(f"const {type_} value = {value};")
        self.line(
            f"*({pack}*)(out + item * {vector}) = {pack}{{{{{', '.join(['value'] * vector)}}}}};"
        )

    def add_atomically(self, first_check: int) -> None:
        problem, integer = self.problem, self.integer
        items = problem.count * problem.columns
        self._row_of(0, first_check, True)
        self.line(f"const {integer} item = ({integer})blockIdx.x * {ATOMIC_BLOCK} + threadIdx.x;")
        if items % ATOMIC_BLOCK:
            self.line(f"if (item >= {items}) return;")
        columns = problem.columns
        self.line(f"const int i = (int)({f'item / {columns}' if columns > 1 else 'item'});")
        self.line(f"const {integer} column = {f'item % {columns}' if columns > 1 else '0'};")
        values = linear([*self._source, (f"({integer})i", problem.values.step)],
                        problem.values.offset)  # fmt: skip
        row = f"({integer})row_of(i) * {problem.width}"
        self.line(f"atomicAdd(out + {self._each_column} + {row}, values[{values}]);")

    # -- sorting -------------------------------------------------------------------------

    def _row_of(self, number: int, first_check: int, reports: bool) -> None:
        """The row of addition i; in the first pass from its positions, which are checked once."""
        if number > 0:
            return
        problem = self.problem
        with self.block("const auto row_of = [&](const int i)", "};"):
            terms = []
            for at, each in enumerate(problem.positions):
                place = linear([("i" if each.stride == 1 else f"({self.integer})i", each.stride)],
                               each.offset)  # fmt: skip
                self.line(
                    f"const int p{at} = (int)tg_check(at{at}[{place}], {each.size}, "
                    f"{first_check + at + 1}, {'true' if reports else 'false'}, status);"
                )
                terms.append((f"p{at}", each.factor))
            for part in problem.digits:
                highest = part.below * part.size == problem.count
                terms.append((digit("i", part.below, part.size, highest), part.factor))
            self.line(f"return {linear(terms)};")

    def _row(self, number: int, i: str) -> str:
        return f"rows_in[{i}]" if number > 0 else f"row_of({i})"

    def _digit(self, row: str, number: int) -> str:
        """The bits of a row that a pass sorts by."""
        shift = number * self.problem.digit_bits
        shifted = f"{row} >> {shift}" if shift else row
        return f"{shifted} & {self.digits - 1}"

    def count(self, schedule: CountSchedule, first_check: int) -> None:
        problem, number, threads = self.problem, schedule.number, schedule.block[0]
        self._row_of(number, first_check, True)
        self.line(f"__shared__ int count[{self.digits}];")
        self.line(f"for (int d = threadIdx.x; d < {self.digits}; d += {threads}) count[d] = 0;")
        self.line("__syncthreads();")
        self.line(f"const int first = (int)blockIdx.x * {problem.share};")
        self.line(f"const int end = min(first + {problem.share}, {problem.count});")
        with self.block(f"for (int i = first + threadIdx.x; i < end; i += {threads})"):
            self.line(f"atomicAdd(&count[{self._digit(self._row(number, 'i'), number)}], 1);")
        self.line("__syncthreads();")
        self.line(f"for (int d = threadIdx.x; d < {self.digits}; d += {threads}) "
                  f"counts[blockIdx.x * {self.digits} + d] = count[d];")  # fmt: skip

    def place(self, schedule: PlaceSchedule, first_check: int) -> None:
        """Each warp has neighbours; equal digits keep their order within and between warps."""
        problem, number, threads = self.problem, schedule.number, schedule.block[0]
        warps = threads // 32
        alone = problem.sort_blocks == 1
        self._row_of(number, first_check, alone)
        self.line("// Of each warp and digit: how many there are, then where the next one goes.")
        self.line(f"__shared__ int next[{warps}][{self.digits}];")
        self.line(f"__shared__ int start[{self.digits}];")
        self.line("const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;")
        share = problem.share // warps
        self.line(f"const int first = (int)blockIdx.x * {problem.share} + warp * {share};")
        self.line(f"const int end = min(first + {share}, {problem.count});")
        self.line(f"for (int d = lane; d < {self.digits}; d += 32) next[warp][d] = 0;")
        self.line("__syncwarp();")
        with self.block("for (int i = first + lane; i < end; i += 32)"):
            self.line(f"atomicAdd(&next[warp][{self._digit(self._row(number, 'i'), number)}], 1);")
        self.line("__syncthreads();")
        self._start_digits(threads, warps, alone)
        self._place_rounds(number)

    def _start_digits(self, threads: int, warps: int, alone: bool) -> None:
        """Equal digits of earlier blocks and warps stand before one's own, smaller ones too."""
        problem = self.problem
        with self.block(f"for (int d = threadIdx.x; d < {self.digits}; d += {threads})"):
            self.line("int before = 0, all = 0;")
            if not alone:
                self.line("#pragma unroll 16")
                with self.block(f"for (int other = 0; other < {problem.sort_blocks}; ++other)"):
                    self.line(f"const int found = counts[other * {self.digits} + d];")
                    self.line("all += found;")
                    self.line("if (other < (int)blockIdx.x) before += found;")
            with self.block(f"for (int other = 0; other < {warps}; ++other)"):
                self.line("const int found = next[other][d];")
                self.line("next[other][d] = before;")
                self.line("before += found;")
            self.line(f"start[d] = {'before' if alone else 'all'};")
        self.line("__syncthreads();")
        each = max(self.digits // 32, 1)
        with self.block("if (warp == 0)"):
            self.line("// The first warp turns counts into sums of those before.")
            self.line("int sum = 0;")
            lanes = min(self.digits, 32)
            mine = f"lane * {each}"
            inside = f"lane < {lanes}" if lanes < 32 else ""
            loop = f"for (int d = {mine}; d < {mine} + {each}; ++d)"
            self.line(f"{f'if ({inside}) ' if inside else ''}{loop} sum += start[d];")
            self.line("const int own = sum;")
            with self.block("for (int by = 1; by < 32; by *= 2)"):
                self.line("const int lower = __shfl_up_sync(0xffffffffu, sum, by);")
                self.line("if (lane >= by) sum += lower;")
            self.line("sum -= own;")
            with self.block(f"if ({inside})" if inside else ""), self.block(loop):
                self.line("const int found = start[d];")
                self.line("start[d] = sum;")
                self.line("sum += found;")
        self.line("__syncthreads();")

    def _place_rounds(self, number: int) -> None:
        bits = self.problem.digit_bits
        with self.block("for (int round = first; round < end; round += 32)"):
            self.line("const int i = round + lane;")
            self.line("const bool here = i < end;")
            self.line(f"const int row = {self._row(number, 'here ? i : end - 1')};")
            self.line(f"const int own = {self._digit('row', number)};")
            self.line("// The lanes with the same digit.")
            self.line("unsigned int same = __ballot_sync(0xffffffffu, here);")
            self.line("#pragma unroll")
            with self.block(f"for (int bit = 0; bit < {bits}; ++bit)"):
                self.line("const bool set = own >> bit & 1;")
                self.line("const unsigned int lanes = __ballot_sync(0xffffffffu, set);")
                self.line("same &= set ? lanes : ~lanes;")
            self.line("const int rank = __popc(same & ((1u << lane) - 1));")
            with self.block("if (here)"):
                self.line("const int place = start[own] + next[warp][own] + rank;")
                self.line("rows_out[place] = row;")
                self.line(f"order_out[place] = {'order_in[i]' if number > 0 else 'i'};")
            self.line("__syncwarp();")
            self.line("if (here && rank == 0) next[warp][own] += __popc(same);")
            self.line("__syncwarp();")

    # -- summing -------------------------------------------------------------------------

    @property
    def _source(self) -> list[tuple[str, int]]:
        """Where a thread's column stands in an addition."""
        problem = self.problem
        if problem.lead == 1:
            return [("column", 1)]
        width = problem.width
        return [(f"column / {width}", problem.values.outer), (f"column % {width}", 1)]

    @property
    def _each_column(self) -> str:
        """Where a thread's column stands in the first row of the result."""
        problem = self.problem
        if problem.lead == 1:
            return "column"
        slice_ = f"column / {problem.width} * {problem.rows * problem.width}"
        return f"{slice_} + column % {problem.width}"

    @contextmanager
    def _each(self, vector: int) -> Iterator[str]:
        """For each of a thread's columns: the index that an array of them has."""
        if vector == 1:
            yield "0"
            return
        with self.unrolled("v", vector):
            yield "v"

    def _started(self, place: str) -> str:
        """What an element of the result is before anything is added."""
        if self.problem.base is None:
            return widen(place, self.problem.dtype)
        return literal(self.problem.base, self.dtype)

    def sum(self, schedule: SumSchedule) -> None:
        problem, vector, integer = self.problem, self.problem.vector, self.integer
        x, y = schedule.block
        blocks = schedule.column_blocks
        block = "blockIdx.x" if blocks == 1 else f"blockIdx.x / {blocks}"
        lane = "threadIdx.x" if blocks == 1 else f"(blockIdx.x % {blocks} * {x} + threadIdx.x)"
        self.line(f"const int piece = (int)({block}) * {y} + threadIdx.y;")
        self.line(f"const {integer} column = ({integer}){lane} * {vector};")
        tests = []
        if problem.pieces % y:
            tests.append(f"piece >= {problem.pieces}")
        if problem.columns != x * blocks * vector:
            tests.append(f"column >= {problem.columns}")
        if tests:
            self.line(f"if ({' || '.join(tests)}) return;")
        memory = memory_type(problem.dtype)
        self.line(
            f"const {memory}* source = values + {linear(self._source, problem.values.offset)};"
        )
        self.line(f"{memory}* target = out + {self._each_column};")
        self.line(f"const int first = piece * {problem.piece};")
        ragged = problem.count % problem.piece
        end = f"first + {problem.piece}"
        self.line(f"const int end = {f'min({end}, {problem.count})' if ragged else end};")
        self.line(f"{self.type} sum[{vector}] = {{}};")
        self.line("int row = rows_in[first];")
        if problem.pieces > 1:
            self.line("bool whole = first == 0 || rows_in[first - 1] != row;")
        self._add_up()
        self._finish(vector)

    def _add_up(self) -> None:
        """The additions of a piece in order, several loaded before any is added."""
        problem, vector = self.problem, self.problem.vector
        pack = f"Pack<{memory_type(problem.dtype)}, {vector}>"
        with self.block(f"for (int i = first; i < end; i += {SUM_UNROLLED})"):
            self.line(f"int row_of[{SUM_UNROLLED}];")
            self.line(f"{pack} value[{SUM_UNROLLED}];")
            with self.unrolled("u", SUM_UNROLLED):
                self.line("const int at = min(i + u, end - 1);")
                self.line("row_of[u] = rows_in[at];")
                step = linear([(f"({self.integer})order_in[at]", problem.values.step)])
                self.line(f"value[u] = *(const {pack}*)(source + {step});")
            with self.unrolled("u", SUM_UNROLLED):
                self.line("if (i + u >= end) break;")
                with self.block("if (row_of[u] != row)"):
                    self._flush(vector, "whole" if problem.pieces > 1 else "true")
                    with self._each(vector) as v:
                        self.line(f"sum[{v}] = {self.zero};")
                    self.line("row = row_of[u];")
                    if problem.pieces > 1:
                        self.line("whole = true;")
                with self._each(vector) as v:
                    value = widen(f"value[u].at[{v}]", problem.dtype)
                    self.line(f"sum[{v}] = {self.add(f'sum[{v}]', value)};")

    def _flush(self, vector: int, whole: str) -> None:
        """A run ends: the result has its row, or a part is left of one that began before."""
        if whole == "true":
            self._add_to_row(vector)
            return
        with self.block(f"if ({whole})"):
            self._add_to_row(vector)
        with self.block("else"):
            self._leave("0", vector)

    def _add_to_row(self, vector: int) -> None:
        problem = self.problem
        memory = memory_type(problem.dtype)
        pack = f"Pack<{memory}, {vector}>"
        self.line(f"{pack}* const place = ({pack}*)(target + "
                  f"{linear([(f'({self.integer})row', problem.width)])});")  # fmt: skip
        if problem.base is None:
            self.line(f"{pack} total = *place;")
        else:
            self.line(f"{pack} total;")
        with self._each(vector) as v:
            total = self.add(self._started(f"total.at[{v}]"), f"sum[{v}]")
            self.line(f"total.at[{v}] = {narrow(f'({total})', problem.dtype)};")
        self.line("*place = total;")

    def _leave(self, which: str, vector: int) -> None:
        """A part of a run that other pieces have too: the first of a piece, or the last."""
        with self._each(vector) as v:
            column = "column" if v == "0" and vector == 1 else f"column + {v}"
            self.line(f"part[(({self.integer})piece * 2 + {which}) * {self.problem.columns} + "
                      f"{column}] = sum[{v}];")  # fmt: skip

    def _finish(self, vector: int) -> None:
        """The last run of a piece may go on in the next one."""
        if self.problem.pieces == 1:
            self._flush(vector, "true")
            return
        self.line(f"const bool goes_on = end < {self.problem.count} && rows_in[end] == row;")
        with self.block("if (whole && !goes_on)"):
            self._add_to_row(vector)
        with self.block("else"):
            self._leave("(whole ? 1 : 0)", vector)

    def join(self, schedule: JoinSchedule) -> None:
        problem, blocks = self.problem, schedule.column_blocks
        piece = "(int)blockIdx.x" if blocks == 1 else f"(int)(blockIdx.x / {blocks})"
        self.line(f"const int piece = {piece};")
        self.line(f"const int end = (piece + 1) * {problem.piece};")
        self.line("const int row = rows_in[end - 1];")
        self.line("// Only where a run begins in this piece and goes on in the next one.")
        self.line("if (rows_in[end] != row) return;")
        self.line(f"const int first = piece * {problem.piece};")
        self.line("if (first > 0 && rows_in[first - 1] == row) return;")
        self.line("// Where the next row begins: near, as a rule.")
        self.line("int low = end, step = 1;")
        with self.block(f"while (low + step < {problem.count} && rows_in[low + step] == row)"):
            self.line("low += step;")
            self.line("step *= 2;")
        self.line(f"int high = min(low + step, {problem.count});")
        self.line("++low;")
        with self.block("while (low < high)"):
            self.line("const int middle = low + (high - low) / 2;")
            self.line("if (rows_in[middle] == row) low = middle + 1; else high = middle;")
        self.line(f"const int last = (low - 1) / {problem.piece};")
        self.line(f"__shared__ {self.type} sums[{JOIN_MEMBERS}][{JOIN_COLUMNS}];")
        groups = schedule.column_groups
        group = "0" if blocks == 1 else f"(int)(blockIdx.x % {blocks})"
        if groups == blocks:
            self.line(f"const int group = {group};")
            self._join_columns()
            return
        with self.block(f"for (int group = {group}; group < {groups}; group += {blocks})"):
            self._join_columns()
            self.line("__syncthreads();  // what was shared has been read")

    def _join_columns(self) -> None:
        """The parts of a run in the columns of a group, by the threads of a block."""
        problem, integer, columns = self.problem, self.integer, self.problem.columns
        lane = f"({integer})group * {JOIN_COLUMNS} + threadIdx.x"
        self.line(f"const {integer} column = {lane};")
        ragged = columns % JOIN_COLUMNS
        self.line(f"{self.type} sum = {self.zero};")
        with self.block(f"if (column < {columns})" if ragged else ""):
            step = f"other += {JOIN_MEMBERS}"
            value = self.add("sum", f"part[({integer})other * {2 * columns} + column]")
            self.line("#pragma unroll 4")
            self.line(f"for (int other = piece + 1 + threadIdx.y; other <= last; {step})")
            self.line(f"  sum = {value};")
        self.line("sums[threadIdx.y][threadIdx.x] = sum;")
        self.line("__syncthreads();")
        with self.block(f"if (threadIdx.y == 0{f' && column < {columns}' if ragged else ''})"):
            self.line(f"sum = part[({integer})piece * {2 * columns} + {columns} + column];")
            self.line("#pragma unroll")
            self.line(f"for (int member = 0; member < {JOIN_MEMBERS}; ++member) "
                      f"sum = {self.add('sum', 'sums[member][threadIdx.x]')};")  # fmt: skip
            place = f"{self._each_column} + ({integer})row * {problem.width}"
            self.line(f"{memory_type(problem.dtype)}* const place = out + {place};")
            total = self.add(self._started("*place"), "sum")
            self.line(f"*place = {narrow(f'({total})', problem.dtype)};")
