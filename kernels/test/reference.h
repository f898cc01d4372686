// A plain integer oracle, written apart from the kernels: numbers are (sign, significand, exponent), rounded once.
#pragma once

#include <cstdint>
#include <vector>

namespace reference {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using u128 = unsigned __int128;
using Bytes = std::vector<u8>;

enum Format : u32 { BF16 = 1, FP32, I32, Q4, Q5, Q6, W8, NVFP4, FP8 };
enum Type : u32 { F32 = 1, TBF16, F16, F64 };
inline const char* name_of(u32 format) {
    static const char* const names[] = {"", "BF16", "FP32", "I32", "Q4G64_F16S", "Q5G64_F16S", "Q6G64_F16S",
                                        "W8G32_F16S", "NVFP4", "FP8_E4M3FN_ROW_BF16S"};
    return format < 10 ? names[format] : "?";
}
inline u32 width_of(u32 type) { return type == F64 ? 8 : type == F32 ? 4 : 2; }

// ---------------------------------------------------------------------------------------------------------------
// Floating-point words.

// A binary format: bits of the significand with the hidden one, exponent of the smallest subnormal, word width.
struct Float {
    int precision, min_exponent, bits;
    u64 infinity() const { return ((u64(1) << (bits - precision)) - 1) << (precision - 1); }
    u64 sign() const { return u64(1) << (bits - 1); }
};
constexpr Float f16{11, -24, 16}, bf16{8, -133, 16}, f32{24, -149, 32}, f64{53, -1074, 64}, e4m3{4, -9, 8}, e2m1{2, -1, 4};

// (-1)^negative * significand * 2^exponent; `sticky` when a nonzero rest below the significand was cut off.
struct Number {
    bool negative;
    u128 significand;
    int exponent;
    bool sticky = false;
};

// The value of a word that is neither infinity nor NaN (E4M3FN and E2M1 have no infinity).
inline Number number(u64 word, Float f) {
    const u64 magnitude = word & (f.sign() - 1), field = magnitude >> (f.precision - 1);
    const u64 fraction = magnitude & ((u64(1) << (f.precision - 1)) - 1);
    if (field == 0) return {word >= f.sign(), fraction, f.min_exponent};
    return {word >= f.sign(), fraction | u64(1) << (f.precision - 1), f.min_exponent + int(field) - 1};
}

inline int bit_length(u128 x) {
    const u64 high = u64(x >> 64), low = u64(x);
    return high ? 128 - __builtin_clzll(high) : low ? 64 - __builtin_clzll(low) : 0;
}

// Rounded to nearest, ties to even; infinity past the range.
inline u64 round(Number x, Float f) {
    const u64 sign = x.negative ? f.sign() : 0;
    if (x.significand == 0) return sign;
    // The exponent of the last place kept.
    const int length = bit_length(x.significand);
    int last = x.exponent + length - f.precision;
    if (last < f.min_exponent) last = f.min_exponent;
    const int drop = last - x.exponent;
    u128 kept = 0;
    if (drop <= 0) {
        kept = x.significand << -drop;
    } else if (drop <= length) {
        kept = x.significand >> drop;
        const bool half = x.significand >> (drop - 1) & 1;
        const bool rest = x.sticky || (x.significand & ((u128(1) << (drop - 1)) - 1)) != 0;
        if (half && (rest || (kept & 1))) ++kept;
    }
    // A carry out of the significand moves into the exponent field by itself.
    u64 word = u64(kept);
    if (word >= u64(1) << (f.precision - 1)) word += u64(last - f.min_exponent) << (f.precision - 1);
    return sign | (word >= f.infinity() ? f.infinity() : word);
}

inline Number times(Number a, Number b) {
    return {a.negative != b.negative, a.significand * b.significand, a.exponent + b.exponent};
}
// Significands below 2^32; the divisor is not zero.
inline Number over(Number a, Number b) {
    const u128 top = a.significand << 90;
    return {a.negative != b.negative, top / b.significand, a.exponent - b.exponent - 90, top % b.significand != 0};
}

inline u64 widen(u64 word, Float f) { return round(number(word, f), f32); }

// Binary32 to BF16 or binary16 (NaN: sign and top payload bits kept, quiet).
inline u64 narrow(u32 word, Float f) {
    if ((word & 0x7fffffffu) > 0x7f800000u) {
        const u32 payload = word & 0x7fffffu;
        return (word >> 31 ? f.sign() : 0) | f.infinity() | u64(1) << (f.precision - 2) | payload >> (24 - f.precision);
    }
    if ((word & 0x7fffffffu) == 0x7f800000u) return (word >> 31 ? f.sign() : 0) | f.infinity();
    return round(number(word, f32), f);
}

// ---------------------------------------------------------------------------------------------------------------
// Layout, bit by bit.

struct Shape {
    u32 format;
    u64 n, k;
};
inline u64 up(u64 x, u64 a) { return (x + a - 1) / a * a; }
inline bool grouped(u32 format) { return format >= Q4 && format <= W8; }
inline int code_bits(u32 format) { return format == W8 ? 8 : int(format); }  // Q4, Q5, Q6 are ids 4, 5, 6
inline u64 group_of(u32 format) { return format == W8 ? 32 : format == NVFP4 ? 16 : 64; }

struct Places {
    u64 k_pad, groups, logical, base_end, high, high_end, scale, divisor, bytes;
};
inline Places places(Shape s) {
    Places p{s.k, 0, 0, 0, 0, 0, 0, 0, 0};
    if (grouped(s.format)) {
        p.k_pad = up(s.k, 128);
        p.groups = p.k_pad / group_of(s.format);
        p.logical = (s.k + group_of(s.format) - 1) / group_of(s.format);
        p.base_end = s.n * p.groups * 32;
        p.high = up(p.base_end, 256);
        p.high_end = p.high + s.n * p.groups * (s.format == Q5 ? 8 : s.format == Q6 ? 16 : 0);
        p.scale = p.high + up(p.high_end - p.high, 256);
        p.bytes = p.scale + s.n * p.groups * 2;
    } else if (s.format == NVFP4) {
        p.groups = p.logical = s.k / 16;
        p.base_end = p.high = p.high_end = s.n * s.k / 2;
        p.scale = up(p.base_end, 256);
        p.divisor = p.scale + s.n * p.groups;
        p.bytes = p.divisor + 4;
    } else if (s.format == FP8) {
        p.groups = p.logical = 1;
        p.base_end = p.high = p.high_end = s.n * s.k;
        p.scale = up(p.base_end, 256);
        p.bytes = p.scale + 2 * s.n;
    } else {
        p.base_end = p.high = p.high_end = p.scale = p.bytes = s.n * s.k * (s.format == BF16 ? 2 : 4);
    }
    return p;
}

inline u64 get(const Bytes& b, u64 at, int bytes) {
    u64 r = 0;
    for (int i = bytes; i-- > 0;) r = r << 8 | b[at + i];
    return r;
}
inline void put(Bytes& b, u64 at, int bytes, u64 v) {
    for (int i = 0; i < bytes; ++i) b[at + i] = u8(v >> (8 * i));
}
inline u64 get_bits(const Bytes& b, u64 start, u64 bit, int bits) {
    u64 r = 0;
    for (int i = 0; i < bits; ++i) r |= u64(b[start + (bit + i) / 8] >> ((bit + i) % 8) & 1) << i;
    return r;
}
inline void put_bits(Bytes& b, u64 start, u64 bit, int bits, u64 v) {
    for (int i = 0; i < bits; ++i) {
        u8& byte = b[start + (bit + i) / 8];
        const u8 mask = u8(1u << ((bit + i) % 8));
        byte = u8(v >> i & 1 ? byte | mask : byte & ~mask);
    }
}

// The word of the element at a physical column, and its replacement.
inline u64 word_at(Shape s, const Places& p, const Bytes& b, u64 row, u64 column) {
    const u64 i = row * p.k_pad + column;
    if (s.format == BF16) return get(b, i * 2, 2);
    if (s.format <= I32) return get(b, i * 4, 4);
    if (s.format == FP8 || s.format == W8) return b[i];
    u64 w = get_bits(b, 0, i * 4, 4);
    if (s.format == Q5) w |= get_bits(b, p.high, i, 1) << 4;
    if (s.format == Q6) w |= get_bits(b, p.high, i * 2, 2) << 4;
    return w;
}
inline void set_word(Shape s, const Places& p, Bytes& b, u64 row, u64 column, u64 w) {
    const u64 i = row * p.k_pad + column;
    if (s.format == BF16) return put(b, i * 2, 2, w);
    if (s.format <= I32) return put(b, i * 4, 4, w);
    if (s.format == FP8 || s.format == W8) return put(b, i, 1, w);
    put_bits(b, 0, i * 4, 4, w);
    if (s.format == Q5) put_bits(b, p.high, i, 1, w >> 4);
    if (s.format == Q6) put_bits(b, p.high, i * 2, 2, w >> 4);
}

// Where a scale word lies. NVFP4: walk the tiles in the order of their bytes' digits.
inline u64 scale_place(Shape s, const Places& p, u64 row, u64 group) {
    if (s.format == FP8) return p.scale + row * 2;
    if (s.format != NVFP4) return p.scale + (row * p.groups + group) * 2;
    const u64 tile = row / 128 * (s.k / 64) + group / 4, in_tile = row % 128;
    const u64 line = in_tile % 32, block = in_tile / 32;
    return p.scale + ((tile * 32 + line) * 4 + block) * 4 + group % 4;
}
inline int scale_bytes(u32 format) { return format == NVFP4 ? 1 : 2; }
inline u64 scale_at(Shape s, const Places& p, const Bytes& b, u64 row, u64 group) {
    return get(b, scale_place(s, p, row, group), scale_bytes(s.format));
}
inline Float scale_float(u32 format) { return format == NVFP4 ? e4m3 : format == FP8 ? bf16 : f16; }

inline int signed_code(u64 word, int bits) { return int(word) - (word >> (bits - 1) ? 1 << bits : 0); }

// ---------------------------------------------------------------------------------------------------------------
// Decoding one element of a payload whose scale words are legal.

inline u64 decode(Shape s, const Places& p, const Bytes& b, u64 row, u64 column, u32 type) {
    const u64 w = word_at(s, p, b, row, column);
    if (s.format == BF16) return type == F32 ? w << 16 : w;
    if (s.format == FP32) return w;
    u32 single = 0;
    if (s.format == NVFP4) {
        const Number scale = number(scale_at(s, p, b, row, column / 16), e4m3);
        const Number q = over(times(number(w, e2m1), scale), number(get(b, p.divisor, 4), f32));
        if (type == F64) return round(q, f64);
        single = u32(round(q, f32));
    } else if (s.format == FP8) {
        const Number scale = number(scale_at(s, p, b, row, 0), bf16);
        single = (w & 0x7f) == 0x7f ? 0x7fc00000u : u32(round(times(number(w, e4m3), scale), f32));
    } else {
        const int q = signed_code(w, code_bits(s.format));
        const Number scale = number(scale_at(s, p, b, row, column / group_of(s.format)), f16);
        single = u32(round(times({q < 0, u128(q < 0 ? -q : q), 0}, scale), f32));
    }
    return type == F32 ? single : narrow(single, type == TBF16 ? bf16 : f16);
}

// ---------------------------------------------------------------------------------------------------------------
// Outcomes. A number that does not apply is all ones.

struct Outcome {
    u32 status = 0, fault = 0;
    u64 row = ~u64(0), column = ~u64(0), group = ~u64(0), offset = ~u64(0), word = ~u64(0);
    bool operator==(const Outcome& o) const {
        return status == o.status && fault == o.fault && row == o.row && column == o.column && group == o.group &&
               offset == o.offset && word == o.word;
    }
};
enum : u32 { out_of_range = 17, non_finite = 31, scale_overflow = 33, bad_scale = 35, bad_divisor = 36, bad_code = 37,
             zero_scale = 38, padding_code = 39, padding_scale = 40, gap = 41 };

inline u32 fault_of(u64 w, Float f, bool positive) {
    const u64 magnitude = w & (f.sign() - 1);
    const bool e4m3_nan = f.bits == 8 && magnitude == 0x7f;
    if (e4m3_nan || (f.bits != 8 && magnitude > f.infinity())) return 1;
    if (f.bits != 8 && magnitude == f.infinity()) return 2;
    if (w == f.sign()) return 3;
    if (w > f.sign()) return 4;
    return positive && w == 0 ? 5 : 0;
}

// The first illegal divisor or scale of some rows.
inline Outcome check_words(Shape s, const Bytes& b, const std::vector<u64>& rows) {
    const Places p = places(s);
    Outcome o;
    if (s.format <= I32) return o;
    if (s.format == NVFP4) {
        const u64 w = get(b, p.divisor, 4);
        o.fault = fault_of(w, f32, true);
        if (o.fault) return o.status = bad_divisor, o.word = w, o;
    }
    for (u64 row : rows) {
        for (u64 g = 0; g < p.logical; ++g) {
            const u64 w = scale_at(s, p, b, row, g);
            o.fault = fault_of(w, scale_float(s.format), false);
            if (o.fault) return o.status = bad_scale, o.row = row, o.group = g, o.word = w, o;
        }
    }
    return o;
}

inline Outcome validate(Shape s, const Bytes& b, u64 begin, u64 end) {
    const Places p = places(s);
    if (s.format <= I32) return {};
    if (s.format == NVFP4) {
        std::vector<u64> rows;
        for (u64 r = begin; r < end; ++r) rows.push_back(r);
        return check_words(s, b, rows);
    }
    const u64 group = s.format == FP8 ? s.k : group_of(s.format);
    const int bits = s.format == FP8 ? 8 : code_bits(s.format);
    const auto lane = [&](u32 status, u64 row, u64 column, u64 w) {
        Outcome o;
        o.status = status, o.row = row, o.column = column;
        o.word = s.format == FP8 ? w : u8(signed_code(w, bits));
        return o;
    };
    for (u64 row = begin; row < end; ++row) {
        const Outcome o = check_words(s, b, {row});
        if (o.status) return o;
        for (u64 c = 0; c < s.k; ++c) {
            const u64 w = word_at(s, p, b, row, c);
            if (s.format == W8 && w == 0x80) return lane(bad_code, row, c, w);
            if (s.format == FP8 && (w & 0x7f) == 0x7f) return lane(bad_code, row, c, w);
            if (scale_at(s, p, b, row, c / group) == 0 && (s.format == FP8 ? w & 0x7f : w)) {
                return lane(zero_scale, row, c, w);
            }
        }
    }
    for (u64 row = begin; grouped(s.format) && row < end; ++row) {
        for (u64 c = s.k; c < p.k_pad; ++c) {
            if (c % group == 0) {
                const u64 w = scale_at(s, p, b, row, c / group);
                Outcome o;
                if (w) return o.status = padding_scale, o.row = row, o.group = c / group, o.word = w, o;
            }
            const u64 w = word_at(s, p, b, row, c);
            if (w) return lane(padding_code, row, c, w);
        }
    }
    const u64 gaps[2][2] = {{p.base_end, p.high}, {p.high_end, p.scale}};
    for (const auto& g : gaps) {
        for (u64 at = g[0]; end == s.n && at < g[1]; ++at) {
            Outcome o;
            if (b[at]) return o.status = gap, o.offset = at, o.word = b[at], o;
        }
    }
    return {};
}

// ---------------------------------------------------------------------------------------------------------------
// The canonical encoder, from source words of `type`, into rows [begin, begin + rows) of the payload.

inline u32 source_f32(u64 w, u32 type) {
    if (type == F32) return u32(w);
    if (type == TBF16) return u32(w << 16);
    if ((w & 0x7c00) == 0x7c00) return u32((w & 0x8000) << 16 | 0x7f800000 | (w & 0x3ff) << 13);
    return u32(widen(w, f16));
}

// Nearest integer, ties to even, of a finite binary32 word; large ones cut to a million.
inline long round_integer(u32 word) {
    const Number x = number(word, f32);
    long r = 1000000;
    if (x.exponent < -60) {
        r = 0;
    } else if (x.exponent < 0) {
        const u64 m = u64(x.significand), unit = u64(1) << -x.exponent, rest = m % unit;
        r = long(m / unit);
        if (rest * 2 > unit || (rest * 2 == unit && r % 2 == 1)) ++r;
    }
    return x.negative ? -r : r;
}

inline Outcome quantize(Shape s, Bytes& payload, u64 begin, u64 count, u32 type, const std::vector<u64>& source,
                        u64 stride) {
    const Places p = places(s);
    const u64 group = group_of(s.format);
    const long qmax = (1l << (code_bits(s.format) - 1)) - 1, qmin = s.format == W8 ? -qmax : -qmax - 1;
    for (u64 row = 0; row < count; ++row) {
        for (u64 g = 0; g < p.groups; ++g) {
            u32 amax = 0;
            for (u64 c = g * group; c < (g + 1) * group && c < s.k; ++c) {
                const u64 w = source[row * stride + c];
                const u32 m = source_f32(w, type) & 0x7fffffffu;
                Outcome o;
                if (m >= 0x7f800000u) {
                    return o.status = non_finite, o.row = begin + row, o.column = c, o.word = w, o;
                }
                amax = m > amax ? m : amax;
            }
            u64 scale = 0;
            u32 inverse = 0;
            if (amax) {
                const u64 raw = round(over(number(amax, f32), {false, u128(qmax), 0}), f32);
                scale = narrow(u32(raw), f16);
                if (scale == 0) scale = 1;
                Outcome o;
                if (scale >= 0x7c00) {
                    return o.status = scale_overflow, o.row = begin + row, o.group = g, o.word = raw, o;
                }
                inverse = u32(round(over({false, 1, 0}, number(widen(scale, f16), f32)), f32));
            }
            put(payload, scale_place(s, p, begin + row, g), 2, scale);
            for (u64 c = g * group; c < (g + 1) * group; ++c) {
                long q = 0;
                if (c < s.k && amax) {
                    const u32 x = source_f32(source[row * stride + c], type);
                    q = round_integer(u32(round(times(number(x, f32), number(inverse, f32)), f32)));
                    q = q < qmin ? qmin : q > qmax ? qmax : q;
                }
                set_word(s, p, payload, begin + row, c, u64(q) & ((1u << code_bits(s.format)) - 1));
            }
        }
    }
    for (u64 at = p.base_end; begin + count == s.n && at < p.high; ++at) payload[at] = 0;
    for (u64 at = p.high_end; begin + count == s.n && at < p.scale; ++at) payload[at] = 0;
    return {};
}

// Rows of a payload as a new one.
inline Bytes gather(Shape s, const Bytes& b, const std::vector<u64>& rows) {
    const Shape to{s.format, rows.size(), s.k};
    const Places p = places(s), q = places(to);
    Bytes r(q.bytes, 0);
    for (u64 i = 0; i < rows.size(); ++i) {
        for (u64 c = 0; c < p.k_pad; ++c) set_word(to, q, r, i, c, word_at(s, p, b, rows[i], c));
        for (u64 g = 0; g < p.groups; ++g) {
            put(r, scale_place(to, q, i, g), scale_bytes(s.format), scale_at(s, p, b, rows[i], g));
        }
    }
    if (s.format == NVFP4) put(r, q.divisor, 4, get(b, p.divisor, 4));
    return r;
}

}  // namespace reference
