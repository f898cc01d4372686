// Runs the vectors of payloads through the C ABI: node wasm-c-abi.mjs MODULE HEADER FOLDER
//
// Every topic but `registry` and `words`, which are about names and single words.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { instantiate, parseExactly } from "./wasm-module.mjs";

const [modulePath, headerPath, folder] = process.argv.slice(2);
const exports = instantiate(modulePath);
const header = readFileSync(headerPath, "utf8");

// The header's constants, without their prefix.
const ids = Object.fromEntries(
  [...header.matchAll(/^#define NINFER_CODEC_(\w+) (\d+)u?$/gm)].map(([, name, value]) => [name, Number(value)]),
);
const statusNames = Object.fromEntries(
  Object.entries(ids).filter(([name]) => name.startsWith("STATUS_")).map(([name, id]) => [id, name.slice(7).toLowerCase()]),
);

const LAYOUT_OF = {
  "contiguous-le-v1": ids.LAYOUT_CONTIGUOUS_LE_V1,
  "row-split-k128-v1": ids.LAYOUT_ROW_SPLIT_K128_V1,
  "blockscale-k16-m128x4-v1": ids.LAYOUT_BLOCKSCALE_K16_M128X4_V1,
  "row-scale-v1": ids.LAYOUT_ROW_SCALE_V1,
};
const DIRECT = ["BF16", "FP32", "I32"];
const layoutName = (format) =>
  DIRECT.includes(format) ? "contiguous-le-v1"
  : format === "NVFP4" ? "blockscale-k16-m128x4-v1"
  : format === "FP8_E4M3FN_ROW_BF16S" ? "row-scale-v1"
  : "row-split-k128-v1";

// Memory of the module's: everything above its own data, taken anew for each case.
const PAGE = 65536;
const DIRTY = 0xa5;
let top = exports.__heap_base.value;
const ready = () => (top = exports.__heap_base.value);
function room(bytes, fill = DIRTY) {
  const at = (top + 15) & ~15;
  top = at + bytes;
  const missing = top - exports.memory.buffer.byteLength;
  if (missing > 0) exports.memory.grow(Math.ceil(missing / PAGE));
  new Uint8Array(exports.memory.buffer, at, bytes).fill(fill);
  return at;
}
function place(bytes) {
  const at = room(bytes.length);
  new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
  return at;
}
const read = (at, bytes) => Buffer.from(new Uint8Array(exports.memory.buffer, at, bytes));
const numbers = (list) => place(Buffer.from(new BigUint64Array(list.map(BigInt)).buffer));
const fromHex = (text) => Buffer.from(text, "hex");
const words = (list, digits) => Buffer.concat(list.map((word) => fromHex(word.padStart(digits, "0")).reverse()));
const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");
const FULL = 2n ** 64n - 1n;

// Where a struct's members lie, from its declaration in the header: all are of 4 or 8 bytes, without padding.
function membersOf(struct) {
  const body = new RegExp(`typedef struct ${struct} \\{([^]*?)\\n\\}`).exec(header)[1];
  const members = {};
  let bytes = 0;
  for (const [, bits, name] of body.matchAll(/^ +uint(32|64)_t (\w+);$/gm)) {
    members[name] = bytes;
    bytes += bits / 8;
  }
  return [members, bytes];
}
const [DETAILS, DETAILS_BYTES] = membersOf("ninfer_codec_details");
const [PLAN, PLAN_BYTES] = membersOf("ninfer_codec_plan");

let passed = 0;
let failed = 0;
function check(what, expected, got) {
  if (expected === got) {
    passed += 1;
  } else {
    failed += 1;
    console.log(`FAIL ${what}: expected ${String(expected).slice(0, 80)}, got ${String(got).slice(0, 80)}`);
  }
}

function tensor(format, shape, layout = layoutName(format)) {
  return [ids[`FORMAT_${format}`], LAYOUT_OF[layout], numbers(shape), BigInt(shape.length)];
}
const product = (shape) => shape.reduce((all, n) => all * n, 1);
const columnsOf = (shape) => (shape.length === 0 ? 1 : shape[shape.length - 1]);

// Calls a function with room for its details, and says what came of it.
function call(name, ...args) {
  const details = room(DETAILS_BYTES, 0);
  new DataView(exports.memory.buffer).setBigUint64(details, BigInt(DETAILS_BYTES), true);
  const status = exports[`ninfer_codec_${name}`](...args, details);
  const at = (member) => new DataView(exports.memory.buffer).getBigUint64(details + DETAILS[member], true);
  return { kind: statusNames[status], at };
}

function checkError(id, expected, got) {
  check(`${id} error.kind`, expected.kind, got.kind);
  for (const [member, name] of [["row", "row"], ["group", "group"], ["col", "column"], ["offset", "offset"]]) {
    const value = got.at(name);
    // A number that the vectors leave out, or that the status does not have, is not compared.
    if (expected[member] === undefined || value === FULL) continue;
    check(`${id} error.${member}`, BigInt(expected[member]), value);
  }
}

function validate(format, shape, payload) {
  const columns = BigInt(columnsOf(shape));
  const rows = BigInt(product(shape)) / columns;
  return call("tensor_validate", ...tensor(format, shape), place(payload), BigInt(payload.length), 0n, rows, 0n, columns);
}

function decoded(id, format, shape, payload, type, bytes) {
  const columns = columnsOf(shape);
  const elements = product(shape);
  const out = room(elements * bytes);
  const got = call(
    "tensor_decode", ...tensor(format, shape), place(payload), BigInt(payload.length), 0n,
    BigInt(elements / columns), 0n, BigInt(columns), type, out, BigInt(elements), BigInt(columns),
  );
  check(`${id} decode`, "ok", got.kind);
  return read(out, elements * bytes);
}

function packed(id, format, shape, codes, codesLength, scales, scalesLength, divisor, bytes) {
  const out = room(bytes);
  const got = call(
    "tensor_pack", ...tensor(format, shape), 0n, BigInt(product(shape) / columnsOf(shape)), place(codes),
    BigInt(codesLength), scalesLength ? place(scales) : 0, BigInt(scalesLength), divisor, out, BigInt(bytes),
  );
  check(`${id} pack`, "ok", got.kind);
  return read(out, bytes);
}

// The plan's member of each member of `geometry` that is one.
const GEOMETRY = {
  payload_bytes: "payload_bytes",
  alignment: "alignment",
  elements: "elements",
  k_pad: "padded_columns",
  groups_per_row: "physical_groups",
  logical_groups: "logical_groups",
  base_offset: "codes_offset",
  base_bytes: "codes_bytes",
  base_row_bytes: "codes_row_bytes",
  code_offset: "codes_offset",
  code_bytes: "codes_bytes",
  high_offset: "high_offset",
  high_bytes: "high_bytes",
  high_row_bytes: "high_row_bytes",
  scale_offset: "scales_offset",
  scale_bytes: "scales_bytes",
  scale_row_bytes: "scales_row_bytes",
  divisor_offset: "divisor_offset",
};

const topics = {
  canonical_encode({ cases }) {
    for (const { id, format, dtype, shape, source, payload, error } of cases) {
      ready();
      const types = { f32: [ids.VALUE_F32, 4], bf16: [ids.VALUE_BF16, 2], f16: [ids.VALUE_F16, 2], f64: [ids.VALUE_F64, 8] };
      const [type] = types[dtype];
      const [rows, columns] = shape;
      // As long as the plan says: written by hand, since the payload is not given where there is an error.
      const group = format === "W8G32_F16S" ? 32 : 64;
      const groups = (rows * Math.ceil(columns / 128) * 128) / group;
      const high = { Q5G64_F16S: 8, Q6G64_F16S: 16 }[format] ?? 0;
      const up = (n) => Math.ceil(n / 256) * 256;
      const bytes = up(groups * 32) + up(groups * high) + groups * 2;
      const out = room(bytes);
      const got = call(
        "tensor_quantize", ...tensor(format, shape), 0n, BigInt(rows), type, place(fromHex(source)),
        BigInt(rows * columns), BigInt(columns), out, BigInt(bytes),
      );
      if (error) checkError(id, error, got);
      else check(`${id} payload`, payload, read(out, bytes).toString("hex"));
    }
  },
  grouped_decode({ valid, invalid }) {
    for (const { id, format, shape, codes, scales, payload, f32 } of valid) {
      ready();
      const bytes = fromHex(payload);
      const out = packed(id, format, shape, Buffer.from(Int8Array.from(codes).buffer), codes.length, words(scales, 4), scales.length, 0, bytes.length);
      check(`${id} payload`, payload, out.toString("hex"));
      check(`${id} f32`, f32, decoded(id, format, shape, bytes, ids.VALUE_F32, 4).toString("hex"));
      check(`${id} validate`, "ok", validate(format, shape, bytes).kind);
    }
    for (const { id, format, shape, payload, error } of invalid) {
      ready();
      checkError(id, error, validate(format, shape, fromHex(payload)));
    }
  },
  fp8_row({ valid, invalid }) {
    const format = "FP8_E4M3FN_ROW_BF16S";
    for (const { id, shape, codes, scales, payload, f32 } of valid) {
      ready();
      const bytes = fromHex(payload);
      const out = packed(id, format, shape, fromHex(codes), codes.length / 2, words(scales, 4), scales.length, 0, bytes.length);
      check(`${id} payload`, payload, out.toString("hex"));
      check(`${id} f32`, f32, decoded(id, format, shape, bytes, ids.VALUE_F32, 4).toString("hex"));
      check(`${id} validate`, "ok", validate(format, shape, bytes).kind);
    }
    for (const { id, shape, payload, error } of invalid) {
      ready();
      checkError(id, error, validate(format, shape, fromHex(payload)));
    }
  },
  nvfp4({ valid, invalid }) {
    for (const { id, shape, codes, scales, divisor, payload_bytes, payload_sha256, f32_sha256, f64_sha256 } of valid) {
      ready();
      const out = packed(id, "NVFP4", shape, fromHex(codes), codes.length / 2, fromHex(scales), scales.length / 2, Number.parseInt(divisor, 16), payload_bytes);
      check(`${id} payload`, payload_sha256, sha256(out));
      check(`${id} f32`, f32_sha256, sha256(decoded(id, "NVFP4", shape, out, ids.VALUE_F32, 4)));
      check(`${id} f64`, f64_sha256, sha256(decoded(id, "NVFP4", shape, out, ids.VALUE_F64, 8)));
      check(`${id} validate`, "ok", validate("NVFP4", shape, out).kind);
    }
    for (const { id, base, patches, resize_to, error } of invalid) {
      ready();
      const parent = valid.find((entry) => entry.id === base);
      let bytes = fromHex(parent.payload);
      for (const { offset, hex } of patches) fromHex(hex).copy(bytes, offset);
      if (resize_to !== null && resize_to !== undefined) {
        bytes = Buffer.concat([bytes, Buffer.alloc(Math.max(0, resize_to - bytes.length))]).subarray(0, resize_to);
      }
      checkError(id, error, validate("NVFP4", parent.shape, bytes));
    }
  },
  direct({ valid, invalid }) {
    for (const { id, format, shape, words: list, payload } of valid) {
      ready();
      const bytes = fromHex(payload);
      const out = packed(id, format, shape, words(list, format === "BF16" ? 4 : 8), list.length, null, 0, 0, bytes.length);
      check(`${id} payload`, payload, out.toString("hex"));
      check(`${id} validate`, "ok", validate(format, shape, bytes).kind);
      if (format === "FP32") check(`${id} f32`, payload, decoded(id, format, shape, bytes, ids.VALUE_F32, 4).toString("hex"));
      if (format === "BF16") check(`${id} bf16`, payload, decoded(id, format, shape, bytes, ids.VALUE_BF16, 2).toString("hex"));
    }
    for (const { id, format, shape, payload, error } of invalid) {
      ready();
      checkError(id, error, validate(format, shape, fromHex(payload)));
    }
  },
  geometry({ cases }) {
    for (const { id, format, layout, shape, geometry, error } of cases) {
      ready();
      const plan = room(PLAN_BYTES, 0);
      new DataView(exports.memory.buffer).setBigUint64(plan, BigInt(PLAN_BYTES), true);
      const got = call("tensor_plan", ...tensor(format, shape, layout), plan);
      check(`${id} kind`, error ? error.kind : "ok", got.kind);
      if (error) continue;
      const at = (member) => new DataView(exports.memory.buffer).getBigUint64(plan + PLAN[member], true);
      for (const [name, member] of Object.entries(GEOMETRY)) {
        if (geometry[name] !== undefined) check(`${id} ${name}`, BigInt(geometry[name]), at(member));
      }
    }
  },
  rows({ parents, cases }) {
    for (const { id, parent, op, begin, count, rows, payload, error } of cases) {
      if (op === "view") continue; // spans, not payloads
      ready();
      const { format, layout, shape, payload: from } = parents.find((entry) => entry.id === parent);
      const bytes = fromHex(from);
      const out = room(payload ? payload.length / 2 : 0);
      const outBytes = BigInt(payload ? payload.length / 2 : 0);
      const source = [...tensor(format, shape, layout), place(bytes), BigInt(bytes.length)];
      const got =
        op === "slice"
          ? call("tensor_slice", ...source, BigInt(begin), BigInt(count), out, outBytes)
          : call("tensor_gather", ...source, rows.length ? numbers(rows) : 0, BigInt(rows.length), out, outBytes);
      if (error) checkError(id, error, got);
      else check(`${id} payload`, payload, read(out, payload.length / 2).toString("hex"));
    }
  },
};

for (const [topic, runTopic] of Object.entries(topics)) {
  runTopic(parseExactly(readFileSync(join(folder, `${topic}.json`), "utf8")));
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
