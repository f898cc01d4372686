#include <array>
#include <cstdio>
#include <vector>
#include "ninfer_codec.hpp"

namespace nc = ninfer_codec;

int main() {
    const std::array weights{0.5f, -1.0f, 0.25f, 2.0f};
    const std::array<std::uint64_t, 2> dims{2, 2};
    const auto shape = nc::Shape::plan(nc::Format::w8g32_f16s, nc::Layout::row_split_k128_v1, dims);
    if (!shape) return 1;
    std::vector<std::uint8_t> payload(shape->payload_bytes());
    if (!nc::TensorMut(*shape, payload).quantize<float>({.begin = 0, .count = 2}, weights)) return 1;

    const auto tensor = nc::Tensor::open(shape->format(), shape->layout(), dims, payload);
    if (!tensor) return 1;
    std::array<float, 2> row{};
    if (const auto done = tensor->decode<float>({.begin = 1, .count = 1}, row); !done) {
        std::fprintf(stderr, "%s\n", done.error().message());
        return 1;
    }
    std::printf("%.8f %.7f\n", row[0], row[1]); // 0.25195312 1.9998779
}
