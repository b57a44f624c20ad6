"""Pruning: parameters times masks, which are computed before each call of a module."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from ...core.tensor import Tensor
from ...ops.creation import ones_like, zeros_like
from ...ops.norms import norm
from ...ops.random import rand, rand_like
from ...ops.sorting import topk
from ..module import Module
from .convert_parameters import parameters_to_vector

M = TypeVar("M", bound=Module)


class BasePruningMethod(ABC):
    """The hook before calls that multiplies a parameter with its mask.

    Subclasses say what kind they are in `PRUNING_TYPE`, and compute the mask.
    """

    _tensor_name: str
    PRUNING_TYPE: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """A mask for `t`, by whose elements it may go; 0 where `default_mask` is."""

    def apply_mask(self, module: Module) -> Tensor:
        """The parameter of a module times its mask."""
        original = getattr(module, f"{self._tensor_name}_orig")
        mask: Tensor = getattr(module, f"{self._tensor_name}_mask")
        return mask.to(original.dtype) * original

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune the parameter `name` of a module, once more where it is pruned already."""
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        for key, hook in list(module._forward_pre_hooks.items()):
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
                del module._forward_pre_hooks[key]
                container = hook if isinstance(hook, PruningContainer) else PruningContainer(hook)
                container.add_pruning_method(method)
                method = container
                break
        original = getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        _require_shape(scores, original, f"parameter {name} of {module}")
        is_first = not isinstance(method, PruningContainer)
        if is_first:
            default = ones_like(original).detach()
        else:
            default = getattr(module, f"{name}_mask").detach().clone()
        mask = method.compute_mask(scores, default_mask=default)
        if is_first:
            del module._parameters[name]
            module.register_parameter(f"{name}_orig", original)
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        found: BasePruningMethod = method
        return found

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Any = None
    ) -> Tensor:
        """`t` times the mask that is computed for it."""
        scores = t if importance_scores is None else importance_scores
        _require_shape(scores, t, "tensor t")
        default = ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=default)

    def remove(self, module: Module) -> None:
        """Let the parameter be what it is, pruned, for good."""
        name = self._tensor_name
        value = self.apply_mask(module)
        delattr(module, name)
        original = module._parameters[f"{name}_orig"]
        original.data = value.detach()
        del module._parameters[f"{name}_orig"]
        del module._buffers[f"{name}_mask"]
        setattr(module, name, original)


def _require_shape(scores: Tensor, like: Tensor, what: str) -> None:
    if scores.shape != like.shape:
        raise AssertionError(
            f"importance_scores should have the same shape as {what}, got {scores.shape} vs "
            f"{like.shape}"
        )


class PruningContainer(BasePruningMethod):
    """Several prunings of one parameter, each of what the ones before it left."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Add a pruning of the same parameter."""
        if method is None:
            return
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of the last pruning, of the elements that `default_mask` keeps."""
        method: Any = self._pruning_methods[-1]
        new = default_mask.to(t.dtype).clone()
        part: Any = tuple(slice(None) for _ in t.shape)
        if method.PRUNING_TYPE == "unstructured":
            part = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.ndim
            kept = default_mask.sum([at for at in range(t.ndim) if at != dim]) != 0
            part = (*part[:dim], kept, *part[dim + 1 :])
        elif method.PRUNING_TYPE != "global":
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        found = method.compute_mask(t.detach()[part], default_mask=default_mask[part])
        new[part] = found.to(new.dtype)
        return new


class Identity(BasePruningMethod):
    """Prunes nothing, and adds a mask of ones."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class RandomUnstructured(BasePruningMethod):
    """Prunes elements at random: so many, or such a share of them."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        _check_amount(amount)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return _without_smallest(default_mask, rand_like(t.detach()), self.amount)


class L1Unstructured(BasePruningMethod):
    """Prunes the elements that are nearest to 0."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        _check_amount(amount)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return _without_smallest(default_mask, t.detach().abs(), self.amount)


def _without_smallest(mask: Tensor, scores: Tensor, amount: float) -> Tensor:
    count = _count(amount, scores.numel())
    flat = mask.clone().reshape(-1)
    if count:
        flat[topk(scores.reshape(-1), count, largest=False).indices] = 0
    return flat.reshape(mask.shape)


