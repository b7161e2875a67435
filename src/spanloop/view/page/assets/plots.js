// ---- plots: curves over time, a cursor that is the timeline's

const CURVES = ['#3b82c4', '#e07b39', '#3a9d7a', '#c2508a', '#8a6fd1', '#b59a2c', '#d35a4a', '#5aa0b8', '#7f9a3d', '#8d7b6c'];
const LEFT = 52, RIGHT = 8, TOP = 6, BOTTOM = 20;

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function shortNumber(x) {
  if (!Number.isFinite(x)) return '–';
  const size = Math.abs(x);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) return x.toExponential(1);
  return String(Number(x.toPrecision(4)));
}

// round numbers that divide a range
function ticksOf(low, high, most) {
  const step = roundStep((high - low) / most || 1);
  const out = [];
  for (let x = Math.ceil(low / step - 1e-9) * step; x <= high + 1e-9 * step; x += step) out.push(Math.abs(x) < 1e-9 * step ? 0 : x);
  return out;
}

class Plot {
  constructor(group, times, seek) {
    [this.group, this.times] = [group, times];
    this.values = floatsOf(group.values);
    this.width = group.names.length;
    this.shown = new Set(group.shown);
    this.index = 0;
    this.card = document.createElement('section');
    this.card.className = 'card';
    const head = document.createElement('h2');
    head.append(group.title, Object.assign(document.createElement('span'), { textContent: group.unit }));
    this.frame = Object.assign(document.createElement('div'), { className: 'plot' });
    this.frame.dataset.key = group.key;
    [this.back, this.front] = [0, 1].map(() => this.frame.appendChild(document.createElement('canvas')));
    this.chips = Object.assign(document.createElement('div'), { className: 'chips' });
    this.labels = group.names.map((name, k) => this.chip(name, k));
    const first = (k) => (this.shown.has(k) ? 0 : 1);
    const order = group.names.map((_, k) => k).sort((a, b) => first(a) - first(b) || a - b);
    this.chips.append(...order.map((k) => this.labels[k].chip));
    this.card.append(head, this.frame, this.chips);
    const at = (e) => {
      const box = this.frame.getBoundingClientRect();
      const share = clamp((e.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT), 0, 1);
      seek(times[0] + share * (times[times.length - 1] - times[0]));
    };
    this.frame.addEventListener('pointerdown', (e) => {
      this.frame.setPointerCapture(e.pointerId);
      at(e);
    });
    this.frame.addEventListener('pointermove', (e) => e.buttons && at(e));
  }

  chip(name, k) {
    const chip = Object.assign(document.createElement('button'), { className: 'chip', type: 'button', title: name });
    const value = document.createElement('span');
    chip.append(document.createElement('i'), name, value);
    chip.addEventListener('click', () => {
      if (!this.shown.delete(k)) this.shown.add(k);
      this.draw();
    });
    return { chip, value };
  }

  color(k) {
    return CURVES[[...this.shown].sort((a, b) => a - b).indexOf(k) % CURVES.length];
  }

  value(i, k) {
    const x = this.values[i * this.width + k];
    return this.group.log ? Math.log10(Math.max(Math.abs(x), 1e-18)) : x;
  }

  range() {
    let [low, high] = [Infinity, -Infinity];
    for (const k of this.shown)
      for (let i = 0; i < this.times.length; i++) {
        const x = this.value(i, k);
        if (x < low) low = x;
        if (x > high) high = x;
      }
    if (!(low <= high)) return [0, 1];
    if (this.group.log) return [Math.floor(low) - 0.2, Math.max(Math.ceil(high), Math.floor(low) + 2) + 0.2];
    const rounding = this.noise();
    if (high - low > rounding) return [low - 0.07 * (high - low), high + 0.07 * (high - low)];
    const middle = Math.abs(high) > rounding ? (low + high) / 2 : 0; // all the same, but for rounding
    const room = 0.1 * Math.abs(middle) || 1;
    return [middle - room, middle + room];
  }

  // differences that are rounding, in the coarsest of the group's units
  noise() {
    const units = this.group.unit.split(', ');
    return Math.max(...units.map((u) => data.noise[u] || 0));
  }

