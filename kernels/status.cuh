// Status numbers that kernels write into a report. The host library's numbers: launch.cu compares the two.
#pragma once

namespace ninfer_codec {

enum Status : unsigned int {
    status_ok = 0,
    status_row_out_of_range = 9,
    status_non_finite_source = 20,
    status_scale_overflow = 22,
    status_invalid_scale = 24,
    status_invalid_divisor = 25,
    status_invalid_code = 26,
    status_zero_scale_nonzero_code = 27,
    status_padding_code_not_zero = 28,
    status_padding_scale_not_zero = 29,
    status_gap_not_zero = 30,
};

// What is wrong with a scale or divisor word.
enum Fault : unsigned int {
    fault_none = 0,
    fault_nan = 1,
    fault_infinite = 2,
    fault_negative_zero = 3,
    fault_negative = 4,
    fault_zero = 5,
};

}  // namespace ninfer_codec
