// A program built as inference engines are: an allocator of its own, no exceptions, no run-time types, fast maths,
// link-time optimisation, linked statically. It runs the vectors of payloads: engine FOLDER.
//
// It runs with subnormals flushed to zero, as fast maths has it: the codec's bytes must not change.

#include "arena.hpp"
#include "codec.hpp"
#include "json.hpp"
#include "sha256.hpp"

#include <ninfer_codec.h>
#include <xmmintrin.h>

namespace engine {
namespace {

unsigned passed = 0;
unsigned failed = 0;

void check(const Json& entry, const char* what, bool holds) {
    if (holds) {
        ++passed;
        return;
    }
    ++failed;
    printf("FAIL %.*s %s\n", static_cast<int>(entry["id"].text.size), entry["id"].text.data, what);
}

bool same(Bytes got, Bytes expected) {
    return got.size == expected.size && memcmp(got.data, expected.data, got.size) == 0;
}

bool same_hash(Bytes got, const Json& expected) {
    char digits[65];
    Sha256::hex(got.data, got.size, digits);
    return expected.text.is(digits);
}

// A status and the vectors' word for it.
struct Kind {
    const char* name;
    uint32_t status;
};
const Kind kinds[] = {
    {"unsupported_pair", NINFER_CODEC_STATUS_UNSUPPORTED_PAIR},
    {"wrong_rank", NINFER_CODEC_STATUS_WRONG_RANK},
    {"zero_dimension", NINFER_CODEC_STATUS_ZERO_DIMENSION},
    {"not_multiple", NINFER_CODEC_STATUS_NOT_MULTIPLE},
    {"overflow", NINFER_CODEC_STATUS_OVERFLOW},
    {"payload_length", NINFER_CODEC_STATUS_PAYLOAD_LENGTH},
    {"gap_not_zero", NINFER_CODEC_STATUS_GAP_NOT_ZERO},
    {"padding_scale_not_zero", NINFER_CODEC_STATUS_PADDING_SCALE_NOT_ZERO},
    {"padding_code_not_zero", NINFER_CODEC_STATUS_PADDING_CODE_NOT_ZERO},
    {"invalid_scale", NINFER_CODEC_STATUS_INVALID_SCALE},
    {"invalid_divisor", NINFER_CODEC_STATUS_INVALID_DIVISOR},
    {"invalid_code", NINFER_CODEC_STATUS_INVALID_CODE},
    {"zero_scale_nonzero_code", NINFER_CODEC_STATUS_ZERO_SCALE_NONZERO_CODE},
    {"non_finite_source", NINFER_CODEC_STATUS_NON_FINITE_SOURCE},
    {"source_not_representable", NINFER_CODEC_STATUS_SOURCE_NOT_REPRESENTABLE},
    {"scale_overflow", NINFER_CODEC_STATUS_SCALE_OVERFLOW},
    {"empty_rows", NINFER_CODEC_STATUS_EMPTY_ROWS},
    {"row_out_of_range", NINFER_CODEC_STATUS_ROW_OUT_OF_RANGE},
};

ninfer_codec_details fresh_details() {
    ninfer_codec_details details{};
    details.struct_size = sizeof details;
    return details;
}

void check_error(const Json& entry, const ninfer_codec_details& got) {
    const Json& error = entry["error"];
    uint32_t expected = UINT32_MAX;
    for (const Kind& kind : kinds) {
        if (error["kind"].text.is(kind.name)) expected = kind.status;
    }
    // An end past 2^64 may be either.
    const bool either = expected == NINFER_CODEC_STATUS_ROW_OUT_OF_RANGE && got.status == NINFER_CODEC_STATUS_OVERFLOW;
    check(entry, "error.kind", got.status == expected || either);
    const struct {
        const char* name;
        uint64_t number;
    } coordinates[] = {{"row", got.row}, {"group", got.group}, {"col", got.column}, {"offset", got.offset}};
    for (const auto& coordinate : coordinates) {
        // A number that the status does not have is information in the vectors.
        if (!error[coordinate.name] || coordinate.number == UINT64_MAX) continue;
        check(entry, coordinate.name, error[coordinate.name].word == coordinate.number);
    }
}

void check_invalid(Arena& arena, const Json& entry, Text format, const Json& shape, Bytes payload) {
    const Tensor tensor = Tensor::of(arena, format, shape);
    ninfer_codec_details details = fresh_details();
    tensor.validate(payload, &details);
    check_error(entry, details);
}

Text text_of(const char* text) { return {text, strlen(text)}; }

void canonical_encode(Arena& arena, const Json& entry) {
    const Tensor tensor = Tensor::of(arena, entry["format"].text, entry["shape"]);
    const Json& dtype = entry["dtype"];
    const uint32_t type = dtype.text.is("f32")    ? NINFER_CODEC_VALUE_F32
                          : dtype.text.is("bf16") ? NINFER_CODEC_VALUE_BF16
                          : dtype.text.is("f16")  ? NINFER_CODEC_VALUE_F16
                                                  : NINFER_CODEC_VALUE_F64;
    const Bytes source = from_hex(arena, entry["source"]);
    const uint64_t bytes = tensor.payload_bytes();
    uint8_t* out = arena.take<uint8_t>(bytes);
    memset(out, 0xa5, bytes);
    ninfer_codec_details details = fresh_details();
    const uint32_t status =
        ninfer_codec_tensor_quantize(tensor.format, tensor.layout, tensor.dims, tensor.rank, 0, tensor.rows(), type,
                                     source.data, tensor.elements(), tensor.columns(), out, bytes, &details);
    if (entry["error"]) return check_error(entry, details);
    check(entry, "status", status == NINFER_CODEC_STATUS_OK);
    check(entry, "payload", same({out, bytes}, from_hex(arena, entry["payload"])));
}

void valid_words(Arena& arena, const Json& entry, Text format) {
    const Tensor tensor = Tensor::of(arena, format, entry["shape"]);
    const Bytes payload = from_hex(arena, entry["payload"]);
    const Json& codes = entry["codes"];
    const uint16_t* scales = words_of<uint16_t>(arena, entry["scales"]);
    uint32_t status = 0;
    const void* words = codes.kind == Json::list ? static_cast<void*>(words_of<int8_t>(arena, codes))
                                                 : static_cast<void*>(from_hex(arena, codes).data);
    const Bytes packed = tensor.pack(arena, words, tensor.elements(), scales, entry["scales"].count, 0, status);
    check(entry, "pack", status == NINFER_CODEC_STATUS_OK && same(packed, payload));
    check(entry, "validate", tensor.validate(payload, nullptr) == NINFER_CODEC_STATUS_OK);
    const Bytes values = tensor.decode(arena, payload, NINFER_CODEC_VALUE_F32, 4, status);
    check(entry, "f32", status == NINFER_CODEC_STATUS_OK && same(values, from_hex(arena, entry["f32"])));
}

void grouped_valid(Arena& arena, const Json& entry) { valid_words(arena, entry, entry["format"].text); }

void with_payload(Arena& arena, const Json& entry) {
    check_invalid(arena, entry, entry["format"].text, entry["shape"], from_hex(arena, entry["payload"]));
}

const char fp8[] = "FP8_E4M3FN_ROW_BF16S";

void fp8_valid(Arena& arena, const Json& entry) { valid_words(arena, entry, text_of(fp8)); }

void fp8_invalid(Arena& arena, const Json& entry) {
    check_invalid(arena, entry, text_of(fp8), entry["shape"], from_hex(arena, entry["payload"]));
}

void nvfp4_valid(Arena& arena, const Json& entry) {
    const Tensor tensor = Tensor::of(arena, text_of("NVFP4"), entry["shape"]);
    const Bytes codes = from_hex(arena, entry["codes"]);
    const Bytes scales = from_hex(arena, entry["scales"]);
    const uint32_t divisor = static_cast<uint32_t>(word_of(entry["divisor"].text));
    uint32_t status = 0;
    const Bytes payload = tensor.pack(arena, codes.data, codes.size, scales.data, scales.size, divisor, status);
    check(entry, "pack", status == NINFER_CODEC_STATUS_OK && same_hash(payload, entry["payload_sha256"]));
    check(entry, "validate", tensor.validate(payload, nullptr) == NINFER_CODEC_STATUS_OK);
    const Bytes narrow = tensor.decode(arena, payload, NINFER_CODEC_VALUE_F32, 4, status);
    check(entry, "f32", status == NINFER_CODEC_STATUS_OK && same_hash(narrow, entry["f32_sha256"]));
    const Bytes wide = tensor.decode(arena, payload, NINFER_CODEC_VALUE_F64, 8, status);
    check(entry, "f64", status == NINFER_CODEC_STATUS_OK && same_hash(wide, entry["f64_sha256"]));
}

void direct_valid(Arena& arena, const Json& entry) {
    const Tensor tensor = Tensor::of(arena, entry["format"].text, entry["shape"]);
    const Bytes payload = from_hex(arena, entry["payload"]);
    const Json& list = entry["words"];
    const void* words = tensor.format == NINFER_CODEC_FORMAT_BF16
                            ? static_cast<void*>(words_of<uint16_t>(arena, list))
                            : static_cast<void*>(words_of<uint32_t>(arena, list));
    uint32_t status = 0;
    const Bytes packed = tensor.pack(arena, words, list.count, nullptr, 0, 0, status);
    check(entry, "pack", status == NINFER_CODEC_STATUS_OK && same(packed, payload));
    check(entry, "validate", tensor.validate(payload, nullptr) == NINFER_CODEC_STATUS_OK);
    if (tensor.format == NINFER_CODEC_FORMAT_FP32) {
        const Bytes values = tensor.decode(arena, payload, NINFER_CODEC_VALUE_F32, 4, status);
        check(entry, "f32", status == NINFER_CODEC_STATUS_OK && same(values, payload));
    }
}

// What some cases of a file refer to: its parents, or its valid cases.
const Json* references = nullptr;

const Json& referred(const Json& id) {
    for (const Json* entry = references->first; entry != nullptr; entry = entry->next) {
        const Text& other = (*entry)["id"].text;
        if (other.size == id.text.size && memcmp(other.data, id.text.data, other.size) == 0) return *entry;
    }
    die("a case refers to nothing");
}

void nvfp4_invalid(Arena& arena, const Json& entry) {
    const Json& base = referred(entry["base"]);
    const Bytes from = from_hex(arena, base["payload"]);
    const size_t size = entry["resize_to"] ? entry["resize_to"].word : from.size;
    uint8_t* payload = arena.take<uint8_t>(size > from.size ? size : from.size);
    memset(payload, 0, size);
    memcpy(payload, from.data, from.size);
    for (const Json* patch = entry["patches"].first; patch != nullptr; patch = patch->next) {
        const Bytes bytes = from_hex(arena, (*patch)["hex"]);
        memcpy(payload + (*patch)["offset"].word, bytes.data, bytes.size);
    }
    check_invalid(arena, entry, text_of("NVFP4"), base["shape"], {payload, size});
}

void rows(Arena& arena, const Json& entry) {
    if (entry["op"].text.is("view")) return;  // spans, not payloads
    const Json& parent = referred(entry["parent"]);
    const Tensor tensor = Tensor::of(arena, parent["format"].text, parent["shape"]);
    const Bytes payload = from_hex(arena, parent["payload"]);
    const Bytes expected = from_hex(arena, entry["payload"]);
    uint8_t* out = arena.take<uint8_t>(expected.size);
    memset(out, 0xa5, expected.size);
    ninfer_codec_details details = fresh_details();
    if (entry["op"].text.is("slice")) {
        ninfer_codec_tensor_slice(tensor.format, tensor.layout, tensor.dims, tensor.rank, payload.data, payload.size,
                                  entry["begin"].word, entry["count"].word, out, expected.size, &details);
    } else {
        const uint64_t* list = words_of<uint64_t>(arena, entry["rows"]);
        ninfer_codec_tensor_gather(tensor.format, tensor.layout, tensor.dims, tensor.rank, payload.data, payload.size,
                                   list, entry["rows"].count, out, expected.size, &details);
    }
    if (entry["error"]) return check_error(entry, details);
    check(entry, "status", details.status == NINFER_CODEC_STATUS_OK);
    check(entry, "payload", same({out, expected.size}, expected));
}

struct Section {
    const char* topic;
    const char* member;
    const char* refers_to;
    void (*run)(Arena&, const Json&);
};
const Section sections[] = {
    {"canonical_encode", "cases", "cases", canonical_encode},
    {"grouped_decode", "valid", "valid", grouped_valid},
    {"grouped_decode", "invalid", "valid", with_payload},
    {"fp8_row", "valid", "valid", fp8_valid},
    {"fp8_row", "invalid", "valid", fp8_invalid},
    {"nvfp4", "valid", "valid", nvfp4_valid},
    {"nvfp4", "invalid", "valid", nvfp4_invalid},
    {"direct", "valid", "valid", direct_valid},
    {"direct", "invalid", "valid", with_payload},
    {"rows", "cases", "parents", rows},
};

const char* read_file(Arena& arena, const char* folder, const char* topic) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.json", folder, topic);
    FILE* file = fopen(path, "rb");
    if (file == nullptr || fseek(file, 0, SEEK_END) != 0) die(path);
    const size_t size = static_cast<size_t>(ftell(file));
    rewind(file);
    char* text = arena.take<char>(size + 1);
    if (fread(text, 1, size, file) != size) die(path);
    fclose(file);
    text[size] = 0;
    return text;
}

}  // namespace
}  // namespace engine

