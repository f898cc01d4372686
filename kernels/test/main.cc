// The one host program: checks every kernel, on a device or, linked with the shim, on the CPU.
//
//   check vectors DIR | exhaustive | random | refusals | far | engine | digests FILE | bench GIGABYTES
//
// Several parts may follow one another. The last line is "N passed, M failed"; the exit status is 1 on failures.
#include <cstring>

#include "library.h"

int main(int argc, char** argv) {
    cudaDeviceProp properties;
    int driver = 0, runtime = 0;
    test::cuda(cudaGetDeviceProperties(&properties, 0), "device");
    test::cuda(cudaDriverGetVersion(&driver), "driver");
    test::cuda(cudaRuntimeGetVersion(&runtime), "runtime");
    std::printf("device: %s, compute %d.%d, %d processors; driver %d, runtime %d\n", properties.name, properties.major,
                properties.minor, properties.multiProcessorCount, driver, runtime);
    if (argc < 2) {
        std::fprintf(stderr, "no part named; see the head of main.cc\n");
        return 2;
    }
    for (int i = 1; i < argc; ++i) {
        const std::string part = argv[i];
        const bool has_argument = part == "vectors" || part == "digests" || part == "bench";
        if (has_argument && i + 1 == argc) {
            std::fprintf(stderr, "%s needs an argument\n", part.c_str());
            return 2;
        }
        if (part == "vectors") test::run_vectors(argv[++i]);
        else if (part == "exhaustive") test::run_exhaustive();
        else if (part == "random") test::run_random();
        else if (part == "refusals") test::run_refusals();
        else if (part == "far") test::run_far();
        else if (part == "engine") test::run_engine();
        else if (part == "digests") test::run_digests(argv[++i]);
        else if (part == "bench") test::run_bench(std::atof(argv[++i]));
        else {
            std::fprintf(stderr, "no part %s\n", part.c_str());
            return 2;
        }
    }
    test::cuda(cudaDeviceSynchronize(), "device");
    test::cuda(cudaGetLastError(), "last error");
    test::library::summary();
    std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(test::counts().passed),
                static_cast<unsigned long long>(test::counts().failed));
    return test::counts().failed ? 1 : 0;
}
