// program for sm_90
//   status status int64[8] 64 bytes
//   input x float32[64, 100] 25600 bytes
//   input y int64[64, 1] 512 bytes
//   output result0 float32[64, 1] 256 bytes
//    0  launch k0_max_sum_neg<<<8, (128, 1)>>>(in0 = x float32[6400], in1 = y int64[64], status = status int64[8], out3 = result0 float32[64])
// row: 16 threads per point, 4 elements at once; 8 blocks of 8 points
extern "C" __global__ void __launch_bounds__(128) k0_max_sum_neg(const float* __restrict__ in0, const long long* __restrict__ in1, long long* __restrict__ status, float* __restrict__ out3) {
  const int member = threadIdx.x % 16;  // of the 16 that share a point
  const int point = (int)blockIdx.x * 8 + threadIdx.x / 16;
  const int i0 = point;
  float r0 = (-__int_as_float(0x7f800000));
  float r1 = 0.0f;
  float s0[8];
  {
    #pragma unroll
    for (int step = 0; step < 2; ++step) {
      const int j = step * 64 + member * 4;
      if (j < 100) {
        const int j0 = j;
        const Pack<float, 4> in0_0x4 = *(const Pack<float, 4>*)(in0 + i0 * 100 + j0);
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
          const float in0_0 = in0_0x4.at[v];
          s0[step * 4 + v] = in0_0;
          r0 = tg_maximum<float>(r0, in0_0);
        }
      }
    }
  }
  r0 = tg_join_neighbours<Maximum, 16>(r0, (float*)0);
  {
    #pragma unroll
    for (int step = 0; step < 2; ++step) {
      const int j = step * 64 + member * 4;
      if (j < 100) {
        const int j0 = j;
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
          const float saved_1 = s0[step * 4 + v];
          const float sub_2 = __fsub_rn(saved_1, r0);
          const float exp_3 = expf(sub_2);
          r1 = r1 + exp_3;
        }
      }
    }
  }
  r1 = tg_join_neighbours<Sum, 16>(r1, (float*)0);
  {
    const float log_1 = logf(r1);
    const long long in1_3 = in1[i0];
    const long long check_4 = tg_check(in1_3, 100, 1, true, status);
    const float in0_5 = in0[i0 * 100 + (int)check_4];
    const float sub_6 = __fsub_rn(in0_5, r0);
    const float sub_7 = __fsub_rn(sub_6, log_1);
    const float neg_8 = -sub_7;
    if (member == 0) out3[i0] = neg_8;
  }
}
