#!/usr/bin/env python3
"""Makes the hostile files: make.py [FOLDER], by default the folder it lies in. The same bytes on every machine."""

import json
import pathlib
import sys

MAGIC = b"NINFER\x00"
PAYLOADS = 4096
FAR = 2**64 - 256  # the last offset that is a multiple of 256

BIAS = '{"name":"bias","kind":"tensor","shape":[2],"format":"I32","layout":"contiguous-le-v1","offset":0,"bytes":8}'
RAW = '{"name":"raw","kind":"resource","encoding":"raw-bytes-v1","offset":8,"bytes":3}'


def altered(entry, *pairs):
    """An entry with texts replaced, each of which must be there."""
    for before, after in pairs:
        assert before in entry, before
        entry = entry.replace(before, after, 1)
    return entry


def tensor(**members):
    """BIAS with other members."""
    return json.dumps(json.loads(BIAS) | members, separators=(",", ":"))


def directory(*entries):
    return '{"identity":{"model_id":"m","weights_id":"w"},"objects":[' + ",".join(entries) + "]}"


def file(text, payload=b"", json_bytes=None, revision=2, padding=b"\0"):
    """A file around a directory text; it ends behind the directory if there is no payload."""
    text = text if isinstance(text, bytes) else text.encode()
    json_bytes = len(text) if json_bytes is None else json_bytes
    head = MAGIC + bytes([revision]) + json_bytes.to_bytes(8, "little") + text
    return head.ljust(PAYLOADS, padding) + payload if payload else head


def one(*pairs):
    """A file of one altered entry."""
    return file(directory(altered(BIAS, *pairs)))


GOOD = directory(BIAS)
WHOLE = file(directory(BIAS, RAW), bytes(11))

