#!/usr/bin/env python3
"""Writes inputs made from the golden vectors, a folder a target: fuzz/seeds.py FOLDER

What the bytes mean is said by the targets; this script only puts them in that order.
"""

import json
import pathlib
import random
import struct
import sys

root = pathlib.Path(__file__).resolve().parent.parent
out = pathlib.Path(sys.argv[1])
FORMATS = ["BF16", "FP32", "I32", "Q4G64_F16S", "Q5G64_F16S", "Q6G64_F16S", "W8G32_F16S", "NVFP4",
           "FP8_E4M3FN_ROW_BF16S"]
LAYOUTS = ["contiguous-le-v1", "row-split-k128-v1", "blockscale-k16-m128x4-v1", "row-scale-v1"]
OWN_LAYOUT = [0, 0, 0, 1, 1, 1, 1, 2, 3]
SOURCES = {"f32": 0, "bf16": 1, "f16": 2, "f64": 3}
dice = random.Random(7)
written = 0


def vectors(topic):
    return json.loads((root / "tests" / "vectors" / f"{topic}.json").read_text())


def seed(target, *parts):
    global written
    data = b"".join(part if isinstance(part, bytes) else bytes(part) for part in parts)
    folder = out / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"seed-{written:04}").write_bytes(data)
    written += 1


def number(value):
    if value < 240:
        return bytes([value])
    if value < 1 << 16:
        return b"\xf0" + struct.pack("<H", value)
    return b"\xf6" + struct.pack("<Q", value)


def u16(value):
    return struct.pack("<H", value)


def plan_seeds():
    registry = vectors("registry")
    lists = [entries for entries in registry.values() if isinstance(entries, list)]
    names = [entry["name_hex"] for entries in lists for entry in entries if "name_hex" in entry]
    for index, name in enumerate(names):
        name = bytes.fromhex(name)[:63]
        seed("plan", [len(name), index % 12], name)
    for case in vectors("geometry")["cases"]:
        form = FORMATS.index(case["format"])
        layout = LAYOUTS.index(case["layout"])
        layout = 0 if layout == OWN_LAYOUT[form] else 200 + layout
        shape = case["shape"]
        rank = len(shape)
        dims = b"".join(number(size) for size in shape)
        rows = dice.choice([number(0) + bytes([0]), number(1) + bytes([200, 1]), number(2) + bytes([0])])
        seed("plan", [0, form + 1, form, layout, rank], dims, rows)


def arguments(output, count=3, how=0):
    """Ranges inside, a list of rows, an output type."""
    ranges = b"".join(number(dice.randrange(9)) for _ in range(4))
    rows = b"".join(number(dice.randrange(9)) for _ in range(6))
    return bytes([how]) + ranges + bytes([count]) + rows + bytes([output, dice.randrange(5)])


def shape_bytes(form, shape):
    if form == 7:
        return [0, 0, 0] if shape == [128, 64] else None
    if form < 3:
        if len(shape) == 1:
            first, columns = 1, shape[0]
        elif len(shape) == 2 and shape[0] <= 9:
            first, columns = 4 * (shape[0] - 1) + 2, shape[1]
        else:
            return None
        return [first, *u16(columns - 1)] if 0 < columns <= 300 else None
    if len(shape) != 2 or shape[0] > 9 or shape[1] > 600 or 0 in shape:
        return None
    return [shape[0] - 1, *u16(shape[1] - 1)]


