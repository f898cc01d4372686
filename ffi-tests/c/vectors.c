/*
 * Runs golden vectors through the C interface. The vectors come on standard input as a script, which the driver
 * makes of the JSON files; a line is an operation, its inputs and what must come of it:
 *
 *   file NAME                     the lines that follow belong to this file
 *   case ID                       ... and to this case
 *   OP TOKEN...                   one of the operations in the table at the end
 *
 * A token is a number, `xHEX` for bytes in memory order (native words, on a little-endian machine), `-` for what
 * is not looked at, or a name. Prints a line a file: `NAME CASES CHECKS FAILURES`, and a line a failure.
 */
#include <ninfer_codec.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sha256.h"

#define GUARD 64

typedef struct {
    uint8_t *data;
    uint64_t len;
    uint8_t *block; /* what was allocated */
} bytes;

typedef struct {
    uint32_t format, layout;
    uint64_t dims[17], rank, rows, columns, payload_bytes, row_codes, groups, column_step;
} tensor;

static char file_name[128], case_id[256], *cursor;
static unsigned long cases, checks, checks_before, failures, total_failures;
static ninfer_codec_details details;

/* Memory that lives until the case ends. */
static void *owned[4096];
static size_t owned_count;

static void die(const char *why) {
    fprintf(stderr, "vectors: %s (in %s %s)\n", why, file_name, case_id);
    exit(2);
}

static uint8_t *allocate(size_t size) {
    uint8_t *block = malloc(size > 0 ? size : 1);
    if (block == NULL || owned_count == sizeof owned / sizeof owned[0]) die("out of memory");
    owned[owned_count++] = block;
    return block;
}

static void release(void) {
    while (owned_count > 0) free(owned[--owned_count]);
}

static void check(int holds, const char *what) {
    checks++;
    if (holds) return;
    failures++;
    total_failures++;
    printf("FAIL %s %s %s\n", file_name, case_id, what);
}

/* Inputs have exactly their size, so that a checker of memory sees a read past it; `odd` puts one at an odd
 * address. */
static bytes input(size_t len, int odd) {
    uint8_t *block = allocate(len + (size_t)odd);
    bytes out = {block + odd, len, block};
    return out;
}

/* Outputs are dirty and have guards, which `intact` looks at. */
static bytes output(uint64_t len, int odd) {
    uint8_t *block = allocate((size_t)len + 2 * GUARD + (size_t)odd);
    bytes out = {block + GUARD + odd, len, block};
    memset(block, 0xa5, (size_t)len + 2 * GUARD + (size_t)odd);
    return out;
}

static void intact(bytes out, const char *what) {
    int good = 1;
    for (const uint8_t *p = out.block; p < out.data; p++) good &= *p == 0xa5;
    for (size_t i = 0; i < GUARD; i++) good &= out.data[out.len + i] == 0xa5;
    check(good, what);
}

static void equal(bytes got, bytes expected, const char *what) {
    intact(got, "guard bytes");
    check(got.len == expected.len && (got.len == 0 || memcmp(got.data, expected.data, (size_t)got.len) == 0), what);
}

/* Tokens. */
static char *token(void) {
    char *begin = cursor + strspn(cursor, " \n");
    if (*begin == '\0') die("a line ends early");
    cursor = begin + strcspn(begin, " \n");
    if (*cursor != '\0') *cursor++ = '\0';
    return begin;
}

static uint64_t number(void) {
    char *text = token(), *end;
    uint64_t value = strtoull(text, &end, 10);
    if (*end != '\0' || *text == '-') die("not a number");
    return value;
}

static int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    die("not a hex digit");
    return 0;
}

static bytes hex_at(int odd) {
    const char *text = token();
    if (*text++ != 'x') die("not bytes");
    bytes out = input(strlen(text) / 2, odd);
    for (uint64_t i = 0; i < out.len; i++) out.data[i] = (uint8_t)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
    return out;
}

