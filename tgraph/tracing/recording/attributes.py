"""Reads of attributes: of objects, classes, modules and tensors."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from types import FunctionType, MethodType, ModuleType
from typing import Any

from ...compiler.ir import Node
from ...core.provenance import user_site
from ...core.tensor import Tensor
from ...core.trace_state import TraceError
from .code import Code
from .guards import Guard, is_a, is_static, same_elements, same_static, special_methods
from .questions import (
    CONTAINERS,
    FACTS,
    FAST,
    MEMBER,
    is_data_descriptor,
    is_name,
    lookup,
    own_attributes,
    running_code,
)
from .snapshots import ABSENT, NamesSnapshot, SlotsSnapshot
from .watched_code import is_constant_class, is_constant_module, is_nn_code, is_of_tgraph

EVERY = "*"
"""In the place of an attribute's name: all of them; there were none."""


class Attributes(Code):
    """The part of a Recorder that watches attributes."""

    def attribute(self, obj: Any, name: str) -> Any:
        """`obj.name`."""
        kind = type(obj)
        path = self._paths.get(id(obj))
        if is_a(obj, Tensor):
            return self._attribute_of_tensor(obj, name)
        if kind in FAST or name == "_path":  # of modules: only names operations
            return getattr(obj, name)
        if is_a(obj, ModuleType):
            return self._module_attribute(obj, name)
        if is_a(obj, type):
            return self._attribute_of_class(obj, name, path)
        if kind is super:
            return self._attribute_of_super(obj, name)
        if is_a(obj, threading.local):
            return self._attribute_of_thread(obj, name, path)
        if kind in CONTAINERS and path is not None:
            self._snapshot(obj, path)
        self._arm_class(kind)
        found = lookup(kind, name)[1]
        if found is not ABSENT:
            self.arm_member(found)
        if path is None:
            self._class_read(kind, name)
            return self._plain_attribute(obj, name)
        return self._attribute_of_outside(obj, name, path, found)

    def _plain_attribute(self, obj: Any, name: str) -> Any:
        value = getattr(obj, name)
        if type(value) in (FunctionType, MethodType):
            self.arm(value)
        return value

    def _plain_read(self, obj: Any, name: str, path: str) -> None:
        """`object.__getattribute__(obj, name)`."""
        self._type_of(obj, path)
        self._class_read(type(obj), name)
        found = lookup(type(obj), name)[1]
        if name == "__dict__":
            self._dictionary(obj, path)
        elif found is not ABSENT and is_data_descriptor(found):
            if type(found) is MEMBER and not is_constant_class(type(obj)):
                slots = self._snapshot(obj, path, SlotsSnapshot)
                self._slot_read(obj, name, slots.before.get(name, ABSENT), f"{path}.{name}")
        elif own_attributes(obj) is not None:
            self._item_read(self._attributes(obj, path), name, f"{path}.{name}")

    def _attribute_of_outside(self, obj: Any, name: str, path: str, found: Any) -> Any:
        kind, label = type(obj), f"{path}.{name}"
        if name == "__dict__":
            return self._dictionary(obj, path)
        self._type_of(obj, path)
        if name == "__class__":
            self.see(kind, kind.__name__)
            return obj.__class__
        if found is not ABSENT and is_data_descriptor(found):
            return self._through_descriptor(obj, name, label, found)
        own = self._attributes(obj, path) if not is_constant_class(kind) else None
        holder = own_attributes(obj)
        before = ABSENT
        if holder is not None:
            before = own.original(name) if own is not None else holder.get(name, ABSENT)
        if own is not None and name in holder and own.is_own(name, holder[name]):
            return self._plain_attribute(obj, name)
        if before is not ABSENT:
            self.record(before, holder, f"[{name!r}]", label)
        else:
            if holder is not None and kind not in CONTAINERS:
                self._absent(holder, name, label)
            self._class_read(kind, name)
            if found is ABSENT:
                self._class_read(kind, "__getattr__")
        value = self._plain_attribute(obj, name)
        if found is not ABSENT and value is found and before is ABSENT:
            self.see(value, label)
        return value

    def _attribute_of_thread(self, obj: Any, name: str, path: str | None) -> Any:
        """An attribute that each thread has for itself."""
        if path is not None and hasattr(obj, name):
            self._special(type(obj))
            self.record(getattr(obj, name), obj, f".{name}", f"{path}.{name}")
        elif path is not None:
            code = f"hasattr({self.hold(obj)}, {name!r})"
            self._condition(code, False, f"there is `{path}.{name}` now")
        return getattr(obj, name)

    def _through_descriptor(self, obj: Any, name: str, label: str, found: Any) -> Any:
        kind = type(obj)
        if type(found) is property and not is_constant_class(lookup(kind, name)[0]):
            self._class_read(kind, name)
            return self._plain_attribute(obj, name)
        slots = None
        if type(found) is MEMBER and not is_constant_class(kind):
            slots = self._snapshot(obj, label.rpartition(".")[0], SlotsSnapshot)
        elif not is_constant_class(type(found)):
            self._class_read(kind, name)
            return self._plain_attribute(obj, name)
        if slots is not None and slots.before.get(name, ABSENT) is ABSENT:
            self._slot_read(obj, name, ABSENT, label)
        value = getattr(obj, name)
        is_first = slots is None or slots.before.get(name, ABSENT) is value
        if is_first and (slots is not None or is_static(value)) and is_name(name):
            self.record(value, obj, f".{name}", label)
        elif is_first:
            self.see(value, label)
        return value

    def _dictionary(self, obj: Any, path: str) -> Any:
        own = own_attributes(obj)
        if own is None:
            return obj.__dict__
        self._attributes(obj, path)
        self.see(own, path)
        return own

    def _module_attribute(self, module: ModuleType, name: str) -> Any:
        own = vars(module)
        if is_constant_module(module) and (name not in own or is_nn_code(running_code())):
            value = getattr(module, name)
            self.arm(value)
            return value
        names = self._snapshot(own, module.__name__, NamesSnapshot)
        label = f"{self._paths.get(id(module), module.__name__)}.{name}"
        before = names.original(name)
        if name in own and names.is_own(name, own[name]):
            return getattr(module, name)
        if before is ABSENT:
            self._absent(own, name, label)
            asked = own.get("__getattr__")
            if asked is None:
                self._absent(own, "__getattr__", f"{label} (by __getattr__)")
            else:
                self.record(asked, own, "['__getattr__']", f"{label} (by __getattr__)")
        else:
            self.record(before, own, f"[{name!r}]", label)
        return getattr(module, name)

    def _attribute_of_class(self, class_: type, name: str, path: str | None) -> Any:
        if name == "__dict__":
            return self._whole_class(class_)
        self._arm_class(class_)
        label = f"{path or class_.__name__}.{name}"
        found, meta = lookup(class_, name)[1], type(class_)
        above = lookup(meta, name)[1]
        if above is not ABSENT and is_data_descriptor(above):
            self._class_read(meta, name)
            self.arm_member(above)
            value = self._plain_attribute(class_, name)
            if not is_constant_class(class_) and is_static(value) and is_name(name):
                self.record(value, class_, f".{name}", label)
            else:
                self.see(value, label)
            return value
        self._class_read(class_, name)
        if found is ABSENT:
            self._arm_class(meta)
            self._class_read(meta, name)
            self._class_read(meta, "__getattr__")
        else:
            self.arm_member(found)
            self.see(found, label)
        value = self._plain_attribute(class_, name)
        if found is ABSENT and value is above:
            self.see(value, label)
        return value

    def _whole_class(self, class_: type) -> Any:
        """All attributes of a class itself."""
        if not is_constant_class(class_):
            members = list(vars(class_).items())
            code = f"[*{self.hold(class_)}.__dict__.items()]"
            self._guard(Guard(f"vars({class_.__name__})", code, members, same_elements))
            for name, value in members:
                self.see(value, f"{class_.__name__}.{name}")
        return vars(class_)

    def _attribute_of_tensor(self, tensor: Tensor, name: str) -> Any:
        """Attributes that the user gave a tensor are watched."""
        kind = type(tensor)
        if kind is not Tensor:
            self._arm_class(kind)
            if not is_of_tgraph(kind.__module__):
                self._class_read(kind, name)
        if name in FACTS:
            self._facts(tensor)
        path = self.names.get(id(tensor), "tensor")
        if name == "__dict__":
            self.attributes_of_tensor(tensor, path)
            return tensor.__dict__
        own, owner = tensor.__dict__, lookup(kind, name)[0]
        if name not in own and owner is not None and is_constant_class(owner):
            return getattr(tensor, name)
        if type(tensor._value) is Node:
            self._read_of_argument(tensor, name)
            return getattr(tensor, name)
        before = self._attributes(tensor, path).original(name)
        if before is ABSENT:
            self._absent(own, name, f"{path}.{name}")
        else:
            self.record(before, own, f"[{name!r}]", f"{path}.{name}")
        return getattr(tensor, name)

    def _read_of_argument(self, tensor: Tensor, name: str) -> None:
        """An attribute of an argument is the one that it had at the beginning, or our own."""
        own = tensor.__dict__
        snapshot = self._snapshots.get(id(own))
        before = own.get(name, ABSENT)
        if snapshot is not None:
            before = snapshot.original(name)
            if name in own and snapshot.is_own(name, own[name]):
                return
        self.tensor_reads.setdefault(id(tensor), {}).setdefault(name, before)

    def attributes_of_tensor(self, tensor: Tensor, path: str) -> None:
        """All attributes that the user gave a tensor; TraceError for those of an argument."""
        if id(tensor) in self.leaves:
            raise TraceError(
                f"a compiled function looks at all attributes of its argument `{path}`, at "
                f"{user_site()}; name those that it reads or writes, such as {path}.name"
            )
        if type(tensor._value) is not Node:
            self._dictionary(tensor, path)

    def all_attributes(self, tensor: Tensor) -> None:
        """All attributes that the user gave a tensor are copied."""
        path = self.names.get(id(tensor), "tensor")
        if id(tensor) in self.leaves and not tensor.__dict__:
            self.tensor_reads.setdefault(id(tensor), {})[EVERY] = ABSENT
        elif type(tensor._value) is Node:
            self.attributes_of_tensor(tensor, path)
        else:
            snapshot = self._attributes(tensor, path)
            self._keys(snapshot)
            for name in [*snapshot.before]:
                self._item_read(snapshot, name, f"{path}.{name}")

    def _facts(self, tensor: Tensor) -> None:
        """Shape, dtype and the like of a tensor that may not be computed with."""
        path = self.names.get(id(tensor))
        if path is None or type(tensor._value) is Node:
            return
        held, before = self.hold(tensor), self.touched.get(id(tensor))
        same = Guard(f"{path}._type", f"{held}._type", tensor._type, same_static)
        self._guard(same)
        requires_grad = tensor._requires_grad if before is None else before.requires_grad
        self._guard(Guard(f"{path}.requires_grad", f"{held}._requires_grad", requires_grad))
        record = tensor._record if before is None else before.record
        self._condition(f"{held}._record is None", record is None, f"{path}.is_leaf changed")

    def _class_read(self, kind: type, name: str) -> None:
        """Guard what a class gives for a name, or that it has nothing of that name."""
        if (kind, name) in self._class_reads:
            return
        self._class_reads.add((kind, name))
        owner, found = lookup(kind, name)
        mro = list(kind.__mro__)
        if all(map(is_constant_class, mro)):
            return
        if any(id(each) in self._snapshots for each in mro):  # written into by the function
            self._bases_read(mro, name)
        elif type(found) is FunctionType and type(kind) is type and is_name(name):
            self.record(found, kind, f".{name}", f"{kind.__name__}.{name}")
        else:
            if not is_of_tgraph(kind.__module__):
                bases = f"{self.hold(kind)}.__mro__"
                self._guard(Guard(f"the bases of {kind.__name__}", bases, kind.__mro__))
            self._bases_read(mro if owner is None else mro[: mro.index(owner) + 1], name)

    def _bases_read(self, mro: Sequence[type], name: str) -> None:
        """Guard what the first of some classes gives that has the name, as it was before."""
        for each in mro:
            snapshot = self._snapshots.get(id(each))
            held = vars(each) if snapshot is None else snapshot.before
            label = f"{each.__name__}.{name}"
            if name in held:
                if not is_constant_class(each):
                    self.record(held[name], each, f".__dict__[{name!r}]", label)
                return
            if not is_constant_class(each):
                code = f"{name!r} in {self.hold(each)}.__dict__"
                self._condition(code, False, f"there is `{label}` now")

    def _asked(self, question: str, value: Any, kinds: Any, path: str) -> None:
        """isinstance or issubclass, which hold as before."""
        holds = {"isinstance": isinstance, "issubclass": issubclass}[question](value, kinds)
        code = f"{question}({self.hold(value)}, {self.hold(kinds)})"
        self._condition(code, holds, path)

    def _special(self, kind: type) -> None:
        """Python itself may call any special method of a class."""
        if is_constant_class(kind) or is_of_tgraph(kind.__module__):
            return
        self._arm_class(kind)
        code = f"{self.hold(special_methods)}({self.hold(kind)})"
        label = f"the methods of {kind.__name__}"
        self._guard(Guard(label, code, special_methods(kind), same_elements))

    def super_attribute(self, operands: tuple[Any, Any, Any], name: str) -> Any:
        """`super().name` of Python 3.12 and later, where `super` is not called."""
        made = operands[0](operands[1], operands[2])
        return self.attribute(made, name) if type(made) is super else getattr(made, name)

    def _attribute_of_super(self, made: Any, name: str) -> Any:
        mro = made.__self_class__.__mro__
        mro = mro[mro.index(made.__thisclass__) + 1 :]
        self._bases_read(mro, name)
        found = next((vars(each)[name] for each in mro if name in vars(each)), None)
        self.arm_member(found)
        return self._plain_attribute(made, name)

    def module(self, module: Any) -> None:
        """`import module` inside of a function."""
        name = vars(module).get("__name__") if is_a(module, ModuleType) else None
        if name in sys.modules and sys.modules[name] is module:
            self.record(module, sys.modules, f".get({name!r})", name)

    def imported(self, module: ModuleType, value: Any, name: str) -> None:
        """`from module import name` inside of a function."""
        self.see(module, module.__name__)
        if name in vars(module):
            self._module_attribute(module, name)
