"""Writes at positions that are data, into memory of the caller: in place, all or nothing."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tgraph.compiler.kernel import scatter_parts

import tgraph as tg

SEEDS = 60
ROWS, WIDTH, COUNT = 300, 64, 7  # the base is large enough for a kernel of its own


def given(seed=0, rows=ROWS):
    generator = np.random.default_rng(seed)
    base = tg.tensor(generator.standard_normal((rows, WIDTH)).astype(np.float32))
    at = tg.tensor(generator.integers(0, rows, COUNT))
    values = tg.tensor(generator.standard_normal((COUNT, WIDTH)).astype(np.float32))
    return base, at, values


def puts(x, at, values):
    x[at] = values * 2


def adds(x, at, values):
    x.index_add_(0, at, values)


def adds_elements(x, at, values):
    x.scatter_add_(0, at[:, None].expand(values.shape), values)


def adds_columns(x, at, values):
    x.index_add_(1, at % WIDTH, values.T[:, :7].repeat(5, 1)[:300])


def multiplies_positions(x, at, values):
    x[(at * 7) % x.shape[0]] += values.exp()


def reads_itself(x, at, values):
    x[at] = x[at.flip(0)] + values


def reads_later(x, at, values):
    before = x.sum()
    x[at] = values
    return before, x.sum()


def twice(x, at, values):
    x[at] = values
    x.index_add_(0, at + 1 - 1, values)


def of_something_else(x, at, values):
    x.copy_((x * 2).index_add(0, at, values))


def of_itself_backwards(x, at, values):
    x.copy_(x.flip(0).index_add(0, at, values))


def of_columns_backwards(x, at, values):
    return (x.flip(1).index_copy(0, at, values) * 1).sum(), x.flip(0).index_add(0, at, values)


def adds_other_rows(x, at, values):
    x.index_add_(0, at % COUNT, x[:COUNT].flip(0) * values)


def puts_other_rows(x, at, values):
    x[tg.arange(COUNT) + (at[0] - at[0])] = x[:COUNT].flip(0) * values


FUNCTIONS = (
    puts, adds, adds_elements, adds_columns, multiplies_positions, reads_itself, reads_later,
    twice, of_something_else, of_itself_backwards, of_columns_backwards, adds_other_rows,
    puts_other_rows,
)  # fmt: skip


@pytest.mark.parametrize("rows", [300, 20], ids=["large", "small"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda each: each.__name__)
def test_values(function, rows):
    if function is adds_columns and rows != ROWS:
        pytest.skip("the function is written for 300 rows")
    compiled = tg.compile(function)
    for seed in range(3):
        base, at, values = given(seed, rows)
        expected = base.clone()
        wanted = function(expected, at, values)
        found = compiled(base, at, values)
        np.testing.assert_allclose(base.numpy(), expected.numpy(), rtol=1e-6, atol=1e-6)
        if wanted is not None:
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("function", [puts, adds, multiplies_positions])
def test_only_what_is_written_moves(function):
    base, at, values = given()
    compiled = tg.compile(function)
    compiled(base, at, values)
    moved = sum(info.bytes for info in compiled.explain(base, at, values).kernels)
    assert moved < base.nbytes / 2


def append(keys, others, at, where, new):
    """As two caches of a decoder get a row."""
    keys[at] = new
    others[where] = new * 2
    return (keys * 1).sum() + others.sum()


@pytest.mark.parametrize("wrong", ["first", "second"])
def test_a_failed_call_writes_what_eager_code_does(wrong):
    """The plan writes nothing; then the function runs as it is written."""
    keys, at, new = given(1)
    others, where, _ = given(2)
    compiled = tg.compile(append)
    expected = [keys.clone(), others.clone()]
    total = append(*expected, at, where, new)
    assert compiled(keys, others, at, where, new).item() == pytest.approx(total.item(), rel=1e-3)
    bad = tg.tensor([0, 1, 2, 3, 4, 5, ROWS])
    positions = (bad, where) if wrong == "first" else (at, bad)
    with pytest.raises(IndexError, match=f"{ROWS} is out of bounds"):
        compiled(keys, others, *positions, new + 1)
    with pytest.raises(IndexError, match=f"{ROWS} is out of bounds"):
        append(*expected, *positions, new + 1)
    np.testing.assert_array_equal(keys.numpy(), expected[0].numpy())
    np.testing.assert_array_equal(others.numpy(), expected[1].numpy())
    compiled(keys, others, at, where, new)


def test_positions_that_are_computed_after_a_write_are_checked_too():
    @tg.compile
    def chained(x, y, at, values):
        x[at] = values
        y[(x.sum(1)[:COUNT] * 0 + at).to(tg.int64)] = values

    x, at, values = given(1)
    y, _, _ = given(2)
    chained(x, y, at, values)
    np.testing.assert_array_equal(y.numpy()[at.numpy()], x.numpy()[at.numpy()])
    before = x.numpy().copy(), y.numpy().copy()
    with pytest.raises(IndexError, match="out of bounds"):
        chained(x, y, tg.full((COUNT,), ROWS, dtype=tg.int64), values)
    np.testing.assert_array_equal(x.numpy(), before[0])
    np.testing.assert_array_equal(y.numpy(), before[1])


def test_results_do_not_depend_on_threads():
    before, results = tg.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            tg.set_num_threads(threads)
            base, at, values = given(3, 5000)
            tg.compile(lambda x, at, values: x.index_add_(0, at % 3, values))(base, at, values)
            gradient = tg.compile(lambda at, v: tg.zeros(5000, WIDTH).index_add(0, at, v))
            results.append(base.numpy().tobytes() + gradient(at, values).numpy().tobytes())
    finally:
        tg.set_num_threads(before)
    assert len(set(results)) == 1


@pytest.mark.parametrize("width", [33, 50, 128, 1000])
@pytest.mark.parametrize("rows", [2, 3, 40, 3000])
def test_threads_share_the_rows_that_are_written(rows, width):
    """Each looks at all positions and takes those of its part: sums keep their order."""
    rng = np.random.default_rng(rows * width)
    at = rng.integers(0, rows, (3, 700)) % rng.integers(1, rows + 1, (3, 1))  # some hit few rows
    at = tg.from_numpy(at)
    values = tg.from_numpy(rng.normal(size=(3, 700, width)).astype(np.float32))
    base = tg.from_numpy(rng.normal(size=(rows, width)).astype(np.float32))
    plane = tg.from_numpy(rng.normal(size=(4, rows, width)).astype(np.float32))

    def f(base, plane, at, values):
        return (
            base.index_put((at,), values, accumulate=True),
            base.index_put((at,), values * 0 + 1),
            plane.index_put((at % 4, at), values, accumulate=True),
        )

    compiled = tg.compile(f)
    for found, expected in zip(compiled(base, plane, at, values), f(base, plane, at, values)):
        np.testing.assert_array_equal(found.numpy(), expected.numpy())
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(base, plane, at + rows, values)


STATEMENTS = (
    "{x}[{i}] = {v}", "{x}[{i}] += {v}", "{x}.index_add_(0, {i}, {v})", "{x}[:, {c}] = {v}.T",
    "{x}[{i}, {c}] = {v}[:, :5].sum(1)[:5]", "{x}.scatter_add_(0, {i}[:, None].expand(5, 6), {v})",
    "{x}[{i}] = {x}[{j}] * 0.5", "{x}.mul_(0.5)", "{x}[{i}] = {y}[{j}]",
    "{x}.add_({y})", "r = r + {x}.sum()", "{x} = {x}.index_copy(0, {i}, {v})",
    "{x}.index_put_(({i},), {v}, accumulate=True)", "{i} = ({i} + 1) % 6",
)  # fmt: skip


def random_program(seed):
    """A function that writes to x and y at positions i, j (of rows) and c (of columns)."""
    pick = random.Random(seed)
    lines = ["def function(x, y, i, j, c, v, w):", "    r = x[0, 0] * 1"]
    for _ in range(pick.randint(2, 6)):
        x, y = pick.sample("xy", 2)
        i, j = pick.sample("ij", 2)
        v = pick.choice("vw")
        lines.append("    " + pick.choice(STATEMENTS).format(x=x, y=y, i=i, j=j, c="c", v=v))
    names = {"tg": tg}
    exec("\n".join([*lines, "    return r, x * 1, y * 1"]), names)
    return names["function"], "\n".join(lines)


def arguments(seed, wrong=False):
    generator = np.random.default_rng(seed)
    floats = [generator.standard_normal(shape) for shape in ((6, 6), (6, 6), (5, 6), (5, 6))]
    x, y, v, w = (tg.tensor(each.astype(np.float32)) for each in floats)
    i, j, c = (tg.tensor(generator.permutation(6)[:5]) for _ in range(3))
    if wrong:
        (i, j, c)[seed % 3][generator.integers(5)] = 6
    return x, y, i, j, c, v, w


@pytest.mark.parametrize("chunk", range(6))
def test_random_sequences_of_writes(chunk, monkeypatch):
    """As eager code: where it fails it has written what comes before, and nothing twice."""
    monkeypatch.setattr(scatter_parts, "APART", 0 if chunk % 2 else 1 << 16)
    for seed in range(chunk, SEEDS, 6):
        function, text = random_program(seed)
        compiled = tg.compile(function)
        for number, wrong in enumerate((False, True, False, True)):
            given, expected = arguments(seed + number, wrong), arguments(seed + number, wrong)
            try:
                wanted = function(*expected)
            except IndexError:
                wanted = ()
                with pytest.raises(IndexError):
                    compiled(*given)
            else:
                found = compiled(*given)
            pairs = zip((*(found if wanted else ()), *given), (*wanted, *expected), strict=True)
            for have, want in pairs:
                np.testing.assert_allclose(
                    have.numpy(), want.numpy(), rtol=2e-5, atol=2e-5, err_msg=f"{seed}\n{text}"
                )
