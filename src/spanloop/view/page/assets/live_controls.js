// ---- sliders: inputs, gravity, damping, gains, and lengths that reassemble the mechanism

const KINDS = {
  world: 'World', gain: 'Gains', target: 'Added to the targets of the joints', torque: 'Added torques and forces at the joints', parameter: 'Parameters',
};
const ADDED = ['target', 'torque']; // kinds that add to what there is
const MOVES = 8; // steps of a continuation in a frame, at most

// all that a slider can change: kind, label, range, unit, and the array and place that it writes to
function sliderSpecs({ inputs, gravity, parameters }) {
  const seen = new Map();
  const label = (joint, kind) => {
    const n = (seen.get(kind + joint) || 0) + 1;
    seen.set(kind + joint, n);
    return n > 1 ? `${joint} ${n}` : joint;
  };
  const joints = (rows, kind) => rows.map((x) => ({ ...x, kind, array: 'u', label: label(x.joint, kind) }));
  const out = [];
  if (gravity) {
    const size = Math.hypot(...gravity.values);
    out.push({ kind: 'world', label: 'gravity', array: 'p', places: gravity.places.map((k, i) => [k, gravity.values[i] / size]), value: gravity.factor * size, low: 0, high: gravity.most * size, unit: 'm/s²' });
  }
  if (inputs.damping && inputs.damping.high > 0) out.push({ ...inputs.damping, kind: 'world', array: 'u', label: 'damping' });
  out.push(...inputs.gains.map((x) => ({ ...x, kind: 'gain', array: 'u', label: x.name, unit: '×' })));
  out.push(...joints(inputs.targets, 'target'), ...joints(inputs.torques, 'torque'));
  out.push(...parameters.map((x) => ({ ...x, kind: 'parameter', array: 'p', label: x.name })));
  return out;
}

class Slider {
  // changed(slider): the number was moved by hand
  constructor(spec, changed) {
    Object.assign(this, { spec, wanted: spec.value });
    this.row = element('div', spec.label.length > 13 || spec.increment > 0 ? 'slider long' : 'slider');
    const label = element('label', '', spec.label);
    this.input = Object.assign(element('input'), { type: 'range', min: spec.low, max: spec.high, step: 'any', id: `live-${spec.kind}-${spec.label}` });
    label.htmlFor = this.input.id;
    label.title = `${spec.label}: double click for ${shortNumber(spec.value)}`;
    this.value = element('output');
    this.value.htmlFor = this.input.id;
    this.note = element('p', 'refused');
    this.note.hidden = true;
    this.note.setAttribute('role', 'status');
    this.row.append(label, this.input, this.value, this.note);
    this.input.addEventListener('input', () => this.to(Number(this.input.value), changed));
    this.input.addEventListener('keydown', (e) => this.key(e, changed));
    this.row.addEventListener('dblclick', () => this.to(spec.value, changed));
    this.show(spec.value);
  }

  // arrows move by a hundredth, with shift by a tenth; delete goes back
  key(e, changed) {
    const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[e.key];
    if (!by && e.key !== 'Delete') return;
    e.preventDefault();
    const { low, high, value } = this.spec;
    this.to(by ? clamp(this.wanted + (by * (high - low)) / (e.shiftKey ? 10 : 100), low, high) : value, changed);
  }

  to(x, changed) {
    this.wanted = x;
    this.note.hidden = true;
    if (!(this.spec.increment > 0)) this.show(x);
    changed(this);
  }

  // now: what the mechanism has while it is on its way to x
  show(x, now = x) {
    if (Number(this.input.value) !== x) this.input.value = String(x);
    const digits = (y) => shortNumber(Number(y.toPrecision(3)));
    const sign = x > 0 && ADDED.includes(this.spec.kind) ? '+' : '';
    const way = digits(now) === digits(x) ? '' : `${digits(now)} → `;
    const words = `${way}${sign}${digits(x)}${this.spec.unit ? ` ${this.spec.unit}` : ''}`;
    if (this.value.textContent === words) return;
    this.value.textContent = words;
    this.input.setAttribute('aria-valuetext', words);
  }

  // the last value that was possible, and why
  refuse(x, why) {
    this.wanted = x;
    this.show(x);
    this.note.textContent = why;
    this.note.hidden = false;
  }
}

class Controls {
  constructor(run, changed) {
    [this.run, this.changed, this.share, this.arrived] = [run, changed, 1, true];
    this.sliders = sliderSpecs(run.live).map((spec) => new Slider(spec, (s) => this.set(s)));
    this.lengths = this.sliders.filter((s) => s.spec.increment > 0);
    this.cards = this.sliders.length ? [this.made()] : [];
  }

