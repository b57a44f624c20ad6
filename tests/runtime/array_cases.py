"""Inputs for every primitive: arrays of each dtype, shape and layout that its type rule takes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from tgraph.compiler.ir import PRIMITIVES, Family, IRTypeError, TensorType, infer_type
from tgraph.compiler.ir.monoids import MONOID_OF
from tgraph.compiler.ir.scans import running_dtype
from tgraph.runtime.arrays import evaluate
from tgraph.runtime.dtypes import (
    REAL_DTYPES,
    DType,
    bool_,
    float16,
    float32,
    float64,
    from_numpy_dtype,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

Case = tuple[str, list[np.ndarray], dict[str, Any]]


def sample(shape: tuple[int, ...], dtype: DType, seed: int = 0, low: int = -3) -> np.ndarray:
    """Small numbers, so that every dtype holds them and no division is by zero."""
    rng = np.random.default_rng([seed, *shape])
    values = rng.integers(low, 5, shape)
    if dtype.kind == "float":
        return np.asarray(values + rng.random(shape), dtype.numpy)
    if dtype is bool_:
        return np.asarray(values > 0)
    return np.asarray(abs(values) if dtype.kind == "uint" else values, dtype.numpy)


def type_of(array: np.ndarray) -> TensorType:
    return TensorType(array.shape, from_numpy_dtype(array.dtype))


def expected_type(name: str, arrays: list[Any], attrs: dict[str, Any]) -> Any:
    return infer_type(PRIMITIVES[name], [type_of(each) for each in arrays], attrs)


_SHAPES: dict[int, list[list[tuple[int, ...]]]] = {
    1: [[()], [(5,)], [(2, 0)], [(2, 3, 4)]],
    2: [[(), ()], [(4,), ()], [(2, 1, 4), (3, 1)], [(0, 3), (3,)]],
    3: [[(), (), ()], [(4,), (), (3, 1)], [(2, 1), (2, 4), (4,)], [(0,), (1,), ()]],
}


def _elementwise(name: str, arity: int) -> Iterator[Case]:
    positive = name in ("floor_divide", "remainder", "pow", "shift_left", "shift_right")
    for dtype in REAL_DTYPES:
        for shapes in _SHAPES[arity]:
            arrays = [sample(shape, dtype, at) for at, shape in enumerate(shapes)]
            if positive:
                arrays[1] = np.asarray(np.abs(arrays[1]) + np.asarray(1, arrays[1].dtype))
            if name == "where":
                arrays[0] = np.asarray(arrays[0] > 0)
            if name == "require":
                yield name, [np.ones(arrays[0].shape, bool), arrays[1]], {"message": "wrong"}
                continue
            if name in ("cast", "bitcast"):
                for target in REAL_DTYPES:
                    yield name, arrays, {"dtype": target}
            else:
                yield name, arrays, {}


def _reductions(name: str) -> Iterator[Case]:
    for dtype in REAL_DTYPES:
        for shape, axes in [((), ()), ((5,), (0,)), ((2, 3, 4), (1,)), ((2, 3, 4), (0, 2)),
                            ((2, 3), ()), ((0, 3), (1,)), ((0, 3), (0,))]:  # fmt: skip
            for keepdims in (False, True):
                yield name, [sample(shape, dtype)], {"axes": axes, "keepdims": keepdims}


def _scans(name: str) -> Iterator[Case]:
    monoid = MONOID_OF[PRIMITIVES[name]]
    for dtype in REAL_DTYPES:
        for shape, axis in [((5,), 0), ((2, 3, 4), 1), ((2, 1), 1), ((0, 3), 0), ((0, 3), 1)]:
            for reverse in (False, True):
                x, attrs = sample(shape, dtype), {"axis": axis, "reverse": reverse}
                if name == "linear_scan":
                    if dtype.is_floating_point:
                        yield name, [x, sample(shape, dtype)], attrs
                    continue
                yield name, [x], attrs
                start = sample((*shape[:axis], 1, *shape[axis + 1 :]), running_dtype(monoid, dtype))
                yield name, [x, start], attrs


def _orders(name: str) -> Iterator[Case]:
    if name == "select_nth":
        for dtype, shape in itertools.product(REAL_DTYPES, [(5,), (2, 3, 4), (2, 100), (0, 3)]):
            for rank in (0, shape[-1] // 2, shape[-1] - 1):
                yield name, [sample(shape, dtype)], {"rank": rank}
        return
    for dtype in REAL_DTYPES:
        for shape in [(5,), (2, 3, 4), (2, 100), (2, 1), (0, 3), (3, 0), ()]:
            counts = (0, 1, shape[-1]) if name == "argsort" and shape else (0,)
            for count, descending in itertools.product(counts, (False, True)):
                attrs = {"count": count} if name == "argsort" else {}
                yield name, [sample(shape, dtype)], {**attrs, "descending": descending}


_MOVEMENT: list[tuple[str, list[tuple[int, ...]], dict[str, Any]]] = [
    ("reshape", [(2, 3)], {"shape": (3, 2, 1)}),
    ("reshape", [()], {"shape": (1, 1)}),
    ("reshape", [(1, 1)], {"shape": ()}),
    ("reshape", [(0, 3)], {"shape": (5, 0)}),
    ("permute", [(2, 3, 4)], {"axes": (2, 0, 1)}),
    ("permute", [()], {"axes": ()}),
    ("broadcast", [(3, 1)], {"shape": (2, 3, 4)}),
    ("broadcast", [(3,)], {"shape": (1, 3)}),
    ("broadcast", [()], {"shape": ()}),
    ("broadcast", [(1,)], {"shape": (0,)}),
    ("slice", [(7, 4)], {"starts": (1, 0), "stops": (6, 4), "steps": (2, 3)}),
    ("slice", [(3,)], {"starts": (2,), "stops": (1,), "steps": (1,)}),
    ("slice", [()], {"starts": (), "stops": (), "steps": ()}),
    ("diagonal", [(2, 3, 4)], {"offset": 0}),
    ("diagonal", [(5, 3)], {"offset": -1}),
    ("diagonal", [(2, 3, 4)], {"offset": 4}),
    ("diagonal", [(0, 3)], {"offset": -2}),
    ("flip", [(2, 3)], {"axes": (1,)}),
    ("flip", [()], {"axes": ()}),
    ("pad", [(2, 3)], {"low": (1, 0), "high": (0, 2), "interior": (1, 2), "value": 1}),
    ("pad", [()], {"low": (), "high": (), "interior": (), "value": 1}),
    ("pad", [(0,)], {"low": (1,), "high": (1,), "interior": (3,), "value": 0}),
    ("concatenate", [(2, 3), (2, 0), (2, 1)], {"axis": 1}),
    ("assemble", [(2, 3), (2, 1)], {"axis": 1}),
    ("barrier", [(2, 3), (4,)], {}),
    ("slice_update", [(7, 4), (3, 2)], {"starts": (1, 0), "stops": (6, 4), "steps": (2, 3)}),
    ("slice_update", [(), ()], {"starts": (), "stops": (), "steps": ()}),
    ("unfold", [(2, 7)], {"axes": (1,), "sizes": (3,), "strides": (2,), "dilations": (1,)}),
    ("unfold", [(6, 7)], {"axes": (0, 1), "sizes": (2, 3), "strides": (1, 2),
                          "dilations": (2, 1)}),
    ("unfold", [(2,)], {"axes": (0,), "sizes": (3,), "strides": (1,), "dilations": (1,)}),
    ("fold", [(2, 3, 3)], {"axes": (1,), "strides": (2,), "dilations": (1,), "shape": (2, 7)}),
    ("fold", [(0, 3)], {"axes": (0,), "strides": (1,), "dilations": (1,), "shape": (2,)}),
]  # fmt: skip


def _movement(name: str) -> Iterator[Case]:
    for dtype in REAL_DTYPES:
        for which, shapes, attrs in _MOVEMENT:
            if which == name:
                yield name, [sample(shape, dtype, at) for at, shape in enumerate(shapes)], attrs


def _positions(shape: tuple[int, ...], bound: int, dtype: DType) -> np.ndarray:
    return np.random.default_rng([*shape, bound]).integers(0, bound, shape).astype(dtype.numpy)


def _indexing(name: str) -> Iterator[Case]:
    for dtype in REAL_DTYPES:
        for kind in (int32, int64):
            x = sample((4, 3, 5), dtype)
            if name in ("gather", "scatter_add"):
                at = _positions((2, 6, 5), 3, kind)
                source = [sample((2, 6, 5), dtype, 1)] if name == "scatter_add" else []
                yield name, [x, at, *source], {"axis": 1}
            else:
                yield from _index_cases(name, x, dtype, kind)


def _index_cases(name: str, x: np.ndarray, dtype: DType, kind: DType) -> Iterator[Case]:
    for axis, count, shape in [(0, 1, (6,)), (1, 2, (2, 2)), (0, 3, ()), (1, 1, ()), (2, 1, (0,)),
                               (1, 1, (4,))]:  # fmt: skip
        indices = [_positions(shape, x.shape[axis + at], kind) for at in range(count)]
        if name == "index":
            yield name, [x, *indices], {"axis": axis}
            continue
        values = sample((*x.shape[:axis], *shape, *x.shape[axis + count :]), dtype, 1)
        for accumulate in (False, True):
            yield name, [x, *indices, values], {"axis": axis, "accumulate": accumulate}


def _contractions(name: str) -> Iterator[Case]:
    for dtype in REAL_DTYPES:
        if name == "matmul":
            for a, b, transposed in [((2, 3), (3, 4), (False, False)),
                                     ((5, 2, 3), (3, 4), (False, False)),
                                     ((5, 1, 3, 2), (2, 4, 3), (True, True)),
                                     ((2, 0), (0, 3), (False, False)),
                                     ((0, 2, 3), (3, 4), (False, False))]:  # fmt: skip
                flags = dict(zip(("transpose_a", "transpose_b"), transposed))
                yield name, [sample(a, dtype), sample(b, dtype, 1)], flags
        else:
            yield from convolution_cases(dtype)


def _factorizations(name: str) -> Iterator[Case]:
    """Of symmetric matrices whose diagonal is large, such that all can be factorized."""
    for dtype, batch, size in itertools.product((float32, float64), [(), (2,), (0,)], (0, 1, 3)):
        square = sample((*batch, size, size), dtype)
        a = square + square.swapaxes(-1, -2) + 20 * np.eye(size, dtype=dtype.numpy)
        if name == "triangular_solve":
            b = sample((*batch, size, 2), dtype, 1)
            for lower, transpose, unit in itertools.product((False, True), repeat=3):
                yield name, [a, b], {"lower": lower, "transpose": transpose, "unit": unit}
        elif name == "qr":
            for rows, complete in itertools.product((size, size + 2), (False, True)):
                wide = sample((*batch, rows, size), dtype)
                yield name, [wide], {"complete": complete}
                yield name, [wide.swapaxes(-1, -2)], {"complete": complete}
        elif name == "svd":
            for rows, full in itertools.product((size, size + 2), (False, True)):
                yield name, [sample((*batch, rows, size), dtype)], {"full": full, "check": ""}
        else:
            yield name, [a], {"check": ""}


def _sparse_products(name: str) -> Iterator[Case]:
    """Of three rows and five columns, with an empty row and a column that is there twice."""
    rowptr, columns = np.array([0, 3, 3, 5]), np.array([4, 0, 0, 1, 4])
    for dtype, width in itertools.product((float32, float64), (0, 1, 2)):
        for rows, transposed in ((3, False), (5, True)):
            dense = sample((8 - rows, width), dtype, 1)
            attrs = {"rows": rows, "transposed": transposed}
            yield name, [rowptr, columns, sample((5,), dtype), dense], attrs


def _attentions(name: str) -> Iterator[Case]:
    for dtype in (float32, float64):
        for lead, queries, keys, diagonal in [((2, 3), 4, 5, None), ((3,), 5, 5, 0), ((), 2, 1, 1)]:
            shapes = [(*lead, queries, 6), (*lead, keys, 6), (*lead, keys, 2)]
            operands = [sample(shape, dtype, number) for number, shape in enumerate(shapes)]
            attrs: dict[str, Any] = {"scale": 0.5, "diagonal": diagonal, "fill": -np.inf}
            attrs |= {"zeros": True, "bias": False, "mask": False}
            if name == "attention_gradient":
                result, rows = evaluate("attention_rows", operands, attrs)
                sums = (result * result).sum(-1)[..., None, :]
                operands, attrs = [*operands, result, rows, sums], {**attrs, "parts": 2}
            yield name, operands, attrs


def convolution_cases(dtype: DType) -> Iterator[Case]:
    for x, w, options in [
        ((2, 3, 5, 6), (4, 3, 2, 3), {}),
        ((2, 4, 5), (6, 2, 3), {"groups": 2, "strides": (2,), "padding": ((1, 2),)}),
        ((1, 2, 4, 4), (2, 1, 3, 3), {"groups": 2, "dilation": (2, 1),
                                             "padding": ((2, 2), (0, 1))}),
        ((2, 3, 3, 4), (2, 3, 2, 2), {"input_dilation": (2, 3), "padding": ((1, -1), (-2, 3))}),
        ((2, 3, 5), (2, 3, 2), {"padding": ((-2, -1),)}),
        ((2, 3, 5), (2, 3, 2), {"padding": ((-2, -3),)}),
        ((2, 3, 4), (2, 3, 2), {"padding": ((-1, 1),)}),  # shifted, of the same size
        ((1, 2, 3, 3, 3), (2, 2, 2, 2, 2), {"strides": (1, 2, 1)}),
        ((0, 3, 5), (2, 3, 2), {}),
        ((1, 1, 0, 2), (1, 1, 0, 1), {"padding": ((-1, -1), (1, 0))}),
        ((1, 1, 2), (1, 1, 5), {}),
    ]:  # fmt: skip
        spatial = len(x) - 2
        attrs = {"strides": (1,) * spatial, "padding": ((0, 0),) * spatial,
                 "dilation": (1,) * spatial, "input_dilation": (1,) * spatial,
                 "groups": 1, **options}  # fmt: skip
        yield "convolution", [sample(x, dtype), sample(w, dtype, 1)], attrs


def _swapped(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return y + y, x


def _complex(name: str) -> Iterator[Case]:
    if name == "repack":
        for source, target in itertools.permutations((uint8, uint16, uint32, uint64), 2):
            given = sample((2, 16), source) if source is uint8 else sample((2, 8), source)
            yield name, [given], {"source": source, "dtype": target}
        return
    for dtype in (float32, float64):
        for shape in [(), (3,), (2, 0), (2, 3)]:
            re, im = sample(shape, dtype), sample(shape, dtype, 1)
            if name == "complex":
                yield name, [re, im], {}
                yield name, [np.asarray(re.T), np.asarray(im.T)], {}
                yield name, [re, sample((), dtype)], {}
            elif name == "view_as_complex":
                yield name, [np.stack([re, im], -1)], {}
            else:
                z = np.asarray(re + 1j * im, dtype.to_complex().numpy)
                yield name, [z], {}
                yield name, [np.asarray(z.T)], {}


def _sources(name: str) -> Iterator[Case]:
    for dtype in REAL_DTYPES:
        if name == "constant":
            yield name, [], {"value": sample((2, 3), dtype)}
        elif name == "full":
            for value in (0, 1, True, 2.5, -0.0, -1, 300):
                yield name, [], {"shape": (2, 3), "value": value, "dtype": dtype}
                yield name, [], {"shape": (), "value": value, "dtype": dtype}
        elif name == "iota":
            yield name, [], {"size": 7, "dtype": dtype}
            yield name, [], {"size": 0, "dtype": dtype}
    if name == "random_bits":
        for shape in [(), (3, 5), (0,)]:
            yield name, [np.array(7), np.array(3)], {"shape": shape}
    elif name == "host_call":
        results = (TensorType((3,), float32), TensorType((2,), float16))
        arrays = [sample((2,), float16), sample((3,), float32)]
        yield name, arrays, {"function": _swapped, "results": results, "name": "swap"}


def cases(name: str) -> Iterator[Case]:
    """Every case of primitive `name` that its type rule accepts."""
    for case in _all(name):
        try:
            expected_type(*case)
        except IRTypeError:
            continue
        yield case


def _all(name: str) -> Iterator[Case]:
    primitive = PRIMITIVES[name]
    family = primitive.family
    if family is Family.ELEMENTWISE:
        assert primitive.arity is not None
        return _elementwise(name, primitive.arity)
    if family is Family.REDUCE:
        return _reductions(name)
    if family is Family.SCAN:
        return _scans(name)
    if family is Family.SORT:
        return _orders(name)
    if family in (Family.GATHER, Family.SCATTER):
        return _indexing(name)
    if family is Family.COMPLEX:
        return _complex(name)
    if family is Family.LIBRARY:
        return _factorizations(name)
    if family is Family.SPARSE:
        return _sparse_products(name)
    if name.startswith("attention"):
        return _attentions(name)
    if family is Family.CONTRACTION:
        return _contractions(name)
    if family in (Family.VIEW, Family.WINDOW, Family.ASSEMBLY):
        return _movement(name)
    return _sources(name)
