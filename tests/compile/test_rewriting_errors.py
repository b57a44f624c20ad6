"""What `tg.compile(control_flow=True)` cannot compile: the error names the line and what to write.

In each program the line that the error must name ends in `# here`.
"""

from __future__ import annotations

import linecache
import re
import textwrap
from typing import Any

import pytest

import tgraph as tg

PROGRAMS = {
    "defined in one branch": (
        """
        def f(x):
            if x.sum() < 0:  # here
                y = x
            return y
        """,
        r"`y` is read behind .* is not defined where that is false",
        "y = ...",
    ),
    "types of branches": (
        """
        def f(x):
            z = x
            if x.sum() < 0:  # here
                y = x
            else:
                y = x.sum()
            return y
        """,
        r"`y` is a tensor of type float32\[2\] \(line 5\) where it is true and a tensor of type "
        r"float32\[\] \(line 7\) where it is false",
        "y = tg.cond(x.sum() < 0, lambda: a, lambda: b)",
    ),
    "a leaf of a container": (
        """
        def f(x):
            y = {"a": x, "b": [x, x]}
            if x.sum() < 0:  # here
                y = {"a": x, "b": [x, None]}
            return y
        """,
        r"`y\['b'\]\[1\]` is None \(line 5\) where it is true and a tensor",
        "tg.where",
    ),
    "results that are no tensors": (
        """
        def f(x):
            if x.sum() < 0:  # here
                return "negative"
            return "positive"
        """,
        "the result is the str 'negative' (line 4) where it is true and the str 'positive'",
        "return tg.cond",
    ),
    "one branch returns nothing": (
        """
        def f(x):
            if x.sum() < 0:  # here
                return x
        """,
        "the result is a tensor of type float32[2] (line 4) where it is true and None",
        "return tg.cond",
    ),
    "a type that changes in a loop": (
        """
        def f(x):
            n = x.sum().to(tg.int64)
            while n < 10:  # here
                n = n * 1.5
            return n
        """,
        "`n` is a tensor of type int64[] before the loop `while n < 10:` on tensors and a tensor "
        "of type float32[] behind a turn of it",
        "n = tg.while_loop(lambda n: ..., lambda n: ..., n)",
    ),
    "a number that becomes a vector": (
        """
        def f(x):
            y = 0
            while x.sum() < 10:  # here
                y = y + x
                x = x * 2
            return y
        """,
        "`y` is the int 0 before the loop",
        "y = ...  # before the loop",
    ),
    "first defined in a while loop": (
        """
        def f(x):
            while x.sum() < 10:  # here
                y = x
                x = x * 2
            return y
        """,
        "`y` is read behind the loop `while x.sum() < 10:` on tensors, in which it is first",
        "y = ...  # before the loop",
    ),
    "an error in a branch": (
        """
        def f(x):
            if x.sum() < 0:  # here
                raise ValueError("negative")
            return x
        """,
        "line 4 raises ValueError where the tensor `x.sum() < 0` says so",
        "return the condition as a result, and raise the error outside",
    ),
    "an assertion": (
        """
        def f(x):
            assert x.sum() > 0  # here
            return x
        """,
        "Not rewritten is an `assert`: return the condition, and assert it outside",
        "",
    ),
    "a generator": (
        """
        def f(x):
            def positive():
                for each in (x, -x):
                    if each.sum() > 0:  # here
                        yield each
            return list(positive())
        """,
        "Not rewritten is `positive`: it is a generator or asynchronous",
        "",
    ),
    "a comprehension": (
        """
        def f(x):
            return [each * 2 for each in x]  # here
        """,
        "Not rewritten is a comprehension, which can be a `for` loop",
        "",
    ),
    "an assignment in an operand": (
        """
        def f(x):
            if x.sum() > 0 and (y := x.sum()) < 1:  # here
                return y
            return x.sum()
        """,
        "`:=` stands in an operand that is evaluated only sometimes",
        "",
    ),
    "a value that is asked for": (
        """
        def f(x):
            n = x.sum().item()  # here
            return x * n
        """,
        "item() needs the value of a tensor",
        "Go on with the tensor of no dimensions instead",
    ),
    "a list of unknown length": (
        """
        def f(x):
            found = []
            while x.sum() < 10:  # here
                x = x * 2
                found.append(x)
            return found
        """,
        "`found` grows in the loop `while x.sum() < 10:`",
        "found = tg.zeros(most, ...)",
    ),
    "an object that a turn changes": (
        """
        def f(x):
            found = {}
            while x.sum() < 10:
                x = x * 2
                found["last"] = x
            return found
        """,
        "changes the variable found",
        "",
    ),
    "rows that a turn writes": (
        """
        def f(x):
            for row in x:  # here
                x[0] = row + 1
            return x
        """,
        "a turn of the loop `for row in x:` writes into the tensor that it goes over",
        "for row in rows.clone(): ...",
    ),
    "a row that is written": (
        """
        def f(x):
            for row in x:  # here
                row += 1
            return x
        """,
        "writes in place what the turn before left in a variable, or a row",
        "x = x + 1",
    ),
    "two names that a turn leaves": (
        """
        def f(x):
            y, z = x[0] * 2, x[0] * 3
            for row in x:
                y = y + row
                z = y
            y += 1  # here
            return y, z
        """,
        "a tensor is written in place that may be the same as `z`",
        "z = z.clone()",
    ),
    "two names from before the loop": (
        """
        def f(x):
            y = z = x * 2
            while z.sum() < 9:
                y, z = y * 2, z * 3
            z[0] = 1  # here
            return y, z
        """,
        "a tensor is written in place that may be the same as `z`",
        "z = z.clone()",
    ),
    "two names that a branch leaves": (
        """
        def f(x):
            y, z = x * 2, x * 3
            if x.sum() > 0:
                y = x * 4
                if x[0] > 0:
                    y = x * 5
                z = y.view(2)
            z += 1  # here
            return y, z
        """,
        "a tensor is written in place that may be the same as `z`",
        "z = z.clone()",
    ),
    "one tensor by two names": (
        """
        def f(x):
            y, z = x * 2, x * 3
            if x.sum() > 0:
                z = y
            y += 1  # here
            return y, z
        """,
        "a tensor is written in place that may be the same as `z`",
        "z = z.clone()",
    ),
    "one tensor by two names in a loop": (
        """
        def f(x):
            y, z = x * 2, x * 3
            while y.sum() < 100:  # here
                y += x + z
                z = y
            return y, z
        """,
        "leaves in `z` a tensor that it also writes in place by another name",
        "z = ....clone()",
    ),
    "more than one element": (
        """
        def f(x):
            if x > 0:  # here
                return x
            return -x
        """,
        "Boolean value of Tensor with more than one value is ambiguous",
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_errors(name: str) -> None:
    text, message, way_out = PROGRAMS[name]
    text, file = textwrap.dedent(text), f"<string of {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names: dict[str, Any] = {"tg": tg}
    exec(compile(text, file, "exec"), names)
    f = tg.compile(names["f"], control_flow=True)
    with pytest.raises((RuntimeError, TypeError)) as caught:
        f(tg.tensor([1.0, 2.0]))
    found = str(caught.value)
    assert message in found or re.search(message, found), found
    assert way_out in found
    line = next((at for at, each in enumerate(text.splitlines(), 1) if "# here" in each), None)
    if line is not None and "ambiguous" not in message:
        assert f"{file}:{line}" in found, found


def test_without_source() -> None:
    names: dict[str, Any] = {}
    exec("def f(x):\n    if x > 0:\n        return x\n    return -x\n", names)
    with pytest.raises(tg.tracing.TraceError, match="`f` cannot be rewritten: its source is not"):
        tg.compile(names["f"], control_flow=True)(tg.tensor(1.0))


def test_without_source_where_python_runs_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Since Python 3.13 the text of `python -c` is the source of the file `<string>`."""
    text = "import os\ndef f(x):\n    return x\n"
    entry = (len(text), None, text.splitlines(True), "<string>")
    monkeypatch.setitem(linecache.cache, "<string>", entry)
    test_without_source()


def test_not_asked_for() -> None:
    """Without `control_flow` nothing is rewritten, and the error names it."""

    @tg.compile
    def f(x: Any) -> Any:
        return x if x > 0 else -x

    with pytest.raises(tg.tracing.TraceError, match="control_flow=True"):
        f(tg.tensor(1.0))
