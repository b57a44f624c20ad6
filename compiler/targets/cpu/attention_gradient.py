"""The gradients of attention in generated code, without stored scores.

The scheme is that of T. Dao, "FlashAttention-2" (2023), algorithm 2. For a block of keys and a
panel of queries (`attention.py`) scores are computed again, to the very bit, and weights W
from them and from two numbers of each query: its largest score, and what exponentials are
multiplied by. (Their logarithm in one number would lose what large scores round.) With G, the
gradient of the result, and D, the sums of its products with the result:

    of the values += Wᵀ G,   S = scale W (G Vᵀ - D),   of the keys += Sᵀ Q,   of the queries += S K

A unit of work is an item of the batch, or every so many of its blocks of keys, and adds up the
gradient of the queries alone, in an order of its own. So no result depends on threads.

What a causal query does not see is skipped. Its weights of 0 are multiplied all the same, since
NaN and infinities survive that.
"""

from __future__ import annotations

import functools

from ....runtime import gemm_native, jit
from ....runtime.gemm_text import GemmText, Tiles, tiles
from . import attention as forward
from .attention import Batch, Parameters, arithmetic, clear, exp, helpers, select, vectors

WORDS = (
    *forward.WORDS, "gradient_row", "parts", "part_step",
    "wants_query", "wants_key", "wants_value",
)  # fmt: skip
"""The parameters of a call: those of attention, and more; see there for what follows them. An item
of the batch has so many `parts`, whose gradients of queries lie `part_step` elements apart."""

OPERANDS = (
    "query", "key", "value", "gradient", "rows", "sums", "bias", "mask",
    "of_query", "of_key", "of_value",
)  # fmt: skip

_loaded: dict[tuple[str, int], int] = {}


def load(dtype: str) -> int:
    """The address of ``void body(ptr args, i64 lo, i64 hi)``, which does units of the gradient."""
    address = _loaded.get((dtype, forward.KEYS))
    if address is None:
        gemm_native.load(dtype)  # whose tiles and packing it calls
        (module,) = jit.compile_modules([_source(dtype, forward.KEYS)])
        address = _loaded[dtype, forward.KEYS] = module.address("attention_gradient")
    return address


def begin(dtype: str) -> None:
    """Begin to compile, in another thread, what `load` will be asked for."""
    if (dtype, forward.KEYS) not in _loaded:
        jit.begin(_source(dtype, forward.KEYS))


@functools.cache
def _source(dtype: str, keys: int) -> jit.Source:
    return jit.Source(text(tiles(dtype, jit.vector_bytes())), passes=False)


def text(of: Tiles) -> str:
    """The module for one type."""
    parts = [*helpers(of), _change(of), _spread(of), _lost(of), _block(of), _behind(of)]
    parts += [_panel(of), _unit(of), _body(of)]
    own = "\n".join([*parts, *gemm_native.declarations(of), _MEMSET])
    return gemm_native.shared(of, own)


_MEMSET = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
_OPERANDS = ", ".join(f"ptr %{name}" for name in OPERANDS)
_SCRATCH = "ptr %q, ptr %g, ptr %s, ptr %t, ptr %flags, ptr %transposed, ptr %stats, ptr %z"


def _change(of: Tiles) -> str:
    """Scores of a panel become weights, and `t`, gradients of weights, those of scores."""
    head = f"internal void @change(ptr %s, ptr %t, i64 %keys, ptr %stats, {of.type} %scale)"
    write = GemmText(of, head)
    tops, shares, sums = (
        [write.load(place, of.vector) for place in vectors(write, write.at("%stats", at))]
        for at in (0, of.columns, 2 * of.columns)
    )
    none = [write.op(f"fcmp oeq {of.vector} {share}, zeroinitializer") for share in shares]
    factor = write.splat("%scale")
    with write.each("0", "%keys") as key:
        row = write.mul(key, of.columns)
        pairs = zip(vectors(write, write.at("%s", row)), vectors(write, write.at("%t", row)))
        for i, (score, change) in enumerate(pairs):
            power = exp(write, arithmetic(write, "fsub", write.load(score, of.vector), tops[i]))
            weight = arithmetic(write, "fmul", power, shares[i])
            write.store(weight, score, of.vector)
            more = arithmetic(write, "fsub", write.load(change, of.vector), sums[i])
            product = arithmetic(write, "fmul", arithmetic(write, "fmul", weight, more), factor)
            write.store(select(write, none[i], "zeroinitializer", product), change, of.vector)
    return write.finish()