int main(int argc, char** argv) {
    using namespace engine;
    if (argc != 2) die("usage: engine FOLDER");
    // Subnormal results and operands are zero: fast maths asks for it, and where the C library's start-up code
    // does not do it (musl), the engine does.
    _mm_setcsr(_mm_getcsr() | 0x8040);
    const unsigned flush = _mm_getcsr() & 0x8040;
    printf("flush-to-zero and denormals-are-zero: %s; backend: %s\n", flush == 0x8040 ? "on" : "off",
           ninfer_codec_backend_name());
    if (flush != 0x8040) ++failed;
    Arena arena(size_t{1} << 30);
    for (const Section& section : sections) {
        const size_t file_mark = arena.mark();
        const Json* file = Reader(arena, read_file(arena, argv[1], section.topic)).value();
        references = &(*file)[section.refers_to];
        for (const Json* entry = (*file)[section.member].first; entry != nullptr; entry = entry->next) {
            const size_t mark = arena.mark();
            section.run(arena, *entry);
            arena.release(mark);
        }
        arena.release(file_mark);
    }
    // The mode is still the engine's own after all calls.
    if ((_mm_getcsr() & 0x8040) != flush) ++failed;
    printf("%u passed, %u failed\n", passed, failed);
    return failed == 0 && passed > 0 ? 0 : 1;
}
