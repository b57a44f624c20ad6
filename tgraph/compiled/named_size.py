"""Names for sizes of axes that vary: `tg.Dim`, for `compile(..., dynamic=...)`."""

from __future__ import annotations

from typing import Any


class NamedSizes:
    """A whole number computed from named sizes; `text` is what Python reads."""

    __slots__ = ("dims", "text")

    def __init__(self, text: str, dims: tuple[Dim, ...]) -> None:
        self.text, self.dims = text, dims

    def _joined(self, sign: str, other: Any, reflected: bool = False) -> Any:
        if isinstance(other, NamedSizes):
            text, dims = other.text, other.dims
        elif type(other) is int:
            text, dims = str(other), ()
        else:
            return NotImplemented
        left, right = (text, self.text) if reflected else (self.text, text)
        return NamedSizes(f"({left} {sign} {right})", self.dims + dims)

    def __add__(self, other: Any) -> Any:
        return self._joined("+", other)

    def __radd__(self, other: Any) -> Any:
        return self._joined("+", other, reflected=True)

    def __sub__(self, other: Any) -> Any:
        return self._joined("-", other)

    def __rsub__(self, other: Any) -> Any:
        return self._joined("-", other, reflected=True)

    def __mul__(self, other: Any) -> Any:
        return self._joined("*", other)

    def __rmul__(self, other: Any) -> Any:
        return self._joined("*", other, reflected=True)

    def __floordiv__(self, other: Any) -> Any:
        return self._joined("//", other)

    def __repr__(self) -> str:
        return self.text


class Dim(NamedSizes):
    """A size that varies from call to call, by a name: for ``compile(..., dynamic=...)``.

    Axes of one name have one size. `min` and `max` are the least and the largest that may come;
    questions that they settle are asked of no call. Sums, differences and products of dims and
    whole numbers say how axes depend on each other. ValueError where no size is in the range.

    >>> import tgraph as tg
    >>> half = tg.Dim("half", min=1, max=512)
    >>> def swapped(x):
    ...     half = x.shape[0] // 2
    ...     return tg.cat([x[half:], x[:half]])
    >>> swap = tg.compile(swapped, dynamic={"x": {0: 2 * half}})
    >>> swap(tg.arange(4)), swap(tg.arange(2)), len(swap.compiles)
    (tensor([2, 3, 0, 1]), tensor([1, 0]), 1)
    >>> swap(tg.arange(3))
    Traceback (most recent call last):
        ...
    ValueError: swapped: axis 0 of argument `x`, ..., but no whole number makes it 3; called at ...
    """

    __slots__ = ("max", "min", "name")

    def __init__(self, name: str, min: int = 0, max: int | None = None) -> None:
        if not (isinstance(name, str) and name.isidentifier()):
            raise ValueError(f"Dim(): a name such as 'batch' is expected, not {name!r}")
        if type(min) is not int or not (max is None or type(max) is int):
            raise TypeError(f"Dim({name!r}): min and max must be whole numbers, not {min}, {max}")
        if min < 0 or (max is not None and max < min):
            raise ValueError(f"Dim({name!r}): there is no size from {min} to {max}")
        self.name, self.min, self.max = name, min, max
        super().__init__(name, (self,))

    def __repr__(self) -> str:
        low = f", min={self.min}" if self.min else ""
        high = "" if self.max is None else f", max={self.max}"
        return f"Dim({self.name!r}{low}{high})"

    def __reduce__(self) -> Any:
        return Dim, (self.name, self.min, self.max)
