// What the kernels share: their arguments, how a grid walks rows, loads and stores at any alignment, the report.
#pragma once

#include "ninfer_codec.cuh"

namespace ninfer_codec {

constexpr int warp_lanes = 32;
constexpr int block_warps = 8;
constexpr int block_threads = warp_lanes * block_warps;
constexpr int copy_batch = 2;  // units a thread of copy_rows has under way

// ---------------------------------------------------------------------------------------------------------------
// Arguments, by value. The Rust side has the same structs: keep order and widths.

// Where a payload's rows lie, in bytes from its start; base codes begin at 0. Planes a format lacks are 0.
struct Plan {
    u64 n, k;
    u64 base_row_bytes;
    u64 high_offset, high_row_bytes;
    u64 scale_offset, scale_row_bytes;  // NVFP4: the swizzled plane, and K/16
    u64 payload_bytes;
};

// Rows to work on: rows[0..count) if `rows` is not null, else begin .. begin + count.
struct Rows {
    const u64* rows;
    u64 begin, count;
    __device__ u64 at(u64 i) const { return rows ? rows[i] : begin + i; }
};

// The outcome of one operation, in device memory. `key` is all ones while nothing is wrong, else the least key
// of a failure (phase in the top two bits, place below); the last kernel of an operation turns it into the
// other members. A member that does not apply is all ones.
struct Report {
    u64 key;
    u32 status, fault;
    u64 row, column, group, offset, word;
};
constexpr u64 clean = ~0ull;

struct DecodeArgs {
    Plan plan;
    Rows rows;
    const u8* payload;
    void* out;
    u64 stride;  // elements from one output row to the next
    Report* report;
};

struct QuantizeArgs {
    Plan plan;
    Rows rows;  // never a list
    const void* source;
    u64 stride;  // elements from one source row to the next
    u8* payload;
    Report* report;
};

// Bytes of rows from one plane to another; row i of the result is at i * to_row_bytes. `from` null: zeros.
struct CopyArgs {
    Rows rows;
    const u8* from;
    u8* to;
    u64 from_row_bytes, to_row_bytes, bytes;
    const Report* report;  // null: nothing to wait for
};

// NVFP4 scale planes: swizzled to swizzled by rows, or between natural and swizzled order.
struct SwizzleArgs {
    Rows rows;  // rows of the result
    const u8* from;
    u8* to;
    u64 k_tiles;
    const Report* report;
};

// What the last kernel of an operation needs to explain a report's key. The operation is an Explain below.
struct ExplainArgs {
    Plan plan;
    Rows rows;
    const u8* payload;
    const void* source;
    u64 stride;
    u32 operation, format, source_type, reserved;
    Report* report;
};
enum Explain : u32 { explain_decode = 1, explain_quantize = 2, explain_validate = 3 };

// Ids of the registry and of value types, as in the host library.
enum FormatId : u32 { bf16 = 1, fp32, i32, q4, q5, q6, w8, nvfp4, fp8 };
enum TypeId : u32 { type_f32 = 1, type_bf16, type_f16, type_f64 };

// ---------------------------------------------------------------------------------------------------------------
// Keys: what is reported is the least.

constexpr int phase_shift = 62;
__device__ inline void report_key(Report* report, u64 phase, u64 place) {
    atomicMin(&report->key, phase << phase_shift | place);
}
// decode and gather: the row list, the divisor, the scales by (position in the range or list, group).
enum DecodePhase : u64 { decode_rows_phase, decode_divisor_phase, decode_scales_phase };
// quantize: place = (row, group) * 128 + column in the group, or + quantize_overflow for the group's scale.
constexpr u64 quantize_places = 128, quantize_overflow = 127;
// validate: values by (row, scale words then columns); padding by (row, column past K), at one column a scale word
// before a code; gap bytes by offset. NVFP4: the divisor is place 0, a scale is 1 + (row, group).
enum ValidatePhase : u64 { validate_values_phase, validate_padding_phase, validate_gaps_phase };

// ---------------------------------------------------------------------------------------------------------------
// Walking (row, tile) pairs: item `first`, then every `step`-th; one division to start, none after.

struct Walk {
    u64 row, tile, row_step, tile_step, tiles;
    __device__ Walk(u64 first, u64 step, u64 tiles_per_row)
        : row(first / tiles_per_row), tile(first % tiles_per_row), row_step(step / tiles_per_row),
          tile_step(step % tiles_per_row), tiles(tiles_per_row) {}
    __device__ void next() {
        row += row_step;
        tile += tile_step;
        if (tile >= tiles) {
            tile -= tiles;
            ++row;
        }
    }
};
__device__ inline u64 thread_index() { return static_cast<u64>(blockIdx.x) * block_threads + threadIdx.x; }
__device__ inline u64 thread_count() { return static_cast<u64>(gridDim.x) * block_threads; }

// ---------------------------------------------------------------------------------------------------------------
// Loads and stores at any alignment: one access where the address allows it, else bytes.

template <class T> __device__ inline bool aligned(const void* p) {
    return (reinterpret_cast<unsigned long long>(p) & (sizeof(T) - 1)) == 0;
}

template <class T> __device__ inline T load(const u8* p) {
    if (aligned<T>(p)) return *reinterpret_cast<const T*>(p);
    T r = 0;
    for (int i = 0; i < static_cast<int>(sizeof(T)); ++i) r = static_cast<T>(r | static_cast<T>(p[i]) << (8 * i));
    return r;
}

// Up to 16 bytes; those from `bytes` on are zero and not read.
__device__ inline Chunk16 load16(const u8* p, u64 bytes) {
    if (bytes >= 16 && aligned<Chunk16>(p)) {
        const uint4 v = *reinterpret_cast<const uint4*>(p);
        return {{v.x, v.y, v.z, v.w}};
    }
    Chunk16 r{};
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        if (static_cast<u64>(i) < bytes) r.w[i / 4] |= static_cast<u32>(p[i]) << (8 * (i % 4));
    }
    return r;
}

template <class T> __device__ inline void store(u8* p, T v) {
    if (aligned<T>(p)) {
        *reinterpret_cast<T*>(p) = v;
        return;
    }
    for (int i = 0; i < static_cast<int>(sizeof(T)); ++i) p[i] = static_cast<u8>(v >> (8 * i));
}

__device__ inline void store16(u8* p, const Chunk16& v) {
    if (aligned<Chunk16>(p)) {
        // Not an assignment: the compiler would merge it with a caller's narrower stores and split it.
        __stwb(reinterpret_cast<uint4*>(p), make_uint4(v.w[0], v.w[1], v.w[2], v.w[3]));
        return;
    }
#pragma unroll
    for (int i = 0; i < 16; ++i) p[i] = static_cast<u8>(v.w[i / 4] >> (8 * (i % 4)));
}

}  // namespace ninfer_codec
