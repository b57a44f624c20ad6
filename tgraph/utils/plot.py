"""Pictures of numbers: a tensor as curve or heat maps, and losses as curves. Needs matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.operands import require_tensor
from ..core.tensor import Tensor
from ..runtime.dtypes import bool_

__all__ = ["curves", "show"]

MOST_SLICES = 64


def show(tensor: Tensor, *, title: str | None = None, cmap: str = "viridis") -> Any:
    """A picture of the elements, as matplotlib's Figure, which the caller shows or saves.

    One dimension is a curve, two are a heat map, more are a grid of heat maps, one for each place
    of the first dimensions: those of the first along columns of the grid. All have one scale. Of
    complex numbers real and imaginary part stand side by side; bool is black and white. ValueError
    for more than 64 slices, and for a tensor without elements.

    >>> import tgraph as tg
    >>> from tgraph.utils import plot
    >>> figure = plot.show(tg.randn(3, 8, 8), title="weights")      # doctest: +SKIP
    >>> figure.savefig("weights.png")                               # doctest: +SKIP
    """
    array = _numbers(require_tensor(tensor, "show", "tensor"))
    if not array.size:
        raise ValueError(f"show(): expected elements, got a tensor of shape {list(array.shape)}")
    if title is None:
        title = f"{tensor.dtype} {list(tensor.shape)}".removeprefix("tgraph.")
    if np.iscomplexobj(array):
        parts = [("real", array.real), ("imag", array.imag)]
    else:
        parts = [("", array)]
    figure = _figure()
    figure.suptitle(title)
    for part, (name, numbers) in zip(figure.subfigures(1, len(parts), squeeze=False)[0], parts):
        _draw(part, numbers, name, "gray" if tensor.dtype is bool_ else cmap)
    return figure


def curves(
    values: Mapping[str, Any] | Sequence[Any] | Tensor,
    *,
    title: str | None = None,
    xlabel: str = "step",
    ylabel: str = "",
    log: bool = False,
) -> Any:
    """Curves of losses or other numbers by step, as matplotlib's Figure.

    `values` are the numbers of one curve, or of several by their names. Numbers may be tensors of
    one element. `log` makes the vertical axis logarithmic.

    >>> import tgraph as tg
    >>> from tgraph.utils import plot
    >>> plot.curves({"training": [3, 2, 1], "test": [3, 3, 2]}, log=True)    # doctest: +SKIP
    <Figure size 640x480 with 1 Axes>
    """
    given = values if isinstance(values, Mapping) else {"": values}
    figure = _figure()
    axes = figure.subplots()
    for name, numbers in given.items():
        axes.plot(_line(name, numbers), label=name)
    axes.set(xlabel=xlabel, ylabel=ylabel, title=title or "", yscale="log" if log else "linear")
    if any(given):
        axes.legend()
    return figure


def _figure() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "tgraph.utils.plot needs matplotlib, which is not installed: pip install matplotlib"
        ) from None
    return Figure(layout="constrained")


def _numbers(tensor: Tensor) -> Any:
    """The elements as an array of a type that matplotlib knows."""
    array = tensor.detach().cpu().numpy()
    if tensor.dtype.is_complex:
        return array
    return array.astype(np.float64)


def _line(name: str, numbers: Any) -> Any:
    if isinstance(numbers, Tensor):
        found = _numbers(numbers)
    else:
        found = np.array([float(each) for each in numbers])
    if found.ndim != 1 or np.iscomplexobj(found):
        raise ValueError(
            f"curves(): expected real numbers in one dimension for '{name}', got shape "
            f"{list(found.shape)}"
        )
    return found


def _draw(part: Any, array: Any, name: str, cmap: str) -> None:
    if array.ndim < 2:
        axes = part.subplots()
        axes.set_title(name)
        axes.plot(array.reshape(-1), marker="." if array.size < 50 else "")
        return
    slices = array.reshape(-1, *array.shape[-2:])
    if len(slices) > MOST_SLICES:
        raise ValueError(
            f"show(): expected at most {MOST_SLICES} slices of two dimensions, got {len(slices)}; "
            "show a part of the tensor"
        )
    if array.ndim == 2:
        columns = 1
    elif array.ndim == 3:
        columns = math.ceil(math.sqrt(len(slices)))
    else:
        columns = array.shape[-3]
    rows = math.ceil(len(slices) / columns)
    finite = array[np.isfinite(array)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    grid = part.subplots(rows, columns, squeeze=False).reshape(-1)
    for axes in grid[len(slices) :]:
        axes.set_axis_off()
    for at, (axes, each) in enumerate(zip(grid, slices)):
        image = axes.imshow(each, cmap=cmap, vmin=low, vmax=high, interpolation="nearest")
        where = list(map(int, np.unravel_index(at, array.shape[:-2])))
        axes.set_title(f"{name} {where if array.ndim > 2 else ''}".strip(), fontsize="small")
        if array.ndim > 2:
            axes.set(xticks=[], yticks=[])
    part.colorbar(image, ax=list(grid), shrink=0.8)
