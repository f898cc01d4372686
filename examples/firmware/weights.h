/* The packed matrices in flash; weights.py writes the source that fills them in. */

#ifndef WEIGHTS_H
#define WEIGHTS_H

#include <ninfer_codec.h>
#include <stdint.h>

struct weights {
    const char *name;
    uint32_t format;
    uint32_t layout;
    uint32_t rows;
    uint32_t columns;
    const uint8_t *payload;
    uint32_t payload_bytes;
    /* CRC-32 of all weights as binary32 words, little-endian, row by row. */
    uint32_t digest;
};

#define WEIGHTS_COUNT 2
extern const struct weights weights[WEIGHTS_COUNT];

#endif
