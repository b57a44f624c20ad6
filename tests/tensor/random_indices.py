"""Random indices of `x[...]`, and what NumPy says they mean where PyTorch's rules are followed."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass
class Given:
    """An array that is given to the index as a "tensor", "array", "list", "tuple" or "range"."""

    kind: str
    array: Array

    def made(self, library: Any) -> Any:
        if self.kind == "tensor":
            return library.tensor(self.array.tolist(), dtype=getattr(library, self.array.dtype.name)
                                  ).reshape(self.array.shape)  # fmt: skip
        if self.kind == "range":
            return range(len(self.array))
        if self.kind == "array":
            return self.array
        return (tuple if self.kind == "tuple" else list)(self.array.tolist())


def random_shape(random: Random) -> tuple[int, ...]:
    sizes = (0, 1, 2, 3, 4) if random.random() < 0.3 else (2, 3, 4)
    return tuple(random.choice(sizes) for _ in range(random.choice((0, 1, 1, 2, 2, 3, 3, 4))))


def random_index(random: Random, shape: tuple[int, ...]) -> Any:
    """An index of a tensor of `shape`; a few are out of bounds, too long or do not broadcast."""
    common = tuple(random.choice((1, 2, 3)) for _ in range(random.choice((1, 1, 2))))
    items: list[Any] = []
    axis = 0
    for _ in range(random.choice((1, 1, 2, 2, 3, 3, 4, 5))):
        if axis >= len(shape) and random.random() < 0.97:
            items += random.choice(([], [None], [True]))
            break
        item, used = _random_item(random, shape[axis:] or (2,), common)
        if item is Ellipsis:
            if Ellipsis in [each for each in items if not isinstance(each, Given)]:
                continue
            axis += random.randint(0, len(shape) - min(axis, len(shape)))
        items.append(item)
        axis += used
    is_alone = len(items) == 1 and getattr(items[0], "kind", "") != "tuple"
    return items[0] if is_alone and random.random() < 0.5 else tuple(items)


def _random_item(random: Random, left: tuple[int, ...], common: tuple[int, ...]) -> Any:
    size = left[0]
    low, high = (-size, size - 1) if size and random.random() > 0.02 else (-size - 1, size)
    kind = random.choices(
        ("none", "dots", "truth", "integer", "slice", "positions", "mask"),
        (6, 5, 5, 18, 22, 28, 16),
    )[0]
    if kind in ("none", "dots"):
        return None if kind == "none" else Ellipsis, 0
    if kind == "truth":
        truth = random.random() < 0.6
        return random.choice((truth, Given("tensor", np.array(truth)))), 0
    if kind == "integer":
        at = random.randint(low, high)
        dtype = random.choice((np.int64, np.int64, np.int32, np.int16))
        return random.choice((at, np.int64(at), Given("array", np.array(at)),
                              Given("tensor", np.array(at, dtype)))), 1  # fmt: skip
    if kind == "slice":
        bounds = (random.choice((None, random.randint(-size - 2, size + 2))) for _ in range(2))
        return slice(*bounds, random.choice((None, None, 1, 2, 3, 7))), 1
    if kind == "positions":
        shape = tuple(1 if random.random() < 0.15 else n for n in common)[random.randint(0, 1) :]
        shape = shape if random.random() > 0.05 else (*shape, random.choice((0, 5)))
        shape = shape or (2,)
        taken = [random.randint(low, high) for _ in range(int(np.prod(shape)))]
        array = np.array(taken, np.int64).reshape(shape)
        form = random.choice(("tensor", "tensor", "tensor", "array", "list", "tuple", "range"))
        if form == "range":
            array = np.arange(size)
        elif form == "tensor" and random.random() < 0.3:
            array = array.astype(np.int32)
        elif form == "array" and random.random() < 0.5:
            array = array.astype(np.int16)
        elif not array.size or array.ndim > 1:
            form = "tensor"
        return Given(form, array), 1
    ndim = min(random.choice((1, 1, 2)), len(left))
    shape = left[:ndim] if random.random() > 0.02 else (5,)
    array = np.array([random.random() < 0.5 for _ in range(int(np.prod(shape)))], bool)
    return Given(random.choice(("tensor", "tensor", "array")), array.reshape(shape)), ndim


def made(index: Any, library: Any) -> Any:
    """The index as it is given to a library; to NumPy itself, as arrays."""
    if isinstance(index, tuple):
        return tuple(made(each, library) for each in index)
    return index.made(library) if isinstance(index, Given) else index


def two_steps(array: Array, index: Any) -> tuple[Array, tuple[Any, ...] | None]:
    """The view that integers, slices, None and Ellipsis show, and what is picked of it."""
    items = [each.array if isinstance(each, Given) else each
             for each in (index if isinstance(index, tuple) else (index,))]  # fmt: skip
    items = [int(each) if isinstance(each, np.ndarray) and not each.ndim and each.dtype != bool
             else each for each in items]  # fmt: skip
    items = [np.array(each) if isinstance(each, bool) else each for each in items]
    basic: list[Any] = []
    for each in items:
        if isinstance(each, np.ndarray):
            basic += [slice(None)] * (each.ndim if each.dtype == bool else 1)
        else:
            basic.append(each)
    view = array[(*basic, *([] if Ellipsis in basic else [...]))]  # an array without axes, too
    if not any(isinstance(each, np.ndarray) for each in items):
        return view, None
    shown = [slice(None) if isinstance(each, slice) or each is None else each
             for each in items if not isinstance(each, (int, np.integer))]  # fmt: skip
    return view, tuple(shown)