static bytes hex(void) { return hex_at(0); }
static bytes hex_payload(void) { return hex_at(1); }

static void fresh(void) {
    memset(&details, 0x5a, sizeof details);
    details.struct_size = sizeof details;
}

static void succeeded(uint32_t status, const char *what) {
    check(status == NINFER_CODEC_STATUS_OK, what);
    check(details.status == status, "details.status");
}

/* A registered tensor, planned. */
static tensor tensor_of(void) {
    tensor t;
    memset(&t, 0, sizeof t);
    t.format = (uint32_t)number();
    t.rank = number();
    if (t.rank > 16) die("a tensor of this rank");
    for (uint64_t i = 0; i < t.rank; i++) t.dims[i] = number();
    ninfer_codec_format_descriptor facts;
    facts.struct_size = sizeof facts;
    if (ninfer_codec_format_describe(t.format, &facts) != NINFER_CODEC_STATUS_OK) die("an unknown format");
    t.layout = facts.layout;
    t.column_step = facts.column_step;
    ninfer_codec_plan plan;
    plan.struct_size = sizeof plan;
    fresh();
    succeeded(ninfer_codec_tensor_plan(t.format, t.layout, t.dims, t.rank, &plan, &details), "plan");
    t.rows = plan.rows;
    t.columns = plan.columns;
    t.payload_bytes = plan.payload_bytes;
    t.row_codes = plan.code_words_per_row;
    t.groups = plan.logical_groups;
    return t;
}

static uint64_t code_bytes(const tensor *t) {
    switch (t->format) {
    case NINFER_CODEC_FORMAT_BF16: return 2;
    case NINFER_CODEC_FORMAT_FP32:
    case NINFER_CODEC_FORMAT_I32: return 4;
    default: return 1;
    }
}

static uint64_t scale_bytes(const tensor *t) { return t->format == NINFER_CODEC_FORMAT_NVFP4 ? 1 : 2; }

static uint64_t value_bytes(uint32_t type) {
    switch (type) {
    case NINFER_CODEC_VALUE_F64: return 8;
    case NINFER_CODEC_VALUE_F32: return 4;
    default: return 2;
    }
}

/* registry */

static void op_find(void) {
    const char *registry = token();
    bytes name = hex();
    const char *expected = token();
    uint32_t id = 0xdeadbeefu, status = 0;
    const char *text = (const char *)name.data, *got = NULL;
    if (strcmp(registry, "format") == 0) {
        status = ninfer_codec_format_find(text, name.len, &id);
        got = ninfer_codec_format_name(id);
    } else if (strcmp(registry, "layout") == 0) {
        status = ninfer_codec_layout_find(text, name.len, &id);
        got = ninfer_codec_layout_name(id);
    } else if (strcmp(registry, "profile") == 0) {
        status = ninfer_codec_profile_find(text, name.len, &id);
        got = ninfer_codec_profile_name(id);
    } else if (strcmp(registry, "encoding") == 0) {
        status = ninfer_codec_encoding_find(text, name.len, &id);
        got = ninfer_codec_encoding_name(id);
    } else {
        die("no such registry");
    }
    if (strcmp(expected, "-") == 0) {
        check(status == NINFER_CODEC_STATUS_UNKNOWN_NAME, "a name that is refused");
        check(id == 0xdeadbeefu, "the id is left alone");
    } else {
        check(status == NINFER_CODEC_STATUS_OK, "a name that is known");
        check(got != NULL && strcmp(got, expected) == 0, "the name of the id");
    }
}

