// ---- a camera that orbits a point: mouse, touch, and keys

const LENS = 0.7; // rad, up and down
const HOME = [-0.95, 0.4]; // azimuth and elevation at first
const ROOM = 0.94; // share of the picture that the corners may fill

class Camera {
  // view: azimuth and elevation at first
  constructor(canvas, low, high, size, changed, view = HOME) {
    this.view = view;
    this.least = 0.05 * size;
    this.home = this.target = [0, 0, 0];
    this.frame(low, high);
    this.shift = [0, 0, 0]; // how far what is followed has gone
    this.changed = changed;
    this.canvas = canvas;
    this.pointers = new Map();
    this.reset();
    canvas.addEventListener('pointerdown', (e) => this.down(e));
    canvas.addEventListener('pointermove', (e) => this.dragged(e));
    for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, (e) => this.pointers.delete(e.pointerId));
    canvas.addEventListener('wheel', (e) => this.wheel(e), { passive: false });
    canvas.addEventListener('contextmenu', (e) => e.preventDefault());
    canvas.addEventListener('dblclick', () => this.reset());
  }

  reset() {
    this.target = [...this.home];
    [this.azimuth, this.elevation] = this.view;
    this.distance = 1; // of that from which all is seen
    this.changed();
  }

  // the box that the picture holds
  frame(low, high) {
    const before = this.home;
    this.home = scaled(0.5, add(low, high));
    this.half = scaled(0.5, subtract(high, low)).map((x) => Math.max(x, this.least));
    this.size = 2 * lengthOf(this.half);
    this.target = add(this.target, subtract(this.home, before));
  }

  get dragging() {
    return this.pointers.size > 0;
  }

  eye() {
    return add(this.center(), scaled(this.away(), this.direction(this.azimuth, this.elevation)));
  }

  direction(azimuth, elevation) {
    const c = Math.cos(elevation);
    return [c * Math.cos(azimuth), c * Math.sin(azimuth), Math.sin(elevation)];
  }

  away() {
    return this.distance * (this.all || this.size);
  }

  center() {
    return add(this.target, this.shift);
  }

  // how far away the eye must be to see all corners, from where it looks at first
  fitted(aspect) {
    const z = this.direction(...HOME);
    const x = unit(cross([0, 0, 1], z));
    const y = cross(z, x);
    const up = Math.tan(LENS / 2) * ROOM;
    let far = 0;
    for (let k = 0; k < 8; k++) {
      const corner = this.half.map((h, i) => (k & (1 << i) ? h : -h));
      const [a, b, c] = [x, y, z].map((d) => dot(d, corner));
      far = Math.max(far, c + Math.abs(b) / up, c + Math.abs(a) / (up * aspect));
    }
    return far;
  }

  // the matrix from the world to the screen
  seen(aspect) {
    this.all = this.fitted(aspect);
    const far = this.away() + 12 * this.size;
    return product(perspective(LENS, aspect, far / 4000, far), lookingAt(this.eye(), this.center(), [0, 0, 1]));
  }

  turn(x, y) {
    this.azimuth -= x;
    this.elevation = clamp(this.elevation + y, -1.5, 1.5);
    this.changed();
  }

  // by shares of the window's height
  pan(x, y) {
    const z = unit(subtract(this.eye(), this.center()));
    const right = unit(cross([0, 0, 1], z));
    const up = cross(z, right);
    const reach = 2 * Math.tan(LENS / 2) * this.away();
    this.target = add(this.target, add(scaled(-x * reach, right), scaled(y * reach, up)));
    this.changed();
  }

  zoom(factor) {
    this.distance = clamp(this.distance * factor, 0.02, 20);
    this.changed();
  }

  down(e) {
    this.canvas.setPointerCapture(e.pointerId);
    this.pointers.set(e.pointerId, { x: e.clientX, y: e.clientY, pan: e.button > 0 || e.shiftKey });
  }

  dragged(e) {
    const before = this.pointers.get(e.pointerId);
    if (!before) return;
    const [dx, dy] = [e.clientX - before.x, e.clientY - before.y];
    const height = this.canvas.clientHeight || 1;
    const others = [...this.pointers.entries()].filter(([id]) => id !== e.pointerId);
    if (others.length) {
      const other = others[0][1];
      const apart = (p) => Math.hypot(p.x - other.x, p.y - other.y) || 1;
      this.zoom(apart(before) / apart({ x: e.clientX, y: e.clientY }));
      this.pan(dx / 2 / height, dy / 2 / height);
    } else if (before.pan) this.pan(dx / height, dy / height);
    else this.turn(0.008 * dx, 0.008 * dy);
    before.x = e.clientX;
    before.y = e.clientY;
  }

  wheel(e) {
    e.preventDefault();
    this.zoom(Math.exp(clamp(e.deltaY, -200, 200) * 0.0016));
  }
}
