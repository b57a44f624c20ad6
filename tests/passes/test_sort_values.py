"""Values in order without positions, where nobody asks for these: which gathers are sorts."""

import pytest
from pass_testing import Maker, assert_pass_keeps_values, body
from tgraph.compiler.passes.sort_values import sort_values
from tgraph.runtime.dtypes import float32


def gathered(axes, axis, count=None, permuted=True):
    """`x` of three axes at the positions of its own rows in order, once `axes` are permuted."""
    make = Maker()
    x = make.input(3, 4, 5, dtype=float32)
    rows = make.permute(x, axes=axes) if permuted else x
    count = rows.shape[-1] if count is None else count
    found = make.argsort(rows, count=count, descending=True)
    back = tuple(axes.index(at) for at in range(3))
    positions = make.permute(found, axes=back) if permuted else found
    return make, found, make.gather(x, positions, axis=axis)


def test_the_text():
    make, _, result = gathered((0, 1, 2), 2, permuted=False)
    after = assert_pass_keeps_values(sort_values, make.graph(result))
    assert body(after) == "%0 = sort(%x; descending=True) | return %0"


@pytest.mark.parametrize("axes, axis", [((1, 2, 0), 0), ((2, 0, 1), 1), ((0, 2, 1), 1)])
def test_other_axes(axes, axis):
    make, _, result = gathered(axes, axis)
    after = assert_pass_keeps_values(sort_values, make.graph(result))
    assert "sort(" in str(after) and "argsort" not in str(after) and "gather" not in str(after)


def test_operands_that_are_permuted_themselves():
    make = Maker()
    x = make.input(4, 6)
    transposed = make.permute(x, axes=(1, 0))
    found = make.permute(make.argsort(x, count=6, descending=False), axes=(1, 0))
    after = assert_pass_keeps_values(
        sort_values, make.graph(make.gather(transposed, found, axis=0))
    )
    assert "argsort" not in str(after)


def test_what_is_no_sort_stays():
    make, found, result = gathered((0, 1, 2), 2, permuted=False)
    wanted_twice = make.graph(result, found)
    few = gathered((0, 1, 2), 2, count=2, permuted=False)
    square = Maker()
    x = square.input(4, 4)
    transposed = square.permute(x, axes=(1, 0))
    transposed_rows = square.gather(
        x, square.argsort(transposed, count=4, descending=False), axis=1
    )
    for graph in (wanted_twice, few[0].graph(few[2]), square.graph(transposed_rows)):
        assert sort_values(graph) is graph
