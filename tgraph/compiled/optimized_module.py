"""What `compile` makes of a module: a module again, as in PyTorch."""

from __future__ import annotations

from typing import Any

from ..nn.module import Module
from .compiled_function import CompiledFunction


class OptimizedModule(Module):
    """A module that runs compiled. The one that was compiled is its child `_orig_mod`.

    Its parameters are those of that module, `_orig_mod.` before their names, also in the
    `state_dict`; other attributes are read and written there. What compiled functions have, such
    as `compiles` and `explain`, it has, too.

    >>> import tgraph as tg
    >>> layer = tg.compile(tg.nn.Linear(2, 1))
    >>> list(layer.state_dict())
    ['_orig_mod.weight', '_orig_mod.bias']
    >>> layer.out_features, len(layer.compiles)
    (1, 0)
    """

    _orig_mod: Module
    _compiled: CompiledFunction

    def __init__(self, module: Module, compiled: CompiledFunction) -> None:
        super().__init__()
        self.add_module("_orig_mod", module)
        object.__setattr__(self, "_compiled", compiled)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if "_hooked" in self.__dict__:  # has hooks of its own, beside those of the module
            return super().__call__(*args, **kwargs)
        return self._compiled(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(*args, **kwargs)

    @property
    def training(self) -> bool:
        """Whether the module that was compiled is in training mode."""
        return self._orig_mod.training

    @training.setter
    def training(self, mode: bool) -> None:
        self._orig_mod.training = mode

    # --- attributes ---

    def __getattr__(self, name: str) -> Any:
        if name in ("_orig_mod", "_compiled"):  # before they are there, as in a copy
            raise AttributeError(name)
        if name.startswith("_") or hasattr(self._orig_mod, name):
            return getattr(self._orig_mod, name)
        try:
            return getattr(self._compiled, name)
        except AttributeError:
            return getattr(self._orig_mod, name)  # whose error it is

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_") or hasattr(Module, name):
            super().__setattr__(name, value)
        else:
            own = hasattr(self._orig_mod, name) or not hasattr(self._compiled, name)
            setattr(self._orig_mod if own else self._compiled, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._compiled), *dir(self._orig_mod)})

    # --- the path by which operations are told ---

    def _adopt(self, name: str, child: Module) -> None:
        """Nothing: the module has the path of this one, and none by itself."""

    def _set_path(self, path: str) -> None:
        super()._set_path(path)
        self._orig_mod._set_path(path)
