"""Pictures of tensors: what they show, and what is refused."""

from __future__ import annotations

import sys

import pytest

import tgraph as tg
from tgraph.utils import plot


def test_pictures_show_all_slices_on_one_scale() -> None:
    pytest.importorskip("matplotlib", reason="draws with matplotlib, which is not installed")
    figure = plot.show(tg.arange(18.0, requires_grad=True).reshape(2, 1, 3, 3), title="cube")
    *maps, _ = figure.axes
    assert [each.get_title() for each in maps] == ["[0, 0]", "[1, 0]"]
    images = [each.images[0] for each in maps]
    assert images[1].get_array().tolist() == [[9, 10, 11], [12, 13, 14], [15, 16, 17]]
    assert {each.get_clim() for each in images} == {(0.0, 17.0)}
    assert figure.get_suptitle() == "cube"
    (line,) = plot.show(tg.tensor([2, 1], dtype=tg.bfloat16)).axes[0].lines
    assert line.get_ydata().tolist() == [2.0, 1.0]
    parts = plot.show(tg.ones(2, 2) * 1j).axes
    assert [each.get_title() for each in parts if each.images and each.get_title()] == [
        "real", "imag",
    ]  # fmt: skip
    assert plot.show(tg.eye(2) > 0).axes[0].images[0].get_cmap().name == "gray"
    axes = plot.curves({"a": [tg.tensor(3.0), 2], "b": tg.ones(3)}, log=True).axes[0]
    assert [each.get_label() for each in axes.lines] == ["a", "b"]
    assert axes.lines[0].get_ydata().tolist() == [3.0, 2.0] and axes.get_yscale() == "log"
    with pytest.raises(ValueError, match="at most 64 slices of two dimensions, got 65"):
        plot.show(tg.ones(65, 2, 2))
    with pytest.raises(ValueError, match=r"expected elements, got a tensor of shape \[0, 2\]"):
        plot.show(tg.ones(0, 2))
    with pytest.raises(ValueError, match="expected real numbers in one dimension"):
        plot.curves(tg.ones(2, 2))


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        plot.show(tg.ones(2))
