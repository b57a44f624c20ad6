"""The kernels of fused functions: what is printed, what CuPy makes of it, how often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from fused_tools import Counted, parameters, set_gradients, swish
from tgraph.compiler.targets.cuda import elementwise as cuda_elementwise
from tgraph.runtime.cuda import backend, elementwise, nvrtc
from tgraph.runtime.device import Device

import tgraph as tg
from tgraph.core import pytree
from tgraph.core.tensor import intern_type
from tgraph.ops.fused_function import Fused

pytest_plugins = ["cuda_tools.device"]

F = tg.nn.functional


@pytest.fixture
def counted(cuda: Any, monkeypatch: Any) -> Counted:
    return Counted(monkeypatch)


def texts_of(function: Callable[..., Any], *types: Any) -> list[elementwise.Text]:
    """The kernels of a function, for arguments given as (dtype, shape) or numbers."""
    device = Device("cuda", 0)
    leaves = [
        intern_type(each[1], each[0], device) if isinstance(each, tuple) else each for each in types
    ]
    spec = pytree.flatten((tuple(range(len(leaves))), {}))[1]
    return [launch.text for launch in Fused(function).program(leaves, spec).launches]


def test_the_text() -> None:
    (text,) = texts_of(swish.__wrapped__, (tg.bfloat16, (4,)), 1.5)
    assert text.in_params == "uint16 in0, float64 in1"
    assert text.out_params == "uint16 out0"
    assert text.operation.splitlines() == [
        "const float x0 = bfloat_to_float(in0);",
        "const double x1 = in1;",
        "const double v2 = -x1;",
        "const float v3 = (float)v2;",
        "const float v4 = v3 * x0;",
        "const float v5 = bfloat_to_float(bfloat_from_float((float)v4));",
        "const float v6 = expf(v5);",
        "const float v7 = __fadd_rn(v6, 1.0f);",
        "const float v8 = x0 / v7;",
        "out0 = bfloat_from_float(v8);",
    ]


def in_cupys_words(text: elementwise.Text) -> str:
    """The source that CuPy makes of a kernel, for two-dimensional strided operands."""
    from cupy import ndarray
    from cupy._core import _carray, _kernel, _scalar, core

    kernel = core.ElementwiseKernel(
        text.in_params, text.out_params, text.operation, text.name, preamble=text.preamble
    )
    infos = []
    for parameter in kernel.params:
        words = repr(parameter)
        if "name='_ind'" in words:
            infos.append(_kernel._ArgInfo(2, _carray.Indexer, None, 2, True, True))
            continue
        dtype = np.dtype(words.split("dtype('")[1].split("'")[0])
        if "name='p" in words or (dtype == np.float64 and "is_const=True" in words):
            infos.append(_kernel._ArgInfo(3, _scalar.CScalar, dtype, 0, True, True))
        else:
            infos.append(_kernel._ArgInfo(1, ndarray, dtype, 2, False, True))
    code = _kernel._get_elementwise_kernel_code(
        tuple(infos), _kernel._TypeMap(()), kernel.params, text.operation, text.name, text.preamble
    )
    headers = "".join(f"#include <{each}>\n" for each in core._cupy_header_list)
    return headers + str(code)


def everything(x: Any, h: Any, b: Any, n: Any, rate: Any) -> Any:
    whole = n // 3 + n % 5 + (n << 2) - (n >> 1)
    return (
        F.gelu(x) * rate + F.softplus(x) + F.mish(x),
        h * x.half() + F.gelu(h, approximate="tanh"),
        (x > h.float()) & b,
        h.bfloat16() + 1,
        whole,
        x.to(tg.int8),
        tg.fmod(x, 3.0) // 2.0,
        n**3 + x.long(),
    )


def test_cupys_source_compiles(cuda: Any, counted: Counted, monkeypatch: Any) -> None:
    if reason := nvrtc.why_unavailable():
        pytest.skip(reason)
    from cupy._core import core

    shape = (4, 5)
    kernels = texts_of(
        everything, (tg.float32, shape), (tg.float16, shape), (tg.bool, shape), (tg.int64, shape),
        0.5,
    )  # fmt: skip
    there = parameters(cuda)
    set_gradients(there, 0)
    tg.optim.Adam(there).step()
    kernels += counted.texts
    assert any("if (i == 0)" in text.operation for text in kernels)
    monkeypatch.setattr(nvrtc, "OPTIONS", ())
    for text in kernels:
        options = (*core.assemble_cupy_compiler_options(elementwise.OPTIONS), "-ftz=true")
        compiled = nvrtc.compile_with_log(in_cupys_words(text), "sm_90", options)
        assert compiled.data.startswith(b"\x7fELF")


def test_the_graph_must_be_elementwise() -> None:
    graph = tg.trace(lambda x: x.sum(), tg.ones(()))
    with pytest.raises(ValueError, match="sum is not elementwise"):
        cuda_elementwise.write_text(tg.trace(lambda x: x.sum(0), tg.ones(3)), "f")
    assert len(graph.outputs) == 1


def test_kernels_of_one_text_are_made_once(cuda: Any) -> None:
    with mock.patch.object(
        backend.cupy(), "ElementwiseKernel", wraps=backend.cupy().ElementwiseKernel
    ) as made:
        for _ in range(3):
            for shape in ((3,), (2, 2), ()):
                tg.fused(swish.__wrapped__)(tg.ones(shape).cuda(), 0.5)
    assert made.call_count <= 2  # with and without dimensions
