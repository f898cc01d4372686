// Arguments at fault: a status before any launch, and nothing written.
#include "harness.h"

namespace test {
namespace {

// One call's arguments; each case changes one of them.
struct Call {
    u32 format = reference::Q4;
    u64 n = 4, k = 130;
    const void* payload = nullptr;
    u64 payload_length = 0, begin = 0, count = 4;
    u32 type = reference::F32;
    void* out = nullptr;
    u64 stride = 130, elements = 520;
    ninfer_codec_cuda_report* report = nullptr;
    const uint64_t* list = nullptr;
};

class Refusals {
  public:
    Refusals()
        : shape_{reference::Q4, 4, 130}, payload_(random_payload(shape_, 1)), big_(1 << 16), list_(Rows::of({0, 1, 2, 3}).bytes()) {
        good_.payload = payload_.get();
        good_.payload_length = payload_.size();
        good_.out = big_.get();
        good_.report = report_.get();
        good_.list = reinterpret_cast<const uint64_t*>(list_.get());
    }

    void run() {
        shapes();
        rows();
        values();
        pointers();
        quantize();
        others();
    }

  private:
    u32 decode(const Call& c) {
        return ninfer_codec_cuda_decode(c.format, c.n, c.k, c.payload, c.payload_length, c.begin, c.count, c.type, c.out,
                                        c.stride, c.elements, c.report, nullptr);
    }
    u32 decode_list(const Call& c) {
        return ninfer_codec_cuda_decode_list(c.format, c.n, c.k, c.payload, c.payload_length, c.list, c.count, c.type,
                                             c.out, c.stride, c.elements, c.report, nullptr);
    }
    u32 validate(const Call& c) {
        return ninfer_codec_cuda_validate(c.format, c.n, c.k, c.payload, c.payload_length, c.begin, c.count, c.report,
                                          nullptr);
    }
    u32 slice(const Call& c) {
        return ninfer_codec_cuda_slice(c.format, c.n, c.k, c.payload, c.payload_length, c.begin, c.count, c.out,
                                       c.elements, c.report, nullptr);
    }
    // The payload buffer is the source here, and `out` the payload.
    u32 quantize(const Call& c) {
        return ninfer_codec_cuda_quantize(c.format, c.n, c.k, c.type, c.out, c.stride, c.elements, c.begin, c.count,
                                          const_cast<void*>(c.payload), c.payload_length, c.report, nullptr);
    }

    // Expects a refusal that leaves every buffer as it was.
    void refuse(u32 status, u32 expected, const char* what) {
        check(status == expected, std::string(what) + ": status " + std::to_string(status) + ", expected " +
                                      std::to_string(expected));
        cuda(cudaDeviceSynchronize(), what);
        const bool untouched = big_.download() == Bytes(big_.size(), 0xa5) &&
                               payload_.download() == random_payload(shape_, 1) &&
                               report_.outcome().status == 0xa5a5a5a5u;
        check(untouched, std::string(what) + ": wrote something");
    }

    template <class Change> Call with(Change change) {
        Call c = good_;
        change(c);
        return c;
    }

