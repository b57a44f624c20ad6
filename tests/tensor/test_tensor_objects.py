"""A tensor as an object, line by line beside PyTorch: texts, storages, buffers, protocols."""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import pytest

import tgraph as tg

# Statements, the last of which is an expression; what it shows, or its error, is PyTorch's.
LINES = """
x = T.arange(6.0).reshape(2, 3); s = x.storage(); [s.size(), str(s), s.type(), s.double().tolist()]
x = T.arange(2); [repr(x.untyped_storage()), x.storage().half(), x.untyped_storage().type()]
x = T.arange(6.0); s = x[1:].untyped_storage(); s._cdata == x.storage()._cdata
x = T.arange(3.0); s = x.untyped_storage().share_memory_(); [s.is_shared(), x.is_shared(), x]
x = T.arange(4.0); [x.is_set_to(x.detach()), x.is_set_to(x[1:]), x.is_set_to(x.view(2, 2))]
x = T.arange(4.0); [x.const_data_ptr() == x.data_ptr(), T.FloatTensor.is_cuda]
T.frombuffer(bytearray(b"abcd"), dtype=T.int16, offset=2)
T.frombuffer(bytearray(b"abcd"), dtype=T.int16, offset=1)
T.frombuffer(bytearray(b"abcd"), dtype=T.int16, count=5)
T.frombuffer(bytearray(b"abcd"), dtype=T.int16, count=-7)
T.frombuffer(bytearray(b"abcd"), dtype=T.int16, offset=4)
T.frombuffer(bytearray(b""), dtype=T.int16)
T.frombuffer(3, dtype=T.int16)
T.frombuffer(bytearray(8), dtype=T.float32, requires_grad=True)
T.frombuffer(bytearray(8), dtype=T.int32, requires_grad=True)
b = bytearray(4); t = T.frombuffer(b, dtype=T.uint8); b[0] = 7; t[1] = 3; [list(b), t]
[T.finfo(T.float32), T.finfo(T.float16), T.finfo(T.bfloat16), T.finfo(T.float64), T.finfo()]
[T.iinfo(T.int8), T.iinfo(T.int64), T.finfo(T.float32).resolution, T.finfo(T.complex64).dtype]
x = T.ones(2); [T.is_conj(x), x.is_neg(), x.is_inference(), x.is_distributed(), x.is_xla, x.name]
[T.is_signed(T.ones(1)), T.is_same_size(T.ones(2), T.ones(1)), T.is_nonzero(T.tensor([2.0]))]
T.is_nonzero(T.tensor([2.0, 3.0]))
[T.ones(2, 3).t().dim_order(), T.ones(2, 1, 3).dim_order()]
T.ones(2, 3).dim_order(ambiguity_check=True)
T.ones(2, 1, 3).dim_order(ambiguity_check=True)
T.ones(2, 3, 4, 5).to(memory_format=T.channels_last).dim_order(ambiguity_check=[T.channels_last])
x = T.arange(3); [x.new([1, 2]), x.new(2, 3).shape, x.new(), x.new([1.5]), x.new(T.Size([4])).shape]
x = T.arange(3).new(1.5)
s = T.Size([1, 2]); [s + (3,), (3,) + s, s * 2, s + T.Size([4])]
[reversed(T.arange(3)), reversed(T.tensor(1.0))]
int(T.tensor([2.7, 1.0]))
complex(T.tensor([]))
[operator.index(T.tensor([2])), operator.index(T.tensor(True))]
"a" in T.tensor([1, 2])
x = T.ones(2, requires_grad=True); v = x[0]; [v._is_view(), v._base is x, x._base]
T.ones(2).detach()._is_view()
x = T.ones(4, 2, requires_grad=True); [x[0].output_nr, x.max(0)[0].output_nr]
x = T.ones(2); x.tag = [3]; [copy.copy(x).tag is x.tag, copy.deepcopy(x).tag is x.tag]
x = T.ones(2); x.tag = [3]; [pickle.loads(pickle.dumps(x)).__dict__, vars(x.clone())]
x = T.nn.Parameter(T.ones(2)); x._tag = 3; [vars(y) for y in copy.deepcopy([x, copy.copy(x)])]
x = T.nn.Parameter(T.ones(2)); x._tag = 3; y = pickle.loads(pickle.dumps(x)); [vars(y), type(y)]
x = T.arange(6.0); y = x[2:]; x.resize_(8); [y, x[:6], y.untyped_storage().nbytes(), x._version]
x = T.arange(4.0); x.data.resize_(9); [x, x.untyped_storage().nbytes(), x.storage().resize_(4)]
x = T.arange(4.0); s = x.untyped_storage(); [s.resizable(), s.resize_(0).nbytes(), x.shape]
T.from_numpy(T.ones(2).numpy()).resize_(3)
T.ones(2).untyped_storage().resize_("a")
copy.deepcopy(T.ones(3, 1).expand(3, 4)).stride()
x = T.nn.Parameter(T.ones(2)); x.sum().backward(); copy.deepcopy(x).grad
x = T.ones(2).untyped_storage(); copy.copy(x).data_ptr() == x.data_ptr()
x = T.ones(2, requires_grad=True); h = x.register_hook(abs); pickle.dumps(x)
[T.Generator().clone_state().initial_seed() == T.Generator().initial_seed()]
T.Generator().graphsafe_get_state()
T.full((2,), "a")
T.full((2,), None)
x = T.arange(4.0); y = T.from_dlpack(x.__dlpack__(copy=True)).fill_(7); [x, y]
x = T.arange(4.0); y = T.from_dlpack(x.__dlpack__(stream=-1, max_version=(1, 0))).fill_(7); [x, y]
c = T.utils.dlpack.to_dlpack(T.ones(2, dtype=T.int16)); T.utils.dlpack.from_dlpack(c)
c = T.utils.dlpack.to_dlpack(T.ones(2)); x = T.from_dlpack(c); T.from_dlpack(c)
T.zeros_like(T.ones(2, 3, 4, 5).to(memory_format=T.channels_last)).stride()
[f(T.ones(2, 3).t()).stride() for f in (T.ones_like, T.empty_like, T.rand_like, T.randn_like)]
T.zeros_like(T.ones(2, 3).t(), memory_format=T.contiguous_format).stride()
T.rand_like(T.ones(2, 3, 4, 5), memory_format=T.channels_last).stride()
[T.empty(s, memory_format=T.channels_last).stride() for s in ((2, 3, 4, 5), (1, 2, 3, 4))]
T.empty(4, memory_format=T.channels_last)
x = T.ones(1, 3, 4, 5); [x.double(memory_format=T.channels_last).stride(), x.byte().stride()]
x = T.ones(2, 3, 4, 5); [y.stride() for y in (x.float(memory_format=T.channels_last), x.float())]
[getattr(T.ones(3, 4).t(), f)(memory_format=T.contiguous_format).stride() for f in ("half", "bool")]
x = T.ones(2, 3, 4, 5); x.type(T.DoubleTensor, memory_format=T.channels_last).stride()
[T.ones(2, 3, 4, 5).cpu(memory_format=T.channels_last).stride(), T.ones(2).int(memory_format=None)]
T.ones(2).double(memory_format=T.channels_last)
T.ones(2).double(T.contiguous_format)
[T.result_type(tensor=T.ones(2), other=3), T.result_type(scalar=2.5, tensor=T.arange(2))]
[T.result_type(scalar1=2, scalar2=2.5), T.result_type(T.ones(2, dtype=T.int8), other=2)]
T.result_type(tensor=T.ones(2), this=3)
x = T.ones(4); x.resize_(1, 3, 4, 5, memory_format=T.channels_last).stride()
x = T.ones(1, 2, 3, 4); x.resize_(1, 2, 3, 4, memory_format=T.channels_last).stride()
x = T.ones(4); x.resize_(4, memory_format=T.channels_last)
y = T.empty(2, 3, 1, 2, memory_format=T.channels_last); y.resize_as_(T.ones(2, 3, 4, 5)).stride()
x = T.ones(9); [x.as_strided((1, 2), (7, 2)).stride(), x.set_(x, 1, (1, 2), (5, 1)).stride()]
p = T.nn.Parameter(T.ones(2)); p.data = T.zeros(3, dtype=T.int64)
p = T.nn.Parameter(T.ones(2)); p.data = 3
x = T.ones(2); x.requires_grad = 1
x = T.ones(2, requires_grad=True); x.set_(T.ones(3))
T.ones(1).set_(5)
[T.ones(0).data_ptr(), T.ones(4)[2:2].data_ptr(), T.ones(0).untyped_storage().data_ptr()]
x = T.arange(4.0); s = x.untyped_storage(); [s[-1], s.is_pinned(), s.is_sparse, s.filename]
x = T.arange(4.0); s = x.untyped_storage(); s[100]
x = T.arange(4.0); s = x.untyped_storage(); s["a"]
x = T.arange(4.0); s = x.untyped_storage(); s[0] = 300; s[0]
x = T.arange(4.0); x.storage().copy_(T.ones(4, dtype=T.int64).storage())
x = T.arange(4.0); [x._typed_storage().pickle_storage_type(), x.storage().is_pinned()]
T.FloatStorage.from_buffer(b"\\0\\0\\x80\\x3f", "little").tolist()
T.UntypedStorage.from_buffer(b"\\0\\0\\1\\2", "big", dtype=T.int16).tolist()
s = T.ones(2).untyped_storage(); s.byteswap(T.float32); s.tolist()
T.UntypedStorage(-1)
[T.Tensor(T.Size([2, 1])).shape, T.Tensor(size=(2,)).shape, T.Tensor(T.ones(2).untyped_storage())]
T.Tensor(2.5)
T.Tensor("a")
T.Tensor(2, device="meta")
[T.Tensor(2, device="cpu").shape, T.Tensor(2, device=T.device("cpu")).shape]
T.Tensor(2, device="nonsense")
T.Tensor(2, device=3.5)
T.Tensor("a", device="meta")
T.Tensor(T.ones(2), device="meta")
T.LongTensor(2, device="meta")
T.LongTensor(2, device="cpu").shape
T.FloatTensor(2, device="cuda")
T.ones(2).new(2, device="meta")
[T.ones(2).new(2, device="cpu").shape, T.ones(2, device="meta").new(2, device="meta").device]
T.ones(2, device="meta").new(2, device="cpu")
T.zeros(2, device=3.5)
T.device("meta", -1)
T.device(3.5)
T.device(None)
T.Size("a")
T.Size([1.5])
T.Size([T.tensor(1)])
T.tensor(1.0).size(0)
T.ones(2).size("a")
pickle.loads(pickle.dumps(T.ones(2, 3, device="meta").t())).stride()
x = T.nn.UninitializedParameter(); [x.half().dtype, x.double().dtype]
x = T.zeros(1); x.__setstate__((T.ones(2), 0, {}, True, None)); [x, x.requires_grad]
x = T.ones(1); x.__setstate__((T.arange(4.0).untyped_storage(), 1, (2,), (1,))); x
T.nn.Parameter(T.ones(2)).as_subclass(T.Tensor).is_leaf
T.zeros(2, 0, dtype=T.bool)
T.zeros(2, 0, 3, dtype=T.complex64, requires_grad=True) * 1
T.tensor([[1000.5 - 1487j, -29.25 - 7099j, -4183 + 4634j]] * 2, dtype=T.complex128)
T.tensor([[-0.34, 0.9, 1.1], [-2.2, 0.8, -1], [-2, -0.4, -1]], dtype=T.bfloat16, requires_grad=True)
"""
ROWS = LINES.strip().splitlines()


def said(T: Any, line: str) -> str:
    *statements, last = line.split("; ")
    names = {"T": T, "operator": operator, "copy": copy, "pickle": pickle}
    try:
        for each in statements:
            exec(each, names)
        found = repr(eval(last, names))
    except Exception as error:
        return type(error).__name__
    return found.replace("torch.", "").replace("tgraph.", "")


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_lines_say_what_they_do_in_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    found = {line: said(tg, line) for line in ROWS}
    assert found == {line: said(torch, line) for line in ROWS}


def test_texts_of_large_storages_are_short() -> None:
    text = repr(tg.arange(2000).storage())
    assert text.count("\n") == 7 and " 2\n ...\n 1997\n" in text
    assert not tg.zeros(0, 2).const_data_ptr()
