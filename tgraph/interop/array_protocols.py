"""What tensors answer to programs of no library and to NumPy: their namespace, NumPy's functions.

The protocols: https://data-apis.org/array-api/2024.12/ and NumPy's `__array_ufunc__` (NEP 13) and
`__array_function__` (NEP 18).
"""

from __future__ import annotations

from typing import Any

from ..core.devices import DeviceLike
from ..core.tensor import Tensor
from ..ops import from_data
from ..ops.conversion import to

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
"""Of the standard, each of which has all that those before it have."""


def array_namespace(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """`tgraph.array_api`: the functions of the array API standard; ValueError for a later version.

    >>> import tgraph as tg
    >>> tg.ones(2).__array_namespace__() is tg.array_api
    True
    """
    from .. import array_api

    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(
            f"__array_namespace__(): expected one of the versions {', '.join(VERSIONS)} of the "
            f"array API standard, got {api_version!r}"
        )
    return array_api


def to_device(self: Tensor, device: DeviceLike, /, *, stream: Any = None) -> Tensor:
    """The array API's name of `tensor.to(device)`; `stream` has to be None."""
    if stream is not None:
        raise ValueError("to_device(): stream is not supported; use `with tgraph.cuda.stream(s):`")
    return to(self, device=device)


def array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """NumPy's elementwise functions over tensors give tensors, with gradients.

    >>> import numpy as np
    >>> import tgraph as tg
    >>> np.maximum(np.arange(3.0), tg.tensor([2.0, 0.0, 1.0]))
    tensor([2., 1., 2.], dtype=tgraph.float64)
    """
    from .numpy_functions import elementwise

    return elementwise(ufunc, method, inputs, kwargs)


def array_function(self: Tensor, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """NumPy's other functions over tensors; those that tgraph has give tensors, with gradients.

    >>> import numpy as np
    >>> import tgraph as tg
    >>> np.concatenate([tg.zeros(1), np.ones(1, np.float32)])
    tensor([0., 1.])
    """
    from .numpy_functions import call

    return call(func, types, args, kwargs)


def array_function_of_numpy(self: Tensor, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """NumPy's other functions as it runs them over PyTorch's tensors, of which it knows nothing.

    They give arrays, but for those that NumPy leaves to a method of the same name.
    """
    return func._implementation(*args, **kwargs)


def array_wrap(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
    """A tensor of what a method of an array gave, where NumPy calls one in a tensor's place."""
    return from_data.as_tensor(array)


def speak_as_pytorch(does: bool) -> None:
    """Whether NumPy's functions, but for elementwise ones, treat tensors as they do PyTorch's."""
    kinds: Any = Tensor
    kinds.__array_function__ = array_function_of_numpy if does else array_function
    if does:
        kinds.__array_wrap__ = array_wrap
    else:
        del kinds.__array_wrap__


for _name, _method in (
    ("__array_namespace__", array_namespace),
    ("to_device", to_device),
    ("__array_ufunc__", array_ufunc),
    ("__array_function__", array_function),
):
    setattr(Tensor, _name, _method)
