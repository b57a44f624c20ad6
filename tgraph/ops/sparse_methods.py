"""Methods of sparse tensors, beside those that all tensors have."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any, NoReturn

from ..autograd import api
from ..compiler.ir import promotion
from ..core import printing
from ..core.keywords import with_keywords
from ..core.layouts import Layout, sparse_coo, sparse_csc, sparse_csr
from ..core.operands import require_tensor
from ..core.sparse_tensor import (
    NAMES,
    NotAnArrayError,
    SparseTensor,
    make_sparse,
    refuse,
    sparse_type,
    with_elements,
)
from ..core.state import state
from ..core.tensor import Tensor
from ..runtime.device import CPU
from ..runtime.dtypes import bool_, int64
from . import creation, linalg
from . import elementwise as e
from . import movement as m
from .sparse_creation import sparse_compressed_tensor, sparse_coo_tensor
from .sparse_indexing import getitem, iterate, select, unbind
from .sparse_parts import coalesce


def _of(layout: Layout, x: SparseTensor, name: str) -> SparseTensor:
    if x._layout is not layout:
        raise RuntimeError(
            f"{name} expected a tensor of layout {layout!r}, got {x._layout!r}; "
            f"to_{layout.name}() gives one"
        )
    return x


def _coalesced(x: SparseTensor, name: str) -> SparseTensor:
    if not x._coalesced:
        raise RuntimeError(
            f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first"
        )
    return x


def indices(self: SparseTensor) -> Tensor:
    """Where the values of a coalesced COO tensor are, (sparse dimensions, number)."""
    return _coalesced(_of(sparse_coo, self, "indices()"), "indices")._positions[0]


def values(self: SparseTensor) -> Tensor:
    """The values that are there."""
    return _coalesced(self, "values")._elements


def _indices(self: SparseTensor) -> Tensor:
    return _of(sparse_coo, self, "_indices()")._positions[0]


def _values(self: SparseTensor) -> Tensor:
    return _of(sparse_coo, self, "_values()")._elements


def _nnz(self: SparseTensor) -> int:
    """The number of values."""
    return int(self._elements.shape[0])


def crow_indices(self: SparseTensor) -> Tensor:
    """Where the values of each row of a CSR matrix begin, and where the last one ends."""
    return _of(sparse_csr, self, "crow_indices()")._positions[0]


def col_indices(self: SparseTensor) -> Tensor:
    """The columns of the values of a CSR matrix."""
    return _of(sparse_csr, self, "col_indices()")._positions[1]


def ccol_indices(self: SparseTensor) -> Tensor:
    """Where the values of each column of a CSC matrix begin, and where the last one ends."""
    return _of(sparse_csc, self, "ccol_indices()")._positions[0]


def row_indices(self: SparseTensor) -> Tensor:
    """The rows of the values of a CSC matrix."""
    return _of(sparse_csc, self, "row_indices()")._positions[1]


def is_coalesced(self: SparseTensor) -> bool:
    """Whether a COO tensor is known to have one value for each place, in order."""
    return _of(sparse_coo, self, "is_coalesced()")._coalesced


def _coalesce(self: SparseTensor) -> SparseTensor:
    """The tensor with one value for each place, in the order of places."""
    return coalesce(_of(sparse_coo, self, "coalesce()"))


def detach(self: SparseTensor) -> SparseTensor:
    """The tensor without history; it shares its values."""
    return with_elements(self, self._elements.detach())


def requires_grad_(self: SparseTensor, requires_grad: bool = True) -> SparseTensor:
    """Ask for gradients with respect to this tensor, which are sparse."""
    if requires_grad and not self._elements.is_leaf:
        return self
    self._elements.requires_grad_(requires_grad)
    return self


def get_grad(self: SparseTensor) -> SparseTensor | None:
    grad = api.get_grad(self._elements)
    return None if grad is None else with_elements(self, grad)


def set_grad(self: SparseTensor, value: Any) -> None:
    if value is not None:
        if not isinstance(value, SparseTensor) or value._layout is not self._layout:
            raise RuntimeError(f"the gradient of a {self._layout!r} tensor is one of that layout")
        if value._elements.shape != self._elements.shape:
            raise RuntimeError(
                f"the gradient of a sparse tensor has values at its {_nnz(self)} places, got "
                f"{_nnz(value)}"
            )
        value = value._elements
    api.set_grad(self._elements, value)


def register_hook(self: SparseTensor, hook: Callable[..., Any]) -> Any:
    """Call `hook` with the gradient, which is sparse, during backward; it may give another."""

    def on_elements(grad: Tensor) -> Any:
        found = hook(with_elements(self, grad))
        return found._elements if isinstance(found, SparseTensor) else found

    return self._elements.register_hook(on_elements)


def _written(self: SparseTensor, new: Any) -> SparseTensor:
    """Let the handle be `new`, of one shape and layout; no memory is written."""
    _may_be_written(self)
    if (
        not isinstance(new, SparseTensor)
        or new.shape != self.shape
        or new._layout is not self._layout
    ):
        raise RuntimeError("a sparse tensor can only be overwritten by one of its shape and layout")
    return _become(self, new)


def _may_be_written(self: SparseTensor) -> None:
    if state.context is not None:
        raise NotImplementedError(
            "a sparse tensor cannot be written in place in traced code: use what x + y gives"
        )
    if state.grad_enabled and self._elements.requires_grad:
        raise RuntimeError(
            "a sparse tensor that requires grad cannot be written in place: use what x + y gives"
        )


def _become(self: SparseTensor, new: SparseTensor) -> SparseTensor:
    self._type = sparse_type(new._type.shape, self._type.dtype, self._type.device)
    self._positions, self._elements = new._positions, new._elements.to(self._type.dtype)
    self._coalesced, self._rows = new._coalesced, None
    return self


def add_(self: SparseTensor, other: Any, *, alpha: Any = 1) -> SparseTensor:
    """`self + alpha * other` in the place of this tensor."""
    return _written(self, e.add(self, other, alpha=alpha))


def sub_(self: SparseTensor, other: Any, *, alpha: Any = 1) -> SparseTensor:
    """`self - alpha * other` in the place of this tensor."""
    return _written(self, e.sub(self, other, alpha=alpha))


def mul_(self: SparseTensor, other: Any) -> SparseTensor:
    """`self * other` in the place of this tensor."""
    return _written(self, e.mul(self, other))


def div_(self: SparseTensor, other: Any) -> SparseTensor:
    """`self / other` in the place of this tensor."""
    return _written(self, e.div(self, other))


def transpose_(self: SparseTensor, dim0: int, dim1: int) -> SparseTensor:
    """The dimensions of this COO tensor exchanged."""
    _may_be_written(_of(sparse_coo, self, "transpose_()"))
    return _become(self, m.transpose(self, dim0, dim1))  # type: ignore[arg-type]


def t_(self: SparseTensor) -> SparseTensor:
    """The rows and columns of this COO tensor exchanged."""
    if self.ndim != 2:
        raise RuntimeError(f"t_() expects a matrix, but self is {self.ndim}D")
    return transpose_(self, 0, 1)


def _elementwise_(name: str) -> Callable[..., Any]:
    """A function of one element in the place of this tensor."""

    def method(self: SparseTensor) -> SparseTensor:
        return _written(self, getattr(self, name)())

    method.__name__ = f"{name}_"
    return method


def copy_(self: SparseTensor, other: Any, non_blocking: bool = False) -> SparseTensor:
    """`other`, a sparse tensor of this shape, in the place of this one."""
    return _written(self, with_elements(other, m.clone(other._elements.detach())))


def zero_(self: SparseTensor) -> SparseTensor:
    """No values at all in the place of this tensor."""
    positions = tuple(
        creation.zeros_like(each) if each.ndim == 1 and at == 0 else each[..., :0]
        for at, each in enumerate(self._positions)
    )
    elements = self._elements.detach()[:0]
    return _written(self, make_sparse(self._layout, positions, elements, self._type.shape))


def sparse_repr(self: SparseTensor) -> str:
    """Positions, values, size and layout, as PyTorch shows them."""
    names = NAMES[self._layout]
    parts = [
        f"{name}={_indented(each.detach(), len(name) + 8)}"
        for name, each in zip((*names, "values"), (*self._positions, self._elements))
    ]
    rest = [f"size={tuple(self.shape)}", f"nnz={_nnz(self)}"]
    if self._type.device is not CPU:
        rest.insert(0, f"device='{self._type.device}'")
    usual = (promotion.default_dtype, promotion.default_complex(), int64, bool_)
    if self._type.dtype not in usual:
        rest.append(f"dtype={self._type.dtype}")
    rest.append(f"layout={self._layout!r}")
    if self._elements.grad_fn is not None:
        rest.append(f"grad_fn=<{type(self._elements.grad_fn).__name__}>")
    elif self._elements.requires_grad:
        rest.append("requires_grad=True")
    head = f",\n{' ' * 7}".join(parts)
    if self._layout is sparse_coo:
        head, rest[0] = f"{head},\n{' ' * 7}{rest[0]}", ""
    return f"tensor({printing.with_suffixes(head, [each for each in rest if each], 7)})"


def _indented(x: Tensor, indent: int) -> str:
    """The elements of a part, without what the whole says of its type."""
    shown = printing.tensor_repr(x)
    for told in (f"device='{x.device}'", f"dtype={x.dtype}"):
        shown = re.sub(rf",\s+{re.escape(told)}", "", shown)
    if x.shape == (0,):
        return "tensor([], size=(0,))"
    return shown.replace("\n", "\n" + " " * indent)


def deepcopy(self: SparseTensor, memo: dict[int, Any]) -> SparseTensor:
    """A copy with positions and values of its own."""
    if id(self) not in memo:
        positions = tuple(copy.deepcopy(each, memo) for each in self._positions)
        elements = copy.deepcopy(self._elements, memo)
        memo[id(self)] = make_sparse(
            self._layout, positions, elements, self._type.shape, self._coalesced
        )
    found: SparseTensor = memo[id(self)]
    return found


def rebuild_sparse_tensor(layout: Layout, data: tuple[Any, ...]) -> SparseTensor:
    """A tensor from what `reduce_for_pickle` gives, which is PyTorch's form; places are checked."""
    if layout is sparse_coo:
        at, elements, size, *rest = data
        return sparse_coo_tensor(at, elements, size, is_coalesced=bool(rest and rest[0]))
    begins, across, elements, size = data
    return sparse_compressed_tensor(begins, across, elements, size, layout=layout)


