// ---- sliders: inputs, gravity, damping, gains, and lengths that reassemble the mechanism

const KINDS = {
  torque: 'Torques and forces at the joints', target: 'Targets of the joints', gain: 'Gains', gravity: 'Gravity', damping: 'Damping', parameter: 'Dimensions',
};
const PARTS_OF_RANGE = 400; // of a dimension: one step of its continuation
const MOVES = 24; // such steps in a frame, at most
const HALVINGS = 5; // of a step that does not close

class Slider {
  // changed(slider): the number was moved by hand
  constructor(spec, changed) {
    Object.assign(this, { spec, wanted: spec.value });
    this.row = element('div', 'slider');
    const label = element('label', '', spec.label || spec.name);
    this.input = Object.assign(element('input'), { type: 'range', min: spec.low, max: spec.high, step: 'any', id: `live-${spec.kind}-${spec.index}` });
    label.htmlFor = this.input.id;
    label.title = `${spec.name}: double click for ${shortNumber(spec.value)}`;
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
    this.show(x);
    changed(this);
  }

  show(x) {
    this.input.value = String(x);
    const words = `${shortNumber(Number(x.toPrecision(3)))}${this.spec.unit ? ` ${this.spec.unit}` : ''}`;
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
    [this.run, this.changed] = [run, changed];
    this.sliders = (run.live.sliders || []).map((spec) => new Slider(spec, (s) => this.set(s)));
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

  place(s) {
    return this.run.live.places[s.spec.array] + s.spec.index;
  }

  set(s) {
    if (s.spec.kind !== 'parameter') this.run.numbers[this.place(s)] = s.wanted;
    this.changed();
  }

  get dimensions() {
    return this.sliders.filter((s) => s.spec.kind === 'parameter');
  }

  // dimensions as they are at the start; they go to their sliders again from there
  reset() {
    for (const s of this.dimensions) this.run.numbers[this.place(s)] = s.spec.value;
  }

  // dimensions one small step nearer to their sliders, loops closed at each; true if one has changed
  continue() {
    let moved = false;
    for (const s of this.dimensions) {
      for (let k = 0; k < MOVES && this.run.numbers[this.place(s)] !== s.wanted; k++) {
        moved = true;
        if (this.nearer(s)) continue;
        s.refuse(this.run.numbers[this.place(s)], `The loops cannot be closed beyond ${shortNumber(Number(this.run.numbers[this.place(s)].toPrecision(4)))} ${s.spec.unit} from here.`);
        break;
      }
    }
    return moved;
  }

  nearer(s) {
    const [at, { low, high }] = [this.place(s), s.spec];
    const before = this.run.numbers[at];
    const saved = this.run.save();
    let by = clamp(s.wanted - before, -(high - low) / PARTS_OF_RANGE, (high - low) / PARTS_OF_RANGE);
    for (let k = 0; k <= HALVINGS; k++, by /= 2) {
      this.run.numbers[at] = Math.abs(s.wanted - before) <= Math.abs(by) ? s.wanted : before + by;
      if (!this.run.reclose()) return true;
      this.run.numbers[at] = before;
      this.run.restore(saved);
    }
    return false;
  }
}
