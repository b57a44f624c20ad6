"""Which types operations compute in under autocast, in eager and compiled code."""

import threading
import warnings

import numpy as np
import pytest

import tgraph as tg
from tgraph import nn
from tgraph.core import autocast as policies
from tgraph.nn import functional as F

X = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
LOW, HIGH, WIDE = tg.bfloat16, tg.float32, tg.float64

# name -> of the functional, the tensor of (4, 4), a symmetric one, and a vector
OPERATIONS = {
    "matmul": lambda T, F, x, s, v: x @ x,
    "matrix by vector": lambda T, F, x, s, v: x @ v,
    "mm": lambda T, F, x, s, v: T.mm(x, x),
    "addmm": lambda T, F, x, s, v: T.addmm(x, x, x),
    "mv": lambda T, F, x, s, v: T.mv(x, v),
    "dot": lambda T, F, x, s, v: T.dot(v, v),
    "outer": lambda T, F, x, s, v: T.outer(v, v),
    "einsum": lambda T, F, x, s, v: T.einsum("ij,jk->ik", x, x),
    "einsum without a sum": lambda T, F, x, s, v: T.einsum("i,j->ij", v, v),
    "einsum of one": lambda T, F, x, s, v: T.einsum("ij->ji", x),
    "tensordot": lambda T, F, x, s, v: T.tensordot(x, x, 1),
    "linear": lambda T, F, x, s, v: F.linear(x, x, v),
    "conv1d": lambda T, F, x, s, v: F.conv1d(x[None], x[:, :, None]),
    "conv2d": lambda T, F, x, s, v: F.conv2d(x[None, None], x[None, None, :2, :2]),
    "attention": lambda T, F, x, s, v: F.scaled_dot_product_attention(x[None], x[None], x[None]),
    "prelu": lambda T, F, x, s, v: F.prelu(x, v),
    "bilinear": lambda T, F, x, s, v: F.bilinear(x, x, T.stack([x, x])),
    "relu": lambda T, F, x, s, v: F.relu(x),
    "gelu": lambda T, F, x, s, v: F.gelu(x),
    "softmax": lambda T, F, x, s, v: F.softmax(x, -1),
    "softmin": lambda T, F, x, s, v: F.softmin(x, -1),
    "layer norm": lambda T, F, x, s, v: F.layer_norm(x, (4,)),
    "mean": lambda T, F, x, s, v: x.mean(),
    "sum": lambda T, F, x, s, v: x.sum(),
    "prod": lambda T, F, x, s, v: x.prod(),
    "cumsum": lambda T, F, x, s, v: x.cumsum(0),
    "norm": lambda T, F, x, s, v: x.norm(),
    "exp": lambda T, F, x, s, v: x.exp(),
    "pow": lambda T, F, x, s, v: x**2,
    "logsumexp": lambda T, F, x, s, v: x.logsumexp(0),
    "add": lambda T, F, x, s, v: x + v,
    "cat": lambda T, F, x, s, v: T.cat([x, x]),
    "cat of two types": lambda T, F, x, s, v: T.cat([x, x.float()]),
    "mse_loss": lambda T, F, x, s, v: F.mse_loss(x, x),
    "cross_entropy": lambda T, F, x, s, v: F.cross_entropy(x, T.tensor([0, 1, 2, 3])),
    "kl_div": lambda T, F, x, s, v: F.kl_div(x, x.abs(), reduction="sum"),
    "cosine_similarity": lambda T, F, x, s, v: F.cosine_similarity(x, x),
    "mirrored pad": lambda T, F, x, s, v: F.pad(x[None], (1, 1), mode="reflect"),
    "pad": lambda T, F, x, s, v: F.pad(x[None], (1, 1)),
    "solve": lambda T, F, x, s, v: T.linalg.solve(s, x),
    "eigvalsh": lambda T, F, x, s, v: T.linalg.eigvalsh(s),
    "written in place": lambda T, F, x, s, v: x.clone().addmm_(x, x),
    "written into out": lambda T, F, x, s, v: T.mm(x, x, out=T.zeros_like(x)),
}


def operands(T, dtype):
    x = T.tensor(X).to(getattr(T, dtype))
    return x, T.tensor(X @ X.T + 4 * np.eye(4, dtype=np.float32)).to(x.dtype), x[0]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_types_on_the_cpu_are_pytorchs(dtype):
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    linalg = ("solve", "eigvalsh")
    wrong = {}
    for name, operation in OPERATIONS.items():
        with torch.autocast("cpu"):
            try:
                expected = operation(torch, torch.nn.functional, *operands(torch, dtype))
            except RuntimeError:  # a combination of types that PyTorch does not compute
                assert name in (*linalg, "bilinear"), name
                continue
        with tg.autocast("cpu"):
            found = operation(tg, F, *operands(tg, dtype))
        if found.dtype.name != str(expected.dtype).removeprefix("torch."):
            wrong[name] = (found.dtype.name, expected.dtype)
        tolerance = 1e-6 if found.dtype is WIDE else 0.05
        np.testing.assert_allclose(
            found.float().numpy(), expected.float().numpy(), rtol=tolerance, atol=tolerance
        )
    assert not wrong


