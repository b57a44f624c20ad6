"""Attention in generated code: softmax(Q Kᵀ) V by blocks of keys, without ever storing scores.

The scheme is that of T. Dao et al., "FlashAttention" (2022) and "FlashAttention-2" (2023): for a
block of keys the scores are computed, weighed by the largest score so far, and multiplied with the
values; when a larger score turns up, what was added up before is scaled down. Here a *panel* of as
many queries as a tile of a matrix product has columns stands side by side in the lanes of vectors.
So scores are the product of keys, read where they lie, and the panel, packed once; maxima and sums
need no lanes to be added up; and the weights are what the second product reads by rows.

A row of the result is the same sum whatever is computed beside it: blocks of keys begin at
multiples of KEYS, and what is masked adds zeros. Keys that no query of a panel sees are skipped;
their weight of zero is multiplied with their values all the same, since NaN and infinities survive.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ....runtime import gemm_native, jit
from ....runtime.gemm_text import VECTORS, GemmText, Tiles, tiles
from .math.builder import FLOAT32, FLOAT64, FunctionBuilder, Value
from .math.exponential import EXP_RANGE, exp_near, zero_below

KEYS = 128
"""Keys of a block: their scores for a panel of queries stay in the first-level cache."""

WORDS = (
    "queries", "keys", "width", "value_width",
    "query_row", "query_column", "key_row", "key_column", "value_row", "value_column",
    "bias_row", "bias_column", "mask_row", "mask_column",
    "scale", "fill", "empty", "has_bias", "has_mask", "is_causal", "diagonal",
    "panels", "units", "dimensions", "has_rows",
)  # fmt: skip
"""The parameters of a call, behind which stand for each dimension of the batch its size and how
many elements the operands go on. Sums of weights that are 0 are multiplied by `empty`. A causal
query i sees the keys up to i + diagonal. A unit of work are so many panels of queries, and there
are so many units for each item of the batch. With `has_rows` the largest score of each query and
the number that weights are multiplied by are kept."""

OPERANDS = ("query", "key", "value", "bias", "mask", "result", "rows")
_FORMATS = {"float": FLOAT32, "double": FLOAT64}
_UNROLL = 4

_loaded: dict[tuple[str, int], int] = {}


def load(dtype: str) -> int:
    """The address of ``void body(ptr args, i64 lo, i64 hi)``, which does units of attention."""
    address = _loaded.get((dtype, KEYS))
    if address is None:
        gemm_native.load(dtype)  # whose tiles and packing it calls
        (module,) = jit.compile_modules([_source(dtype, KEYS)])
        address = _loaded[dtype, KEYS] = module.address("attention")
    return address


def begin(dtype: str) -> None:
    """Begin to compile, in another thread, what `load` will be asked for."""
    if (dtype, KEYS) not in _loaded:
        jit.begin(_source(dtype, KEYS))


@functools.cache
def _source(dtype: str, keys: int) -> jit.Source:
    return jit.Source(text(tiles(dtype, jit.vector_bytes())), passes=False)


def text(of: Tiles) -> str:
    """The module for one type."""
    parts = [*helpers(of), _weigh(of), _shrink(of), _finish(of), _block(of), _unit(of), _body(of)]
    own = "\n".join([*parts, *gemm_native.declarations(of)])
    return gemm_native.shared(of, own)


def helpers(of: Tiles) -> list[str]:
    """Functions that the gradient needs, too."""
    masks = [_add(of), _widen(of), _hide(of), _hide_later(of), _mask(of)]
    return [*masks, _score(of), _mix(of), _vanish(of)]


class _Inline(FunctionBuilder):
    """Writes functions of the math library into the text of another one."""

    def __init__(self, write: GemmText) -> None:
        super().__init__("", _FORMATS[write.of.type].in_vectors(write.of.lanes), ())
        self.write = write

    def emit(self, instruction: str, type: str) -> Value:
        return Value(self, type, self.write.op(instruction))

    def value(self, name: str) -> Value:
        return Value(self, self.format.type, name)


def exp(write: GemmText, x: str) -> str:
    """exp(x) of a vector that is nowhere above zero."""
    inline = _Inline(write)
    low = EXP_RANGE[inline.format.name][0]
    near = zero_below(inline, low, inline.value(x), lambda x: exp_near(inline, x))
    return near.text


def _larger(write: GemmText, one: str, other: str) -> str:
    """The larger of two vectors, or `other` where one is NaN: its weight will be NaN."""
    of = write.of
    more = write.op(f"fcmp ogt {of.vector} {one}, {other}")
    return select(write, more, one, other)


def select(write: GemmText, which: str, one: str, other: str) -> str:
    of = write.of
    return write.op(f"select <{of.lanes} x i1> {which}, {of.vector} {one}, {of.vector} {other}")


def vectors(write: GemmText, base: str) -> list[str]:
    """The places of a panel's row."""
    return [write.at(base, i * write.of.lanes) for i in range(VECTORS)]


