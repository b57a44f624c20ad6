"""The Module: a function with parameters, made of other modules."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from ..core.eager_context import current_context
from ..core.grad_mode import no_grad
from ..core.state import state
from ..core.tensor import Tensor
from ..ops.creation import as_device, as_tensor
from ..runtime.device import Device
from ..runtime.dtypes import DType, bfloat16, float16, float32, float64
from ..runtime.records import NamedTuple
from .parameter import Parameter, is_lazy, replace_value

Self = TypeVar("Self", bound="Module")
_F = TypeVar("_F", bound=Callable[..., Any])


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict` found on one side only."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )


def _making(init: Callable[..., None]) -> Callable[..., None]:
    """An `__init__` that makes first values at once, also where a graph is built up front."""

    @functools.wraps(init)
    def __init__(self: Module, *args: Any, **kwargs: Any) -> None:
        if state.context is None:
            init(self, *args, **kwargs)
            return
        context = current_context()
        with context.making_state():
            init(self, *args, **kwargs)
        context.made(self)

    return __init__


def _at_once(method: _F) -> _F:
    """A method that gives first values at once, also where a graph is built up front."""

    @functools.wraps(method)
    def run(self: Module, *args: Any, **kwargs: Any) -> Any:
        with current_context().making_state():
            return method(self, *args, **kwargs)

    return run  # type: ignore[return-value]


class Module:
    """Base class of everything with parameters. Subclasses define `forward`.

    Parameters, buffers and modules are found by assigning them to attributes, after
    `super().__init__()`. They live in the instance like any attribute; the module keeps their
    names, in the order in which they came.

    >>> import tgraph as tg
    >>> class Scale(tg.nn.Module):
    ...     def __init__(self, size):
    ...         super().__init__()
    ...         self.factor = tg.nn.Parameter(tg.ones(size))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> scale = Scale(3)
    >>> scale(tg.tensor([1.0, 2.0, 3.0])).tolist()
    [1.0, 2.0, 3.0]
    >>> [name for name, _ in scale.named_parameters()]
    ['factor']
    """

    # Where the parent keeps this module: part of the module path in the provenance of operations.
    _path: str = ""
    _training: bool = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in cls.__dict__:
            cls.__init__ = _making(cls.__init__)  # type: ignore[method-assign]

    def __init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "_parameter_names", {})
        set_(self, "_buffer_names", {})  # name -> is it part of the state_dict
        set_(self, "_module_names", {})
        set_(self, "_training", True)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes. Subclasses define it; call the module itself to run it."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        outer, own = state.module_path, self._path
        state.module_path = f"{outer}.{own}" if outer and own else own or outer
        try:
            return self.forward(*args, **kwargs)
        finally:
            state.module_path = outer

    # --- attributes ---

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter):
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self.add_module(name, value)
        else:
            self._set_other(name, value)

    def _set_other(self, name: str, value: Any) -> None:
        names = self.__dict__
        if value is not None and name in names.get("_parameter_names", ()):
            raise TypeError(
                f"cannot assign '{_type_name(value)}' as parameter '{name}' "
                "(tgraph.nn.Parameter or None expected)"
            )
        if value is not None and name in names.get("_module_names", ()):
            raise TypeError(
                f"cannot assign '{_type_name(value)}' as child module '{name}' "
                "(tgraph.nn.Module or None expected)"
            )
        is_buffer = name in names.get("_buffer_names", ())
        if is_buffer and value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{_type_name(value)}' as buffer '{name}' "
                "(tgraph.Tensor or None expected)"
            )
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        for registry in (self._parameter_names, self._buffer_names, self._module_names):
            registry.pop(name, None)

    def _register(self, registry: str, kind: str, name: str, value: Any) -> None:
        if registry not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if "." in name or not name:
            raise KeyError(f'{kind} name must not be empty or contain ".", got "{name}"')
        if hasattr(type(self), name):
            raise KeyError(f"attribute '{name}' already exists")
        for other in ("_parameter_names", "_buffer_names", "_module_names"):
            if other != registry:
                self.__dict__[other].pop(name, None)
        object.__setattr__(self, name, value)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Make `param` the attribute `name`; None keeps the name free for one."""
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{_type_name(param)}' object to parameter '{name}' "
                "(tgraph.nn.Parameter or None required)"
            )
        if param is not None and param._record is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                "created explicitly."
            )
        self._register("_parameter_names", "parameters", name, param)
        self._parameter_names[name] = None

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Make `tensor` the attribute `name`: state that no gradient changes.

        Buffers follow `to` and are part of the `state_dict`, unless not `persistent`.
        """
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_type_name(tensor)}' object to buffer '{name}' "
                "(tgraph.Tensor or None required)"
            )
        if tensor is not None:
            tensor = current_context().kept(tensor)
        if name in self.__dict__ and name not in self.__dict__.get("_buffer_names", ()):
            raise KeyError(f"attribute '{name}' already exists")
        self._register("_buffer_names", "buffers", name, tensor)
        self._buffer_names[name] = persistent

    def add_module(self, name: str, module: Module | None) -> None:
        """Make `module` the child `name`."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_type_name(module)} is not a Module subclass")
        self._register("_module_names", "module", name, module)
        self._module_names[name] = None
        if module is not None:
            module._set_path(name)

    register_module = add_module

    def _set_path(self, path: str) -> None:
        object.__setattr__(self, "_path", path)

    # --- what is inside ---

    def named_modules(
        self, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with their paths; each one once.

        >>> import tgraph.nn as nn
        >>> net = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU()))
        >>> [name for name, _ in net.named_modules()]
        ['', '0', '1', '1.0']
        """
        seen: set[int] = set()
        stack: list[tuple[str, Module]] = [(prefix, self)]
        while stack:
            path, module = stack.pop()
            if remove_duplicate and id(module) in seen:
                continue
            seen.add(id(module))
            yield path, module
            below = [
                (f"{path}.{name}" if path else name, child)
                for name, child in module._children_with_duplicates()
            ]
            stack.extend(reversed(below))

    def modules(self) -> Iterator[Module]:
        """This module and all below it, each one once."""
        return (module for _, module in self.named_modules())

    def _children_with_duplicates(self) -> list[tuple[str, Module]]:
        found = ((name, self.__dict__[name]) for name in self._module_names)
        return [(name, child) for name, child in found if child is not None]

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly below this one, with their names."""
        seen: set[int] = set()
        for name, child in self._children_with_duplicates():
            if id(child) not in seen:
                seen.add(id(child))
                yield name, child

    def children(self) -> Iterator[Module]:
        """The modules directly below this one."""
        return (child for _, child in self.named_children())

    def _named_tensors(
        self, registry: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Tensor]]:
        seen: set[int] = set()
        all_modules = self.named_modules(prefix, remove_duplicate)
        for path, module in all_modules if recurse else [(prefix, self)]:
            for name in module.__dict__[registry]:
                tensor = module.__dict__[name]
                if tensor is None or (remove_duplicate and id(tensor) in seen):
                    continue
                seen.add(id(tensor))
                yield f"{path}.{name}" if path else name, tensor

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with their paths, each one once; own ones only unless `recurse`."""
        found = self._named_tensors("_parameter_names", prefix, recurse, remove_duplicate)
        return found  # type: ignore[return-value]

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, each one once: what optimizers take."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All buffers with their paths, each one once; own ones only unless `recurse`."""
        return self._named_tensors("_buffer_names", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers, each one once."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The module at a path such as "encoder.layers.0"; AttributeError where there is none."""
        module = self
        for name in filter(None, target.split(".")):
            if name not in module._module_names or module.__dict__[name] is None:
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = module.__dict__[name]
        return module

    def _get_tensor(self, target: str, registry: str, kind: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module.__dict__[registry]:
            raise AttributeError(f"{type(module).__name__} has no {kind} `{name}`")
        return module.__dict__[name]

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path; AttributeError where there is none."""
        found: Parameter = self._get_tensor(target, "_parameter_names", "parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path; AttributeError where there is none."""
        found: Tensor = self._get_tensor(target, "_buffer_names", "buffer")
        return found

    # --- state ---

    def _state_entries(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """Parameters and persistent buffers with their keys, shared ones under every name."""
        for path, module in self.named_modules(prefix.removesuffix("."), remove_duplicate=False):
            own = module.__dict__
            kept = [name for name, persistent in own["_buffer_names"].items() if persistent]
            for name in (*own["_parameter_names"], *kept):
                if own[name] is not None:
                    yield f"{path}.{name}" if path else name, own[name]

    @_at_once
    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> dict[str, Tensor]:
        """All parameters and persistent buffers by path. They share memory with the module's."""
        return OrderedDict(
            (key, tensor if keep_vars else tensor.detach())
            for key, tensor in self._state_entries(prefix)
        )

    @_at_once
    def load_state_dict(
        self, state_dict: Mapping[str, Tensor], strict: bool = True
    ) -> IncompatibleKeys:
        """Copy the values of `state_dict` into parameters and buffers, in place.

        Values are tensors, NumPy arrays, or tensors of other libraries that know DLPack.

        RuntimeError lists every missing and unexpected key (unless not `strict`) and every shape
        that does not fit.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(
                f"Expected state_dict to be dict-like, got {type(state_dict).__name__}."
            )
        own = dict(self._state_entries())
        missing = [key for key in own if key not in state_dict]
        unexpected = [key for key in state_dict if key not in own]
        errors = _key_errors(missing, unexpected) if strict else []
        fitting = {key: _lent(given) for key, given in state_dict.items() if key in own}
        for key, given in fitting.items():
            if is_lazy(own[key]) and isinstance(given, Tensor) and not is_lazy(given):
                own[key].materialize(given.shape)
        errors += [error for key in fitting if (error := _misfit(key, own[key], fitting[key]))]
        if errors:
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                + "\n\t".join(errors)
            )
        with no_grad():
            for key, given in fitting.items():
                if not is_lazy(given):
                    own[key].copy_(given)
        return IncompatibleKeys(missing, unexpected)

    # --- mode ---

    @property
    def training(self) -> bool:
        """Whether the module is in training mode, which dropout and normalisation heed."""
        return self._training

    @training.setter
    def training(self, mode: bool) -> None:
        object.__setattr__(self, "_training", mode)

    def train(self: Self, mode: bool = True) -> Self:
        """Set training mode here and below."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        for module in self.modules():
            module.training = mode
        return self

    def eval(self: Self) -> Self:
        """Set evaluation mode here and below."""
        return self.train(False)

    @_at_once
    def apply(self: Self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` on every module below this one and then on this one.

        It is mostly there to give first values. So it runs at once where a graph is built up front.
        """
        for module in reversed(list(self.modules())):
            fn(module)
        return self

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` of all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        clear_gradients(self.parameters(), set_to_none)

    # --- conversion ---

    @_at_once
    def to(self: Self, *args: Any, **kwargs: Any) -> Self:
        """Convert floating-point parameters and buffers to a dtype, or move all to a device.

        `to(tg.float64)`, `to("cuda")`, both, or a tensor whose dtype and device to use; also as
        `dtype=` and `device=`. The parameters stay the same objects, so that optimizers keep
        knowing them.
        """
        dtype, device = _conversion(args, kwargs)
        for tensor in (*self.parameters(), *self.buffers()):
            _convert(tensor, dtype, device)
            if tensor._grad is not None:
                _convert(tensor._grad, dtype, device)
        return self

    def float(self: Self) -> Self:
        """Convert floating-point parameters and buffers to float32."""
        return self.to(float32)

    def double(self: Self) -> Self:
        """Convert floating-point parameters and buffers to float64."""
        return self.to(float64)

    def half(self: Self) -> Self:
        """Convert floating-point parameters and buffers to float16."""
        return self.to(float16)

    def bfloat16(self: Self) -> Self:
        """Convert floating-point parameters and buffers to bfloat16."""
        return self.to(bfloat16)

    def cpu(self: Self) -> Self:
        """Move parameters and buffers to the CPU."""
        return self.to(device="cpu")

    def cuda(self: Self, device: Any = None) -> Self:
        """Move parameters and buffers to a CUDA device, the current one unless given."""
        return self.to(device="cuda" if device is None else device)

    # --- display ---

    def extra_repr(self) -> str:
        """What `repr` shows in the parentheses of a module without children."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [
            f"({name}): {_indented(repr(child))}"
            for name, child in self._children_with_duplicates()
        ]
        if not children and len(lines) <= 1:
            return f"{type(self).__name__}({extra})"
        return f"{type(self).__name__}(\n  " + "\n  ".join(lines + children) + "\n)"


def clear_gradients(parameters: Any, set_to_none: bool) -> None:
    """Drop the gradients of `parameters`, or write zeros into them."""
    for parameter in parameters:
        if set_to_none:
            parameter.grad = None
        elif parameter.grad is not None:
            parameter.grad = parameter.grad.detach()
            with no_grad():
                parameter.grad.zero_()


def _type_name(value: Any) -> str:
    kind = type(value)
    module = "tgraph" if kind is Tensor else kind.__module__
    return kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def _key_errors(missing: list[str], unexpected: list[str]) -> list[str]:
    def quoted(keys: list[str]) -> str:
        return ", ".join(f'"{key}"' for key in keys)

    errors = []
    if missing:
        errors.append(f"Missing key(s) in state_dict: {quoted(missing)}. ")
    if unexpected:
        errors.append(f"Unexpected key(s) in state_dict: {quoted(unexpected)}. ")
    return errors


def _lent(given: Any) -> Any:
    """A tensor over the memory of what another library gave; anything else as it is."""
    foreign = isinstance(given, np.ndarray) or hasattr(given, "__dlpack__")
    return as_tensor(given) if foreign and not isinstance(given, Tensor) else given


def _misfit(key: str, own: Tensor, given: Any) -> str:
    """What is wrong with a value for `own`; empty where nothing is."""
    if not isinstance(given, Tensor):
        return (
            f'While copying the parameter named "{key}", expected tgraph.Tensor but received '
            f"{_type_name(given)}"
        )
    if not (is_lazy(own) and is_lazy(given)) and given.shape != own.shape:
        return (
            f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, "
            f"the shape in current model is {own.shape}."
        )
    return ""


def _convert(tensor: Tensor, dtype: DType | None, device: Device | None) -> None:
    """Give a handle its value in another dtype, which is for floats only, or place."""
    own, place = tensor.dtype, tensor.device
    wanted = dtype if dtype is not None and own.is_floating_point else own
    there = place if device is None else device
    if wanted is not own or there != place:
        replace_value(tensor, tensor.detach().to(there, wanted))


def _conversion(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[DType | None, Device | None]:
    """The dtype and the device that the arguments of `Module.to` ask for."""
    unknown = set(kwargs) - {"dtype", "device", "non_blocking"}
    if unknown:
        raise TypeError(f"to() got an unexpected keyword argument '{unknown.pop()}'")
    dtype: DType | None = kwargs.get("dtype")
    place: Any = kwargs.get("device")
    for given in args:
        if isinstance(given, DType):
            dtype = given
        elif isinstance(given, Tensor):
            dtype, place = given._type.dtype, given._type.device
        elif isinstance(given, bool):
            continue  # non_blocking, by position
        elif isinstance(given, (str, int, Device)):
            place = given
        else:
            raise TypeError(f"to() expected a dtype, device or tensor, got {_type_name(given)}")
    if dtype is not None and not dtype.is_floating_point:
        raise TypeError(f"nn.Module.to only accepts floating point dtypes, but got {dtype}")
    return dtype, None if place is None else as_device(place)
