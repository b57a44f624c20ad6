"""x[...] with random indices: read, written, differentiated, compiled; against NumPy and PyTorch.

NumPy is told in two steps what PyTorch takes in one: integers and slices first, which make a view.
"""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from random import Random
from typing import Any

import numpy as np
import pytest
from random_indices import Given, made, random_index, random_shape, two_steps

import tgraph as tg

COUNT = 400


def index_of(seed: int) -> tuple[tuple[int, ...], Any, Random]:
    random = Random(seed)
    shape = random_shape(random)
    return shape, random_index(random, shape), random


def start(library: Any, shape: tuple[int, ...]) -> Any:
    """A tensor of `shape` whose axes lie in another order in memory."""
    count, axes = int(np.prod(shape)), tuple(range(len(shape)))[::-1]
    return library.arange(count, dtype=library.float64).reshape(shape[::-1]).permute(axes)


def random_value(random: Random, shape: tuple[int, ...]) -> Any:
    """A number, or an array that broadcasts to `shape`, in most cases."""
    if random.random() < 0.2:
        return 2.5
    sizes = [1 if random.random() < 0.2 else size for size in shape]
    sizes = random.choice((sizes, sizes[1:], [1, *sizes], [*sizes, 2] if sizes else sizes))
    return np.arange(0.5, np.prod(sizes)).reshape(sizes)


def outcomes(library: Any, shape: tuple[int, ...], index: Any, value: Any) -> list[Any]:
    """What is read, whether it is a view, what is written, and the gradients of both."""
    found: list[Any] = []

    def note(function: Any) -> None:
        try:
            found.append(function())
        except (IndexError, RuntimeError, TypeError, ValueError) as error:
            found.append(error)

    def read() -> Any:
        x = start(library, shape)
        part = x[made(index, library)]
        is_view = part.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        return part.tolist(), list(part.shape), is_view or not part.numel()

    def differentiate() -> Any:
        x = start(library, shape).requires_grad_()
        new = value if type(value) is float else library.from_numpy(value).requires_grad_()
        y = x * 2
        part = y[made(index, library)]
        (part * part * numbered(library, part)).sum().backward()
        of_read, x.grad = x.grad.tolist(), None
        y = x * 2
        y[made(index, library)] = new
        (y * y * numbered(library, y)).sum().backward()
        if type(new) is float:
            return of_read, y.tolist(), x.grad.tolist(), None
        of_new = new * 0 if new.grad is None else new.grad  # PyTorch writes nothing to x[False]
        return of_read, y.tolist(), x.grad.tolist(), of_new.tolist()

    note(read)
    note(differentiate)
    return found


def numbered(library: Any, part: Any) -> Any:
    return library.arange(part.numel(), dtype=library.float64).reshape(part.shape) + 1


def by_numpy(shape: tuple[int, ...], index: Any, value: Any) -> list[Any]:
    """The same by NumPy; errors of whatever class."""
    x = np.arange(float(np.prod(shape))).reshape(shape[::-1]).transpose()
    places = np.arange(x.size).reshape(shape)
    try:
        view, picks = two_steps(x, index)
        at, _ = two_steps(places, index)
        part, at = (view, at) if picks is None else (view[picks], at[picks])
        read = part.tolist(), list(part.shape), picks is None or not part.size
    except (IndexError, ValueError, DeprecationWarning) as error:  # a warning in NumPy 2.1
        return [error, error]
    weights = np.arange(1.0, part.size + 1).reshape(part.shape)
    of_read = np.zeros(x.size)
    np.add.at(of_read, at, 2 * 4 * part * weights)
    written, kept = 2 * x.reshape(-1), np.ones(x.size)
    new = np.asarray(value)
    while new.ndim > part.ndim and new.shape[0] == 1:
        new = new[0]
    try:
        written[at] = np.broadcast_to(new, part.shape)
    except ValueError as error:
        return [read, error]
    written, kept[at] = written.reshape(shape), 0
    all_weights = np.arange(1.0, x.size + 1).reshape(shape)
    slopes = 2 * written * all_weights
    if type(value) is float:
        of_value = None
    else:  # the last of several writes to one place wins, and all of them get its gradient
        of_value = sum_to(slopes.reshape(-1)[at], value.shape).tolist()
    of_x = 2 * slopes * kept.reshape(shape)
    return [read, (of_read.reshape(shape).tolist(), written.tolist(), of_x.tolist(), of_value)]