  sized(canvas) {
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const [w, h] = [this.frame.clientWidth, this.frame.clientHeight];
    canvas.width = Math.round(w * ratio);
    canvas.height = Math.round(h * ratio);
    const pen = canvas.getContext('2d');
    pen.scale(ratio, ratio);
    return [pen, w, h];
  }

  draw() {
    const [pen, w, h] = this.sized(this.back);
    [this.low, this.high] = this.range();
    const last = this.times[this.times.length - 1];
    const span = last - this.times[0] || 1;
    this.x = (t) => LEFT + ((t - this.times[0]) / span) * (w - LEFT - RIGHT);
    this.y = (v) => TOP + ((this.high - v) / (this.high - this.low)) * (h - TOP - BOTTOM);
    pen.font = '11px system-ui, sans-serif';
    pen.fillStyle = style('--soft');
    pen.strokeStyle = style('--line');
    pen.textBaseline = 'middle';
    pen.textAlign = 'right';
    for (const v of this.group.log ? this.decades() : ticksOf(this.low, this.high, 4)) {
      pen.fillText(this.group.log ? `1e${v}` : shortNumber(v), LEFT - 6, this.y(v));
      this.line(pen, LEFT, this.y(v), w - RIGHT, this.y(v));
    }
    pen.textAlign = 'center';
    for (const t of ticksOf(this.times[0], last, 6)) pen.fillText(shortNumber(t), clamp(this.x(t), LEFT, w - 14), h - 8);
    this.marks(pen, h);
    pen.lineWidth = 1.5;
    pen.lineJoin = 'round';
    this.labels.forEach(({ chip }, k) => {
      const on = this.shown.has(k);
      chip.setAttribute('aria-pressed', String(on));
      chip.firstChild.style.background = on ? this.color(k) : '';
      if (on) this.curve(pen, k);
    });
    this.cursor(this.time ?? this.times[0], this.index);
  }

  // a thin line at each event
  marks(pen, h) {
    pen.globalAlpha = data.events.length > 40 ? 0.18 : 0.5;
    for (const e of data.events) {
      pen.strokeStyle = e.color;
      this.line(pen, this.x(e.time), TOP, this.x(e.time), h - BOTTOM);
    }
    pen.globalAlpha = 1;
  }

  decades() {
    const every = Math.ceil((this.high - this.low) / 4);
    const out = [];
    for (let k = Math.ceil(this.low); k <= this.high; k++) if (k % every === 0) out.push(k);
    return out;
  }

  line(pen, x1, y1, x2, y2) {
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.lineTo(x2, y2);
    pen.stroke();
  }

  curve(pen, k) {
    pen.strokeStyle = this.color(k);
    pen.beginPath();
    let drawing = false;
    for (let i = 0; i < this.times.length; i++) {
      const v = this.value(i, k);
      if (!Number.isFinite(v)) { drawing = false; continue; }
      const jumps = i > 0 && this.times[i] === this.times[i - 1] && this.group.key !== 'energy'; // at an event
      if (drawing && !jumps) pen.lineTo(this.x(this.times[i]), this.y(v));
      else pen.moveTo(this.x(this.times[i]), this.y(v));
      drawing = true;
    }
    pen.stroke();
  }

  cursor(time, index) {
    [this.time, this.index] = [time, index];
    if (!this.x) return;
    const [pen, , h] = this.sized(this.front);
    pen.strokeStyle = style('--soft');
    this.line(pen, this.x(time), TOP, this.x(time), h - BOTTOM);
    for (const k of this.shown) {
      const v = this.value(index, k);
      if (!Number.isFinite(v)) continue;
      pen.fillStyle = this.color(k);
      pen.beginPath();
      pen.arc(this.x(this.times[index]), this.y(v), 3, 0, 7);
      pen.fill();
    }
    this.labels.forEach(({ value }, k) => {
      const text = this.shown.has(k) ? shortNumber(this.values[index * this.width + k]) : '';
      if (value.textContent !== text) value.textContent = text;
    });
  }
}
