// ---- the stage of a live run: poses, trails, loops and grabs as they are now

const TRAIL_PARTS = 240; // of a trail
const PART = 54; // numbers of one: six corners with three vectors
const PULLED = '#ff2e88'; // the colour of a pull
const TRAIL_GAP = 1 / 60; // s between two points

SHADERS.distance = [ // how far the nearest surface is from the eye, in three bytes
  `#version 300 es
  layout(location = 0) in vec3 position; uniform mat4 seen, model; out vec3 w;
  void main() { vec4 p = model * vec4(position, 1.0); w = p.xyz; gl_Position = seen * p; }`,
  `#version 300 es
  precision highp float; in vec3 w; uniform vec3 eye; uniform float far; out vec4 shown;
  void main() {
    vec3 d = fract(clamp(length(w - eye) / far, 0.0, 0.999999) * vec3(1.0, 255.0, 65025.0));
    shown = vec4(d - d.yzz * vec3(1.0 / 255.0, 1.0 / 255.0, 0.0), 1.0);
  }`,
];

function inverseOf(m) {
  const columns = [cross(m[1], m[2]), cross(m[2], m[0]), cross(m[0], m[1])];
  const determinant = dot(m[0], columns[0]);
  return [0, 1, 2].map((r) => columns.map((c) => c[r] / determinant));
}

// numbers of an object, written over from an offset on
function rewrite({ gl }, object, offset, numbers) {
  gl.bindBuffer(gl.ARRAY_BUFFER, object.buffer);
  gl.bufferSubData(gl.ARRAY_BUFFER, 4 * offset, numbers);
}

// the direction from the eye through a place of the picture, x and y from 0 to 1
function rayOf(camera, x, y, aspect) {
  const z = unit(subtract(camera.eye(), camera.center()));
  const right = unit(cross([0, 0, 1], z));
  const up = Math.tan(LENS / 2);
  return unit(add(scaled(-1, z), add(scaled((2 * x - 1) * up * aspect, right), scaled((1 - 2 * y) * up, cross(z, right)))));
}

class LiveStage extends Stage {
  // run: the mechanism that moves; null while the recorded run is shown
  follow(run) {
    this.run = run;
    this.recorded = this.recorded || {
      arrows: this.arrows, trails: this.trails, strongest: this.strongest, closures: this.closures, names: this.contacts.names,
    };
    const { names, ...parts } = this.recorded;
    Object.assign(this, parts);
    this.contacts.names = run ? [] : names;
    this.travel = [0, 0, 0];
    for (const x of this.lengths || []) x.joint.at.splice(12, 3, ...x.joint.first);
    if (!run) return;
    const loops = run.live.kernels.closure ? run.live.kernels.closure.loops : [];
    this.rows = new Map(loops.map((x) => [x.name, x]));
    this.closures = this.closures.filter((c, k, all) => this.rows.has(c.name) && all.findIndex((x) => x.name === c.name) === k);
    this.arrows = [];
    this.stretched = new Map();
    this.lengths = run.live.parameters.map((x) => this.length(x)).filter(Boolean);
    this.trails = this.followed().map((at) => this.emptyTrail(at));
  }

  move(time) {
    if (!this.run) return super.move(time);
    this.run.settle();
    const poses = this.run.kernel('poses');
    if (!poses) return; // the picture stays at the last state
    this.time = this.run.time;
    [this.nearest, this.index, this.share, this.segment] = [0, 0, 0, 0];
    this.placeAll(poses);
    this.lengths.forEach((x) => x.changed() && this.stretch(x.joint.parent));
    this.errors = this.run.kernel('closure');
    this.worst = this.errors ? this.errors.reduce((a, x) => Math.max(a, Math.abs(x)), 0) : 0;
    this.trails.forEach((t) => this.grow(t));
    this.keepInSight();
  }

  // the matrices of all bodies
  placeAll(poses = this.run.kernel('poses')) {
    if (poses) this.at.forEach((m, k) => {
      const i = POSE * k;
      for (let r = 0; r < 3; r++) {
        for (let c = 0; c < 3; c++) m[4 * c + r] = poses[i + 3 * r + c];
        m[12 + r] = poses[i + 9 + r];
      }
      m[3] = m[7] = m[11] = 0;
      m[15] = 1;
    });
  }

