// program for sm_90
//   status status int64[8] 64 bytes
//   arena arena 1536 bytes
//   input x float32[100, 64] 25600 bytes
//   input y float32[50, 64] 12800 bytes
//   output result0 float32[100, 64] 25600 bytes
//   constant constant4 int64[50] 400 bytes
//    0  launch k0_index_put_start<<<7, (256, 1)>>>(base = x float32[6400], out = result0 float32[6400])
//    1  launch k0_index_put_place<<<1, (64, 1)>>>(at0 = constant4 int64[50], rows_out = arena int32[50], order_out = arena+256 int32[50], status = status int64[8]) with 1,536 bytes of shared memory
//    2  launch k0_index_put_sum<<<1, (16, 2)>>>(values = y float32[3200], rows_in = arena int32[50], order_in = arena+256 int32[50], out = result0 float32[6400], part = arena+512 float32[256])
//    3  launch k0_index_put_join<<<2, (32, 8)>>>(part = arena+512 float32[256], rows_in = arena int32[50], out = result0 float32[6400]) with 1,024 bytes of shared memory
// scatter: starts from a copy of the base; 7 blocks
// scatter: sorts 50 positions by 7 of 7 bits; 1 blocks of 64 threads
// scatter: sums pieces of 32, 4 elements at once; 1 blocks of 16 x 2 threads
// scatter: joins runs of several pieces; 2 blocks
extern "C" __global__ void __launch_bounds__(256) k0_index_put_start(const float* __restrict__ base, float* __restrict__ out) {
  const int item = (int)blockIdx.x * 256 + threadIdx.x;
  if (item >= 1600) return;
  *(Pack<float, 4>*)(out + item * 4) = *(const Pack<float, 4>*)(base + item * 4);
}

// index_put
extern "C" __global__ void __launch_bounds__(64) k0_index_put_place(const long long* __restrict__ at0, int* __restrict__ rows_out, int* __restrict__ order_out, long long* __restrict__ status) {
  const auto row_of = [&](const int i) {
    const int p0 = (int)tg_check(at0[i], 100, 1, true, status);
    return p0;
  };
  // Of each warp and digit: how many there are, then where the next one goes.
  __shared__ int next[2][128];
  __shared__ int start[128];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first = (int)blockIdx.x * 64 + warp * 32;
  const int end = min(first + 32, 50);
  for (int d = lane; d < 128; d += 32) next[warp][d] = 0;
  __syncwarp();
  for (int i = first + lane; i < end; i += 32) {
    atomicAdd(&next[warp][row_of(i) & 127], 1);
  }
  __syncthreads();
  for (int d = threadIdx.x; d < 128; d += 64) {
    int before = 0, all = 0;
    for (int other = 0; other < 2; ++other) {
      const int found = next[other][d];
      next[other][d] = before;
      before += found;
    }
    start[d] = before;
  }
  __syncthreads();
  if (warp == 0) {
    // The first warp turns counts into sums of those before.
    int sum = 0;
    for (int d = lane * 4; d < lane * 4 + 4; ++d) sum += start[d];
    const int own = sum;
    for (int by = 1; by < 32; by *= 2) {
      const int lower = __shfl_up_sync(0xffffffffu, sum, by);
      if (lane >= by) sum += lower;
    }
    sum -= own;
    {
      for (int d = lane * 4; d < lane * 4 + 4; ++d) {
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
    const int own = row & 127;
    // The lanes with the same digit.
    unsigned int same = __ballot_sync(0xffffffffu, here);
    #pragma unroll
    for (int bit = 0; bit < 7; ++bit) {
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
extern "C" __global__ void __launch_bounds__(32) k0_index_put_sum(const float* __restrict__ values, const int* __restrict__ rows_in, const int* __restrict__ order_in, float* __restrict__ out, float* __restrict__ part) {
  const int piece = (int)(blockIdx.x) * 2 + threadIdx.y;
  const int column = (int)threadIdx.x * 4;
  const float* source = values + column;
  float* target = out + column;
  const int first = piece * 32;
  const int end = min(first + 32, 50);
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
      value[u] = *(const Pack<float, 4>*)(source + (int)order_in[at] * 64);
    }
    #pragma unroll
    for (int u = 0; u < 8; ++u) {
      if (i + u >= end) break;
      if (row_of[u] != row) {
        if (whole) {
          Pack<float, 4>* const place = (Pack<float, 4>*)(target + (int)row * 64);
          Pack<float, 4> total = *place;
          #pragma unroll
          for (int v = 0; v < 4; ++v) {
            total.at[v] = (__fadd_rn(total.at[v], sum[v]));
          }
          *place = total;
        }
        else {
          #pragma unroll
          for (int v = 0; v < 4; ++v) {
            part[((int)piece * 2 + 0) * 64 + column + v] = sum[v];
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
  const bool goes_on = end < 50 && rows_in[end] == row;
  if (whole && !goes_on) {
    Pack<float, 4>* const place = (Pack<float, 4>*)(target + (int)row * 64);
    Pack<float, 4> total = *place;
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
      total.at[v] = (__fadd_rn(total.at[v], sum[v]));
    }
    *place = total;
  }
  else {
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
      part[((int)piece * 2 + (whole ? 1 : 0)) * 64 + column + v] = sum[v];
    }
  }
}

// index_put
extern "C" __global__ void __launch_bounds__(256) k0_index_put_join(const float* __restrict__ part, const int* __restrict__ rows_in, float* __restrict__ out) {
  const int piece = (int)(blockIdx.x / 2);
  const int end = (piece + 1) * 32;
  const int row = rows_in[end - 1];
  // Only where a run begins in this piece and goes on in the next one.
  if (rows_in[end] != row) return;
  const int first = piece * 32;
  if (first > 0 && rows_in[first - 1] == row) return;
  // Where the next row begins: near, as a rule.
  int low = end, step = 1;
  while (low + step < 50 && rows_in[low + step] == row) {
    low += step;
    step *= 2;
  }
  int high = min(low + step, 50);
  ++low;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (rows_in[middle] == row) low = middle + 1; else high = middle;
  }
  const int last = (low - 1) / 32;
  __shared__ float sums[8][32];
  const int group = (int)(blockIdx.x % 2);
  const int column = (int)group * 32 + threadIdx.x;
  float sum = 0.0f;
  {
    #pragma unroll 4
    for (int other = piece + 1 + threadIdx.y; other <= last; other += 8)
      sum = __fadd_rn(sum, part[(int)other * 128 + column]);
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0) {
    sum = part[(int)piece * 128 + 64 + column];
    #pragma unroll
    for (int member = 0; member < 8; ++member) sum = __fadd_rn(sum, sums[member][threadIdx.x]);
    float* const place = out + column + (int)row * 64;
    *place = (__fadd_rn(*place, sum));
  }
}
