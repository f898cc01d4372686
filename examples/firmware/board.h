/* What a board gives: text out and an exit, both by semihosting. */

#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

void print(const char *text);
void print_unsigned(uint32_t value);
void print_hex(uint32_t value);

/* Ends the run; code 0 is success. */
_Noreturn void board_exit(int code);

/* The one instruction that reaches the debugger; in the board's start-up file. */
uint32_t semihosting(uint32_t operation, const void *argument);

/* Readies memory and runs main; the start-up file comes here with a stack and nothing else. */
_Noreturn void board_run(void);

int main(void);

#endif
