"""Malformed calls of operations, made from cases of the sample: which class of error is raised.

Each argument of a case is replaced by others of its kind and of other kinds, the last one left out,
one too many added. PyTorch is not needed: what it does is in a table, a line for each case, with a
character for each form of the call. A capital is the first letter of an error's class (`LETTERS`
of `tools.call_table`), a small letter says that the call is taken, and stands for the shapes and
types of what it gives. `make_malformed.py` writes the table.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tgraph as tg
from tools.call_table import letters

from .replay import Record, operation_of
from .sample import read
from .values import Array, Made, Missing, Named, own

_CRASHES = {
    ("native_batch_norm", "argument 3: without elements"),
    ("native_batch_norm", "argument 4: without elements"),
    ("nn.functional.embedding_bag", "offsets=without elements"),
}
"""Forms that end PyTorch's process."""


class Form(NamedTuple):
    """A call, as plain data, and what is wrong about it."""

    text: str
    args: tuple[Any, ...]
    keywords: dict[str, Any]


class Line(NamedTuple):
    """What PyTorch does with the forms of a case, and tgraph where that is another thing."""

    key: str
    theirs: str
    ours: str


def cases(path: Path) -> Iterator[tuple[str, Record]]:
    """The operations of a sample that PyTorch gives values for, each with a key of its own."""
    count: dict[str, int] = {}
    for record in read(path):
        if record.family == "operations" and "error" not in record.wanted:
            at = count[record.name] = count.get(record.name, -1) + 1
            yield f"{record.name}#{at}", record


def forms_of(record: Record) -> list[Form]:
    """The malformed calls of a case, always the same ones in the same order."""
    args, keywords = tuple(record.given["args"]), dict(record.given["keywords"])
    found = []
    for place, value in enumerate(args):
        for text, other in _others(value):
            changed = (*args[:place], other, *args[place + 1 :])
            found.append(Form(f"argument {place}: {text}", changed, keywords))
    for name, value in keywords.items():
        for text, other in _others(value):
            found.append(Form(f"{name}={text}", args, keywords | {name: other}))
    if args:
        found.append(Form("without the last argument", args[:-1], keywords))
    for text, more in (("None", None), ("a list", [1, 2]), ("text", "a")):
        found.append(Form(f"one more argument, {text}", (*args, more), keywords))
    found.append(Form("a keyword without meaning", args, keywords | {"nothing_has_this": 1}))
    return [each for each in found if (record.name, each.text) not in _CRASHES]


def _others(value: Any) -> Iterator[tuple[str, Any]]:
    """What stands in the place of an argument."""
    if isinstance(value, Array):
        yield from _other_tensors(value)
        return
    plain: list[Any] = [None, True, 2, -9, 1.5, 1j, "a", [1.5]]
    if isinstance(value, (bool, int, float, complex)):
        plain += [[1, 1], 0, _tensor(np.array([1, 0]))]
    elif isinstance(value, str):
        plain += [""]
    elif isinstance(value, Named):
        plain += [Named(each) for each in ("int64", "bool", "complex64", "float16")]
    elif isinstance(value, (list, tuple)) and not isinstance(value, Made):
        kind, first = type(value), value[:-1]
        plain += [kind(first), kind((*value, *value[-1:]))]
        plain += [kind((*first, other)) for other in (None, 99, -9, "a")]
        if value and isinstance(value[-1], Array):
            for text, other in _other_tensors(value[-1]):
                yield f"the last one {text}", kind((*first, other))
    else:
        plain += [_tensor(np.ones(2)), 0]
    for other in plain:
        yield _shown(other), other


def _other_tensors(value: Array) -> Iterator[tuple[str, Any]]:
    """In the place of a tensor: numbers and lists, other types, other shapes, another device."""
    for other in (None, 1.5, "a", [1.5]):
        yield _shown(other), other
    array = value.values
    for dtype in ("int64", "bool", "float32", "complex128", "float16"):
        if dtype != value.dtype:
            with np.errstate(all="ignore"):
                yield dtype, _tensor(array.real.astype(dtype), value.order)
    kept = {"dtype": value.dtype, "grad": value.grad}
    one = array.reshape(-1)[:1] if array.size else np.zeros(1, array.dtype)
    yield "without dimensions", Array(one.reshape(()), **kept)
    yield "one dimension more", Array(array[None], **kept)
    if array.ndim:
        if len(array):
            yield "one dimension less", Array(array[0], **kept)
        yield "one more at the end", Array(np.concatenate([array, array[..., :1]], -1), **kept)
        yield "without elements", Array(array[..., :0], **kept)
    yield "on meta", Made("empty", (array.shape,), {"dtype": Named(value.dtype), "device": "meta"})


def _tensor(array: np.ndarray, order: tuple[int, ...] | None = None) -> Array:
    return Array(array, str(array.dtype), order=order)


def _shown(value: Any) -> str:
    if isinstance(value, Array):
        return f"tensor({value.values.tolist()})"
    if isinstance(value, Named):
        return value.path
    return str(value)[:60]


def taken(result: Any) -> str:
    """The small letter of the shapes and types of a result of either library."""
    return chr(ord("a") + zlib.crc32(_kind(result).encode()) % 26)


def _kind(result: Any) -> str:
    if hasattr(result, "dtype") and hasattr(result, "shape"):
        return f"{str(result.dtype).rpartition('.')[2]}{list(result.shape)}"
    if isinstance(result, (list, tuple)):
        return ",".join(map(_kind, result))
    return type(result).__name__


def outcome_of(call: Callable[..., Any], args: Any, keywords: Any) -> tuple[str, Any]:
    """The letters of what a call raises, or that of what it gives; and that."""
    try:
        result = call(*args, **keywords)
        return taken(result), result
    except Exception as error:
        return "".join(letters(error)) or "?", error


def ours(
    record: Record, form: Form, compiled: bool = False, device: Any = "cpu"
) -> tuple[str, Any]:
    """What tgraph does with a form; "-" where there is no such name."""
    with tg.device(device):
        try:
            function = operation_of(record.name)
            args, keywords = own([list(form.args), dict(form.keywords)])
        except Missing as error:
            return "-", error
        tg.manual_seed(0)
        call = tg.compile(function) if compiled else function
        return outcome_of(call if device == "cpu" else _waited_for(call), args, keywords)


def _waited_for(function: Callable[..., Any]) -> Callable[..., Any]:
    """A call that ends when the device has done its work, and raises what goes wrong there."""

    def call(*args: Any, **keywords: Any) -> Any:
        result = function(*args, **keywords)
        tg.cuda.synchronize()
        return result

    return call


def difference(theirs: str, found: list[str]) -> str:
    """The letters of all forms, "." where they are the wanted ones."""
    return "".join(
        "." if want in each else each[0] for want, each in zip(theirs, found, strict=True)
    ).rstrip(".")  # fmt: skip


def table(path: Path) -> dict[str, Line]:
    """The lines of a table, by their keys."""
    lines = [each.rstrip("\n").split(" | ") for each in path.read_text().splitlines()]
    return {key: Line(key, theirs, other.strip()) for key, theirs, other in lines}
