// program for sm_90
//   status status int64[8] 64 bytes
//   arena arena 560128 bytes
//   input x float32[100, 700] 280000 bytes
//   output result0 float32[100, 700] 280000 bytes
//    0  launch k0_exp<<<69, (256, 1)>>>(in0 = x float32[70000], out1 = arena float32[70000])
//    1  launch k1_add<<<69, (256, 1)>>>(in0 = arena float32[70000], out1 = arena+280064 float32[70000])
//    2  launch k2_add<<<69, (256, 1)>>>(in0 = arena+280064 float32[70000], out1 = arena float32[70000])
//    3  launch k3_log<<<69, (256, 1)>>>(in0 = arena float32[70000], out1 = result0 float32[70000])
// pointwise: a thread per point, 4 elements at once; 69 blocks of 256 points
// pointwise: a thread per point, 4 elements at once; 69 blocks of 256 points
// pointwise: a thread per point, 4 elements at once; 69 blocks of 256 points
// pointwise: a thread per point, 4 elements at once; 69 blocks of 256 points
extern "C" __global__ void __launch_bounds__(256) k0_exp(const float* __restrict__ in0, float* __restrict__ out1) {
  const int item = (int)blockIdx.x * 256 + threadIdx.x;
  if (item >= 17500) return;
  const int i0 = item * 4;
  {
    const Pack<float, 4> in0_0x4 = *(const Pack<float, 4>*)(in0 + i0);
    Pack<float, 4> out1_2x4;
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
      const float in0_0 = in0_0x4.at[v];
      const float exp_1 = expf(in0_0);
      out1_2x4.at[v] = exp_1;
    }
    *(decltype(out1_2x4)*)(out1 + i0) = out1_2x4;
  }
}

// slice, pad, add
extern "C" __global__ void __launch_bounds__(256) k1_add(const float* __restrict__ in0, float* __restrict__ out1) {
  const int item = (int)blockIdx.x * 256 + threadIdx.x;
  if (item >= 17500) return;
  const int i1 = (item % 175) * 4;
  const int i0 = item / 175;
  {
    const Pack<float, 4> in0_26x4 = *(const Pack<float, 4>*)(in0 + i0 * 700 + i1);
    Pack<float, 4> out1_30x4;
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
      const float in0_0 = (i1 + v) - 4 >= 0 && (i1 + v) - 6 >= 0 && (i1 + v) - 7 >= 0 ? in0[i0 * 700 + (i1 + v) - 7] : 0.0f;
      const bool condition_2 = (i1 + v) - 7 >= 0;
      const float where_3 = condition_2 ? in0_0 : 0.0f;
      const float in0_4 = (i1 + v) - 4 >= 0 && (i1 + v) - 6 >= 0 ? in0[i0 * 700 + (i1 + v) - 6] : 0.0f;
      const float add_5 = __fadd_rn(in0_4, where_3);
      const bool condition_6 = (i1 + v) - 6 >= 0;
      const float where_7 = condition_6 ? add_5 : 0.0f;
      const float in0_8 = (i1 + v) - 4 >= 0 && (i1 + v) - 5 >= 0 ? in0[i0 * 700 + (i1 + v) - 5] : 0.0f;
      const bool condition_9 = (i1 + v) - 5 >= 0;
      const float where_10 = condition_9 ? in0_8 : 0.0f;
      const float in0_11 = (i1 + v) - 4 >= 0 ? in0[i0 * 700 + (i1 + v) - 4] : 0.0f;
      const float add_12 = __fadd_rn(in0_11, where_10);
      const float add_13 = __fadd_rn(add_12, where_7);
      const bool condition_14 = (i1 + v) - 4 >= 0;
      const float where_15 = condition_14 ? add_13 : 0.0f;
      const float in0_16 = (i1 + v) - 2 >= 0 && (i1 + v) - 3 >= 0 ? in0[i0 * 700 + (i1 + v) - 3] : 0.0f;
      const bool condition_17 = (i1 + v) - 3 >= 0;
      const float where_18 = condition_17 ? in0_16 : 0.0f;
      const float in0_19 = (i1 + v) - 2 >= 0 ? in0[i0 * 700 + (i1 + v) - 2] : 0.0f;
      const float add_20 = __fadd_rn(in0_19, where_18);
      const bool condition_21 = (i1 + v) - 2 >= 0;
      const float where_22 = condition_21 ? add_20 : 0.0f;
      const float in0_23 = (i1 + v) - 1 >= 0 ? in0[i0 * 700 + (i1 + v) - 1] : 0.0f;
      const bool condition_24 = (i1 + v) - 1 >= 0;
      const float where_25 = condition_24 ? in0_23 : 0.0f;
      const float in0_26 = in0_26x4.at[v];
      const float add_27 = __fadd_rn(in0_26, where_25);
      const float add_28 = __fadd_rn(add_27, where_22);
      const float add_29 = __fadd_rn(add_28, where_15);
      out1_30x4.at[v] = add_29;
    }
    *(decltype(out1_30x4)*)(out1 + i0 * 700 + i1) = out1_30x4;
  }
}

