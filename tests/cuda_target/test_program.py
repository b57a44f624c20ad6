"""What users read of a CUDA program: its text, launches, buffers and files."""

import re
from pathlib import Path

import numpy as np
import pytest
from cuda_tools import shim
from cuda_tools.run_program import run_program

import tgraph as tg
from tgraph.nn import functional as F

DOCS = Path(__file__).parents[2] / "docs"


def block(x, weight, gain):
    return F.layer_norm(x @ weight, (64,)) * gain


@pytest.fixture
def program():
    return tg.cuda.program(block, tg.ones(32, 128), tg.ones(128, 64), tg.ones(64))


def test_the_documentation_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "cuda_md"}
    for code in re.findall(r"```python\n(.*?)```", (DOCS / "cuda.md").read_text(), re.DOTALL):
        exec(compile(code, "cuda.md", "exec"), names)
    assert "launch k0_max_sum_div" in capsys.readouterr().out
    assert (tmp_path / "softmax_program" / "kernels.cu").exists()


def test_launches_and_library_calls_stand_in_order(program):
    product, kernel = program.steps
    assert (product.m, product.n, product.k) == (32, 64, 128)
    assert [launch.name for launch in program.launches] == [kernel.name]
    assert f'extern "C" __global__ void __launch_bounds__(128) {kernel.name}(' in program.source


def test_buffers_tell_what_arguments_are(program):
    inputs = [each.name for each in program.buffers.values() if each.kind == "input"]
    assert inputs == ["x", "weight", "gain"]
    (output,) = [each for each in program.buffers.values() if each.kind == "output"]
    assert (output.shape, output.dtype, output.nbytes) == ((32, 64), "float32", 32 * 64 * 4)
    for launch in program.launches:
        for ref in launch.args:
            buffer = program.buffers[ref.slot]
            assert 0 <= ref.offset < buffer.nbytes
            assert ref.offset % 256 == 0


def test_comments_name_the_user_s_lines(program):
    line = block.__code__.co_firstlineno + 1
    assert f"{Path(__file__).name}:{line}" in program.source


def test_save_writes_what_is_printed(program, tmp_path):
    folder = program.save(tmp_path / "new" / "folder")
    assert (folder / "kernels.cu").read_text() == program.source
    assert (folder / "program.txt").read_text() == f"{program}\n"


def test_the_text_needs_no_header_and_is_the_same_each_time(program):
    assert "#include" not in program.source
    again = tg.cuda.program(block, tg.ones(32, 128), tg.ones(128, 64), tg.ones(64))
    assert again.source == program.source


def test_an_unknown_architecture_is_refused():
    with pytest.raises(ValueError, match=r"unknown architecture 'sm_1'.*sm_90"):
        tg.cuda.program(tg.exp, tg.ones(3), arch="sm_1")


def test_positions_of_large_tensors_have_64_bits():
    """Without memory of that size: the graph alone decides."""
    rows = 1 << 20

    def outer(a, b):
        return (a[:, None] * b[None, :]).exp()

    small = tg.cuda.program(outer, tg.ones(rows), tg.ones(16))
    large = tg.cuda.program(outer, tg.ones(rows), tg.ones(4096))
    assert "const int item" in small.source and "long long item" not in small.source
    assert "const long long item" in large.source


def test_results_without_elements_need_no_kernel():
    program = tg.cuda.program(lambda x: x * 2, tg.ones(0, 3))
    assert program.launches == () and program.steps == ()


@pytest.mark.skipif(shim.available() is not None, reason=str(shim.available()))
def test_checks_in_tiles_are_for_points_that_exist():
    """A gather beside a transposed matrix: positions are read by threads inside the tile only."""
    values, table = np.random.default_rng(0).standard_normal((2, 40, 45)).astype(np.float32)
    rows = np.random.default_rng(1).integers(0, 45, 45)

    def function(x, y, at):
        return x.t() + y.t()[at]

    inputs = [tg.from_numpy(each) for each in (values, table, rows)]
    program = tg.cuda.program(function, *inputs)
    assert "__shared__" in program.source.split('extern "C"', 1)[1]
    (found,) = run_program(program, [values, table, rows], "shuffled", 1)
    np.testing.assert_allclose(found, values.T + table.T[rows], rtol=1e-6)
    with pytest.raises(IndexError, match="index 99 is out of bounds for dimension with size 45"):
        run_program(program, [values, table, np.where(rows == rows[3], 99, rows)])
