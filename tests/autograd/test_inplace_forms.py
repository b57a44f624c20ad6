"""Every in-place operation: gradients are those of the form that makes a new tensor, and PyTorch's.

A form is a function of the tensor to be overwritten and of others, by the names that both libraries
share, so that PyTorch, where it is installed, runs the very same function.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from rows import check_rows
from sampling import rotating

import tgraph as tg
import tgraph.nn.functional as F
from tgraph.core.public import OPERATIONS

Others = dict[str, Any]
Form = Callable[[Any, Others], Any]

BASE = np.array([[0.31, 0.62, 0.93], [0.24, 0.55, 0.76], [0.45, 0.17, 0.88]])
OTHERS = {
    "b": np.array([[0.4, 0.3, 0.8], [0.1, 0.35, 0.6], [0.7, 0.2, 0.5]]),
    "c": np.array([[1.4, 1.3, 1.8], [1.1, 1.35, 1.6], [1.7, 1.2, 1.5]]),
    "mask": np.array([[True, False, True], [False, True, False], [True, True, False]]),
    "index": np.array([2, 0]),
    "places": np.array([[0, 2, 1], [2, 0, 0], [1, 1, 2]]),
}

WITHOUT_OPERANDS = """
    abs_ acos_ asin_ asinh_ atan_ atanh_ ceil_ conj_physical_ cos_ cosh_ deg2rad_ digamma_ erf_
    erfc_ erfinv_ exp_ exp2_ expm1_ floor_ frac_ i0_ lgamma_ log_ log10_ log1p_ log2_ logit_
    nan_to_num_ neg_ rad2deg_ reciprocal_ relu_ round_ rsqrt_ sgn_ sigmoid_ sign_ sin_ sinc_ sinh_
    sqrt_ square_ tan_ tanh_ tril_ triu_ trunc_ zero_"""
BINARY = ["add_", "sub_", "mul_", "div_", "pow_", "fmod_", "remainder_", "atan2_", "xlogy_"]

FORMS: dict[str, Form] = {
    name: lambda y, o, name=name: getattr(y, name)() for name in WITHOUT_OPERANDS.split()
}
FORMS |= {
    f"{name} {kind}": lambda y, o, name=name, kind=kind: getattr(y, name)(OPERANDS[kind](o))
    for name in BINARY
    for kind in ("number", "tensor", "row")
    if (name, kind) != ("atan2_", "number")
}
OPERANDS: dict[str, Callable[[Others], Any]] = {
    "number": lambda o: 1.5,
    "tensor": lambda o: o["b"],
    "row": lambda o: o["b"][0],
}
FORMS |= {
    f"{name} tensor": lambda y, o, name=name: getattr(y, name)(o["b"])
    for name in ("eq_", "ne_", "lt_", "le_", "gt_", "ge_", "copy_", "copysign_", "hypot_", "ldexp_")
}
FORMS |= {
    "pow_ two": lambda y, o: y.pow_(2),
    "pow_ operator": lambda y, o: y.__ipow__(3),
    "mul_ operator": lambda y, o: y.__imul__(o["b"]),
    "div_ operator": lambda y, o: y.__itruediv__(o["b"]),
    "div_ floor": lambda y, o: y.div_(o["b"], rounding_mode="floor"),
    "div_ trunc": lambda y, o: y.div_(o["b"], rounding_mode="trunc"),
    "add_ alpha": lambda y, o: y.add_(o["b"], alpha=2),
    "clamp_": lambda y, o: y.clamp_(0.2, 0.8),
    "clip_": lambda y, o: y.clip_(min=0.5),
    "clamp_max_": lambda y, o: y.clamp_max_(0.5),
    "clamp_min_": lambda y, o: y.clamp_min_(o["b"]),
    "clamp_ tensors": lambda y, o: y.clamp_(o["b"], o["c"]),
    "lerp_": lambda y, o: y.lerp_(o["b"], 0.3),
    "lerp_ tensor": lambda y, o: y.lerp_(o["b"], o["c"]),
    "addcmul_": lambda y, o: y.addcmul_(o["b"], o["c"], value=0.5),
    "addcdiv_": lambda y, o: y.addcdiv_(o["b"], o["c"], value=0.5),
    "acosh_": lambda y, o: y.add_(1).acosh_(),
    "polygamma_": lambda y, o: y.add_(1).polygamma_(2),
    "igamma_": lambda y, o: y.igamma_(o["b"]),
    "igammac_": lambda y, o: y.igammac_(o["b"]),
    "mvlgamma_": lambda y, o: y.add_(1).mvlgamma_(2),
    "float_power_": lambda y, o: y.float_power_(2.5),
    "renorm_": lambda y, o: y.renorm_(2, 0, 0.8),
    "nextafter_": lambda y, o: y.nextafter_(o["b"]),
    "fill_diagonal_": lambda y, o: y.fill_diagonal_(0.5),
    "fill_": lambda y, o: y.fill_(0.5),
    "cumsum_": lambda y, o: y.cumsum_(1),
    "cumprod_": lambda y, o: y.cumprod_(1),
    "masked_fill_": lambda y, o: y.masked_fill_(o["mask"], 0.5),
    "masked_scatter_": lambda y, o: y.masked_scatter_(o["mask"], o["b"]),
    "index_add_": lambda y, o: y.index_add_(1, o["index"], o["b"][:, :2]),
    "index_copy_": lambda y, o: y.index_copy_(1, o["index"], o["b"][:, :2]),
    "index_fill_": lambda y, o: y.index_fill_(1, o["index"], 0.5),
    "index_put_": lambda y, o: y.index_put_((o["index"],), o["b"][:2]),
    "index_put_ add": lambda y, o: y.index_put_((o["index"],), o["b"][:2], accumulate=True),
    "scatter_": lambda y, o: y.scatter_(1, o["places"], o["b"]),
    "scatter_add_": lambda y, o: y.scatter_add_(1, o["places"], o["b"]),
    "scatter_reduce_": lambda y, o: y.scatter_reduce_(1, o["places"], o["b"], "amax"),
    "index_reduce_": lambda y, o: y.index_reduce_(1, o["index"], o["b"][:, :2], "amax"),
    "put_": lambda y, o: y.put_(o["index"], o["b"][0, :2]),
    "unsqueeze_": lambda y, o: y.unsqueeze_(0).squeeze_(0),
    "squeeze_": lambda y, o: y.unsqueeze_(1).squeeze_(),
    "transpose_": lambda y, o: y.transpose_(0, 1).swapaxes_(1, 0).mul_(2),
    "t_": lambda y, o: y.t_().mul_(2).t_(),
    "as_strided_": lambda y, o: y.as_strided_(y.shape, y.stride()),
    "addmm_": lambda y, o: y.addmm_(o["b"], o["c"]),
    "addbmm_": lambda y, o: y.addbmm_(o["b"][None], o["c"][None]),
    "addr_": lambda y, o: y.addr_(o["b"][:, 0], o["c"][0]),
    "addmv_": lambda y, o: y.addmv_(o["b"], o["c"][0]),
    "baddbmm_": lambda y, o: y.baddbmm_(o["b"][None], o["c"][None]),
}  # fmt: skip
SHAPES = {"addmv_": lambda y: y[0], "baddbmm_": lambda y: y[None]}
WITHOUT_PYTORCH = ("asinh_", "acosh_", "atanh_", "igamma_", "igammac_", "index_reduce_")
"""Not differentiated there, or with a warning."""
"""What is overwritten where that is not a matrix."""

ACTIVATIONS = {
    "relu": (), "relu6": (), "hardtanh": (0.2, 0.8), "leaky_relu": (0.1,), "elu": (0.7,),
    "selu": (), "celu": (0.7,), "silu": (), "mish": (), "hardsigmoid": (), "hardswish": (),
    "threshold": (0.5, 0.1), "rrelu": (0.2, 0.6),
}  # fmt: skip

ELSEWHERE = {
    "of integers": """bitwise_and_ bitwise_left_shift_ bitwise_not_ bitwise_or_
        bitwise_right_shift_ bitwise_xor_ gcd_ lcm_ logical_and_ logical_not_
        logical_or_ logical_xor_""",
    "of random numbers": """bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_
        random_ uniform_""",
    "of a function of Python": "apply_ map_ map2_",
    "writes nothing": "detach_ requires_grad_ resize_ resize_as_ set_ share_memory_",
    "PyTorch has no gradient": "floor_divide_ heaviside_",
}


def test_the_table_is_complete() -> None:
    methods = {n for n in dir(tg.Tensor) if n.endswith("_") and not n.endswith("__")}
    named = {name.split()[0] for name in FORMS} | set(" ".join(ELSEWHERE.values()).split())
    aliases = {f"{alias}_" for each in OPERATIONS.values() for alias in each.aliases}
    assert methods - aliases == named - aliases
    activations = {
        name
        for name in F.__all__
        if "inplace" in inspect.signature(getattr(F, name)).parameters and "drop" not in name
    }
    assert activations == set(ACTIVATIONS)


def made(T: Any) -> tuple[Any, Others]:
    """The leaf and the other operands; those of floats require grad too."""

    def tensor(array: np.ndarray[Any, Any]) -> Any:
        return T.tensor(array.tolist(), dtype=T.float64 if array.dtype == float else None)

    others = {name: tensor(array) for name, array in OTHERS.items()}
    for name in ("b", "c"):
        others[name].requires_grad_()
    return tensor(BASE).requires_grad_(), others


def whole(y: Any, form: Form, others: Others) -> Any:
    form(y, others)
    return y


def through_a_view(y: Any, form: Form, others: Others) -> Any:
    form(y.t(), others)
    return y


def part(y: Any, form: Form, others: Others) -> Any:
    form(y[1:], {name: each[1:] if each.ndim == 2 else each for name, each in others.items()})
    return y


PLACES = {"whole": whole, "view": through_a_view, "part": part}
PRODUCTS = ("addbmm_", "addmm_", "addmv_", "baddbmm_")
PARTS = [name for name in FORMS if name.split()[0] not in PRODUCTS]


Case = tuple[str, str]
"""A form and the place where it runs."""


def cases() -> list[Case]:
    found = [(name, place) for name in FORMS for place in ("whole", "view")]
    found += [(name, "part") for name in PARTS if "scatter_" not in name and "put" not in name]
    return [each for each in found if fits(*each)]


def fits(name: str, place: str) -> bool:
    return place == "whole" or name.split()[0] not in SHAPES


def program(name: str, place: str, x: Any, others: Others) -> Any:
    """What is left in a tensor made of `x` after the form has run on it."""
    form = FORMS[name]
    y = x * 1
    start = SHAPES.get(name)
    if start is None:
        return PLACES[place](y, form, others)
    form(start(y), others)
    return y


def derivatives(T: Any, result: Any, inputs: list[Any]) -> list[Any]:
    """First and second derivatives of a scalar of the result, or of results."""
    results = result if isinstance(result, list) else [result]
    scalar = sum((each * each).sum() for each in results)
    first = T.autograd.grad(scalar, inputs, create_graph=True, allow_unused=True)
    again = [each for each in first if each is not None and each.requires_grad]
    total = sum((each * each).sum() for each in again)
    second = T.autograd.grad(total, inputs, allow_unused=True) if again else [None] * len(inputs)
    return [*first, *second]


def numbers(found: list[Any]) -> list[Any]:
    return [None if each is None else each.detach().numpy(force=True) for each in found]


def assert_same(found: list[Any], expected: list[Any]) -> None:
    """None and zeros are one: libraries differ in what they leave out."""
    assert len(found) == len(expected)
    for a, b in zip(numbers(found), numbers(expected), strict=True):
        if a is None or b is None:
            rest = a if b is None else b
            assert rest is None or not rest.any()
            continue
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


def run(T: Any, name: str, place: str, compiled: bool = False) -> list[Any]:
    x, others = made(T)
    call = lambda x, others: program(name, place, x, others)  # noqa: E731
    result = (tg.compile(call) if compiled else call)(x, others)
    return [result, *derivatives(T, result, [x, others["b"], others["c"]])]


def compiled_runs(calls: Sequence[Any], inputs: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
    """As `run`, of calls in one compiled function; each has leaves of its own.

    So one sum of all their results has the derivatives of each.
    """

    def together(inputs: list[Any]) -> list[Any]:
        return [call(*each) for call, each in zip(calls, inputs, strict=True)]

    results = tg.compile(together)(list(inputs))
    flat = [leaf for each in leaves for leaf in each]
    found = iter(derivatives(tg, results, flat))
    first, second = ([[next(found) for _ in each] for each in leaves] for _ in range(2))
    return [[result, *a, *b] for result, a, b in zip(results, first, second, strict=True)]


GROUPS = 2
"""So many tests share the rows of a run."""


@pytest.mark.parametrize("group", range(GROUPS))
def test_compiled_code_differentiates_forms_like_eager_code(group: int) -> None:
    """All but masked_scatter_, which reads how many elements its mask holds."""
    rows = [each for each in cases() if not each[0].startswith("masked_scatter_")]
    rows = rotating(rows, 6)  # each compiles three plans
    check_rows(rows[group::GROUPS], lambda row: assert_same(run(tg, *row, True), run(tg, *row)))


def test_forms_have_the_gradients_of_pytorch() -> None:
    """But for those that PyTorch does not differentiate in place."""
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    rows = [each for each in cases() if each[0] not in WITHOUT_PYTORCH]
    check_rows(rows, lambda row: assert_same(run(tg, *row), run(torch, *row)))


def activation(name: str, place: str, in_place: bool) -> Callable[[Any], Any]:
    function, rest = getattr(F, name), ACTIVATIONS[name]
    if in_place:
        form: Form = lambda y, o: function(y, *rest, inplace=True)  # noqa: E731
        return lambda x: PLACES[place](x * 1, form, {})
    kept = 1 if place == "part" else 0
    return lambda x: tg.cat([x[:kept], function(x[kept:], *rest)])


def test_activations_in_place() -> None:
    rows = [(name, place) for name in ACTIVATIONS for place in PLACES]
    leaves = [(tg.tensor(BASE - 0.5, requires_grad=True),) for _ in rows]
    calls = [activation(*row, in_place=True) for row in rows]
    compiled = dict(zip(rows, compiled_runs(calls, leaves, leaves), strict=True))

    def check(row: Case) -> None:
        found = []
        for in_place in (False, True):
            x = tg.tensor(BASE - 0.5, requires_grad=True)
            result = activation(*row, in_place=in_place)(x)
            found.append([result, *derivatives(tg, result, [x])])
        assert_same(found[1], found[0])
        assert_same(compiled[row], found[0])

    check_rows(rows, check)


UNARY = ["abs_", "cos_", "sin_", "log_", "square_", "exp_", "tanh_", "sqrt_", "neg_", "round_"]


def with_itself(name: str) -> Callable[[Any, Any], Any]:
    def run(x: Any, w: Any) -> Any:
        y = x * 1
        getattr(y, name)(y)
        return y

    return run


def saved_before(name: str) -> Callable[[Any, Any], Any]:
    def run(x: Any, w: Any) -> Any:
        y = x * 1
        z = y * w
        getattr(y, name)(*([w] if name in BINARY else []))
        return z + y

    return run


def written_after(name: str) -> Callable[[Any, Any], Any]:
    def run(x: Any, w: Any) -> Any:
        y = x * 1
        getattr(y, name)(*([w] if name in BINARY else []))
        y.add_(1)
        return y

    return run


def operand_written_after(name: str) -> Callable[[Any, Any], Any]:
    def run(x: Any, w: Any) -> Any:
        y, v = x * 1, w * 1
        getattr(y, name)(v)
        v.add_(1)
        return y

    return run


def written_after_through_a_view(name: str) -> Callable[[Any, Any], Any]:
    def run(x: Any, w: Any) -> Any:
        y = x * 1
        getattr(y[1:], name)(*([w[1:]] if name in BINARY else []))
        y[:1].mul_(2)
        return y

    return run


def twice(name: str) -> Callable[[Any, Any], Any]:
    def run(x: Any, w: Any) -> Any:
        y = x * 1
        for _ in range(2):
            getattr(y, name)(*([w] if name in BINARY else []))
        return y

    return run


ORDERS: list[tuple[Any, list[str]]] = [
    (with_itself, BINARY),
    (saved_before, UNARY + BINARY),
    (written_after, UNARY + BINARY),
    (operand_written_after, BINARY),
    (written_after_through_a_view, UNARY + BINARY),
    (twice, UNARY + BINARY),
]


def outcome(T: Any, call: Any) -> Any:
    """The value and the gradients, or the kind of error and whether it names a write."""
    x, others = made(T)
    try:
        result = call(x, others["b"])
        result.sum().backward()
    except RuntimeError as error:
        return type(error), "modified by an inplace operation" in str(error)
    return [result, x.grad, others["b"].grad]


def compiled_outcomes(calls: Sequence[Any]) -> list[Any]:
    """Of calls that are not refused: in one compiled function, whose results make one sum."""
    if not calls:
        return []
    inputs = [made(tg) for _ in calls]

    def together(inputs: list[Any]) -> list[Any]:
        return [call(x, o["b"]) for call, (x, o) in zip(calls, inputs, strict=True)]

    results = tg.compile(together)(inputs)
    sum(each.sum() for each in results).backward()
    return [[y, x.grad, o["b"].grad] for y, (x, o) in zip(results, inputs, strict=True)]


@pytest.mark.parametrize("make", [make for make, _ in ORDERS], ids=lambda make: make.__name__)
def test_what_pytorch_refuses_is_refused(make: Any) -> None:
    """Eager, and compiled; with its numbers where it is not refused."""
    torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed")
    calls = {name: make(name) for name in dict(ORDERS)[make]}
    expected = {name: outcome(torch, call) for name, call in calls.items()}
    taken = [name for name in calls if isinstance(expected[name], list)]
    compiled = dict(zip(taken, compiled_outcomes([calls[name] for name in taken]), strict=True))

    def check(name: str) -> None:
        eager = outcome(tg, calls[name])
        if name in compiled:
            assert_same(eager, expected[name])
            assert_same(compiled[name], expected[name])
            return
        assert eager == expected[name]
        assert outcome(tg, tg.compile(calls[name])) == expected[name]

    check_rows(calls, check)


def test_a_leaf_is_refused_before_anything_is_computed() -> None:
    x = tg.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.sin_()
    assert x.tolist() == [1.0] * 3 and x._version == 0


def test_only_what_is_read_is_copied() -> None:
    y = tg.ones(3, requires_grad=True) * 1
    y.mul_(2).add_(1).exp_()
    saved = [s.tensor for s in y._record.saved_values()]
    assert [np.shares_memory(each._value, y._value) for each in saved] == [True]
