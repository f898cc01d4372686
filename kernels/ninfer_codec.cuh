// ninfer-codec on the device: the functions an engine inlines into its own kernels.
//
// Header only, CUDA C++17, every function __host__ __device__, no state, no allocation. Words and values have the
// bits of the host library under any compiler flag (see ninfer_codec_ptx.cuh). Sizes and offsets are in bytes,
// rows and columns count from zero, indices are 64-bit. Nothing here checks a word: validate the payload once
// (ninfer_codec_cuda_validate), then decode.
//
//   words      e2m1_value  e4m3fn_value  bf16_value  *_legal  *_from_f32
//   groups     decode16_q4 _q5 _q6 _w8 _fp8 _nvfp4: 16 bytes of codes to values
//   addresses  row_split_*  blockscale_*  row_scale_*
//   encoder    pick_scale  quantize_value  quantize_group  pack8
#pragma once

#include "ninfer_codec_ptx.cuh"

namespace ninfer_codec {

// ---------------------------------------------------------------------------------------------------------------
// What each format is. Spec: tensor-formats sections 1, 5; storage-layouts section 3.

// A grouped signed-integer format: BITS a code, GROUP codes a scale, HIGH bits a code in the high plane.
template <int BITS, int GROUP, int HIGH> struct Grouped {
    static constexpr int code_bits = BITS;
    static constexpr int group = GROUP;
    static constexpr int base_bits = BITS - HIGH;
    static constexpr int high_bits = HIGH;
    static constexpr int qmax = (1 << (BITS - 1)) - 1;
    static constexpr int qmin = BITS == 8 ? -qmax : -qmax - 1;
    static constexpr int base_group_bytes = GROUP * base_bits / 8;
    static constexpr int high_group_bytes = GROUP * HIGH / 8;
};
using Q4 = Grouped<4, 64, 0>;
using Q5 = Grouped<5, 64, 1>;
using Q6 = Grouped<6, 64, 2>;
using W8 = Grouped<8, 32, 0>;

// ---------------------------------------------------------------------------------------------------------------
// Words.

// Which scale and divisor words a decoder takes: zero (but for the divisor) or positive, and finite.
NINFER_CODEC_HD bool f16_scale_legal(u32 word) { return word < 0x7c00u; }
NINFER_CODEC_HD bool bf16_scale_legal(u32 word) { return word < 0x7f80u; }
NINFER_CODEC_HD bool e4m3fn_scale_legal(u32 word) { return word < 0x7fu; }
NINFER_CODEC_HD bool divisor_legal(u32 word) { return word - 1u < 0x7f7fffffu; }

// The value of an E2M1 word (low 4 bits), exact. Spec: tensor-formats 3.3.
NINFER_CODEC_HD float e2m1_value(u32 word) {
    return mul_rn(float_from_bits((word & 7u) << 22 | (word & 8u) << 28), 0x1p126f);
}

// The value of an E4M3FN word (low 8 bits), exact; 0x7fc00000 for either NaN word. Spec: tensor-formats 3.3.
NINFER_CODEC_HD float e4m3fn_value(u32 word) {
    const float v = mul_rn(float_from_bits((word & 0x7fu) << 20 | (word & 0x80u) << 24), 0x1p120f);
    return (word & 0x7fu) == 0x7fu ? float_from_bits(0x7fc00000u) : v;
}

// The value of a BF16 word, every bit kept. Spec: tensor-formats 3.1.
NINFER_CODEC_HD float bf16_value(u32 word) { return float_from_bits(word << 16); }

// Binary32 to BF16 or binary16, nearest even; a NaN keeps its sign and top payload bits and turns quiet.
NINFER_CODEC_HD u16 bf16_from_f32(float v) {
    const u32 b = bits_of(v);
    const u32 number = narrow_bf16_pair(v, v) & 0xffffu;
    return static_cast<u16>((b & 0x7fffffffu) > 0x7f800000u ? (b >> 16 | 0x40u) : number);
}
NINFER_CODEC_HD u16 f16_from_f32(float v) {
    const u32 b = bits_of(v);
    const u32 nan = (b >> 16 & 0x8000u) | 0x7e00u | (b >> 13 & 0x1ffu);
    return static_cast<u16>((b & 0x7fffffffu) > 0x7f800000u ? nan : narrow_f16(v));
}

// ---------------------------------------------------------------------------------------------------------------
// Codes to values.

// Signed code `lane` of packed base and high bits, lane 0 lowest.
template <class F> NINFER_CODEC_HD int grouped_code(u64 base, u32 high, int lane) {
    const u32 low = static_cast<u32>(base >> (lane * F::base_bits)) & ((1u << F::base_bits) - 1u);
    u32 word = low;
    if constexpr (F::high_bits > 0) {
        word |= (high >> (lane * F::high_bits) & ((1u << F::high_bits) - 1u)) << F::base_bits;
    }
    return static_cast<int>(word << (32 - F::code_bits)) >> (32 - F::code_bits);
}

// LANES grouped weights from packed bits: binary32(scale * code), exact. Spec: tensor-formats 6.2.
template <class F, int LANES> NINFER_CODEC_HD void decode_grouped(u64 base, u32 high, float scale, float* out) {
#pragma unroll
    for (int i = 0; i < LANES; ++i) out[i] = mul_rn(scale, static_cast<float>(grouped_code<F>(base, high, i)));
}

// 16 base bytes of one group, its high bits (lane 0 lowest) and its scale to 32 (W8: 16) values.
NINFER_CODEC_HD void decode16_q4(const Chunk16& base, float scale, float* out) {
#pragma unroll
    for (int i = 0; i < 4; ++i) decode_grouped<Q4, 8>(base.w[i], 0, scale, out + 8 * i);
}
NINFER_CODEC_HD void decode16_q5(const Chunk16& base, u32 high, float scale, float* out) {
#pragma unroll
    for (int i = 0; i < 4; ++i) decode_grouped<Q5, 8>(base.w[i], high >> (8 * i), scale, out + 8 * i);
}
NINFER_CODEC_HD void decode16_q6(const Chunk16& base, u64 high, float scale, float* out) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        decode_grouped<Q6, 8>(base.w[i], static_cast<u32>(high >> (16 * i)), scale, out + 8 * i);
    }
}
NINFER_CODEC_HD void decode16_w8(const Chunk16& base, float scale, float* out) {
#pragma unroll
    for (int i = 0; i < 4; ++i) decode_grouped<W8, 4>(base.w[i], 0, scale, out + 4 * i);
}

