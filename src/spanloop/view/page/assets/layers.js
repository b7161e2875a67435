// ---- the stage: bodies, joints, loops, forces, trails, frames and inertias of the run, at any time

const SUN = unit([0.45, -0.4, 0.95]);
const TURNING = { revolute: 0.05, helical: 0.08, cylindrical: 0.08 };
const SLIDING = ['prismatic', 'cylindrical', 'helical'];
const BALLS = ['spherical', 'universal', 'general'];

class Stage {
  constructor(canvas, data) {
    this.data = data;
    this.drawing = new Drawing(canvas, Boolean(data.live));
    this.times = floatsOf(data.times);
    this.poses = floatsOf(data.poses);
    this.count = data.bodies.length;
    this.at = data.bodies.map(() => new Float32Array(16));
    this.pointed = 0;
    this.middles = data.follow ? floatsOf(data.follow) : null;
    this.slides = data.joints.filter((j) => SLIDING.includes(j.kind));
    const sets = (lists) => lists.map((x) => x && new Set(x)); // of segments; null: all of them
    [this.present, this.closed, this.broken, this.held] = [data.present, data.closed, data.broken, data.held].map(sets);
    this.moments = data.events.filter((e) => e.body !== null);
    this.shown = { joints: true, loops: true, forces: true, contacts: true, shapes: false, trails: true, frames: false, inertias: false };
    this.bendings = data.bodies.map((b) => (b.eta ? new Bending(this.drawing, data.meshes[b.shapes[0].mesh], b) : null));
    this.bodies = data.bodies.map((body) => this.made((s) => body.shapes.forEach((x) => s.shape(x, colorOf(body.color), data.meshes))));
    this.inertias = data.bodies.map((b) => this.made((s) => b.inertia && s.shape(b.inertia, colorOf(b.color))));
    this.joints = data.bodies.map((_, k) => this.made((s) => data.joints.filter((j) => j.body === k).forEach((j) => this.joint(s, j))));
    this.frames = data.bodies.map((_, k) => this.made((s) => this.triads(s, k)));
    this.ball = this.made((s) => s.ball(IDENTITY, [1, 1, 1], [1, 1, 1]));
    this.rod = this.made((s) => s.cylinder(IDENTITY, 1, 1, [1, 1, 1]));
    this.arrow = this.made((s) => s.arrow(IDENTITY, [1, 1, 1]));
    this.contacts = new Contacts(this, data);
    this.floor = this.drawing.object(
      [[-1, -1], [1, -1], [1, 1], [-1, -1], [1, 1], [-1, 1]].flatMap(([x, y]) => [x, y, 0, 0, 0, 1, 1, 1, 1]),
    );
    this.closures = data.closures.map((c) => ({ ...c, errors: null, radius: c.mark }));
    const errors = data.groups.find((g) => g.key === 'closures');
    if (errors) {
      const all = floatsOf(errors.values);
      this.closures.forEach((c) => {
        const k = errors.names.indexOf(c.name);
        c.errors = k < 0 ? null : (i) => all[i * errors.names.length + k];
      });
    }
    this.arrows = data.arrows.map((a) => ({ ...a, six: floatsOf(a.values) }));
    this.strongest = data.least_force;
    for (const a of this.arrows)
      for (let i = 0; i < this.times.length; i++) this.strongest = Math.max(this.strongest, this.force(a, i) || 0);
    this.trails = this.followed().map((at) => this.trail(at));
    this.move(this.times[0]);
  }

  made(build) {
    const solid = new Solid();
    build(solid);
    return this.drawing.object(solid.numbers, solid.faces, solid.vertices);
  }

  // the body that a segment of a flexible one belongs to, or the body itself
  owner(k) {
    return this.data.bodies[k].segment_of ?? k;
  }