    void shapes() {
        for (u32 format : {0u, 10u, 255u, 0xffffffffu}) {
            const Call c = with([&](Call& x) { x.format = format; });
            refuse(decode(c), NINFER_CODEC_STATUS_UNKNOWN_FORMAT, "format");
            refuse(validate(c), NINFER_CODEC_STATUS_UNKNOWN_FORMAT, "format");
            refuse(slice(c), NINFER_CODEC_STATUS_UNKNOWN_FORMAT, "format");
            refuse(quantize(c), NINFER_CODEC_STATUS_UNKNOWN_FORMAT, "format");
        }
        const Call two = with([](Call& x) { x.format = 10, x.type = 0, x.n = 0; });
        refuse(decode(two), NINFER_CODEC_STATUS_UNKNOWN_FORMAT, "the first of several");
        refuse(quantize(two), NINFER_CODEC_STATUS_UNKNOWN_FORMAT, "the first of several");
        refuse(decode(with([](Call& x) { x.n = 0; })), NINFER_CODEC_STATUS_ZERO_DIMENSION, "no rows");
        refuse(decode(with([](Call& x) { x.k = 0; })), NINFER_CODEC_STATUS_ZERO_DIMENSION, "no columns");
        refuse(decode(with([](Call& x) { x.format = reference::NVFP4; })), NINFER_CODEC_STATUS_NOT_MULTIPLE, "multiples");
        for (u32 format = 1; format <= 9; ++format) {
            const u64 n = u64(1) << 32, k = u64(1) << 32;
            refuse(decode(with([&](Call& x) { x.format = format, x.n = n, x.k = k; })), NINFER_CODEC_STATUS_OVERFLOW,
                   "overflow");
        }
        refuse(decode(with([](Call& x) { x.n = (u64(1) << 58) - 1, x.k = 1; })), NINFER_CODEC_STATUS_OVERFLOW, "overflow");
        const Call large = with([](Call& x) {
            x.format = reference::FP32, x.n = u64(1) << 55, x.k = 1, x.payload_length = u64(1) << 57, x.stride = 1;
            x.elements = ~u64(0);
        });
        refuse(decode(large), NINFER_CODEC_STATUS_TOO_LARGE, "too large");
        refuse(validate(large), NINFER_CODEC_STATUS_TOO_LARGE, "too large");
        for (i64 off : {-1, 1}) {
            const Call c = with([&](Call& x) { x.payload_length += u64(off); });
            refuse(decode(c), NINFER_CODEC_STATUS_PAYLOAD_LENGTH, "payload length");
            refuse(decode_list(c), NINFER_CODEC_STATUS_PAYLOAD_LENGTH, "payload length");
            refuse(validate(c), NINFER_CODEC_STATUS_PAYLOAD_LENGTH, "payload length");
            refuse(slice(c), NINFER_CODEC_STATUS_PAYLOAD_LENGTH, "payload length");
            refuse(quantize(c), NINFER_CODEC_STATUS_PAYLOAD_LENGTH, "payload length");
        }
        refuse(decode(with([](Call& x) { x.payload_length = ~u64(0); })), NINFER_CODEC_STATUS_PAYLOAD_LENGTH, "length");
        refuse(decode(with([](Call& x) { x.payload_length = 0; })), NINFER_CODEC_STATUS_PAYLOAD_LENGTH, "length");
    }

    void rows() {
        const Call none = with([](Call& x) { x.count = 0; });
        refuse(decode(none), NINFER_CODEC_STATUS_EMPTY_ROWS, "empty range");
        refuse(decode_list(none), NINFER_CODEC_STATUS_EMPTY_ROWS, "empty list");
        refuse(validate(none), NINFER_CODEC_STATUS_EMPTY_ROWS, "empty range");
        refuse(slice(none), NINFER_CODEC_STATUS_EMPTY_ROWS, "empty range");
        refuse(quantize(none), NINFER_CODEC_STATUS_EMPTY_ROWS, "empty range");
        const u64 ranges[][2] = {{0, 5}, {4, 1}, {5, 1}, {1, 4}, {~u64(0), 1}, {1, ~u64(0)}, {~u64(0), ~u64(0)}};
        for (const auto& r : ranges) {
            const Call c = with([&](Call& x) { x.begin = r[0], x.count = r[1]; });
            refuse(decode(c), NINFER_CODEC_STATUS_ROW_OUT_OF_RANGE, "range past the end");
            refuse(validate(c), NINFER_CODEC_STATUS_ROW_OUT_OF_RANGE, "range past the end");
            refuse(slice(c), NINFER_CODEC_STATUS_ROW_OUT_OF_RANGE, "range past the end");
            refuse(quantize(c), NINFER_CODEC_STATUS_ROW_OUT_OF_RANGE, "range past the end");
        }
        refuse(decode_list(with([](Call& x) { x.count = ~u64(0); })), NINFER_CODEC_STATUS_BUFFER_LENGTH, "list length");
    }

