/* Decodes the packed matrices in flash through a buffer of 1 kB, and compares a digest of all weights. */

#include <ninfer_codec.h>
#include <stddef.h>

#include "board.h"
#include "digest.h"
#include "stack.h"
#include "weights.h"

/* 256 values of binary32: the only memory for values there is. */
#define BUFFER_VALUES 256u
static float buffer[BUFFER_VALUES];

/* The most stack that a call of each kind took, in bytes. */
static uint32_t validate_stack;
static uint32_t decode_stack;

static void note(uint32_t *most, uint32_t used) {
    if (used > *most) *most = used;
}

static uint32_t validate(const struct weights *w, const uint64_t dims[2]) {
    stack_paint();
    uint32_t status = ninfer_codec_tensor_validate(w->format, w->layout, dims, 2, w->payload, w->payload_bytes,
                                                   0, w->rows, 0, w->columns, NULL);
    note(&validate_stack, stack_used());
    return status;
}

static uint32_t decode(const struct weights *w, const uint64_t dims[2], uint64_t row, uint64_t column,
                       uint64_t count) {
    stack_paint();
    uint32_t status = ninfer_codec_tensor_decode(w->format, w->layout, dims, 2, w->payload, w->payload_bytes, row,
                                                 1, column, count, NINFER_CODEC_VALUE_F32, buffer, BUFFER_VALUES,
                                                 count, NULL);
    note(&decode_stack, stack_used());
    return status;
}

/* Decodes a whole matrix, a piece of a row at a time, and returns whether all weights are the expected ones. */
static int check(const struct weights *w) {
    const uint64_t dims[2] = {w->rows, w->columns};
    print(w->name);
    print(", ");
    print_unsigned(w->rows);
    print(" x ");
    print_unsigned(w->columns);

    uint32_t status = validate(w, dims);
    uint32_t digest = DIGEST_START;
    for (uint32_t row = 0; status == NINFER_CODEC_STATUS_OK && row < w->rows; ++row) {
        for (uint32_t column = 0; status == NINFER_CODEC_STATUS_OK && column < w->columns;
             column += BUFFER_VALUES) {
            uint32_t left = w->columns - column;
            uint32_t count = left < BUFFER_VALUES ? left : BUFFER_VALUES;
            status = decode(w, dims, row, column, count);
            digest = digest_add(digest, buffer, count * sizeof buffer[0]);
        }
    }
    if (status != NINFER_CODEC_STATUS_OK) {
        print(": ");
        print(ninfer_codec_status_message(status));
        print("\n");
        return 0;
    }
    digest = digest_end(digest);
    print(": ");
    print_unsigned(w->rows * w->columns);
    print(" weights, crc32 ");
    print_hex(digest);
    print(", expected ");
    print_hex(w->digest);
    print("\n");
    return digest == w->digest;
}

int main(void) {
    uint32_t passed = 0;
    uint32_t failed = 0;
    for (uint32_t i = 0; i < WEIGHTS_COUNT; ++i) {
        if (check(&weights[i])) {
            ++passed;
        } else {
            ++failed;
        }
    }
    print("stack: validate ");
    print_unsigned(validate_stack);
    print(" bytes, decode ");
    print_unsigned(decode_stack);
    print(" bytes\n");
    print_unsigned(passed);
    print(" passed, ");
    print_unsigned(failed);
    print(" failed\n");
    return failed == 0 && passed == WEIGHTS_COUNT ? 0 : 1;
}
