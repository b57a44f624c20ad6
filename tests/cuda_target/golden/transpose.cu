// program for sm_90
//   status status int64[8] 64 bytes
//   input x float32[300, 400] 480000 bytes
//   input y float32[400, 300] 480000 bytes
//   output result0 float32[400, 300] 480000 bytes
//    0  launch k0_add<<<130, (32, 8)>>>(in0 = x float32[120000], in1 = y float32[120000], out2 = result0 float32[120000]) with 4,224 bytes of shared memory
// transposed tile: a thread per point; 130 blocks of 1024 points
extern "C" __global__ void __launch_bounds__(256) k0_add(const float* __restrict__ in0, const float* __restrict__ in1, float* __restrict__ out2) {
  const int first_i0 = (int)blockIdx.x / 10 % 13 * 32;
  const int first_i1 = (int)blockIdx.x % 10 * 32;
  __shared__ float tile0[32][33];
  for (int row = threadIdx.y; row < 32; row += 8) {
    const int i0 = first_i0 + threadIdx.x;
    const int i1 = first_i1 + row;
    if (i0 < 400 && i1 < 300) {
      tile0[row][threadIdx.x] = in0[i1 * 400 + i0];
    }
  }
  __syncthreads();
  for (int row = threadIdx.y; row < 32; row += 8) {
    const int i1 = first_i1 + threadIdx.x;
    const int i0 = first_i0 + row;
    if (i1 < 300 && i0 < 400) {
      const float in0_0 = tile0[threadIdx.x][row];
      const float in1_1 = in1[i0 * 300 + i1];
      const float add_2 = __fadd_rn(in1_1, in0_0);
      out2[i0 * 300 + i1] = add_2;
    }
  }
}
