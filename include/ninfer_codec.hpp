/*
 * ninfer_codec.hpp: a thin C++20 wrapper over ninfer_codec.h. No exceptions, no allocation, no state.
 *
 *     auto tensor = ninfer_codec::Tensor::open(Format::q4g64_f16s, Layout::row_split_k128_v1, dims, payload);
 *     if (!tensor) return report(tensor.error());
 *     if (auto done = tensor->decode({.begin = 7, .count = 1}, row); !done) return report(done.error());
 *
 * Rules for shapes, lengths, threads and failures are those of ninfer_codec.h. Views borrow: the payload must
 * outlive them.
 */
#ifndef NINFER_CODEC_HPP
#define NINFER_CODEC_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "ninfer_codec.h"

namespace ninfer_codec {

enum class Format : std::uint32_t {
    bf16 = NINFER_CODEC_FORMAT_BF16,
    fp32 = NINFER_CODEC_FORMAT_FP32,
    i32 = NINFER_CODEC_FORMAT_I32,
    q4g64_f16s = NINFER_CODEC_FORMAT_Q4G64_F16S,
    q5g64_f16s = NINFER_CODEC_FORMAT_Q5G64_F16S,
    q6g64_f16s = NINFER_CODEC_FORMAT_Q6G64_F16S,
    w8g32_f16s = NINFER_CODEC_FORMAT_W8G32_F16S,
    nvfp4 = NINFER_CODEC_FORMAT_NVFP4,
    fp8_e4m3fn_row_bf16s = NINFER_CODEC_FORMAT_FP8_E4M3FN_ROW_BF16S,
};

enum class Layout : std::uint32_t {
    contiguous_le_v1 = NINFER_CODEC_LAYOUT_CONTIGUOUS_LE_V1,
    row_split_k128_v1 = NINFER_CODEC_LAYOUT_ROW_SPLIT_K128_V1,
    blockscale_k16_m128x4_v1 = NINFER_CODEC_LAYOUT_BLOCKSCALE_K16_M128X4_V1,
    row_scale_v1 = NINFER_CODEC_LAYOUT_ROW_SCALE_V1,
};

/* A status of ninfer_codec.h: NINFER_CODEC_STATUS_. */
using Status = std::uint32_t;

/* A bfloat16 and a binary16 value, as their words. */
struct bf16 {
    std::uint16_t bits;
};
struct f16 {
    std::uint16_t bits;
};

/* The id of a value type. */
template <class T> inline constexpr std::uint32_t value_type = 0;
template <> inline constexpr std::uint32_t value_type<float> = NINFER_CODEC_VALUE_F32;
template <> inline constexpr std::uint32_t value_type<bf16> = NINFER_CODEC_VALUE_BF16;
template <> inline constexpr std::uint32_t value_type<f16> = NINFER_CODEC_VALUE_F16;
template <> inline constexpr std::uint32_t value_type<double> = NINFER_CODEC_VALUE_F64;

/* float, double, bf16 or f16. */
template <class T>
concept Value = value_type<T> != 0;

/* A failure: its status and its numbers. */
struct Error {
    ninfer_codec_details details{};

