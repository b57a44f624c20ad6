"""PyTorch's type promotion, from tables that PyTorch 2.13 printed."""

import pytest
from tgraph.compiler.ir import can_cast, promote_types, result_type, scalar_dtype
from tgraph.runtime.dtypes import dtype_named

NAMES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
]  # fmt: skip
# torch.promote_types(row, column), columns in the order of NAMES
PROMOTED = """
bool     bool     uint8    int8     int16    int32    int64    float16  bfloat16 float32  float64
uint8    uint8    uint8    int16    int16    int32    int64    float16  bfloat16 float32  float64
int8     int8     int16    int8     int16    int32    int64    float16  bfloat16 float32  float64
int16    int16    int16    int16    int16    int32    int64    float16  bfloat16 float32  float64
int32    int32    int32    int32    int32    int32    int64    float16  bfloat16 float32  float64
int64    int64    int64    int64    int64    int64    int64    float16  bfloat16 float32  float64
float16  float16  float16  float16  float16  float16  float16  float16  float32  float32  float64
bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 bfloat16 float32  bfloat16 float32  float64
float32  float32  float32  float32  float32  float32  float32  float32  float32  float32  float64
float64  float64  float64  float64  float64  float64  float64  float64  float64  float64  float64
"""
ROWS = [line.split() for line in PROMOTED.strip().splitlines()]

# torch.result_type(1-d row, 0-d column)
WITH_ZERO_DIM = """
bool    bool    uint8   int8    int16   int32   int64   float16 bfloat16 float32 float64
uint8   uint8   uint8   uint8   uint8   uint8   uint8   float16 bfloat16 float32 float64
int32   int32   int32   int32   int32   int32   int32   float16 bfloat16 float32 float64
float16 float16 float16 float16 float16 float16 float16 float16 float16  float16 float16
float64 float64 float64 float64 float64 float64 float64 float64 float64  float64 float64
"""

# torch.result_type(tensor of row, True), (…, 2), (…, 2.0), the same for 0-d and 1-d tensors
WITH_SCALARS = """
bool    bool    int64   float32
uint8   uint8   uint8   float32
int32   int32   int32   float32
float16 float16 float16 float16
float64 float64 float64 float64
"""


def lines(table):
    return [line.split() for line in table.strip().splitlines()]


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_promote_types(row):
    got = [promote_types(dtype_named(row[0]), dtype_named(name)).name for name in NAMES]
    assert got == row[1:]


# Unsigned integers with those of NAMES and each other: PyTorch promotes them with floats alone.
UNSIGNED = """
uint16  uint16 uint16 int32 int32 int32 int64 float16 bfloat16 float32 float64 uint16 uint32 uint64
uint32  uint32 uint32 int64 int64 int64 int64 float16 bfloat16 float32 float64 uint32 uint32 uint64
uint64  uint64 uint64 none  none  none  none  float16 bfloat16 float32 float64 uint64 uint64 uint64
"""


@pytest.mark.parametrize("row", lines(UNSIGNED), ids=lambda row: row[0])
def test_unsigned_integers_join_the_others(row):
    for name, expected in zip([*NAMES, "uint16", "uint32", "uint64"], row[1:], strict=True):
        for pair in ((row[0], name), (name, row[0])):
            if expected != "none":
                assert promote_types(*map(dtype_named, pair)).name == expected
                continue
            with pytest.raises(RuntimeError, match="no integer type holds both"):
                promote_types(*map(dtype_named, pair))


@pytest.mark.parametrize("row", lines(WITH_ZERO_DIM), ids=lambda row: row[0])
def test_zero_dimensional_tensors_matter_by_category_only(row):
    got = [result_type([dtype_named(row[0])], [dtype_named(name)]).name for name in NAMES]
    assert got == row[1:]


@pytest.mark.parametrize("row", lines(WITH_SCALARS), ids=lambda row: row[0])
def test_scalars_matter_by_category_only(row):
    scalars = [scalar_dtype(value) for value in (True, 2, 2.0)]
    tensor = dtype_named(row[0])
    assert [result_type([tensor], [], [each]).name for each in scalars] == row[1:]
    assert [result_type([], [tensor], [each]).name for each in scalars] == row[1:]


def test_no_operand_has_no_type():
    with pytest.raises(ValueError, match="at least one operand"):
        result_type([])


@pytest.mark.parametrize("source, target, allowed", [
    ("float32", "int64", False), ("int64", "float16", True), ("int64", "bool", False),
    ("bool", "uint8", True), ("int8", "uint8", True), ("float64", "float16", True),
])  # fmt: skip
def test_writing_in_place(source, target, allowed):
    assert can_cast(dtype_named(source), dtype_named(target)) is allowed
