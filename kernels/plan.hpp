// Host side of the launchers: shapes to plans, in checked 64-bit arithmetic. Spec: storage-layouts sections 2 to 5.
#pragma once

#include "../include/ninfer_codec_cuda.h"
#include "common.cuh"

namespace ninfer_codec::host {

// Products and sums that remember an overflow.
struct Checked {
    u64 value;
    bool ok = true;
    Checked(u64 v) : value(v) {}
    friend Checked operator*(Checked a, Checked b) {
        Checked r(a.value * b.value);
        r.ok = a.ok && b.ok && (a.value == 0 || r.value / a.value == b.value);
        return r;
    }
    friend Checked operator+(Checked a, Checked b) {
        Checked r(a.value + b.value);
        r.ok = a.ok && b.ok && r.value >= a.value;
        return r;
    }
    Checked up(u64 multiple) const {
        Checked r = *this + Checked(multiple - 1);
        r.value = r.value / multiple * multiple;
        return r;
    }
};

struct Traits {
    u64 group, base_group_bytes, high_group_bytes;  // row-split formats; else zero
    u64 word_bytes;                                 // direct formats; else zero
};
inline bool traits_of(u32 format, Traits* t) {
    switch (format) {
        case bf16: *t = {0, 0, 0, 2}; return true;
        case fp32:
        case i32: *t = {0, 0, 0, 4}; return true;
        case q4: *t = {Q4::group, Q4::base_group_bytes, Q4::high_group_bytes, 0}; return true;
        case q5: *t = {Q5::group, Q5::base_group_bytes, Q5::high_group_bytes, 0}; return true;
        case q6: *t = {Q6::group, Q6::base_group_bytes, Q6::high_group_bytes, 0}; return true;
        case w8: *t = {W8::group, W8::base_group_bytes, W8::high_group_bytes, 0}; return true;
        case nvfp4:
        case fp8: *t = {0, 0, 0, 0}; return true;
        default: return false;
    }
}

// UNKNOWN_FORMAT, ZERO_DIMENSION, NOT_MULTIPLE or OVERFLOW, in this order.
inline u32 make_plan(u32 format, u64 n, u64 k, Plan* plan) {
    Traits t;
    if (!traits_of(format, &t)) return NINFER_CODEC_STATUS_UNKNOWN_FORMAT;
    if (n == 0 || k == 0) return NINFER_CODEC_STATUS_ZERO_DIMENSION;
    if (format == nvfp4 && (n % 128 != 0 || k % 64 != 0)) return NINFER_CODEC_STATUS_NOT_MULTIPLE;
    const Checked elements = Checked(n) * k;
    Checked base_row(0), high_row(0), scale_row(0), high_at(0), scale_at(0), end(0);
    if (t.word_bytes) {
        base_row = Checked(k) * t.word_bytes;
        high_at = scale_at = end = base_row * n;
    } else if (t.group) {
        const Checked k_pad = Checked(k).up(128), groups(k_pad.value / t.group);
        base_row = groups * t.base_group_bytes;
        high_row = groups * t.high_group_bytes;
        scale_row = groups * 2;
        high_at = (base_row * n).up(256);
        scale_at = high_at + (high_row * n).up(256);
        end = scale_at + scale_row * n;
        end.ok = end.ok && k_pad.ok;
    } else if (format == nvfp4) {
        base_row = Checked(k / 2);
        scale_row = Checked(k / 16);
        high_at = scale_at = (base_row * n).up(256);
        end = scale_at + scale_row * n + 4;
    } else {
        base_row = Checked(k);
        scale_row = Checked(2);
        high_at = scale_at = (base_row * n).up(256);
        end = scale_at + scale_row * n;
    }
    if (!elements.ok || !end.ok) return NINFER_CODEC_STATUS_OVERFLOW;
    *plan = {n, k, base_row.value, high_at.value, high_row.value, scale_at.value, scale_row.value, end.value};
    return NINFER_CODEC_STATUS_OK;
}

}  // namespace ninfer_codec::host
