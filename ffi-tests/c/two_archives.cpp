// One program that links two Rust archives: this library's, without `std`, and one of a crate with `std`.
#include <ninfer_codec.h>

#include <cstdint>
#include <cstdio>

extern "C" uint32_t other_archive_work(uint32_t n);

int main() {
    const uint64_t dims[2] = {1, 2};
    const uint8_t payload[4] = {0x80, 0x3f, 0x00, 0x40};
    float values[2] = {0, 0};
    const uint32_t status =
        ninfer_codec_tensor_decode(NINFER_CODEC_FORMAT_BF16, NINFER_CODEC_LAYOUT_CONTIGUOUS_LE_V1, dims, 2, payload, 4, 0,
                                   1, 0, 2, NINFER_CODEC_VALUE_F32, values, 2, 2, nullptr);
    if (status != NINFER_CODEC_STATUS_OK || values[0] != 1.0f || values[1] != 2.0f) return 1;
    if (other_archive_work(17) != 17) return 2;
    std::puts("both");
    return 0;
}
