// A CUDA driver for the CPU: the entry points that the Rust side calls through cudarc, with the kernels' own .cu files
// behind cuLaunchKernel. Built as libcuda.so.1, so that the Rust tests run against every kernel without a GPU.
//
// Work is put off: launches, copies to the device, fills and frees run when something waits for them, so that an
// operation that forgot to wait, or freed what it still needs, is seen. There are two devices with memory of their own,
// in name at least. CUDA_STAND_IN_VERSION and CUDA_STAND_IN_DEVICES make it an old driver or one without devices.
// CUDA_STAND_IN_FAIL=N fails the Nth call that could fail and all after it.
#include "cuda_runtime.h"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "../kernels.cuh"

namespace {

using Status = int;
constexpr Status ok = 0, invalid_value = 1, out_of_memory = 2, no_device = 100, invalid_device = 101, invalid_ptx = 218,
                 not_found = 500, not_ready = 600, launch_failed = 719;

struct Kernel {
    const char* name;
    size_t bytes;  // of its argument
    void (*call)(const void*);
};
#define NINFER_CODEC_ROW(NAME, ARGS)                                                                       \
    {"ninfer_codec_" #NAME, sizeof(ninfer_codec::ARGS), [](const void* a) {                                \
         ninfer_codec::ninfer_codec_##NAME(*static_cast<const ninfer_codec::ARGS*>(a));                    \
     }},
const Kernel kernels[] = {NINFER_CODEC_KERNELS(NINFER_CODEC_ROW)};

std::mutex mutex;  // the shim has one block at a time
std::vector<std::function<void()>> put_off;
void run_all() {
    for (size_t i = 0; i < put_off.size(); ++i) put_off[i]();
    put_off.clear();
}

long number_from(const char* variable, long otherwise) {
    const char* const text = std::getenv(variable);
    return text ? std::atol(text) : otherwise;
}
bool failing() {
    static const long at = number_from("CUDA_STAND_IN_FAIL", 0);
    static long calls = 0;
    return at > 0 && ++calls >= at;
}
int device_count() { return int(number_from("CUDA_STAND_IN_DEVICES", 2)); }

int contexts[2];  // their addresses are the handles
thread_local void* current = nullptr;

}  // namespace

#define ENTRY extern "C" __attribute__((visibility("default"))) Status
#define LOCKED const std::lock_guard<std::mutex> lock(mutex)
#define MAY_FAIL(STATUS) LOCKED; if (failing()) return STATUS

ENTRY cuInit(unsigned) { return device_count() == 0 ? no_device : ok; }
ENTRY cuDriverGetVersion(int* version) { return *version = int(number_from("CUDA_STAND_IN_VERSION", 13000)), ok; }
ENTRY cuDeviceGetCount(int* count) { return *count = device_count(), ok; }
ENTRY cuDeviceGet(int* device, int ordinal) {
    if (ordinal < 0 || ordinal >= device_count() || ordinal >= 2) return invalid_device;
    return *device = ordinal, ok;
}
ENTRY cuDeviceGetName(char* name, int length, int) { return std::snprintf(name, size_t(length), "CPU stand-in"), ok; }
ENTRY cuDeviceGetAttribute(int* value, int attribute, int) {
    *value = attribute == 16 ? 3 : attribute == 115 ? 1 : 0;  // multiprocessors; memory pools
    return ok;
}
ENTRY cuDevicePrimaryCtxRetain(void** context, int device) { return *context = &contexts[device], ok; }
ENTRY cuDevicePrimaryCtxRelease_v2(int) { return ok; }
ENTRY cuCtxSetCurrent(void* context) { return current = context, ok; }
ENTRY cuCtxGetCurrent(void** context) { return *context = current, ok; }
ENTRY cuCtxSynchronize() {
    LOCKED;
    return run_all(), ok;
}

