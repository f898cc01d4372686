#include "stack.h"

/* More than these functions' own frames take. */
#define OWN_FRAME_WORDS 16

__attribute__((noinline)) void stack_paint(void) {
    volatile uint32_t *end = stack_here() - OWN_FRAME_WORDS;
    for (volatile uint32_t *word = stack_low; word < end; ++word) *word = STACK_PAINT;
}

__attribute__((noinline)) uint32_t stack_used(void) {
    volatile uint32_t *here = stack_here();
    volatile uint32_t *word = stack_low;
    while (word < here && *word == STACK_PAINT) ++word;
    return (uint32_t)((uintptr_t)here - (uintptr_t)word);
}
