// ---- the clock of a live run: fixed steps, as many as real time asks for and a frame has room for

const LIVE_SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4];
const BUDGET = 9; // ms of a frame for steps, or this share of a frame that is slow to draw
const SHARE = 0.5;
const CHECK = 8; // steps between two looks at the clock
const LONGEST = 0.2; // s of real time that one frame makes up for

class LiveClock {
  constructor(step) {
    [this.h, this.speed, this.playing] = [step, 1, false];
    this.fresh();
  }

  // nothing owed from before
  fresh() {
    [this.owed, this.last] = [0, null];
    [this.rate, this.since, this.advanced] = [null, null, 0];
  }

  play(on) {
    this.playing = on;
    this.fresh();
  }

  faster(by) {
    this.speed = LIVE_SPEEDS[clamp(LIVE_SPEEDS.indexOf(this.speed) + by, 0, LIVE_SPEEDS.length - 1)];
    this.fresh();
  }

  // steps of this frame; advance() makes one and returns whether the run goes on
  tick(now, advance) {
    if (!this.playing) return 0;
    const passed = this.last === null ? 1 / 60 : Math.min((now - this.last) / 1000, LONGEST);
    this.last = now;
    this.owed += passed * this.speed;
    const end = performance.now() + Math.max(BUDGET, 1000 * SHARE * passed);
    let done = 0;
    while (this.owed >= this.h) {
      if (!advance()) return done;
      done += 1;
      this.owed -= this.h;
      if (done % CHECK === 0 && performance.now() > end) this.owed = 0; // too slow: time is lost, never made up for
    }
    this.measure(now, done);
    return done;
  }

  // seconds of the run per second of real time, over the last half second
  measure(now, done) {
    if (this.since === null) this.since = now;
    this.advanced += done * this.h;
    if (now - this.since < 500) return;
    this.rate = this.advanced / ((now - this.since) / 1000);
    [this.since, this.advanced] = [now, 0];
  }

  words() {
    if (!this.playing) return 'paused';
    if (this.rate === null || Math.abs(this.rate / this.speed - 1) < 0.06) return this.speed === 1 ? 'real time' : `${this.speed} of real time`;
    return `${shortNumber(Number(this.rate.toPrecision(2)))} of real time`;
  }
}