def _infinity(of: Tiles) -> str:
    """-inf in every lane."""
    return f"<{', '.join([f'{of.type} 0xFFF0000000000000'] * of.lanes)}>"


def arithmetic(write: GemmText, operation: str, one: str, other: str) -> str:
    return write.op(f"{operation} {write.of.vector} {one}, {other}")


# -- masks: panels of scores, whose rows are keys -----------------------------------------------


def _add(of: Tiles) -> str:
    """Add a panel to the scores."""
    write = GemmText(of, "internal void @add(ptr %s, ptr %bias, i64 %keys)")
    with write.each("0", "%keys") as key:
        row = write.mul(key, of.columns)
        pairs = zip(vectors(write, write.at("%s", row)), vectors(write, write.at("%bias", row)))
        for place, other in pairs:
            score, more = write.load(place, of.vector), write.load(other, of.vector)
            write.store(arithmetic(write, "fadd", score, more), place, of.vector)
    return write.finish()


def _widen(of: Tiles) -> str:
    """A mask of bytes as rows of KEYS numbers, 0 where nothing is seen."""
    head = "internal void @widen(ptr %mask, i64 %row, i64 %column, i64 %rows, i64 %keys, ptr %out)"
    write = GemmText(of, head)
    lanes, bytes_ = of.lanes, f"<{of.lanes} x i8>"
    dense = write.op("icmp eq i64 %column, 1")
    whole = write.choose(dense, write.op(f"and i64 %keys, {-lanes}"), 0)
    with write.each("0", "%rows") as row:
        source = write.op(f"getelementptr i8, ptr %mask, i64 {write.mul(row, '%row')}")
        target = write.at("%out", write.mul(row, KEYS))
        with write.each("0", whole, lanes) as key:
            place = write.op(f"getelementptr i8, ptr {source}, i64 {key}")
            found = write.op(f"load {bytes_}, ptr {place}, align 1")
            seen = write.op(f"icmp ne {bytes_} {found}, zeroinitializer")
            wide = write.op(f"uitofp <{lanes} x i1> {seen} to {of.vector}")
            write.store(wide, write.at(target, key), of.vector)
        with write.each(whole, "%keys") as key:
            along = write.mul(key, "%column")
            place = write.op(f"getelementptr i8, ptr {source}, i64 {along}")
            seen = write.op(f"icmp ne i8 {write.op(f'load i8, ptr {place}, align 1')}, 0")
            write.store(write.op(f"uitofp i1 {seen} to {of.type}"), write.at(target, key))
    return write.finish()


def _hide(of: Tiles) -> str:
    """`fill` for the scores whose place in the other panel is 0."""
    write = GemmText(of, f"internal void @hide(ptr %s, ptr %seen, i64 %keys, {of.type} %fill)")
    fill = write.splat("%fill")
    with write.each("0", "%keys") as key:
        row = write.mul(key, of.columns)
        pairs = zip(vectors(write, write.at("%s", row)), vectors(write, write.at("%seen", row)))
        for place, other in pairs:
            flag = write.load(other, of.vector)
            gone = write.op(f"fcmp oeq {of.vector} {flag}, zeroinitializer")
            score = write.load(place, of.vector)
            write.store(select(write, gone, fill, score), place, of.vector)
    return write.finish()


