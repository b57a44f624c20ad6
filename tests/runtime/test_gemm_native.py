"""Generated matrix products: vectors of all sizes, what their sums are, and little memory."""

import ctypes
import itertools
import re
import threading

import numpy as np
import pytest
from tgraph.runtime import gemm_epilogue, gemm_native, gemm_packing, gemm_text, jit
from tgraph.runtime.plan import BufferRef, GemmStep, Plan

SIZES = [(5, 7, 3), (13, 33, 400), (60, 250, 30), (130, 40, 390), (200, 150, 20), (3, 1100, 5)]


def body(text):
    module = jit.compile_module(text, passes=False)
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    return kind(module.address("gemm")), module


def functions_with_and_without_memory():
    text = gemm_native.text(gemm_text.tiles("float32", jit.vector_bytes()))
    none = re.sub(r"icmp slt i64 %i, \d+", "icmp slt i64 %i, 0", text)
    assert none != text
    return body(text)[0], body(none)[0]


def multiply(function, a, b, alpha=1.0, c=None, beta=0.0):
    """alpha a @ b + beta c of two matrices with any layout, as one piece."""
    (m, k), n, item = a.shape, b.shape[1], a.itemsize
    out = np.full((m, n), np.nan, a.dtype) if c is None else c.copy()
    scales = np.array([alpha, 0, beta, 0], a.dtype)
    words = [
        *(m, n, k),
        *(s // item for s in (*a.strides, *b.strides)),
        n,
        0,
        0,
        m,
        n,
        1,
        1,
        0,
        0,
        0,
    ]
    table = np.array(words, np.int64)
    memory = table.view(a.dtype)
    width = 8 // item
    memory[8 * width], memory[9 * width] = scales[0], scales[2]
    args = np.array([x.ctypes.data for x in (a, b, out, table)], np.int64)
    function(args.ctypes.data, 0, 1)
    return out


def matrices(m, n, k, ta, tb, dtype):
    generator = np.random.default_rng(m + n + k)
    a, b = generator.standard_normal((m, k)), generator.standard_normal((k, n))
    return (x.astype(dtype, order="F" if t else "C") for x, t in ((a, ta), (b, tb)))


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_vectors_of_all_sizes(vector_bytes, dtype):
    """LLVM makes do with the registers that there are."""
    function, _ = body(gemm_native.text(gemm_text.tiles(dtype, vector_bytes)))
    eps = np.finfo(dtype).eps
    for (m, n, k), ta, tb in itertools.product(SIZES, [False, True], [False, True]):
        a, b = matrices(m, n, k, ta, tb, dtype)
        wanted = a.astype(np.float64) @ b.astype(np.float64)
        allowed = eps * np.sqrt(k) * (np.abs(a) @ np.abs(b)).max() + 4 * eps
        np.testing.assert_allclose(multiply(function, a, b), wanted, rtol=0, atol=allowed)
        scaled = multiply(function, a, b, -0.5, np.ones((m, n), dtype), 2.0)
        np.testing.assert_allclose(scaled, 2 - 0.5 * wanted, rtol=0, atol=allowed)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("ta", "tb"), [(False, False), (False, True), (True, False)])
def test_an_element_is_the_same_sum_beside_whatever_else(ta, tb, dtype):
    """A row has the same bits alone and in a batch; so has a column."""
    function, _ = body(gemm_native.text(gemm_text.tiles(dtype, jit.vector_bytes())))
    a, b = matrices(300, 270, 800, ta, tb, dtype)
    whole = multiply(function, a, b)
    for rows, columns in ((1, 270), (7, 270), (30, 100), (121, 129), (300, 5), (12, 32), (2, 1)):
        part = multiply(function, a[-rows:], b[:, -columns:])
        np.testing.assert_array_equal(part, whole[-rows:, -columns:])


