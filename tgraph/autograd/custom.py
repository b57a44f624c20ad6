"""`custom_jvp` and `custom_vjp`: functions with derivatives of their own, as JAX has them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ..compiler.ir import primitives as p
from ..core import pytree
from ..core.dispatch import apply, zeros_of
from ..core.provenance import user_site
from ..core.tensor import Tensor
from ..core.views import detach
from .custom_call import Cotangents, CustomCall, Forward, call_custom
from .transposing import transposed

Function = Callable[..., Any]


def stop_gradient(x: Any) -> Any:
    """`x`, tensors or a container of them, as a constant to every derivative.

    Gradients end here, and tangents are zero. Like `detach()`, it shares memory.

    >>> import tgraph as tg
    >>> tg.grad(lambda x: x * tg.stop_gradient(x))(tg.tensor(3.0))
    tensor(3.)
    """
    return pytree.map(lambda leaf: detach(leaf) if isinstance(leaf, Tensor) else leaf, x)


class _Custom:
    """A function, and which of its arguments the rule takes as they are."""

    kind = "a custom function"

    def __init__(self, fun: Function, nondiff_argnums: Sequence[int] = ()) -> None:
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = tuple(sorted(nondiff_argnums))
        self.name = getattr(fun, "__name__", type(fun).__name__)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"

    def _check(self) -> None:
        """AttributeError where there is no rule yet."""
        raise NotImplementedError

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments by their positions, those with defaults too."""
        try:
            bound = inspect.signature(self.fun).bind(*args, **kwargs)
        except ValueError:  # a function without a signature
            return args
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"{self.kind} {self.name}: {sorted(bound.kwargs)} can be given by keyword only, "
                "which rules do not take"
            )
        return bound.args

    def _called(self, call: type[_Call], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._check()
        made = call(self, self._positional(args, kwargs))
        return made.filled(call_custom(made, made.tensors))


class _Call(CustomCall):
    """One call: which leaves of the arguments are tensors, and what outputs look like."""

    def __init__(self, custom: Any, args: tuple[Any, ...]) -> None:
        self.custom, self.name = custom, custom.name
        places = custom.nondiff_argnums
        if places and not -len(args) <= places[0] <= places[-1] < len(args):
            raise ValueError(
                f"{custom.kind} {self.name}: nondiff_argnums={places} does not fit a call with "
                f"{len(args)} positional arguments"
            )
        fixed = {at % len(args) for at in places}
        self.count = len(args)
        self.fixed = {at: args[at] for at in sorted(fixed)}
        self.own = tuple(arg for at, arg in enumerate(args) if at not in fixed)
        self.leaves, self.spec = pytree.flatten(self.own)
        self.at = [at for at, leaf in enumerate(self.leaves) if isinstance(leaf, Tensor)]
        self.tensors: list[Tensor] = [self.leaves[at] for at in self.at]
        self.result: Any = None  # the structure of outputs, once they are known

    def structured(self, tensors: Sequence[Any], others: Sequence[Any]) -> tuple[Any, ...]:
        """Arguments but the fixed ones, of `tensors`, and of `others` where none belongs."""
        leaves = list(others)
        for at, each in zip(self.at, tensors, strict=True):
            leaves[at] = each
        found: tuple[Any, ...] = self.spec.unflatten(leaves)
        return found

    def given(self, tensors: Sequence[Tensor]) -> list[Any]:
        """All arguments, for the function itself."""
        rest = iter(self.structured(tensors, self.leaves))
        return [self.fixed[at] if at in self.fixed else next(rest) for at in range(self.count)]

    def taken(self, output: Any, what: str) -> list[Tensor]:
        """The tensors of an output; its structure is that of all outputs of the call."""
        leaves, self.result = pytree.flatten(output)
        for path, leaf in zip(self.result.paths("output"), leaves, strict=True):
            if not isinstance(leaf, Tensor):
                raise TypeError(
                    f"{what} {self.name}: expected tensors in the output, got "
                    f"{type(leaf).__name__} at {path}, at {user_site()}"
                )
        return leaves

    def filled(self, outputs: Sequence[Any]) -> Any:
        return self.result.unflatten(outputs)

    def error(self, rule: str, text: str) -> str:
        return f"{self.custom.kind} {self.name}: its {rule} {text}, at {user_site()}"


# --- forward mode --------------------------------------------------------------------------------


class custom_jvp(_Custom):
    """A function with a rule for its tangents, from which all its derivatives follow.

    The rule is given by `defjvp`: `jvp(primals, tangents)` gives outputs and their tangents, which
    are linear in `tangents`. Gradients follow by transposing that linear function. Arguments and
    outputs are any containers of tensors; numbers among them are constants. Positional arguments
    named by `nondiff_argnums` come before the others in the rule, as they are. The rule of a
    second derivative is that of the code of the rule.

    AttributeError where there is no rule; RuntimeError where the function reads a tensor that
    requires grad and is none of its arguments.

    >>> import tgraph as tg
    >>> @tg.custom_jvp
    ... def log1pexp(x):
    ...     return tg.log(1 + tg.exp(x))
    >>> @log1pexp.defjvp
    ... def _(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return log1pexp(x), t * tg.sigmoid(x)
    >>> tg.grad(log1pexp)(tg.tensor(100.0))
    tensor(1.)
    """

    kind = "custom_jvp"

    def __init__(self, fun: Function, nondiff_argnums: Sequence[int] = ()) -> None:
        super().__init__(fun, nondiff_argnums)
        self.jvp: Function | None = None

    def defjvp(self, jvp: Function) -> Function:
        """Set the rule: `jvp(*nondiff, primals, tangents)` gives `(outputs, tangents)`."""
        self.jvp = jvp
        return jvp

    def defjvps(self, *jvps: Function | None) -> None:
        """Set a rule for each argument, `jvp(tangent, output, *primals)`; None for a zero one."""
        if self.nondiff_argnums:
            raise TypeError(f"custom_jvp {self.name}: defjvps takes no nondiff_argnums; use defjvp")

        def jvp(primals: Any, tangents: Any) -> Any:
            output = self(*primals)
            terms = [
                rule(tangent, output, *primals)
                for rule, tangent in zip(jvps, tangents, strict=True)
                if rule is not None
            ]
            if not terms:
                return output, pytree.map(lambda each: zeros_of(each._type), output)
            total = functools.reduce(functools.partial(pytree.map, _sum), terms)
            return output, total

        self.jvp = jvp

    def _check(self) -> None:
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {self.name} using defjvp, at {user_site()}"
            )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function gives."""
        return self._called(_JvpCall, args, kwargs)


def _sum(one: Tensor, other: Tensor) -> Tensor:
    return apply(p.add, one, other)


class _JvpCall(_Call):
    def function(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        return self.taken(self.custom.fun(*self.given(tensors)), "custom_jvp")

    def forward(self, tensors: Sequence[Tensor]) -> Forward:
        return Forward(self.function(tensors), list(tensors), None)

    def backward(
        self, residuals: Sequence[Tensor], rest: Any, cotangents: Cotangents, wanted: Sequence[bool]
    ) -> list[Tensor | None]:
        """The transpose of the rule."""
        asked = [at for at, is_wanted in enumerate(wanted) if is_wanted]

        def push(tangents: Cotangents) -> list[Tensor | None]:
            given: list[Tensor | None] = [None] * len(residuals)
            for at, each in zip(asked, tangents, strict=True):
                given[at] = each
            return self.tangents(residuals, given)[1]

        likes = [residuals[at] for at in asked]
        found = dict(zip(asked, transposed(push, likes, cotangents, residuals), strict=True))
        return [found.get(at) for at in range(len(residuals))]

    def tangents(
        self, primals: Sequence[Tensor], tangents: Cotangents
    ) -> tuple[list[Tensor], list[Tensor | None]]:
        filled = [
            zeros_of(x._type) if tangent is None else tangent
            for x, tangent in zip(primals, tangents, strict=True)
        ]
        zeros = [0.0 if isinstance(leaf, (int, float, complex)) else None for leaf in self.leaves]
        given = self.structured(primals, self.leaves), self.structured(filled, zeros)
        found = self.custom.jvp(*self.fixed.values(), *given)
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            got = type(found).__name__
            text = f"must give a pair of outputs and their tangents, got {got}"
            raise TypeError(self.error("jvp rule", text))
        outputs = self.taken(found[0], "custom_jvp")
        pushed, spec = pytree.flatten(found[1])
        if spec != self.result:
            text = "gives tangents that are not built as its outputs are"
            raise TypeError(self.error("jvp rule", text))
        for path, output, tangent in zip(spec.paths("output"), outputs, pushed, strict=True):
            self._check_tangent(path, output, tangent)
        return outputs, pushed

    def _check_tangent(self, path: str, output: Tensor, tangent: Any) -> None:
        if tangent is None or not output._type.dtype.is_differentiable:
            return
        if not isinstance(tangent, Tensor) or tangent._type != output._type:
            got = tangent._type if isinstance(tangent, Tensor) else type(tangent).__name__
            text = f"gives {got} as the tangent of {path}, which is of type {output._type}"
            raise TypeError(self.error("jvp rule", text))


# --- reverse mode --------------------------------------------------------------------------------


class custom_vjp(_Custom):
    """A function with a rule for its gradients.

    `defvjp(fwd, bwd)` gives the rule: `fwd(*args)` gives outputs and residuals, any container of
    tensors and other values; `bwd(*nondiff, residuals, cotangents)` a tuple with the cotangents of
    each argument but those that `nondiff_argnums` names, built as the argument is, or None for
    zeros. Tangents follow by transposing `bwd`, second gradients from the code of `fwd` and `bwd`.

    AttributeError where there is no rule; RuntimeError where the function reads a tensor that
    requires grad and is none of its arguments.

    >>> import tgraph as tg
    >>> @tg.custom_vjp
    ... def clipped(x):  # whose gradient is at most 1
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, g: (g.clamp(-1, 1),))
    >>> tg.grad(lambda x: (clipped(x) * tg.tensor([0.5, 3.0])).sum())(tg.ones(2))
    tensor([0.5000, 1.0000])
    """

    kind = "custom_vjp"

    def __init__(self, fun: Function, nondiff_argnums: Sequence[int] = ()) -> None:
        super().__init__(fun, nondiff_argnums)
        self.fwd: Function | None = None
        self.bwd: Function | None = None

    def defvjp(self, fwd: Function, bwd: Function) -> None:
        """Set the rule: `fwd(*args)` and `bwd(*nondiff, residuals, cotangents)`."""
        self.fwd, self.bwd = fwd, bwd

    def _check(self) -> None:
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {self.name} using defvjp, at {user_site()}"
            )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function gives."""
        return self._called(_VjpCall, args, kwargs)


