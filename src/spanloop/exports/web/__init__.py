"""Functions and motions as WebAssembly: a module alone (.wasm), or inside an ES module (.mjs)."""