    void values() {
        for (u32 type : {0u, 8u, 0xffffffffu}) {
            refuse(decode(with([&](Call& x) { x.type = type; })), NINFER_CODEC_STATUS_UNKNOWN_VALUE_TYPE, "type");
            refuse(quantize(with([&](Call& x) { x.type = type; })), NINFER_CODEC_STATUS_UNKNOWN_VALUE_TYPE, "type");
        }
        refuse(decode(with([](Call& x) { x.type = reference::F64; })), NINFER_CODEC_STATUS_UNSUPPORTED_OUTPUT, "f64");
        refuse(decode(with([](Call& x) { x.type = NINFER_CODEC_VALUE_I32; })), NINFER_CODEC_STATUS_UNSUPPORTED_OUTPUT, "i32");
        refuse(quantize(with([](Call& x) { x.type = reference::F64; })), NINFER_CODEC_STATUS_UNSUPPORTED_SOURCE, "f64");
        const std::pair<u32, u32> direct[] = {{reference::BF16, reference::F16}, {reference::BF16, reference::F64},
                                              {reference::FP32, reference::TBF16}, {reference::FP32, reference::F16},
                                              {reference::I32, reference::F32}, {reference::I32, reference::TBF16}};
        for (const auto& [format, type] : direct) {
            const Call c = with([&, f = format, t = type](Call& x) {
                x.format = f, x.type = t, x.payload_length = 520 * (f == reference::BF16 ? 2 : 4);
            });
            refuse(decode(c), NINFER_CODEC_STATUS_UNSUPPORTED_OUTPUT, "direct output");
        }
        for (u64 stride : {u64(0), u64(129)}) {
            const Call c = with([&](Call& x) { x.stride = stride; });
            refuse(decode(c), NINFER_CODEC_STATUS_STRIDE, "stride");
            refuse(quantize(c), NINFER_CODEC_STATUS_STRIDE, "stride");
        }
        const Call huge = with([](Call& x) { x.stride = ~u64(0); });
        refuse(decode(huge), NINFER_CODEC_STATUS_BUFFER_LENGTH, "stride");
        refuse(quantize(huge), NINFER_CODEC_STATUS_BUFFER_LENGTH, "stride");
        const Call little = with([](Call& x) { x.elements = 519; });
        refuse(decode(little), NINFER_CODEC_STATUS_BUFFER_LENGTH, "output length");
        refuse(quantize(little), NINFER_CODEC_STATUS_BUFFER_LENGTH, "source length");
        refuse(slice(with([&](Call& x) { x.elements = x.payload_length + 1; })), NINFER_CODEC_STATUS_PAYLOAD_LENGTH,
               "slice length");
    }

