#include <stdio.h>
#include "ninfer_codec.h"

int main(void) {
    const float weights[4] = {0.5f, -1.0f, 0.25f, 2.0f};
    const uint64_t dims[2] = {2, 2};
    static uint8_t payload[4096];
    float row[2];

    ninfer_codec_details why = {.struct_size = sizeof why};
    ninfer_codec_plan plan = {.struct_size = sizeof plan};
    uint32_t status = ninfer_codec_tensor_plan(NINFER_CODEC_FORMAT_W8G32_F16S,
                                               NINFER_CODEC_LAYOUT_ROW_SPLIT_K128_V1, dims, 2, &plan, &why);
    if (status == NINFER_CODEC_STATUS_OK && plan.payload_bytes <= sizeof payload)
        status = ninfer_codec_tensor_quantize(plan.format, plan.layout, dims, 2, 0, 2, /* rows 0 and 1 */
                                              NINFER_CODEC_VALUE_F32, weights, 4, 2, /* stride 2 */
                                              payload, plan.payload_bytes, &why);
    if (status == NINFER_CODEC_STATUS_OK)
        status = ninfer_codec_tensor_decode(plan.format, plan.layout, dims, 2, payload, plan.payload_bytes,
                                            1, 1, 0, 2, /* row 1, columns 0 and 1 */
                                            NINFER_CODEC_VALUE_F32, row, 2, 2, &why);
    if (status != NINFER_CODEC_STATUS_OK) {
        fprintf(stderr, "%s\n", ninfer_codec_status_message(status));
        return 1;
    }
    printf("%.8f %.7f\n", row[0], row[1]); /* 0.25195312 1.9998779 */
    return 0;
}
