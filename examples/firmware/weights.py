#!/usr/bin/env python3
"""Writes the C sources that place tensors of an artifact in flash: weights.py ARTIFACT FOLDER NAME...

The expected digest of a tensor's weights is computed here, from the contract and not with the codec.
"""

import json
import struct
import sys
import zlib
from pathlib import Path

MAGIC = b"NINFER\x00\x02"
PAYLOADS_ALIGNMENT = 4096
# Code bits and group of the grouped formats.
GROUPED = {"Q4G64_F16S": (4, 64), "Q5G64_F16S": (5, 64), "Q6G64_F16S": (6, 64), "W8G32_F16S": (8, 32)}
BASE_BYTES = 32  # of one group, whichever the format


def align_up(value, alignment):
    return (value + alignment - 1) // alignment * alignment


def read_artifact(path):
    """The tensors of an artifact by name, each with its payload."""
    data = path.read_bytes()
    if data[:8] != MAGIC:
        sys.exit(f"{path}: not an artifact of framing revision 2")
    (json_bytes,) = struct.unpack_from("<Q", data, 8)
    start = align_up(16 + json_bytes, PAYLOADS_ALIGNMENT)
    directory = json.loads(data[16 : 16 + json_bytes])
    return {
        tensor["name"]: tensor | {"payload": data[start + tensor["offset"] :][: tensor["bytes"]]}
        for tensor in directory["objects"]
        if tensor["kind"] == "tensor"
    }


def signed(word, bits):
    return word - (1 << bits) if word >> (bits - 1) else word


def group_codes(bits, base, high):
    """The codes of one group, from its base bytes and its high bits."""
    if bits == 8:
        return [signed(byte, 8) for byte in base]
    low = [nibble for byte in base for nibble in (byte & 15, byte >> 4)]
    extra = bits - 4
    high_word = int.from_bytes(high, "little")
    return [
        signed(nibble | (high_word >> (lane * extra) & ((1 << extra) - 1)) << 4, bits)
        for lane, nibble in enumerate(low)
    ]


def decode(tensor):
    """All weights as little-endian binary32 words, row by row. The products are exact: 11 bits by 8 at most."""
    bits, group = GROUPED[tensor["format"]]
    rows, columns = tensor["shape"]
    payload = tensor["payload"]
    groups = align_up(columns, 128) // group
    high_bytes = group * (bits - 4) // 8 if bits < 8 else 0
    high_offset = align_up(rows * groups * BASE_BYTES, 256)
    scale_offset = high_offset + align_up(rows * groups * high_bytes, 256)
    out = bytearray()
    for row in range(rows):
        weights = []
        for index in range(row * groups, (row + 1) * groups):
            base = payload[index * BASE_BYTES :][:BASE_BYTES]
            high = payload[high_offset + index * high_bytes :][:high_bytes]
            (scale,) = struct.unpack_from("<e", payload, scale_offset + index * 2)
            weights += [scale * code for code in group_codes(bits, base, high)]
        out += struct.pack(f"<{columns}f", *weights[:columns])
    return bytes(out)


def main():
    artifact, folder, *names = sys.argv[1:]
    tensors = read_artifact(Path(artifact))
    entries = []
    assembly = ["/* Made by weights.py. */", '.section .weights, "a"']
    declarations = []
    for index, name in enumerate(names):
        tensor = tensors[name]
        symbol = f"payload_{index}"
        file = Path(folder) / f"{symbol}.bin"
        file.write_bytes(tensor["payload"])
        rows, columns = tensor["shape"]
        # At an odd address: a payload needs no alignment.
        assembly += [".balign 4", ".byte 0", f".global {symbol}", f"{symbol}:", f'.incbin "{file.name}"']
        declarations.append(f"extern const uint8_t {symbol}[];")
        entries.append(
            f'    {{"{tensor["format"]} {name}", NINFER_CODEC_FORMAT_{tensor["format"]}, '
            f"NINFER_CODEC_LAYOUT_ROW_SPLIT_K128_V1, {rows}, {columns}, "
            f'{symbol}, {tensor["bytes"]}, 0x{zlib.crc32(decode(tensor)):08x}}},'
        )
    (Path(folder) / "weights.s").write_text("\n".join(assembly) + "\n")
    source = ["/* Made by weights.py. */", '#include "weights.h"', *declarations]
    source += ["const struct weights weights[WEIGHTS_COUNT] = {", *entries, "};"]
    (Path(folder) / "weights.c").write_text("\n".join(source) + "\n")


main()
