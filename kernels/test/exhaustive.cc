// Every scale and code table: all legal scales times all codes of each format, all words of the direct BF16, every
// BF16 and binary16 source word, and the swizzle over all indices.
#include "operations.h"

namespace test {
namespace {

// A whole matrix to every type of `types`.
void decode_all(Shape s, const Bytes& payload, std::vector<u32> types) {
    const Rows rows = Rows::range(0, s.n);
    for (u32 type : types) {
        const Result r = device_decode(s, payload, rows, type);
        same(r.outcome, Outcome{}, label(s) + " outcome");
        same(r.bytes, expected_decode(s, payload, rows, type), label(s) + " all words to type " + std::to_string(type));
    }
}

// One row a scale, one column a code; W8 needs 8 groups for its 256 codes.
void grouped_words(u32 format) {
    const int bits = reference::code_bits(format);
    const Shape s{format, 0x7c00, format == reference::W8 ? 256u : 64u};
    const reference::Places p = reference::places(s);
    Bytes payload(p.bytes, 0);
    for (u64 row = 0; row < s.n; ++row) {
        for (u64 g = 0; g < p.logical; ++g) reference::put(payload, reference::scale_place(s, p, row, g), 2, row);
        for (u64 c = 0; c < s.k; ++c) reference::set_word(s, p, payload, row, c, c & ((1u << bits) - 1));
    }
    decode_all(s, payload, {reference::F32, reference::TBF16, reference::F16});
}

void fp8() {
    const Shape s{reference::FP8, 0x7f80, 256};
    const reference::Places p = reference::places(s);
    Bytes payload(p.bytes, 0);
    for (u64 row = 0; row < s.n; ++row) {
        reference::put(payload, reference::scale_place(s, p, row, 0), 2, row);
        for (u64 c = 0; c < s.k; ++c) reference::set_word(s, p, payload, row, c, c);
    }
    decode_all(s, payload, {reference::F32, reference::TBF16, reference::F16});
}

void nvfp4() {
    const Shape s{reference::NVFP4, 128, 64};
    const reference::Places p = reference::places(s);
    for (u32 divisor : {0x3f800000u, 0x40400000u, 0x3dcccccdu, 0x00000001u, 0x00000003u, 0x007fffffu, 0x00800000u,
                        0x7f7fffffu, 0x7f000001u, 0x4b7fffffu, 0x3f7fffffu, 0x43e00000u, 0x1234567u}) {
        Bytes payload(p.bytes, 0);
        for (u64 row = 0; row < s.n; ++row) {
            for (u64 g = 0; g < 4; ++g) payload[reference::scale_place(s, p, row, g)] = u8((row * 4 + g) % 127);
            for (u64 c = 0; c < s.k; ++c) reference::set_word(s, p, payload, row, c, c % 16);
        }
        reference::put(payload, p.divisor, 4, divisor);
        decode_all(s, payload, {reference::F32, reference::F64, reference::TBF16, reference::F16});
    }
}

void bf16_words() {
    const Shape s{reference::BF16, 256, 256};
    Bytes payload(reference::places(s).bytes);
    for (u64 i = 0; i < 65536; ++i) reference::put(payload, i * 2, 2, i);
    decode_all(s, payload, {reference::F32, reference::TBF16});
}

// Each finite source word alone in its group; then each that is not, and the first of them must be reported.
void source_words(u32 format, u32 type) {
    const u64 infinity = type == reference::TBF16 ? 0x7f80 : 0x7c00;
    std::vector<u64> finite;
    for (u64 w = 0; w < 65536; ++w) {
        if ((w & 0x7fff) < infinity) finite.push_back(w);
    }
    // BF16 words above 65504 * qmax overflow their scale: give only what stands before the first of them.
    Shape s{format, finite.size(), 1};
    const Bytes dirty(reference::places(s).bytes, 0xa5);
    Bytes expected = dirty;
    Outcome outcome = reference::quantize(s, expected, 0, s.n, type, finite, 1);
    std::vector<u64> kept;
    for (u64 w : finite) {
        Bytes one(reference::places({format, 1, 1}).bytes, 0);
        if (reference::quantize({format, 1, 1}, one, 0, 1, type, {w}, 1).status == 0) kept.push_back(w);
    }
    Result r = device_quantize(s, type, finite, 0, s.n, dirty);
    same(r.outcome, outcome, label(s) + " first overflow");
    s.n = kept.size();
    const Bytes clean(reference::places(s).bytes, 0xa5);
    expected = clean;
    outcome = reference::quantize(s, expected, 0, s.n, type, kept, 1);
    r = device_quantize(s, type, kept, 0, s.n, clean);
    same(r.outcome, outcome, label(s) + " source words");
    same(r.bytes, expected, label(s) + " source words");
}

// Groups around every rounding boundary: for each scale word the source that gives it, with ties and neighbours.
void boundaries(u32 format) {
    const u64 k = reference::group_of(format);
    const long qmax = (1l << (reference::code_bits(format) - 1)) - 1;
    const Shape s{format, 0x7c00 / 7, k};
    std::vector<u64> source(s.n * k, 0);
    Random random{format};
    for (u64 row = 0; row < s.n; ++row) {
        const reference::Number scale = reference::number(1 + row * 7, reference::f16);
        const auto at = [&](long halves) {
            return u32(reference::round(reference::times(scale, {halves < 0, reference::u128(halves < 0 ? -halves : halves),
                                                                 -1}), reference::f32));
        };
        source[row * k] = at(2 * qmax) + u32(row % 3) - 1;
        for (u64 c = 1; c < k; ++c) {
            const long halves = long(random.below(u64(4 * qmax + 1))) - 2 * qmax;
            source[row * k + c] = at(halves) + (halves ? u32(random.below(3)) - 1 : 0);
        }
        // No larger magnitude than the first, or the scale would be another.
        for (u64 c = 1; c < k; ++c) {
            if ((source[row * k + c] & 0x7fffffff) > (source[row * k] & 0x7fffffff)) source[row * k + c] = source[row * k];
        }
    }
    Bytes expected(reference::places(s).bytes, 0xa5);
    const Bytes dirty = expected;
    const Outcome outcome = reference::quantize(s, expected, 0, s.n, reference::F32, source, k);
    const Result r = device_quantize(s, reference::F32, source, 0, s.n, dirty);
    same(r.outcome, outcome, label(s) + " boundaries");
    same(r.bytes, expected, label(s) + " boundaries");
}

void swizzle(u64 n, u64 k) {
    const Shape s{reference::NVFP4, n, k};
    const reference::Places p = reference::places(s);
    const u64 groups = k / 16;
    // A word that names its place in two bytes, one at a time.
    for (int byte = 0; byte < 3; ++byte) {
        Bytes natural(n * groups), plane(n * groups);
        for (u64 row = 0; row < n; ++row) {
            for (u64 g = 0; g < groups; ++g) {
                const u8 v = u8((row * groups + g) >> (8 * byte));
                natural[row * groups + g] = v;
                plane[reference::scale_place(s, p, row, g) - p.scale] = v;
            }
        }
        for (u64 shift : {0, 1, 4, 7}) {
            Buffer from(natural, shift), to(plane.size(), 16 - shift), back(natural.size(), shift);
            check(ninfer_codec_cuda_swizzle_scales(n, k, from.get(), natural.size(), to.get(), plane.size(), nullptr) == 0 &&
                      ninfer_codec_cuda_unswizzle_scales(n, k, to.get(), plane.size(), back.get(), natural.size(),
                                                         nullptr) == 0,
                  label(s) + " swizzle");
            cuda(cudaDeviceSynchronize(), "swizzle");
            same(to.download(), plane, label(s) + " swizzled");
            same(back.download(), natural, label(s) + " unswizzled");
            library::swizzle(n, k, back.download(), to.download());
            check(from.guards_hold() && to.guards_hold() && back.guards_hold(), label(s) + " swizzle guards");
        }
    }
}

}  // namespace

void run_exhaustive() {
    { Part part("scales x Q4"); grouped_words(reference::Q4); }
    { Part part("scales x Q5"); grouped_words(reference::Q5); }
    { Part part("scales x Q6"); grouped_words(reference::Q6); }
    { Part part("scales x W8"); grouped_words(reference::W8); }
    { Part part("scales x FP8"); fp8(); }
    { Part part("NVFP4 words"); nvfp4(); }
    { Part part("BF16 words"); bf16_words(); }
    {
        Part part("sources");
        for (u32 format = reference::Q4; format <= reference::W8; ++format) {
            source_words(format, reference::TBF16);
            source_words(format, reference::F16);
            boundaries(format);
        }
    }
    {
        Part part("swizzle");
        for (u64 n : {128, 256, 384}) {
            for (u64 k : {64, 128, 192, 256, 320, 1024}) swizzle(n, k);
        }
    }
}

}  // namespace test
