// program for sm_90
//   status status int64[8] 64 bytes
//   input x float32[64, 100] 25600 bytes
//   output result0 int64[64] 512 bytes
//    0  launch k0_argmax<<<8, (128, 1)>>>(in0 = x float32[6400], out1 = result0 int64[64])
// row: 16 threads per point, 4 elements at once; 8 blocks of 8 points
extern "C" __global__ void __launch_bounds__(128) k0_argmax(const float* __restrict__ in0, long long* __restrict__ out1) {
  const int member = threadIdx.x % 16;  // of the 16 that share a point
  const int point = (int)blockIdx.x * 8 + threadIdx.x / 16;
  const int i0 = point;
  Place<float> r0 = {(-__int_as_float(0x7f800000)), 0x7fffffffffffffffLL};
  {
    for (int j = member * 4; j < 100; j += 64) {
      const int j0 = j;
      const Pack<float, 4> in0_0x4 = *(const Pack<float, 4>*)(in0 + i0 * 100 + j0);
      #pragma unroll
      for (int v = 0; v < 4; ++v) {
        const float in0_0 = in0_0x4.at[v];
        const long long index_1 = (long long)((j0 + v));
        r0 = Best<true>::join<float>(r0, Place<float>{in0_0, index_1});
      }
    }
  }
  r0 = tg_join_neighbours<Best<true>, 16>(r0, (Place<float>*)0);
  if (member == 0) {
    out1[i0] = r0.position;
  }
}
