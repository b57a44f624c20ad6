"""`if` on a traced tensor: both branches are recorded, and one of them runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..compiler.ir import TensorType
from ..core import pytree
from ..core.eager_context import current_context
from ..core.tensor import Tensor
from ..core.trace_state import TraceError
from ..ops.elementwise import where
from ..tracing.bodies import giving
from .aliases import RESULT, ended, forks_here, may_be, may_be_one, shares_memory, tensors_of
from .cells import UNDEFINED, Variables
from .decisions import decision
from .exits import RETURNED
from .statements import Branch
from .values import as_tensor, common_type, empty, error, is_same, shown, standing, type_of

_Thunk = Callable[[], Any]
_RUNNING: list[Branch] = []
"""The statements whose branches are being recorded, from outside in."""


def statement(test: Any, then: _Thunk | None, otherwise: _Thunk | None, spec: Branch) -> None:
    """An `if` whose branches come to their end: its variables are those of the one that runs."""
    variables = Variables(spec.bound, (then, otherwise))
    _Choice(test, (otherwise, then), variables, spec.live, spec).bind()


def turn(test: Any, run: _Thunk, variables: Variables, spec: Branch) -> None:
    """A turn of a loop that runs where `test` is true."""
    _Choice(test, (None, run), variables, spec.live, spec, is_turn=True).bind()


def returned(test: Any, then: _Thunk, otherwise: _Thunk, spec: Branch) -> Any:
    """What the branch gives that runs."""
    variables = Variables(spec.bound, (then, otherwise))
    return _Choice(test, (otherwise, then), variables, spec.live, spec, has_result=True).bind()


def expression(test: Any, then: _Thunk, otherwise: _Thunk) -> Any:
    """`then() if test else otherwise()`."""
    spec = Branch((), (), "the condition", (0, 0))
    return _Choice(test, (otherwise, then), Variables((), ()), (), spec, has_result=True).bind()


class _Side:
    """What a branch leaves in each of the variables: leaves, and how they are put together."""

    def __init__(self, values: Sequence[Any]) -> None:
        flat = [pytree.flatten(each) for each in values]
        self.values = list(values)
        self.leaves = [leaves for leaves, _ in flat]
        self.specs = [spec for _, spec in flat]
        self.twins: dict[int, Tensor] = {}
        self.captured: list[Tensor] = []  # tensors of the outside that the branch reads
        self.forks: dict[int, list[Tensor]] = {}  # what leaves may be, by their ids

    def names_of(self, leaf: Any) -> list[Tensor]:
        """The tensors from before the branch that a leaf is or may be."""
        is_there = bool(tensors_of([leaf])) and shares_memory(leaf, self.captured)
        return [*([leaf] if is_there else []), *self.forks.get(id(leaf), ())]

    def take(self, outputs: Sequence[Tensor]) -> None:
        """The tensors among the leaves as they were at the end of the branch."""
        tensors = [each for each in self.all if isinstance(each, Tensor)]
        self.twins = {id(each): twin for each, twin in zip(tensors, outputs, strict=True)}

    @property
    def all(self) -> list[Any]:
        return [leaf for leaves in self.leaves for leaf in leaves]


class _Choice:
    def __init__(
        self, test: Any, functions: tuple[_Thunk | None, _Thunk | None], variables: Variables,
        live: Sequence[str], spec: Branch, has_result: bool = False, is_turn: bool = False,
    ) -> None:  # fmt: skip
        self.spec, self.variables, self.names = spec, variables, list(live)
        self.has_result, self.is_turn = has_result, is_turn
        if has_result:
            self.names.append(RESULT)
        self.before = variables.take()
        index = decision(test)
        context = current_context()
        self.functions, self.sides = functions, [_Side(()), _Side(())]
        if context.takes_bodies:
            bodies = [
                context.body(lambda at=at: self._run(at), (), [each] if each else ())
                for at, each in enumerate(functions)
            ]
            types = self._joined()
            for side, body in zip(self.sides, bodies, strict=True):
                side.take(body.outputs[len(body.changed) :])
                side.captured = [*body.reads, *tensors_of(body.changed)]
            bodies = [
                giving(body, lambda at=at: self._tensors(at, types))
                for at, body in enumerate(bodies)
            ]
            found = context.branch(index, bodies)
        else:
            for at in (0, 1):
                with context.selecting():
                    self._run(at)
            types = self._joined()
            first, second = (self._tensors(at, types) for at in (0, 1))
            found = [where(index, own, other) for own, other in zip(second, first, strict=True)]
        self.values = self._put_together(types, found)

    def _run(self, at: int) -> list[Tensor]:
        """Record one branch, maybe again, which begins with the variables as they are."""
        variables, function = self.variables, self.functions[at]
        before = forks_here()
        variables.put(self.before)
        try:
            result = self._called(function) if function else None
            values = [result if n == RESULT else variables.get(n) for n in self.names]
        finally:
            variables.put(self.before)
        side = self.sides[at] = _Side(values)
        side.forks = ended(side.all, before)
        return [each for each in side.all if isinstance(each, Tensor)]

    def _called(self, function: _Thunk) -> Any:
        is_outermost = not any(each is self.spec for each in _RUNNING)
        _RUNNING.append(self.spec)
        try:
            return function()
        except TraceError:
            raise
        except RecursionError:
            if not is_outermost:
                raise
            raise error(
                f"the branches on the tensor `{self.spec.test}` call the function that they stand "
                "in, and so on: how deep is known only when the compiled function runs",
                f"while ...:  # in its place a loop that `{self.spec.test}` ends",
            ) from None
        except Exception as raised:
            trace = raised.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            if trace is None or trace.tb_frame.f_code is not function.__code__:  # type: ignore[attr-defined]
                raise
            line = trace.tb_lineno
            raise error(
                f"line {line} raises {type(raised).__name__} where the tensor `{self.spec.test}` "
                "says so, which a compiled function cannot do, for its values are known only when "
                "it runs",
                "return the condition as a result, and raise the error outside",
            ) from raised
        finally:
            _RUNNING.pop()

    # --- both sides together ---

    def _joined(self) -> list[list[TensorType | None] | None]:
        """For each variable, the types of its leaves; None for those that stay values of Python's.

        None instead of the list for a variable that both sides leave as the same object.
        """
        return [self._types(at, name) for at, name in enumerate(self.names)]

    def _types(self, at: int, name: str) -> list[TensorType | None] | None:
        first, second = self.sides
        if first.values[at] is second.values[at]:
            return None
        for one, other in ((first, second), (second, first)):
            if one.values[at] is UNDEFINED:
                if name != RETURNED:
                    raise self._undefined(name, is_true=one is second)
                one.leaves[at] = [self._unread(each) for each in other.leaves[at]]
                one.specs[at] = other.specs[at]
        if first.specs[at] != second.specs[at]:
            raise self._differs(name, *(_kind(each.values[at]) for each in (second, first)))
        paths = first.specs[at].paths(name)
        return [
            self._type(path, one, other)
            for path, one, other in zip(paths, first.leaves[at], second.leaves[at], strict=True)
        ]

    def _unread(self, leaf: Any) -> Any:
        type_ = type_of(leaf)
        return leaf if type_ is None else _Unread(type_)

    def _type(self, path: str, one: Any, other: Any) -> TensorType | None:
        for each in (one, other):
            if isinstance(each, _Unread):
                return each.type
        if is_same(one, other):
            return None
        found = common_type(one, other)
        if found is None:
            raise self._differs(path, shown(other), shown(one))
        return found

    def _tensors(self, at: int, types: Sequence[list[TensorType | None] | None]) -> list[Tensor]:
        """What one side gives, in its scope."""
        side = self.sides[at]
        return [
            empty(type_)
            if isinstance(leaf, _Unread)
            else as_tensor(side.twins.get(id(leaf), leaf), type_)
            for leaves, of_leaves in zip(side.leaves, types, strict=True)
            if of_leaves is not None
            for leaf, type_ in zip(leaves, of_leaves, strict=True)
            if type_ is not None
        ]

    def _put_together(
        self, types: Sequence[list[TensorType | None] | None], found: Sequence[Tensor]
    ) -> list[Any]:
        left, side, values = iter(found), self.sides[1], []
        made = list[tuple[int, int, Any]]()
        for at, of_leaves in enumerate(types):
            if of_leaves is None:
                values.append(side.values[at])
                continue
            pairs = zip(self.sides[0].leaves[at], side.leaves[at], strict=True)
            leaves = [
                leaf[1] if type_ is None else standing(next(left), *leaf)
                for leaf, type_ in zip(pairs, of_leaves, strict=True)
            ]
            self._note_aliases(at, leaves)
            values.append(side.specs[at].unflatten(leaves))
            made += ((at, number, leaf) for number, leaf in enumerate(leaves))
        for each in self.sides:
            may_be_one(
                ((self.names[at], result, each.leaves[at][number]) for at, number, result in made),
                each.forks,
            )
        return values

    def _note_aliases(self, at: int, results: Sequence[Any]) -> None:
        """What a branch leaves that was there before it is a name for the same tensor."""
        for number, result in enumerate(results):
            there = [side.names_of(side.leaves[at][number]) for side in self.sides]
            may_be(result, there[0] + there[1], self.names[at])

    def bind(self) -> Any:
        """Give the variables their values; those that nobody reads are undefined from now on.

        Returns the result.
        """
        made = dict.fromkeys(self.before, UNDEFINED)
        made.update(zip(self.names, self.values, strict=True))
        self.variables.put(made)
        return made.get(RESULT)

    # --- errors ---

    def _where(self) -> str:
        if self.is_turn:
            return f"the loop `{self.spec.test}` that a tensor ends"
        return f"the branches on the tensor `{self.spec.test}`"

    def _undefined(self, name: str, is_true: bool) -> Exception:
        where = "true" if is_true else "false"
        return error(
            f"`{name}` is read behind {self._where()}, but is not defined where that is {where}",
            f"{name} = ...  # before it, of the type that it gets inside",
        )

    def _differs(self, path: str, true: str, false: str) -> Exception:
        name = "the result" if path.startswith(RESULT) else f"`{path}`"
        target = "return" if path.startswith(RESULT) else f"{path} ="
        lines = [f" (line {each})" if each else "" for each in self.spec.lines]
        return error(
            f"{name} is {true}{lines[0]} where it is true and {false}{lines[1]} where it is false, "
            f"behind {self._where()}; both must have one type, as only one of them is known to run",
            f"{target} tg.where({self.spec.test}, a, b)  # with a and b of one type",
            f"{target} tg.cond({self.spec.test}, lambda: a, lambda: b)",
        )


class _Unread:
    """Stands for a value that is never read."""

    def __init__(self, type_: TensorType) -> None:
        self.type = type_


def _kind(value: Any) -> str:
    leaves, spec = pytree.flatten(value)
    if spec == pytree.LEAF:
        return shown(value)
    parts = ", ".join(map(shown, leaves))
    return f"a {type(value).__name__} of {parts or 'nothing'}"
