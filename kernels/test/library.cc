// Calls of the C archive, each compared with what a kernel gave.
#include "library.h"

#include <algorithm>

namespace test::library {
namespace {

enum Operation { decoded, quantized, validated, gathered, swizzled, operations };
const char* const names[] = {"decode", "quantize", "validate", "slice and gather", "swizzle"};
struct Tally {
    u64 calls = 0, refusals = 0, bytes = 0;
};
Tally tallies[operations];

u32 layout_of(u32 format) { return format <= reference::I32 ? 1 : reference::grouped(format) ? 2 : format == reference::NVFP4 ? 3 : 4; }

// A call's details, and the outcome they tell.
struct Details {
    ninfer_codec_details d{};
    Details() { d.struct_size = sizeof d; }
    Outcome outcome(u32 status) const {
        Outcome o;
        o.status = status;
        if (status == 0) return o;
        o.fault = d.fault, o.row = d.row, o.column = d.column, o.group = d.group, o.offset = d.offset, o.word = d.word;
        return o;
    }
};

void outcomes(Operation operation, const Outcome& got, const Outcome& expected, Shape s) {
    ++tallies[operation].calls;
    if (expected.status) ++tallies[operation].refusals;
    same(got, expected, label(s) + " " + names[operation] + ": the library's outcome");
}
void bytes(Operation operation, const Bytes& got, const Bytes& expected, Shape s) {
    tallies[operation].bytes += expected.size();
    same(got, expected, label(s) + " " + names[operation] + ": the library's bytes");
}

}  // namespace

void decode(Shape s, const Bytes& payload, const Rows& rows, u32 type, u64 stride, const Result& got) {
    const uint64_t dims[] = {s.n, s.k};
    Bytes out(got.bytes.size(), 0xa5);
    const u64 elements = out.size() / reference::width_of(type);
    Details d;
    const u32 status =
        rows.listed ? ninfer_codec_tensor_decode_rows(s.format, layout_of(s.format), dims, 2, payload.data(),
                                                      payload.size(), reinterpret_cast<const uint64_t*>(rows.list.data()),
                                                      rows.count, type, out.data(), elements, stride, &d.d)
                    : ninfer_codec_tensor_decode(s.format, layout_of(s.format), dims, 2, payload.data(), payload.size(),
                                                 rows.begin, rows.count, 0, s.k, type, out.data(), elements, stride, &d.d);
    outcomes(decoded, got.outcome, d.outcome(status), s);
    bytes(decoded, got.bytes, out, s);
}

// What a refusal leaves unspecified - the rows of the range from the failing one on, and the gaps if they belong to the
// range - is made equal before the comparison.
void quantize(Shape s, u32 type, const std::vector<u64>& source, u64 stride, u64 begin, u64 count, const Bytes& before,
              const Result& got) {
    const uint64_t dims[] = {s.n, s.k};
    const Bytes words = source_bytes(source, type);
    Bytes out = before, given = got.bytes;
    Details d;
    const u32 status =
        ninfer_codec_tensor_quantize(s.format, layout_of(s.format), dims, 2, begin, count, type, words.data(),
                                     source.size(), stride, out.data(), out.size(), &d.d);
    outcomes(quantized, got.outcome, d.outcome(status), s);
    if (status != 0) {
        const reference::Places p = reference::places(s);
        const auto forget = [&](u64 from, u64 to) {
            std::fill(out.begin() + from, out.begin() + to, 0);
            std::fill(given.begin() + from, given.begin() + to, 0);
        };
        const u64 planes[][2] = {{0, p.base_end}, {p.high, p.high_end}, {p.scale, p.bytes}};
        for (const auto& plane : planes) {
            const u64 row_bytes = (plane[1] - plane[0]) / s.n;
            forget(plane[0] + d.d.row * row_bytes, plane[0] + (begin + count) * row_bytes);
        }
        if (begin + count == s.n) forget(p.base_end, p.high), forget(p.high_end, p.scale);
    }
    bytes(quantized, given, out, s);
}

void validate(Shape s, const Bytes& payload, u64 begin, u64 count, const Outcome& got) {
    const uint64_t dims[] = {s.n, s.k};
    Details d;
    const u32 status = ninfer_codec_tensor_validate(s.format, layout_of(s.format), dims, 2, payload.data(), payload.size(),
                                                    begin, count, 0, s.k, &d.d);
    outcomes(validated, got, d.outcome(status), s);
}

void gather(Shape s, const Bytes& payload, const Rows& rows, const Result& got) {
    const uint64_t dims[] = {s.n, s.k};
    Bytes out(got.bytes.size(), 0xa5);
    Details d;
    const u32 status =
        rows.listed ? ninfer_codec_tensor_gather(s.format, layout_of(s.format), dims, 2, payload.data(), payload.size(),
                                                 reinterpret_cast<const uint64_t*>(rows.list.data()), rows.count,
                                                 out.data(), out.size(), &d.d)
                    : ninfer_codec_tensor_slice(s.format, layout_of(s.format), dims, 2, payload.data(), payload.size(),
                                                rows.begin, rows.count, out.data(), out.size(), &d.d);
    outcomes(gathered, got.outcome, d.outcome(status), s);
    bytes(gathered, got.bytes, out, s);
}

void swizzle(u64 n, u64 k, const Bytes& natural, const Bytes& plane) {
    const Shape s{reference::NVFP4, n, k};
    const reference::Places p = reference::places(s);
    const uint64_t dims[] = {n, k};
    Bytes payload(p.bytes, 0), codes(n * k / 2), scales(natural.size());
    std::copy(plane.begin(), plane.end(), payload.begin() + p.scale);
    uint32_t divisor = 0;
    Details d;
    const u32 status = ninfer_codec_tensor_unpack(s.format, layout_of(s.format), dims, 2, payload.data(), payload.size(), 0,
                                                  n, codes.data(), codes.size(), scales.data(), scales.size(), &divisor,
                                                  &d.d);
    outcomes(swizzled, Outcome{}, d.outcome(status), s);
    bytes(swizzled, natural, scales, s);
}

void far_decode(Shape s, const u8* payload, u64 payload_bytes, u64 begin, u64 count, u32 type, const Bytes& got) {
    const uint64_t dims[] = {s.n, s.k};
    Bytes out(got.size(), 0xa5);
    Details d;
    const u32 status =
        ninfer_codec_tensor_decode(s.format, layout_of(s.format), dims, 2, payload, payload_bytes, begin, count, 0, s.k, type,
                                   out.data(), out.size() / reference::width_of(type), s.k, &d.d);
    outcomes(decoded, Outcome{}, d.outcome(status), s);
    bytes(decoded, got, out, s);
}

void summary() {
    u64 calls = 0, bytes = 0;
    for (u32 i = 0; i < operations; ++i) {
        const Tally& t = tallies[i];
        std::printf("host library %-16s %8llu calls, %6llu of them refused, %12llu bytes compared\n", names[i],
                    static_cast<unsigned long long>(t.calls), static_cast<unsigned long long>(t.refusals),
                    static_cast<unsigned long long>(t.bytes));
        calls += t.calls, bytes += t.bytes;
    }
    std::printf("host library: %llu calls, %llu bytes compared\n", static_cast<unsigned long long>(calls),
                static_cast<unsigned long long>(bytes));
}

}  // namespace test::library
