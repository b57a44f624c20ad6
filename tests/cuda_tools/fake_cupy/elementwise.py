"""The fake's `ElementwiseKernel`: typed or one-letter parameters, strided operands, the variable i.

Operands are made dense by NumPy; the loop over them is compiled by the shim. `raw` parameters,
`_ind` and `size=` are not there.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..shim import Library
from .arrays import BFLOAT16, here, ndarray, perform, supported
from .driver import CUDADriverError
from .machine import machine
from .ufuncs import Scalar, operand

_C_TYPES = {
    "bool": "bool", "int8": "signed char", "uint8": "unsigned char", "int16": "short",
    "uint16": "unsigned short", "int32": "int", "uint32": "unsigned int", "int64": "long long",
    "uint64": "unsigned long long", "float32": "float", "float64": "double",
    "float16": "float16", "bfloat16": "bfloat16",
}  # fmt: skip
_BLOCK = 128
_HALVES = """
struct float16 {
  unsigned short data_;
  __device__ float16() {}
  __device__ float16(float value) { data_ = half_from_float(value); }
  __device__ operator float() const { return half_to_float(data_); }
};
struct bfloat16 {
  unsigned short data_;
  __device__ bfloat16() {}
  __device__ bfloat16(float value) {
    unsigned int bits = __float_as_uint(value);
    data_ = value != value ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  }
  __device__ operator float() const { return __uint_as_float((unsigned int)data_ << 16); }
};
"""
_KERNEL = string.Template("""$halves
$types
$preamble
extern "C" __global__ void $name($parameters, long long _n) {
  $loop_prep;
  const long long _step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < _n; i += _step) {
    $loads
    $operation;
  }
  $after_loop;
}
""")


class _Parameter(NamedTuple):
    type: str  # the name of a dtype, or one letter
    name: str


def _parsed(text: str) -> tuple[_Parameter, ...]:
    found = []
    for each in filter(None, map(str.strip, text.split(","))):
        words = each.split()
        if len(words) < 2:
            raise Exception(f"Syntax error: {each}")
        if len(words) > 2:
            raise NotImplementedError(f"the fake's ElementwiseKernel does not know {words[:-2]}")
        if len(words[0]) > 1:
            supported(words[0] if words[0] != "bfloat16" else BFLOAT16)
        found.append(_Parameter(*words))
    return tuple(found)


class ElementwiseKernel:
    """ElementwiseKernel(in_params, out_params, operation, name, ...), called with arrays."""

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str = "kernel",
        reduce_dims: bool = True,
        preamble: str = "",
        no_return: bool = False,
        return_tuple: bool = False,
        **kwargs: Any,
    ) -> None:
        if not re.fullmatch(r"[a-zA-Z_]\w*", name):
            raise ValueError(f'Invalid kernel name: "{name}"')
        unknown = set(kwargs) - {"loop_prep", "after_loop", "options"}
        if unknown:
            raise TypeError(f"unexpected keyword arguments {sorted(unknown)}")
        self.in_params, self.out_params = _parsed(in_params), _parsed(out_params)
        self.nin, self.nout = len(self.in_params), len(self.out_params)
        self.nargs = self.nin + self.nout
        if any(each.name == "i" for each in (*self.in_params, *self.out_params)):
            raise ValueError("Can not use 'i' as a parameter name")
        self.operation, self.name, self.preamble = operation, name, preamble
        self.no_return, self.return_tuple, self.kwargs = no_return, return_tuple, kwargs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results. Raises TypeError where a dtype or the number of operands is wrong."""
        block = kwargs.pop("block_size", _BLOCK)
        if kwargs:
            raise TypeError(f"Wrong arguments {kwargs}")
        if len(args) not in (self.nin, self.nargs):
            raise TypeError(
                f"Wrong number of arguments for {self.name!r}. It must be either {self.nin} or "
                f"{self.nargs} (with outputs), but given {len(args)}."
            )
        operands = [operand(arg) for arg in args]
        here(*operands)
        if not any(isinstance(each, ndarray) for each in operands):
            raise ValueError("Loop size is undecided.")
        types = self._types(operands)
        shape = np.broadcast_shapes(*(x.shape for x in operands if isinstance(x, ndarray)))
        outs = operands[self.nin :]
        for out in outs:
            if not isinstance(out, ndarray):
                raise TypeError("Output arguments type must be cupy.ndarray")
            if out.shape != shape:
                raise ValueError("Out shape is mismatched")
        results = [x for x in outs if isinstance(x, ndarray)] or [
            ndarray(shape, types[each.type]) for each in self.out_params
        ]
        if results[0].size:
            self._launch(operands[: self.nin], results, types, block)
        if self.no_return:
            return None
        return results[0] if self.nout == 1 and not self.return_tuple else tuple(results)

    def _types(self, operands: Sequence[Any]) -> dict[str, np.dtype[Any]]:
        """The dtype of every type that the parameters name."""
        parameters = (*self.in_params, *self.out_params)
        named = {each.type for each in parameters if len(each.type) > 1}
        types = {each: BFLOAT16 if each == "bfloat16" else np.dtype(each) for each in named}
        for each, value in zip(parameters, operands):
            if isinstance(value, ndarray):
                wanted = types.setdefault(each.type, value.dtype)
                if wanted != value.dtype:
                    raise TypeError(f"Type is mismatched. {each.name} {value.dtype} {wanted}")
        for each, value in zip(parameters, operands):
            if isinstance(value, Scalar):
                types.setdefault(each.type, value.dtype)
        for each in parameters:
            if each.type not in types:
                raise TypeError(f"Type is not found: {each.type}")
        return types

    def _launch(
        self, ins: list[Any], outs: list[ndarray], types: dict[str, np.dtype[Any]], block: int
    ) -> None:
        if self.name in machine.refused:
            raise CUDADriverError(machine.refused[self.name])
        library = Library(self._source(ins, types))
        arrays = [each for each in ins if isinstance(each, ndarray)]
        scalars = {
            at: np.array(each.value, types[parameter.type])
            for at, (each, parameter) in enumerate(zip(ins, self.in_params))
            if isinstance(each, Scalar)
        }
        size, shape = outs[0].size, outs[0].shape
        hosts = [
            each._np if isinstance(each, ndarray) else scalars[at] for at, each in enumerate(ins)
        ]
        targets = [out._np for out in outs]
        made: list[Any] = []

        def compute() -> None:
            inputs = [
                host if at in scalars else np.ascontiguousarray(np.broadcast_to(host, shape))
                for at, host in enumerate(hosts)
            ]
            made[:] = [np.array(target, order="C") for target in targets]
            args = [
                each.tobytes() if at in scalars else each.ctypes.data
                for at, each in enumerate((*inputs, *made))
            ]
            grid = min(-(-size // block), 1 << 16)
            machine.break_by(self.name)
            machine.launches.append(self.name)
            library.launch_at(
                self.name, grid, block, [*args, size.to_bytes(8, "little")],
                order=machine.order, seed=machine.seed,
            )  # fmt: skip

        def first() -> Any:
            compute()
            return made[0].reshape(shape)

        perform(outs[0], first, *arrays, *outs[1:])
        for at, out in enumerate(outs[1:], 1):
            perform(out, lambda at=at: made[at].reshape(shape))  # type: ignore[misc]

    def _source(self, ins: list[Any], types: dict[str, np.dtype[Any]]) -> str:
        names = {each: _C_TYPES[dtype.name] for each, dtype in types.items()}
        parameters, loads = [], []
        for value, each in zip(ins, self.in_params):
            if isinstance(value, ndarray):
                parameters.append(f"const {names[each.type]}* _raw_{each.name}")
                loads.append(f"const {names[each.type]} {each.name}(_raw_{each.name}[i]);")
            else:
                parameters.append(f"const {names[each.type]} {each.name}")
        for each in self.out_params:
            parameters.append(f"{names[each.type]}* _raw_{each.name}")
            loads.append(f"{names[each.type]}& {each.name} = _raw_{each.name}[i];")
        letters = [f"typedef {name} {each};" for each, name in names.items() if len(each) == 1]
        return _KERNEL.substitute(
            halves=_HALVES if {"float16", "bfloat16"} & set(names.values()) else "",
            preamble=self.preamble, types="\n".join(letters), name=self.name,
            parameters=", ".join(parameters), loads="\n    ".join(loads),
            operation=self.operation, loop_prep=self.kwargs.get("loop_prep", ""),
            after_loop=self.kwargs.get("after_loop", ""),
        )  # fmt: skip
