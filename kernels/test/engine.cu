// An engine's own kernel on the inlinable functions: every thread decodes 16 bytes of codes of one row and keeps the
// values. Also the group quantizer, one thread a group.
#include <cuda_runtime.h>

#include "../ninfer_codec.cuh"
#include "library.h"

namespace engine {

namespace codec = ninfer_codec;

struct Args {
    const unsigned char* payload;
    float* out;
    unsigned char* codes;       // quantizer: N * K signed codes
    unsigned short* scales;     // quantizer: one a logical group
    unsigned long long n, k;
};

// This thread's first item and its step to the next, in 64 bits.
__device__ inline codec::u64 first() { return static_cast<codec::u64>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline codec::u64 step() { return static_cast<codec::u64>(gridDim.x) * blockDim.x; }

__device__ inline codec::Chunk16 load(const unsigned char* p) { return *reinterpret_cast<const codec::Chunk16*>(p); }

template <class F> __device__ inline void decode_chunk(const codec::Chunk16& base, codec::u64 high, float s, float* v) {
    if constexpr (F::code_bits == 4) codec::decode16_q4(base, s, v);
    else if constexpr (F::code_bits == 5) codec::decode16_q5(base, static_cast<codec::u32>(high), s, v);
    else if constexpr (F::code_bits == 6) codec::decode16_q6(base, high, s, v);
    else codec::decode16_w8(base, s, v);
}

template <class F> __device__ inline void grouped(const Args& a) {
    constexpr int values = F::code_bits == 8 ? 16 : 32;
    const codec::RowSplit<F> at{a.n, a.k};
    const codec::u64 chunks = at.k_pad() / values;
    for (codec::u64 i = first(); i < a.n * chunks; i += step()) {
        const codec::u64 row = i / chunks, column = i % chunks * values, group = column / F::group;
        const codec::u64 within = column % F::group;
        codec::u64 high = 0;
        for (int b = 0; b < values * F::high_bits / 8; ++b) {
            high |= static_cast<codec::u64>(a.payload[at.high_at(row, group) + within * F::high_bits / 8 + b]) << (8 * b);
        }
        const unsigned char* s = a.payload + at.scale_at(row, group);
        const float scale = codec::widen_f16(static_cast<codec::u16>(s[0] | s[1] << 8));
        float v[values];
        decode_chunk<F>(load(a.payload + at.base_at(row, group) + within * F::base_bits / 8), high, scale, v);
        for (int c = 0; c < values; ++c) {
            if (column + c < a.k) a.out[row * a.k + column + c] = v[c];
        }
    }
}

extern "C" __global__ void engine_q4(Args a) { grouped<codec::Q4>(a); }
extern "C" __global__ void engine_q5(Args a) { grouped<codec::Q5>(a); }
extern "C" __global__ void engine_q6(Args a) { grouped<codec::Q6>(a); }
extern "C" __global__ void engine_w8(Args a) { grouped<codec::W8>(a); }

extern "C" __global__ void engine_nvfp4(Args a) {
    const codec::BlockScale at{a.n, a.k};
    codec::u32 divisor = 0;
    for (int b = 0; b < 4; ++b) divisor |= static_cast<codec::u32>(a.payload[at.divisor_offset() + b]) << (8 * b);
    for (codec::u64 i = first(); i < a.n * a.k / 32; i += step()) {
        const codec::u64 row = i / (a.k / 32), column = i % (a.k / 32) * 32;
        codec::decode16_nvfp4(load(a.payload + at.code_at(row, column)), a.payload[at.scale_at(row, column / 16)],
                              a.payload[at.scale_at(row, column / 16 + 1)], codec::float_from_bits(divisor),
                              a.out + row * a.k + column);
    }
}

extern "C" __global__ void engine_fp8(Args a) {
    const codec::RowScale at{a.n, a.k};
    for (codec::u64 i = first(); i < a.n * a.k / 16; i += step()) {
        const codec::u64 row = i / (a.k / 16), column = i % (a.k / 16) * 16;
        const unsigned char* s = a.payload + at.scale_at(row);
        codec::decode16_fp8(load(a.payload + at.code_at(row, column)),
                            codec::bf16_value(static_cast<codec::u32>(s[0] | s[1] << 8)), a.out + row * a.k + column);
    }
}

template <class F> __device__ inline void quantize(const Args& a) {
    const codec::u64 groups = (a.k + F::group - 1) / F::group;
    for (codec::u64 i = first(); i < a.n * groups; i += step()) {
        const codec::u64 at = i / groups * a.k + i % groups * F::group, left = a.k - i % groups * F::group;
        const codec::Scale s = codec::quantize_group<F>(a.out + at, left < F::group ? static_cast<int>(left) : F::group,
                                                        reinterpret_cast<signed char*>(a.codes) + at);
        a.scales[i] = s.pick == codec::Pick::ok ? s.word : 0xffffu;
    }
}

extern "C" __global__ void engine_quantize_q4(Args a) { quantize<codec::Q4>(a); }
extern "C" __global__ void engine_quantize_q5(Args a) { quantize<codec::Q5>(a); }
extern "C" __global__ void engine_quantize_q6(Args a) { quantize<codec::Q6>(a); }
extern "C" __global__ void engine_quantize_w8(Args a) { quantize<codec::W8>(a); }

}  // namespace engine

namespace test {
namespace {

void launch(void (*kernel)(engine::Args), engine::Args a) {
    void* args[] = {&a};
    cuda(cudaLaunchKernel(kernel, dim3(3), dim3(64), args, 0, nullptr), "engine kernel");
    cuda(cudaDeviceSynchronize(), "engine kernel");
}

void decode(void (*kernel)(engine::Args), Shape s) {
    const Bytes payload = random_payload(s, s.format + 50);
    Buffer in(payload), out(s.n * s.k * 4);
    launch(kernel, {in.get(), reinterpret_cast<float*>(out.get()), nullptr, nullptr, s.n, s.k});
    const Rows all = Rows::range(0, s.n);
    same(out.download(), expected_decode(s, payload, all, reference::F32), label(s) + " engine decode");
    library::decode(s, payload, all, reference::F32, s.k, {Outcome{}, out.download()});
}

void quantize(void (*kernel)(engine::Args), Shape s) {
    std::vector<u64> source = random_source(s.n * s.k, reference::F32, s.format);
    source[s.k + 1] = 0x7fc00000;  // row 1, group 0 cannot be stored
    Buffer in(source_bytes(source, reference::F32)), codes(s.n * s.k);
    const reference::Places p = reference::places(s);
    Buffer scales(s.n * p.logical * 2);
    launch(kernel, {nullptr, reinterpret_cast<float*>(in.get()), codes.get(),
                    reinterpret_cast<unsigned short*>(scales.get()), s.n, s.k});
    source[s.k + 1] = 0;
    Bytes payload(p.bytes, 0);
    reference::quantize(s, payload, 0, s.n, reference::F32, source, s.k);
    library::quantize(s, reference::F32, source, s.k, 0, s.n, Bytes(p.bytes, 0xa5), {Outcome{}, payload});
    Bytes expected_codes(s.n * s.k), expected_scales(s.n * p.logical * 2);
    for (u64 row = 0; row < s.n; ++row) {
        for (u64 c = 0; c < s.k; ++c) {
            expected_codes[row * s.k + c] =
                u8(reference::signed_code(reference::word_at(s, p, payload, row, c), reference::code_bits(s.format)));
        }
        for (u64 g = 0; g < p.logical; ++g) {
            reference::put(expected_scales, (row * p.logical + g) * 2, 2, reference::scale_at(s, p, payload, row, g));
        }
    }
    const u64 group = reference::group_of(s.format);
    for (u64 c = 0; c < group && c < s.k; ++c) expected_codes[s.k + c] = 0xa5;
    reference::put(expected_scales, p.logical * 2, 2, 0xffff);
    same(codes.download(), expected_codes, label(s) + " engine codes");
    same(scales.download(), expected_scales, label(s) + " engine scales");
}

}  // namespace

void run_engine() {
    Part part("engine");
    decode(engine::engine_q4, {reference::Q4, 9, 200});
    decode(engine::engine_q5, {reference::Q5, 9, 200});
    decode(engine::engine_q6, {reference::Q6, 9, 200});
    decode(engine::engine_w8, {reference::W8, 9, 200});
    decode(engine::engine_nvfp4, {reference::NVFP4, 128, 192});
    decode(engine::engine_fp8, {reference::FP8, 7, 224});
    quantize(engine::engine_quantize_q4, {reference::Q4, 9, 200});
    quantize(engine::engine_quantize_q5, {reference::Q5, 9, 200});
    quantize(engine::engine_quantize_q6, {reference::Q6, 9, 200});
    quantize(engine::engine_quantize_w8, {reference::W8, 9, 200});
}

}  // namespace test
