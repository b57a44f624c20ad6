"""The base class of distributions."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

from ..core.grad_mode import no_grad
from ..core.tensor import Size, Tensor
from . import constraints
from .utils import checked


class Distribution:
    """A probability distribution, or a batch of them.

    `batch_shape` is the shape of the parameters, `event_shape` that of one draw. With
    `validate_args` parameters and values are checked against `arg_constraints` and `support`:
    ValueError in eager code, RuntimeError from a compiled function.

    Subclasses name the tensors that depend on the batch in `tensors`, so that `expand` knows them.
    """

    has_rsample: bool = False
    has_enumerate_support: bool = False
    _validate_args: bool = True
    tensors: ClassVar[tuple[str, ...]] = ()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check their arguments where they are not told to or not to."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args expected True or False, got {value!r}")
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Any = (),
        event_shape: Any = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        try:
            known = self.arg_constraints
        except NotImplementedError:
            known = {}
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = "
                "{}` or initialize the distribution with `validate_args=False` to turn off "
                "validation.",
                stacklevel=3,
            )
        for name, constraint in known.items():
            if constraints.is_dependent(constraint) or name not in self.__dict__:
                continue  # what depends on others, and lazy ones
            value = getattr(self, name)
            setattr(self, name, self._checked_parameter(name, value, constraint))

    def _checked_parameter(self, name: str, value: Tensor, constraint: Any) -> Tensor:
        return checked(
            constraint.check(value),
            value,
            lambda: (
                f"Expected parameter {name} ({type(value).__name__} of shape "
                f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                f"{constraint!r}"
            ),
        )

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one draw."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, Any]:
        """What each parameter must satisfy."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint that all draws satisfy."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The value of the greatest density."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        """The distribution with its parameters expanded to `batch_shape`."""
        new = self._get_checked_instance(Distribution, _instance)
        shape = Size(batch_shape)
        for name in self.tensors:
            if name in self.__dict__:
                value = self.__dict__[name]
                own = value.shape[len(self._batch_shape) :]
                setattr(new, name, value.expand(*shape, *own))
        Distribution.__init__(new, shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws without gradients, of shape `sample_shape + batch_shape + event_shape`."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws that are differentiable functions of the parameters."""
        raise NotImplementedError(
            f"{type(self).__name__}.rsample: its draws are no differentiable function of its "
            "parameters (has_rsample is False); use sample()"
        )

    def sample_n(self, n: int) -> Tensor:
        """`n` draws. Deprecated, as `sample((n,))` says the same."""
        warnings.warn(
            "sample_n(n) will be deprecated. Use .sample((n,)) instead.", UserWarning, stacklevel=2
        )
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, at `value`."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most `value`."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of `cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution along the first dimension."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy, in nats."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Any) -> Any:
        """`value`, whose shape and, in eager code, elements are those of a draw."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        dims = value.ndim - len(self._event_shape)
        if tuple(value.shape[dims:]) != tuple(self._event_shape):
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{value.shape} vs {self._event_shape}."
            )
        actual, expected = value.shape, self._batch_shape + self._event_shape
        for i, j in zip(reversed(actual), reversed(expected), strict=False):
            if i not in (1, j) and j != 1:
                raise ValueError(
                    "Value is not broadcastable with batch_shape+event_shape: "
                    f"{actual} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return value
        return checked(
            support.check(value),
            value,
            lambda: (
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) of the distribution {self!r}"
            ),
        )

    def _checked_value(self, value: Any) -> Any:
        return self._validate_sample(value) if self._validate_args else value

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """A new object of this class, or the one that a subclass made."""
        if _instance is not None:
            return _instance
        if type(self).expand is Distribution.expand and self._own_init():
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method."
            )
        return type(self).__new__(type(self))

    def _own_init(self) -> bool:
        """Whether a subclass's `__init__` is its own, and the `tensors` are another's."""
        order = type(self).__mro__
        init = next(each for each in order if "__init__" in vars(each))
        known = next(each for each in order if "tensors" in vars(each))
        return order.index(init) < order.index(known)

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        shown = [f"{name}: {self._shown(self.__dict__[name])}" for name in names]
        return f"{type(self).__name__}({', '.join(shown)})"

    @staticmethod
    def _shown(value: Any) -> Any:
        if isinstance(value, Tensor) and value.numel() != 1:
            return value.size()
        return value
