"""Matrix products in generated code, for the vectors of the processor it runs on.

The scheme is that of K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix
Multiplication" (2008), with the tiles of BLIS (F. Van Zee and R. van de Geijn, 2015): a tile of C
stays in registers while a panel of A and a panel of B stream by, both packed in the order in which
they are read, in blocks that fit into the caches. Small operands are read where they lie.

An element of C is always the same sum, whatever else is computed beside it: from the first product
to the last by multiply-adds, restarted every `depth` products. So a row of a product does not
depend on the number of rows, nor any result on how the work is split.

An operand may have several axes for its rows and for its columns, as the windows of a convolution
have: then blocks of it are gathered (`gemm_gather.py`) before they are multiplied or packed, and
the matrix is never in memory as a whole.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from . import jit
from .gemm_epilogue import MOST_ARGUMENTS, WORDS, Epilogue, epilogue, table
from .gemm_gather import NO_AXES, STEP, Operand, gather, offset
from .gemm_packing import pack_a, pack_b, turn
from .gemm_text import EPILOGUE_BYTES, TYPES, VECTORS, GemmText, Tiles, tiles
from .gemm_tiles import bulk, micro, narrow, tile
from .own_code import kept

SCRATCH = 64
"""Packing buffers that are kept, one for each thread that multiplies."""
PARAMETERS = 17
"""Words of a product's parameters before those of its batch: see `_body`."""

SHARED = {
    "tile": "i64, ptr, i64, i64, ptr, i64, ptr, i64, i64, i64, i1",
    "pack_b": "ptr, i64, i64, ptr, i64, i64, TYPE",
}
"""What other modules may call, once a product's is loaded, and its arguments: see `shared`."""

_loaded: dict[str, jit.Module] = {}
_packing: dict[str, int] = {}


def load(dtype: str, then: bool = False) -> int:
    """The address of ``void body(ptr args, i64 lo, i64 hi)``, which does pieces of a product.

    That of products with epilogues if `then`.
    """
    loaded = _loaded.get(dtype)
    if loaded is None:
        of, sources = tiles(dtype, jit.vector_bytes()), _sources(dtype, jit.vector_bytes())
        jit.make_objects(sources)
        for source, name in zip(sources, SHARED):  # products call tiles
            (loaded,) = jit.compile_modules([source])
            jit.add_symbol(_shared_name(of, name), loaded.address(name))
        assert loaded is not None
        _loaded[dtype] = loaded
    return loaded.address("gemm_then" if then else "gemm")


def load_packing(dtype: str) -> int:
    """The address of ``void body(ptr args, i64 lo, i64 hi)``, which packs whole panels of B.

    Arguments: B, the panels. Parameters: 0 k, 1-2 elements from row to row and from column to
    column of B. Products find the panels with `columns` as the former and k as the latter.
    """
    address = _packing.get(dtype)
    if address is None:
        load(dtype)  # whose function for one panel is called
        source = _packing_source(dtype, jit.vector_bytes())
        address = jit.compile_modules([source])[0].address("pack")
        _packing[dtype] = address
    return address


def shared(of: Tiles, text: str, names: Iterable[str] = SHARED) -> str:
    """The text of a module that calls functions of products as if they were its own."""
    declared = []
    for name in names:
        text = text.replace(f"@{name}(", f"@{_shared_name(of, name)}(")
        arguments = SHARED[name].replace("TYPE", of.type)
        declared.append(f"declare void @{_shared_name(of, name)}({arguments})")
    return "\n".join([text, *declared])


def _shared_name(of: Tiles, name: str) -> str:
    return f"tgraph_{name}_{of.scalar}"


def prepare(dtype: str) -> None:
    """Begin to compile in other threads: the first time on a machine that takes a tenth second."""
    if dtype in TYPES and dtype not in _loaded:
        jit.compile_early(lambda: jit.make_objects(_sources(dtype, jit.vector_bytes())))


def own_sources(vector_bytes: int) -> list[jit.Source]:
    """All modules, for processors with vectors of that size."""
    return [
        source
        for dtype in TYPES
        for source in (*_sources(dtype, vector_bytes), _packing_source(dtype, vector_bytes))
    ]


