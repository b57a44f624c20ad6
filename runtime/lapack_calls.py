"""What each factorization is as calls of LAPACK on one matrix: the declarations of native steps.

LAPACK counts by columns: a matrix that lies in memory by rows is its transpose there. Where that
does not matter (Cholesky, triangular systems) nothing is moved but what would be destroyed; the
others work on a transposed copy, so that they are told the matrix that eager mode tells them, and
give the same numbers and signs.

An argument of a routine is a place (an operand, a result, workspace, or `info`), or the name of a
number, or a number by itself; characters are in quotes: a letter, or the name of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .records import NamedTuple, record

Numbers = dict[str, int]


class View(NamedTuple):
    """A matrix at a place: how many elements (names of numbers) from row to row, column to column.

    Of an operand, both are known from its strides.
    """

    place: str
    row: str
    column: str


class Copy(NamedTuple):
    """Copy `rows` times `columns` elements."""

    source: View
    target: View
    rows: str
    columns: str


class Clear(NamedTuple):
    """Write zeros behind (`upper`) or before the diagonal of a matrix by rows."""

    place: str
    rows: str
    columns: str
    upper: bool


class Transpose(NamedTuple):
    """Exchange rows and columns of a square matrix where it lies."""

    place: str
    size: str


class Call(NamedTuple):
    """Call a routine, `arguments` being separated by spaces."""

    routine: str
    arguments: str


class Permutation(NamedTuple):
    """From LAPACK's exchanges of rows the order of all rows, and its sign."""

    exchanges: str
    rows: str
    sign: str
    size: str


class Lanes(NamedTuple):
    """Call a routine of `small_matrices_native.py`, whose arguments are all workspace and numbers.

    It does as many matrices at a time as vectors have lanes (the number `lanes`). Operands go to
    the first places of workspace, results come from those of their names, with ``.tile`` behind.
    """

    routine: str
    numbers: str


class Result(NamedTuple):
    """A result of each matrix, which is dense: its sizes, and its dtype if that is its own."""

    name: str
    sizes: tuple[str, ...] = ()
    dtype: str = ""


class Work(NamedTuple):
    """A place of workspace: how many elements, or integers of LAPACK, it has."""

    name: str
    elements: Callable[[Numbers], int]
    integers: bool = False


Action = Copy | Clear | Transpose | Call | Permutation | Lanes


@record()
class LibraryCall:
    """A routine for a primitive: `actions` on each matrix of a batch.

    `numbers` gives the sizes that they name, of the last two sizes of the operands, their strides
    there in elements, and the attributes of the node. Where a routine takes `lwork`, and `liwork`,
    LAPACK itself is asked for them. `flops` is a rough count. Where `tells_order` is not set,
    `info` is 1 for all failures.
    """

    primitive: str
    operands: tuple[str, ...]
    results: tuple[Result, ...]
    actions: tuple[Action, ...]
    numbers: Callable[[Any, Any, Mapping[str, Any]], Numbers]
    flops: Callable[[Numbers], int]
    work: tuple[Work, ...] = ()
    tells_order: bool = True


def _square(shapes: Any, strides: Any, attrs: Mapping[str, Any]) -> Numbers:
    n = shapes[0][-1]
    return {"n": n, "ld": max(n, 1)}


_INFO = Result("info", (), "int32")
_A = View("a", "a.row", "a.column")

CHOLESKY = LibraryCall(
    "cholesky",
    ("a",),
    (Result("l", ("n", "n")), _INFO),
    (
        Copy(_A, View("l", "n", "1"), "n", "n"),
        Clear("l", "n", "n", upper=True),
        Call("potrf", "'U' n l ld info"),  # the lower triangle of rows is the upper one of columns
    ),
    _square,
    lambda of: of["n"] ** 3 // 3,
)