// One FP8 row weight: binary32(code * scale); 0x7fc00000 for a NaN code. Spec: tensor-formats 3.4.
NINFER_CODEC_HD float fp8_row_value(u32 code, float scale) {
    const float v = mul_rn(e4m3fn_value(code), scale);
    return (code & 0x7fu) == 0x7fu ? float_from_bits(0x7fc00000u) : v;
}
NINFER_CODEC_HD void decode16_fp8(const Chunk16& codes, float scale, float* out) {
#pragma unroll
    for (int i = 0; i < 16; ++i) out[i] = fp8_row_value(codes.w[i / 4] >> (8 * (i % 4)) & 0xffu, scale);
}

// One NVFP4 weight: the exact product of code and block scale, divided once by the divisor, in binary32 or
// binary64. Spec: tensor-formats 3.3, storage-layouts section 7.
NINFER_CODEC_HD float nvfp4_value(u32 code, u32 scale_word, float divisor) {
    return div_rn(mul_rn(e2m1_value(code), e4m3fn_value(scale_word)), divisor);
}
NINFER_CODEC_HD double nvfp4_value64(u32 code, u32 scale_word, float divisor) {
    return div_rn(widen(mul_rn(e2m1_value(code), e4m3fn_value(scale_word))), widen(divisor));
}
// 16 code bytes are two groups of 16; scale words `first` and `second`.
NINFER_CODEC_HD void decode16_nvfp4(const Chunk16& codes, u32 first, u32 second, float divisor, float* out) {
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        out[i] = nvfp4_value(codes.w[i / 8] >> (4 * (i % 8)) & 15u, i < 16 ? first : second, divisor);
    }
}

// ---------------------------------------------------------------------------------------------------------------
// Addresses inside a payload, in bytes. The shape is taken as checked (no overflow).

NINFER_CODEC_HD u64 align_up(u64 x, u64 a) { return (x + a - 1) / a * a; }

// row-split-k128-v1. Spec: storage-layouts section 3.
template <class F> struct RowSplit {
    u64 n, k;
    NINFER_CODEC_HD u64 k_pad() const { return align_up(k, 128); }
    NINFER_CODEC_HD u64 groups_per_row() const { return k_pad() / F::group; }
    NINFER_CODEC_HD u64 logical_groups() const { return (k + F::group - 1) / F::group; }
    NINFER_CODEC_HD u64 base_row_bytes() const { return groups_per_row() * F::base_group_bytes; }
    NINFER_CODEC_HD u64 high_row_bytes() const { return groups_per_row() * F::high_group_bytes; }
    NINFER_CODEC_HD u64 scale_row_bytes() const { return groups_per_row() * 2; }
    NINFER_CODEC_HD u64 high_offset() const { return align_up(n * base_row_bytes(), 256); }
    NINFER_CODEC_HD u64 scale_offset() const { return high_offset() + align_up(n * high_row_bytes(), 256); }
    NINFER_CODEC_HD u64 payload_bytes() const { return scale_offset() + n * scale_row_bytes(); }
    NINFER_CODEC_HD u64 base_at(u64 row, u64 group) const {
        return row * base_row_bytes() + group * F::base_group_bytes;
    }
    NINFER_CODEC_HD u64 high_at(u64 row, u64 group) const {
        return high_offset() + row * high_row_bytes() + group * F::high_group_bytes;
    }
    NINFER_CODEC_HD u64 scale_at(u64 row, u64 group) const {
        return scale_offset() + row * scale_row_bytes() + group * 2;
    }
};

