"""Connectionist temporal classification: the likelihood of labels at unknown times.

Source: Graves et al., "Connectionist Temporal Classification" (2006). The forward variables are
computed in logarithms, by a scan over time; their derivative is what the backward variables give.
"""

from __future__ import annotations

from typing import Any

from ..compiler.ir import primitives as p
from ..core.autocast import with_autocast
from ..core.dispatch import apply
from ..core.eager_context import constant
from ..core.operands import cast, on_device, require_tensor, widened
from ..core.planned import planned
from ..core.tensor import Tensor
from ..core.values import known_values
from ..runtime.dtypes import int64
from . import elementwise as e
from . import movement as m
from . import reductions as r
from .concatenation import cat, stack
from .creation import arange
from .from_data import tensor as make_tensor
from .loss_reduction import reduced
from .row_scans import scan
from .scans import cumsum

_NEVER = -1e30  # the logarithm of an impossible path: finite, so that differences are numbers


@with_autocast
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the logarithm of the probability that a sequence shows the target labels, in order.

    `log_probs` is [time, n, classes], logarithms of a softmax; `targets` [n, labels], or the labels
    of all examples one after another; both also without n. The lengths, of each example, are
    tensors or tuples. "mean" divides each loss by its number of labels. With `zero_infinity` what
    is too short for its labels counts for nothing.

    As in PyTorch, the gradient of `log_probs` takes these for the results of a log-softmax, and is
    NaN where a loss is infinite; `zero_infinity` makes both 0.

    >>> import tgraph as tg
    >>> logs = tg.zeros(4, 1, 3).log_softmax(2)
    >>> tg.nn.functional.ctc_loss(logs, tg.tensor([[1, 2]]), (4,), (2,))
    tensor(0.8432)
    """
    require_tensor(log_probs, "ctc_loss", "log_probs")
    if not log_probs._type.dtype.is_floating_point:
        raise RuntimeError(f"ctc_loss: log_probs must be floats, got {log_probs._type.dtype.name}")
    if targets._type.dtype.is_floating_point:
        raise RuntimeError("targets must be integral")
    single = log_probs.ndim == 2
    if single:
        log_probs = m.unsqueeze(log_probs, 1)
        targets = m.unsqueeze(targets, 0) if targets.ndim == 1 else targets
    time, count, classes = log_probs.shape
    if not time or not classes:
        raise RuntimeError("log_probs tensor must not be empty")
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    known = _known(input_lengths), _known(target_lengths)
    for name, given, largest in (
        ("input_lengths", known[0], time),
        ("target_lengths", known[1], targets.shape[1] if targets.ndim == 2 else None),
    ):
        _check_lengths(name, given, count, largest)
    targets = on_device(targets, log_probs._type.device)
    inputs = _as_lengths(input_lengths, log_probs)
    lengths = _as_lengths(target_lengths, log_probs)
    if targets.ndim == 1:
        longest = targets.shape[0] if known[1] is None else max(known[1], default=0)
        targets = _rows(targets, lengths, longest)
    loss = _losses(widened(log_probs), cast(targets, int64), inputs, lengths, blank)
    is_infinite = e.eq(loss, float("inf"))
    if zero_infinity:
        loss = e.where(is_infinite, 0, loss)
    else:
        loss = e.where(is_infinite, _without_gradient(log_probs, inputs, is_infinite), loss)
    if reduction == "mean":
        loss = e.div(loss, cast(e.clamp(lengths, min=1), loss._type.dtype))
    loss = reduced(loss, reduction)
    if single and reduction == "none":
        loss = m.squeeze(loss, 0)
    return cast(loss, log_probs._type.dtype)


def _known(lengths: Any) -> list[int] | None:
    """Lengths as numbers, where they can be had."""
    return known_values(lengths) if isinstance(lengths, Tensor) else [int(each) for each in lengths]


def _check_lengths(name: str, lengths: list[int] | None, count: int, largest: int | None) -> None:
    if lengths is None:
        return
    if len(lengths) != count:
        raise RuntimeError(f"{name} must be of size batch_size")
    for each in lengths:
        if each < 0:
            raise RuntimeError(f"Expected {name} to have value at least 0, but got value {each}")
        if largest is not None and each > largest:
            raise RuntimeError(
                f"Expected {name} to have value at most {largest}, but got value {each} (while "
                "checking arguments for ctc_loss_cpu)"
            )


def _as_lengths(lengths: Any, like: Tensor) -> Tensor:
    if isinstance(lengths, Tensor):
        if lengths._type.dtype.is_floating_point:
            raise RuntimeError("ctc_loss: lengths must be integral")
        return on_device(cast(m.reshape(lengths, -1), int64), like._type.device)
    return make_tensor([int(each) for each in lengths], dtype=int64, device=like.device)


@planned
def _rows(targets: Tensor, lengths: Tensor, longest: int) -> Tensor:
    """Labels of all examples one after another, as a row for each."""
    if not longest:
        return m.reshape(m.narrow(targets, 0, 0, 0), (lengths.shape[0], 0))
    starts = e.sub(cumsum(lengths, 0), lengths)
    at = e.add(m.unsqueeze(starts, 1), arange(longest, device=targets.device))
    at = e.clamp(at, max=targets.shape[0] - 1)
    return apply(p.index, targets, at, axis=0)


@planned
def _losses(logs: Tensor, targets: Tensor, inputs: Tensor, lengths: Tensor, blank: int) -> Tensor:
    """The loss of each example."""
    time, count, _ = logs.shape
    states, skips = _states(targets, lengths, blank)
    wide = m.expand(m.unsqueeze(states, 0), (time, *states.shape))
    seen = e.clamp(apply(p.gather, logs, wide, axis=2), min=_NEVER)
    positions = arange(states.shape[1], device=logs.device)
    starts = e.logical_and(e.lt(positions, 2), e.le(positions, m.unsqueeze(lengths, 1)))
    first = e.where(starts, m.select(seen, 0, 0), _NEVER)
    never = apply(
        p.broadcast, constant(_NEVER, logs._type.dtype, logs._type.device), shape=(count, 2)
    )

    def turn(before: Tensor, now: tuple[Tensor, Tensor]) -> tuple[Tensor, Any]:
        row, moment = now
        padded = cat([never, before], 1)
        size = before.shape[1]
        stayed = e.where(e.gt(before, _NEVER), before, _NEVER)
        moved = m.narrow(padded, 1, 1, size)
        skipped = e.where(skips, m.narrow(padded, 1, 0, size), _NEVER)
        largest = e.maximum(e.maximum(stayed, moved), skipped).detach()
        parts = [e.exp(e.sub(each, largest)) for each in (stayed, moved, skipped)]
        total = e.add(largest, e.log(e.add(e.add(parts[0], parts[1]), parts[2])))
        after = e.clamp(e.add(total, row), min=_NEVER)
        return e.where(m.unsqueeze(e.lt(moment, inputs), 1), after, before), None

    last = first
    if time > 1:
        later = m.narrow(seen, 0, 1, time - 1)
        last, _ = scan(turn, first, (later, arange(1, time, device=logs.device)))
    likelihood = _ending(last, lengths)
    loss = e.where(e.lt(likelihood, _NEVER / 2), float("inf"), e.neg(likelihood))
    empty = e.where(e.eq(lengths, 0), 0.0, float("inf"))
    loss = e.where(e.eq(inputs, 0), cast(empty, loss._type.dtype), loss)
    return e.add(loss, _of_normalized(logs, inputs))


def _states(targets: Tensor, lengths: Tensor, blank: int) -> tuple[Tensor, Tensor]:
    """The labels with blanks around each, and where the blank before one may be left out."""
    count, size = targets.shape
    positions = arange(size, device=targets.device)
    targets = e.where(e.lt(positions, m.unsqueeze(lengths, 1)), targets, blank)
    empty = apply(
        p.broadcast, constant(blank, int64, targets._type.device), shape=(count, size + 1)
    )
    pairs = stack([m.narrow(empty, 1, 0, size), targets], 2)
    states = cat([m.reshape(pairs, (count, 2 * size)), m.narrow(empty, 1, 0, 1)], 1)
    before = cat([m.narrow(empty, 1, 0, min(2, size + 1)), states], 1)
    before = m.narrow(before, 1, 0, 2 * size + 1)
    return states, e.logical_and(e.ne(states, blank), e.ne(states, before))


def _ending(last: Tensor, lengths: Tensor) -> Tensor:
    """The logarithm of the probability of all paths that end behind the last label."""
    end = m.unsqueeze(e.mul(lengths, 2), 1)
    blank = m.squeeze(apply(p.gather, last, end, axis=1), 1)
    label = apply(p.gather, last, e.clamp(e.sub(end, 1), min=0), axis=1)
    label = e.where(e.gt(lengths, 0), m.squeeze(label, 1), _NEVER)
    largest = e.maximum(blank, label).detach()
    total = e.add(e.exp(e.sub(blank, largest)), e.exp(e.sub(label, largest)))
    return e.add(largest, e.log(total))


def _of_normalized(logs: Tensor, inputs: Tensor) -> Tensor:
    """Zero, with the gradient that a log-softmax before it adds to each frame."""
    shares = e.exp(logs)
    return r.sum(e.where(_counted(logs, inputs), e.sub(shares, shares.detach()), 0), (0, 2))


@planned
def _without_gradient(logs: Tensor, inputs: Tensor, is_infinite: Tensor) -> Tensor:
    """Infinite, with a gradient of NaN for each frame, where `is_infinite`."""
    total = r.sum(e.where(_counted(logs, inputs), e.exp(widened(logs)), 0), (0, 2))
    return e.neg(e.log(e.where(is_infinite, e.mul(total, 0.0), 1.0)))


def _counted(logs: Tensor, inputs: Tensor) -> Tensor:
    """Which frames of each example count."""
    moments = arange(logs.shape[0], device=logs.device)
    return m.unsqueeze(e.lt(m.unsqueeze(moments, 1), inputs), 2)
