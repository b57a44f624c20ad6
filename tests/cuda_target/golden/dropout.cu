// program for sm_90
//   status status int64[8] 64 bytes
//   input x float32[64, 100] 25600 bytes
//   input y int64[2] 16 bytes
//   output result0 float32[64, 100] 25600 bytes
//    0  launch k0_where<<<7, (256, 1)>>>(in0 = x float32[6400], in1 = y int64[2], out2 = result0 float32[6400])
// pointwise: a thread per point, 4 elements at once; 7 blocks of 256 points
extern "C" __global__ void __launch_bounds__(256) k0_where(const float* __restrict__ in0, const long long* __restrict__ in1, float* __restrict__ out2) {
  const int item = (int)blockIdx.x * 256 + threadIdx.x;
  if (item >= 1600) return;
  const int i0 = item * 4;
  {
    const long long in1_6 = in1[1];
    const long long add_7 = (long long)((unsigned long long)in1_6 + (unsigned long long)3LL);
    const long long in1_8 = in1[0];
    const Pack<float, 4> in0_2x4 = *(const Pack<float, 4>*)(in0 + i0);
    Pack<float, 4> out2_12x4;
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
      const float in0_2 = in0_2x4.at[v];
      const float mul_3 = in0_2 * 2.0f;
      const unsigned int random_bits_9 = tg_random_bits(in1_8, add_7, (i0 + v));
      const bool lt_10 = random_bits_9 < 2147483648u;
      const float where_11 = lt_10 ? mul_3 : 0.0f;
      out2_12x4.at[v] = where_11;
    }
    *(decltype(out2_12x4)*)(out2 + i0) = out2_12x4;
  }
}