def _spread(of: Tiles) -> str:
    """Add what is NaN of `z` to each of some rows; nothing is otherwise in it than 0."""
    write = GemmText(of, "internal void @spread(ptr %z, ptr %out, i64 %rows, i64 %width)")
    with write.each("0", "%width") as column:
        value = write.load(write.at("%z", column))
        with (
            write.when(write.op(f"fcmp uno {of.type} {value}, {value}")),
            write.each("0", "%rows") as row,
        ):
            write.store(value, write.at("%out", write.mul(row, "%width"), column))
    return write.finish()


def _lost(of: Tiles) -> str:
    """Add 0 times some numbers to all of `z`."""
    write = GemmText(of, "internal void @lost(ptr %from, i64 %low, i64 %high, ptr %z, i64 %width)")
    with write.each("%low", "%high") as at:
        nothing = write.op(f"fmul {of.type} {write.load(write.at('%from', at))}, 0.0")
        with (
            write.when(write.op(f"fcmp uno {of.type} {nothing}, {nothing}")),
            write.each("0", "%width") as column,
        ):
            write.store(nothing, write.at("%z", column))
    return write.finish()


def _block(of: Tiles) -> str:
    """One panel of queries, packed, and `keys` keys from `low` on, where results lie, too."""
    head = (
        f"internal void @block(ptr %words, {_OPERANDS}, i64 %first, i64 %some, i64 %low, "
        f"i64 %keys, {_SCRATCH})"
    )
    write = GemmText(of, head)
    given = Parameters(write, "%words", WORDS)
    width, value_width, columns = given.width, given.value_width, of.columns
    narrow = write.op(f"icmp sle i64 %some, {of.lanes}")
    lanes = write.choose(narrow, of.lanes, columns)
    key_row, value_row, gradient_row = given.key_row, given.value_row, given.gradient_row
    keys = write.at("%key", write.mul("%low", key_row))
    values = write.at("%value", write.mul("%low", value_row))
    write.line(
        f"call void @score(ptr {keys}, i64 {key_row}, i64 {given.key_column}, ptr %q, ptr %s, "
        f"i64 %keys, i64 {width}, i64 {lanes})"
    )
    write.line(
        "call void @mask(ptr %words, ptr %bias, ptr %mask, i64 %first, i64 %some, i64 %low, "
        "i64 %keys, ptr %s, ptr %flags, ptr %transposed)"
    )
    write.line(
        f"call void @score(ptr {values}, i64 {value_row}, i64 {given.value_column}, ptr %g, "
        f"ptr %t, i64 %keys, i64 {value_width}, i64 {lanes})"
    )
    scale = given.number("scale")
    write.line(f"call void @change(ptr %s, ptr %t, i64 %keys, ptr %stats, {of.type} {scale})")
    with write.when(given.truth("has_mask")):
        write.line(f"call void @hide(ptr %t, ptr %transposed, i64 %keys, {of.type} 0.0)")
    with write.when(given.truth("is_causal")):
        last = write.sub(write.add("%first", given.diagonal), "%low")
        write.line(f"call void @hide_later(ptr %t, i64 {last}, i64 %keys, {of.type} 0.0)")
    query_row = given.query_row
    queries = write.at("%query", write.mul("%first", query_row))
    gradients = write.at("%gradient", write.mul("%first", gradient_row))
    of_query = write.at("%of_query", write.mul("%first", width))
    of_key = write.at("%of_key", write.mul("%low", width))
    of_value = write.at("%of_value", write.mul("%low", value_width))
    for wanted, left, right, rows, depth, result, wide in (
        ("value", f"%s, i64 {columns}, i64 1", (gradients, gradient_row), "%keys", "%some",
         of_value, value_width),
        ("key", f"%t, i64 {columns}, i64 1", (queries, query_row), "%keys", "%some",
         of_key, width),
        ("query", f"%t, i64 1, i64 {columns}", (keys, key_row), "%some", "%keys",
         of_query, width),
    ):  # fmt: skip
        with write.when(given.truth(f"wants_{wanted}")):
            write.line(
                f"call void @mix(ptr {left}, ptr {right[0]}, i64 {right[1]}, ptr {result}, "
                f"i64 {rows}, i64 {depth}, i64 {wide}, i64 {wide}, ptr %transposed)"
            )
    return write.finish()