static void op_format(void) {
    ninfer_codec_format_descriptor d;
    memset(&d, 0x5a, sizeof d);
    d.struct_size = sizeof d;
    check(ninfer_codec_format_describe((uint32_t)number(), &d) == NINFER_CODEC_STATUS_OK, "describe");
    check(d.layout == number(), "layout");
    check(d.category == number(), "category");
    check(d.profile == number(), "profile");
    check(d.code_bits == number(), "code_bits");
    check(d.group == number(), "group");
    check((uint32_t)d.code_min == (uint32_t)number(), "code_min");
    check((uint32_t)d.code_max == (uint32_t)number(), "code_max");
    check(d.qmax == number(), "qmax");
    check(d.scale == number(), "scale");
    check(d.has_divisor == number(), "divisor");
    check(d.bits_per_weight_numerator == number(), "bits_per_weight.num");
    check(d.bits_per_weight_denominator == number(), "bits_per_weight.den");
}

static void op_layout(void) {
    ninfer_codec_layout_descriptor d;
    memset(&d, 0x5a, sizeof d);
    d.struct_size = sizeof d;
    check(ninfer_codec_layout_describe((uint32_t)number(), &d) == NINFER_CODEC_STATUS_OK, "describe");
    check(d.rank_min == number(), "rank_min");
    check(d.rank_max == number(), "rank_max");
    check(d.alignment == number(), "alignment");
    check(d.row_multiple == number(), "multiple_of[0]");
    check(d.column_multiple == number(), "multiple_of[1]");
}

static void op_encoding(void) {
    ninfer_codec_encoding_descriptor d;
    d.struct_size = sizeof d;
    check(ninfer_codec_encoding_describe((uint32_t)number(), &d) == NINFER_CODEC_STATUS_OK, "describe");
    check(d.alignment == number(), "alignment");
}

/* plan FORMAT LAYOUT RANK DIM... STATUS, then if that is 0 the members in the struct's order, `-` to skip */
static void op_plan(void) {
    uint64_t dims[17];
    uint32_t format = (uint32_t)number(), layout = (uint32_t)number();
    uint64_t rank = number();
    if (rank > 17) die("so many dimensions");
    for (uint64_t i = 0; i < rank; i++) dims[i] = number();
    uint32_t expected = (uint32_t)number();
    ninfer_codec_plan plan;
    memset(&plan, 0x5a, sizeof plan);
    plan.struct_size = sizeof plan;
    const ninfer_codec_plan before = plan;
    fresh();
    uint32_t status = ninfer_codec_tensor_plan(format, layout, dims, rank, &plan, &details);
    check(status == expected, "status");
    check(details.status == expected, "details.status");
    if (expected != NINFER_CODEC_STATUS_OK) {
        check(memcmp(&before, &plan, sizeof plan) == 0, "the plan is left alone");
        return;
    }
    check(plan.format == format && plan.layout == layout, "ids");
    const uint64_t *member = &plan.rows;
    for (size_t i = 0; i < (sizeof plan - offsetof(ninfer_codec_plan, rows)) / sizeof *member; i++) {
        char *text = token();
        if (strcmp(text, "-") != 0) check(member[i] == strtoull(text, NULL, 10), "a member of the plan");
    }
}

/* payloads */

static void op_pack(void) {
    tensor t = tensor_of();
    bytes codes = hex(), scales = hex();
    uint32_t divisor = (uint32_t)number();
    bytes expected = hex_payload(), out = output(t.payload_bytes, 1);
    fresh();
    succeeded(ninfer_codec_tensor_pack(t.format, t.layout, t.dims, t.rank, 0, t.rows, codes.data,
                                       codes.len / code_bytes(&t), scales.data, scales.len / scale_bytes(&t), divisor,
                                       out.data, out.len, &details),
              "pack");
    if (expected.len > 0 || t.payload_bytes == 0) equal(out, expected, "payload");
}

