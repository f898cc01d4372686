// The fibers and the host calls behind cuda_runtime.h.
#include "cuda_runtime.h"

#include <ucontext.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define CUDA_SHIM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CUDA_SHIM_ASAN 1
#endif
#endif
#ifdef CUDA_SHIM_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace cuda_shim {
namespace {

constexpr size_t stack_bytes = 64 * 1024;
constexpr unsigned lanes = 32;

// Threads that wait for one another.
struct Barrier {
    unsigned size = 0, arrived = 0, generation = 0;
};

struct Fiber {
    ucontext_t context;
    std::vector<char> stack;
    bool done = false;
};

struct Block {
    std::vector<Fiber> fibers;
    Barrier all;
    std::vector<Barrier> warps;
    std::vector<unsigned> slots;  // one a thread, for exchanges
    ucontext_t scheduler;
    const void* scheduler_stack = nullptr;
    size_t scheduler_bytes = 0;
    unsigned current = 0;
    unsigned long long progress = 0;
    void (*call)(const void*) = nullptr;
    const void* call_context = nullptr;
};
Block block;

void before_switch(void** saved, const void* stack, size_t bytes) {
#ifdef CUDA_SHIM_ASAN
    __sanitizer_start_switch_fiber(saved, stack, bytes);
#else
    (void)saved, (void)stack, (void)bytes;
#endif
}
void after_switch(void* saved, const void** old_stack, size_t* old_bytes) {
#ifdef CUDA_SHIM_ASAN
    __sanitizer_finish_switch_fiber(saved, old_stack, old_bytes);
#else
    (void)saved, (void)old_stack, (void)old_bytes;
#endif
}

void yield() {
    void* saved = nullptr;
    before_switch(&saved, block.scheduler_stack, block.scheduler_bytes);
    swapcontext(&block.fibers[block.current].context, &block.scheduler);
    after_switch(saved, &block.scheduler_stack, &block.scheduler_bytes);
}

void enter() {
    after_switch(nullptr, &block.scheduler_stack, &block.scheduler_bytes);
    block.call(block.call_context);
    block.fibers[block.current].done = true;
    ++block.progress;
    before_switch(nullptr, block.scheduler_stack, block.scheduler_bytes);
    setcontext(&block.scheduler);
}

void wait(Barrier& b) {
    ++block.progress;
    const unsigned generation = b.generation;
    if (++b.arrived == b.size) {
        b.arrived = 0;
        ++b.generation;
        return;
    }
    while (b.generation == generation) yield();
}

void resume(unsigned thread) {
    block.current = thread;
    threadIdx = {thread, 0, 0};
    Fiber& f = block.fibers[thread];
    void* saved = nullptr;
    before_switch(&saved, f.stack.data(), f.stack.size());
    swapcontext(&block.scheduler, &f.context);
    after_switch(saved, nullptr, nullptr);
}

void run_block(unsigned threads, bool falling) {
    block.fibers.resize(threads);
    block.slots.assign(threads, 0);
    block.all = {threads, 0, 0};
    block.warps.assign(threads / lanes, {lanes, 0, 0});
    for (Fiber& f : block.fibers) {
        f.stack.resize(stack_bytes);
        f.done = false;
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack.data();
        f.context.uc_stack.ss_size = f.stack.size();
        f.context.uc_link = nullptr;
        makecontext(&f.context, enter, 0);
    }
    for (bool alive = true; alive;) {
        alive = false;
        const unsigned long long before = block.progress;
        for (unsigned i = 0; i < threads; ++i) {
            const unsigned thread = falling ? threads - 1 - i : i;
            if (block.fibers[thread].done) continue;
            resume(thread);
            alive = alive || !block.fibers[thread].done;
        }
        if (alive && block.progress == before) {
            std::fprintf(stderr, "cuda shim: a block is stuck at a barrier\n");
            std::abort();
        }
    }
}

}  // namespace

void block_barrier() { wait(block.all); }
void warp_barrier() { wait(block.warps[threadIdx.x / lanes]); }

unsigned exchange(unsigned value, unsigned source_lane) {
    const unsigned thread = block.current;
    block.slots[thread] = value;
    wait(block.warps[thread / lanes]);
    const unsigned other = block.slots[thread / lanes * lanes + source_lane];
    wait(block.warps[thread / lanes]);
    return other;
}

void run(dim3 grid, dim3 threads, void (*call)(const void*), const void* context) {
    gridDim = grid;
    blockDim = threads;
    block.call = call;
    block.call_context = context;
    for (unsigned b = 0; b < grid.x; ++b) {
        blockIdx = {b, 0, 0};
        run_block(threads.x, b % 2 == 1);
    }
}

}  // namespace cuda_shim

// ---------------------------------------------------------------------------------------------------------------

struct CUstream_st {};
struct CUevent_st {
    std::chrono::steady_clock::time_point at;
};

cudaError_t cudaMalloc(void** p, size_t bytes) {
    // As on a device: 256-byte aligned, contents unspecified; the end is exact, for the sanitizer.
    if (posix_memalign(p, 256, bytes ? bytes : 1) != 0) return cudaErrorMemoryAllocation;
    std::memset(*p, 0xcd, bytes);
    return cudaSuccess;
}
cudaError_t cudaFree(void* p) { return std::free(p), cudaSuccess; }
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
    if (bytes) std::memcpy(to, from, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
    return cudaMemcpy(to, from, bytes, kind);
}
cudaError_t cudaMemset(void* p, int value, size_t bytes) { return std::memset(p, value, bytes), cudaSuccess; }
cudaError_t cudaMemsetAsync(void* p, int value, size_t bytes, cudaStream_t) { return cudaMemset(p, value, bytes); }
cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
    *available = *total = size_t(256) << 20;
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
    *p = {"CPU shim", 3, 0, 0, 1 << 20, size_t(256) << 20};
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) { return *value = 3, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = 0, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 0, cudaSuccess; }
cudaError_t cudaStreamCreate(cudaStream_t* s) { return *s = new CUstream_st, cudaSuccess; }
cudaError_t cudaStreamDestroy(cudaStream_t s) { return delete s, cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t* e) { return *e = new CUevent_st, cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t e) { return delete e, cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t) {
    e->at = std::chrono::steady_clock::now();
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
    *ms = std::chrono::duration<float, std::milli>(end->at - begin->at).count();
    return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t e) { return e == cudaSuccess ? "no error" : "error"; }
