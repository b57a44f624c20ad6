// program for sm_90
//   status status int64[8] 64 bytes
//   input x float32[32, 64, 56, 56] 25690112 bytes
//   input y float32[128, 64, 3, 3] 294912 bytes
//   output result0 float32[32, 128, 56, 56] 51380224 bytes
//    0  launch k0_convolution<<<784, (256, 1)>>>(x = x float32[6422528], w = y float32[73728], y = result0 float32[12845056]) with 16,640 bytes of shared memory
// convolution: tiles of 128 x 128, 8 x 8 per thread; 784 blocks of 256 threads
extern "C" __global__ void __launch_bounds__(256, 2) k0_convolution(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y) {
  __shared__ __align__(16) float w_tile[2][8][132];
  __shared__ __align__(16) float x_tile[2][8][128];
  const int tile = (int)blockIdx.x;
  const int part = 0;
  const int phase = 0;
  const int group = 0;
  const int tile_n = tile;
  const int tile_m = 0;
  const int first_m = tile_m * 128;
  const int first_n = tile_n * 128;
  const int first_k = part * 576;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int at_n = (lane % 8 + warp % 2 * 8) * 4;
  const int at_m = (lane / 8 + warp / 2 * 4) * 4;
  const int w_k = threadIdx.x % 8, w_m = threadIdx.x / 8;
  float w_next[4];
  const int x_k = threadIdx.x / 128, x_n = threadIdx.x % 128;
  float x_next[4];
  const int j = first_n + x_n;
  const int sample = j / 3136;
  const int q0 = j / 56 % 56;
  const int q1 = j % 56;
  const int at0 = q0 - 1;
  const int at1 = q1 - 1;
  const int x_base = sample * 200704 + at0 * 56 + at1;
  float sum[8][8] = {};
  const int end_k = 576;
  const auto fetch = [&](const int k0) {
    {
      const int k = k0 + w_k;
      const int c = k / 9;
      const int t0 = k / 3 % 3;
      const int t1 = k % 3;
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int m = first_m + w_m + i * 32;
        w_next[i] = w[m * 576 + k];
      }
    }
    {
      #pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int k = k0 + x_k + i * 2;
        const int c = k / 9;
        const int t0 = k / 3 % 3;
        const int t1 = k % 3;
        const int p0 = at0 + t0;
        const int p1 = at1 + t1;
        x_next[i] = (unsigned int)p0 < 56 && (unsigned int)p1 < 56 ? x[x_base + c * 3136 + t0 * 56 + t1] : 0.0f;
      }
    }
  };
  const auto keep = [&](const int half) {
    #pragma unroll
    for (int i = 0; i < 4; ++i) w_tile[half][w_k][w_m + i * 32] = w_next[i];
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
      Pack<float, 4> w_pack[2];
      #pragma unroll
      for (int i = 0; i < 2; ++i) w_pack[i] = *(const Pack<float, 4>*)&w_tile[half][k][at_m + i * 64];
      Pack<float, 4> x_pack[2];
      #pragma unroll
      for (int i = 0; i < 2; ++i) x_pack[i] = *(const Pack<float, 4>*)&x_tile[half][k][at_n + i * 64];
      #pragma unroll
      for (int m = 0; m < 8; ++m) {
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
    const int sample = j / 3136;
    const int place = j % 3136;
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int m = first_m + at_m + i / 4 * 64 + i % 4;
      *(Pack<float, 4>*)(y + (sample * 128 + m) * 3136 + place) = Pack<float, 4>{{sum[i][n + 0], sum[i][n + 1], sum[i][n + 2], sum[i][n + 3]}};
    }
  }
}