def sum_to(array: Any, shape: tuple[int, ...]) -> Any:
    """The sum over the axes along which an array of `shape` was repeated."""
    sizes = shape[max(len(shape) - array.ndim, 0) :]
    array = array.sum(axis=tuple(range(array.ndim - len(sizes))))
    axes = tuple(axis for axis, size in enumerate(sizes) if size == 1)
    return array.sum(axis=axes, keepdims=True).reshape(shape)


def is_same(found: Any, expected: Any, of_one_class: bool) -> bool:
    if isinstance(expected, Exception):
        return isinstance(found, type(expected) if of_one_class else Exception)
    return bool(found == expected)


def writes_a_place_twice(shape: tuple[int, ...], index: Any) -> bool:
    try:
        view, picks = two_steps(np.arange(int(np.prod(shape))).reshape(shape), index)
        part = view if picks is None else view[picks]
    except (IndexError, ValueError, DeprecationWarning):
        return False
    return bool(np.unique(part).size < part.size)


@pytest.mark.parametrize("tenth", range(10))
def test_reading_writing_and_gradients(tenth: int) -> None:
    torch: Any = None
    if find_spec("torch") is not None:
        import torch
    for seed in range(tenth, COUNT, 10):
        shape, index, random = index_of(seed)
        part = by_numpy(shape, index, 2.5)[0]
        value = random_value(random, () if isinstance(part, Exception) else tuple(part[1]))
        if writes_a_place_twice(shape, index):
            value = 2.5  # the order of writes to one place is open
        found = outcomes(tg, shape, index, value)
        expected = by_numpy(shape, index, value)
        label = (seed, shape, index, value)
        assert all(is_same(*each, False) for each in zip(found, expected, strict=True)), label
        if torch is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = outcomes(torch, shape, index, value)
            assert all(is_same(*each, True) for each in zip(found, expected, strict=True)), label


def is_compiled(seed: int) -> bool:
    """Whether an index fits, has no mask, whose count is not known, and no place twice."""
    shape, index, _ = index_of(seed)
    items = index if isinstance(index, tuple) else (index,)
    fits = not isinstance(by_numpy(shape, index, 2.5)[1], Exception) and 0 not in shape
    masks = any(isinstance(each, Given) and each.array.dtype == bool for each in items)
    return fits and not masks and not writes_a_place_twice(shape, index)


@pytest.mark.parametrize("seed", [seed for seed in range(COUNT) if is_compiled(seed)][:12])
def test_compiled(seed: int) -> None:
    """Index tensors are arguments: which rows they choose, a trace does not know."""
    shape, index, _ = index_of(seed)
    items = index if isinstance(index, tuple) else (index,)
    given = [made(each, tg) for each in items if isinstance(each, Given) and each.kind == "tensor"]

    def program(x: Any, *given: Any) -> Any:
        left = iter(given)
        index = tuple(
            next(left) if isinstance(each, Given) and each.kind == "tensor" else made(each, tg)
            for each in items
        )
        y = x * 2
        part = y[index].clone()
        total = (part * part).sum()
        y[index] = part * 3
        y[index] += 1
        return total + (y * y).sum()

    def run(x: Any, *given: Any) -> Any:
        total = program(x, *given)
        return total, tg.autograd.grad(total, [x])[0]

    inputs = (start(tg, shape).requires_grad_(), *given)
    eager, compiled = run(*inputs), tg.compile(run)(*inputs)
    assert compiled[0].item() == pytest.approx(eager[0].item())
    np.testing.assert_allclose(compiled[1].numpy(), eager[1].numpy())
