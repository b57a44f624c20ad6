// program for sm_90
//   status status int64[8] 64 bytes
//   input x float16[32, 128, 28, 28] 6422528 bytes
//   input y float16[64, 128, 3, 3] 147456 bytes
//   output result0 float16[32, 64, 56, 56] 12845056 bytes
//    0  launch k0_convolution<<<784, (256, 1)>>>(x = x float16[3211264], w = y float16[73728], y = result0 float16[6422528]) with 12,544 bytes of shared memory
// convolution: tiles of 64 x 128, 4 x 8 per thread; 784 blocks of 256 threads
extern "C" __global__ void __launch_bounds__(256, 2) k0_convolution(const unsigned short* __restrict__ x, const unsigned short* __restrict__ w, unsigned short* __restrict__ y) {
  __shared__ __align__(16) float w_tile[2][8][68];
  __shared__ __align__(16) float x_tile[2][8][128];
  const int tile = (int)blockIdx.x;
  const int part = 0;
  const int phase = tile / 196;
  const int group = 0;
  const int tile_n = tile % 196;
  const int tile_m = 0;
  const int first_m = tile_m * 64;
  const int first_n = tile_n * 128;
  const int first_k = part * 512;
  const int phase0 = phase / 2;
  const int phase1 = phase % 2;
  const int tap0 = (phase0 + 1) % 2;
  const int shift0 = (phase0 + tap0 - 1) / 2;
  const int tap1 = (phase1 + 1) % 2;
  const int shift1 = (phase1 + tap1 - 1) / 2;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int at_n = (lane % 8 + warp % 2 * 8) * 4;
  const int at_m = (lane / 8 + warp / 2 * 4) * 4;
  const int w_k = threadIdx.x % 8, w_m = threadIdx.x / 8;
  float w_next[2];
  const int x_k = threadIdx.x / 128, x_n = threadIdx.x % 128;
  float x_next[4];
  const int j = first_n + x_n;
  const int sample = j / 784;
  const int q0 = j / 28 % 28;
  const int q1 = j % 28;
  const int at0 = q0 + shift0;
  const int at1 = q1 + shift1;
  const int x_base = sample * 100352 + at0 * 28 + at1;
  float sum[4][8] = {};
  if (tap0 < 1 && tap1 < 1) {
    const int end_k = 512;
    const auto fetch = [&](const int k0) {
      {
        const int k = k0 + w_k;
        const int c = k / 4;
        const int t0 = k / 2 % 2;
        const int t1 = k % 2;
        #pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int m = first_m + w_m + i * 32;
          w_next[i] = half_to_float(w[m * 1152 + c * 9 + t0 * 6 + tap0 * 3 + t1 * 2 + tap1]);
        }
      }
      {
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int k = k0 + x_k + i * 2;
          const int c = k / 4;
          const int t0 = k / 2 % 2;
          const int t1 = k % 2;
          const int p0 = at0 + t0;
          const int p1 = at1 + t1;
          x_next[i] = (unsigned int)p0 < 28 && (unsigned int)p1 < 28 ? half_to_float(x[x_base + c * 784 + t0 * 28 + t1]) : 0.0f;
        }
      }
    };
    const auto keep = [&](const int half) {
      #pragma unroll
      for (int i = 0; i < 2; ++i) w_tile[half][w_k][w_m + i * 32] = w_next[i];
      #pragma unroll
      for (int i = 0; i < 4; ++i) x_tile[half][x_k + i * 2][x_n] = x_next[i];
    };
    fetch(first_k);
    keep(0);
    __syncthreads();
    int half = 0;
    for (int k0 = first_k; k0 < end_k; k0 += 8) {
      const bool more = k0 + 8 < end_k;
      if (more) fetch(k0 + 8);
      #pragma unroll
      for (int k = 0; k < 8; ++k) {
        Pack<float, 4> w_pack[1];
        #pragma unroll
        for (int i = 0; i < 1; ++i) w_pack[i] = *(const Pack<float, 4>*)&w_tile[half][k][at_m + i * 64];
        Pack<float, 4> x_pack[2];
        #pragma unroll
        for (int i = 0; i < 2; ++i) x_pack[i] = *(const Pack<float, 4>*)&x_tile[half][k][at_n + i * 64];
        #pragma unroll
        for (int m = 0; m < 4; ++m) {
          #pragma unroll
          for (int n = 0; n < 8; ++n) {
            sum[m][n] += w_pack[m / 4].at[m % 4] * x_pack[n / 4].at[n % 4];
          }
        }
      }
      if (more) keep(half ^ 1);
      __syncthreads();
      half ^= 1;
    }
  }
  if (tap0 < 1 && tap1 >= 1) {
    const int end_k = 256;
    const auto fetch = [&](const int k0) {
      {
        const int k = k0 + w_k;
        const int c = k / 2;
        const int t0 = k % 2;
        const int t1 = 0;
        #pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int m = first_m + w_m + i * 32;
          w_next[i] = half_to_float(w[m * 1152 + c * 9 + t0 * 6 + tap0 * 3 + t1 * 2 + tap1]);
        }
      }
      {
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int k = k0 + x_k + i * 2;
          const int c = k / 2;
          const int t0 = k % 2;
          const int t1 = 0;
          const int p0 = at0 + t0;
          const int p1 = at1 + t1;
          x_next[i] = (unsigned int)p0 < 28 && (unsigned int)p1 < 28 ? half_to_float(x[x_base + c * 784 + t0 * 28 + t1]) : 0.0f;
        }
      }
    };
    const auto keep = [&](const int half) {
      #pragma unroll
      for (int i = 0; i < 2; ++i) w_tile[half][w_k][w_m + i * 32] = w_next[i];
      #pragma unroll
      for (int i = 0; i < 4; ++i) x_tile[half][x_k + i * 2][x_n] = x_next[i];
    };
    fetch(first_k);
    keep(0);
    __syncthreads();
    int half = 0;
    for (int k0 = first_k; k0 < end_k; k0 += 8) {
      const bool more = k0 + 8 < end_k;
      if (more) fetch(k0 + 8);
      #pragma unroll
      for (int k = 0; k < 8; ++k) {
        Pack<float, 4> w_pack[1];
        #pragma unroll
        for (int i = 0; i < 1; ++i) w_pack[i] = *(const Pack<float, 4>*)&w_tile[half][k][at_m + i * 64];
        Pack<float, 4> x_pack[2];
        #pragma unroll
        for (int i = 0; i < 2; ++i) x_pack[i] = *(const Pack<float, 4>*)&x_tile[half][k][at_n + i * 64];
        #pragma unroll
        for (int m = 0; m < 4; ++m) {
          #pragma unroll
          for (int n = 0; n < 8; ++n) {
            sum[m][n] += w_pack[m / 4].at[m % 4] * x_pack[n / 4].at[n % 4];
          }
        }
      }
      if (more) keep(half ^ 1);
      __syncthreads();
      half ^= 1;
    }
  }
  if (tap0 >= 1 && tap1 < 1) {
    const int end_k = 256;
    const auto fetch = [&](const int k0) {
      {
        const int k = k0 + w_k;
        const int c = k / 2;
        const int t0 = 0;
        const int t1 = k % 2;
        #pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int m = first_m + w_m + i * 32;
          w_next[i] = half_to_float(w[m * 1152 + c * 9 + t0 * 6 + tap0 * 3 + t1 * 2 + tap1]);
        }
      }
      {
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int k = k0 + x_k + i * 2;
          const int c = k / 2;
          const int t0 = 0;
          const int t1 = k % 2;
          const int p0 = at0 + t0;
          const int p1 = at1 + t1;
          x_next[i] = (unsigned int)p0 < 28 && (unsigned int)p1 < 28 ? half_to_float(x[x_base + c * 784 + t0 * 28 + t1]) : 0.0f;
        }
      }
    };
    const auto keep = [&](const int half) {
      #pragma unroll
      for (int i = 0; i < 2; ++i) w_tile[half][w_k][w_m + i * 32] = w_next[i];
      #pragma unroll
      for (int i = 0; i < 4; ++i) x_tile[half][x_k + i * 2][x_n] = x_next[i];
    };
    fetch(first_k);
    keep(0);
    __syncthreads();
    int half = 0;
    for (int k0 = first_k; k0 < end_k; k0 += 8) {
      const bool more = k0 + 8 < end_k;
      if (more) fetch(k0 + 8);
      #pragma unroll
      for (int k = 0; k < 8; ++k) {
        Pack<float, 4> w_pack[1];
        #pragma unroll
        for (int i = 0; i < 1; ++i) w_pack[i] = *(const Pack<float, 4>*)&w_tile[half][k][at_m + i * 64];
        Pack<float, 4> x_pack[2];
        #pragma unroll
        for (int i = 0; i < 2; ++i) x_pack[i] = *(const Pack<float, 4>*)&x_tile[half][k][at_n + i * 64];
        #pragma unroll
        for (int m = 0; m < 4; ++m) {
          #pragma unroll
          for (int n = 0; n < 8; ++n) {
            sum[m][n] += w_pack[m / 4].at[m % 4] * x_pack[n / 4].at[n % 4];
          }
        }
      }
      if (more) keep(half ^ 1);
      __syncthreads();
      half ^= 1;
    }
  }
  if (tap0 >= 1 && tap1 >= 1) {
    const int end_k = 128;
    const auto fetch = [&](const int k0) {
      {
        const int k = k0 + w_k;
        const int c = k;
        const int t0 = 0;
        const int t1 = 0;
        #pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int m = first_m + w_m + i * 32;
          w_next[i] = half_to_float(w[m * 1152 + c * 9 + t0 * 6 + tap0 * 3 + t1 * 2 + tap1]);
        }
      }
      {
        #pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int k = k0 + x_k + i * 2;
          const int c = k;
          const int t0 = 0;
          const int t1 = 0;
          const int p0 = at0 + t0;
          const int p1 = at1 + t1;
          x_next[i] = (unsigned int)p0 < 28 && (unsigned int)p1 < 28 ? half_to_float(x[x_base + c * 784 + t0 * 28 + t1]) : 0.0f;
        }
      }
    };
    const auto keep = [&](const int half) {
      #pragma unroll
      for (int i = 0; i < 2; ++i) w_tile[half][w_k][w_m + i * 32] = w_next[i];
      #pragma unroll
      for (int i = 0; i < 4; ++i) x_tile[half][x_k + i * 2][x_n] = x_next[i];
    };
    fetch(first_k);
    keep(0);
    __syncthreads();
    int half = 0;
    for (int k0 = first_k; k0 < end_k; k0 += 8) {
      const bool more = k0 + 8 < end_k;
      if (more) fetch(k0 + 8);
      #pragma unroll
      for (int k = 0; k < 8; ++k) {
        Pack<float, 4> w_pack[1];
        #pragma unroll
        for (int i = 0; i < 1; ++i) w_pack[i] = *(const Pack<float, 4>*)&w_tile[half][k][at_m + i * 64];
        Pack<float, 4> x_pack[2];
        #pragma unroll
        for (int i = 0; i < 2; ++i) x_pack[i] = *(const Pack<float, 4>*)&x_tile[half][k][at_n + i * 64];
        #pragma unroll
        for (int m = 0; m < 4; ++m) {
          #pragma unroll
          for (int n = 0; n < 8; ++n) {
            sum[m][n] += w_pack[m / 4].at[m % 4] * x_pack[n / 4].at[n % 4];
          }
        }
      }
      if (more) keep(half ^ 1);
      __syncthreads();
      half ^= 1;
    }
  }
  #pragma unroll
  for (int n = 0; n < 8; ++n) {
    const int j = first_n + at_n + n / 4 * 64 + n % 4;
    const int sample = j / 784;
    const int q0 = j / 28 % 28;
    const int q1 = j % 28;
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int m = first_m + at_m + i / 4 * 64 + i % 4;
      y[(sample * 64 + m) * 3136 + (q0 * 2 + phase0) * 56 + (q1 * 2 + phase1)] = half_from_float(sum[i][n]);
    }
  }
}
