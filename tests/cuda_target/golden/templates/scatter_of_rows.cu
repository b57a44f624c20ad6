// program for sm_90
//   status status int64[8] 64 bytes
//   arena arena 1736704 bytes
//   input x0 int64[8192] 65536 bytes
//   input x1 float32[8192, 768] 25165824 bytes
//   output result0 float32[50257, 768] 154389504 bytes
//    0  launch k0_index_put_start<<<37693, (256, 1)>>>(out = result0 float32[38597376])
//    1  launch k0_index_put_count0<<<32, (256, 1)>>>(at0 = x0 int64[8192], counts = arena int32[8192], status = status int64[8]) with 1,024 bytes of shared memory
//    2  launch k0_index_put_place0<<<32, (256, 1)>>>(at0 = x0 int64[8192], counts = arena int32[8192], rows_out = arena+32768 int32[8192], order_out = arena+65536 int32[8192], status = status int64[8]) with 9,216 bytes of shared memory
//    3  launch k0_index_put_count1<<<32, (256, 1)>>>(rows_in = arena+32768 int32[8192], counts = arena int32[8192]) with 1,024 bytes of shared memory
//    4  launch k0_index_put_place1<<<32, (256, 1)>>>(rows_in = arena+32768 int32[8192], order_in = arena+65536 int32[8192], counts = arena int32[8192], rows_out = arena+98304 int32[8192], order_out = arena+131072 int32[8192]) with 9,216 bytes of shared memory
//    5  launch k0_index_put_sum<<<512, (128, 1)>>>(values = x1 float32[6291456], rows_in = arena+98304 int32[8192], order_in = arena+131072 int32[8192], out = result0 float32[38597376], part = arena+163840 float32[393216])
//    6  launch k0_index_put_join<<<1275, (32, 8)>>>(part = arena+163840 float32[393216], rows_in = arena+98304 int32[8192], out = result0 float32[38597376]) with 1,024 bytes of shared memory
// scatter: starts from 1.0; 37,693 blocks
// scatter: counts 8 bits; 32 blocks
// scatter: sorts 8,192 positions by 8 of 16 bits; 32 blocks of 256 threads
// scatter: counts 8 bits; 32 blocks
// scatter: sorts 8,192 positions by 8 of 16 bits; 32 blocks of 256 threads
// scatter: sums pieces of 32, 4 elements at once; 512 blocks of 128 x 1 threads
// scatter: joins runs of several pieces; 1,275 blocks
extern "C" __global__ void __launch_bounds__(256) k0_index_put_start(float* __restrict__ out) {
  const int item = (int)blockIdx.x * 256 + threadIdx.x;
  if (item >= 9649344) return;
  const float value = 1.0f;
  *(Pack<float, 4>*)(out + item * 4) = Pack<float, 4>{{value, value, value, value}};
}

// index_put
extern "C" __global__ void __launch_bounds__(256) k0_index_put_count0(const long long* __restrict__ at0, int* __restrict__ counts, long long* __restrict__ status) {
  const auto row_of = [&](const int i) {
    const int p0 = (int)tg_check(at0[i], 50257, 1, true, status);
    return p0;
  };
  __shared__ int count[256];
  for (int d = threadIdx.x; d < 256; d += 256) count[d] = 0;
  __syncthreads();
  const int first = (int)blockIdx.x * 256;
  const int end = min(first + 256, 8192);
  for (int i = first + threadIdx.x; i < end; i += 256) {
    atomicAdd(&count[row_of(i) & 255], 1);
  }
  __syncthreads();
  for (int d = threadIdx.x; d < 256; d += 256) counts[blockIdx.x * 256 + d] = count[d];
}

