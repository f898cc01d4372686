/*
 * Two threads work on disjoint ranges of one payload at once: they write rows (W8), tiles (NVFP4) and columns of
 * one output. The bytes must be those of single calls, and a checker of races must see none.
 *
 *   threads             disjoint ranges
 *   threads race        both threads write the same rows: a checker of races must see it
 */
#include <ninfer_codec.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 256, COLUMNS = 192, STRIDE = COLUMNS + 1, ROUNDS = 8 };

static const uint64_t dims[2] = {ROWS, COLUMNS};
static float source[ROWS * COLUMNS];
static uint8_t codes[ROWS * COLUMNS / 2], scales[ROWS * COLUMNS / 16];
static uint8_t *w8, *nvfp4;
static uint64_t w8_bytes, nvfp4_bytes;
static float *decoded;

struct job {
    uint64_t row_begin, row_count;       /* written */
    uint64_t column_begin, column_count; /* decoded */
    uint32_t status;
    int decode;
};

static void *work(void *argument) {
    struct job *job = argument;
    const float *rows = source + job->row_begin * COLUMNS;
    uint32_t status = 0;
    if (!job->decode) {
        status |= ninfer_codec_tensor_quantize(NINFER_CODEC_FORMAT_W8G32_F16S, NINFER_CODEC_LAYOUT_ROW_SPLIT_K128_V1,
                                               dims, 2, job->row_begin, job->row_count, NINFER_CODEC_VALUE_F32, rows,
                                               job->row_count * COLUMNS, COLUMNS, w8, w8_bytes, NULL);
        const uint64_t tile = job->row_begin / 128 * 128;
        status |= ninfer_codec_tensor_pack(NINFER_CODEC_FORMAT_NVFP4, NINFER_CODEC_LAYOUT_BLOCKSCALE_K16_M128X4_V1, dims,
                                           2, tile, 128, codes + tile * COLUMNS / 2, 128 * COLUMNS / 2,
                                           scales + tile * COLUMNS / 16, 128 * COLUMNS / 16, 0x3f800000u, nvfp4,
                                           nvfp4_bytes, NULL);
    } else {
        status |= ninfer_codec_tensor_decode(NINFER_CODEC_FORMAT_W8G32_F16S, NINFER_CODEC_LAYOUT_ROW_SPLIT_K128_V1, dims,
                                             2, w8, w8_bytes, 0, ROWS, job->column_begin, job->column_count,
                                             NINFER_CODEC_VALUE_F32, decoded + job->column_begin,
                                             (ROWS - 1) * STRIDE + job->column_count, STRIDE, NULL);
    }
    job->status = status;
    return NULL;
}

static int both(struct job jobs[2]) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        if (pthread_create(&threads[i], NULL, work, &jobs[i]) != 0) return 1;
    }
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return jobs[0].status != 0 || jobs[1].status != 0;
}

static uint64_t bytes_of(uint32_t format, uint32_t layout) {
    ninfer_codec_plan plan;
    plan.struct_size = sizeof plan;
    return ninfer_codec_tensor_plan(format, layout, dims, 2, &plan, NULL) == 0 ? plan.payload_bytes : 0;
}

int main(int argc, char **argv) {
    const int race = argc > 1 && strcmp(argv[1], "race") == 0;
    for (int i = 0; i < ROWS * COLUMNS; i++) source[i] = (float)(i % 977) / 31.0f - 15.0f;
    for (size_t i = 0; i < sizeof codes; i++) codes[i] = (uint8_t)(i * 31);
    for (size_t i = 0; i < sizeof scales; i++) scales[i] = (uint8_t)(i % 0x7f);
    w8_bytes = bytes_of(NINFER_CODEC_FORMAT_W8G32_F16S, NINFER_CODEC_LAYOUT_ROW_SPLIT_K128_V1);
    nvfp4_bytes = bytes_of(NINFER_CODEC_FORMAT_NVFP4, NINFER_CODEC_LAYOUT_BLOCKSCALE_K16_M128X4_V1);
    uint8_t *expected_w8 = w8 = malloc((size_t)w8_bytes), *expected_nvfp4 = nvfp4 = malloc((size_t)nvfp4_bytes);
    float *expected = decoded = malloc(ROWS * STRIDE * sizeof *decoded);
    memset(decoded, 0, ROWS * STRIDE * sizeof *decoded);

    /* one thread after the other: rows 0 to 132, then the others */
    struct job jobs[2] = {{0, 133, 0, 64, 0, 0}, {133, ROWS - 133, 64, COLUMNS - 64, 0, 0}};
    for (int i = 0; i < 2; i++) work(&jobs[i]);
    for (int i = 0; i < 2; i++) {
        jobs[i].decode = 1;
        work(&jobs[i]);
    }
    if (jobs[0].status != 0 || jobs[1].status != 0) return 2;

    w8 = malloc((size_t)w8_bytes);
    nvfp4 = malloc((size_t)nvfp4_bytes);
    decoded = malloc(ROWS * STRIDE * sizeof *decoded);
    for (int round = 0; round < ROUNDS; round++) {
        memset(w8, 0xa5, (size_t)w8_bytes);
        memset(nvfp4, 0xa5, (size_t)nvfp4_bytes);
        memset(decoded, 0, ROWS * STRIDE * sizeof *decoded);
        jobs[0].decode = jobs[1].decode = 0;
        if (race) jobs[1].row_begin = 130, jobs[1].row_count = ROWS - 130;
        if (both(jobs)) return 3;
        jobs[0].decode = jobs[1].decode = 1;
        if (both(jobs)) return 4;
        if (memcmp(w8, expected_w8, (size_t)w8_bytes) != 0) return 5;
        if (memcmp(nvfp4, expected_nvfp4, (size_t)nvfp4_bytes) != 0) return 6;
        if (memcmp(decoded, expected, ROWS * STRIDE * sizeof *decoded) != 0) return 7;
    }
    free(expected_w8), free(expected_nvfp4), free(expected), free(w8), free(nvfp4), free(decoded);
    puts("the same bytes");
    return 0;
}
