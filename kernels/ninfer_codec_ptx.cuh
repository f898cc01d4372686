// The few operations whose bits depend on compiler flags, as inline PTX.
//
// Under -ftz=true, -prec-div=false, -fmad=true or --use_fast_math the compiler may flush subnormals, divide
// approximately or contract. The instructions below carry their own rounding and never flush. This is the only
// file that looks at __CUDA_ARCH__; its host side is the same IEEE operation in the default rounding mode.
#pragma once

#if !defined(__CUDACC_RTC__)
#include <cmath>
#include <cstring>
#endif
#if defined(__CUDACC__)
#define NINFER_CODEC_HD __host__ __device__ __forceinline__
#else
#define NINFER_CODEC_HD inline
#endif

namespace ninfer_codec {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
struct alignas(16) Chunk16 { u32 w[4]; };
static_assert(sizeof(u16) == 2 && sizeof(u32) == 4 && sizeof(u64) == 8, "word sizes");

// One operation: its device instruction (result and operands as for asm) and its host twin.
#if defined(__CUDA_ARCH__)
#if __CUDA_ARCH__ < 800
#error "ninfer_codec needs compute capability 8.0 or later"
#endif
#define NINFER_CODEC_OP(TYPE, NAME, PARAMS, HOST, CODE, RESULT, ...) \
    NINFER_CODEC_HD TYPE NAME PARAMS { TYPE r; asm(CODE : RESULT(r) : __VA_ARGS__); return r; }
#else
#define NINFER_CODEC_OP(TYPE, NAME, PARAMS, HOST, CODE, RESULT, ...) \
    NINFER_CODEC_HD TYPE NAME PARAMS { return HOST; }

template <class To, class From> NINFER_CODEC_HD To bit_copy(From a) {
    static_assert(sizeof(To) == sizeof(From), "same width");
    To r;
    memcpy(&r, &a, sizeof r);
    return r;
}
NINFER_CODEC_HD float host_widen_f16(u32 h) {
    const float m = bit_copy<float>((h & 0x7fffu) << 13 | (h & 0x8000u) << 16);
    return (h & 0x7c00u) == 0x7c00u ? bit_copy<float>(bit_copy<u32>(m) | 0x7f800000u) : m * 0x1p112f;
}
NINFER_CODEC_HD u32 host_narrow_f16(u32 bits) {
    const u32 sign = bits >> 16 & 0x8000u, x = bits & 0x7fffffffu;
    if (x >= 0x47800000u) return sign | 0x7c00u;
    if (x < 0x38800000u) return sign | static_cast<u32>(nearbyintf(bit_copy<float>(x) * 0x1p24f));
    return sign | ((x - 0x38000000u + 0xfffu + (x >> 13 & 1u)) >> 13);
}
NINFER_CODEC_HD u32 host_narrow_bf16(u32 bits) { return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16; }
#endif

// Bits of a float and back.
NINFER_CODEC_OP(float, float_from_bits, (u32 a), bit_copy<float>(a), "mov.b32 %0, %1;", "=f", "r"(a))
NINFER_CODEC_OP(u32, bits_of, (float a), bit_copy<u32>(a), "mov.b32 %0, %1;", "=r", "f"(a))
NINFER_CODEC_OP(u64, bits_of, (double a), bit_copy<u64>(a), "mov.b64 %0, %1;", "=l", "d"(a))
// Product and quotient rounded once to nearest even, subnormals kept.
NINFER_CODEC_OP(float, mul_rn, (float a, float b), a * b, "mul.rn.f32 %0, %1, %2;", "=f", "f"(a), "f"(b))
NINFER_CODEC_OP(float, div_rn, (float a, float b), a / b, "div.rn.f32 %0, %1, %2;", "=f", "f"(a), "f"(b))
NINFER_CODEC_OP(double, div_rn, (double a, double b), a / b, "div.rn.f64 %0, %1, %2;", "=d", "d"(a), "d"(b))
// Exact widening (a binary16 NaN stays a NaN; its payload is not promised).
NINFER_CODEC_OP(double, widen, (float a), static_cast<double>(a), "cvt.f64.f32 %0, %1;", "=d", "f"(a))
NINFER_CODEC_OP(float, widen_f16, (u16 a), host_widen_f16(a), "cvt.f32.f16 %0, %1;", "=f", "h"(a))
// Narrowing of numbers and infinities (not NaN) to nearest even; of a pair, the first value in the low half.
NINFER_CODEC_OP(u16, narrow_f16, (float a), static_cast<u16>(host_narrow_f16(bits_of(a))), "cvt.rn.f16.f32 %0, %1;",
                "=h", "f"(a))
NINFER_CODEC_OP(u32, narrow_f16_pair, (float a, float b),
                host_narrow_f16(bits_of(a)) | host_narrow_f16(bits_of(b)) << 16, "cvt.rn.f16x2.f32 %0, %2, %1;", "=r",
                "f"(a), "f"(b))
NINFER_CODEC_OP(u32, narrow_bf16_pair, (float a, float b),
                host_narrow_bf16(bits_of(a)) | host_narrow_bf16(bits_of(b)) << 16, "cvt.rn.bf16x2.f32 %0, %2, %1;",
                "=r", "f"(a), "f"(b))
// Nearest integer, ties to even, of a value inside the range of int.
NINFER_CODEC_OP(int, round_even, (float a), static_cast<int>(nearbyintf(a)), "cvt.rni.s32.f32 %0, %1;", "=r", "f"(a))

}  // namespace ninfer_codec
