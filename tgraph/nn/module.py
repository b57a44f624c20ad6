"""The Module: a function with parameters, made of other modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from ..core.eager_context import current_context
from ..core.grad_mode import no_grad
from ..core.pytorch_options import check_options
from ..core.state import state
from ..core.tensor import Tensor
from .making import at_once, making
from .module_conversion import Convertible
from .module_hooks import HookedCalls
from .module_state import Stateful
from .parameter import Buffer, Parameter
from .registries import NonPersistent, Registry

Self = TypeVar("Self", bound="Module")


def _registry(names: str) -> Any:
    """A property that shows members of one kind as a dictionary, and takes another in its place."""

    def read(self: Any) -> Registry:
        if names not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no members before Module.__init__()")
        return Registry(self, self.__dict__[names])

    def write(self: Any, members: Any) -> None:
        own, given = self.__dict__, dict(members)
        before = own.get(names, {})
        for name in before:
            own.pop(name, None)
        own[names] = {name: before.get(name, True) for name in given}
        Registry(self, own[names]).update(given)

    return property(read, write)


class Module(HookedCalls, Stateful, Convertible):
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
    dump_patches: bool = False
    call_super_init: bool = False

    _parameters = _registry("_parameter_names")
    _buffers = _registry("_buffer_names")
    _modules = _registry("_module_names")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in cls.__dict__:
            cls.__init__ = making(cls.__init__)  # type: ignore[method-assign]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or kwargs:
            self._init_next(args, kwargs)
        set_ = object.__setattr__
        set_(self, "_parameter_names", {})
        set_(self, "_buffer_names", {})  # name -> is it part of the state_dict
        set_(self, "_module_names", {})
        set_(self, "_training", True)
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def _init_next(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Arguments are for the class behind Module, where there is one."""
        if self.call_super_init:
            return
        name = type(self).__name__
        if kwargs:
            raise TypeError(
                f"{name}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
            )
        raise TypeError(
            f"{name}.__init__() takes 1 positional argument but {len(args) + 1} were given"
        )

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes. Subclasses define it; call the module itself to run it."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        outer, own = state.module_path, self._path
        state.module_path = f"{outer}.{own}" if outer and own else own or outer
        try:
            if self._hooked:
                return self._call_hooked(*args, **kwargs)
            return self.forward(*args, **kwargs)
        finally:
            state.module_path = outer

    def _call_hooked(self, *args: Any, **kwargs: Any) -> Any:
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        return self._call_impl(*args, **kwargs)

    # --- attributes ---

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Parameter):
            self._forget_other(name, "_parameter_names")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._forget_other(name, "_module_names")
            self.add_module(name, value)
        elif isinstance(value, Buffer):
            self._forget_other(name, "_buffer_names")
            self.register_buffer(name, value, value.persistent)
        else:
            self._set_other(name, value)

    def _forget_other(self, name: str, registry: str) -> None:
        """An attribute of another kind gives way to what is assigned."""
        own = self.__dict__
        if name in own and name not in own.get(registry, ()):
            for other in ("_parameter_names", "_buffer_names", "_module_names"):
                own.get(other, {}).pop(name, None)
            del own[name]

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
                "(tgraph.nn.Buffer, tgraph.Tensor or None expected)"
            )
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        for registry in (self._parameter_names, self._buffer_names, self._module_names):
            registry.pop(name, None)

    def _register(self, registry: str, kind: str, name: str, value: Any) -> None:
        if registry not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        kind = {"parameters": "parameter", "buffers": "buffer"}.get(kind, kind)
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_type_name(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain ".", got: {name}')
        if not name:
            raise KeyError(f'{kind} name can\'t be empty string ""')
        # A property that raises AttributeError does not exist yet, as in PyTorch.
        if name not in self.__dict__[registry] and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        self.__dict__[name] = value

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
                f"created explicitly. To express '{name}' as a function of another Tensor, "
                "compute the value in the forward() method."
            )
        for hook in self._global_hooks.parameters.values():
            param = _replaced(hook(self, name, param), param)
        self._register("_parameter_names", "parameters", name, param)
        self._parameter_names[name] = True

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
        for hook in self._global_hooks.buffers.values():
            tensor = _replaced(hook(self, name, tensor), tensor)
        self._register("_buffer_names", "buffers", name, tensor)
        self._buffer_names[name] = persistent

    def add_module(self, name: str, module: Module | None) -> None:
        """Make `module` the child `name`."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_type_name(module)} is not a Module subclass")
        for hook in self._global_hooks.modules.values():
            module = _replaced(hook(self, name, module), module)
        self._register("_module_names", "module", name, module)
        self._module_names[name] = True
        if module is not None:
            self._adopt(name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Make `module` the child `name`."""
        self.add_module(name, module)

    @property
    def _non_persistent_buffers_set(self) -> NonPersistent:
        return NonPersistent(self.__dict__["_buffer_names"])

    def _adopt(self, name: str, child: Module) -> None:
        """Tell a child where it is."""
        child._set_path(name)

    def _set_path(self, path: str) -> None:
        object.__setattr__(self, "_path", path)

    # --- what is inside ---

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with their paths; each one once.

        Those in `memo` are left out, and added to it.

        >>> import tgraph.nn as nn
        >>> net = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU()))
        >>> [name for name, _ in net.named_modules()]
        ['', '0', '1', '1.0']
        """
        seen = set() if memo is None else memo
        stack: list[tuple[str, Module]] = [(prefix, self)]
        while stack:
            path, module = stack.pop()
            if remove_duplicate:
                if module in seen:
                    continue
                seen.add(module)
            yield path, module
            below = [
                (f"{path}.{name}" if path else name, child)
                for name, child in module._children_with_duplicates()
            ]
            stack.extend(reversed(below))

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it, each one once."""
        return (each for _, each in self.named_modules(remove_duplicate=remove_duplicate))

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

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """The names and values that a function gives of each module, with their paths."""
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in modules if recurse else [(prefix, self)]:
            for name, value in get_members_fn(module):
                if value is None or (remove_duplicate and id(value) in seen):
                    continue
                seen.add(id(value))
                yield f"{path}.{name}" if path else name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with their paths, each one once; own ones only unless `recurse`."""
        return self._named_members(_own_parameters, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, each one once: what optimizers take."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All buffers with their paths, each one once; own ones only unless `recurse`."""
        return self._named_members(_own_buffers, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers, each one once."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The module at a path such as "encoder.layers.0"; AttributeError where there is none."""
        found: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(found, name):
                raise AttributeError(f"{found._get_name()} has no attribute `{name}`")
            found = getattr(found, name)
            if not isinstance(found, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        module: Module = found
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put `module` at a path; with `strict` only where there is one already."""
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict or hasattr(parent, name):
            parent.get_submodule(name)
        setattr(parent, name, module)

    def _member(self, target: str) -> tuple[Module, str, Any]:
        """The module at the end of a path, the last name, and what it has of that name."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        return module, name, getattr(module, name)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path; AttributeError where there is none."""
        _, name, found = self._member(target)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path; AttributeError where there is none."""
        module, name, found = self._member(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        buffer: Tensor = found
        return buffer

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
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self: Self) -> Self:
        """Set evaluation mode here and below."""
        return self.train(False)

    @at_once
    def apply(self: Self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` on every module below this one and then on this one.

        It is mostly there to give first values. So it runs at once where a graph is built up front.
        """
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` of all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        clear_gradients(self.parameters(), set_to_none)

    # --- copies ---

    def compile(
        self, *, check: bool = False, dynamic: Any = None, control_flow: bool = False,
        fullgraph: bool = False, backend: Any = "inductor", mode: str | None = None,
        options: Mapping[str, Any] | None = None, disable: bool = False,
    ) -> None:  # fmt: skip
        """Let calls of this module run compiled, as what `tgraph.compile` gives; see there."""
        from ..compiled.compiled_function import compiled

        check_options(backend, mode, options)
        if disable:
            return
        made = compiled(self._call_impl, check, dynamic, control_flow)
        object.__setattr__(self, "_compiled_call_impl", made)
        object.__setattr__(self, "_hooked", True)

    def __getstate__(self) -> dict[str, Any]:
        held = self.__dict__.copy()
        held.pop("_compiled_call_impl", None)
        return held

    def __setstate__(self, held: dict[str, Any]) -> None:
        self.__dict__.update(held)

    def _replicate_for_data_parallel(self: Self) -> Self:
        """A copy without parameters, which shares all else with this module."""
        replica = type(self).__new__(type(self))
        replica.__dict__.update(self.__dict__)
        replica._parameters = {}
        replica._buffers = self._buffers.copy()
        replica._modules = self._modules.copy()
        object.__setattr__(replica, "_is_replica", True)
        return replica

    # --- display ---

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What `repr` shows in the parentheses of a module without children."""
        return ""

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__]
        return sorted({name for name in names if not name[:1].isdigit()})

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {indented(repr(child))}" for name, child in self._modules.items()]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"


def _own_parameters(module: Module) -> list[tuple[str, Any]]:
    own = module.__dict__
    return [(name, own[name]) for name in own["_parameter_names"]]


def _own_buffers(module: Module) -> list[tuple[str, Any]]:
    own = module.__dict__
    return [(name, own[name]) for name in own["_buffer_names"]]


def _replaced(given: Any, value: Any) -> Any:
    return value if given is None else given


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


def indented(text: str) -> str:
    """Text whose lines but the first stand two columns further to the right."""
    return text.replace("\n", "\n  ")
