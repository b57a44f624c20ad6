"""`import torch` from tgraph, and the modules that are there for programs of PyTorch's."""

from __future__ import annotations

import math
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tgraph as tg
from tgraph.compat import pytree_names

PROGRAM = """
import sys
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.checkpoint import checkpoint
from torch.utils._pytree import tree_map
from torchvision import datasets, transforms as T
from torchvision.transforms.functional import hflip
from torchvision.utils import make_grid
import torchvision

assert torch.nn is nn and sys.argv[1:] == ["--epochs", "2"], sys.argv

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.layer, x, use_reentrant=False)

torch.manual_seed(0)
x = torch.randn(64, 4, dtype=torch.float)
data = TensorDataset(x, x.sum(1, keepdim=True))
net = Net().to(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
optimizer = optim.SGD(net.parameters(), lr=0.1)
for epoch in range(30):
    for inputs, targets in DataLoader(data, batch_size=16, shuffle=True):
        optimizer.zero_grad()
        loss = F.mse_loss(net(inputs), targets)
        loss.backward()
        optimizer.step()
assert loss.item() < 1e-3, loss
assert not torch.compiler.is_compiling()
assert T.Compose([T.ToTensor(), hflip])(x[:2].numpy()).shape == (1, 2, 4)
assert datasets.MNIST.__mro__[-3] is torch.utils.data.Dataset and torchvision.__version__ > "0.2"
from torchvision.ops.misc import FrozenBatchNorm2d
frozen, norm = FrozenBatchNorm2d(3), torch.nn.BatchNorm2d(3).eval()
torch.nn.init.uniform_(norm.running_var)
torch.nn.init.normal_(norm.bias)
frozen.load_state_dict(norm.state_dict())
images = torch.randn(2, 3, 4, 4)
torch.testing.assert_close(frozen(images), norm(images))
assert not list(frozen.parameters()) and repr(frozen) == "FrozenBatchNorm2d(3, eps=1e-05)"
from importlib.metadata import version
assert version("torch") == torch.__version__ and torch.torch is torch
assert torch.conv2d is torch.nn.functional.conv2d
from torch._subclasses.fake_tensor import is_fake
from torch.fx.experimental.proxy_tensor import get_proxy_mode
assert not is_fake(images) and get_proxy_mode() is None
from torch.distributed import nn as exchanges
from torchvision import io
try:
    exchanges.all_reduce(images)
except NotImplementedError as error:
    assert "there is one process" in str(error)
try:
    io.read_image("image.png")
except NotImplementedError as error:
    assert "Pillow reads images" in str(error)
try:
    import torchvision.models.detection
except ImportError as error:
    assert "there is no tgraph.vision.models.detection" in str(error), error
from torchvision.models import ResNet18_Weights, resnet18
from torch._C import _disabled_torch_function_impl
from torch._tensor_str import PRINT_OPTS, _add_suffixes, _tensor_str
assert _disabled_torch_function_impl(abs, (), (-2,)) == 2 and PRINT_OPTS.precision == 4
shown = _add_suffixes("Own(" + _tensor_str(torch.ones(2), 4), ["dim=1"], 4)
assert shown == "Own([1., 1.], dim=1)", shown
assert isinstance(net.layer.weight, torch.nn.Parameter) and torch.__version__ >= "2."
try:
    import torch.futures
except ImportError as error:
    assert "there is no tgraph.futures; concurrent.futures" in str(error)

# What libraries ask for, mostly in order to leave something out.
from torch.jit.annotations import List
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.optim.optimizer import ParamsT, required
from torch.serialization import MAP_LOCATION
from torch.utils._pytree import register_pytree_node, tree_flatten
from torch.utils.checkpoint import get_device_states
from torch.utils.data.dataloader import default_collate
from torch.utils.hooks import RemovableHandle

assert not torch.onnx.is_in_onnx_export() and not torch._dynamo.is_compiling()
assert not isinstance(x, torch.fx.Proxy) and torch.version.cuda is None
assert "MKL" in torch.__config__.show() and x.layout == torch.strided and not x.is_sparse
assert torch.float8_e4m3fn not in (x.dtype,) and torch.typename(x) == "torch.FloatTensor"
assert {"Normal", "LKJCholesky"} <= vars(torch.distributions).keys()

class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b
register_pytree_node(Pair, lambda p: ([p.a, p.b], ["a", "b"]), lambda v, c: Pair(**dict(zip(c, v))))
leaves, spec = tree_flatten({"pair": Pair(1, 2)})
assert leaves == [1, 2] and spec.unflatten([3, 4])["pair"].b == 4

parts = [torch.ones(2), torch.full((3,), 4.0)]
torch._foreach_mul_(parts, [2.0, 0.5])
torch._foreach_addcdiv_(parts, parts, [torch.ones(2), torch.full((3,), 2.0)], 3.0)
torch._foreach_maximum_(parts, 6.0)
roots = torch._foreach_sqrt(parts)
assert [each.tolist() for each in parts] == [[8.0] * 2, [6.0] * 3]  # 2 + 3 * 2 / 1, 2 + 3
assert roots[0].equal(parts[0].sqrt())

q = torch.randn(2, 2, 5, 4)
mask = create_block_mask(lambda b, h, q_idx, kv_idx: q_idx >= kv_idx, None, None, 5, 5)
with sdpa_kernel(SDPBackend.MATH):
    wanted = F.scaled_dot_product_attention(q, q, q, is_causal=True)
assert torch.allclose(flex_attention(q, q, q, block_mask=mask), wanted, atol=1e-6)
lower = flex_attention(q, q, q, lambda score, b, h, i, j: score.masked_fill(j > i, -torch.inf))
assert torch.allclose(lower, wanted, atol=1e-6)
print(hasattr(torch, "miopen_rnn"), torch.distributed.is_available())
try:
    torch.distributed.FileStore
except AttributeError as error:
    print(error)
"""


