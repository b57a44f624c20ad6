// program for sm_90
//   status status int64[8] 64 bytes
//   input x float32[64, 1024] 262144 bytes
//   input y bool[64, 1024] 65536 bytes
//   output result0 float32[64, 1] 256 bytes
//    0  launch k0_max<<<64, (128, 1)>>>(in0 = x float32[65536], in1 = y bool[65536], out2 = result0 float32[64]) with 16 bytes of shared memory
// row: 128 threads per point, 8 elements at once; 64 blocks of 1 points
extern "C" __global__ void __launch_bounds__(128) k0_max(const float* __restrict__ in0, const unsigned char* __restrict__ in1, float* __restrict__ out2) {
  const int member = threadIdx.x % 128;  // of the 128 that share a point
  const int point = (int)blockIdx.x;
  const int i0 = point;
  float r0 = (-__int_as_float(0x7f800000));
  __shared__ __align__(16) unsigned char shared[16];
  {
    for (int j = member * 8; j < 1024; j += 1024) {
      const int j0 = j;
      const Pack<float, 8> in0_1x8 = *(const Pack<float, 8>*)(in0 + i0 * 1024 + j0);
      const Pack<unsigned char, 8> in1_2x8 = *(const Pack<unsigned char, 8>*)(in1 + i0 * 1024 + j0);
      #pragma unroll
      for (int v = 0; v < 8; ++v) {
        const float in0_1 = in0_1x8.at[v];
        const bool in1_2 = in1_2x8.at[v] != 0;
        const float where_3 = in1_2 ? in0_1 : (-__int_as_float(0x7f800000));
        r0 = tg_maximum<float>(r0, where_3);
      }
    }
  }
  r0 = tg_join_neighbours<Maximum, 128>(r0, (float*)shared);
  if (member == 0) {
    out2[i0] = r0;
  }
}
