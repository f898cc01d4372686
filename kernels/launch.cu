// The launchers of include/ninfer_codec_cuda.h: check, choose kernels, enqueue. No arithmetic on values.
#include <cuda_runtime.h>

#include "kernels.cuh"
#include "plan.hpp"
#include "status.cuh"

namespace ninfer_codec {
namespace {

using host::Checked;

static_assert(sizeof(Report) == sizeof(ninfer_codec_cuda_report), "one report");
static_assert(status_ok == NINFER_CODEC_STATUS_OK && status_row_out_of_range == NINFER_CODEC_STATUS_ROW_OUT_OF_RANGE &&
                  status_non_finite_source == NINFER_CODEC_STATUS_NON_FINITE_SOURCE &&
                  status_scale_overflow == NINFER_CODEC_STATUS_SCALE_OVERFLOW &&
                  status_invalid_scale == NINFER_CODEC_STATUS_INVALID_SCALE &&
                  status_invalid_divisor == NINFER_CODEC_STATUS_INVALID_DIVISOR &&
                  status_invalid_code == NINFER_CODEC_STATUS_INVALID_CODE &&
                  status_zero_scale_nonzero_code == NINFER_CODEC_STATUS_ZERO_SCALE_NONZERO_CODE &&
                  status_padding_code_not_zero == NINFER_CODEC_STATUS_PADDING_CODE_NOT_ZERO &&
                  status_padding_scale_not_zero == NINFER_CODEC_STATUS_PADDING_SCALE_NOT_ZERO &&
                  status_gap_not_zero == NINFER_CODEC_STATUS_GAP_NOT_ZERO,
              "one set of status numbers");
static_assert(fault_nan == NINFER_CODEC_FAULT_NAN && fault_infinite == NINFER_CODEC_FAULT_INFINITE &&
                  fault_negative_zero == NINFER_CODEC_FAULT_NEGATIVE_ZERO &&
                  fault_negative == NINFER_CODEC_FAULT_NEGATIVE && fault_zero == NINFER_CODEC_FAULT_ZERO,
              "one set of faults");
static_assert(bf16 == NINFER_CODEC_FORMAT_BF16 && fp32 == NINFER_CODEC_FORMAT_FP32 && i32 == NINFER_CODEC_FORMAT_I32 &&
                  q4 == NINFER_CODEC_FORMAT_Q4G64_F16S && q5 == NINFER_CODEC_FORMAT_Q5G64_F16S &&
                  q6 == NINFER_CODEC_FORMAT_Q6G64_F16S && w8 == NINFER_CODEC_FORMAT_W8G32_F16S &&
                  nvfp4 == NINFER_CODEC_FORMAT_NVFP4 && fp8 == NINFER_CODEC_FORMAT_FP8_E4M3FN_ROW_BF16S &&
                  type_f32 == NINFER_CODEC_VALUE_F32 && type_bf16 == NINFER_CODEC_VALUE_BF16 &&
                  type_f16 == NINFER_CODEC_VALUE_F16 && type_f64 == NINFER_CODEC_VALUE_F64,
              "one set of ids");

// Above these, keys of reports or byte offsets would not fit their words.
constexpr u64 most_elements = 1ull << 54;
constexpr u64 most_bytes = 1ull << 60;

// ---------------------------------------------------------------------------------------------------------------
// Enqueuing. The first error stays.

class Queue {
  public:
    explicit Queue(cudaStream_t stream) : stream_(stream) {}

    void reset(Report* report) {
        if (report && ok()) note(cudaMemsetAsync(report, 0xff, sizeof *report, stream_));
    }

    // One block for `items` / `block_items` and no more blocks than the device holds at once.
    template <class Args> void run(void (*kernel)(Args), Args args, u64 items, u64 block_items) {
        int device = 0, processors = 0, resident = 0;
        if (ok()) note(cudaGetDevice(&device));
        if (ok()) note(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
        if (ok()) note(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, block_threads, 0));
        if (!ok()) return;
        const u64 most = static_cast<u64>(processors) * static_cast<u64>(resident > 0 ? resident : 1);
        const u64 blocks = (items - 1) / block_items + 1;
        void* pointers[] = {&args};
        note(cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(blocks < most ? blocks : most)),
                              dim3(block_threads), pointers, 0, stream_));
    }

