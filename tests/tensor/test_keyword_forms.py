"""Arguments by name: every form that PyTorch takes is taken, and means the same."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest
from keyword_forms import FORMS
from rows import check_rows

import tgraph as tg
import tgraph.nn.functional as F
from tgraph.core import keywords


def scope(T: Any) -> dict[str, Any]:
    x = (T.arange(12, dtype=T.float64) * 7 % 12 / 12 + 0.05).reshape(3, 4)
    v, i = (T.arange(4, dtype=T.float64) + 1) / 4, T.tensor([2, 1])
    return {"T": T, "x": x, "y": x.clone().reshape(4, 3), "v": v, "i": i, "m": x > 0.4}


def plain(result: Any) -> Any:
    """Results of both libraries in terms of neither."""
    if isinstance(result, (tuple, list)):
        return [plain(each) for each in result]
    if hasattr(result, "detach"):
        return [str(result.dtype).partition(".")[2], list(result.shape), result.tolist()]
    return result


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, float):
        return bool(np.isclose(found, expected, 1e-5, 1e-7))
    return bool(found == expected)


def test_forms() -> None:
    """Without PyTorch, that each form is taken at all."""
    found: dict[str, Any] = {}
    check_rows(FORMS, lambda form: found.update({form: plain(eval(form, scope(tg)))}))
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")

    def check(form: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = plain(eval(form, scope(torch)))
        assert same(found[form], expected), (found[form], expected)

    check_rows(FORMS, check)


@pytest.mark.parametrize(
    "form",
    ["x.sum(axis=1)", "T.cat([x, x], axis=1)", "x.flip(dims=(1,))", "x.amax(axis=0, keepdims=True)",
     "x.scatter(1, i[None], value=0.5)", "T.zeros(size=(3, 4)) + x", "T.add(x1=x, x2=x)",
     "T.repeat_interleave(x, T.tensor([1, 2, 3]), dim=0, output_size=6)"],
)  # fmt: skip
def test_forms_in_compiled_code(form: str) -> None:
    given = scope(tg)
    compiled = tg.compile(eval(f"lambda x, i: {form}", {"T": tg}))
    assert same(plain(compiled(given["x"], given["i"])), plain(eval(form, given)))


def test_one_argument_under_two_names_is_refused() -> None:
    with pytest.raises(TypeError, match="'axis' and 'dim' are two names of one argument"):
        tg.ones(2, 3).sum(dim=0, axis=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'axes'"):
        tg.ones(2, 3).sum(axes=1)
    with pytest.raises(NotImplementedError, match=r"call pin_memory\(\) on the result"):
        tg.zeros(2, pin_memory=True)


# --- the names of parameters ----------------------------------------------------------------------

# What PyTorch's own table of signatures names, and we do not take: with the reason.
NOT_TAKEN: dict[str, set[str]] = {
    "PyTorch's own table has another name than PyTorch": {"polar ang"},
    "out= of functions whose result has no form out": {"out"},
    "names that table has, which PyTorch itself does not take": {
        "logsumexp names", "permute self", "permute dim", "broadcast_to self", "isfinite tensor",
        "isinf tensor", "where x", "where y", "repeat size", "tile reps", "random_ from_",
        "uniform_ from_", "topk descending", "xlogy x", "xlogy y", "as_strided_scatter self",
        "index_reduce include_input",  # whose name is include_self in PyTorch, too
        "cholesky_solve input1", "cholesky_solve input2", "diag_embed diagonal",
        "fill_diagonal_ value", "isreal tensor", "lu_solve b", "orgqr tau",
        "split_with_sizes split_size_or_sections", "split_with_sizes tensor",
        "unsafe_split split_size_or_sections", "unsafe_split tensor", "isin e", "isin te",
        "msort descending", "embedding input", "histogram max", "histogram min",
        "max_pool1d_with_indices return_indices", "narrow_copy dimension", "nuclear_norm dtype",
        "nuclear_norm p", "resize size", "resize_as other", "sym_float input", "sym_int input",
        "sym_ite a", "sym_ite c", "sym_not input", "sym_sqrt input", "convolution output_adding",
        "unsafe_split_with_sizes split_size_or_sections", "unsafe_split_with_sizes tensor",
        "alpha_dropout inplace", "dropout inplace", "rrelu inplace",
        *(f"{name} self" for name in dir(tg) if name.endswith("_copy")),
    },
    "operations that we do not have": {
        "bmm out_dtype", "mm out_dtype", "embedding max_norm", "embedding norm_type",
        "embedding scale_grad_by_freq", "embedding sparse", "poisson_nll_loss full",
        "triplet_margin_loss eps", "triplet_margin_loss swap", "huber_loss weight",
        "l1_loss weight", "view_copy dtype",
    },
    "deprecated, reduction= says it": {"size_average", "reduce"},
    "of the form in torch, where we have that of torch.nn.functional": {
        "adaptive_max_pool1d inputs", "alpha_dropout train", "batch_norm cudnn_enabled",
        "dropout train", "feature_alpha_dropout train", "group_norm cudnn_enabled",
        "instance_norm cudnn_enabled", "layer_norm cudnn_enabled",
    },
    "A in both": {"lobpcg input", "pca_lowrank input", "svd_lowrank input"},
    "positional in both": {"softmax _stacklevel", "log_softmax _stacklevel",
                           "softmin _stacklevel"},
}  # fmt: skip


def taken(function: Any) -> set[str] | None:
    """The names that a function takes; None where it takes any."""
    plain_function = inspect.unwrap(function)
    parameters = inspect.signature(plain_function).parameters.values()
    found = {each.name for each in parameters} | set(keywords.other_names(plain_function))
    kept = {"dtype", "device", "requires_grad"} if plain_function.__name__.endswith("_like") else ()
    if any(each.kind is each.VAR_KEYWORD for each in parameters) and not kept:
        return None
    return found | set(kept)


def untaken(theirs: Any, ours: Any, is_method: bool) -> set[str]:
    names = taken(ours)
    if names is None:
        return set()
    wanted = list(inspect.signature(theirs).parameters)[1 if is_method else 0 :]
    return {name for name in wanted if name not in names and name not in ("args", "kwargs")}


def test_parameters_have_pytorch_s_names() -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = torch.overrides.get_testing_overrides()
    known = set().union(*NOT_TAKEN.values())
    found = set()
    for mine, theirs in (
        (tg, torch), (tg.Tensor, torch.Tensor), (F, torch.nn.functional), (F, torch)
    ):  # fmt: skip
        for name in dir(mine):
            ours, other = getattr(mine, name), getattr(theirs, name, None)
            if name.startswith("_") or not inspect.isroutine(ours) or other not in table:
                continue
            for each in untaken(table[other], ours, mine is tg.Tensor):
                if not {each, f"{name} {each}"} & known:
                    found.add(f"{name} {each}")
    assert not found


# --- values of other libraries --------------------------------------------------------------------


class Lent:
    """An array of some other library: known by DLPack alone."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_arrays_known_by_dlpack_become_tensors() -> None:
    array = np.arange(6.0).reshape(2, 3)
    shared = tg.as_tensor(Lent(array))
    array[0, 0] = 7
    assert shared[0, 0] == 7 and shared.dtype is tg.float64
    copied = tg.tensor(Lent(array), dtype=tg.float32)
    array[0, 0] = 8
    assert copied[0, 0] == 7 and copied.dtype is tg.float32
    assert tg.ones(1).new_tensor(Lent(array)).dtype is tg.float32


