// ---- contacts: planes that are touched, shapes that touch, and the forces between them

const [OPEN, STICKS, SLIPS, BOUNCES] = [0, 1, 2, 3];
const OF_POINT = 8; // place, arrow, force, state

class Contacts {
  constructor(stage, data) {
    this.stage = stage;
    this.names = data.touches.names;
    this.values = floatsOf(data.touches.values);
    this.colors = { [STICKS]: colorOf(data.colors.sticks), [SLIPS]: colorOf(data.colors.slips), [BOUNCES]: colorOf(data.colors.stop) };
    this.patches = data.patches.map((p) => ({
      body: p.body,
      at: p.at,
      object: stage.made((s) => p.shapes.forEach((x) => s.shape(x, colorOf(data.bodies[0].color), data.meshes))),
    }));
    this.shapes = data.bodies.map((b) => stage.made((s) => b.contacts.forEach((x) => s.shape(x, colorOf(data.colors.sticks), data.meshes))));
    this.has_shapes = data.bodies.some((b) => b.contacts.length);
  }

  // the points at a sample that touch
  at(sample) {
    const out = [];
    for (let k = 0; k < this.names.length; k++) {
      const i = OF_POINT * (sample * this.names.length + k);
      const v = this.values.subarray(i, i + OF_POINT);
      if (v[7] !== OPEN) out.push({ name: this.names[k], place: [v[0], v[1], v[2]], arrow: [v[3], v[4], v[5]], force: v[6], state: v[7] });
    }
    return out;
  }

  // planes from their open side, or those that are seen from behind
  drawPatches(lit, behind = false) {
    const { drawing, at } = this.stage;
    for (const p of this.patches.filter((x) => this.stage.isThere(x.body))) {
      const m = product(at[p.body], p.at);
      const height = dot([m[8], m[9], m[10]], subtract(lit.eye, [m[12], m[13], m[14]]));
      if (height < 0 !== behind) continue;
      drawing.use('solid', { ...lit, model: at[p.body] });
      drawing.draw(p.object);
    }
  }

  drawShapes(lit) {
    const { drawing, at } = this.stage;
    drawing.blended(() => this.shapes.forEach((x, k) => {
      if (!this.stage.isThere(k)) return;
      drawing.use('solid', { ...lit, model: at[k], alpha: 0.35 });
      drawing.draw(x);
    }));
  }

  drawForces(lit) {
    const size = this.stage.data.size;
    for (const p of this.at(this.stage.nearest)) {
      const length = lengthOf(p.arrow);
      if (!length) continue;
      const [x, y, z] = alongZ(p.arrow);
      const thick = 0.014 * size * clamp(length / (0.1 * size), 0.4, 1);
      const model = frameOf(scaled(thick, x), scaled(thick, y), scaled(length, z), p.place);
      this.stage.drawing.use('solid', { ...lit, tint: [...this.colors[p.state], 1], model });
      this.stage.drawing.draw(this.stage.arrow);
    }
  }

  // how many points touch now, and what they do
  words() {
    if (!this.names.length) return '';
    const now = this.at(this.stage.nearest);
    const count = (state) => now.filter((p) => p.state === state).length;
    const parts = [[count(STICKS), 'sticking'], [count(SLIPS), 'slipping'], [count(BOUNCES), 'bouncing']].filter(([n]) => n).map(([n, what]) => `${n} ${what}`);
    return parts.length ? `contact points: ${parts.join(', ')}` : 'nothing touches';
  }
}
