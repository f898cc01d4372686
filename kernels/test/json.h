// A reader for the golden vectors: JSON of objects, arrays, strings without escapes, unsigned and negative integers.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "reference.h"

namespace json {

struct Value {
    enum Kind { null, boolean, integer, string, array, object } kind = null;
    bool negative = false;
    uint64_t magnitude = 0;  // integers; booleans 0, 1
    std::string text;
    std::vector<Value> items;
    std::map<std::string, Value> members;

    bool has(const std::string& name) const { return members.count(name) != 0; }
    const Value& operator[](const std::string& name) const {
        const auto it = members.find(name);
        if (it == members.end()) {
            std::fprintf(stderr, "vectors: no member %s\n", name.c_str());
            std::exit(2);
        }
        return it->second;
    }
    uint64_t word() const { return std::strtoull(text.c_str(), nullptr, 16); }
    reference::Bytes bytes() const {
        reference::Bytes r;
        for (size_t i = 0; i + 1 < text.size(); i += 2) {
            r.push_back(uint8_t(std::strtoul(text.substr(i, 2).c_str(), nullptr, 16)));
        }
        return r;
    }
};

class Reader {
  public:
    explicit Reader(const std::string& text) : p_(text.c_str()) {}
    Value value() {
        space();
        Value v;
        if (*p_ == '{') {
            v.kind = Value::object;
            for (++p_; !closes('}');) {
                const std::string name = quoted();
                expect(':');
                v.members[name] = value();
            }
        } else if (*p_ == '[') {
            v.kind = Value::array;
            for (++p_; !closes(']');) v.items.push_back(value());
        } else if (*p_ == '"') {
            v.kind = Value::string;
            v.text = quoted();
        } else if (*p_ == '-' || (*p_ >= '0' && *p_ <= '9')) {
            v.kind = Value::integer;
            v.negative = *p_ == '-';
            char* end = nullptr;
            v.magnitude = std::strtoull(p_ + v.negative, &end, 10);
            p_ = end;
        } else {
            v.kind = *p_ == 'n' ? Value::null : Value::boolean;
            v.magnitude = *p_ == 't';
            while (*p_ >= 'a' && *p_ <= 'z') ++p_;
        }
        space();
        if (*p_ == ',') ++p_;
        return v;
    }

  private:
    void space() {
        while (*p_ == ' ' || *p_ == '\n' || *p_ == '\r' || *p_ == '\t') ++p_;
    }
    void expect(char c) {
        space();
        if (*p_ != c) {
            std::fprintf(stderr, "vectors: expected %c before %.20s\n", c, p_);
            std::exit(2);
        }
        ++p_;
    }
    bool closes(char c) {
        space();
        if (*p_ != c) return false;
        ++p_;
        return true;
    }
    std::string quoted() {
        expect('"');
        std::string r;
        while (*p_ && *p_ != '"') {
            if (*p_ == '\\') ++p_;  // notes only
            r.push_back(*p_++);
        }
        expect('"');
        return r;
    }
    const char* p_;
};

inline Value read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) {
        std::fprintf(stderr, "cannot read %s\n", path.c_str());
        std::exit(2);
    }
    std::ostringstream text;
    text << in.rdbuf();
    return Reader(text.str()).value();
}

}  // namespace json