def _hide_later(of: Tiles) -> str:
    """`fill` for the scores of keys behind the one that lane 0 sees last, lane 1 one more."""
    head = f"internal void @hide_later(ptr %s, i64 %last, i64 %keys, {of.type} %fill)"
    write = GemmText(of, head)
    fill = write.splat("%fill")
    first = write.most(write.add("%last", 1), 0)
    with write.each(first, "%keys") as key:
        hidden = write.sub(key, "%last")  # lanes below this number
        for i, place in enumerate(vectors(write, write.at("%s", write.mul(key, of.columns)))):
            gone = write.mask(write.sub(hidden, i * of.lanes))
            score = write.load(place, of.vector)
            write.store(select(write, gone, fill, score), place, of.vector)
    return write.finish()


def _mask(of: Tiles) -> str:
    """Add the bias to the scores of a panel and the keys from `low` on, and hide what is masked.

    Behind it `transposed` tells which scores the mask shows.
    """
    head = (
        "internal void @mask(ptr %words, ptr %bias, ptr %mask, i64 %first, i64 %rows, i64 %low, "
        "i64 %keys, ptr %s, ptr %flags, ptr %transposed)"
    )
    write = GemmText(of, head)
    given = Parameters(write, "%words")
    with write.when(given.truth("has_bias")):
        row, column = given.bias_row, given.bias_column
        bias = write.at("%bias", write.mul("%first", row), write.mul("%low", column))
        write.line(
            f"call void @pack_b(ptr {bias}, i64 {column}, i64 {row}, ptr %transposed, i64 %keys, "
            f"i64 %rows, {of.type} 1.0)"
        )
        write.line("call void @add(ptr %s, ptr %transposed, i64 %keys)")
    with write.when(given.truth("has_mask")):
        row, column = given.mask_row, given.mask_column
        moved = write.add(write.mul("%first", row), write.mul("%low", column))
        mask = write.op(f"getelementptr i8, ptr %mask, i64 {moved}")
        same = write.op(f"icmp eq i64 {row}, 0")
        count, pitch = write.choose(same, 1, "%rows"), write.choose(same, 0, KEYS)
        write.line(
            f"call void @widen(ptr {mask}, i64 {row}, i64 {column}, i64 {count}, i64 %keys, "
            "ptr %flags)"
        )
        write.line(
            f"call void @pack_b(ptr %flags, i64 1, i64 {pitch}, ptr %transposed, i64 %keys, "
            f"i64 %rows, {of.type} 1.0)"
        )
        fill = given.number("fill")
        write.line(f"call void @hide(ptr %s, ptr %transposed, i64 %keys, {of.type} {fill})")
    with write.when(given.truth("is_causal")):
        last = write.sub(write.add("%first", given.diagonal), "%low")
        infinity = "0xFFF0000000000000"
        write.line(f"call void @hide_later(ptr %s, i64 {last}, i64 %keys, {of.type} {infinity})")
    return write.finish()


# -- softmax ------------------------------------------------------------------------------------


