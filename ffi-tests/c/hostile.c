/*
 * Calls every function of the C interface that takes a pointer with arguments that must be refused, and with the
 * boundaries of what must not. Every buffer lies between guard bytes; after a refusal no byte of any buffer may
 * have changed. Prints `seen FUNCTION STATUS` for each status that a function returned, and `FAIL ...` lines.
 *
 *   hostile             all checks
 *   hostile lie         one call with a length that is not true: a checker of memory must see what the library does
 */
#include <ninfer_codec.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 64
#define DIRTY 0xa5
#define ROOM 32768u /* of every buffer: as much as any call may use, so that buffers can change places */
#define MAX_ARGS 16
#define P(x) ((void *)(uintptr_t)(x))
#define ADDRESS(p) ((uint64_t)(uintptr_t)(p))
#define S(name) NINFER_CODEC_STATUS_##name
#define STATUSES 64

static unsigned long checks, failures;
static const char *doing = "";

static void check(int holds, const char *function, const char *what, uint64_t a, uint64_t b) {
    checks++;
    if (holds) return;
    failures++;
    printf("FAIL %s, %s: %s (%llu, %llu)\n", function, doing, what, (unsigned long long)a, (unsigned long long)b);
}

/* What an argument is. */
enum kind {
    NUMBER,   /* anything else */
    FORMAT,   /* ids ... */
    LAYOUT,
    VALUE,
    PLANE,
    IN,       /* pointers with a length after them */
    OUT,
    PART_LIST,
    SCALAR,   /* pointers without one */
    STRUCTURE,
    DETAILS
};

struct arg {
    enum kind kind;
    uint64_t value;
    size_t align;            /* of what it points to */
    uint64_t needed;         /* elements */
    uint32_t too_short;      /* status for needed - 1, and for an empty buffer */
    uint32_t empty;
    uint32_t too_long;       /* status for needed + 1 */
    uint32_t huge;           /* status for 2^64 - 1 */
    uint8_t *block;          /* with the guards; 0 for what is not a pointer */
};

typedef uint32_t (*thunk)(const struct arg *a);

struct call {
    const char *name;
    thunk run;
    struct arg args[MAX_ARGS];
    int count;
    unsigned char seen[STATUSES];
    struct call *next;
};

static struct call *all_calls;

#define N(i) a[i].value
#define I(i) (uint32_t) a[i].value
#define A(i) P(a[i].value)

static uint32_t t_plan(const struct arg *a) { return ninfer_codec_tensor_plan(I(0), I(1), A(2), N(3), A(4), A(5)); }
static uint32_t t_row_span(const struct arg *a) {
    return ninfer_codec_tensor_row_span(I(0), I(1), A(2), N(3), N(4), N(5), I(6), A(7), A(8), A(9));
}
static uint32_t t_quantize(const struct arg *a) {
    return ninfer_codec_tensor_quantize(I(0), I(1), A(2), N(3), N(4), N(5), I(6), A(7), N(8), N(9), A(10), N(11), A(12));
}
static uint32_t t_pack(const struct arg *a) {
    return ninfer_codec_tensor_pack(I(0), I(1), A(2), N(3), N(4), N(5), A(6), N(7), A(8), N(9), I(10), A(11), N(12),
                                    A(13));
}
static uint32_t t_unpack(const struct arg *a) {
    return ninfer_codec_tensor_unpack(I(0), I(1), A(2), N(3), A(4), N(5), N(6), N(7), A(8), N(9), A(10), N(11), A(12),
                                      A(13));
}
static uint32_t t_decode(const struct arg *a) {
    return ninfer_codec_tensor_decode(I(0), I(1), A(2), N(3), A(4), N(5), N(6), N(7), N(8), N(9), I(10), A(11), N(12),
                                      N(13), A(14));
}
static uint32_t t_decode_rows(const struct arg *a) {
    return ninfer_codec_tensor_decode_rows(I(0), I(1), A(2), N(3), A(4), N(5), A(6), N(7), I(8), A(9), N(10), N(11),
                                           A(12));
}
static uint32_t t_validate(const struct arg *a) {
    return ninfer_codec_tensor_validate(I(0), I(1), A(2), N(3), A(4), N(5), N(6), N(7), N(8), N(9), A(10));
}
static uint32_t t_slice(const struct arg *a) {
    return ninfer_codec_tensor_slice(I(0), I(1), A(2), N(3), A(4), N(5), N(6), N(7), A(8), N(9), A(10));
}
static uint32_t t_gather(const struct arg *a) {
    return ninfer_codec_tensor_gather(I(0), I(1), A(2), N(3), A(4), N(5), A(6), N(7), A(8), N(9), A(10));
}
static uint32_t t_stack(const struct arg *a) { return ninfer_codec_tensor_stack(A(0), N(1), A(2), N(3), A(4)); }
static uint32_t t_row_quantize(const struct arg *a) {
    return ninfer_codec_row_quantize(I(0), N(1), I(2), A(3), N(4), A(5), N(6), A(7), N(8), A(9));
}
static uint32_t t_row_dequantize(const struct arg *a) {
    return ninfer_codec_row_dequantize(I(0), N(1), A(2), N(3), A(4), N(5), A(6), N(7), A(8));
}
static uint32_t t_values_round(const struct arg *a) {
    return ninfer_codec_values_round(I(0), A(1), N(2), I(3), A(4), N(5), A(6));
}
static uint32_t t_values_convert(const struct arg *a) {
    return ninfer_codec_values_convert(I(0), A(1), N(2), I(3), A(4), N(5), A(6));
}
static uint32_t t_format_find(const struct arg *a) { return ninfer_codec_format_find(A(0), N(1), A(2)); }
static uint32_t t_layout_find(const struct arg *a) { return ninfer_codec_layout_find(A(0), N(1), A(2)); }
static uint32_t t_profile_find(const struct arg *a) { return ninfer_codec_profile_find(A(0), N(1), A(2)); }
static uint32_t t_encoding_find(const struct arg *a) { return ninfer_codec_encoding_find(A(0), N(1), A(2)); }
static uint32_t t_format_describe(const struct arg *a) { return ninfer_codec_format_describe(I(0), A(1)); }
static uint32_t t_layout_describe(const struct arg *a) { return ninfer_codec_layout_describe(I(0), A(1)); }
static uint32_t t_encoding_describe(const struct arg *a) { return ninfer_codec_encoding_describe(I(0), A(1)); }

/* Building a call that succeeds. */

static struct call *begin(const char *name, thunk run) {
    struct call *c = calloc(1, sizeof *c);
    if (c == NULL) abort();
    c->name = name;
    c->run = run;
    c->next = all_calls;
    all_calls = c;
    return c;
}

static void number(struct call *c, enum kind kind, uint64_t value) {
    struct arg arg = {0};
    arg.kind = kind;
    arg.value = value;
    c->args[c->count++] = arg;
}

/* A block of ROOM bytes between guards. Payloads (align 1) lie at an odd address. */
static uint8_t *pointer(struct call *c, enum kind kind, size_t align, const void *content, size_t bytes) {
    struct arg arg = {0};
    arg.kind = kind;
    arg.align = align;
    arg.needed = 1;
    arg.block = malloc(ROOM + 2 * GUARD);
    if (arg.block == NULL) abort();
    memset(arg.block, DIRTY, ROOM + 2 * GUARD);
    uint8_t *data = arg.block + GUARD + (align == 1 ? 1 : 0);
    if (bytes > 0) memcpy(data, content, bytes);
    arg.value = ADDRESS(data);
    c->args[c->count++] = arg;
    return data;
}