@functools.cache
def _sources(dtype: str, vector_bytes: int) -> list[jit.Source]:
    """The modules that define the functions SHARED, to be compiled at the same time."""
    of = tiles(dtype, vector_bytes)
    texts = [
        kept(f"tiles {of}", lambda: _module(of, _tiles(of))),
        kept(f"products {of}", lambda: shared(of, _module(of, _products(of)), ["tile"])),
    ]
    return [jit.Source(each, passes=False, own=True) for each in texts]


def _packing_source(dtype: str, vector_bytes: int) -> jit.Source:
    of = tiles(dtype, vector_bytes)
    return jit.Source(shared(of, _pack(of), ["pack_b"]), own=True)


def text(of: Tiles) -> str:
    """All functions for one type as one module."""
    return _module(of, [*_tiles(of), *_products(of)])


def _module(of: Tiles, parts: Iterable[str]) -> str:
    return "\n".join([*parts, *declarations(of)])


def _tiles(of: Tiles) -> list[str]:
    parts = [bulk(of), micro(of, of.rows, VECTORS, whole=True)]
    for vectors in range(1, VECTORS + 1):
        parts += [micro(of, rows, vectors) for rows in (of.rows, *of.parts)]
    parts += [narrow(of, along_k) for along_k in (True, False)]
    return [*parts, tile(of)]


def _products(of: Tiles) -> list[str]:
    head = [_HEAD.replace("SCRATCH", str(SCRATCH)), NO_AXES]
    packing = [turn(of), pack_a(of), pack_b(of), offset(of), offset(of, True), STEP, gather(of)]
    plain = [_plain(of), _block(of), _body(of)]
    return [*head, *packing, *plain, epilogue(of), _block(of, True), _body(of, True)]


def declarations(of: Tiles) -> list[str]:
    """What the functions of products call of LLVM and of libc."""
    v, suffix, mask = of.vector, of.suffix, f"<{of.lanes} x i1>"
    return [
        f"declare {v} @llvm.fmuladd.{suffix}({v}, {v}, {v})",
        f"declare {of.type} @llvm.fmuladd.{of.scalar}({of.type}, {of.type}, {of.type})",
        f"declare {v} @llvm.masked.load.{suffix}.p0(ptr, i32, {mask}, {v})",
        f"declare void @llvm.masked.store.{suffix}.p0({v}, ptr, i32, {mask})",
        "declare i64 @llvm.smin.i64(i64, i64)",
        "declare i64 @llvm.smax.i64(i64, i64)",
        "declare ptr @calloc(i64, i64)",
    ]


# Buffers belong to whoever set their flag; one that is made stays.
_HEAD = """
@flags = internal global [SCRATCH x i64] zeroinitializer
@buffers = internal global [SCRATCH x ptr] zeroinitializer

; The number of a buffer whose memory is there, or -1. Lanes that nothing was packed into are 0 or
; old, which costs nothing, as numbers that are subnormal by chance would.
define internal i64 @acquire(i64 %bytes) {
entry:
  br label %look
look:
  %i = phi i64 [0, %entry], [%i1, %taken]
  %some = icmp slt i64 %i, SCRATCH
  br i1 %some, label %try, label %none
try:
  %flag = getelementptr i64, ptr @flags, i64 %i
  %pair = cmpxchg ptr %flag, i64 0, i64 1 acquire monotonic
  %got = extractvalue {i64, i1} %pair, 1
  br i1 %got, label %mine, label %taken
taken:
  %i1 = add i64 %i, 1
  br label %look
mine:
  %at = getelementptr ptr, ptr @buffers, i64 %i
  %old = load ptr, ptr %at
  %has = icmp ne ptr %old, null
  br i1 %has, label %done, label %make
make:
  %more = add i64 %bytes, 64
  %new = call ptr @calloc(i64 %more, i64 1)
  %made = icmp ne ptr %new, null
  br i1 %made, label %keep, label %empty
keep:
  %start = ptrtoint ptr %new to i64
  %before = and i64 %start, 63
  %skip = sub i64 64, %before
  %aligned = getelementptr i8, ptr %new, i64 %skip
  store ptr %aligned, ptr %at
  br label %done
empty:
  store atomic i64 0, ptr %flag release, align 8
  br label %none
done:
  ret i64 %i
none:
  ret i64 -1
}
"""