    u32 status() const { return error_ == cudaSuccess ? NINFER_CODEC_STATUS_OK : NINFER_CODEC_STATUS_CUDA_RUNTIME; }

  private:
    bool ok() const { return error_ == cudaSuccess; }
    void note(cudaError_t e) {
        if (ok()) error_ = e;
    }
    cudaStream_t stream_;
    cudaError_t error_ = cudaSuccess;
};

u64 ceil_div(u64 a, u64 b) { return (a - 1) / b + 1; }

// Moves bytes.rows.count rows; what lies side by side on both sides moves as one row.
void copy(Queue& queue, CopyArgs a) {
    if (a.bytes == 0) return;
    if (!a.rows.rows && a.from_row_bytes == a.bytes && a.to_row_bytes == a.bytes) {
        if (a.from) a.from += a.rows.begin * a.bytes;
        a.bytes *= a.rows.count;
        a.from_row_bytes = a.to_row_bytes = a.bytes;
        a.rows = {nullptr, 0, 1};
    }
    const u64 all = reinterpret_cast<u64>(a.from) | reinterpret_cast<u64>(a.to) | a.from_row_bytes | a.to_row_bytes |
                    a.bytes;
    const u64 unit = all % 16 == 0 ? 16 : all % 4 == 0 ? 4 : 1;
    queue.run(unit == 16  ? ninfer_codec_copy_rows_16
              : unit == 4 ? ninfer_codec_copy_rows_4
                          : ninfer_codec_copy_rows_1,
              a, a.rows.count * (a.bytes / unit), block_threads * copy_batch);
}

// Zeros between the planes of a payload.
void clear_gaps(Queue& queue, const Plan& p, u8* payload, const Report* report) {
    const u64 gaps[2][2] = {{p.n * p.base_row_bytes, p.high_offset},
                            {p.high_offset + p.n * p.high_row_bytes, p.scale_offset}};
    for (const auto& gap : gaps) {
        const u64 bytes = gap[1] > gap[0] ? gap[1] - gap[0] : 0;
        copy(queue, {{nullptr, 0, 1}, nullptr, payload + gap[0], bytes, bytes, bytes, report});
    }
}

void explain(Queue& queue, const ExplainArgs& a) { queue.run(ninfer_codec_explain, a, 1, 1); }

// ---------------------------------------------------------------------------------------------------------------
// Checks.

template <class T> bool misaligned(const T* p) { return reinterpret_cast<u64>(p) % alignof(T) != 0; }

struct Span {
    u64 begin, bytes;
    Span(const void* p, u64 b) : begin(reinterpret_cast<u64>(p)), bytes(b) {}
    bool overlaps(const Span& o) const { return begin < o.begin + o.bytes && o.begin < begin + bytes; }
};

// Plan, payload length and rows of an operation. A list is checked on the device.
u32 check_tensor(u32 format, u64 n, u64 k, u64 payload_length, const Rows& rows, Plan* plan) {
    if (const u32 s = host::make_plan(format, n, k, plan)) return s;
    if (payload_length != plan->payload_bytes) return NINFER_CODEC_STATUS_PAYLOAD_LENGTH;
    if (rows.count == 0) return NINFER_CODEC_STATUS_EMPTY_ROWS;
    if (!rows.rows && (rows.begin > n || rows.count > n - rows.begin)) return NINFER_CODEC_STATUS_ROW_OUT_OF_RANGE;
    return NINFER_CODEC_STATUS_OK;
}

// After the lengths: what the keys of reports and byte offsets can hold.
bool too_large(const Plan& plan, const Rows& rows, u64 value_bytes) {
    const Checked worked = Checked(rows.count) * plan.k;
    return !worked.ok || worked.value > most_elements || plan.n * plan.k > most_elements ||
           plan.payload_bytes > most_bytes || value_bytes > most_bytes;
}

// Stride and length of a buffer of values; *bytes becomes what is used of it.
u32 check_values(const Rows& rows, u64 k, u64 stride, u64 elements, u64 width, u64* bytes) {
    if (stride < k) return NINFER_CODEC_STATUS_STRIDE;
    const Checked needed = Checked(rows.count - 1) * stride + k;
    if (!needed.ok || elements < needed.value) return NINFER_CODEC_STATUS_BUFFER_LENGTH;
    const Checked used = needed * width;
    *bytes = used.ok ? used.value : ~0ull;
    return NINFER_CODEC_STATUS_OK;
}

