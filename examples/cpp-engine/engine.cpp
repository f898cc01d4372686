// What an inference engine does with an artifact: an embedding look-up, and a dequantize-and-dot.
//
//     engine FILE TENSOR ROW...
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "artifact.hpp"
#include "ninfer_codec.hpp"

namespace nc = ninfer_codec;

static int fail(const char *what, const nc::Error &error) {
    std::fprintf(stderr, "%s: %s (row %llu)\n", what, error.message(),
                 static_cast<unsigned long long>(error.details.row));
    return 1;
}

// Dot product of every row with x, one row of weights in memory at a time.
static nc::Result<nc::Done> multiply(const nc::Tensor &weights, std::span<const float> x, std::span<double> y) {
    std::vector<float> row(weights.columns());
    for (std::uint64_t n = 0; n < weights.rows(); ++n) {
        if (auto done = weights.decode({n, 1}, std::span(row)); !done) return done.error();
        y[n] = 0;
        for (std::size_t k = 0; k < row.size(); ++k) y[n] += static_cast<double>(row[k]) * x[k];
    }
    return nc::Done{};
}

int main(int argc, char **argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: engine FILE TENSOR ROW...\n");
        return 2;
    }
    const Artifact artifact(argv[1]);
    if (!artifact.error.empty()) {
        std::fprintf(stderr, "%s\n", artifact.error.c_str());
        return 1;
    }
    const auto entry = artifact.find(argv[2]);
    if (!entry) {
        std::fprintf(stderr, "%s: no tensor %s\n", argv[1], argv[2]);
        return 1;
    }
    const auto format = nc::format_of(entry->format);
    if (!format) return fail(entry->format.c_str(), format.error());
    const auto layout = nc::layout_of(entry->layout);
    if (!layout) return fail(entry->layout.c_str(), layout.error());
    const auto tensor = nc::Tensor::open(*format, *layout, entry->shape, entry->payload);
    if (!tensor) return fail(argv[2], tensor.error());

    std::vector<std::uint64_t> rows;
    for (int i = 3; i < argc; ++i) rows.push_back(std::strtoull(argv[i], nullptr, 10));
    std::vector<float> values(rows.size() * tensor->columns());
    if (auto done = tensor->decode_rows<float>(rows, values); !done) return fail("look-up", done.error());
    for (std::size_t i = 0; i < rows.size(); ++i)
        std::printf("row %llu: %.9g %.9g ...\n", static_cast<unsigned long long>(rows[i]),
                    values[i * tensor->columns()], values[i * tensor->columns() + (tensor->columns() > 1)]);

    const std::vector<float> ones(tensor->columns(), 1.0f);
    std::vector<double> sums(tensor->rows());
    if (auto done = multiply(*tensor, ones, sums); !done) return fail("multiply", done.error());
    std::printf("row sums: %.9g ... %.9g\n", sums.front(), sums.back());
    return 0;
}