    void pointers() {
        const auto null = [](auto member) {
            return [=](Call& x) { x.*member = nullptr; };
        };
        refuse(decode(with(null(&Call::payload))), NINFER_CODEC_STATUS_NULL_POINTER, "null payload");
        refuse(decode(with(null(&Call::out))), NINFER_CODEC_STATUS_NULL_POINTER, "null output");
        refuse(decode(with(null(&Call::report))), NINFER_CODEC_STATUS_NULL_POINTER, "null report");
        refuse(decode_list(with(null(&Call::list))), NINFER_CODEC_STATUS_NULL_POINTER, "null list");
        refuse(validate(with(null(&Call::payload))), NINFER_CODEC_STATUS_NULL_POINTER, "null payload");
        refuse(validate(with(null(&Call::report))), NINFER_CODEC_STATUS_NULL_POINTER, "null report");
        refuse(slice(with(null(&Call::out))), NINFER_CODEC_STATUS_NULL_POINTER, "null output");
        refuse(quantize(with(null(&Call::payload))), NINFER_CODEC_STATUS_NULL_POINTER, "null payload");
        refuse(quantize(with(null(&Call::out))), NINFER_CODEC_STATUS_NULL_POINTER, "null source");

        const auto bytes = [](const void* p, u64 n) { return static_cast<const void*>(static_cast<const u8*>(p) + n); };
        const auto moved = [&](u64 n) {
            return with([&](Call& x) { x.out = const_cast<void*>(bytes(x.out, n)); });
        };
        refuse(decode(moved(1)), NINFER_CODEC_STATUS_MISALIGNED, "misaligned output");
        refuse(decode(moved(2)), NINFER_CODEC_STATUS_MISALIGNED, "misaligned output");
        refuse(quantize(moved(2)), NINFER_CODEC_STATUS_MISALIGNED, "misaligned source");
        Call c = moved(1);
        c.type = reference::TBF16;
        refuse(decode(c), NINFER_CODEC_STATUS_MISALIGNED, "misaligned output");
        refuse(quantize(c), NINFER_CODEC_STATUS_MISALIGNED, "misaligned source");
        c = good_;
        c.report = reinterpret_cast<ninfer_codec_cuda_report*>(reinterpret_cast<u64>(c.report) + 4);
        refuse(decode(c), NINFER_CODEC_STATUS_MISALIGNED, "misaligned report");
        refuse(validate(c), NINFER_CODEC_STATUS_MISALIGNED, "misaligned report");
        refuse(quantize(c), NINFER_CODEC_STATUS_MISALIGNED, "misaligned report");
        c = good_;
        c.list = reinterpret_cast<const uint64_t*>(reinterpret_cast<u64>(c.list) + 4);
        refuse(decode_list(c), NINFER_CODEC_STATUS_MISALIGNED, "misaligned list");

        c = good_;
        c.out = const_cast<void*>(bytes(c.payload, 0));
        refuse(decode(c), NINFER_CODEC_STATUS_OVERLAP, "output over payload");
        refuse(quantize(c), NINFER_CODEC_STATUS_OVERLAP, "source over payload");
        c.elements = c.payload_length;
        refuse(slice(c), NINFER_CODEC_STATUS_OVERLAP, "slice over payload");
        c = good_;
        c.report = static_cast<ninfer_codec_cuda_report*>(c.out) + 1;
        refuse(decode(c), NINFER_CODEC_STATUS_OVERLAP, "report in the output");
        refuse(quantize(c), NINFER_CODEC_STATUS_OVERLAP, "report in the source");
        c = good_;
        c.list = static_cast<const uint64_t*>(c.out);
        refuse(decode_list(c), NINFER_CODEC_STATUS_OVERLAP, "list in the output");
    }

    void quantize() {
        const std::pair<u32, u64> lengths[] = {{reference::BF16, 1040}, {reference::FP32, 2080}, {reference::I32, 2080},
                                               {reference::FP8, 776}};
        for (const auto& [format, length] : lengths) {
            const Call c = with([&, f = format, l = length](Call& x) { x.format = f, x.payload_length = l; });
            refuse(quantize(c), NINFER_CODEC_STATUS_NO_CANONICAL_ENCODER, "no encoder");
        }
    }

    void others() {
        u8* const p = big_.get();
        const auto swizzle = [](u64 n, u64 k, const void* a, u64 al, void* b, u64 bl) {
            return ninfer_codec_cuda_swizzle_scales(n, k, a, al, b, bl, nullptr);
        };
        refuse(swizzle(128, 64, nullptr, 512, p, 512), NINFER_CODEC_STATUS_NULL_POINTER, "swizzle");
        refuse(swizzle(128, 64, p, 512, nullptr, 512), NINFER_CODEC_STATUS_NULL_POINTER, "swizzle");
        refuse(swizzle(127, 64, p, 508, p + 1024, 508), NINFER_CODEC_STATUS_NOT_MULTIPLE, "swizzle");
        refuse(swizzle(0, 64, p, 0, p + 1024, 0), NINFER_CODEC_STATUS_ZERO_DIMENSION, "swizzle");
        refuse(swizzle(128, 64, p, 511, p + 1024, 512), NINFER_CODEC_STATUS_BUFFER_LENGTH, "swizzle");
        refuse(swizzle(128, 64, p, 512, p + 1024, 513), NINFER_CODEC_STATUS_BUFFER_LENGTH, "swizzle");
        refuse(swizzle(128, 64, p, 512, p + 511, 512), NINFER_CODEC_STATUS_OVERLAP, "swizzle");
        refuse(ninfer_codec_cuda_payload_bytes(4, 1, 1, nullptr), NINFER_CODEC_STATUS_NULL_POINTER, "payload bytes");
    }

    using i64 = long long;
    Shape shape_;
    Buffer payload_, big_, list_;
    Report report_;
    Call good_;
};

}  // namespace

void run_refusals() {
    Part part("refusals");
    Refusals().run();
}

}  // namespace test
