"""The body of a stage under construction: what is one instruction, and what is left of them."""

from __future__ import annotations

import math

from tgraph.compiler.ir import TensorType, input_node
from tgraph.compiler.kernel.body import Body, Parameters
from tgraph.compiler.kernel.index import Axis, Index, InRange, Loaded, of_axis
from tgraph.compiler.kernel.kernel import Instr
from tgraph.compiler.kernel.kernel_io import BufferLayout
from tgraph.runtime.dtypes import float32, int32, int64

ROW = of_axis(Axis("i0", 4))


def positions(dtype=int64):
    return input_node("positions", TensorType((4,), dtype))


def loaded_position(body, node):
    """A position read from data, as an index expression that is not resolved yet."""
    need = (node, (ROW,), ())
    body.values[need] = body.add(Instr("load", (), node.type.dtype, 0, ROW))
    return Index({Loaded(need, 10): 1})


def test_equal_pure_instructions_are_one():
    body = Body(Parameters())
    first = body.add(Instr("load", (), float32, 0, ROW))
    assert body.add(Instr("load", (), float32, 0, ROW)) == first
    assert body.add(Instr("load", (), float32, 0, ROW + 1)) != first
    store = Instr("store", (first,), float32, 1, ROW)
    assert body.add(store) != body.add(store)


def test_constants_are_equal_by_their_bits():
    body = Body(Parameters())
    assert body.constant(0.0, float32) != body.constant(-0.0, float32)
    assert body.constant(math.nan, float32) == body.constant(math.nan, float32)
    assert body.constant(1, float32) != body.constant(1, int64)


def test_what_no_effect_needs_is_dropped_and_the_rest_renumbered():
    body = Body(Parameters())
    body.add(Instr("load", (), float32, 0, ROW))
    wanted = body.add(Instr("load", (), float32, 1, ROW))
    body.add(Instr("exp", (0,), float32))
    body.add(Instr("store", (wanted,), float32, 2, ROW))
    left = body.without_dead()
    assert [(instr.op, instr.args) for instr in left] == [("load", ()), ("store", (0,))]
    assert left[0].param == 1


def test_addresses_and_conditions_keep_their_positions_alive():
    body = Body(Parameters())
    body.add(Instr("load", (), float32, 0, ROW))
    at = body.resolve(loaded_position(body, positions()))
    mask = (InRange(at, 2, 5),)
    value = body.add(Instr("load", (), float32, 1, at, mask))
    body.add(Instr("store", (value,), float32, 2, ROW))
    position, check, load, store = body.without_dead()
    assert [position.op, check.op, load.op, store.op] == ["load", "check", "load", "store"]
    moved = Index({Loaded(1, 10): 1})
    assert load.index == moved and load.mask == (InRange(moved, 2, 5),)


def test_a_position_is_checked_once_as_int64():
    body = Body(Parameters())
    index = loaded_position(body, positions(int32))
    assert body.resolve(index) == body.resolve(index + 1) - 1
    assert [instr.op for instr in body.instrs] == ["load", "cast", "check"]
    assert body.instrs[-1].value == (10, 0, 0) and body.parameters.params[0].name == "status"


def test_a_node_that_is_read_and_written_is_one_parameter():
    parameters = Parameters()
    node = input_node("x", TensorType((4,), float32))
    buffer = BufferLayout.contiguous((4,))
    assert parameters.number_of(node, buffer, written=False) == 0
    assert parameters.number_of(node, buffer, written=True) == 0
    assert parameters.number_of(node, buffer, written=False) == 0
    (param,) = parameters.params
    assert param.name == "in0" and param.written and parameters.nodes == [node]
