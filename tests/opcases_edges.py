"""Rows without elements and without dimensions, where the shapes of the other rows have none.

Where PyTorch asks for a dimension it takes a tensor without any for a vector of one element.
"""

from __future__ import annotations

import numpy as np
from opcase import ANY, SAME, below, case

import tgraph as tg

F = tg.nn.functional
POSITION = ((), below(1), tg.int64)
LINE = ((1,), below(1), tg.int64)
ONE_POSITION = (SAME, tg.int64)


def same(x, *_):
    return x


def with_position(x):
    return x, np.zeros((), np.int64)


# -- without elements ------------------------------------------------------------------------

case("view empty", lambda x: x.view(0, 7), lambda x: x.reshape(0, 7), (3, 0), layouts=False)
case("view_as empty", lambda x, y: x.view_as(y), lambda x, y: x.reshape(y.shape), (3, 0), (0, 2))
case(
    "broadcast_to empty",
    lambda x: tg.broadcast_to(x, (0, 3)),
    lambda x: np.broadcast_to(x, (0, 3)),
    (1, 3),
)
case(
    "masked_scatter empty",
    lambda x, y: tg.masked_scatter(x, x > 0, y),
    lambda x, y: x,
    (3, 0),
    (5,),
    compiles=False,
)
# -- broadcast ---------------------------------------------------------------------------------

case(
    "masked_scatter broadcast",
    lambda x, y: tg.masked_scatter(x, tg.ones(2, 3, dtype=tg.bool), y),
    lambda x, y: y.reshape(2, 3),
    (3,),
    (6,),
    compiles=False,
)
case(
    "masked_select broadcast",
    lambda x, y: tg.masked_select(x, y == y),
    lambda x, y: np.broadcast_arrays(x, y)[0].reshape(-1),
    (3,),
    (2, 1),
    compiles=False,
)

# -- without dimensions ----------------------------------------------------------------------

case("view 0-d", lambda x: (x.view(1), x.view(())), lambda x: (x.reshape(1), x), (), layouts=False)
case("contiguous 0-d", lambda x: x.contiguous(), same, (), dtypes=ANY)
case("expand 0-d", lambda x: x.expand(2, 3), lambda x: np.broadcast_to(x, (2, 3)), ())
case("permute 0-d", lambda x: tg.permute(x, ()), same, ())
case("movedim 0-d", lambda x: tg.movedim(x, 0, -1), same, ())
case("flip 0-d", lambda x: tg.flip(x, ()), same, ())
case("gather 0-d", lambda x, i: tg.gather(x, 0, i), same, (), POSITION, dtypes=ANY)
case("take 0-d", tg.take, same, (), POSITION)
case("take_along_dim 0-d", lambda x, i: tg.take_along_dim(x, i, 0), same, (), POSITION)
case("index_select 0-d", lambda x, i: tg.index_select(x, -1, i), same, (), LINE)
case("index_add 0-d", lambda x, i, y: tg.index_add(x, 0, i, y), lambda x, i, y: x + y, (), LINE, ())
case("index_copy 0-d", lambda x, i, y: tg.index_copy(x, 0, i, y), lambda x, i, y: y, (), LINE, ())
case(
    "index_fill 0-d",
    lambda x, i: tg.index_fill(x, 0, i, 2.0),
    lambda x, i: x * 0 + 2 if i.size else x,
    (),
    LINE,
)
case(
    "scatter_add 0-d",
    lambda x, i, y: tg.scatter_add(x, 0, i, y),
    lambda x, i, y: x + y,
    (),
    POSITION,
    (),
)
case("scatter 0-d", lambda x, i, y: tg.scatter(x, 0, i, y), lambda x, i, y: y, (), POSITION, ())
case("masked_select 0-d", lambda x: tg.masked_select(x, x == x), np.atleast_1d, (), compiles=False)
case("getitem 0-d", lambda x: (x[...], x[None]), lambda x: (x, x.reshape(1)), ())
case("getitem mask 0-d", lambda x: x[tg.tensor(True)], np.atleast_1d, (), compiles=False)
case("kthvalue 0-d", lambda x: tuple(tg.kthvalue(x, 1)), with_position, (), result=ONE_POSITION)
case("topk 0-d", lambda x: tuple(tg.topk(x, 1)), with_position, (), result=ONE_POSITION)
case("median 0-d", lambda x: tuple(tg.median(x, 0)), with_position, (), result=ONE_POSITION)
case("logsumexp 0-d", lambda x: tg.logsumexp(x, 0), same, ())
case("normalize 0-d", lambda x: F.normalize(x, dim=0), lambda x: x / abs(x), ())
case("aminmax 0-d", lambda x: tuple(tg.aminmax(x)), lambda x: (x, x), ())
case("embedding 0-d", lambda i, w: F.embedding(i, w), lambda i, w: w[0], POSITION, (1, 3))
case("einsum 0-d", lambda x, y: tg.einsum(",->", x, y), lambda x, y: x * y, (), ())
case("tensordot 0-d", lambda x, y: tg.tensordot(x, y, 0), lambda x, y: x * y, (), ())
