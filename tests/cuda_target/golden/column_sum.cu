// program for sm_90
//   status status int64[8] 64 bytes
//   input x float32[1000, 300] 1200000 bytes
//   output result0 float32[300] 1200 bytes
//    0  launch k0_sum<<<10, (32, 16)>>>(in0 = x float32[300000], out1 = result0 float32[300])
// column: 16 threads per point; 10 blocks of 32 points
extern "C" __global__ void __launch_bounds__(512) k0_sum(const float* __restrict__ in0, float* __restrict__ out1) {
  const int member = threadIdx.y;  // of the 16 that share a point
  const bool active = (int)blockIdx.x * 32 + threadIdx.x < 300;
  const int point = active ? (int)blockIdx.x * 32 + threadIdx.x : 299;
  const int i0 = point;
  float r0 = 0.0f;
  __shared__ float shared0[512];
  {
    for (int j = member; j < 1000; j += 16) {
      const int j0 = j;
      const float in0_0 = in0[j0 * 300 + i0];
      const float mul_1 = in0_0 * in0_0;
      r0 = r0 + mul_1;
    }
  }
  r0 = tg_join_columns<Sum, 16, 32>(r0, shared0);
  {
    if (active && member == 0) out1[i0] = r0;
  }
}
