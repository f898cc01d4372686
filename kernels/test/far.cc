// Past 32 bits: the last rows of payloads of several GB, result rows apart by more than 2^31 elements. On the CPU the
// memory is reserved but only touched where the rows lie.
#include "library.h"

#ifdef NINFER_CODEC_CUDA_SHIM
#include <sys/mman.h>
#endif

namespace test {
namespace {

using reference::F32;
using reference::TBF16;

class Huge {
  public:
    explicit Huge(u64 bytes) : bytes_(bytes) {
#ifdef NINFER_CODEC_CUDA_SHIM
        void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        ok_ = p != MAP_FAILED;
        p_ = static_cast<u8*>(p);
#else
        size_t available = 0, total = 0;
        cuda(cudaMemGetInfo(&available, &total), "memory");
        ok_ = available > bytes + (u64(1) << 30) && cudaMalloc(reinterpret_cast<void**>(&p_), bytes) == cudaSuccess &&
              cudaMemset(p_, 0, bytes) == cudaSuccess;
#endif
    }
    ~Huge() {
        if (!ok_) return;
#ifdef NINFER_CODEC_CUDA_SHIM
        munmap(p_, bytes_);
#else
        cudaFree(p_);
#endif
    }
    bool ok() const { return ok_; }
    u8* get() const { return p_; }
    void write(u64 at, const u8* from, u64 n) { cuda(cudaMemcpy(p_ + at, from, n, cudaMemcpyHostToDevice), "write"); }
    Bytes read(u64 at, u64 n) const {
        Bytes b(n);
        cuda(cudaMemcpy(b.data(), p_ + at, n, cudaMemcpyDeviceToHost), "read");
        return b;
    }

  private:
    u8* p_ = nullptr;
    u64 bytes_;
    bool ok_ = false;
};

// The spans of rows [begin, begin + count) in a payload, plane by plane, and those of a payload of these rows alone.
struct Spans {
    u64 from, to, bytes;
};
std::vector<Spans> spans(Shape s, u64 begin, u64 count) {
    const reference::Places p = reference::places(s), q = reference::places({s.format, count, s.k});
    const u64 base = p.base_end / s.n, high = (p.high_end - p.high) / s.n;
    std::vector<Spans> r = {{begin * base, 0, count * base}, {p.high + begin * high, q.high, count * high}};
    if (s.format == reference::NVFP4) {
        r.push_back({p.scale + begin * p.groups, q.scale, count * p.groups});  // begin and count are whole tiles
        r.push_back({p.divisor, q.divisor, 4});
    } else {
        const u64 scale = (p.bytes - p.scale) / s.n;
        r.push_back({p.scale + begin * scale, q.scale, count * scale});
    }
    return r;
}

void far_rows(Shape s) {
    const u64 count = 128, begin = s.n - count;
    const Shape some{s.format, count, s.k};
    const Bytes rows = random_payload(some, s.format);
    const reference::Places p = reference::places(s);
    Huge payload(p.bytes);
    if (!payload.ok()) return skipped(label(s) + ": not enough device memory");
    for (const Spans& x : spans(s, begin, count)) payload.write(x.from, rows.data() + x.to, x.bytes);
    const u64 stride = (u64(1) << 31) / 100 + 7;  // 128 rows are more than 2^31 elements
    Report report;
    for (bool listed : {false, true}) {
        Huge out(((count - 1) * stride + s.k) * 2);
        if (!out.ok()) return skipped(label(s) + ": not enough device memory");
        Buffer list(Rows::range(begin, count).bytes());
        const u64 elements = (count - 1) * stride + s.k;
        const u32 status =
            listed ? ninfer_codec_cuda_decode_list(s.format, s.n, s.k, payload.get(), p.bytes,
                                                   reinterpret_cast<const uint64_t*>(list.get()), count, TBF16,
                                                   out.get(), stride, elements, report.get(), nullptr)
                   : ninfer_codec_cuda_decode(s.format, s.n, s.k, payload.get(), p.bytes, begin, count, TBF16,
                                              out.get(), stride, elements, report.get(), nullptr);
        check(status == 0, label(s) + " far decode: status " + std::to_string(status));
        same(report.outcome(), Outcome{}, label(s) + " far decode");
        const Bytes expected = expected_decode(some, rows, Rows::range(0, count), TBF16);
        library::far_decode(s, payload.get(), p.bytes, begin, count, TBF16, expected);
        for (u64 i = 0; i < count; ++i) {
            same(out.read(i * stride * 2, s.k * 2), Bytes(expected.begin() + i * s.k * 2, expected.begin() + (i + 1) * s.k * 2),
                 label(s) + " far row");
        }
    }
    Buffer sliced(reference::places(some).bytes);
    check(ninfer_codec_cuda_slice(s.format, s.n, s.k, payload.get(), p.bytes, begin, count, sliced.get(), sliced.size(),
                                  report.get(), nullptr) == 0,
          label(s) + " far slice");
    same(report.outcome(), Outcome{}, label(s) + " far slice");
    std::vector<u64> all(count);
    for (u64 i = 0; i < count; ++i) all[i] = i;
    same(sliced.download(), reference::gather(some, rows, all), label(s) + " far slice");
    check(ninfer_codec_cuda_validate(s.format, s.n, s.k, payload.get(), p.bytes, begin, count, report.get(), nullptr) == 0,
          label(s) + " far validate");
    Outcome expected = reference::validate(some, rows, 0, count);
    // The rows' own gaps and places belong to the small payload; compare what is told in rows and columns.
    if (expected.status == reference::gap) expected = Outcome{};
    if (expected.row != ~u64(0)) expected.row += begin;
    same(report.outcome(), expected, label(s) + " far validate");
    if (!reference::grouped(s.format)) return;
    const std::vector<u64> source = random_source(count * s.k, F32, 9);
    Bytes quantized(rows.size(), 0);
    reference::quantize(some, quantized, 0, count, F32, source, s.k);
    Buffer in(source_bytes(source, F32));
    check(ninfer_codec_cuda_quantize(s.format, s.n, s.k, F32, in.get(), s.k, source.size(), begin, count, payload.get(),
                                     p.bytes, report.get(), nullptr) == 0,
          label(s) + " far quantize");
    same(report.outcome(), Outcome{}, label(s) + " far quantize");
    for (const Spans& x : spans(s, begin, count)) {
        if (x.bytes == 0) continue;
        same(payload.read(x.from, x.bytes), Bytes(quantized.begin() + x.to, quantized.begin() + x.to + x.bytes),
             label(s) + " far quantize");
    }
}

}  // namespace

void run_far() {
    Part part("far");
    const u64 rows = (u64(1) << 26) + 128;
    for (u32 format = reference::Q4; format <= reference::W8; ++format) far_rows({format, rows, 130});
    far_rows({reference::FP8, rows, 129});
    far_rows({reference::NVFP4, rows, 192});
}

}  // namespace test
