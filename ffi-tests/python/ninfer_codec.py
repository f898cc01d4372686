"""The shared library from Python: ctypes and numpy, no copies.

    tensor = Tensor("Q4G64_F16S", (N, K), payload)       # payload: bytes, mmap, or a uint8 array
    weights = tensor.decode(rows=range(7, 9))             # float32 array [2, K]

Arrays go to the library by pointer. An array that is not contiguous along its rows, or of a type that the
library does not take, is refused, never copied.
"""

import ctypes
import os

import numpy as np

ABSENT = 2**64 - 1

_u32, _u64, _void = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p


class Details(ctypes.Structure):
    """ninfer_codec_details: the numbers of a failure."""

    _fields_ = [("struct_size", _u64), ("status", _u32), ("fault", _u32)] + [
        (name, _u64)
        for name in "argument index row column group offset word expected actual multiple".split()
    ]


class Plan(ctypes.Structure):
    """ninfer_codec_plan: every size and offset of a payload."""

    _fields_ = [("struct_size", _u64), ("format", _u32), ("layout", _u32)] + [
        (name, _u64)
        for name in (
            "rows columns padded_columns elements logical_groups physical_groups codes_offset codes_bytes "
            "codes_row_bytes high_offset high_bytes high_row_bytes scales_offset scales_bytes scales_row_bytes "
            "divisor_offset divisor_bytes payload_bytes alignment code_words_per_row"
        ).split()
    ]


class FormatDescriptor(ctypes.Structure):
    """ninfer_codec_format_descriptor: the fixed facts of a format."""

    _fields_ = [("struct_size", _u64)] + [
        (name, ctypes.c_int32 if name in ("code_min", "code_max") else _u32)
        for name in (
            "format layout category profile code_bits group code_min code_max qmax scale has_divisor "
            "bits_per_weight_numerator bits_per_weight_denominator column_step row_step reserved"
        ).split()
    ]


class CodecError(Exception):
    """A status that is not OK; `status` and `details` hold its numbers."""

    def __init__(self, status, details=None):
        self.status = status
        self.details = details
        numbers = ""
        if details is not None:
            fields = [name for name, _ in Details._fields_[2:]]
            numbers = ", ".join(
                f"{name} {getattr(details, name)}"
                for name in fields
                if getattr(details, name) not in (ABSENT, 0) or name in ("row", "column") and getattr(details, name) == 0
            )
        text = library().ninfer_codec_status_message(status).decode()
        super().__init__(f"{text} ({numbers})" if numbers else text)


_shape = [_u32, _u32, _void, _u64]
_details = [ctypes.POINTER(Details)]
_SIGNATURES = {
    "ninfer_codec_version": [],
    "ninfer_codec_abi_version": [],
    "ninfer_codec_format_find": [ctypes.c_char_p, _u64, ctypes.POINTER(_u32)],
    "ninfer_codec_format_describe": [_u32, ctypes.POINTER(FormatDescriptor)],
    "ninfer_codec_tensor_plan": _shape + [ctypes.POINTER(Plan)] + _details,
    "ninfer_codec_tensor_quantize": _shape + [_u64, _u64, _u32, _void, _u64, _u64, _void, _u64] + _details,
    "ninfer_codec_tensor_pack": _shape + [_u64, _u64, _void, _u64, _void, _u64, _u32, _void, _u64] + _details,
    "ninfer_codec_tensor_unpack": _shape + [_void, _u64, _u64, _u64, _void, _u64, _void, _u64, _void] + _details,
    "ninfer_codec_tensor_decode": _shape
    + [_void, _u64, _u64, _u64, _u64, _u64, _u32, _void, _u64, _u64]
    + _details,
    "ninfer_codec_tensor_decode_rows": _shape + [_void, _u64, _void, _u64, _u32, _void, _u64, _u64] + _details,
    "ninfer_codec_tensor_validate": _shape + [_void, _u64, _u64, _u64, _u64, _u64] + _details,
    "ninfer_codec_tensor_slice": _shape + [_void, _u64, _u64, _u64, _void, _u64] + _details,
    "ninfer_codec_tensor_gather": _shape + [_void, _u64, _void, _u64, _void, _u64] + _details,
    "ninfer_codec_values_round": [_u32, _void, _u64, _u32, _void, _u64] + _details,
}