u32 check_ids(u32 format, u32 type) {
    host::Traits t;
    if (!host::traits_of(format, &t)) return NINFER_CODEC_STATUS_UNKNOWN_FORMAT;
    const bool known = type >= NINFER_CODEC_VALUE_F32 && type <= NINFER_CODEC_VALUE_U64;
    return known ? NINFER_CODEC_STATUS_OK : NINFER_CODEC_STATUS_UNKNOWN_VALUE_TYPE;
}
u64 type_width(u32 type) { return type == type_f64 ? 8 : type == type_f32 ? 4 : 2; }
bool grouped(u32 format) { return format >= q4 && format <= w8; }
bool direct(u32 format) { return format <= i32; }
bool quantized(u32 format) { return !direct(format); }

// ---------------------------------------------------------------------------------------------------------------
// Choosing kernels.

using DecodeKernel = void (*)(DecodeArgs);
using QuantizeKernel = void (*)(QuantizeArgs);

#define NINFER_CODEC_TO(NAME)                                                                                \
    out_type == type_f32   ? ninfer_codec_decode_##NAME##_f32                                                \
    : out_type == type_bf16 ? ninfer_codec_decode_##NAME##_bf16                                              \
                            : ninfer_codec_decode_##NAME##_f16
DecodeKernel decode_kernel(u32 format, u32 out_type) {
    switch (format) {
        case bf16: return ninfer_codec_decode_bf16_f32;
        case q4: return NINFER_CODEC_TO(q4);
        case q5: return NINFER_CODEC_TO(q5);
        case q6: return NINFER_CODEC_TO(q6);
        case w8: return NINFER_CODEC_TO(w8);
        case fp8: return NINFER_CODEC_TO(fp8);
        default: return out_type == type_f64 ? ninfer_codec_decode_nvfp4_f64 : NINFER_CODEC_TO(nvfp4);
    }
}
#define NINFER_CODEC_FROM(NAME)                                                                              \
    source_type == type_f32   ? ninfer_codec_quantize_##NAME##_f32                                           \
    : source_type == type_bf16 ? ninfer_codec_quantize_##NAME##_bf16                                         \
                               : ninfer_codec_quantize_##NAME##_f16
QuantizeKernel quantize_kernel(u32 format, u32 source_type) {
    switch (format) {
        case q4: return NINFER_CODEC_FROM(q4);
        case q5: return NINFER_CODEC_FROM(q5);
        case q6: return NINFER_CODEC_FROM(q6);
        default: return NINFER_CODEC_FROM(w8);
    }
}

// The pass that looks at the scale words of rows, one item a row and group (NVFP4: and K tile).
void check_scales(Queue& queue, u32 format, const DecodeArgs& a) {
    if (direct(format)) return;
    const u64 k = a.plan.k;
    const u64 items = format == nvfp4 ? k / 64 : format == fp8 ? 1 : ceil_div(k, format == w8 ? 32 : 64);
    queue.run(format == nvfp4 ? ninfer_codec_check_nvfp4
              : format == fp8 ? ninfer_codec_check_fp8
              : format == w8  ? ninfer_codec_check_grouped_w8
                              : ninfer_codec_check_grouped_q,
              a, a.rows.count * items, block_threads);
}

void check_rows(Queue& queue, const DecodeArgs& a) {
    if (a.rows.rows) queue.run(ninfer_codec_check_rows, a, a.rows.count, block_threads);
}

// ---------------------------------------------------------------------------------------------------------------
// Operations.

