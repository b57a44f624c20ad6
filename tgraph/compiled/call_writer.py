"""Writes the hot path of a compiled plan as a Python function: guards, inputs, the run.

A call costs a few attribute reads per tensor: guards are straight-line code, and memory of
captured tensors is known by the identity of its array.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..compiler.ir import TensorType, promotion
from ..compiler.ir import primitives as p
from ..core.state import state
from ..core.tensor import Tensor
from ..core.trace_state import Source, TraceInput
from ..core.traced_number import FixedNumber, OpenNumber
from ..runtime.cuda.arrays import cupy_array
from ..runtime.cuda.precision import get_precision
from ..runtime.device import defaults
from ..tracing.recorded_call import Call, follows_its_base
from ..tracing.recording.attributes import EVERY
from ..tracing.recording.guards import Guard, same_elements, same_static
from ..tracing.recording.places import Place
from .call_effects import EffectsWriter
from .call_helpers import HELPERS, root_of
from .call_text import CallText, loops
from .graph_function import GraphFunction


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
        self._loops = {kind for kind in ("captured", "grad") if loops(kinds.count(kind))}
        self._captured_rows: list[tuple[Tensor, str, bool]] = []
        self._grad_rows: list[tuple[Tensor, Any]] = []
        self.text = CallText(self.namespace)
        self._end = EffectsWriter(self.text, call, function, self._owner, self._number)
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
            self.text.add("held = hold()")
            self.text.add("try:")
            with self.text.indented():
                self._run(inputs)
            self.text.add("finally:")
            self.text.add("    release(held)")
        else:
            self._run(inputs)
        names = "".join(f"a{position}, " for position in range(given))
        head = f"    ({names}) = leaves" if names else "    pass"
        return "\n".join(["def run(leaves, given=None):", head, *self.text.lines, ""])

    @property
    def own_names(self) -> list[str]:
        """The names of what it put into the namespace by itself and may depend on sizes."""
        return [*self.text.const_names, *(["GRADS"] if self._grad_rows else [])]

    # --- pieces ---

    def _miss_unless(self, *conditions: str) -> None:
        self.text.add(f"if not ({' and '.join(conditions)}):")
        self.text.add("    return MISS")

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
            const = self.text.const(leaf)
            self._miss_unless(f"({name} is {const} or same_static({const}, {name}))")
        else:
            self._tensor_argument(position, leaf)

    def _tensor_argument(self, position: int, leaf: Tensor) -> None:
        name, value = f"a{position}", f"v{position}"
        type_ = self.text.const(self.types.get(position, leaf._type))
        first = self._same_as[position]
        if first != position:
            self._miss_unless(f"{name} is a{first}")
            return
        self._miss_unless(
            f"type({name}) is {self.text.const(type(leaf))}",
            f"({name}._type is {type_} or {name}._type == {type_})",
        )
        self.text.add(f"if {name}._view is not None:")
        self.text.add(f"    settled({name})")
        self.text.add(f"{value} = {name}._value")
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
        if position in self.call.origins:
            origin = self.text.const(self.call.origins[position])
            self._miss_unless(f"origin_of({name}) == {origin}")
        for attribute, read in self.call.attributes.get(position, {}).items():
            if attribute == EVERY:
                self._miss_unless(f"not {name}.__dict__")
                continue
            found = f"{name}.__dict__.get({attribute!r}, ABSENT)"
            self._miss_unless(f"same_static({self.text.const(read)}, {found})")
        for (one, other), same in self.call.compared.items():
            if one == position and not isinstance(other, int):
                self._miss_unless(f"({name} is {self.text.const(other)}) is {same}")
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
        return f"type({name}) is {self.text.const(type(array))}"

    def _writes_arguments(self) -> bool:
        inputs = self.call.inputs
        return any(
            inputs[write.input].source.kind == "argument" for write in self.call.effects.writes
        )

    def _environment(self) -> None:
        """Guards on what the function reads through Python, which may have gone away."""
        given = len(self.leaves) - len(self.places)
        reads = [
            f"a{position} = {self.text.const(place.holder)}{place.access}"
            for position, place in enumerate(self.places, given)
        ]
        conditions = [self._guarded(guard) for guard in self.guards]
        for source, value, _ in self.call.trace.static_reads:
            conditions.append(f"{self.text.const(source.key)}() == {self.text.const(value)}")
        if not conditions and not reads:
            return
        self.text.add("try:")
        with self.text.indented():
            for at in range(0, len(conditions), 32):
                self._miss_unless(*conditions[at : at + 32])
            for read in reads:
                self.text.add(read)
        self.text.add("except (LookupError, AttributeError, ValueError, NameError):")
        self.text.add("    return MISS")

    def _guarded(self, guard: Guard) -> str:
        if guard.condition:
            return guard.code if guard.expected else f"not ({guard.code})"
        if guard.same is None or guard.expected is None or isinstance(guard.expected, bool):
            return f"{guard.code} is {self.text.const(guard.expected)}"
        if guard.code.startswith("len("):
            return f"{guard.code} == {guard.expected}"
        const = self.text.const(guard.expected)
        if guard.same is same_elements and all(type(each) is str for each in guard.expected):
            return f"{guard.code} == {const}"
        same = f"{guard.same.__name__}({const}, {guard.code})"
        return same if guard.same is not same_static else f"({guard.code} is {const} or {same})"

    def _owner(self, source: Source) -> str:
        """The tensor that is found at a source."""
        if source.kind == "argument":
            return f"a{source.key}"
        if source.kind == "captured":
            return self.text.const(source.key)
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
                return f"random_state({self.text.const(source.key)})"
        raise AssertionError(source.kind)

    def _number(self, expression: Any) -> str:
        """A variable with what an expression of Python numbers gives at this call."""
        if isinstance(expression, (FixedNumber, OpenNumber)):
            return self.text.const(expression.value)
        if isinstance(expression, Source) and expression.kind == "number":
            return f"a{expression.key}"
        name = self._computed.get(expression)
        if name is None:
            name = self._computed[expression] = f"n{len(self._computed)}"
            if isinstance(expression, Source):
                self.text.add(f"{name} = {self.text.const(expression.key)}()")
            else:
                parts = [self._number(each) for each in expression.operands]
                self.text.add("try:")
                self.text.add(f"    {name} = {expression.text(parts)}")
                self.text.add("except ArithmeticError:")  # raised where eager code raises it
                self.text.add("    return eager(leaves, given)")
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
            met = self.text.const({id(each): each for each in self.call.met})
            self.text.add(f"if not apart(({''.join(f'{each}, ' for each in codes)}), {met}):")
            self.text.add("    return eager(leaves, given)")

    def _dense(self, at: int, value: str) -> str:
        """Kernels cannot go backwards through memory: such arrays are copied."""
        strides = self.call.inputs[at].node.attrs.get("strides")
        if strides is None or min(strides) >= 0:
            return value
        self.text.add(f"d{at} = dense({value})")
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
            self.text.add("c = captured_arrays(CAPTURED, NAMESPACE)")
            self._miss_unless("c is not None")
        if self._grad_rows:
            self.namespace["GRADS"] = self._grad_rows
            self.text.add("g = gradient_arrays(GRADS)")
            self._miss_unless("g is not None")

    def _captured(self, tensor: Tensor) -> str:
        number, const = self._bound(tensor), self.text.const(tensor)
        self.text.add(f"c{number} = {const}._value")
        conditions = [f"c{number} is A{number}"]
        conditions.append(f"{const}._requires_grad is {tensor._requires_grad}")
        if tensor._requires_grad:
            conditions.append(f"({const}._record is None) is {tensor._record is None}")
            conditions.append(self._hooks(const, tensor))
        self._miss_unless(*conditions)
        return f"c{number}"

    def _captured_view(self, view: Tensor) -> None:
        """A view of the outside must still be one, with the same part in gradients."""
        const = self.text.const(view)
        conditions = [f"{const}._view is {self.text.const(view._view)}"]
        if not follows_its_base(view):
            conditions.append(f"{const}._requires_grad is {view._requires_grad}")
            conditions.append(f"({const}._record is None) is {view._record is None}")
        self._miss_unless(*conditions)

    def _hooks(self, name: str, tensor: Tensor) -> str:
        """Hooks run inside where the traced function calls backward."""
        if not tensor._hooks:
            return f"not {name}._hooks"
        return f"{name}._hooks == {self.text.const(dict(tensor._hooks))}"

    def _grad(self, at: int, entry: TraceInput) -> str:
        owner, type_ = self._owner(entry.source), self.text.const(entry.node.type)
        self.text.add(f"g{at} = {owner}")
        self._miss_unless(
            f"g{at} is not None", f"(g{at}._type is {type_} or g{at}._type == {type_})"
        )
        self.text.add(f"w{at} = g{at}._value")
        strides = entry.node.attrs.get("strides")
        on_cpu = entry.node.type.device.is_host
        array = f"type(w{at}) is {'ndarray' if on_cpu else self.text.const(cupy_array())}"
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
        self._identities()
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
        self.text.add(f"if clash(({together}), FIXED) and overlap(({mine}), ({rest})):")
        self.text.add("    return eager(leaves, given)")

    def _identities(self) -> None:
        """Where it counts which tensor one is: no argument may be another one, or one known inside.

        The first would have to be recorded so. Of the second the call runs eagerly.
        """
        effects = self.call.effects
        if not self.call.by_identity:
            return
        anyway = effects.flags or effects.replaced
        given = [
            f"id(a{position})" for position, leaf in enumerate(self.leaves)
            if isinstance(leaf, Tensor) and self._same_as[position] == position
            and (anyway or leaf._requires_grad)
        ]  # fmt: skip
        ids = ", ".join(given)
        if len(given) > 1:
            self._miss_unless(f"len({{{ids}}}) == {len(given)}")
        sources = [entry.source for entry in self.call.inputs]
        owners = (*self.call.grads_read, *effects.grads, *effects.flags, *effects.replaced)
        sources += [owner for owner, _ in owners if isinstance(owner, Source)]
        known = [each.key for each in sources if each.kind == "captured"]
        known += self.call.trace.views
        if given and known:
            met = self.text.const({id(each): each for each in known})
            self.text.add(f"if not {met}.keys().isdisjoint(({ids},)):")
            self.text.add("    return eager(leaves, given)")

    def _has_effects(self) -> bool:
        effects = self.call.effects
        return bool(
            effects.writes or effects.grads or effects.flags or effects.histories
            or effects.detached or effects.generators or effects.changes or effects.replaced
            or self._is_ordered
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

    def _run(self, inputs: Sequence[str]) -> None:
        """Run the plan, write what the call leaves behind, and return its results."""
        for owner, flag in self.call.effects.flags:  # the record looks at them
            self.text.add(f"{self._owner(owner)}._requires_grad = {flag}")
        self._execute(inputs)
        self._end.replace()
        refs = [self._end.ref(ref) for ref in self.call.refs]
        self._end.write(inputs)
        self.text.add(f"return {self._end.assembled(refs, self.call.result)}")

    def _execute(self, inputs: Sequence[str]) -> None:
        """Run the plan. One that fails has written nothing: eager code does what comes before.

        On a device failures are told late, but for memory that must not be written.
        """
        if not self.call.graph.outputs:  # results are views, or known
            return
        if self._looked_at_by_plan:
            self.text.add("try:")
            self.text.add(f"    o = {self._run_of_plain(inputs)}")
            self.text.add("except NotDenseError:")
            self.text.add("    return MISS")
            return
        if not self._has_effects():
            self._run_plan(inputs)
            return
        graph = self.call.graph
        on_cpu = all(node.type.device.is_host for node in (*graph.inputs, *graph.outputs))
        if self._is_ordered:
            self.text.add("begun = ordered_calls_begun()")
        self.text.add("try:")
        with self.text.indented():
            self._run_plan(inputs)
        self.text.add(f"except {'Exception' if on_cpu else 'ReadOnlyError'} as error:")
        for owner, flag in self.call.effects.flags:
            self.text.add(f"    {self._owner(owner)}._requires_grad = {not flag}")
        begun = ", begun" if self._is_ordered else ""
        self.text.add(f"    return after_failure(error, eager, leaves, given{begun})")

    def _run_plan(self, inputs: Sequence[str]) -> None:
        function = self.function
        if self.function.differentiable:
            tensors = "".join(
                f"{self._owner(entry.source) if entry.handle is not None else None}, "
                for entry in self.call.inputs
            )
            arrays = "".join(f"{each}, " for each in inputs)
            self.text.add(
                f"o, record = {self.text.const(function.run_recorded)}(({tensors}), ({arrays}))"
            )
            return
        self.text.add(f"o = {self._run_of_plain(inputs)}")

    def _run_of_plain(self, inputs: Sequence[str]) -> str:
        arrays = "".join(f"{each}, " for each in inputs)
        run = self.function.plain.run if self.function.outputs.simple else self.function.run
        return f"{self.text.const(run)}(({arrays}))"


def _is_plain(tensor: Tensor, entry: TraceInput) -> bool:
    """Whether a loop can look at a captured tensor: it has no history, hooks or odd memory."""
    strides = entry.node.attrs.get("strides")
    return tensor._record is None and not tensor._hooks and (strides is None or min(strides) >= 0)