# What CUDA computes in float32, of the operations above, and what it leaves alone.
ON_CUDA = {
    **dict.fromkeys(
        ("matmul", "matrix by vector", "mm", "addmm", "mv", "einsum", "einsum without a sum",
         "einsum of one", "linear", "conv1d", "conv2d", "attention", "prelu"), (LOW, LOW),
    ),
    **dict.fromkeys(
        ("softmax", "softmin", "layer norm", "sum", "prod", "cumsum", "norm", "exp", "pow",
         "logsumexp", "mse_loss", "cross_entropy", "kl_div", "cosine_similarity",
         "cat of two types"), (HIGH, HIGH),
    ),
    **dict.fromkeys(
        ("dot", "outer", "tensordot", "bilinear", "relu", "gelu", "mean", "add", "cat",
         "mirrored pad", "pad", "written in place", "written into out"), (HIGH, LOW),
    ),
}  # fmt: skip


def test_types_by_the_list_for_cuda(monkeypatch):
    """The list of CUDA, on the CPU."""
    monkeypatch.setitem(policies.POLICIES, "cpu", policies.POLICIES["cuda"])
    for name, (of_high, of_low) in ON_CUDA.items():
        for dtype, expected in (("float32", of_high), ("bfloat16", of_low)):
            with tg.autocast("cpu"):
                found = OPERATIONS[name](tg, F, *operands(tg, dtype))
            assert found.dtype is expected, (name, dtype, found.dtype)
    with tg.autocast("cpu"), pytest.raises(RuntimeError, match="is unsafe to autocast"):
        F.binary_cross_entropy(tg.full((2,), 0.5), tg.ones(2))


def test_every_operation_of_the_lists_casts():
    """A function with a policy is `planned`, `public`, or marked `with_autocast`."""
    names = {name for table in policies.POLICIES.values() for name in table} - {"trace"}
    found = 0
    for module in (tg, F, tg.linalg):
        # These are no names of lists: PyTorch's cast `torch.cross` and `torch.norm` alone.
        of_linalg = {"cross", "norm"} if module is tg.linalg else set()
        for name in (names - of_linalg) & set(dir(module)):
            function, chain = getattr(module, name), []
            if function.__module__.endswith("network_forms"):
                assert hasattr(F, name), name  # whose function it calls
                continue
            found += 1
            while function is not None:
                chain.append(function)
                function = getattr(function, "__wrapped__", None)
            assert any(getattr(each, "follows_autocast", False) for each in chain), name
    assert found > 60


def test_a_training_step_gives_gradients_of_the_types_of_parameters():
    """The same in eager and compiled code, and with casts kept or not."""
    losses = []
    for way in ("eager", "compiled", "inside", "not kept"):
        tg.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 1))
        optimizer = tg.optim.AdamW(model.parameters(), lr=0.01)
        x, y = tg.tensor(X), tg.ones(4, 1)

        def step(way=way, model=model, optimizer=optimizer, x=x, y=y):
            optimizer.zero_grad()
            with tg.autocast("cpu", cache_enabled=way != "not kept"):
                out = model(x)
                loss = F.mse_loss(out, y) + 0 * F.mse_loss(model(x), y)
                if way == "inside":
                    loss.backward()
            if way != "inside":
                loss.backward()
            optimizer.step()
            return loss, out.dtype

        run = tg.compile(step) if way == "compiled" else step
        seen = [run() for _ in range(4)]
        assert seen[0][1] is tg.bfloat16 and seen[0][0].dtype is tg.float32
        assert {each.grad.dtype for each in model.parameters()} == {tg.float32}
        losses.append([float(loss) for loss, _ in seen])
    for each in losses[1:]:
        assert each == pytest.approx(losses[0], rel=0.03)
    assert losses[0] == losses[2] == losses[3]


