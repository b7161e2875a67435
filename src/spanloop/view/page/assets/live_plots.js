// ---- plots of a live run: the last seconds, drawn a few times a second

const KEPT = 480; // samples of a plot
const WINDOW = 6; // s that they span at full speed
const LEAST = 1e-17; // errors below it are drawn as this
const REDRAW = 55; // ms between two drawings

class LivePlot extends Plot {
  constructor(group) {
    super({ ...group, values: '', shown: group.names.map((_, k) => k).slice(0, 6) }, new Float64Array([0, WINDOW]), () => {});
    this.ring = { times: new Float64Array(KEPT), values: new Float64Array(KEPT * this.width), count: 0, next: 0 };
    this.frame.style.cursor = 'default';
  }

  // again: in place of the last one
  add(time, row, again) {
    const { ring } = this;
    if (again && ring.count) [ring.next, ring.count] = [(ring.next - 1 + KEPT) % KEPT, ring.count - 1];
    ring.times[ring.next] = time;
    ring.values.set(row, ring.next * this.width);
    ring.next = (ring.next + 1) % KEPT;
    ring.count = Math.min(ring.count + 1, KEPT);
  }

  clear() {
    Object.assign(this.ring, { count: 0, next: 0 });
  }

  // the ring in order of time
  unrolled() {
    const { ring } = this;
    const first = (ring.next - ring.count + KEPT) % KEPT;
    const row = (i) => (first + i) % KEPT;
    this.times = Float64Array.from({ length: ring.count }, (_, i) => ring.times[row(i)]);
    this.values = Float64Array.from({ length: ring.count * this.width }, (_, i) => ring.values[row(Math.floor(i / this.width)) * this.width + (i % this.width)]);
    [this.time, this.index] = [this.times[ring.count - 1], ring.count - 1];
  }

  draw() {
    if (!this.ring || !this.ring.count) return;
    this.unrolled();
    super.draw();
  }

  marks() {} // events are those of the recorded run
}

class LivePlots {
  constructor(live, stage) {
    [this.stage, this.drawn, this.sampled] = [stage, -Infinity, -Infinity];
    this.energy = new LivePlot({ key: 'energy', title: 'Energy, potential relative to the start', unit: 'J', names: ['kinetic', 'potential', 'sum'] });
    const { closure, loop_forces: forces } = live.kernels;
    this.closures = closure && closure.loops.length ? new LivePlot({ key: 'closures', title: 'Closure errors', unit: 'm or rad', names: closure.loops.map((x) => x.name), log: true }) : null;
    this.loops = forces ? forces.loops.filter((x) => x.unit.startsWith('N,')) : [];
    this.forces = this.loops.length ? new LivePlot({ key: 'forces', title: 'Forces at the loops', unit: 'N', names: this.loops.map((x) => x.name) }) : null;
    const driven = new Set(live.inputs.torques.map((x) => x.joint));
    this.joints = live.torques ? live.rates.map((x, k) => ({ ...x, k })).filter((x) => driven.has(x.joint)) : [];
    this.torques = this.joints.length ? new LivePlot({ key: 'tau', title: 'Torques and forces at the joints', unit: 'N m, N', names: this.joints.map((x) => x.joint) }) : null;
    this.pulls = new LivePlot({ key: 'pulls', title: 'Pull', unit: 'N', names: ['force of the pointer'] });
    this.all = [this.energy, this.closures, this.forces, this.pulls, this.torques].filter(Boolean);
  }

  get cards() {
    return this.all.map((p) => p.card);
  }

  clear() {
    [this.sampled, this.loose, this.zero] = [-Infinity, false, undefined];
    this.all.forEach((p) => p.clear());
  }

  // a sample of the run now, unless the last is too recent; while it stands still, one that the next replaces
  sample(run, pull, speed, still) {
    const near = Math.abs(run.time - this.sampled) < (WINDOW / KEPT) * Math.min(speed, 1);
    if (near && !still) return;
    const energy = run.kernel('energy');
    if (!energy) return;
    const again = this.loose || run.time === this.sampled;
    this.loose = near && run.time !== this.sampled;
    if (!near) this.sampled = run.time;
    if (!run.count || this.zero === undefined) this.zero = energy[1];
    const potential = energy[1] - this.zero;
    this.energy.add(run.time, [energy[0], potential, energy[0] + potential], again);
    const largest = ({ first, count }) => Math.max(LEAST, ...this.stage.errors.subarray(first, first + count).map(Math.abs));
    if (this.closures && this.stage.errors) this.closures.add(run.time, run.live.kernels.closure.loops.map(largest), again);
    const forces = this.forces ? run.kernel('loop_forces') : null;
    if (forces) this.forces.add(run.time, this.loops.map((x) => forces[x.first]), again);
    if (this.torques) this.torques.add(run.time, this.joints.map((x) => run.view(run.live.torques)[x.k]), again);
    this.pulls.add(run.time, [pull], again);
  }

  // false if the last drawing is too recent: later then
  draw(now) {
    if (now - this.drawn < REDRAW) return false;
    this.drawn = now;
    const visible = (p) => {
      const box = p.frame.getBoundingClientRect();
      return box.bottom > 0 && box.top < window.innerHeight;
    };
    this.all.filter(visible).forEach((p) => p.draw());
    return true;
  }
}