static void op_pack_sha256(void) {
    tensor t = tensor_of();
    bytes codes = hex(), scales = hex();
    uint32_t divisor = (uint32_t)number();
    bytes expected = hex(), out = output(t.payload_bytes, 1);
    uint8_t digest[32];
    fresh();
    succeeded(ninfer_codec_tensor_pack(t.format, t.layout, t.dims, t.rank, 0, t.rows, codes.data, codes.len, scales.data,
                                       scales.len, divisor, out.data, out.len, &details),
              "pack");
    intact(out, "guard bytes");
    sha256(out.data, (size_t)out.len, digest);
    check(memcmp(digest, expected.data, 32) == 0, "payload_sha256");
    for (uint64_t windows = number(); windows > 0; windows--) {
        uint64_t offset = number();
        bytes window = hex();
        check(offset + window.len <= out.len && memcmp(out.data + offset, window.data, (size_t)window.len) == 0,
              "window");
    }
}

static void op_unpack(void) {
    tensor t = tensor_of();
    bytes payload = hex_payload(), codes = hex(), scales = hex();
    uint32_t divisor = (uint32_t)number(), got_divisor = 0;
    bytes got_codes = output(t.rows * t.row_codes * code_bytes(&t), 0);
    bytes got_scales = output(t.rows * t.groups * scale_bytes(&t), 0);
    fresh();
    succeeded(ninfer_codec_tensor_unpack(t.format, t.layout, t.dims, t.rank, payload.data, payload.len, 0, t.rows,
                                         got_codes.data, got_codes.len / code_bytes(&t), got_scales.data,
                                         got_scales.len / scale_bytes(&t), &got_divisor, &details),
              "unpack");
    equal(got_codes, codes, "codes");
    equal(got_scales, scales, "scales");
    check(got_divisor == divisor, "divisor");
}

/* Decodes a tensor in one call, by column blocks into a strided buffer, and by a list of rows from the last on. */
static void decode(const tensor *t, bytes payload, uint32_t type, bytes out[3]) {
    const uint64_t size = value_bytes(type), elements = t->rows * t->columns;
    for (int i = 0; i < 3; i++) out[i] = output(elements * size, 0);
    fresh();
    succeeded(ninfer_codec_tensor_decode(t->format, t->layout, t->dims, t->rank, payload.data, payload.len, 0, t->rows,
                                         0, t->columns, type, out[0].data, elements, t->columns, &details),
              "decode");
    const uint64_t step = t->column_step > 1 ? t->column_step : t->columns;
    for (uint64_t begin = 0; begin < t->columns; begin += step) {
        const uint64_t count = t->columns - begin < step ? t->columns - begin : step;
        fresh();
        succeeded(ninfer_codec_tensor_decode(t->format, t->layout, t->dims, t->rank, payload.data, payload.len, 0,
                                             t->rows, begin, count, type, out[1].data + begin * size, elements - begin,
                                             t->columns, &details),
                  "decode by columns");
    }
    uint64_t *list = (uint64_t *)(void *)allocate((size_t)t->rows * sizeof *list);
    for (uint64_t i = 0; i < t->rows; i++) list[i] = t->rows - 1 - i;
    bytes reversed = output(elements * size, 0);
    fresh();
    succeeded(ninfer_codec_tensor_decode_rows(t->format, t->layout, t->dims, t->rank, payload.data, payload.len, list,
                                              t->rows, type, reversed.data, elements, t->columns, &details),
              "decode by list");
    intact(reversed, "guard bytes");
    for (uint64_t i = 0; i < t->rows; i++) {
        memcpy(out[2].data + i * t->columns * size, reversed.data + (t->rows - 1 - i) * t->columns * size,
               (size_t)(t->columns * size));
    }
}

static void op_decode(void) {
    tensor t = tensor_of();
    bytes payload = hex_payload(), got[3];
    uint32_t type = (uint32_t)number();
    bytes expected = hex();
    decode(&t, payload, type, got);
    equal(got[0], expected, "values");
    equal(got[1], expected, "values by columns");
    equal(got[2], expected, "values by list");
}