// slice, pad, add
extern "C" __global__ void __launch_bounds__(256) k2_add(const float* __restrict__ in0, float* __restrict__ out1) {
  const int item = (int)blockIdx.x * 256 + threadIdx.x;
  if (item >= 17500) return;
  const int i1 = (item % 175) * 4;
  const int i0 = item / 175;
  {
    const Pack<float, 4> in0_26x4 = *(const Pack<float, 4>*)(in0 + i0 * 700 + i1);
    Pack<float, 4> out1_30x4;
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
      const float in0_0 = (i1 + v) - 32 >= 0 && (i1 + v) - 48 >= 0 && (i1 + v) - 56 >= 0 ? in0[i0 * 700 + (i1 + v) - 56] : 0.0f;
      const bool condition_2 = (i1 + v) - 56 >= 0;
      const float where_3 = condition_2 ? in0_0 : 0.0f;
      const float in0_4 = (i1 + v) - 32 >= 0 && (i1 + v) - 48 >= 0 ? in0[i0 * 700 + (i1 + v) - 48] : 0.0f;
      const float add_5 = __fadd_rn(in0_4, where_3);
      const bool condition_6 = (i1 + v) - 48 >= 0;
      const float where_7 = condition_6 ? add_5 : 0.0f;
      const float in0_8 = (i1 + v) - 32 >= 0 && (i1 + v) - 40 >= 0 ? in0[i0 * 700 + (i1 + v) - 40] : 0.0f;
      const bool condition_9 = (i1 + v) - 40 >= 0;
      const float where_10 = condition_9 ? in0_8 : 0.0f;
      const float in0_11 = (i1 + v) - 32 >= 0 ? in0[i0 * 700 + (i1 + v) - 32] : 0.0f;
      const float add_12 = __fadd_rn(in0_11, where_10);
      const float add_13 = __fadd_rn(add_12, where_7);
      const bool condition_14 = (i1 + v) - 32 >= 0;
      const float where_15 = condition_14 ? add_13 : 0.0f;
      const float in0_16 = (i1 + v) - 16 >= 0 && (i1 + v) - 24 >= 0 ? in0[i0 * 700 + (i1 + v) - 24] : 0.0f;
      const bool condition_17 = (i1 + v) - 24 >= 0;
      const float where_18 = condition_17 ? in0_16 : 0.0f;
      const float in0_19 = (i1 + v) - 16 >= 0 ? in0[i0 * 700 + (i1 + v) - 16] : 0.0f;
      const float add_20 = __fadd_rn(in0_19, where_18);
      const bool condition_21 = (i1 + v) - 16 >= 0;
      const float where_22 = condition_21 ? add_20 : 0.0f;
      const float in0_23 = (i1 + v) - 8 >= 0 ? in0[i0 * 700 + (i1 + v) - 8] : 0.0f;
      const bool condition_24 = (i1 + v) - 8 >= 0;
      const float where_25 = condition_24 ? in0_23 : 0.0f;
      const float in0_26 = in0_26x4.at[v];
      const float add_27 = __fadd_rn(in0_26, where_25);
      const float add_28 = __fadd_rn(add_27, where_22);
      const float add_29 = __fadd_rn(add_28, where_15);
      out1_30x4.at[v] = add_29;
    }
    *(decltype(out1_30x4)*)(out1 + i0 * 700 + i1) = out1_30x4;
  }
}

