// Counted checks, device buffers with guards, comparison, and random inputs.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "../../include/ninfer_codec_cuda.h"
#include "reference.h"

namespace test {

using reference::Bytes;
using reference::Outcome;
using reference::Shape;
using reference::u16;
using reference::u32;
using reference::u64;
using reference::u8;

#ifdef NINFER_CODEC_CUDA_SHIM
constexpr bool shim = true;
#else
constexpr bool shim = false;
#endif

// ---------------------------------------------------------------------------------------------------------------
// Counting.

struct Counts {
    u64 passed = 0, failed = 0;
};
inline Counts& counts() {
    static Counts c;
    return c;
}
inline bool check(bool ok, const std::string& what) {
    ok ? ++counts().passed : ++counts().failed;
    if (!ok && counts().failed <= 40) std::printf("FAIL %s\n", what.c_str());
    return ok;
}
inline void cuda(cudaError_t e, const char* what) {
    if (e == cudaSuccess) return;
    std::printf("FAIL %s: %s\n", what, cudaGetErrorString(e));
    std::exit(1);
}
inline void skipped(const std::string& why) { std::printf("SKIPPED %s\n", why.c_str()); }

// Prints what a part did; a part without checks is a failure.
struct Part {
    std::string name;
    Counts before = counts();
    explicit Part(std::string n) : name(std::move(n)) {}
    ~Part() {
        const u64 passed = counts().passed - before.passed, failed = counts().failed - before.failed;
        std::printf("%-12s %8llu passed, %llu failed\n", name.c_str(), static_cast<unsigned long long>(passed),
                    static_cast<unsigned long long>(failed));
        std::fflush(stdout);
        if (passed + failed == 0) check(false, name + " checked nothing");
    }
};

// ---------------------------------------------------------------------------------------------------------------
// Numbers at random: splitmix64. The host library's digests are made from the same stream.

struct Random {
    u64 state;
    u64 next() {
        u64 z = state += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
    }
    u64 below(u64 n) { return next() % n; }
};

// ---------------------------------------------------------------------------------------------------------------
// Device memory: filled with 0xa5 first, guards before and (on a device) behind; the sanitizer sees the end exactly.

class Buffer {
  public:
    explicit Buffer(u64 bytes, u64 shift = 0) : bytes_(bytes), shift_(shift) {
        cuda(cudaMalloc(reinterpret_cast<void**>(&base_), front + shift + bytes + back), "cudaMalloc");
        cuda(cudaMemset(base_, 0xa5, front + shift + bytes + back), "cudaMemset");
    }
    Buffer(const Bytes& b, u64 shift = 0) : Buffer(b.size(), shift) { upload(b); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { cudaFree(base_); }

    u8* get() const { return base_ + front + shift_; }
    u64 size() const { return bytes_; }
    void upload(const Bytes& b) {
        cuda(cudaMemcpy(get(), b.data(), b.size(), cudaMemcpyHostToDevice), "upload");
    }
    Bytes download() const {
        Bytes r(bytes_);
        cuda(cudaMemcpy(r.data(), get(), bytes_, cudaMemcpyDeviceToHost), "download");
        return r;
    }
    bool guards_hold() const {
        Bytes all(front + shift_ + bytes_ + back);
        cuda(cudaMemcpy(all.data(), base_, all.size(), cudaMemcpyDeviceToHost), "download");
        for (u64 i = 0; i < all.size(); ++i) {
            if ((i < front + shift_ || i >= front + shift_ + bytes_) && all[i] != 0xa5) return false;
        }
        return true;
    }

  private:
    static constexpr u64 front = 256, back = shim ? 0 : 256;
    u8* base_ = nullptr;
    u64 bytes_, shift_;
};

class Report {
  public:
    ninfer_codec_cuda_report* get() const { return reinterpret_cast<ninfer_codec_cuda_report*>(buffer_.get()); }
    // Waits for the operation.
    Outcome outcome() const {
        cuda(cudaDeviceSynchronize(), "operation");
        ninfer_codec_cuda_report r;
        const Bytes b = buffer_.download();
        std::memcpy(&r, b.data(), sizeof r);
        Outcome o;
        o.status = r.status, o.fault = r.fault, o.row = r.row, o.column = r.column, o.group = r.group;
        o.offset = r.offset, o.word = r.word;
        return o;
    }

