"""Writes what a call leaves behind: its results, and what it writes into tensors and objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

from ..core import pytree
from ..core.tensor import ViewStep
from ..core.trace_state import Source
from ..core.views import array_views
from ..runtime.records import record
from ..tracing.recorded_call import Call, Change, Ref
from .call_text import CallText, loops
from .graph_function import GraphFunction


@record()
class OpenViews:
    """What stands for the `array_views` of steps whose sizes are open."""

    steps: tuple[ViewStep, ...]


class EffectsWriter:
    """Writes the end of a call, behind the run of its plan.

    `owner` names what lies at a source, `number` the value of an expression of numbers.
    """

    def __init__(
        self,
        text: CallText,
        call: Call,
        function: GraphFunction,
        owner: Callable[[Source], str],
        number: Callable[[Any], str],
    ) -> None:
        self.text, self.call, self.function = text, call, function
        self.owner, self.number = owner, number
        self._refs: dict[int, str] = {}
        self._named = 0
        self._views: list[str] = []
        self._results: dict[int, str] = {}  # output number -> variable of its tensor

    def ref(self, ref: Ref) -> str:
        """A variable with what stands for `ref` after the call."""
        found = self._refs.get(id(ref))
        if found is None:
            self._named += 1  # before those that it is made of
            found = self._refs[id(ref)] = self._new_ref(ref, f"r{self._named}")
            self.text.keep(ref)
        return found

    def _new_ref(self, ref: Ref, name: str) -> str:
        match ref.kind:
            case "static":
                return self.text.const(ref.key)
            case "number":
                return self.number(ref.key)
            case "made":
                self.text.add(f"{name} = {self.text.const(ref.key)}.copy()")
            case "container":
                tree, refs = ref.key
                parts = [self.ref(each) for each in refs]
                self._views.append(f"{name} = {self.assembled(parts, tree)}")
            case "given":
                return str(ref.key)
            case "outside":
                return self.owner(ref.key)
            case "view":
                base = self.ref(ref.key)
                steps = self.text.const(ref.steps)
                is_open = self.function.fed.open is not None
                # Made later, when the base has its final value and history.
                views = OpenViews(ref.steps) if is_open else array_views(ref.steps)
                how = f"{self.text.const(views)}, {ref.differentiable}, {ref.apart}"
                self._views.append(f"{name} = view_of({base}, {steps}, {how})")
                if ref.like is not None:
                    self._views.append(f"{name}.__class__ = {self.text.const(ref.like.kind)}")
                if ref.leaf:
                    self._views.append(f"{name}._requires_grad = True")
                elif ref.history is not None:
                    self._views.append(self._with_history(name, ref.history))
            case _:
                type_ = self.text.const(self.call.graph.outputs[ref.key].type)
                wrapped = f"wrap(o[{ref.key}], {type_})"
                if ref.like is not None:
                    wrapped = f"{self.text.const(ref.like)}.of({wrapped})"
                self.text.add(f"{name} = {wrapped}")
                self._results[ref.key] = name
                if ref.version:
                    self.text.add(f"storage_of({name}).version = {ref.version}")
                if ref.leaf:
                    self.text.add(f"{name}._requires_grad = True")
                elif ref.key in self.call.freed:
                    self.text.add(f"freed({self._freed(name, ref.key)})")
        return name

    def replace(self) -> None:
        """Assign to `.data`, behind what shows the memory of before."""
        effects = self.call.effects
        if not effects.replaced:
            return
        for ref in effects.parted:
            self.ref(ref)
        shown = [(self.owner(owner), self.ref(ref)) for owner, ref in effects.replaced]
        for line in self._views:
            self.text.add(line)
        self._views.clear()
        for owner, name in shown:
            self.text.add(f"set_data({owner}, {name})")

    def write(self, inputs: Sequence[str]) -> None:
        """What a call writes, into tensors first and then into Python objects."""
        effects = self.call.effects
        grads = [(owner, None if ref is None else self.ref(ref)) for owner, ref in effects.grads]
        changes = [(each, [self.ref(ref) for ref in each.refs]) for each in effects.changes]
        leaves = "".join(f"{self.ref(each)}, " for each in self.call.leaves)
        if self.function.differentiable:
            results = ", ".join(f"{number}: {name}" for number, name in self._results.items())
            self.text.add(f"record.attach({{{results}}})")
        alone = [each for each in effects.writes if self._is_counted_alone(each, inputs)]
        if loops(len(alone)):
            sources = [self.call.inputs[each.input].source for each in alone]
            self.text.namespace["WRITES"] = [
                (source.key, each.times, each.written)
                for source, each in zip(sources, alone, strict=True)
            ]
            self.text.add("for counted in WRITES:")
            self.text.add("    count_write(*counted)")
        for write in effects.writes:
            if not loops(len(alone)) or not self._is_counted_alone(write, inputs):
                self._written(write, inputs)
        if loops(len(effects.counts)) and all(
            owner.kind == "captured" for owner, *_ in effects.counts
        ):
            self.text.namespace["COUNTS"] = [(o.key, *counted) for o, *counted in effects.counts]
            self.text.add("for counted in COUNTS:")
            self.text.add("    count_write(*counted)")
        else:
            for owner, times, site in effects.counts:
                self.text.add(f"count_write({self.owner(owner)}, {times}, {self.text.const(site)})")
        for owner, output in effects.histories:
            self.text.add(self._with_history(self.owner(owner), output))
        for owner in effects.detached:
            self.text.add(f"detach_({self.owner(owner)})")
        for line in self._views:
            self.text.add(line)
        if leaves and self.function.differentiable:
            self.text.add(f"record.end_at(({leaves}))")
        for generator, calls, seed, counter in effects.generators:
            name = self.text.const(generator)
            reached = calls if counter is None else f"int(o[{counter}])"
            if seed is not None:
                self.text.add(f"{name}.restart({seed}, {reached})")
            else:
                self.text.add(f"{name}.counter {'+=' if counter is None else '='} {reached}")
        for owner, grad in grads:
            holder = self.ref(owner) if isinstance(owner, Ref) else self.owner(owner)
            self.text.add(f"{holder}._grad = {grad}")
        values: list[str | None] = []
        for at, (change, names) in enumerate(changes):  # all of them, before the first is put
            values.append(None if change.tree is None else self.assembled(names, change.tree))
            if values[-1] is not None and not values[-1].isidentifier():
                self.text.add(f"t{at} = {values[-1]}")
                values[-1] = f"t{at}"
        for (change, _), value in zip(changes, values):
            self._changed(change, value)
        if any(owner.kind == "captured" for owner, _ in effects.replaced):
            self.text.add("rebind()")

    def _changed(self, change: Change, value: str | None) -> None:
        """Write into a Python object what the traced function wrote there."""
        if isinstance(change.holder, Ref):
            holder = f"{self.ref(change.holder)}.__dict__"
        else:
            holder = change.holder if change.is_given else self.text.const(change.holder)
        key = self.text.const(change.key)
        match change.kind:
            case "item" | "ordered":
                kind = "dict" if change.kind == "item" else "OrderedDict"
                gone = f"{kind}.pop({holder}, {key}, None)"
                put = f"{kind}.__setitem__({holder}, {key}, {value})"
                self.text.add(gone if value is None else put)
            case "element":
                self.text.add(f"{holder}[{change.key}] = {value}")
            case "attribute":
                gone = f"object.__delattr__({holder}, {key})"
                put = f"object.__setattr__({holder}, {key}, {value})"
                self.text.add(gone if value is None else put)
            case "class":
                put = f"type.__setattr__({holder}, {key}, {value})"
                self.text.add(f"type.__delattr__({holder}, {key})" if value is None else put)
            case "cell":
                gone = f"del {holder}.cell_contents"
                self.text.add(gone if value is None else f"{holder}.cell_contents = {value}")
            case "replace":
                self.text.add(f"{holder}.clear()")
                self.text.add(f"{holder}.extend({value})")
            case "content" | "bytes":
                self.text.add(f"{holder}[{'...' if change.kind == 'content' else ':'}] = {value}")
            case _:
                self.text.add(f"{holder}.{change.kind}({value})")

    def _with_history(self, tensor: str, output: int) -> str:
        if output in self.call.freed:
            return f"give_freed({self._freed(tensor, output)})"
        return f"give_history({tensor}, record, {output})"

    def _freed(self, tensor: str, output: int) -> str:
        """Arguments for `freed`: leaves of the outside, of which there may be many, are there."""
        outside = [number for number in self.call.asked if number >= 0]
        sources = [self.call.inputs[number].source for number in outside]
        is_leaf = [each.kind == "captured" and each.key._record is None for each in sources]
        leaves = tuple((source.key, 0) for source in compress(sources, is_leaf))
        others = [self.owner(each) for each, known in zip(sources, is_leaf) if not known]
        why = self.text.const(self.call.freed[output])
        known = self.text.const(leaves)
        return f"{tensor}, {why}, {known}, ({''.join(f'{each}, ' for each in others)})"

    def _is_counted_alone(self, write: Any, inputs: Sequence[str]) -> bool:
        """Whether the plan writes a captured tensor itself, so that its version is all to do."""
        if self.call.inputs[write.input].source.kind != "captured":
            return False
        return write.output is not None and inputs[write.input] != f"d{write.input}"

    def _written(self, write: Any, inputs: Sequence[str]) -> None:
        source = self.call.inputs[write.input].source
        owner = self.owner(source)
        if inputs[write.input] == f"d{write.input}" and write.output is not None:
            self.text.add(f"copyto({owner}._value, d{write.input})")
        self.text.add(f"count_write({owner}, {write.times}, {self.text.const(write.written)})")
        if write.output is None and self.function.differentiable:
            self.text.add(f"record.is_unchanged({write.input})")

    def assembled(self, refs: Sequence[str], tree: pytree.TreeSpec) -> str:
        """An expression for a container of the values that `refs` name."""
        if tree == pytree.LEAF:
            return refs[0]
        inner = "".join(f"{each}, " for each in refs)
        if tree.container is tuple and all(each == pytree.LEAF for each in tree.children):
            return f"({inner})"
        return f"{self.text.const(tree.unflatten)}(({inner}))"
