"""Branches and loops that are made of graphs by hand have no gradients, which is an error.

Those of users' functions are recorded with the bodies that their graphs were traced from, whose
gradients are known: see `tracing/control_flow.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ..compiler.ir import primitives as p
from ..core.vjp_rules import Attrs, Cotangents, Wanted, vjp


@vjp(p.branch)
@vjp(p.loop)
def _refuse(
    cotangents: Cotangents,
    outputs: Sequence[Any],
    inputs: Sequence[Any],
    attrs: Attrs,
    wanted: Wanted,
) -> NoReturn:
    name = "loop" if "body" in attrs else "branch"
    raise NotImplementedError(
        f"{name}: there are no gradients of graphs inside a {name}; detach its operands, or "
        "write it as Python code, whose operations are recorded one by one"
    )
