"""Names by which arguments can be given beside those of our parameters, as PyTorch takes them.

PyTorch knows NumPy's names of common arguments (`axis`, `keepdims`, `x`), takes sizes and
dimensions one by one or by name, and has some names that only one function uses. What has no
meaning here, such as the order of dimensions in memory of casts, is accepted and passed over.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from .argument_types import ArgumentTypes, are_ints, form_of, known_annotations
from .layouts import Layout, strided
from .sparse_tensor import SPARSE_RULES
from .tensor import Tensor

SIZES = "*"  # stands for the parameter that takes any number of sizes
IGNORED = None  # has no meaning here
OFF = "?"  # may be given, but not set

# Of every function that has the parameter, and no parameter of the other name.
_MEMORY: dict[str, str | None] = {"memory_format": IGNORED, "layout": IGNORED, "pin_memory": OFF}
_AXES = {"axis": "dim", "keepdims": "keepdim"}
_OF_SIZES: dict[str, tuple[str, ...]] = {
    "size": ("zeros", "ones", "empty", "rand", "randn", "new_zeros", "new_ones", "new_empty",
             "view", "expand", "resize_"),
    "shape": ("reshape",),
    "dims": ("permute", "flip", "tile"),
    "repeats": ("repeat",),
}  # fmt: skip
_OF_ONE: dict[str, dict[str, str | None]] = {
    "cholesky_solve": {"input2": "L"},
    "copy_": {"other": "src"},
    "dot": {"tensor": "other"},
    "expand": {"implicit": IGNORED},
    "isin": {"element": "elements", "test_element": "test_elements"},
    "lstsq": {"input": "A", "b": "B"},
    "matrix_or_vector_norm": {"input": "A"},
    "max": {"other": "dim"},
    "min": {"other": "dim"},
    "normal": {"layout": IGNORED, "pin_memory": OFF},
    "pow": {"self": "input"},
    "random_": {"from": "low", "to": "high"},
    "resize_as_": {"the_template": "other", "memory_format": IGNORED},
    "result_type": dict.fromkeys(("tensor", "other", "scalar", "scalar1", "scalar2"), SIZES),
    "scatter": {"value": "src"},
    "scalar_tensor": {"s": "value", **_MEMORY},
    "searchsorted": {"input": "values", "self": "values"},
    "split": {"split_size": "split_size_or_sections", "tensor": "input"},
    "tensorsolve": {"input": "A", "other": "B"},
    "trace": {"input": "function"},
    "vector_norm": {"input": "x"},
    "transpose": {"axis0": "dim0", "axis1": "dim1"},
    "transpose_": {"axis0": "dim0", "axis1": "dim1"},
    "type_of": {"non_blocking": IGNORED},
    "uniform_": {"from": "a", "to": "b"},
}
_MAKES = """
    arange empty empty_like empty_permuted empty_strided eye full full_like linspace logspace
    new_empty new_full new_ones new_zeros ones ones_like rand rand_like randint randint_like randn
    randn_like randperm zeros zeros_like range tril_indices triu_indices from_file"""
_OF_SPARSE = "sparse_coo_tensor sparse_csr_tensor sparse_csc_tensor sparse_compressed_tensor"
_OF_A_MATRIX = """
    cholesky cholesky_ex cond eig eigh eigvals eigvalsh ldl_factor ldl_factor_ex matrix_norm
    matrix_power matrix_rank pinv solve_triangular tensorinv"""
for _name in _OF_A_MATRIX.split():
    _OF_ONE[_name] = {"input": "A"}
for _name in ("tensor_split", "hsplit", "vsplit", "dsplit"):
    _OF_ONE[_name] = dict.fromkeys(("sections", "indices"), "indices_or_sections")
for _name in _OF_SPARSE.split():
    _OF_ONE[_name] = {"pin_memory": OFF}
for _name in _MAKES.split():
    _OF_ONE[_name] = dict(_MEMORY)
    if _name == "empty" or _name.endswith("_like"):  # which have orders in memory
        del _OF_ONE[_name]["memory_format"]
for _own, _functions in _OF_SIZES.items():
    for _name in _functions:
        _OF_ONE[_name] = {_own: SIZES, **_OF_ONE.get(_name, {})}


def with_keywords(
    function: Callable[..., Any], method: bool = False, name: str = ""
) -> Callable[..., Any]:
    """`function`, which can also be called by the other names of its arguments, whose types are
    looked at; a `method` knows that of its first one. Errors call it by its own or another `name`.

    >>> from tgraph import zeros
    >>> from tgraph.ops import reductions
    >>> with_keywords(reductions.sum)(zeros(2, 3), axis=1)
    tensor([0., 0.])
    """
    names = other_names(function)
    if not names and not _has_types(function, method):
        return function
    types = ArgumentTypes(function, method, name)  # whose table no trace takes for state

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            if names:
                if asks_for_sparse(kwargs):
                    return made_sparse(function, args, kwargs)
                args, kwargs = translated(names, args, kwargs)
            form = form_of(args, kwargs)
        elif method and len(args) == 1 and type(args[0]) is Tensor:
            return function(*args)  # of which there is nothing to look at
        else:
            form = tuple(map(type, args))
        places = types.known.get(form)
        if places is None or (places and not are_ints(places, args, kwargs)):
            args, kwargs = types.fitting(args, kwargs)
        try:
            return function(*args, **kwargs)
        except Exception:
            if (misfit := types.misfit_within(args, kwargs)) is not None:
                raise misfit from None
            raise

    return call


def publish(namespace: dict[str, Any], names: dict[str, Callable[..., Any]]) -> None:
    """Put functions into the namespace of a module, where pickles find them again.

    >>> import pickle
    >>> import tgraph as tg
    >>> pickle.loads(pickle.dumps(tg.nn.functional.relu)) is tg.nn.functional.relu
    True
    """
    for name, function in names.items():
        if hasattr(function, "__wrapped__") and function.__name__ == name:
            function.__module__ = namespace["__name__"]
        namespace[name] = function


def _has_types(function: Callable[..., Any], method: bool) -> bool:
    """Whether there is something to look at beside the tensor that a method is of."""
    return len(known_annotations(function)) > method


def asks_for_sparse(kwargs: dict[str, Any]) -> bool:
    """Whether a tensor is to be made in another layout than the usual one."""
    return isinstance(layout := kwargs.get("layout"), Layout) and layout is not strided


def made_sparse(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a factory of tensors makes in the layout that is asked for."""
    kwargs = dict(kwargs)
    layout = kwargs.pop("layout")
    return SPARSE_RULES["made"](function, layout, args, kwargs)


def other_names(function: Callable[..., Any]) -> dict[str, str | None]:
    """What a keyword that is no parameter stands for."""
    known = parameters(function)
    found: dict[str, str | None] = {name: own for name, own in _AXES.items() if own in known}
    found.update(_OF_ONE.get(function.__name__, {}))
    return {name: own for name, own in found.items() if name not in known}


def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the parameters, but for those of `*args` and `**kwargs`.

    `inspect.signature` would take 20 times as long, for each of the 450 functions that are given
    names at import.
    """
    code = inspect.unwrap(function).__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def translated(
    names: dict[str, str | None], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments by the names of the parameters."""
    for name in names.keys() & kwargs.keys():
        value, own = kwargs.pop(name), names[name]
        if own == SIZES:
            given = (kwargs.pop("input"),) if "input" in kwargs else ()
            args = (*given, *args, value)
        elif own == OFF and value:
            raise NotImplementedError(f"{name}={value}: call {name}() on the result instead")
        elif own not in (IGNORED, OFF):
            if own in kwargs:
                raise TypeError(f"'{name}' and '{own}' are two names of one argument")
            kwargs[own] = value
    return args, kwargs


ELEMENTWISE_NAMES = {"x": "input", "x1": "input", "x2": "other"}
