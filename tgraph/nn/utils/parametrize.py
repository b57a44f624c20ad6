"""Parameters that are computed from others: what stands under their name is a property."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from typing import Any, ClassVar, TypeVar

from ...core.grad_mode import no_grad
from ...core.state import state
from ...core.tensor import Tensor
from ..container import ModuleDict, ModuleList
from ..module import Module
from ..parameter import Parameter, replace_value

M = TypeVar("M", bound=Module)


class _Cache:
    """Values of parametrized tensors, by the id of the module and the name, inside `cached()`."""

    depth = 0
    values: ClassVar[dict[tuple[int, str], Tensor]] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Inside, each parametrized tensor is computed once.

    Compiled functions compute it once in any case, and do not look here.
    """
    _Cache.depth += 1
    try:
        yield
    finally:
        _Cache.depth -= 1
        if not _Cache.depth:
            _Cache.values = {}


def _register(module: Module, name: str, value: Tensor) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _set(own: Tensor, value: Tensor) -> None:
    """Let a parameter or buffer be what another tensor is."""
    if value is not own:
        replace_value(own, value.detach())


class ParametrizationList(ModuleList):
    """The modules that compute one tensor, each from the result of the one before.

    The first of them computes from `original`, or from `original0`, `original1`, ...: what is
    learned, which `right_inverse` of the modules gives for the tensor at first.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        new: Any = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):  # it starts from the tensor as it is
                        new = module.right_inverse(new)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            _require_alike("dtype", original, new)
            _require_alike("device", original, new)
            _set(original, new)
            _register(self, "original", original)
        else:
            for at, each in enumerate(new):
                self._add_original(at, each, original)
        if not unsafe:
            self._check_result(self(), shape, dtype)

    def _add_original(self, at: int, value: Any, original: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got element {at} of the sequence with type {type(value).__name__}."
            )
        if isinstance(original, Parameter):
            value = Parameter(value.detach(), original.requires_grad)
        value.requires_grad_(original.requires_grad)
        _register(self, f"original{at}", value)

    def _check_result(self, found: Any, shape: Any, dtype: Any) -> None:
        if not isinstance(found, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(found).__name__}.")
        for what, before, after in (("dtype", dtype, found.dtype), ("shape", shape, found.shape)):
            if before != after:
                raise ValueError(
                    f"Registering a parametrization may not change the {what} of the tensor, "
                    f"unless `unsafe` flag is enabled.\nunparametrized {what}: {before}\n"
                    f"parametrized {what}: {after}"
                )

    @no_grad()
    def right_inverse(self, value: Any) -> None:
        """Set what is learned, so that the tensor becomes `value`."""
        for module in reversed(list(self)):
            if not hasattr(module, "right_inverse"):
                raise RuntimeError(
                    f"parametrization {type(module).__name__} does not implement right_inverse."
                )
            value = module.right_inverse(value)
        if self.is_tensor:
            if not isinstance(value, Tensor):
                raise ValueError(
                    f"`right_inverse` should return a tensor. Got {type(value).__name__}"
                )
            if value.dtype != self.original.dtype:
                raise ValueError(
                    f"The tensor returned by `right_inverse` has dtype {value.dtype} while "
                    f"`original` has dtype {self.original.dtype}"
                )
            _set(self.original, value)
            return
        if not isinstance(value, Sequence):
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}."
            )
        if len(value) != self.ntensors:
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. "
                f"Got a sequence of length {len(value)}."
            )
        for at, each in enumerate(value):
            own = getattr(self, f"original{at}")
            if own.dtype != each.dtype:
                raise ValueError(
                    f"Tensor {at} returned by `right_inverse` has dtype {each.dtype} while "
                    f"`original{at}` has dtype {own.dtype}"
                )
            _set(own, each)

    def forward(self) -> Any:
        """The tensor."""
        if self.is_tensor:
            value = self[0](self.original)
        else:
            value = self[0](*(getattr(self, f"original{at}") for at in range(self.ntensors)))
        for module in list(self)[1:]:
            value = module(value)
        return value


def _require_alike(what: str, original: Tensor, new: Tensor) -> None:
    before, after = getattr(original, what), getattr(new, what)
    if before != after:
        raise ValueError(
            f"When `right_inverse` outputs one tensor, it may not change the {what}.\n"
            f"original.{what}: {before}\nright_inverse(original).{what}: {after}"
        )


def _deep_copied(self: Any, memo: dict[int, Any]) -> Any:
    """A copy with a class of its own, so that removing a parametrization leaves the other alone."""
    replica = memo.get(id(self))
    if replica is None:
        own = type(self)
        members = {key: each for key, each in vars(own).items() if key in _COPIED or
                   isinstance(each, property)}  # fmt: skip
        class_ = type(own.__name__, own.__bases__, members)
        replica = memo[id(self)] = class_.__new__(class_)
        replica.__dict__.update(deepcopy(self.__dict__, memo))
    return replica


_COPIED = ("__deepcopy__", "__getstate__", "__module__")


def _refuse_pickle(self: Any) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _give_class(module: Module) -> None:
    """Let a module have a class of its own, which properties can be put into."""
    own = type(module)
    members: dict[str, Any] = {"__getstate__": _refuse_pickle, "__module__": own.__module__}
    if not hasattr(own, "__deepcopy__"):
        members["__deepcopy__"] = _deep_copied
    object.__setattr__(module, "__class__", type(f"Parametrized{own.__name__}", (own,), members))


def _give_property(module: Module, name: str) -> None:
    def read(self: Any) -> Any:
        parametrization = self.parametrizations[name]
        if not _Cache.depth or state.context is not None:
            return parametrization()
        key = (id(self), name)
        if key not in _Cache.values:
            _Cache.values[key] = parametrization()
        return _Cache.values[key]

    def write(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(read, write))


def register_parametrization(
    module: M, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> M:
    """Let a parameter or buffer be what `parametrization` computes from what is learned.

    Reading `module.tensor_name` calls it; assigning to the name calls its `right_inverse`. Unless
    `unsafe`, the shape and dtype have to stay.

    >>> import tgraph as tg
    >>> class Symmetric(tg.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> layer = register_parametrization(tg.nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all()), list(layer.state_dict())
    (True, ['bias', 'parametrizations.weight.original'])
    """
    parametrization.train(module.training)
    held: Any = module
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_further(getattr(module, tensor_name), tensor_name, parametrization)
        held.parametrizations[tensor_name].append(parametrization)
        held.parametrizations[tensor_name].unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    original = getattr(module, tensor_name)
    made = ParametrizationList([parametrization], original, unsafe=unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _give_class(module)
        held.parametrizations = ModuleDict()
    _give_property(module, tensor_name)
    held.parametrizations[tensor_name] = made
    return module


def _check_further(before: Tensor, name: str, parametrization: Any) -> None:
    after = parametrization(before)
    if not isinstance(after, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
    for what in ("dtype", "shape"):
        if getattr(before, what) != getattr(after, what):
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless "
                f"the `unsafe` flag is enabled.\nmodule.{name}.{what}: {getattr(before, what)}\n"
                f"parametrization(module.{name}).{what}: {getattr(after, what)}"
            )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether anything of a module is parametrized, or what has the name."""
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: M, tensor_name: str, leave_parametrized: bool = True) -> M:
    """Let a tensor be a parameter again: what it is now, or what was learned."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    held: Any = module
    parametrizations = held.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with no_grad():
                value = getattr(module, tensor_name)
            if value.dtype != original.dtype:
                raise ValueError(
                    f"Calling remove_parametrizations() with leave_parametrized=True for a "
                    f"parameter of dtype {original.dtype} whose value is {value.dtype}"
                )
            _set(original, value)
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del held.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        object.__setattr__(module, "__class__", type(module).__bases__[0])
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of a module before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Parametrize `to_module` as `from_module` is, by the same modules, with the same values."""
    if not is_parametrized(from_module):
        return to_module
    source: Any = from_module
    target: Any = to_module
    names = list(source.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        if not hasattr(to_module, name):
            object.__setattr__(to_module, name, None)
            delattr(to_module, name)
            to_module.register_parameter(name, deepcopy(getattr(from_module, name)))
        for each in source.parametrizations[name]:
            register_parametrization(to_module, name, each)
        own = source.parametrizations[name]
        for key, value in own.named_parameters(recurse=False):
            setattr(target.parametrizations[name], key, value)
    return to_module