u32 decode(u32 format, u64 n, u64 k, const void* payload, u64 payload_length, const Rows& rows, u32 out_type,
           void* out, u64 stride, u64 out_elements, ninfer_codec_cuda_report* report, cudaStream_t stream) {
    if (const u32 s = check_ids(format, out_type)) return s;
    Plan plan;
    if (const u32 s = check_tensor(format, n, k, payload_length, rows, &plan)) return s;
    const bool as_words = (format == bf16 && out_type == type_bf16) || (format == fp32 && out_type == type_f32);
    const bool legal = as_words || (format == bf16 && out_type == type_f32) ||
                       (quantized(format) && (out_type <= type_f16 || (out_type == type_f64 && format == nvfp4)));
    if (!legal) return NINFER_CODEC_STATUS_UNSUPPORTED_OUTPUT;
    const u64 width = type_width(out_type);
    u64 out_bytes = 0;
    if (const u32 s = check_values(rows, k, stride, out_elements, width, &out_bytes)) return s;
    if (too_large(plan, rows, out_bytes)) return NINFER_CODEC_STATUS_TOO_LARGE;
    if (reinterpret_cast<u64>(out) % width || misaligned(rows.rows) || misaligned(report)) {
        return NINFER_CODEC_STATUS_MISALIGNED;
    }
    const Span to(out, out_bytes), status(report, sizeof *report), from(payload, payload_length),
        list(rows.rows, rows.rows ? rows.count * 8 : 0);
    if (to.overlaps(from) || to.overlaps(status) || to.overlaps(list) || status.overlaps(from) ||
        status.overlaps(list)) {
        return NINFER_CODEC_STATUS_OVERLAP;
    }

    Queue queue(stream);
    Report* const r = reinterpret_cast<Report*>(report);
    const u8* const bytes = static_cast<const u8*>(payload);
    const DecodeArgs a{plan, rows, bytes, out, stride, r};
    queue.reset(r);
    check_rows(queue, a);
    check_scales(queue, format, a);
    if (as_words) {
        copy(queue, {rows, bytes, static_cast<u8*>(out), plan.base_row_bytes, stride * width, plan.base_row_bytes, r});
    } else {
        const u64 tile_columns = format == bf16 ? 256 : format == w8 || format == fp8 ? 512 : 1024;
        queue.run(decode_kernel(format, out_type), a, rows.count * ceil_div(k, tile_columns), block_warps);
    }
    explain(queue, {plan, rows, bytes, nullptr, 0, explain_decode, format, 0, 0, r});
    return queue.status();
}

// Planes of rows to a new payload.
u32 gather(u32 format, u64 n, u64 k, const void* payload, u64 payload_length, const Rows& rows, void* out,
           u64 out_length, ninfer_codec_cuda_report* report, cudaStream_t stream) {
    Plan plan, to_plan;
    if (const u32 s = check_tensor(format, n, k, payload_length, rows, &plan)) return s;
    if (const u32 s = host::make_plan(format, rows.count, k, &to_plan)) return s;
    if (out_length != to_plan.payload_bytes) return NINFER_CODEC_STATUS_PAYLOAD_LENGTH;
    if (too_large(plan, rows, out_length)) return NINFER_CODEC_STATUS_TOO_LARGE;
    if (misaligned(rows.rows) || misaligned(report)) return NINFER_CODEC_STATUS_MISALIGNED;
    const Span to_span(out, out_length), status(report, sizeof *report), from_span(payload, payload_length),
        list(rows.rows, rows.rows ? rows.count * 8 : 0);
    if (to_span.overlaps(from_span) || to_span.overlaps(status) || to_span.overlaps(list) ||
        status.overlaps(from_span) || status.overlaps(list)) {
        return NINFER_CODEC_STATUS_OVERLAP;
    }

    Queue queue(stream);
    Report* const r = reinterpret_cast<Report*>(report);
    const u8* const from = static_cast<const u8*>(payload);
    u8* const to = static_cast<u8*>(out);
    queue.reset(r);
    check_rows(queue, {plan, rows, from, nullptr, 0, r});
    copy(queue, {rows, from, to, plan.base_row_bytes, plan.base_row_bytes, plan.base_row_bytes, r});
    copy(queue, {rows, from + plan.high_offset, to + to_plan.high_offset, plan.high_row_bytes, plan.high_row_bytes,
                 plan.high_row_bytes, r});
    if (format == nvfp4) {
        queue.run(ninfer_codec_gather_scales,
                  SwizzleArgs{rows, from + plan.scale_offset, to + to_plan.scale_offset, k / 64, r},
                  rows.count / 4 * (k / 64), block_threads);
        copy(queue, {{nullptr, 0, 1}, from + plan.payload_bytes - 4, to + to_plan.payload_bytes - 4, 4, 4, 4, r});
    } else {
        copy(queue, {rows, from + plan.scale_offset, to + to_plan.scale_offset, plan.scale_row_bytes,
                     plan.scale_row_bytes, plan.scale_row_bytes, r});
    }
    clear_gaps(queue, to_plan, to, r);
    explain(queue, {plan, rows, from, nullptr, 0, explain_decode, format, 0, 0, r});
    return queue.status();
}

