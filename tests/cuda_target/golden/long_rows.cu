// program for sm_90
//   status status int64[8] 64 bytes
//   input x float32[9, 33000] 1188000 bytes
//   output result0 float32[9, 33000] 1188000 bytes
//    0  launch k0_argmax_sub<<<9, (1024, 1), 147456>>>(in0 = x float32[297000], out1 = result0 float32[297000]) with 147,968 bytes of shared memory
// row: 1024 threads per point, 4 elements at once; 9 blocks of 1 points; rows in 147,456 bytes of shared memory
extern "C" __global__ void __launch_bounds__(1024) k0_argmax_sub(const float* __restrict__ in0, float* __restrict__ out1) {
  const int member = threadIdx.x % 1024;  // of the 1024 that share a point
  const int point = (int)blockIdx.x;
  const int i0 = point;
  Place<float> r0 = {(-__int_as_float(0x7f800000)), 0x7fffffffffffffffLL};
  __shared__ __align__(16) unsigned char shared[512];
  extern __shared__ __align__(16) unsigned char rows[];
  float* const s0 = (float*)rows + threadIdx.x;
  {
    #pragma unroll 8
    for (int step = 0; step < 9; ++step) {
      const int j = step * 4096 + member * 4;
      if (j < 33000) {
        const int j0 = j;
        const Pack<float, 4> in0_0x4 = *(const Pack<float, 4>*)(in0 + i0 * 33000 + j0);
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
          const float in0_0 = in0_0x4.at[v];
          s0[(step * 4 + v) * 1024] = in0_0;
          const long long index_2 = (long long)((j0 + v));
          r0 = Best<true>::join<float>(r0, Place<float>{in0_0, index_2});
        }
      }
    }
  }
  r0 = tg_join_neighbours<Best<true>, 1024>(r0, (Place<float>*)shared);
  {
    const float cast_1 = (float)r0.position;
    #pragma unroll 8
    for (int step = 0; step < 9; ++step) {
      const int j = step * 4096 + member * 4;
      if (j < 33000) {
        const int j0 = j;
        Pack<float, 4> out1_4x4;
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
          const float saved_2 = s0[(step * 4 + v) * 1024];
          const float sub_3 = __fsub_rn(saved_2, cast_1);
          out1_4x4.at[v] = sub_3;
        }
        *(decltype(out1_4x4)*)(out1 + i0 * 33000 + j0) = out1_4x4;
      }
    }
  }
}