SMALL_CHOLESKY = LibraryCall(
    "cholesky",
    CHOLESKY.operands,
    CHOLESKY.results,
    (Lanes("cholesky", "n"),),
    _square,
    CHOLESKY.flops,
    (
        Work("l.tile", lambda of: of["n"] ** 2 * of["lanes"]),
        Work("info.tile", lambda of: of["lanes"]),
    ),
)

LU = LibraryCall(
    "lu",
    ("a",),
    (Result("lu", ("n", "n")), Result("rows", ("n",), "int64"), Result("sign"), _INFO),
    (
        Copy(_A, View("w", "1", "n"), "n", "n"),
        Call("getrf", "n n w ld exchanges info"),
        Copy(View("w", "1", "n"), View("lu", "n", "1"), "n", "n"),
        Permutation("exchanges", "rows", "sign", "n"),
    ),
    _square,
    lambda of: 2 * of["n"] ** 3 // 3,
    (Work("w", lambda of: of["n"] ** 2), Work("exchanges", lambda of: of["n"], integers=True)),
)

SMALL_LU = LibraryCall(
    "lu",
    LU.operands,
    LU.results,
    (Lanes("lu", "n"),),
    _square,
    LU.flops,
    (
        Work("lu.tile", lambda of: of["n"] ** 2 * of["lanes"]),
        Work("rows.tile", lambda of: 2 * of["n"] * of["lanes"]),  # of 64 bits
        Work("sign.tile", lambda of: of["lanes"]),
        Work("info.tile", lambda of: of["lanes"]),
    ),
)


def _triangular(shapes: Any, strides: Any, attrs: Mapping[str, Any]) -> Numbers:
    """x.T @ op(a).T = b.T, with what lies by rows read by columns."""
    n, columns = shapes[1][-2:]
    row, column = strides[0]
    transposed = column != 1 and row == 1  # lies by columns
    letters = {
        "side": "R",
        "triangle": "U" if attrs["lower"] is not transposed else "L",
        "trans": "T" if attrs["transpose"] is not transposed else "N",
        "unit": "U" if attrs["unit"] else "N",
    }
    leading = max(column if transposed else row, n, 1)
    return {
        "n": n, "columns": columns, "lda": leading, "ldx": max(columns, 1),
        **{name: ord(letter) for name, letter in letters.items()},
    }  # fmt: skip


TRIANGULAR_SOLVE = LibraryCall(
    "triangular_solve",
    ("a", "b"),
    (Result("x", ("n", "columns")),),
    (
        Copy(View("b", "b.row", "b.column"), View("x", "columns", "1"), "n", "columns"),
        Call("trsm", "'R' 'triangle' 'trans' 'unit' columns n 1.0 a lda x ldx"),
    ),
    _triangular,
    lambda of: of["n"] ** 2 * of["columns"],
)


def _by_rows(shapes: Any, strides: Any, attrs: Mapping[str, Any]) -> Numbers:
    n = shapes[0][-1]
    return _triangular(shapes, ((n, 1), strides[1]), attrs)


TRIANGULAR_SOLVE_OF_COPY = LibraryCall(
    "triangular_solve",
    ("a", "b"),
    (Result("x", ("n", "columns")),),
    (
        Copy(_A, View("w", "n", "1"), "n", "n"),
        Copy(View("b", "b.row", "b.column"), View("x", "columns", "1"), "n", "columns"),
        Call("trsm", "'R' 'triangle' 'trans' 'unit' columns n 1.0 w lda x ldx"),
    ),
    _by_rows,
    lambda of: of["n"] ** 2 * of["columns"],
    (Work("w", lambda of: of["n"] ** 2),),
)


def _small_triangular(shapes: Any, strides: Any, attrs: Mapping[str, Any]) -> Numbers:
    n, columns = shapes[1][-2:]
    return {
        "n": n, "columns": columns,
        **{name: int(attrs[name]) for name in ("lower", "transpose", "unit")},
    }  # fmt: skip


