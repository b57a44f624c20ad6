"""CUDA C around cuSOLVER: what its results need to be those that LAPACK gives.

Each kernel has a block of `BLOCK` threads for a matrix, and matrices lie one behind another by
rows. cuSOLVER divides by a pivot that is zero, and goes on with what is not finite.
"""

from __future__ import annotations

from string import Template

from ..linalg_error import NOT_FINITE
from .failures import REPORT

BLOCK = 256
KERNELS = ("tg_cholesky", "tg_lu", "tg_converged", "tg_failed")

_TEXT = Template(
    REPORT
    + """
#define NOT_FINITE $not_finite

// Whether all elements of a matrix are finite; every thread of the block gets the answer.
__device__ int tg_is_finite(const $type* a, long long count) {
  int found = 1;
  for (long long i = threadIdx.x; i < count; i += blockDim.x) found &= a[i] - a[i] == 0;
  return __syncthreads_and(found);
}

// Zeros above the diagonal of factors; a NaN on it is a failure, of which nothing was said.
extern "C" __global__ void tg_cholesky($type* factors, int* info, long long n) {
  __shared__ int first;
  $type* factor = factors + blockIdx.x * n * n;
  if (threadIdx.x == 0) first = 2147483647;
  __syncthreads();
  for (long long i = threadIdx.x; i < n * n; i += blockDim.x) {
    const long long row = i / n, column = i % n;
    if (column > row) factor[i] = 0;
    if (column == row && factor[i] != factor[i]) atomicMin(&first, (int)row + 1);
  }
  __syncthreads();
  if (threadIdx.x == 0 && first != 2147483647 && info[blockIdx.x] == 0) info[blockIdx.x] = first;
}

// The order of rows of exchanges, which count from 1, and its sign. Behind a pivot that is zero
// the factors of a finite matrix are zeros, so that their diagonal tells of a determinant of zero.
extern "C" __global__ void tg_lu(const $type* matrices, const int* exchanges, const int* info,
                                 $type* factors, long long* rows, $type* signs, long long n) {
  exchanges += blockIdx.x * n;
  rows += blockIdx.x * n;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) rows[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) {
    int sign = 1;
    for (long long i = 0; i < n; ++i) {
      const long long other = exchanges[i] - 1;
      if (other == i) continue;
      const long long row = rows[i];
      rows[i] = rows[other];
      rows[other] = row;
      sign = -sign;
    }
    signs[blockIdx.x] = sign;
  }
  const long long first = info[blockIdx.x] - 1;
  if (first < 0) return;
  $type* factor = factors + blockIdx.x * n * n;
  if (!tg_is_finite(matrices + blockIdx.x * n * n, n * n)) return;
  for (long long i = threadIdx.x; i < n * n; i += blockDim.x)
    if (i / n >= first && i % n >= first) factor[i] = 0;
}

// 1 for what did not converge, or gave values that are not finite.
extern "C" __global__ void tg_converged(const $type* values, int* info, long long count) {
  const int is_finite = tg_is_finite(values + blockIdx.x * count, count);
  if (threadIdx.x == 0) info[blockIdx.x] = info[blockIdx.x] != 0 || !is_finite;
}

// One block: reports the first matrix that failed, what was said, and whether it is finite.
extern "C" __global__ void tg_failed(const int* info, const $type* matrices, long long members,
                                     long long elements, long long site, long long* status) {
  __shared__ unsigned long long first;
  if (threadIdx.x == 0) first = members;
  __syncthreads();
  for (long long i = threadIdx.x; i < members; i += blockDim.x)
    if (info[i] != 0) atomicMin(&first, (unsigned long long)i);
  __syncthreads();
  const long long member = first;
  if (member == members) return;
  const int is_finite = tg_is_finite(matrices + member * elements, elements);
  if (threadIdx.x != 0) return;
  tg_report(member, info[member] | (is_finite ? 0 : NOT_FINITE), (int)site, status);
}
"""
)


def factorization_text(dtype: str) -> str:
    """The module for float32 or float64."""
    names = {"float32": "float", "float64": "double"}
    return _TEXT.substitute(type=names[dtype], not_finite=f"{NOT_FINITE}LL")