    Status status() const noexcept { return details.status; }
    const char *message() const noexcept { return ninfer_codec_status_message(details.status); }
};

/* A value or an error. Test it before it is dereferenced, as a pointer. */
template <class T> class [[nodiscard]] Result {
  public:
    Result(const T &value) noexcept : value_(value), ok_(true) {}
    Result(const Error &error) noexcept : error_(error), ok_(false) {}

    explicit operator bool() const noexcept { return ok_; }
    const T &operator*() const noexcept { return value_; }
    T &operator*() noexcept { return value_; }
    const T *operator->() const noexcept { return &value_; }
    T *operator->() noexcept { return &value_; }
    const Error &error() const noexcept { return error_; }

  private:
    T value_{};
    Error error_{};
    bool ok_;
};

/* Done, or an error. */
struct Done {};

/* Rows or columns [begin, begin + count). */
struct Range {
    std::uint64_t begin;
    std::uint64_t count;
};

namespace detail {
inline Error empty_error() noexcept {
    Error error;
    error.details.struct_size = sizeof error.details;
    return error;
}

inline Result<Done> result(Status status, const Error &error) noexcept {
    if (status == NINFER_CODEC_STATUS_OK) return Done{};
    Error failure = error;
    failure.details.status = status;
    return failure;
}
} // namespace detail

/* The format of this exact name. */
inline Result<Format> format_of(std::string_view name) noexcept {
    std::uint32_t id = 0;
    const Status status = ninfer_codec_format_find(name.data(), name.size(), &id);
    if (status == NINFER_CODEC_STATUS_OK) return static_cast<Format>(id);
    return detail::result(status, detail::empty_error()).error();
}

/* The layout of this exact name. */
inline Result<Layout> layout_of(std::string_view name) noexcept {
    std::uint32_t id = 0;
    const Status status = ninfer_codec_layout_find(name.data(), name.size(), &id);
    if (status == NINFER_CODEC_STATUS_OK) return static_cast<Layout>(id);
    return detail::result(status, detail::empty_error()).error();
}

/* Format, layout and dimensions of a tensor, with the plan made of them. */
class Shape {
  public:
    static constexpr std::size_t max_rank = 16;

    Shape() noexcept = default;

    /* Plans a tensor; the last dimension is K, the length of a row. */
    static Result<Shape> plan(Format format, Layout layout, std::span<const std::uint64_t> dims) noexcept {
        Shape shape;
        shape.format_ = static_cast<std::uint32_t>(format);
        shape.layout_ = static_cast<std::uint32_t>(layout);
        shape.rank_ = dims.size();
        shape.plan_.struct_size = sizeof shape.plan_;
        Error error = detail::empty_error();
        const Status status = ninfer_codec_tensor_plan(shape.format_, shape.layout_, dims.data(), dims.size(),
                                                       &shape.plan_, &error.details);
        if (status != NINFER_CODEC_STATUS_OK) return detail::result(status, error).error();
        for (std::size_t axis = 0; axis < dims.size(); ++axis) shape.dims_[axis] = dims[axis];
        return shape;
    }

    Format format() const noexcept { return static_cast<Format>(format_); }
    Layout layout() const noexcept { return static_cast<Layout>(layout_); }
    std::span<const std::uint64_t> dims() const noexcept { return {dims_.data(), rank_}; }
    std::uint64_t rows() const noexcept { return plan_.rows; }
    std::uint64_t columns() const noexcept { return plan_.columns; }
    std::uint64_t payload_bytes() const noexcept { return plan_.payload_bytes; }
    const ninfer_codec_plan &offsets() const noexcept { return plan_; }

  protected:
    std::uint32_t format_ = 0;
    std::uint32_t layout_ = 0;
    std::array<std::uint64_t, max_rank> dims_{};
    std::size_t rank_ = 0;
    ninfer_codec_plan plan_{};
};

/* A payload to read. */
class Tensor : public Shape {
  public:
    Tensor() noexcept = default;

    /* Views a payload, which is exactly as long as its plan says. */
    static Result<Tensor> open(Format format, Layout layout, std::span<const std::uint64_t> dims,
                               std::span<const std::uint8_t> payload) noexcept {
        const Result<Shape> shape = Shape::plan(format, layout, dims);
        if (!shape) return shape.error();
        if (payload.size() != shape->payload_bytes()) {
            Error error = detail::empty_error();
            error.details.expected = shape->payload_bytes();
            error.details.actual = payload.size();
            return detail::result(NINFER_CODEC_STATUS_PAYLOAD_LENGTH, error).error();
        }
        Tensor tensor;
        static_cast<Shape &>(tensor) = *shape;
        tensor.payload_ = payload;
        return tensor;
    }

    Range all_rows() const noexcept { return {0, plan_.rows}; }
    Range all_columns() const noexcept { return {0, plan_.columns}; }
    std::span<const std::uint8_t> payload() const noexcept { return payload_; }

    /* Decodes rows one after another into out. */
    template <Value T> Result<Done> decode(Range rows, std::span<T> out) const noexcept {
        return decode(rows, all_columns(), out, plan_.columns);
    }

