// A CUDA runtime for the CPU: enough to compile the .cu files as C++17 and run every kernel under sanitizers.
//
// Device memory is heap memory, one allocation each, so a sanitizer sees every access outside it. A launch runs at
// once: its blocks one after the other, the threads of a block as fibers on one host thread. A barrier, __syncwarp
// or shuffle yields until all threads concerned have arrived; threads run in rising order in even blocks and in
// falling order in odd ones. A block in which no thread can go on is a failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#define NINFER_CODEC_CUDA_SHIM 1
#define __host__
#define __device__
#define __global__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(...)

struct uint4 {
    alignas(16) unsigned x;
    unsigned y, z, w;
};
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

// ---------------------------------------------------------------------------------------------------------------
// What a kernel sees.

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

namespace cuda_shim {
void block_barrier();
void warp_barrier();
unsigned exchange(unsigned value, unsigned source_lane);
void run(dim3 grid, dim3 block, void (*call)(const void*), const void* context);
}  // namespace cuda_shim

inline void __syncthreads() { cuda_shim::block_barrier(); }
inline void __syncwarp(unsigned = 0xffffffffu) { cuda_shim::warp_barrier(); }
inline unsigned __shfl_xor_sync(unsigned, unsigned value, int mask) {
    return cuda_shim::exchange(value, (threadIdx.x ^ static_cast<unsigned>(mask)) % 32);
}
inline void __stwb(uint4* p, uint4 v) { *p = v; }
inline unsigned long long atomicMin(unsigned long long* at, unsigned long long value) {
    const unsigned long long old = *at;
    if (value < old) *at = value;
    return old;
}

// ---------------------------------------------------------------------------------------------------------------
// What a host program sees.

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16 };
struct cudaDeviceProp {
    char name[256];
    int multiProcessorCount, major, minor, l2CacheSize;
    size_t totalGlobalMem;
};
using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;

cudaError_t cudaMalloc(void** p, size_t bytes);
cudaError_t cudaFree(void* p);
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t);
cudaError_t cudaMemset(void* p, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void* p, int value, size_t bytes, cudaStream_t);
cudaError_t cudaMemGetInfo(size_t* available, size_t* total);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int device);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaStreamCreate(cudaStream_t* s);
cudaError_t cudaStreamDestroy(cudaStream_t s);
cudaError_t cudaStreamSynchronize(cudaStream_t s);
cudaError_t cudaEventCreate(cudaEvent_t* e);
cudaError_t cudaEventDestroy(cudaEvent_t e);
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s);
cudaError_t cudaEventSynchronize(cudaEvent_t e);
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaGetLastError();
const char* cudaGetErrorString(cudaError_t e);

template <class Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel, int, size_t) {
    *blocks = 1;
    return cudaSuccess;
}

// Kernels here take one argument.
template <class Args>
cudaError_t cudaLaunchKernel(void (*kernel)(Args), dim3 grid, dim3 block, void** args, size_t, cudaStream_t) {
    struct Context {
        void (*kernel)(Args);
        const Args* args;
    } context{kernel, static_cast<const Args*>(args[0])};
    if (grid.x == 0 || block.x == 0 || block.x % 32 != 0) return cudaErrorInvalidValue;
    cuda_shim::run(grid, block, [](const void* c) {
        const Context& context = *static_cast<const Context*>(c);
        context.kernel(*context.args);
    }, &context);
    return cudaSuccess;
}
