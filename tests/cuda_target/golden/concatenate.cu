// program for sm_90
//   status status int64[8] 64 bytes
//   input x float32[30, 40] 4800 bytes
//   input y float32[30, 8] 960 bytes
//   output result0 float32[30, 48] 5760 bytes
//    0  launch k0_tanh<<<2, (256, 1)>>>(in0 = y float32[240], in1 = x float32[1200], out2 = result0 float32[1440])
// pointwise: a thread per point, 4 elements at once; 2 blocks of 256 points
extern "C" __global__ void __launch_bounds__(256) k0_tanh(const float* __restrict__ in0, const float* __restrict__ in1, float* __restrict__ out2) {
  const int item = (int)blockIdx.x * 256 + threadIdx.x;
  if (item >= 360) return;
  const int i1 = (item % 12) * 4;
  const int i0 = item / 12;
  {
    Pack<float, 4> out2_5x4;
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
      const float in0_0 = (i1 + v) >= 40 ? in0[i0 * 8 + (i1 + v) - 40] : 0.0f;
      const float in1_1 = (i1 + v) < 40 ? in1[i0 * 40 + (i1 + v)] : 0.0f;
      const bool condition_2 = (i1 + v) < 40;
      const float where_3 = condition_2 ? in1_1 : in0_0;
      const float tanh_4 = tanhf(where_3);
      out2_5x4.at[v] = tanh_4;
    }
    *(decltype(out2_5x4)*)(out2 + i0 * 48 + i1) = out2_5x4;
  }
}
