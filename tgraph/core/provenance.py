"""The user's line: where an operation was called from, outside of this package."""

from __future__ import annotations

import opcode
import os
import sys
from types import CodeType, FrameType

from .. import compiler, runtime
from ..compiler.ir import Provenance
from .state import state

_PACKAGE_FOLDERS = tuple(
    os.path.dirname(os.path.abspath(str(each.__file__))) + os.sep
    for each in (sys.modules["tgraph"], compiler, runtime)
)
RECORDED_FILES = (
    os.path.join(_PACKAGE_FOLDERS[0], "nn") + os.sep,
    os.path.join(_PACKAGE_FOLDERS[0], "amp", "grad_scaler.py"),
    os.path.join(_PACKAGE_FOLDERS[0], "optim", "hooks.py"),
    os.path.join(_PACKAGE_FOLDERS[0], "optim", "swa_utils.py"),
    os.path.join(_PACKAGE_FOLDERS[0], "optim", "lr_scheduler") + os.sep,
)
_inside: set[str] = set()  # files of this package, as far as they were asked about


def is_internal(file: str) -> bool:
    """Whether a file belongs to this package."""
    if file in _inside:
        return True
    found = file.startswith(_PACKAGE_FOLDERS)
    if found:
        _inside.add(file)
    return found


class Site:
    """A line of the user's program, looked up when it is asked for.

    `codes` are those of the functions of this package that it led through, from the inside.
    """

    __slots__ = ("code", "codes", "instruction", "module_path")

    def __init__(
        self, code: CodeType, instruction: int, module_path: str, codes: list[CodeType]
    ) -> None:
        self.codes = codes
        self.code = code
        self.instruction = instruction
        self.module_path = module_path

    @property
    def line(self) -> int:
        at = self.instruction
        for start, end, line in self.code.co_lines():
            if start <= at < end and line is not None:
                return line
        return self.code.co_firstlineno

    @property
    def unpacks(self) -> bool:
        """Whether it is an assignment to several names, as in ``a, b = x``."""
        return self.code.co_code[self.instruction] == _UNPACK

    @property
    def calls(self) -> list[str]:
        """The names of the functions of this package, from the outermost inwards."""
        return [code.co_name for code in reversed(self.codes)]

    @property
    def provenance(self) -> Provenance:
        code = self.code
        return Provenance(code.co_filename, self.line, code.co_name, self.module_path)

    def __str__(self) -> str:
        return str(self.provenance)


_UNPACK = opcode.opmap["UNPACK_SEQUENCE"]


def user_site(depth: int = 1) -> Site:
    """The innermost line that is not in this package.

    The first `depth` functions on the way there, this one included, are known to be in it, and are
    not looked at: Python makes an object of every frame that is.
    """
    frame: FrameType = sys._getframe(depth)
    code, inside = frame.f_code, _inside
    codes: list[CodeType] = []
    while code.co_filename in inside or is_internal(code.co_filename):
        codes.append(code)
        below = frame.f_back
        if below is None:
            break
        frame = below
        code = frame.f_code
    return Site(code, frame.f_lasti, state.module_path, codes)