static uint8_t *buffer(struct call *c, enum kind kind, size_t align, const void *content, size_t bytes, uint64_t needed,
                       uint32_t too_short, uint32_t empty, uint32_t too_long, uint32_t huge) {
    uint8_t *data = pointer(c, kind, align, content, bytes);
    struct arg *arg = &c->args[c->count - 1];
    arg->needed = needed;
    arg->too_short = too_short;
    arg->empty = empty;
    arg->too_long = too_long;
    arg->huge = huge;
    number(c, NUMBER, needed);
    return data;
}

static void details(struct call *c) {
    ninfer_codec_details d;
    memset(&d, DIRTY, sizeof d);
    d.struct_size = sizeof d;
    pointer(c, DETAILS, 8, &d, sizeof d);
}

/* Tensors: small, with every format, with payloads that are valid. */

struct tensor {
    uint32_t format, layout;
    uint64_t dims[17], rank, rows, columns;
    ninfer_codec_plan plan;
    ninfer_codec_format_descriptor facts;
    uint8_t payload[ROOM];
};

static struct tensor tensors[9];

static void make_tensor(struct tensor *t, uint32_t format) {
    memset(t, 0, sizeof *t);
    t->format = format;
    t->facts.struct_size = sizeof t->facts;
    if (ninfer_codec_format_describe(format, &t->facts) != S(OK)) abort();
    t->layout = t->facts.layout;
    t->rank = 2;
    t->dims[0] = t->rows = format == NINFER_CODEC_FORMAT_NVFP4 ? 256 : 5;
    t->dims[1] = t->columns = format == NINFER_CODEC_FORMAT_NVFP4 ? 64 : 131;
    t->plan.struct_size = sizeof t->plan;
    if (ninfer_codec_tensor_plan(format, t->layout, t->dims, t->rank, &t->plan, NULL) != S(OK)) abort();
    if (t->plan.payload_bytes + 1 > ROOM) abort();
    if (t->plan.divisor_bytes == 4) memcpy(t->payload + t->plan.divisor_offset, "\0\0\x80\x3f", 4);
    for (uint64_t i = 0; i < t->plan.scales_bytes && format == NINFER_CODEC_FORMAT_NVFP4; i++) {
        t->payload[t->plan.scales_offset + i] = 0x38;
    }
    /* struct_size of details that a test puts at the payload's start; codes are all legal as they stand */
    for (uint64_t i = 0; i < t->rows * t->columns / 4 && format <= NINFER_CODEC_FORMAT_I32; i++) t->payload[i] = 3;
}

static uint64_t code_size(const struct tensor *t) {
    return t->format == NINFER_CODEC_FORMAT_BF16 ? 2 : t->format <= NINFER_CODEC_FORMAT_I32 ? 4 : 1;
}

static uint64_t scale_size(const struct tensor *t) {
    return t->facts.scale == 0 || t->format == NINFER_CODEC_FORMAT_NVFP4 ? 1 : 2;
}

static void shape(struct call *c, const struct tensor *t) {
    number(c, FORMAT, t->format);
    number(c, LAYOUT, t->layout);
    buffer(c, IN, 8, t->dims, sizeof t->dims, t->rank, 0, 0, 0, S(WRONG_RANK));
    /* a direct layout takes other ranks: then the payload is not right any more, or nothing is wrong */
    struct arg *dims = &c->args[c->count - 2];
    dims->too_short = dims->empty = t->layout == NINFER_CODEC_LAYOUT_CONTIGUOUS_LE_V1 ? 0 : S(WRONG_RANK);
    dims->too_long = t->layout == NINFER_CODEC_LAYOUT_CONTIGUOUS_LE_V1 ? S(ZERO_DIMENSION) : S(WRONG_RANK);
}

static void payload(struct call *c, const struct tensor *t, enum kind kind) {
    const uint32_t wrong = S(PAYLOAD_LENGTH);
    const uint64_t bytes = t->plan.payload_bytes;
    buffer(c, kind, 1, t->payload, kind == IN ? (size_t)bytes : 0, bytes, wrong, wrong, wrong, wrong);
}

static void values(struct call *c, enum kind kind, size_t align, uint64_t needed) {
    static const float zeros[4096];
    buffer(c, kind, align, zeros, kind == IN ? (size_t)needed * align : 0, needed, S(BUFFER_LENGTH), S(BUFFER_LENGTH), 0,
           S(TOO_LARGE));
}

static void exact(struct call *c, enum kind kind, size_t align, uint64_t needed) {
    static const uint8_t zeros[ROOM];
    buffer(c, kind, align, zeros, kind == IN ? (size_t)needed * align : 0, needed, S(BUFFER_LENGTH), S(BUFFER_LENGTH),
           S(BUFFER_LENGTH), S(BUFFER_LENGTH));
}

