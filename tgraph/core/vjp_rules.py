"""The table of gradient rules: a vector-Jacobian product for each operation that is recorded.

A rule takes all cotangents and gives all:

    rule(cotangents, outputs, inputs, attrs, wanted) -> a cotangent or None for each input

`cotangents` has one entry for each result, None where nothing arrived. Of `outputs` and `inputs`
those that the rule saves are tensors, the others their TensorType. `wanted` says which inputs
need a cotangent; its shape may be any to which the input was broadcast. `@vjp` registers such a
rule, `@input_vjp` one for a single input of an operation with one result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from ..compiler.ir import Primitive
from ..runtime.records import NamedTuple

OUTPUT = "output"
"""Names the result of an operation with one in `saves`."""

Cotangents = Sequence[Any]
"""A Tensor or None for each result, or for each input."""
Attrs = Mapping[str, Any]
Wanted = Sequence[bool]
Numbers = Collection[int] | Callable[[Wanted], Collection[int]]
"""Numbers of inputs or outputs, or what gives them for what is wanted."""


class Operation(Protocol):
    """What is recorded: a Primitive, or a Composite with a rule of its own."""

    @property
    def name(self) -> str: ...


class Saves(NamedTuple):
    """Numbers of the inputs and of the outputs that a rule reads."""

    inputs: frozenset[int]
    outputs: frozenset[int]


class Rule(Protocol):
    """A vector-Jacobian product, and what it reads where only some inputs are wanted."""

    def __call__(
        self, cotangents: Cotangents, outputs: Sequence[Any], inputs: Sequence[Any],
        attrs: Attrs, wanted: Wanted,
    ) -> Cotangents: ...  # fmt: skip

    def saves(self, wanted: Wanted) -> Saves: ...


class WholeRule:
    """A rule that is one function; `inputs` and `outputs` are what it saves."""

    def __init__(
        self, function: Callable[..., Cotangents], inputs: Numbers, outputs: Numbers
    ) -> None:
        self._function = function
        self._inputs = inputs
        self._outputs = outputs

    def __call__(
        self, cotangents: Cotangents, outputs: Sequence[Any], inputs: Sequence[Any],
        attrs: Attrs, wanted: Wanted,
    ) -> Cotangents:  # fmt: skip
        return self._function(cotangents, outputs, inputs, attrs, wanted)

    def saves(self, wanted: Wanted) -> Saves:
        inputs, outputs = (
            frozenset(each(wanted) if callable(each) else each)
            for each in (self._inputs, self._outputs)
        )
        return Saves(inputs, outputs)


class InputRules:
    """The rule of an operation with one result that is put together from rules for its inputs."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.functions: dict[int, Callable[..., Any]] = {}
        self._saves: dict[int, Saves] = {}

    def add(
        self, position: int, function: Callable[..., Any], saves: Collection[int | str]
    ) -> None:
        self.functions[position] = function
        inputs = frozenset(each for each in saves if isinstance(each, int))
        self._saves[position] = Saves(inputs, frozenset({0} if OUTPUT in saves else ()))

    def __call__(
        self, cotangents: Cotangents, outputs: Sequence[Any], inputs: Sequence[Any],
        attrs: Attrs, wanted: Wanted,
    ) -> Cotangents:  # fmt: skip
        functions = self.functions
        return [
            functions[at](cotangents[0], outputs[0], *inputs, **attrs) if is_wanted else None
            for at, is_wanted in enumerate(wanted)
        ]

    def saves(self, wanted: Wanted) -> Saves:
        read = [self._of(at) for at, is_wanted in enumerate(wanted) if is_wanted]
        return Saves(
            frozenset().union(*(each.inputs for each in read)),
            frozenset().union(*(each.outputs for each in read)),
        )

    def _of(self, position: int) -> Saves:
        """NotImplementedError names an input without a rule."""
        if position not in self._saves:
            raise NotImplementedError(
                f"the gradient of {self.operation.name} with respect to input {position} is not "
                "implemented"
            )
        return self._saves[position]


RULES: dict[Operation, Rule] = {}
# Primitives whose float results carry no gradient at all.
NON_DIFFERENTIABLE: set[Primitive] = set()


def vjp(
    operation: Operation, saves: Numbers = (), saves_outputs: Numbers = ()
) -> Callable[[Callable[..., Cotangents]], Callable[..., Cotangents]]:
    """Register the rule of `operation`: `rule(cotangents, outputs, inputs, attrs, wanted)`.

    `saves` and `saves_outputs` have the numbers of the inputs and the outputs that it reads, or
    give them for what is wanted.

    >>> from tgraph.compiler.ir import primitives as p
    >>> @vjp(p.linear_scan, saves=(0,), saves_outputs=(0,))       # doctest: +SKIP
    ... def _linear_scan(cotangents, outputs, inputs, attrs, wanted): ...
    """

    def add(function: Callable[..., Cotangents]) -> Callable[..., Cotangents]:
        RULES[operation] = WholeRule(function, saves, saves_outputs)
        return function

    return add


def input_vjp(
    operation: Operation, position: int = 0, saves: Collection[int | str] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the rule for one input of an operation with one result.

    It is called with the cotangent, the output, all inputs and the attributes by name. `saves`
    names what it reads: numbers of inputs, and OUTPUT.

    >>> from tgraph.compiler.ir import primitives as p
    >>> @input_vjp(p.exp, saves=(OUTPUT,))       # doctest: +SKIP
    ... def _exp(g, out, x):
    ...     return g * out
    """

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        rules = RULES.setdefault(operation, InputRules(operation))
        assert isinstance(rules, InputRules), f"{operation} has a rule for all inputs"
        rules.add(position, function, saves)
        return function

    return add
