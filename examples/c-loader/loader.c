/*
 * Streams one tensor out of an artifact and decodes it, with fixed buffers and no allocation.
 *
 *     loader FILE OFFSET FORMAT ROWS COLUMNS
 *
 * OFFSET is the payload's place in the file, as `ninfer inspect` prints it. Only a chunk of rows is in memory at
 * a time: its spans are read from each plane into a standalone payload of [chunk, COLUMNS], which is decoded row
 * by row. Prints the chunk size, the first values, and a digest (FNV-1a) of all decoded binary32 bytes.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ninfer_codec.h"

enum { CHUNK_BYTES = 1 << 20, MAX_COLUMNS = 1 << 16, TILE_ROWS = 128 };

static uint8_t chunk[CHUNK_BYTES];
static float row[MAX_COLUMNS];
static ninfer_codec_details details = {.struct_size = sizeof(ninfer_codec_details)};

static int fail(const char *what, uint32_t status) {
    fprintf(stderr, "%s: %s (row %" PRIu64 ", expected %" PRIu64 ", actual %" PRIu64 ")\n", what,
            ninfer_codec_status_message(status), details.row, details.expected, details.actual);
    return 1;
}

static int read_span(FILE *file, uint64_t offset, uint8_t *to, uint64_t bytes) {
    if (bytes == 0) return 0;
    if (offset > INT64_MAX || fseek(file, (long)offset, SEEK_SET) != 0) return 1;
    return fread(to, 1, (size_t)bytes, file) != (size_t)bytes;
}

static uint64_t digest_of(uint64_t digest, const void *data, size_t bytes) {
    const uint8_t *byte = data;
    for (size_t i = 0; i < bytes; ++i) digest = (digest ^ byte[i]) * UINT64_C(0x100000001b3);
    return digest;
}

static uint32_t plan_of(uint32_t format, uint32_t layout, const uint64_t dims[2], ninfer_codec_plan *plan) {
    plan->struct_size = sizeof *plan;
    return ninfer_codec_tensor_plan(format, layout, dims, 2, plan, &details);
}

/* Reads rows [begin, begin + count) of the parent into a standalone payload, plane by plane. */
static int read_rows(FILE *file, uint64_t base, const ninfer_codec_plan *parent, const ninfer_codec_plan *part,
                     uint64_t begin, uint64_t count) {
    memset(chunk, 0, (size_t)part->payload_bytes);
    return read_span(file, base + parent->codes_offset + begin * parent->codes_row_bytes,
                     chunk + part->codes_offset, count * parent->codes_row_bytes) ||
           read_span(file, base + parent->high_offset + begin * parent->high_row_bytes,
                     chunk + part->high_offset, count * parent->high_row_bytes) ||
           read_span(file, base + parent->scales_offset + begin * parent->scales_row_bytes,
                     chunk + part->scales_offset, count * parent->scales_row_bytes) ||
           read_span(file, base + parent->divisor_offset, chunk + part->divisor_offset, parent->divisor_bytes);
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: loader FILE OFFSET FORMAT ROWS COLUMNS\n");
        return 2;
    }
    const uint64_t base = strtoull(argv[2], NULL, 10);
    const uint64_t dims[2] = {strtoull(argv[4], NULL, 10), strtoull(argv[5], NULL, 10)};

    uint32_t format = 0;
    uint32_t status = ninfer_codec_format_find(argv[3], strlen(argv[3]), &format);
    if (status != NINFER_CODEC_STATUS_OK) return fail(argv[3], status);
    ninfer_codec_format_descriptor facts = {.struct_size = sizeof facts};
    status = ninfer_codec_format_describe(format, &facts);
    if (status != NINFER_CODEC_STATUS_OK) return fail(argv[3], status);

    ninfer_codec_plan parent;
    status = plan_of(format, facts.layout, dims, &parent);
    if (status != NINFER_CODEC_STATUS_OK) return fail("plan", status);
    if (parent.columns > MAX_COLUMNS) {
        fprintf(stderr, "a row of %" PRIu64 " columns is longer than %d\n", parent.columns, MAX_COLUMNS);
        return 1;
    }

    /* As many rows as fit, in whole tiles of NVFP4. */
    uint64_t rows_per_chunk = TILE_ROWS;
    ninfer_codec_plan part;
    for (;; rows_per_chunk /= 2) {
        const uint64_t part_dims[2] = {rows_per_chunk, dims[1]};
        status = plan_of(format, facts.layout, part_dims, &part);
        if (status != NINFER_CODEC_STATUS_OK) return fail("plan of a chunk", status);
        if (part.payload_bytes <= CHUNK_BYTES) break;
    }
    printf("%s [%" PRIu64 ", %" PRIu64 "], %" PRIu64 " rows at a time\n", argv[3], dims[0], dims[1], rows_per_chunk);

    FILE *file = fopen(argv[1], "rb");
    if (file == NULL) {
        perror(argv[1]);
        return 1;
    }
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    for (uint64_t begin = 0; begin < dims[0]; begin += rows_per_chunk) {
        const uint64_t left = dims[0] - begin;
        const uint64_t part_dims[2] = {left < rows_per_chunk ? left : rows_per_chunk, dims[1]};
        status = plan_of(format, facts.layout, part_dims, &part);
        if (status != NINFER_CODEC_STATUS_OK) return fail("plan of a chunk", status);
        if (read_rows(file, base, &parent, &part, begin, part_dims[0])) {
            fprintf(stderr, "%s: cannot read rows from %" PRIu64 " on\n", argv[1], begin);
            return 1;
        }
        for (uint64_t i = 0; i < part_dims[0]; ++i) {
            status = ninfer_codec_tensor_decode(format, facts.layout, part_dims, 2, chunk, part.payload_bytes, i, 1,
                                                0, dims[1], NINFER_CODEC_VALUE_F32, row, dims[1], dims[1], &details);
            if (status != NINFER_CODEC_STATUS_OK) return fail("decode", status);
            if (begin + i == 0) printf("first values: %.9g %.9g\n", (double)row[0], (double)row[dims[1] > 1]);
            digest = digest_of(digest, row, (size_t)dims[1] * sizeof row[0]);
        }
    }
    fclose(file);
    printf("digest %016" PRIx64 "\n", digest);
    return 0;
}
