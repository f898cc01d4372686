// The host library beside the kernels: where the check program is linked with the C archive, each result of a kernel
// is compared with what the library makes of the same input, byte by byte, and each report with the library's details.
//
// On a GPU machine there is no archive. There the oracle of reference.h stands in, which the linked runs have held
// against the library on the same inputs.
#pragma once

#include "harness.h"

namespace test::library {

#ifdef NINFER_CODEC_HOST_LIBRARY
constexpr bool linked = true;

// Each computes with the library and compares. `got` is what the device gave.
void decode(Shape s, const Bytes& payload, const Rows& rows, u32 type, u64 stride, const Result& got);
void quantize(Shape s, u32 type, const std::vector<u64>& source, u64 stride, u64 begin, u64 count, const Bytes& before,
              const Result& got);
void validate(Shape s, const Bytes& payload, u64 begin, u64 count, const Outcome& got);
void gather(Shape s, const Bytes& payload, const Rows& rows, const Result& got);
// Natural scales and their plane.
void swizzle(u64 n, u64 k, const Bytes& natural, const Bytes& plane);
// Rows of a payload in place, without strides.
void far_decode(Shape s, const u8* payload, u64 payload_bytes, u64 begin, u64 count, u32 type, const Bytes& got);

// Prints how much was compared.
void summary();
#else
constexpr bool linked = false;

inline void decode(Shape, const Bytes&, const Rows&, u32, u64, const Result&) {}
inline void quantize(Shape, u32, const std::vector<u64>&, u64, u64, u64, const Bytes&, const Result&) {}
inline void validate(Shape, const Bytes&, u64, u64, const Outcome&) {}
inline void gather(Shape, const Bytes&, const Rows&, const Result&) {}
inline void swizzle(u64, u64, const Bytes&, const Bytes&) {}
inline void far_decode(Shape, const u8*, u64, u64, u64, u32, const Bytes&) {}
inline void summary() { skipped("comparison with the host library itself: not linked; its digests and the oracle stand in"); }
#endif

}  // namespace test::library
