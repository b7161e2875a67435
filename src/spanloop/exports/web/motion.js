
/** The motion in steps of a fixed length. A step that fails throws, and leaves the state as it was. */
export class Motion {
  constructor(instance) {
    const { places, sizes } = TABLE.motion;
    this._exports = instance._exports;
    this._arrays = {};
    for (const n of Object.keys(places)) this._arrays[n] = instance._memory.subarray(places[n], places[n] + sizes[n]);
    /** @type {number} length of a step [s] */
    this.stepLength = TABLE.motion.step;
    /** @type {Array<{name: string, unit: string}>} what the inputs u are */
    this.inputs = TABLE.motion.inputs;
    this.reset();
  }

  /** Go back to the start: state, inputs, parameters, time. */
  reset() {
    for (const x of Object.values(this._arrays)) x.fill(0);
    for (const [n, x] of Object.entries(TABLE.motion.start)) this._arrays[n].set(x);
    this.steps = 0;
  }

  /** @returns {number} time [s] */
  get t() {
    return TABLE.motion.begins + this.steps * this.stepLength;
  }

  /** @returns {Float64Array} coordinates; a copy */
  get q() {
    return this._arrays.q.slice();
  }

  /** @returns {Float64Array} velocities, with the loops closed; a copy */
  get v() {
    if (!this._arrays["v.closed"]) return this._arrays.v.slice();
    this._clock(this.stepLength);
    this._exports.begin();
    return this._arrays["v.closed"].slice();
  }

  /** @returns {Float64Array} inputs of the next steps: write to its entries */
  get u() {
    return this._arrays.u ?? new Float64Array(0);
  }

  set u(x) {
    this.u.set(numbers("motion", "u", x, this.inputs.length, this.inputs));
  }

  /** @returns {Float64Array} memory of the controller; a copy */
  get z() {
    return (this._arrays.z ?? new Float64Array(0)).slice();
  }

  /** @returns {number} the largest closure error after any step so far [rad, or of the loop's length] */
  get closureError() {
    return this._arrays.loops ? this._arrays.loops[0] : 0;
  }

  /** @returns {Float64Array} live parameters (model.parameters.names); a copy */
  get parameters() {
    return (this._arrays.p ?? new Float64Array(0)).slice();
  }

  /** Change the live parameters from the next step on; refused ones throw, and nothing changes. */
  set parameters(x) {
    const own = this._arrays.p;
    if (!own) throw new TypeError('motion: parameters are baked in; export with parameters="live"');
    const before = own.slice();
    own.set(numbers("motion", "parameters", x, own.length, null));
    const status = this._exports.checkParameters();
    if (!status) return;
    own.set(before);
    throw new StateError(`motion: parameters: ${reasons(TABLE.status.functions, status)}`, status);
  }

  /** Move n steps. @param {number} [n] @returns {number} time there [s] */
  step(n = 1) {
    if (!Number.isInteger(n) || n < 0) throw new RangeError(`motion: step(${n}); expected a whole number of steps`);
    numbers("motion", "u", this.u, this.inputs.length, this.inputs);
    for (let k = 0; k < n; k++) {
      this._advance(this.stepLength);
      this.steps += 1;
    }
    return this.t;
  }

  /** Put the mechanism elsewhere at the same time; loops are closed from there. What cannot be throws. */
  setState(q, v = new Float64Array(TABLE.model.nv)) {
    if (!TABLE.motion.settable) throw new TypeError("motion: contacts or events carry more than q and v; use reset()");
    const { coordinates, dofs, nq, nv } = TABLE.model;
    const given = [numbers("motion", "q", q, nq, coordinates), numbers("motion", "v", v, nv, dofs)];
    const before = this._copies(TABLE.motion.state);
    this._arrays.q.set(given[0]);
    this._arrays.v.set(given[1]);
    this._advance(0, before);
    for (const n of ["z", "loops"]) if (before[n]) this._arrays[n].set(before[n]);
  }

  _copies(names) {
    return Object.fromEntries(names.map((n) => [n, this._arrays[n].slice()]));
  }

  _clock(length) {
    this._arrays.t[0] = this.t;
    this._arrays.h[0] = length;
    if (this._arrays.logged) this._arrays.logged[0] = 0;
  }

  _advance(length, before = TABLE.motion.changed.length ? this._copies(TABLE.motion.changed) : {}) {
    this._clock(length);
    const status = this._exports.step();
    if (!status) return;
    for (const n of Object.keys(before)) this._arrays[n].set(before[n]);
    throw new StateError(`motion at ${this.t} s: ${reasons(TABLE.status.motion, status)}`, status);
  }
}