u32 reorder(void (*kernel)(SwizzleArgs), u64 n, u64 k, const void* from, u64 from_length, void* to, u64 to_length,
            cudaStream_t stream) {
    if (!from || !to) return NINFER_CODEC_STATUS_NULL_POINTER;
    Plan plan;
    if (const u32 s = host::make_plan(nvfp4, n, k, &plan)) return s;
    const u64 bytes = n * (k / 16);
    if (from_length != bytes || to_length != bytes) return NINFER_CODEC_STATUS_BUFFER_LENGTH;
    if (bytes > most_bytes) return NINFER_CODEC_STATUS_TOO_LARGE;
    if (Span(from, bytes).overlaps(Span(to, bytes))) return NINFER_CODEC_STATUS_OVERLAP;
    Queue queue(stream);
    queue.run(kernel, SwizzleArgs{{nullptr, 0, n}, static_cast<const u8*>(from), static_cast<u8*>(to), k / 64, nullptr},
              n / 4 * ceil_div(k / 64, 4), block_threads);
    return queue.status();
}

}  // namespace
}  // namespace ninfer_codec

using namespace ninfer_codec;

uint32_t ninfer_codec_cuda_payload_bytes(uint32_t format, uint64_t rows, uint64_t columns, uint64_t* bytes) {
    if (!bytes) return NINFER_CODEC_STATUS_NULL_POINTER;
    Plan plan;
    if (const u32 s = host::make_plan(format, rows, columns, &plan)) return s;
    *bytes = plan.payload_bytes;
    return NINFER_CODEC_STATUS_OK;
}

uint32_t ninfer_codec_cuda_decode(uint32_t format, uint64_t rows, uint64_t columns, const void* payload,
                                  uint64_t payload_length, uint64_t begin, uint64_t count, uint32_t out_type,
                                  void* out, uint64_t out_stride, uint64_t out_elements,
                                  ninfer_codec_cuda_report* report, cudaStream_t stream) {
    if (!payload || !out || !report) return NINFER_CODEC_STATUS_NULL_POINTER;
    return decode(format, rows, columns, payload, payload_length, {nullptr, begin, count}, out_type, out, out_stride,
                  out_elements, report, stream);
}

uint32_t ninfer_codec_cuda_decode_list(uint32_t format, uint64_t rows, uint64_t columns, const void* payload,
                                       uint64_t payload_length, const uint64_t* list, uint64_t count,
                                       uint32_t out_type, void* out, uint64_t out_stride, uint64_t out_elements,
                                       ninfer_codec_cuda_report* report, cudaStream_t stream) {
    if (!payload || !list || !out || !report) return NINFER_CODEC_STATUS_NULL_POINTER;
    return decode(format, rows, columns, payload, payload_length, {reinterpret_cast<const u64*>(list), 0, count},
                  out_type, out, out_stride, out_elements, report, stream);
}

uint32_t ninfer_codec_cuda_quantize(uint32_t format, uint64_t rows, uint64_t columns, uint32_t source_type,
                                    const void* source, uint64_t source_stride, uint64_t source_elements,
                                    uint64_t begin, uint64_t count, void* payload, uint64_t payload_length,
                                    ninfer_codec_cuda_report* report, cudaStream_t stream) {
    if (!source || !payload || !report) return NINFER_CODEC_STATUS_NULL_POINTER;
    if (const u32 s = check_ids(format, source_type)) return s;
    const Rows range{nullptr, begin, count};
    Plan plan;
    if (const u32 s = check_tensor(format, rows, columns, payload_length, range, &plan)) return s;
    if (!grouped(format)) return NINFER_CODEC_STATUS_NO_CANONICAL_ENCODER;
    if (source_type > type_f16) return NINFER_CODEC_STATUS_UNSUPPORTED_SOURCE;
    u64 source_bytes = 0;
    const u64 width = type_width(source_type);
    if (const u32 s = check_values(range, columns, source_stride, source_elements, width, &source_bytes)) return s;
    if (too_large(plan, range, source_bytes)) return NINFER_CODEC_STATUS_TOO_LARGE;
    if (reinterpret_cast<u64>(source) % width || misaligned(report)) return NINFER_CODEC_STATUS_MISALIGNED;
    const Span from(source, source_bytes), to(payload, payload_length), status(report, sizeof *report);
    if (from.overlaps(to) || status.overlaps(to) || status.overlaps(from)) return NINFER_CODEC_STATUS_OVERLAP;

    Queue queue(stream);
    Report* const r = reinterpret_cast<Report*>(report);
    u8* const bytes = static_cast<u8*>(payload);
    queue.reset(r);
    queue.run(quantize_kernel(format, source_type), QuantizeArgs{plan, range, source, source_stride, bytes, r},
              count * ceil_div(columns, 256), block_warps);
    if (begin + count == rows) clear_gaps(queue, plan, bytes, nullptr);
    explain(queue, {plan, range, bytes, source, source_stride, explain_quantize, format, source_type, 0, r});
    return queue.status();
}

