/* Start-up for Cortex-M0, M3 and M4: the vector table, and semihosting by a breakpoint. */

#include "../board.h"

extern uint32_t stack_top[];

uint32_t semihosting(uint32_t operation, const void *argument) {
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static _Noreturn void reset(void) {
    board_run();
}

static _Noreturn void fault(void) {
    print("fault\n");
    board_exit(2);
}

/* The initial stack pointer, then the handlers of reset, NMI and the faults. */
struct vectors {
    void *stack;
    void (*handlers[15])(void);
};
extern const struct vectors vectors;
__attribute__((section(".vectors"), used)) const struct vectors vectors = {
    stack_top,
    {reset, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault},
};
