// Timing: each operation on tensors of several GB against a device-to-device copy, by bytes moved.
//
// An operation is timed as a caller sees it: all its launches, between two events, median of the runs. Buffers
// rotate where memory allows, contents are random, and afterwards rows at the beginning, middle and end are compared
// with the oracle.
#include <algorithm>
#include <functional>

#include "harness.h"

namespace test {
namespace {

using reference::F16;
using reference::F32;
using reference::F64;
using reference::TBF16;

constexpr u64 columns = 8192;
constexpr int warm_runs = 2, timed_runs = 9;

// Plain device memory without guards, filled from a random chunk.
struct Memory {
    u8* p = nullptr;
    u64 bytes = 0;
    explicit Memory(u64 n) : bytes(n) { cuda(cudaMalloc(reinterpret_cast<void**>(&p), n), "cudaMalloc"); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() { cudaFree(p); }
    void fill(u64 at, u64 n, const Bytes& chunk) {
        for (u64 done = 0; done < n;) {
            const u64 part = std::min<u64>(n - done, done == 0 ? chunk.size() : done);
            if (done == 0) cuda(cudaMemcpy(p + at, chunk.data(), part, cudaMemcpyHostToDevice), "fill");
            else cuda(cudaMemcpy(p + at + done, p + at, part, cudaMemcpyDeviceToDevice), "fill");
            done += part;
        }
    }
    Bytes read(u64 at, u64 n) const {
        Bytes b(n);
        cuda(cudaMemcpy(b.data(), p + at, n, cudaMemcpyDeviceToHost), "read");
        return b;
    }
};

// Milliseconds of the median run; `run` gets the run's number, to rotate buffers.
double median_ms(const std::function<u32(int)>& run, const char* what) {
    cudaEvent_t begin, end;
    cuda(cudaEventCreate(&begin), "event");
    cuda(cudaEventCreate(&end), "event");
    std::vector<float> ms;
    for (int i = 0; i < warm_runs + timed_runs; ++i) {
        cuda(cudaEventRecord(begin, nullptr), "event");
        check(run(i) == 0, std::string(what) + ": status");
        cuda(cudaEventRecord(end, nullptr), "event");
        cuda(cudaEventSynchronize(end), what);
        float t = 0;
        cuda(cudaEventElapsedTime(&t, begin, end), "event");
        if (i >= warm_runs) ms.push_back(t);
    }
    cuda(cudaEventDestroy(begin), "event");
    cuda(cudaEventDestroy(end), "event");
    std::sort(ms.begin(), ms.end());
    return ms[ms.size() / 2];
}

double copy_rate = 0;  // bytes a second, read plus written
int below_goal = 0;

void line(const std::string& what, u64 bytes, double ms, double goal) {
    const double rate = double(bytes) / ms * 1e3, ratio = rate / copy_rate;
    if (goal > 0 && ratio < goal) ++below_goal;
    std::printf("| %-34s | %7.2f | %8.3f | %7.0f | %5.2f | %4s |%s\n", what.c_str(), double(bytes) / 1e9, ms, rate / 1e9,
                ratio, goal > 0 ? (goal == 0.9 ? "0.90" : "0.80") : "", goal > 0 && ratio < goal ? " below" : "");
    std::fflush(stdout);
}

void measure_copy(u64 bytes) {
    Memory a(bytes / 2), b(bytes / 2);
    cuda(cudaMemset(a.p, 1, a.bytes), "memset");
    const double ms = median_ms([&](int) {
        return cudaMemcpyAsync(b.p, a.p, a.bytes, cudaMemcpyDeviceToDevice, nullptr) == cudaSuccess ? 0u : 1u;
    }, "copy");
    copy_rate = double(a.bytes) * 2 / ms * 1e3;
    line("device-to-device copy", a.bytes * 2, ms, 0);
}

Bytes random_bytes(u64 n, u64 seed) {
    Random random{seed};
    Bytes b(n);
    for (u64 i = 0; i + 8 <= n; i += 8) reference::put(b, i, 8, random.next());
    return b;
}

// A payload with random codes, legal random scales and zero gaps.
void fill_payload(Shape s, const Memory& m, u64 seed) {
    const reference::Places p = reference::places(s);
    cuda(cudaMemset(m.p, 0, m.bytes), "memset");
    const u64 chunk = std::min<u64>(p.base_end, 8 << 20);
    Memory& writable = const_cast<Memory&>(m);
    writable.fill(0, p.base_end, random_bytes(chunk, seed));
    if (p.high_end > p.high) writable.fill(p.high, p.high_end - p.high, random_bytes(1 << 20, seed + 1));
    if (s.format <= reference::I32) return;
    // The scale plane of a smaller payload is legal words; repeat it.
    const Shape small{s.format, s.format == reference::FP8 ? u64(1) << 16 : 1280, s.format == reference::FP8 ? 1 : columns};
    const Bytes words = random_payload(small, seed + 2);
    const reference::Places q = reference::places(small);
    const u64 end = s.format == reference::NVFP4 ? q.divisor : q.bytes;
    const u64 to_end = s.format == reference::NVFP4 ? p.divisor : p.bytes;
    writable.fill(p.scale, to_end - p.scale, Bytes(words.begin() + q.scale, words.begin() + end));
    if (s.format == reference::NVFP4) writable.fill(p.divisor, 4, {0x00, 0x00, 0x40, 0x40});
}

u64 rows_for(double bytes, u64 row_bytes) {
    const u64 rows = u64(bytes / double(row_bytes)) / 128 * 128;
    return rows ? rows : 128;
}

std::string type_name(u32 type) { return type == F32 ? "f32" : type == TBF16 ? "bf16" : type == F16 ? "f16" : "f64"; }
std::string short_name(u32 format) { return std::string(reference::name_of(format)).substr(0, format == reference::FP8 ? 8 : 5); }

// Rows [begin, begin + 128) of a payload on the device as a small payload on the host, through `slice`.
Bytes sliced(Shape s, const Memory& payload, u64 begin) {
    Buffer out(reference::places({s.format, 128, s.k}).bytes);
    Report report;
    check(ninfer_codec_cuda_slice(s.format, s.n, s.k, payload.p, payload.bytes, begin, 128, out.get(), out.size(),
                                  report.get(), nullptr) == 0,
          "slice");
    same(report.outcome(), Outcome{}, "slice");
    return out.download();
}

void bench_decode(u32 format, u32 type, double bytes) {
    const u64 payload_row = reference::places({format, 128, columns}).bytes / 128, width = reference::width_of(type);
    const Shape s{format, rows_for(bytes, payload_row + columns * width), columns};
    const u64 payload_bytes = reference::places(s).bytes, elements = s.n * s.k;
    size_t available = 0, total = 0;
    cuda(cudaMemGetInfo(&available, &total), "memory");
    if (available < payload_bytes + elements * width + (64u << 20)) {
        return skipped(label(s) + " decode: not enough device memory");
    }
    const bool two = available > 2 * (payload_bytes + elements * width) + (u64(1) << 30);
    Memory in0(payload_bytes), out0(elements * width);
    Memory in1(two ? payload_bytes : 256), out1(two ? elements * width : 256);
    fill_payload(s, in0, 1);
    if (two) fill_payload(s, in1, 2);
    cuda(cudaMemset(out0.p, 0xa5, out0.bytes), "memset");
    cuda(cudaMemset(out1.p, 0xa5, out1.bytes), "memset");
    Report report;
    const double ms = median_ms([&](int i) {
        const bool second = two && i % 2;
        return ninfer_codec_cuda_decode(format, s.n, s.k, second ? in1.p : in0.p, payload_bytes, 0, s.n, type,
                                        second ? out1.p : out0.p, s.k, elements, report.get(), nullptr);
    }, "decode");
    same(report.outcome(), Outcome{}, "decode");
    line("decode " + short_name(format) + " to " + type_name(type), payload_bytes + elements * width, ms, 0.9);
    for (u64 begin : {u64(0), s.n / 2 / 128 * 128, s.n - 128}) {
        const Shape part{format, 128, columns};
        // Two rows of the 128 are enough for the oracle's patience.
        for (u64 row : {u64(0), u64(127)}) {
            const Bytes got = out0.read((begin + row) * s.k * width, s.k * width);
            same(got, expected_decode(part, sliced(s, in0, begin), Rows::range(row, 1), type), label(s) + " large decode");
        }
    }
}

void bench_quantize(u32 format, u32 type, double bytes) {
    const u64 payload_row = reference::places({format, 128, columns}).bytes / 128, width = reference::width_of(type);
    const Shape s{format, rows_for(bytes, payload_row + columns * width), columns};
    const u64 payload_bytes = reference::places(s).bytes, elements = s.n * s.k;
    size_t available = 0, total = 0;
    cuda(cudaMemGetInfo(&available, &total), "memory");
    if (available < payload_bytes + elements * width + (64u << 20)) {
        return skipped(label(s) + " quantize: not enough device memory");
    }
    const bool two = available > 2 * (payload_bytes + elements * width) + (u64(1) << 30);
    Memory in(elements * width), out0(payload_bytes), out1(two ? payload_bytes : 256);
    const u64 pattern = std::min<u64>(elements, columns * 128);
    const std::vector<u64> source = random_source(pattern, type, 5);
    in.fill(0, in.bytes, source_bytes(source, type));
    cuda(cudaMemset(out0.p, 0xa5, out0.bytes), "memset");
    Report report;
    const double ms = median_ms([&](int i) {
        return ninfer_codec_cuda_quantize(format, s.n, s.k, type, in.p, s.k, elements, 0, s.n,
                                          two && i % 2 ? out1.p : out0.p, payload_bytes, report.get(), nullptr);
    }, "quantize");
    same(report.outcome(), Outcome{}, "quantize");
    line("quantize " + type_name(type) + " to " + short_name(format), payload_bytes + elements * width, ms, 0.8);
    const Shape part{format, 128, columns};
    Bytes expected(reference::places(part).bytes, 0);
    reference::quantize(part, expected, 0, 128, type, source, columns);
    for (u64 begin : {u64(0), s.n / 2 / 128 * 128, s.n - 128}) same(sliced(s, out0, begin), expected, "large quantize");
}

void bench_gather(u32 format, double bytes) {
    const u64 payload_row = reference::places({format, 128, columns}).bytes / 128;
    const Shape s{format, rows_for(bytes / 2, payload_row), columns};
    const u64 payload_bytes = reference::places(s).bytes;
    size_t available = 0, total = 0;
    cuda(cudaMemGetInfo(&available, &total), "memory");
    if (available < 2 * payload_bytes + s.n * 8 + (64u << 20)) {
        return skipped(label(s) + " gather: not enough device memory");
    }
    Memory in(payload_bytes), out(payload_bytes);
    fill_payload(s, in, 3);
    Report report;
    const double slice_ms = median_ms([&](int) {
        return ninfer_codec_cuda_slice(format, s.n, s.k, in.p, payload_bytes, 0, s.n, out.p, payload_bytes, report.get(),
                                       nullptr);
    }, "slice");
    line("slice " + short_name(format), 2 * payload_bytes, slice_ms, 0.8);
    std::vector<u64> list(s.n);
    for (u64 i = 0; i < s.n; ++i) list[i] = i;
    Random random{7};
    for (u64 i = s.n - 1; i > 0; --i) std::swap(list[i], list[random.below(i + 1)]);
    Memory device_list(s.n * 8);
    cuda(cudaMemcpy(device_list.p, list.data(), s.n * 8, cudaMemcpyHostToDevice), "list");
    const double ms = median_ms([&](int) {
        return ninfer_codec_cuda_gather(format, s.n, s.k, in.p, payload_bytes,
                                        reinterpret_cast<const uint64_t*>(device_list.p), s.n, out.p, payload_bytes,
                                        report.get(), nullptr);
    }, "gather");
    same(report.outcome(), Outcome{}, "gather");
    line("gather " + short_name(format) + ", random rows", 2 * payload_bytes, ms, 0.8);
    const Shape part{format, 128, columns};
    const Bytes got = sliced(s, out, s.n - 128);
    for (u64 i : {u64(0), u64(127)}) {
        const u64 row = list[s.n - 128 + i];
        const Bytes source = sliced(s, in, row / 128 * 128);
        same(expected_decode(part, got, Rows::range(i, 1), F32),
             expected_decode(part, source, Rows::range(row % 128, 1), F32), "large gather");
    }
}

void bench_validate(u32 format, double bytes) {
    const u64 payload_row = reference::places({format, 128, columns}).bytes / 128;
    const Shape s{format, rows_for(bytes, payload_row), columns};
    const u64 payload_bytes = reference::places(s).bytes;
    size_t available = 0, total = 0;
    cuda(cudaMemGetInfo(&available, &total), "memory");
    if (available < payload_bytes + (64u << 20)) return skipped(label(s) + " validate: not enough device memory");
    Memory in(payload_bytes);
    fill_payload(s, in, 4);
    cuda(cudaMemset(in.p, 0x11, reference::places(s).base_end), "memset");
    Report report;
    const double ms = median_ms([&](int) {
        return ninfer_codec_cuda_validate(format, s.n, s.k, in.p, payload_bytes, 0, s.n, report.get(), nullptr);
    }, "validate");
    cuda(cudaDeviceSynchronize(), "validate");
    line("validate " + short_name(format) + " (reads only)", payload_bytes, ms, 0);
}

void bench_swizzle(double bytes) {
    const u64 n = rows_for(bytes / 2, columns / 16), plane = n * columns / 16;
    Memory a(plane), b(plane);
    a.fill(0, plane, random_bytes(std::min<u64>(plane, 1 << 20), 11));
    line("swizzle scales", 2 * plane, median_ms([&](int) {
        return ninfer_codec_cuda_swizzle_scales(n, columns, a.p, plane, b.p, plane, nullptr);
    }, "swizzle"), 0);
    line("unswizzle scales", 2 * plane, median_ms([&](int) {
        return ninfer_codec_cuda_unswizzle_scales(n, columns, b.p, plane, a.p, plane, nullptr);
    }, "unswizzle"), 0);
}

}  // namespace

void run_bench(double gigabytes) {
    Part part("bench");
    const double bytes = gigabytes * 1e9;
    std::printf("| operation                          |      GB |       ms |    GB/s | ratio | goal |\n"
                "|------------------------------------|---------|----------|---------|-------|------|\n");
    measure_copy(u64(bytes) / 512 * 512);
    for (u32 format = reference::Q4; format <= reference::FP8; ++format) {
        for (u32 type : {F32, TBF16, F16}) bench_decode(format, type, bytes);
    }
    bench_decode(reference::NVFP4, F64, bytes);
    bench_decode(reference::BF16, F32, bytes);
    for (u32 format = reference::Q4; format <= reference::W8; ++format) {
        for (u32 type : {F32, TBF16, F16}) bench_quantize(format, type, bytes);
    }
    for (u32 format : {reference::BF16, reference::Q4, reference::Q5, reference::Q6, reference::W8, reference::NVFP4,
                       reference::FP8}) {
        bench_gather(format, bytes);
    }
    for (u32 format : {reference::Q4, reference::Q6, reference::W8, reference::NVFP4, reference::FP8}) {
        bench_validate(format, bytes);
    }
    bench_swizzle(bytes / 8);
    if (shim) std::printf("rates on a CPU say nothing about a device\n");
    else std::printf("%d operations below their goal\n", below_goal);
}

}  // namespace test