def test_a_program_of_pytorchs_runs_and_what_is_missing_is_told(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)
    command = [sys.executable, "-m", "tgraph.compat", str(script), "--epochs", "2"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("False False\nmodule 'torch.distributed' has no attribute")
    lines = run.stderr.splitlines()
    number = {text: at for at, text in enumerate(PROGRAM.splitlines(), 1)}
    assert lines[0] == "tgraph has not 4 of the names asked for:"
    told = [line.split() for line in lines[1:]]
    assert [name for name, _ in told] == [
        "torch.distributed.FileStore", "torch.futures", "torch.miopen_rnn",
        "torchvision.models.detection",
    ]  # fmt: skip
    assert told[1][1] == f"{script}:{number['    import torch.futures']}"


NOT_WHOLE = """
import copy
import torch
from torch import nn

class Doubled(nn.Module):
    calls = 0
    def forward(self, x):
        self.calls += 1
        return x * 2 if x.sum() > 0 else x

    @torch.compile
    def count(self, x):
        return int(x.sum())

model = Doubled()
run = torch.compile(model, mode="reduce-overhead")
assert [run(torch.full((2,), each)).tolist() for each in (1.0, -1.0)] == [[2, 2], [-1, -1]]
assert model.count(torch.ones(3)) == copy.deepcopy(run)(torch.zeros(3)).numel() == 3
assert model.calls == 2  # what the trace did is undone
assert torch.compile(lambda x: x + 1, dynamic=True)(torch.ones(2)).tolist() == [2, 2]

@torch.compile(fullgraph=True)
def whole(x):
    return x * 2 if x.sum() > 0 else x

try:
    whole(torch.ones(2))
except RuntimeError as error:
    print(error)
"""


def test_what_cannot_be_compiled_runs_eagerly(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(NOT_WHOLE)
    command = [sys.executable, "-m", "tgraph.compat", str(script)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    line = NOT_WHOLE.splitlines().index("        return x * 2 if x.sum() > 0 else x") + 1
    assert "UserWarning: 'Doubled' is not compiled and runs eagerly: bool(): Python" in run.stderr
    assert "2 of the compiled functions ran eagerly:\n  Doubled: bool()" in run.stderr
    assert f"script.py:{line}" in run.stderr and "\n  count: int()" in run.stderr
    assert "'whole' is being traced" in run.stdout


def test_it_is_refused_where_pytorch_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", np)  # anything that is not ours
    with pytest.raises(RuntimeError, match="PyTorch has been imported"):
        tg.compat.as_torch()


def _cases() -> list[Any]:
    def two(x: Any, y: Any) -> Any:
        return (x * y).sum(0), x.exp() * 2

    def one(x: Any, y: Any) -> Any:
        return (x**3 * y).sum()

    return [
        ("jacobian", two, {}), ("jacobian", two, {"vectorize": True}),
        ("jacobian", two, {"vectorize": True, "strategy": "forward-mode"}),
        ("hessian", one, {}), ("hessian", one, {"vectorize": True}),
        ("vjp", two, {"v": (1, 0)}), ("jvp", two, {"v": (0, 0)}),
        ("vhp", one, {"v": (0, 0)}), ("hvp", one, {"v": (0, 0)}),
        ("vjp", one, {}),
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
@pytest.mark.parametrize("case", _cases(), ids=lambda case: f"{case[0]}-{[*case[2]]}")
def test_autograd_functional_is_that_of_pytorch(case: Any) -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    name, function, options = case
    inputs = np.random.default_rng(0).uniform(0.5, 1.5, (2, 2, 3))
    like = [inputs[0], inputs[0, 0]]  # vectors: like an input, like the first output

    def found(library: Any, create_graph: bool) -> Any:
        given = dict(options)
        if "v" in given:
            given["v"] = tuple(library.tensor(like[at]) for at in given["v"])
            if name == "vjp":
                given["v"] = (library.tensor(like[1]), library.tensor(like[0]))
        arguments = tuple(library.tensor(each).requires_grad_() for each in inputs)
        call = getattr(library.autograd.functional, name)
        return call(function, arguments, create_graph=create_graph, **given)

    def compare(ours: Any, theirs: Any, requires_grad: bool) -> None:
        if isinstance(theirs, (tuple, list)):
            assert isinstance(ours, tuple) and len(ours) == len(theirs)
            for pair in zip(ours, theirs, strict=True):
                compare(*pair, requires_grad)
        else:
            np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), 1e-12)
            assert requires_grad or not ours.requires_grad

    for create_graph in (False, True)[: 1 if "strategy" in options else 2]:  # PyTorch has no other
        compare(found(tg, create_graph), found(torch, create_graph), create_graph)


def test_autograd_functional_names_what_is_wrong() -> None:
    x = tg.ones(2)
    with pytest.raises(RuntimeError, match="should contain a single element"):
        tg.autograd.functional.hessian(lambda x: x * 2, x)
    with pytest.raises(RuntimeError, match="is independent of input 0"):
        tg.autograd.functional.jacobian(lambda x: tg.ones(2), x, strict=True)
    with pytest.raises(RuntimeError, match="v of vjp has shapes"):
        tg.autograd.functional.vjp(lambda x: x * 2, x, tg.ones(3))
    with pytest.raises(TypeError, match="inputs given to jvp must be either a Tensor"):
        tg.autograd.functional.jvp(lambda x: x, 1.0)
    zeros = tg.autograd.functional.jacobian(lambda x: tg.ones(2), x)
    assert zeros.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_assert_close() -> None:
    close = tg.testing.assert_close
    close({"a": [1, 2.0], "b": None}, {"a": [1, 2.0], "b": None})
    close(tg.tensor([1.0, np.nan]), np.float32([1.0, np.nan]), equal_nan=True)
    close(tg.ones(2), tg.ones(2).double(), check_dtype=False)
    for actual, expected, text in [
        (tg.ones(2), tg.ones(3), "'shape' do not match"),
        (tg.ones(2), tg.ones(2).double(), "'dtype' do not match"),
        ([1, 2], [1], "The length of the sequences mismatch: 2 != 1"),
        ({"a": [1, 2]}, {"a": [1, 3]}, "(?s)Scalars are not close.*item \\['a'\\]\\[1\\]"),
        ({"a": 1}, {"b": 1}, "keys of the mappings do not match"),
        (tg.tensor([1.0, np.nan]), tg.tensor([1.0, np.nan]), "Mismatched elements: 1 / 2"),
        (None, 1, "None mismatch"),
    ]:
        with pytest.raises(AssertionError, match=text):
            close(actual, expected)
    with pytest.raises(ValueError, match="rtol and atol must both be"):
        close(1, 1, rtol=1.0)
    with pytest.raises(AssertionError, match="what I say"):
        close(1, 2, msg="what I say")
    with pytest.warns(FutureWarning, match="assert_allclose"):
        tg.testing.assert_allclose(tg.tensor([1.0, np.nan]), [1 + 9e-5, np.nan])
    with pytest.warns(FutureWarning), pytest.raises(AssertionError, match="not close"):
        tg.testing.assert_allclose(tg.tensor([1.0]), [1 + 3e-4])


def test_make_tensor() -> None:
    make = partial(tg.testing.make_tensor, (3, 40), device="cpu")
    for dtype, low, high in [
        (tg.bool, 0, 1), (tg.uint8, 0, 9), (tg.int32, -9, 9), (tg.float16, -9, 9),
        (tg.complex64, -9, 9),
    ]:  # fmt: skip
        made = make(dtype=dtype)
        parts = tg.view_as_real(made) if dtype is tg.complex64 else made
        assert made.dtype is dtype and low <= parts.double().min() < parts.double().max() <= high
        assert not (make(dtype=dtype, exclude_zero=True) == 0).any()
        assert make(dtype=dtype, noncontiguous=True).stride() == (80, 2)
    assert make(dtype=tg.float32, requires_grad=True).requires_grad
    assert set(make(dtype=tg.int8, low=0.5, high=2.5).flatten().tolist()) == {1, 2}
    wide = make(dtype=tg.float32, low=-1e300, high=1e300)
    assert wide.isfinite().all() and wide.max() > 1e38 > -1e38 > wide.min()
    for text, wrong in {
        "needs a floating": {"dtype": tg.int8, "requires_grad": True},
        "exclude each other": {"noncontiguous": True, "memory_format": tg.contiguous_format},
        "must be numbers": {"low": math.nan},
        "low must be below high": {"low": 3, "high": 2},
        "has numbers from 0": {"dtype": tg.uint8, "low": 300, "high": 400},
    }.items():
        with pytest.raises(ValueError, match=text):
            make(**{"dtype": tg.float32, **wrong})


def _times(number: int, factor: int) -> None:
    assert number * factor < 3, "too large"


def test_small_modules() -> None:
    assert tg.jit.script(abs) is abs and not tg.jit.is_scripting() and not tg.jit.is_tracing()
    traced = []
    tg.compile(lambda x: (traced.append(tg.jit.is_tracing()), x)[1])(tg.ones(1))
    assert traced == [True]
    assert isinstance(tg.ones(1), tg.autograd.Variable)
    assert tg.autograd.Variable(tg.ones(1), requires_grad=True).requires_grad
    tg.backends.cudnn.benchmark = True
    assert not tg.backends.mps.is_available() and tg.accelerator.device_count() >= 0
    before = tg.get_float32_matmul_precision()
    tg.backends.cuda.matmul.allow_tf32 = True
    assert tg.get_float32_matmul_precision() == "high"
    tg.set_float32_matmul_precision(before)
    tree = {"a": [1, (2, 3)]}
    leaves, spec = pytree_names.tree_flatten(tree)
    assert leaves == [1, 2, 3] and pytree_names.tree_unflatten(leaves, spec) == tree
    assert pytree_names.tree_map(lambda a, b: a + b, tree, tree) == {"a": [2, (4, 6)]}
    tg.multiprocessing.spawn(_times, (1,), nprocs=2, start_method="fork")
    with pytest.raises(RuntimeError, match="process 1 exited with code 1"):
        tg.multiprocessing.spawn(_times, (5,), nprocs=2, start_method="fork")
    for call in (tg.jit.load, tg.fx.symbolic_trace):
        with pytest.raises(NotImplementedError):
            call("x")


def test_sequential_checkpoints_change_no_gradient() -> None:
    tg.manual_seed(0)
    layers = tg.nn.Sequential(*[tg.nn.Linear(3, 3) for _ in range(5)])
    x = tg.randn(2, 3)
    layers(x).sum().backward()
    wanted = [each.grad for each in layers.parameters()]
    layers.zero_grad()
    tg.utils.checkpoint.checkpoint_sequential(layers, 2, x, use_reentrant=False).sum().backward()
    for each, grad in zip(layers.parameters(), wanted, strict=True):
        assert tg.equal(each.grad, grad)


PATHS = """
    _assert accelerator amp amp.GradScaler autograd autograd.functional autograd.grad_mode
    backends backends.cuda backends.cudnn backends.mps cuda cuda.amp distributed
    distributions distributions.kl func fx hub jit linalg multiprocessing nn nn.common_types
    nn.functional nn.init nn.parallel nn.modules nn.modules.activation nn.modules.batchnorm
    nn.modules.conv nn.modules.rnn nn.modules.utils nn.parameter nn.utils nn.utils.clip_grad_norm_
    nn.utils.fusion nn.utils.parametrizations nn.utils.parametrize nn.utils.prune nn.utils.rnn
    nn.utils.spectral_norm nn.utils.stateless nn.utils.weight_norm onnx optim optim.adamw
    optim.lr_scheduler optim.lr_scheduler.StepLR optim.swa_utils profiler random sparse testing
    testing.assert_close types utils utils.checkpoint utils.data utils.data._utils.collate
    utils.data.dataloader utils.data.distributed utils.dlpack utils.hooks utils.model_zoo
    utils.tensorboard version
"""


def test_paths_of_pytorch_are_there() -> None:
    """As attributes after one import, by `import` where they are modules, and so as `torch`."""
    code = f"""
import importlib, operator, types
import tgraph as tg

def look(root):
    for path in {PATHS!r}.split():
        found = operator.attrgetter(path)(root)
        if isinstance(found, types.ModuleType):
            again = importlib.import_module(f"{{root.__name__}}.{{path}}")
            assert again is found, path

look(tg)
tg.compat.as_torch()
look(importlib.import_module("torch"))
import torch.backends.cudnn as cudnn
from torch.autograd.profiler import record_function
cudnn.benchmark = True
torch = importlib.import_module("torch")
torch.backends.cuda.matmul.allow_tf32 = True
assert tg.backends.cudnn.benchmark and tg.get_float32_matmul_precision() == "high"
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: tg.sparse_bsr_tensor, AttributeError, "sparse_coo, sparse_csr and sparse"),
        (lambda: tg.eye(2).to_sparse_bsr((1, 1)), NotImplementedError, "sparse_coo, sparse_csr"),
        (lambda: tg.eye(2).to_sparse_bsc((1, 1)), NotImplementedError, "sparse_coo, sparse_csr"),
        (lambda: tg.xpu, AttributeError, "devices are 'cpu' and 'cuda'"),
        (lambda: tg.sparse.spsolve(), NotImplementedError, "linalg.solve"),
        (lambda: tg.onnx.export(None, (), "net.onnx"), NotImplementedError, "gives a file that"),
        (lambda: tg.profiler.ProfilerAction, AttributeError, "measure=True"),
        (lambda: tg._assert(tg.tensor(1) > 2, "too small"), AssertionError, "too small"),
    ],
)
def test_what_is_not_there_tells_the_way_out(call: Any, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_events_are_written_by_tensorboardx(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets arrays for tensors. Where it is not installed, the error tells what to install."""
    told = []

    class Writer:
        def __init__(self, log_dir: str) -> None:
            self.log_dir = log_dir

        def add_scalars(self, *args: Any, **kwargs: Any) -> None:
            told.append((args, kwargs))

        def add_graph(self, model: Any) -> None:
            raise AssertionError

    tensorboard = tg.utils.tensorboard
    tensorboard._writer.cache_clear()
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ModuleNotFoundError, match="pip install tensorboardX"):
        _ = tensorboard.SummaryWriter
    monkeypatch.setitem(sys.modules, "tensorboardX", SimpleNamespace(SummaryWriter=Writer))
    writer = tensorboard.SummaryWriter("runs")
    assert isinstance(writer, tensorboard.SummaryWriter) and writer.log_dir == "runs"
    x = tg.ones(2, dtype=tg.bfloat16, requires_grad=True)
    writer.add_scalars("losses", {"a": x.sum(), "b": 0.5}, global_step=3)
    (((tag, values), options),) = told
    assert (tag, options) == ("losses", {"global_step": 3}) and values == {"a": 2.0, "b": 0.5}
    assert isinstance(values["a"], np.ndarray) and values["a"].dtype == np.float32
    with pytest.raises(NotImplementedError, match=r"tgraph\.draw"):
        writer.add_graph(None)
    tensorboard._writer.cache_clear()


def test_processes_share_a_dataset_out() -> None:
    """Parts of one size, of one order that the epoch decides, which PyTorch's would be, too."""
    sampler = tg.utils.data.DistributedSampler
    parts = [[*sampler(range(7), 3, rank, seed=5)] for rank in range(3)]
    assert {len(part) for part in parts} == {3} and {*parts[0], *parts[1], *parts[2]} == {*range(7)}
    later = sampler(range(7), 3, 0, seed=5)
    later.set_epoch(1)
    assert [*later] != parts[0]
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    for size, drop_last in ((7, False), (7, True), (1, False), (6, False)):
        for rank in range(3):
            options = {"num_replicas": 3, "rank": rank, "shuffle": False, "drop_last": drop_last}
            theirs = torch.utils.data.DistributedSampler(range(size), **options)
            ours = sampler(range(size), **options)
            assert [*ours] == [*theirs] and len(ours) == len(theirs)
    with pytest.raises(ValueError, match="Invalid rank 3"):
        sampler(range(7), 3, 3)


def test_modules_are_no_script_modules() -> None:
    layer = tg.nn.Linear(1, 1)
    assert not isinstance(tg.jit.script(layer), tg.jit.ScriptModule)
    assert not isinstance(tg.jit.script(len), tg.jit.ScriptFunction)
    assert issubclass(tg.jit.TopLevelTracedModule, tg.jit.ScriptModule)
    assert issubclass(tg.jit.RecursiveScriptModule, tg.nn.Module)


def test_numpys_functions_give_what_they_give_for_pytorchs_tensors() -> None:
    code = """
import numpy as np
import tgraph as tg

t = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
assert isinstance(np.stack([t, t]), tg.Tensor)
with tg.compat.as_torch():
    arrays = (
        np.stack([t, t]), np.concatenate([t, t]), np.where(t > 2, t, 0), np.dot(t, t),
        np.tile(t, 2),
        np.einsum("ij,jk", t, t), np.sort(t), np.diff(t), np.outer(t, t), np.zeros_like(t),
        np.linalg.norm(t), np.copy(t), np.vstack([t, np.ones(2)]),
    )
    tensors = (
        np.sin(t), np.add(t, 1), np.argmax(t), np.clip(t, 1, 3), np.transpose(t), np.cumsum(t),
        np.round(t), np.repeat(t, 2), np.take(t, [0]), np.linalg.inv(t),
    )
    assert all(isinstance(each, (np.ndarray, np.generic)) for each in arrays)
    assert all(isinstance(each, tg.Tensor) for each in tensors)
    assert np.stack([t, t]).std() == np.std(np.stack([t.numpy()] * 2))
    try:
        np.stack([t.requires_grad_(), t])
    except RuntimeError as error:
        assert "Can't call numpy() on Tensor that requires grad" in str(error)
    else:
        raise AssertionError
assert isinstance(np.stack([t, t]), tg.Tensor) and not hasattr(t, "__array_wrap__")
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
