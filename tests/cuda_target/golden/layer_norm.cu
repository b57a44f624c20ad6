// program for sm_90
//   status status int64[8] 64 bytes
//   input x float32[256, 512] 524288 bytes
//   input y float32[512] 2048 bytes
//   input z float32[512] 2048 bytes
//   output result0 float32[256, 512] 524288 bytes
//    0  launch k0_sum_add<<<64, (128, 1)>>>(in0 = x float32[131072], in1 = y float32[512], in2 = z float32[512], out3 = result0 float32[131072])
// row: 32 threads per point, 4 elements at once; 64 blocks of 4 points
extern "C" __global__ void __launch_bounds__(128) k0_sum_add(const float* __restrict__ in0, const float* __restrict__ in1, const float* __restrict__ in2, float* __restrict__ out3) {
  const int member = threadIdx.x % 32;  // of the 32 that share a point
  const int point = (int)blockIdx.x * 4 + threadIdx.x / 32;
  const int i0 = point;
  float r0 = 0.0f;
  float r1 = 0.0f;
  float s0[16];
  {
    #pragma unroll
    for (int step = 0; step < 4; ++step) {
      const int j = step * 128 + member * 4;
      const int j0 = j;
      const Pack<float, 4> in0_0x4 = *(const Pack<float, 4>*)(in0 + i0 * 512 + j0);
      #pragma unroll
      for (int v = 0; v < 4; ++v) {
        const float in0_0 = in0_0x4.at[v];
        s0[step * 4 + v] = in0_0;
        r0 = r0 + in0_0;
      }
    }
  }
  r0 = tg_join_neighbours<Sum, 32>(r0, (float*)0);
  {
    const float mul_2 = r0 * 0.001953125f;
    #pragma unroll
    for (int step = 0; step < 4; ++step) {
      const int j = step * 128 + member * 4;
      const int j0 = j;
      #pragma unroll
      for (int v = 0; v < 4; ++v) {
        const float saved_3 = s0[step * 4 + v];
        const float sub_4 = __fsub_rn(saved_3, mul_2);
        const float mul_5 = sub_4 * sub_4;
        r1 = r1 + mul_5;
      }
    }
  }
  r1 = tg_join_neighbours<Sum, 32>(r1, (float*)0);
  {
    const float mul_3 = r1 * 0.001953125f;
    const float add_4 = __fadd_rn(mul_3, 1e-05f);
    const float rsqrt_5 = 1.0f / sqrtf(add_4);
    const float mul_7 = r0 * 0.001953125f;
    #pragma unroll
    for (int step = 0; step < 4; ++step) {
      const int j = step * 128 + member * 4;
      const int j0 = j;
      const Pack<float, 4> in1_11x4 = *(const Pack<float, 4>*)(in1 + j0);
      const Pack<float, 4> in2_13x4 = *(const Pack<float, 4>*)(in2 + j0);
      Pack<float, 4> out3_15x4;
      #pragma unroll
      for (int v = 0; v < 4; ++v) {
        const float saved_8 = s0[step * 4 + v];
        const float sub_9 = __fsub_rn(saved_8, mul_7);
        const float mul_10 = sub_9 * rsqrt_5;
        const float in1_11 = in1_11x4.at[v];
        const float mul_12 = in1_11 * mul_10;
        const float in2_13 = in2_13x4.at[v];
        const float add_14 = __fadd_rn(in2_13, mul_12);
        out3_15x4.at[v] = add_14;
      }
      *(decltype(out3_15x4)*)(out3 + i0 * 512 + j0) = out3_15x4;
    }
  }
}
