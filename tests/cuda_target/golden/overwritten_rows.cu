// program for sm_90
//   status status int64[8] 64 bytes
//   input x float32[100, 64] 25600 bytes
//   input y int64[50] 400 bytes
//   input z float32[50, 64] 12800 bytes
//   output result0 float32[100, 64] 25600 bytes
//    0  launch k0_index_put<<<1, (64, 1)>>>(in0 = x float32[6400], out1 = result0 float32[6400], in2 = z float32[3200], in3 = y int64[50], status = status int64[8])
// column: a thread per point; 1 blocks of 64 points
extern "C" __global__ void __launch_bounds__(64) k0_index_put(const float* __restrict__ in0, float* __restrict__ out1, const float* __restrict__ in2, const long long* __restrict__ in3, long long* __restrict__ status) {
  const int point = (int)blockIdx.x * 64 + threadIdx.x;
  const int i0 = point;
  {
    for (int j = 0; j < 100; j += 1) {
      const int c0 = j;
      const float in0_0 = in0[c0 * 64 + i0];
      out1[c0 * 64 + i0] = in0_0;
    }
  }
  {
    for (int j = 0; j < 50; j += 1) {
      const int w0 = j;
      const float in2_0 = in2[w0 * 64 + i0];
      const long long in3_1 = in3[w0];
      const long long check_2 = tg_check(in3_1, 100, 1, true, status);
      out1[(int)check_2 * 64 + i0] = in2_0;
    }
  }
}