static void add_tensor_calls(const struct tensor *t) {
    const uint64_t stride = t->columns + 3, groups = t->plan.logical_groups;
    const int grouped = t->facts.category == NINFER_CODEC_CATEGORY_GROUPED;
    const uint32_t type = NINFER_CODEC_VALUE_F32;
    const uint64_t rows[] = {t->rows - 1, 0, t->rows - 1, 1};
    struct call *c;

    c = begin("ninfer_codec_tensor_plan", t_plan);
    shape(c, t);
    c->args[2].too_long = c->args[2].too_long == S(ZERO_DIMENSION) ? S(ZERO_DIMENSION) : S(WRONG_RANK);
    ninfer_codec_plan plan;
    memset(&plan, DIRTY, sizeof plan);
    plan.struct_size = sizeof plan;
    pointer(c, STRUCTURE, 8, &plan, sizeof plan);
    details(c);

    c = begin("ninfer_codec_tensor_row_span", t_row_span);
    shape(c, t);
    number(c, NUMBER, 1);
    number(c, NUMBER, 1);
    number(c, PLANE, NINFER_CODEC_PLANE_CODES);
    pointer(c, SCALAR, 8, NULL, 0);
    pointer(c, SCALAR, 8, NULL, 0);
    details(c);

    if (grouped) {
        c = begin("ninfer_codec_tensor_quantize", t_quantize);
        shape(c, t);
        number(c, NUMBER, 1);
        number(c, NUMBER, t->rows - 1);
        number(c, VALUE, type);
        values(c, IN, 4, (t->rows - 2) * stride + t->columns);
        number(c, NUMBER, stride);
        payload(c, t, OUT);
        details(c);
    }

    const uint64_t tile = t->facts.row_step;
    c = begin("ninfer_codec_tensor_pack", t_pack);
    shape(c, t);
    number(c, NUMBER, t->rows - tile);
    number(c, NUMBER, tile);
    exact(c, IN, (size_t)code_size(t), tile * t->plan.code_words_per_row);
    exact(c, IN, (size_t)scale_size(t), tile * groups);
    number(c, NUMBER, t->facts.has_divisor ? 0x3f800000u : 0);
    payload(c, t, OUT);
    details(c);

    c = begin("ninfer_codec_tensor_unpack", t_unpack);
    shape(c, t);
    payload(c, t, IN);
    number(c, NUMBER, 1);
    number(c, NUMBER, 2);
    exact(c, OUT, (size_t)code_size(t), 2 * t->plan.code_words_per_row);
    exact(c, OUT, (size_t)scale_size(t), 2 * groups);
    if (t->facts.has_divisor) {
        pointer(c, SCALAR, 4, NULL, 0);
    } else {
        number(c, NUMBER, 0);
    }
    details(c);

    if (t->format != NINFER_CODEC_FORMAT_I32) {
        const uint64_t columns = t->columns - t->facts.column_step;
        c = begin("ninfer_codec_tensor_decode", t_decode);
        shape(c, t);
        payload(c, t, IN);
        number(c, NUMBER, t->rows - 4);
        number(c, NUMBER, 4);
        number(c, NUMBER, t->facts.column_step);
        number(c, NUMBER, columns);
        number(c, VALUE, type);
        values(c, OUT, 4, 3 * stride + columns);
        number(c, NUMBER, stride);
        details(c);

        c = begin("ninfer_codec_tensor_decode_rows", t_decode_rows);
        shape(c, t);
        payload(c, t, IN);
        buffer(c, IN, 8, rows, sizeof rows, 4, 0, S(EMPTY_ROWS), S(ROW_OUT_OF_RANGE), S(TOO_LARGE));
        number(c, VALUE, type);
        values(c, OUT, 4, 3 * stride + t->columns);
        number(c, NUMBER, stride);
        details(c);
    }

    c = begin("ninfer_codec_tensor_validate", t_validate);
    shape(c, t);
    payload(c, t, IN);
    number(c, NUMBER, 0);
    number(c, NUMBER, t->rows);
    number(c, NUMBER, 0);
    number(c, NUMBER, t->columns);
    details(c);

    /* new payloads: 2 rows, or a whole tile */
    const uint64_t count = t->rows == 256 ? 128 : 2;
    const uint64_t dims[] = {count, t->columns};
    ninfer_codec_plan cut;
    cut.struct_size = sizeof cut;
    if (ninfer_codec_tensor_plan(t->format, t->layout, dims, 2, &cut, NULL) != S(OK)) abort();
    const uint32_t wrong = S(PAYLOAD_LENGTH);

    c = begin("ninfer_codec_tensor_slice", t_slice);
    shape(c, t);
    payload(c, t, IN);
    number(c, NUMBER, 3);
    number(c, NUMBER, count);
    buffer(c, OUT, 1, NULL, 0, cut.payload_bytes, wrong, wrong, wrong, wrong);
    details(c);

    uint64_t many[256];
    for (uint64_t i = 0; i < 256; i++) many[i] = i * 7 % t->rows;
    c = begin("ninfer_codec_tensor_gather", t_gather);
    shape(c, t);
    payload(c, t, IN);
    const uint32_t other = t->rows == 256 ? S(NOT_MULTIPLE) : S(PAYLOAD_LENGTH);
    buffer(c, IN, 8, many, sizeof many, count, other, S(EMPTY_ROWS), other, S(TOO_LARGE));
    buffer(c, OUT, 1, NULL, 0, cut.payload_bytes, wrong, wrong, wrong, wrong);
    details(c);

    static ninfer_codec_part parts[9][3]; /* the third part is of no struct size */
    ninfer_codec_part *pair = parts[t->format - 1];
    for (int i = 0; i < 2; i++) {
        pair[i].struct_size = sizeof pair[i];
        pair[i].format = t->format;
        pair[i].layout = t->layout;
        pair[i].dims = t->dims;
        pair[i].rank = t->rank;
        pair[i].payload = t->payload;
        pair[i].payload_len = t->plan.payload_bytes;
    }
    const uint64_t joined[] = {2 * t->rows, t->columns};
    if (ninfer_codec_tensor_plan(t->format, t->layout, joined, 2, &cut, NULL) != S(OK)) abort();
    if (cut.payload_bytes < ROOM) {
        c = begin("ninfer_codec_tensor_stack", t_stack);
        buffer(c, PART_LIST, 8, pair, 3 * sizeof *pair, 2, wrong, S(EMPTY_ROWS), S(STRUCT_SIZE), S(TOO_LARGE));
        buffer(c, OUT, 1, NULL, 0, cut.payload_bytes, wrong, wrong, wrong, wrong);
        details(c);
    }

    if (grouped) {
        c = begin("ninfer_codec_row_quantize", t_row_quantize);
        number(c, FORMAT, t->format);
        number(c, NUMBER, 7);
        number(c, VALUE, type);
        exact(c, IN, 4, t->columns);
        c->args[3].empty = S(COLUMN_RANGE);
        exact(c, OUT, 1, t->columns);
        exact(c, OUT, 2, groups);
        details(c);

        c = begin("ninfer_codec_row_dequantize", t_row_dequantize);
        number(c, FORMAT, t->format);
        number(c, NUMBER, 7);
        exact(c, IN, 1, t->columns);
        c->args[2].empty = S(COLUMN_RANGE);
        exact(c, IN, 2, groups);
        exact(c, OUT, 4, t->columns);
        details(c);
    }
}

static void add_other_calls(void) {
    static const size_t sizes[] = {0, 4, 2, 2, 8, 4, 8, 8};
    for (uint32_t from = 1; from <= 4; from++) {
        for (uint32_t to = 1; to <= 3; to++) {
            struct call *c = begin("ninfer_codec_values_round", t_values_round);
            number(c, VALUE, from);
            exact(c, IN, sizes[from], 9);
            number(c, VALUE, to);
            exact(c, OUT, sizes[to], 9);
            details(c);
        }
    }
    static const uint32_t pairs[][2] = {{1, 1}, {1, 2}, {1, 5}, {4, 1}, {4, 2}, {3, 5}, {6, 5}, {7, 5}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct call *c = begin("ninfer_codec_values_convert", t_values_convert);
        number(c, VALUE, pairs[i][0]);
        exact(c, IN, sizes[pairs[i][0]], 9);
        number(c, VALUE, pairs[i][1]);
        exact(c, OUT, sizes[pairs[i][1]], 9);
        details(c);
    }
    static const struct {
        const char *function, *name;
        thunk run;
    } finds[] = {{"ninfer_codec_format_find", "NVFP4", t_format_find},
                 {"ninfer_codec_layout_find", "row-scale-v1", t_layout_find},
                 {"ninfer_codec_profile_find", "MAXABS_F16_RECIP_RNE_V1", t_profile_find},
                 {"ninfer_codec_encoding_find", "raw-bytes-v1", t_encoding_find}};
    for (size_t i = 0; i < 4; i++) {
        struct call *c = begin(finds[i].function, finds[i].run);
        const size_t len = strlen(finds[i].name);
        buffer(c, IN, 1, finds[i].name, len, len, S(UNKNOWN_NAME), S(UNKNOWN_NAME), S(UNKNOWN_NAME), S(TOO_LARGE));
        pointer(c, SCALAR, 4, NULL, 0);
    }
    struct call *c = begin("ninfer_codec_format_describe", t_format_describe);
    uint64_t size = sizeof(ninfer_codec_format_descriptor);
    number(c, FORMAT, 4);
    pointer(c, STRUCTURE, 8, &size, 8);
    c = begin("ninfer_codec_layout_describe", t_layout_describe);
    size = sizeof(ninfer_codec_layout_descriptor);
    number(c, LAYOUT, 2);
    pointer(c, STRUCTURE, 8, &size, 8);
    c = begin("ninfer_codec_encoding_describe", t_encoding_describe);
    size = sizeof(ninfer_codec_encoding_descriptor);
    number(c, NUMBER, 1);
    pointer(c, STRUCTURE, 8, &size, 8);
}

