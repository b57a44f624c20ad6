// program for sm_90
//   status status int64[8] 64 bytes
//   input x float32[30, 40] 4800 bytes
//   output result0 float32[32, 81] 10368 bytes
//    0  launch k0_exp<<<11, (256, 1)>>>(in0 = x float32[1200], out1 = result0 float32[2592])
// pointwise: a thread per point; 11 blocks of 256 points
extern "C" __global__ void __launch_bounds__(256) k0_exp(const float* __restrict__ in0, float* __restrict__ out1) {
  const int item = (int)blockIdx.x * 256 + threadIdx.x;
  if (item >= 2592) return;
  const int i1 = item % 81;
  const int i0 = item / 81;
  {
    const float in0_0 = i0 - 1 >= 0 && i0 - 1 < 30 && i1 - 2 >= 0 && ((i1) % 2) == 0 ? in0[i0 * 40 + ((i1) / 2) - 41] : 0.0f;
    const bool condition_2 = i0 - 1 >= 0 && i0 - 1 < 30 && i1 - 2 >= 0 && ((i1) % 2) == 0;
    const float where_3 = condition_2 ? in0_0 : 0.5f;
    const float exp_4 = expf(where_3);
    out1[i0 * 81 + i1] = exp_4;
  }
}