  error(closure) {
    if (!this.run) return super.error(closure);
    const rows = this.rows.get(closure.name);
    return this.errors && rows ? this.errors.subarray(rows.first, rows.first + rows.count).reduce((a, x) => Math.max(a, Math.abs(x)), 0) : 0;
  }

  // segments of flexible bodies are picked by themselves
  owner(k) {
    return this.picking ? k : super.owner(k);
  }

  // a live run has all bodies, and the loops of the model alone
  within(segments, segment) {
    return this.run ? true : super.within(segments, segment);
  }

  holdsNow() {
    return this.run ? [] : super.holdsNow();
  }

  drawMoments(lit) {
    if (!this.run) super.drawMoments(lit);
  }

  // ---- lengths: bodies whose joints have moved are drawn stretched

  modelOf(k) {
    const own = this.run && this.stretched.get(k);
    return own ? product(this.at[k], own) : this.at[k];
  }

  // the joint that a parameter moves on its carrier, if it is of that kind
  length({ name, place }) {
    const parts = name.match(/^(.*)\.position\.([xyz])$/);
    const joint = parts && this.data.joints.find((j) => j.name === parts[1]);
    if (!joint) return null;
    const k = 12 + 'xyz'.indexOf(parts[2]);
    joint.first = joint.first || joint.at.slice(12, 15);
    const changed = () => {
      const now = this.run.view('p')[place];
      if (joint.at[k] === now) return false;
      joint.at[k] = now;
      return true;
    };
    return { joint, changed };
  }

  // the linear map that takes the ends of a body from where they were to where they are, and moves little else
  stretch(body) {
    const ends = this.data.joints.filter((j) => j.parent === body).map((j) => [j.first || j.at.slice(12, 15), j.at.slice(12, 15)]);
    for (const c of this.data.closures)
      for (const [k, at] of [[c.a, c.at_a], [c.b, c.at_b]]) if (k === body) ends.push([at.slice(12, 15), at.slice(12, 15)]);
    const sum = (f) => [0, 1, 2].map((r) => [0, 1, 2].map((c) => ends.reduce((x, end) => x + f(end, r, c), 0)));
    const squares = inverseOf(sum(([p], r, c) => p[r] * p[c]).map((row, r) => row.map((x, c) => x + (r === c ? 1e-8 * this.data.size ** 2 : 0))));
    const ways = sum(([p, now], r, c) => (now[r] - p[r]) * p[c]);
    const column = (c) => [0, 1, 2].map((r) => (r === c ? 1 : 0) + dot(ways[r], [0, 1, 2].map((i) => squares[i][c])));
    this.stretched.set(body, frameOf(column(0), column(1), column(2), [0, 0, 0]));
  }

  // ---- trails: a ring of parts, the oldest is written over

  emptyTrail({ body, at }) {
    const object = this.drawing.object(new Float32Array(TRAIL_PARTS * PART));
    return { ...object, body, at, next: 0, before: null, time: -Infinity };
  }

  grow(trail) {
    const here = pointOf(this.at[trail.body], [trail.at[12], trail.at[13], trail.at[14]]);
    if (trail.before && this.time - trail.time < TRAIL_GAP) return;
    if (trail.before && this.time > trail.time) {
      const part = new Float32Array(PART);
      [[0, -1], [1, -1], [1, 1], [0, -1], [1, 1], [0, 1]].forEach(([end, side], k) =>
        part.set([...trail.before, ...here, end, side, end ? this.time : trail.time], 9 * k));
      rewrite(this.drawing, trail, trail.next * PART, part);
      trail.next = (trail.next + 1) % TRAIL_PARTS;
    }
    [trail.before, trail.time] = [here, this.time];
  }

  forget() {
    for (const t of this.run ? this.trails : []) {
      rewrite(this.drawing, t, 0, new Float32Array(TRAIL_PARTS * PART));
      Object.assign(t, { next: 0, before: null, time: -Infinity });
    }
    this.travel = [0, 0, 0];
  }

  // ---- what the camera has to show