/* Running calls. */

static int any_type; /* value types change from call to call */
static uint8_t before[MAX_ARGS][ROOM + 2 * GUARD];

static int is_pointer(const struct arg *arg) { return arg->block != NULL; }

static ninfer_codec_details *details_of(const struct call *c) {
    const struct arg *last = &c->args[c->count - 1];
    return last->kind == DETAILS ? P(last->value) : NULL;
}

/* Runs a call and returns its status; looks at guards, and after a refusal of the arguments at every byte. */
static uint32_t run(struct call *c, struct arg *args) {
    const void *d = P(args[c->count - 1].value); /* which may be misaligned */
    ninfer_codec_details got;
    const int has_details = args[c->count - 1].kind == DETAILS;
    for (int i = 0; i < c->count; i++) {
        if (is_pointer(&c->args[i])) memcpy(before[i], c->args[i].block, sizeof before[i]);
    }
    uint64_t details_size = 0;
    if (has_details && d != NULL) memcpy(&details_size, d, sizeof details_size);
    const uint32_t status = c->run(args);
    if (status >= STATUSES) {
        check(0, c->name, "no such status", status, 0);
        return status;
    }
    c->seen[status] = 1;
    const int refused = status != S(OK);
    for (int i = 0; i < c->count; i++) {
        const struct arg *arg = &c->args[i];
        if (!is_pointer(arg)) continue;
        const int own = ADDRESS(d) == arg->value || arg->kind == DETAILS;
        if (has_details && own) continue;
        check(memcmp(before[i], arg->block, GUARD) == 0, c->name, "guard before", (uint64_t)i, status);
        check(memcmp(before[i] + ROOM + GUARD, arg->block + ROOM + GUARD, GUARD) == 0, c->name, "guard after",
              (uint64_t)i, status);
        const int data_fault = status >= S(NON_FINITE_SOURCE) && arg->kind == OUT;
        const int input = arg->kind == IN || arg->kind == PART_LIST;
        if ((refused && !data_fault) || input) {
            check(memcmp(before[i], arg->block, sizeof before[i]) == 0, c->name, "a byte was written", (uint64_t)i,
                  status);
        } else if (arg->kind == OUT && status == S(OK)) {
            /* nothing past what is needed */
            const uint64_t len = args[i + 1].value > arg->needed ? args[i + 1].value : arg->needed;
            const uint64_t used = len * (any_type ? 8 : arg->align) + (arg->align == 1 ? 1 : 0);
            if (used > ROOM) continue;
            check(memcmp(before[i] + GUARD + used, arg->block + GUARD + used, ROOM - (size_t)used) == 0, c->name,
                  "a byte past the end was written", (uint64_t)i, status);
        }
    }
    if (has_details && d != NULL && ADDRESS(d) % 8 == 0 && status != S(OVERLAP) && details_size >= sizeof got) {
        memcpy(&got, d, sizeof got);
        check(got.status == status, c->name, "details.status", got.status, status);
        check(got.struct_size == details_size, c->name, "details.struct_size", got.struct_size, status);
    }
    return status;
}

static void expect(struct call *c, struct arg *args, uint32_t status, const char *what) {
    const uint32_t got = run(c, args);
    check(got == status, c->name, what, got, status);
}

static void refused(struct call *c, struct arg *args, uint32_t status, int argument, const char *what) {
    expect(c, args, status, what);
    const ninfer_codec_details *d = details_of(c);
    if (d != NULL) check(d->argument == (uint64_t)argument, c->name, what, d->argument, (uint64_t)argument);
}

#define WITH(name) \
    struct arg name[MAX_ARGS]; \
    memcpy(name, c->args, sizeof name)

static void mutate_ids(struct call *c, int i) {
    static const uint64_t ids[] = {0, 10, 255, 0xffffffffu};
    const enum kind kind = c->args[i].kind;
    const uint32_t status = kind == FORMAT   ? S(UNKNOWN_FORMAT)
                            : kind == LAYOUT ? S(UNKNOWN_LAYOUT)
                            : kind == VALUE  ? S(UNKNOWN_VALUE_TYPE)
                                             : S(UNKNOWN_PLANE);
    for (size_t k = 0; k < 4; k++) {
        WITH(args);
        args[i].value = ids[k];
        expect(c, args, status, "an unknown id");
        if (details_of(c) != NULL) check(details_of(c)->actual == ids[k], c->name, "details.actual", ids[k], 0);
    }
}

static void mutate_pointer(struct call *c, int i) {
    const struct arg *arg = &c->args[i];
    const int has_length = arg->kind == IN || arg->kind == OUT || arg->kind == PART_LIST;
    const int empty_is_right = has_length && arg->needed == 0;
    if (has_length) {
        /* a format without scales takes (NULL, 0); an empty buffer of any address is the same */
        const uint64_t lengths[] = {8, 1, UINT64_MAX};
        for (size_t k = 0; k < 3; k++) {
            WITH(args);
            args[i].value = 0;
            args[i + 1].value = lengths[k];
            refused(c, args, S(NULL_POINTER), i, "NULL with a length");
        }
        struct {
            uint64_t length;
            uint32_t status;
            int known;
        } cases[] = {
            {0, arg->empty, arg->empty != 0 || empty_is_right},
            {arg->needed - 1, arg->needed == 1 ? arg->empty : arg->too_short, arg->needed > 0 && arg->too_short != 0},
            {arg->needed, S(OK), 1},
            {arg->needed + 1, arg->too_long, arg->too_long != 0},
            {UINT64_MAX, arg->huge, 1},
            {(uint64_t)1 << 63, arg->huge, 1},
        };
        if (empty_is_right) cases[0].status = S(OK);
        for (size_t k = 0; k < 6; k++) {
            WITH(args);
            args[i + 1].value = cases[k].length;
            if (cases[k].known) {
                expect(c, args, cases[k].status, "a length");
            } else if (cases[k].length <= arg->needed + 1) {
                run(c, args);
            }
            if (k == 0) {
                args[i].value = 0;
                if (cases[k].known) expect(c, args, cases[k].status, "(NULL, 0)");
            }
        }
    } else {
        WITH(args);
        args[i].value = 0;
        if (arg->kind == DETAILS) {
            expect(c, args, S(OK), "no details");
        } else {
            refused(c, args, S(NULL_POINTER), i, "NULL");
        }
    }
    if (arg->align > 1 && arg->needed > 0) {
        for (uint64_t off = 1; off < arg->align; off += off == 1 ? 1 : 2) {
            WITH(args);
            args[i].value += off;
            /* what is looked at where it lies must be the same there */
            uint8_t saved[4096];
            memcpy(saved, P(arg->value), sizeof saved);
            memmove(P(args[i].value), P(arg->value), sizeof saved);
            const uint32_t got = run(c, args);
            check(got == S(MISALIGNED), c->name, "a misaligned pointer", got, (uint64_t)i);
            memcpy(P(arg->value), saved, sizeof saved);
            memset((uint8_t *)P(arg->value) + sizeof saved, DIRTY, 8);
            if (arg->kind != DETAILS && details_of(c) != NULL) {
                check(details_of(c)->argument == (uint64_t)i, c->name, "argument", details_of(c)->argument, (uint64_t)i);
            }
        }
    }
    if (arg->kind == IN && arg->align == 1 && arg->needed > 0) {
        WITH(args); /* an even address is as good as an odd one */
        memmove((uint8_t *)P(arg->value) + 1, P(arg->value), (size_t)arg->needed);
        args[i].value += 1;
        expect(c, args, S(OK), "an even address");
        memmove(P(arg->value), (uint8_t *)P(arg->value) + 1, (size_t)arg->needed);
    }
}