_library = None


def library(path=None):
    """Loads the shared library once: `path`, or the environment's NINFER_CODEC_LIBRARY, or by its name."""
    global _library
    if _library is None:
        name = path or os.environ.get("NINFER_CODEC_LIBRARY", "libninfer_codec.so.1")
        loaded = ctypes.CDLL(name)
        for function, arguments in _SIGNATURES.items():
            getattr(loaded, function).argtypes = arguments
            getattr(loaded, function).restype = _u32
        loaded.ninfer_codec_status_message.argtypes = [_u32]
        loaded.ninfer_codec_status_message.restype = ctypes.c_char_p
        loaded.ninfer_codec_backend_name.argtypes = []
        loaded.ninfer_codec_backend_name.restype = ctypes.c_char_p
        if loaded.ninfer_codec_abi_version() != 1:
            raise ImportError(f"{name} has another ABI version than 1")
        _library = loaded
    return _library


# Value types that numpy has, by their ids; bf16 goes as ml_dtypes.bfloat16 or as uint16 words.
_VALUES = {"float32": 1, "bfloat16": 2, "float16": 3, "float64": 4}


def _value_id(array):
    try:
        return _VALUES[array.dtype.name]
    except KeyError:
        raise TypeError(f"no value type {array.dtype}; use one of {', '.join(_VALUES)}") from None


def _call(function, *arguments):
    details = Details(struct_size=ctypes.sizeof(Details))
    status = getattr(library(), function)(*arguments, ctypes.byref(details))
    if status:
        raise CodecError(status, details)


def _buffer(data, writable=False):
    """A uint8 array over the caller's bytes, and nobody else's."""
    array = data if isinstance(data, np.ndarray) else np.frombuffer(data, dtype=np.uint8)
    if array.dtype != np.uint8 or not array.flags.c_contiguous:
        raise TypeError("a payload is contiguous bytes")
    if writable and not array.flags.writeable:
        raise TypeError("the payload is read-only")
    return array.reshape(-1)


def _rows_of(array, what):
    """Checks a two-dimensional array whose rows are contiguous; returns its stride in elements."""
    if array.ndim != 2 or (array.shape[1] > 1 and array.strides[1] != array.itemsize):
        raise TypeError(f"{what} is a matrix whose rows are contiguous")
    if array.strides[0] % array.itemsize or (array.strides[0] < 0 and array.shape[0] > 1):
        raise TypeError(f"{what} has a row stride that is no number of elements")
    stride = array.strides[0] // array.itemsize if array.shape[0] > 1 else array.shape[1]
    return stride, (max(array.shape[0], 1) - 1) * stride + array.shape[1]


