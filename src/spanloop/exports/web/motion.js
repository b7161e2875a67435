
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

  /**
   * Change the live parameters. Loops follow other lengths in stages, in the same assembly, and are closed afterwards.
   * Refused ones throw, and nothing changes.
   */
  set parameters(x) {
    const own = this._arrays.p;
    if (!own) throw new TypeError('motion: parameters are baked in; export with parameters="live"');
    const from = own.slice();
    const to = Float64Array.from(numbers("motion", "parameters", x, own.length, null));
    own.set(to);
    const status = this._exports.checkParameters();
    own.set(from);
    if (status) throw new StateError(`motion: parameters: ${reasons(TABLE.status.functions, status)}`, status);
    const before = this._copies(TABLE.motion.state);
    const failed = this._follow(from, to, before);
    if (!failed) return;
    own.set(from);
    this._restore(before);
    throw new StateError(`motion: parameters: ${this._whyNot(failed)}`, failed);
  }

  /** Go from parameters to others with the loops closed; the positions alone change. Returns 0, or a status. */
  _follow(from, to, before) {
    const { lengths, most, first, least } = TABLE.motion.stages;
    const { q } = before;
    const others = Object.fromEntries(Object.entries(before).filter(([n]) => n !== "q"));
    let share = lengths.some((k) => to[k] !== from[k]) ? first : 1;
    let last = q;
    for (let done = 0; done < 1; ) {
      const next = Math.min(1, done + share);
      this._arrays.p.set(next < 1 ? from.map((x, k) => x + next * (to[k] - x)) : to);
      const status = this._still();
      this._restore(others);
      if (!status && most.every((x, k) => Math.abs(this._arrays.q[k] - last[k]) <= x)) {
        last = this._arrays.q.slice();
        done = next;
        share = Math.max(share, Math.min(first, 2 * share));
        continue;
      }
      this._arrays.q.set(last);
      share /= 2;
      if (share < least) return status || 1;
    }
    for (let k = 0; TABLE.motion.closes && k < 2; k++) {
      const status = this._still(); // to rounding
      this._restore(others);
      if (status) return status;
    }
    return 0;
  }

  /** A step of length 0 with the inputs of the start, which closes the loops; returns its status. */
  _still() {
    const u = this.u.slice();
    this.u.set(TABLE.motion.start.u ?? []);
    this._clock(0);
    const status = this._exports.step();
    this.u.set(u);
    return status;
  }

  _restore(arrays) {
    for (const n of Object.keys(arrays)) this._arrays[n].set(arrays[n]);
  }

  /** Why a change of state or parameters failed. */
  _whyNot(status) {
    return reasons(TABLE.motion.closes && status & 1 ? TABLE.status.changes : TABLE.status.motion, status);
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

  /**
   * Put the mechanism elsewhere at the same time. Loops that are open by up to about 0.001 (rad, or of their length) are
   * closed; give closed states. What cannot be throws, and nothing changes.
   */
  setState(q, v = new Float64Array(TABLE.model.nv)) {
    if (!TABLE.motion.settable) throw new TypeError("motion: contacts or events carry more than q and v; use reset()");
    const { coordinates, dofs, nq, nv } = TABLE.model;
    const given = [numbers("motion", "q", q, nq, coordinates), numbers("motion", "v", v, nv, dofs)];
    const refused = this._refusedPosition(given[0]);
    if (refused) throw new StateError(`motion: q: ${TABLE.status.functions[refused]}`, refused);
    const before = this._copies(TABLE.motion.state);
    this._arrays.q.set(given[0]);
    this._arrays.v.set(given[1]);
    const status = this._still() || (TABLE.motion.closes ? this._still() : 0);
    if (status) {
      this._restore(before);
      throw new StateError(`motion: the state cannot be set: ${this._whyNot(status)}`, status);
    }
    for (const n of ["z", "loops"]) if (before[n]) this._arrays[n].set(before[n]);
  }

  /** Bits of what functions refuse of q: an angle beyond the sine's range, a quaternion off unit length; or 0. */
  _refusedPosition(q) {
    const { angles, quaternions } = TABLE.motion;
    if (angles.places.some((k) => Math.abs(q[k]) > angles.most)) return 4;
    const square = (k) => q[k] * q[k] + q[k + 1] * q[k + 1] + q[k + 2] * q[k + 2] + q[k + 3] * q[k + 3];
    return quaternions.places.some((k) => Math.abs(square(k) - 1) > 2 * quaternions.tolerance) ? 2 : 0;
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
