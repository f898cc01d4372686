#!/usr/bin/env bash
# Builds the firmware for a board, runs it under qemu and measures it: build.sh mps2-an386 | microbit | sifive_e
#
# The weights come from the bundled checkpoint slice, packed by the tool. The run is repeated with one bit of the
# weights turned over: then it must fail.
set -euo pipefail
cd "$(dirname "$0")/../.."
firmware=examples/firmware
board=$1
case $board in
    mps2-an386)
        target=thumbv7em-none-eabi start=cortex-m
        gcc=arm-none-eabi- machine=(-mcpu=cortex-m4 -mthumb -mfloat-abi=soft)
        qemu=(arm -machine mps2-an386 -cpu cortex-m4)
        ;;
    microbit)
        target=thumbv6m-none-eabi start=cortex-m
        gcc=arm-none-eabi- machine=(-mcpu=cortex-m0 -mthumb -mfloat-abi=soft)
        qemu=(arm -machine microbit)
        ;;
    sifive_e)
        target=riscv32imac-unknown-none-elf start=riscv
        gcc=riscv64-unknown-elf- machine=(-march=rv32imac_zicsr -mabi=ilp32 -mcmodel=medany)
        qemu=(riscv32 -machine sifive_e -bios none)
        ;;
    *)
        echo "usage: build.sh mps2-an386 | microbit | sifive_e"
        exit 2
        ;;
esac
out=target/firmware/$board
mkdir -p "$out"

archive=$(scripts/cross/archive.sh "$target")

# Two real matrices: K = 384 in four bits, K = 1536 in eight.
first=encoder.layer.0.attention.self.query.weight
second=encoder.layer.0.output.dense.weight
rm -f "$out"/weights.ninfer*
cargo run --quiet --example ninfer -- pack --quiet examples/data/minilm-slice.safetensors \
    --assign "$first=Q4G64_F16S" --assign "$second=W8G32_F16S" \
    --skip '{embeddings,pooler}*' --skip '*{intermediate,LayerNorm}*' -o "$out/weights.ninfer"
"$firmware/weights.py" "$out/weights.ninfer" "$out" "$first" "$second"

link() {
    "${gcc}gcc" "${machine[@]}" -std=c11 -Os -ffreestanding -fno-tree-loop-distribute-patterns -ffunction-sections \
        -Wall -Wextra -Werror -pedantic -Iinclude "-I$firmware" "-Wa,-I$out" \
        "$firmware"/{main,board,stack,"boards/$start"}.c "$out"/weights.{c,s} "$archive" \
        -nostdlib -static -Wl,--gc-sections -Wl,-z,noexecstack -Wl,-T,"$board.ld" "-L$firmware/boards" -o "$1"
}
run() {
    timeout 120 scripts/cross/qemu-system.sh "${qemu[@]}" -display none -monitor none -serial none \
        -semihosting-config enable=on,target=native -kernel "$1" 2>&1
}

link "$out/firmware.elf"
run "$out/firmware.elf"

# One bit of the last code of the first matrix: still a legal payload, of other weights.
cp "$out/payload_0.bin" "$out/payload_0.right"
python3 - "$out/payload_0.bin" <<'PYTHON'
import sys
path = sys.argv[1]
data = bytearray(open(path, "rb").read())
data[384 * 384 // 2 - 1] ^= 0x10
open(path, "wb").write(data)
PYTHON
link "$out/broken.elf"
mv "$out/payload_0.right" "$out/payload_0.bin"
if run "$out/broken.elf" >"$out/broken.log"; then
    echo "a bit turned over in the weights went unseen"
    exit 1
fi
grep -q '^1 passed, 1 failed$' "$out/broken.log"

# What the codec and the program take, the weights apart.
"${gcc}size" -A "$out/firmware.elf" | awk '
    $1 ~ /^\.(vectors|text|rodata)$/ { text += $2 }
    $1 == ".data" { data = $2 }
    $1 == ".bss" { bss = $2 }
    $1 == ".weights" { weights = $2 }
    END { printf "text %d, data %d, bss %d, weights %d bytes\n", text, data, bss, weights }'
