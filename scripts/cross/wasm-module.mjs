// A module that imports nothing, ready to be called.

import { readFileSync } from "node:fs";

export function instantiate(path) {
  const module = new WebAssembly.Module(readFileSync(path));
  const imports = WebAssembly.Module.imports(module);
  if (imports.length > 0) {
    console.log(`${path} imports ${imports.map(({ module, name }) => `${module}.${name}`).join(", ")}`);
    process.exit(1);
  }
  return new WebAssembly.Instance(module, {}).exports;
}

// JSON whose integers beyond 2^53 become BigInt.
export function parseExactly(text) {
  const marked = text.replace(/"(?:[^"\\]|\\.)*"|-?\d{16,}/g, (token) => (token[0] === '"' ? token : `"#${token}"`));
  return JSON.parse(marked, (_, value) =>
    typeof value === "string" && value[0] === "#" ? BigInt(value.slice(1)) : value,
  );
}
