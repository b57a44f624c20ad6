"""Tensors on `meta`: what operations give without elements, and errors where elements are asked."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from opcases import CASES

import tgraph as tg
from tgraph import nn

META = tg.device("meta")
NEED_ELEMENTS = {
    "allclose", "argwhere", "bincount", "equal", "getitem mask 0-d", "masked_scatter",
    "masked_scatter empty", "masked_select", "masked_select 0-d", "masked_select broadcast",
    "nonzero", "nonzero_tuple", "segment_reduce", "unique", "unique rows", "unique_consecutive",
}  # fmt: skip


def known(result: Any) -> list[Any]:
    if isinstance(result, tg.Tensor):
        return [(result.shape, result.dtype, result.stride(), result.requires_grad)]
    return (
        [each for part in result for each in known(part)] if type(result) in (tuple, list) else []
    )


def test_operations_give_what_they_give_with_elements() -> None:
    failed = set()
    for case in CASES:
        if "," in case.name:  # several operations, of which some look at elements
            continue
        inputs = [tg.tensor(each) for each in case.arrays(case.dtypes[0])]
        for each in inputs:
            each.requires_grad_(each.is_floating_point() and case.gradient)
        expected = known(case.function(*inputs))
        there = [each.detach().to("meta").requires_grad_(each.requires_grad) for each in inputs]
        try:
            found = case.function(*there)
        except NotImplementedError as error:
            assert "Cannot copy out of meta tensor; no data! (" in str(error)
            failed.add(case.name)
        else:
            assert known(found) == expected, case.name
    assert failed == NEED_ELEMENTS


def test_what_asks_for_elements_is_refused() -> None:
    x = tg.ones(3, device="meta")
    asks = {
        "item()": lambda: x[0].item(), "tolist()": x.tolist, "a move": x.cpu,
        "a move to": lambda: tg.ones(3).copy_(x), "bool()": lambda: bool(x[0]),
        "nonzero()": lambda: x[x > 0],
    }  # fmt: skip
    for name, ask in asks.items():
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor") as error:
            ask()
        assert f"({name}" in str(error.value)
    with pytest.raises(TypeError, match="can't convert meta device type tensor to numpy"):
        x.numpy()
    with pytest.raises(RuntimeError, match="at least two devices, meta and cpu!"):
        x + tg.ones(3)
    with pytest.raises(RuntimeError, match="have no elements to compute with"):
        tg.compile(lambda x: x + 1).explain(x)
    assert repr(x + tg.tensor(1.0)) == "tensor(..., device='meta', size=(3,))"
    assert x.is_meta and x.data_ptr() == 0 and x.get_device() == -1
    assert tg.ones(4, 6, device="meta")[1:, 2:].storage_offset() == 8
    square = tg.ones(4, 6, device="meta")[1:].diagonal(2)
    assert square.shape == (3,) and square.stride() == (7,) and square.storage_offset() == 8
    pairs = tg.ones(4, device="meta", dtype=tg.complex64)[1:]
    assert tg.view_as_real(pairs).storage_offset() == 2
    assert x.copy_(tg.zeros(3)) is x and x.untyped_storage().nbytes() == 12


def test_assert_close_compares_shapes_and_types() -> None:
    x = tg.ones(3, device="meta")
    tg.testing.assert_close(x, tg.zeros(3, device="meta"))
    for other in (tg.ones(2, device="meta"), tg.ones(3)):
        with pytest.raises(AssertionError, match="for attribute"):
            tg.testing.assert_close(x, other)
    tg.testing.assert_close(x, tg.ones(3), check_device=False)


def test_compiled_functions_give_shapes_and_types() -> None:
    """And are not compiled; what asks for elements is refused as it is without compile."""
    x = tg.ones(3, 4, device="meta", requires_grad=True)
    for check in (False, True):
        multiplied = tg.compile(lambda x: x @ x.mT, check=check)
        assert multiplied(x).shape == (3, 3) and multiplied(x).requires_grad
        assert multiplied(tg.ones(2, 1)).tolist() == [[1, 1], [1, 1]]
        multiplied.assert_compiles(1)
        with pytest.raises(NotImplementedError, match=r"\(nonzero\(\)"):
            tg.compile(tg.nonzero, check=check)(x)
    assert tg.compile(nn.Linear(4, 2, device="meta"))(x).is_meta


def test_modules_without_memory() -> None:
    tg.manual_seed(0)
    expected = nn.Linear(3, 2).weight
    tg.manual_seed(0)
    with META:
        large = nn.Linear(10**7, 10**7)
        net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Dropout())
    assert tg.equal(nn.Linear(3, 2).weight, expected)  # nothing was drawn
    assert large(tg.ones(1, 10**7, device="meta")).shape == (1, 10**7)
    assert copy.deepcopy(net)[0].weight.is_meta and net[1].running_mean.is_meta
    for _ in range(2):
        net(tg.ones(5, 3, device="meta")).sum().backward()
        tg.optim.Adam(net.parameters()).step()
    assert net[0].weight.grad.is_meta and net[0].weight.is_meta
    state = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Dropout()).state_dict()
    with pytest.warns(UserWarning, match=r"for \d.\w+: copying from a non-meta"):
        net.load_state_dict(state)
    with pytest.raises(NotImplementedError, match="to_empty"):
        net.to("cpu")
    ready = copy.deepcopy(net).to_empty(device="cpu")
    ready.load_state_dict(state)
    net.load_state_dict(state, assign=True)
    x = tg.ones(4, 3)
    assert tg.equal(net.eval()(x), ready.eval()(x))
