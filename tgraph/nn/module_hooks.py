"""Hooks of modules: what runs before and after `forward`, and with its gradients."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..autograd.api import RemovableHandle
from ..core.tensor import Tensor
from .backward_hooks import BackwardHooks

Hook = Callable[..., Any]


def table_property(name: str, wraps_calls: bool = False) -> Any:
    """A dictionary of hooks that a module has from when it is first asked for.

    With `wraps_calls` its hooks run when the module is called.
    """

    def read(self: Any) -> OrderedDict[int, Any]:
        own = self.__dict__
        if name not in own:
            write(self, OrderedDict())
        found: OrderedDict[int, Any] = own[name]
        return found

    def write(self: Any, hooks: OrderedDict[int, Any]) -> None:
        self.__dict__[name] = hooks
        if wraps_calls:
            self.__dict__["_hooked"] = True

    return property(read, write)


def add_hook(
    table: OrderedDict[int, Any],
    hook: Any,
    marks: list[dict[int, bool]],
    prepend: bool = False,
    kind: type[RemovableHandle] = RemovableHandle,
) -> RemovableHandle:
    """Put a hook into a table, and mark it in others."""
    handle = kind(table, extra_dict=marks)
    table[handle.id] = hook
    for mark in marks:
        mark[handle.id] = True
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


class GlobalHooks:
    """Hooks of all modules."""

    def __init__(self) -> None:
        self.pre: OrderedDict[int, Hook] = OrderedDict()
        self.forward: OrderedDict[int, Hook] = OrderedDict()
        self.with_kwargs: OrderedDict[int, bool] = OrderedDict()
        self.always_call: OrderedDict[int, bool] = OrderedDict()
        self.backward_pre: OrderedDict[int, Hook] = OrderedDict()
        self.backward: OrderedDict[int, Hook] = OrderedDict()
        self.is_full: bool | None = None  # what kind those of `backward` are
        self.parameters: OrderedDict[int, Hook] = OrderedDict()  # when something is registered
        self.buffers: OrderedDict[int, Hook] = OrderedDict()
        self.modules: OrderedDict[int, Hook] = OrderedDict()


class HookedCalls:
    """The part of a Module that has hooks around its calls.

    A module without hooks has none of their tables, and calls `forward` at once: `_hooked` is
    False. Hooks of all modules make it True for the class.
    """

    _hooked: bool = False
    _global_hooks = GlobalHooks()
    _compiled_call_impl: Any = None
    _is_full_backward_hook: bool | None = None

    _forward_pre_hooks = table_property("_forward_pre_hooks", True)
    _forward_pre_hooks_with_kwargs = table_property("_forward_pre_hooks_with_kwargs")
    _forward_hooks = table_property("_forward_hooks", True)
    _forward_hooks_with_kwargs = table_property("_forward_hooks_with_kwargs")
    _forward_hooks_always_called = table_property("_forward_hooks_always_called")
    _backward_pre_hooks = table_property("_backward_pre_hooks", True)
    _backward_hooks = table_property("_backward_hooks", True)

    def register_forward_pre_hook(
        self, hook: Hook, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before `forward`; what it returns replaces the arguments.

        With `with_kwargs` it is called with `(module, args, kwargs)` and returns both, or None.

        >>> import tgraph as tg
        >>> layer = tg.nn.ReLU()
        >>> handle = layer.register_forward_pre_hook(lambda module, args: (-args[0],))
        >>> layer(tg.tensor([-1.0, 2.0]))
        tensor([1., 0.])
        >>> handle.remove()
        """
        marks = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return add_hook(self._forward_pre_hooks, hook, marks, prepend)

    def register_forward_hook(
        self,
        hook: Hook,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after `forward`; what it returns replaces the output.

        With `with_kwargs` it is called with `(module, args, kwargs, output)`; with `always_call`
        also where `forward` fails.

        >>> import tgraph as tg
        >>> layer = tg.nn.ReLU()
        >>> handle = layer.register_forward_hook(lambda module, args, output: output + 1)
        >>> layer(tg.tensor([-1.0, 2.0]))
        tensor([1., 3.])
        """
        marks = [self._forward_hooks_with_kwargs] if with_kwargs else []
        marks += [self._forward_hooks_always_called] if always_call else []
        return add_hook(self._forward_hooks, hook, marks, prepend)

    def register_full_backward_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` with the gradients of the outputs, before all others.

        What it returns replaces them.
        """
        return add_hook(self._backward_pre_hooks, hook, [], prepend)

    def register_full_backward_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of inputs are there.

        What it returns replaces those of the positional arguments.

        >>> import tgraph as tg
        >>> layer = tg.nn.ReLU()
        >>> handle = layer.register_full_backward_hook(lambda module, got, gave: (2 * got[0],))
        >>> x = tg.tensor([1.0], requires_grad=True)
        >>> layer(x).sum().backward()
        >>> x.grad
        tensor([2.])
        """
        self._is_full_backward_hook = _kind(self._is_full_backward_hook, True, "on a single Module")
        return add_hook(self._backward_hooks, hook, [], prepend)

    def register_backward_hook(self, hook: Hook) -> RemovableHandle:
        """Deprecated: `register_full_backward_hook`, which it is here.

        PyTorch's gives the gradients of the last operation's inputs, which may be others than the
        module's.
        """
        self._is_full_backward_hook = _kind(
            self._is_full_backward_hook, False, "on a single Module"
        )
        return add_hook(self._backward_hooks, hook, [])

    # --- calls ---

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        """A call with hooks, but not compiled by `compile()`."""
        called: set[int] = set()
        try:
            return self._call_with_hooks(args, kwargs, called)
        except Exception:
            self._call_always(args, kwargs, called)
            raise

    def _call_with_hooks(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], called: set[int]
    ) -> Any:
        everywhere = self._global_hooks
        for key, hook in [*everywhere.pre.items(), *self._forward_pre_hooks.items()]:
            if key in self._forward_pre_hooks_with_kwargs:
                args, kwargs = _new_arguments(hook(self, args, kwargs), args, kwargs)
            else:
                given = hook(self, args)
                if given is not None:
                    args = given if isinstance(given, tuple) else (given,)
        backward = [*everywhere.backward.values(), *self._backward_hooks.values()]
        before = [*everywhere.backward_pre.values(), *self._backward_pre_hooks.values()]
        backward_hooks = BackwardHooks(self, backward, before) if backward or before else None
        if backward_hooks is not None:
            args = backward_hooks.of_inputs(args)
        result = self.forward(*args, **kwargs)  # type: ignore[attr-defined]
        for key, hook in [*everywhere.forward.items(), *self._forward_hooks.items()]:
            called.add(key)
            replaced = self._call_after(key, hook, args, kwargs, result)
            if replaced is not None:
                result = replaced
        if backward_hooks is None:
            return result
        if not isinstance(result, (Tensor, tuple)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(result)}",
                stacklevel=4,
            )
        return backward_hooks.of_outputs(result)

    def _call_after(self, key: int, hook: Hook, args: Any, kwargs: Any, result: Any) -> Any:
        with_kwargs = key in self._forward_hooks_with_kwargs
        if with_kwargs or key in self._global_hooks.with_kwargs:
            return hook(self, args, kwargs, result)
        return hook(self, args, result)

    def _call_always(self, args: Any, kwargs: Any, called: set[int]) -> None:
        """Behind an error, the hooks that are always called and have not been."""
        everywhere = self._global_hooks
        for key, hook in [*everywhere.forward.items(), *self._forward_hooks.items()]:
            always = key in self._forward_hooks_always_called or key in everywhere.always_call
            if key in called or not always:
                continue
            try:
                self._call_after(key, hook, args, kwargs, None)
            except Exception as error:
                warnings.warn(
                    "module forward hook with ``always_call=True`` raised an exception that was "
                    f"silenced as another error was raised in forward: {error!s}",
                    stacklevel=4,
                )


def _kind(now: bool | None, wanted: bool, where: str) -> bool:
    if now is (not wanted):
        raise RuntimeError(
            f"Cannot use both regular backward hooks and full backward hooks {where}. "
            "Please use only one of them."
        )
    return wanted


def _new_arguments(given: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    if given is None:
        return args, kwargs
    if not isinstance(given, tuple) or len(given) != 2:
        raise RuntimeError(
            "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
            f"but got {given}."
        )
    return given


# --- hooks of all modules ---


class _GlobalHandle(RemovableHandle):
    """Takes a hook of all modules away, and with the last one what looks for them."""

    def remove(self) -> None:
        super().remove()
        everywhere = HookedCalls._global_hooks
        tables = (everywhere.pre, everywhere.forward, everywhere.backward_pre, everywhere.backward)
        HookedCalls._hooked = any(tables)


def _add_global(
    table: OrderedDict[int, Any], hook: Hook, marks: list[dict[int, bool]]
) -> RemovableHandle:
    HookedCalls._hooked = True
    return add_hook(table, hook, marks, kind=_GlobalHandle)


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, args)` before every module's `forward`, and its own hooks."""
    return _add_global(HookedCalls._global_hooks.pre, hook, [])


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after every module's `forward`, before its own hooks.

    >>> import tgraph as tg
    >>> from tgraph.nn.modules.module import register_module_forward_hook
    >>> seen = []
    >>> with register_module_forward_hook(lambda module, args, out: seen.append(repr(module))):
    ...     result = tg.nn.Sequential(tg.nn.ReLU())(tg.ones(1))
    >>> seen[0]
    'ReLU()'
    """
    everywhere = HookedCalls._global_hooks
    marks = [everywhere.with_kwargs] if with_kwargs else []
    marks += [everywhere.always_call] if always_call else []
    return _add_global(everywhere.forward, hook, marks)


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, grad_output)` of every module."""
    return _add_global(HookedCalls._global_hooks.backward_pre, hook, [])


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` of every module, before its own hooks."""
    everywhere = HookedCalls._global_hooks
    everywhere.is_full = _kind(everywhere.is_full, True, "as a global Module hook")
    return _add_global(everywhere.backward, hook, [])


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """Deprecated: `register_module_full_backward_hook`, which it is here."""
    everywhere = HookedCalls._global_hooks
    everywhere.is_full = _kind(everywhere.is_full, False, "as a global Module hook")
    return _add_global(everywhere.backward, hook, [])


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, name, parameter)` where one is registered; its result replaces it."""
    return add_hook(HookedCalls._global_hooks.parameters, hook, [])


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, name, buffer)` where one is registered; its result replaces it."""
    return add_hook(HookedCalls._global_hooks.buffers, hook, [])


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, name, child)` where one is registered; its result replaces it."""
    return add_hook(HookedCalls._global_hooks.modules, hook, [])