# The axes of an operand are null for a matrix; otherwise its strides are 0, and the piece begins at
# the given row of A or column of B.
_THEN = "ptr %then, ptr %table, i64 %item"  # see `Epilogue`
_OPERANDS = (
    "i64 %m, i64 %n, i64 %k, ptr %a, i64 %ars, i64 %acs, ptr %a_axes, i64 %row, "
    "ptr %b, i64 %brs, i64 %bcs, ptr %b_axes, i64 %column, ptr %c, i64 %crs"
)


def _plain(of: Tiles) -> str:
    """The same sums one by one, where there is no memory to pack anything."""
    head = f"internal void @plain({_OPERANDS}, {of.type} %alpha, i1 %adds)"
    write = GemmText(of, head)
    zero, total = f"{of.type} 0.0", write.op(f"alloca {of.type}")
    left_axes, right_axes = Operand(write, "%a_axes"), Operand(write, "%b_axes")
    with write.each("0", "%k", of.depth) as pc:
        depth = write.least(write.sub("%k", pc), of.depth)
        later = write.op(f"icmp sgt i64 {pc}, 0")
        adds = write.op(f"or i1 {later}, %adds")
        with write.each("0", "%m") as i, write.each("0", "%n") as j:
            a = write.at("%a", write.mul(i, "%ars"), write.mul(pc, "%acs"))
            b = write.at("%b", write.mul(j, "%bcs"), write.mul(pc, "%brs"))
            c = write.at("%c", write.mul(i, "%crs"), j)
            write.store("0.0", total)
            with write.each("0", depth) as p:
                at = write.add(pc, p)
                further = left_axes.offset(write.add("%row", i), at)
                left = write.load(write.at(a, write.mul(p, "%acs"), further))
                further = right_axes.offset(write.add("%column", j), at)
                right = write.load(write.at(b, write.mul(p, "%brs"), further))
                right = write.op(f"fmul {of.type} {right}, %alpha")
                operands = f"{of.type} {left}, {of.type} {right}, {of.type} {write.load(total)}"
                more = write.op(f"call {of.type} @llvm.fmuladd.{of.scalar}({operands})")
                write.store(more, total)
            old = write.op(f"select i1 {adds}, {of.type} {write.load(c)}, {zero}")
            found = write.load(total)
            both = write.op(f"fadd {of.type} {old}, {found}")
            write.store(write.choose(adds, both, found, of.type), c)
    return write.finish()


