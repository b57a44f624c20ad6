// program for sm_90
//   status status int64[8] 64 bytes
//   arena arena 9728 bytes
//   input x float32[1000, 300] 1200000 bytes
//   output result0 float32[300] 1200 bytes
//    0  launch k0_sum<<<75, (32, 8)>>>(in0 = x float32[300000], out1 = arena float32[2400]) with 1,024 bytes of shared memory
//    1  launch k1_cast<<<1, (256, 1)>>>(in0 = arena float32[2400], out1 = result0 float32[300])
// column: 8 threads per point; 75 blocks of 32 points
// pointwise: a thread per point, 4 elements at once; 1 blocks of 256 points
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

// reshape, cast, sum
extern "C" __global__ void __launch_bounds__(256) k1_cast(const float* __restrict__ in0, float* __restrict__ out1) {
  const int item = (int)blockIdx.x * 256 + threadIdx.x;
  if (item >= 75) return;
  const int i0 = item * 4;
  {
    const Pack<float, 4> in0_0x4 = *(const Pack<float, 4>*)(in0 + i0 + 2100);
    const Pack<float, 4> in0_2x4 = *(const Pack<float, 4>*)(in0 + i0 + 1800);
    const Pack<float, 4> in0_4x4 = *(const Pack<float, 4>*)(in0 + i0 + 1500);
    const Pack<float, 4> in0_6x4 = *(const Pack<float, 4>*)(in0 + i0 + 1200);
    const Pack<float, 4> in0_8x4 = *(const Pack<float, 4>*)(in0 + i0 + 900);
    const Pack<float, 4> in0_10x4 = *(const Pack<float, 4>*)(in0 + i0 + 600);
    const Pack<float, 4> in0_12x4 = *(const Pack<float, 4>*)(in0 + i0 + 300);
    const Pack<float, 4> in0_14x4 = *(const Pack<float, 4>*)(in0 + i0);
    Pack<float, 4> out1_24x4;
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
      const float in0_0 = in0_0x4.at[v];
      const double cast_1 = (double)in0_0;
      const float in0_2 = in0_2x4.at[v];
      const double cast_3 = (double)in0_2;
      const float in0_4 = in0_4x4.at[v];
      const double cast_5 = (double)in0_4;
      const float in0_6 = in0_6x4.at[v];
      const double cast_7 = (double)in0_6;
      const float in0_8 = in0_8x4.at[v];
      const double cast_9 = (double)in0_8;
      const float in0_10 = in0_10x4.at[v];
      const double cast_11 = (double)in0_10;
      const float in0_12 = in0_12x4.at[v];
      const double cast_13 = (double)in0_12;
      const float in0_14 = in0_14x4.at[v];
      const double cast_15 = (double)in0_14;
      const double add_16 = __dadd_rn(cast_15, cast_13);
      const double add_17 = __dadd_rn(add_16, cast_11);
      const double add_18 = __dadd_rn(add_17, cast_9);
      const double add_19 = __dadd_rn(add_18, cast_7);
      const double add_20 = __dadd_rn(add_19, cast_5);
      const double add_21 = __dadd_rn(add_20, cast_3);
      const double add_22 = __dadd_rn(add_21, cast_1);
      const float cast_23 = (float)add_22;
      out1_24x4.at[v] = cast_23;
    }
    *(decltype(out1_24x4)*)(out1 + i0) = out1_24x4;
  }
}
