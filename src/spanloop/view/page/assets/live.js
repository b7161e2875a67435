// ---- the live mechanism in the page: its bar, its panel, and what happens in a frame

const AHEAD = 1.5; // s that are tried before the first picture, to frame the motion
const AHEAD_BUDGET = 14; // ms for that
const LIVE_KEYS = [
  ['drag a body', 'pull it'], ['drag elsewhere', 'rotate the view'], ['space', 'play, pause'], ['.', 'one step'], ['r', 'reset the run'], ['v', 'reset the view'], ['− +', 'slower, faster'],
];

class Live {
  // loading: a promise of the run; plain.shown(on): the parts of the recorded run hide or appear
  constructor(data, stage, camera, loading, plain) {
    Object.assign(this, { data, stage, camera, loading, plain, on: false, ready: false, moved: false, ended: '', stale: true });
    this.spec = data.live;
    this.clock = new LiveClock(this.spec.step);
    this.panel = element('div', 'side');
    this.build();
    this.load();
  }

  async load() {
    try {
      this.run = await this.loading;
    } catch (error) {
      this.refuse(error.message);
      return;
    }
    const mass = this.data.bodies.reduce((sum, b) => sum + b.mass, 0) || 1;
    this.grabs = new Grabs(this.run, this.data.size, mass);
    this.controls = new Controls(this.run, () => (this.stale = true));
    this.plots = new LivePlots(this.spec, this.stage);
    this.pointer = new LivePointer(this, this.stage, this.camera);
    this.panel.replaceChildren(...this.controls.cards, ...this.plots.cards, this.about());
    this.ready = true;
    if (this.on) this.show(true);
  }

  refuse(why) {
    this.trouble = why;
    const out = card('Live');
    out.append(element('p', 'verdict', why));
    this.panel.replaceChildren(out);
    if (this.on && this.data.recorded !== false) this.choose(false);
    else if (this.on) this.say(why, false);
  }

  // ---- parts of the page

  build() {
    const button = (text, label, key, act) => {
      const out = element('button', '', text);
      out.setAttribute('aria-label', label);
      out.title = `${label} (${key})`;
      out.addEventListener('click', act);
      return out;
    };
    this.bar = element('div', 'livebar');
    this.bar.setAttribute('role', 'group');
    this.bar.setAttribute('aria-label', 'live run');
    this.buttons = {
      play: button('▶', 'play or pause', 'space', () => this.play(!this.clock.playing)),
      step: button('❙▶', 'one step', '.', () => this.single()),
      reset: button('↺', 'reset', 'r', () => this.reset()),
    };
    this.buttons.play.classList.add('play');
    this.words = element('span', 'pace');
    this.time = element('output', 'time');
    this.speed = element('select');
    this.speed.setAttribute('aria-label', 'speed');
    this.speed.title = 'speed (− +)';
    for (const s of LIVE_SPEEDS) this.speed.append(new Option(`${s}×`, String(s), s === 1, s === 1));
    this.speed.addEventListener('change', () => this.faster(LIVE_SPEEDS.indexOf(Number(this.speed.value)) - LIVE_SPEEDS.indexOf(this.clock.speed)));
    this.bar.append(...Object.values(this.buttons), this.words, this.time, this.speed);
    this.hint = element('p', 'hint', 'Grab any body and pull');
    this.notice = element('div', 'ended');
    this.notice.setAttribute('role', 'alert');
    this.notice.hidden = true;
    byId('stage').append(this.bar, this.hint, this.notice);
    if (this.data.recorded !== false) byId('title').parentElement.after(this.switch());
    for (const [key, meaning] of [...LIVE_KEYS].reverse()) {
      const row = element('div');
      row.append(element('b', '', key), element('span', '', meaning));
      byId('keys').prepend(row);
    }
    byId('keys').prepend(element('strong', '', 'Live'));
    byId('keys').querySelectorAll('div')[LIVE_KEYS.length - 1].after(element('strong', '', this.data.recorded === false ? 'View' : 'Recorded'));
  }