  joint(solid, joint) {
    const size = joint.mark / 0.019;
    const color = [0.2, 0.25, 0.29];
    if (!joint.mark) return;
    const [x, y, z] = alongZ(joint.axis || [0, 0, 1]);
    const m = frameOf(x, y, z, [0, 0, 0]);
    if (TURNING[joint.kind]) solid.cylinder(m, 0.02 * size, TURNING[joint.kind] * size, color, THIN);
    else if (joint.kind === 'prismatic') solid.box(m, [0.035 * size, 0.035 * size, 0.06 * size], color);
    else if (joint.kind === 'planar') solid.cylinder(m, 0.035 * size, 0.01 * size, color);
    else if (BALLS.includes(joint.kind)) solid.ball(IDENTITY, [0.024 * size, 0.024 * size, 0.024 * size], color);
  }

  triads(solid, k) {
    if (k > 0 && this.owner(k) === k) solid.axes(IDENTITY, 0.07 * this.data.size);
    this.data.frames.filter((f) => f.body === k).forEach((f) => solid.axes(f.at, 0.05 * this.data.size));
  }

  // ---- time

  // the sample at or before a time, and the share of the way to the next
  sample(time) {
    let [low, high] = [0, this.times.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.times[middle] <= time) low = middle;
      else high = middle;
    }
    if (this.times.length < 2) return [0, 0];
    const gap = this.times[low + 1] - this.times[low];
    return [low, gap > 0 ? clamp((time - this.times[low]) / gap, 0, 1) : 1];
  }

  move(time) {
    this.time = time;
    [this.index, this.share] = this.sample(time);
    const next = Math.min(this.index + 1, this.times.length - 1);
    for (let k = 0; k < this.count; k++)
      poseBetween(this.poses, 7 * (this.index * this.count + k), 7 * (next * this.count + k), this.share, this.at[k]);
    this.bendings.forEach((b) => b && b.move(this.index, next, this.share));
    this.nearest = this.share < 0.5 ? this.index : next;
    this.segment = this.segmentOf(this.share < 1 ? this.index : next);
  }

  // ---- segments: between them loops attach and release, and bodies come and go

  segmentOf(i) {
    let [low, high] = [0, this.data.segments.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.data.segments[middle] <= i) low = middle;
      else high = middle;
    }
    return low;
  }

  within(segments, segment = this.segment) {
    return !segments || segments.has(segment);
  }

  isThere(body) {
    return this.within(this.present[body]);
  }

  // numbers of the closures that are closed now
  closedNow() {
    return this.closures.map((_, k) => k).filter((k) => this.within(this.closed[k]));
  }

  // stops that are touched and couplings that are closed now
  holdsNow() {
    return this.data.holds.filter((_, k) => this.within(this.held[k]));
  }

  // how far the middle of a mechanism that travels has gone
  travelled() {
    if (!this.middles) return [0, 0, 0];
    const next = Math.min(this.index + 1, this.times.length - 1);
    return [0, 1, 2].map((k) => {
      const [a, b] = [this.middles[3 * this.index + k], this.middles[3 * next + k]];
      return (1 - this.share) * a + this.share * b - this.middles[k];
    });
  }

  place(body, at, i) {
    const m = new Float32Array(16);
    poseBetween(this.poses, 7 * (i * this.count + body), 7 * (i * this.count + body), 0, m);
    return pointOf(m, [at[12], at[13], at[14]]);
  }

  // ---- trails

  // what leaves a trail: free bodies, else the loops, else frames at the tips
  followed() {
    const d = this.data;
    const free = d.joints.filter((j) => j.kind === 'free').map((j) => ({ body: j.body, at: IDENTITY }));
    const loops = d.closures.map((c) => ({ body: c.b, at: c.at_b }));
    const carriers = new Set(d.joints.map((j) => j.parent));
    const tips = d.joints.filter((j) => !carriers.has(j.body)).map((j) => {
      const frame = d.frames.find((f) => f.body === j.body);
      const inertia = d.bodies[j.body].inertia;
      return { body: j.body, at: frame ? frame.at : inertia ? inertia.at : IDENTITY };
    });
    return [free, loops, tips].find((x) => x.length)?.slice(0, 6) || [];
  }

  trail({ body, at }) {
    const numbers = [];
    let before = this.place(body, at, 0);
    for (let i = 1; i < this.times.length; i++) {
      const here = this.place(body, at, i);
      const isThere = this.within(this.present[body], this.segmentOf(i)) && this.times[i] > this.times[i - 1];
      if (isThere) for (const [end, side] of [[0, -1], [1, -1], [1, 1], [0, -1], [1, 1], [0, 1]])
        numbers.push(...before, ...here, end, side, this.times[i - 1 + end]);
      before = here;
    }
    return this.drawing.object(numbers);
  }

  // ---- forces and loops

  force(arrow, i) {
    return lengthOf([arrow.six[6 * i + 3], arrow.six[6 * i + 4], arrow.six[6 * i + 5]]);
  }

  error(closure) {
    return closure.errors ? closure.errors(this.nearest) || 0 : 0;
  }

  // green where closed, red where open by a millimetre or more, between them by powers of ten
  colorOfError(error) {
    const share = clamp((Math.log10(Math.max(error, 1e-18)) + 6) / 3, 0, 1);
    const [a, b] = [colorOf(this.data.colors.closed), colorOf(this.data.colors.open)];
    return a.map((x, k) => x + share * (b[k] - x));
  }

  // ---- drawing

  // a body by a program, bent as it is now
  drawBody(k, name, values) {
    const bending = this.bendings[k];
    if (bending) this.drawing.use(bent(name), { ...values, ...bending.now });
    else this.drawing.use(name, values);
    this.drawing.draw(this.bodies[k]);
    if (bending) this.drawing.use(name, values); // for what the body carries
  }

  draw(camera, dark) {
    const d = this.drawing;
    const [w, h] = [d.canvas.width, d.canvas.height];
    const seen = camera.seen(w / h);
    const lit = { seen, eye: camera.eye(), sun: SUN, alpha: 1, ambient: dark ? 0.56 : 0.58, tint: [0, 0, 0, 0] };
    d.clear();
    d.blended(() => {
      const gap = roundStep(this.data.size / 12);
      const wide = 4 * this.data.size;
      const middle = [camera.home[0] + camera.shift[0], camera.home[1] + camera.shift[1], 0];
      const model = frameOf([wide, 0, 0], [0, wide, 0], [0, 0, 1], [middle[0], middle[1], this.data.ground]);
      d.use('floor', { seen, model, middle, gap, wide, checks: this.data.checkered ? 0.3 : 0, ink: dark ? [0.75, 0.82, 0.9] : [0.25, 0.28, 0.32] });
      d.draw(this.floor);
    });
    this.contacts.drawPatches(lit);
    if (camera.eye()[2] > this.data.ground) this.shadows(seen, dark);
    this.bodies.forEach((_, k) => {
      if (!this.isThere(k)) return;
      this.drawBody(k, 'solid', { ...lit, model: this.at[k], tint: this.pointed === this.owner(k) + 1 ? [1, 1, 1, 0.35] : [0, 0, 0, 0] });
      if (this.shown.joints) d.draw(this.joints[k]);
      if (this.shown.frames) d.draw(this.frames[k]);
    });
    this.eachSlide((model, k) => {
      d.use('solid', { ...lit, model, tint: [...colorOf(this.data.bodies[k].color), 1] });
      d.draw(this.rod);
    });
    if (this.shown.loops) this.eachLoop((object, model, color, k) => {
      const tint = this.pointed === this.count + k + 1 ? [1, 1, 1, 0.5] : [...color, 1];
      d.use('solid', { ...lit, model, tint });
      d.draw(object);
    });
    this.drawHolds(lit);
    this.drawMoments(lit);
    if (this.shown.shapes) this.contacts.drawShapes(lit);
    d.blended(() => this.contacts.drawPatches({ ...lit, alpha: 0.25 }, true));
    const forces = (light) => {
      if (this.shown.forces) this.drawForces(light);
      if (this.shown.contacts) this.contacts.drawForces(light);
    };
    forces(lit);
    d.blended(() => { // inside bodies too, faintly
      d.gl.disable(d.gl.DEPTH_TEST);
      forces({ ...lit, alpha: 0.3 });
      d.gl.enable(d.gl.DEPTH_TEST);
    });
    if (this.shown.trails) d.blended(() => { // seen through bodies
      const paint = colorOf(this.data.colors.trail);
      const values = { seen, screen: [w, h], width: 3.2 * Math.min(window.devicePixelRatio || 1, 2), now: this.time, window: 3, paint };
      d.use('trail', values);
      d.gl.disable(d.gl.DEPTH_TEST);
      this.trails.forEach((t) => d.draw(t));
      d.gl.enable(d.gl.DEPTH_TEST);
    });
    if (this.shown.inertias) d.blended(() => this.inertias.forEach((x, k) => {
      if (!this.isThere(k)) return;
      d.use('solid', { ...lit, model: this.at[k], alpha: 0.28 });
      d.draw(x);
    }));
  }

  shadows(seen, dark) {
    const g = this.data.ground;
    const [x, y] = [SUN[0] / SUN[2], SUN[1] / SUN[2]];
    const flat = new Float32Array([1, 0, 0, 0, 0, 1, 0, 0, -x, -y, 0, 0, g * x, g * y, g + 1e-3 * this.data.size, 1]);
    const d = this.drawing;
    d.shadow(() => this.bodies.forEach((_, k) => {
      if (!this.isThere(k)) return;
      if (this.at[k][14] < g - 0.1 * this.data.size) return; // it has fallen through the floor
      this.drawBody(k, 'plain', { seen, model: product(flat, this.at[k]), paint: [0, 0, 0, dark ? 0.42 : 0.16] });
    }));
  }

  // a rod from where a slide starts on its carrier to the body that slides
  eachSlide(visit) {
    for (const j of this.slides.filter((x) => this.isThere(x.body))) {
      const start = pointOf(this.at[j.parent], j.at.slice(12, 15));
      const way = subtract([...this.at[j.body].slice(12, 15)], start);
      if (lengthOf(way) < 0.01 * this.data.size) continue;
      const [x, y, z] = alongZ(way);
      const r = 0.008 * this.data.size;
      visit(frameOf(scaled(r, x), scaled(r, y), scaled(lengthOf(way), z), add(start, scaled(0.5, way))), j.body);
    }
  }

  eachLoop(visit) {
    this.closures.forEach((c, k) => {
      const r = c.radius;
      if (this.data.broken[k].length && this.broken[k].has(this.segment))
        visit(this.ball, frameOf([r, 0, 0], [0, r, 0], [0, 0, r], pointOf(this.at[c.b], c.at_b.slice(12, 15))), this.colorOfError(1), k);
      if (!this.within(this.closed[k])) return;
      const color = this.colorOfError(this.error(c));
      const ends = [pointOf(this.at[c.a], c.at_a.slice(12, 15)), pointOf(this.at[c.b], c.at_b.slice(12, 15))];
      const gap = subtract(ends[1], ends[0]);
      for (const p of lengthOf(gap) > 0.2 * r ? ends : ends.slice(1))
        visit(this.ball, frameOf([r, 0, 0], [0, r, 0], [0, 0, r], p), color, k);
      if (lengthOf(gap) > 0.2 * r) {
        const [x, y, z] = alongZ(gap);
        const m = frameOf(scaled(0.3 * r, x), scaled(0.3 * r, y), scaled(lengthOf(gap), z), scaled(0.5, add(...ends)));
        visit(this.rod, m, color, k);
      }
    });
  }

  // a disc around each joint that is at its stop, or that a coupling holds
  drawHolds(lit) {
    this.holdsNow().forEach((hold) => {
      const j = this.data.joints[hold.joint];
      const tint = [...colorOf(hold.is_stop ? this.data.colors.stop : this.data.colors.closed), 1];
      if (!this.isThere(j.body)) return;
      const r = 1.9 * (j.mark || 0.01 * this.data.size);
      const [x, y, z] = alongZ(j.axis || [0, 0, 1]);
      const disc = frameOf(scaled(r, x), scaled(r, y), scaled(0.5 * r, z), [0, 0, 0]);
      this.drawing.use('solid', { ...lit, tint, model: product(this.at[j.body], disc) });
      this.drawing.draw(this.rod);
    });
  }

  // where something happened a moment ago: a ball that grows and fades
  drawMoments(lit) {
    const span = this.times[this.times.length - 1] - this.times[0];
    const lasting = clamp(0.06 * span, 0.02, 0.5);
    this.drawing.blended(() => {
      this.drawing.gl.disable(this.drawing.gl.DEPTH_TEST);
      for (const e of this.moments) {
        const share = (this.time - Math.fround(e.time)) / lasting;
        if (share < 0 || share > 1) continue;
        const r = (0.024 + 0.04 * share) * this.data.size;
        const model = frameOf([r, 0, 0], [0, r, 0], [0, 0, r], pointOf(this.at[e.body], e.at.slice(12, 15)));
        this.drawing.use('solid', { ...lit, alpha: 0.6 * (1 - share), tint: [...colorOf(e.color), 1], model });
        this.drawing.draw(this.ball);
      }
      this.drawing.gl.enable(this.drawing.gl.DEPTH_TEST);
    });
  }

  drawForces(lit) {
    const tint = [...colorOf(this.data.colors.force), 1];
    for (const a of this.arrows) {
      const f = [3, 4, 5].map((k) => a.six[6 * this.nearest + k]);
      const length = (0.3 * this.data.size * lengthOf(f)) / this.strongest;
      if (!(length > 0.004 * this.data.size)) continue;
      const [x, y, z] = alongZ(f);
      const thick = 0.014 * this.data.size * clamp(length / (0.1 * this.data.size), 0.4, 1);
      const foot = pointOf(this.at[a.body], a.at.slice(12, 15));
      this.drawing.use('solid', { ...lit, tint, model: frameOf(scaled(thick, x), scaled(thick, y), scaled(length, z), foot) });
      this.drawing.draw(this.arrow);
    }
  }

  // ---- what is under the pointer: 0 nothing, then bodies, then loops

  numberAt(x, y, camera) {
    const [low, high] = this.numbersAround(x, y, camera, 0);
    return low + 256 * high;
  }

  // the numbers of all pixels around one, as colours
  numbersAround(x, y, camera, reach) {
    const d = this.drawing;
    const seen = camera.seen(d.canvas.width / d.canvas.height);
    const paintOf = (number) => [(number & 255) / 255, ((number >> 8) & 255) / 255, 0, 1];
    return d.bytesAt(x, y, reach, () => {
      this.bodies.forEach((_, k) => {
        if (!this.isThere(k)) return;
        this.drawBody(k, 'plain', { seen, model: this.at[k], paint: paintOf(this.owner(k) + 1) });
        if (this.shown.joints) d.draw(this.joints[k]);
      });
      if (this.shown.loops) this.eachLoop((object, model, _, k) => {
        d.use('plain', { seen, model, paint: paintOf(this.count + k + 1) });
        d.draw(object);
      });
    });
  }

  describe(number) {
    if (number <= this.count) {
      const body = this.data.bodies[number - 1];
      const joint = this.data.joints.find((j) => j.body === number - 1);
      if (!joint) return `${body.name}\nthe ground`;
      return `${body.name}\n${body.mass.toPrecision(3)} kg, on ${joint.name} (${joint.kind})`;
    }
    const loop = this.closures[number - this.count - 1];
    if (!this.within(this.closed[number - this.count - 1])) return `${loop.name} (${loop.kind} loop)\nbroken`;
    const arrow = this.arrows[number - this.count - 1];
    const force = arrow && arrow.name === loop.name ? `, ${this.force(arrow, this.nearest).toPrecision(3)} N` : '';
    return `${loop.name} (${loop.kind} loop)\nopen by ${this.error(loop).toExponential(1)} m or rad${force}`;
  }
}
