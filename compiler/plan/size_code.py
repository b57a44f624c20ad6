"""What is computed from open sizes, as one Python function that is written and compiled once.

Values may be numbers, and tuples, lists, dicts, records and named tuples with numbers in them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..ir.dim import AtLeastOne, Dim, Quotient, SymInt
from ..ir.size_number import SizeNumber
from .plan_sizes import NotSizedError, PlanSizes

_ATOMS = frozenset({int, float, bool, str, bytes, type(None)})


class SizeCode:
    """Writes a function of the sizes of `dims`, in their order."""

    def __init__(self, dims: Sequence[Dim]) -> None:
        self.names: dict[str, str] = {dim.key: f"d{at}" for at, dim in enumerate(dims)}
        self._constants: dict[str, Any] = {}
        self._named: dict[int, str] = {}
        self._kept: list[Any] = []
        self._lines: list[str] = []
        self._count = len(dims)

    def ask(self, sizes: PlanSizes) -> None:
        """Let the function return None where what was asked of `sizes` has another answer."""
        for each in sizes.questions.values():
            left, right = self._number(each.left), self._number(each.right)
            no = "" if not each.answer else "not "
            self._lines.append(f"if {no}({left} {each.relation} {right}): return None")
        parameters = ", ".join(f"d{at}" for at in range(self._count))
        prices_hold = self._constant(sizes.prices_hold)
        self._lines.append(f"if not {prices_hold}({parameters}): return None")

    def giving(self, value: Any) -> Callable[..., Any]:
        """The function, which returns `value` where sizes are numbers."""
        code, _ = self._value(value)
        parameters = ", ".join(f"d{at}" for at in range(self._count))
        body = "".join(f"    {line}\n" for line in [*self._lines, f"return {code}"])
        text = f"def at({parameters}):\n{body}"
        exec(compile(text, "<sizes>", "exec"), self._constants)
        found: Callable[..., Any] = self._constants["at"]
        return found

    # --- numbers ---

    def _number(self, value: Any) -> str:
        if type(value) is SymInt:
            return self._known(value.key, value, self._polynomial)
        if type(value) is SizeNumber:
            return self._known(value.key, value, self._operation)
        return self._constant(value)

    def _known(self, key: str, value: Any, write: Callable[[Any], str]) -> str:
        name = self.names.get(key)
        if name is None:
            text = write(value)
            name = self.names[key] = f"t{len(self.names)}"
            self._lines.append(f"{name} = {text}")
        return name

    def _polynomial(self, value: SymInt) -> str:
        terms = []
        for atoms, n in value.terms.items():
            factors = [self._atom(each) for each in atoms]
            terms.append(" * ".join([*([f"({n})"] if n != 1 or not atoms else []), *factors]))
        return " + ".join(terms)

    def _atom(self, atom: Any) -> str:
        if type(atom) is Quotient:
            return self._known(atom.key, atom, self._quotient)
        if type(atom) is AtLeastOne:
            return f"max({self._number(atom.number)}, 1)"
        name = self.names.get(atom.key)
        if name is None:
            raise NotSizedError("something depends on where values lie in the arena")
        return name

    def _quotient(self, atom: Quotient) -> str:
        return f"{self._number(atom.numerator)} // {atom.divisor}"

    def _operation(self, value: SizeNumber) -> str:
        if value.sign == "of":
            return f"{self._constant(value.left)}({', '.join(map(self._number, value.right))})"
        return f"{self._number(value.left)} {value.sign} {self._number(value.right)}"

    # --- what has numbers in it ---

    def _constant(self, value: Any) -> str:
        if type(value) in (int, bool, type(None)):
            return f"({value!r})"
        name = self._named.get(id(value))
        if name is None:
            name = self._named[id(value)] = f"k{len(self._named)}"
            self._constants[name] = value
            self._kept.append(value)
        return name

    def _value(self, value: Any) -> tuple[str, bool]:
        """The text of a value, and whether sizes have a part in it."""
        kind = type(value)
        if kind in (SymInt, SizeNumber):
            return self._number(value), True
        if kind in _ATOMS:
            return self._constant(value), False
        parts = _parts(value)
        if parts is None:
            return self._constant(value), False
        texts = [self._value(each) for each in parts]
        if not any(is_open for _, is_open in texts):
            return self._constant(value), False
        inner = "".join(f"{text}, " for text, _ in texts)
        if kind is tuple:
            return f"({inner})", True
        if kind is list:
            return f"[{inner}]", True
        if kind is dict:
            keys = [self._constant(each) for each in value]
            pairs = "".join(f"{key}: {text}, " for key, (text, _) in zip(keys, texts))
            return f"{{{pairs}}}", True
        if isinstance(value, partial):
            raise NotSizedError("a Python function is given sizes")
        if isinstance(value, tuple) and not hasattr(kind, "_fields"):
            return f"{self._constant(kind)}(({inner}))", True
        return f"{self._constant(kind)}({inner})", True


def _parts(value: Any) -> list[Any] | None:
    """What a value is made of, in order; None where that is not looked at."""
    if isinstance(value, (tuple, list)):
        return list(value)
    if type(value) is dict:
        return list(value.values())
    if isinstance(value, partial):
        return [*value.args, *value.keywords.values()]
    fields = getattr(type(value), "__match_args__", None)
    if fields is not None and dataclasses.is_dataclass(value):
        return [getattr(value, name) for name in fields]
    return None


LARGEST_TOLD = 1 << 12
FAR_LARGER = 1 << 24
MOST_RUNS = 3


def in_words(sizes: PlanSizes) -> str:
    """For which sizes what was asked has the same answers, each by itself: "n is 5 to 16".

    Of sizes above LARGEST_TOLD only one is looked at, and the hint if it is one.
    """
    code = SizeCode(sizes.dims)
    code.ask(sizes)
    holds, told = code.giving(True), []
    hints = [dim.hint for dim in sizes.dims]
    for at, dim in enumerate(sizes.dims):

        def is_held(size: int, at: int = at) -> bool:
            try:
                return bool(holds(*hints[:at], size, *hints[at + 1 :]))
            except ArithmeticError:
                return False

        runs = _runs(list(filter(is_held, range(LARGEST_TOLD + 1)))) or [(dim.hint, dim.hint)]
        texts = [str(low) if low == high else f"{low} to {high}" for low, high in runs[:MOST_RUNS]]
        more = f" and {len(runs) - MOST_RUNS} more" if len(runs) > MOST_RUNS else ""
        if runs[-1][1] == LARGEST_TOLD and is_held(FAR_LARGER):
            more += " and larger"
        told.append(f"{dim.name} is {', '.join(texts)}{more}")
    return ", ".join(told)


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """The first and the last of each run of numbers that follow each other."""
    found: list[tuple[int, int]] = []
    for each in numbers:
        if found and found[-1][1] == each - 1:
            found[-1] = found[-1][0], each
        else:
            found.append((each, each))
    return found
