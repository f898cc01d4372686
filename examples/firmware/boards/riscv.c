/* Start-up for riscv32: the first instructions, a trap handler, and semihosting by its three-instruction mark. */

#include "../board.h"

uint32_t semihosting(uint32_t operation, const void *argument) {
    register uint32_t a0 __asm__("a0") = operation;
    register const void *a1 __asm__("a1") = argument;
    __asm__ volatile(
        ".option push\n"
        ".option norvc\n"
        ".balign 16\n"
        "slli x0, x0, 0x1f\n"
        "ebreak\n"
        "srai x0, x0, 7\n"
        ".option pop\n"
        : "+r"(a0)
        : "r"(a1)
        : "memory");
    return a0;
}

__attribute__((used)) static _Noreturn void start_c(void) {
    board_run();
}

__attribute__((used, aligned(4))) static _Noreturn void fault(void) {
    print("fault\n");
    board_exit(2);
}

__attribute__((naked, used, section(".vectors"))) void start(void) {
    __asm__ volatile(
        ".option push\n"
        ".option norelax\n"
        "la gp, __global_pointer$\n"
        ".option pop\n"
        "la sp, stack_top\n"
        "la t0, fault\n"
        "csrw mtvec, t0\n"
        "j start_c\n");
}
