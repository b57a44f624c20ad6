"""Classes that users derive from Tensor: results of operations on such tensors are of them, too.

That is what PyTorch's subclasses do that leave `__torch_function__` as it is. Here it follows the
operands of each step: `apply` gives a result the class of those, as does what makes tensors like
another one. The `__init__` of the class does not run, and attributes are not copied. Functions are
not overridden by classes, so one with a `__torch_function__` of its own is refused when a tensor of
it is made. Parameters and buffers are not passed on, nor are classes derived from them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .state import state
from .tensor import PASSED_ON, Tensor

_OVERRIDES = ("__torch_function__", "__torch_dispatch__")


def refuse_overrides(cls: type) -> None:
    """TypeError for a class that wants to be asked before each function, or is no class of ours."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not "
            "possible. Make sure your class inherits from Tensor."
        )
    found = next((name for name in _OVERRIDES if hasattr(cls, name)), None)
    if found is not None:
        raise TypeError(
            f"{cls.__name__} has {found}: functions are not overridden by classes here. Without it "
            "operations on such tensors give tensors of the class, and methods can be overridden"
        )


def class_of(operands: Iterable[Any]) -> type[Tensor]:
    """The class of what is made of `operands`: of several the one derived from the others.

    TypeError where none is derived from all of them.
    """
    found: list[type[Tensor]] = []
    for each in operands:
        kind = type(each)
        if kind in PASSED_ON and kind not in found:
            found.append(kind)
    if not found:
        return Tensor
    for kind in found:
        if all(issubclass(kind, other) for other in found):
            return kind
    names = " and ".join(kind.__name__ for kind in found)
    raise TypeError(
        f"operands of the classes {names}: expected one that is derived from the others; "
        "as_subclass() makes a tensor one of another class"
    )


def pass_on(operands: Iterable[Any], results: Iterable[Any]) -> None:
    """Give new tensors the class of `operands`; not to gradients, while a backward pass runs."""
    if state.backward_pass is not None:
        return
    cls = class_of(operands)
    if cls is not Tensor:
        for each in results:
            if type(each) is Tensor:
                each.__class__ = cls


def like(input: Tensor, made: Tensor) -> Tensor:
    """`made`, a new tensor, with the class of `input`."""
    if PASSED_ON and state.backward_pass is None:
        cls, own = class_of((input,)), type(made)
        if own is not cls and (own is Tensor or own in PASSED_ON):
            made.__class__ = cls
    return made
