/* What all boards share: memory at reset, text and exit by semihosting, and the four functions that the
   archive asks of its host. */

#include "board.h"

#include <stddef.h>

/* Operations of the semihosting interface. */
#define SYS_WRITE0 0x04u
#define SYS_EXIT_EXTENDED 0x20u
#define STOPPED_APPLICATION_EXIT 0x20026u

extern uint32_t data_start[], data_end[], data_image[], bss_start[], bss_end[];

void board_run(void) {
    const uint32_t *image = data_image;
    for (uint32_t *word = data_start; word < data_end; ++word) *word = *image++;
    for (uint32_t *word = bss_start; word < bss_end; ++word) *word = 0;
    board_exit(main());
}

void print(const char *text) {
    (void)semihosting(SYS_WRITE0, text);
}

void print_unsigned(uint32_t value) {
    char text[11];
    char *first = &text[sizeof text - 1];
    *first = 0;
    do {
        *--first = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    print(first);
}

void print_hex(uint32_t value) {
    char text[9];
    for (int digit = 7; digit >= 0; --digit) {
        text[digit] = "0123456789abcdef"[value & 15];
        value >>= 4;
    }
    text[8] = 0;
    print(text);
}

void board_exit(int code) {
    const uint32_t reason[2] = {STOPPED_APPLICATION_EXIT, (uint32_t)code};
    for (;;) (void)semihosting(SYS_EXIT_EXTENDED, reason);
}

void *memcpy(void *restrict to, const void *restrict from, size_t bytes) {
    unsigned char *out = to;
    const unsigned char *in = from;
    while (bytes-- != 0) *out++ = *in++;
    return to;
}

void *memmove(void *to, const void *from, size_t bytes) {
    unsigned char *out = to;
    const unsigned char *in = from;
    if ((uintptr_t)out < (uintptr_t)in) return memcpy(to, from, bytes);
    while (bytes-- != 0) out[bytes] = in[bytes];
    return to;
}

void *memset(void *to, int value, size_t bytes) {
    unsigned char *out = to;
    while (bytes-- != 0) *out++ = (unsigned char)value;
    return to;
}

int memcmp(const void *left, const void *right, size_t bytes) {
    const unsigned char *a = left;
    const unsigned char *b = right;
    for (; bytes != 0; --bytes, ++a, ++b) {
        if (*a != *b) return *a < *b ? -1 : 1;
    }
    return 0;
}