class _VjpCall(_Call):
    def function(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        return self.taken(self.custom.fun(*self.given(tensors)), "custom_vjp")

    def forward(self, tensors: Sequence[Tensor]) -> Forward:
        found = self.custom.fwd(*self.given(tensors))
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            text = f"must give a pair of outputs and residuals, got {type(found).__name__}"
            raise TypeError(self.error("fwd", text))
        outputs = self.taken(found[0], "custom_vjp")
        leaves, spec = pytree.flatten(found[1])
        kept = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        others = [None if isinstance(leaf, Tensor) else (leaf,) for leaf in leaves]
        return Forward(outputs, kept, (spec, others, [each._type for each in outputs]))

    def backward(
        self, residuals: Sequence[Tensor], rest: Any, cotangents: Cotangents, wanted: Sequence[bool]
    ) -> list[Tensor | None]:
        spec, others, types = rest
        kept = iter(residuals)
        values = spec.unflatten(next(kept) if each is None else each[0] for each in others)
        incoming = self.filled(
            [
                zeros_of(type_) if each is None else each
                for each, type_ in zip(cotangents, types, strict=True)
            ]
        )
        found = self.custom.bwd(*self.fixed.values(), values, incoming)
        if not isinstance(found, (tuple, list)) or len(found) != len(self.own):
            got = f"{len(found)}" if isinstance(found, (tuple, list)) else type(found).__name__
            text = f"must give a tuple with a cotangent for each of {len(self.own)} arguments"
            raise TypeError(self.error("bwd", f"{text}, got {got}"))
        leaves = self._like(self.own, tuple(found))
        paths = self.spec.paths("argument")
        return [self._checked(leaves[at], self.leaves[at], paths[at]) for at in self.at]

    def _like(self, own: Any, found: Any) -> list[Any]:
        """The leaves of `found`, built as `own` is; None stands for all leaves of a part."""
        leaves, spec = pytree.flatten(own)
        if found is None:
            return [None] * len(leaves)
        if spec.container is None:
            return [found]
        inner, parts = pytree.children(own), pytree.children(found)
        if inner is None or parts is None or len(inner) != len(parts):
            text = f"gives {type(found).__name__} for an argument that is {type(own).__name__}"
            raise TypeError(self.error("bwd", f"{text}; both must be built alike"))
        pairs = zip(inner, parts, strict=True)
        return [leaf for each, part in pairs for leaf in self._like(each, part)]

    def _checked(self, found: Any, like: Tensor, path: str) -> Tensor | None:
        if found is None or not like._type.dtype.is_differentiable:
            return None
        if not isinstance(found, Tensor) or found._type.shape != like._type.shape:
            got = found._type if isinstance(found, Tensor) else type(found).__name__
            text = f"gives {got} as the cotangent of {path}, which is of type {like._type}"
            raise TypeError(self.error("bwd", text))
        return found
