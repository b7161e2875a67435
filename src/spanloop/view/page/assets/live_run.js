// ---- one mechanism as WebAssembly: its arrays, its steps, and why a step was refused

const [LOST_STEP, HALTED_STEP, UNSOLVED_STEP] = [1, 2, 4];
const REFUSALS = [
  [HALTED_STEP, 'The mechanism has reached a singular position, where its accelerations are not unique'],
  [UNSOLVED_STEP, 'A step found no solution: the loops cannot be closed there, or the motion is too fast for the step length'],
  [LOST_STEP, 'A step left the range of numbers: the motion is too fast for the step length'],
];

// the first reason in the bits of a refused step
function refusal(status) {
  const found = REFUSALS.find(([bit]) => status & bit);
  return found ? found[1] : 'A step was refused';
}

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
  static async of(live) {
    const { instance } = await WebAssembly.instantiate(await unpackedGzip(live.wasm));
    return new WasmRun(live, instance.exports);
  }

  constructor(live, exports) {
    [this.live, this.exports, this.h] = [live, exports, live.step];
    this.numbers = new Float64Array(exports.memory.buffer);
    this.state = live.state.map((name) => this.view(name));
    this.rows = live.pose_rows || null;
    this.start = live.start_time || 0;
    for (const [name, values] of Object.entries(live.start)) this.view(name).set(values);
    this.inputs = this.has('u') ? this.view('u') : new Float64Array(0);
    this.count = 0;
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
    return this.start + this.count * this.h;
  }

  // one step: 0, or the bits that say why the state is still the one before
  step() {
    this.numbers[this.live.places.t] = this.time;
    this.numbers[this.live.places.h] = this.h;
    const status = this.exports.step();
    if (!status) this.count += 1;
    return status;
  }

  // loops closed anew, at the same time
  reclose() {
    this.numbers[this.live.places.t] = this.time;
    this.numbers[this.live.places.h] = 0;
    return this.exports.step();
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

  // the first of the 16 numbers, row by row, of a body's pose in array `poses`
  poseAt(body) {
    return 16 * (this.rows ? this.rows[body] : body);
  }

  // a point (3) of a body, in the world
  pointOf(poses, body, p) {
    const k = this.poseAt(body);
    return [0, 4, 8].map((r) => poses[k + r] * p[0] + poses[k + r + 1] * p[1] + poses[k + r + 2] * p[2] + poses[k + r + 3]);
  }

  // the same in the body's axes
  pointIn(poses, body, x) {
    const k = this.poseAt(body);
    const d = [3, 7, 11].map((c, i) => x[i] - poses[k + c]);
    return [0, 1, 2].map((c) => poses[k + c] * d[0] + poses[k + 4 + c] * d[1] + poses[k + 8 + c] * d[2]);
  }
}
