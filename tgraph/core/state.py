"""What is current in this thread: the context that runs operations, and the gradient mode."""

from __future__ import annotations

import threading
from typing import Any


class _State(threading.local):
    """Read on every operation, so plain attributes with defaults on the class."""

    context: Any = None  # a context.Context; None is the eager one
    grad_enabled: bool = True
    inference: bool = False  # whether what is made is known as made by `inference_mode`
    autocast: Any = None  # an autocast.Autocast while mixed precision is on
    autocast_casts: Any = None  # casts of parameters that are kept until it is off again
    module_path: str = ""  # such as "encoder.layers.0", kept by nn.Module for provenance
    region: Any = None  # the checkpointed part of a trace that is recorded (`tracing/regions.py`)
    saved_hooks: Any = None  # a saved_tensors.Hooks while what is saved goes through functions
    backward_pass: Any = None  # the engine's pass that runs
    hooks_disabled: str | None = None  # why hooks of saved tensors are refused
    mutation_allowed: bool = False  # whether copies are kept of what is saved
    recorder: Any = None  # the recorder.Recorder of what a traced function reads


state = _State()
