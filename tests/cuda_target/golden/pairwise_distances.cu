// program for sm_90
//   status status int64[8] 64 bytes
//   input x float32[130, 1, 64] 33280 bytes
//   input y float32[1, 70, 64] 17920 bytes
//   output result0 float32[130, 70] 36400 bytes
//    0  launch k0_sum_sqrt<<<85, (128, 2)>>>(in0 = y float32[4480], in1 = x float32[8320], out2 = result0 float32[9100]) with 4,352 bytes of shared memory
// reuse tile: 8 x 16 results per block, 1 x 1 per thread, 2 threads each, 32 elements at once; 85 blocks
extern "C" __global__ void __launch_bounds__(256) k0_sum_sqrt(const float* __restrict__ in0, const float* __restrict__ in1, float* __restrict__ out2) {
  const int first_i0 = (int)blockIdx.x / 5 * 8;
  const int down = (int)threadIdx.x / 16;
  const int first_i1 = (int)blockIdx.x % 5 * 16;
  const int along = (int)threadIdx.x % 16;
  __shared__ float tile0[32][17];
  __shared__ float tile1[32][9];
  __shared__ __align__(16) unsigned char shared[1024];
  float results0[1][1];
  #pragma unroll
  for (int down_i = 0; down_i < 1; ++down_i) {
    const int i0 = first_i0 + down + down_i * 8;
    #pragma unroll
    for (int along_i = 0; along_i < 1; ++along_i) {
      const int i1 = first_i1 + along + along_i * 16;
      results0[down_i][along_i] = 0.0f;
    }
  }
  for (int start = 0; start < 64; start += 32) {
    for (int e = threadIdx.y * 128 + threadIdx.x; e < 512; e += 256) {
      const int row = e % 32;
      const int column = e / 32;
      const int i1 = first_i1 + column;
      const int j0 = (start + row);
      if (i1 < 70) tile0[row][column] = in0[i1 * 64 + j0];
    }
    for (int e = threadIdx.y * 128 + threadIdx.x; e < 256; e += 256) {
      const int row = e % 32;
      const int column = e / 32;
      const int i0 = first_i0 + column;
      const int j0 = (start + row);
      if (i0 < 130) tile1[row][column] = in1[i0 * 64 + j0];
    }
    __syncthreads();
    #pragma unroll 4
    for (int row = threadIdx.y; row < 32; row += 2) {
      const int j0 = (start + row);
      #pragma unroll
      for (int down_i = 0; down_i < 1; ++down_i) {
        const int i0 = first_i0 + down + down_i * 8;
        #pragma unroll
        for (int along_i = 0; along_i < 1; ++along_i) {
          const int i1 = first_i1 + along + along_i * 16;
          float& r0 = results0[down_i][along_i];
          const float in0_0 = tile0[row][along + along_i * 16];
          const float in1_1 = tile1[row][down + down_i * 8];
          const float sub_2 = __fsub_rn(in1_1, in0_0);
          const float mul_3 = sub_2 * sub_2;
          r0 = r0 + mul_3;
        }
      }
    }
    __syncthreads();
  }
  #pragma unroll
  for (int down_i = 0; down_i < 1; ++down_i) {
    const int i0 = first_i0 + down + down_i * 8;
    #pragma unroll
    for (int along_i = 0; along_i < 1; ++along_i) {
      const int i1 = first_i1 + along + along_i * 16;
      results0[down_i][along_i] = tg_join_columns<Sum, 2, 128>(results0[down_i][along_i], (float*)shared);
    }
  }
  if (threadIdx.y == 0) {
    #pragma unroll
    for (int down_i = 0; down_i < 1; ++down_i) {
      const int i0 = first_i0 + down + down_i * 8;
      if (i0 >= 130) continue;
      #pragma unroll
      for (int along_i = 0; along_i < 1; ++along_i) {
        const int i1 = first_i1 + along + along_i * 16;
        if (i1 >= 70) continue;
        const float r0 = results0[down_i][along_i];
        const float sqrt_1 = sqrtf(r0);
        out2[i0 * 70 + i1] = sqrt_1;
      }
    }
  }
}
