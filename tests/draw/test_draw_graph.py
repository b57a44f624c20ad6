import numpy as np
from graphs import Writer, layer, scaled_sum
from tgraph.compiler.ir import Graph, Provenance, TensorType
from tgraph.compiler.ir import primitives as p
from tgraph.compiler.targets.cpu.executable import cpu_executable
from tgraph.runtime.dtypes import bool_, float32, int64

from tgraph.drawing.graph_picture import Ends, executable_picture, graph_picture, phase_of, si


def boxes(picture, title):
    return [box for box in picture.boxes if box.title == title]


def box(picture, title):
    (found,) = boxes(picture, title)
    return found


def arrows(picture):
    """Titles of the boxes at both ends."""
    names = {box.key: box.title for box in picture.boxes}
    return [(names[arrow.source], names[arrow.target]) for arrow in picture.arrows]


def details(write, *nodes):
    """The texts beside the operations that give `nodes`."""
    inputs = dict.fromkeys(
        each for node in nodes for each in node.inputs if each.primitive.name == "input"
    )
    picture = graph_picture(Graph(list(inputs), nodes))
    number = {node: at for at, node in enumerate(Graph(list(inputs), nodes).nodes)}
    return [next(b.detail for b in picture.boxes if b.key == f"n{number[each]}") for each in nodes]


def test_every_operation_is_a_box_and_constants_are_not():
    picture = graph_picture(scaled_sum())
    assert [each.title for each in picture.boxes] == ["x", "mul", "sum", "output 0"]
    assert arrows(picture) == [("x", "mul"), ("mul", "sum"), ("sum", "output 0")]
    assert box(picture, "mul").detail == "0.5"
    assert box(picture, "sum").lines == ("float32[2, 1]", "train.py:12")
    assert picture.summary == "3 operations, 1 input, 1 output"


def test_constants_say_which_operand_they_are_where_it_matters():
    write = Writer()
    x, flags = write.input("x", 3), write.input("flags", 3, dtype=bool_)
    two = write.scalar(2.0)
    assert details(
        write,
        write(p.add, two, x),
        write(p.sub, two, x),
        write(p.sub, x, two),
        write(p.where, flags, two, x),
        write(p.mul, x, write.build.full((3,), float("-inf"), float32)),
        write(p.mul, x, write(p.constant, value=np.array([1, 2.5, 3], np.float32))),
    ) == ["2", "2 ·", "2", "· 2 ·", "-inf", "[1.0, 2.5, 3.0]"]


def test_attributes_are_told_briefly():
    write = Writer()
    x, at = write.input("x", 4, 6), write.input("at", 5, dtype=int64)
    assert details(
        write,
        write(p.sum_, x, axes=(0, 1), keepdims=False),
        write(p.max_, x, axes=(1,), keepdims=False),
        write(p.slice_, x, starts=(1, 0), stops=(3, 6), steps=(1, 2)),
        write(p.diagonal, x, offset=-1),
        write(p.permute, x, axes=(1, 0)),
        write(p.reshape, x, shape=(24,)),
        write(p.matmul, x, x, transpose_a=True, transpose_b=False),
        write(p.index, x, at, axis=1),
        write(p.pad, x, low=(1, 0), high=(0, 0), interior=(0, 0), value=0.0),
    ) == [
        "all", "dim 1", "[1:3, ::2]", "offset -1", "(1, 0)", "", "transposed a", "dim 1", "with 0",
    ]  # fmt: skip


def test_large_constants_are_boxes():
    write = Writer()
    x = write.input("x", 9)
    table = write(p.constant, value=np.arange(9, dtype=np.float32))
    picture = graph_picture(Graph([x], [write(p.add, x, table)]))
    assert box(picture, "constant").kind == "constant"
    assert ("constant", "add") in arrows(picture)


def test_an_output_that_is_a_constant_is_drawn():
    picture = graph_picture(Graph([], [Writer().scalar(3.0)]))
    assert arrows(picture) == [("full", "output 0")]
    assert box(picture, "full").detail == "3"


def test_arrows_carry_the_shape_where_it_changes():
    picture = graph_picture(layer())
    labels = {(a.source, a.target): a.label for a in picture.arrows}
    keys = {each.title: each.key for each in picture.boxes}
    assert labels[keys["x"], keys["matmul"]] == "64×128"
    assert labels[keys["exp"], keys["sum"]] == "64×16"
    assert labels[keys["exp"], keys["div"]] == ""
    assert labels[keys["sum"], keys["div"]] == "64×1"


def test_one_arrow_for_both_operands():
    write = Writer()
    x = write.input("x", 3)
    picture = graph_picture(Graph([x], [write(p.mul, x, x)]))
    assert picture.arrows[0].tooltip == "float32[3], operand 0 and 1 of mul"


