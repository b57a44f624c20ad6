"""What `compile(..., dynamic=...)` says of axes, checked and found among the arguments."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..compiler.ir.dim import Dim, SizeScope, SymInt, is_open, solved
from ..core.provenance import user_site
from ..core.tensor import Tensor
from ..tracing.record_call import called
from .named_size import Dim as NamedDim
from .named_size import NamedSizes

Place = tuple[int, int]
"""The position of a tensor among the leaves of the arguments, and an axis of it."""

Open = Mapping[Place, SymInt | None]
"""Axes whose size is open: what it is computed from, or None where it has no name."""

_EVERY = "every axis"


class DynamicAxes:
    """`dynamic` as paths of arguments -> axes -> their sizes, of the dims of a `scope` of its own.

    `is_all` says that every axis of every tensor is open. TypeError or ValueError where `dynamic`
    cannot be meant.
    """

    def __init__(self, function: Callable[..., Any], dynamic: Any) -> None:
        self.name = getattr(function, "__name__", type(function).__name__)
        self.is_all = dynamic is True
        self.dims: dict[str, SymInt] = {}
        self._scope = SizeScope()
        self._texts: dict[str, str] = {}  # key of a size -> as the user wrote it
        self._axes: dict[str, Mapping[int, Any] | str] = {}
        if dynamic is None or type(dynamic) is bool:
            return
        if not isinstance(dynamic, Mapping):
            raise TypeError(
                f"compile(): dynamic must be True, or name arguments, as {{'x': 0}} does; "
                f"it is {dynamic!r}"
            )
        for name, given in dynamic.items():
            if not isinstance(name, str):
                raise TypeError(f"compile(): dynamic names arguments, not {name!r}")
            _check_name(function, name)
            self._add(name, given)

    def __bool__(self) -> bool:
        return self.is_all or bool(self._axes)

    # --- what is said ---

    def _add(self, path: str, given: Any) -> None:
        if given is True:
            self._axes[path] = _EVERY
        elif type(given) is int:
            self._axes[path] = {given: None}
        elif isinstance(given, (tuple, list)) and all(type(axis) is int for axis in given):
            self._axes[path] = dict.fromkeys(given)
        elif isinstance(given, Mapping) and all(type(axis) is int for axis in given):
            self._axes[path] = {axis: self._size(path, axis, size) for axis, size in given.items()}
        elif isinstance(given, Mapping) and all(isinstance(key, str) for key in given):
            for key, inner in given.items():
                self._add(f"{path}[{key!r}]", inner)
        else:
            raise TypeError(
                f"compile(): dynamic[{path!r}] must be an axis or several, such as 0 or (0, 1), "
                f"or say their sizes, such as {{0: 'batch'}}, not {given!r}"
            )

    def _size(self, path: str, axis: int, given: Any) -> SymInt | None:
        """What `given` says of an axis: a name, an expression of names; True for any size."""
        if given is True:
            return None
        where = f"dynamic[{path!r}][{axis}]"
        if isinstance(given, NamedSizes):
            for dim in given.dims:
                self._declare(dim)
        elif not isinstance(given, str):
            raise TypeError(
                f"compile(): {where} must be the name of a size, such as 'batch' or '2 * half', "
                f"a tg.Dim, or True for any size, not {given!r}"
            )
        text = given.text if isinstance(given, NamedSizes) else given
        try:
            size = self._computed(ast.parse(text, mode="eval").body)
        except (SyntaxError, ValueError) as error:
            raise ValueError(
                f"compile(): {where} is {text!r}, which is no sum, difference or product of names "
                f"and whole numbers ({error})"
            ) from None
        if not is_open(size):
            raise ValueError(f"compile(): {where} is {text!r}, which does not vary: leave it out")
        self._texts[size.key] = _without_brackets(text)
        return size

    def _declare(self, given: NamedDim) -> Dim:
        bounds = given.min, given.max
        known = self.dims.get(given.name)
        if known is None:
            known = self.dims[given.name] = self._scope.new(given.name, 0, bounds)
        (dim,) = known.dims
        if dim.bounds == (0, None):  # so far it was only named
            dim.bounds = bounds
        if bounds not in ((0, None), dim.bounds):
            raise ValueError(
                f"compile(): two sizes are called {given.name!r}, one {_range(*dim.bounds)}, one "
                f"{_range(*bounds)}"
            )
        return dim

    def _computed(self, node: ast.expr) -> Any:
        match node:
            case ast.Name():
                self._declare(NamedDim(node.id))
                return self.dims[node.id]
            case ast.Constant() if type(node.value) is int:
                return node.value
            case ast.BinOp():
                left, right = self._computed(node.left), self._computed(node.right)
                match node.op:
                    case ast.Add():
                        return left + right
                    case ast.Sub():
                        return left - right
                    case ast.Mult():
                        return left * right
                    case ast.FloorDiv() if type(right) is int and right > 0:
                        return left // right
        raise ValueError(f"`{ast.unparse(node)}`")

    # --- what is given ---

    def places(self, leaves: Sequence[Any], names: Sequence[str]) -> dict[Place, SymInt | None]:
        """Where the open axes are; an argument that is not given or no tensor has none.

        IndexError for a tensor that does not have the axis.
        """
        found: dict[Place, SymInt | None] = {}
        tensors = [at for at, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        if self.is_all:
            return {place: None for at in tensors for place in _axes_of(at, leaves[at])}
        for path, axes in self._axes.items():
            for at in tensors:
                name = names[at]
                if name != path and not name.startswith((f"{path}[", f"{path}.")):
                    continue
                if axes is _EVERY:
                    found.update(dict.fromkeys(_axes_of(at, leaves[at])))
                    continue
                assert not isinstance(axes, str)
                for axis, size in axes.items():
                    found[at, _checked_axis(name, axis, leaves[at])] = size
        return found

    def sizes(self, places: Open, leaves: Sequence[Any]) -> dict[Dim, int]:
        """The sizes of dims, from those of the axes that they are found at."""
        return solved(
            (size, leaves[at].shape[axis])
            for (at, axis), size in places.items()
            if size is not None
        )

    def check(self, places: Open, leaves: Sequence[Any], names: Sequence[str]) -> None:
        """ValueError where a call has other sizes than were said to come."""
        found = self.sizes(places, leaves)
        told: dict[Dim, str] = {}  # where the size of a dim comes from
        for (at, axis), size in places.items():
            if size is None:
                continue
            shape = list(leaves[at].shape)
            here = f"axis {axis} of argument `{names[at]}`, which has the shape {shape}"
            unknown = [dim for dim in size.dims if dim not in found]
            if unknown:
                raise ValueError(
                    f"{self.name}: the size `{unknown[0].name}`, which {here} is said to depend "
                    f"on ({self._text(size)}), cannot be told from the arguments at "
                    f"{user_site()}; name an axis that has it"
                )
            for dim in size.dims:
                told.setdefault(dim, here)
            wanted = size.at(found)
            if wanted != shape[axis]:
                raise self._wrong(size, wanted, here, shape[axis], found, told)
            for dim in size.dims:
                self._check_range(dim, found[dim], size, here)

    def _check_range(self, dim: Dim, number: int, size: SymInt, here: str) -> None:
        low, high = dim.bounds
        if (low is None or number >= low) and (high is None or number <= high):
            return
        by = "" if size.terms == {(dim,): 1} else f", as {self._text(size)}"
        raise ValueError(
            f"{self.name}: {here}, makes `{dim.name}` {number}{by}, but it was said to be "
            f"{_range(low, high)}; called at {user_site()}"
        )

    def _wrong(
        self, size: SymInt, wanted: int, here: str, number: int,
        found: Mapping[Dim, int], told: Mapping[Dim, str],
    ) -> ValueError:  # fmt: skip
        text = self._text(size)
        others = {told[dim]: None for dim in size.dims if told[dim] != here}
        if not others:
            why = f"no whole number makes it {number}"
        else:
            values = ", ".join(f"`{dim.name}` is {found[dim]}" for dim in size.dims)
            why = f"{values} by {' and by '.join(others)}"
            why = why if text in self.dims else f"so it would be {wanted}: {why}"
        return ValueError(
            f"{self.name}: {here}, is said to have the size `{text}` there, but {why}; called at "
            f"{user_site()}"
        )

    def _text(self, size: SymInt) -> str:
        return self._texts.get(size.key) or size.text


def _axes_of(at: int, tensor: Tensor) -> Iterator[Place]:
    """All axes but those of one element: an axis that others broadcast along is not any size."""
    return ((at, axis) for axis, size in enumerate(tensor.shape) if size != 1)


def _range(low: int | None, high: int | None) -> str:
    return f"{low or 0} or more" if high is None else f"from {low} to {high}"


def _without_brackets(text: str) -> str:
    return ast.unparse(ast.parse(text, mode="eval"))


def _check_name(function: Callable[..., Any], name: str) -> None:
    try:
        parameters = inspect.signature(called(function)).parameters
    except (TypeError, ValueError):
        return
    if any(each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL) for each in parameters.values()):
        return
    root = name.partition("[")[0].partition(".")[0]
    if root not in parameters:
        raise ValueError(
            f"compile(): dynamic names `{name}`, which is no argument of "
            f"{getattr(function, '__name__', 'the function')}; it has "
            f"{', '.join(f'`{each}`' for each in parameters) or 'none'}"
        )


def _checked_axis(name: str, axis: int, tensor: Tensor) -> int:
    ndim = tensor.ndim
    if not -ndim <= axis < ndim:
        raise IndexError(
            f"dynamic names axis {axis} of argument `{name}`, which has the shape "
            f"{list(tensor.shape)}; "
            + (f"name one from {-ndim} to {ndim - 1}" if ndim else "it has no axes: leave it out")
        )
    return axis % ndim