def _weigh(of: Tiles) -> str:
    """Scores become weights by the largest so far; `factor` is what weights before shrink by."""
    head = "internal void @weigh(ptr %s, i64 %keys, ptr %tops, ptr %totals, ptr %factors)"
    write = GemmText(of, head)
    olds = [write.load(place, of.vector) for place in vectors(write, "%tops")]
    tops = _largest(write, olds)
    safes, factors = [], []
    for i, (old, top) in enumerate(zip(olds, tops)):
        # Where all is hidden yet, scores are -inf, and so is the largest: exp(-inf - 0) is 0.
        none = write.op(f"fcmp oeq {of.vector} {top}, {_infinity(of)}")
        safes.append(select(write, none, "zeroinitializer", top))
        factors.append(exp(write, arithmetic(write, "fsub", old, safes[i])))
        write.store(top, vectors(write, "%tops")[i], of.vector)
        write.store(factors[i], vectors(write, "%factors")[i], of.vector)
    zeros = ["zeroinitializer"] * VECTORS
    with write.folding(zeros, "0", "%keys", 1) as (key, sums, new):
        for i, place in enumerate(vectors(write, write.at("%s", write.mul(key, of.columns)))):
            below = arithmetic(write, "fsub", write.load(place, of.vector), safes[i])
            weight = exp(write, below)
            write.store(weight, place, of.vector)
            new.append(arithmetic(write, "fadd", sums[i], weight))
    for i, place in enumerate(vectors(write, "%totals")):
        before = arithmetic(write, "fmul", write.load(place, of.vector), factors[i])
        write.store(arithmetic(write, "fadd", before, new[i]), place, of.vector)
    return write.finish()


def _largest(write: GemmText, starts: list[str]) -> list[str]:
    """The largest scores of each lane."""
    of = write.of
    many = starts * _UNROLL
    whole = write.op(f"and i64 %keys, {-_UNROLL}")
    for low, high, step in (("0", whole, _UNROLL), (whole, "%keys", 1)):
        with write.folding(many, low, high, step) as (key, before, new):
            row = write.at("%s", write.mul(key, of.columns))
            for number, top in enumerate(before):
                if number >= step * VECTORS:
                    new.append(top)
                    continue
                score = write.load(write.at(row, number * of.lanes), of.vector)
                new.append(_larger(write, score, top))
        many = new
    while len(many) > VECTORS:
        half = len(many) // 2
        many = [_larger(write, one, other) for one, other in zip(many[:half], many[half:])]
    return many


def _shrink(of: Tiles) -> str:
    """Scale the rows of sums by their factors, of which most are 1."""
    write = GemmText(of, "internal void @shrink(ptr %o, ptr %factors, i64 %rows, i64 %width)")
    with write.each("0", "%rows") as row:
        factor = write.load(write.at("%factors", row))
        with write.when(write.op(f"fcmp une {of.type} {factor}, 1.0")):
            wide = write.splat(factor)
            sums = write.at("%o", write.mul(row, "%width"))
            with write.each("0", "%width", of.lanes) as column:
                place = write.at(sums, column)
                scaled = arithmetic(write, "fmul", write.load(place, of.vector), wide)
                write.store(scaled, place, of.vector)
    return write.finish()


# -- products -----------------------------------------------------------------------------------


def _score(of: Tiles) -> str:
    """The scores of some keys for a packed panel of queries."""
    head = (
        "internal void @score(ptr %k, i64 %row, i64 %column, ptr %q, ptr %s, i64 %keys, "
        "i64 %width, i64 %lanes)"
    )
    write = GemmText(of, head)
    keys, queries = ("%k", "%row", "%column"), ("%q", of.columns)
    _product(write, "%keys", keys, queries, ("%s", of.columns), "%width", "%lanes", "false")
    return write.finish()


def _mix(of: Tiles) -> str:
    """Add weights times values to sums: rows of `pitch`. Those of weights may be columns."""
    head = (
        "internal void @mix(ptr %s, i64 %down, i64 %along, ptr %v, i64 %row, ptr %o, i64 %rows, "
        "i64 %keys, i64 %width, i64 %pitch, ptr %transposed)"
    )
    write = GemmText(of, head)
    with write.each("0", "%width", of.columns) as column:
        columns = write.least(write.sub("%width", column), of.columns)
        values = write.at("%v", column), "%row"
        if not of.masked:
            values = _copied_where_narrow(write, values[0], columns)
        weights, sums = ("%s", "%down", "%along"), (write.at("%o", column), "%pitch")
        _product(write, "%rows", weights, values, sums, "%keys", columns, "true")
    return write.finish()


