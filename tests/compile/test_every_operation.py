"""Every row of the table of operations: grad(grad(compile(f))), and f checked against itself."""

import pytest
from sampling import rotating
from test_ops import COMPILED, SMOOTH, Gradients, as_tuple, check_values, ids, tensors

import tgraph as tg

TWICE = [case for case in SMOOTH if case.compiles and case.second]


@pytest.mark.parametrize("case", rotating(TWICE, 8), ids=ids)
def test_gradient_of_gradient_of_compiled(case):
    row = Gradients(case)
    arguments = row.arguments()
    expected = row.second(*arguments)
    row.function = tg.compile(row.function)
    found = row.second(*arguments)
    assert len(row.function.compiles) == 1
    for have, want in zip(found, expected, strict=True):
        check_values(have.detach().numpy(), want.detach().numpy(), 1e6, case.name)


@pytest.mark.parametrize("case", rotating(COMPILED, 10), ids=ids)
def test_checked(case):
    dtype = case.dtypes[0]
    inputs = tensors(case.arrays(dtype))
    for each in inputs:
        if each.is_floating_point() and case.gradient:
            each.requires_grad_()
    as_tuple(tg.compile(case.function, check=True)(*inputs))
