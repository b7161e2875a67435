/** Thrown where a state has no answer or a step fails; `status` has the bits of why. */
export class StateError extends Error {
  /** @param {string} message @param {number} status */
  constructor(message, status) {
    super(message);
    this.name = "StateError";
    this.status = status;
  }
}

const LABELS = { q: TABLE.model.coordinates, v: TABLE.model.dofs, a: TABLE.model.dofs, tau: TABLE.model.dofs };

/** Numbers of an array, with its size checked. */
function numbers(owner, name, x, size, labels) {
  if (x === undefined || x === null || typeof x.length !== "number") {
    throw new TypeError(`${owner}: ${name} is ${x === null ? "null" : typeof x}; expected an array of ${size} numbers`);
  }
  if (x.length !== size) throw new RangeError(`${owner}: ${name} has ${x.length} numbers; expected ${size}`);
  for (let k = 0; k < size; k++) {
    if (!Number.isFinite(x[k])) {
      const label = labels && labels[k] ? ` ('${labels[k].name}')` : "";
      throw new TypeError(`${owner}: ${name}[${k}]${label} is ${x[k]}; expected a finite number`);
    }
  }
  return x;
}

/** The sentences of a status. Where a guard or an angle is refused, NaN in the answer is no news. */
function reasons(texts, status) {
  const bits = Object.keys(texts).map(Number).filter((bit) => status & bit);
  const first = bits.length > 1 ? bits.filter((bit) => bit !== 1) : bits;
  return first.map((bit) => texts[bit]).join("; ") || `status ${status}`;
}

let compiled; // the module, compiled once

async function compile() {
  if (typeof WebAssembly === "undefined") throw new Error("there is no WebAssembly here; use a newer browser or node");
  if (typeof DecompressionStream === "undefined") {
    throw new Error("there is no DecompressionStream here; use node 18, Chrome 80, Firefox 113, Safari 16.4 or newer");
  }
  return WebAssembly.compile(await unpacked(atob(WASM)));
}

/** The bytes of a text that was packed by gzip. A loop and a plain reader start fastest. */
async function unpacked(text) {
  const packed = new Uint8Array(text.length);
  for (let k = 0; k < text.length; k++) packed[k] = text.charCodeAt(k);
  const { readable, writable } = new DecompressionStream("gzip");
  const writer = writable.getWriter();
  writer.write(packed);
  writer.close();
  const chunks = [];
  const reader = readable.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) chunks.push(part.value);
  const bytes = new Uint8Array(chunks.reduce((n, chunk) => n + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

/** An instance of the module: what all functions share. */
class Instance {
  constructor(instance) {
    this._exports = instance.exports;
    this._memory = new Float64Array(instance.exports.memory.buffer);
  }

  /** Call a function of the module; out: an array for the answer, or undefined for a new one. */
  _call(name, inputs, out) {
    const f = TABLE.functions[name];
    f.inputs.forEach((input, k) => {
      this._memory.set(numbers(name, input.name, inputs[k], input.size, LABELS[input.name]), input.place);
    });
    const { place, size } = f.answer;
    if (out !== undefined && out.length !== size) throw new RangeError(`${name}: out has ${out.length} numbers; expected ${size}`);
    const status = this._exports[name]();
    if (status) throw new StateError(`${name}: ${reasons(TABLE.status.functions, status)}`, status);
    const answer = this._memory.subarray(place, place + size);
    if (out === undefined) return answer.slice();
    for (let k = 0; k < size; k++) out[k] = answer[k];
    return out;
  }
}
