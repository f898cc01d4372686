// Decoding: any format, any row range or row list, to binary32, binary64 (NVFP4), BF16 or binary16.
//
// A warp takes one tile: 512 bytes of one row's base codes. It stages them (and the high bits) in shared memory
// with one 16-byte load a lane, then writes 512 output bytes a step, 16 a lane, neighbours side by side.
#include "kernels.cuh"

namespace ninfer_codec {
namespace {

// ---------------------------------------------------------------------------------------------------------------
// Output types: values a lane writes at once, and how binary32 values become one 16-byte chunk.

struct F32 {
    using Word = u32;
    static constexpr int values = 4;
    template <bool> __device__ static Chunk16 pack(const float* v) {
        return {{bits_of(v[0]), bits_of(v[1]), bits_of(v[2]), bits_of(v[3])}};
    }
    __device__ static u32 narrow(float v) { return bits_of(v); }
};
struct Bf16 {
    using Word = u16;
    static constexpr int values = 8;
    __device__ static u32 narrow(float v) { return bf16_from_f32(v); }
    // NANS: the values may hold NaNs.
    template <bool NANS> __device__ static Chunk16 pack(const float* v) {
        Chunk16 r;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            r.w[i] = NANS ? narrow(v[2 * i]) | narrow(v[2 * i + 1]) << 16 : narrow_bf16_pair(v[2 * i], v[2 * i + 1]);
        }
        return r;
    }
};
struct F16 {
    using Word = u16;
    static constexpr int values = 8;
    __device__ static u32 narrow(float v) { return f16_from_f32(v); }
    template <bool NANS> __device__ static Chunk16 pack(const float* v) {
        Chunk16 r;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            r.w[i] = NANS ? narrow(v[2 * i]) | narrow(v[2 * i + 1]) << 16 : narrow_f16_pair(v[2 * i], v[2 * i + 1]);
        }
        return r;
    }
};
struct F64 {
    using Word = u64;
    static constexpr int values = 2;
};

// Value i of a packed chunk.
template <class T> __device__ inline typename T::Word word_of(const Chunk16& c, int i) {
    if constexpr (sizeof(typename T::Word) == 8) return c.w[2 * i] | static_cast<u64>(c.w[2 * i + 1]) << 32;
    else if constexpr (sizeof(typename T::Word) == 4) return c.w[i];
    else return static_cast<u16>(c.w[i / 2] >> (16 * (i % 2)));
}

// ---------------------------------------------------------------------------------------------------------------
// Formats: from packed codes of T::values columns, the first at (row, column), to one chunk.

template <class F> struct GroupedCodes {
    static constexpr int base_bits = F::base_bits, high_bits = F::high_bits;
    template <class T> __device__ static Chunk16 chunk(const DecodeArgs& a, const void*, u64 row, u64 column, u64 base,
                                                       u32 high) {
        const u8* scale = a.payload + a.plan.scale_offset + row * a.plan.scale_row_bytes + column / F::group * 2;
        float v[T::values];
        decode_grouped<F, T::values>(base, high, widen_f16(load<u16>(scale)), v);
        return T::template pack<false>(v);
    }
};

struct Fp8Codes {
    static constexpr int base_bits = 8, high_bits = 0;
    template <class T> __device__ static Chunk16 chunk(const DecodeArgs& a, const void*, u64 row, u64, u64 base, u32) {
        const float scale = bf16_value(load<u16>(a.payload + a.plan.scale_offset + row * 2));
        float v[T::values];
#pragma unroll
        for (int i = 0; i < T::values; ++i) v[i] = fp8_row_value(static_cast<u32>(base >> (8 * i)) & 0xffu, scale);
        return T::template pack<true>(v);
    }
};