def tensor_seeds():
    for topic, form in (("grouped_decode", None), ("direct", None), ("fp8_row", 8), ("nvfp4", 7)):
        file = vectors(topic)
        for section in ("valid", "invalid"):
            for case in file[section]:
                own = FORMATS.index(case["format"]) if "format" in case else form
                if not case.get("payload") or "shape" not in case:
                    continue
                shape = shape_bytes(own, case["shape"])
                payload = bytes.fromhex(case["payload"])
                if shape is None or len(payload) > 5000:
                    continue
                for output in (0, dice.randrange(1, 4)):
                    # A payload without the zeros at its end, which are put back.
                    seed("tensor", [own], shape, [0xff, 0], arguments(output), payload.rstrip(b"\0"))
    for form in range(9):
        for output in range(4):
            for patches in range(4):
                shape = [dice.randrange(256), *u16(dice.randrange(600))]
                # A legal payload; all operations, or some.
                filling = 2 | (4 if patches % 2 else 0)
                operations = 0xff if form != 7 else dice.choice([0x0f, 0x31, 0x6a, 0x98])
                how = 2 if form == 7 else 0
                patch = b"".join(u16(dice.randrange(700)) + bytes([dice.randrange(256)]) for _ in range(patches))
                seed("tensor", [form], shape, [operations, filling], arguments(output, patches, how),
                     u16(dice.randrange(1 << 16)), [patches], patch)


def quantize_seeds():
    for case in vectors("canonical_encode")["cases"]:
        rows, columns = case["shape"]
        if rows > 4 or columns > 320:
            continue
        source = bytes.fromhex(case["source"]).rstrip(b"\0")
        width = {"f64": 8, "f32": 4}.get(case["dtype"], 2)
        source = source.ljust(rows * columns * width, b"\0")
        if len(source) > 3000:
            continue
        seed("quantize", [FORMATS.index(case["format"]) - 3, SOURCES[case["dtype"]], rows - 1], u16(columns - 1),
             [dice.randrange(4) << 2], bytes(9), source)
    words = vectors("words")
    bits = {"f32": ("f32_to_f16", "f32", 4), "f64": ("f64_to_f32", "f64", 8), "bf16": ("bf16", "word", 2),
            "f16": ("f16", "word", 2)}
    for dtype, (section, member, width) in bits.items():
        list_of = [int(entry[member], 16).to_bytes(width, "little") for entry in words[section]]
        for begin in range(0, len(list_of), 40):
            some = list_of[begin:begin + 40]
            seed("quantize", [0, SOURCES[dtype], 0], u16(len(some) - 1), [1], bytes(9), b"".join(some))
    for form in range(4):
        for source in range(4):
            # Exponents near one another, so that codes of all sizes come.
            exponent = {0: 120, 1: 120, 2: 12, 3: 1020}[source]
            seed("quantize", [form, source, dice.randrange(4)], u16(dice.randrange(320)), [2],
                 struct.pack("<Q", exponent + dice.randrange(8)), [7], dice.randbytes(97))


def c_abi_seeds():
    for function in range(18):
        for form in range(9):
            for tail in range(3):
                shape = [dice.randrange(6), *u16(dice.randrange(200))]
                start = [dice.randrange(3), function, 0, 0]
                match function:
                    case 12:
                        middle = [2, 0, 1, 0, form, 0, 0, *shape]
                    case 4 | 9:
                        middle = [form + 1, dice.randrange(9), *u16(dice.randrange(200)), 0]
                    case 13 | 14:
                        middle = [dice.randrange(40), 0, dice.choice([0, 1, 2, 3, 204, 205, 206]), 0,
                                  dice.choice([0, 1, 2, 203])]
                    case 15 | 16:
                        middle = [dice.randrange(4), dice.randrange(12)]
                    case 17:
                        middle = [form]
                    case _:
                        middle = [form, 0, 0, *shape]
                rest = bytes(dice.randrange(100) for _ in range(dice.choice([0, 20, 60])))
                if tail == 0:
                    rest = bytes(8) + rest
                seed("c_abi", start, middle, rest)
    for source in (204, 205, 206):
        for out in (203, 0, 1):
            seed("c_abi", [0, 14, 0, 0, 5, 0, source, 0, out, 0, 0])