  switch() {
    const out = element('div', 'switch');
    out.setAttribute('role', 'group');
    out.setAttribute('aria-label', 'recorded or live');
    this.choices = [['recorded', false], ['live', true]].map(([name, on]) => {
      const b = element('button', '', name);
      b.addEventListener('click', () => this.choose(on));
      return out.appendChild(b);
    });
    return out;
  }

  about() {
    const out = card('Live run');
    const list = element('dl');
    const rows = [['step', `${1e3 * this.spec.step} ms`], ['integrator', this.spec.integrator], ['computed', 'in this page, as WebAssembly'], ...(this.spec.about || [])];
    for (const [name, value] of rows) list.append(element('dt', '', name), element('dd', '', value));
    out.append(list);
    const touches = this.data.patches.length ? ['Contacts act in the live run; their forces are not drawn.'] : [];
    const notes = [...(this.spec.not_live || []), ...touches, ...(this.data.recorded === false ? this.data.notes : [])];
    if (notes.length) {
      const box = element('ul', 'notes');
      for (const note of notes) box.append(element('li', '', note));
      out.append(box);
    }
    return out;
  }

  // ---- live or recorded

  choose(on) {
    this.on = on && !(this.trouble && this.data.recorded !== false);
    this.show(this.on);
    this.plain.shown(this.on);
  }

  show(on) {
    this.bar.hidden = this.panel.hidden = !on;
    root.classList.toggle('live', on);
    this.hint.hidden = !on || this.pulled || !this.ready;
    this.notice.hidden = !on || !this.ended;
    if (this.choices) this.choices.forEach((b, k) => b.setAttribute('aria-pressed', String((k === 1) === on)));
    if (this.choices && this.trouble) Object.assign(this.choices[1], { disabled: true, title: this.trouble });
    if (!this.ready) return;
    this.pointer.releaseAll();
    this.stage.follow(on ? this.run : null);
    this.stage.grabs = this.grabs;
    if (!on) return this.play(false);
    if (!this.framed) this.frameAll();
    this.stale = true;
    this.play(!window.matchMedia('(prefers-reduced-motion: reduce)').matches);
  }

  // the window holds the first moments of the motion
  frameAll() {
    this.framed = true;
    const end = performance.now() + AHEAD_BUDGET;
    const every = Math.max(1, Math.round(0.02 / this.run.h));
    let box = [[...this.data.low], [...this.data.high]];
    for (let k = 0; k * this.run.h < AHEAD && performance.now() < end; k++) {
      if (k % every === 0) {
        this.stage.placeAll();
        box = around(box, this.stage.extent());
      }
      if (this.run.step()) break;
    }
    this.run.reset();
    this.stage.placeAll();
    if (!this.spec.travels) this.camera.frame(...box);
    this.sink(box[0][2], 1);
  }

  // a floor under a mechanism that hangs is below all that it reaches
  sink(lowest, share) {
    if (!this.spec.hangs) return;
    const wanted = Math.min(this.data.ground, lowest - 0.03 * this.data.size);
    this.data.ground += share * (wanted - this.data.ground);
  }

  // the window grows with the motion, slowly, and not under a hand that pulls
  widen() {
    const now = this.stage.extent();
    if (!now || this.spec.travels || this.grabs.any) return;
    const own = [subtract(this.camera.home, this.camera.half), add(this.camera.home, this.camera.half)];
    const box = around(own, now);
    const beyond = Math.max(...[0, 1].map((k) => lengthOf(subtract(box[k], own[k]))));
    if (beyond < 1e-3 * this.data.size) return;
    this.camera.frame(...[0, 1].map((k) => add(own[k], scaled(0.04, subtract(box[k], own[k])))));
    this.sink(now[0][2], 0.04);
  }

  // ---- what the user does

  play(on) {
    if (!this.ready || (on && this.ended)) on = false;
    this.clock.play(on);
    this.buttons.play.textContent = on ? '❚❚' : '▶';
    this.stale = true;
  }

  single() {
    if (!this.ready) return;
    this.play(false);
    this.advance();
  }

  faster(by) {
    this.clock.faster(by);
    this.speed.value = String(this.clock.speed);
  }

  reset() {
    if (!this.ready) return;
    const playing = this.clock.playing || this.ended;
    this.pointer.releaseAll();
    this.grabs.clear();
    this.controls.reset();
    this.run.reset();
    this.say('', false);
    this.stage.forget();
    this.plots.clear();
    this.moved = false;
    this.play(Boolean(playing));
  }

