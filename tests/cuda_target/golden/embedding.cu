// program for sm_90
//   status status int64[8] 64 bytes
//   input x float32[100, 64] 25600 bytes
//   input y int64[50] 400 bytes
//   output result0 float32[50, 64] 12800 bytes
//    0  launch k0_mul<<<4, (256, 1)>>>(in0 = y int64[50], in1 = x float32[6400], status = status int64[8], out3 = result0 float32[3200])
// pointwise: a thread per point, 4 elements at once; 4 blocks of 256 points
extern "C" __global__ void __launch_bounds__(256) k0_mul(const long long* __restrict__ in0, const float* __restrict__ in1, long long* __restrict__ status, float* __restrict__ out3) {
  const int item = (int)blockIdx.x * 256 + threadIdx.x;
  if (item >= 800) return;
  const int i1 = (item % 16) * 4;
  const int i0 = item / 16;
  {
    const long long in0_1 = in0[i0];
    const long long check_2 = tg_check(in0_1, 100, 1, true, status);
    const Pack<float, 4> in1_3x4 = *(const Pack<float, 4>*)(in1 + (int)check_2 * 64 + i1);
    Pack<float, 4> out3_5x4;
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
      const float in1_3 = in1_3x4.at[v];
      const float mul_4 = in1_3 * 8.0f;
      out3_5x4.at[v] = mul_4;
    }
    *(decltype(out3_5x4)*)(out3 + i0 * 64 + i1) = out3_5x4;
  }
}
