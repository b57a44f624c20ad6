"""Objects of the outside: how they are reached, what they held, and what is taken for granted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ...core.state import state
from ...core.tensor import Tensor
from ...core.trace_state import HandleState
from .guards import Guard, is_a, is_static, same_static
from .questions import is_place, is_plain_read, is_stand_in, is_written_out, own_attributes
from .snapshots import AttributesSnapshot, Snapshot, snapshot_of
from .watched_code import is_constant_module


class Outside:
    """What is known of the objects of the outside, and the guards on them."""

    def __init__(self) -> None:
        self.guards: dict[str, Guard] = {}
        self.names: dict[int, str] = {}
        self.namespace: dict[str, Any] = {}
        self.stand_ins: set[int] = set()  # ids of those that were read
        # Attributes of the user's that were read of tensors of the trace, by their id.
        self.tensor_reads: dict[int, dict[str, Any]] = {}
        self.sites: dict[int, str] = {}  # id of what was written into -> the last line
        self.ran: dict[CodeType, None] = {}  # the code of functions that ran
        self.has_written = False  # before an error
        # Of each stand-in for an argument, by id: the position and what it stands for.
        self.leaves: dict[int, tuple[int, Any]] = {}
        # Of the attributes of each tensor among them, by id: the position and the stand-in's id.
        self.attributes_of_leaves: dict[int, tuple[int, int]] = {}
        self.touched: Mapping[int, HandleState] = {}  # by id: tensors as they were before the trace
        self.compared: dict[tuple[int, int | Tensor], bool] = {}  # see recorded_call.Call
        self._held: dict[int, str] = {}
        self._paths: dict[int, str] = {}  # id of an object of the outside -> how it is reached
        self._alive: list[Any] = []  # so that ids stay theirs
        self._snapshots: dict[int, Snapshot] = {}
        # Gives the code that runs instead of a function's, or None: see `rewriting`.
        self.rewritten: Callable[[CodeType], CodeType | None] = lambda code: None
        self._armed: dict[int, tuple[FunctionType, CodeType]] = {}
        self._classes: set[type] = set()
        self._class_reads: set[tuple[type, str]] = set()
        self._entered: set[Any] = set()

    # --- objects of the outside ---

    def see(self, value: Any, path: str) -> None:
        """`value` is an object of the outside; its code records from now on."""
        if is_a(value, Tensor):
            self.names.setdefault(id(value), path)
            for hook in (value._hooks or {}).values():
                self.see(hook, f"a hook of {path}")
        if is_plain_read(value) or id(value) in self._paths:
            return
        self._paths[id(value)] = path
        self._alive.append(value)
        self.arm(value)

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """What happens inside is of no call: it is neither recorded nor repeated nor undone."""
        untouched = [each for each in self._snapshots.values() if not each.changed()]
        previous, state.recorder = state.recorder, None
        try:
            yield
        finally:
            state.recorder = previous
            for each in untouched:
                each.before = each.copy() if each.changed() else each.before

    def changed(self) -> dict[int, str]:
        """Objects of the outside that are not as they were, by id, and where they are reached."""
        return {key: each.path for key, each in self._snapshots.items() if each.changed()}

    def is_written(self, holder: dict[Any, Any], key: Any) -> bool:
        """Whether the function itself put what a dictionary has under a key there."""
        found: Any = self._snapshots.get(id(holder))
        return found is not None and (key in found.touched or found.is_own(key, holder.get(key)))

    def is_outside(self, value: Any) -> bool:
        """Whether an object was there before, as far as is known."""
        return id(value) in self._paths

    def outside(self) -> list[Any]:
        """All known objects of the outside."""
        return list(self._alive)

    def _snapshot(self, holder: Any, path: str, made: Any = snapshot_of) -> Any:
        found = self._snapshots.get(id(holder))
        if found is None:
            found = made(holder, path)
            if found is not None:
                self._snapshots[id(holder)] = found
        return found

    def _attributes(self, obj: Any, path: str) -> Any:
        """The snapshot of the attributes that an object holds itself; None without any."""
        own = own_attributes(obj)
        return None if own is None else self._snapshot(own, path, AttributesSnapshot)

    def hold(self, value: Any) -> str:
        """A name for an object in the namespace in which guards are evaluated."""
        name = self._held.get(id(value))
        if name is None:
            name = self._held[id(value)] = f"h{len(self._held)}"
            self.namespace[name] = value
        return name

    def _key(self, key: Any) -> str:
        return repr(key) if is_written_out(key) else self.hold(key)

    # --- guards ---

    def _guard(self, guard: Guard) -> None:
        self.guards.setdefault(guard.code, guard)

    def _condition(self, code: str, holds: bool, path: str) -> None:
        self._guard(Guard(path, code, holds, condition=True))

    def record(
        self, value: Any, holder: Any, access: str, path: str, code: str | None = None
    ) -> None:
        """`access` of `holder` (or `code`) gave `value`, which is of the outside."""
        code = code or f"{self.hold(holder)}{access}"
        if code in self.guards or (type(value) is ModuleType and is_constant_module(value)):
            return
        if is_stand_in(value):
            self.stand_ins.add(id(value))
            return
        same = same_static if is_static(value) else None
        place = (holder, access) if is_place(holder, access) else (None, "")
        self._guard(Guard(path, code, value, same, False, *place))
        self.see(value, path)

    def _absent(self, holder: Any, key: Any, path: str) -> None:
        self._condition(self._membership_code(key, holder), False, f"there is `{path}` now")

    def _type_of(self, value: Any, path: str) -> None:
        code = f"type({self.hold(value)})"
        self._guard(Guard(f"type({path})", code, type(value)))