/* Structs: too small, zeroed, larger than this version knows. */
static void mutate_struct(struct call *c, int i) {
    uint64_t *size = P(c->args[i].value);
    const uint64_t right = *size;
    const uint64_t small[] = {0, 1, 8, right - 1, right - 8};
    uint8_t saved[512];
    memcpy(saved, size, sizeof saved);
    WITH(args);
    for (size_t k = 0; k < 5; k++) {
        *size = small[k];
        if (k == 0) memset(size, 0, sizeof(ninfer_codec_details));
        expect(c, args, S(STRUCT_SIZE), "a small struct");
        memcpy(size, saved, sizeof saved);
    }
    if (c->args[i].kind == PART_LIST) return;
    *size = right + 8;
    expect(c, args, S(OK), "a struct that has grown");
    check(*size == right + 8, c->name, "struct_size is kept", *size, right);
    uint64_t past;
    memcpy(&past, (uint8_t *)size + right, sizeof past);
    check(past == 0xa5a5a5a5a5a5a5a5u, c->name, "what is not known is left alone", past, 0);
    *size = right;
}

/* Everything written must overlap nothing: each output is put where each other buffer begins, and one element on. */
static void mutate_overlap(struct call *c, int i) {
    const enum kind kind = c->args[i].kind;
    if ((kind != OUT && kind != SCALAR) || c->args[i].needed == 0) return;
    for (int j = 0; j < c->count; j++) {
        const struct arg *other = &c->args[j];
        if (j == i || !is_pointer(other) || other->needed == 0 || other->kind == STRUCTURE) continue;
        if (other->kind == DETAILS) continue;
        for (uint64_t off = 0; off < 2; off++) {
            WITH(args);
            const uint64_t last = other->needed * other->align - 1;
            uint64_t at = other->value + (off == 0 ? 0 : last - last % 8);
            args[i].value = at - at % c->args[i].align;
            expect(c, args, S(OVERLAP), "overlapping buffers");
        }
        /* where one ends the other may begin */
        if (kind == OUT && c->args[i].align == 1 && other->kind == IN) {
            WITH(args);
            args[i].value = other->value + other->needed * other->align;
            const uint32_t got = c->run(args);
            check(got == S(OK), c->name, "buffers that touch", got, (uint64_t)j);
            memset(P(args[i].value), DIRTY, (size_t)c->args[i].needed);
        }
    }
    /* details inside an output */
    if (details_of(c) != NULL && kind == OUT && c->args[i].needed * c->args[i].align >= 16) {
        WITH(args);
        const uint64_t size = sizeof(ninfer_codec_details);
        const uint64_t at = (c->args[i].value + 7) / 8 * 8;
        ninfer_codec_details inside;
        memcpy(P(at), &size, sizeof size);
        memcpy(&inside, P(at), sizeof inside);
        args[c->count - 1].value = at;
        const uint32_t got = run(c, args);
        check(got == S(OVERLAP), c->name, "details inside an output", got, 0);
        check(memcmp(&inside, P(at), sizeof inside) == 0, c->name, "details are left alone", 0, 0);
    }
}

/* Numbers of every kind, several at once: no crash, no write on a refusal, a status that exists. */
static uint64_t state = 0x9e3779b97f4a7c15u;

static uint64_t next(uint64_t bound) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % bound;
}

static void mutate_numbers(struct call *c) {
    static const uint64_t pool[] = {0, 1, 2, 3, 4, 5, 7, 16, 17, 32, 64, 127, 128, 131, 134, 255, 256,
                                    0x7fffffff, 0xffffffffu, 0x100000000u, (uint64_t)1 << 62, INT64_MAX,
                                    (uint64_t)1 << 63, UINT64_MAX - 1, UINT64_MAX};
    for (int round = 0; round < 300; round++) {
        WITH(args);
        for (uint64_t changes = 1 + next(3); changes > 0; changes--) {
            const int i = (int)next((uint64_t)c->count);
            uint64_t value = pool[next(sizeof pool / sizeof pool[0])];
            if (is_pointer(&args[i])) continue;
            if (i > 0 && is_pointer(&args[i - 1]) && args[i - 1].kind != SCALAR && args[i - 1].kind != STRUCTURE) {
                /* a length: only those that are true, or that no buffer can have */
                const struct arg *buffer = &c->args[i - 1];
                const uint64_t room = buffer->kind == PART_LIST ? 3 : buffer->needed + 1;
                if (value > room && value <= UINT64_MAX / 8) value = room;
                if (value > room && buffer->align == 1) value = UINT64_MAX;
            }
            args[i].value = value;
        }
        run(c, args);
        for (int i = 0; i < c->count; i++) { /* outputs back to what they were */
            if (is_pointer(&c->args[i])) memcpy(c->args[i].block, before[i], sizeof before[i]);
        }
    }
}

static void all_mutations(struct call *c) {
    WITH(good);
    doing = "as it should be";
    expect(c, good, S(OK), "a good call");
    for (int i = 0; i < c->count; i++) {
        switch (c->args[i].kind) {
        case FORMAT:
        case LAYOUT:
        case VALUE:
        case PLANE:
            doing = "ids";
            mutate_ids(c, i);
            break;
        case NUMBER:
            break;
        default:
            doing = "pointers";
            mutate_pointer(c, i);
            doing = "overlap";
            mutate_overlap(c, i);
        }
        if (c->args[i].kind == STRUCTURE || c->args[i].kind == DETAILS || c->args[i].kind == PART_LIST) {
            doing = "structs";
            mutate_struct(c, i);
        }
    }
    doing = "numbers";
    any_type = 1;
    mutate_numbers(c);
    any_type = 0;
    doing = "as it should be, again";
    expect(c, good, S(OK), "a good call");
}

/* Writes rows [begin, begin + count) of a tensor with a scale a row. */
static uint32_t write_rows(const struct tensor *t, uint64_t begin, uint64_t count, uint8_t *to) {
    static float source[5 * 131];
    static uint8_t codes[5 * 131];
    static uint16_t scales[5];
    for (size_t i = 0; i < 5 * 131; i++) {
        source[i] = (float)(i % 89) - 44.0f;
        codes[i] = (uint8_t)(i % 120);
    }
    for (size_t i = 0; i < 5; i++) scales[i] = 0x3f80;
    if (t->facts.qmax == 0) {
        return ninfer_codec_tensor_pack(t->format, t->layout, t->dims, 2, begin, count, codes + begin * 131, count * 131,
                                        scales, count, 0, to, t->plan.payload_bytes, NULL);
    }
    return ninfer_codec_tensor_quantize(t->format, t->layout, t->dims, 2, begin, count, NINFER_CODEC_VALUE_F32,
                                        source + begin * 131, count * 131, 131, to, t->plan.payload_bytes, NULL);
}

