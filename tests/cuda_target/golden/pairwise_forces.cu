// program for sm_90
//   status status int64[8] 64 bytes
//   input x float32[500, 3] 6000 bytes
//   output result0 float32[500, 3] 6000 bytes
//    0  launch k0_sum<<<125, (128, 1)>>>(in0 = x float32[1500], out1 = result0 float32[1500])
// row: 32 threads per point; 125 blocks of 4 points
extern "C" __global__ void __launch_bounds__(128) k0_sum(const float* __restrict__ in0, float* __restrict__ out1) {
  const int member = threadIdx.x % 32;  // of the 32 that share a point
  const int point = (int)blockIdx.x * 4 + threadIdx.x / 32;
  const int i0 = point;
  float r0 = 0.0f;
  float r1 = 0.0f;
  float r2 = 0.0f;
  {
    const float in0_2 = in0[i0 * 3 + 2];
    const float in0_6 = in0[i0 * 3 + 1];
    const float in0_10 = in0[i0 * 3];
    for (int j = member; j < 500; j += 32) {
      const int j0 = j;
      const float in0_1 = in0[j0 * 3 + 2];
      const float sub_3 = __fsub_rn(in0_2, in0_1);
      const float mul_4 = sub_3 * sub_3;
      const float in0_5 = in0[j0 * 3 + 1];
      const float sub_7 = __fsub_rn(in0_6, in0_5);
      const float mul_8 = sub_7 * sub_7;
      const float in0_9 = in0[j0 * 3];
      const float sub_11 = __fsub_rn(in0_10, in0_9);
      const float mul_12 = sub_11 * sub_11;
      const float add_13 = __fadd_rn(mul_12, mul_8);
      const float add_14 = __fadd_rn(add_13, mul_4);
      const float add_15 = __fadd_rn(add_14, 0.01f);
      const float rsqrt_16 = 1.0f / sqrtf(add_15);
      const float mul_17 = rsqrt_16 * rsqrt_16;
      const float mul_18 = rsqrt_16 * mul_17;
      const float mul_19 = sub_11 * mul_18;
      const float mul_20 = sub_7 * mul_18;
      const float mul_21 = sub_3 * mul_18;
      r0 = r0 + mul_19;
      r1 = r1 + mul_20;
      r2 = r2 + mul_21;
    }
  }
  r0 = tg_join_neighbours<Sum, 32>(r0, (float*)0);
  r1 = tg_join_neighbours<Sum, 32>(r1, (float*)0);
  r2 = tg_join_neighbours<Sum, 32>(r2, (float*)0);
  if (member == 0) {
    out1[i0 * 3] = r0;
    out1[i0 * 3 + 1] = r1;
    out1[i0 * 3 + 2] = r2;
  }
}