def test_several_results_come_from_one_box():
    write = Writer()
    x = write.input("x", 4)
    results = (TensorType((4,), float32), TensorType((), int64))
    call = write(p.host_call, x, function=max, results=results, name="topmost")
    first, second = write(p.get, call, index=0), write(p.get, call, index=1)
    graph = Graph([x], [write(p.neg, first), second])
    picture = graph_picture(graph)
    assert arrows(picture) == [
        ("x", "host_call"), ("host_call", "neg"), ("neg", "output 0"), ("host_call", "output 1"),
    ]  # fmt: skip
    assert box(picture, "host_call").detail == "topmost"
    compiled = executable_picture(cpu_executable(graph))
    assert box(compiled, "host_call").kind == "python"
    assert ("host_call", "output 1") in arrows(compiled)


# --- compiled ------------------------------------------------------------------------------------


def test_kernels_are_clusters_and_library_calls_are_not():
    executable = cpu_executable(layer())
    picture = executable_picture(executable)
    kernels = {f"k{n}" for n, info in enumerate(executable.kernels) if info.kind == "kernel"}
    assert {cluster.key for cluster in picture.clusters} == kernels
    assert box(picture, "matmul").kind == "gemm" and box(picture, "matmul").cluster == ""
    softmax = {box(picture, name).cluster for name in ("max", "exp", "sum", "div")}
    assert len(softmax) == 1 and softmax < kernels
    (cluster,) = [each for each in picture.clusters if {each.key} == softmax]
    assert "rows 64" in cluster.tooltip and "tasks" in cluster.tooltip
    assert cluster.detail.endswith("train.py:12")
    assert "train.py:12" not in box(picture, "exp").lines


def test_written_back_outputs_are_marked():
    picture = executable_picture(cpu_executable(layer(), donate={1: 1}))
    written = [each for each in picture.boxes if each.kind == "written"]
    assert [each.title for each in written] == ["w"]
    assert "written into the memory of w" in written[0].tooltip
    inputs = {each.title: each for each in picture.boxes if each.key in ("n0", "n1")}
    assert "overwritten" in inputs["w"].lines and "overwritten" not in inputs["x"].lines


def test_what_two_kernels_compute_is_drawn_in_both():
    write = Writer()
    x = write.input("x", 64, 32)
    cheap = write(p.add, x, write.scalar(1.0))
    product = write.matmul(cheap, write.input("w", 32, 32))
    graph = Graph([x, product.inputs[1]], [write(p.exp, cheap), write.sum(cheap, 0), product])
    executable = cpu_executable(graph)
    picture = executable_picture(executable)
    copies = sum(cheap in info.nodes for info in executable.kernels)
    assert len(boxes(picture, "add")) == copies
    known = {each.key for each in picture.boxes}
    assert all(arrow.source in known and arrow.target in known for arrow in picture.arrows)


def test_a_view_that_costs_nothing_belongs_to_no_kernel():
    write = Writer()
    x, w = write.input("x", 8, 4), write.input("w", 8, 4)
    transposed = write(p.permute, w, axes=(1, 0))
    picture = executable_picture(cpu_executable(Graph([x, w], [write.matmul(x, transposed)])))
    assert box(picture, "permute").kind == "free"
    assert ("permute", "matmul") in arrows(picture)


def test_kinds_and_names_of_ends():
    graph = layer()
    ends = Ends({graph.inputs[1]: "parameter"}, {graph.inputs[0]: "batch"}, {}, {0: "loss"})
    picture = graph_picture(graph, "step", ends)
    assert [(each.title, each.kind) for each in picture.boxes[:2]] == [
        ("batch", "argument"), ("w", "parameter"),
    ]  # fmt: skip
    assert box(picture, "loss").kind == "output"


def test_a_deep_graph():
    write = Writer()
    x = value = write.input("x", 2)
    for _ in range(20_000):
        value = write(p.neg, value)
    picture = graph_picture(Graph([x], [value]))
    assert len(picture.boxes) == 20_002


def test_numbers_with_units():
    given = (0, 999, 1000, 12_345, 999_600, 5e9, 2e15)
    assert [si(each, "B") for each in given] == [
        "0 B", "999 B", "1 kB", "12.3 kB", "1 MB", "5 GB", "2,000 TB",
    ]  # fmt: skip


def test_phases(tmp_path):
    program = tmp_path / "train.py"
    program.write_text("loss = net(x)\noptimizer.step()\n")
    forward = Provenance(str(program), 1, "step", "net")
    assert phase_of(forward) == ""
    assert phase_of(forward._replace(line=2)) == "step"
    assert phase_of(forward._replace(backward=True)) == "backward"
    write = Writer()
    x = write.input("x", 3)
    write.where = forward._replace(backward=True)
    picture = graph_picture(Graph([x], [write(p.neg, x)]))
    assert box(picture, "neg").lines[-1] == "train.py:1 backward"
    assert box(picture, "neg").module == "net backward"
    assert "gradients of that line" in box(picture, "neg").tooltip
    assert "loss = net(x)" in box(picture, "neg").tooltip
