// The fibers and the host calls behind cuda_runtime.h.
#include "cuda_runtime.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

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

// Switching stacks. swapcontext works everywhere but makes two system calls; x86-64 has its own.
#if defined(__x86_64__)
// Saves the callee-saved registers on this stack, leaves its top in *from and goes on with `to`.
extern "C" void cuda_shim_switch(void** from, void* to);
asm(R"(
.text
.globl cuda_shim_switch
.type cuda_shim_switch, @function
cuda_shim_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size cuda_shim_switch, .-cuda_shim_switch
.section .note.GNU-stack,"",@progbits
.text
)");
using Context = void*;
static void switch_context(Context& from, Context& to) { cuda_shim_switch(&from, to); }
static void make_context(Context& c, char* stack, size_t bytes, void (*entry)()) {
    void** top = reinterpret_cast<void**>((reinterpret_cast<uintptr_t>(stack) + bytes) / 16 * 16);
    *--top = nullptr;  // keeps the stack aligned as a call would
    *--top = reinterpret_cast<void*>(entry);
    top -= 6;
    c = top;
}
#else
using Context = ucontext_t;
static void switch_context(Context& from, Context& to) { swapcontext(&from, &to); }
static void make_context(Context& c, char* stack, size_t bytes, void (*entry)()) {
    getcontext(&c);
    c.uc_stack.ss_sp = stack;
    c.uc_stack.ss_size = bytes;
    c.uc_link = nullptr;
    makecontext(&c, entry, 0);
}
#endif

namespace cuda_shim {
namespace {

constexpr size_t stack_bytes = 64 * 1024;
constexpr unsigned lanes = 32;

// Threads that wait for one another.
struct Barrier {
    unsigned size = 0, arrived = 0, generation = 0;
};

struct Fiber {
    Context context;
    std::vector<char> stack;
    bool done = false;
    const Barrier* waits = nullptr;  // for this barrier's generation to change
    unsigned generation = 0;
};

struct Block {
    std::vector<Fiber> fibers;
    Barrier all;
    std::vector<Barrier> warps;
    std::vector<unsigned> slots;  // one a thread, for exchanges
    Context scheduler;
    const void* scheduler_stack = nullptr;
    size_t scheduler_bytes = 0;
    unsigned current = 0;
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

void enter() {
    after_switch(nullptr, &block.scheduler_stack, &block.scheduler_bytes);
    block.call(block.call_context);
    Fiber& self = block.fibers[block.current];
    self.done = true;
    before_switch(nullptr, block.scheduler_stack, block.scheduler_bytes);
    switch_context(self.context, block.scheduler);
}

void wait(Barrier& b) {
    if (++b.arrived == b.size) {
        b.arrived = 0;
        ++b.generation;
        return;
    }
    Fiber& self = block.fibers[block.current];
    self.waits = &b;
    self.generation = b.generation;
    void* saved = nullptr;
    before_switch(&saved, block.scheduler_stack, block.scheduler_bytes);
    switch_context(self.context, block.scheduler);
    after_switch(saved, &block.scheduler_stack, &block.scheduler_bytes);
}

// Runs a thread until it waits or ends.
void resume(unsigned thread) {
    block.current = thread;
    threadIdx = {thread, 0, 0};
    Fiber& f = block.fibers[thread];
    f.waits = nullptr;
    void* saved = nullptr;
    before_switch(&saved, f.stack.data(), f.stack.size());
    switch_context(block.scheduler, f.context);
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
        f.waits = nullptr;
        make_context(f.context, f.stack.data(), f.stack.size(), enter);
    }
    for (bool alive = true; alive;) {
        alive = false;
        bool progress = false;
        for (unsigned i = 0; i < threads; ++i) {
            const unsigned thread = falling ? threads - 1 - i : i;
            Fiber& f = block.fibers[thread];
            if (f.done) continue;
            alive = true;
            if (f.waits && f.waits->generation == f.generation) continue;
            progress = true;
            resume(thread);
        }
        if (alive && !progress) {
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