  grabbed() {
    this.pulled = true;
    this.hint.hidden = true;
    this.changed();
  }

  changed() {
    this.stale = true;
  }

  get pulling() {
    return this.on && this.ready && this.grabs.any;
  }

  get keys() {
    return {
      ' ': () => this.play(!this.clock.playing),
      '.': () => this.single(),
      r: () => this.reset(),
      v: () => this.camera.reset(),
      '-': () => this.faster(-1),
      '+': () => this.faster(1),
      '=': () => this.faster(1),
      ArrowRight: () => this.single(),
    };
  }

  // ---- time

  // one step; false if it was refused, which ends the run
  advance() {
    this.grabs.apply(this.moved);
    let status = this.run.step();
    if (status && this.grabs.any) { // without the pull it may go on
      this.pointer.releaseAll('let go: no step was possible with this pull');
      status = this.run.step();
    }
    this.moved = !status;
    if (status) this.end(this.run.refusal(status));
    this.stale = true;
    return !status;
  }

  end(why) {
    this.play(false);
    this.say(`${why}. The run stopped at ${this.run.time.toFixed(3)} s.`, true);
    this.pointer.releaseAll();
  }

  say(text, offer) {
    this.ended = text;
    this.notice.hidden = !text || !this.on;
    this.notice.replaceChildren(element('span', '', text));
    if (!offer) return;
    const again = element('button', '', 'Reset');
    again.addEventListener('click', () => this.reset());
    this.notice.append(again);
  }

  // whether the run has not begun because lengths are on their way
  get waits() {
    return !this.run.count && this.controls.onTheWay;
  }

  // once for every picture of the screen; true if there is something new to draw
  tick(now) {
    if (!this.ready) return false;
    if (this.grabs.any) this.pointer.aim();
    const begun = performance.now();
    if (this.controls.continue()) [this.moved, this.stale] = [false, true];
    if (this.waits) this.clock.fresh();
    else this.clock.tick(now, () => this.advance());
    if (this.grabs.any && !this.clock.playing) {
      this.grabs.apply(false);
      this.stale = true;
    }
    this.cost = performance.now() - begun; // ms of this frame in steps
    if (!this.stale) return false;
    this.stale = false;
    return true;
  }

  // after the stage has moved
  shown(now) {
    if (!this.ready) return;
    const pull = [...this.grabs.held.values()].reduce((sum, g) => sum + lengthOf(g.force), 0);
    this.plots.sample(this.run, pull, this.clock.speed, !this.clock.playing || this.waits);
    if (!this.plots.draw(now)) this.changed();
    this.pointer.show(this.clock.playing);
    this.widen();
    this.time.textContent = `${this.run.time.toFixed(2)} s`;
    this.words.textContent = this.waits ? 'lengths on their way' : this.clock.words();
    this.canvasCursor();
    if (!this.first && this.run.count) this.first = performance.now(); // ms from the page's start to its first moving picture
  }

  canvasCursor() {
    const kind = this.grabs.any ? 'grabbing' : this.stage.pointed ? 'grab' : 'default';
    const { style: own } = this.stage.drawing.canvas;
    if (own.cursor !== kind) own.cursor = kind;
  }
}

// the box around two
function around(box, other) {
  if (!other) return box;
  return [box[0].map((x, k) => Math.min(x, other[0][k])), box[1].map((x, k) => Math.max(x, other[1][k]))];
}

// the live mechanism beside the recorded run, or alone; it is what the page shows first, unless its address ends in #recorded
function shownLive(stage, camera) {
  const side = {
    shown: (on) => {
      recorded.hidden = byId('timeline').hidden = on;
      if (!on) drawPlots();
      timeline.play(!on && !window.matchMedia('(prefers-reduced-motion: reduce)').matches);
      stale = true;
    },
  };
  const out = new Live(data, stage, camera, loading, side);
  panel.append(out.panel);
  out.choose(data.recorded === false || (window.location.hash || `#${data.live.first || 'live'}`) !== '#recorded');
  return out;
}
