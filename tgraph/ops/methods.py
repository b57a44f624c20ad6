"""Gives Tensor its operations: every method is a function of a module named after its family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd import api
from ..core import inplace, printing, views
from ..core.inplace import overwrite
from ..core.keywords import with_keywords
from ..core.operands import SCALARS
from ..core.overlap import refuse_overlap
from ..core.tensor import Tensor
from . import (
    activations,
    comparison,
    conversion,
    creation,
    elementwise,
    gather_scatter,
    indexing,
    joining,
    linalg,
    movement,
    random,
    reductions,
    rules_contractions,
    rules_elementwise,
    rules_movement,
    rules_reductions,
    sorting,
)

# Imported for the gradient rules that they register.
RULE_MODULES = (rules_contractions, rules_elementwise, rules_movement, rules_reductions)

# The methods that have the name of the function they are.
METHODS: dict[Any, str] = {
    elementwise: """
        abs acos add addcdiv addcmul asin atan atan2 ceil clamp cos cosh div erf exp exp2 expm1
        floor floor_divide fmod frac lerp log log10 log1p log2 maximum minimum mul nan_to_num neg
        positive pow reciprocal remainder round rsqrt sign sin sinh sqrt square sub tan tanh
        trunc""",
    comparison: """
        bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor eq
        ge gt isfinite isinf isnan le logical_and logical_not logical_or logical_xor lt ne""",
    reductions: """
        all allclose amax amin aminmax any argmax argmin count_nonzero equal isclose logsumexp max
        mean min norm prod std sum var""",
    movement: """
        broadcast_to chunk clone contiguous data_ptr diagonal expand expand_as flatten
        is_contiguous movedim narrow permute ravel reshape reshape_as select split squeeze stride t
        tensor_split transpose unbind unflatten unfold unsqueeze
        view view_as""",
    joining: "flip repeat roll tile",
    indexing: "index_put index_put_",
    gather_scatter: """
        argwhere gather index_add index_copy index_fill index_select
        masked_fill masked_scatter masked_select nonzero repeat_interleave scatter
        scatter_add take take_along_dim""",
    linalg: "addmm addmv baddbmm bmm dot inner matmul mm mv outer trace",
    activations: "log_softmax relu sigmoid softmax",
    sorting: "argsort bincount cumsum kthvalue median sort topk unique",
    creation: "diag new_empty new_full new_ones new_tensor new_zeros tril triu",
    random: "bernoulli bernoulli_ exponential_ multinomial normal_ random_ uniform_",
    inplace: "copy_ detach_ fill_ zero_",
    views: "detach",
    api: "register_hook requires_grad_ retain_grad",
    conversion: """
        cpu cuda double get_device half item long numpy pin_memory record_stream short to tolist
        type_as""",
}

# Further names of methods, and functions whose name would hide a Python one.
RENAMED: dict[str, Any] = {
    "absolute": elementwise.abs,
    "arccos": elementwise.acos,
    "arcsin": elementwise.asin,
    "arctan": elementwise.atan,
    "arctan2": elementwise.atan2,
    "backward": api.tensor_backward,
    "bfloat16": conversion.to_bfloat16,
    "bool": conversion.to_bool,
    "byte": conversion.byte,
    "char": conversion.char,
    "clip": elementwise.clamp,
    "divide": elementwise.div,
    "float": conversion.float_,
    "greater": comparison.gt,
    "greater_equal": comparison.ge,
    "int": conversion.int_,
    "is_pinned": conversion.is_pinned_tensor,
    "less": comparison.lt,
    "less_equal": comparison.le,
    "moveaxis": movement.movedim,
    "multiply": elementwise.mul,
    "negative": elementwise.neg,
    "not_equal": comparison.ne,
    "sgn": elementwise.sign,
    "subtract": elementwise.sub,
    "swapaxes": movement.transpose,
    "swapdims": movement.transpose,
    "true_divide": elementwise.div,
    "type": conversion.type_of,
    "where": lambda self, condition, other: elementwise.where(condition, self, other),
}

# Functions f that have a form f_ which writes the result over the first operand.
IN_PLACE: dict[Any, str] = {
    elementwise: """
        abs acos add addcdiv addcmul asin atan atan2 ceil clamp cos cosh div erf exp exp2 expm1
        floor floor_divide fmod frac lerp log log10 log1p log2 mul nan_to_num neg pow reciprocal
        remainder round rsqrt sign sin sinh sqrt square sub tan tanh trunc""",
    comparison: """
        bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor eq
        ge gt le logical_and logical_not logical_or logical_xor lt ne""",
    gather_scatter: """
        index_add index_copy index_fill masked_fill masked_scatter scatter scatter_add""",
    activations: "relu sigmoid",
    creation: "tril triu",
    linalg: "addmm addmv baddbmm",
    sorting: "cumsum",
}
# Which operands may not lie in the memory that is written, but be all of it (see overlap.py); those
# of other functions may not even be that, or are read as a whole first.
READS_AS_IT_WRITES = (elementwise, comparison)
READS_ELSEWHERE = ("index_add", "index_copy", "scatter", "scatter_add")

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

SPECIAL: dict[str, Any] = {
    "__abs__": elementwise.abs,
    "__array__": conversion.to_array,
    "__array_priority__": 1000,  # arrays leave operators with tensors to the tensor
    "__bool__": conversion.to_python_bool,
    "__contains__": conversion.contains,
    "__deepcopy__": conversion.deepcopy,
    "__float__": conversion.to_python_float,
    "__format__": printing.tensor_format,
    "__getitem__": indexing.getitem,
    "__index__": conversion.to_index,
    "__int__": conversion.to_python_int,
    "__invert__": comparison.bitwise_not,
    "__iter__": conversion.iterate,
    "__len__": conversion.length,
    "__neg__": elementwise.neg,
    "__pos__": elementwise.positive,
    "__reduce_ex__": conversion.reduce_for_pickle,
    "__repr__": printing.tensor_repr,
    "__setitem__": indexing.setitem,
}

PROPERTIES: dict[str, property] = {
    "T": property(movement.reversed_dims),
    "data": property(views.data, inplace.set_data),
    "grad": property(api.get_grad, api.set_grad, lambda self: api.set_grad(self, None)),
    "grad_fn": property(api.grad_fn),
    "is_leaf": property(api.is_leaf),
    "mT": property(movement.matrix_transpose),
    "requires_grad": property(api.requires_grad, api.set_requires_grad),
    "__cuda_array_interface__": property(conversion.cuda_array_interface),
    "retains_grad": property(api.retains_grad),
}


def _operand(value: Any) -> Any:
    """A tensor or number as it is, an array as a tensor; None for what is no operand."""
    if isinstance(value, (Tensor, *SCALARS)):
        return value
    return creation.as_tensor(value) if isinstance(value, np.ndarray) else None


def _operator(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def method(self: Tensor, other: Any) -> Any:
        operand = other if isinstance(other, Tensor) else _operand(other)
        return NotImplemented if operand is None else function(self, operand)

    method.__name__, method.__doc__ = name, function.__doc__
    return method


def _reflected(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def method(self: Tensor, other: Any) -> Any:
        operand = _operand(other)
        return NotImplemented if operand is None else function(operand, self)

    method.__name__, method.__doc__ = name, function.__doc__
    return method


def _in_place(function: Callable[..., Any], name: str, module: Any) -> Callable[..., Any]:
    elsewhere = function.__name__ in READS_ELSEWHERE
    checked = elsewhere or module in READS_AS_IT_WRITES

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if checked:
            refuse_overlap(self, (*args, *kwargs.values()), elsewhere)
        return overwrite(self, lambda before: function(before, *args, **kwargs), name)

    method.__name__ = name
    method.__doc__ = f"`{function.__name__}` written over this tensor, which is returned."
    return method


def _in_place_operator(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    elementwise_ = function is not linalg.matmul

    def method(self: Tensor, other: Any) -> Any:
        operand = other if isinstance(other, Tensor) else _operand(other)
        if operand is None:
            return NotImplemented
        if elementwise_:
            refuse_overlap(self, (operand,))
        return overwrite(self, lambda before: function(before, operand), name)

    method.__name__ = name
    return method


def _construct(self: Tensor, *args: Any, requires_grad: bool = False) -> None:
    """`Tensor(2, 3)` has these sizes, `Tensor(data)` the data, as the default float type."""
    default = creation.get_default_dtype()
    if len(args) == 1 and not isinstance(args[0], (int, np.integer)):
        data = args[0].detach() if isinstance(args[0], Tensor) else args[0]
        made = creation.as_tensor(data, dtype=None if isinstance(args[0], Tensor) else default)
        made = made if isinstance(args[0], Tensor) else movement.clone(made)
    else:
        made = creation.zeros(*(args or (0,)), dtype=default)
    self._value, self._type = made._value, made._type
    self._storage, self._view = made._storage, made._view
    self._requires_grad = requires_grad


def install() -> None:
    """Put everything in place on the class."""
    for module, names in METHODS.items():
        for name in names.split():
            setattr(Tensor, name, with_keywords(getattr(module, name)))
    for name, function in RENAMED.items():
        setattr(Tensor, name, with_keywords(function))
    for module, names in IN_PLACE.items():
        for name in names.split():
            function = with_keywords(getattr(module, name))
            setattr(Tensor, f"{name}_", _in_place(function, f"{name}_", module))
    setattr(Tensor, "clip_", _in_place(elementwise.clamp, "clip_", elementwise))  # noqa: B010
    for name, function in OPERATORS.items():
        setattr(Tensor, f"__{name}__", _operator(function, f"__{name}__"))
        setattr(Tensor, f"__r{name}__", _reflected(function, f"__r{name}__"))
        setattr(Tensor, f"__i{name}__", _in_place_operator(function, f"__i{name}__"))
    for name, function in COMPARISONS.items():
        setattr(Tensor, f"__{name}__", _operator(function, f"__{name}__"))
    for name, value in (*SPECIAL.items(), *PROPERTIES.items()):
        setattr(Tensor, name, value)
    Tensor.__init__ = _construct  # type: ignore[method-assign, assignment]
    Tensor.__str__ = Tensor.__repr__  # type: ignore[method-assign]


install()
