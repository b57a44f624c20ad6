"""Loops that write a row in each turn."""

from tgraph.compiler.ir.loop_rows import row_loop, written_state

import tgraph as tg


def test_a_loop_of_fewer_turns_than_rows_does_not_write_them_all():
    graph = tg.trace(lambda xs: tg.scan(lambda c, x: (c + x, c * x), xs[0], xs)[1], tg.ones(5, 2))
    (node,) = (each for each in graph.nodes if each.primitive.name == "loop")
    loop, numbers = row_loop(node), written_state(node)
    assert loop is not None and loop.turns == 5 and numbers
    assert all(loop.written_row(each) is not None for each in numbers)
    assert all(loop._replace(turns=4).written_row(each) is None for each in numbers)