def _product(
    write: GemmText,
    rows: str,
    a: tuple[str, str | int, str | int],
    b: tuple[str, str | int],
    c: tuple[str, str | int],
    k: str,
    columns: str,
    adds: str,
) -> None:
    """C = A B, or C += A B, a tile of rows at a time.

    Operands are a place, the elements from row to row, and for A those from column to column.
    """
    (left, *strides), (right, b_row), (sums, c_row) = a, b, c
    with write.each("0", rows, write.of.rows) as row:
        some = write.least(write.sub(rows, row), write.of.rows)
        source = write.at(left, write.mul(row, strides[0]))
        target = write.at(sums, write.mul(row, c_row))
        write.line(
            f"call void @tile(i64 {some}, ptr {source}, i64 {strides[0]}, i64 {strides[1]}, "
            f"ptr {right}, i64 {b_row}, ptr {target}, i64 {c_row}, i64 {k}, i64 {columns}, "
            f"i1 {adds})"
        )


def _copied_where_narrow(write: GemmText, values: str, columns: str) -> tuple[str, str]:
    """Columns of values, and the elements between rows, where whole vectors may be read."""
    of = write.of
    narrow = write.op(f"icmp slt i64 {columns}, {of.columns}")
    with write.when(narrow):
        write.line(
            f"call void @pack_b(ptr {values}, i64 %row, i64 1, ptr %transposed, i64 %keys, "
            f"i64 {columns}, {of.type} 1.0)"
        )
    place = write.choose(narrow, "%transposed", values, "ptr")
    return place, write.choose(narrow, of.columns, "%row")


def _vanish(of: Tiles) -> str:
    """Add 0 times the values of some keys to `z`: it stays 0, or becomes NaN."""
    head = "internal void @vanish(ptr %v, i64 %row, i64 %low, i64 %high, i64 %width, ptr %z)"
    write = GemmText(of, head)
    whole = write.op(f"and i64 %width, {-of.lanes}")
    for low, high, step in (("0", whole, of.lanes), (whole, "%width", 1)):
        type_, zero = (of.vector, "zeroinitializer") if step > 1 else (of.type, "0.0")
        with write.each(low, high, step) as column:
            total = write.at("%z", column)
            with write.each("%low", "%high") as key:
                place = write.at("%v", write.mul(key, "%row"), column)
                nothing = write.op(f"fmul {type_} {write.load(place, type_)}, {zero}")
                more = write.op(f"fadd {type_} {write.load(total, type_)}, {nothing}")
                write.store(more, total, type_)
    return write.finish()


def _finish(of: Tiles) -> str:
    """The sums of a panel over the sums of its weights, and what vanished; its rows, if asked."""
    head = (
        "internal void @finish(ptr %o, i64 %pitch, ptr %z, ptr %tops, ptr %totals, ptr %out, "
        f"i64 %rows, i64 %width, {of.type} %empty, ptr %kept, i64 %queries, i1 %keeps)"
    )
    write = GemmText(of, head)
    with write.each("0", "%rows") as row:
        total = write.load(write.at("%totals", row))
        none = write.op(f"fcmp oeq {of.type} {total}, 0.0")
        share = write.op(f"fdiv {of.type} 1.0, {total}")
        share = write.choose(none, "%empty", share, of.type)
        with write.when("%keeps"):
            # The largest score of a row that sees nothing is 0 for all, see @weigh.
            top = write.choose(none, "0.0", write.load(write.at("%tops", row)), of.type)
            write.store(top, write.at("%kept", row))
            write.store(share, write.at("%kept", row, "%queries"))
        factor = write.splat(share)
        sums = write.at("%o", write.mul(row, "%pitch"))
        target = write.at("%out", write.mul(row, "%width"))
        with write.each("0", "%width", of.lanes) as column:
            found = write.load(write.at(sums, column), of.vector)
            nothing = write.load(write.at("%z", column), of.vector)
            value = arithmetic(write, "fmul", arithmetic(write, "fadd", found, nothing), factor)
            place = write.at(target, column)
            left = write.sub("%width", column)
            whole = write.op(f"icmp sge i64 {left}, {of.lanes}")
            with write.when(whole):
                write.store(value, place, of.vector)
            with write.when(write.op(f"xor i1 {whole}, true")):
                write.line(
                    f"call void @llvm.masked.store.{of.suffix}.p0({of.vector} {value}, "
                    f"ptr {place}, i32 {of.item}, <{of.lanes} x i1> {write.mask(left)})"
                )
    return write.finish()


