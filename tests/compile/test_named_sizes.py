"""What `compile(dynamic=...)` says of sizes: names, relations, ranges, and how they are checked."""

import copy
import pickle
import re

import pytest
from test_dynamic import assert_same, rows

import tgraph as tg

N, HALF, LENGTH = tg.Dim("n"), tg.Dim("half", min=1), tg.Dim("length", min=1, max=9)


def add(x, y):
    return x + y


# What is said, a function, the sizes of its arguments that come, and how often it is traced.
SAID = {
    "one name": ({"x": {0: "n"}, "y": {0: "n"}}, add, [(3, 3), (0, 0), (1, 1), (8, 8)], 1),
    "two names for what has to be one": (
        {"x": {0: "n"}, "y": {0: "m"}}, add, [(3, 3), (5, 5), (0, 0)], 1,
    ),
    "other names are other sizes": (
        {"x": {0: "n"}, "y": {0: "m"}}, lambda x, y: x.sum() - y, [(3, 3), (3, 5), (1, 0)], 1,
    ),
    "a size and its double": (
        {"x": {0: 2 * HALF}, "y": {0: HALF}}, lambda x, y: x[: len(x) // 2] + y,
        [(6, 3), (2, 1), (16, 8)], 1,
    ),
    "multiples": (
        {"x": {0: "8 * k"}, "y": {0: "8 * k"}}, lambda x, y: x.reshape(-1, 8, 8).sum(1) + y[::8],
        [(8, 8), (0, 0), (24, 24)], 1,
    ),
    "a cache and what comes to it": (
        {"x": {0: N}, "y": {0: N + 1}}, lambda x, y: tg.cat([x, y[-1:]]) * y,
        [(4, 5), (0, 1), (7, 8)], 1,
    ),
    "half of it": (
        {"x": {0: "n"}, "y": {0: "n // 2"}}, lambda x, y: x[: len(x) // 2] + y,
        [(7, 3), (1, 0), (8, 4)], 1,
    ),
    "a sum of two": (
        {"x": {0: "a"}, "y": {0: "a + b", 1: True}}, lambda x, y: y[x.shape[0] :].sum() + x,
        [(2, 5), (0, 3), (4, 4)], 1,
    ),
    "a range answers": (
        {"x": {0: LENGTH}, "y": {0: LENGTH}},
        lambda x, y: x + y if 0 < x.shape[0] < 10 else x * y, [(1, 1), (9, 9)], 1,
    ),
    "a number decides": (
        {"x": {0: "n"}, "y": {0: "n"}}, lambda x, y: x + y if len(x) > 4 else x * y,
        [(3, 3), (5, 5), (4, 4), (9, 9)], 2,
    ),
    "all axes": (True, lambda x, y: x @ y.t(), [(3, 3), (5, 5), (7, 7), (0, 0)], 1),
    "what must be equal to a number": (
        {"x": (0, 1), "y": True}, lambda x, y: (x * y) @ tg.ones(8, 2), [(3, 3), (5, 5)], 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAID)
def test_one_trace_serves_what_was_said(name):
    said, function, sizes, traces = SAID[name]
    compiled = tg.compile(function, dynamic=said)
    for n, m in sizes:
        arguments = rows(n), rows(m)
        assert_same([compiled(*arguments)], [function(*arguments)], exact=False)
    compiled.assert_compiles(traces)


WRONG = {
    "two arguments": (
        {"x": {0: "n"}, "y": {0: "n"}}, (3, 4),
        r"axis 0 of argument `y`, which has the shape \[4, 8\], is said to have the size `n` "
        r"there, but `n` is 3 by axis 0 of argument `x`, which has the shape \[3, 8\]; called at ",
    ),
    "a relation": (
        {"x": {0: N}, "y": {0: N + 1}}, (3, 5),
        r"is said to have the size `n \+ 1` there, but so it would be 4: `n` is 3 by axis 0 of",
    ),
    "no multiple": ({"x": {0: "8 * k"}}, (9, 9), "the size `8 \\* k` there, but no whole number"),
    "too large": (
        {"x": {0: LENGTH}}, (10, 1), "makes `length` 10, but it was said to be from 1 to 9; called",
    ),
    "too small": (
        {"x": {0: 2 * HALF}}, (0, 1), r"makes `half` 0, as 2 \* half, but .* to be 1 or more",
    ),
    "unknown": ({"x": {0: "a * b"}}, (4, 4), "cannot be told from the arguments"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_call_is_held_to_what_was_said(name):
    said, sizes, message = WRONG[name]
    compiled = tg.compile(add, dynamic=said)
    with pytest.raises(ValueError, match=message) as raised:
        compiled(*map(rows, sizes))
    assert f"{__file__}:" in str(raised.value)
    compiled.assert_compiles(0)


def test_what_is_said_is_checked_behind_other_calls():
    compiled = tg.compile(lambda x: x + 1, dynamic={"x": {0: LENGTH}})
    for n in (3, 9, 1):
        compiled(rows(n))
    for n in (0, 10):
        with pytest.raises(ValueError, match=f"makes `length` {n}"):
            compiled(rows(n))
    compiled.assert_compiles(1)


@pytest.mark.parametrize(
    ("said", "error", "message"),
    [
        (3, TypeError, "dynamic must be True, or name arguments"),
        ({1: 0}, TypeError, "dynamic names arguments, not 1"),
        ({"x": {0: 3}}, TypeError, re.escape("dynamic['x'][0] must be the name of a size")),
        ({"x": {0: "n ** 2"}}, ValueError, "no sum, difference or product of names"),
        ({"x": {0: "n("}}, ValueError, "no sum, difference or product of names"),
        ({"x": {0: "7"}}, ValueError, "does not vary: leave it out"),
        ({"x": {0: N}, "y": {0: tg.Dim("n", max=3), 1: tg.Dim("n", max=4)}}, ValueError, "two siz"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(said, error, message):
    with pytest.raises(error, match=message):
        tg.compile(add, dynamic=said)


def test_names_and_ranges_are_checked():
    for arguments, error in [(("2n",), ValueError), (("n", 3, 2), ValueError),
                             (("n", -1), ValueError), (("n", 1.5), TypeError)]:  # fmt: skip
        with pytest.raises(error, match=r"Dim\("):
            tg.Dim(*arguments)
    assert repr(pickle.loads(pickle.dumps(LENGTH))) == "Dim('length', min=1, max=9)"


def test_containers_and_copies():
    def f(batch):
        return batch["a"] @ batch["c"][0].t()

    said = {"batch": {"a": {0: "n"}, "c": {0: "m"}}}
    compiled = tg.compile(f, dynamic=said)
    for each in (compiled, copy.deepcopy(compiled)):
        for n, m in [(3, 4), (4, 4), (1, 2)]:
            batch = {"a": rows(n), "c": [rows(m)]}
            assert_same([each(batch)], [f(batch)], exact=False)
        each.assert_compiles(1)
    with pytest.raises(ValueError, match=r"argument `batch\['a'\]`.*said to be from 1 to 2"):
        tg.compile(f, dynamic={"batch": {"a": {0: tg.Dim("n", 1, 2)}}})(batch | {"a": rows(3)})


def test_how_often_it_was_compiled_is_asserted():
    compiled = tg.compile(lambda x: x * 2)
    with compiled.assert_new_compiles(2):
        compiled(rows(3)), compiled(rows(4)), compiled(rows(3))
    with compiled.assert_new_compiles():
        compiled(rows(3))
    message = r"was compiled 2 times so far, not once:\n  first call\n  new shape of argument `x`"
    with pytest.raises(AssertionError, match=message):
        compiled.assert_compiles(1)
    message = "was compiled once in the block, not 0 times"
    with pytest.raises(AssertionError, match=message), compiled.assert_new_compiles():
        compiled(rows(5))


def test_a_decode_loop_with_a_growing_cache_compiles_once():
    def step(cache, token):
        cache = tg.cat([cache, token])
        weights = tg.softmax(token @ cache.t() / 8**0.5, dim=-1)
        return cache, weights @ cache

    compiled = tg.compile(step, dynamic={"cache": {0: "past"}})
    cache = known = tg.zeros(0, 8)
    for at in range(1, 40):
        cache, token = compiled(cache, rows(at)[:1])
        known, wanted = step(known, rows(at)[:1])
        assert_same([cache, token], [known, wanted], exact=False)
    compiled.assert_compiles(1)
