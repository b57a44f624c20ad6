// program for sm_90
//   status status int64[8] 64 bytes
//   input x float32[1000] 4000 bytes
//   input y float32[1000] 4000 bytes
//   input z float32[1000] 4000 bytes
//   output result0 float32[1000] 4000 bytes
//   output result1 float32[1000] 4000 bytes
//   output result2 float32[1000] 4000 bytes
//    0  launch k0_add_sub_mul<<<1, (256, 1)>>>(in0 = y float32[1000], in1 = z float32[1000], in2 = x float32[1000], out3 = result1 float32[1000], out4 = result0 float32[1000], out5 = result2 float32[1000])
// pointwise: a thread per point, 4 elements at once; 1 blocks of 256 points
extern "C" __global__ void __launch_bounds__(256) k0_add_sub_mul(const float* __restrict__ in0, const float* __restrict__ in1, const float* __restrict__ in2, float* __restrict__ out3, float* __restrict__ out4, float* __restrict__ out5) {
  const int item = (int)blockIdx.x * 256 + threadIdx.x;
  if (item >= 250) return;
  const int i0 = item * 4;
  {
    const Pack<float, 4> in0_1x4 = *(const Pack<float, 4>*)(in0 + i0);
    const Pack<float, 4> in1_4x4 = *(const Pack<float, 4>*)(in1 + i0);
    const Pack<float, 4> in2_9x4 = *(const Pack<float, 4>*)(in2 + i0);
    Pack<float, 4> out3_12x4;
    Pack<float, 4> out4_13x4;
    Pack<float, 4> out5_14x4;
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
      const float in0_1 = in0_1x4.at[v];
      const float mul_2 = in0_1 * 0.1f;
      const float in1_4 = in1_4x4.at[v];
      const float mul_5 = in1_4 * 0.9f;
      const float add_6 = __fadd_rn(mul_5, mul_2);
      const float mul_8 = add_6 * 0.01f;
      const float in2_9 = in2_9x4.at[v];
      const float sub_10 = __fsub_rn(in2_9, mul_8);
      const float mul_11 = in0_1 * in0_1;
      out3_12x4.at[v] = add_6;
      out4_13x4.at[v] = sub_10;
      out5_14x4.at[v] = mul_11;
    }
    *(decltype(out3_12x4)*)(out3 + i0) = out3_12x4;
    *(decltype(out4_13x4)*)(out4 + i0) = out4_13x4;
    *(decltype(out5_14x4)*)(out5 + i0) = out5_14x4;
  }
}