/* decode_sha256 TENSOR CODES SCALES DIVISOR TYPE DIGEST SAMPLES (n k word)... : the payload is packed first */
static void op_decode_sha256(void) {
    tensor t = tensor_of();
    bytes codes = hex(), scales = hex(), got[3], payload = input((size_t)t.payload_bytes, 1);
    uint32_t divisor = (uint32_t)number(), type = (uint32_t)number();
    bytes expected = hex();
    uint8_t digest[32];
    fresh();
    succeeded(ninfer_codec_tensor_pack(t.format, t.layout, t.dims, t.rank, 0, t.rows, codes.data, codes.len, scales.data,
                                       scales.len, divisor, payload.data, payload.len, &details),
              "pack");
    decode(&t, payload, type, got);
    for (int i = 0; i < 3; i++) {
        intact(got[i], "guard bytes");
        sha256(got[i].data, (size_t)got[i].len, digest);
        check(memcmp(digest, expected.data, 32) == 0, "sha256 of the values");
    }
    for (uint64_t samples = number(); samples > 0; samples--) {
        uint64_t at = number() * t.columns;
        at += number();
        bytes word = hex();
        check(memcmp(got[0].data + at * word.len, word.data, (size_t)word.len) == 0, "sample");
    }
}

/* What a failure's details must hold: `-` where nothing is expected. */
static void fault(uint32_t status) {
    const uint64_t got[] = {details.row,  details.column,   details.group,  details.offset,
                            details.word, details.expected, details.actual, details.fault};
    static const char *const names[] = {"row", "col", "group", "offset", "word", "expected", "actual", "reason"};
    const uint32_t expected = (uint32_t)number();
    check(status == expected, "error.kind");
    check(details.status == status, "details.status");
    for (size_t i = 0; i < 8; i++) {
        char *text = token();
        if (strcmp(text, "-") != 0) check(got[i] == strtoull(text, NULL, 10), names[i]);
    }
}

static void op_validate(void) {
    tensor t = tensor_of();
    bytes payload = hex_payload();
    fresh();
    fault(ninfer_codec_tensor_validate(t.format, t.layout, t.dims, t.rank, payload.data, payload.len, 0, t.rows, 0,
                                       t.columns, &details));
}

/* quantize TENSOR TYPE SOURCE PAYLOAD: in one call, row by row of a strided source, and from single rows */
static void op_quantize(void) {
    tensor t = tensor_of();
    uint32_t type = (uint32_t)number();
    bytes source = hex(), expected = hex_payload(), codes = hex(), scales = hex();
    const uint64_t size = value_bytes(type), row_bytes = t.columns * size, stride = t.columns + 3;
    bytes out = output(t.payload_bytes, 1);
    fresh();
    succeeded(ninfer_codec_tensor_quantize(t.format, t.layout, t.dims, t.rank, 0, t.rows, type, source.data,
                                           source.len / size, t.columns, out.data, out.len, &details),
              "quantize");
    equal(out, expected, "payload");

    bytes apart = input((size_t)(((t.rows - 1) * stride + t.columns) * size), 0);
    memset(apart.data, 0xff, (size_t)apart.len); /* NaN between the rows */
    for (uint64_t i = 0; i < t.rows; i++) {
        memcpy(apart.data + i * stride * size, source.data + i * row_bytes, (size_t)row_bytes);
    }
    out = output(t.payload_bytes, 1);
    fresh();
    succeeded(ninfer_codec_tensor_quantize(t.format, t.layout, t.dims, t.rank, 0, t.rows, type, apart.data,
                                           apart.len / size, stride, out.data, out.len, &details),
              "quantize with a stride");
    equal(out, expected, "payload");

    out = output(t.payload_bytes, 1);
    for (uint64_t row = t.rows; row-- > 0;) {
        fresh();
        succeeded(ninfer_codec_tensor_quantize(t.format, t.layout, t.dims, t.rank, row, 1, type,
                                               source.data + row * row_bytes, t.columns, t.columns, out.data, out.len,
                                               &details),
                  "quantize a row");
    }
    equal(out, expected, "payload");

    bytes got_codes = output(codes.len, 0), got_scales = output(scales.len, 0);
    for (uint64_t row = 0; row < t.rows; row++) {
        fresh();
        succeeded(ninfer_codec_row_quantize(t.format, row, type, source.data + row * row_bytes, t.columns,
                                            (int8_t *)got_codes.data + row * t.columns, t.columns,
                                            (uint16_t *)(void *)(got_scales.data + row * t.groups * 2), t.groups,
                                            &details),
                  "row_quantize");
    }
    equal(got_codes, codes, "codes");
    equal(got_scales, scales, "scales");
}