def test_state_of_other_libraries_is_loaded() -> None:
    layer = tg.nn.Linear(2, 3)
    weight, bias = np.arange(6.0).reshape(3, 2), np.ones(3, np.float32)
    layer.load_state_dict({"weight": weight, "bias": Lent(bias)})
    assert layer.weight.tolist() == weight.tolist() and layer.bias.tolist() == [1.0] * 3
    assert layer.weight.dtype is tg.float32 and layer.weight.requires_grad
    weight[0, 0] = 9
    assert layer.weight[0, 0] == 0
    with pytest.raises(RuntimeError, match="size mismatch for weight"):
        layer.load_state_dict({"weight": weight.T, "bias": bias})
    with pytest.raises(RuntimeError, match="but received <class 'list'>"):
        layer.load_state_dict({"weight": weight.tolist(), "bias": bias})


def test_state_of_an_optimizer_of_other_libraries_is_loaded() -> None:
    x = tg.ones(3, requires_grad=True)
    optimizer = tg.optim.SGD([x], lr=0.1, momentum=0.9)
    saved = optimizer.state_dict()
    saved["state"] = {0: {"momentum_buffer": np.array([1.0, 2.0, 3.0])}}
    optimizer.load_state_dict(saved)
    buffer = optimizer.state[x]["momentum_buffer"]
    assert isinstance(buffer, tg.Tensor) and buffer.dtype is tg.float32