/* A call writes its rows' bytes and nothing else, but for the last row's call, which writes the gaps too. */
static void ranges(const struct tensor *t) {
    static const char *const name = "ranges of rows";
    static uint8_t whole[ROOM], parts[ROOM], mine[ROOM];
    const uint64_t bytes = t->plan.payload_bytes;
    memset(whole, DIRTY, sizeof whole);
    memset(parts, DIRTY, sizeof parts);
    check(write_rows(t, 0, 5, whole) == S(OK), name, "all rows", t->format, 0);
    check(write_rows(t, 1, 2, parts) == S(OK), name, "rows 1 and 2", t->format, 0);
    memset(mine, 0, sizeof mine);
    for (uint32_t plane = 1; plane <= 3; plane++) {
        uint64_t offset = 0, size = 0;
        check(ninfer_codec_tensor_row_span(t->format, t->layout, t->dims, 2, 1, 2, plane, &offset, &size, NULL) == S(OK),
              name, "a span", t->format, plane);
        memset(mine + offset, 1, (size_t)size);
    }
    for (uint64_t i = 0; i < ROOM; i++) {
        check(parts[i] == (mine[i] ? whole[i] : DIRTY), name, "a byte of rows 1 and 2", t->format, i);
    }
    check(write_rows(t, 3, 2, parts) == S(OK) && write_rows(t, 0, 1, parts) == S(OK), name, "the others", t->format, 0);
    check(memcmp(parts, whole, ROOM) == 0, name, "all bytes", t->format, 0);
    check(whole[bytes] == DIRTY, name, "past the end", t->format, 0);

    /* An illegal scale in the last row: nothing is written, however the output is laid out. */
    const uint64_t last = t->plan.scales_offset + 4 * t->plan.scales_row_bytes, list[2] = {0, 4};
    static float out[5 * 140];
    memset(out, DIRTY, sizeof out);
    whole[last] = 0xff, whole[last + 1] = 0xff;
    for (uint64_t stride = 131; stride <= 140; stride += 9) {
        ninfer_codec_details d;
        d.struct_size = sizeof d;
        check(ninfer_codec_tensor_decode(t->format, t->layout, t->dims, 2, whole, bytes, 0, 5, 0, 131, 1, out, 5 * 140,
                                         stride, &d) == S(INVALID_SCALE) &&
                  d.row == 4 && d.group == 0 && d.fault == NINFER_CODEC_FAULT_NAN,
              name, "an illegal scale", d.row, d.fault);
        check(ninfer_codec_tensor_decode_rows(t->format, t->layout, t->dims, 2, whole, bytes, list, 2, 1, out, 5 * 140,
                                              stride, &d) == S(INVALID_SCALE),
              name, "an illegal scale in a list", d.row, d.fault);
    }
    for (size_t i = 0; i < sizeof out; i++) check(((uint8_t *)out)[i] == DIRTY, name, "nothing is decoded", t->format, i);
}

