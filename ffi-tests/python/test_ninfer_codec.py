"""The Python client over the golden vectors, and beside ml_dtypes."""

import json
import os
import pathlib

import ml_dtypes
import numpy as np
import pytest

import ninfer_codec as nc

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "tests" / "vectors"
DTYPES = {"f32": "<f4", "f16": "<f2", "f64": "<f8"}
GROUPED = ["Q4G64_F16S", "Q5G64_F16S", "Q6G64_F16S", "W8G32_F16S"]

# Kinds of the vectors' errors, as texts of the library's statuses.
KINDS = {
    "payload_length": "the payload is not as long as its plan says",
    "gap_not_zero": "a byte between two planes is not zero",
    "padding_scale_not_zero": "the scale of a padding group is not zero",
    "padding_code_not_zero": "a padding code is not zero",
    "invalid_scale": "a scale word is illegal",
    "invalid_divisor": "the divisor word is illegal",
    "invalid_code": "a code is illegal",
    "zero_scale_nonzero_code": "a nonzero code under a zero scale",
    "non_finite_source": "a source value is not finite",
    "source_not_representable": "a source value is no finite binary32",
    "scale_overflow": "a scale overflows binary16",
    "empty_rows": "no rows were asked for",
    "row_out_of_range": "a row is past the rows there are",
    "not_multiple": "a dimension is not a multiple of what the layout needs",
    "zero_dimension": "a dimension is zero",
    "wrong_rank": "the layout does not take this number of dimensions",
    "overflow": "a size exceeds 64 bits",
}


def load(topic, member):
    with open(VECTORS / f"{topic}.json", encoding="ascii") as file:
        return json.load(file)[member]


def cases(topic, member):
    return [pytest.param(case, id=case["id"]) for case in load(topic, member)]


def words(texts, dtype):
    return np.array([int(text, 16) for text in texts], dtype=dtype)


def payload_of(text):
    return np.frombuffer(bytes.fromhex(text), dtype=np.uint8)


def refused(call, expected):
    with pytest.raises(nc.CodecError) as caught:
        call()
    error = caught.value
    assert str(error).split(" (")[0] == KINDS[expected["kind"]]
    names = {"row": "row", "col": "column", "group": "group", "offset": "offset"}
    for member, field in names.items():
        if member in expected and not (member == "group" and expected["kind"] == "zero_scale_nonzero_code"):
            assert getattr(error.details, field) == expected[member], member


def source_of(case):
    raw = bytes.fromhex(case["source"])
    if case["dtype"] == "bf16":
        return np.frombuffer(raw, dtype="<u2").view(ml_dtypes.bfloat16).reshape(case["shape"])
    return np.frombuffer(raw, dtype=DTYPES[case["dtype"]]).reshape(case["shape"])


@pytest.mark.parametrize("case", cases("canonical_encode", "cases"))
def test_quantize(case):
    tensor = nc.Tensor(case["format"], case["shape"], np.full_like(empty_payload(case), 0xA5))
    source = source_of(case)
    if "error" in case:
        refused(lambda: tensor.quantize(source), case["error"])
    else:
        tensor.quantize(source)
        assert tensor.payload.tobytes().hex() == case["payload"]
        tensor.validate()


def empty_payload(case):
    return nc.Tensor(case["format"], case["shape"]).payload


@pytest.mark.parametrize("case", cases("grouped_decode", "valid"))
def test_grouped(case):
    tensor = nc.Tensor(case["format"], case["shape"])
    tensor.pack(np.array(case["codes"], np.int8), words(case["scales"], np.uint16))
    assert tensor.payload.tobytes().hex() == case["payload"]
    assert tensor.decode().astype("<f4").tobytes().hex() == case["f32"]


@pytest.mark.parametrize("case", cases("fp8_row", "valid"))
def test_fp8(case):
    tensor = nc.Tensor("FP8_E4M3FN_ROW_BF16S", case["shape"])
    tensor.pack(payload_of(case["codes"]), words(case["scales"], np.uint16))
    assert tensor.payload.tobytes().hex() == case["payload"]
    assert tensor.decode().astype("<f4").tobytes().hex() == case["f32"]


@pytest.mark.parametrize("case", cases("nvfp4", "valid"))
def test_nvfp4(case):
    import hashlib

    tensor = nc.Tensor("NVFP4", case["shape"])
    tensor.pack(payload_of(case["codes"]), payload_of(case["scales"]), int(case["divisor"], 16))
    assert tensor.payload.size == case["payload_bytes"]
    assert hashlib.sha256(tensor.payload).hexdigest() == case["payload_sha256"]
    for dtype, member in ((np.float32, "f32_sha256"), (np.float64, "f64_sha256")):
        assert hashlib.sha256(tensor.decode(dtype=dtype)).hexdigest() == case[member]


@pytest.mark.parametrize("topic", ["grouped_decode", "fp8_row"])
def test_invalid(topic):
    for case in load(topic, "invalid"):
        format = case.get("format", "FP8_E4M3FN_ROW_BF16S")
        tensor = nc.Tensor(format, case["shape"], payload_of(case["payload"]))
        refused(tensor.validate, case["error"])


