"""Gradients beside finite differences: `gradcheck` and `gradgradcheck`.

A complex number counts as two real ones, for which the gradient is what PyTorch has: that by the
real part, plus i times that by the imaginary part.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core.dispatch import settled
from ..core.grad_mode import no_grad, recorded
from ..core.tensor import Tensor
from ..ops.creation import zeros_like
from ..ops.from_data import tensor
from ..transforms.forward import jvp
from .api import grad


class GradcheckError(RuntimeError):
    """Gradients that are not those of finite differences."""


def gradcheck(
    func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5,
    rtol: float = 1e-3, raise_exception: bool = True, nondet_tol: float = 0.0,
    check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
    check_batched_grad: bool = False, check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False, check_backward_ad: bool = True, fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:  # fmt: skip
    """Whether the gradients of `func(*inputs)` are those of central differences of step `eps`.

    Looked at are those of all inputs that require grad, which should be float64 or complex128:
    `|analytic - numerical| <= atol + rtol * |numerical|` has to hold everywhere, and a second
    backward pass may differ from the first by `nondet_tol` at most. GradcheckError tells where
    that fails; or False is returned, without `raise_exception`. `fast_mode` is accepted and looks
    at all elements, too. Batched gradients and `masked` are not there.

    >>> import tgraph as tg
    >>> x = tg.tensor([0.5, 2.0], dtype=tg.float64, requires_grad=True)
    >>> tg.autograd.gradcheck(lambda x: x.sin() * x, (x,))
    True
    """
    if check_batched_grad or check_batched_forward_grad or masked:
        raise NotImplementedError(
            "gradcheck: check_batched_grad, check_batched_forward_grad and masked are not there; "
            "tg.vmap(tg.grad(function)) can be compared with a loop"
        )
    given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    _check_inputs(given)
    try:
        if check_backward_ad:
            _check_backward(func, given, eps, atol, rtol, nondet_tol, check_grad_dtypes)
        if check_forward_ad:
            _check_forward(func, given, eps, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6,
    atol: float = 1e-5, rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False, check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True, fast_mode: bool = False,
    masked: bool = False,
) -> bool:  # fmt: skip
    """`gradcheck` of the gradients of `func`, by its inputs and by `grad_outputs`.

    These are random numbers, a tensor for each output, unless they are given.

    >>> import tgraph as tg
    >>> x = tg.tensor([0.5, 2.0], dtype=tg.float64, requires_grad=True)
    >>> tg.autograd.gradgradcheck(lambda x: x**3, (x,))
    True
    """
    given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    _check_inputs(given)
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        cotangents = tuple(_random_like(each, rng) for each in _outputs(func, given))
        if gen_non_contig_grad_outputs:
            cotangents = tuple(_spread(each) for each in cotangents)
    else:
        cotangents = tuple(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else (
            grad_outputs,
        )  # fmt: skip
    count = len(cotangents)
    asked = [at for at, each in enumerate(given) if _is_asked(each)]

    def gradients(*arguments: Any) -> tuple[Tensor, ...]:
        own, weights = arguments[:-count], arguments[-count:]
        with recorded():
            found = grad(
                _outputs(func, own), [own[at] for at in asked], weights, create_graph=True,
                allow_unused=True,
            )  # fmt: skip
        return tuple(each for each in found if each is not None and each._requires_grad)

    return gradcheck(
        gradients, given + cotangents, eps=eps, atol=atol, rtol=rtol, nondet_tol=nondet_tol,
        raise_exception=raise_exception, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev, masked=masked,
    )  # fmt: skip


def _is_asked(value: Any) -> bool:
    return isinstance(value, Tensor) and settled(value)._requires_grad


def _check_inputs(inputs: Sequence[Any]) -> None:
    if not any(map(_is_asked, inputs)):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them "
            "have requires_grad=True."
        )
    for at, each in enumerate(inputs):
        if _is_asked(each) and each._type.dtype.itemsize < 8 * (1 + each._type.dtype.is_complex):
            warnings.warn(
                f"Input #{at} requires gradient and is not a double precision floating point or "
                "complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex.",
                stacklevel=3,
            )


def _outputs(func: Callable[..., Any], inputs: Sequence[Any]) -> list[Tensor]:
    """The outputs of a function that can have gradients."""
    found = func(*inputs)
    listed = found if isinstance(found, (tuple, list)) else (found,)
    return [
        each for each in listed
        if isinstance(each, Tensor) and each._type.dtype.is_differentiable
    ]  # fmt: skip


def _random_like(output: Tensor, rng: np.random.Generator) -> Tensor:
    numbers = rng.uniform(-1, 1, (2, *output.shape))
    values = numbers[0] + 1j * numbers[1] if output._type.dtype.is_complex else numbers[0]
    return tensor(values, dtype=output.dtype, device=output.device, requires_grad=True)


def _spread(x: Tensor) -> Tensor:
    """The same numbers, each two places from the next."""
    array = np.repeat(x.detach().cpu().numpy()[..., None], 2, axis=-1)
    return tensor(array, device=x.device)[..., 0].detach().requires_grad_()


def _numbers(x: Tensor) -> np.ndarray:
    """The real numbers that `x` consists of, in a row: of complex ones both parts."""
    array = np.ascontiguousarray(x.detach().cpu().numpy()).reshape(-1)
    return array.view(array.real.dtype).copy()


def _units(x: Tensor) -> Iterator[tuple[tuple[int, ...], complex]]:
    """Place and direction of each of the real numbers of `x`."""
    directions = (1, 1j) if x._type.dtype.is_complex else (1,)
    return itertools.product(np.ndindex(*x.shape), directions)


def _numerical(
    func: Callable[..., Any], inputs: Sequence[Any], at: int, eps: float
) -> list[np.ndarray]:
    """For each output the derivatives [numbers of the input, numbers of the output]."""
    moved = inputs[at].detach()  # shares memory with the input, of which closures may know
    rows: list[list[np.ndarray]] = []
    with no_grad():
        for place, direction in _units(moved):
            before = moved[place].item()
            around = []
            for step in (eps, -eps):
                moved[place] = before + step * direction
                around.append([_numbers(each) for each in _outputs(func, inputs)])
            moved[place] = before
            rows.append([(up - down) / (2 * eps) for up, down in zip(*around, strict=True)])
    if not rows:
        sizes = [len(_numbers(each)) for each in _outputs(func, inputs)]
        return [np.zeros((0, size)) for size in sizes]
    return [np.stack(each) for each in zip(*rows, strict=True)]


def _unit(output: Tensor, place: tuple[int, ...], direction: complex) -> Tensor:
    found = zeros_like(output, requires_grad=False)
    found[place] = direction
    return found


def _check_backward(
    func: Callable[..., Any], inputs: Sequence[Any], eps: float, atol: float, rtol: float,
    nondet_tol: float, check_grad_dtypes: bool,
) -> None:  # fmt: skip
    asked = [at for at, each in enumerate(inputs) if _is_asked(each)]
    numerical = {at: _numerical(func, inputs, at, eps) for at in asked}
    with recorded():
        outputs = _outputs(func, inputs)
    if not any(each._requires_grad for each in outputs):
        if any(np.any(each) for found in numerical.values() for each in found):
            raise GradcheckError("no output requires grad, though it depends on the inputs")
        return

    def rows(number: int) -> list[np.ndarray]:
        """For each input asked for, the derivatives [numbers of the input, of the output]."""
        columns: list[list[np.ndarray]] = [[] for _ in asked]
        output = outputs[number]
        for place, direction in _units(output) if output._requires_grad else ():
            found = grad(
                output, [inputs[at] for at in asked], _unit(output, place, direction),
                retain_graph=True, allow_unused=True,
            )  # fmt: skip
            for column, at, each in zip(columns, asked, found, strict=True):
                if check_grad_dtypes and each is not None and each.dtype != inputs[at].dtype:
                    raise GradcheckError(
                        f"the gradient of input {at} is {each.dtype}, expected {inputs[at].dtype}"
                    )
                column.append(_numbers(zeros_like(inputs[at]) if each is None else each))
        sizes = [len(_numbers(inputs[at])) for at in asked]
        return [
            np.stack(column, axis=1) if column else np.zeros((size, len(_numbers(output))))
            for column, size in zip(columns, sizes, strict=True)
        ]

    for number in range(len(outputs)):
        first, second = rows(number), rows(number)
        for at, analytic, again in zip(asked, first, second, strict=True):
            _compare(number, at, numerical[at][number], analytic, atol, rtol)
            if analytic.size and np.abs(analytic - again).max() > nondet_tol:
                raise GradcheckError(
                    f"Backward is not reentrant, i.e., running backward with same input {at} and "
                    f"grad_output {number} multiple times gives different values"
                )


def _check_forward(
    func: Callable[..., Any], inputs: Sequence[Any], eps: float, atol: float, rtol: float
) -> None:
    for at, moved in enumerate(inputs):
        if not _is_asked(moved):
            continue

        def along(x: Tensor, at: int = at) -> tuple[Tensor, ...]:
            return tuple(_outputs(func, [*inputs[:at], x, *inputs[at + 1 :]]))

        rows = [
            [_numbers(each) for each in jvp(along, (moved,), (_unit(moved, *unit),))[1]]
            for unit in _units(moved)
        ]
        for number, expected in enumerate(_numerical(func, inputs, at, eps)):
            found = np.stack([row[number] for row in rows]) if rows else np.zeros_like(expected)
            _compare(number, at, expected, found, atol, rtol)


def _compare(
    number: int, at: int, numerical: np.ndarray, analytic: np.ndarray, atol: float, rtol: float
) -> None:
    if not np.allclose(analytic, numerical, rtol, atol, equal_nan=True):
        raise GradcheckError(
            f"Jacobian mismatch for output {number} with respect to input {at},\n"
            f"numerical:{numerical}\nanalytical:{analytic}"
        )
