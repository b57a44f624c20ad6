"""Which functions of a trace are rewritten: those that asked a traced tensor what to do.

A function runs as it is written until it asks for the truth of a traced tensor, or goes over one.
Then the trace is given up, and the function is rewritten in the next one.
"""

from __future__ import annotations

import weakref
from types import CodeType, FunctionType, MethodType
from typing import Any

from ..core.provenance import Site
from ..core.trace_state import Rewrite
from ..tracing.recording.entered import original_of
from .rewrite import rewritten

_ASKS = ("bool()", "int()", "float()", "complex()", "use as a Python integer", "iterating")


class Rewritings:
    """The functions that are rewritten, by their code."""

    def __init__(self) -> None:
        self._codes: weakref.WeakSet[CodeType] = weakref.WeakSet()

    def add(self, code: CodeType) -> None:
        self._codes.add(code)

    def code_of(self, code: CodeType) -> CodeType | None:
        """What runs instead of `code`; None where that is itself."""
        return rewritten(code).code if code in self._codes else None

    def asked(self, operation: str, site: Site, recorder: Any) -> str:
        """The code at `site` needs a value that there is none of: why it was not rewritten.

        Raises Rewrite where it can be.
        """
        if not operation.startswith(_ASKS) or recorder is None:
            return ""
        code = original_of(site.code)
        function = None if code is None else recorder.armed_around(code)
        if function is None:
            return f"`{site.code.co_name}` is not rewritten, for it belongs to a library."
        made = rewritten(function)
        if made.code is None:
            return f"`{function.co_name}` cannot be rewritten: {made.reason}."
        if function not in self._codes or recorder.rewritten != self.code_of:
            self.add(function)
            raise Rewrite(self)
        left = made.left.get(site.line)
        return f"Not rewritten is {left}." if left else ""

    def function_of(self, function: Any) -> Any:
        """What runs instead of a function or method where no code is recorded: a rewritten one."""
        if isinstance(function, MethodType):
            return MethodType(self.function_of(function.__func__), function.__self__)
        code = rewritten(function.__code__).code if isinstance(function, FunctionType) else None
        if code is None:
            return function
        made = FunctionType(
            code, function.__globals__, function.__name__, function.__defaults__,
            function.__closure__,
        )  # fmt: skip
        made.__kwdefaults__ = function.__kwdefaults__
        return made


REWRITINGS = Rewritings()