# -- the whole ----------------------------------------------------------------------------------


class Parameters:
    """The words of a call, loaded where they are asked for."""

    def __init__(self, write: GemmText, words: str, names: Sequence[str] = WORDS) -> None:
        self.write, self.words, self.names = write, words, names

    def __getattr__(self, name: str) -> str:
        return self.at(self.names.index(name))

    def at(self, position: str | int, type: str = "i64") -> str:
        place = self.write.op(f"getelementptr i64, ptr {self.words}, i64 {position}")
        return self.write.op(f"load {type}, ptr {place}")

    def number(self, name: str) -> str:
        """A number of the type of the operands."""
        return self.at(self.names.index(name), self.write.of.type)

    def truth(self, name: str) -> str:
        return self.write.op(f"icmp ne i64 {getattr(self, name)}, 0")


class Batch:
    """Where the operands of an item of the batch lie."""

    def __init__(self, write: GemmText, given: Parameters, operands: Sequence[str]) -> None:
        self.write, self.given, self.operands = write, given, operands
        self.offsets = [write.op("alloca i64") for _ in operands]
        self.rest = write.op("alloca i64")

    def places(self, bases: Sequence[str], item: str) -> list[str]:
        write, given = self.write, self.given
        for offset in self.offsets:
            write.line(f"store i64 0, ptr {offset}")
        write.line(f"store i64 {item}, ptr {self.rest}")
        dimensions = given.dimensions
        with write.each("0", dimensions) as back:
            left = write.sub(write.sub(dimensions, back), 1)
            entry = write.add(write.mul(left, 1 + len(self.offsets)), len(given.names))
            size = given.at(entry)
            index = write.op(f"load i64, ptr {self.rest}")
            write.line(f"store i64 {write.op(f'sdiv i64 {index}, {size}')}, ptr {self.rest}")
            along = write.op(f"srem i64 {index}, {size}")
            for position, offset in enumerate(self.offsets, 1):
                move = write.mul(along, given.at(write.add(entry, position)))
                moved = write.add(write.op(f"load i64, ptr {offset}"), move)
                write.line(f"store i64 {moved}, ptr {offset}")
        found = []
        for name, base, offset in zip(self.operands, bases, self.offsets, strict=True):
            move = write.op(f"load i64, ptr {offset}")
            type_ = "i8" if name == "mask" else write.of.type
            found.append(write.op(f"getelementptr {type_}, ptr {base}, i64 {move}"))
        return found


_SCRATCH = (
    "ptr %q, ptr %s, ptr %flags, ptr %transposed, "
    "ptr %tops, ptr %totals, ptr %factors, ptr %o, ptr %z"
)


def _block(of: Tiles) -> str:
    """One panel of queries and the keys [low, high) of one block."""
    head = (
        "internal void @block(ptr %words, ptr %k, ptr %v, ptr %bias, ptr %mask, i64 %first, "
        f"i64 %rows, i64 %low, i64 %high, i64 %pitch, {_SCRATCH})"
    )
    write = GemmText(of, head)
    given = Parameters(write, "%words")
    keys = write.sub("%high", "%low")
    column, k_row = given.key_column, given.key_row
    source = write.at("%k", write.mul("%low", k_row))
    narrow = write.op(f"icmp sle i64 %rows, {of.lanes}")
    lanes = write.choose(narrow, of.lanes, of.columns)
    write.line(
        f"call void @score(ptr {source}, i64 {k_row}, i64 {column}, ptr %q, ptr %s, i64 {keys}, "
        f"i64 {given.width}, i64 {lanes})"
    )
    write.line(
        "call void @mask(ptr %words, ptr %bias, ptr %mask, i64 %first, i64 %rows, i64 %low, "
        f"i64 {keys}, ptr %s, ptr %flags, ptr %transposed)"
    )
    write.line(f"call void @weigh(ptr %s, i64 {keys}, ptr %tops, ptr %totals, ptr %factors)")
    write.line("call void @shrink(ptr %o, ptr %factors, i64 %rows, i64 %pitch)")
    row = given.value_row
    values = write.at("%v", write.mul("%low", row))
    write.line(
        f"call void @mix(ptr %s, i64 1, i64 {of.columns}, ptr {values}, i64 {row}, ptr %o, "
        f"i64 %rows, i64 {keys}, i64 {given.value_width}, i64 %pitch, ptr %transposed)"
    )
    return write.finish()


