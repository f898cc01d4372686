// Looking at words: the scales and row numbers a decode depends on, and the whole payload.
//
// A thread that meets a violation reports its key; the least key wins, so the outcome does not depend on the order
// in which threads run. Keys are made here and read in explain.cu.
#include "kernels.cuh"

namespace ninfer_codec {
namespace {

// Walks (row of the range or list, group or K tile) over the scale plane's rows; CHECK(row, item) is true where
// the words there are legal.
template <class Legal> __device__ inline void check_scales(const DecodeArgs& a, u64 items, u64 key_step, Legal legal) {
    Walk w(thread_index(), thread_count(), items);
    for (; w.row < a.rows.count; w.next()) {
        const u64 row = a.rows.at(w.row);
        if (row >= a.plan.n) continue;  // check_rows reports it
        const int bad = legal(row, w.tile);
        if (bad >= 0) report_key(a.report, decode_scales_phase, (w.row * items + w.tile) * key_step + bad);
    }
}

template <int GROUP> __device__ inline void check_grouped(const DecodeArgs& a) {
    check_scales(a, (a.plan.k + GROUP - 1) / GROUP, 1, [&](u64 row, u64 group) {
        const u8* p = a.payload + a.plan.scale_offset + row * a.plan.scale_row_bytes + group * 2;
        return f16_scale_legal(load<u16>(p)) ? -1 : 0;
    });
}

// Index of the first illegal scale among four, or -1.
__device__ inline int first_illegal4(u32 words) {
    for (int i = 0; i < 4; ++i) {
        if (!e4m3fn_scale_legal(words >> (8 * i) & 0xffu)) return i;
    }
    return -1;
}

__device__ inline bool any_byte_is_0x80(u32 w) {
    const u32 x = w ^ 0x80808080u;
    return ((x - 0x01010101u) & ~x & 0x80808080u) != 0;
}

// A thread takes 16 base bytes: 32 codes (W8: 16) of one group.
template <class F> __device__ inline void validate_grouped(const DecodeArgs& a) {
    constexpr int columns = 128 / F::base_bits;
    const u64 k = a.plan.k, k_pad = align_up(k, 128);
    const u64 logical = (k + F::group - 1) / F::group;
    const u64 row_places = logical + k, padding_places = 2 * (k_pad - k);
    Walk w(thread_index(), thread_count(), a.plan.base_row_bytes / 16);
    for (; w.row < a.rows.count; w.next()) {
        const u64 row = a.rows.at(w.row), column = w.tile * columns, group = column / F::group;
        const Chunk16 base = load16(a.payload + row * a.plan.base_row_bytes + w.tile * 16, 16);
        u64 high = 0;
        if constexpr (F::high_bits > 0) {
            const u8* p = a.payload + a.plan.high_offset + row * a.plan.high_row_bytes + column * F::high_bits / 8;
            if constexpr (F::high_bits == 1) high = load<u32>(p);
            else high = load<u64>(p);
        }
        const u32 scale = load<u16>(a.payload + a.plan.scale_offset + row * a.plan.scale_row_bytes + group * 2);
        if (column % F::group == 0) {
            if (group < logical && !f16_scale_legal(scale)) {
                report_key(a.report, validate_values_phase, w.row * row_places + group);
            }
            if (group >= logical && scale != 0) {
                report_key(a.report, validate_padding_phase, w.row * padding_places + 2 * (column - k));
            }
        }

        bool look = column + columns > k;
        if (scale == 0) look = look || (base.w[0] | base.w[1] | base.w[2] | base.w[3] | high) != 0;
        if constexpr (F::base_bits == 8) {
            for (int i = 0; i < 4; ++i) look = look || any_byte_is_0x80(base.w[i]);
        }
        if (!look) continue;
        for (int i = 0; i < columns; ++i) {
            const int per_word = 32 / F::base_bits;
            u32 code = base.w[i / per_word] >> (i % per_word * F::base_bits) & ((1u << F::base_bits) - 1u);
            if constexpr (F::high_bits > 0) {
                code |= (static_cast<u32>(high >> (i * F::high_bits)) & ((1u << F::high_bits) - 1u)) << F::base_bits;
            }
            const u64 c = column + i;
            if (c >= k) {
                if (code == 0) continue;
                report_key(a.report, validate_padding_phase, w.row * padding_places + 2 * (c - k) + 1);
                break;
            }
            if ((scale == 0 && code != 0) || (F::base_bits == 8 && code == 0x80)) {
                report_key(a.report, validate_values_phase, w.row * row_places + logical + c);
                break;
            }
        }
    }
}

// The bytes between planes belong to the range with the last row.
__device__ inline void validate_gaps(const DecodeArgs& a) {
    if (a.rows.begin + a.rows.count != a.plan.n) return;
    const u64 gaps[2][2] = {{a.plan.n * a.plan.base_row_bytes, a.plan.high_offset},
                            {a.plan.high_offset + a.plan.n * a.plan.high_row_bytes, a.plan.scale_offset}};
    for (int i = 0; i < 2; ++i) {
        for (u64 at = gaps[i][0] + thread_index(); at < gaps[i][1]; at += thread_count()) {
            if (a.payload[at] != 0) report_key(a.report, validate_gaps_phase, at);
        }
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(block_threads) ninfer_codec_check_rows(DecodeArgs a) {
    for (u64 i = thread_index(); i < a.rows.count; i += thread_count()) {
        if (a.rows.rows[i] >= a.plan.n) report_key(a.report, decode_rows_phase, i);
    }
}
extern "C" __global__ void __launch_bounds__(block_threads) ninfer_codec_check_grouped_q(DecodeArgs a) {
    check_grouped<Q4::group>(a);
}
extern "C" __global__ void __launch_bounds__(block_threads) ninfer_codec_check_grouped_w8(DecodeArgs a) {
    check_grouped<W8::group>(a);
}
extern "C" __global__ void __launch_bounds__(block_threads) ninfer_codec_check_fp8(DecodeArgs a) {
    check_scales(a, 1, 1, [&](u64 row, u64) {
        return bf16_scale_legal(load<u16>(a.payload + a.plan.scale_offset + row * 2)) ? -1 : 0;
    });
}
extern "C" __global__ void __launch_bounds__(block_threads) ninfer_codec_check_nvfp4(DecodeArgs a) {
    if (thread_index() == 0 && !divisor_legal(load<u32>(a.payload + a.plan.payload_bytes - 4))) {
        report_key(a.report, decode_divisor_phase, 0);
    }
    check_scales(a, a.plan.k / 64, 4, [&](u64 row, u64 k_tile) {
        const u64 at = swizzle(row, k_tile * 4, a.plan.k / 64);
        return first_illegal4(load<u32>(a.payload + a.plan.scale_offset + at));
    });
}

#define NINFER_CODEC_VALIDATE(NAME, FORMAT)                                                                      \
    extern "C" __global__ void __launch_bounds__(block_threads) ninfer_codec_validate_##NAME(DecodeArgs a) {     \
        validate_grouped<FORMAT>(a);                                                                             \
        validate_gaps(a);                                                                                        \
    }
NINFER_CODEC_VALIDATE(q4, Q4)
NINFER_CODEC_VALIDATE(q5, Q5)
NINFER_CODEC_VALIDATE(q6, Q6)
NINFER_CODEC_VALIDATE(w8, W8)

// A thread takes up to 16 codes of a row; places are the scale, then the columns.
extern "C" __global__ void __launch_bounds__(block_threads) ninfer_codec_validate_fp8(DecodeArgs a) {
    const u64 k = a.plan.k;
    Walk w(thread_index(), thread_count(), (k + 15) / 16);
    for (; w.row < a.rows.count; w.next()) {
        const u64 row = a.rows.at(w.row), column = w.tile * 16;
        const u32 scale = load<u16>(a.payload + a.plan.scale_offset + row * 2);
        if (column == 0 && !bf16_scale_legal(scale)) report_key(a.report, validate_values_phase, w.row * (1 + k));
        const Chunk16 codes = load16(a.payload + row * k + column, k - column);
        for (int i = 0; i < 16; ++i) {  // codes past K read as zero
            const u32 magnitude = codes.w[i / 4] >> (8 * (i % 4)) & 0x7fu;
            if (magnitude == 0x7fu || (scale == 0 && magnitude != 0)) {
                report_key(a.report, validate_values_phase, w.row * (1 + k) + 1 + column + i);
                break;
            }
        }
    }
    validate_gaps(a);
}

// Place 0 is the divisor, 1 + (row, group) a scale.
extern "C" __global__ void __launch_bounds__(block_threads) ninfer_codec_validate_nvfp4(DecodeArgs a) {
    if (thread_index() == 0 && !divisor_legal(load<u32>(a.payload + a.plan.payload_bytes - 4))) {
        report_key(a.report, validate_values_phase, 0);
    }
    const u64 k_tiles = a.plan.k / 64;
    Walk w(thread_index(), thread_count(), k_tiles);
    for (; w.row < a.rows.count; w.next()) {
        const u64 at = swizzle(a.rows.at(w.row), w.tile * 4, k_tiles);
        const int bad = first_illegal4(load<u32>(a.payload + a.plan.scale_offset + at));
        if (bad >= 0) report_key(a.report, validate_values_phase, 1 + (w.row * k_tiles + w.tile) * 4 + bad);
    }
}

}  // namespace ninfer_codec
