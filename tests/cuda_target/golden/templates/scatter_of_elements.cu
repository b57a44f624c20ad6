// program for sm_90
//   status status int64[8] 64 bytes
//   arena arena 5268224 bytes
//   input x0 int64[64, 5000] 2560000 bytes
//   input x1 float32[64, 5000] 1280000 bytes
//   input x2 float32[64, 1000] 256000 bytes
//   output result0 float32[64, 1000] 256000 bytes
//    0  launch k0_scatter_add_start<<<63, (256, 1)>>>(base = x2 float32[64000], out = result0 float32[64000])
//    1  launch k0_scatter_add_count0<<<125, (256, 1)>>>(at0 = x0 int64[320000], counts = arena int32[32000], status = status int64[8]) with 1,024 bytes of shared memory
//    2  launch k0_scatter_add_place0<<<125, (256, 1)>>>(at0 = x0 int64[320000], counts = arena int32[32000], rows_out = arena+128000 int32[320000], order_out = arena+1408000 int32[320000], status = status int64[8]) with 9,216 bytes of shared memory
//    3  launch k0_scatter_add_count1<<<125, (256, 1)>>>(rows_in = arena+128000 int32[320000], counts = arena int32[32000]) with 1,024 bytes of shared memory
//    4  launch k0_scatter_add_place1<<<125, (256, 1)>>>(rows_in = arena+128000 int32[320000], order_in = arena+1408000 int32[320000], counts = arena int32[32000], rows_out = arena+2688000 int32[320000], order_out = arena+3968000 int32[320000]) with 9,216 bytes of shared memory
//    5  launch k0_scatter_add_sum<<<79, (1, 32)>>>(values = x1 float32[320000], rows_in = arena+2688000 int32[320000], order_in = arena+3968000 int32[320000], out = result0 float32[64000], part = arena+5248000 float32[5000])
//    6  launch k0_scatter_add_join<<<2499, (32, 8)>>>(part = arena+5248000 float32[5000], rows_in = arena+2688000 int32[320000], out = result0 float32[64000]) with 1,024 bytes of shared memory
// scatter: starts from a copy of the base; 63 blocks
// scatter: counts 8 bits; 125 blocks
// scatter: sorts 320,000 positions by 8 of 16 bits; 125 blocks of 256 threads
// scatter: counts 8 bits; 125 blocks
// scatter: sorts 320,000 positions by 8 of 16 bits; 125 blocks of 256 threads
// scatter: sums pieces of 128, 1 elements at once; 79 blocks of 1 x 32 threads
// scatter: joins runs of several pieces; 2,499 blocks
extern "C" __global__ void __launch_bounds__(256) k0_scatter_add_start(const float* __restrict__ base, float* __restrict__ out) {
  const int item = (int)blockIdx.x * 256 + threadIdx.x;
  if (item >= 16000) return;
  *(Pack<float, 4>*)(out + item * 4) = *(const Pack<float, 4>*)(base + item * 4);
}

// scatter_add
extern "C" __global__ void __launch_bounds__(256) k0_scatter_add_count0(const long long* __restrict__ at0, int* __restrict__ counts, long long* __restrict__ status) {
  const auto row_of = [&](const int i) {
    const int p0 = (int)tg_check(at0[i], 1000, 1, true, status);
    return p0 + i / 5000 * 1000;
  };
  __shared__ int count[256];
  for (int d = threadIdx.x; d < 256; d += 256) count[d] = 0;
  __syncthreads();
  const int first = (int)blockIdx.x * 2560;
  const int end = min(first + 2560, 320000);
  for (int i = first + threadIdx.x; i < end; i += 256) {
    atomicAdd(&count[row_of(i) & 255], 1);
  }
  __syncthreads();
  for (int d = threadIdx.x; d < 256; d += 256) counts[blockIdx.x * 256 + d] = count[d];
}

