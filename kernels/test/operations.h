// The launchers as functions from host bytes to host bytes. Every result is also compared with the host library's,
// where that is linked.
#pragma once

#include "harness.h"
#include "library.h"

namespace test {

// Decodes into a buffer of exactly the needed length; between rows it stays 0xa5.
inline Result device_decode(Shape s, const Bytes& payload, const Rows& rows, u32 type, Placing at = {}) {
    const u64 stride = at.stride ? at.stride : s.k, width = reference::width_of(type);
    const u64 elements = (rows.count - 1) * stride + s.k;
    Buffer in(payload, at.payload_shift), out(elements * width, at.value_shift * width), list(rows.bytes());
    Report report;
    const u32 status =
        rows.listed ? ninfer_codec_cuda_decode_list(s.format, s.n, s.k, in.get(), payload.size(),
                                                    reinterpret_cast<const uint64_t*>(list.get()), rows.count, type,
                                                    out.get(), stride, elements, report.get(), at.stream)
                    : ninfer_codec_cuda_decode(s.format, s.n, s.k, in.get(), payload.size(), rows.begin, rows.count,
                                               type, out.get(), stride, elements, report.get(), at.stream);
    check(status == 0, label(s) + " decode: status " + std::to_string(status));
    Result r{report.outcome(), out.download()};
    check(out.guards_hold() && in.guards_hold(), label(s) + " decode: guards");
    library::decode(s, payload, rows, type, stride, r);
    return r;
}

// Quantizes rows into a copy of `payload`.
inline Result device_quantize(Shape s, u32 type, const std::vector<u64>& source, u64 begin, u64 count,
                              const Bytes& payload, Placing at = {}) {
    const u64 stride = at.stride ? at.stride : s.k, width = reference::width_of(type);
    Buffer in(source_bytes(source, type), at.value_shift * width), out(payload, at.payload_shift);
    Report report;
    const u32 status = ninfer_codec_cuda_quantize(s.format, s.n, s.k, type, in.get(), stride, source.size(), begin,
                                                  count, out.get(), payload.size(), report.get(), at.stream);
    check(status == 0, label(s) + " quantize: status " + std::to_string(status));
    Result r{report.outcome(), out.download()};
    check(out.guards_hold() && in.guards_hold(), label(s) + " quantize: guards");
    library::quantize(s, type, source, stride, begin, count, payload, r);
    return r;
}

inline Outcome device_validate(Shape s, const Bytes& payload, u64 begin, u64 count, u64 shift = 0) {
    Buffer in(payload, shift);
    Report report;
    const u32 status = ninfer_codec_cuda_validate(s.format, s.n, s.k, in.get(), payload.size(), begin, count,
                                                  report.get(), nullptr);
    check(status == 0, label(s) + " validate: status " + std::to_string(status));
    const Outcome o = report.outcome();
    library::validate(s, payload, begin, count, o);
    return o;
}

inline Result device_gather(Shape s, const Bytes& payload, const Rows& rows, u64 shift = 0, u64 out_shift = 0) {
    u64 bytes = 0;
    check(ninfer_codec_cuda_payload_bytes(s.format, rows.count, s.k, reinterpret_cast<uint64_t*>(&bytes)) == 0,
          "payload bytes");
    Buffer in(payload, shift), out(bytes, out_shift), list(rows.bytes());
    Report report;
    const u32 status =
        rows.listed ? ninfer_codec_cuda_gather(s.format, s.n, s.k, in.get(), payload.size(),
                                               reinterpret_cast<const uint64_t*>(list.get()), rows.count, out.get(),
                                               bytes, report.get(), nullptr)
                    : ninfer_codec_cuda_slice(s.format, s.n, s.k, in.get(), payload.size(), rows.begin, rows.count,
                                              out.get(), bytes, report.get(), nullptr);
    check(status == 0, label(s) + " gather: status " + std::to_string(status));
    Result r{report.outcome(), out.download()};
    check(out.guards_hold() && in.guards_hold(), label(s) + " gather: guards");
    library::gather(s, payload, rows, r);
    return r;
}

}  // namespace test
