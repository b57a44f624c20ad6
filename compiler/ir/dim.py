"""Sizes that are left open: whole numbers computed from dimensions of unknown size.

A `Dim` is an axis whose size is left open while a graph is made; a `SymInt` is a polynomial in
dims (and in quotients of them) that stands in shapes and attributes where a whole number stands.
It is no `int`, so that nothing takes its value without asking. What is asked of it is answered

- for all sizes, where that is possible: `n + 1 > 0`, `64 * n == 64 * n`;
- by the hint, the size that the dim has now, where it is an order or a divisibility. The answer
  becomes a `SizeGuard`: what is made meanwhile holds for the sizes that give the same answer;
- "differs", where two expressions are not the same. That the sizes are equal now is an accident,
  and other sizes are not to suffer from it; the guard says where it holds;
- by `SizeScope.refuse`, where the number itself is wanted.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, TypeGuard

import numpy as np

from ...runtime.records import NamedTuple

Sizes = Mapping["Dim", int]
Bound = int | None
_serials = itertools.count()


class Dim:
    """An axis of open size. `name` is for people, `hint` the size that it has now.

    `bounds` are the least and the largest size that it can have.
    """

    __slots__ = ("bounds", "hint", "key", "name")

    def __init__(self, name: str, hint: int, bounds: tuple[Bound, Bound] = (0, None)) -> None:
        self.name, self.hint, self.bounds = name, hint, bounds
        self.key = f"d{next(_serials)}"

    def __repr__(self) -> str:
        return f"Dim({self.name!r}, hint={self.hint})"

    @property
    def text(self) -> str:
        return self.name

    def at(self, sizes: Sizes) -> int:
        return sizes[self]


class Quotient:
    """`numerator // divisor`, rounded down, for a divisor above 0."""

    __slots__ = ("divisor", "key", "numerator")

    def __init__(self, numerator: SymInt, divisor: int) -> None:
        self.numerator, self.divisor = numerator, divisor
        self.key: str = f"({numerator.key}//{divisor})"

    def __eq__(self, other: object) -> bool:
        return type(other) is Quotient and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def text(self) -> str:
        return f"(({self.numerator.text}) // {self.divisor})"

    @property
    def bounds(self) -> tuple[Bound, Bound]:
        low, high = self.numerator.bounds
        return _divided(low, self.divisor), _divided(high, self.divisor)

    def at(self, sizes: Sizes) -> int:
        return self.numerator.at(sizes) // self.divisor


class AtLeastOne:
    """The larger of a number and 1."""

    __slots__ = ("key", "number")

    def __init__(self, number: SymInt) -> None:
        self.number = number
        self.key: str = f"max({number.key},1)"

    def __eq__(self, other: object) -> bool:
        return type(other) is AtLeastOne and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def text(self) -> str:
        return f"max({self.number.text}, 1)"

    @property
    def bounds(self) -> tuple[Bound, Bound]:
        high = self.number.bounds[1]
        return 1, None if high is None else max(high, 1)

    def at(self, sizes: Sizes) -> int:
        return max(self.number.at(sizes), 1)


def _divided(bound: Bound, divisor: int) -> Bound:
    return None if bound is None else bound // divisor


Atom = Dim | Quotient | AtLeastOne
Monomial = tuple[Atom, ...]
"""A product; () is the number 1."""


class SizeGuard(NamedTuple):
    """What was taken for granted about sizes: `size` is above 0 (">"), is 0 ("=="), is not ("!=").

    `where` is the user's line that it was asked at.
    """

    size: SymInt
    relation: str
    where: str

    def holds(self, sizes: Sizes) -> bool:
        return bool(_RELATIONS[self.relation](self.size.at(sizes), 0))

    def __str__(self) -> str:
        constant = self.size.constant
        left = self.size - constant
        return f"{left.text} {self.relation} {-constant}"


_RELATIONS = {">": operator.gt, "==": operator.eq, "!=": operator.ne}


class SizeScope:
    """Where the sizes of one trace belong: what was asked of them, and what they cannot answer."""

    def __init__(self) -> None:
        self.dims: list[Dim] = []
        self.guards: dict[tuple[str, str], SizeGuard] = {}

    def new(self, name: str, hint: int, bounds: tuple[Bound, Bound] = (0, None)) -> SymInt:
        """A size that is open from now on."""
        dim = Dim(name, hint, bounds)
        self.dims.append(dim)
        return SymInt(self, {(dim,): 1})

    @property
    def hints(self) -> Sizes:
        return {dim: dim.hint for dim in self.dims}

    def hold(self, sizes: Sizes) -> bool:
        """Whether what was made here holds for sizes."""
        return all(guard.holds(sizes) for guard in self.guards.values())

    def is_positive(self, size: SymInt) -> bool:
        """Whether `size` is above 0, from now on."""
        self.check(size)
        low, high = size.bounds
        if low is not None and low > 0:
            return True
        if high is not None and high <= 0:
            return False
        answer = size.at(self.hints) > 0
        self._assume(size if answer else _plain(1 - size), ">")
        return answer

    def is_zero(self, size: SymInt) -> bool:
        """Whether `size` is 0, from now on. Equality by accident is none."""
        self.check(size)
        known = self._without_choices(size)
        if not is_open(known):
            return bool(known == 0)
        size = known
        low, high = size.bounds
        if (low is not None and low > 0) or (high is not None and high < 0):
            return False
        for key in (size.key, _plain(-size).key):
            if (key, "==") in self.guards:
                return True
        answer = self.may_be_equal(size) and size.at(self.hints) == 0
        self._assume(size, "==" if answer else "!=")
        return answer

    def _without_choices(self, size: SymInt) -> Any:
        """The same with numbers in the place of what is the larger of them and 1, from now on."""
        if not any(type(atom) is AtLeastOne for atoms in size.terms for atom in atoms):
            return size
        total: Any = 0
        for atoms, n in size.terms.items():
            product: Any = n
            for atom in atoms:
                if type(atom) is not AtLeastOne:
                    product = product * SymInt(self, {(atom,): 1})
                elif self.is_positive(atom.number):
                    product = product * atom.number
            total = total + product
        return total

    def may_be_equal(self, size: SymInt) -> bool:
        """Whether that a size is 0 now is no accident."""
        return size.has_quotients

    def at_least_one(self, size: SymInt) -> Any:
        """The larger of `size` and 1; nothing is taken for granted."""
        low, _ = size.bounds
        return size if low is not None and low > 0 else SymInt(self, {(AtLeastOne(size),): 1})

    def _assume(self, size: SymInt, relation: str) -> None:
        key = size.key, relation
        if key not in self.guards:
            self.guards[key] = SizeGuard(size, relation, self.where())

    # What those who trace know better.

    def check(self, size: SymInt) -> None:
        """An error where nothing can be asked any more."""

    def where(self) -> str:
        """The user's line that asks."""
        return ""

    def refuse(self, size: SymInt, what: str) -> NoReturn:
        """Give up, as `what` cannot do without the number."""
        raise TypeError(f"{what} of an open size")

    def may_hash(self, size: SymInt) -> None:
        """Refuse where a hash serves a look-up among numbers."""

    def number(self, sign: str, left: Any, right: Any) -> Any:
        """What is no whole number, such as a size divided by another."""
        return NotImplemented

    def quotient(self, sign: str, left: Any, right: Any, what: str) -> Any:
        """What is no polynomial: a quotient or remainder by a size."""
        return self.refuse(right if is_open(right) else left, what)

    def compared(self, relation: str, size: SymInt, other: Any) -> Any:
        """The order of a size and what is no whole number."""
        if isinstance(other, (float, complex)):
            self.refuse(size, "a comparison")
        return NotImplemented

    def is_same(self, size: SymInt, other: int) -> bool:
        """Whether they are equal whatever open sizes are; takes nothing for granted."""
        return is_open(other) and size.terms == other.terms

    def agree(self, size: SymInt, other: Any) -> bool:
        """Whether two sizes that are not the same, and would have to be, are from now on."""
        return False

    def fixed(self, size: SymInt) -> int:
        """The number itself, which is the same from now on."""
        self.refuse(size, "a number")

    def written(self, size: SymInt, what: str) -> str:
        """What stands for a size in a text."""
        self.refuse(size, what)