def artifact_seeds():
    def directory(objects, identity='{"model_id":"m","weights_id":"w"}'):
        return f'{{"identity":{identity},"objects":[{objects}]}}'.encode()

    def tensor(name="t", shape="[2,3]", form="BF16", layout=None, offset=0, size=12):
        layout = layout or LAYOUTS[OWN_LAYOUT[FORMATS.index(form)]]
        return (f'{{"name":"{name}","kind":"tensor","shape":{shape},"format":"{form}","layout":"{layout}",'
                f'"offset":{offset},"bytes":{size}}}')

    def resource(name="r", offset=0, size=5):
        return f'{{"name":"{name}","kind":"resource","encoding":"raw-bytes-v1","offset":{offset},"bytes":{size}}}'

    texts = [
        directory(tensor()), directory(resource()), directory(tensor() + "," + resource(offset=12)),
        directory(tensor(form="Q5G64_F16S", shape="[2,130]", size=528)),
        directory(tensor(form="NVFP4", shape="[128,64]", size=4612)),
        directory(tensor(form="FP8_E4M3FN_ROW_BF16S", shape="[2,3]", size=260)),
        directory(resource() + "," + resource()), directory(resource() + "," + resource("s", offset=3)),
        directory(tensor(offset=8)), directory(resource(size=0)), directory(""), directory(tensor(name="")),
        directory(tensor(shape="[0]")), directory(tensor(shape="2")), directory(tensor(shape="[-1]")),
        directory(tensor(shape="[18446744073709551615,2]")), directory(tensor(form="BF16", layout="row-scale-v1")),
        directory(tensor(size=13)), directory(resource(offset=18446744073709551615)), b"\xef\xbb\xbf{}", b"{}", b"[]",
        b"null", b"{", b"\xff", b"{\0}", directory("[[[[[[1]]]]]]"), directory("1.5"), directory("true,null"),
        directory(tensor().replace('"kind"', '"k\\u0069nd":"tensor","kind"')),
        directory(tensor().replace('"name":"t"', '"name":"\\ud800"')), directory(tensor(), '{"model_id":""}'),
        directory(tensor(), '{"model_id":"a","weights_id":"b","more":1}'),
        directory(resource().replace("raw-bytes-v1", "zip")), directory(tensor().replace('"tensor"', '"other"')),
        directory(tensor().replace('"bytes":12', '"bytes":12.0')), directory(tensor().replace(',"bytes":12', '')),
    ]
    for text in texts:
        seed("artifact", [1], u16(5000), text)
    for length, revision in ((0, 2), (20, 2), (1 << 63, 2), (5, 3), (5, 0)):
        seed("artifact", [2], number(length), u16(300), [revision], b"{}")
    seed("artifact", [2], number(2), u16(9), [2], b"{}")
    seed("artifact", [0], b"not an artifact, but long enough")
    for places in (b"", bytes([2, 1, 0, 3, 0, 1, 0, 3, 0]), bytes([1, 0, 0, 3, 0, 0, 0, 3, 0])):
        seed("artifact", [129], u16(5000), places)
    for form in range(9):
        seed("artifact", [3, 1], b"m", [1], b"w", [3, 1], b"a", [200, form, 0, 2, 9, 2], b"bc", [50, 7, 1], b"d",
             [100, form, 181, 3, 4], dice.randbytes(40))