uint32_t ninfer_codec_cuda_validate(uint32_t format, uint64_t rows, uint64_t columns, const void* payload,
                                    uint64_t payload_length, uint64_t begin, uint64_t count,
                                    ninfer_codec_cuda_report* report, cudaStream_t stream) {
    if (!payload || !report) return NINFER_CODEC_STATUS_NULL_POINTER;
    const Rows range{nullptr, begin, count};
    Plan plan;
    if (const u32 s = check_tensor(format, rows, columns, payload_length, range, &plan)) return s;
    if (too_large(plan, range, 0)) return NINFER_CODEC_STATUS_TOO_LARGE;
    if (misaligned(report)) return NINFER_CODEC_STATUS_MISALIGNED;
    if (Span(payload, payload_length).overlaps(Span(report, sizeof *report))) return NINFER_CODEC_STATUS_OVERLAP;

    Queue queue(stream);
    Report* const r = reinterpret_cast<Report*>(report);
    const u8* const bytes = static_cast<const u8*>(payload);
    const DecodeArgs a{plan, range, bytes, nullptr, 0, r};
    queue.reset(r);
    const u64 codes = ceil_div(plan.base_row_bytes, 16);
    switch (format) {
        case q4: queue.run(ninfer_codec_validate_q4, a, count * codes, block_threads); break;
        case q5: queue.run(ninfer_codec_validate_q5, a, count * codes, block_threads); break;
        case q6: queue.run(ninfer_codec_validate_q6, a, count * codes, block_threads); break;
        case w8: queue.run(ninfer_codec_validate_w8, a, count * codes, block_threads); break;
        case fp8: queue.run(ninfer_codec_validate_fp8, a, count * codes, block_threads); break;
        case nvfp4: queue.run(ninfer_codec_validate_nvfp4, a, count * (columns / 64), block_threads); break;
        default: break;
    }
    explain(queue, {plan, range, bytes, nullptr, 0, explain_validate, format, 0, 0, r});
    return queue.status();
}

uint32_t ninfer_codec_cuda_slice(uint32_t format, uint64_t rows, uint64_t columns, const void* payload,
                                 uint64_t payload_length, uint64_t begin, uint64_t count, void* out,
                                 uint64_t out_length, ninfer_codec_cuda_report* report, cudaStream_t stream) {
    if (!payload || !out || !report) return NINFER_CODEC_STATUS_NULL_POINTER;
    return gather(format, rows, columns, payload, payload_length, {nullptr, begin, count}, out, out_length, report,
                  stream);
}

uint32_t ninfer_codec_cuda_gather(uint32_t format, uint64_t rows, uint64_t columns, const void* payload,
                                  uint64_t payload_length, const uint64_t* list, uint64_t count, void* out,
                                  uint64_t out_length, ninfer_codec_cuda_report* report, cudaStream_t stream) {
    if (!payload || !list || !out || !report) return NINFER_CODEC_STATUS_NULL_POINTER;
    return gather(format, rows, columns, payload, payload_length, {reinterpret_cast<const u64*>(list), 0, count}, out,
                  out_length, report, stream);
}

uint32_t ninfer_codec_cuda_swizzle_scales(uint64_t rows, uint64_t columns, const void* natural,
                                          uint64_t natural_length, void* plane, uint64_t plane_length,
                                          cudaStream_t stream) {
    return reorder(ninfer_codec_swizzle_scales, rows, columns, natural, natural_length, plane, plane_length, stream);
}

uint32_t ninfer_codec_cuda_unswizzle_scales(uint64_t rows, uint64_t columns, const void* plane,
                                            uint64_t plane_length, void* natural, uint64_t natural_length,
                                            cudaStream_t stream) {
    return reorder(ninfer_codec_unswizzle_scales, rows, columns, plane, plane_length, natural, natural_length, stream);
}
