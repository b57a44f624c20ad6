import pytest
from graphs import chain, layer
from tgraph.compiler.targets.cpu.executable import cpu_executable

from tgraph.drawing.graph_picture import executable_picture, graph_picture
from tgraph.drawing.picture import Arrow, Box, Picture, bundled, collapse, limited, shortened


def titles(picture):
    return [box.title for box in picture.boxes]


def check(picture):
    """Keys are distinct and every arrow has two ends."""
    keys = [box.key for box in picture.boxes]
    assert len(keys) == len(set(keys))
    assert {end for arrow in picture.arrows for end in (arrow.source, arrow.target)} <= set(keys)
    clusters = {cluster.key for cluster in picture.clusters}
    assert all(not box.cluster or box.cluster in clusters for box in picture.boxes)


def test_one_box_per_module():
    picture = collapse(graph_picture(chain(14)), "module")
    check(picture)
    assert titles(picture) == ["x", *(f"net.{number}" for number in range(7)), "output 0"]
    assert picture.boxes[1].lines == ("add 2",)
    ends = [(arrow.source, arrow.target) for arrow in picture.arrows]
    assert len(ends) == len(set(ends)) == 7 + 6 + 1


def test_one_box_per_line():
    picture = collapse(graph_picture(layer()), "line")
    check(picture)
    assert titles(picture) == ["x", "w", "train.py:12", "train.py:30", "output 0", "output 1"]
    assert picture.boxes[2].lines == ("matmul 1, mul 1, max 1, 4 more",)


def test_one_box_per_kernel():
    executable = cpu_executable(layer())
    picture = collapse(executable_picture(executable), "kernel")
    check(picture)
    assert picture.clusters == ()
    inner = [box.title for box in picture.boxes if box.kind in ("kernel", "gemm")]
    names = [info.name for info in executable.kernels]
    assert sorted(inner) == sorted(names)


def test_other_ways_to_collapse_are_refused():
    with pytest.raises(ValueError, match="one of kernel, module, line, got 'file'"):
        collapse(graph_picture(layer()), "file")


def test_small_pictures_stay_as_they_are():
    picture = graph_picture(chain(20))
    assert limited(picture) is picture
    assert shortened(picture) is picture


def test_too_many_boxes_are_put_together_by_module():
    picture = limited(graph_picture(chain(3000)))
    check(picture)
    assert titles(picture)[1:-1] == [f"net.{number}" for number in range(7)]
    assert picture.notes == ("3,002 boxes are too many to draw: one box per module instead",)


def test_too_many_boxes_without_anything_in_common_are_cut():
    picture = limited(graph_picture(chain(3000, places=3000)), 100)
    check(picture)
    assert len(picture.boxes) == 99
    assert "2,904 more boxes" in titles(picture)
    assert picture.notes[0].startswith("2,904 more boxes are left out")
    assert picture.boxes[0].title == "x" and picture.boxes[-1].title == "output 0"


def test_long_arrows_become_references():
    picture = graph_picture(chain(600))
    short = shortened(picture)
    check(short)
    stubs = [box for box in short.boxes if box.kind == "elsewhere"]
    assert {box.title for box in stubs} == {"x"}
    assert {box.link for box in stubs} == {"n0"}
    assert len(short.arrows) == len(picture.arrows)
    assert len(stubs) < 200


def test_rows_of_a_circle_are_found():
    boxes = tuple(Box(name, "line", name) for name in "abc")
    arrows = tuple(Arrow(*ends) for ends in ("ab", "bc", "ca"))
    assert shortened(Picture("t", "s", boxes, arrows), crossings=0).arrows


def test_state_of_one_kernel_is_one_box():
    boxes = [Box("k", "kernel", "update")]
    for name in ("exp_avg", "exp_avg_sq", "step"):
        boxes += [
            Box(name, "captured", name, "", ("float32[2]",)),
            Box(f"{name}'", "written", name),
        ]
    boxes += [Box("w", "parameter", "w"), Box("both", "captured", "both"), Box("l", "kernel", "m")]
    arrows = [Arrow(box.key, "k") for box in boxes if box.kind in ("captured", "parameter")]
    arrows += [Arrow("k", box.key) for box in boxes if box.kind == "written"] + [Arrow("both", "l")]
    picture = bundled(Picture("t", "s", tuple(boxes), tuple(arrows)))
    check(picture)
    assert titles(picture) == [
        "update",
        "3 captured tensors",
        "3 written in place",
        "w",
        "both",
        "m",
    ]
    assert picture.boxes[1].lines == ("exp_avg", "exp_avg_sq", "step")
    assert "exp_avg: float32[2]" in picture.boxes[1].tooltip


def test_numbers_stand_beside_each_reader():
    boxes = (Box("n", "number", "lr"), Box("a", "kernel", "a"), Box("b", "kernel", "b"))
    picture = bundled(Picture("t", "s", boxes, (Arrow("n", "a"), Arrow("n", "b"))))
    check(picture)
    assert titles(picture) == ["lr", "lr", "a", "b"]
    assert len({arrow.source for arrow in picture.arrows}) == 2