// blockscale-k16-m128x4-v1. Spec: storage-layouts section 4.
NINFER_CODEC_HD u64 swizzle(u64 row, u64 group, u64 k_tiles) {
    return ((row / 128) * k_tiles + group / 4) * 512 + (row % 32) * 16 + ((row % 128) / 32) * 4 + group % 4;
}
struct BlockScale {
    u64 n, k;
    NINFER_CODEC_HD u64 k_tiles() const { return k / 64; }
    NINFER_CODEC_HD u64 scale_offset() const { return align_up(n * k / 2, 256); }
    NINFER_CODEC_HD u64 divisor_offset() const { return scale_offset() + n * k / 16; }
    NINFER_CODEC_HD u64 payload_bytes() const { return divisor_offset() + 4; }
    NINFER_CODEC_HD u64 code_at(u64 row, u64 column) const { return (row * k + column) / 2; }
    NINFER_CODEC_HD u64 scale_at(u64 row, u64 group) const { return scale_offset() + swizzle(row, group, k_tiles()); }
};

// row-scale-v1. Spec: storage-layouts section 5.
struct RowScale {
    u64 n, k;
    NINFER_CODEC_HD u64 scale_offset() const { return align_up(n * k, 256); }
    NINFER_CODEC_HD u64 payload_bytes() const { return scale_offset() + 2 * n; }
    NINFER_CODEC_HD u64 code_at(u64 row, u64 column) const { return row * k + column; }
    NINFER_CODEC_HD u64 scale_at(u64 row) const { return scale_offset() + 2 * row; }
};

// ---------------------------------------------------------------------------------------------------------------
// The canonical encoder MAXABS_F16_RECIP_RNE_V1, in the contract's order. Spec: tensor-formats 7.2.

enum class Pick : u32 { ok, non_finite, scale_overflow };

// A group's scale: the word to store, its reciprocal for quantize_value, and whether the group can be stored.
struct Scale {
    Pick pick;
    u16 word;
    float inverse;
};

// From the largest magnitude of the group, given as binary32 bits (at or above 0x7f800000: not finite).
template <class F> NINFER_CODEC_HD Scale pick_scale(u32 amax_bits) {
    if (amax_bits == 0) return {Pick::ok, 0, 0.0f};
    if (amax_bits >= 0x7f800000u) return {Pick::non_finite, 0, 0.0f};
    u16 word = narrow_f16(div_rn(float_from_bits(amax_bits), static_cast<float>(F::qmax)));
    if (word == 0) word = 1;
    if (word >= 0x7c00u) return {Pick::scale_overflow, 0, 0.0f};
    return {Pick::ok, word, div_rn(1.0f, widen_f16(word))};
}

// The code of a finite value under a scale's reciprocal (0 under the zero scale).
template <class F> NINFER_CODEC_HD int quantize_value(float x, float inverse) {
    const int q = round_even(mul_rn(x, inverse));
    return q < F::qmin ? F::qmin : q > F::qmax ? F::qmax : q;
}

// Up to F::group finite binary32 values of one logical group to codes and a scale word; on failure only the
// result's `pick` is of use and `codes` is untouched.
template <class F> NINFER_CODEC_HD Scale quantize_group(const float* x, int count, signed char* codes) {
    u32 amax = 0;
    for (int i = 0; i < count; ++i) {
        const u32 magnitude = bits_of(x[i]) & 0x7fffffffu;
        amax = magnitude > amax ? magnitude : amax;
    }
    const Scale s = pick_scale<F>(amax);
    if (s.pick == Pick::ok) {
        for (int i = 0; i < count; ++i) codes[i] = static_cast<signed char>(quantize_value<F>(x[i], s.inverse));
    }
    return s;
}

// Eight codes packed: base bits of code 0 lowest (32 or 64 bits), high bits of code 0 lowest (0, 8 or 16 bits).
struct Packed8 {
    u64 base;
    u32 high;
};
template <class F> NINFER_CODEC_HD Packed8 pack8(const int* codes) {
    Packed8 p{0, 0};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const u32 u = static_cast<u32>(codes[i]) & ((1u << F::code_bits) - 1u);
        p.base |= static_cast<u64>(u & ((1u << F::base_bits) - 1u)) << (i * F::base_bits);
        if constexpr (F::high_bits > 0) p.high |= (u >> F::base_bits) << (i * F::high_bits);
    }
    return p;
}

}  // namespace ninfer_codec
