// ---- the stage of a live run: poses, trails, loops and grabs as they are now

const TRAIL_PARTS = 240; // of a trail
const PART = 54; // numbers of one: six corners with three vectors
const PULLED = '#ff2e88'; // the colour of a pull
const TRAIL_GAP = 1 / 60; // s between two points

SHADERS.distance = [ // how far the nearest surface is from the eye, in three bytes
  `${RIGID}
  uniform mat4 seen, model; out vec3 w;
  void main() { vec4 p = model * vec4(place(), 1.0); w = p.xyz; gl_Position = seen * p; }`,
  `#version 300 es
  precision highp float; in vec3 w; uniform vec3 eye; uniform float far; out vec4 shown;
  void main() {
    vec3 d = fract(clamp(length(w - eye) / far, 0.0, 0.999999) * vec3(1.0, 255.0, 65025.0));
    shown = vec4(d - d.yzz * vec3(1.0 / 255.0, 1.0 / 255.0, 0.0), 1.0);
  }`,
];

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
    for (const k of this.limbs ? this.limbs.keys() : []) this.reshape(k, this.data.bodies[k].shapes);
    this.limbs = new Map(); // by body: its shapes with limbs that follow their joints
    if (!run) return;
    const loops = run.live.kernels.closure ? run.live.kernels.closure.loops : [];
    this.rows = new Map(loops.map((x) => [x.name, x]));
    this.closures = this.closures.filter((c, k, all) => this.rows.has(c.name) && all.findIndex((x) => x.name === c.name) === k);
    this.arrows = [];
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
    this.bendAll();
    this.lengths.forEach((x) => x.changed() && this.stretch(x.joint));
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

  // the shapes of all surfaces that bend
  bendAll() {
    const eta = this.run.kernel('bending');
    if (eta) for (const { body, first } of this.run.live.kernels.bending.surfaces) this.bendings[body].set((m) => eta[first + m]);
  }

  error(closure) {
    if (!this.run) return super.error(closure);
    const rows = this.rows.get(closure.name);
    return this.errors && rows ? this.errors.subarray(rows.first, rows.first + rows.count).reduce((a, x) => Math.max(a, Math.abs(x)), 0) : 0;
  }

  // segments and surfaces of flexible bodies are picked by themselves
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

  // ---- lengths: a limb of a stand-in that ends at the joint follows it; elsewhere a rod leads from the old place to the new

  // the joint that a parameter moves on its carrier, if it is of that kind
  length({ name, place }) {
    const parts = name.match(/^(.*)\.position\.([xyz])$/);
    const joint = parts && this.data.joints.find((j) => j.name === parts[1]);
    if (!joint) return null;
    const k = 12 + 'xyz'.indexOf(parts[2]);
    joint.first = joint.first || joint.at.slice(12, 15);
    joint.limb = this.limbOf(joint);
    const changed = () => {
      const now = this.run.view('p')[place];
      if (joint.at[k] === now) return false;
      joint.at[k] = now;
      return true;
    };
    return { joint, changed };
  }

  // the capsule of a stand-in that ends at a joint's first place, and at nothing else that is attached; -1: none does
  limbOf(joint) {
    const { bodies, joints, closures, frames, size } = this.data;
    const isThere = (at) => lengthOf(subtract(at.slice(12, 15), joint.first)) < 0.012 * size; // stand_ins.py joins what is nearer than 0.01
    const others = [
      ...joints.filter((j) => j !== joint && j.parent === joint.parent).map((j) => (j.first ? frameOf([1, 0, 0], [0, 1, 0], [0, 0, 1], j.first) : j.at)),
      ...closures.flatMap((c) => [[c.a, c.at_a], [c.b, c.at_b]]).filter(([k]) => k === joint.parent).map(([, at]) => at),
      ...frames.filter((f) => f.body === joint.parent).map((f) => f.at),
    ];
    if (others.some(isThere)) return -1;
    const ends = ({ size: [, length], at }) => lengthOf(subtract(pointOf(at, [0, 0, length / 2]), joint.first)) < 1e-6 * size;
    return (this.run.live.limbs[joint.parent] || []).find((k) => ends(bodies[joint.parent].shapes[k])) ?? -1;
  }

  // the limb from where it begins to where its joint is now
  stretch(joint) {
    const { parent, limb, at } = joint;
    if (limb < 0) return;
    const shape = this.data.bodies[parent].shapes[limb];
    const start = pointOf(shape.at, [0, 0, -shape.size[1] / 2]);
    const way = subtract(at.slice(12, 15), start);
    const axes = lengthOf(way) > 1e-6 * this.data.size ? alongZ(way) : alongZ(subtract(joint.first, start));
    const shapes = this.limbs.get(parent) || [...this.data.bodies[parent].shapes];
    shapes[limb] = { ...shape, size: [shape.size[0], lengthOf(way)], at: [...frameOf(...axes, add(start, scaled(0.5, way)))] };
    this.limbs.set(parent, shapes);
    this.reshape(parent, shapes);
  }

  // other numbers for as many corners
  reshape(k, shapes) {
    const solid = new Solid();
    shapes.forEach((x) => solid.shape(x, colorOf(this.data.bodies[k].color), this.data.meshes));
    rewrite(this.drawing, this.bodies[k], 0, new Float32Array(solid.numbers));
  }

  // rods, also from where a joint was on its carrier to where it is now
  eachSlide(visit) {
    super.eachSlide(visit);
    const moved = this.run ? new Set(this.lengths.map((x) => x.joint)) : [];
    for (const { parent, first, at, limb } of moved) {
      const way = subtract(at.slice(12, 15), first);
      if (limb >= 0 || lengthOf(way) < 0.003 * this.data.size) continue;
      const [x, y, z] = alongZ(way);
      const r = 0.008 * this.data.size;
      const rod = frameOf(scaled(r, x), scaled(r, y), scaled(lengthOf(way), z), add(first, scaled(0.5, way)));
      visit(product(this.at[parent], rod), parent);
    }
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
        const p = pointOf(this.at[k], [0, 1, 2].map((i) => box[corner & (1 << i) ? 3 + i : i]));
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
        this.drawBody(k, 'distance', { seen, eye, far, model: this.at[k] });
        if (this.shown.joints) paint(this.joints[k], this.at[k]);
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
