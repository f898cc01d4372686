// Runs the conformance module on every file of vectors: node wasm-conformance.mjs MODULE FOLDER

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { instantiate } from "./wasm-module.mjs";

const [modulePath, folder] = process.argv.slice(2);
const { memory, allocate, run, output, output_bytes } = instantiate(modulePath);

let passed = 0;
let failed = 0;
for (const file of readdirSync(folder).filter((name) => name.endsWith(".json")).sort()) {
  const text = readFileSync(join(folder, file));
  const at = allocate(text.length);
  new Uint8Array(memory.buffer, at, text.length).set(text);
  const counts = BigInt.asUintN(64, run(at, text.length));
  const failures = Number(counts >> 32n);
  passed += Number(counts & 0xffffffffn);
  failed += failures;
  if (failures > 0) {
    const said = new Uint8Array(memory.buffer, output(), output_bytes());
    console.log(`${file}: ${new TextDecoder().decode(said)}`);
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
