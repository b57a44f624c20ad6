"""Gives Tensor its operations: every method is a function of a module named after its family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd import api
from ..core import inplace, printing, views
from ..core.classes import refuse_overrides
from ..core.inplace import overwrite
from ..core.keywords import with_keywords
from ..core.operands import SCALARS
from ..core.overlap import refuse_overlap
from ..core.public import OPERATIONS, Operation
from ..core.tensor import Size, Tensor
from . import (
    comparison,
    complex_numbers,
    conversion,
    creation_options,
    elementwise,
    from_data,
    functions,
    histograms,
    indexing,
    inplace_functions,
    linalg,
    movement,
    pickling,
    rules_contractions,
    rules_control,
    rules_elementwise,
    rules_movement,
    rules_reductions,
    shrinking,
    sparse_methods,
    sparse_parts,
    sparse_products,
    sparse_rules,
    special_functions,
    storage_views,
    typed,
    view_copies,
)

# Imported for the operations that they declare, and for the gradient rules that they register.
FAMILIES = functions.FAMILIES
SPARSE = (sparse_products, sparse_rules)  # imported for the rules that they register
RULE_MODULES = (
    rules_contractions, rules_control, rules_elementwise, rules_movement, rules_reductions
)  # fmt: skip

# Methods that are declared in no family: those of other rooms, and those that are called otherwise.
METHODS: dict[str, Callable[..., Any]] = {
    "backward": api.tensor_backward,
    "copy_": inplace.copy_,
    "detach": views.detach,
    "detach_": inplace.detach_,
    "fill_": inplace.fill_,
    "hardshrink": shrinking.hardshrink,
    "histogram": histograms.histogram,
    "narrow_copy": view_copies.narrow_copy,
    "polygamma": special_functions.polygamma_method,
    "polygamma_": special_functions.polygamma_,
    "prelu": shrinking.prelu,
    "dense_dim": sparse_parts.dense_dim,
    "sparse_dim": sparse_parts.sparse_dim,
    "sparse_mask": sparse_parts.sparse_mask,
    "to_dense": sparse_parts.to_dense,
    "to_sparse": sparse_parts.to_sparse,
    "to_sparse_bsc": sparse_parts.to_sparse_bsc,
    "to_sparse_bsr": sparse_parts.to_sparse_bsr,
    "to_sparse_coo": sparse_parts.to_sparse_coo,
    "to_sparse_csc": sparse_parts.to_sparse_csc,
    "to_sparse_csr": sparse_parts.to_sparse_csr,
    "register_hook": api.register_hook,
    "register_post_accumulate_grad_hook": api.register_post_accumulate_grad_hook,
    "requires_grad_": api.requires_grad_,
    "retain_grad": api.retain_grad,
    "set_": storage_views.set_,
    "slice_inverse": view_copies.slice_inverse,
    "where": lambda self, condition, other: elementwise.where(condition, self, other),
    "zero_": inplace.zero_,
}

# Python's operator -> function; each also has a reflected and an in-place form.
OPERATORS: dict[str, Callable[..., Any]] = {
    "add": elementwise.add,
    "sub": elementwise.sub,
    "mul": elementwise.mul,
    "truediv": elementwise.div,
    "floordiv": elementwise.floor_divide,
    "mod": elementwise.remainder,
    "pow": elementwise.pow,
    "and": comparison.bitwise_and,
    "or": comparison.bitwise_or,
    "xor": comparison.bitwise_xor,
    "lshift": comparison.bitwise_left_shift,
    "rshift": comparison.bitwise_right_shift,
    "matmul": linalg.matmul,
}
COMPARISONS = {
    "eq": comparison.eq,
    "ne": comparison.ne,
    "lt": comparison.lt,
    "le": comparison.le,
    "gt": comparison.gt,
    "ge": comparison.ge,
}


@staticmethod
def _make_subclass(cls: type[Tensor], data: Tensor, require_grad: bool = False) -> Tensor:
    """A leaf of a class that shares the memory of `data`."""
    refuse_overrides(cls)
    return pickling.rebrand(data.detach(), cls, require_grad)


SPECIAL: dict[str, Any] = {
    "__abs__": elementwise.abs,
    "__array__": conversion.to_array,
    "__array_priority__": 1000,  # arrays leave operators with tensors to the tensor
    "__complex__": conversion.to_python_complex,
    "__bool__": conversion.to_python_bool,
    "__contains__": conversion.contains,
    "_make_subclass": _make_subclass,
    "__deepcopy__": pickling.deepcopy,
    "__float__": conversion.to_python_float,
    "__format__": printing.tensor_format,
    "__getitem__": indexing.getitem,
    "__index__": conversion.to_index,
    "__int__": conversion.to_python_int,
    "__invert__": comparison.invert,
    "__iter__": conversion.iterate,
    "__len__": conversion.length,
    "__neg__": elementwise.neg,
    "__pos__": elementwise.positive,
    "__reduce_ex__": pickling.reduce_for_pickle,
    "__repr__": printing.tensor_repr,
    "__reversed__": conversion.backwards,
    "__setitem__": indexing.setitem,
    "__setstate__": pickling.set_state,
}

PROPERTIES: dict[str, property] = {
    "H": property(movement.conjugate_transpose),
    "T": property(movement.reversed_dims),
    "data": property(views.data, inplace.set_data),
    "grad": property(api.get_grad, api.set_grad, lambda self: api.set_grad(self, None)),
    "grad_fn": property(api.grad_fn),
    "imag": property(complex_numbers.imag, complex_numbers.set_imag),
    "is_leaf": property(api.is_leaf),
    "mH": property(movement.conjugate_matrix_transpose),
    "mT": property(movement.matrix_transpose),
    "name": property(api.name),
    "output_nr": property(api.output_nr),
    "real": property(complex_numbers.real, complex_numbers.set_real),
    "requires_grad": property(api.requires_grad, api.set_requires_grad),
    "__cuda_array_interface__": property(conversion.cuda_array_interface),
    "retains_grad": property(api.retains_grad),
}


def _operand(value: Any) -> Any:
    """A tensor or number as it is, an array as a tensor; None for what is no operand."""
    if isinstance(value, (Tensor, *SCALARS)):
        return value
    return from_data.as_tensor(value) if isinstance(value, np.ndarray) else None


def _operator(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def method(self: Tensor, other: Any) -> Any:
        operand = other if isinstance(other, Tensor) else _operand(other)
        return NotImplemented if operand is None else function(self, operand)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = function.__doc__
    return method


def _reflected(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def reflected(self: Tensor, other: Any) -> Any:
        operand = _operand(other)
        return NotImplemented if operand is None else function(operand, self)

    reflected.__name__ = reflected.__qualname__ = name
    reflected.__doc__ = function.__doc__
    return reflected


def _in_place(operation: Operation, name: str) -> Callable[..., Any]:
    function, overlap = with_keywords(operation.function), operation.overlap

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        operands = (*args, *kwargs.values()) if kwargs else args
        if overlap != "any":
            refuse_overlap(self, operands, overlap == "none")
        return overwrite(self, lambda before: function(before, *args, **kwargs), name, operands)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`{operation.name}` written over this tensor, which is returned."
    return method


def _in_place_operator(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    elementwise_ = function is not linalg.matmul

    def method(self: Tensor, other: Any) -> Any:
        operand = other if isinstance(other, Tensor) else _operand(other)
        if operand is None:
            return NotImplemented
        if elementwise_:
            refuse_overlap(self, (operand,))
        return overwrite(self, lambda before: function(before, operand), name, (operand,))

    method.__name__ = method.__qualname__ = name
    return method


def _construct(
    cls: type[Tensor],
    *args: Any,
    size: Any = None,
    device: creation_options.DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """`Tensor(2, 3)` has these sizes, `Tensor(data)` the data, as the default float type."""
    refuse_overrides(cls)
    args = args if size is None else (Size(size), *args)
    typed.check_device_type(device, "cpu")
    if len(args) == 1 and isinstance(args[0], Tensor):
        return pickling.rebrand(args[0].detach(), cls, requires_grad)
    made = typed.made_of(args, creation_options.get_default_dtype(), device)
    return pickling.rebrand(made, cls, requires_grad)


def install() -> None:
    """Put everything in place on the class."""
    for operation in OPERATIONS.values():
        for name in operation.names:
            if operation.is_method:
                setattr(Tensor, name, with_keywords(operation.function, True, operation.name))
            if operation.inplace:
                setattr(Tensor, f"{name}_", _in_place(operation, f"{name}_"))
    for name, function in METHODS.items():
        setattr(Tensor, name, with_keywords(function, True, name))
    for name, function in OPERATORS.items():
        setattr(Tensor, f"__{name}__", _operator(function, f"__{name}__"))
        setattr(Tensor, f"__r{name}__", _reflected(function, f"__r{name}__"))
        setattr(Tensor, f"__i{name}__", _in_place_operator(function, f"__i{name}__"))
    for form in ("", "r", "i"):
        setattr(Tensor, f"__{form}div__", getattr(Tensor, f"__{form}truediv__"))
    for name, function in COMPARISONS.items():
        setattr(Tensor, f"__{name}__", _operator(function, f"__{name}__"))
    for name, value in (*SPECIAL.items(), *PROPERTIES.items()):
        setattr(Tensor, name, value)
    functions.FUNCTIONS.update(inplace_functions.functions())
    Tensor.__new__ = _construct  # type: ignore[method-assign, assignment]
    Tensor.__str__ = Tensor.__repr__  # type: ignore[method-assign]
    sparse_methods.install()


install()