struct Bf16Words {
    static constexpr int base_bits = 16, high_bits = 0;
    template <class T> __device__ static Chunk16 chunk(const DecodeArgs&, const void*, u64, u64, u64 base, u32) {
        float v[T::values];
#pragma unroll
        for (int i = 0; i < T::values; ++i) v[i] = bf16_value(static_cast<u32>(base >> (16 * i)) & 0xffffu);
        return T::template pack<true>(v);
    }
};

// NVFP4 looks its values up: a block first divides each of 127 scales times 8 magnitudes by the divisor, once.
constexpr int nvfp4_table = 127 * 8;
struct Nvfp4Codes {
    static constexpr int base_bits = 4, high_bits = 0;
    template <class T> __device__ static Chunk16 chunk(const DecodeArgs& a, const void* table, u64 row, u64 column,
                                                       u64 base, u32) {
        using Word = typename T::Word;
        const u32 scale = a.payload[a.plan.scale_offset + swizzle(row, column / 16, a.plan.k / 64)];
        const Word* magnitudes = static_cast<const Word*>(table) + scale * 8;
        Chunk16 r{};
#pragma unroll
        for (int i = 0; i < T::values; ++i) {
            const u32 code = static_cast<u32>(base >> (4 * i)) & 15u;
            const u64 w = magnitudes[code & 7u] | static_cast<u64>(code >> 3) << (8 * sizeof(Word) - 1);
            const int bit = i * 8 * static_cast<int>(sizeof(Word));
            r.w[bit / 32] |= static_cast<u32>(w) << (bit % 32);
            if constexpr (sizeof(Word) == 8) r.w[bit / 32 + 1] = static_cast<u32>(w >> 32);
        }
        return r;
    }
};

// ---------------------------------------------------------------------------------------------------------------

// Reads BYTES (1, 2, 4 or 8) staged bytes; the offset is a multiple of BYTES.
template <int BYTES> __device__ inline u64 staged(const u8* p) {
    if constexpr (BYTES == 8) return *reinterpret_cast<const u64*>(p);
    else if constexpr (BYTES == 4) return *reinterpret_cast<const u32*>(p);
    else if constexpr (BYTES == 2) return *reinterpret_cast<const u16*>(p);
    else return *p;
}

template <class C, class T> __device__ inline void decode_rows(const DecodeArgs& a, const void* table) {
    using Word = typename T::Word;
    constexpr int values = T::values;
    constexpr u32 base_bytes = 16 * warp_lanes;
    constexpr u32 tile_columns = base_bytes * 8 / C::base_bits;
    constexpr u32 high_bytes = tile_columns * C::high_bits / 8;
    __shared__ Chunk16 stage[block_warps][(base_bytes + high_bytes) / 16];

    const u32 lane = threadIdx.x % warp_lanes, warp = threadIdx.x / warp_lanes;
    const u8* const codes = reinterpret_cast<const u8*>(stage[warp]);
    Walk w(static_cast<u64>(blockIdx.x) * block_warps + warp, static_cast<u64>(gridDim.x) * block_warps,
           (a.plan.k + tile_columns - 1) / tile_columns);
    for (; w.row < a.rows.count; w.next()) {
        const u64 row = a.rows.at(w.row);
        const u64 at = w.tile * base_bytes + lane * 16;
        if (at < a.plan.base_row_bytes) {
            stage[warp][lane] = load16(a.payload + row * a.plan.base_row_bytes + at, a.plan.base_row_bytes - at);
        }
        if constexpr (C::high_bits > 0) {
            const u64 high_at = w.tile * high_bytes + lane * 16;
            if (lane < high_bytes / 16 && high_at < a.plan.high_row_bytes) {
                stage[warp][warp_lanes + lane] =
                    load16(a.payload + a.plan.high_offset + row * a.plan.high_row_bytes + high_at,
                           a.plan.high_row_bytes - high_at);
            }
        }
        __syncwarp();
        const u64 first = w.tile * tile_columns;
        const u32 columns = a.plan.k - first < tile_columns ? static_cast<u32>(a.plan.k - first) : tile_columns;
        Word* const out = static_cast<Word*>(a.out) + w.row * a.stride + first;
        for (u32 c = lane * values; c < columns; c += warp_lanes * values) {
            const u64 base = staged<values * C::base_bits / 8>(codes + c * C::base_bits / 8);
            u32 high = 0;
            if constexpr (C::high_bits * values >= 8) {
                high = static_cast<u32>(staged<C::high_bits * values / 8>(codes + base_bytes + c * C::high_bits / 8));
            } else if constexpr (C::high_bits > 0) {
                high = static_cast<u32>(codes[base_bytes + c * C::high_bits / 8]) >> (c * C::high_bits % 8);
            }
            const Chunk16 v = C::template chunk<T>(a, table, row, first + c, base, high);
            if (columns - c >= values && aligned<Chunk16>(out + c)) {
                store16(reinterpret_cast<u8*>(out + c), v);
            } else {
#pragma unroll
                for (int i = 0; i < values; ++i) {
                    if (c + i < columns) out[c + i] = word_of<T>(v, i);
                }
            }
        }
        __syncwarp();
    }
}

