// Digests that the host library made of its own results: the device's must be the same.
//
// A line is: decode|quantize FORMAT TYPE ROWS COLUMNS SEED DIGEST. The input is random_payload or random_source of
// harness.h; the digest is 64-bit FNV-1a over the values' bytes or the payload. tests/cuda_digests.rs writes the file.
#include <fstream>
#include <sstream>

#include "operations.h"

namespace test {
namespace {

std::string fnv1a(const Bytes& b) {
    u64 h = 0xcbf29ce484222325u;
    for (u8 x : b) h = (h ^ x) * 0x100000001b3u;
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(h));
    return text;
}

u32 id_of(const std::string& name) {
    for (u32 f = 1; f <= 9; ++f) {
        if (name == reference::name_of(f)) return f;
    }
    const char* const types[] = {"f32", "bf16", "f16", "f64"};
    for (u32 t = 0; t < 4; ++t) {
        if (name == types[t]) return t + 1;
    }
    return 0;
}

}  // namespace

void run_digests(const std::string& file) {
    Part part("digests");
    std::ifstream in(file);
    check(bool(in), "cannot read " + file);
    for (std::string line; std::getline(in, line);) {
        if (line.empty() || line[0] == '#') continue;
        std::istringstream words(line);
        std::string operation, format, type, digest;
        Shape s{0, 0, 0};
        u64 seed = 0;
        words >> operation >> format >> type >> s.n >> s.k >> seed >> digest;
        s.format = id_of(format);
        Result r;
        if (operation == "decode") {
            r = device_decode(s, random_payload(s, seed), Rows::range(0, s.n), id_of(type));
        } else {
            r = device_quantize(s, id_of(type), random_source(s.n * s.k, id_of(type), seed), 0, s.n,
                                Bytes(reference::places(s).bytes, 0xa5));
        }
        same(r.outcome, Outcome{}, line);
        check(fnv1a(r.bytes) == digest, line + ": got " + fnv1a(r.bytes));
    }
}

}  // namespace test
