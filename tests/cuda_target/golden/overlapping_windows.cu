// program for sm_90
//   status status int64[8] 64 bytes
//   input x float32[8, 14, 3] 1344 bytes
//   output result0 float32[8, 29] 928 bytes
//    0  launch k0_fold<<<1, (256, 1)>>>(in0 = x float32[336], out1 = result0 float32[232])
// pointwise: a thread per point; 1 blocks of 256 points
extern "C" __global__ void __launch_bounds__(256) k0_fold(const float* __restrict__ in0, float* __restrict__ out1) {
  const int item = (int)blockIdx.x * 256 + threadIdx.x;
  if (item >= 232) return;
  const int i1 = item % 29;
  const int i0 = item / 29;
  {
    const float in0_0 = i1 - 2 >= 0 && ((i1) % 2) == 0 ? in0[i0 * 42 + ((i1) / 2) * 3 - 1] : 0.0f;
    const float in0_1 = i1 - 1 >= 0 && i1 - 1 < 27 && ((i1 + 1) % 2) == 0 ? in0[i0 * 42 + ((i1 + 1) / 2) * 3 - 2] : 0.0f;
    const float in0_2 = i1 < 27 && ((i1) % 2) == 0 ? in0[i0 * 42 + ((i1) / 2) * 3] : 0.0f;
    const bool condition_4 = i1 < 27 && ((i1) % 2) == 0;
    const float where_5 = condition_4 ? in0_2 : 0.0f;
    const bool condition_6 = i1 - 1 >= 0 && i1 - 1 < 27 && ((i1 + 1) % 2) == 0;
    const float where_7 = condition_6 ? in0_1 : 0.0f;
    const bool condition_8 = i1 - 2 >= 0 && ((i1) % 2) == 0;
    const float where_9 = condition_8 ? in0_0 : 0.0f;
    const float add_10 = __fadd_rn(where_5, where_7);
    const float add_11 = __fadd_rn(add_10, where_9);
    out1[i0 * 29 + i1] = add_11;
  }
}
