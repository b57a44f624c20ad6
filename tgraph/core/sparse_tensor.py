"""Sparse tensors: positions and values, which are plain tensors.

What is computed of them is made of operations on these, so gradients and traces follow by
themselves. An operation that is applied to a sparse tensor as if it were a plain one finds a
`SparseType` in the place of its type, for which no type of a result is known or kept: `apply` then
asks `SPARSE_RULES`, or raises the error that names it. Nothing is asked of plain tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from ..compiler.ir import TensorType
from ..runtime.device import Device
from ..runtime.dtypes import DType
from . import pytree
from .layouts import Layout, sparse_coo, sparse_csc, sparse_csr
from .tensor import Tensor, blank

_WAY_OUT = "to_dense() gives a tensor that has all elements; docs/sparse.md lists what is there"


class NotOnSparseError(NotImplementedError):
    """An operation that is not there for sparse tensors."""

    def __init__(self, operation: str, layout: Layout, way_out: str = _WAY_OUT) -> None:
        super().__init__(
            f"{operation} is not implemented for tensors of layout {layout!r}: {way_out}"
        )
        self.operation = operation


class NotAnArrayError(NotOnSparseError, TypeError):
    """NumPy has no arrays like these."""


class SparseType(TensorType):
    """Shape, dtype and device of a sparse tensor; one object for equal ones."""

    __slots__ = ()


_TYPES: dict[Any, SparseType] = {}


def sparse_type(shape: tuple[int, ...], dtype: DType, device: Device) -> SparseType:
    key = (shape, dtype, device)
    found = _TYPES.get(key)
    if found is None:
        found = _TYPES[key] = SparseType(shape, dtype, device)
    return found


class NoElements:
    """What stands where a plain tensor has its memory: whatever is asked of it is an error."""

    __slots__ = ("layout",)

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def __getattr__(self, name: str) -> NoReturn:
        raise NotOnSparseError("what reads the memory of a tensor", self.layout)

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotAnArrayError("numpy()", self.layout)


NAMES = {
    sparse_coo: ("indices",),
    sparse_csr: ("crow_indices", "col_indices"),
    sparse_csc: ("ccol_indices", "row_indices"),
}
"""How the positions of each layout are called."""

_MEMORY = {each: NoElements(each) for each in NAMES}


class SparseTensor(Tensor):
    """A tensor of a sparse layout; `tgraph.sparse_coo_tensor` makes one.

    `_positions` are, of COO, the indices of the values, (sparse dimensions, nnz); of CSR, where
    each row begins among the values, and their columns; of CSC, where columns begin, and rows.

    >>> import tgraph as tg
    >>> a = tg.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    >>> a @ tg.ones(3, 1)
    tensor([[3.],
            [4.]])
    """

    __slots__ = ("_coalesced", "_elements", "_layout", "_positions", "_rows")
    _is_passed_on = False

    _positions: tuple[Tensor, ...]
    _elements: Tensor
    _layout: Layout
    _coalesced: bool
    _rows: Any  # what products read of a COO tensor, kept once it is known

    if TYPE_CHECKING:  # `tgraph.ops.sparse_methods` puts them in place

        def indices(self) -> Tensor: ...
        def values(self) -> Tensor: ...
        def crow_indices(self) -> Tensor: ...
        def col_indices(self) -> Tensor: ...
        def ccol_indices(self) -> Tensor: ...
        def row_indices(self) -> Tensor: ...
        def coalesce(self) -> SparseTensor: ...
        def is_coalesced(self) -> bool: ...
        def _nnz(self) -> int: ...

    def __new__(cls, *args: Any, **kwargs: Any) -> SparseTensor:
        raise TypeError("make a sparse tensor with tgraph.sparse_coo_tensor or to_sparse()")

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        return self._layout

    @property
    def is_sparse(self) -> bool:
        """Whether the layout is `sparse_coo`, as in PyTorch."""
        return self._layout is sparse_coo

    @property
    def is_compressed(self) -> bool:
        """Whether it is a matrix by rows, CSR, or by columns, CSC."""
        return self._layout is not sparse_coo

    @property
    def is_sparse_csr(self) -> bool:  # type: ignore[override]
        return self._layout is sparse_csr


def make_sparse(
    layout: Layout,
    positions: tuple[Tensor, ...],
    elements: Tensor,
    shape: tuple[int, ...],
    coalesced: bool = True,
) -> SparseTensor:
    """The handle of a sparse tensor, of parts that are known to fit."""
    made = blank(SparseTensor)
    made._value = _MEMORY[layout]
    made._layout, made._positions, made._elements = layout, positions, elements
    made._type = sparse_type(tuple(shape), elements._type.dtype, elements._type.device)
    made._coalesced, made._rows = coalesced, None
    return made


def with_elements(x: SparseTensor, elements: Tensor) -> SparseTensor:
    """Other values in the same places."""
    made = make_sparse(x._layout, x._positions, elements, x._type.shape, x._coalesced)
    made._rows = x._rows
    return made


SPARSE_RULES: dict[Any, Callable[..., Any]] = {}
"""By primitive or composite: a function of the operands, some of them sparse, and attributes."""


def of_sparse(operation: Any, tensors: tuple[Tensor, ...], attrs: dict[str, Any]) -> Any:
    """The result of an operation one of whose operands is sparse; NotOnSparseError for others."""
    found = SPARSE_RULES.get(operation)
    if found is not None:
        return found(*tensors, **attrs)
    layout = next(each._layout for each in tensors if isinstance(each, SparseTensor))
    raise NotOnSparseError(operation.name, layout)


def refuse(operation: str) -> Callable[..., NoReturn]:
    """A method that sparse tensors do not have."""

    def method(self: SparseTensor, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotOnSparseError(operation, self._layout)

    method.__name__ = operation
    return method


def _take(x: SparseTensor) -> Any:
    return (*x._positions, x._elements), (x._layout, tuple(x._type.shape), x._coalesced)


def _make(type_: type, meta: Any, parts: Any) -> Any:
    layout, shape, coalesced = meta
    *positions, elements = parts
    if not all(isinstance(each, Tensor) for each in parts):
        return (*parts, meta)  # something else of each leaf, which no tensor can hold
    return make_sparse(layout, tuple(positions), elements, shape, coalesced)


def _label(meta: Any, index: int) -> str:
    return f".{(*NAMES[meta[0]], 'values')[index]}()"


pytree.register(SparseTensor, _take, _make, _label)