// index_put
extern "C" __global__ void __launch_bounds__(256) k0_index_put_place0(const long long* __restrict__ at0, const int* __restrict__ counts, int* __restrict__ rows_out, int* __restrict__ order_out, long long* __restrict__ status) {
  const auto row_of = [&](const int i) {
    const int p0 = (int)tg_check(at0[i], 50257, 2, false, status);
    return p0;
  };
  // Of each warp and digit: how many there are, then where the next one goes.
  __shared__ int next[8][256];
  __shared__ int start[256];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first = (int)blockIdx.x * 256 + warp * 32;
  const int end = min(first + 32, 8192);
  for (int d = lane; d < 256; d += 32) next[warp][d] = 0;
  __syncwarp();
  for (int i = first + lane; i < end; i += 32) {
    atomicAdd(&next[warp][row_of(i) & 255], 1);
  }
  __syncthreads();
  for (int d = threadIdx.x; d < 256; d += 256) {
    int before = 0, all = 0;
    #pragma unroll 16
    for (int other = 0; other < 32; ++other) {
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

// index_put
extern "C" __global__ void __launch_bounds__(256) k0_index_put_count1(const int* __restrict__ rows_in, int* __restrict__ counts) {
  __shared__ int count[256];
  for (int d = threadIdx.x; d < 256; d += 256) count[d] = 0;
  __syncthreads();
  const int first = (int)blockIdx.x * 256;
  const int end = min(first + 256, 8192);
  for (int i = first + threadIdx.x; i < end; i += 256) {
    atomicAdd(&count[rows_in[i] >> 8 & 255], 1);
  }
  __syncthreads();
  for (int d = threadIdx.x; d < 256; d += 256) counts[blockIdx.x * 256 + d] = count[d];
}

// index_put
extern "C" __global__ void __launch_bounds__(256) k0_index_put_place1(const int* __restrict__ rows_in, const int* __restrict__ order_in, const int* __restrict__ counts, int* __restrict__ rows_out, int* __restrict__ order_out) {
  // Of each warp and digit: how many there are, then where the next one goes.
  __shared__ int next[8][256];
  __shared__ int start[256];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first = (int)blockIdx.x * 256 + warp * 32;
  const int end = min(first + 32, 8192);
  for (int d = lane; d < 256; d += 32) next[warp][d] = 0;
  __syncwarp();
  for (int i = first + lane; i < end; i += 32) {
    atomicAdd(&next[warp][rows_in[i] >> 8 & 255], 1);
  }
  __syncthreads();
  for (int d = threadIdx.x; d < 256; d += 256) {
    int before = 0, all = 0;
    #pragma unroll 16
    for (int other = 0; other < 32; ++other) {
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

// index_put
extern "C" __global__ void __launch_bounds__(128) k0_index_put_sum(const float* __restrict__ values, const int* __restrict__ rows_in, const int* __restrict__ order_in, float* __restrict__ out, float* __restrict__ part) {
  const int piece = (int)(blockIdx.x / 2) * 1 + threadIdx.y;
  const int column = (int)(blockIdx.x % 2 * 128 + threadIdx.x) * 4;
  if (column >= 768) return;
  const float* source = values + column;
  float* target = out + column;
  const int first = piece * 32;
  const int end = first + 32;
  float sum[4] = {};
  int row = rows_in[first];
  bool whole = first == 0 || rows_in[first - 1] != row;
  for (int i = first; i < end; i += 8) {
    int row_of[8];
    Pack<float, 4> value[8];
    #pragma unroll
    for (int u = 0; u < 8; ++u) {
      const int at = min(i + u, end - 1);
      row_of[u] = rows_in[at];
      value[u] = *(const Pack<float, 4>*)(source + (int)order_in[at] * 768);
    }
    #pragma unroll
    for (int u = 0; u < 8; ++u) {
      if (i + u >= end) break;
      if (row_of[u] != row) {
        if (whole) {
          Pack<float, 4>* const place = (Pack<float, 4>*)(target + (int)row * 768);
          Pack<float, 4> total;
          #pragma unroll
          for (int v = 0; v < 4; ++v) {
            total.at[v] = (__fadd_rn(1.0f, sum[v]));
          }
          *place = total;
        }
        else {
          #pragma unroll
          for (int v = 0; v < 4; ++v) {
            part[((int)piece * 2 + 0) * 768 + column + v] = sum[v];
          }
        }
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
          sum[v] = 0.0f;
        }
        row = row_of[u];
        whole = true;
      }
      #pragma unroll
      for (int v = 0; v < 4; ++v) {
        sum[v] = __fadd_rn(sum[v], value[u].at[v]);
      }
    }
  }
  const bool goes_on = end < 8192 && rows_in[end] == row;
  if (whole && !goes_on) {
    Pack<float, 4>* const place = (Pack<float, 4>*)(target + (int)row * 768);
    Pack<float, 4> total;
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
      total.at[v] = (__fadd_rn(1.0f, sum[v]));
    }
    *place = total;
  }
  else {
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
      part[((int)piece * 2 + (whole ? 1 : 0)) * 768 + column + v] = sum[v];
    }
  }
}

// index_put
extern "C" __global__ void __launch_bounds__(256) k0_index_put_join(const float* __restrict__ part, const int* __restrict__ rows_in, float* __restrict__ out) {
  const int piece = (int)(blockIdx.x / 5);
  const int end = (piece + 1) * 32;
  const int row = rows_in[end - 1];
  // Only where a run begins in this piece and goes on in the next one.
  if (rows_in[end] != row) return;
  const int first = piece * 32;
  if (first > 0 && rows_in[first - 1] == row) return;
  // Where the next row begins: near, as a rule.
  int low = end, step = 1;
  while (low + step < 8192 && rows_in[low + step] == row) {
    low += step;
    step *= 2;
  }
  int high = min(low + step, 8192);
  ++low;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (rows_in[middle] == row) low = middle + 1; else high = middle;
  }
  const int last = (low - 1) / 32;
  __shared__ float sums[8][32];
  for (int group = (int)(blockIdx.x % 5); group < 24; group += 5) {
    const int column = (int)group * 32 + threadIdx.x;
    float sum = 0.0f;
    {
      #pragma unroll 4
      for (int other = piece + 1 + threadIdx.y; other <= last; other += 8)
        sum = __fadd_rn(sum, part[(int)other * 1536 + column]);
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0) {
      sum = part[(int)piece * 1536 + 768 + column];
      #pragma unroll
      for (int member = 0; member < 8; ++member) sum = __fadd_rn(sum, sums[member][threadIdx.x]);
      float* const place = out + column + (int)row * 768;
      *place = (__fadd_rn(1.0f, sum));
    }
    __syncthreads();  // what was shared has been read
  }
}