def reduce_for_pickle(self: SparseTensor, protocol: Any) -> Any:
    """As a call of `rebuild_sparse_tensor`."""
    data: tuple[Any, ...] = (*self._positions, self._elements, self.shape)
    if self._layout is sparse_coo:
        data = (*data, self._coalesced)
    return rebuild_sparse_tensor, (self._layout, data)


def numpy(self: SparseTensor, *args: Any, **kwargs: Any) -> NoReturn:
    raise NotAnArrayError("numpy()", self._layout)


def norm(self: SparseTensor, p: Any = 2, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The norm of all elements."""
    if dim is not None or keepdim:
        refuse("norm along a dimension")(self)
    return coalesce(self)._elements.flatten().norm(p)


def mm(self: SparseTensor, mat2: Tensor) -> Tensor:
    """The product with a matrix, sparse or dense."""
    return linalg.mm(self, require_tensor(mat2, "mm", "mat2"))


_IN_PLACE = (
    "abs asin atan ceil erf expm1 floor log1p neg relu round sign sin sinh sqrt tan tanh trunc"
)

METHODS: dict[str, Callable[..., Any]] = {
    "_indices": _indices, "_nnz": _nnz, "_values": _values, "coalesce": _coalesce,
    "col_indices": col_indices, "crow_indices": crow_indices, "indices": indices,
    "is_coalesced": is_coalesced, "values": values,
    "add_": add_, "copy_": copy_, "div_": div_, "mul_": mul_, "sub_": sub_, "zero_": zero_,
    "detach": detach, "register_hook": register_hook, "requires_grad_": requires_grad_,
    "norm": norm, "numpy": numpy, "__array__": numpy, "select": select, "smm": mm, "unbind": unbind,
    "ccol_indices": ccol_indices, "row_indices": row_indices, "t_": t_, "transpose_": transpose_,
    **{f"{name}_": _elementwise_(name) for name in _IN_PLACE.split()},
    "__deepcopy__": deepcopy, "__getitem__": getitem, "__iadd__": add_, "__imul__": mul_,
    "__iter__": iterate, "__isub__": sub_, "__itruediv__": div_, "__reduce_ex__": reduce_for_pickle,
    "__repr__": sparse_repr, "__str__": sparse_repr,
}  # fmt: skip

# What would read or write memory that there is none of.
_REFUSED = """
    contiguous data_ptr detach_ fill_ is_contiguous item
    register_post_accumulate_grad_hook retain_grad set_ storage_offset stride tolist
    untyped_storage view __bool__ __contains__ __dlpack__ __float__ __int__
    __setitem__"""


def install() -> None:
    """Put everything in place on the class."""
    for name in _REFUSED.split():
        if hasattr(Tensor, name):
            setattr(SparseTensor, name, refuse(f"{name}()"))
    for name, function in METHODS.items():
        setattr(SparseTensor, name, with_keywords(function))
    parts = {
        "requires_grad": (lambda self: self._elements.requires_grad, requires_grad_),
        "grad": (get_grad, set_grad, lambda self: set_grad(self, None)),
        "grad_fn": (lambda self: self._elements.grad_fn,),
        "is_leaf": (lambda self: self._elements.is_leaf,),
        "data": (detach,),
    }
    for name, functions in parts.items():
        setattr(SparseTensor, name, property(*functions))
