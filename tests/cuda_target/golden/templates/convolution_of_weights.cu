// program for sm_90
//   status status int64[8] 64 bytes
//   arena arena 3833856 bytes
//   input x float32[32, 64, 58, 58] 27557888 bytes
//   input y float32[56, 56, 64, 32] 25690112 bytes
//   output result0 float32[64, 64, 3, 3] 147456 bytes
//    0  launch k0_convolution<<<130, (256, 1)>>>(x = x float32[6889472], w = y float32[6422528], y = arena float32[958464]) with 12,544 bytes of shared memory
//    1  launch k0_convolution_sum<<<144, (256, 1)>>>(part = arena float32[958464], y = result0 float32[36864])
// convolution: tiles of 64 x 128, 4 x 8 per thread, 26 share a sum; 130 blocks of 256 threads
// convolution: sums of 26; 144 blocks
extern "C" __global__ void __launch_bounds__(256, 2) k0_convolution(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y) {
  __shared__ __align__(16) float w_tile[2][8][64];
  __shared__ __align__(16) float x_tile[2][8][132];
  const int tile = (int)blockIdx.x;
  const int part = tile / 5;
  const int phase = 0;
  const int group = 0;
  const int tile_n = tile % 5;
  const int tile_m = 0;
  const int first_m = tile_m * 64;
  const int first_n = tile_n * 128;
  const int first_k = part * 3864;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int at_n = (lane % 8 + warp % 2 * 8) * 4;
  const int at_m = (lane / 8 + warp / 2 * 4) * 4;
  const int w_k = threadIdx.x / 64, w_m = threadIdx.x % 64;
  float w_next[2];
  const int x_k = threadIdx.x % 8, x_n = threadIdx.x / 8;
  float x_next[4];
  int x_base[4];
  int at0[4];
  int at1[4];
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int j = first_n + x_n + i * 32 < 576 ? first_n + x_n + i * 32 : 575;
    const int sample = j / 9;
    const int q0 = j / 3 % 3;
    const int q1 = j % 3;
    at0[i] = q0;
    at1[i] = q1;
    x_base[i] = sample * 3364 + at0[i] * 58 + at1[i];
  }
  float sum[4][8] = {};
  const int end_k = first_k + 3864 < 100352 ? first_k + 3864 : 100352;
  const auto fetch = [&](const int k0) {
    {
      #pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int k = k0 + w_k + i * 4;
        const int c = k / 3136;
        const int t0 = k / 56 % 56;
        const int t1 = k % 56;
        const int m = first_m + w_m;
        w_next[i] = w[m * 32 + c + t0 * 114688 + t1 * 2048];
      }
    }
    {
      const int k = k0 + x_k;
      const int c = k / 3136;
      const int t0 = k / 56 % 56;
      const int t1 = k % 56;
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        x_next[i] = x[x_base[i] + c * 215296 + t0 * 58 + t1];
      }
    }
  };
  const auto keep = [&](const int half) {
    #pragma unroll
    for (int i = 0; i < 2; ++i) w_tile[half][w_k + i * 4][w_m] = w_next[i];
    #pragma unroll
    for (int i = 0; i < 4; ++i) x_tile[half][x_k][x_n + i * 32] = x_next[i];
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
  #pragma unroll
  for (int n = 0; n < 8; n += 4) {
    const int j = first_n + at_n + n / 4 * 64 + n % 4;
    if (j >= 576) continue;
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int m = first_m + at_m + i / 4 * 64 + i % 4;
      *(Pack<float, 4>*)(y + ((part) * 64 + m) * 576 + j) = Pack<float, 4>{{sum[i][n + 0], sum[i][n + 1], sum[i][n + 2], sum[i][n + 3]}};
    }
  }
}

// convolution
extern "C" __global__ void __launch_bounds__(256) k0_convolution_sum(const float* __restrict__ part, float* __restrict__ y) {
  const int item = (int)blockIdx.x * 256 + threadIdx.x;
  const int phase = 0;
  const int group = 0;
  const int m = item / 576;
  const int j = item % 576;
  const int sample = j / 9;
  const int place = j % 9;
  float sum = part[item];
  #pragma unroll 4
  for (int i = 1; i < 26; ++i) sum += part[item + (int)i * 36864];
  y[(sample * 64 + m) * 9 + place] = sum;
}