/* Single cases that the matrix does not reach. */
static void single_cases(void) {
    static const char *const name = "single cases";
    ninfer_codec_details d;
    memset(&d, 0, sizeof d);
    d.struct_size = sizeof d;
    uint8_t bytes[64] = {0};
    float values[64];
    const uint64_t dims[2] = {2, 2};

    doing = "FP32 of 7 bytes";
    check(ninfer_codec_tensor_decode(2, 1, NULL, 0, bytes + 1, 7, 0, 1, 0, 1, 1, values, 64, 1, &d) == S(PAYLOAD_LENGTH),
          name, "rank 0", 0, 0);
    check(d.expected == 4 && d.actual == 7, name, "details", d.expected, d.actual);
    check(ninfer_codec_tensor_validate(2, 1, dims, 1, bytes + 1, 7, 0, 1, 0, 2, &d) == S(PAYLOAD_LENGTH), name, "rank 1",
          0, 0);
    check(ninfer_codec_tensor_decode(2, 1, NULL, 0, bytes + 1, 4, 0, 1, 0, 1, 1, values, 64, 1, &d) == S(OK), name,
          "rank 0 as it should be", 0, 0);

    doing = "gather";
    uint64_t rows[3] = {0, 2, 1};
    uint8_t out[64];
    memset(out, DIRTY, sizeof out);
    check(ninfer_codec_tensor_gather(1, 1, dims, 2, bytes, 8, rows, 3, out, 12, &d) == S(ROW_OUT_OF_RANGE), name,
          "index N", 0, 0);
    check(d.row == 2 && d.expected == 2, name, "details", d.row, d.expected);
    rows[1] = UINT64_MAX;
    check(ninfer_codec_tensor_gather(1, 1, dims, 2, bytes, 8, rows, 3, out, 12, &d) == S(ROW_OUT_OF_RANGE), name,
          "index 2^64-1", 0, 0);
    rows[1] = 0;
    for (size_t i = 0; i < 8; i++) bytes[i] = (uint8_t)i;
    check(ninfer_codec_tensor_gather(1, 1, dims, 2, bytes, 8, rows, 3, out, 12, &d) == S(OK), name, "repeats", 0, 0);
    check(memcmp(out, "\0\1\2\3\0\1\2\3\4\5\6\7", 12) == 0 && out[12] == DIRTY, name, "repeats' bytes", 0, 0);
    check(ninfer_codec_tensor_gather(1, 1, dims, 2, bytes, 8, rows, 0, out, 12, &d) == S(EMPTY_ROWS), name,
          "an empty list", 0, 0);
    check(ninfer_codec_tensor_gather(1, 1, dims, 2, bytes, 8, NULL, 0, out, 12, &d) == S(EMPTY_ROWS), name,
          "no list", 0, 0);

    doing = "nothing to convert";
    check(ninfer_codec_values_round(1, NULL, 0, 2, NULL, 0, &d) == S(OK), name, "round", 0, 0);
    check(ninfer_codec_values_convert(6, NULL, 0, 5, NULL, 0, &d) == S(OK), name, "convert", 0, 0);

    doing = "types that do not go together";
    check(ninfer_codec_values_round(5, NULL, 0, 1, NULL, 0, &d) == S(UNSUPPORTED_SOURCE) && d.actual == 5, name,
          "an integer", d.actual, 0);
    check(ninfer_codec_values_round(1, NULL, 0, 4, NULL, 0, &d) == S(UNSUPPORTED_OUTPUT) && d.actual == 4, name,
          "to binary64", d.actual, 0);
    check(ninfer_codec_values_convert(5, NULL, 0, 5, NULL, 0, &d) == S(UNSUPPORTED_SOURCE), name, "from I32", 0, 0);
    check(ninfer_codec_values_convert(6, NULL, 0, 1, NULL, 0, &d) == S(UNSUPPORTED_OUTPUT), name, "I64 to F32", 0, 0);
    check(ninfer_codec_values_convert(1, NULL, 0, 3, NULL, 0, &d) == S(UNSUPPORTED_OUTPUT), name, "to F16", 0, 0);
    float half = 0.5f;
    int32_t whole = 9;
    check(ninfer_codec_values_convert(1, &half, 1, 5, &whole, 1, &d) == S(NOT_EXACT), name, "0.5 to I32", 0, 0);
    check(d.index == 0 && d.word == 0x3f000000u && whole == 9, name, "details", d.index, d.word);

    doing = "outputs and encoders that a format has not";
    for (uint32_t format = 1; format <= 9; format++) {
        const struct tensor *t = &tensors[format - 1];
        for (uint32_t type = 1; type <= 7; type++) {
            uint64_t room[2048]; /* 16 KiB, of any type */
            const int quantized = format >= 4;
            const int good = type == 1   ? format != 3
                             : type == 2 ? format == 1 || quantized
                             : type == 3 ? quantized
                             : type == 4 ? format == 8
                                         : 0;
            const uint32_t got = ninfer_codec_tensor_decode(format, t->layout, t->dims, 2, t->payload,
                                                            t->plan.payload_bytes, 0, 1, 0, t->columns, type, room, 2048,
                                                            t->columns, &d);
            check(got == (good ? S(OK) : S(UNSUPPORTED_OUTPUT)), name, "decode", format, type);
        }
        const uint32_t encoded =
            ninfer_codec_tensor_quantize(format, t->layout, t->dims, 2, 0, t->facts.row_step, 6, values, 64, 131,
                                         (uint8_t *)(uintptr_t)t->payload, t->plan.payload_bytes, &d);
        check(encoded == (t->facts.qmax ? S(UNSUPPORTED_SOURCE) : S(NO_CANONICAL_ENCODER)), name, "quantize", format,
              encoded);
        int8_t code = 0;
        uint16_t scale = 0x3c00;
        const uint32_t row = ninfer_codec_row_quantize(format, 0, 1, &half, 1, &code, 1, &scale, 1, &d);
        check(row == (t->facts.qmax ? S(OK) : S(NO_CANONICAL_ENCODER)), name, "row_quantize", format, row);
        const uint32_t back = ninfer_codec_row_dequantize(format, 0, &code, 1, &scale, 1, values, 1, &d);
        check(back == (t->facts.qmax ? S(OK) : S(WRONG_WORDS)), name, "row_dequantize", format, back);
    }

    doing = "a divisor that a format has not";
    const uint16_t words[4] = {1, 2, 3, 4};
    memset(out, DIRTY, sizeof out);
    check(ninfer_codec_tensor_pack(1, 1, dims, 2, 0, 2, words, 4, NULL, 0, 1, out, 8, &d) == S(WRONG_WORDS), name, "BF16",
          0, 0);
    check(out[0] == DIRTY && d.actual == 1, name, "nothing is written", out[0], d.actual);

    doing = "NVFP4";
    const struct tensor *nv = &tensors[7];
    uint64_t offset = 0, size = 0;
    check(ninfer_codec_tensor_row_span(8, 3, nv->dims, 2, 0, 1, 3, &offset, &size, &d) == S(NO_ROW_VIEW), name,
          "scales have no rows", 0, 0);
    static uint8_t packed[ROOM];
    static const uint8_t codes[4096], scales[512];
    check(ninfer_codec_tensor_pack(8, 3, nv->dims, 2, 64, 128, codes, 4096, scales, 512, 0x3f800000u, packed,
                                   nv->plan.payload_bytes, &d) == S(ROWS_NOT_TILED) &&
              d.row == 64 && d.actual == 128 && d.multiple == 128,
          name, "rows that are no tiles", d.row, d.actual);
    memset(packed, DIRTY, sizeof packed);
    check(ninfer_codec_tensor_pack(8, 3, nv->dims, 2, 0, 128, codes, 4096, scales, 512, 0, packed,
                                   nv->plan.payload_bytes, &d) == S(INVALID_DIVISOR) &&
              d.fault == NINFER_CODEC_FAULT_ZERO,
          name, "a zero divisor", d.fault, 0);
    int dirty = 1;
    for (size_t i = 0; i < ROOM; i++) dirty &= packed[i] == DIRTY;
    check(dirty, name, "nothing is written", 0, 0);
    check(ninfer_codec_tensor_pack(8, 3, nv->dims, 2, 0, 128, codes, 4096, scales, 512, 0x3f800000u, packed,
                                   nv->plan.payload_bytes, &d) == S(OK),
          name, "the first tile", 0, 0);
    dirty = 1; /* the other tile, and the divisor */
    for (uint64_t i = 4096; i < 8192; i++) dirty &= packed[i] == DIRTY;
    for (uint64_t i = nv->plan.scales_offset + 512; i < ROOM; i++) dirty &= packed[i] == DIRTY;
    check(dirty, name, "the other tile is left alone", 0, 0);

    doing = "stack";
    ninfer_codec_part parts[2];
    memset(parts, 0, sizeof parts);
    static uint8_t stacked[2 * ROOM];
    for (int i = 0; i < 2; i++) {
        parts[i].struct_size = sizeof parts[i];
        parts[i].format = 8;
        parts[i].layout = 3;
        parts[i].dims = nv->dims;
        parts[i].rank = 2;
        parts[i].payload = nv->payload;
        parts[i].payload_len = nv->plan.payload_bytes;
    }
    memcpy(packed, nv->payload, (size_t)nv->plan.payload_bytes);
    packed[nv->plan.divisor_offset] = 1;
    parts[1].payload = packed;
    check(ninfer_codec_tensor_stack(parts, 2, stacked, 2 * (nv->plan.payload_bytes - 4) + 4, &d) == S(STACK_DIVISOR) &&
              d.index == 1 && d.expected == 0x3f800000u && d.actual == 0x3f800001u,
          name, "divisors", d.index, d.actual);
    parts[1] = parts[0];
    check(ninfer_codec_tensor_stack(parts, 2, stacked, 2 * (nv->plan.payload_bytes - 4) + 4, &d) == S(OK), name,
          "equal divisors", d.status, 0);
    parts[1].format = 1;
    parts[1].layout = 1;
    parts[1].dims = dims;
    parts[1].payload = bytes;
    parts[1].payload_len = 8;
    check(ninfer_codec_tensor_stack(parts, 2, stacked, 8, &d) == S(STACK_MISMATCH) && d.index == 1, name, "formats",
          d.index, 0);
    parts[1].payload_len = 7;
    check(ninfer_codec_tensor_stack(parts, 2, stacked, 8, &d) == S(PAYLOAD_LENGTH) && d.index == 1, name, "a length",
          d.index, 0);
    parts[1].payload = NULL;
    check(ninfer_codec_tensor_stack(parts, 2, stacked, 8, &d) == S(NULL_POINTER) && d.index == 1, name, "no payload",
          d.index, 0);
    memset(&parts[1], 0, sizeof parts[1]);
    check(ninfer_codec_tensor_stack(parts, 2, stacked, 8, &d) == S(STRUCT_SIZE) && d.index == 1, name, "a zeroed part",
          d.index, 0);
    check(ninfer_codec_tensor_stack(&parts[1], 1, NULL, 8, &d) == S(NULL_POINTER) && d.argument == 2, name,
          "no output comes before a zeroed part", d.argument, 0);
    check(ninfer_codec_tensor_stack(parts, 0, NULL, 8, &d) == S(NULL_POINTER) && d.argument == 2, name,
          "no output comes before no parts", d.argument, 0);
    parts[1] = parts[0];
    parts[1].struct_size += 8;
    check(ninfer_codec_tensor_stack(parts, 2, stacked, 8, &d) == S(STRUCT_SIZE) && d.index == 1 &&
              d.expected == parts[0].struct_size && d.actual == parts[1].struct_size,
          name, "a part of another size", d.expected, d.actual);
    parts[1].struct_size = sizeof parts[1] + 1;
    check(ninfer_codec_tensor_stack(&parts[1], 1, stacked, 8, &d) == S(STRUCT_SIZE) &&
              d.actual == sizeof parts[1] + 1,
          name, "no multiple of 8", d.index, d.actual);
    parts[1] = parts[0];
    memcpy(packed, nv->payload, (size_t)nv->plan.payload_bytes);
    parts[1].payload = packed;
    check(ninfer_codec_tensor_stack(parts, 2, packed + 9000, 2 * (nv->plan.payload_bytes - 4) + 4, &d) == S(OVERLAP), name,
          "the output is a part", 0, 0);

    doing = "faults in the data";
    const struct tensor *w8 = &tensors[6];
    static float source[5 * 131];
    static uint8_t whole_payload[ROOM], part_payload[ROOM];
    for (size_t i = 0; i < 5 * 131; i++) source[i] = (float)i;
    const uint64_t bytes_w8 = w8->plan.payload_bytes;
    check(ninfer_codec_tensor_quantize(7, 2, w8->dims, 2, 0, 5, 1, source, 5 * 131, 131, whole_payload, bytes_w8, &d) ==
              S(OK),
          name, "quantize", d.status, 0);
    memset(part_payload, DIRTY, sizeof part_payload);
    const uint32_t nan = 0x7fc00001u;
    memcpy(&source[3 * 131 + 40], &nan, 4);
    check(ninfer_codec_tensor_quantize(7, 2, w8->dims, 2, 1, 3, 1, source + 131, 3 * 131, 131, part_payload, bytes_w8,
                                       &d) == S(NON_FINITE_SOURCE),
          name, "a NaN", d.status, 0);
    check(d.row == 3 && d.column == 40 && d.word == nan, name, "where", d.row, d.column);
    /* rows 1 and 2 are complete; rows 0 and 4, and the gap, were not touched */
    const uint64_t row = w8->plan.codes_row_bytes, scales_at = w8->plan.scales_offset,
                   scale_row = w8->plan.scales_row_bytes;
    check(memcmp(part_payload + row, whole_payload + row, (size_t)(2 * row)) == 0, name, "rows before", 0, 0);
    check(memcmp(part_payload + scales_at + scale_row, whole_payload + scales_at + scale_row, (size_t)(2 * scale_row)) ==
              0,
          name, "scales before", 0, 0);
    dirty = 1;
    for (uint64_t i = 0; i < bytes_w8; i++) {
        const int mine = i < scales_at ? i >= row && i < 4 * row
                                       : i - scales_at >= scale_row && i - scales_at < 4 * scale_row;
        dirty &= mine || part_payload[i] == DIRTY;
    }
    check(dirty, name, "other rows", 0, 0);
    double big = 1e300;
    int8_t code;
    uint16_t scale;
    check(ninfer_codec_row_quantize(7, 9, 4, &big, 1, &code, 1, &scale, 1, &d) == S(SOURCE_NOT_REPRESENTABLE) &&
              d.row == 9 && d.column == 0,
          name, "1e300", d.row, d.column);
    float large = 3e38f;
    check(ninfer_codec_row_quantize(7, 9, 1, &large, 1, &code, 1, &scale, 1, &d) == S(SCALE_OVERFLOW) && d.group == 0,
          name, "3e38", d.group, 0);
    code = -128;
    scale = 0x8000;
    values[0] = 5;
    check(ninfer_codec_row_dequantize(7, 9, &code, 1, &scale, 1, values, 1, &d) == S(INVALID_SCALE) &&
              d.fault == NINFER_CODEC_FAULT_NEGATIVE_ZERO && values[0] == 5,
          name, "a scale of -0", d.fault, 0);

    doing = "violations";
    static const struct {
        uint64_t offset;
        uint8_t byte;
        uint32_t status;
    } flips[] = {{7 * 0, 0x80, S(INVALID_CODE)}, {0, 1, S(ZERO_SCALE_NONZERO_CODE)}, {131, 1, S(PADDING_CODE_NOT_ZERO)}};
    static uint8_t zero[ROOM];
    for (size_t i = 0; i < 3; i++) {
        memset(zero, 0, sizeof zero);
        zero[flips[i].offset] = flips[i].byte;
        const uint32_t got =
            ninfer_codec_tensor_validate(7, 2, w8->dims, 2, zero, bytes_w8, 0, 5, 0, 131, &d);
        check(got == flips[i].status, name, "validate", got, i);
    }
    memset(zero, 0, sizeof zero);
    zero[scales_at + 2 * 5] = 1;
    check(ninfer_codec_tensor_validate(7, 2, w8->dims, 2, zero, bytes_w8, 0, 5, 0, 131, &d) == S(PADDING_SCALE_NOT_ZERO),
          name, "a padding scale", d.status, 0);
    memset(zero, 0, sizeof zero);
    const struct tensor *q5 = &tensors[4];
    zero[q5->plan.codes_bytes] = 1;
    const uint32_t gap = ninfer_codec_tensor_validate(5, 2, q5->dims, 2, zero, q5->plan.payload_bytes, 4, 1, 128, 3, &d);
    check(gap == (q5->plan.codes_bytes < q5->plan.high_offset ? S(GAP_NOT_ZERO) : S(PADDING_CODE_NOT_ZERO)), name,
          "a gap", gap, d.offset);

    doing = "names and messages";
    for (uint32_t id = 0; id < 300; id++) {
        check((ninfer_codec_format_name(id) != NULL) == (id >= 1 && id <= 9), name, "format_name", id, 0);
        check((ninfer_codec_layout_name(id) != NULL) == (id >= 1 && id <= 4), name, "layout_name", id, 0);
        check((ninfer_codec_profile_name(id) != NULL) == (id == 1), name, "profile_name", id, 0);
        check((ninfer_codec_encoding_name(id) != NULL) == (id == 1), name, "encoding_name", id, 0);
        const int known = strcmp(ninfer_codec_status_message(id), "unknown status") != 0;
        check(known == (id <= S(GAP_NOT_ZERO)), name, "status_message", id, 0);
    }
    check(ninfer_codec_version() == NINFER_CODEC_VERSION, name, "version", ninfer_codec_version(), 0);
    check(ninfer_codec_abi_version() == NINFER_CODEC_ABI_VERSION, name, "abi_version", ninfer_codec_abi_version(), 0);
    check(strlen(ninfer_codec_backend_name()) > 0, name, "backend_name", 0, 0);
}