// scatter_add
extern "C" __global__ void __launch_bounds__(256) k0_scatter_add_place0(const long long* __restrict__ at0, const int* __restrict__ counts, int* __restrict__ rows_out, int* __restrict__ order_out, long long* __restrict__ status) {
  const auto row_of = [&](const int i) {
    const int p0 = (int)tg_check(at0[i], 1000, 2, false, status);
    return p0 + i / 5000 * 1000;
  };
  // Of each warp and digit: how many there are, then where the next one goes.
  __shared__ int next[8][256];
  __shared__ int start[256];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first = (int)blockIdx.x * 2560 + warp * 320;
  const int end = min(first + 320, 320000);
  for (int d = lane; d < 256; d += 32) next[warp][d] = 0;
  __syncwarp();
  for (int i = first + lane; i < end; i += 32) {
    atomicAdd(&next[warp][row_of(i) & 255], 1);
  }
  __syncthreads();
  for (int d = threadIdx.x; d < 256; d += 256) {
    int before = 0, all = 0;
    #pragma unroll 16
    for (int other = 0; other < 125; ++other) {
      const int found = counts[other * 256 + d];
      all += found;
      if (other < (int)blockIdx.x) before += found;
    }
    for (int other = 0; other < 8; ++other) {
      const int found = next[other][d];
      next[other][d] = before;
      before += found;
    }
    start[d] = all;
  }
  __syncthreads();
  if (warp == 0) {
    // The first warp turns counts into sums of those before.
    int sum = 0;
    for (int d = lane * 8; d < lane * 8 + 8; ++d) sum += start[d];
    const int own = sum;
    for (int by = 1; by < 32; by *= 2) {
      const int lower = __shfl_up_sync(0xffffffffu, sum, by);
      if (lane >= by) sum += lower;
    }
    sum -= own;
    {
      for (int d = lane * 8; d < lane * 8 + 8; ++d) {
        const int found = start[d];
        start[d] = sum;
        sum += found;
      }
    }
  }
  __syncthreads();
  for (int round = first; round < end; round += 32) {
    const int i = round + lane;
    const bool here = i < end;
    const int row = row_of(here ? i : end - 1);
    const int own = row & 255;
    // The lanes with the same digit.
    unsigned int same = __ballot_sync(0xffffffffu, here);
    #pragma unroll
    for (int bit = 0; bit < 8; ++bit) {
      const bool set = own >> bit & 1;
      const unsigned int lanes = __ballot_sync(0xffffffffu, set);
      same &= set ? lanes : ~lanes;
    }
    const int rank = __popc(same & ((1u << lane) - 1));
    if (here) {
      const int place = start[own] + next[warp][own] + rank;
      rows_out[place] = row;
      order_out[place] = i;
    }
    __syncwarp();
    if (here && rank == 0) next[warp][own] += __popc(same);
    __syncwarp();
  }
}

// scatter_add
extern "C" __global__ void __launch_bounds__(256) k0_scatter_add_count1(const int* __restrict__ rows_in, int* __restrict__ counts) {
  __shared__ int count[256];
  for (int d = threadIdx.x; d < 256; d += 256) count[d] = 0;
  __syncthreads();
  const int first = (int)blockIdx.x * 2560;
  const int end = min(first + 2560, 320000);
  for (int i = first + threadIdx.x; i < end; i += 256) {
    atomicAdd(&count[rows_in[i] >> 8 & 255], 1);
  }
  __syncthreads();
  for (int d = threadIdx.x; d < 256; d += 256) counts[blockIdx.x * 256 + d] = count[d];
}

// scatter_add
extern "C" __global__ void __launch_bounds__(256) k0_scatter_add_place1(const int* __restrict__ rows_in, const int* __restrict__ order_in, const int* __restrict__ counts, int* __restrict__ rows_out, int* __restrict__ order_out) {
  // Of each warp and digit: how many there are, then where the next one goes.
  __shared__ int next[8][256];
  __shared__ int start[256];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first = (int)blockIdx.x * 2560 + warp * 320;
  const int end = min(first + 320, 320000);
  for (int d = lane; d < 256; d += 32) next[warp][d] = 0;
  __syncwarp();
  for (int i = first + lane; i < end; i += 32) {
    atomicAdd(&next[warp][rows_in[i] >> 8 & 255], 1);
  }
  __syncthreads();
  for (int d = threadIdx.x; d < 256; d += 256) {
    int before = 0, all = 0;
    #pragma unroll 16
    for (int other = 0; other < 125; ++other) {
      const int found = counts[other * 256 + d];
      all += found;
      if (other < (int)blockIdx.x) before += found;
    }
    for (int other = 0; other < 8; ++other) {
      const int found = next[other][d];
      next[other][d] = before;
      before += found;
    }
    start[d] = all;
  }
  __syncthreads();
  if (warp == 0) {
    // The first warp turns counts into sums of those before.
    int sum = 0;
    for (int d = lane * 8; d < lane * 8 + 8; ++d) sum += start[d];
    const int own = sum;
    for (int by = 1; by < 32; by *= 2) {
      const int lower = __shfl_up_sync(0xffffffffu, sum, by);
      if (lane >= by) sum += lower;
    }
    sum -= own;
    {
      for (int d = lane * 8; d < lane * 8 + 8; ++d) {
        const int found = start[d];
        start[d] = sum;
        sum += found;
      }
    }
  }
  __syncthreads();
  for (int round = first; round < end; round += 32) {
    const int i = round + lane;
    const bool here = i < end;
    const int row = rows_in[here ? i : end - 1];
    const int own = row >> 8 & 255;
    // The lanes with the same digit.
    unsigned int same = __ballot_sync(0xffffffffu, here);
    #pragma unroll
    for (int bit = 0; bit < 8; ++bit) {
      const bool set = own >> bit & 1;
      const unsigned int lanes = __ballot_sync(0xffffffffu, set);
      same &= set ? lanes : ~lanes;
    }
    const int rank = __popc(same & ((1u << lane) - 1));
    if (here) {
      const int place = start[own] + next[warp][own] + rank;
      rows_out[place] = row;
      order_out[place] = order_in[i];
    }
    __syncwarp();
    if (here && rank == 0) next[warp][own] += __popc(same);
    __syncwarp();
  }
}

