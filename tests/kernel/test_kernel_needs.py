"""What kernels need, counted by hand, and what that costs on a machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any

import pytest
from tgraph.compiler.fusion.fusion import fuse
from tgraph.compiler.fusion.machine import Machine, nanoseconds
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.kernel.kernel_needs import KernelNeeds, Traffic
from tgraph.compiler.pipeline import optimize
from tgraph.compiler.targets.cpu.rules import CpuRules

import tgraph as tg
from tgraph.tracing import trace

ROWS, WIDTH = 6, 50
COUNT = ROWS * WIDTH


def needs_of(function: Callable[..., Any], *arguments: tg.Tensor) -> KernelNeeds:
    fused = fuse(CpuRules(optimize(trace(function, *arguments))))
    (group,) = fused.groups
    needs = fused.assess(group).needs
    assert needs is not None
    return needs


def test_every_element_is_computed_and_moved_once():
    needs = needs_of(lambda x: tg.exp(x) + x, tg.randn(ROWS, WIDTH))
    assert needs.operations == ((4, COUNT * (p.exp.cost + p.add.cost)),)
    assert needs.reads == needs.writes == (Traffic(COUNT, COUNT, 4),)
    assert needs.rows == COUNT and not needs.may_fail


def test_what_a_row_shares_is_computed_once_for_it():
    column, x = tg.randn(ROWS, 1), tg.randn(ROWS, WIDTH)
    needs = needs_of(lambda x, c: x * tg.exp(c), x, column)
    assert needs.operations == ((4, COUNT * p.mul.cost + ROWS * p.exp.cost),)
    assert {each.accesses for each in needs.reads} == {COUNT, ROWS}


def test_stages_read_their_row_again():
    needs = needs_of(lambda x: x - x.amax(1, keepdim=True), tg.randn(ROWS, WIDTH))
    assert needs.reads == (Traffic(2 * COUNT, COUNT, 4),) and needs.rows == ROWS
    (read,) = needs.reads
    assert (read.nbytes, read.repeated) == (4 * COUNT, 4 * COUNT)


def test_shifted_reads_count_each():
    needs = needs_of(lambda x: x[:-2] + x[1:-1] + x[2:], tg.randn(COUNT))
    assert needs.reads == (Traffic(3 * (COUNT - 2), COUNT, 4),)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, at: x[at],
        lambda x, at: x.gather(0, at[:, None]),
        lambda x, at: at // (at + 1),
        lambda x, at: x.index_put((at,), tg.ones(())),
    ],
    ids=["index", "gather", "floor_divide", "index_put"],
)
def test_what_checks_may_fail(function):
    assert needs_of(function, tg.randn(ROWS, WIDTH), tg.arange(ROWS)).may_fail


MACHINE = Machine(operation=1.0, levels=((1000, 2.0), (inf, 10.0)), again=0.5, start=100.0, units=4)


def price(**fields: Any) -> float:
    needs = KernelNeeds(((4, 10),), (Traffic(100, 100, 4),), (), 4, False)
    return MACHINE.price(replace(needs, **fields))


def test_a_price_is_what_is_moved_and_computed():
    assert price() == 100 + 800 + 40 / 4
    assert price(operations=((4, 1000),)) == 100 + 4000 + 800 / 4
    assert price(operations=((1, 1000),)) == price(operations=((4, 1000),))
    assert price(operations=((8, 1000),)) == 100 + 8000 + 800 / 4
    assert price(reads=(Traffic(100, 1000, 4),)) == 100 + 4000 + 40 / 4
    assert price(reads=(Traffic(300, 100, 4),)) == 100 + 800 + 400 + 40 / 4
    assert price(rows=1) == 100 + 4 * (price() - 100)
    assert price(rows=9) == price()


def test_times_are_told_in_units():
    assert [nanoseconds(each) for each in (3.0, 1234.0, 5.6e6, 7e9)] == [
        "3 ns",
        "1.23 us",
        "5.6 ms",
        "7 s",
    ]