def checkpoint_seeds():
    def entry(name, dtype, shape, begin, end):
        return f'"{name}":{{"dtype":"{dtype}","shape":{json.dumps(shape)},"data_offsets":[{begin},{end}]}}'

    def file(*entries, data=0, wrong=0):
        text = ("{" + ",".join(entries) + "}").encode()
        return bytes([wrong]) + u16(len(text)) + u16(data) + b"\x3c" + text

    one = file(entry("w", "F32", [2, 3], 0, 24), data=24)
    other = file(entry("v", "BF16", [4], 0, 8), data=8)
    nvfp4 = file(entry("l.weight_packed", "U8", [2, 32], 0, 64), entry("l.weight_scale", "F8_E4M3", [2, 4], 64, 72),
                 entry("l.weight_global_scale", "F32", [1], 72, 76), data=76)
    fp8 = file(entry("l.weight", "F8_E4M3", [2, 8], 0, 16), entry("l.weight_scale", "BF16", [2, 1], 16, 20), data=20)
    texts = [
        one, other, nvfp4, fp8, file(), file(entry("w", "F32", [2, 3], 0, 23), data=23),
        file(entry("w", "F32", [2, 3], 4, 28), data=28), file(entry("w", "X9", [1], 0, 1), data=1),
        file(entry("w", "F64", [4294967296, 4294967296], 0, 0)), file(entry("w", "F32", [0], 0, 0)), one[:20],
        file('"__metadata__":{"a":"b"}', entry("w", "I64", [], 0, 8), data=8),
        file(entry("l.weight_packed", "U8", [2, 32], 0, 64), data=64),
        file(entry("l.weight_packed", "I8", [2, 32], 0, 64), entry("l.weight_scale", "F8_E4M3", [2, 4], 64, 72),
             entry("l.weight_global_scale", "F32", [1], 72, 76), data=76),
        file(entry("l.weight", "F8_E4M3", [2, 8], 0, 16), entry("l.weight_scale", "F16", [2, 1], 16, 20), data=20),
        file(entry("l.weight", "F8_E4M3", [2, 8], 0, 16), data=16),
        file(entry("l.weight", "F8_E4M3", [2, 8], 0, 16), entry("l.weight_scale", "F32", [2], 16, 24),
             entry("l.weight_zero_point", "U8", [1], 24, 25), data=25),
        file(entry("l.weight_scale_2", "F32", [1], 0, 4), data=4),
        file(*[entry(f"t{index}", kind, [8], index * 64, index * 64 + 8 * size) for index, (kind, size) in
               enumerate([("BOOL", 1), ("U8", 1)])], data=72),
    ]
    for text in texts:
        seed("checkpoint", [1], text)
    for kind, size in (("BOOL", 1), ("U8", 1), ("I8", 1), ("U16", 2), ("I16", 2), ("F16", 2), ("BF16", 2),
                       ("U32", 4), ("I32", 4), ("F32", 4), ("U64", 8), ("I64", 8), ("F64", 8), ("F8_E5M2", 1)):
        seed("checkpoint", [1], file(entry("a.t", kind, [3, 2], 0, 6 * size), data=6 * size))
    for index in ('{"weight_map":{"w":"a.safetensors","v":"b.safetensors"}}', '{"weight_map":{"w":"b.safetensors"}}',
                  '{"weight_map":{"w":"../a.safetensors"}}', '{"weight_map":{}}', '{}', '[', '{"weight_map":{"w":1}}',
                  '{"weight_map":{"w":"c.safetensors"}}', '{"weight_map":{"v":"b.safetensors"}}'):
        for how in (2, 3):
            seed("checkpoint", [how], u16(len(index)), index.encode(), u16(len(one)), one, other)
    seed("checkpoint", [4], u16(len(one)), one, other)
    seed("checkpoint", [4], u16(len(one)), one, one)
    seed("checkpoint", [5], u16(len(nvfp4)), nvfp4, fp8)
    seed("checkpoint", [0], b"\x02\0\0\0\0\0\0\0{}")
    seed("checkpoint", [0], b"\xff\xff\xff\xff\xff\xff\xff\xff{}")


def large_seeds():
    for form in range(9):
        for operation in range(9):
            columns = dice.choice([1, 63, 127, 200, 4095, 8191]) + dice.randrange(3)
            seed("large", [operation % 2, form, operation], u16(columns), [dice.randrange(64), dice.choice([0, 200])],
                 [0, *dice.randbytes(70)])


for make in (plan_seeds, tensor_seeds, quantize_seeds, c_abi_seeds, artifact_seeds, checkpoint_seeds, large_seeds):
    make()
print(f"{written} inputs in {out}")