def _block(of: Tiles, has_epilogue: bool = False) -> str:
    """C = alpha A B + beta C for one piece of C, or each block of it and its epilogue.

    These are two functions, since what the smallest products would pass takes part of their time.
    """
    name, more = ("block_then", f", {_THEN}") if has_epilogue else ("block", "")
    head = f"internal void @{name}({_OPERANDS}, {of.type} %alpha, {of.type} %beta{more})"
    write = GemmText(of, head)
    then = Epilogue(write) if has_epilogue else None
    fresh = write.op(f"fcmp oeq {of.type} %beta, 0.0")
    kept = write.op(f"fcmp oeq {of.type} %beta, 1.0")
    some = write.op("icmp sgt i64 %k, 0")
    stores = write.op(f"and i1 {fresh}, {some}")
    adds = write.op(f"xor i1 {stores}, true")
    settled = write.op(f"or i1 {stores}, {kept}")
    unsettled = write.op(f"xor i1 {settled}, true")
    with write.when(unsettled), write.each("0", "%m") as i, write.each("0", "%n") as j:
        at = write.at("%c", write.mul(i, "%crs"), j)
        scaled = write.op(f"fmul {of.type} {write.load(at)}, %beta")
        write.store(write.choose(fresh, "0.0", scaled, of.type), at)
    none = write.op(f"xor i1 {some}, true")
    with write.choice(none):
        pass
    left_axes, right_axes = Operand(write, "%a_axes"), Operand(write, "%b_axes")
    # What one row or column of tiles reads is not worth packing, if its rows are contiguous.
    packs_b = write.far("%k", "%brs")
    packs_b = write.op(f"and i1 {packs_b}, {write.op(f'icmp sgt i64 %m, {of.rows}')}")
    packs_b = write.op(f"or i1 {packs_b}, {write.op('icmp ne i64 %bcs, 1')}")
    packs_b = write.op(f"or i1 {packs_b}, {write.op(f'fcmp une {of.type} %alpha, 1.0')}")
    # Packed before: from row to row of a panel, where others have columns or rows side by side.
    in_panels = write.op(f"icmp eq i64 %brs, {of.columns}")
    in_panels = write.op(f"and i1 {in_panels}, {write.op('icmp ne i64 %bcs, 1')}")
    packs_b = write.op(f"and i1 {packs_b}, {write.op(f'xor i1 {in_panels}, true')}")
    # Rows of a tile are read side by side: strides of pages would meet in few lines of a cache.
    wide = write.op(f"icmp sgt i64 %n, {4 * of.columns}")
    packs_rows = write.op(f"or i1 {wide}, {write.far(8 * of.rows, '%ars')}")
    packs_rows = write.op(f"and i1 {packs_rows}, {write.op(f'icmp sgt i64 %n, {of.columns}')}")
    lined = write.op("icmp eq i64 %acs, 1")
    packs_a = write.choose(lined, packs_rows, write.far("%k", "%acs"), "i1")
    packs_a = write.choose(left_axes.given, wide, packs_a, "i1")
    borrows = write.op(f"or i1 {packs_a}, {packs_b}") if of.masked else "true"
    borrows = write.op(f"or i1 {borrows}, {left_axes.given}")
    number = write.op("alloca i64")
    write.line(f"store i64 0, ptr {number}")
    with write.when(borrows):
        found = write.op(f"call i64 @acquire(i64 {of.buffer})")
        with write.choice(write.op(f"icmp slt i64 {found}, 0")):
            if then:
                _plain_blocks(write, then, adds)
            else:
                write.line(f"call void @plain({_OPERANDS}, {of.type} %alpha, i1 {adds})")
        write.line(f"store i64 {found}, ptr {number}")
    held = write.op(f"load i64, ptr {number}")
    pa = write.op(f"load ptr, ptr {write.op(f'getelementptr ptr, ptr @buffers, i64 {held}')}")
    pb = write.op(f"getelementptr i8, ptr {pa}, i64 {of.packed_a}")
    gathered = write.op(f"getelementptr i8, ptr {pb}, i64 {of.packed_b}")
    # A as it lies, or in the block that is gathered.
    unpacked_ars = write.choose(left_axes.along_k, of.depth, 1)
    unpacked_ars = write.choose(left_axes.given, unpacked_ars, "%ars")
    unpacked_acs = write.choose(left_axes.along_k, 1, of.gathered_rows)
    unpacked_acs = write.choose(left_axes.given, unpacked_acs, "%acs")
    ars = write.choose(packs_a, 1, unpacked_ars)
    acs = write.choose(packs_a, of.rows, unpacked_acs)
    block_rows = write.choose(left_axes.given, of.gathered_rows, of.block_rows)
    block_columns: str | int = of.block_columns
    if then:
        block_rows, block_columns = then.rows, then.columns
    with write.each("0", "%k", of.depth) as pc:
        kc = write.least(write.sub("%k", pc), of.depth)
        later = write.op(f"icmp sgt i64 {pc}, 0")
        more = write.op(f"or i1 {later}, {adds}")
        with write.each("0", "%n", block_columns) as jc:
            nc = write.least(write.sub("%n", jc), block_columns)
            b = write.at("%b", write.mul(pc, "%brs"), write.mul(jc, "%bcs"))
            with write.each("0", nc, of.columns) as jr:
                w, packs = _panel(write, nc, jr, packs_b)
                with write.when(packs):
                    source = write.at(b, write.mul(jr, "%bcs"))
                    target = write.at(pb, write.mul(jr, kc))
                    column = write.add(write.add("%column", jc), jr)
                    _pack_panel(write, right_axes, source, column, w, pc, kc, target, gathered)
            with write.each("0", "%m", block_rows) as ic:
                mc = write.least(write.sub("%m", ic), block_rows)
                with write.when(left_axes.given):
                    row = write.add("%row", ic)
                    left_axes.gather("%a", row, mc, pc, kc, gathered, of.gathered_rows)
                a = write.at("%a", write.mul(ic, "%ars"), write.mul(pc, "%acs"))
                a = write.choose(left_axes.given, gathered, a, "ptr")
                with write.when(packs_a):
                    write.line(
                        f"call void @pack_a(ptr {a}, i64 {unpacked_ars}, i64 {unpacked_acs}, "
                        f"ptr {pa}, i64 {mc}, i64 {kc})"
                    )
                with write.each("0", nc, of.columns) as jr:
                    w, packs = _panel(write, nc, jr, packs_b)
                    packed = write.at(pb, write.mul(jr, kc))
                    direct = write.at(b, write.mul(jr, "%bcs"))
                    right = write.choose(packs, packed, direct, "ptr")
                    brs = write.choose(packs, of.columns, "%brs")
                    with write.each("0", mc, of.rows) as ir:
                        h = write.least(write.sub(mc, ir), of.rows)
                        left = write.choose(
                            packs_a,
                            write.at(pa, write.mul(ir, kc)),
                            write.at(a, write.mul(ir, unpacked_ars)),
                            "ptr",
                        )
                        if then:
                            c = write.at("%c", write.mul(ir, "%crs"), jr)
                        else:
                            c = write.at("%c", write.mul(write.add(ic, ir), "%crs"), jc, jr)
                        write.line(
                            f"call void @tile(i64 {h}, ptr {left}, i64 {ars}, i64 {acs}, "
                            f"ptr {right}, i64 {brs}, ptr {c}, i64 %crs, i64 {kc}, i64 {w}, "
                            f"i1 {more})"
                        )
                if then:
                    then.run(ic, jc, mc)
    with write.when(borrows):
        flag = write.op(f"getelementptr i64, ptr @flags, i64 {held}")
        write.line(f"store atomic i64 0, ptr {flag} release, align 8")
    return write.finish()


