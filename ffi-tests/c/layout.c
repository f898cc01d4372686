/* Prints the size of every struct of the header, and the offset and size of its members: `STRUCT MEMBER AT SIZE`. */
#include <ninfer_codec.h>

#include <stddef.h>
#include <stdio.h>

#define SIZE(type) printf("%s - 0 %zu\n", #type, sizeof(type))
#define MEMBER(type, member) \
    printf("%s %s %zu %zu\n", #type, #member, offsetof(type, member), sizeof(((type *)0)->member))

int main(void) {
#include "members.inc"
    return 0;
}
