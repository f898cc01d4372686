/* How much stack a call takes: what lies below the caller is painted before the call and looked at after it. */

#ifndef STACK_H
#define STACK_H

#include <stdint.h>

/* The stack's lowest word; it grows down to here. From the linker script. */
extern uint32_t stack_low[];

#define STACK_PAINT 0xa5a5c3c3u

/* The address of the caller's frame; what is pushed for a call lies below. */
static inline uint32_t *stack_here(void) {
    return (uint32_t *)((uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)3);
}

/* Not inlined: their frames must be gone before the measured call. Painting stops short of the own frame. */
void stack_paint(void);
/* Bytes from the lowest word that was written since `stack_paint` up to the caller. */
uint32_t stack_used(void);

#endif
