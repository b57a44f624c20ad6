"""Modules that learn their sizes from the first input."""

from __future__ import annotations

from typing import Any

from ..core.eager_context import current_context
from ..core.grad_mode import no_grad
from .parameter import become, is_lazy


class LazyModuleMixin:
    """Modules whose parameters get their shapes from the first call.

    A class with it, and with the class to become, makes `UninitializedParameter`s and
    `UninitializedBuffer`s, and defines `initialize_parameters`, which is called with the arguments
    of the first call and gives them shapes and values. Then the module is one of `cls_to_become`.
    Until then it can be moved to a device, have another dtype, and load a state.

    >>> import tgraph as tg
    >>> net = tg.nn.Sequential(tg.nn.LazyLinear(4), tg.nn.ReLU(), tg.nn.LazyLinear(1))
    >>> net[0]
    LazyLinear(in_features=0, out_features=4, bias=True)
    >>> net(tg.ones(2, 3)).shape
    tgraph.Size([2, 1])
    >>> net[0]
    Linear(in_features=3, out_features=4, bias=True)
    """

    cls_to_become: type[Any] | None = None
    _is_inferred = False

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give all parameters shapes and values, for what the module is called with."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer of the module itself has no shape yet."""
        own = self.__dict__
        names = (*own["_parameter_names"], *own["_buffer_names"])
        return any(is_lazy(own[name]) for name in names)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._is_inferred:
            return super().__call__(*args, **kwargs)  # type: ignore[misc]
        self._infer_parameters(*args, **kwargs)
        call: Any = self  # by now of another class
        return call(*args, **kwargs)

    def _infer_parameters(self, *args: Any, **kwargs: Any) -> None:
        with current_context().making_state(), no_grad():
            self.initialize_parameters(*args, **kwargs)
        if self.has_uninitialized_params():
            raise RuntimeError(f"module {type(self).__name__} has not been fully initialized")
        if self.cls_to_become is None:
            self._is_inferred = True
        else:
            become(self, self.cls_to_become)
