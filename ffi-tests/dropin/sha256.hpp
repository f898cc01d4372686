// SHA-256 of a byte string, as hex digits.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace engine {

class Sha256 {
  public:
    // Writes 64 digits and a zero.
    static void hex(const uint8_t* data, size_t size, char out[65]) {
        Sha256 hash;
        size_t at = 0;
        for (; size - at >= 64; at += 64) hash.block(data + at);
        uint8_t tail[128] = {};
        memcpy(tail, data + at, size - at);
        tail[size - at] = 0x80;
        const size_t blocks = size - at < 56 ? 1 : 2;
        for (int byte = 0; byte < 8; ++byte) {
            tail[blocks * 64 - 1 - byte] = static_cast<uint8_t>(uint64_t{size} * 8 >> 8 * byte);
        }
        for (size_t i = 0; i < blocks; ++i) hash.block(tail + 64 * i);
        for (int i = 0; i < 64; ++i) out[i] = "0123456789abcdef"[hash.state_[i / 8] >> (28 - i % 8 * 4) & 15];
        out[64] = 0;
    }

  private:
    static uint32_t rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

    void block(const uint8_t* data) {
        static const uint32_t constants[64] = {
            0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
            0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
            0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
            0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
            0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
            0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
            0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
            0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
        };
        uint32_t w[64];
        for (int i = 0; i < 16; ++i) {
            w[i] = uint32_t{data[4 * i]} << 24 | uint32_t{data[4 * i + 1]} << 16 | uint32_t{data[4 * i + 2]} << 8 |
                   data[4 * i + 3];
        }
        for (int i = 16; i < 64; ++i) {
            const uint32_t a = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
            const uint32_t b = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
            w[i] = w[i - 16] + a + w[i - 7] + b;
        }
        uint32_t s[8];
        memcpy(s, state_, sizeof s);
        for (int i = 0; i < 64; ++i) {
            const uint32_t e = rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25);
            const uint32_t t1 = s[7] + e + ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants[i] + w[i];
            const uint32_t a = rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22);
            const uint32_t t2 = a + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
            memmove(s + 1, s, 7 * sizeof s[0]);
            s[4] += t1;
            s[0] = t1 + t2;
        }
        for (int i = 0; i < 8; ++i) state_[i] += s[i];
    }

    uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                          0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
};

}  // namespace engine