  // the box around all bodies now
  extent() {
    const [low, high] = [[Infinity, Infinity, Infinity], [-Infinity, -Infinity, -Infinity]];
    (this.run.live.boxes || []).forEach((box, k) => {
      for (let corner = 0; box && corner < 8; corner++) {
        const p = pointOf(this.modelOf(k), [0, 1, 2].map((i) => box[corner & (1 << i) ? 3 + i : i]));
        for (let i = 0; i < 3; i++) [low[i], high[i]] = [Math.min(low[i], p[i]), Math.max(high[i], p[i])];
      }
    });
    return low[0] <= high[0] ? [low, high] : null;
  }

  // a mechanism that travels is followed once it has gone a tenth of its size
  keepInSight() {
    const found = this.extent();
    if (!found) return;
    const middle = scaled(0.5, add(...found));
    this.first = this.first || middle;
    if (!this.run.live.travels) return;
    const away = subtract(subtract(middle, this.first), this.travel);
    const [far, room] = [lengthOf(away), 0.1 * this.data.size];
    if (far > room) this.travel = add(this.travel, scaled(1 - room / far, away));
  }

  travelled() {
    return this.run ? this.travel : super.travelled();
  }

  // ---- grabs: an arrow from each grabbed point to where it is pulled

  draw(camera, dark) {
    super.draw(camera, dark);
    if (!this.run || !this.grabs) return;
    const d = this.drawing;
    const seen = camera.seen(d.canvas.width / d.canvas.height);
    const lit = { seen, eye: camera.eye(), sun: SUN, alpha: 1, ambient: 0.75, tint: [...colorOf(PULLED), 1] };
    const paint = (light) => [...this.grabs.held.values()].forEach((g) => this.drawGrab(g, light));
    paint(lit);
    d.blended(() => { // inside bodies too
      d.gl.disable(d.gl.DEPTH_TEST);
      paint({ ...lit, alpha: 0.55 });
      d.gl.enable(d.gl.DEPTH_TEST);
    });
  }

  drawGrab(grab, lit) {
    const r = 0.011 * this.data.size;
    this.drawing.use('solid', { ...lit, model: frameOf([r, 0, 0], [0, r, 0], [0, 0, r], grab.place) });
    this.drawing.draw(this.ball);
    const way = subtract(grab.target, grab.place);
    const length = lengthOf(way);
    if (length < 0.01 * this.data.size) return;
    const [x, y, z] = alongZ(way);
    const thick = 0.014 * this.data.size * clamp(length / (0.12 * this.data.size), 0.35, 1);
    this.drawing.use('solid', { ...lit, model: frameOf(scaled(thick, x), scaled(thick, y), scaled(length, z), grab.place) });
    this.drawing.draw(this.arrow);
  }

  // ---- what is under the pointer

  // the body near a pixel and the point on it: { number, place }; null for nothing
  pick(x, y, camera, reach) {
    const d = this.drawing;
    const near = this.numberNear(x, y, camera, reach);
    if (!near) return null;
    const seen = camera.seen(d.canvas.width / d.canvas.height);
    const [eye, far] = [camera.eye(), camera.away() + 12 * camera.size];
    const bytes = d.bytesAt(near.x, near.y, 0, () => {
      const paint = (object, model) => {
        d.use('distance', { seen, eye, far, model });
        d.draw(object);
      };
      this.bodies.forEach((body, k) => {
        paint(body, this.modelOf(k));
        if (this.shown.joints) paint(this.joints[k], this.modelOf(k));
      });
      if (this.shown.loops) this.eachLoop(paint);
    });
    const away = far * (bytes[0] / 255 + bytes[1] / 65025 + bytes[2] / 16581375);
    const { width, height } = d.canvas;
    const ray = rayOf(camera, (near.x + 0.5) / width, (near.y + 0.5) / height, width / height);
    return { number: near.number, place: add(eye, scaled(away, ray)) };
  }

  numberNear(x, y, camera, reach) {
    this.picking = true;
    const found = this.numbersAround(x, y, camera, reach);
    this.picking = false;
    const side = 2 * reach + 1;
    let best = null;
    for (let k = 0; k < side * side; k++) {
      const number = found[4 * k] + 256 * found[4 * k + 1];
      const [dx, dy] = [(k % side) - reach, reach - Math.floor(k / side)]; // rows of the picture go up
      if (number && (!best || Math.hypot(dx, dy) < best.far)) best = { number, far: Math.hypot(dx, dy), x: Math.round(x) + dx, y: Math.round(y) + dy };
    }
    return best;
  }
}