/* quantize_fault TENSOR TYPE SOURCE FAULT */
static void op_quantize_fault(void) {
    tensor t = tensor_of();
    uint32_t type = (uint32_t)number();
    bytes source = hex(), out = output(t.payload_bytes, 1);
    fresh();
    fault(ninfer_codec_tensor_quantize(t.format, t.layout, t.dims, t.rank, 0, t.rows, type, source.data,
                                       source.len / value_bytes(type), t.columns, out.data, out.len, &details));
    intact(out, "guard bytes");
}

/* dequantize FORMAT ROWS COLUMNS CODES SCALES VALUES */
static void op_dequantize(void) {
    tensor t = tensor_of();
    bytes codes = hex(), scales = hex(), expected = hex(), out = output(t.rows * t.columns * 4, 0);
    for (uint64_t row = 0; row < t.rows; row++) {
        fresh();
        succeeded(ninfer_codec_row_dequantize(t.format, row, (const int8_t *)codes.data + row * t.columns, t.columns,
                                              (const uint16_t *)(const void *)(scales.data + row * t.groups * 2),
                                              t.groups, (float *)(void *)(out.data + row * t.columns * 4), t.columns,
                                              &details),
                  "row_dequantize");
    }
    equal(out, expected, "values of single rows");
}

/* rows */

/* span TENSOR BEGIN COUNT STATUS PLANE OFFSET BYTES */
static void op_span(void) {
    tensor t = tensor_of();
    uint64_t begin = number(), count = number(), offset = 77, size = 78;
    uint32_t expected = (uint32_t)number(), plane = (uint32_t)number();
    fresh();
    uint32_t status = ninfer_codec_tensor_row_span(t.format, t.layout, t.dims, t.rank, begin, count, plane, &offset,
                                                   &size, &details);
    check(status == expected, "status");
    check(details.status == status, "details.status");
    if (expected == NINFER_CODEC_STATUS_OK) {
        check(offset == number(), "offset");
        check(size == number(), "bytes");
    } else {
        check(offset == 77 && size == 78, "nothing is written");
    }
}

static void new_payload(uint32_t status, uint32_t expected, bytes out, bytes payload) {
    check(status == expected, "status");
    check(details.status == status, "details.status");
    if (expected == NINFER_CODEC_STATUS_OK) {
        equal(out, payload, "payload");
    } else {
        intact(out, "guard bytes");
        int good = 1;
        for (uint64_t i = 0; i < out.len; i++) good &= out.data[i] == 0xa5;
        check(good, "nothing is written");
    }
}

/* slice TENSOR PAYLOAD BEGIN COUNT STATUS RESULT */
static void op_slice(void) {
    tensor t = tensor_of();
    bytes payload = hex_payload();
    uint64_t begin = number(), count = number();
    uint32_t expected = (uint32_t)number();
    bytes result = hex(), out = output(result.len, 1);
    fresh();
    uint32_t status = ninfer_codec_tensor_slice(t.format, t.layout, t.dims, t.rank, payload.data, payload.len, begin,
                                                count, out.data, out.len, &details);
    new_payload(status, expected, out, result);
}

