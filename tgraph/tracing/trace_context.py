"""The context that records operations into a graph instead of computing them.

Arguments are stood for by private handles. Tensors of the outside that the function reads are
found by identity and become inputs; their values in the trace are kept in a table beside the
tensors, so that the tensors themselves keep theirs. What a trace changes about them (history,
gradients, versions) is written down on first touch and put back when the trace ends.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field
from types import MappingProxyType
from typing import Any

import numpy as np

from ..compiler.ir import Node, Primitive, Provenance, TensorType, input_node
from ..compiler.ir import primitives as p
from ..compiler.ir.dim import SymInt
from ..compiler.ir.layouts import node_strides
from ..core.carried_number import CarriedNumber
from ..core.context import GRAPHS
from ..core.dispatch import apply, settled
from ..core.eager_context import EAGER, array_type, raise_leaked, told_apart
from ..core.inplace import written_through
from ..core.overlap import Origin, origin_of
from ..core.provenance import Site, user_site
from ..core.state import state
from ..core.tensor import Lifted, Tensor, blank, intern_type, unwritten, view_in, wrap
from ..core.trace_state import (
    Boundary,
    GradAccess,
    HandleState,
    HostRead,
    Source,
    TraceAgain,
    TraceError,
    TraceInput,
)
from ..core.traced_number import TracedNumber
from ..core.views import would_alias
from ..runtime.device import CPU, Device
from ..runtime.dtypes import DType, float64, int64, uint8
from ..runtime.records import record
from .body_recording import BodyRecording
from .open_sizes import OpenSizes
from .outside_writes import Carried
from .random_draws import RandomDraws
from .recording.entered import without_hooks
from .regions import Region, entered_region
from .replaced_memory import ReplacedMemory
from .scopes import Scope
from .selections import Count, Selection, select
from .stamps import Stamps
from .trace_errors import WITH_CONTROL_FLOW, leaked, loop_is_written_out, value_is_asked

_NO_ATTRS: MappingProxyType[str, Any] = MappingProxyType({})


@record(eq=False, frozen=False)
class Trace(BodyRecording):
    """Records into one builder. Used as the current context while a function is traced.

    `names` gives readable names to captured tensors by id; `static` are the sources of host numbers
    that must be plain numbers.
    """

    names: dict[int, str] = field(default_factory=dict)
    static: frozenset[Source] = frozenset()
    function: str = "the function"
    rewritings: Any = None  # of functions that ask for values, see `rewriting`
    count: Count | None = None  # what counts where a selection by data is made

    tracing = True
    deriving_sparse = False  # while gradients are derived of which sparse ones may be results

    @property
    def gives_sparse(self) -> bool:  # type: ignore[override]
        """Not in the bodies of branches and loops, whose results are plain values."""
        return self.deriving_sparse and self.scope is self.root

    def __post_init__(self) -> None:
        self.root = Scope()
        self._enter(self.root)
        self.carried: dict[int, Carried] = {}
        self.forks: list[Any] = []  # of what may be the same tensor, see `rewriting/aliases`
        self.arrived: list[Region] = []
        self.inputs: list[TraceInput] = []
        self.by_handle: dict[int, TraceInput] = {}
        self.views: list[Tensor] = []  # of the outside; their values come from their bases
        self.replaced = ReplacedMemory()
        self.grads: dict[int, GradAccess] = {}
        # id of the private handle -> the user's tensor, while the function is traced
        self.arguments: dict[int, Tensor | None] = {}
        self.origins: dict[int, Origin] = {}  # of private handles, whose places were asked for
        self.draws = RandomDraws(self)
        self.host_reads: list[Source] = []
        self.static_reads: list[tuple[Source, Any, str]] = []  # the last is a name for it
        self.last_token: Node | None = None  # of the last ordered host call
        self.differentiates = False
        self.where: Provenance | None = None
        self._serials = itertools.count(1)
        self._taken: dict[str, int] = {}
        self._sites: dict[Any, Provenance] = {}
        self.selections: dict[Node, Selection] = {}  # by what is not zero there
        self.numbers: dict[Any, Node] = {}  # expression and kind -> its input
        self.sizes = OpenSizes(self)
        self._log: list[Node] | None = None  # of what is recorded, while somebody wants to know
        self._stamps = Stamps(self)

    # --- inputs ---

    def new_input(
        self, source: Source, name: str, type_: TensorType, strides: tuple[int, ...] | None = None
    ) -> TraceInput:
        """A new input of the graph; `strides` (in elements) where it is not contiguous."""
        count = self._taken[name] = self._taken.get(name, 0) + 1
        node = input_node(name if count == 1 else f"{name}_{count}", type_, self.site())
        if strides is not None:
            attrs = MappingProxyType({**node.attrs, "strides": strides})
            node = Node(node.primitive, (), attrs, type_, node.where)
        self.root.own.add(node)
        entry = TraceInput(source, node)
        self.inputs.append(entry)
        return entry

    def argument(self, source: Source, tensor: Tensor, name: str) -> Tensor:
        """The private handle that stands for `tensor`, an argument or a gradient."""
        type_ = self._open(source, tensor._type)
        entry = self.new_input(source, name, type_, strides_if_odd(tensor._value))
        handle = shell_of(tensor, entry.node, type_)
        handle._requires_grad = tensor._requires_grad
        if tensor._requires_grad:
            if tensor._record is not None:
                handle._record = Boundary(type_, name)
            if tensor._record is None and tensor._hooks is not None:
                handle._hooks = dict(tensor._hooks)
        self._register(entry, handle)
        self.arguments[id(handle)] = tensor
        return handle

    def _open(self, source: Source, type_: TensorType) -> TensorType:
        """The type with those sizes open that are; a gradient has the shape of its owner."""
        while source.kind == "grad":
            source = source.key
        axes = self.sizes.axes.get(source.key) if source.kind == "argument" else None
        if axes is None:
            return type_
        shape = tuple(axes.get(axis, size) for axis, size in enumerate(type_.shape))
        return type_.with_shape(shape)

    def _register(self, entry: TraceInput, handle: Tensor) -> None:
        entry.handle, entry.record = handle, handle._record
        entry.requires_grad = handle._requires_grad
        self.by_handle[id(handle)] = entry
        if handle._requires_grad and handle._record is None:
            entry.differentiable = handle
        elif handle._requires_grad:
            # The handle may be written in place: ask of a twin with the history as it came.
            twin = wrap(entry.node, handle._type)
            twin._record, twin._requires_grad = handle._record, True
            entry.differentiable = twin

    def number(self, source: Source, kind: type, name: str) -> TracedNumber:
        """What stands for a Python number of a `kind` that is found at `source` at each call."""
        return TracedNumber(self, source, kind, frozenset({source}), name)

    def number_node(self, number: TracedNumber) -> Node:
        """The input through which a number comes to tensors."""
        key = (number.expression, number.kind)
        if key not in self.numbers:
            dtype = float64 if number.kind is float else int64
            source = Source("number", number.expression)
            self.numbers[key] = self.new_input(source, number.name, intern_type((), dtype)).node
        return self.numbers[key]

    def host_number(self, getter: Any, dtype: DType | None, name: str = "number") -> Any:
        """See `tracing.host_scalar`. `name` is that of the input."""
        source = Source("host", len(self.host_reads))
        self.host_reads.append(Source("host", getter))
        if source in self.static:
            return self.host_constant(getter, "a setting")
        host = Source("host", without_hooks(getter))
        number = TracedNumber(self, host, float, frozenset({source}), name)
        return number if dtype is None else self.constant(number, dtype)

    def host_value(self, function: Any) -> Any:
        """See `tracing.host`."""
        source = Source("host", len(self.host_reads))
        if source in self.static:
            raise TraceError(
                f"the value of a number of tg.host() is asked for, at {user_site()}, which is "
                "known only when the compiled function runs. Pass it as an argument."
            )
        read = HostRead(without_hooks(function))
        self.host_reads.append(Source("host", read))
        if isinstance(read.first, Tensor):
            type_ = intern_type(*read.first._type)
            return wrap(self.new_input(Source("host", read), "host", type_).node, type_)
        if type(read.first) not in (int, float):
            raise TypeError(
                "tg.host(): expected a function that gives a tensor or a number, it gave a "
                f"{type(read.first).__name__}"
            )
        host = Source("host", read)
        return TracedNumber(self, host, type(read.first), frozenset({source}), "host")

    def host_constant(self, getter: Any, name: str) -> Any:
        """See `tracing.host_constant`."""
        getter = without_hooks(getter)
        value = getter()
        self.static_reads.append((Source("host", getter), value, name))
        return value

    def no_longer_used(self, tensor: Tensor) -> None:
        if id(tensor) in self.by_handle:
            raise TraceAgain

    # --- values ---

    def value_of(self, tensor: Tensor) -> Node:
        value = tensor._value
        if type(value) is Node and value in self._own:
            return value
        found = self.table.get(id(tensor))
        if found is not None:
            return found
        if self.is_in_body:
            return self.scope.capture(self, tensor)
        if type(value) is Node:
            raise self.leaked(value)
        return self._capture(tensor)

    def may_reshape(self, tensor: Tensor) -> bool:
        is_known = id(tensor) in self.journal or id(tensor) in self.table
        return not (self.is_in_body or is_known or self.is_outside(tensor))

    def has_value(self, tensor: Tensor) -> bool:
        return False

    def leaked(self, node: Node) -> TraceError:
        """The error for a value that belongs to a trace that is over, or to a graph."""
        for graph in GRAPHS:
            if graph.owns(node):
                found: TraceError = graph.outside(node, node.type)
                return found
        return leaked(f"a value made in a traced function, at {node.where},")

    def leaked_number(self, number: TracedNumber) -> TraceError:
        """The same of a number."""
        return leaked(f"the number `{number.name}` of a traced function")

    def leaked_size(self, size: SymInt) -> TraceError:
        """The same of a size."""
        return leaked(f"the size {size.text} of a tensor of a traced function")

    def _capture(self, tensor: Tensor) -> Node:
        """The value of a tensor of the outside: an input, or a view of one."""
        if isinstance(tensor._value, Lifted):
            raise_leaked(tensor)
        self.touch(tensor)
        if tensor._view is not None and id(tensor._view.base) in self.replaced.written:
            self.check_view(tensor)
        if view_in(tensor) is not None:
            return self.capture_view(tensor)
        name = self.names.get(id(tensor), "captured")
        source = Source("captured", tensor)
        entry = self.new_input(source, name, tensor._type, strides_if_odd(tensor._value))
        if tensor._record is not None:
            tensor._record, tensor._index = Boundary(tensor._type, name), 0
        self._register(entry, tensor)
        self.table[id(tensor)] = entry.node
        return entry.node

    def capture_view(self, tensor: Tensor) -> Node:
        """The value of a tensor of the outside that shows another: from that one's."""
        view = tensor._view
        assert view is not None
        derived = view.base
        self.value_of(derived)
        recording = state.grad_enabled
        state.grad_enabled = view.differentiable and tensor._requires_grad
        try:
            for step in view.steps:
                derived = apply(step.primitive, derived, *step.operands, **step.attrs)
        finally:
            state.grad_enabled = recording
        if not self.is_in_body:
            self.views.append(tensor)
        node = self.table[id(tensor)] = self.value_of(derived)
        if view.differentiable and derived._requires_grad:
            tensor._record, tensor._index = derived._record, derived._index
        elif tensor._requires_grad and self.is_in_body:
            self.scope.capture_history(self, tensor)
        elif tensor._requires_grad:
            self._shown(tensor)
        return node

    def _shown(self, tensor: Tensor) -> None:
        """Gradients are asked of a view itself, not of its base: it is detached, or a leaf."""
        name = self.names.get(id(tensor), "captured")
        source = Source("captured", tensor)
        entry = self.new_input(source, name, tensor._type, strides_if_odd(tensor._value))
        entry.shown = True
        if tensor._record is not None:
            tensor._record, tensor._index = Boundary(tensor._type, name), 0
        self._register(entry, tensor)

    def site(self) -> Provenance:
        """The user's line that is running now."""
        if self.where is not None:
            return self.where
        return self._provenance(user_site())

    @contextmanager
    def at_one_line(self, where: Provenance) -> Iterator[None]:
        """Everything meanwhile comes from the line `where`."""
        previous, self.where = self.where, where
        try:
            yield
        finally:
            self.where = previous

    def _provenance(self, site: Site) -> Provenance:
        key = (site.code, site.instruction, site.module_path)
        found = self._sites.get(key)
        if found is None:
            found = self._sites[key] = site.provenance
        return found

    def record(
        self, primitive: Primitive, nodes: Sequence[Node], attrs: Any = _NO_ATTRS, type_: Any = None
    ) -> Node:
        """The node of applying `primitive`, of `type_` where that is known."""
        node = self.builder.apply(primitive, nodes, attrs, self.site(), type_)
        self._own.add(node)
        if self._log is not None:
            self._log.append(node)
        if state.region is not None:
            state.region.add(node)
        return node

    # --- what is recorded again ---

    def update(self, function: Callable[..., None], args: Sequence[Any]) -> None:
        if self.sizes.dims or self._log is not None or self.is_in_body:
            function(*args)
        else:
            self._stamps.call(function, args)

    @contextmanager
    def logging(self) -> Iterator[list[Node]]:
        """What is recorded meanwhile, in its order."""
        self._log = log = []
        try:
            yield log
        finally:
            self._log = None

    def reads(self) -> tuple[Any, ...]:
        """Tells whether anything but tensors and numbers is read, drawn or ordered in between."""
        drawn = self.draws.generators, self.draws.seeds
        counted = (self.host_reads, self.static_reads, *drawn, self.grads)
        return (*map(len, counted), self.last_token)

    def repeat(self, node: Node, inputs: Sequence[Node], type_: TensorType) -> Node:
        """What `node`, of this trace, does on other inputs, whose result is of `type_`."""
        made = self.builder.repeat(node, inputs, self.site(), type_)
        self._own.add(made)
        return made

    def evaluate(
        self, primitive: Primitive, tensors: tuple[Tensor, ...], attrs: dict[str, Any], type_: Any
    ) -> Any:
        nodes = [self.value_of(tensor) for tensor in tensors]
        for name, value in attrs.items():
            if isinstance(value, TracedNumber):
                if primitive is p.full:
                    return self._full(attrs, value)
                attrs[name] = float(value)
            elif type(value) is SymInt and primitive is p.full:
                return self._full(attrs, self.sizes.as_number(value))
        node = self.record(primitive, nodes, attrs, type_)
        if type(type_) is not tuple:
            return node
        return tuple(
            self.record(p.get, [node], {"index": at}, each) for at, each in enumerate(type_)
        )

    def _full(self, attrs: dict[str, Any], value: TracedNumber) -> Node:
        number = self.constant(value, attrs["dtype"], attrs.get("device", CPU))
        return self.record(p.broadcast, [self.value_of(number)], {"shape": attrs["shape"]})

    def host_array(self, tensor: Tensor, operation: str) -> np.ndarray[Any, Any]:
        why = self.not_rewritten(operation)
        raise value_is_asked(operation, self.function, why)

    def not_rewritten(self, operation: str) -> str:
        if self.rewritings is None:
            asks = operation.startswith(("bool()", "iterating"))
            return f"{WITH_CONTROL_FLOW} " if asks else ""
        why = self.rewritings.asked(operation, user_site(), state.recorder)
        return why and f"{why} "

    def positions(self, tensor: Tensor, operation: str) -> tuple[Tensor, ...]:
        if self.count is None or self.is_in_body or not tensor.ndim:
            self.host_array(tensor, operation)  # which there is none of
            return ()
        return select(self, tensor, self.count)

    def allow_iteration(self) -> None:
        if user_site().unpacks:  # as often as there are names
            return
        why = self.not_rewritten("iterating")
        raise loop_is_written_out(self.function, why)

    def constant(self, value: Any, dtype: DType, device: Device = CPU) -> Tensor:
        if type(value) is CarriedNumber:
            return value.to(dtype, device)
        if type(value) is SymInt:
            value = self.sizes.as_number(value)
        is_traced = type(value) is TracedNumber
        if is_traced and self.is_in_body:
            with self.within(self.root):
                return self.constant(value, dtype, device)
        if is_traced:
            value.check()
            key = value.expression, value.kind, dtype, device
        else:
            key = told_apart(value), type(value), dtype, device
        node = self._constants.get(key)
        if node is None:
            node = (self._cast_number if is_traced else self._number)(value, dtype, device)
            self._constants[key] = node
        return unwritten(wrap(node, intern_type((), dtype, device)))

    def _cast_number(self, number: TracedNumber, dtype: DType, device: Device) -> Node:
        if all(source.kind == "size" for source in number.sources):  # a constant of each plan
            attrs = {"shape": (), "value": number.expression, "dtype": dtype, **_placed(device)}
            return self.record(p.full, [], attrs)
        node = self.record(p.cast, [number.node], {"dtype": dtype})
        return node if device is CPU else self.record(p.transfer, [node], {"device": device})

    def _number(self, value: Any, dtype: DType, device: Device) -> Node:
        return self._scalar(scalar_of(value, dtype), dtype, device)

    def _scalar(self, value: Any, dtype: DType, device: Device) -> Node:
        kept = float(value) if dtype.is_floating_point else value
        attrs = {"shape": (), "value": kept, "dtype": dtype, **_placed(device)}
        return self.record(p.full, [], attrs)

    def array_constant(self, array: np.ndarray[Any, Any], device: Device = CPU) -> Tensor:
        dtype = array_type(array).dtype
        if array.ndim == 0:
            return wrap(self._scalar(array.item(), dtype, device), array_type(array, device))
        fixed = array.copy()
        fixed.flags.writeable = False
        node = self.record(p.constant, [], {"value": fixed, **_placed(device)})
        return wrap(node, array_type(array, device))

    def reads_current_device(self, current: Callable[[], int]) -> None:
        self.static_reads.append((Source("host", current), current(), "the current CUDA device"))

    # --- mutation ---

    def write(self, tensor: Tensor, new: Tensor) -> None:
        for fork in self.forks:
            fork.check(tensor)
        if self.is_in_body:
            self.scope.note_write(self, tensor)
        node = self.value_of(new)
        self.value_of(tensor)  # captured, if it has to be
        view = tensor._view
        if view is None:
            self._rebind(tensor, node)
            return
        self.check_view(tensor)
        base = view.base
        self.touch(base)
        recording, state.grad_enabled = state.grad_enabled, False
        try:
            whole = written_through(base, view.steps, new) if view.steps else new
        finally:
            state.grad_enabled = recording
        self._rebind(tensor, node)
        if base._view is None:
            self._rebind(base, self.value_of(whole))
        else:
            self.write(base, whole)

    def _rebind(self, tensor: Tensor, node: Node) -> None:
        """Give `tensor` a new value, which eager code writes into the memory that there is."""
        strides = node_strides(self.value_of(tensor))
        if node_strides(node) != strides:
            node = self.record(p.copy, [node], {"strides": strides})
        self.rebind(tensor, node)

    def rebind(self, tensor: Tensor, node: Node) -> None:
        """Let `node`, which lies as `tensor` does, be its value, but not that of views."""
        if self.scope.owns(tensor):
            tensor._value = node
        else:
            self.table[id(tensor)] = node

    @property
    def keeps_memory(self) -> bool:
        return self.is_in_body or self.builds_graph

    def replace_memory(self, tensor: Tensor, new: Tensor) -> None:
        self.replaced.replace(self, tensor, new)

    def check_view(self, tensor: Tensor) -> None:
        self.replaced.check(tensor)

    def aliases(
        self, primitive: Primitive, source: Tensor, attrs: dict[str, Any], value: Any
    ) -> bool:
        return primitive is not p.reshape or would_alias(source, attrs["shape"])

    def origin_of(self, root: Tensor) -> Origin:
        given = self.arguments.get(id(root))
        if given is None:
            return super().origin_of(root)
        found = self.origins[id(root)] = origin_of(settled(given))
        return found

    def base_of(self, root: Tensor) -> Tensor | None:
        if self.origin_of(root).is_view:
            raise TraceError(
                f"`{self.name_of(root)}._base` is asked for at {user_site()}: which tensor an "
                "argument is a view of is known only when the compiled function runs. Pass that "
                "tensor as an argument."
            )
        return None

    def memory_of(self, tensor: Tensor) -> Any:
        given = self.arguments.get(id(tensor))
        return super().memory_of(tensor if given is None else given)

    def refresh(self, tensor: Tensor, derived: Tensor) -> None:
        self.value_of(tensor)  # captured, if it has to be
        self._rebind(tensor, self.value_of(derived))

    def touch(self, tensor: Tensor) -> None:
        if self.is_in_body:
            self.scope.touch(self, tensor)
        elif type(tensor._value) is not Node and id(tensor) not in self.journal:
            self.journal[id(tensor)] = HandleState.of(tensor)

    # --- gradients ---

    def is_outside(self, tensor: Tensor) -> bool:
        return type(tensor._value) is not Node or id(tensor) in self.arguments

    def read_grad(self, tensor: Tensor) -> Tensor | None:
        if not self.is_outside(tensor):
            return tensor._grad
        self._refuse_in_body("reads a gradient of the outside")
        self.touch(tensor)
        access = self.grads.setdefault(id(tensor), GradAccess())
        if access.read or access.written:
            return tensor._grad
        access.read = True
        grad = self._gradient_as_it_came(tensor)
        access.was_none = grad is None
        if grad is not None:
            owner = self.owner(tensor)
            grad = self.argument(Source("grad", owner), grad, f"{self.name_of(tensor)}.grad")
        tensor._grad = grad
        return grad

    def _gradient_as_it_came(self, tensor: Tensor) -> Tensor | None:
        given = self.arguments.get(id(tensor))
        if given is None:
            return tensor._grad
        before = self.journal.get(id(given))  # the function may know it by itself, too
        return given._grad if before is None else before.grad

    def write_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        if type(tensor._value) is not Node or tensor._value not in self._own:
            self._refuse_in_body("writes a gradient of the outside")
        self.touch(tensor)
        if self.is_outside(tensor):
            self.grads.setdefault(id(tensor), GradAccess()).written = True
        tensor._grad = grad

    def owner(self, tensor: Tensor) -> Source:
        """Where a tensor of the outside, or an argument, is found at each call."""
        entry = self.by_handle.get(id(tensor))
        return Source("captured", tensor) if entry is None else entry.source

    def name_of(self, tensor: Tensor) -> str:
        entry = self.by_handle.get(id(tensor))
        if entry is not None:
            return str(entry.node.attrs["name"])
        return self.names.get(id(tensor), "captured")

    def backward_of(self, site: Site | None) -> None:
        self.differentiates = True
        self.where = None if site is None else self._provenance(site)._replace(backward=True)

    # --- randomness ---

    def draw_from(self, generator: Any, device: Device = CPU) -> tuple[Tensor, Tensor]:
        return self.draws.next(generator, device)

    def random_state(self, generator: Any) -> Tensor:
        return self.draws.state(generator)

    def restart(self, generator: Any, random_state: Tensor) -> None:
        self.draws.restart(generator, random_state)

    def seeded(self, generator: Any, seed: int) -> None:
        self._refuse_in_body("seeds a generator")
        self.draws.seed(generator, seed)

    # --- what is computed again ---

    def region(self, policy: Any) -> AbstractContextManager[bool]:
        return entered_region(self, policy)

    def named(self, tensor: Tensor, name: str) -> None:
        if state.region is not None:
            state.region.names[self.value_of(tensor)] = name

    # --- host calls ---

    def token(self, device: Device) -> Tensor:
        self._refuse_in_body("makes an ordered host_call")
        if self.last_token is None:
            return self.constant(0, uint8, device)
        token = wrap(self.last_token, self.last_token.type)
        return token if token._type.device == device else apply(p.transfer, token, device=device)

    def ordered(self, token: Tensor) -> None:
        self.last_token = self.value_of(token)

    def serial(self) -> int:
        self._refuse_in_body("makes a random host_call")
        return next(self._serials)

    # --- beginning and end ---

    def has_written(self) -> bool:
        """Whether eager code would have left something behind by now."""
        if self.draws.generators or self.replaced.tensors or self.last_token is not None:
            return True
        if any(access.written for access in self.grads.values()):
            return True
        handles = [entry.handle for entry in self.inputs if entry.handle is not None]
        fresh = [each for each in handles if id(each) not in self.journal]
        return any(each._storage is not None and each._storage.changes for each in fresh) or any(
            each.is_written for each in self.journal.values()
        )

    def roll_back(self) -> list[HandleState]:
        """Put the outside back as it was; gives the states that were left, for `resumed`."""
        try:
            final = [HandleState.of(each.tensor) for each in self.journal.values()]
            for each in final:
                each.grad = None  # a plan must not keep arguments and old gradients alive
            return final
        finally:  # also where there is no memory to note anything
            for before in reversed(self.journal.values()):
                before.restore()
            for generator, (seed, counter) in self.draws.seeds.values():
                generator.restart(seed, counter)
            self.arguments = dict.fromkeys(self.arguments)
            self.journal.clear()

    @contextmanager
    def resumed(self, final: Sequence[HandleState]) -> Iterator[None]:
        """Go on recording after `roll_back`, with the outside as the trace had left it."""
        now = [HandleState.of(each.tensor) for each in final]
        previous, state.context = state.context, self
        for each in final:
            each.restore(grad=False)
        try:
            yield
        finally:
            state.context = previous
            for each in reversed(now):
                each.restore(grad=False)
            self.journal.clear()


def handle_of(trace: Trace, key: int) -> Tensor:
    """The tensor of the outside, or the stand-in, whose id is `key`."""
    entry = trace.by_handle.get(key)
    if entry is not None and entry.handle is not None:
        return entry.handle
    return trace.journal[key].tensor


def scalar_of(value: Any, dtype: DType) -> Any:
    """A Python number as the value of a constant of `dtype`."""
    checked = EAGER.constant(value, dtype)._value
    return float(value) if dtype.is_floating_point else checked.item()


def _placed(device: Device) -> dict[str, Any]:
    """The attribute that places the result of a source; none for the CPU."""
    return {} if device is CPU else {"device": device}


def strides_if_odd(array: Any) -> tuple[int, ...] | None:
    """Strides in elements where the memory is not contiguous, else None."""
    if array.flags.c_contiguous:
        return None
    return tuple(stride // array.itemsize for stride in array.strides)


def shell_of(tensor: Tensor, node: Node, type_: TensorType) -> Tensor:
    """A leaf of the same class and Python attributes as `tensor`, with another value."""
    shell = blank(type(tensor))
    if tensor.__dict__:
        shell.__dict__.update(tensor.__dict__)
    shell._value, shell._type = node, type_
    return shell
