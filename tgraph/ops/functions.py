"""The functions of the `tgraph` namespace, from what the families of operations declare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.keywords import with_keywords
from ..core.out_argument import with_out
from ..core.public import OPERATIONS, Operation

# Imported for what they declare.
from . import (
    activations,
    bessel_functions,
    branches,
    comparison,
    complex_numbers,
    concatenation,
    conversion,
    count_draws,
    creation,
    creation_options,
    deprecated,
    diagonals,
    differences,
    distinct,
    element_loops,
    elementwise,
    error_functions,
    from_data,
    gather_scatter,
    generator,
    hashing,
    incomplete_gamma,
    indexing,
    inplace_views,
    linalg,
    lobpcg,
    loops,
    low_rank,
    mathematics,
    matrix_names,
    movement,
    nonzero_places,
    norms,
    number_parts,
    products,
    random,
    random_fills,
    rearranging,
    reductions,
    reflections,
    removed,
    row_scans,
    scans,
    scatter_reductions,
    shared_memory,
    sorting,
    special_functions,
    spectrograms,
    statistics,
    storage,
    storage_views,
    tensor_facts,
    typed,
    window_creation,
    zeta_functions,
)

FAMILIES = (
    activations, bessel_functions, branches, comparison, complex_numbers, concatenation, conversion,
    count_draws, creation, creation_options, deprecated, diagonals, differences, distinct,
    element_loops, elementwise, error_functions, from_data, gather_scatter, generator, hashing,
    incomplete_gamma, indexing, inplace_views, linalg, lobpcg, loops, low_rank, mathematics,
    matrix_names, movement, nonzero_places, norms, number_parts, products, random, random_fills,
    rearranging, reductions, reflections, removed, row_scans, scans, scatter_reductions,
    shared_memory, sorting, special_functions, spectrograms, statistics, storage, storage_views,
    tensor_facts, typed, window_creation, zeta_functions,
)  # fmt: skip


def _as_users_call_it(operation: Operation) -> Callable[..., Any]:
    """With the argument `out`, and the other names of arguments."""
    if operation.out:
        return with_out(operation.function, operation.overlap, operation.out == "exact")
    return with_keywords(operation.function)


FUNCTIONS: dict[str, Callable[..., Any]] = {}
for _operation in OPERATIONS.values():
    if _operation.is_function:
        _function = _as_users_call_it(_operation)
        if hasattr(_function, "__wrapped__"):
            _function.__module__ = "tgraph"  # where pickles find it again
        FUNCTIONS.update(dict.fromkeys(_operation.names, _function))
