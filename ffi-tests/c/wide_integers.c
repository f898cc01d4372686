/* A program whose compiler calls its own runtime, for 128-bit integers, linked with the static archive. */
#include <stdlib.h>

#include "ninfer_codec.h"

int main(int argc, char **argv) {
    (void)argv;
    unsigned __int128 wide = ((unsigned __int128)argc << 100) + 7;
    unsigned __int128 divisor = (unsigned __int128)argc + ninfer_codec_abi_version();
    __int128 negative = -(__int128)wide;
    int divides = wide / divisor * divisor + wide % divisor == wide;
    int converts = (double)wide == 0x1p100 * argc && negative / argc < 0;
    return divides && converts ? EXIT_SUCCESS : EXIT_FAILURE;
}
