import shutil
import subprocess
import time
import xml.etree.ElementTree as ElementTree

import pytest
from graphs import chain, layer, scaled_sum
from tgraph.compiler.targets.cpu.executable import cpu_executable

from tgraph.drawing import dot as draw_dot
from tgraph.drawing.dot import STYLES, find_dot, render, to_dot
from tgraph.drawing.graph_picture import executable_picture, graph_picture
from tgraph.drawing.picture import Arrow, Box, Picture, shortened

SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}title"

GOLDEN = """\
  "n0" [label=<<b>x</b><br/><font point-size="9" color="#52606d">float32[2, 3]</font>> \
fillcolor="#ffffff" color="#1f4e79" shape="oval" style="filled" \
tooltip="%x: float32[2, 3] = input(name='x', type=float32[2, 3])\\n24 B"]
  "n2" [label=<<b>mul</b>&#160;0.5<br/><font point-size="9" color="#52606d">float32[2, 3]<br/>\
train.py:12</font>> fillcolor="#dcebf7" color="#4a7fb0" \
tooltip="%1: float32[2, 3] = mul(%x, %0)\\n24 B\\n/home/ada/train.py:12 in step\\nmodule net.0"]
  "n3" [label=<<b>sum</b>&#160;dim 1<br/><font point-size="9" color="#52606d">float32[2, 1]<br/>\
train.py:12</font>> fillcolor="#fde3cb" color="#c26a1b" \
tooltip="%2: float32[2, 1] = sum(%1; axes=(1,), keepdims=True)\\n8 B\\n\
/home/ada/train.py:12 in step\\nmodule net.0"]
  "out0" [label=<<b>output 0</b><br/><font point-size="9" color="#ffffff">float32[2, 1]</font>> \
fillcolor="#1f4e79" color="#12304b" shape="oval" style="filled" fontcolor="#ffffff" \
tooltip="output 0: float32[2, 1]"]
  "n0" -> "n2" [tooltip="float32[2, 3], operand 0 of mul"]
  "n2" -> "n3" [label=" 2×3 " tooltip="float32[2, 3], operand 0 of sum"]
  "n3" -> "out0"
}
"""


def texts(svg):
    """Every piece of text in a picture."""
    return [
        "".join(each.itertext()).strip() for each in ElementTree.fromstring(svg).iter(f"{SVG}text")
    ]


def tooltips(svg):
    return [each.get(LINK) for each in ElementTree.fromstring(svg).iter(f"{SVG}a")]


def test_text_of_a_small_graph():
    text = to_dot(graph_picture(scaled_sum()))
    lines = text.splitlines(keepends=True)
    assert lines[0] == "digraph tgraph {\n"
    assert "".join(lines[4:]) == GOLDEN


def test_text_is_the_same_every_time():
    assert to_dot(graph_picture(layer())) == to_dot(graph_picture(layer()))
    first, second = (executable_picture(cpu_executable(layer())) for _ in range(2))
    assert to_dot(first) == to_dot(second)


def test_svg_is_well_formed_and_tells_of_operations_types_and_lines():
    svg = render(to_dot(graph_picture(layer())), "svg")
    found = texts(svg)
    for expected in ("matmul", "max", "dim 1", "float32[64, 16]", "train.py:12", "train.py:30"):
        assert expected in found
    assert any("/home/ada/train.py:12 in step\nmodule net.0" in each for each in tooltips(svg))


def test_svg_of_kernels():
    executable = cpu_executable(layer())
    svg = render(to_dot(executable_picture(executable)), "svg")
    clusters = [
        each for each in ElementTree.fromstring(svg).iter() if each.get("class") == "cluster"
    ]
    kernels = [info for info in executable.kernels if info.kind == "kernel"]
    assert len(clusters) == len(kernels) > 0
    for info in kernels:
        assert info.name in texts(svg)
        assert any(each.startswith(f"{info.name}: ") and "rows" in each for each in tooltips(svg))


def test_png():
    assert render(to_dot(graph_picture(scaled_sum())), "png").startswith(b"\x89PNG")


def test_every_text_survives():
    odd = 'a<b>&"c"\\N %d\n{x|y} é'
    picture = Picture(
        odd, odd, (Box('k"\\', "constant", odd, odd, (odd,), odd), Box("b", "line", "b")),
        (Arrow('k"\\', "b", odd, odd),),
    )  # fmt: skip
    svg = render(to_dot(picture), "svg")
    assert odd in tooltips(svg)
    assert any('a<b>&"c"\\N %d' in each for each in texts(svg))


def test_long_texts_are_cut():
    picture = Picture("t", "s", (Box("a", "line", "x" * 500),), ())
    assert max(map(len, texts(render(to_dot(picture), "svg")))) < 60


def test_contrast_of_text_is_enough_to_read():
    def luminance(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for kind, style in STYLES.items():
        inks = {style.ink, draw_dot._FAINT if style.ink == draw_dot._INK else style.ink}
        for ink in inks:
            high, low = sorted((luminance(ink), luminance(style.fill)), reverse=True)
            assert (high + 0.05) / (low + 0.05) >= 4.5, kind


# --- what may be missing -------------------------------------------------------------------------


def test_dot_of_the_path_comes_first(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: {"dot": "/usr/bin/dot"}.get(name))
    assert find_dot() == "/usr/bin/dot"


def test_the_program_of_the_package_is_found_where_path_does_not_lead(monkeypatch):
    pytest.importorskip("graphviz")
    real = shutil.which
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(shutil, "which", lambda name: real(name) if "/" in name else None)
    assert subprocess.run([find_dot(), "-V"], capture_output=True).returncode == 0


def test_no_program_at_all(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(RuntimeError, match=r"neither `dot` nor.*pip install tgraph\[draw\]"):
        render("digraph { a }", "svg")


def test_no_graphviz_package(without_graphviz):
    with pytest.raises(RuntimeError, match=r"needs the graphviz package.*tgraph\[draw\]"):
        render("digraph { a }", "svg")


def test_what_graphviz_says_is_passed_on():
    with pytest.raises(RuntimeError, match=r"could not draw the picture: .*syntax"):
        render("digraph { a -> }", "svg")


def test_a_picture_of_600_boxes():
    start = time.perf_counter()
    svg = render(to_dot(shortened(graph_picture(chain(600)))), "svg")
    print(f"600 boxes in {time.perf_counter() - start:.2f} s")
    assert texts(svg).count("add") == 600