def test_compiled_functions_watch_what_is_on():
    x = tg.tensor(X)

    @tg.compile
    def product(x):
        return x @ x

    def types():
        found = [product(x).dtype]
        for dtype in (tg.bfloat16, tg.float16):
            with tg.autocast("cpu", dtype):
                found.append(product(x).dtype)
                with tg.autocast("cpu", enabled=False):
                    found.append(product(x).dtype)
        return found

    expected = [tg.float32, tg.bfloat16, tg.float32, tg.float16, tg.float32]
    assert types() == expected
    with product.assert_new_compiles(0):
        assert types() == expected
    product.assert_compiles(3)
    assert "autocast changed: None -> Autocast" in product.compiles[1].reason

    switch = {"dtype": tg.bfloat16}
    inner = tg.compile(lambda x: within(x))

    def within(x):
        with tg.autocast("cpu", switch["dtype"]):
            return x @ x

    assert inner(x).dtype is inner(x).dtype is tg.bfloat16
    switch["dtype"] = tg.float16
    assert inner(x).dtype is tg.float16
    inner.assert_compiles(2)
    outside = {"block": tg.autocast("cpu")}  # an object that the function finds

    def entering(x):
        with outside["block"]:
            return x @ x

    entered = tg.compile(entering)
    assert entered(x).dtype is tg.bfloat16 and not tg.is_autocast_enabled("cpu")
    with pytest.raises(AttributeError):
        outside["block"].fast_dtype = tg.float16
    outside["block"] = tg.autocast("cpu", enabled=False)
    assert entered(x).dtype is entering(x).dtype is tg.float32


def test_decorators_threads_errors_and_what_is_on():
    x = tg.tensor(X)

    @tg.autocast("cpu", dtype=tg.float16)
    def half(x):
        return x @ x

    assert half(x).dtype is tg.compile(half)(x).dtype is tg.float16
    seen = []
    with tg.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append(tg.is_autocast_enabled("cpu")))
        thread.start()
        thread.join()
        assert tg.is_autocast_enabled("cpu") and not tg.is_autocast_enabled("cuda")
        assert not tg.is_autocast_enabled("mps")
        with pytest.raises(ZeroDivisionError), tg.autocast("cpu", tg.float16):
            assert tg.get_autocast_dtype("cpu") is tg.float16
            raise ZeroDivisionError
        assert tg.get_autocast_dtype("cpu") is tg.bfloat16
    assert seen == [False] and not tg.is_autocast_enabled("cpu")
    assert tg.get_autocast_dtype("cuda") is tg.float16
    with tg.autocast("cuda"):  # for tensors on GPUs alone
        assert (x @ x).dtype is tg.float32
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        tg.autocast(tg.bfloat16)
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'tpu'"):
        tg.autocast("tpu")
    with pytest.warns(UserWarning, match="only supports dtype of bfloat16, float16, got float32"):
        off = tg.autocast("cpu", tg.float32)
    with off:
        assert not tg.is_autocast_enabled("cpu")
    from tgraph.cuda.amp import GradScaler, autocast

    with autocast(dtype=tg.bfloat16):
        assert tg.get_autocast_dtype("cuda") is tg.bfloat16
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on a machine without a GPU it does nothing
        assert isinstance(GradScaler(), tg.amp.GradScaler)


def test_kept_casts_are_of_what_a_parameter_holds():
    weight = nn.Parameter(tg.ones(2, 2))
    with tg.autocast("cpu"):
        first = weight @ tg.ones(2, 2)
        with tg.no_grad():
            assert not (weight @ weight).requires_grad
            weight.mul_(2)
        second = weight @ tg.ones(2, 2)
    assert (first[0, 0].item(), second[0, 0].item(), second.requires_grad) == (2, 4, True)


def test_transforms_and_checkpoints_cast_as_well():
    x = tg.tensor(X)
    with tg.autocast("cpu"):
        primal, tangent = tg.jvp(lambda x: (x @ x).sum(), (x,), (tg.ones(4, 4),))
        assert primal.dtype is tangent.dtype is tg.bfloat16
        assert tg.vmap(lambda row: x @ row)(x).dtype is tg.bfloat16
        leaf = x.clone().requires_grad_()
        loss = tg.checkpoint(lambda x: (x @ x).float(), leaf).sum()
        plain = x.clone().requires_grad_()
        (plain @ plain).float().sum().backward()
    loss.backward()  # which runs the function again, with autocast on
    np.testing.assert_allclose(leaf.grad.numpy(), plain.grad.numpy(), rtol=1e-2)


def test_functions_with_gradients_of_their_own():
    seen = []

    class Product(tg.autograd.Function):
        @staticmethod
        @tg.amp.custom_fwd(device_type="cpu")
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return (a @ a).float()

        @staticmethod
        @tg.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            seen.append(tg.is_autocast_enabled("cpu"))
            (a,) = ctx.saved_tensors
            return (g @ a.t()).float()

    class Exact(tg.autograd.Function):
        @staticmethod
        @tg.amp.custom_fwd(device_type="cpu", cast_inputs=tg.float32)
        def forward(ctx, a):
            seen.append((a.dtype, tg.is_autocast_enabled("cpu")))
            return a @ a

        @staticmethod
        @tg.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            return g

    a = tg.tensor(X).requires_grad_()
    with tg.autocast("cpu"):
        out = Product.apply(a)
        exact = Exact.apply(tg.tensor(X).bfloat16())
    out.sum().backward()
    assert seen == [(tg.float32, False), True] and exact.dtype is tg.float32
