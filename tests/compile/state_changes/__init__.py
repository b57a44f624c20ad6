"""A table of changes of Python state, each between calls of a compiled function.

A row is a generator: it yields the function (or the function and arguments that follow the tensor),
and goes on to change something and yield again, as often as it likes; most change it back at the
end. After each step the compiled function must give what the function gives eagerly, or raise the
same. Rows marked as `refused` read what cannot be watched, and must be refused with their line.

What a row reads is the point of it, so that functions here are written in all the ways in which
Python can be asked for something.
"""

from . import (  # noqa: F401 (each enters its rows)
    class_attributes,
    dictionaries,
    functions,
    kinds_of_values,
    made_objects,
    methods,
    names,
    network_modules,
    numpy_arrays,
    object_attributes,
    refused_reads,
    sequences_and_sets,
)
from .table import REFUSED, STATE_CHANGES

__all__ = ["REFUSED", "STATE_CHANGES"]
