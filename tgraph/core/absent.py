"""What PyTorch has and tgraph has not: errors that say so, and tell the way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

LAYOUTS = "layouts of sparse tensors are sparse_coo, sparse_csr and sparse_csc here"
ONE_PROCESSOR = "devices are 'cpu' and 'cuda' here, and tgraph.accelerator tells which there is"

WAYS_OUT = {
    "ao": "numbers are not quantized here; float16, bfloat16 and tgraph.amp are there",
    "export": "tgraph.trace(function, *tensors) gives a graph, tgraph.save keeps a state_dict",
    "futures": "concurrent.futures of Python is there",
    "monitor": "tgraph.utils.tensorboard writes events",
    "mps": ONE_PROCESSOR,
    "mtia": ONE_PROCESSOR,
    "nested": "use tgraph.nn.utils.rnn.pad_sequence and a mask, or pack_padded_sequence",
    "package": "tgraph.save keeps a state_dict; a program is its Python files",
    "quantization": "numbers are not quantized here; float16, bfloat16 and tgraph.amp are there",
    "quantize_per_tensor": "numbers are not quantized here",
    "sparse_bsr_tensor": LAYOUTS,
    "xpu": ONE_PROCESSOR,
}
"""Names of `torch` that programs ask for: what to do instead."""


def not_here(name: str, way_out: str) -> Callable[..., Any]:
    """A function for a name that is not here: to call it is a NotImplementedError.

    >>> not_here("hub.load", "fetch the file yourself")("repository")
    Traceback (most recent call last):
        ...
    NotImplementedError: tgraph.hub.load is not here: fetch the file yourself
    """

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"tgraph.{name} is not here: {way_out}")

    refuse.__name__ = refuse.__qualname__ = name.rpartition(".")[2]
    refuse.__doc__ = f"NotImplementedError: {way_out}."
    return refuse


def attribute_error(module: str, name: str, way_out: str | None) -> AttributeError:
    """The error for a name that a module has not, with the way out where one is known."""
    text = f"module {module!r} has no attribute {name!r}"
    return AttributeError(text if way_out is None else f"{text}: {way_out}", name=name)
