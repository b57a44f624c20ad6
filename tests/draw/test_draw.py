import xml.etree.ElementTree as ElementTree

import pytest
from graphs import layer, scaled_sum
from tgraph.compiler.targets.cpu.executable import cpu_executable

import tgraph as tg
from tgraph import nn
from tgraph.drawing.function_picture import compiled_picture, traced_picture
from tgraph.optim import SGD, Adam

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg):
    found = ElementTree.fromstring(svg).iter(f"{SVG}text")
    return ["".join(each.itertext()).strip() for each in found]


def titles(picture, kind):
    return [box.title for box in picture.boxes if box.kind == kind]


def mlp():
    tg.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def test_a_graph():
    svg = tg.draw(scaled_sum())
    assert "mul" in texts(svg) and svg._repr_svg_() == svg


def test_kernels_of_an_executable():
    executable = cpu_executable(layer())
    assert executable.kernels[1].name in texts(tg.draw(executable))


def test_a_drawn_graph_takes_nothing_more_for_granted():
    with tg.Graph() as g:
        x, z = (tg.placeholder(tg.float32, (None, None), name) for name in "xz")
        for each in (x[x > 1], x[1:], x[::2], tg.cat([x, x]), x.t(), x.flatten(), z.t() @ z):
            loss = each.sum()
        taken = list(g.trace.sizes.guards)
        tg.draw(loss)
    tg.draw(g)
    assert list(g.trace.sizes.guards) == taken


def test_nothing_is_drawn_as_nothing():
    with tg.Graph() as g:
        tg.placeholder(tg.float32, (None,), "x")
    assert any(each.startswith("0 operations") for each in texts(tg.draw(g)))
    assert any(each.startswith("0 operations") for each in texts(tg.draw(lambda: None)))
    executable = tg.Session(g).executable([])
    assert any(each.startswith("0 fused kernels") for each in texts(tg.draw(executable)))


def test_a_function_is_traced():
    found = texts(tg.draw(lambda x: tg.softmax(x, -1), None, tg.ones(3, 4)))
    assert {"x", "exp", "result", "float32[3, 4]"} <= set(found)


def test_a_module_is_traced():
    model = mlp()
    picture = traced_picture(model, (tg.ones(2, 8),), {})
    assert picture.title == "Sequential, as traced"
    assert len(titles(picture, "parameter")) == 4
    assert titles(picture, "argument") == ["input"]
    modules = {box.module for box in picture.boxes if box.title == "matmul"}
    assert modules == {"0", "2"}


def test_tracing_for_a_picture_changes_nothing():
    model = mlp()
    optimizer = SGD(model.parameters(), lr=0.1)
    before = [each.tolist() for each in model.parameters()]

    def step(x):
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    picture = traced_picture(step, (tg.ones(2, 8),), {})
    assert [each.tolist() for each in model.parameters()] == before
    assert all(each.grad is None for each in model.parameters())
    assert titles(picture, "written") == [
        "model.0.weight", "model.0.bias", "model.2.weight", "model.2.bias",
    ]  # fmt: skip
    assert "model.0.weight.grad" in titles(picture, "output")
    phases = {box.phase for box in picture.boxes}
    assert phases == {"", "backward", "step"}


def test_names_of_arguments_and_results():
    def f(batch, scale=2.0, *, extra):
        return {"sum": batch["x"] + extra, "rest": (batch["y"] * scale,)}

    batch = {"x": tg.ones(2), "y": tg.ones(3)}
    picture = traced_picture(f, (batch,), {"extra": tg.ones(2)})
    assert titles(picture, "argument") == ["batch['x']", "batch['y']", "extra"]
    assert titles(picture, "output") == ["result['sum']", "result['rest'][0]"]


def test_a_compiled_function():
    f = tg.compile(lambda x: tg.softmax(x * 2, -1))
    x = tg.rand(64, 32)
    svg = tg.draw(f, None, x)
    (kernel,) = [each for each in texts(svg) if each.startswith("k0_")]
    assert kernel in texts(tg.draw(f))  # the plan made last
    assert len(f.compiles) == 1


def test_a_compiled_training_step():
    model, x = mlp(), tg.rand(32, 8)
    optimizer = Adam(model.parameters())

    @tg.compile
    def step(x):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    picture = compiled_picture(step, (x,), {})
    assert picture.title == "step, compiled"
    assert {"model.0.weight", "model.0.weight exp_avg"} <= set(titles(picture, "written"))
    assert "model.2.bias exp_avg_sq" in titles(picture, "captured")
    assert len(picture.clusters) > 3 and len(titles(picture, "gemm")) == 5
    assert step.latest.run([x]) is not None
    known = {box.key for box in picture.boxes}
    assert all(arrow.source in known and arrow.target in known for arrow in picture.arrows)


def test_forward_and_backward_plans():
    f = tg.compile(lambda x, w: tg.exp(x @ w).sum())
    x, w = tg.rand(8, 8), tg.rand(8, 8, requires_grad=True)
    picture = compiled_picture(f, (x, w), {})
    assert picture.summary.startswith("forward: ") and "; backward: " in picture.summary
    assert "gradient of w" in titles(picture, "output")
    assert titles(picture, "saved") == ["saved"]
    assert len(titles(picture, "gemm")) == 2
    keys = [box.key for box in picture.boxes]
    assert len(keys) == len(set(keys))
    assert {end for arrow in picture.arrows for end in (arrow.source, arrow.target)} <= set(keys)
    ElementTree.fromstring(tg.draw(f, None, x, w))


def test_collapse():
    model, x = mlp(), tg.ones(2, 8)
    found = texts(tg.draw(lambda x: model(x), None, x, collapse="module"))
    assert "permute 1, matmul 1, add 1" in found
    with pytest.raises(ValueError, match="collapse expected one of"):
        tg.draw(scaled_sum(), collapse="everything")


def test_names_of_the_caller():
    weights = tg.ones(3, requires_grad=True)
    result = weights.exp()
    found = texts(tg.draw(result))
    assert "weights" in found and "autograd graph of result" in found


@pytest.mark.parametrize(
    ("ending", "start"),
    [("svg", b"<?xml"), ("png", b"\x89PNG"), ("dot", b"digraph"), ("SVG", b"<?")],
)
def test_files(tmp_path, ending, start):
    path = tmp_path / f"graph.{ending}"
    assert tg.draw(scaled_sum(), path) is None
    assert path.read_bytes().startswith(start)


def test_dot_text_needs_no_graphviz(tmp_path, without_graphviz):
    tg.draw(scaled_sum(), str(tmp_path / "graph.dot"))
    with pytest.raises(RuntimeError, match="graphviz package"):
        tg.draw(scaled_sum())


def test_a_path_of_another_kind(tmp_path):
    with pytest.raises(ValueError, match=r"ends in .svg, .png, .dot, .gv, got .*graph.jpg"):
        tg.draw(scaled_sum(), tmp_path / "graph.jpg")


def test_things_that_cannot_be_drawn():
    with pytest.raises(TypeError, match="got int"):
        tg.draw(3)
    with pytest.raises(TypeError, match="arguments for functions only, got some for a Graph"):
        tg.draw(scaled_sum(), None, tg.ones(3))


def test_a_large_function():
    def f(x):
        for _ in range(1500):
            x = x * 2 + 1
        return x

    found = texts(tg.draw(f, None, tg.ones(2)))
    assert any("too many to draw: one box per line" in each for each in found)
    assert "mul 1,500, add 1,500" in found
