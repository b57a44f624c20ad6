"""What a fused function does to one element, recorded: scalars instead of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler.ir import Builder, Family, Node, Primitive, TensorType, input_node
from ..compiler.ir import primitives as p
from ..core.context import Context
from ..core.eager_context import EAGER
from ..core.provenance import user_site
from ..core.tensor import Tensor, intern_type, wrap
from ..core.traced_float import Specialize, TracedFloat
from ..runtime.device import CPU, Device
from ..runtime.dtypes import DType, float64, int64


class NotElementwiseError(TypeError):
    """A fused function does something else than to compute each element by itself."""


def _reflected(primitive: Primitive) -> Any:
    return lambda self, other: self._combine(primitive, other, True)


class TracedInt(TracedFloat):
    """As TracedFloat, for an int: sums, differences and products stay ints, of 64 bits."""

    __slots__ = ()
    __class__ = property(lambda self: int)

    def _combine(self, primitive: Primitive, other: Any, reflected: bool) -> Any:
        self.check()
        if isinstance(other, Tensor):
            return NotImplemented
        both_ints = type(other) in (int, bool, TracedInt)
        if not both_ints or primitive is p.div:
            right = other._widened() if type(other) is TracedInt else other
            return self._widened()._combine(primitive, right, reflected)
        if primitive is p.pow_:
            raise Specialize(self.sources)
        sources = self.sources
        if type(other) is TracedInt:
            node, sources = other.node, sources | other.sources
        else:
            node = self.trace.builder.full((), int(other), int64)
        operands = [node, self.node] if reflected else [self.node, node]
        return TracedInt(self.trace, self.trace.record(primitive, operands), sources)

    def _widened(self) -> TracedFloat:
        node = self.trace.record(p.cast, [self.node], {"dtype": float64})
        return TracedFloat(self.trace, node, self.sources)

    def _apply(self, primitive: Primitive) -> TracedFloat:
        self.check()
        return TracedInt(self.trace, self.trace.record(primitive, [self.node]), self.sources)

    # Said again, so that they come before the operators of a TracedFloat on the left.
    __radd__ = _reflected(p.add)
    __rsub__ = _reflected(p.sub)
    __rmul__ = _reflected(p.mul)
    __rtruediv__ = _reflected(p.div)
    __rpow__ = _reflected(p.pow_)


class Expression(Context):
    """Records what happens to one element: all its nodes have no dimensions.

    Handles have the types of the tensors that they stand for. With `sums`, sums and reshapes pass
    as well: in the gradient of an elementwise function they undo broadcasting, which waits until
    after the kernel. With `writes`, handles may be written in place.
    """

    tracing = True

    def __init__(self, name: str, sums: bool = False, writes: bool = False) -> None:
        self.name = name
        self.sums = sums
        self.writes = writes
        self.builder = Builder()
        self.inputs: list[Node] = []
        self._own: set[Node] = set()

    def argument(self, type_: TensorType) -> Tensor:
        """A handle to a new input."""
        return wrap(self._input(type_.dtype), type_)

    def number(self, value: float, position: int) -> TracedFloat:
        """What stands for a Python number, the argument at a position."""
        sources = frozenset({position})
        if isinstance(value, int):
            return TracedInt(self, self._input(int64), sources)
        return TracedFloat(self, self._input(float64), sources)

    def _input(self, dtype: DType) -> Node:
        node = input_node(f"in{len(self.inputs)}", intern_type((), dtype))
        self.inputs.append(node)
        self._own.add(node)
        return node

    def record(self, primitive: Primitive, nodes: Sequence[Node], attrs: Any = None) -> Node:
        node = self.builder.apply(primitive, nodes, attrs or {})
        self._own.add(node)
        return node

    def evaluate(
        self, primitive: Primitive, tensors: tuple[Tensor, ...], attrs: dict[str, Any], type_: Any
    ) -> Any:
        if primitive.family is Family.ELEMENTWISE and primitive is not p.require:
            return self.record(primitive, [self.value_of(each) for each in tensors], attrs)
        if primitive is p.full:
            return self.constant(attrs["value"], attrs["dtype"])._value
        if self._passes(primitive, tensors):
            return self.value_of(tensors[0])
        raise self.refusal(f"{primitive.name}, which is not elementwise")

    def _passes(self, primitive: Primitive, tensors: tuple[Tensor, ...]) -> bool:
        if primitive is p.transfer:
            return not tensors[0]._type.shape
        return primitive is p.broadcast or (self.sums and primitive in (p.sum_, p.reshape))

    def refusal(self, what: str) -> NotElementwiseError:
        return NotElementwiseError(
            f"`{self.name}`, marked by tgraph.fused, uses {what}, at {user_site()}. A fused "
            "function computes each element of its results by itself, from tensors and numbers "
            "that are its arguments."
        )

    def value_of(self, tensor: Tensor) -> Node:
        value = tensor._value
        if type(value) is Node and value in self._own:
            return value
        raise self.refusal(f"a tensor of type {tensor._type} that is no argument")

    def leaked(self, node: Node) -> Exception:
        return self.refusal("a number of another call")

    def host_array(self, tensor: Tensor, operation: str) -> np.ndarray[Any, Any]:
        raise self.refusal(f"{operation}, which needs the values of a tensor")

    def allow_iteration(self) -> None:
        raise self.refusal("a loop over a tensor")

    def constant(self, value: Any, dtype: DType, device: Device = CPU) -> Tensor:
        if type(value) in (TracedFloat, TracedInt):
            value.check()
            node = self.record(p.cast, [value.node], {"dtype": dtype})
        else:
            number = EAGER.constant(value, dtype)._value
            kept = float(number) if dtype.is_floating_point else number.item()
            node = self.builder.full((), kept, dtype)
            self._own.add(node)
        return wrap(node, intern_type((), dtype, device))

    def array_constant(self, array: np.ndarray[Any, Any], device: Device = CPU) -> Tensor:
        raise self.refusal("a tensor that is made inside")

    def write(self, tensor: Tensor, new: Tensor) -> None:
        if not self.writes:
            raise self.refusal("an operation that writes in place")
        if tensor._view is not None:
            raise self.refusal("a view that is written in place")
        self.value_of(tensor)
        tensor._value = self.value_of(new)

    def aliases(
        self, primitive: Primitive, source: Tensor, attrs: dict[str, Any], value: Any
    ) -> bool:
        return False

    def refresh(self, tensor: Tensor, derived: Tensor) -> None:
        tensor._value = self.value_of(derived)

    def draw_from(self, generator: Any, device: Device = CPU) -> tuple[Tensor, Tensor]:
        raise self.refusal("random numbers")

    def random_state(self, generator: Any) -> Tensor:
        raise self.refusal("random numbers")

    def seeded(self, generator: Any, seed: int) -> None:
        raise self.refusal("random numbers")

    def token(self, device: Device) -> Tensor:
        raise self.refusal("a Python function over arrays")

    def serial(self) -> int:
        raise self.refusal("a Python function over arrays")

    def read_grad(self, tensor: Tensor) -> Tensor | None:
        raise self.refusal("the gradient of a tensor")

    def write_grad(self, tensor: Tensor, grad: Tensor | None) -> None:
        raise self.refusal("the gradient of a tensor")
