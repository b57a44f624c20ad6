"""Writes the hot path of a compiled plan as a Python function.

A call costs a few attribute reads per tensor: guards are straight-line code, and memory of
captured tensors is known by the identity of its array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np

from ..compiler.ir import TensorType, promotion
from ..compiler.ir import primitives as p
from ..core import pytree
from ..core.state import state
from ..core.tensor import Tensor, ViewStep
from ..core.trace_state import Source, TraceInput
from ..core.traced_number import FixedNumber, OpenNumber
from ..core.views import array_views
from ..runtime.cuda.arrays import cupy_array
from ..runtime.cuda.precision import get_precision
from ..runtime.device import defaults
from ..runtime.records import record
from ..tracing.recorded_call import Call, Change, Ref, follows_its_base
from ..tracing.recording.attributes import EVERY
from ..tracing.recording.guards import Guard, same_elements, same_static
from ..tracing.recording.places import Place
from .call_helpers import HELPERS, root_of
from .graph_function import GraphFunction

# From so many tensors on, one loop looks at them: Python takes long to compile a line for each.
LOOPED = 200


@record()
class OpenViews:
    """What stands for the `array_views` of steps whose sizes are open."""

    steps: tuple[ViewStep, ...]


class CallWriter:
    """Writes `run(leaves, given)` for one recorded call.

    `given` are (args, kwargs) as the user gave them, where there are containers among them.
    `leaves` are followed by what lies in `places`, which each call reads by itself.

    `types` are those of arguments which the leaves at hand need not have.

    `captured` lists the tensors of the outside whose memory is bound as A0, A1, ... in
    `namespace`; `fixed_roots` holds the owners of that memory.
    """

    def __init__(
        self,
        call: Call,
        leaves: Sequence[Any],
        numbers: frozenset[int],
        places: Sequence[Place],
        function: GraphFunction,
        guards: Sequence[Guard],
        environment: dict[str, Any],
        eager: Any,
        types: Mapping[int, TensorType],
        same_as: Sequence[int],
    ) -> None:
        self.types, self._same_as = types, same_as
        self.call, self.leaves, self.numbers, self.places = call, leaves, numbers, places
        self.function, self.guards = function, guards
        self.captured: list[Tensor] = []
        self.fixed_roots: dict[int, Any] = {}
        self.namespace: dict[str, Any] = {
            **environment,
            **HELPERS,
            "GRAD_MODE": state.grad_enabled,
            "AUTOCAST": state.autocast,
            "DEFAULT_DTYPE": promotion.default_dtype,
            "DEFAULT_DEVICE": defaults.device,
            "FIXED": self.fixed_roots,
            "eager": eager,
            "matmul_precision": get_precision,
        }
        kinds = [entry.source.kind for entry in call.inputs]
        sources = [entry.source for entry in call.inputs] if self._is_plain() else []
        # The plan itself refuses those that are not dense, which is faster than to look here.
        self._looked_at_by_plan = {each.key for each in sources if each.kind == "argument"}
        self._loops = {kind for kind in ("captured", "grad") if kinds.count(kind) >= LOOPED}
        self._captured_rows: list[tuple[Tensor, str, bool]] = []
        self._grad_rows: list[tuple[Tensor, Any]] = []
        self._lines: list[str] = []
        self._indent = "    "
        self._consts: dict[int, str] = {}
        self._kept: list[Any] = []
        self._refs: dict[int, str] = {}
        self._named = 0
        self._views: list[str] = []
        self._results: dict[int, str] = {}  # output number -> variable of its tensor
        self._computed: dict[Any, str] = {}  # expression of numbers -> its variable

    def write(self) -> str:
        """The text of the function."""
        self._modes()
        given = len(self.leaves) - len(self.places)
        for position, leaf in enumerate(self.leaves[:given]):
            self._argument(position, leaf)
        self._environment()
        for position, leaf in enumerate(self.leaves[given:], given):
            self._argument(position, leaf)
        for view in self.call.trace.views:
            self._captured_view(view)
        self._containers()
        inputs = [self._input(at, each) for at, each in enumerate(self.call.inputs)]
        self._looked_at_in_loops()
        self._aliases(inputs)
        self._numbers()
        if self._has_effects():
            self._add("held = hold()")
            self._add("try:")
            self._indent += "    "
        for owner, flag in self.call.effects.flags:  # the record looks at them
            self._add(f"{self._owner(owner)}._requires_grad = {flag}")
        self._execute(inputs)
        refs = [self._ref(ref) for ref in self.call.refs]
        self._effects(inputs)
        self._add(f"return {self._assembled(refs, self.call.result)}")
        if self._has_effects():
            self._indent = "    "
            self._add("finally:")
            self._add("    release(held)")
        names = "".join(f"a{position}, " for position in range(given))
        head = f"    ({names}) = leaves" if names else "    pass"
        return "\n".join(["def run(leaves, given=None):", head, *self._lines, ""])

    @property
    def own_names(self) -> list[str]:
        """The names of what it put into the namespace by itself and may depend on sizes."""
        return [*self._consts.values(), *(["GRADS"] if self._grad_rows else [])]

    # --- pieces ---

    def _add(self, line: str) -> None:
        self._lines.append(self._indent + line)

    def _const(self, value: Any) -> str:
        """A name for an object in the globals of the function."""
        name = self._consts.get(id(value))
        if name is None:
            name = self._consts[id(value)] = f"k{len(self._consts)}"
            self.namespace[name] = value
            self._kept.append(value)
        return name

    def _miss_unless(self, *conditions: str) -> None:
        self._add(f"if not ({' and '.join(conditions)}):")
        self._add("    return MISS")

    def _modes(self) -> None:
        self._miss_unless(
            f"state.grad_enabled is {state.grad_enabled}",
            "state.autocast is AUTOCAST",
            "promotion.default_dtype is DEFAULT_DTYPE",
            "(defaults.device is DEFAULT_DEVICE or defaults.device == DEFAULT_DEVICE)",
        )
        if any(node.primitive is p.matmul and not node.type.device.is_host for node in
               self.call.graph.nodes):  # fmt: skip
            self._miss_unless(f"matmul_precision() == {get_precision()!r}")

    def _argument(self, position: int, leaf: Any) -> None:
        name = f"a{position}"
        if position in self.numbers:
            self._miss_unless(f"type({name}) is {type(leaf).__name__}")
        elif not isinstance(leaf, Tensor):
            const = self._const(leaf)
            self._miss_unless(f"({name} is {const} or same_static({const}, {name}))")
        else:
            self._tensor_argument(position, leaf)

    def _tensor_argument(self, position: int, leaf: Tensor) -> None:
        name, value = f"a{position}", f"v{position}"
        type_ = self._const(self.types.get(position, leaf._type))
        first = self._same_as[position]
        if first != position:
            self._miss_unless(f"{name} is a{first}")
            return
        self._miss_unless(
            f"type({name}) is {self._const(type(leaf))}",
            f"({name}._type is {type_} or {name}._type == {type_})",
        )
        self._add(f"if {name}._view is not None:")
        self._add(f"    settled({name})")
        self._add(f"{value} = {name}._value")
        conditions = [
            f"{name}._requires_grad is {leaf._requires_grad}",
            f"({name}._record is None) is {leaf._record is None}",
            self._is_array(value, leaf._value),
        ]
        if leaf._requires_grad:
            conditions.append(self._hooks(name, leaf))
        if leaf._value.flags.c_contiguous:
            if position not in self._looked_at_by_plan:
                conditions.append(f"{value}.flags.c_contiguous")
        else:
            conditions.append(f"{value}.strides == {leaf._value.strides}")
        self._miss_unless(*conditions)
        for attribute, read in self.call.attributes.get(position, {}).items():
            if attribute == EVERY:
                self._miss_unless(f"not {name}.__dict__")
                continue
            found = f"{name}.__dict__.get({attribute!r}, ABSENT)"
            self._miss_unless(f"same_static({self._const(read)}, {found})")
        for (one, other), same in self.call.compared.items():
            if one == position and not isinstance(other, int):
                self._miss_unless(f"({name} is {self._const(other)}) is {same}")
            elif one == position:
                self._miss_unless(f"{name} is not a{other}")
        if self._writes_arguments():
            for other in range(position):
                if isinstance(self.leaves[other], Tensor):
                    self._miss_unless(f"{name} is not a{other}")

    def _is_array(self, name: str, array: Any) -> str:
        """The condition that a value is an array of the same module."""
        if isinstance(array, np.ndarray):
            return f"(type({name}) is ndarray or isinstance({name}, ndarray))"
        return f"type({name}) is {self._const(type(array))}"

    def _writes_arguments(self) -> bool:
        inputs = self.call.inputs
        return any(
            inputs[write.input].source.kind == "argument" for write in self.call.effects.writes
        )

    def _environment(self) -> None:
        """Guards on what the function reads through Python, which may have gone away."""
        given = len(self.leaves) - len(self.places)
        reads = [
            f"a{position} = {self._const(place.holder)}{place.access}"
            for position, place in enumerate(self.places, given)
        ]
        conditions = [self._guarded(guard) for guard in self.guards]
        for source, value, _ in self.call.trace.static_reads:
            conditions.append(f"{self._const(source.key)}() == {self._const(value)}")
        if not conditions and not reads:
            return
        self._add("try:")
        self._indent += 4 * " "
        for at in range(0, len(conditions), 32):
            self._miss_unless(*conditions[at : at + 32])
        for read in reads:
            self._add(read)
        self._indent = self._indent[:-4]
        self._add("except (LookupError, AttributeError, ValueError, NameError):")
        self._add("    return MISS")

    def _guarded(self, guard: Guard) -> str:
        if guard.condition:
            return guard.code if guard.expected else f"not ({guard.code})"
        if guard.same is None or guard.expected is None or isinstance(guard.expected, bool):
            return f"{guard.code} is {self._const(guard.expected)}"
        if guard.code.startswith("len("):
            return f"{guard.code} == {guard.expected}"
        const = self._const(guard.expected)
        if guard.same is same_elements and all(type(each) is str for each in guard.expected):
            return f"{guard.code} == {const}"
        same = f"{guard.same.__name__}({const}, {guard.code})"
        return same if guard.same is not same_static else f"({guard.code} is {const} or {same})"

    def _owner(self, source: Source) -> str:
        """The tensor that is found at a source."""
        if source.kind == "argument":
            return f"a{source.key}"
        if source.kind == "captured":
            return self._const(source.key)
        assert source.kind == "grad", source.kind
        return f"{self._owner(source.key)}._grad"

    def _input(self, at: int, entry: TraceInput) -> str:
        """The variable with the array of an input, after its guards."""
        source = entry.source
        match source.kind:
            case "argument":
                return self._dense(at, f"v{source.key}")
            case "captured":
                if "captured" in self._loops and _is_plain(source.key, entry):
                    return self._captured_in_loop(source.key)
                return self._dense(at, self._captured(source.key))
            case "grad":
                owner = source.key
                looped = "grad" in self._loops and owner.kind == "captured"
                if looped and "strides" not in entry.node.attrs and entry.node.type.device.is_host:
                    self._grad_rows.append((owner.key, entry.node.type))
                    return f"g[{len(self._grad_rows) - 1}]"
                return self._dense(at, self._grad(at, entry))
            case "host":
                return self._number(source)
            case "number":
                is_float = entry.node.type.dtype.is_floating_point
                return f"{'number' if is_float else 'integer'}({self._number(source.key)})"
            case "random":
                return f"random_state({self._const(source.key)})"
        raise AssertionError(source.kind)

    def _number(self, expression: Any) -> str:
        """A variable with what an expression of Python numbers gives at this call."""
        if isinstance(expression, (FixedNumber, OpenNumber)):
            return self._const(expression.value)
        if isinstance(expression, Source) and expression.kind == "number":
            return f"a{expression.key}"
        name = self._computed.get(expression)
        if name is None:
            name = self._computed[expression] = f"n{len(self._computed)}"
            if isinstance(expression, Source):
                self._add(f"{name} = {self._const(expression.key)}()")
            else:
                parts = [self._number(each) for each in expression.operands]
                self._add("try:")
                self._add(f"    {name} = {expression.text(parts)}")
                self._add("except ArithmeticError:")  # raised where eager code raises it
                self._add("    return eager(leaves, given)")
        return name

    def _numbers(self) -> None:
        """Compute numbers before anything happens: a division by zero is no half of a call."""
        waiting = [
            *self.call.refs,
            *(ref for each in self.call.effects.changes for ref in each.refs),
        ]
        while waiting:
            ref = waiting.pop()
            if ref.kind == "number":
                self._number(ref.key)
            elif ref.kind == "container":
                waiting += ref.key[1]

    def _containers(self) -> None:
        """Containers among the arguments are not those that the function met by itself."""
        codes = self.call.containers
        if codes and self.call.effects.changes:
            met = self._const({id(each): each for each in self.call.met})
            self._add(f"if not apart(({''.join(f'{each}, ' for each in codes)}), {met}):")
            self._add("    return eager(leaves, given)")

    def _dense(self, at: int, value: str) -> str:
        """Kernels cannot go backwards through memory: such arrays are copied."""
        strides = self.call.inputs[at].node.attrs.get("strides")
        if strides is None or min(strides) >= 0:
            return value
        self._add(f"d{at} = dense({value})")
        return f"d{at}"

    def _bound(self, tensor: Tensor) -> int:
        """The number of a captured tensor, whose memory is bound from now on."""
        number = len(self.captured)
        self.captured.append(tensor)
        self.namespace[f"A{number}"] = tensor._value
        root = root_of(tensor._value)
        self.fixed_roots[id(root)] = root
        return number

    def _captured_in_loop(self, tensor: Tensor) -> str:
        row = tensor, f"A{self._bound(tensor)}", tensor._requires_grad
        self._captured_rows.append(row)
        return f"c[{len(self._captured_rows) - 1}]"

    def _looked_at_in_loops(self) -> None:
        """The arrays of many tensors and gradients, after their guards."""
        if self._captured_rows:
            self.namespace.update(CAPTURED=self._captured_rows, NAMESPACE=self.namespace)
            self._add("c = captured_arrays(CAPTURED, NAMESPACE)")
            self._miss_unless("c is not None")
        if self._grad_rows:
            self.namespace["GRADS"] = self._grad_rows
            self._add("g = gradient_arrays(GRADS)")
            self._miss_unless("g is not None")

    def _captured(self, tensor: Tensor) -> str:
        number, const = self._bound(tensor), self._const(tensor)
        self._add(f"c{number} = {const}._value")
        conditions = [f"c{number} is A{number}"]
        conditions.append(f"{const}._requires_grad is {tensor._requires_grad}")
        if tensor._requires_grad:
            conditions.append(f"({const}._record is None) is {tensor._record is None}")
            conditions.append(self._hooks(const, tensor))
        self._miss_unless(*conditions)
        return f"c{number}"

    def _captured_view(self, view: Tensor) -> None:
        """A view of the outside must still be one, with the same part in gradients."""
        const = self._const(view)
        conditions = [f"{const}._view is {self._const(view._view)}"]
        if not follows_its_base(view):
            conditions.append(f"{const}._requires_grad is {view._requires_grad}")
            conditions.append(f"({const}._record is None) is {view._record is None}")
        self._miss_unless(*conditions)

    def _hooks(self, name: str, tensor: Tensor) -> str:
        """Hooks run inside where the traced function calls backward."""
        if not tensor._hooks:
            return f"not {name}._hooks"
        return f"{name}._hooks == {self._const(dict(tensor._hooks))}"

    def _grad(self, at: int, entry: TraceInput) -> str:
        owner, type_ = self._owner(entry.source), self._const(entry.node.type)
        self._add(f"g{at} = {owner}")
        self._miss_unless(
            f"g{at} is not None", f"(g{at}._type is {type_} or g{at}._type == {type_})"
        )
        self._add(f"w{at} = g{at}._value")
        strides = entry.node.attrs.get("strides")
        on_cpu = entry.node.type.device.is_host
        array = f"type(w{at}) is {'ndarray' if on_cpu else self._const(cupy_array())}"
        if strides is None:
            self._miss_unless(array, f"w{at}.flags.c_contiguous")
        else:
            nbytes = tuple(stride * entry.node.type.dtype.itemsize for stride in strides)
            self._miss_unless(array, f"w{at}.strides == {nbytes}")
        return f"w{at}"

    def _aliases(self, inputs: Sequence[str]) -> None:
        """Grads that must be absent; and memory that is written must be nobody else's."""
        for owner, was_none in self.call.grads_read:
            if was_none:
                self._miss_unless(f"{self._owner(owner)}._grad is None")
        written = [write.input for write in self.call.effects.writes if write.output is not None]
        kinds = [entry.source.kind for entry in self.call.inputs]
        moving = [inputs[at] for at, kind in enumerate(kinds) if kind in ("argument", "grad")]
        if not written or not moving:
            return
        held = ("argument", "grad", "captured")
        shown = {at for at, entry in enumerate(self.call.inputs) if entry.shown}
        own = {at for at, kind in enumerate(kinds) if kind in held} - shown
        others = [inputs[at] for at in sorted(own.difference(written))]
        mine = "".join(f"{inputs[at]}, " for at in written)
        rest = "".join(f"{each}, " for each in others)
        together = "".join(f"{each}, " for each in moving)
        self._add(f"if clash(({together}), FIXED) and overlap(({mine}), ({rest})):")
        self._add("    return eager(leaves, given)")

    def _has_effects(self) -> bool:
        effects = self.call.effects
        return bool(
            effects.writes or effects.grads or effects.flags or effects.histories
            or effects.generators or effects.changes or self._is_ordered
        )  # fmt: skip

    @property
    def _is_ordered(self) -> bool:
        """Whether host calls do what cannot be undone."""
        return self.call.trace.last_token is not None

    def _is_plain(self) -> bool:
        """Whether the call is nothing but that of one plan for the CPU."""
        function = self.function
        if not self.call.graph.outputs or function.differentiable or self._has_effects():
            return False
        if not function.outputs.simple:
            return False
        return bool(function.plain.refuses_gaps)

    def _execute(self, inputs: Sequence[str]) -> None:
        """Run the plan. One that fails has written nothing: eager code does what comes before.

        On a device failures are told late, but for memory that must not be written.
        """
        if not self.call.graph.outputs:  # results are views, or known
            return
        if self._looked_at_by_plan:
            self._add("try:")
            self._add(f"    o = {self._run_of_plain(inputs)}")
            self._add("except NotDenseError:")
            self._add("    return MISS")
            return
        if not self._has_effects():
            self._run_plan(inputs)
            return
        graph = self.call.graph
        on_cpu = all(node.type.device.is_host for node in (*graph.inputs, *graph.outputs))
        if self._is_ordered:
            self._add("begun = ordered_calls_begun()")
        self._add("try:")
        self._indent += "    "
        self._run_plan(inputs)
        self._indent = self._indent[:-4]
        self._add(f"except {'Exception' if on_cpu else 'ReadOnlyError'} as error:")
        for owner, flag in self.call.effects.flags:
            self._add(f"    {self._owner(owner)}._requires_grad = {not flag}")
        begun = ", begun" if self._is_ordered else ""
        self._add(f"    return after_failure(error, eager, leaves, given{begun})")

    def _run_plan(self, inputs: Sequence[str]) -> None:
        function = self.function
        if self.function.differentiable:
            tensors = "".join(
                f"{self._owner(entry.source) if entry.handle is not None else None}, "
                for entry in self.call.inputs
            )
            arrays = "".join(f"{each}, " for each in inputs)
            self._add(f"o, record = {self._const(function.run_recorded)}(({tensors}), ({arrays}))")
            return
        self._add(f"o = {self._run_of_plain(inputs)}")

    def _run_of_plain(self, inputs: Sequence[str]) -> str:
        arrays = "".join(f"{each}, " for each in inputs)
        run = self.function.plain.run if self.function.outputs.simple else self.function.run
        return f"{self._const(run)}(({arrays}))"

    def _ref(self, ref: Ref) -> str:
        """A variable with what stands for `ref` after the call."""
        found = self._refs.get(id(ref))
        if found is None:
            self._named += 1  # before those that it is made of
            found = self._refs[id(ref)] = self._new_ref(ref, f"r{self._named}")
            self._kept.append(ref)
        return found

    def _new_ref(self, ref: Ref, name: str) -> str:
        match ref.kind:
            case "static":
                return self._const(ref.key)
            case "number":
                return self._number(ref.key)
            case "made":
                self._add(f"{name} = {self._const(ref.key)}.copy()")
            case "container":
                tree, refs = ref.key
                parts = [self._ref(each) for each in refs]
                self._views.append(f"{name} = {self._assembled(parts, tree)}")
            case "given":
                return str(ref.key)
            case "outside":
                return self._owner(ref.key)
            case "view":
                base = self._ref(ref.key)
                steps = self._const(ref.steps)
                is_open = self.function.fed.open is not None
                # Made later, when the base has its final value and history.
                views = OpenViews(ref.steps) if is_open else array_views(ref.steps)
                how = f"{self._const(views)}, {ref.differentiable}, {ref.apart}"
                self._views.append(f"{name} = view_of({base}, {steps}, {how})")
                if ref.like is not None:
                    self._views.append(f"{name}.__class__ = {self._const(ref.like.kind)}")
                if ref.leaf:
                    self._views.append(f"{name}._requires_grad = True")
                elif ref.history is not None:
                    self._views.append(self._with_history(name, ref.history))
            case _:
                type_ = self._const(self.call.graph.outputs[ref.key].type)
                wrapped = f"wrap(o[{ref.key}], {type_})"
                if ref.like is not None:
                    wrapped = f"{self._const(ref.like)}.of({wrapped})"
                self._add(f"{name} = {wrapped}")
                self._results[ref.key] = name
                if ref.leaf:
                    self._add(f"{name}._requires_grad = True")
                elif ref.key in self.call.freed:
                    self._add(f"freed({self._freed(name, ref.key)})")
        return name

    def _effects(self, inputs: Sequence[str]) -> None:
        effects = self.call.effects
        grads = [(owner, None if ref is None else self._ref(ref)) for owner, ref in effects.grads]
        changes = [(each, [self._ref(ref) for ref in each.refs]) for each in effects.changes]
        leaves = "".join(f"{self._ref(each)}, " for each in self.call.leaves)
        if self.function.differentiable:
            results = ", ".join(f"{number}: {name}" for number, name in self._results.items())
            self._add(f"record.attach({{{results}}})")
        alone = [each for each in effects.writes if self._is_counted_alone(each, inputs)]
        if len(alone) >= LOOPED:
            sources = [self.call.inputs[each.input].source for each in alone]
            self.namespace["WRITES"] = [
                (source.key, each.times, each.written)
                for source, each in zip(sources, alone, strict=True)
            ]
            self._add("for counted in WRITES:")
            self._add("    count_write(*counted)")
        for write in effects.writes:
            if len(alone) < LOOPED or not self._is_counted_alone(write, inputs):
                self._written(write, inputs)
        if len(effects.counts) >= LOOPED and all(o.kind == "captured" for o, *_ in effects.counts):
            self.namespace["COUNTS"] = [(o.key, *counted) for o, *counted in effects.counts]
            self._add("for counted in COUNTS:")
            self._add("    count_write(*counted)")
        else:
            for owner, times, site in effects.counts:
                self._add(f"count_write({self._owner(owner)}, {times}, {self._const(site)})")
        for owner, output in effects.histories:
            self._add(self._with_history(self._owner(owner), output))
        for line in self._views:
            self._add(line)
        if leaves and self.function.differentiable:
            self._add(f"record.end_at(({leaves}))")
        for generator, calls, seed, counter in effects.generators:
            name = self._const(generator)
            reached = calls if counter is None else f"int(o[{counter}])"
            if seed is not None:
                self._add(f"{name}.restart({seed}, {reached})")
            else:
                self._add(f"{name}.counter {'+=' if counter is None else '='} {reached}")
        for owner, grad in grads:
            holder = self._ref(owner) if isinstance(owner, Ref) else self._owner(owner)
            self._add(f"{holder}._grad = {grad}")
        values: list[str | None] = []
        for at, (change, names) in enumerate(changes):  # all of them, before the first is put
            values.append(None if change.tree is None else self._assembled(names, change.tree))
            if values[-1] is not None and not values[-1].isidentifier():
                self._add(f"t{at} = {values[-1]}")
                values[-1] = f"t{at}"
        for (change, _), value in zip(changes, values):
            self._changed(change, value)

    def _changed(self, change: Change, value: str | None) -> None:
        """Write into a Python object what the traced function wrote there."""
        if isinstance(change.holder, Ref):
            holder = f"{self._ref(change.holder)}.__dict__"
        else:
            holder = change.holder if change.is_given else self._const(change.holder)
        key = self._const(change.key)
        match change.kind:
            case "item" | "ordered":
                kind = "dict" if change.kind == "item" else "OrderedDict"
                gone = f"{kind}.pop({holder}, {key}, None)"
                put = f"{kind}.__setitem__({holder}, {key}, {value})"
                self._add(gone if value is None else put)
            case "element":
                self._add(f"{holder}[{change.key}] = {value}")
            case "attribute":
                gone = f"object.__delattr__({holder}, {key})"
                put = f"object.__setattr__({holder}, {key}, {value})"
                self._add(gone if value is None else put)
            case "class":
                put = f"type.__setattr__({holder}, {key}, {value})"
                self._add(f"type.__delattr__({holder}, {key})" if value is None else put)
            case "cell":
                gone = f"del {holder}.cell_contents"
                self._add(gone if value is None else f"{holder}.cell_contents = {value}")
            case "replace":
                self._add(f"{holder}.clear()")
                self._add(f"{holder}.extend({value})")
            case "content" | "bytes":
                self._add(f"{holder}[{'...' if change.kind == 'content' else ':'}] = {value}")
            case _:
                self._add(f"{holder}.{change.kind}({value})")

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
        others = [self._owner(each) for each, known in zip(sources, is_leaf) if not known]
        why = self._const(self.call.freed[output])
        return (
            f"{tensor}, {why}, {self._const(leaves)}, ({''.join(f'{each}, ' for each in others)})"
        )

    def _is_counted_alone(self, write: Any, inputs: Sequence[str]) -> bool:
        """Whether the plan writes a captured tensor itself, so that its version is all to do."""
        if self.call.inputs[write.input].source.kind != "captured":
            return False
        return write.output is not None and inputs[write.input] != f"d{write.input}"

    def _written(self, write: Any, inputs: Sequence[str]) -> None:
        source = self.call.inputs[write.input].source
        owner = self._owner(source)
        if inputs[write.input] == f"d{write.input}" and write.output is not None:
            self._add(f"copyto({owner}._value, d{write.input})")
        self._add(f"count_write({owner}, {write.times}, {self._const(write.written)})")
        if write.output is None and self.function.differentiable:
            self._add(f"record.is_unchanged({write.input})")

    def _assembled(self, refs: Sequence[str], tree: pytree.TreeSpec) -> str:
        if tree == pytree.LEAF:
            return refs[0]
        inner = "".join(f"{each}, " for each in refs)
        if tree.container is tuple and all(each == pytree.LEAF for each in tree.children):
            return f"({inner})"
        return f"{self._const(tree.unflatten)}(({inner}))"


def _is_plain(tensor: Tensor, entry: TraceInput) -> bool:
    """Whether a loop can look at a captured tensor: it has no history, hooks or odd memory."""
    strides = entry.node.attrs.get("strides")
    return tensor._record is None and not tensor._hooks and (strides is None or min(strides) >= 0)
