// The engine's only allocator: one block from the system, handed out front to back, taken back all at once.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

namespace engine {

[[noreturn]] inline void die(const char* what) {
    fprintf(stderr, "dropin: %s\n", what);
    exit(2);
}

class Arena {
  public:
    explicit Arena(size_t bytes) : size_(bytes) {
        void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (block == MAP_FAILED) die("no memory");
        block_ = static_cast<uint8_t*>(block);
    }
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    template <class T>
    T* take(size_t count) {
        static_assert(alignof(T) <= 64, "blocks begin at multiples of 64");
        used_ = (used_ + 63) & ~size_t{63};
        if (count > (size_ - used_) / sizeof(T)) die("the arena is full");
        T* out = reinterpret_cast<T*>(block_ + used_);
        used_ += count * sizeof(T);
        return out;
    }

    size_t mark() const { return used_; }
    void release(size_t mark) { used_ = mark; }

  private:
    uint8_t* block_;
    size_t size_;
    size_t used_ = 0;
};

}  // namespace engine