def test_without_memory_to_pack_sums_are_the_same():
    """SCRATCH buffers may all be taken, or there is no memory for one."""
    function, poor = functions_with_and_without_memory()
    for (m, n, k), tb in itertools.product([(130, 40, 800), (20, 20, 20)], [False, True]):
        a, b = matrices(m, n, k, False, tb, "float32")
        c = np.ones((m, n), np.float32)
        for alpha, beta in ((1.0, 0.0), (1.0, 1.0), (-0.5, 2.0)):
            wanted = multiply(function, a, b, alpha, c, beta)
            np.testing.assert_array_equal(multiply(poor, a, b, alpha, c, beta), wanted)


def test_epilogues_are_given_every_element_once():
    """Blocks of whole rows and of parts of them, with and without memory to pack anything."""
    text = gemm_native.text(gemm_text.tiles("float32", jit.vector_bytes()))
    none = re.sub(r"icmp slt i64 %i, \d+", "icmp slt i64 %i, 0", text)
    plain, of = body(text)[0], gemm_text.tiles("float32", jit.vector_bytes())
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    for (m, n, k), tb in itertools.product([(130, 40, 30), (29, 2500, 70)], [False, True]):
        a, b = matrices(m, n, k, False, tb, "float32")
        wanted = multiply(plain, a, b)
        rows, columns = of.epilogue_block(m, n, 1)
        across, seen = -(-n // columns), np.zeros((m, n), np.float32)

        def kernel(args, low, high, n=n, columns=columns, across=across, seen=seen):
            c, parameters = (ctypes.c_void_p * 3).from_address(args)[1:]
            assert ctypes.c_int64.from_address(parameters).value == 77
            for task in range(low, high):
                row, block = divmod(task, across)
                part = slice(block * columns, min(n, (block + 1) * columns))
                line = (ctypes.c_float * columns).from_address(c + 4 * (row * columns + part.start))
                seen[row, part] += np.frombuffer(line, np.float32)[: part.stop - part.start]

        pointer = kind(kernel)
        scales = np.array([1, 0, 0, 0], np.float32).view(np.int64)
        strides = [each // 4 for each in (*a.strides, *b.strides)]
        words = [m, n, k, *strides, n, *scales, m, n, 1, 1, 0, 0, 0]
        address = ctypes.cast(pointer, ctypes.c_void_p).value
        at = gemm_native.PARAMETERS + gemm_epilogue.WORDS
        words += [address, 1, at, m, across, rows, columns, 77]
        table = np.array(words, np.int64)
        spare = [0] * (gemm_epilogue.MOST_ARGUMENTS - 1)
        places = [x.ctypes.data for x in (a, b, a, seen)]
        args = np.array([*places, *spare, table.ctypes.data], np.int64)
        for source in (text, none):
            kind(body(source)[1].address("gemm_then"))(args.ctypes.data, 0, 1)
            np.testing.assert_array_equal(seen, wanted)
            seen[:] = 0


def test_without_memory_to_gather_sums_are_the_same():
    function, poor = functions_with_and_without_memory()
    generator = np.random.default_rng(1)
    images = generator.standard_normal((3, 12, 12, 60)).astype("float32")  # [n, y, x, c]
    right = generator.standard_normal((9 * 60, 40)).astype("float32")
    places, taps = [3, 8640, 10, 720, 10, 60], [3, 720, 180, 1]  # sizes and strides of windows
    m, n, k, at = 300, 40, 540, gemm_native.PARAMETERS
    table = np.array([*(m, n, k, 0, 0, 40, 1, 40, 0, 0, m, n, 1, 1, 0, at, 0), 1, 3, 2])
    table = np.concatenate([table, places, taps]).astype(np.int64)
    table.view(np.float32)[16] = 1
    results = []
    for each in (function, poor):
        results.append(np.full((m, n), np.nan, np.float32))
        args = np.array([x.ctypes.data for x in (images, right, results[-1], table)], np.int64)
        each(args.ctypes.data, 0, 1)
    windows = np.lib.stride_tricks.sliding_window_view(images, (3, 3), (1, 2))
    stored = windows.transpose(0, 1, 2, 4, 5, 3).reshape(m, k)
    np.testing.assert_allclose(results[0], stored @ right, rtol=0, atol=1e-3)
    np.testing.assert_array_equal(*results)


def test_buffers_are_given_back_and_few():
    text = gemm_native.text(gemm_text.tiles("float32", jit.vector_bytes()))
    text = text.replace("@flags = internal", "@flags =").replace(
        "@buffers = internal", "@buffers ="
    )
    for name in ("flags", "buffers"):
        text += f"\ndefine ptr @get_{name}() {{\n  ret ptr @{name}\n}}\n"
    function, module = body(text)
    a, b = matrices(150, 40, 30, False, True, "float32")

    def work():
        for _ in range(50):
            multiply(function, a, b)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    flags, buffers = (
        (ctypes.c_int64 * gemm_native.SCRATCH).from_address(
            ctypes.CFUNCTYPE(ctypes.c_void_p)(module.address(f"get_{name}"))()
        )
        for name in ("flags", "buffers")
    )
    assert not any(flags)
    assert 1 <= sum(map(bool, buffers)) <= 4


def test_special_values():
    function, _ = body(gemm_native.text(gemm_text.tiles("float32", jit.vector_bytes())))
    a, b = np.ones((150, 40), np.float32), np.ones((40, 70), np.float32)
    a[3, 4], a[20, 1], b[7, 69] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        wanted = a @ b
    np.testing.assert_array_equal(multiply(function, a, b), wanted)
    assert not np.signbit(multiply(function, -a[:1] * 0, b[:, :1])).any()


def test_sums_that_vanish_have_one_sign():
    """-0, or 0 where products are rounded by themselves; in all tiles, added to a -0 as well."""
    function, poor = functions_with_and_without_memory()
    a, b = np.full((40, 800), 1e-30, np.float32), np.full((800, 80), -1e-30, np.float32)
    for c, beta in ((None, 0.0), (np.full((40, 80), -0.0, np.float32), 1.0)):
        whole = np.signbit(multiply(function, a, b, c=c, beta=beta))
        assert whole.all() or not whole.any()
        for call, rows, columns in ((function, 1, 80), (function, 40, 3), (poor, 40, 80)):
            old = c if c is None else c[:rows, :columns]
            part = multiply(call, a[:rows], b[:, :columns], c=old, beta=beta)
            np.testing.assert_array_equal(np.signbit(part), whole[:rows, :columns])


def test_sums_are_no_worse_than_those_of_numpy():
    generator = np.random.default_rng(0)
    a = generator.standard_normal((64, 10_000)).astype(np.float32)
    b = generator.standard_normal((10_000, 48)).astype(np.float32)
    refs = (BufferRef(1), BufferRef(2), BufferRef(3))
    found = np.empty((64, 48), np.float32)
    step = GemmStep("test", "float32", 64, 48, 10_000, *refs, False, False, 10_000, 48, 48)
    Plan([step], 0, 4).run((a, b, found))
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    errors = [np.sqrt(np.square(each - wanted).mean()) for each in (found, a @ b)]
    assert errors[0] < 1.5 * errors[1] + 1e-6 * np.sqrt(10_000)


def test_nothing_behind_the_last_rows_is_packed():
    """A is contiguous along its columns, and has fewer rows than a panel."""
    of = gemm_text.tiles("float32", 16)
    parts = [gemm_packing.turn(of), gemm_packing.pack_a(of), *gemm_native.declarations(of)]
    text = "\n".join(parts).replace("internal void @pack_a", "void @pack_a")
    module = jit.compile_module(text, passes=False)
    word, pointer = ctypes.c_int64, ctypes.c_void_p
    kind = ctypes.CFUNCTYPE(None, pointer, word, word, pointer, word, word)
    pack = kind(module.address("pack_a"))
    m, k, behind = of.rows - 1, 3, 7.0
    memory = np.full(k * m + of.rows, behind, np.float32)
    memory[: k * m] = 1
    panel = np.zeros((k, of.rows), np.float32)
    pack(memory.ctypes.data, 1, m, panel.ctypes.data, m, k)
    assert (panel[:, :m] == 1).all() and behind not in panel
