// ---- time: play, pause, speed, scrub

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4];

class Timeline {
  constructor(start, end, changed) {
    [this.start, this.end, this.time, this.speed, this.playing] = [start, end, start, 1, false];
    this.changed = changed;
    this.button = document.getElementById('play');
    this.scrub = document.getElementById('scrub');
    this.clock = document.getElementById('clock');
    const speed = document.getElementById('speed');
    for (const s of SPEEDS) speed.append(new Option(`${s}×`, String(s), s === 1, s === 1));
    speed.addEventListener('change', () => (this.speed = Number(speed.value)));
    this.select = speed;
    this.button.addEventListener('click', () => this.toggle());
    this.scrub.addEventListener('input', () => {
      this.play(false);
      this.seek(this.start + (Number(this.scrub.value) / 1000) * (this.end - this.start));
    });
    this.show();
  }

  // only a part of the time, with words in place of the clock
  limit(start, end, words) {
    [this.start, this.end, this.words] = [start, end, words];
    this.seek(start);
  }

  seek(time) {
    this.time = clamp(time, this.start, this.end);
    this.show();
    this.changed();
  }

  show() {
    const span = this.end - this.start || 1;
    this.scrub.value = String(Math.round((1000 * (this.time - this.start)) / span));
    const digits = span < 2 ? 3 : 2;
    this.clock.textContent = this.words || `${this.time.toFixed(digits)} / ${this.end.toFixed(digits)} s`;
    this.scrub.setAttribute('aria-valuetext', `${this.time.toFixed(digits)} seconds`);
  }

  toggle() {
    this.play(!this.playing);
  }

  play(on) {
    this.playing = on && this.end > this.start;
    this.button.textContent = this.playing ? '❚❚' : '▶';
    this.last = null;
    if (this.playing) this.changed();
  }

  faster(by) {
    const k = clamp(SPEEDS.indexOf(this.speed) + by, 0, SPEEDS.length - 1);
    this.speed = SPEEDS[k];
    this.select.value = String(this.speed);
  }

  // once for every picture of the screen; at the end it starts again
  tick(now) {
    if (!this.playing) return;
    const passed = this.last === null ? 0 : Math.min((now - this.last) / 1000, 0.2);
    this.last = now;
    const next = this.time + passed * this.speed;
    this.time = next > this.end ? this.start : next;
    this.show();
    this.changed();
  }
}