def test_tensors_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    x = torch.arange(6.0).reshape(2, 3).t().requires_grad_()
    shared = tg.as_tensor(x)
    assert shared.tolist() == x.tolist() and shared.data_ptr() == x.data_ptr()
    assert not shared.requires_grad
    half = tg.tensor(torch.tensor([1.5, 2.5], dtype=torch.bfloat16))
    assert half.dtype is tg.bfloat16 and half.tolist() == [1.5, 2.5]
    theirs, ours = torch.nn.Linear(2, 3), tg.nn.Linear(2, 3)
    ours.load_state_dict(theirs.state_dict())
    assert ours.weight.tolist() == theirs.weight.tolist()
    their_adam, our_adam = torch.optim.Adam(theirs.parameters()), tg.optim.Adam(ours.parameters())
    theirs(torch.ones(1, 2)).sum().backward()
    their_adam.step()
    our_adam.load_state_dict(their_adam.state_dict())
    mean = their_adam.state[theirs.weight]["exp_avg"]
    assert our_adam.state[ours.weight]["exp_avg"].tolist() == mean.tolist()


# --- options of optimizers, and repeats -----------------------------------------------------------


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_ways_to_run_a_step_are_accepted(name: str) -> None:
    make = getattr(tg.optim, name)
    x = tg.ones(2, requires_grad=True)
    taken = inspect.signature(make).parameters
    for ways in ({"foreach": True}, {"fused": True}, {"foreach": False, "fused": None},
                 {"capturable": True, "differentiable": False}):  # fmt: skip
        if not taken.keys() >= ways.keys():  # PyTorch's has it not, either
            with pytest.raises(TypeError, match="unexpected keyword argument"):
                make([x], lr=0.1, **ways)
            continue
        optimizer = make([x], lr=0.1, **ways)
        x.grad = tg.ones(2)
        optimizer.step()
    if "fused" in taken:
        with pytest.raises(RuntimeError, match="cannot be `True` together"):
            make([x], lr=0.1, foreach=True, fused=True)
    with pytest.raises(TypeError, match="unexpected keyword argument 'lrr'"):
        make([x], lrr=0.1)


def test_gradients_of_repeats() -> None:
    x = tg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    times = tg.tensor([2, 0])
    for call in (
        lambda x: tg.repeat_interleave(x, times, dim=1),
        tg.compile(lambda x: tg.repeat_interleave(x, times, dim=1, output_size=2)),
    ):
        x.grad = None
        repeated = call(x)
        assert repeated.tolist() == [[1, 1], [3, 3]]
        repeated.sum().backward()
        assert x.grad.tolist() == [[2, 0], [2, 0]]


@pytest.mark.parametrize(
    ("repeat", "message"),
    [
        (lambda: tg.repeat_interleave(tg.tensor([1, -1])), "can not be negative"),
        (lambda: tg.repeat_interleave(tg.ones(3), tg.tensor([1, 2])), "same size as input"),
        (lambda: tg.repeat_interleave(tg.ones(2), tg.tensor([1.0, 2.0])), "Long or Int"),
        (lambda: tg.repeat_interleave(tg.ones(2, 2, dtype=tg.int64)), "1D vector"),
        (lambda: tg.repeat_interleave(tg.ones(2), -1), "non-negative"),
        (lambda: tg.repeat_interleave(tg.tensor([1, 2]), output_size=4), "output_size is 4"),
    ],
)
def test_repeats_that_make_no_sense(repeat: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        repeat()
