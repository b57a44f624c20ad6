import subprocess
import sys

import pytest
from tgraph.compiler.ir import Builder, Graph, Provenance, TensorType, input_node
from tgraph.compiler.ir import primitives as p
from tgraph.runtime.dtypes import float32, int64

nx = pytest.importorskip("networkx")
HERE = Provenance("train.py", 12, "step", "net.0")


def small_graph():
    build, x = Builder(), input_node("x", TensorType((2, 3), float32))
    total = build.apply(p.sum_, [x], {"axes": (1,), "keepdims": True}, HERE)
    return Graph([x], [build.apply(p.sub, [x, total]), build.apply(p.mul, [x, x])])


def rebuilt(exported):
    """The graph of an exported one, from what is in it alone."""
    build, made = Builder(), {}
    for name, data in exported.nodes.items():
        edges = exported.in_edges(name, data="positions")
        at = {position: source for source, _, found in edges for position in found}
        operands = [made[at[position]] for position in range(len(at))]
        if data["op"] == "input":
            made[name] = data["node"]
        else:
            made[name] = build.apply(p.PRIMITIVES[data["op"]], operands, data["attrs"])
    ends = exported.graph
    return Graph([made[key] for key in ends["inputs"]], [made[key] for key in ends["outputs"]])


def test_nothing_is_lost():
    graph = small_graph()
    exported = graph.to_networkx()
    assert str(rebuilt(exported)) == str(graph)
    assert nx.is_directed_acyclic_graph(exported)
    assert list(exported) == ["%x", "%0", "%1", "%2"]


def test_attributes():
    exported = small_graph().to_networkx()
    total = exported.nodes["%0"]
    assert (total["op"], total["shape"], total["dtype"]) == ("sum", (2, 1), float32)
    assert total["where"] is HERE
    assert dict(total["attrs"]) == {"axes": (1,), "keepdims": True}
    assert exported.edges["%x", "%2"]["positions"] == (0, 1)
    assert exported.edges["%0", "%1"]["positions"] == (1,)
    assert exported.graph == {"inputs": ("%x",), "outputs": ("%1", "%2")}


def test_inputs_of_one_name_are_two_nodes():
    build, type_ = Builder(), TensorType((2,), float32)
    first, second = input_node("x", type_), input_node("x", type_)
    exported = Graph([first, second], [build.apply(p.sub, [second, first])]).to_networkx()
    assert list(exported) == ["%x", "%x.1", "%0"]
    assert exported.edges["%x.1", "%0"]["positions"] == (0,)


def test_several_results_have_tuples_of_types():
    build, x = Builder(), input_node("x", TensorType((2,), float32))
    results = (TensorType((2,), float32), TensorType((), int64))
    call = build.apply(p.host_call, [x], {"function": max, "results": results, "name": "f"})
    exported = Graph([x], [build.apply(p.get, [call], {"index": 1})]).to_networkx()
    assert exported.nodes["%0"]["shape"] == ((2,), ())
    assert exported.nodes["%0"]["dtype"] == (float32, int64)


def test_importing_the_graph_does_not_import_networkx():
    code = "import sys, tgraph.compiler.ir; assert 'networkx' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
