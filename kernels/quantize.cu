// The canonical encoder: binary32, BF16 or binary16 rows to row-split payload rows, one pass.
//
// A lane takes 8 neighbouring columns, so 8 lanes share a group of 64 and 4 a group of 32; they find the largest
// magnitude with shuffles. Columns at or past K count as zero: that gives the canonical padding.
#include "kernels.cuh"

namespace ninfer_codec {
namespace {

constexpr int lane_columns = 8;
constexpr u32 tile_columns = lane_columns * warp_lanes;

// Source types: 8 values, from column 0 of `p` on, as binary32.
struct FromF32 {
    using Word = u32;
    __device__ static float value(u32 w) { return float_from_bits(w); }
    __device__ static void load8(const u32* p, float* v) {
        const Chunk16 low = load16(reinterpret_cast<const u8*>(p), 16);
        const Chunk16 high = load16(reinterpret_cast<const u8*>(p + 4), 16);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            v[i] = value(low.w[i]);
            v[4 + i] = value(high.w[i]);
        }
    }
};
template <class Self> struct From16 {
    using Word = u16;
    __device__ static void load8(const u16* p, float* v) {
        const Chunk16 c = load16(reinterpret_cast<const u8*>(p), 16);
#pragma unroll
        for (int i = 0; i < 8; ++i) v[i] = Self::value(c.w[i / 2] >> (16 * (i % 2)) & 0xffffu);
    }
};
struct FromBf16 : From16<FromBf16> {
    __device__ static float value(u32 w) { return bf16_value(w); }
};
struct FromF16 : From16<FromF16> {
    __device__ static float value(u32 w) { return widen_f16(static_cast<u16>(w)); }
};

__device__ inline u32 magnitude(float v) { return bits_of(v) & 0x7fffffffu; }

template <class F, class S> __device__ inline void quantize_rows(const QuantizeArgs& a) {
    constexpr int group_lanes = F::group / lane_columns;
    const u64 k = a.plan.k, k_pad = align_up(k, 128), groups = (k + F::group - 1) / F::group;
    const u32 lane = threadIdx.x % warp_lanes;
    Walk w(static_cast<u64>(blockIdx.x) * block_warps + threadIdx.x / warp_lanes,
           static_cast<u64>(gridDim.x) * block_warps, (k_pad + tile_columns - 1) / tile_columns);
    for (; w.row < a.rows.count; w.next()) {
        const u64 column = w.tile * tile_columns + lane * lane_columns;
        const typename S::Word* const source =
            static_cast<const typename S::Word*>(a.source) + w.row * a.stride + column;
        float x[lane_columns];
        if (column + lane_columns <= k && aligned<Chunk16>(source)) {
            S::load8(source, x);
        } else {
#pragma unroll
            for (int i = 0; i < lane_columns; ++i) x[i] = column + i < k ? S::value(source[i]) : 0.0f;
        }

        u32 own = 0;
#pragma unroll
        for (int i = 0; i < lane_columns; ++i) own = magnitude(x[i]) > own ? magnitude(x[i]) : own;
        u32 amax = own;
#pragma unroll
        for (int distance = 1; distance < group_lanes; distance *= 2) {
            const u32 other = __shfl_xor_sync(0xffffffffu, amax, distance);
            amax = other > amax ? other : amax;
        }
        const Scale scale = pick_scale<F>(amax);
        if (column >= k_pad) continue;

        const u64 group = column / F::group;
        if (scale.pick != Pick::ok) {
            u64 place = quantize_overflow;
            if (scale.pick == Pick::non_finite) {
                if (own < 0x7f800000u) continue;
#pragma unroll
                for (int i = lane_columns - 1; i >= 0; --i) {
                    if (magnitude(x[i]) >= 0x7f800000u) place = column % F::group + i;
                }
            }
            report_key(a.report, 0, (w.row * groups + group) * quantize_places + place);
            continue;
        }

        int codes[lane_columns];
#pragma unroll
        for (int i = 0; i < lane_columns; ++i) codes[i] = quantize_value<F>(x[i], scale.inverse);
        const Packed8 packed = pack8<F>(codes);
        const u64 row = a.rows.begin + w.row;
        u8* const base = a.payload + row * a.plan.base_row_bytes + column * F::base_bits / 8;
        if constexpr (F::base_bits == 8) store<u64>(base, packed.base);
        else store<u32>(base, static_cast<u32>(packed.base));
        if constexpr (F::high_bits > 0) {
            u8* const high = a.payload + a.plan.high_offset + row * a.plan.high_row_bytes + column * F::high_bits / 8;
            if constexpr (F::high_bits == 1) *high = static_cast<u8>(packed.high);
            else store<u16>(high, static_cast<u16>(packed.high));
        }
        if (lane % group_lanes == 0) {
            store<u16>(a.payload + a.plan.scale_offset + row * a.plan.scale_row_bytes + group * 2, scale.word);
        }
    }
}

}  // namespace

#define NINFER_CODEC_QUANTIZE(NAME, FORMAT)                                                                          \
    extern "C" __global__ void __launch_bounds__(block_threads) ninfer_codec_quantize_##NAME##_f32(QuantizeArgs a) {  \
        quantize_rows<FORMAT, FromF32>(a);                                                                           \
    }                                                                                                                \
    extern "C" __global__ void __launch_bounds__(block_threads) ninfer_codec_quantize_##NAME##_bf16(QuantizeArgs a) { \
        quantize_rows<FORMAT, FromBf16>(a);                                                                          \
    }                                                                                                                \
    extern "C" __global__ void __launch_bounds__(block_threads) ninfer_codec_quantize_##NAME##_f16(QuantizeArgs a) {  \
        quantize_rows<FORMAT, FromF16>(a);                                                                           \
    }

NINFER_CODEC_QUANTIZE(q4, Q4)
NINFER_CODEC_QUANTIZE(q5, Q5)
NINFER_CODEC_QUANTIZE(q6, Q6)
NINFER_CODEC_QUANTIZE(w8, W8)

}  // namespace ninfer_codec