def _behind(of: Tiles) -> str:
    """What becomes of keys from `low` on and the queries before `start`, which do not see them.

    Of those from `before` on the rest is done already; what they lost is in `z`.
    """
    head = (
        f"internal void @behind(ptr %words, {_OPERANDS}, i64 %before, i64 %start, i64 %low, "
        "i64 %keys, ptr %z)"
    )
    write = GemmText(of, head)
    given = Parameters(write, "%words", WORDS)
    width, value_width, key_row = given.width, given.value_width, given.key_row
    pitch = _pitch(write, given)
    of_queries, of_gradients = "%z", write.at("%z", pitch)
    of_keys = write.at("%z", pitch, pitch)
    clear(write, of_keys, pitch)
    high = write.add("%low", "%keys")
    write.line(
        f"call void @vanish(ptr %key, i64 {key_row}, i64 %low, i64 {high}, i64 {width}, "
        f"ptr {of_keys})"
    )
    write.line(
        f"call void @vanish(ptr %query, i64 {given.query_row}, i64 %before, i64 %start, "
        f"i64 {width}, ptr {of_queries})"
    )
    write.line(
        f"call void @vanish(ptr %gradient, i64 {given.gradient_row}, i64 %before, i64 %start, "
        f"i64 {value_width}, ptr {of_gradients})"
    )
    shares = write.at("%rows", given.queries)
    write.line(
        f"call void @lost(ptr {shares}, i64 %before, i64 %start, ptr {of_gradients}, "
        f"i64 {value_width})"
    )
    of_key = write.at("%of_key", write.mul("%low", width))
    of_value = write.at("%of_value", write.mul("%low", value_width))
    for wanted, z, result, rows, wide in (
        ("query", of_keys, "%of_query", "%start", width),
        ("key", of_queries, of_key, "%keys", width),
        ("value", of_gradients, of_value, "%keys", value_width),
    ):
        with write.when(given.truth(f"wants_{wanted}")):
            write.line(f"call void @spread(ptr {z}, ptr {result}, i64 {rows}, i64 {wide})")
    return write.finish()


def _panel(of: Tiles) -> str:
    """Pack the queries from `first` on, and what is given of each."""
    head = (
        f"internal void @panel(ptr %words, {_OPERANDS}, i64 %first, i64 %some, i64 %keys, "
        f"{_SCRATCH})"
    )
    write = GemmText(of, head)
    given = Parameters(write, "%words", WORDS)
    width, value_width, gradient_row = given.width, given.value_width, given.gradient_row
    # Lanes without a query have numbers, too: what lies there by chance may be slow to compute.
    with write.when(write.op(f"icmp slt i64 %some, {of.columns}")):
        for place, count in (
            ("%q", width), ("%g", value_width), ("%s", "%keys"), ("%t", "%keys"),
        ):  # fmt: skip
            clear(write, place, write.mul(count, of.columns))
    for base, row, column, target, count, factor in (
        ("%query", given.query_row, given.query_column, "%q", width, given.number("scale")),
        ("%gradient", gradient_row, "1", "%g", value_width, "1.0"),
    ):
        source = write.at(base, write.mul("%first", row))
        write.line(
            f"call void @pack_b(ptr {source}, i64 {column}, i64 {row}, ptr {target}, "
            f"i64 {count}, i64 %some, {of.type} {factor})"
        )
    for at, source in enumerate(("%rows", write.at("%rows", given.queries), "%sums")):
        start = write.at(source, "%first")
        for i, target in enumerate(vectors(write, write.at("%stats", at * of.columns))):
            mask = write.mask(write.sub("%some", i * of.lanes))
            found = write.load_some(write.at(start, i * of.lanes), mask)
            write.store(found, target, of.vector)
    return write.finish()