SMALL_TRIANGULAR_SOLVE = LibraryCall(
    "triangular_solve",
    TRIANGULAR_SOLVE.operands,
    TRIANGULAR_SOLVE.results,
    (Lanes("triangular_solve", "n columns lower transpose unit"),),
    _small_triangular,
    TRIANGULAR_SOLVE.flops,
    (
        Work("a.tile", lambda of: of["n"] ** 2 * of["lanes"]),
        Work("x.tile", lambda of: of["n"] * of["columns"] * of["lanes"]),
    ),
)


def _qr_numbers(shapes: Any, strides: Any, attrs: Mapping[str, Any]) -> Numbers:
    m, n = shapes[0][-2:]
    k = m if attrs["complete"] else min(m, n)
    return {"m": m, "n": n, "k": k, "reflections": min(m, n), "ld": max(m, 1)}


QR = LibraryCall(
    "qr",
    ("a",),
    (Result("q", ("m", "k")), Result("r", ("k", "n"))),
    (
        Copy(_A, View("w", "1", "m"), "m", "n"),
        Call("geqrf", "m n w ld tau work lwork info"),
        Copy(View("w", "1", "m"), View("r", "n", "1"), "k", "n"),
        Clear("r", "k", "n", upper=False),
        Call("orgqr", "m k reflections w ld tau work lwork info"),
        Copy(View("w", "1", "m"), View("q", "k", "1"), "m", "k"),
    ),
    _qr_numbers,
    lambda of: 4 * of["m"] * of["k"] * of["n"],
    (
        Work("w", lambda of: of["m"] * max(of["n"], of["k"])),
        Work("tau", lambda of: of["n"]),
        Work("work", lambda of: of["lwork"]),
    ),
)

EIGH = LibraryCall(
    "eigh",
    ("a",),
    (Result("values", ("n",)), Result("vectors", ("n", "n")), _INFO),
    (
        Copy(_A, View("vectors", "1", "n"), "n", "n"),
        Call("syevd", "'V' 'L' n vectors ld values work lwork iwork liwork info"),
        Transpose("vectors", "n"),
    ),
    _square,
    lambda of: 9 * of["n"] ** 3,
    (
        Work("work", lambda of: of["lwork"]),
        Work("iwork", lambda of: of["liwork"], integers=True),
    ),
    tells_order=False,
)


def _svd_numbers(shapes: Any, strides: Any, attrs: Mapping[str, Any]) -> Numbers:
    m, n = shapes[0][-2:]
    k = min(m, n)
    rows, columns = (m, n) if attrs["full"] else (k, k)
    return {
        "m": m, "n": n, "k": k, "rows": rows, "columns": columns,
        "job": ord("A" if attrs["full"] else "S"),
    }  # fmt: skip


SVD = LibraryCall(
    "svd",
    ("a",),
    (Result("u", ("m", "rows")), Result("s", ("k",)), Result("vh", ("columns", "n")), _INFO),
    (
        Copy(_A, View("w", "1", "m"), "m", "n"),
        Call("gesdd", "'job' m n w m s left m right columns work lwork iwork info"),
        Copy(View("left", "1", "m"), View("u", "rows", "1"), "m", "rows"),
        Copy(View("right", "1", "columns"), View("vh", "n", "1"), "columns", "n"),
    ),
    _svd_numbers,
    lambda of: 20 * of["m"] * of["n"] * of["k"],
    (
        Work("w", lambda of: of["m"] * of["n"]),
        Work("left", lambda of: of["m"] * of["rows"]),
        Work("right", lambda of: of["columns"] * of["n"]),
        Work("work", lambda of: of["lwork"]),
        Work("iwork", lambda of: 8 * of["k"], integers=True),
    ),
    tells_order=False,
)

CALLS = {each.primitive: each for each in (CHOLESKY, LU, TRIANGULAR_SOLVE, QR, EIGH, SVD)}
"""By the names of primitives; who cannot read the triangle where it lies takes the other call."""
SMALL = {each.primitive: each for each in (SMALL_CHOLESKY, SMALL_LU, SMALL_TRIANGULAR_SOLVE)}
"""The calls for many small matrices."""