// Takes the PTX only if it has every kernel, each with an argument of this size.
ENTRY cuModuleLoadData(void** module, const void* image) {
    const std::string ptx = static_cast<const char*>(image);
    for (const Kernel& k : kernels) {
        const std::string name = k.name;
        const std::string parameter = " " + name + "_param_0[" + std::to_string(k.bytes) + "]";
        if (ptx.find(".entry " + name + "(") == std::string::npos || ptx.find(parameter) == std::string::npos) {
            std::fprintf(stderr, "stand-in driver: the PTX has no %s with an argument of %zu bytes\n", k.name, k.bytes);
            return invalid_ptx;
        }
    }
    return *module = &contexts, ok;
}
ENTRY cuModuleUnload(void*) { return ok; }
ENTRY cuModuleGetFunction(const Kernel** function, void*, const char* name) {
    MAY_FAIL(not_found);
    for (const Kernel& k : kernels) {
        if (std::strcmp(k.name, name) == 0) return *function = &k, ok;
    }
    return not_found;
}
ENTRY cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const Kernel*, int, size_t, unsigned) {
    MAY_FAIL(invalid_value);
    return *blocks = 1, ok;
}
ENTRY cuLaunchKernel(const Kernel* kernel, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned ty, unsigned tz,
                     unsigned shared, void*, void** arguments, void**) {
    MAY_FAIL(launch_failed);
    if (!current || x == 0 || x > 0x7fffffffu || y != 1 || z != 1 || ty != 1 || tz != 1 || shared != 0 ||
        threads != ninfer_codec::block_threads) {
        return invalid_value;
    }
    const char* const from = static_cast<const char*>(arguments[0]);
    put_off.push_back([=, argument = std::vector<char>(from, from + kernel->bytes)] {
        cuda_shim::run(dim3(x), dim3(threads), kernel->call, argument.data());
    });
    return ok;
}

ENTRY cuMemAllocAsync(unsigned long long* p, size_t bytes, void*) {
    MAY_FAIL(out_of_memory);
    void* memory = nullptr;
    if (posix_memalign(&memory, 256, bytes ? bytes : 1) != 0) return out_of_memory;
    std::memset(memory, 0xcd, bytes);
    return *p = reinterpret_cast<unsigned long long>(memory), ok;
}
ENTRY cuMemFreeAsync(unsigned long long p, void*) {
    LOCKED;
    put_off.push_back([=] { std::free(reinterpret_cast<void*>(p)); });
    return ok;
}
// From pageable memory: taken before the call returns.
ENTRY cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, void*) {
    MAY_FAIL(invalid_value);
    const char* const begin = static_cast<const char*>(from);
    put_off.push_back([=, copy = std::vector<char>(begin, begin + bytes)] {
        if (bytes) std::memcpy(reinterpret_cast<void*>(to), copy.data(), bytes);
    });
    return ok;
}
ENTRY cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, void*) {
    MAY_FAIL(invalid_value);
    run_all();
    if (bytes) std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return ok;
}
ENTRY cuMemsetD8Async(unsigned long long p, unsigned char value, size_t bytes, void*) {
    MAY_FAIL(invalid_value);
    put_off.push_back([=] { std::memset(reinterpret_cast<void*>(p), value, bytes); });
    return ok;
}

ENTRY cuStreamCreate(void** stream, unsigned) { return *stream = new char, ok; }
ENTRY cuStreamDestroy_v2(void* stream) { return delete static_cast<char*>(stream), ok; }
ENTRY cuStreamWaitEvent(void*, void*, unsigned) { return ok; }
ENTRY cuStreamSynchronize(void*) {
    MAY_FAIL(launch_failed);
    return run_all(), ok;
}
ENTRY cuEventCreate(void** event, unsigned) {
    MAY_FAIL(out_of_memory);
    return *event = new bool(false), ok;
}
ENTRY cuEventDestroy_v2(void* event) {
    LOCKED;
    put_off.push_back([=] { delete static_cast<bool*>(event); });
    return ok;
}
ENTRY cuEventRecord(void* event, void*) {
    LOCKED;
    *static_cast<bool*>(event) = false;
    put_off.push_back([=] { *static_cast<bool*>(event) = true; });
    return ok;
}
ENTRY cuEventSynchronize(void*) {
    LOCKED;
    return run_all(), ok;
}
ENTRY cuEventQuery(void* event) {
    LOCKED;
    return *static_cast<bool*>(event) ? ok : not_ready;
}
