"""Open sizes of a plan: what the compiler asks of them while it makes one for many sizes.

The compiler runs once, at the sizes of some call (the hints), with `dim.SymInt`s in the place of
their numbers. What it decides by them it decides as it does for those numbers, and the question is
noted with its answer: for all sizes that give the same answers it would have gone the same way, and
made the same plan but for numbers, which are known as expressions of the sizes. What cannot do
without a number is an error, and then there is no such plan. (King, "Symbolic execution and program
testing", 1976.)

Prices are questions of another kind: which kernels are worth while is decided at one size for all
that are about as large. A plan is for all sizes at which these answers are the same, too. So what a
size gets depends on that size alone, and on none that came before.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from ...runtime.records import NamedTuple
from ..ir import Node
from ..ir.dim import Bound, Dim, Sizes, SizeScope, SymInt, is_open
from ..ir.size_number import RELATIONS, SIGNS, SizeNumber, SizeText, is_expression, is_price
from .arena import Space

_serials = itertools.count()  # what was found out once is known by keys, for all plans
MOST_QUESTIONS = 4_000
MOST_PRICES = 50_000


class NotSizedError(Exception):
    """Why a plan cannot have sizes as parameters."""


class Question(NamedTuple):
    """What was asked of sizes: the relation, its two sides, and the answer."""

    relation: str
    left: Any
    right: Any
    answer: bool


class PlanSizes(SizeScope):
    """The sizes that one plan leaves open, and what was asked of them."""

    def __init__(self) -> None:
        super().__init__()
        self.questions: dict[tuple[str, str, str], Question] = {}
        self.prices: dict[tuple[str, str, str], Question] = {}
        self._judged: dict[tuple[int, ...], bool] = {}
        self._numbers: dict[tuple[Any, ...], SizeNumber] = {}
        self._texts: dict[str, SizeText] = {}
        self._hints: dict[Dim, int] = {}
        self._typical: dict[Dim, int] = {}
        self.places: set[Dim] = set()
        """Offsets in the arena of what is taken and was not given back."""

    def new(self, name: str, hint: int, bounds: tuple[Bound, Bound] = (0, None)) -> SymInt:
        size = super().new(name, hint, bounds)
        self._hints[self.dims[-1]], self._typical[self.dims[-1]] = hint, _typical(hint)
        return size

    # --- questions ---

    def is_positive(self, size: SymInt) -> bool:
        low, high = size.bounds
        if low is not None and low > 0:
            return True
        if high is not None and high <= 0:
            return False
        return self.asked(">", size, 0)

    def is_zero(self, size: SymInt) -> bool:
        low, high = size.bounds
        if (low is not None and low > 0) or (high is not None and high < 0):
            return False
        return not self._are_places(size) and self.asked("==", size, 0)

    def _are_places(self, size: SymInt) -> bool:
        """Whether it is by how much two places are apart that are taken at the same time."""
        dims = [each for each in size.dims if each in self.places]
        return len(dims) == 2 and {size.terms.get((each,)) for each in dims} == {1, -1}

    def is_same(self, size: SymInt, other: int) -> bool:
        return size == other

    def compared(self, relation: str, size: SymInt, other: Any) -> Any:
        is_number = is_expression(other) or type(other) is float
        return self.asked(relation, size, other) if is_number else NotImplemented

    def asked(self, relation: str, left: Any, right: Any) -> bool:
        """The answer at the hints, from now on."""
        key = relation, key_of(left), key_of(right)
        found = self.questions.get(key) or self.prices.get(key)
        if found is None:
            if is_price(left) or is_price(right):
                answer = bool(RELATIONS[relation](self.typical_of(left), self.typical_of(right)))
                found = self.prices[key] = Question(relation, left, right, answer)
                return answer
            answer = bool(RELATIONS[relation](self.hint_of(left), self.hint_of(right)))
            found = self.questions[key] = Question(relation, left, right, answer)
            if len(self.questions) > MOST_QUESTIONS:
                raise NotSizedError("too much depends on the sizes")
        return found.answer

    def prices_hold(self, *numbers: int) -> bool:
        """Whether what is worth while is the same for other sizes, in the order of `dims`."""
        typical = tuple(map(_typical, numbers))
        found = self._judged.get(typical)
        if found is None:
            sizes = dict(zip(self.dims, typical))
            is_own = all(self._typical[dim] == size for dim, size in sizes.items())
            found = self._judged[typical] = is_own or self._are_alike(sizes)
        return found

    def _are_alike(self, sizes: Sizes) -> bool:
        """Whether all that was asked of prices has the same answer at other sizes."""
        if len(self.prices) > MOST_PRICES:
            return False
        known: dict[str, Any] = {}

        def number(value: Any) -> Any:
            if type(value) is SizeNumber:
                return known[value.key]
            return value.at(sizes) if is_open(value) else value

        for each in self._numbers.values():  # operands come first
            apply = each.left if each.sign == "of" else SIGNS[each.sign]
            operands = each.right if each.sign == "of" else (each.left, each.right)
            with suppress(ArithmeticError, KeyError):  # or what depends on places in the arena
                known[each.key] = apply(*map(number, operands))
        try:
            return all(
                bool(RELATIONS[each.relation](number(each.left), number(each.right))) == each.answer
                for each in self.prices.values()
            )
        except KeyError:
            return False

    def fixed(self, size: SymInt) -> int:
        hint = self.hint_of(size)
        self.asked("==", size, hint)
        return int(hint)

    def hint_of(self, value: Any) -> Any:
        """A number at the sizes of the call at hand."""
        if type(value) is SizeNumber:
            return value.hint
        return self._at(self._hints, value) if is_open(value) else value

    def typical_of(self, value: Any) -> Any:
        """A number at sizes by which all that are about as large are judged."""
        if type(value) is SizeNumber:
            return value.typical
        return self._at(self._typical, value) if is_open(value) else value

    def _at(self, sizes: Sizes, size: SymInt) -> int:
        try:
            return size.at(sizes)
        except KeyError:
            raise NotSizedError("something depends on where values lie in the arena") from None

    # --- numbers ---

    def at_least_one(self, size: Any) -> Any:
        if type(size) is SizeNumber:
            return self.called(_at_least_one, size)
        return size if self.is_positive(size) else 1

    def number(self, sign: str, left: Any, right: Any) -> Any:
        plain = (int, float, bool)
        if all(is_expression(each) or type(each) in plain for each in (left, right)):
            return self.made(sign, left, right)
        return NotImplemented

    def quotient(self, sign: str, left: Any, right: Any, what: str) -> Any:
        if type(left) is int and 0 <= left <= 1 and right > left:
            return 0 if sign == "//" else left
        return self.made(sign, left, right)

    def made(self, sign: str, left: Any, right: Any) -> SizeNumber:
        """A number that is no polynomial."""
        key = sign, key_of(left), key_of(right)
        found = self._numbers.get(key)
        if found is None:
            hint = SIGNS[sign](self.hint_of(left), self.hint_of(right))
            typical = SIGNS[sign](self.typical_of(left), self.typical_of(right))
            found = SizeNumber(self, _new_key(), sign, left, right, hint, typical)
            self._numbers[key] = found
        return found

    def called(
        self, function: Callable[..., Any], *values: Any, priced: bool = False
    ) -> SizeNumber:
        """What a function gives for numbers."""
        key = "of", function, *map(key_of, values)
        found = self._numbers.get(key)
        if found is None:
            typical = function(*map(self.typical_of, values))
            hint = typical if priced else function(*map(self.hint_of, values))
            found = SizeNumber(self, _new_key(), "of", function, values, hint, typical, priced)
            self._numbers[key] = found
        return found

    def chosen(self, price: SizeNumber) -> Any:
        """The value of a price, for who decides by it at once."""
        self.prices["==", price.key, ""] = Question("==", price, price.typical, True)
        return price.typical

    # --- texts ---

    def written(self, size: Any, what: str) -> str:
        found = self._texts.get(size.key)
        if found is None:
            found = self._texts[size.key] = SizeText(f"?{len(self._texts)}?")
            found.size = size
        return found

    @property
    def texts(self) -> dict[str, Any]:
        """What stands in texts -> the number that it stands for."""
        return {str.__str__(each): each.size for each in self._texts.values()}

    # --- what cannot be ---

    def refuse(self, size: Any, what: str) -> NoReturn:
        raise NotSizedError(f"{what} asks for the value of {size.text}")


def _typical(size: int) -> int:
    """The size by which all are judged that are about as large: up to a power of four."""
    if size <= 1:
        return size
    high = 4
    while high < size:
        high *= 4
    return high // 2


def _at_least_one(number: int) -> int:
    return max(number, 1)


def _new_key() -> str:
    return f"x{next(_serials)}"


def key_of(value: Any) -> str:
    """The same for the same number."""
    return value.key if is_expression(value) else repr(value)


class SizedSpace(Space):
    """The arena of a plan whose sizes are open: what is taken and given back, to be done later."""

    def __init__(self, sizes: PlanSizes, alignment: int, never_reused: int) -> None:
        super().__init__(alignment, never_reused)
        self.sizes = sizes
        self.events: list[tuple[Any, int]] = []
        """What is taken, as a number of bytes; or -1 and which of those is given back."""
        self._number: dict[str, int] = {}
        self.places: list[Dim] = []
        """The size of the arena, and offsets in it; they depend on all that lies there."""
        self.size: Any = self._place()

    def _place(self) -> SymInt:
        self.places.append(Dim("place", 0))
        return SymInt(self.sizes, {(self.places[-1],): 1})

    def take(self, nbytes: int) -> tuple[int, int]:
        start: Any = self._place()
        self._number[start.key] = len(self._number)
        self.events.append((nbytes, 0))
        self.sizes.places.update(start.dims)
        return start, start

    def give_back(self, start: int, end: int) -> None:
        given: Any = start
        self.events.append((-1, self._number[given.key]))
        self.sizes.places.difference_update(given.dims)

    @property
    def taken(self) -> list[Any]:
        """The bytes of each place, in order."""
        return [nbytes for nbytes, _ in self.events if type(nbytes) is not int or nbytes >= 0]

    def laid_out(self, taken: Sequence[int]) -> list[int]:
        """The size of the arena and each place in it, where these are the bytes of each."""
        space = Space(self.alignment, self.never_reused)
        places: list[tuple[int, int]] = []
        sizes = iter(taken)
        for nbytes, which in self.events:
            if type(nbytes) is int and nbytes < 0:
                space.give_back(*places[which])
            else:
                places.append(space.take(next(sizes)))
        return [space.size, *(start for start, _ in places)]


def reason_of(error: Exception) -> str:
    """Why a plan cannot have sizes as parameters, with the user's line if it is known."""
    where = ""
    frame = error.__traceback__
    while frame is not None:
        node = frame.tb_frame.f_locals.get("node")
        if isinstance(node, Node) and node.where.file:
            where = f" ({node.primitive.name} at {node.where})"
        frame = frame.tb_next
    return f"{error}{where}"