// scatter_add
extern "C" __global__ void __launch_bounds__(32) k0_scatter_add_sum(const float* __restrict__ values, const int* __restrict__ rows_in, const int* __restrict__ order_in, float* __restrict__ out, float* __restrict__ part) {
  const int piece = (int)(blockIdx.x) * 32 + threadIdx.y;
  const int column = (int)threadIdx.x * 1;
  if (piece >= 2500) return;
  const float* source = values + column;
  float* target = out + column;
  const int first = piece * 128;
  const int end = first + 128;
  float sum[1] = {};
  int row = rows_in[first];
  bool whole = first == 0 || rows_in[first - 1] != row;
  for (int i = first; i < end; i += 8) {
    int row_of[8];
    Pack<float, 1> value[8];
    #pragma unroll
    for (int u = 0; u < 8; ++u) {
      const int at = min(i + u, end - 1);
      row_of[u] = rows_in[at];
      value[u] = *(const Pack<float, 1>*)(source + (int)order_in[at]);
    }
    #pragma unroll
    for (int u = 0; u < 8; ++u) {
      if (i + u >= end) break;
      if (row_of[u] != row) {
        if (whole) {
          Pack<float, 1>* const place = (Pack<float, 1>*)(target + (int)row);
          Pack<float, 1> total = *place;
          total.at[0] = (__fadd_rn(total.at[0], sum[0]));
          *place = total;
        }
        else {
          part[((int)piece * 2 + 0) * 1 + column] = sum[0];
        }
        sum[0] = 0.0f;
        row = row_of[u];
        whole = true;
      }
      sum[0] = __fadd_rn(sum[0], value[u].at[0]);
    }
  }
  const bool goes_on = end < 320000 && rows_in[end] == row;
  if (whole && !goes_on) {
    Pack<float, 1>* const place = (Pack<float, 1>*)(target + (int)row);
    Pack<float, 1> total = *place;
    total.at[0] = (__fadd_rn(total.at[0], sum[0]));
    *place = total;
  }
  else {
    part[((int)piece * 2 + (whole ? 1 : 0)) * 1 + column] = sum[0];
  }
}

// scatter_add
extern "C" __global__ void __launch_bounds__(256) k0_scatter_add_join(const float* __restrict__ part, const int* __restrict__ rows_in, float* __restrict__ out) {
  const int piece = (int)blockIdx.x;
  const int end = (piece + 1) * 128;
  const int row = rows_in[end - 1];
  // Only where a run begins in this piece and goes on in the next one.
  if (rows_in[end] != row) return;
  const int first = piece * 128;
  if (first > 0 && rows_in[first - 1] == row) return;
  // Where the next row begins: near, as a rule.
  int low = end, step = 1;
  while (low + step < 320000 && rows_in[low + step] == row) {
    low += step;
    step *= 2;
  }
  int high = min(low + step, 320000);
  ++low;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (rows_in[middle] == row) low = middle + 1; else high = middle;
  }
  const int last = (low - 1) / 128;
  __shared__ float sums[8][32];
  const int group = 0;
  const int column = (int)group * 32 + threadIdx.x;
  float sum = 0.0f;
  if (column < 1) {
    #pragma unroll 4
    for (int other = piece + 1 + threadIdx.y; other <= last; other += 8)
      sum = __fadd_rn(sum, part[(int)other * 2 + column]);
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && column < 1) {
    sum = part[(int)piece * 2 + 1 + column];
    #pragma unroll
    for (int member = 0; member < 8; ++member) sum = __fadd_rn(sum, sums[member][threadIdx.x]);
    float* const place = out + column + (int)row * 1;
    *place = (__fadd_rn(*place, sum));
  }
}
