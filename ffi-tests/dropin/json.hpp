// Reads the JSON of the vectors: integers of 64 bits, strings without escapes, null, true, false.
#pragma once

#include "arena.hpp"

#include <string.h>

namespace engine {

struct Text {
    const char* data;
    size_t size;
    bool is(const char* other) const { return strlen(other) == size && memcmp(data, other, size) == 0; }
};

struct Json {
    enum Kind { null, boolean, integer, string, list, object };
    Kind kind = null;
    // An integer's two's complement; whether a boolean is true.
    uint64_t word = 0;
    Text text{nullptr, 0};
    // A list's or object's first entry, and the next entry of the list or object that this one is in.
    Json* first = nullptr;
    Json* next = nullptr;
    size_t count = 0;
    // The member's name, in an object.
    Text name{nullptr, 0};

    // The member of an object; a null that is empty where there is none.
    const Json& operator[](const char* member) const {
        static const Json none;
        for (const Json* entry = first; entry != nullptr; entry = entry->next) {
            if (entry->name.is(member)) return *entry;
        }
        return none;
    }
    explicit operator bool() const { return kind != null; }
};

class Reader {
  public:
    Reader(Arena& arena, const char* text) : arena_(arena), at_(text) {}

    Json* value() {
        Json* out = arena_.take<Json>(1);
        *out = Json{};
        switch (peek()) {
            case '{':
                out->kind = Json::object;
                entries(out, '}');
                break;
            case '[':
                out->kind = Json::list;
                entries(out, ']');
                break;
            case '"':
                out->kind = Json::string;
                out->text = text();
                break;
            case 't':
                out->kind = Json::boolean;
                out->word = 1;
                at_ += 4;
                break;
            case 'f':
                out->kind = Json::boolean;
                at_ += 5;
                break;
            case 'n':
                at_ += 4;
                break;
            default:
                out->kind = Json::integer;
                out->word = number();
        }
        return out;
    }

  private:
    char peek() {
        while (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t') ++at_;
        return *at_;
    }
    void expect(char wanted) {
        if (peek() != wanted) die("not the JSON of vectors");
        ++at_;
    }
    bool accept(char wanted) {
        if (peek() != wanted) return false;
        ++at_;
        return true;
    }
    Text text() {
        expect('"');
        const char* begin = at_;
        while (*at_ != '"') {
            if (*at_ == 0) die("a string without an end");
            // Only notes have escapes; their text is not used.
            at_ += *at_ == '\\' ? 2 : 1;
        }
        return {begin, static_cast<size_t>(at_++ - begin)};
    }
    uint64_t number() {
        const bool negative = accept('-');
        if (*at_ < '0' || *at_ > '9') die("not an integer");
        uint64_t word = 0;
        while (*at_ >= '0' && *at_ <= '9') word = word * 10 + static_cast<uint64_t>(*at_++ - '0');
        return negative ? 0 - word : word;
    }
    void entries(Json* out, char end) {
        const bool named = end == '}';
        ++at_;
        Json** link = &out->first;
        if (accept(end)) return;
        do {
            Text name{nullptr, 0};
            if (named) {
                name = text();
                expect(':');
            }
            Json* entry = value();
            entry->name = name;
            *link = entry;
            link = &entry->next;
            ++out->count;
        } while (accept(','));
        expect(end);
    }
    Arena& arena_;
    const char* at_;
};

}  // namespace engine
