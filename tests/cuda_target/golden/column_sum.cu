// program for sm_90
//   status status int64[8] 64 bytes
//   arena arena 9728 bytes
//   input x float32[1000, 300] 1200000 bytes
//   output result0 float32[300] 1200 bytes
//    0  launch k0_sum<<<75, (32, 8)>>>(in0 = x float32[300000], out1 = arena float32[2400]) with 1,024 bytes of shared memory
//    1  launch k1_sum<<<3, (128, 1)>>>(in0 = arena float32[2400], out1 = result0 float32[300])
// column: 8 threads per point; 75 blocks of 32 points
// column: a thread per point; 3 blocks of 128 points
extern "C" __global__ void __launch_bounds__(256) k0_sum(const float* __restrict__ in0, float* __restrict__ out1) {
  const int member = threadIdx.y;  // of the 8 that share a point
  const int point = (int)blockIdx.x * 32 + threadIdx.x;
  const int i1 = point % 300;
  const int i0 = point / 300;
  float r0 = 0.0f;
  __shared__ __align__(16) unsigned char shared[1024];
  {
    for (int j = member; j < 125; j += 8) {
      const int j0 = j;
      const float in0_0 = in0[i0 * 37500 + j0 * 300 + i1];
      const float mul_1 = in0_0 * in0_0;
      r0 = r0 + mul_1;
    }
  }
  r0 = tg_join_columns<Sum, 8, 32>(r0, (float*)shared);
  if (member == 0) {
    out1[i0 * 300 + i1] = r0;
  }
}

// reshape, sum
extern "C" __global__ void __launch_bounds__(128) k1_sum(const float* __restrict__ in0, float* __restrict__ out1) {
  const bool active = (int)blockIdx.x * 128 + threadIdx.x < 300;
  const int point = active ? (int)blockIdx.x * 128 + threadIdx.x : 299;
  const int i0 = point;
  float r0 = 0.0f;
  {
    for (int j = 0; j < 8; j += 1) {
      const int j0 = j;
      const float in0_0 = in0[j0 * 300 + i0];
      r0 = r0 + in0_0;
    }
  }
  if (active) {
    out1[i0] = r0;
  }
}
