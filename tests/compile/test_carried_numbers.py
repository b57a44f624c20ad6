"""Numbers that branches and loops of a graph decide are Python's: as eager code has them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tgraph as tg
from tgraph.core import pytree
from tgraph.tracing import TraceError

HEAD = """
def f{number}(x, t):
    i, b, f = 0, False, 0.5
    while i < t:
        i += 1
        b = i > 2
        f = f + 1.0
    return [{expressions}]
"""
GROUPS = {
    "arithmetic": """2 ** -i; 2 ** i; i ** 2; i ** -1; (i > 1) + (i > 2); i / 2; 7 / i; i // 2;
        -i // 2; -i % 3; 7 % (i + 1); i * 0.1; i + 0.5; True + i; b + 1; b + b; -b; abs(-i);
        abs(b); divmod(i, 2); divmod(7, i); i - x.shape[0]; x.shape[0] - i;
        x.shape[0] * f; sum([i, i]);
        f ** 2; f ** 0.5; 2.5 ** i; f // 1; f % 1; -f % 1; f * 1e300; f - 1e-17; f * 0.1 * 3;
        1j * i; 1 - (i < 2); i.real; f.imag; +b""",
    "bits": """b & True; b | False; b ^ b; ~i; ~(b + 1); i & 6; i | 8; i ^ 5; i << 2; 100 >> i;
        b & i""",
    "conversions": """round(f); round(f, 1); round(i); int(f); int(-f); float(i); bool(i);
        bool(f - f); int(b); complex(i); f.is_integer(); int(x.sum()); float(x[0]);
        bool(x[1] > 0)""",
    "comparisons": """i == 3; i != 3; 3 < i; i <= f; b == 1; i == "a"; i is None; i != None;
        i < 4 < 9; 1 < i < 3; (1 < i < 3) + 1; i is True; b is True; b is False;
        b is not True; None is b; not i; not b""",
    "containers": """i in (1, 3); i in {1, 2}; i not in {1, 3}; i in [i, 2]; i in range(0, 9, 3);
        i in range(9, 0, -2); i in range(0); i in {3: 1}; f in (3.5, 1); i in ("a", 3); [i, f];
        {"a": i}; (b, [f])""",
    "types": """isinstance(i, int); isinstance(b, int); isinstance(b, bool); isinstance(f, float);
        isinstance(i, float); type(i) is int; type(b) is bool; type(f) is float;
        type(i + f) is float""",
    "choices": """0 * i or 7; i and 7; i or 7; b and i > 1; (not b) or i > 5;
        i if b else 2;
        i if i > 9 else 2; max(i, 2); min(i, 2); min(f, 9.5); max(3, i, 1); max(b, False)""",
    "tensors": """x * i; i * x; x + f; i - x; x ** i; x / i; tg.ones(2, dtype=tg.int32) * i;
        tg.ones(2, dtype=tg.int32) * f; tg.full((2,), i); tg.full((2,), f); tg.tensor(i);
        tg.tensor([i, 1]); tg.where(x > 0, i, 0); tg.zeros(2).fill_(f); x.clamp(max=i); tg.eq(x, i);
        tg.maximum(x, tg.tensor(i)); tg.add(x, x, alpha=i); x.mul(i); x.to(tg.float64) * f;
        tg.ones(1, dtype=tg.complex64) * f; tg.ones(2, dtype=tg.float16) * f""",
    "indices": """tg.arange(6)[i]; x[i - 3]; tg.eye(4)[i, 1]; tg.eye(4)[i - 1, :2];
        tg.eye(4)[..., i]""",
}  # fmt: skip


def _module(path: Path, text: str) -> ModuleType:
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def _told(value: Any) -> list[Any]:
    """The leaves of a value, each with its type; a number of the graph is returned as a tensor."""
    found: list[Any] = []
    for leaf in pytree.leaves(value):
        if not isinstance(leaf, tg.Tensor):
            found.append((type(leaf).__name__, leaf))
        elif leaf.ndim:
            found.append((leaf.dtype, leaf.tolist()))
        else:
            found.append((leaf.dtype.kind.replace("uint", "int"), leaf.item()))
    return found


@pytest.mark.parametrize("name", GROUPS)
def test_they_are_those_of_python(name: str, tmp_path: Path) -> None:
    expressions = [" ".join(each.split()) for each in GROUPS[name].split(";")]
    code = "import tgraph as tg\n" + HEAD.format(number=0, expressions=", ".join(expressions))
    function = _module(tmp_path / "numbers_of_loops.py", code).f0
    compiled = tg.compile(function, control_flow=True)
    x = tg.tensor([1.0, -2.0])
    for turns in (3,) if name == "indices" else (3, 1, 7):
        found, expected = (each(x, tg.tensor(turns)) for each in (compiled, function))
        for expression, one, other in zip(expressions, found, expected, strict=True):
            assert _told(one) == _told(other), (expression, turns)
    compiled.assert_compiles(1)


TABLE = {1: 10.0, 2: 20.0}


def counted(x: Any) -> Any:
    count = 0
    while x > 1:
        x, count = x / 2, count + 1
    return count


def look_up(x: Any) -> Any:
    return TABLE.get(counted(x), -1.0) * x


def in_text(x: Any) -> Any:
    return {f"{counted(x)}": x}


def in_set(x: Any) -> Any:
    return x * len({counted(x), 1})


def of_size(x: Any) -> Any:
    return tg.zeros(counted(x))


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (look_up, "the hash"),
        (in_text, "the text of a number"),
        (in_set, "the hash"),
        (of_size, "use as a Python integer"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_what_needs_the_value_is_refused_with_its_line(function: Any, what: str) -> None:
    line = function.__code__.co_firstlineno + 1
    with pytest.raises(TraceError, match=rf"(?s){what}.*test_carried_numbers.py:{line}"):
        tg.compile(function, control_flow=True)(tg.tensor(5.0))


ALLOWED = {1, 2}


def is_allowed(x: Any) -> Any:
    return counted(x) in ALLOWED, counted(x) in [x * 0 + 2, np.int64(7), "a"]


def test_a_container_that_changes_is_looked_at_again() -> None:
    compiled = tg.compile(is_allowed, control_flow=True)
    for x in (3.0, 9.0, 5.0):
        assert [bool(each) for each in compiled(tg.tensor(x))] == [*is_allowed(tg.tensor(x))]
    ALLOWED.add(4)
    try:
        assert bool(compiled(tg.tensor(9.0))[0])
    finally:
        ALLOWED.remove(4)


def digits(x: Any) -> Any:
    """All digits of floats, in a program of float64 numbers."""
    k, t, n = 0.0, 0.0, 0
    if x > 0:
        k = 0.1
    while t < x:
        t += 0.1
        n += 1
    large = 1e300 if x > 0 else 2e300
    return x * k, n, x * large, t


def flag(xs: Any) -> Any:
    on, n = False, 0
    for x in xs:
        if on is False:
            if x > 0:
                on = True
                n = n + 1
        else:
            n = n + 10
    return n, on


def becomes_a_tensor(x: Any) -> Any:
    total, first = 0, 1.5
    while x < 20:
        total = total + x
        first, x = x, x * 2
    return total, first


def first_in_the_loop(xs: Any) -> Any:
    for x in xs:
        steps = 2 if x > 0 else 3
    return xs * steps, 2**steps


def either_value(x: Any) -> Any:
    return (x or 5.0) + 1, (x and 2.0) * 2, x > 1 or x < -1


def converts_alone(x: Any) -> Any:
    n = int(x)
    return x * n, n // 2, x * float(x)


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (converts_alone, [tg.tensor(3.5), tg.tensor(-1.5)]),
        (digits, [tg.tensor(10.0, dtype=tg.float64), tg.tensor(-1.0, dtype=tg.float64)]),
        (flag, [tg.tensor([1.0, 2.0, -1.0]), tg.tensor([-1.0, -1.0, 3.0])]),
        (becomes_a_tensor, [tg.tensor(3.0), tg.tensor(30.0)]),
        (first_in_the_loop, [tg.tensor([1.0, -2.0]), tg.tensor([-1.0, 2.0])]),
        (either_value, [tg.tensor(0.0), tg.tensor(3.0)]),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_programs(function: Any, inputs: list[tg.Tensor]) -> None:
    compiled = tg.compile(function, control_flow=True)
    for x in inputs:
        for one, other in zip(pytree.leaves(compiled(x)), pytree.leaves(function(x)), strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
    compiled.assert_compiles(1)


def annotated(x: Any) -> Any:
    y: tg.Tensor
    if x > 0:
        y: tg.Tensor = x * 2  # type: ignore[no-redef]
        n: int = 1
    else:
        y, n = x, 2
    return y * n


def deletes(x: Any) -> Any:
    for i in range(3):  # noqa: B007
        if x > 5:
            break
        x = x * 2
    del i
    return x


def zipped(xs: Any) -> Any:
    total = xs[0] * 0
    for i, (x, y) in enumerate(zip(xs, reversed(xs)), 1):
        if x > y:
            total = total + i * x
    for x, k, w in zip(xs, range(3, 0, -1), [0.5, 1.5, 2.5], strict=True):
        if x > 0:
            total = total + k * w
    for x, row in zip(xs, [xs, xs * 2]):
        if x > 0:
            total = total + row.sum()
    return total


class Limited(tg.nn.Module):
    """Names itself."""

    LIMIT = 0.5

    def __init__(self) -> None:
        super(Limited, self).__init__()  # noqa: UP008

    def forward(self, x: Any) -> Any:
        said = super(Limited, self).extra_repr()  # noqa: UP008
        return said, x * 2 if x > Limited.LIMIT else x


def halved(x: Any, times: int) -> Any:
    """Calls itself as often as Python knows."""
    if x > 1:
        x = x / 2
    return halved(x, times - 1) if times else x


@pytest.mark.parametrize(
    "function",
    [annotated, deletes, zipped, lambda x: Limited()(x[0] if x.ndim else x)[1],
     lambda x: halved(x[0] if x.ndim else x, 3)],
)  # fmt: skip
def test_how_functions_are_written(function: Any) -> None:
    compiled = tg.compile(function, control_flow=True)
    rows = [[1.0, -3.0, 2.0], [-1.0, 2.0, 0.5]] if function is zipped else [1.0, -1.0, 9.0]
    for x in map(tg.tensor, rows):
        tg.testing.assert_close(compiled(x), function(x))
    compiled.assert_compiles(1)


def endless(x: Any) -> Any:
    if x > 4:
        return x
    return endless(x * 2)


def test_a_function_that_calls_itself_as_often_as_a_tensor_says_is_refused() -> None:
    with pytest.raises(TraceError, match=r"(?s)`x > 4` call the function .* while \.\.\.:"):
        tg.compile(endless, control_flow=True)(tg.tensor(1.0))


def chosen(x: Any) -> Any:
    y = x * 2
    w = min(x, y, 1.0)
    y += 1
    return y, w


def test_the_way_out_of_two_names_is_code() -> None:
    with pytest.raises(TraceError, match=r"`a if c else b`, `min`.*\n    x\.clone\(\)"):
        tg.compile(chosen, control_flow=True)(tg.tensor(1.0))


def unequal(x: Any) -> Any:
    for a, b in zip(x, x[1:], strict=True):  # noqa: RUF007
        if a > b:
            return a
    return x[0]


def of_words(x: Any) -> Any:
    for a, _ in zip(x, ["a", "b"]):
        if a > 0:
            return a
    return x[0]


def test_zip_refuses_what_it_cannot_go_over() -> None:
    x = tg.tensor([1.0, 2.0])
    with pytest.raises(ValueError, match="argument 2 is shorter than argument 1"):
        tg.compile(unequal, control_flow=True)(x)
    with pytest.raises(TraceError, match="takes ranges, and lists of numbers of one type"):
        tg.compile(of_words, control_flow=True)(x)


def mixed_up(x: Any) -> Any:
    n = 0
    while x < 5:
        x = x + 1
        n = tg.tensor(2) if n == 0 else 2.5
    return n


def test_a_fraction_does_not_fit_where_an_integer_was() -> None:
    with pytest.raises(TraceError, match="both must have one type"):
        tg.compile(mixed_up, control_flow=True)(tg.tensor(0.0))
