// ---- one mechanism as WebAssembly: its arrays, its steps, and why a step was refused

const LOST = 1; // the bit of a status: the state has no next one
const FAST = 0.5; // rad or m of a coordinate in a step
const POSE = 12; // numbers of a pose: the rotation row by row, then the position

async function unpackedGzip(text) {
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).arrayBuffer();
}

// why this browser cannot run a live mechanism; '' if it can
function whyNotLive() {
  if (typeof WebAssembly !== 'object') return 'This browser has no WebAssembly, which a live mechanism needs.';
  if (typeof DecompressionStream !== 'function') return 'This browser has no DecompressionStream, which unpacks a live mechanism.';
  return '';
}

class WasmRun {
  // a promise of the run; refused with a sentence where it cannot be
  static async of(live) {
    if (whyNotLive()) throw new Error(whyNotLive());
    const { instance } = await WebAssembly.instantiate(await unpackedGzip(live.wasm));
    return new WasmRun(live, instance.exports);
  }

  constructor(live, exports) {
    [this.live, this.exports, this.h, this.count] = [live, exports, live.step, 0];
    this.numbers = new Float64Array(exports.memory.buffer);
    this.state = live.state.map((name) => this.view(name));
    for (const [name, values] of Object.entries(live.start)) this.view(name).set(values);
    this.inputs = this.view('u');
    const own = live.inputs.own;
    this.own = own.values ? { ...own, values: new Float64Array(bytesOf(own.values).buffer) } : null;
  }

  has(name) {
    return name in this.live.places;
  }

  // an array of the module, as it is now and will be
  view(name) {
    const at = this.live.places[name];
    return this.numbers.subarray(at, at + this.live.sizes[name]);
  }

  // back to the start; inputs and parameters stay as they are set
  reset() {
    this.live.state.forEach((name, k) => this.state[k].set(this.live.start[name]));
    this.count = 0;
  }

  get time() {
    return this.live.time + this.count * this.h;
  }

  // one step: 0, or the bits that say why the state is still the one before
  step() {
    this.prepare(this.h);
    const status = this.exports.step();
    if (!status) this.count += 1;
    return status;
  }

  // loops closed anew, at the same time
  reclose() {
    this.prepare(0);
    return this.exports.step();
  }

  // what the kernels read beside the state
  settle() {
    this.prepare(this.h);
    this.exports.begin();
  }

  prepare(h) {
    this.numbers[this.live.places.t] = this.time;
    this.numbers[this.live.places.h] = h;
    if (!this.own) return;
    const { first, count, rows, values } = this.own;
    const row = Math.min(this.count, rows - 1);
    this.inputs.set(values.subarray(row * count, (row + 1) * count), first);
  }

  // why a step was refused
  refusal(status) {
    const found = Object.entries(this.live.status).filter(([bit]) => status & Number(bit)).map(([, words]) => words);
    return (status & LOST && this.lostBy()) || found[0] || 'a step was refused';
  }

  // which of the causes of a state without a next one it is, as far as the arrays of the last step show; '' if they do not
  lostBy() {
    const { bounds } = this.live;
    const numbers = (name) => (this.has(name) ? [...this.view(name)] : []);
    const [margin] = numbers('margin');
    if (margin < bounds.singular) return `the position is singular: the loops lose rank here (margin ${margin.toExponential(1)})`;
    const fast = Math.max(...numbers('v').map(Math.abs), 0) * this.h > FAST ? '; the motion is too fast for the step' : '';
    const errors = numbers('error').map(Math.abs);
    if (!errors.every(Number.isFinite)) return `a number is no longer finite${fast}`;
    const worst = Math.max(...errors, 0);
    if (worst > bounds.open) return `a loop cannot be closed after this step: it stays open by ${worst.toExponential(1)} m or rad${fast}`;
    return fast && `a number grew too large${fast}`;
  }

  save() {
    return { count: this.count, arrays: this.state.map((x) => x.slice()) };
  }

  restore(saved) {
    this.count = saved.count;
    saved.arrays.forEach((x, k) => this.state[k].set(x));
  }

  // a kernel's numbers at the state now; null if the module has no such kernel or refuses this state
  kernel(name) {
    if (!this.exports[name] || this.exports[name]()) return null;
    return this.view(name);
  }

  // a point (3) of a body, in the world
  pointOf(poses, body, p) {
    const k = POSE * body;
    return [0, 1, 2].map((r) => poses[k + 3 * r] * p[0] + poses[k + 3 * r + 1] * p[1] + poses[k + 3 * r + 2] * p[2] + poses[k + 9 + r]);
  }

  // the same in the body's axes
  pointIn(poses, body, x) {
    const d = subtract(x, this.origin(poses, body));
    return [0, 1, 2].map((c) => [0, 1, 2].reduce((sum, r) => sum + poses[POSE * body + 3 * r + c] * d[r], 0));
  }

  origin(poses, body) {
    return [9, 10, 11].map((k) => poses[POSE * body + k]);
  }
}
