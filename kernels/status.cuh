// Status numbers that kernels write into a report. The host library's numbers: launch.cu compares the two.
#pragma once

namespace ninfer_codec {

enum Status : unsigned int {
    status_ok = 0,
    status_row_out_of_range = 17,
    status_non_finite_source = 31,
    status_scale_overflow = 33,
    status_invalid_scale = 35,
    status_invalid_divisor = 36,
    status_invalid_code = 37,
    status_zero_scale_nonzero_code = 38,
    status_padding_code_not_zero = 39,
    status_padding_scale_not_zero = 40,
    status_gap_not_zero = 41,
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
