// The names of all kernels. Each takes one struct by value and a one-dimensional grid of block_threads threads.
#pragma once

#include "common.cuh"

#define NINFER_CODEC_KERNELS(X)                                                                                  \
    X(decode_q4_f32, DecodeArgs) X(decode_q4_bf16, DecodeArgs) X(decode_q4_f16, DecodeArgs)                      \
    X(decode_q5_f32, DecodeArgs) X(decode_q5_bf16, DecodeArgs) X(decode_q5_f16, DecodeArgs)                      \
    X(decode_q6_f32, DecodeArgs) X(decode_q6_bf16, DecodeArgs) X(decode_q6_f16, DecodeArgs)                      \
    X(decode_w8_f32, DecodeArgs) X(decode_w8_bf16, DecodeArgs) X(decode_w8_f16, DecodeArgs)                      \
    X(decode_fp8_f32, DecodeArgs) X(decode_fp8_bf16, DecodeArgs) X(decode_fp8_f16, DecodeArgs)                   \
    X(decode_nvfp4_f32, DecodeArgs) X(decode_nvfp4_bf16, DecodeArgs) X(decode_nvfp4_f16, DecodeArgs)             \
    X(decode_nvfp4_f64, DecodeArgs) X(decode_bf16_f32, DecodeArgs)                                               \
    X(check_rows, DecodeArgs) X(check_grouped_q, DecodeArgs) X(check_grouped_w8, DecodeArgs)                     \
    X(check_fp8, DecodeArgs) X(check_nvfp4, DecodeArgs)                                                          \
    X(quantize_q4_f32, QuantizeArgs) X(quantize_q4_bf16, QuantizeArgs) X(quantize_q4_f16, QuantizeArgs)          \
    X(quantize_q5_f32, QuantizeArgs) X(quantize_q5_bf16, QuantizeArgs) X(quantize_q5_f16, QuantizeArgs)          \
    X(quantize_q6_f32, QuantizeArgs) X(quantize_q6_bf16, QuantizeArgs) X(quantize_q6_f16, QuantizeArgs)          \
    X(quantize_w8_f32, QuantizeArgs) X(quantize_w8_bf16, QuantizeArgs) X(quantize_w8_f16, QuantizeArgs)          \
    X(validate_q4, DecodeArgs) X(validate_q5, DecodeArgs) X(validate_q6, DecodeArgs) X(validate_w8, DecodeArgs)  \
    X(validate_fp8, DecodeArgs) X(validate_nvfp4, DecodeArgs)                                                    \
    X(copy_rows_16, CopyArgs) X(copy_rows_4, CopyArgs) X(copy_rows_1, CopyArgs)                                  \
    X(gather_scales, SwizzleArgs) X(swizzle_scales, SwizzleArgs) X(unswizzle_scales, SwizzleArgs)                \
    X(explain, ExplainArgs)

namespace ninfer_codec {
#define NINFER_CODEC_DECLARE(NAME, ARGS) extern "C" __global__ void ninfer_codec_##NAME(ARGS);
NINFER_CODEC_KERNELS(NINFER_CODEC_DECLARE)
#undef NINFER_CODEC_DECLARE
}  // namespace ninfer_codec
