"""Rows of a table that are compiled together: one function of many rows costs a fifth of many.

A row's test asks for its own results; whoever asks first compiles those of its neighbours, too.
Where that fails, halves are tried, so that the message names the rows which fail alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from tgraph.compiled.compile import compile as compiled


class Call(NamedTuple):
    """A function of tensors that a row compiles."""

    function: Callable[..., Any]
    inputs: Sequence[Any]


Run = Callable[[Sequence[Call]], list[Any]]
"""Runs calls as one function; gives the result of each."""


def run_compiled(calls: Sequence[Call]) -> list[Any]:
    """The results of calls in one compiled function."""
    functions = [call.function for call in calls]

    def together(inputs: list[list[Any]]) -> list[Any]:
        return [function(*each) for function, each in zip(functions, inputs, strict=True)]

    return compiled(together)([list(call.inputs) for call in calls])  # type: ignore[no-any-return]


def batches(rows: Sequence[Any], size: int) -> Iterator[list[Any]]:
    """Rows in their order, with `size` operations in a batch; each row names its own."""
    batch: list[Any] = []
    weight = 0
    for row in rows:
        own = row.name.count(",") + 1
        if batch and weight + own > size:
            yield batch
            batch, weight = [], 0
        batch.append(row)
        weight += own
    yield batch


class Batches:
    """Results of rows that were run together with their neighbours among the tests of this run.

    `call(row, key)` is what a row runs under a key, such as a dtype; None where it has no such.
    `size` is how many operations a batch has.
    """

    def __init__(
        self, call: Callable[..., Call | None], size: int = 30, run: Run = run_compiled
    ) -> None:
        self.call, self.size, self.run = call, size, run
        self._batch_of: dict[Any, list[Any]] = {}
        self._place: list[Any] = []
        self._found: dict[Hashable, Any] = {}

    def result(self, request: pytest.FixtureRequest, row: Any, key: Any = None) -> Any:
        """What `row` gave under `key`; raises what it raised."""
        neighbours = self._neighbours(request, row)
        if neighbours is not self._place:
            self._place, self._found = neighbours, {}
        if (row, key) not in self._found:
            calls = {each: self.call(each, key) for each in neighbours}
            self._fill(key, {each: call for each, call in calls.items() if call is not None})
        found = self._found[row, key]
        if isinstance(found, Exception):
            raise found
        return found

    def _neighbours(self, request: pytest.FixtureRequest, row: Any) -> list[Any]:
        """The rows that the same test has in this run and that come in the batch of `row`."""
        if row not in self._batch_of:
            (name,) = request.node.callspec.params
            rows = [
                item.callspec.params[name]
                for item in request.session.items
                if getattr(item, "function", None) is request.function
            ]
            self._batch_of = {each: batch for batch in batches(rows, self.size) for each in batch}
        return self._batch_of[row]

    def _fill(self, key: Any, calls: dict[Any, Call]) -> bool:
        """Run calls together; tells whether all went well."""
        try:
            results: Sequence[Any] = self.run(list(calls.values()))
        except Exception as error:
            if len(calls) > 1 and not self._fill_halves(key, calls):
                return False
            results = [error] * len(calls)  # of one alone, or of what fails together only
        self._found.update(zip([(row, key) for row in calls], results, strict=True))
        return not (results and isinstance(results[0], Exception))

    def _fill_halves(self, key: Any, calls: dict[Any, Call]) -> bool:
        rows, half = list(calls), len(calls) // 2
        parts = rows[:half], rows[half:]
        went_well = [self._fill(key, {row: calls[row] for row in part}) for part in parts]
        return all(went_well)