  made() {
    const out = card('Controls');
    out.id = 'controls';
    const back = element('button', 'small', 'defaults');
    back.title = 'all controls to their first values';
    back.addEventListener('click', () => this.sliders.forEach((s) => s.to(s.spec.value, () => this.set(s))));
    out.firstChild.append(back);
    for (const [kind, title] of Object.entries(KINDS)) {
      const own = this.sliders.filter((s) => s.spec.kind === kind);
      if (!own.length) continue;
      const group = element('details');
      group.open = own.length <= 8;
      const box = element('div', 'sliders');
      box.append(...own.map((s) => s.row));
      group.append(element('summary', '', own.length > 3 ? `${title} (${own.length})` : title), box);
      out.append(group);
    }
    return out;
  }

  // what a slider has in the arrays now, for sliders with one place
  at(s) {
    return this.run.live.places[s.spec.array] + s.spec.place;
  }

  set(s) {
    const { array, places, increment, kind } = s.spec;
    this.changed();
    if (increment > 0) return s.show(s.wanted, this.run.numbers[this.at(s)]);
    if (kind === 'parameter') return this.tried(s);
    for (const [k, share] of places || [[s.spec.place, 1]]) this.run.numbers[this.run.live.places[array] + k] = share * s.wanted;
  }

  // a mass, say: written if the state takes it
  tried(s) {
    const [before, saved] = [this.run.numbers[this.at(s)], this.run.save()];
    this.run.numbers[this.at(s)] = s.wanted;
    const status = this.run.reclose();
    this.run.restore(saved);
    if (!status) return;
    this.run.numbers[this.at(s)] = before;
    s.refuse(before, `This value is refused: ${this.run.refusal(status)}.`);
  }

  // lengths as they are at the start; from there they go to their sliders again
  reset() {
    for (const s of this.sliders) s.note.hidden = true;
    for (const s of this.lengths) this.run.numbers[this.at(s)] = s.spec.value;
    this.share = 1;
  }

  // whether a length is not yet where its slider is
  get onTheWay() {
    return this.lengths.some((s) => this.run.numbers[this.at(s)] !== s.wanted);
  }

  // ---- lengths: the loops stay closed by continuation (live_parameters.py)

  // some steps of a continuation; true if something has moved
  continue() {
    let moved = false;
    for (let k = 0; k < MOVES && this.onTheWay; k++) {
      [moved, this.arrived] = [true, false];
      if (!this.nearer() && this.share < this.run.live.continuation.least_share) this.stop();
    }
    if (moved) for (const s of this.lengths) s.show(s.wanted, this.run.numbers[this.at(s)]);
    if (moved || this.arrived) return moved;
    for (let k = 0; k < 2; k++) this.closed(() => true); // errors end at rounding
    this.arrived = true;
    return true;
  }

  // one step toward the sliders, shared by all lengths; true if the loops closed
  nearer() {
    const before = this.lengths.map((s) => this.run.numbers[this.at(s)]);
    const way = this.lengths.map((s, k) => s.wanted - before[k]);
    const part = this.share * Math.min(1, ...this.lengths.map((s, k) => s.spec.increment / (Math.abs(way[k]) || Infinity)).filter((x) => x > 0));
    this.lengths.forEach((s, k) => (this.run.numbers[this.at(s)] = part === 1 ? s.wanted : before[k] + part * way[k]));
    const { most } = this.run.live.continuation;
    const near = (q, was) => q.every((x, k) => Math.abs(x - was[k]) <= most[k]);
    if (this.closed(near)) {
      this.share = Math.min(1, 2 * this.share);
      return true;
    }
    this.lengths.forEach((s, k) => (this.run.numbers[this.at(s)] = before[k]));
    this.share /= 2;
    return false;
  }

  // the loops closed by moving q alone, if it goes no farther than near(q, before) allows
  closed(near) {
    const saved = this.run.save();
    const status = this.run.reclose();
    const q = this.run.view('q').slice();
    this.run.restore(saved);
    if (status || !near(q, this.run.view('q'))) return false;
    this.run.view('q').set(q);
    return true;
  }

  // no assembly farther on: the sliders go back to what there is
  stop() {
    this.share = 1;
    for (const s of this.lengths) {
      const x = this.run.numbers[this.at(s)];
      if (x !== s.wanted) s.refuse(x, `The loops cannot be closed beyond ${shortNumber(Number(x.toPrecision(4)))} ${s.spec.unit} from this position.`);
    }
  }
}
