"""Random graphs: eager evaluation, kernel interpreter and generated code must agree.

`pytest tests/test_random_graphs.py --graphs 100000` checks more of them, `--seed` others. A
failure names the seed and prints the smallest graph found on which the engine still fails.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_graphs.check import (
    ENGINES,
    MAKERS,
    RUN,
    Case,
    Mismatch,
    case_of,
    check,
    describe,
    fails,
    program_of_seed,
    report,
    shrink,
)
from random_graphs.decisions import check_decisions
from random_graphs.engines import run_eagerly
from random_graphs.program import random_program
from tgraph.compiler.ir import PRIMITIVES, Builder, Graph, TensorType, input_node
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.passes.symbolic_zeros import symbolic_zeros
from tgraph.runtime.dtypes import float32, int64

CHUNKS = 10  # so that a parallel run has something to share
SHOWN = 5


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_engines_agree_on_random_graphs(chunk, request):
    count, first = request.config.getoption("graphs"), request.config.getoption("seed")
    failures = []
    for seed in range(first + chunk, first + count, CHUNKS):
        case = case_of(program_of_seed(seed))
        try:
            check(case)
        except Mismatch as mismatch:
            failures.append(report(seed, case, mismatch))
            if len(failures) == SHOWN:
                break
    assert not failures, "\n\n".join(failures)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_parts_of_random_graphs_in_branches_and_loops(chunk, request):
    count, first = request.config.getoption("graphs"), request.config.getoption("seed")
    failures = []
    for seed in range(first + chunk, first + count // 4, CHUNKS):
        case = case_of(program_of_seed(seed))
        try:
            check(case, ["enclosed"])
        except Mismatch as mismatch:
            failures.append(report(seed, case, mismatch))
            if len(failures) == SHOWN:
                break
    assert not failures, "\n\n".join(failures)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_backward_outside_decides_as_the_call_did(chunk, request):
    """Behind normalisations, and with state that changes between the calls."""
    count, first = request.config.getoption("graphs"), request.config.getoption("seed")
    failures = []
    for seed in range(first + chunk, first + count // 4, CHUNKS):
        wrong = check_decisions(seed)
        if wrong:
            failures.append(f"seed {seed}: {wrong}")
            if len(failures) == SHOWN:
                break
    assert not failures, "\n".join(failures)


def test_operands_that_are_zero_may_be_left_out(request):
    """As cotangents of results that nothing comes into: the rest is what zeros would give."""
    count, first = request.config.getoption("graphs"), request.config.getoption("seed")
    tried = set()
    for seed in range(first, first + max(count // 3, 100)):  # fewer miss some primitives
        program = program_of_seed(seed)
        try:
            values = run_eagerly(program.graph(), program.arrays)
        except IndexError:
            continue
        for node in values:
            every = (node, *node.inputs)
            if node.inputs and all(isinstance(each.type, TensorType) for each in every):
                floats = {at for at, x in enumerate(node.inputs) if x.type.dtype.is_floating_point}
                for zeros in {frozenset(floats), *(frozenset([each]) for each in floats)}:
                    check_without_zeros(node, [values[x] for x in node.inputs], zeros)
                tried.add(node.primitive)
    assert {p.mul, p.where, p.add, p.pad, p.slice_update, p.index_put, p.scatter_add} <= tried


def check_without_zeros(node, arrays, zeros):
    inputs = [input_node(f"x{at}", x.type) for at, x in enumerate(node.inputs)]
    graph = Graph(inputs, [Builder().rebuild(node, inputs)])
    arrays = [np.zeros_like(each) if at in zeros else each for at, each in enumerate(arrays)]
    with np.errstate(all="ignore"):
        wanted = run_eagerly(graph, arrays)[graph.outputs[0]]
    if np.isfinite(wanted.astype(np.float64)).all():
        smaller = symbolic_zeros(graph, {inputs[at] for at in zeros})
        found = run_eagerly(smaller, [x for at, x in enumerate(arrays) if at not in zeros])
        np.testing.assert_array_equal(found[smaller.outputs[0]], wanted, err_msg=str(node))


@settings(
    max_examples=30,
    deadline=None,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_hypothesis_drives_the_generator(data):
    """Hypothesis draws and shrinks the same programs by their choices."""
    program = random_program(
        lambda n: data.draw(st.integers(0, max(n - 1, 0))), data.draw(st.integers(1, 12)), MAKERS
    )
    check(case_of(program), ["kernels"])


def test_programs_cover_the_primitives():
    found = set()
    for seed in range(1000):
        found.update(node.primitive.name for node in program_of_seed(seed).graph().nodes)
    # What only a pass writes.
    written = {"attention", "attention_rows", "attention_gradient", "sort", "assemble"}
    around = {"branch", "loop"}  # of `enclosed`
    of_complex = {"complex", "conj", "view_as_complex", "view_as_real"}  # of test_complex.py
    bits = {"bitcast", "repack"}  # of test_special_values.py and files/test_storage.py
    elsewhere = {"transfer", "csr_matmul"}  # of test_devices.py and test_sparse.py
    assert found == set(PRIMITIVES) - {*bits, *elsewhere, *around, *of_complex, *written}


def test_programs_do_not_depend_on_when_they_are_made():
    first, second = (describe(case_of(program_of_seed(7))) for _ in range(2))
    assert first == second


def test_bounds_hold():
    """What is known of values is true of them, so that tolerances mean something."""
    for seed in range(100):
        program = program_of_seed(seed)
        graph = program.graph()
        try:
            values = run_eagerly(graph, program.arrays)
        except IndexError:
            continue
        for value in program.outputs:
            array = values[value.node].astype(np.float64)
            assert np.all(np.isfinite(array))
            assert np.abs(array).max(initial=0) <= value.bound * 1.01 + 1e-3, (seed, value)
            if value.is_float and value.exact:
                scaled = array * 2.0**value.grain
                assert np.array_equal(scaled, np.round(scaled)), (seed, value)


def test_a_wrong_engine_is_found_and_shrunk(monkeypatch):
    """An engine that negates cosines: what is left is one cosine."""

    def wrong(case: Case) -> list[np.ndarray]:
        build = Builder()
        new = {node: node for node in case.graph.inputs}
        for node in case.graph.nodes:
            if node not in new:
                new[node] = build.rebuild(node, [new[each] for each in node.inputs])
                if node.primitive is p.cos:
                    new[node] = build.apply(p.neg, [new[node]])
        graph = Graph(case.graph.inputs, [new[node] for node in case.graph.outputs])
        values = run_eagerly(graph, case.arrays)
        return [values[node] for node in graph.outputs]

    monkeypatch.setitem(RUN, "wrong", wrong)
    programs = (program_of_seed(seed) for seed in range(1000))
    cases = (case_of(each) for each in programs if not each.hazard)
    case = next(
        case
        for case in cases
        if "cos" in {node.primitive.name for node in case.graph.nodes} and fails(case, "wrong")
    )
    small = shrink(case, "wrong")
    assert [node.primitive.name for node in small.graph.nodes] == ["input", "cos"]
    with pytest.raises(Mismatch, match="wrong: output 0 differs"):
        check(small, ["wrong"])


def test_a_missing_index_error_is_found():
    x = input_node("x", TensorType((3,), float32))
    build = Builder()
    at = build.apply(p.constant, [], {"value": np.array([3])})
    graph = Graph([x], [build.apply(p.index, [x, at], {"axis": 0})])
    case = Case(graph, (np.ones(3, np.float32),), (0.0,))
    check(case, ENGINES)


def test_reads_outside_matter_where_a_result_depends_on_them():
    """Compiled code checks the positions that it reads; an element that nobody wants has none."""
    build, x = Builder(), input_node("x", TensorType((3, 4), float32))
    at = input_node("at", TensorType((3, 1), int64))
    picked = build.apply(p.gather, [x, at], {"axis": 1})
    rows = input_node("rows", TensorType((2,), int64))
    chosen = build.apply(p.index, [picked, rows], {"axis": 0})
    graph = Graph([x, at, rows], [chosen])
    arrays = [np.zeros((3, 4), np.float32), np.array([[0], [9], [1]])]
    for wanted, refused in (([0, 2], False), ([0, 1], True)):
        case = Case(graph, (*arrays, np.array(wanted)), (0.0,))
        check(case)
        if refused:
            with pytest.raises(IndexError, match="index 9 is out of bounds"):
                RUN["compiled"](case)
        else:
            np.testing.assert_array_equal(RUN["compiled"](case)[0], np.zeros((2, 1)))