/* gather TENSOR PAYLOAD ROWS STATUS RESULT; a slice by another way too, and stacked of its rows where it can be */
static void op_gather(void) {
    tensor t = tensor_of();
    bytes payload = hex_payload(), rows = hex();
    uint32_t expected = (uint32_t)number();
    bytes result = hex(), out = output(result.len, 1);
    fresh();
    uint32_t status =
        ninfer_codec_tensor_gather(t.format, t.layout, t.dims, t.rank, payload.data, payload.len,
                                   (const uint64_t *)(void *)rows.data, rows.len / 8, out.data, out.len, &details);
    new_payload(status, expected, out, result);
}

/* words */

/* round TYPE SOURCE TYPE EXPECTED */
static void op_round(void) {
    uint32_t from = (uint32_t)number();
    bytes source = hex();
    uint32_t to = (uint32_t)number();
    bytes expected = hex(), out = output(expected.len, 0);
    const uint64_t len = source.len / value_bytes(from);
    fresh();
    succeeded(ninfer_codec_values_round(from, source.data, len, to, out.data, len, &details), "values_round");
    equal(out, expected, "rounded");
}

/* convert TYPE SOURCE TYPE EXPECTED */
static void op_convert(void) {
    uint32_t from = (uint32_t)number();
    bytes source = hex();
    uint32_t to = (uint32_t)number();
    bytes expected = hex(), out = output(expected.len, 0);
    const uint64_t len = source.len / value_bytes(from);
    fresh();
    succeeded(ninfer_codec_values_convert(from, source.data, len, to, out.data, len, &details), "values_convert");
    equal(out, expected, "converted");
}

/* source WORD FAULT: a single binary64 to W8; an overflowing scale is no fault of the source */
static void op_source(void) {
    bytes source = hex();
    int8_t code;
    uint16_t scale;
    fresh();
    uint32_t status = ninfer_codec_row_quantize(NINFER_CODEC_FORMAT_W8G32_F16S, 0, NINFER_CODEC_VALUE_F64, source.data,
                                                1, &code, 1, &scale, 1, &details);
    if (status == NINFER_CODEC_STATUS_SCALE_OVERFLOW) status = NINFER_CODEC_STATUS_OK;
    check(status == number(), "error");
}

static const struct {
    const char *name;
    void (*run)(void);
} operations[] = {
    {"find", op_find},         {"format", op_format},     {"layout", op_layout},
    {"encoding", op_encoding}, {"plan", op_plan},         {"pack", op_pack},
    {"pack_sha256", op_pack_sha256}, {"unpack", op_unpack}, {"decode", op_decode},
    {"decode_sha256", op_decode_sha256}, {"validate", op_validate}, {"quantize", op_quantize},
    {"quantize_fault", op_quantize_fault}, {"dequantize", op_dequantize}, {"span", op_span},
    {"slice", op_slice},       {"gather", op_gather},     {"round", op_round},
    {"convert", op_convert},   {"source", op_source},
};

static void run(const char *name) {
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        if (strcmp(name, operations[i].name) == 0) {
            operations[i].run();
            return;
        }
    }
    die("no such operation");
}

/* A case that checked nothing is a failure. */
static void end_case(void) {
    if (case_id[0] != '\0') check(checks > checks_before, "a check at least");
    checks_before = checks;
    case_id[0] = '\0';
}

static void end_file(void) {
    end_case();
    if (file_name[0] != '\0') printf("%s %lu %lu %lu\n", file_name, cases, checks, failures);
    cases = checks = checks_before = failures = 0;
}

int main(void) {
    size_t capacity = 1 << 24;
    char *line = malloc(capacity);
    if (line == NULL) die("out of memory");
    while (fgets(line, (int)capacity, stdin) != NULL) {
        cursor = line;
        const char *name = token();
        if (strcmp(name, "file") == 0) {
            end_file();
            snprintf(file_name, sizeof file_name, "%s", token());
        } else if (strcmp(name, "case") == 0) {
            end_case();
            snprintf(case_id, sizeof case_id, "%s", token());
            cases++;
        } else {
            run(name);
        }
        release();
    }
    end_file();
    free(line);
    return total_failures == 0 ? 0 : 1;
}
