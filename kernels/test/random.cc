// Random and hostile payloads and sources: shapes around every boundary, payloads at any address, values at any
// element, strides, odd row ranges, row lists, flipped bytes, planted faults.
#include "operations.h"

namespace test {
namespace {

using reference::F16;
using reference::F32;
using reference::F64;
using reference::TBF16;

// Row and column counts around groups, padding, warps, tiles and chunks.
std::vector<Shape> shapes_of(u32 format) {
    if (format == reference::NVFP4) {
        return {{format, 128, 64}, {format, 256, 128}, {format, 128, 320}, {format, 384, 1088}};
    }
    std::vector<Shape> r;
    for (u64 k : {1, 3, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 127, 128, 129, 191, 255, 256, 257, 511, 512, 513, 1023,
                  1024, 1025, 1500, 2049}) {
        r.push_back({format, 1 + k % 7, k});
    }
    r.push_back({format, 300, 40});
    return r;
}

std::vector<u32> types_of(u32 format) {
    switch (format) {
        case reference::BF16: return {F32, TBF16};
        case reference::FP32: return {F32};
        case reference::I32: return {};
        case reference::NVFP4: return {F32, TBF16, F16, F64};
        default: return {F32, TBF16, F16};
    }
}

Rows random_rows(Random& random, u64 n) {
    const u64 begin = random.below(n);
    if (random.below(2)) return Rows::range(begin, 1 + random.below(n - begin));
    std::vector<u64> list(1 + random.below(2 * n < 200 ? 2 * n : 200));
    for (u64& row : list) row = random.below(n);
    return Rows::of(list);
}

void decode_some(u32 format, cudaStream_t stream) {
    Random random{format * 1000};
    for (const Shape& s : shapes_of(format)) {
        const Bytes payload = random_payload(s, random.next());
        for (u32 type : types_of(format)) {
            same(device_decode(s, payload, Rows::range(0, s.n), type).bytes,
                 expected_decode(s, payload, Rows::range(0, s.n), type), label(s) + " decode");
            for (int i = 0; i < 3; ++i) {
                const Rows rows = random_rows(random, s.n);
                const u64 stride = random.below(2) ? s.k + random.below(20) : up_to_chunk(s.k);
                const Placing at{random.below(17), random.below(9), stride, random.below(2) ? stream : nullptr};
                const Result r = device_decode(s, payload, rows, type, at);
                same(r.outcome, Outcome{}, label(s) + " decode");
                same(r.bytes, expected_decode(s, payload, rows, type, stride), label(s) + " decode rows, type " +
                         std::to_string(type) + " payload shift " + std::to_string(at.payload_shift) + " value shift " +
                         std::to_string(at.value_shift) + " stride " + std::to_string(stride));
            }
        }
    }
}

void gather_some(u32 format) {
    Random random{format * 2000};
    for (const Shape& s : shapes_of(format)) {
        const Bytes payload = random_payload(s, random.next());
        for (int i = 0; i < 3; ++i) {
            Rows rows = random_rows(random, s.n);
            if (format == reference::NVFP4) {
                std::vector<u64> list(128 * (1 + random.below(3)));
                for (u64& row : list) row = random.below(s.n);
                rows = i == 0 ? Rows::range(random.below(s.n - 127), 128) : Rows::of(list);
            }
            const Result r = device_gather(s, payload, rows, random.below(17), random.below(17));
            same(r.outcome, Outcome{}, label(s) + " gather");
            same(r.bytes, reference::gather(s, payload, rows.list), label(s) + " gather");
        }
    }
}

// A hostile source word: subnormals, extremes, zeros of either sign, ties; sometimes not finite.
u64 hostile_word(Random& random, u32 type, bool finite) {
    const u64 bits = reference::width_of(type) * 8, sign = u64(1) << (bits - 1);
    const u64 infinity = type == F32 ? 0x7f800000u : type == TBF16 ? 0x7f80u : 0x7c00u;
    u64 w = random.next() & (2 * sign - 1);
    switch (random.below(8)) {
        case 0: w = random.below(4) | (w & sign); break;
        case 1: w = (w & sign) | (random.below(infinity >> 3)); break;
        case 2: w = w & sign; break;
        case 3: w = (w & sign) | (infinity - 1 - random.below(3)); break;
        default: break;
    }
    if (finite && (w & (sign - 1)) >= infinity) w = (w & sign) | (infinity >> 1);
    return w;
}

void quantize_some(u32 format, cudaStream_t stream) {
    Random random{format * 3000};
    for (const Shape& s : shapes_of(format)) {
        for (u32 type : {F32, TBF16, F16}) {
            for (int i = 0; i < 6; ++i) {
                const u64 begin = random.below(s.n), count = i == 0 ? s.n - begin : 1 + random.below(s.n - begin);
                const u64 stride = random.below(2) ? s.k + random.below(20) : up_to_chunk(s.k);
                std::vector<u64> source = random_source((count - 1) * stride + s.k, type, random.next());
                const u64 kind = random.below(4);
                for (u64& w : source) {
                    if (kind == 1 && random.below(10) == 0) w = hostile_word(random, type, true);
                    if (kind == 2 && random.below(300) == 0) w = hostile_word(random, type, false);
                    if (kind == 3) w = type == F32 ? w & 0x80ffffff : type == TBF16 ? w & 0x80ff : w & 0x83ff;
                }
                const Placing at{random.below(17), random.below(9), stride, random.below(2) ? stream : nullptr};
                const Bytes dirty = random_payload(s, random.next());
                Bytes expected = dirty;
                const Outcome outcome = reference::quantize(s, expected, begin, count, type, source, stride);
                Result r = device_quantize(s, type, source, begin, count, dirty, at);
                same(r.outcome, outcome, label(s) + " quantize");
                if (outcome.status == 0) {
                    same(r.bytes, expected, label(s) + " quantize");
                    continue;
                }
                // Rows before the failing one are complete; rows outside the range are untouched. Compare those.
                const reference::Places p = reference::places(s);
                for (u64 row = 0; row < s.n; ++row) {
                    if (row >= outcome.row && row < begin + count) continue;
                    bool equal = true;
                    for (u64 c = 0; c < p.k_pad; ++c) {
                        equal = equal && reference::word_at(s, p, r.bytes, row, c) == reference::word_at(s, p, expected, row, c);
                    }
                    for (u64 g = 0; g < p.groups; ++g) {
                        equal = equal && reference::scale_at(s, p, r.bytes, row, g) == reference::scale_at(s, p, expected, row, g);
                    }
                    check(equal, label(s) + " quantize: row " + std::to_string(row) + " beside a failing one");
                }
            }
        }
    }
}

// Starts from a legal payload and flips bytes or plants words.
void validate_some(u32 format) {
    Random random{format * 4000};
    for (const Shape& s : shapes_of(format)) {
        const reference::Places p = reference::places(s);
        Bytes legal;
        if (reference::grouped(format)) {
            legal.assign(p.bytes, 0xa5);
            std::vector<u64> source = random_source(s.n * s.k, F32, random.next());
            // Some groups of zeros, so that zero scales occur.
            for (u64 i = 0; i < source.size(); ++i) {
                if (i / 64 % 3 == 0) source[i] = 0;
            }
            reference::quantize(s, legal, 0, s.n, F32, source, s.k);
        } else {
            legal = random_payload(s, random.next());
            for (u64 i = p.base_end; i < p.scale; ++i) legal[i] = 0;
            for (u64 i = 0; format == reference::FP8 && i < p.base_end; ++i) {
                if ((legal[i] & 0x7f) == 0x7f) legal[i] ^= 1;
            }
        }
        same(device_validate(s, legal, 0, s.n), reference::validate(s, legal, 0, s.n), label(s) + " validate");
        for (int i = 0; i < 12; ++i) {
            Bytes b = legal;
            for (u64 flips = 1 + random.below(4); flips-- > 0;) {
                const u64 place = random.below(3) == 0 && p.scale < b.size() ? p.scale + random.below(b.size() - p.scale)
                                                                             : random.below(b.size());
                if (random.below(4) == 0) b[place] = u8("\x80\x7f\xff\x00"[random.below(4)]);
                else b[place] ^= u8(1u << random.below(8));
            }
            const u64 begin = i < 6 ? 0 : random.below(s.n), count = i < 6 ? s.n : 1 + random.below(s.n - begin);
            const u64 shift = random.below(17);
            same(device_validate(s, b, begin, count, shift), reference::validate(s, b, begin, begin + count),
                 label(s) + " validate flipped");
            // A decode refuses by scale and divisor words only, and then writes nothing.
            if (types_of(format).empty()) continue;
            const Rows rows = random_rows(random, s.n);
            const Result r = device_decode(s, b, rows, F32, {shift, 0, 0, nullptr});
            const Outcome outcome = reference::check_words(s, b, rows.list);
            same(r.outcome, outcome, label(s) + " decode flipped");
            same(r.bytes, outcome.status ? Bytes(r.bytes.size(), 0xa5) : expected_decode(s, b, rows, F32),
                 label(s) + " decode flipped");
        }
    }
}

// A list with a row past the end: reported by the first such entry, nothing written.
void bad_lists(u32 format) {
    const Shape s{format, 128, 64};
    const Bytes payload = random_payload(s, format);
    for (u64 bad : {u64(128), u64(129), u64(1) << 32, ~u64(0)}) {
        std::vector<u64> list(128);
        for (u64 i = 0; i < list.size(); ++i) list[i] = i;
        list[77] = bad;
        list[99] = 1000;
        Outcome expected;
        expected.status = reference::out_of_range;
        expected.row = bad;
        Result r = device_gather(s, payload, Rows::of(list));
        same(r.outcome, expected, label(s) + " gather of a row past the end");
        same(r.bytes, Bytes(r.bytes.size(), 0xa5), label(s) + " gather writes nothing");
        if (types_of(format).empty()) continue;
        r = device_decode(s, payload, Rows::of(list), F32);
        same(r.outcome, expected, label(s) + " decode of a row past the end");
        same(r.bytes, Bytes(r.bytes.size(), 0xa5), label(s) + " decode writes nothing");
    }
}

// More rows than any grid dimension but the first could have.
void many_rows() {
    for (u32 format : {reference::Q4, reference::W8, reference::FP8, reference::BF16}) {
        const Shape s{format, 70001, 5};
        const Bytes payload = random_payload(s, format);
        const Rows rows = Rows::range(0, s.n);
        same(device_decode(s, payload, rows, F32).bytes, expected_decode(s, payload, rows, F32), label(s));
        same(device_gather(s, payload, rows).bytes, reference::gather(s, payload, rows.list), label(s));
        if (!reference::grouped(format)) continue;
        const std::vector<u64> source = random_source(s.n * s.k, F32, format);
        const Bytes dirty(payload.size(), 0xa5);
        Bytes expected = dirty;
        reference::quantize(s, expected, 0, s.n, F32, source, s.k);
        same(device_quantize(s, F32, source, 0, s.n, dirty).bytes, expected, label(s) + " quantize");
        same(device_validate(s, expected, 0, s.n), Outcome{}, label(s) + " validate");
    }
}

}  // namespace

void run_random() {
    cudaStream_t stream = nullptr;
    cuda(cudaStreamCreate(&stream), "stream");
    for (u32 format = 1; format <= 9; ++format) {
        Part part(std::string("random ") + std::to_string(format));
        if (!types_of(format).empty()) decode_some(format, stream);
        gather_some(format);
        if (reference::grouped(format)) quantize_some(format, stream);
        validate_some(format);
        bad_lists(format);
    }
    { Part part("many rows"); many_rows(); }
    cuda(cudaStreamDestroy(stream), "stream");
}

}  // namespace test
