// ---- a grabbed point, and the spring that pulls it toward the pointer
//
// The spring fits what the point feels like: three trial steps with a unit force give W, the change of its acceleration
// per newton (3 x 3). With S, the inverse of W where the point can move and a small share of it elsewhere, the force
//     F = S (w^2 (target - x) - 2 w dx/dt)
// moves the point as a critically damped spring of rate w does, whatever the mechanism weighs. W S <= 1.25, so that
// steps of length h are stable as long as w h is small.

const PULL = 2 * Math.PI * 2.5; // rad/s
const SAG = 0.04; // of the mechanism's size: by how much weight may hold the point back
const SWIFT = 0.15; // largest rate times step
const REACH = 0.6; // of the mechanism's size: the spring is never longer
const SHUT = 0.05; // of the trace of W: directions that give less count as closed
const SIDEWAYS = 0.25; // share of the force in closed directions
const AGAIN = 0.05; // s of the run between two measurements

const rowsTimes = (m, x) => m.map((row) => dot(row, x));

function inverseOf(m) {
  const columns = [cross(m[1], m[2]), cross(m[2], m[0]), cross(m[0], m[1])];
  const determinant = dot(m[0], columns[0]);
  return [0, 1, 2].map((r) => columns.map((c) => c[r] / determinant));
}

// S of W; null where nothing moves
function spring(W) {
  const trace = W[0][0] + W[1][1] + W[2][2];
  if (!(trace > 0) || !Number.isFinite(trace)) return null;
  const even = W.map((row, i) => row.map((x, j) => (x + W[j][i]) / 2));
  const square = even.map((row, i) => even.map((other, j) => dot(row, other) + (i === j ? (SHUT * trace) ** 2 : 0)));
  const inverse = inverseOf(square);
  return inverse.map((row, i) => [0, 1, 2].map((j) => dot(row, even[j]) + (i === j ? SIDEWAYS / trace : 0)));
}

class Grab {
  // body: its number in the scene; input: where its six forces are; place: of the point in the world
  constructor(run, body, input, place, size, trial) {
    [this.run, this.body, this.input, this.size, this.trial] = [run, body, input, size, trial];
    const poses = run.kernel('poses');
    this.local = run.pointIn(poses, body, place);
    this.target = [...place];
    this.place = [...place];
    this.speed = [0, 0, 0];
    this.force = [0, 0, 0];
    this.rate = Math.min(Math.max(PULL, Math.sqrt(9.81 / (SAG * size))), SWIFT / run.h);
    this.S = null;
    this.measured = -Infinity;
  }

  // where the point is; from one step to the next that is its velocity
  follow(poses, moved) {
    const place = this.run.pointOf(poses, this.body, this.local);
    this.speed = moved ? scaled(1 / this.run.h, subtract(place, this.place)) : [0, 0, 0];
    this.place = place;
  }

  // F at the point and its moment about the body's origin, added to the inputs
  push(poses, force) {
    const k = this.run.poseAt(this.body);
    const arm = subtract(this.place, [poses[k + 3], poses[k + 7], poses[k + 11]]);
    cross(arm, force).forEach((x, i) => (this.run.inputs[this.input + i] += x));
    force.forEach((x, i) => (this.run.inputs[this.input + 3 + i] += x));
  }

  pull(poses) {
    if (!this.S) this.force = [0, 0, 0];
    else {
      let way = subtract(this.target, this.place);
      const far = lengthOf(way) / (REACH * this.size);
      if (far > 1) way = scaled(1 / far, way);
      const wanted = subtract(scaled(this.rate ** 2, way), scaled(2 * this.rate, this.speed));
      this.force = rowsTimes(this.S, wanted);
      if (!this.force.every(Number.isFinite)) this.force = [0, 0, 0];
    }
    this.push(poses, this.force);
  }

  // W from trial steps, after which everything is as it was
  measure(poses) {
    const { run } = this;
    const [saved, inputs] = [run.save(), run.inputs.slice()];
    const here = poses.slice(); // later poses take its place
    const places = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]].map((force) => {
      run.restore(saved);
      run.inputs.set(inputs);
      this.push(here, scaled(this.trial, force));
      const after = run.step() ? null : run.kernel('poses');
      return after && run.pointOf(after, this.body, this.local);
    });
    run.restore(saved);
    run.inputs.set(inputs);
    run.kernel('poses');
    this.measured = run.time;
    if (places.includes(null)) return;
    const per = 2 / (run.h ** 2 * this.trial);
    const columns = places.slice(1).map((x) => scaled(per, subtract(x, places[0])));
    this.S = spring([0, 1, 2].map((r) => columns.map((c) => c[r]))) || this.S;
  }
}

// all grabs of all fingers
class Grabs {
  constructor(run, size, trial) {
    [this.run, this.size, this.trial] = [run, size, trial];
    this.held = new Map(); // by pointer
    this.touched = new Set(); // places in the inputs that grabs write to
  }

  get any() {
    return this.held.size > 0;
  }

  add(pointer, body, input, place) {
    const grab = new Grab(this.run, body, input, place, this.size, this.trial);
    this.held.set(pointer, grab);
    for (let k = 0; k < 6; k++) this.touched.add(input + k);
    return grab;
  }

  release(pointer) {
    const found = this.held.delete(pointer);
    if (!this.any) this.clear();
    return found;
  }

  clear() {
    for (const k of this.touched) this.run.inputs[k] = 0;
  }

  // the inputs of the next step; moved: is the state one step after the last one?
  apply(moved) {
    if (!this.any) return;
    const { run } = this;
    const poses = run.kernel('poses');
    if (!poses) return;
    this.clear();
    for (const g of this.held.values()) g.follow(poses, moved);
    for (const g of this.held.values()) if (!(Math.abs(run.time - g.measured) < AGAIN)) g.measure(poses);
    for (const g of this.held.values()) g.pull(poses);
  }
}