    /* Decodes columns of rows; row i goes to out[i * stride ..]. */
    template <Value T>
    Result<Done> decode(Range rows, Range columns, std::span<T> out, std::uint64_t stride) const noexcept {
        Error error = detail::empty_error();
        const Status status = ninfer_codec_tensor_decode(
            format_, layout_, dims_.data(), rank_, payload_.data(), payload_.size(), rows.begin, rows.count,
            columns.begin, columns.count, value_type<T>, out.data(), out.size(), stride, &error.details);
        return detail::result(status, error);
    }

    /* Decodes a list of rows, in any order, with repeats, one after another into out. */
    template <Value T>
    Result<Done> decode_rows(std::span<const std::uint64_t> rows, std::span<T> out) const noexcept {
        Error error = detail::empty_error();
        const Status status = ninfer_codec_tensor_decode_rows(
            format_, layout_, dims_.data(), rank_, payload_.data(), payload_.size(), rows.data(), rows.size(),
            value_type<T>, out.data(), out.size(), plan_.columns, &error.details);
        return detail::result(status, error);
    }

    /* The first violation of the contract in some rows, or none. */
    Result<Done> validate(Range rows) const noexcept {
        Error error = detail::empty_error();
        const Status status = ninfer_codec_tensor_validate(
            format_, layout_, dims_.data(), rank_, payload_.data(), payload_.size(), rows.begin, rows.count, 0,
            plan_.columns, &error.details);
        return detail::result(status, error);
    }

    Result<Done> validate() const noexcept { return validate(all_rows()); }

    /* Writes rows as a standalone payload of dimensions rows.count, K. */
    Result<Done> slice(Range rows, std::span<std::uint8_t> out) const noexcept {
        Error error = detail::empty_error();
        const Status status = ninfer_codec_tensor_slice(format_, layout_, dims_.data(), rank_, payload_.data(),
                                                        payload_.size(), rows.begin, rows.count, out.data(),
                                                        out.size(), &error.details);
        return detail::result(status, error);
    }

    /* Writes a list of rows as a standalone payload of dimensions rows.size(), K. */
    Result<Done> gather(std::span<const std::uint64_t> rows, std::span<std::uint8_t> out) const noexcept {
        Error error = detail::empty_error();
        const Status status = ninfer_codec_tensor_gather(format_, layout_, dims_.data(), rank_, payload_.data(),
                                                         payload_.size(), rows.data(), rows.size(), out.data(),
                                                         out.size(), &error.details);
        return detail::result(status, error);
    }

  private:
    std::span<const std::uint8_t> payload_{};
};

/* A payload to write. Its contents do not matter. */
class TensorMut : public Shape {
  public:
    TensorMut() noexcept = default;
    explicit TensorMut(const Shape &shape, std::span<std::uint8_t> payload) noexcept
        : Shape(shape), payload_(payload) {}

    /* Quantizes rows by the canonical encoder; row i comes from source[i * K ..]. */
    template <Value T> Result<Done> quantize(Range rows, std::span<const T> source) noexcept {
        return quantize(rows, source, plan_.columns);
    }

    /* Quantizes rows by the canonical encoder; row i comes from source[i * stride ..]. */
    template <Value T>
    Result<Done> quantize(Range rows, std::span<const T> source, std::uint64_t stride) noexcept {
        Error error = detail::empty_error();
        const Status status = ninfer_codec_tensor_quantize(
            format_, layout_, dims_.data(), rank_, rows.begin, rows.count, value_type<T>, source.data(),
            source.size(), stride, payload_.data(), payload_.size(), &error.details);
        return detail::result(status, error);
    }

    /* Packs natural words; their types are those of the table in ninfer_codec.h, lengths are in elements. */
    Result<Done> pack(Range rows, const void *codes, std::uint64_t codes_len, const void *scales = nullptr,
                      std::uint64_t scales_len = 0, std::uint32_t divisor = 0) noexcept {
        Error error = detail::empty_error();
        const Status status = ninfer_codec_tensor_pack(
            format_, layout_, dims_.data(), rank_, rows.begin, rows.count, codes, codes_len, scales, scales_len,
            divisor, payload_.data(), payload_.size(), &error.details);
        return detail::result(status, error);
    }

  private:
    std::span<std::uint8_t> payload_{};
};

} // namespace ninfer_codec

#endif /* NINFER_CODEC_HPP */
