// ---- a grabbed point, and the spring that pulls it toward the pointer
//
// The spring fits what the point feels like: trial steps with a force along each axis give W (3 x 3), the change of its
// acceleration per newton. Along each principal axis of W, with its value a, the force is
//     F = w^2 a / (a^2 + d^2) (target - x) - 2 w / sqrt(a^2 + d^2) dx/dt
// With a large against d the point moves as a critically damped spring of rate w does, whatever the mechanism weighs;
// where it can hardly move (a small, as at a dead centre) the force stays bounded and the damping ratio is the same.
// Steps of length h are stable: w h is small.

const PULL = 2 * Math.PI * 2.5; // rad/s
const SAG = 0.04; // of the mechanism's size: by how much weight may hold the point back
const SWIFT = 0.15; // largest rate times step
const REACH = 0.12; // of the mechanism's size: the spring pulls no more than at this length
const SHUT = 0.12; // d as a share of the trace of W
const HEAVIEST = 2.5; // masses of the mechanism: 1 / d at most
const SIDEWAYS = 0.2; // a force along closed directions too, as a share
const AGAIN = 0.02; // s of the run between two measurements

// values and directions of the principal axes of a symmetric 3 x 3 matrix, by Jacobi's rotations
function principal(matrix) {
  const m = matrix.map((row) => [...row]);
  const axes = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
  for (let sweep = 0; sweep < 8; sweep++)
    for (const [p, q] of [[0, 1], [0, 2], [1, 2]]) {
      if (!m[p][q]) continue;
      const angle = 0.5 * Math.atan2(2 * m[p][q], m[p][p] - m[q][q]);
      const [c, s] = [Math.cos(angle), Math.sin(angle)];
      const turn = (a, b) => [c * a + s * b, c * b - s * a];
      for (const row of m) [row[p], row[q]] = turn(row[p], row[q]);
      [m[p], m[q]] = [0, 1].map((k) => m[p].map((x, i) => turn(x, m[q][i])[k]));
      [axes[p], axes[q]] = [0, 1].map((k) => axes[p].map((x, i) => turn(x, axes[q][i])[k]));
    }
  return axes.map((axis, k) => ({ axis, value: m[k][k] }));
}

// stiffness and damping along the principal axes of W; mass: of the whole mechanism; null if W has a number that is none
function spring(W, rate, mass) {
  if (!W.flat().every(Number.isFinite)) return null;
  const trace = Math.max(W[0][0] + W[1][1] + W[2][2], 1 / (HEAVIEST * mass));
  const shut = Math.max(SHUT * trace, 1 / (HEAVIEST * mass));
  return principal(W.map((row, i) => row.map((x, j) => (x + W[j][i]) / 2))).map(({ axis, value }) => {
    const [a, size] = [Math.max(value, 0), value ** 2 + shut ** 2];
    return { axis, stiffness: rate ** 2 * (a / size + SIDEWAYS / trace), damping: (2 * rate) / Math.sqrt(size) };
  });
}

class Grab {
  // body: its number in the scene; input: where its six forces are; about: whose origin they act at; place: of the point
  constructor(run, body, { place: input, about }, place, size, mass) {
    Object.assign(this, { run, body, input, about, size, mass });
    const poses = run.kernel('poses');
    this.local = run.pointIn(poses, body, place);
    this.target = [...place];
    this.place = [...place];
    this.speed = [0, 0, 0];
    this.force = [0, 0, 0];
    this.rate = Math.min(Math.max(PULL, Math.sqrt(9.81 / (SAG * size))), SWIFT / run.h);
    this.spring = null;
    this.measured = -Infinity;
  }

  // where the point is; from one step to the next that is its velocity
  follow(poses, moved) {
    const place = this.run.pointOf(poses, this.body, this.local);
    this.speed = moved ? scaled(1 / this.run.h, subtract(place, this.place)) : [0, 0, 0];
    this.place = place;
  }

  // F at the point and its moment about the origin of the body that takes it, added to the inputs
  push(poses, force) {
    const arm = subtract(this.place, this.run.origin(poses, this.about));
    cross(arm, force).forEach((x, i) => (this.run.inputs[this.input + i] += x));
    force.forEach((x, i) => (this.run.inputs[this.input + 3 + i] += x));
  }

  pull(poses) {
    let way = subtract(this.target, this.place);
    const far = lengthOf(way) / (REACH * this.size);
    if (far > 1) way = scaled(1 / far, way);
    const along = ({ axis, stiffness, damping }) => scaled(stiffness * dot(axis, way) - damping * dot(axis, this.speed), axis);
    this.force = (this.spring || []).reduce((sum, s) => add(sum, along(s)), [0, 0, 0]);
    if (!this.force.every(Number.isFinite)) this.force = [0, 0, 0];
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
      this.push(here, scaled(this.mass, force));
      const after = run.step() ? null : run.kernel('poses');
      return after && run.pointOf(after, this.body, this.local);
    });
    run.restore(saved);
    run.inputs.set(inputs);
    run.kernel('poses');
    this.measured = run.time;
    if (places.includes(null)) return;
    const per = 2 / (run.h ** 2 * this.mass);
    const columns = places.slice(1).map((x) => scaled(per, subtract(x, places[0])));
    this.spring = spring([0, 1, 2].map((r) => columns.map((c) => c[r])), this.rate, this.mass) || this.spring;
  }
}

// all grabs of all fingers
class Grabs {
  constructor(run, size, mass) {
    [this.run, this.size, this.mass] = [run, size, mass];
    this.held = new Map(); // by pointer
    this.touched = new Set(); // places in the inputs that grabs write to
  }

  get any() {
    return this.held.size > 0;
  }

  add(pointer, body, at, place) {
    const grab = new Grab(this.run, body, at, place, this.size, this.mass);
    this.held.set(pointer, grab);
    for (let k = 0; k < 6; k++) this.touched.add(at.place + k);
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
