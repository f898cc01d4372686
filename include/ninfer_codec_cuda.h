/* ninfer-codec on CUDA devices: launchers for C and C++ engines.
 *
 * Built by the engine's own nvcc from kernels/ (CMake target ninfer_codec_cuda); compute capability 8.0 or later.
 * The bytes are those of the host library, whatever the compiler flags.
 *
 * Every function checks its arguments first, in the order of the status numbers (but TOO_LARGE after the lengths),
 * and returns a status before any launch if one is at fault: nothing is written then. Otherwise it enqueues work on
 * `stream` (null is the default stream) for the current device and returns without waiting. It allocates nothing.
 * Functions may be called from any thread; one report must not be used by two operations at once.
 *
 * Pointers are device pointers. Payload pointers need no alignment, but 16 bytes is fast (256 is what files give);
 * value buffers, row lists and reports need their type's alignment. Lengths of payloads are exact. `rows` and
 * `columns` are the tensor's: for direct formats `rows` is the product of the leading dimensions. Ranges are
 * [begin, begin + count). Strides are in elements, at least `columns`; a value buffer needs
 * (count - 1) * stride + columns elements, and what it has beyond is left alone.
 *
 * Faults in the data are found on the device and told in the caller's report: zero-filled memory or not, it is
 * set by each operation that takes it, and complete when the stream has reached the operation's end. Copy it to
 * the host then and look at `status`. While the work has not run, `status` is 0xFFFFFFFF.
 */
#ifndef NINFER_CODEC_CUDA_H
#define NINFER_CODEC_CUDA_H

#include "ninfer_codec.h"

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Formats, value types, statuses and faults are those of ninfer_codec.h, and one status more: the CUDA runtime
 * refused a query or a launch. cudaGetLastError() says why; earlier launches of the call may be enqueued. */
#define NINFER_CODEC_STATUS_CUDA_RUNTIME 1000

/* The outcome of an operation, in device memory, 8-byte aligned. Rows are the tensor's, whatever the range. A
 * number that does not apply is UINT64_MAX. `word` is the word at fault: a code as a byte, grouped
 * ones in two's complement; for SCALE_OVERFLOW the binary32 scale before narrowing. */
typedef struct ninfer_codec_cuda_report {
    uint64_t internal;
    uint32_t status;
    uint32_t fault;
    uint64_t row;
    uint64_t column;
    uint64_t group;
    uint64_t offset;
    uint64_t word;
} ninfer_codec_cuda_report;

/* Exact payload size in bytes. Host only, launches nothing.
 * OK, UNKNOWN_FORMAT, NULL_POINTER, ZERO_DIMENSION, NOT_MULTIPLE, OVERFLOW. */
uint32_t ninfer_codec_cuda_payload_bytes(uint32_t format, uint64_t rows, uint64_t columns, uint64_t *bytes);

/* Decodes rows to `out` (binary32; BF16 and binary16 rounded once from it; binary64 for NVFP4 only). BF16 decodes
 * to f32 and, as words, to bf16; FP32, as words, to f32.
 * A scale or divisor word of the rows that is illegal is reported and nothing is written to `out`:
 * INVALID_SCALE, INVALID_DIVISOR. Codes are total: W8 0x80 is -128, an E4M3FN NaN gives 0x7FC00000.
 * OK, UNKNOWN_FORMAT, UNKNOWN_VALUE_TYPE, NULL_POINTER, ZERO_DIMENSION, NOT_MULTIPLE, OVERFLOW, TOO_LARGE,
 * PAYLOAD_LENGTH, EMPTY_ROWS, ROW_OUT_OF_RANGE, UNSUPPORTED_OUTPUT, STRIDE, BUFFER_LENGTH, MISALIGNED, OVERLAP,
 * CUDA_RUNTIME. */
uint32_t ninfer_codec_cuda_decode(uint32_t format, uint64_t rows, uint64_t columns, const void *payload,
                                  uint64_t payload_length, uint64_t begin, uint64_t count, uint32_t out_type,
                                  void *out, uint64_t out_stride, uint64_t out_elements,
                                  ninfer_codec_cuda_report *report, cudaStream_t stream);

/* The same for `count` rows named by a device list, in any order, with repeats; result row i is row list[i]. A list
 * entry at or past `rows` is reported as ROW_OUT_OF_RANGE and nothing is written to `out`. */