def _plain_blocks(write: GemmText, then: Epilogue, adds: str) -> None:
    """All blocks of a piece and their epilogues, where there is no memory to pack anything."""
    of = write.of
    high, wide = then.rows, then.columns
    with write.each("0", "%m", high) as ic, write.each("0", "%n", wide) as jc:
        mc = write.least(write.sub("%m", ic), high)
        nc = write.least(write.sub("%n", jc), wide)
        a, b = write.at("%a", write.mul(ic, "%ars")), write.at("%b", write.mul(jc, "%bcs"))
        row, column = write.add("%row", ic), write.add("%column", jc)
        write.line(
            f"call void @plain(i64 {mc}, i64 {nc}, i64 %k, ptr {a}, i64 %ars, i64 %acs, "
            f"ptr %a_axes, i64 {row}, ptr {b}, i64 %brs, i64 %bcs, ptr %b_axes, i64 {column}, "
            f"ptr %c, i64 %crs, {of.type} %alpha, i1 {adds})"
        )
        then.run(ic, jc, mc)


def _pack_panel(
    write: GemmText,
    axes: Operand,
    source: str,
    column: str,
    w: str,
    pc: str,
    kc: str,
    target: str,
    gathered: str,
) -> None:
    """A panel of B: where its columns lie side by side, what is gathered is packed."""
    of = write.of
    across = write.op(f"xor i1 {axes.along_k}, true")
    done = write.op(f"and i1 {axes.given}, {across}")
    with write.when(axes.given):
        out = write.choose(done, target, gathered, "ptr")
        axes.gather("%b", column, w, pc, kc, out, of.columns)
    source = write.choose(axes.given, gathered, source, "ptr")
    brs = write.choose(axes.given, 1, "%brs")
    bcs = write.choose(axes.given, of.depth, "%bcs")
    with write.when(write.op(f"xor i1 {done}, true")):
        write.line(
            f"call void @pack_b(ptr {source}, i64 {brs}, i64 {bcs}, ptr {target}, "
            f"i64 {kc}, i64 {w}, {of.type} %alpha)"
        )


def _panel(write: GemmText, nc: str, jr: str, packs_b: str) -> tuple[str, str]:
    """The columns of the panel of B that begins at `jr`, and whether it is packed."""
    w = write.least(write.sub(nc, jr), write.of.columns)
    if write.of.masked:
        return w, packs_b
    narrow = write.op(f"icmp slt i64 {w}, {write.of.columns}")
    return w, write.op(f"or i1 {packs_b}, {narrow}")