template <class T> __device__ inline typename T::Word nvfp4_word(u32 code, u32 scale, float divisor) {
    if constexpr (sizeof(typename T::Word) == 8) return bits_of(nvfp4_value64(code, scale, divisor));
    else return static_cast<typename T::Word>(T::narrow(nvfp4_value(code, scale, divisor)));
}

template <class T> __device__ inline void decode_nvfp4(const DecodeArgs& a) {
    __shared__ typename T::Word table[nvfp4_table];
    const float divisor = float_from_bits(load<u32>(a.payload + a.plan.payload_bytes - 4));
    for (u32 i = threadIdx.x; i < nvfp4_table; i += block_threads) table[i] = nvfp4_word<T>(i % 8, i / 8, divisor);
    __syncthreads();
    decode_rows<Nvfp4Codes, T>(a, table);
}

}  // namespace

#define NINFER_CODEC_DECODE(NAME, BODY)                                                       \
    extern "C" __global__ void __launch_bounds__(block_threads) NAME(DecodeArgs a) {          \
        if (a.report->key == clean) BODY;                                                     \
    }
#define NINFER_CODEC_DECODE_TO(NAME, CODES)                                                   \
    NINFER_CODEC_DECODE(ninfer_codec_decode_##NAME##_f32, (decode_rows<CODES, F32>(a, nullptr)))   \
    NINFER_CODEC_DECODE(ninfer_codec_decode_##NAME##_bf16, (decode_rows<CODES, Bf16>(a, nullptr))) \
    NINFER_CODEC_DECODE(ninfer_codec_decode_##NAME##_f16, (decode_rows<CODES, F16>(a, nullptr)))

NINFER_CODEC_DECODE_TO(q4, GroupedCodes<Q4>)
NINFER_CODEC_DECODE_TO(q5, GroupedCodes<Q5>)
NINFER_CODEC_DECODE_TO(q6, GroupedCodes<Q6>)
NINFER_CODEC_DECODE_TO(w8, GroupedCodes<W8>)
NINFER_CODEC_DECODE_TO(fp8, Fp8Codes)
NINFER_CODEC_DECODE(ninfer_codec_decode_nvfp4_f32, (decode_nvfp4<F32>(a)))
NINFER_CODEC_DECODE(ninfer_codec_decode_nvfp4_bf16, (decode_nvfp4<Bf16>(a)))
NINFER_CODEC_DECODE(ninfer_codec_decode_nvfp4_f16, (decode_nvfp4<F16>(a)))
NINFER_CODEC_DECODE(ninfer_codec_decode_nvfp4_f64, (decode_nvfp4<F64>(a)))
NINFER_CODEC_DECODE(ninfer_codec_decode_bf16_f32, (decode_rows<Bf16Words, F32>(a, nullptr)))

}  // namespace ninfer_codec