  private:
    Buffer buffer_{sizeof(ninfer_codec_cuda_report)};
};

// ---------------------------------------------------------------------------------------------------------------
// Comparing.

inline std::string label(Shape s) {
    return std::string(reference::name_of(s.format)) + " [" + std::to_string(s.n) + "," + std::to_string(s.k) + "]";
}
inline bool same(const Bytes& got, const Bytes& expected, const std::string& what) {
    if (got.size() == expected.size() && std::memcmp(got.data(), expected.data(), got.size()) == 0) {
        return check(true, what);
    }
    u64 at = 0;
    while (at < got.size() && at < expected.size() && got[at] == expected[at]) ++at;
    return check(false, what + ": differs at byte " + std::to_string(at));
}
inline bool same(const Outcome& got, const Outcome& expected, const std::string& what) {
    const auto text = [](const Outcome& o) {
        return "status " + std::to_string(o.status) + " fault " + std::to_string(o.fault) + " row " +
               std::to_string(o.row) + " column " + std::to_string(o.column) + " group " + std::to_string(o.group) +
               " offset " + std::to_string(o.offset) + " word " + std::to_string(o.word);
    };
    return check(got == expected, what + ": got " + text(got) + ", expected " + text(expected));
}

// ---------------------------------------------------------------------------------------------------------------
// Rows, results, expectations and inputs.

// The least multiple of 16 bytes of the narrowest type that holds a row.
inline u64 up_to_chunk(u64 k) { return (k + 7) / 8 * 8; }

struct Result {
    Outcome outcome;
    Bytes bytes;
};

// Rows to decode or gather: a list if not empty, else a range.
struct Rows {
    std::vector<u64> list;
    u64 begin = 0, count = 0;
    bool listed = false;
    static Rows range(u64 begin, u64 count) {
        Rows r;
        r.begin = begin, r.count = count;
        for (u64 i = 0; i < count; ++i) r.list.push_back(begin + i);
        return r;
    }
    static Rows of(std::vector<u64> l) {
        Rows r;
        r.count = l.size(), r.list = std::move(l), r.listed = true;
        return r;
    }
    Bytes bytes() const {
        Bytes b(list.size() * 8);
        if (!b.empty()) std::memcpy(b.data(), list.data(), b.size());
        return b;
    }
};

struct Placing {
    u64 payload_shift = 0, value_shift = 0, stride = 0;  // shift of values in elements; stride 0: none
    cudaStream_t stream = nullptr;
};

// What decode must give.
inline Bytes expected_decode(Shape s, const Bytes& payload, const Rows& rows, u32 type, u64 stride = 0) {
    const reference::Places p = reference::places(s);
    const int width = int(reference::width_of(type));
    if (stride == 0) stride = s.k;
    Bytes r(((rows.count - 1) * stride + s.k) * width, 0xa5);
    for (u64 i = 0; i < rows.count; ++i) {
        for (u64 c = 0; c < s.k; ++c) {
            reference::put(r, (i * stride + c) * width, width, reference::decode(s, p, payload, rows.list[i], c, type));
        }
    }
    return r;
}

inline Bytes source_bytes(const std::vector<u64>& source, u32 type) {
    const int width = int(reference::width_of(type));
    Bytes b(source.size() * width);
    for (u64 i = 0; i < source.size(); ++i) reference::put(b, i * width, width, source[i]);
    return b;
}

// A payload of random bytes, padding and gaps too, whose scale and divisor words are made legal.
inline Bytes random_payload(Shape s, u64 seed) {
    const reference::Places p = reference::places(s);
    Random random{seed};
    Bytes b(p.bytes);
    for (u64 i = 0; i < b.size(); i += 8) {
        const u64 r = random.next();
        for (u64 j = i; j < i + 8 && j < b.size(); ++j) b[j] = u8(r >> (8 * (j - i)));
    }
    if (s.format <= reference::I32) return b;
    const u64 end = s.format == reference::NVFP4 ? p.divisor : p.bytes;
    for (u64 at = p.scale; at < end; at += reference::scale_bytes(s.format)) {
        u64 w = reference::get(b, at, reference::scale_bytes(s.format));
        if (s.format == reference::NVFP4) {
            w &= 0x7f;
            if (w == 0x7f) w = 0x7e;
        } else {
            w &= 0x7fff;
            if (w >= (s.format == reference::FP8 ? 0x7f80u : 0x7c00u)) w &= 0x3fff;
        }
        reference::put(b, at, reference::scale_bytes(s.format), w);
    }
    if (s.format == reference::NVFP4) {
        u64 w = reference::get(b, p.divisor, 4) & 0x7fffffff;
        if (w == 0 || w >= 0x7f800000) w = 0x3f800000;
        reference::put(b, p.divisor, 4, w);
    }
    return b;
}

// Source words of a moderate range: magnitudes from 2^-31 to 2.
inline std::vector<u64> random_source(u64 elements, u32 type, u64 seed) {
    Random random{seed};
    std::vector<u64> r(elements);
    for (u64& w : r) {
        w = random.next();
        if (type == reference::F32) w = (w & 0x8fffffff) | 0x30000000;
        else if (type == reference::TBF16) w = (w & 0x8fff) | 0x3000;
        else w = w & 0xbfff;
    }
    return r;
}

// The parts.
void run_vectors(const std::string& folder);
void run_exhaustive();
void run_random();
void run_refusals();
void run_far();
void run_engine();
void run_digests(const std::string& file);
void run_bench(double gigabytes);

}  // namespace test