FILES = {
    # The header.
    "header-empty": b"",
    "header-cut-in-magic": WHOLE[:5],
    "header-cut-in-length": WHOLE[:12],
    "header-of-another-kind": (0x58).to_bytes(8, "little") + b'{"weight":{"dtype":"F32","shape":[1]}}',
    "revision-1": file(GOOD, revision=1),
    "revision-3": file(GOOD, revision=3),
    "revision-255": file(GOOD, revision=255),
    "directory-length-0": file(GOOD, json_bytes=0),
    "directory-length-one-too-much": file(GOOD, json_bytes=len(GOOD) + 1),
    "directory-length-4-gib": file(GOOD, json_bytes=2**32),
    "directory-length-2-to-62": file(GOOD, json_bytes=2**62),
    "directory-length-2-to-64": file(GOOD, json_bytes=2**64 - 1),
    "directory-cut": file(GOOD)[:100],
    # Its text.
    "text-byte-order-mark": file("\ufeff" + GOOD),
    "text-nul-inside": one(("bias", "bi\0as")),
    "text-nul-behind": file(GOOD + "\0"),
    "text-name-not-utf8": file(GOOD.encode().replace(b"bias", b"b\xffas")),
    "text-name-overlong-utf8": file(GOOD.encode().replace(b"bias", b"b\xc0\x80s")),
    "text-name-surrogate-in-utf8": file(GOOD.encode().replace(b"bias", b"b\xed\xa0\x80")),
    "text-lone-high-surrogate": one(("bias", r"\ud800")),
    "text-lone-low-surrogate": one(("bias", r"\udc00")),
    "text-surrogates-turned-round": one(("bias", r"\udc00\ud800")),
    "text-lone-surrogate-in-a-member": one(('"name"', r'"\ud800"')),
    "text-nested-arrays": file("[" * 400),
    "text-nested-objects": file('{"a":' * 80),
    "text-nested-in-a-shape": one(("[2]", "[" * 200 + "]" * 200)),
    "text-nested-in-an-unknown-member": one(("{", '{"x":[[[[]]]],')),
    "text-ends-early": file(GOOD[:-1]),
    "text-goes-on": file(GOOD + GOOD),
    "text-no-json": file("model m, weights w"),
    "text-line-break-in-a-name": one(("bias", "bi\nas")),
    # Its members.
    "members-twice": one(("{", '{"offset":0,')),
    "members-twice-escaped": one(("{", r'{"\u006fffset":256,')),
    "members-twice-kind": one(("{", '{"kind":"resource",')),
    "members-twice-name-escaped": one(("{", r'{"n\u0061me":"other",')),
    "members-twice-objects": file(altered(GOOD, ("{", '{"objects":[],'))),
    "members-twice-identity-escaped": file(altered(GOOD, ('{"model_id"', r'{"model\u005fid":"x","model_id"'))),
    "members-missing": one((',"bytes":8', "")),
    "members-missing-kind": one(('"kind":"tensor",', "")),
    "members-unknown": one(("{", '{"strides":[1],')),
    "members-unknown-with-line-breaks": one(("{", r'{"a\nb\u001b[2J":0,')),
    "members-of-another-kind": file(directory(altered(RAW, ("{", '{"shape":[3],')))),
    "objects-none": file(directory()),
    "objects-no-array": file(altered(GOOD, ("[{", '{"bias":{'), ("}]", "}}"))),
    "objects-null": file(directory("null")),
    "name-empty": one(("bias", "")),
    "name-twice": file(directory(BIAS, altered(RAW, ('"raw"', '"bias"')))),
    "name-twice-escaped": file(directory(BIAS, altered(RAW, ('"raw"', r'"b\u0069as"')))),
    "identity-empty": file(altered(GOOD, ('"m"', '""'))),
    # Its numbers.
    "integer-null": one(('"offset":0', '"offset":null')),
    "integer-true": one(('"offset":0', '"offset":true')),
    "integer-text": one(('"bytes":8', '"bytes":"8"')),
    "integer-negative": one(('"offset":0', '"offset":-256')),
    "integer-minus-zero": one(('"offset":0', '"offset":-0')),
    "integer-fraction": one(('"bytes":8', '"bytes":8.0')),
    "integer-exponent": one(('"bytes":8', '"bytes":1e999')),
    "integer-2-to-64": one(('"offset":0', f'"offset":{2**64}')),
    "integer-2-to-64-in-a-shape": one(("[2]", f"[{2**64}]")),
    # Kinds, formats, layouts, shapes.
    "unknown-kind": one(('"tensor"', '"sparse"')),
    "unknown-format": one(("I32", "Q8_0")),
    "unknown-format-near-miss": one(("I32", "INT32")),
    "unknown-format-with-nul": one(("I32", r"I32\u0000")),
    "unknown-layout": one(("le-v1", "le-v2")),
    "unknown-encoding": file(directory(altered(RAW, ("raw-bytes", "zip-bytes")))),
    "pair-refused": one(("contiguous-le-v1", "row-scale-v1")),
    "shape-rank-17": one(("[2]", f"[{','.join(['1'] * 16)},2]")),
    "shape-rank-3-of-a-matrix": file(directory(tensor(shape=[1, 2, 64], format="Q4G64_F16S", layout="row-split-k128-v1"))),
    "shape-zero": one(("[2]", "[0]")),
    "shape-product-overflows": one(("[2]", f"[{2**32},{2**32}]")),
    "shape-product-overflows-to-the-size": one(("[2]", f"[{2**63},2,{2**62},2]")),
    "shape-size-overflows": one(("[2]", f"[{2**62}]")),
    "shape-planes-overflow": file(
        directory(tensor(shape=[2**33, 2**31], format="Q6G64_F16S", layout="row-split-k128-v1"))
    ),
    "shape-padding-overflows": file(
        directory(tensor(shape=[1, 2**64 - 1], format="W8G32_F16S", layout="row-split-k128-v1"))
    ),
    "shape-no-whole-tiles": file(
        directory(tensor(shape=[100, 64], format="NVFP4", layout="blockscale-k16-m128x4-v1"))
    ),
    "size-one-short": one(('"bytes":8', '"bytes":7')),
    "size-one-long": one(('"bytes":8', '"bytes":9')),
    "size-2-to-64": one(('"bytes":8', f'"bytes":{2**64 - 1}')),
    "size-of-a-resource-0": file(directory(altered(RAW, ('"bytes":3', '"bytes":0')))),
    # Places. Names that are hard to print stand here too.
    "offset-misaligned": one(('"offset":0', '"offset":128')),
    "offset-near-2-to-64": one(('"offset":0', f'"offset":{FAR}')),
    "offset-and-size-pass-2-to-64": file(directory(altered(RAW, (":8", f":{2**64 - 2}")))),
    "offset-0-size-2-to-64": file(directory(altered(RAW, (":8", ":0"), (":3", f":{2**64 - 1}")))),
    "offset-of-a-name-with-line-breaks": one(("bias", r"b\n\r\u001b[2J\u202e\u0000as"), (":0", ":1")),
    "objects-overlap": file(directory(BIAS, altered(RAW, (":8", ":7"))), bytes(11)),
    "objects-fall": file(directory(RAW, BIAS), bytes(11)),
    "objects-lie-in-one-place": file(directory(BIAS, altered(BIAS, ("bias", "again"))), bytes(8)),
    "payload-missing": file(GOOD),
    "payload-cut": file(GOOD, bytes(7)),
    "payload-of-a-terabyte": file(
        directory(tensor(shape=[2**20, 2**18], format="FP32", layout="contiguous-le-v1", bytes=2**40))
    ),
    # Legal.
    "legal": WHOLE,
    "legal-bytes-behind-the-last-object": WHOLE + b"\xa5" * 40,
    "legal-bytes-before-the-payload": file(directory(BIAS, RAW), bytes(11), padding=b"\xa5"),
    "legal-bytes-between-objects": file(directory(BIAS, altered(RAW, (":8", ":20"))), bytes(8) + b"\xa5" * 15),
    "legal-name-with-u0000": file(directory(altered(BIAS, ("bias", r"\u0000"))), bytes(8)),
}


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent
    for stale in folder.glob("*.ninfer"):
        stale.unlink()
    for name, content in FILES.items():
        (folder / f"{name}.ninfer").write_bytes(content)
    print(f"{len(FILES)} files, {sum(map(len, FILES.values()))} bytes")


if __name__ == "__main__":
    main()