// slice, pad, add, log
extern "C" __global__ void __launch_bounds__(256) k3_log(const float* __restrict__ in0, float* __restrict__ out1) {
  const int item = (int)blockIdx.x * 256 + threadIdx.x;
  if (item >= 17500) return;
  const int i1 = (item % 175) * 4;
  const int i0 = item / 175;
  {
    const Pack<float, 4> in0_39x4 = *(const Pack<float, 4>*)(in0 + i0 * 700 + i1);
    Pack<float, 4> out1_45x4;
    #pragma unroll
    for (int v = 0; v < 4; ++v) {
      const float in0_1 = (i1 + v) - 512 >= 0 && (i1 + v) - 640 >= 0 ? in0[i0 * 700 + (i1 + v) - 640] : 0.0f;
      const float add_2 = __fadd_rn(in0_1, 0.0f);
      const bool condition_3 = (i1 + v) - 640 >= 0;
      const float where_4 = condition_3 ? add_2 : 0.0f;
      const float in0_5 = (i1 + v) - 512 >= 0 && (i1 + v) - 576 >= 0 ? in0[i0 * 700 + (i1 + v) - 576] : 0.0f;
      const bool condition_6 = (i1 + v) - 576 >= 0;
      const float where_7 = condition_6 ? in0_5 : 0.0f;
      const float in0_8 = (i1 + v) - 512 >= 0 ? in0[i0 * 700 + (i1 + v) - 512] : 0.0f;
      const float add_9 = __fadd_rn(in0_8, where_7);
      const float add_10 = __fadd_rn(add_9, where_4);
      const float add_11 = __fadd_rn(add_10, 0.0f);
      const bool condition_12 = (i1 + v) - 512 >= 0;
      const float where_13 = condition_12 ? add_11 : 0.0f;
      const float in0_14 = (i1 + v) - 256 >= 0 && (i1 + v) - 384 >= 0 && (i1 + v) - 448 >= 0 ? in0[i0 * 700 + (i1 + v) - 448] : 0.0f;
      const bool condition_15 = (i1 + v) - 448 >= 0;
      const float where_16 = condition_15 ? in0_14 : 0.0f;
      const float in0_17 = (i1 + v) - 256 >= 0 && (i1 + v) - 384 >= 0 ? in0[i0 * 700 + (i1 + v) - 384] : 0.0f;
      const float add_18 = __fadd_rn(in0_17, where_16);
      const bool condition_19 = (i1 + v) - 384 >= 0;
      const float where_20 = condition_19 ? add_18 : 0.0f;
      const float in0_21 = (i1 + v) - 256 >= 0 && (i1 + v) - 320 >= 0 ? in0[i0 * 700 + (i1 + v) - 320] : 0.0f;
      const bool condition_22 = (i1 + v) - 320 >= 0;
      const float where_23 = condition_22 ? in0_21 : 0.0f;
      const float in0_24 = (i1 + v) - 256 >= 0 ? in0[i0 * 700 + (i1 + v) - 256] : 0.0f;
      const float add_25 = __fadd_rn(in0_24, where_23);
      const float add_26 = __fadd_rn(add_25, where_20);
      const bool condition_27 = (i1 + v) - 256 >= 0;
      const float where_28 = condition_27 ? add_26 : 0.0f;
      const float in0_29 = (i1 + v) - 128 >= 0 && (i1 + v) - 192 >= 0 ? in0[i0 * 700 + (i1 + v) - 192] : 0.0f;
      const bool condition_30 = (i1 + v) - 192 >= 0;
      const float where_31 = condition_30 ? in0_29 : 0.0f;
      const float in0_32 = (i1 + v) - 128 >= 0 ? in0[i0 * 700 + (i1 + v) - 128] : 0.0f;
      const float add_33 = __fadd_rn(in0_32, where_31);
      const bool condition_34 = (i1 + v) - 128 >= 0;
      const float where_35 = condition_34 ? add_33 : 0.0f;
      const float in0_36 = (i1 + v) - 64 >= 0 ? in0[i0 * 700 + (i1 + v) - 64] : 0.0f;
      const bool condition_37 = (i1 + v) - 64 >= 0;
      const float where_38 = condition_37 ? in0_36 : 0.0f;
      const float in0_39 = in0_39x4.at[v];
      const float add_40 = __fadd_rn(in0_39, where_38);
      const float add_41 = __fadd_rn(add_40, where_35);
      const float add_42 = __fadd_rn(add_41, where_28);
      const float add_43 = __fadd_rn(add_42, where_13);
      const float log_44 = logf(add_43);
      out1_45x4.at[v] = log_44;
    }
    *(decltype(out1_45x4)*)(out1 + i0 * 700 + i1) = out1_45x4;
  }
}