def _body(of: Tiles, then: bool = False) -> str:
    """Pieces [lo, hi) of all products of a batch, with epilogues if `then`.

    Arguments: a, b, c. Parameters: 0-2 m, n, k, 3-4 elements from row to row and from column to
    column of A, 5-6 of B, 7 from row to row of C, 8 alpha, 9 beta, 10-11 rows and columns of a
    piece, 12-13 pieces down and across, of which one is 1, 14 batch dimensions, 15-16 where the
    axes of A and B begin (see `Operand`), or 0, then for each dimension of the batch its size and
    the elements that a, b and c go on. Neighbouring pieces are done as one.

    With epilogues the arguments of the kernel follow c, as many as there may be, and the words of
    `gemm_epilogue` stand before those of the batch. Pieces are whole blocks.
    """
    write = GemmText(of, f"void @gemm{'_then' if then else ''}(ptr %args, i64 %lo, i64 %hi)")
    *bases, words = [
        write.op(f"load ptr, ptr {write.op(f'getelementptr ptr, ptr %args, i64 {i}')}")
        for i in (0, 1, 2, 3 + MOST_ARGUMENTS * then)
    ]
    if then:
        ours = write.op(f"getelementptr i64, ptr {words}, i64 {PARAMETERS}")
        arguments = table(write, words, ours, len(bases))
        block = write.op(f"alloca [{EPILOGUE_BYTES} x i8], align 64")

    def word(at: str | int, type: str = "i64") -> str:
        return write.word(words, at, type)

    m, n, k, ars, acs, brs, bcs, crs = (word(at) for at in range(8))
    name, pitch, more = "block_then" if then else "block", crs, ""
    alpha, beta = word(8, of.type), word(9, of.type)
    height, width, down, across, dims = (word(at) for at in range(10, 15))
    a_axes, b_axes = (_axes(write, words, word(at)) for at in (15, 16))
    pieces = write.mul(down, across)
    by_rows = write.op(f"icmp eq i64 {across}, 1")
    first_item = write.op(f"sdiv i64 %lo, {pieces}")
    end_item = write.op(f"sdiv i64 {write.sub(write.add('%hi', pieces), 1)}, {pieces}")
    with write.each(first_item, end_item) as product:
        begin = write.mul(product, pieces)
        low = write.most(write.sub("%lo", begin), 0)
        high = write.least(write.sub("%hi", begin), pieces)
        row = write.choose(by_rows, write.mul(low, height), 0)
        below = write.choose(by_rows, write.least(write.mul(high, height), m), m)
        column = write.choose(by_rows, 0, write.mul(low, width))
        behind = write.choose(by_rows, n, write.least(write.mul(high, width), n))
        firsts = (
            write.mul(row, ars),
            write.mul(column, bcs),
            write.add(write.mul(row, crs), column),
        )
        batch = PARAMETERS + WORDS * then
        moves = write.along_batch(product, dims, words, batch, len(bases))
        a, b, c = (write.at(*each) for each in zip(bases, firsts, moves))
        if then:
            c, pitch = block, write.word(ours, 6)
            more = f", ptr {ours}, ptr {arguments}, i64 {product}"
        rows, columns = write.sub(below, row), write.sub(behind, column)
        write.line(
            f"call void @{name}(i64 {rows}, i64 {columns}, i64 {k}, ptr {a}, i64 {ars}, i64 {acs}, "
            f"ptr {a_axes}, i64 {row}, ptr {b}, i64 {brs}, i64 {bcs}, ptr {b_axes}, i64 {column}, "
            f"ptr {c}, i64 {pitch}, {of.type} {alpha}, {of.type} {beta}{more})"
        )
    return write.finish()


def _pack(of: Tiles) -> str:
    """See `load_packing`."""
    write = GemmText(of, "void @pack(ptr %args, i64 %lo, i64 %hi)")
    b, panels, words = (
        write.op(f"load ptr, ptr {write.op(f'getelementptr ptr, ptr %args, i64 {i}')}")
        for i in range(3)
    )
    k, brs, bcs = (write.word(words, at) for at in range(3))
    with write.each("%lo", "%hi") as panel:
        column = write.mul(panel, of.columns)
        source, target = write.at(b, write.mul(column, bcs)), write.at(panels, write.mul(column, k))
        write.line(
            f"call void @pack_b(ptr {source}, i64 {brs}, i64 {bcs}, ptr {target}, i64 {k}, "
            f"i64 {of.columns}, {of.type} 1.0)"
        )
    return write.finish()


def _axes(write: GemmText, words: str, position: str) -> str:
    """Their address, null for a matrix."""
    none = write.op(f"icmp eq i64 {position}, 0")
    place = write.op(f"getelementptr i64, ptr {words}, i64 {position}")
    return write.choose(none, "null", place, "ptr")
