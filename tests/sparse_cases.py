"""Functions of sparse tensors, and how a sparse tensor is made by tgraph and by PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

ROWS, COLUMNS = 3, 4


def made(lib: Any, at: Any, values: Any, layout: str) -> Any:
    x = lib.sparse_coo_tensor(lib.tensor(at), lib.tensor(values), (ROWS, COLUMNS))
    if layout == "uncoalesced":
        return x
    x = x.coalesce()
    return x if layout == "coo" else x.to_sparse(layout=getattr(lib, f"sparse_{layout}"))


DENSE = np.arange(12, dtype=np.float32).reshape(ROWS, COLUMNS) - 5
OPERATIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "mm": lambda lib, x, d: lib.mm(x, d.t()),
    "dense @ x": lambda lib, x, d: d.t() @ x,
    "mv": lambda lib, x, d: x.mv(d[0]),
    "x @ x": lambda lib, x, d: x @ (x.t() if x.is_sparse else x.to_dense().t().to_sparse_csr()),
    "t": lambda lib, x, d: x.t(),
    "x[1]": lambda lib, x, d: x[1],
    "x[:, 3]": lambda lib, x, d: x[:, 3],
    "x[1, 3]": lambda lib, x, d: x[1, 3],
    "to csr": lambda lib, x, d: x.to_sparse_csr(),
    "to csc": lambda lib, x, d: x.to_sparse_csc(),
    "x + dense": lambda lib, x, d: d + x if x.is_sparse else x + d,
    "addmm": lambda lib, x, d: lib.sparse.addmm(lib.ones(3, 3), x, d.t(), beta=2.0, alpha=0.5),
    "dense + x": lambda lib, x, d: d + x,
    "x + x": lambda lib, x, d: x + x,
    "x * dense": lambda lib, x, d: x * d,
    "x * 2": lambda lib, x, d: -x * 2,
    "sin": lambda lib, x, d: x.sin(),
    "relu": lambda lib, x, d: lib.relu(x),
    "expm1": lambda lib, x, d: x.expm1(),
    "complex mm": lambda lib, x, d: x.to(lib.complex64) @ (d.t() * (1 + 2j)),
    "double": lambda lib, x, d: x.to(lib.float64),
    "sum": lambda lib, x, d: x.sum(),
}
OF_COO: dict[str, Callable[[Any, Any, Any], Any]] = {
    "softmax": lambda lib, x, d: lib.sparse.softmax(x, 1),
    "log_softmax": lambda lib, x, d: lib.sparse.log_softmax(x, 0),
    "cat": lambda lib, x, d: lib.cat([x, x * 2]),
    "cat along columns": lambda lib, x, d: lib.cat([x, x], -1),
    "cat of values": lambda lib, x, d: lib.cat([d.to_sparse(1), (2 * d).to_sparse(1)], 1),
    "stack": lambda lib, x, d: lib.stack([x, x], 1),
    "index_select": lambda lib, x, d: x.index_select(1, lib.tensor([3, 0, 3])),
    "index_select of rows": lambda lib, x, d: lib.index_select(x, 0, lib.tensor([2, 1, 1])),
    "index_select of values": lambda lib, x, d: d.to_sparse(1).index_select(1, lib.tensor([2])),
    "narrow_copy": lambda lib, x, d: x.narrow_copy(1, 1, 3),
    "x[None]": lambda lib, x, d: x[None],
    "of three": lambda lib, x, d: d.reshape(3, 2, 2).to_sparse()[1, :, 0],
    "sum(1, True)": lambda lib, x, d: x.sum(1, keepdim=True),
    "iterate": lambda lib, x, d: next(iter(x)),
    "x // 2": lambda lib, x, d: x // 2,
    "transpose_": lambda lib, x, d: x.clone().transpose_(0, 1),
    "neg_": lambda lib, x, d: x.coalesce().clone().neg_(),
    "sum(0)": lambda lib, x, d: lib.sparse.sum(x, 0),
    "x + other": lambda lib, x, d: x + d.to_sparse(),
    "x * other": lambda lib, x, d: x * (d - 1).relu().to_sparse(),
    "dense - x": lambda lib, x, d: d - x,
    "x / 4": lambda lib, x, d: x / 4,
    "x ** 2": lambda lib, x, d: x**2,
    "select": lambda lib, x, d: x[1],
    "mask": lambda lib, x, d: d.sparse_mask(x.coalesce()),
    "zeros_like": lambda lib, x, d: lib.zeros_like(x),
    "spdiags": lambda lib, x, d: lib.sparse.spdiags(d, lib.tensor([0, 2, -1]), (4, 5)),
    "hybrid": lambda lib, x, d: lib.sparse.sum(d.to_sparse(1) * 2, 1),
}


AT = [[0, 1, 1], [3, 0, 3]]
VALUES = [3.0, 4.0, 5.0]


def table(lib: Any, **options: Any) -> Any:
    made = lib.nn.Embedding(4, 2, sparse=True, **options)
    made.weight.data.copy_(lib.arange(8.0).reshape(4, 2))
    return made