/* An output that is one value shorter than the call says. */
static int lie(void) {
    const float values[8] = {0};
    uint16_t *out = malloc(7 * sizeof *out);
    if (out == NULL) return 2;
    const uint32_t status = ninfer_codec_values_round(1, values, 8, 2, out, 8, NULL);
    free(out);
    printf("nothing was seen (status %u)\n", status);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "lie") == 0) return lie();
    for (uint32_t format = 1; format <= 9; format++) {
        make_tensor(&tensors[format - 1], format);
        add_tensor_calls(&tensors[format - 1]);
    }
    add_other_calls();
    single_cases();
    doing = "ranges";
    for (uint32_t format = 4; format <= 9; format++) {
        if (format != NINFER_CODEC_FORMAT_NVFP4) ranges(&tensors[format - 1]);
    }
    for (struct call *c = all_calls; c != NULL; c = c->next) all_mutations(c);
    while (all_calls != NULL) {
        struct call *c = all_calls;
        for (uint32_t status = 0; status < STATUSES; status++) {
            if (c->seen[status]) printf("seen %s %u\n", c->name, status);
        }
        for (int i = 0; i < c->count; i++) free(c->args[i].block);
        all_calls = c->next;
        free(c);
    }
    printf("checks %lu failures %lu\n", checks, failures);
    return failures == 0 ? 0 : 1;
}