def _unit(of: Tiles) -> str:
    """Some panels of queries of one item of the batch."""
    head = (
        "internal void @unit(ptr %words, ptr %query, ptr %k, ptr %v, ptr %bias, ptr %mask, "
        f"ptr %out, ptr %kept, i64 %begin, i64 %end, i64 %pitch, {_SCRATCH})"
    )
    write = GemmText(of, head)
    given = Parameters(write, "%words")
    keys, width = given.keys, given.width
    with write.each("%begin", "%end", of.columns) as first:
        panel = _Panel(write, first, width)
        _start(write, given, panel)
    last = _limit(write, given, write.sub("%end", 1))
    with (
        write.each("0", last, KEYS) as low,
        write.each("%begin", "%end", of.columns) as first,
    ):
        panel = _Panel(write, first, width)
        limit = _limit(write, given, write.sub(write.add(first, panel.rows), 1))
        high = write.least(write.add(low, KEYS), limit)
        with write.when(write.op(f"icmp slt i64 {low}, {high}")):
            write.line(
                f"call void @block(ptr %words, ptr %k, ptr %v, ptr %bias, ptr %mask, i64 {first}, "
                f"i64 {panel.rows}, i64 {low}, i64 {high}, i64 %pitch, ptr {panel.queries}, "
                f"ptr %s, ptr %flags, ptr %transposed, ptr {panel.tops}, ptr {panel.totals}, "
                f"ptr %factors, ptr {panel.sums}, ptr %z)"
            )
    clear(write, "%z", "%pitch")
    # The last panel comes first: each leaves out the keys that those behind it do, and some more.
    span = write.sub("%end", "%begin")
    with write.each("0", span, of.columns) as back:
        whole = write.op(f"sdiv i64 {write.sub(write.sub(span, back), 1)}, {of.columns}")
        first = write.add("%begin", write.mul(whole, of.columns))
        panel = _Panel(write, first, width)
        behind = write.add(first, panel.rows)
        limit = _limit(write, given, write.sub(behind, 1))
        following = write.least(write.add(behind, of.columns), "%end")
        others = _limit(write, given, write.sub(following, 1))
        bound = write.choose(write.op(f"icmp slt i64 {behind}, %end"), others, keys)
        row, value_width, empty = given.value_row, given.value_width, given.number("empty")
        write.line(
            f"call void @vanish(ptr %v, i64 {row}, i64 {limit}, i64 {bound}, i64 {value_width}, "
            "ptr %z)"
        )
        target = write.at("%out", write.mul(first, value_width))
        write.line(
            f"call void @finish(ptr {panel.sums}, i64 %pitch, ptr %z, ptr {panel.tops}, "
            f"ptr {panel.totals}, ptr {target}, i64 {panel.rows}, i64 {value_width}, "
            f"{of.type} {empty}, ptr {write.at('%kept', first)}, i64 {given.queries}, "
            f"i1 {given.truth('has_rows')})"
        )
    return write.finish()


class _Panel:
    """The queries from `first` on in a unit: how many they are, and where their scratch lies."""

    def __init__(self, write: GemmText, first: str, width: str) -> None:
        self.first = first
        self.rows = write.least(write.sub("%end", first), write.of.columns)
        before = write.sub(first, "%begin")
        self.queries = write.at("%q", write.mul(before, width))
        self.sums = write.at("%o", write.mul(before, "%pitch"))
        self.tops, self.totals = write.at("%tops", before), write.at("%totals", before)