class Tensor:
    """A payload of one format and shape. Holds a reference to the caller's buffer, never a copy."""

    def __init__(self, format, shape, payload=None):
        name = format.encode()
        found = _u32()
        status = library().ninfer_codec_format_find(name, len(name), ctypes.byref(found))
        if status:
            raise CodecError(status)
        facts = FormatDescriptor(struct_size=ctypes.sizeof(FormatDescriptor))
        status = library().ninfer_codec_format_describe(found, ctypes.byref(facts))
        if status:
            raise CodecError(status)
        self.format = format
        self.facts = facts
        self._dims = (ctypes.c_uint64 * len(shape))(*shape)
        self._shape = (facts.format, facts.layout, self._dims, len(shape))
        self.plan = Plan(struct_size=ctypes.sizeof(Plan))
        _call("ninfer_codec_tensor_plan", *self._shape, ctypes.byref(self.plan))
        if payload is None:
            payload = np.zeros(self.plan.payload_bytes, dtype=np.uint8)
        self.payload = _buffer(payload)

    def _range(self, rows):
        rows = range(self.plan.rows) if rows is None else rows
        if isinstance(rows, range) and rows.step == 1:
            return rows.start, len(rows)
        raise TypeError("rows is a range of step 1")

    def _bytes(self):
        return self.payload.ctypes.data, self.payload.size

    def quantize(self, source, rows=None):
        """Quantizes a matrix of float32, bfloat16, float16 or float64 into the rows, canonically."""
        _buffer(self.payload, writable=True)
        stride, length = _rows_of(source, "source")
        begin, count = self._range(rows)
        if source.shape != (count, self.plan.columns):
            raise ValueError(f"source has shape {source.shape}, not {(count, self.plan.columns)}")
        _call(
            "ninfer_codec_tensor_quantize", *self._shape, begin, count, _value_id(source),
            source.ctypes.data, length, stride, *self._bytes(),
        )

    def pack(self, codes, scales=None, divisor=0, rows=None):
        """Packs natural words; their types are those of ninfer_codec_tensor_pack."""
        _buffer(self.payload, writable=True)
        begin, count = self._range(rows)
        scales = np.empty(0, np.uint8) if scales is None else scales
        for words in (codes, scales):
            if not words.flags.c_contiguous:
                raise TypeError("natural words are contiguous")
        _call(
            "ninfer_codec_tensor_pack", *self._shape, begin, count, codes.ctypes.data, codes.size,
            scales.ctypes.data, scales.size, divisor, *self._bytes(),
        )

    def decode(self, rows=None, columns=None, out=None, dtype=np.float32):
        """Decodes rows, and of them columns, to a matrix: `out`, or a new one of `dtype`."""
        begin, count = self._range(rows)
        columns = range(self.plan.columns) if columns is None else columns
        if not (isinstance(columns, range) and columns.step == 1):
            raise TypeError("columns is a range of step 1")
        out = np.empty((count, len(columns)), dtype) if out is None else out
        if out.shape != (count, len(columns)):
            raise ValueError(f"out has shape {out.shape}, not {(count, len(columns))}")
        stride, length = _rows_of(out, "out")
        _call(
            "ninfer_codec_tensor_decode", *self._shape, *self._bytes(), begin, count, columns.start,
            len(columns), _value_id(out), out.ctypes.data, length, stride,
        )
        return out

    def decode_rows(self, rows, out=None, dtype=np.float32):
        """Decodes a list of rows, in any order, with repeats: an embedding look-up."""
        rows = np.ascontiguousarray(rows, dtype=np.uint64)
        out = np.empty((rows.size, self.plan.columns), dtype) if out is None else out
        if out.shape != (rows.size, self.plan.columns):
            raise ValueError(f"out has shape {out.shape}, not {(rows.size, self.plan.columns)}")
        stride, length = _rows_of(out, "out")
        _call(
            "ninfer_codec_tensor_decode_rows", *self._shape, *self._bytes(), rows.ctypes.data, rows.size,
            _value_id(out), out.ctypes.data, length, stride,
        )
        return out

    def validate(self, rows=None):
        """Raises the first violation of the contract in the rows."""
        begin, count = self._range(rows)
        _call("ninfer_codec_tensor_validate", *self._shape, *self._bytes(), begin, count, 0, self.plan.columns)

    def slice(self, rows):
        """The rows as a tensor of their own."""
        begin, count = self._range(rows)
        taken = Tensor(self.format, (count, self.plan.columns)) if count else Tensor(self.format, self._dims)
        _call("ninfer_codec_tensor_slice", *self._shape, *self._bytes(), begin, count, *taken._bytes())
        return taken

    def gather(self, rows):
        """A list of rows, in any order, with repeats, as a tensor of their own."""
        rows = np.ascontiguousarray(rows, dtype=np.uint64)
        taken = Tensor(self.format, (rows.size, self.plan.columns)) if rows.size else Tensor(self.format, self._dims)
        _call("ninfer_codec_tensor_gather", *self._shape, *self._bytes(), rows.ctypes.data, rows.size, *taken._bytes())
        return taken