def _unit(of: Tiles) -> str:
    """Every `parts`-th block of keys of an item of the batch, from the block `part` on."""
    write = GemmText(of, f"internal void @unit(ptr %words, {_OPERANDS}, i64 %part, {_SCRATCH})")
    given = Parameters(write, "%words", WORDS)
    width, value_width, queries, keys = given.width, given.value_width, given.queries, given.keys
    clear(write, "%z", write.mul(_pitch(write, given), 2))
    with write.when(given.truth("wants_query")):
        _zeros(write, "%of_query", queries, width)
    done = write.op("alloca i64")
    write.line(f"store i64 0, ptr {done}")
    step = write.mul(given.parts, forward.KEYS)
    with write.each(write.mul("%part", forward.KEYS), keys, step) as low:
        count = write.least(write.sub(keys, low), forward.KEYS)
        for wanted, wide in (("key", width), ("value", value_width)):
            with write.when(given.truth(f"wants_{wanted}")):
                _zeros(write, write.at(f"%of_{wanted}", write.mul(low, wide)), count, wide)
        start = _first(write, given, low)
        with write.when(write.op(f"icmp sgt i64 {start}, 0")):
            before = write.op(f"load i64, ptr {done}")
            write.line(
                f"call void @behind(ptr %words, {_OPERANDS}, i64 {before}, i64 {start}, "
                f"i64 {low}, i64 {count}, ptr %z)"
            )
            write.line(f"store i64 {start}, ptr {done}")
        with write.each(start, queries, of.columns) as first:
            some = write.least(write.sub(queries, first), of.columns)
            write.line(
                f"call void @panel(ptr %words, {_OPERANDS}, i64 {first}, i64 {some}, "
                f"i64 {count}, {_SCRATCH})"
            )
            write.line(
                f"call void @block(ptr %words, {_OPERANDS}, i64 {first}, i64 {some}, i64 {low}, "
                f"i64 {count}, {_SCRATCH})"
            )
    return write.finish()


def _zeros(write: GemmText, place: str, rows: str, width: str) -> None:
    size = write.mul(write.mul(rows, width), write.of.item)
    write.line(f"call void @llvm.memset.p0.i64(ptr {place}, i8 0, i64 {size}, i1 false)")


def _first(write: GemmText, given: Parameters, key: str) -> str:
    """The first query of the first panel in which one sees `key`."""
    seen = write.sub(key, given.diagonal)
    some = write.least(write.most(seen, 0), given.queries)
    panels = write.op(f"sdiv i64 {some}, {write.of.columns}")
    return write.choose(given.truth("is_causal"), write.mul(panels, write.of.columns), 0)


def _body(of: Tiles) -> str:
    """Units [lo, hi): those of an item side by side."""
    write = GemmText(of, "void @attention_gradient(ptr %args, i64 %lo, i64 %hi)")
    *bases, words = [
        write.op(f"load ptr, ptr {write.op(f'getelementptr ptr, ptr %args, i64 {i}')}")
        for i in range(len(OPERANDS) + 1)
    ]
    given = Parameters(write, words, WORDS)
    parts, block = given.parts, forward.KEYS * of.columns
    transposed = max(forward.KEYS, of.columns) * of.columns  # masks, and narrow columns of queries
    counts = [
        write.mul(given.width, of.columns), write.mul(given.value_width, of.columns), block, block,
        write.choose(given.truth("has_mask"), block, 0), transposed, 3 * of.columns,
        write.mul(_pitch(write, given), 3),
    ]  # fmt: skip
    places = [write.op(f"alloca {of.type}, i64 {count}, align 64") for count in counts]
    scratch = ", ".join(f"ptr {place}" for place in places)
    batch = Batch(write, given, OPERANDS)
    with write.each("%lo", "%hi") as number:
        item = write.op(f"sdiv i64 {number}, {parts}")
        part = write.sub(number, write.mul(item, parts))
        found = dict(zip(OPERANDS, batch.places(bases, item), strict=True))
        found["of_query"] = write.at(found["of_query"], write.mul(part, given.part_step))
        operands = ", ".join(f"ptr {place}" for place in found.values())
        write.line(f"call void @unit(ptr {words}, {operands}, i64 {part}, {scratch})")
    return write.finish()


def _pitch(write: GemmText, given: Parameters) -> str:
    """Room for a row of queries or of values, in whole vectors."""
    lanes = write.of.lanes
    wide = write.most(given.width, given.value_width)
    return write.op(f"and i64 {write.add(wide, lanes - 1)}, {-lanes}")