def _limit(write: GemmText, given: Parameters, query: str) -> str:
    """The number of keys up to the last that `query` sees."""
    seen = write.add(write.add(query, given.diagonal), 1)
    keys = given.keys
    some = write.least(write.most(seen, 0), keys)
    return write.choose(given.truth("is_causal"), some, keys)


def _start(write: GemmText, given: Parameters, panel: _Panel) -> None:
    """Pack the queries of a panel; nothing is added up yet."""
    of = write.of
    row, column, width = given.query_row, given.query_column, given.width
    # Lanes without a query have numbers, too: what lies there by chance may be slow to compute.
    with write.when(write.op(f"icmp slt i64 {panel.rows}, {of.columns}")):
        clear(write, panel.queries, write.mul(width, of.columns))
        clear(write, "%s", write.mul(write.least(given.keys, KEYS), of.columns))
    source = write.at("%query", write.mul(panel.first, row))
    write.line(
        f"call void @pack_b(ptr {source}, i64 {column}, i64 {row}, ptr {panel.queries}, "
        f"i64 {width}, i64 {panel.rows}, {of.type} {given.number('scale')})"
    )
    for top, total in zip(vectors(write, panel.tops), vectors(write, panel.totals)):
        write.store(_infinity(of), top, of.vector)
        write.store("zeroinitializer", total, of.vector)
    clear(write, panel.sums, write.mul(panel.rows, "%pitch"))


def clear(write: GemmText, place: str, count: str) -> None:
    """Zeros for `count` numbers, a multiple of the lanes."""
    with write.each("0", count, write.of.lanes) as i:
        write.store("zeroinitializer", write.at(place, i), write.of.vector)


def _body(of: Tiles) -> str:
    """Units [lo, hi) of all items. The last of an item comes first: causal ones have most to do."""
    write = GemmText(of, "void @attention(ptr %args, i64 %lo, i64 %hi)")
    *bases, words = [
        write.op(f"load ptr, ptr {write.op(f'getelementptr ptr, ptr %args, i64 {i}')}")
        for i in range(len(OPERANDS) + 1)
    ]
    given = Parameters(write, words)
    queries, panels, units = given.queries, given.panels, given.units
    lanes = of.lanes
    pitch = write.op(f"and i64 {write.add(given.value_width, lanes - 1)}, {-lanes}")
    scratch = ", ".join(f"ptr {place}" for place in _scratch(write, given, panels, pitch))
    batch = Batch(write, given, OPERANDS)
    height = write.mul(panels, of.columns)
    with write.each("%lo", "%hi") as number:
        item = write.op(f"sdiv i64 {number}, {units}")
        places = batch.places(bases, item)
        unit = write.sub(write.sub(units, 1), write.sub(number, write.mul(item, units)))
        begin = write.mul(unit, height)
        end = write.least(write.add(begin, height), queries)
        write.line(
            f"call void @unit(ptr {words}, {', '.join(f'ptr {place}' for place in places)}, "
            f"i64 {begin}, i64 {end}, i64 {pitch}, {scratch})"
        )
    return write.finish()


def _scratch(write: GemmText, given: Parameters, panels: str, pitch: str) -> list[str]:
    """What a thread works with, on its stack, in the order of _SCRATCH."""
    of = write.of
    height = write.mul(panels, of.columns)
    block = KEYS * of.columns
    has_bias, has_mask = given.truth("has_bias"), given.truth("has_mask")
    turns = write.op(f"or i1 {has_bias}, {has_mask}") if of.masked else "true"
    counts = [
        write.mul(height, given.width), block, write.choose(has_mask, block, 0),
        write.choose(turns, block, 0), height, height, of.columns, write.mul(height, pitch), pitch,
    ]  # fmt: skip
    return [write.op(f"alloca {of.type}, i64 {count}, align 64") for count in counts]