def _plain(value: Any) -> SymInt:
    assert type(value) is SymInt
    return value


def _needs_value(name: str) -> Any:
    def method(self: SymInt, *args: Any) -> Any:
        self.scope.refuse(self, name)

    return method


def _no_whole_number(sign: str, reflected: bool = False) -> Any:
    def method(self: SymInt, other: Any) -> Any:
        return self.scope.number(sign, *((other, self) if reflected else (self, other)))

    return method


class SymInt:
    """A whole number computed from open sizes: the sum of `terms`, products with their factors.

    >>> scope = SizeScope()
    >>> n = scope.new("n", 8)
    >>> (n * 64 // 16 + 1).text, n * 2 == n + n, (3 * n).at({scope.dims[0]: 5})
    ('4 * n + 1', True, 15)
    >>> n > 4, [str(guard) for guard in scope.guards.values()]
    (True, ['n > 4'])
    """

    __slots__ = ("_key", "scope", "terms")

    # isinstance(n, int) holds, yet C code that wants an int asks __index__ and is noticed.
    __class__ = property(lambda self: int)
    __array_ufunc__ = None  # NumPy's numbers leave arithmetic to it

    def __init__(self, scope: SizeScope, terms: Mapping[Monomial, int]) -> None:
        self.scope, self.terms = scope, terms
        self._key = ""

    @property
    def key(self) -> str:
        """The same for the same number, in all of the process."""
        if not self._key:
            terms = self.terms.items()
            parts = sorted(("*".join(each.key for each in atoms), n) for atoms, n in terms)
            self._key = "+".join(f"{n}*{atoms}" for atoms, n in parts)
        return self._key

    # --- what it is ---

    @property
    def constant(self) -> int:
        return self.terms.get((), 0)

    @property
    def dims(self) -> frozenset[Dim]:
        """The open sizes that it is computed from."""
        atoms = [atom for atoms in self.terms for atom in atoms]
        own = [each for each in atoms if type(each) is Dim]
        inner = [each.numerator.dims for each in atoms if type(each) is Quotient]
        inner += [each.number.dims for each in atoms if type(each) is AtLeastOne]
        return frozenset(own).union(*inner)

    @property
    def single(self) -> Dim | None:
        """The dim that it is, and nothing else."""
        ((atoms, n), *others) = self.terms.items()
        is_single = not others and n == len(atoms) == 1 and type(atoms[0]) is Dim
        return atoms[0] if is_single else None  # type: ignore[return-value]

    @property
    def has_quotients(self) -> bool:
        return any(type(atom) is Quotient for atoms in self.terms for atom in atoms)

    @property
    def text(self) -> str:
        """For people, such as "2 * n + 1"; `str` would be the text of a number."""
        parts = [_term(atoms, n) for atoms, n in self.terms.items() if atoms]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts).replace("+ -", "- ")

    @property
    def bounds(self) -> tuple[Bound, Bound]:
        """The least and the largest value that it can have, where they are known."""
        low: Bound = 0
        high: Bound = 0
        for atoms, n in self.terms.items():
            least, most = _product_bounds(atoms)
            if n < 0:
                least, most = most, least
            low = None if low is None or least is None else low + n * least
            high = None if high is None or most is None else high + n * most
        return low, high

    def at(self, sizes: Sizes) -> int:
        """The number, where the sizes of dims are known."""
        total = 0
        for atoms, n in self.terms.items():
            for atom in atoms:
                n *= atom.at(sizes)
            total += n
        return total

    # --- arithmetic ---

    def _of(self, pairs: Iterable[tuple[Monomial, int]]) -> Any:
        """The sum of terms; a plain int where nothing of it is open."""
        terms: dict[Monomial, int] = {}
        for atoms, n in pairs:
            terms[atoms] = terms.get(atoms, 0) + n
        terms = {atoms: n for atoms, n in terms.items() if n}
        if terms.keys() <= {()}:
            return terms.get((), 0)
        return SymInt(self.scope, terms)

    def __add__(self, other: Any) -> Any:
        if type(other) is int:
            if not other:
                return self
            rest = {**self.terms, (): self.constant + other}
            if not rest[()]:
                del rest[()]
            return SymInt(self.scope, rest)
        terms = _terms(other)
        if terms is None:
            return self._other("+", self, other)
        return self._of((*self.terms.items(), *terms.items()))

    def __radd__(self, other: Any) -> Any:
        return self._other("+", other, self) if _terms(other) is None else self + other

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Any:
        return self

    def __sub__(self, other: Any) -> Any:
        return self._other("-", self, other) if _terms(other) is None else self + -other

    def __rsub__(self, other: Any) -> Any:
        return self._other("-", other, self) if _terms(other) is None else -self + other

    def __mul__(self, other: Any) -> Any:
        if type(other) is int:
            if other == 1 or not other:
                return self if other else 0
            return SymInt(self.scope, {atoms: n * other for atoms, n in self.terms.items()})
        terms = _terms(other)
        if terms is None:
            return self._other("*", self, other)
        return self._of(
            (tuple(sorted(a + b, key=_key)), n * m)
            for a, n in self.terms.items()
            for b, m in terms.items()
        )

    def __rmul__(self, other: Any) -> Any:
        return self._other("*", other, self) if _terms(other) is None else self * other

    def __pow__(self, other: Any) -> Any:
        if type(other) is not int or not 0 <= other <= 8:
            self.scope.refuse(self, "a power")
        result: Any = 1
        for _ in range(other):
            result = result * self
        return result

    def __floordiv__(self, other: Any) -> Any:
        if type(other) is SymInt:
            return self._by_open(other)
        if _terms(other) is None:
            return self._other("//", self, other)
        divisor = int(other)
        if divisor < 0:
            return -self // -divisor
        if divisor == 0:
            raise ZeroDivisionError("integer division or modulo by zero")
        whole = self._of((atoms, n // divisor) for atoms, n in self.terms.items())
        rest = self._of((atoms, n % divisor) for atoms, n in self.terms.items())
        if type(rest) is not SymInt:
            return whole + rest // divisor
        return whole + SymInt(self.scope, {(Quotient(rest, divisor),): 1})

    def __rfloordiv__(self, other: Any) -> Any:
        if _terms(other) is None:
            return self._other("//", other, self)
        return self.scope.quotient("//", other, self, "a division")

    def _by_open(self, other: SymInt) -> Any:
        """Divided by what is open, where that leaves no rest."""
        if self.scope.is_zero(other):
            raise ZeroDivisionError("integer division or modulo by zero")
        first = next(iter(other.terms))
        guess = self._of((_without(atoms, first), n // other.terms[first])
                         for atoms, n in self.terms.items() if _divides(first, atoms))  # fmt: skip
        if len(other.terms) == 1 or type(guess) is int:
            difference = self - guess * other
            if type(difference) is int and difference == 0:
                return guess
        return self.scope.quotient("//", self, other, "a division by a size")

    def __mod__(self, other: Any) -> Any:
        if _terms(other) is None:
            return self._other("%", self, other)
        return self - (self // other) * other

    def __rmod__(self, other: Any) -> Any:
        if _terms(other) is None:
            return self._other("%", other, self)
        return self.scope.quotient("%", other, self, "a remainder")

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def _other(self, sign: str, left: Any, right: Any) -> Any:
        return self.scope.number(sign, left, right)

    __truediv__ = _no_whole_number("/")
    __rtruediv__ = _no_whole_number("/", reflected=True)

    # --- questions ---

    def __hash__(self) -> int:
        self.scope.may_hash(self)
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        if type(other) is SymInt and other.terms == self.terms:
            return True
        if _terms(other) is None:
            found: bool = self.scope.compared("==", self, other)
            return found
        difference = self - other
        return self.scope.is_zero(difference) if is_open(difference) else bool(difference == 0)

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def _is_above(self, other: Any, least: int) -> bool:
        """Whether it is at least `least` above `other`."""
        difference = self - other - (least - 1)
        return difference > 0 if type(difference) is int else self.scope.is_positive(difference)

    def _ordered(self, relation: str, other: Any) -> Any:
        if _terms(other) is None:
            return self.scope.compared(relation, self, other)
        above = self._is_above(other, int(relation in (">", "<=")))
        return above if relation in (">", ">=") else not above

    def __gt__(self, other: Any) -> Any:
        return self._ordered(">", other)

    def __ge__(self, other: Any) -> Any:
        return self._ordered(">=", other)

    def __lt__(self, other: Any) -> Any:
        return self._ordered("<", other)

    def __le__(self, other: Any) -> Any:
        return self._ordered("<=", other)

    def __bool__(self) -> bool:
        return not self.scope.is_zero(self)

    def __str__(self) -> str:
        return self.scope.written(self, "__str__")

    def __repr__(self) -> str:
        return self.scope.written(self, "__repr__")

    def __format__(self, spec: str) -> str:
        return self.scope.written(self, "__format__")

    for _name in (
        "index", "int", "float", "complex", "round", "floor", "ceil", "trunc", "and", "rand", "or",
        "ror", "xor", "rxor", "lshift", "rlshift", "rshift", "rrshift", "invert", "rpow",
        "reduce",
    ):  # fmt: skip
        locals()[f"__{_name}__"] = _needs_value(f"__{_name}__")
    for _name in ("bit_length", "to_bytes", "as_integer_ratio", "conjugate", "is_integer"):
        locals()[_name] = _needs_value(_name)
    del _name


def _terms(value: Any) -> Mapping[Monomial, int] | None:
    """A whole number as terms; None for what is none."""
    if type(value) is SymInt:
        return value.terms
    if type(value) in (int, bool) or isinstance(value, np.integer):
        return {(): int(value)}
    return None


def _key(atom: Atom) -> str:
    return atom.key


def _term(atoms: Monomial, n: int) -> str:
    text = " * ".join(atom.text for atom in atoms)
    return text if n == 1 else f"-{text}" if n == -1 else f"{n} * {text}"


def _product_bounds(atoms: Monomial) -> tuple[Bound, Bound]:
    """Of a product of factors, none of which can be below 0."""
    low, high = 1, 1 if not atoms else None
    for atom in atoms:
        least, most = atom.bounds
        if least is None or least < 0:
            return None, None
        low *= least
        high = most if len(atoms) == 1 else None
    return low, high


def _divides(divisor: Monomial, atoms: Monomial) -> bool:
    return all(atoms.count(each) >= divisor.count(each) for each in divisor)


def _without(atoms: Monomial, divisor: Monomial) -> Monomial:
    left = list(atoms)
    for each in divisor:
        left.remove(each)
    return tuple(left)


def is_open(size: object) -> TypeGuard[SymInt]:
    """Whether a size is not known."""
    return type(size) is SymInt


def solved(sizes: Iterable[tuple[SymInt, int]]) -> dict[Dim, int]:
    """The sizes of dims, where those of `sizes` are these numbers, as far as they tell.

    Each is found from the first that tells it, by itself or beside dims that others tell, rounded
    down. So they need not give the numbers: `at` says what they give.
    """
    found: dict[Dim, int] = {}
    given = list(sizes)
    for size, number in given:
        single = size.single
        if single is not None:
            found.setdefault(single, number)
    known = -1
    while known < len(found):
        known = len(found)
        for size, number in given:
            unknown = [dim for dim in size.dims if dim not in found]
            if len(unknown) != 1:
                continue
            (dim,) = unknown
            at = [size.at({**found, dim: each}) for each in range(3)]
            step = at[1] - at[0]
            if step and at[2] - at[1] == step:  # it is linear
                found[dim] = (number - at[0]) // step
    return found


def size_text(size: Any) -> str:
    """A size in the words of a message."""
    return size.text if type(size) is SymInt else str(size)


def fixed(size: Any) -> int:
    """A size as a plain number: of what is made then, it is the same in all."""
    return size.scope.fixed(size) if type(size) is SymInt else size


def size_at(value: Any, sizes: Sizes) -> Any:
    """A size as a plain number, where the sizes of dims are known."""
    return value.at(sizes) if type(value) is SymInt else value
