"""Integer index expressions of a kernel: affine in loop axes, with quotients and remainders.

An `Index` is const + sum of coefficient * atom. An atom is a loop `Axis`, the `Quotient` or
`Remainder` of an index by a positive constant (floor semantics), or `Loaded`: a position that is
itself data. Every atom knows its range, which is what simplification lives on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...runtime.records import record
from ..ir.size_number import common_factor


@record()
class Axis:
    """A loop variable: 0 <= axis < size."""

    name: str
    size: int

    def __str__(self) -> str:
        return self.name


class Index:
    """An immutable integer expression in normal form: equal expressions compare equal."""

    __slots__ = ("_bounds", "_data_atoms", "_hash", "_loop_atoms", "const", "terms")

    def __init__(self, terms: Mapping[Any, int], const: int = 0) -> None:
        self.terms = terms
        self.const = const
        self._hash: int | None = None
        self._bounds: tuple[int, int] | None = None
        self._loop_atoms: frozenset[Axis] | None = None
        self._data_atoms: tuple[Loaded, ...] | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.const, frozenset(self.terms.items())))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Index) and self.const == other.const and self.terms == other.terms

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return Index(self.terms, self.const + other) if other else self
        if not other.terms:
            return self + other.const
        if not self.terms:
            return other + self.const
        terms = dict(self.terms)
        for atom, coefficient in other.terms.items():
            total = terms.get(atom, 0) + coefficient
            if total:
                terms[atom] = total
            else:
                del terms[atom]
        return Index(terms, self.const + other.const)

    def __mul__(self, factor: int) -> Index:
        if factor == 1:
            return self
        if factor == 0:
            return ZERO
        return Index({atom: c * factor for atom, c in self.terms.items()}, self.const * factor)

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other: Index | int) -> Index:
        return self + (-other)

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest value it can take."""
        if self._bounds is None:
            low = high = self.const
            for atom, coefficient in self.terms.items():
                least, most = atom_bounds(atom)
                low += coefficient * (least if coefficient > 0 else most)
                high += coefficient * (most if coefficient > 0 else least)
            self._bounds = (low, high)
        return self._bounds

    def _find_atoms(self) -> None:
        loops: set[Axis] = set()
        positions: dict[Loaded, None] = {}
        pending = [self]
        while pending:
            for atom in pending.pop().terms:
                if isinstance(atom, Axis):
                    loops.add(atom)
                elif isinstance(atom, Loaded):
                    positions[atom] = None
                else:
                    pending.append(atom.index)
        self._loop_atoms, self._data_atoms = frozenset(loops), tuple(positions)

    def __floordiv__(self, divisor: int) -> Index:
        if divisor == 1:
            return self
        whole, rest = self._split(divisor)
        low, high = rest.bounds
        if low // divisor == high // divisor:
            return whole + low // divisor
        common = common_factor(divisor, *rest.terms.values())
        if common > 1:
            smaller = Index(
                {atom: c // common for atom, c in rest.terms.items()}, rest.const // common
            )
            return whole + smaller // (divisor // common)
        if len(rest.terms) == 1 and not rest.const:
            ((atom, coefficient),) = rest.terms.items()
            if isinstance(atom, Quotient) and coefficient == 1:
                return whole + atom.index // (atom.divisor * divisor)
        return whole + Index({Quotient(rest, divisor): 1})

    def __mod__(self, divisor: int) -> Index:
        if divisor == 1:
            return ZERO
        _, rest = self._split(divisor)
        low, high = rest.bounds
        if low // divisor == high // divisor:
            return rest - (low // divisor) * divisor
        common = common_factor(divisor, *rest.terms.values())
        if common > 1:
            offset = rest.const % common
            smaller = Index(
                {atom: c // common for atom, c in rest.terms.items()}, rest.const // common
            )
            return (smaller % (divisor // common)) * common + offset
        return Index({Remainder(rest, divisor): 1})

    def _split(self, divisor: int) -> tuple[Index, Index]:
        """whole, rest with self == whole * divisor + rest, multiples of the divisor in whole."""
        whole: dict[Any, int] = {}
        rest: dict[Any, int] = {}
        for atom, coefficient in self.terms.items():
            if coefficient % divisor == 0:
                whole[atom] = coefficient // divisor
            else:
                rest[atom] = coefficient
        constant, remainder = divmod(self.const, divisor)
        return Index(whole, constant), Index(rest, remainder)

    def __str__(self) -> str:
        parts = [
            str(atom) if c == 1 else f"{c}*{atom}"
            for atom, c in sorted(self.terms.items(), key=lambda item: (-item[1], str(item[0])))
        ]
        if self.const or not parts:
            parts.append(str(self.const))
        return " + ".join(parts).replace("+ -", "- ")

    __repr__ = __str__


@record()
class Quotient:
    """floor(index / divisor)"""

    index: Index
    divisor: int

    def __str__(self) -> str:
        return f"({self.index})//{self.divisor}"


@record()
class Remainder:
    """index - divisor * floor(index / divisor)"""

    index: Index
    divisor: int

    def __str__(self) -> str:
        return f"({self.index})%{self.divisor}"


@record()
class Loaded:
    """A position read from data: `key` names the scalar value, which lies in [0, size)."""

    key: Any
    size: int

    def __str__(self) -> str:
        return f"@{self.key}"


@record()
class InRange:
    """The condition low <= index < high."""

    index: Index
    low: int
    high: int

    def __str__(self) -> str:
        return f"{self.low} <= {self.index} < {self.high}"


@record()
class Divides:
    """The condition index % divisor == 0."""

    index: Index
    divisor: int

    def __str__(self) -> str:
        return f"{self.divisor} | {self.index}"


def in_range(index: Index, low: int, high: int) -> InRange:
    """low <= index < high, without the factor that all terms have in common.

    >>> print(in_range(of_axis(Axis("i", 4)) * 2 - 1, 0, 5))
    1 <= i < 3
    """
    factor = common_factor(*index.terms.values())
    if factor < 2:
        return InRange(index, low, high)
    terms = {atom: coefficient // factor for atom, coefficient in index.terms.items()}
    low, high = (-((index.const - each) // factor) for each in (low, high))
    return InRange(Index(terms), low, high)


Condition = InRange | Divides
Coords = tuple[Index, ...]
Mask = tuple[Condition, ...]
ZERO = Index({})


def constant(value: int) -> Index:
    return Index({}, value)


def of_axis(axis: Axis) -> Index:
    """The index that is one axis; an axis of size 1 is always 0."""
    return Index({axis: 1}) if axis.size != 1 else ZERO


def atom_bounds(atom: Any) -> tuple[int, int]:
    """The least and the greatest value of an atom."""
    if isinstance(atom, (Axis, Loaded)):
        return 0, max(atom.size - 1, 0)
    low, high = atom.index.bounds
    if isinstance(atom, Quotient):
        return low // atom.divisor, high // atom.divisor
    return 0, atom.divisor - 1


def substitute(index: Index, replacements: Mapping[Any, Index]) -> Index:
    """`index` with atoms replaced, inside quotients and remainders too."""
    result = constant(index.const)
    for atom, coefficient in index.terms.items():
        result = result + _replace(atom, replacements) * coefficient
    return result


def _replace(atom: Any, replacements: Mapping[Any, Index]) -> Index:
    found = replacements.get(atom)
    if found is not None:
        return found
    if isinstance(atom, Quotient):
        return substitute(atom.index, replacements) // atom.divisor
    if isinstance(atom, Remainder):
        return substitute(atom.index, replacements) % atom.divisor
    return Index({atom: 1})


def flatten(coords: Sequence[Index], strides: Sequence[int]) -> Index:
    """The linear offset of coordinates."""
    result = ZERO
    for coordinate, stride in zip(coords, strides, strict=True):
        result = result + coordinate * stride
    return _recombined(result)


def _recombined(index: Index) -> Index:
    """The same with quotients and remainders put together: d * (e // d) + e % d is e."""
    for atom, coefficient in index.terms.items():
        if not isinstance(atom, Remainder):
            continue
        quotient = atom.index // atom.divisor
        if len(quotient.terms) != 1 or quotient.const:
            continue
        ((whole, times),) = quotient.terms.items()
        if times == 1 and index.terms.get(whole) == coefficient * atom.divisor:
            rest = {each: c for each, c in index.terms.items() if each not in (atom, whole)}
            return _recombined(Index(rest, index.const) + atom.index * coefficient)
    return index


def unflatten(offset: Index, shape: Sequence[int]) -> tuple[Index, ...]:
    """Row-major coordinates in `shape` of a linear offset known to lie inside it."""
    coords: list[Index] = []
    for axis in range(len(shape) - 1, -1, -1):
        size = shape[axis]
        if size == 1:
            coords.append(ZERO)
        elif axis == 0:
            coords.append(offset)
        else:
            coords.append(offset % size)
            offset = offset // size
    return tuple(reversed(coords))


def reshape_coords(
    coords: Sequence[Index], shape: Sequence[int], target: Sequence[int]
) -> tuple[Index, ...]:
    """Coordinates in `shape` as coordinates of the same element in `target`.

    Runs of axes with equal products are treated apart, so that a reshape that only touches some
    axes leaves the others alone.
    """
    result: list[Index] = []
    at = to = 0
    while at < len(shape) or to < len(target):
        begin, begin_to = at, to
        have = want = 1
        while True:
            if have == want and (at > begin or to > begin_to) and have != 1:
                break
            if have <= want and at < len(shape):
                have *= shape[at]
                at += 1
            elif to < len(target):
                want *= target[to]
                to += 1
            else:
                break
        while at < len(shape) and shape[at] == 1 and have == want:
            at += 1
        while to < len(target) and target[to] == 1 and have == want:
            to += 1
        result += _regroup(coords[begin:at], shape[begin:at], target[begin_to:to])
    return tuple(result)


def _regroup(
    coords: Sequence[Index], shape: Sequence[int], target: Sequence[int]
) -> tuple[Index, ...]:
    if tuple(shape) == tuple(target):
        return tuple(coords)
    offset = ZERO
    for coordinate, size in zip(coords, shape, strict=True):
        offset = offset * size + coordinate
    return unflatten(offset, target)


def loop_atoms(index: Index) -> frozenset[Axis]:
    """Every axis that `index` depends on, except through data."""
    if index._loop_atoms is None:
        index._find_atoms()
    return index._loop_atoms or frozenset()


def data_atoms(index: Index) -> tuple[Loaded, ...]:
    """Every position read from data that `index` depends on."""
    if index._data_atoms is None:
        index._find_atoms()
    return index._data_atoms or ()


def positions_in(coords: Iterable[Index], mask: Mask = ()) -> list[Any]:
    """The keys of all positions read from data that coordinates and conditions depend on."""
    found = [atom.key for index in coords for atom in data_atoms(index)]
    for condition in mask:
        found += [atom.key for atom in data_atoms(condition.index)]
    return found