class RandomStructured(BasePruningMethod):
    """Prunes slices along `dim` at random."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount = amount
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _check_structured(t, self.dim)
        scores = rand(t.shape[self.dim], device=t.device)
        return _without_slices(default_mask, t, scores, self.amount, self.dim)


class LnStructured(BasePruningMethod):
    """Prunes the slices along `dim` whose norm of order `n` is smallest."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        _check_amount(amount)
        self.amount = amount
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        _check_structured(t, self.dim)
        others = [at for at in range(t.ndim) if at != self.dim % t.ndim]
        scores = norm(t.detach(), self.n, others)
        return _without_slices(default_mask, t, scores, self.amount, self.dim)


def _without_slices(mask: Tensor, t: Tensor, scores: Tensor, amount: float, dim: int) -> Tensor:
    size = t.shape[dim]
    count = _count(amount, size)
    if not count:
        return mask
    made = zeros_like(t.detach())
    kept = topk(scores, size - count).indices
    made[(*(slice(None),) * (dim % t.ndim), kept)] = 1
    return made * mask.to(made.dtype)


class CustomFromMask(BasePruningMethod):
    """Prunes by a mask that is given."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape "
                f"{self.mask.shape}"
            )
        return default_mask * self.mask.to(default_mask.dtype)


def identity(module: M, name: str) -> M:
    """Give a parameter a mask of ones."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: M, name: str, amount: float) -> M:
    """Prune elements of a parameter at random."""
    RandomUnstructured.apply(module, name, amount=amount)
    return module


def l1_unstructured(
    module: M, name: str, amount: float, importance_scores: Tensor | None = None
) -> M:
    """Prune the elements of a parameter that are nearest to 0.

    >>> import tgraph as tg
    >>> layer = l1_unstructured(tg.nn.Linear(2, 3), "weight", amount=4)
    >>> int(layer.weight_mask.sum()), sorted(layer.state_dict())
    (2, ['bias', 'weight_mask', 'weight_orig'])
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: M, name: str, amount: float, dim: int) -> M:
    """Prune slices of a parameter along `dim` at random."""
    RandomStructured.apply(module, name, amount=amount, dim=dim)
    return module


def ln_structured(
    module: M,
    name: str,
    amount: float,
    n: Any,
    dim: int,
    importance_scores: Tensor | None = None,
) -> M:
    """Prune the slices of a parameter along `dim` whose norm is smallest."""
    LnStructured.apply(
        module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores
    )
    return module


def global_unstructured(
    parameters: Any,
    pruning_method: type[BasePruningMethod],
    importance_scores: Any = None,
    **kwargs: Any,
) -> None:
    """Prune the elements of several parameters, `(module, name)` each, as if they were one."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    given = {} if importance_scores is None else importance_scores
    if not isinstance(given, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    pairs = list(parameters)
    own = [getattr(module, name) for module, name in pairs]
    scores = [given.get(pair, each) for pair, each in zip(pairs, own)]
    masks = [
        getattr(module, f"{name}_mask", ones_like(each.detach()))
        for (module, name), each in zip(pairs, own)
    ]
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    method._tensor_name = "temp"
    container = PruningContainer(method)
    final = container.compute_mask(parameters_to_vector(scores), parameters_to_vector(masks))
    start = 0
    for (module, name), each in zip(pairs, own):
        part = final[start : start + each.numel()]
        custom_from_mask(module, name, mask=part.reshape(each.shape))
        start += each.numel()


def custom_from_mask(module: M, name: str, mask: Tensor) -> M:
    """Prune a parameter by a mask."""
    CustomFromMask.apply(module, name, mask=mask)
    return module


def remove(module: M, name: str) -> M:
    """Let a pruned parameter be what it is for good."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
    )


def is_pruned(module: Module) -> bool:
    """Whether anything in a module is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for each in module.modules()
        for hook in each._forward_pre_hooks.values()
    )


def _check_amount(amount: Any) -> None:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if amount < 0 or (not whole and amount > 1.0):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
            "integer"
        )


def _count(amount: Any, size: int) -> int:
    """How many of `size` are pruned."""
    if not isinstance(amount, numbers.Integral):
        return round(amount * size)
    if amount > size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to prune={size}"
        )
    return int(amount)


def _check_structured(t: Tensor, dim: int) -> None:
    if t.ndim <= 1:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor of "
            f"shape {t.shape} with {t.ndim} dims"
        )
    if dim >= t.ndim:
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")
