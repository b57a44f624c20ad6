"""Functions of users that run before and after steps, saving and loading of optimizers.

What a compiled step does here is recorded as code of modules is (`RECORDED_FILES`), so that hooks
run at each call.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..autograd.api import RemovableHandle

Hook = Callable[..., Any]
Hooks = OrderedDict[int, Hook]

_before_all: Hooks = OrderedDict()
_after_all: Hooks = OrderedDict()


def register_optimizer_step_pre_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before each step of every optimizer."""
    return add_hook(_before_all, hook)


def register_optimizer_step_post_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after each step of every optimizer."""
    return add_hook(_after_all, hook)


def add_hook(hooks: Hooks, hook: Hook, prepend: bool = False) -> RemovableHandle:
    """Put a hook behind the others, or before them."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


class Hooked:
    """The hooks of one optimizer.

    >>> import tgraph as tg
    >>> optimizer = tg.optim.SGD([tg.ones(1, requires_grad=True)], lr=0.1)
    >>> handle = optimizer.register_step_post_hook(lambda *given: print("stepped"))
    >>> optimizer.step()
    stepped
    >>> handle.remove()
    >>> optimizer.step()
    """

    def __init__(self) -> None:
        self._optimizer_step_pre_hooks: Hooks = OrderedDict()
        self._optimizer_step_post_hooks: Hooks = OrderedDict()
        self._optimizer_state_dict_pre_hooks: Hooks = OrderedDict()
        self._optimizer_state_dict_post_hooks: Hooks = OrderedDict()
        self._optimizer_load_state_dict_pre_hooks: Hooks = OrderedDict()
        self._optimizer_load_state_dict_post_hooks: Hooks = OrderedDict()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = with_hooks(cls.__dict__["step"])  # type: ignore[attr-defined]

    def register_step_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step.

        It may give new arguments and keywords of the step, as a pair.
        """
        return add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict()`."""
        return add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after `state_dict()`; it may give another one."""
        return add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Hook, prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before loading; it may give another one to load."""
        return add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Hook, prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer)` after loading."""
        return add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)


def with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """The method `step`, with hooks where it is the optimizer's own and not that of a base."""

    @functools.wraps(step)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if type(self).step is not call:
            return step(self, *args, **kwargs)
        for hook in (*_before_all.values(), *self._optimizer_step_pre_hooks.values()):
            given = hook(self, (self, *args), kwargs)
            if given is None:
                continue
            if not isinstance(given, tuple) or len(given) != 2:
                raise RuntimeError(
                    f"{step.__qualname__}: a hook before the step must return None or a tuple of "
                    f"(new_args, new_kwargs), but got {given}."
                )
            (self, *args), kwargs = given
        result = step(self, *args, **kwargs)
        for hook in (*self._optimizer_step_post_hooks.values(), *_after_all.values()):
            hook(self, (self, *args), kwargs)
        return result

    return call
