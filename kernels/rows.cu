// Moving rows: gathers and slices plane by plane, and NVFP4's scale plane between natural and swizzled order.
#include "kernels.cuh"

namespace ninfer_codec {
namespace {

// A thread moves units of T, copy_batch under way at once.
template <class T> __device__ inline void copy_rows(const CopyArgs& a) {
    if (a.report && a.report->key != clean) return;
    Walk w(thread_index(), thread_count(), a.bytes / sizeof(T));
    while (w.row < a.rows.count) {
        T unit[copy_batch];
        T* to[copy_batch];
#pragma unroll
        for (int i = 0; i < copy_batch; ++i) {
            to[i] = nullptr;
            if (w.row < a.rows.count) {
                unit[i] = T{};
                if (a.from) {
                    unit[i] = reinterpret_cast<const T*>(a.from + a.rows.at(w.row) * a.from_row_bytes)[w.tile];
                }
                to[i] = reinterpret_cast<T*>(a.to + w.row * a.to_row_bytes) + w.tile;
            }
            w.next();
        }
#pragma unroll
        for (int i = 0; i < copy_batch; ++i) {
            if (to[i]) *to[i] = unit[i];
        }
    }
}

// The scale words of four groups of one row.
__device__ inline u32 swizzled4(const u8* plane, u64 row, u64 k_tile, u64 k_tiles) {
    return load<u32>(plane + swizzle(row, k_tile * 4, k_tiles));
}

// A thread handles the 16 plane bytes of rows r, r + 32, r + 64, r + 96 of a 128-row tile in four K tiles (fewer
// at the end of a row): four 16-byte pieces on either side.
template <bool TO_PLANE> __device__ inline void reorder(const SwizzleArgs& a) {
    const u64 row_bytes = a.k_tiles * 4;
    Walk w(thread_index(), thread_count(), (a.k_tiles + 3) / 4 * 32);
    for (; w.row < a.rows.count / 128; w.next()) {
        const u64 row = w.row * 128 + w.tile % 32, k_tile = w.tile / 32 * 4;
        const u64 tiles = a.k_tiles - k_tile < 4 ? a.k_tiles - k_tile : 4;
        const u64 natural = row * row_bytes + k_tile * 4;
        const u64 plane = swizzle(row, k_tile * 4, a.k_tiles);
        Chunk16 in[4], out[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if constexpr (TO_PLANE) {
                in[i] = load16(a.from + natural + i * 32 * row_bytes, tiles * 4);
            } else {
                in[i] = static_cast<u64>(i) < tiles ? load16(a.from + plane + i * 512, 16) : Chunk16{};
            }
        }
#pragma unroll
        for (int i = 0; i < 16; ++i) out[i / 4].w[i % 4] = in[i % 4].w[i / 4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            if constexpr (TO_PLANE) {
                if (static_cast<u64>(i) < tiles) store16(a.to + plane + i * 512, out[i]);
            } else {
                u8* const to = a.to + natural + i * 32 * row_bytes;
                if (tiles == 4) {
                    store16(to, out[i]);
                } else {
#pragma unroll
                    for (int j = 0; j < 3; ++j) {
                        if (static_cast<u64>(j) < tiles) store<u32>(to + 4 * j, out[i].w[j]);
                    }
                }
            }
        }
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(block_threads) ninfer_codec_copy_rows_16(CopyArgs a) {
    copy_rows<uint4>(a);
}
extern "C" __global__ void __launch_bounds__(block_threads) ninfer_codec_copy_rows_4(CopyArgs a) { copy_rows<u32>(a); }
extern "C" __global__ void __launch_bounds__(block_threads) ninfer_codec_copy_rows_1(CopyArgs a) { copy_rows<u8>(a); }

// Any rows' scales into a new plane: a thread fills the 16 bytes of four rows in one K tile.
extern "C" __global__ void __launch_bounds__(block_threads) ninfer_codec_gather_scales(SwizzleArgs a) {
    if (a.report && a.report->key != clean) return;
    Walk w(thread_index(), thread_count(), a.k_tiles * 32);
    for (; w.row < a.rows.count / 128; w.next()) {
        const u64 row = w.row * 128 + w.tile % 32, k_tile = w.tile / 32;
        Chunk16 v;
#pragma unroll
        for (int i = 0; i < 4; ++i) v.w[i] = swizzled4(a.from, a.rows.at(row + 32 * i), k_tile, a.k_tiles);
        store16(a.to + swizzle(row, k_tile * 4, a.k_tiles), v);
    }
}

extern "C" __global__ void __launch_bounds__(block_threads) ninfer_codec_swizzle_scales(SwizzleArgs a) {
    reorder<true>(a);
}
extern "C" __global__ void __launch_bounds__(block_threads) ninfer_codec_unswizzle_scales(SwizzleArgs a) {
    reorder<false>(a);
}

}  // namespace ninfer_codec