uint32_t ninfer_codec_cuda_decode_list(uint32_t format, uint64_t rows, uint64_t columns, const void *payload,
                                       uint64_t payload_length, const uint64_t *list, uint64_t count,
                                       uint32_t out_type, void *out, uint64_t out_stride, uint64_t out_elements,
                                       ninfer_codec_cuda_report *report, cudaStream_t stream);

/* Encodes `count` source rows (f32, bf16 or f16) by MAXABS_F16_RECIP_RNE_V1 into rows begin .. begin + count of a
 * row-split payload, padding included; the call with the last row also clears the gaps between planes.
 * The first refusal is reported: NON_FINITE_SOURCE, SCALE_OVERFLOW. Rows before it are complete, the failing and
 * later rows of the range are unspecified, the rest of the payload is untouched.
 * OK, UNKNOWN_FORMAT, UNKNOWN_VALUE_TYPE, UNSUPPORTED_SOURCE (f64 too), NULL_POINTER, ZERO_DIMENSION, OVERFLOW, TOO_LARGE,
 * PAYLOAD_LENGTH, EMPTY_ROWS, ROW_OUT_OF_RANGE, NO_CANONICAL_ENCODER, STRIDE, BUFFER_LENGTH, MISALIGNED, OVERLAP,
 * CUDA_RUNTIME. */
uint32_t ninfer_codec_cuda_quantize(uint32_t format, uint64_t rows, uint64_t columns, uint32_t source_type,
                                    const void *source, uint64_t source_stride, uint64_t source_elements,
                                    uint64_t begin, uint64_t count, void *payload, uint64_t payload_length,
                                    ninfer_codec_cuda_report *report, cudaStream_t stream);

/* Reports the first violation of the contract in rows begin .. begin + count, in the host library's order; gaps
 * belong to the range with the last row. Direct formats have none.
 * OK, UNKNOWN_FORMAT, NULL_POINTER, ZERO_DIMENSION, NOT_MULTIPLE, OVERFLOW, TOO_LARGE, PAYLOAD_LENGTH, EMPTY_ROWS,
 * ROW_OUT_OF_RANGE, MISALIGNED, OVERLAP, CUDA_RUNTIME. */
uint32_t ninfer_codec_cuda_validate(uint32_t format, uint64_t rows, uint64_t columns, const void *payload,
                                    uint64_t payload_length, uint64_t begin, uint64_t count,
                                    ninfer_codec_cuda_report *report, cudaStream_t stream);

/* Copies rows begin .. begin + count, or the rows of a device list, into a new payload of `count` rows. No code is
 * unpacked; NVFP4 scales are placed for their new rows, and `count` must be a multiple of 128 there. A list entry
 * at or past `rows` is reported as ROW_OUT_OF_RANGE and nothing is written to `out`.
 * OK, UNKNOWN_FORMAT, NULL_POINTER, ZERO_DIMENSION, NOT_MULTIPLE, OVERFLOW, TOO_LARGE, PAYLOAD_LENGTH (of `out`
 * too), EMPTY_ROWS, ROW_OUT_OF_RANGE, MISALIGNED, OVERLAP, CUDA_RUNTIME. */
uint32_t ninfer_codec_cuda_slice(uint32_t format, uint64_t rows, uint64_t columns, const void *payload,
                                 uint64_t payload_length, uint64_t begin, uint64_t count, void *out,
                                 uint64_t out_length, ninfer_codec_cuda_report *report, cudaStream_t stream);
uint32_t ninfer_codec_cuda_gather(uint32_t format, uint64_t rows, uint64_t columns, const void *payload,
                                  uint64_t payload_length, const uint64_t *list, uint64_t count, void *out,
                                  uint64_t out_length, ninfer_codec_cuda_report *report, cudaStream_t stream);

/* NVFP4 scales of a [rows, columns] matrix between natural order (row * columns/16 + group) and the swizzled plane.
 * Both buffers hold rows * columns / 16 bytes.
 * OK, NULL_POINTER, ZERO_DIMENSION, NOT_MULTIPLE, OVERFLOW, TOO_LARGE, BUFFER_LENGTH, OVERLAP, CUDA_RUNTIME. */
uint32_t ninfer_codec_cuda_swizzle_scales(uint64_t rows, uint64_t columns, const void *natural,
                                          uint64_t natural_length, void *plane, uint64_t plane_length,
                                          cudaStream_t stream);
uint32_t ninfer_codec_cuda_unswizzle_scales(uint64_t rows, uint64_t columns, const void *plane, uint64_t plane_length,
                                            void *natural, uint64_t natural_length, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
