"""The table of forward-mode rules: the tangents of results from those of operands.

A rule gets operands, their tangents (None for one that has none) and the result, or the tuple of
results, and gives the tangent of each result, None where there is none:

    rule(primitive, primals, tangents, output, attrs) -> a tensor or None, or a tuple of them

`@jvp_rule` registers one. All other primitives have the rule that follows from the gradient: with J
the Jacobian, `g -> Jᵀ g` is linear in g, and its own gradient is `t -> J t`
(`autograd/transposing.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.engine import sum_to
from ..autograd.transposing import transposed
from ..compiler.ir import PRIMITIVES, Family, Primitive
from ..compiler.ir import primitives as p
from ..core.complex_parts import conjugate
from ..core.dispatch import apply, settled, zeros_of
from ..core.tensor import Tensor
from ..core.vjp_rules import NON_DIFFERENTIABLE, RULES

Attrs = dict[str, Any]
Primals = Sequence[Tensor]
Tangents = Sequence[Tensor | None]
Rule = Callable[[Any, Primals, Tangents, Any, Attrs], Any]
JVP_RULES: dict[Primitive, Rule] = {}


def jvp_rule(*primitives: Primitive) -> Callable[[Rule], Rule]:
    """Register the rule of `primitives`: `rule(primitive, primals, tangents, output, attrs)`.

    >>> from tgraph.compiler.ir import primitives as p
    >>> @jvp_rule(p.exp)       # doctest: +SKIP
    ... def _exp(primitive, primals, tangents, output, attrs):
    ...     return tangents[0] * output
    """

    def add(rule: Rule) -> Rule:
        for primitive in primitives:
            JVP_RULES[primitive] = rule
        return rule

    return add


def tangent_of(
    operation: Any, primals: Primals, tangents: Tangents, output: Any, attrs: Attrs
) -> Any:
    """The tangents of the results of any operation; NotImplementedError if it has no gradient."""
    several = isinstance(output, tuple)
    results = output if several else (output,)
    if not any(each._type.dtype.is_differentiable for each in results):
        return (None,) * len(results) if several else None
    if operation in NON_DIFFERENTIABLE:
        return None
    rule = JVP_RULES.get(operation)
    if rule is not None:
        return rule(operation, primals, tangents, output, attrs)
    if operation not in RULES:
        raise NotImplementedError(f"jvp: {operation.name} has no gradient, nor a tangent")
    found = by_transposing(operation, primals, tangents, results, attrs)
    return found if several else found[0]


def by_transposing(
    operation: Any, primals: Primals, tangents: Tangents, results: Sequence[Tensor], attrs: Attrs
) -> tuple[Tensor | None, ...]:
    """J t as the gradient of `g -> Jᵀ g`, which the gradient rule gives."""
    rule, wanted = RULES[operation], tuple(each is not None for each in tangents)
    saves = rule.saves(wanted)

    def pull(cotangents: Sequence[Tensor | None]) -> list[Tensor | None]:
        inputs = [settled(x) if at in saves.inputs else x._type for at, x in enumerate(primals)]
        outputs = [settled(x) if at in saves.outputs else x._type for at, x in enumerate(results)]
        found = rule(cotangents, outputs, inputs, attrs, wanted)
        return [
            None if pulled is None else sum_to(pulled, x._type)
            for pulled, x in zip(found, primals, strict=True)
        ]

    return tuple(transposed(pull, results, tangents, [*primals, *results]))


def _given(tangent: Tensor | None, like: Tensor) -> Tensor:
    return zeros_of(like._type) if tangent is None else tangent


def _shaped(tangent: Any, output: Tensor) -> Tensor:
    """A tangent of an operand that was broadcast, as one of the result."""
    if tangent._type.shape == output._type.shape:
        found: Tensor = tangent
        return found
    return apply(p.broadcast, tangent, shape=output._type.shape)


def _sum(terms: list[Tensor], output: Tensor) -> Tensor | None:
    if not terms:
        return None
    total = terms[0]
    for each in terms[1:]:
        total = apply(p.add, total, each)
    return _shaped(total, output)


# --- linear ---


@jvp_rule(p.reshape, p.permute, p.broadcast, p.slice_, p.diagonal, p.flip, p.unfold, p.fold)
@jvp_rule(p.sum_, p.copy, p.cast, p.neg, p.conj, p.view_as_real, p.view_as_complex, p.transfer)
@jvp_rule(p.concatenate, p.assemble, p.slice_update, p.complex_)
def _linear(
    primitive: Primitive, primals: Primals, tangents: Tangents, output: Any, attrs: Attrs
) -> Any:
    """What is linear in all operands together does to tangents what it does to them."""
    return apply(primitive, *map(_given, tangents, primals), **attrs)


@jvp_rule(p.gather, p.index, p.scatter_add, p.index_put, p.require)
def _linear_but_positions(
    primitive: Primitive, primals: Primals, tangents: Tangents, output: Any, attrs: Attrs
) -> Any:
    operands = [
        _given(tangent, x) if x._type.dtype is output._type.dtype else x
        for tangent, x in zip(tangents, primals, strict=True)
    ]
    return apply(primitive, *operands, **attrs)


@jvp_rule(p.barrier)
def _barrier(
    primitive: Primitive, primals: Primals, tangents: Tangents, output: Any, attrs: Attrs
) -> Any:
    return None if tangents[0] is None else apply(p.barrier, tangents[0], primals[1])


@jvp_rule(p.pad)
def _pad(
    primitive: Primitive, primals: Primals, tangents: Tangents, output: Any, attrs: Attrs
) -> Any:
    return apply(p.pad, *tangents, **{**attrs, "value": 0})  # type: ignore[arg-type]


@jvp_rule(p.cumsum)
def _cumsum(
    primitive: Primitive, primals: Primals, tangents: Tangents, output: Any, attrs: Attrs
) -> Any:
    first, *start = tangents
    if start and start[0] is None:
        start = []
    return apply(p.cumsum, _given(first, primals[0]), *start, **attrs)  # type: ignore[arg-type]


@jvp_rule(p.add, p.sub)
def _add(
    primitive: Primitive, primals: Primals, tangents: Tangents, output: Any, attrs: Attrs
) -> Any:
    x, y = tangents
    if x is not None and y is not None:
        return _shaped(apply(primitive, x, y), output)
    if x is not None:
        return _shaped(x, output)
    assert y is not None
    return _shaped(apply(p.neg, y) if primitive is p.sub else y, output)


@jvp_rule(p.mul, p.matmul, p.convolution)
def _bilinear(
    primitive: Primitive, primals: Primals, tangents: Tangents, output: Any, attrs: Attrs
) -> Any:
    (x, y), (of_x, of_y) = primals, tangents
    terms = [] if of_x is None else [apply(primitive, of_x, y, **attrs)]
    return _sum(terms + ([] if of_y is None else [apply(primitive, x, of_y, **attrs)]), output)


@jvp_rule(p.where)
def _where(
    primitive: Primitive, primals: Primals, tangents: Tangents, output: Any, attrs: Attrs
) -> Any:
    chosen = map(_given, tangents[1:], primals[1:])
    return _shaped(apply(p.where, primals[0], *chosen), output)


# --- elementwise ---


def _diagonal(
    primitive: Primitive, primals: Primals, tangents: Tangents, output: Any, attrs: Attrs
) -> Any:
    """Every element of the result is a function of one of each operand: J is its own transpose.

    Of complex numbers that holds for functions that are complex differentiable, but for
    conjugation: their rules multiply by the conjugate of the derivative.
    """
    rule, terms = RULES[primitive], []
    for at, tangent in enumerate(tangents):
        if tangent is None:
            continue
        wanted = tuple(place == at for place in range(len(primals)))
        saves = rule.saves(wanted)
        inputs = [x if place in saves.inputs else x._type for place, x in enumerate(primals)]
        saved = output if saves.outputs else output._type
        given = conjugate(_shaped(tangent, output))
        found = rule([given], [saved], inputs, attrs, wanted)[at]
        assert found is not None
        terms.append(_shaped(conjugate(found), output))
    return _sum(terms, output)


_NOT_HOLOMORPHIC = (p.abs_, p.sign)
for _primitive in PRIMITIVES.values():
    if (
        _primitive.family is Family.ELEMENTWISE
        and _primitive in RULES
        and _primitive not in JVP_RULES
        and _primitive not in _NOT_HOLOMORPHIC
    ):
        jvp_rule(_primitive)(_diagonal)
