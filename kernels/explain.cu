// The last kernel of an operation: turns a report's key into status, coordinates and word.
#include "kernels.cuh"
#include "status.cuh"

namespace ninfer_codec {
namespace {

constexpr u64 absent = ~0ull;

// Faults of a word with its sign bit and infinity; E4M3FN has no infinity, `infinity` is then its NaN word.
__device__ inline u32 fault_of(u32 word, u32 sign, u32 infinity, bool has_infinity) {
    const u32 magnitude = word & (sign - 1u);
    if (magnitude > infinity || (magnitude == infinity && !has_infinity)) return fault_nan;
    if (magnitude == infinity) return fault_infinite;
    if (word == sign) return fault_negative_zero;
    if (word > sign) return fault_negative;
    return word == 0 ? fault_zero : fault_none;
}

struct Explainer {
    const ExplainArgs& a;
    Report r;

    __device__ u64 group_columns() const { return a.format == w8 ? 32 : 64; }
    __device__ u64 logical_groups() const { return (a.plan.k + group_columns() - 1) / group_columns(); }

    __device__ void divisor() {
        r.word = load<u32>(a.payload + a.plan.payload_bytes - 4);
        r.status = status_invalid_divisor;
        r.fault = fault_of(static_cast<u32>(r.word), 0x80000000u, 0x7f800000u, true);
    }

    __device__ void scale(u64 row, u64 group) {
        r.status = status_invalid_scale;
        r.row = row;
        r.group = group;
        const u8* const plane = a.payload + a.plan.scale_offset;
        if (a.format == nvfp4) {
            r.word = plane[swizzle(row, group, a.plan.k / 64)];
            r.fault = fault_of(static_cast<u32>(r.word), 0x80u, 0x7fu, false);
        } else if (a.format == fp8) {
            r.word = load<u16>(plane + row * 2);
            r.fault = fault_of(static_cast<u32>(r.word), 0x8000u, 0x7f80u, true);
        } else {
            r.word = load<u16>(plane + row * a.plan.scale_row_bytes + group * 2);
            r.fault = fault_of(static_cast<u32>(r.word), 0x8000u, 0x7c00u, true);
        }
    }

    // The code at a physical column as a byte: grouped codes in two's complement.
    __device__ u32 code(u64 row, u64 column) const {
        const u8* const base = a.payload + row * a.plan.base_row_bytes;
        if (a.format == w8 || a.format == fp8) return base[column];
        u32 word = base[column / 2] >> (column % 2 * 4) & 15u;
        const u32 bits = a.format == q5 ? 1 : a.format == q6 ? 2 : 0;
        if (bits) {
            const u8* const high = a.payload + a.plan.high_offset + row * a.plan.high_row_bytes;
            word |= (high[column * bits / 8] >> (column * bits % 8) & ((1u << bits) - 1u)) << 4;
        }
        const u32 sign = 8u << bits;
        return ((word ^ sign) - sign) & 0xffu;
    }

    __device__ void lane(u32 status, u64 row, u64 column) {
        r.status = status;
        r.row = row;
        r.column = column;
        r.word = code(row, column);
    }

    __device__ void decode(u64 phase, u64 place) {
        if (phase == decode_rows_phase) {
            r.status = status_row_out_of_range;
            r.row = a.rows.at(place);
            return;
        }
        if (phase == decode_divisor_phase) return divisor();
        const u64 groups = a.format == nvfp4 ? a.plan.k / 16 : a.format == fp8 ? 1 : logical_groups();
        scale(a.rows.at(place / groups), place % groups);
    }

    __device__ u32 source_word(u64 row, u64 column) const {
        const u64 i = row * a.stride + column;
        return a.source_type == type_f32 ? static_cast<const u32*>(a.source)[i] : static_cast<const u16*>(a.source)[i];
    }

    __device__ void quantize(u64 place) {
        const u64 item = place / quantize_places, row = item / logical_groups(), group = item % logical_groups();
        const u64 first = group * group_columns();
        r.row = a.rows.begin + row;
        if (place % quantize_places != quantize_overflow) {
            r.status = status_non_finite_source;
            r.column = first + place % quantize_places;
            r.word = source_word(row, r.column);
            return;
        }
        r.status = status_scale_overflow;
        r.group = group;
        u32 amax = 0;
        for (u64 c = first; c < first + group_columns() && c < a.plan.k; ++c) {
            const u32 w = source_word(row, c);
            const float v = a.source_type == type_f32    ? float_from_bits(w)
                            : a.source_type == type_bf16 ? bf16_value(w)
                                                         : widen_f16(static_cast<u16>(w));
            const u32 magnitude = bits_of(v) & 0x7fffffffu;
            amax = magnitude > amax ? magnitude : amax;
        }
        const int qmax = a.format == q4 ? Q4::qmax : a.format == q5 ? Q5::qmax : a.format == q6 ? Q6::qmax : W8::qmax;
        r.word = bits_of(div_rn(float_from_bits(amax), static_cast<float>(qmax)));
    }

    __device__ void validate(u64 phase, u64 place) {
        const u64 k = a.plan.k, begin = a.rows.begin;
        if (phase == validate_gaps_phase) {
            r.status = status_gap_not_zero;
            r.offset = place;
            r.word = a.payload[place];
            return;
        }
        if (a.format == nvfp4) {
            if (place == 0) return divisor();
            return scale(begin + (place - 1) / (k / 16), (place - 1) % (k / 16));
        }
        const u64 scales = a.format == fp8 ? 1 : logical_groups();
        if (phase == validate_values_phase) {
            const u64 row = begin + place / (scales + k), in_row = place % (scales + k);
            if (in_row < scales) return scale(row, in_row);
            const u64 column = in_row - scales;
            const u32 word = code(row, column);
            const bool illegal = a.format == w8 ? word == 0x80u : a.format == fp8 && (word & 0x7fu) == 0x7fu;
            return lane(illegal ? status_invalid_code : status_zero_scale_nonzero_code, row, column);
        }
        const u64 places = 2 * (align_up(k, 128) - k);
        const u64 row = begin + place / places, column = k + place % places / 2;
        if (place % 2 == 1) return lane(status_padding_code_not_zero, row, column);
        scale(row, column / group_columns());
        r.status = status_padding_scale_not_zero;
        r.fault = fault_none;
    }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(block_threads) ninfer_codec_explain(ExplainArgs a) {
    if (thread_index() != 0) return;
    const u64 key = a.report->key;
    Explainer e{a, {key, status_ok, fault_none, absent, absent, absent, absent, absent}};
    if (key != clean) {
        const u64 phase = key >> phase_shift, place = key & ((1ull << phase_shift) - 1);
        if (a.operation == explain_decode) e.decode(phase, place);
        if (a.operation == explain_quantize) e.quantize(place);
        if (a.operation == explain_validate) e.validate(phase, place);
    }
    *a.report = e.r;
}

}  // namespace ninfer_codec
