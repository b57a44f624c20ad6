// program for sm_90
//   status status int64[8] 64 bytes
//   input x float32[8, 28, 28] 25088 bytes
//   output result0 float32[8, 14, 14] 6272 bytes
//    0  launch k0_max<<<13, (128, 1)>>>(in0 = x float32[6272], out1 = result0 float32[1568])
// row: a thread per point, 2 elements at once; 13 blocks of 128 points
extern "C" __global__ void __launch_bounds__(128) k0_max(const float* __restrict__ in0, float* __restrict__ out1) {
  const bool active = (int)blockIdx.x * 128 + threadIdx.x / 1 < 1568;
  const int point = active ? (int)blockIdx.x * 128 + threadIdx.x / 1 : 1567;
  const int i2 = point % 14;
  const int i0 = point / 14;
  float r0 = (-__int_as_float(0x7f800000));
  {
    for (int j = 0; j < 4; j += 2) {
      const int j1 = j % 2;
      const int j0 = j / 2;
      const Pack<float, 2> in0_0x2 = *(const Pack<float, 2>*)(in0 + j0 * 28 + i2 * 2 + j1 + i0 * 56);
      #pragma unroll
      for (int v = 0; v < 2; ++v) {
        const float in0_0 = in0_0x2.at[v];
        r0 = tg_maximum<float>(r0, in0_0);
      }
    }
  }
  if (active) {
    out1[i2 + i0 * 14] = r0;
  }
}