def test_rows():
    parents = {parent["id"]: parent for parent in load("rows", "parents")}
    for case in load("rows", "cases"):
        if case["op"] not in ("slice", "gather"):
            continue
        parent = parents[case["parent"]]
        tensor = nc.Tensor(parent["format"], parent["shape"], payload_of(parent["payload"]))
        if case["op"] == "gather":
            call = lambda: tensor.gather(np.array(case["rows"], np.uint64))
        elif case["begin"] + case["count"] >= 2**63:
            continue  # a Python range has no such length; the C program covers it
        else:
            call = lambda: tensor.slice(range(case["begin"], case["begin"] + case["count"]))
        if "error" in case:
            with pytest.raises(nc.CodecError):
                call()
        else:
            assert call().payload.tobytes().hex() == case["payload"], case["id"]


def test_no_copies():
    payload = np.zeros(nc.Tensor("W8G32_F16S", (4, 32)).plan.payload_bytes, np.uint8)
    tensor = nc.Tensor("W8G32_F16S", (4, 32), payload)
    assert tensor.payload.ctypes.data == payload.ctypes.data
    tensor.quantize(np.ones((4, 32), np.float32))
    assert payload[0] == 127
    out = np.zeros((2, 40), np.float32)
    window = out[:, :32]
    assert tensor.decode(rows=range(1, 3), out=window).ctypes.data == out.ctypes.data
    assert out[1, 31] == tensor.decode()[2, 31] and not out[:, 32:].any()
    read_only = nc.Tensor("W8G32_F16S", (4, 32), payload.tobytes())
    with pytest.raises(TypeError):
        read_only.quantize(np.ones((4, 32), np.float32))
    with pytest.raises(TypeError):
        tensor.quantize(np.asfortranarray(np.ones((4, 32), np.float32)))


def test_decode_rows_and_columns():
    rng = np.random.default_rng(1)
    for format in GROUPED:
        tensor = nc.Tensor(format, (5, 200))
        tensor.quantize(rng.standard_normal((5, 200), np.float32))
        whole = tensor.decode()
        assert (tensor.decode_rows([4, 0, 4]) == whole[[4, 0, 4]]).all()
        assert (tensor.decode(columns=range(64, 200)) == whole[:, 64:]).all()
        assert (tensor.gather([3, 1]).decode() == whole[[3, 1]]).all()
        half = tensor.decode(dtype=np.float16)
        assert (half.view(np.uint16) == whole.astype(np.float16).view(np.uint16)).all()
        short = tensor.decode(dtype=ml_dtypes.bfloat16)
        assert (short.view(np.uint16) == whole.astype(ml_dtypes.bfloat16).view(np.uint16)).all()


def test_e4m3fn_is_that_of_ml_dtypes():
    codes = np.array([code for code in range(256) if code & 0x7F != 0x7F], np.uint8)
    tensor = nc.Tensor("FP8_E4M3FN_ROW_BF16S", (1, codes.size))
    tensor.pack(codes, np.array([0x3F80], np.uint16))
    expected = codes.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    assert (tensor.decode()[0].view(np.uint32) == expected.view(np.uint32)).all()


def test_e2m1_is_that_of_ml_dtypes():
    nibbles = np.tile(np.arange(16, dtype=np.uint8), 128 * 4)
    packed = nibbles[0::2] | nibbles[1::2] << 4
    tensor = nc.Tensor("NVFP4", (128, 64))
    tensor.pack(packed, np.full(128 * 4, 0x38, np.uint8), 0x3F800000)
    expected = nibbles.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    assert (tensor.decode().reshape(-1).view(np.uint32) == expected.view(np.uint32)).all()


def test_bf16_is_that_of_ml_dtypes():
    every = np.arange(65536, dtype=np.uint32).astype(np.uint16)
    tensor = nc.Tensor("BF16", (65536,))
    tensor.pack(every)
    got = tensor.decode()[0].view(np.uint32)
    assert (got == every.astype(np.uint32) << 16).all()
    numbers = ~np.isnan(every.view(ml_dtypes.bfloat16).astype(np.float32))
    expected = every.view(ml_dtypes.bfloat16).astype(np.float32).view(np.uint32)
    assert (got[numbers] == expected[numbers]).all()


def test_refusals():
    with pytest.raises(nc.CodecError, match="unknown name"):
        nc.Tensor("Q4", (1, 1))
    with pytest.raises(nc.CodecError, match="a dimension is zero"):
        nc.Tensor("Q4G64_F16S", (1, 0))
    with pytest.raises(nc.CodecError, match="no canonical encoder"):
        nc.Tensor("NVFP4", (128, 64)).quantize(np.zeros((128, 64), np.float32))
    with pytest.raises(nc.CodecError, match="no output of this type"):
        nc.Tensor("FP32", (2, 2)).decode(dtype=np.float16)
    tensor = nc.Tensor("Q4G64_F16S", (2, 2))
    with pytest.raises(nc.CodecError, match="row 9"):
        tensor.decode_rows([9])
    with pytest.raises(nc.CodecError, match="no rows"):
        tensor.gather([])
    with pytest.raises(nc.CodecError) as caught:
        tensor.quantize(np.array([[1, 2], [3, np.nan]], np.float32))
    assert (caught.value.details.row, caught.value.details.column) == (1, 1)
    assert nc.library().ninfer_codec_backend_name().decode() in ("portable", "avx2", "avx512", "neon")


if __name__ == "__main__":
    raise SystemExit(pytest.main([os.path.abspath(__file__)]))
