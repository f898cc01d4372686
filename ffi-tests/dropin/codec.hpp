// The codec as this engine calls it: a tensor's identity, and buffers from the arena.
#pragma once

#include "arena.hpp"
#include "json.hpp"

#include <ninfer_codec.h>

namespace engine {

struct Bytes {
    uint8_t* data;
    size_t size;
};

inline uint8_t hex_digit(char c) { return static_cast<uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10); }

inline Bytes from_hex(Arena& arena, const Json& text) {
    const size_t size = text.text.size / 2;
    uint8_t* out = arena.take<uint8_t>(size);
    for (size_t i = 0; i < size; ++i) {
        out[i] = static_cast<uint8_t>(hex_digit(text.text.data[2 * i]) << 4 | hex_digit(text.text.data[2 * i + 1]));
    }
    return {out, size};
}

inline uint64_t word_of(Text digits) {
    uint64_t word = 0;
    for (size_t i = 0; i < digits.size; ++i) word = word << 4 | hex_digit(digits.data[i]);
    return word;
}

// A list of bit patterns or integers, as words of a type.
template <class T>
T* words_of(Arena& arena, const Json& list) {
    T* out = arena.take<T>(list.count);
    size_t i = 0;
    for (const Json* entry = list.first; entry != nullptr; entry = entry->next) {
        out[i++] = static_cast<T>(entry->kind == Json::string ? word_of(entry->text) : entry->word);
    }
    return out;
}

struct Tensor {
    uint32_t format;
    uint32_t layout;
    const uint64_t* dims;
    uint64_t rank;

    static Tensor of(Arena& arena, Text format_name, const Json& shape) {
        Tensor out{0, 0, words_of<uint64_t>(arena, shape), shape.count};
        if (ninfer_codec_format_find(format_name.data, format_name.size, &out.format) != NINFER_CODEC_STATUS_OK) {
            die("an unknown format");
        }
        ninfer_codec_format_descriptor facts{};
        facts.struct_size = sizeof facts;
        if (ninfer_codec_format_describe(out.format, &facts) != NINFER_CODEC_STATUS_OK) die("no descriptor");
        out.layout = facts.layout;
        return out;
    }
    uint64_t columns() const { return rank == 0 ? 1 : dims[rank - 1]; }
    uint64_t rows() const {
        uint64_t rows = 1;
        for (uint64_t i = 0; i + 1 < rank; ++i) rows *= dims[i];
        return rows;
    }
    uint64_t elements() const { return rows() * columns(); }
    uint64_t payload_bytes() const {
        ninfer_codec_plan plan{};
        plan.struct_size = sizeof plan;
        const uint32_t status = ninfer_codec_tensor_plan(format, layout, dims, rank, &plan, nullptr);
        return status == NINFER_CODEC_STATUS_OK ? plan.payload_bytes : 0;
    }
    uint32_t validate(Bytes payload, ninfer_codec_details* details) const {
        return ninfer_codec_tensor_validate(format, layout, dims, rank, payload.data, payload.size, 0, rows(), 0,
                                            columns(), details);
    }
    // All values, as little-endian bytes on this little-endian machine.
    Bytes decode(Arena& arena, Bytes payload, uint32_t type, size_t value_bytes, uint32_t& status) const {
        uint8_t* out = arena.take<uint8_t>(elements() * value_bytes);
        status = ninfer_codec_tensor_decode(format, layout, dims, rank, payload.data, payload.size, 0, rows(), 0,
                                            columns(), type, out, elements(), columns(), nullptr);
        return {out, elements() * value_bytes};
    }
    Bytes pack(Arena& arena, const void* codes, uint64_t codes_len, const void* scales, uint64_t scales_len,
               uint32_t divisor, uint32_t& status) const {
        const uint64_t bytes = payload_bytes();
        uint8_t* out = arena.take<uint8_t>(bytes);
        memset(out, 0xa5, bytes);
        status = ninfer_codec_tensor_pack(format, layout, dims, rank, 0, rows(), codes, codes_len, scales, scales_len,
                                          divisor, out, bytes, nullptr);
        return {out, bytes};
    }
};

}  // namespace engine
